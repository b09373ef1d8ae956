package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/history"
)

func TestHistoryIsExportedAndImported(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	s, err := history.OpenSQLite(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RecordRelease(t.Context(), &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: "web-1", UID: "u1"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (out, errOut string) {
		var o, e bytes.Buffer
		Main(t.Context(), append([]string{"argosy", "release"}, args...), &o, &e)
		return o.String(), e.String()
	}
	archive, said := run("export", "--data-dir", from)
	if strings.Count(archive, "\n") != 1 || said != "exported 1 row\n" {
		t.Fatalf("export prints %q, %q", archive, said)
	}
	file := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(file, []byte(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, failure := run("import", "-f", file, "--data-dir", to); said != "imported 1 row\n" || failure != "" {
		t.Errorf("import prints %q, %q", said, failure)
	}
	if again, _ := run("export", "--data-dir", to); again != archive {
		t.Errorf("the other database exports %q, want %q", again, archive)
	}
	for line, want := range map[string]string{
		"export --data-dir " + t.TempDir():             "there is no release history in",
		"export --history off --data-dir " + from:      "this hub keeps no release history",
		"import --data-dir " + to:                      "--filename is missing",
		"import -f /nowhere --data-dir " + t.TempDir(): "/nowhere",
	} {
		if _, failure := run(strings.Fields(line)...); !strings.Contains(failure, want) {
			t.Errorf("%s prints %q, want %q", line, failure, want)
		}
	}
}
