package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inCode   = regexp.MustCompile("`([^`]+)`")
	function = regexp.MustCompile(`\.[A-Z]\w*$`)
)

func TestDesignPagesNameExistingCode(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "docs", "design", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no design pages: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, code, _ := strings.Cut(string(text), "## Code\n")
		if filepath.Base(path) != "README.md" && !inCode.MatchString(code) {
			t.Errorf("%s names no code", path)
		}
		for _, m := range inCode.FindAllStringSubmatch(code, -1) {
			name := function.ReplaceAllString(m[1], "")
			if strings.HasPrefix(name, "argosy.io/") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, "internal", strings.TrimPrefix(name, "internal/"))); err != nil {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
}

func TestDesignIndexListsAllPages(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root, "docs", "design", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "docs", "design", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if name := filepath.Base(path); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("the index does not list %s", name)
		}
	}
}
