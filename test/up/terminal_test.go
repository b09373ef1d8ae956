package up

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// logLine begins a line of klog, such as "E1124 12:00:00.000000   4711 memcache.go:265] …".
var logLine = regexp.MustCompile(`(?m)^[IWEF]\d{4} |log\.SetLogger|^\s*>  goroutine`)

// unreachable is a kubeconfig of a cluster that does not respond.
const unreachable = `{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: none}}]}`

func TestCommandsReportUnreachableHubInOneLine(t *testing.T) {
	kit.Long(t)
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(unreachable), 0o600); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "manifest.yaml")
	if err := os.WriteFile(manifest, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}}"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"get clusters", "get pods", "get pods -A -s members", "get deployment web -o yaml", "get pods -w", "api-resources",
		"describe deployment web", "describe pod web -C eu",
		"logs web -C eu", "logs deployment/web --all-clusters", "exec web -C eu -- date", "attach web -C eu",
		"why deployment web", "why cluster eu", "rollout status deployment web", "rollout pause deployment web", "status",
		"join eu --cluster-kubeconfig " + kubeconfig, "unjoin eu", "adopt deployment web --cluster eu", "addons list",
		"addons disable kruise",
		"addons enable kruise -f " + manifest, "get orphans", "orphans delete --all", "restore status",
		"restore accept --all",
		"simulate --cluster-down eu", "simulate record", "secrets status", "secrets rotate-key",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), binary(t), strings.Fields(line)...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
			var out, errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errOut
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit code 1", err)
			}
			if gotText := errOut.String(); strings.Count(gotText, "\n") != 1 || !strings.HasPrefix(gotText, "argosy") ||
				logLine.MatchString(gotText) {
				t.Errorf("it does not say one sentence:\n%s", gotText)
			}
			if gotText := out.String() + errOut.String(); !strings.Contains(gotText, "127.0.0.1:1") {
				t.Errorf("it does not name the hub that is down:\n%s", gotText)
			}
		})
	}
}
