package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	readmeWords = 60 // per paragraph of README.md
	pageWords   = 80 // per paragraph of docs/*.md and docs/reference/*.md
)

// separator matches lines that end a paragraph and belong to none: blank lines, headings and rows of tables.
var separator = regexp.MustCompile(`^\s*($|#|\|)`)

// listItem matches the first line of a list item, which is a paragraph of its own.
var listItem = regexp.MustCompile(`^\s*([-*]|\d+\.) `)

// paragraphs returns the paragraphs of a page, without its code blocks.
func paragraphs(text string) []string {
	var found, current []string
	end := func() {
		if len(current) > 0 {
			found = append(found, strings.Join(current, " "))
		}
		current = nil
	}
	inFence := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		isFence := strings.HasPrefix(line, "```")
		switch {
		case isFence || inFence:
			end()
			inFence = inFence != isFence
		case separator.MatchString(line):
			end()
		case listItem.MatchString(line):
			end()
			current = []string{line}
		default:
			current = append(current, line)
		}
	}
	end()
	return found
}

// longParagraphs returns the paragraphs of a page that have more words than its limit, cut to their beginning.
func longParagraphs(page, text string) []string {
	limit := 0
	switch {
	case page == "README.md":
		limit = readmeWords
	case filepath.Dir(page) == "docs", filepath.Dir(page) == "docs/reference":
		limit = pageWords
	default:
		return nil
	}
	var long []string
	for _, p := range paragraphs(text) {
		if words := strings.Fields(p); len(words) > limit {
			long = append(long, strings.Join(words[:10], " ")+" …")
		}
	}
	return long
}

func TestParagraphsAreShort(t *testing.T) {
	for page, text := range pages(t) {
		for _, start := range longParagraphs(page, text) {
			t.Errorf("%s has a paragraph that is too long; split or shorten it: %s", page, start)
		}
	}
}

func TestLongParagraphIsFound(t *testing.T) {
	long := strings.Repeat("word ", pageWords+1)
	for name, c := range map[string]struct {
		page, text string
		found      int
	}{
		"a paragraph after a heading": {"docs/a.md", "# A\n" + long + "\n", 1},
		"a paragraph of many lines":   {"docs/a.md", strings.ReplaceAll(long, " ", "\n"), 1},
		"a list item":                 {"docs/a.md", "- short\n- " + long + "\n", 1},
		"a paragraph below a block":   {"docs/a.md", "```\ncode\n```\n" + long, 1},
		"README has a lower limit":    {"README.md", strings.Repeat("word ", readmeWords+1), 1},
		"at the limit":                {"docs/a.md", strings.Repeat("word ", pageWords), 0},
		"a code block":                {"docs/a.md", "```\n" + long + "\n```\n", 0},
		"a row of a table":            {"docs/a.md", "| " + long + " |\n", 0},
		"two paragraphs":              {"docs/a.md", long[:200] + "\n\n" + long[200:], 0},
		"two list items":              {"docs/a.md", "- " + long[:200] + "\n- " + long[200:], 0},
		"a page for developers":       {"ARCHITECTURE.md", long, 0},
	} {
		if got := longParagraphs(c.page, c.text); len(got) != c.found {
			t.Errorf("%s: found %q, want %d", name, got, c.found)
		}
	}
}
