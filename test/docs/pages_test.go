package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/argosy-io/argosy/internal/core/hub/roles"
)

// pages returns the text of each page by its path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("the pages are not found: %v", err)
	}
	reference, err := filepath.Glob(filepath.Join(root, "docs", "reference", "*.md"))
	if err != nil || len(reference) == 0 {
		t.Fatalf("the pages of docs/reference are not found: %v", err)
	}
	paths = append(paths, reference...)
	found := map[string]string{}
	for _, page := range []string{"README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		paths = append(paths, filepath.Join(root, page))
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		found[rel] = string(text)
	}
	return found
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchors are the addresses of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return found
}

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	all, linked := pages(t), map[string]bool{}
	for page, text := range all {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := page
			if target != "" {
				to = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if to != page {
				linked[to] = true
			}
			if known, is := all[to]; is && anchor != "" && !anchors(known)[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", page, m[1], to)
			}
		}
	}
	for page := range all {
		if page != "README.md" && !linked[page] {
			t.Errorf("no page links to %s", page)
		}
	}
}

// Each kind whose use is decided is in the table of the page about access.
func TestAccessPageListsEachKind(t *testing.T) {
	text := pages(t)[filepath.Join("docs", "access.md")]
	section, _, ok := strings.Cut(text, "## A namespace for a team")
	if !ok {
		t.Fatal("the page has no table that this test can read")
	}
	for _, d := range roles.Decisions {
		if !regexp.MustCompile(`\b` + d.Resource + `\b`).MatchString(section) {
			t.Errorf("docs/access.md does not say who may use %s.%s", d.Resource, d.Group)
		}
	}
	for _, p := range roles.Paths {
		if named := strings.Contains(section, "`"+p.Path+"`"); named != p.Allows(roles.Operator) {
			t.Errorf("docs/access.md names %s: %t", p.Path, named)
		}
	}
}

func TestPagesForUsersNameNoTests(t *testing.T) {
	for page, text := range pages(t) {
		if page == "ARCHITECTURE.md" {
			continue
		}
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			t.Errorf("%s names the test %s: say what the hub guarantees instead", page, m[1])
		}
	}
}
