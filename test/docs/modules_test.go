package docs

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// SQLite's C code is translated for one version of modernc.org/libc, and breaks with another.
func TestSQLiteHasItsVersionOfLibc(t *testing.T) {
	list := func(format, module string) string {
		t.Helper()
		cmd := exec.Command("go", "list", "-m", "-f", format, module)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", module, err)
		}
		return strings.TrimSpace(string(out))
	}
	mod, err := os.ReadFile(list("{{.GoMod}}", "modernc.org/sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^\s*(?:require )?modernc\.org/libc (v\S+)`).FindSubmatch(mod)
	if named == nil {
		t.Fatalf("modernc.org/sqlite names no version of modernc.org/libc:\n%s", mod)
	}
	if have := list("{{.Version}}", "modernc.org/libc"); have != string(named[1]) {
		t.Errorf("go.mod has modernc.org/libc %s, and modernc.org/sqlite needs %s: run go get modernc.org/libc@%s", have,
			named[1], named[1])
	}
}
