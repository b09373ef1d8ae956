package guides

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// folder holds the articles; it lies beside the repository.
const folder = "../../../shared/guides"

// article is one file: its lines, and the documents of its fenced blocks.
type article struct {
	name string
	docs []document
}

// document is one YAML document, or a whole block that is none, with the lines it was found at, the first being 1.
type document struct {
	language    string
	first, last int
	text        string
}

// readArticles reads S000 to S004, by their first letters: the files begin with the same digits.
func readArticles(dir string) (map[string]*article, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	all := map[string]*article{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := "S" + filepath.Base(file)[:3]
		if all[name] != nil {
			return nil, fmt.Errorf("two files are %s", name)
		}
		all[name] = &article{name: name, docs: documents(string(text))}
	}
	return all, nil
}

// documents are those of the fenced blocks of a Markdown text. Blocks in lists and quotes lose what they are indented
// by.
func documents(text string) []document {
	var out []document
	var open *document
	indent := ""
	lines := strings.Split(text, "\n")
	flush := func(last int) {
		if open != nil && strings.TrimSpace(open.text) != "" {
			open.last = last
			out = append(out, *open)
		}
	}
	for i, line := range lines {
		trimmed := strings.TrimLeft(line, " >")
		switch {
		case strings.HasPrefix(trimmed, "```") && open == nil:
			indent = line[:len(line)-len(trimmed)]
			open = &document{language: strings.TrimSpace(strings.TrimPrefix(trimmed, "```")), first: i + 2}
		case strings.HasPrefix(trimmed, "```"):
			flush(i)
			open = nil
		case open != nil && open.language == "yaml" && line == "---":
			language := open.language
			flush(i)
			open = &document{language: language, first: i + 2}
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return out
}

// documentAt returns the document that a line is in.
func (a *article) documentAt(line int) (document, bool) {
	for _, d := range a.docs {
		if d.first <= line && line <= d.last {
			taken.Store(fmt.Sprintf("%s:%d", a.name, d.first), true)
			return d, true
		}
	}
	return document{}, false
}

// taken are the documents that some row has asked for, by article and first line.
var taken sync.Map
