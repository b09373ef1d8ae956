// Package docs holds pages of docs to the sources that they speak of.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

// testName finds the names of tests in a page.
var testName = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")

// tests are the names of all tests and fuzz targets of the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	found, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, dir := range []string{"api", "cmd", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(text, -1) {
				found[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// Each kind of the hub's own API has a row in the page of doors.
func TestEveryKindOfTheHubHasADoor(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "doors.md"))
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := filepath.Glob(filepath.Join(root, "api", "crds", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatalf("the definitions are not found: %v", err)
	}
	for _, path := range definitions {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Names struct{ Kind string }
			}
		}
		if err := yaml.Unmarshal(raw, &crd); err != nil || crd.Spec.Names.Kind == "" {
			t.Fatalf("%s: %v", path, err)
		}
		if !regexp.MustCompile(`\b` + crd.Spec.Names.Kind + `\b`).Match(text) {
			t.Errorf("docs/doors.md has no row for the kind %s", crd.Spec.Names.Kind)
		}
	}
}
