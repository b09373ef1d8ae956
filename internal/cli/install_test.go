package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The whole verb, below a folder: nothing of the machine is touched.
func TestInstallWritesFlagsAsConfigurationAndLaterInstallsAddToIt(t *testing.T) {
	root := t.TempDir()
	call := func(args ...string) (string, bool) {
		t.Helper()
		var out bytes.Buffer
		code := Main(t.Context(), append([]string{"argosy"}, args...), &out, &out)
		return out.String(), code == 0
	}
	config := func() string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, "etc/argosy/config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if said, ok := call("install", "--root", root, "--bind-address", "0.0.0.0", "--backup-dir", "/var/lib/backups",
		"--data-dir", "/var/lib/hub", "--dry-run"); !ok || !strings.Contains(said, "dir: /var/lib/backups") {
		t.Fatalf("a dry run says\n%s", said)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("a dry run left %v (%v)", left, err)
	}
	if said, ok := call("install", "--root", root, "--bind-address", "0.0.0.0"); !ok {
		t.Fatal(said)
	}
	if said, ok := call("install", "--root", root, "--port", "443"); !ok {
		t.Fatal(said)
	}
	for _, want := range []string{"bindAddress: 0.0.0.0\n", "port: 443\n", "dataDir: /var/lib/argosy\n", "file: '-'\n"} {
		if !strings.Contains(config(), want) {
			t.Errorf("the configuration lacks %q:\n%s", want, config())
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "etc/systemd/system/argosy.service"))
	if err != nil || !strings.Contains(string(unit), "CAP_NET_BIND_SERVICE") {
		t.Errorf("the unit does not permit the port (%v):\n%s", err, unit)
	}
	if said, ok := call("config", "--config", filepath.Join(root, "etc/argosy/config.yaml")); !ok ||
		!strings.Contains(said, "port: 443") {
		t.Errorf("argosy config reads it as\n%s", said)
	}
	for shell, has := range map[string]string{"bash-completion/completions/argosy": "__start_argosy",
		"zsh/site-functions/_argosy": "#compdef argosy", "fish/vendor_completions.d/argosy.fish": "complete -c argosy"} {
		text, err := os.ReadFile(filepath.Join(root, "usr/local/share", shell))
		if err != nil || !strings.Contains(string(text), has) {
			t.Errorf("%s lacks %q (%v)", shell, has, err)
		}
	}
	if said, ok := call("install", "--root", root, "--port", "70000"); ok || !strings.Contains(said, "--port") {
		t.Errorf("a wrong port: %s", said)
	}
	if said, ok := call("uninstall", "--root", root, "--purge-data"); ok || !strings.Contains(said, "--yes") {
		t.Errorf("data goes unconfirmed: %s", said)
	}
	if said, ok := call("uninstall", "--root", root, "--purge-data", "--yes"); !ok {
		t.Fatal(said)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("uninstall left %v (%v)", left, err)
	}
}
