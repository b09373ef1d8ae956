package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// constant is a constant of the source whose value is a string.
type constant struct {
	// file is relative to the repository, dir is its folder.
	file, dir  string
	line       int
	name       string
	value, doc string
	// kind and about are of the directive that applies, empty for none: "event", "Warning on Work".
	kind, about string
}

// source is what the pages are made of.
type source struct {
	constants []constant
	// literals are the positions of string literals that look like a label, an annotation or a taint of ours, by value.
	literals map[string]string
	// unnamed are the positions of calls that record an event whose reason is a literal.
	unnamed []string
	// recorded are the positions of calls that record an event whose reason has a name, by that name.
	recorded map[string]string
}

var (
	// ownName matches the names of labels, annotations and taints that are not in the API of Karmada.
	ownName = regexp.MustCompile(`^([a-z0-9-]+\.)?argosy\.io/[a-z]`)
	// reasonName matches the names of constants that need a directive.
	reasonName = regexp.MustCompile(`^([Ee]vent|[Rr]eason)[A-Z]`)
	// reasonValue matches reasons of events and conditions.
	reasonValue = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	directive   = regexp.MustCompile(`^//reference:(\w+) ?(.*)$`)
)

// skipped are folders whose code is no part of the hub.
var skipped = []string{"internal/sim", "internal/lab"}

func newSource() source {
	return source{literals: map[string]string{}, recorded: map[string]string{}}
}

// scan reads the Go files below the folders of the repository at root, without tests and generated files.
func scan(root string, folders ...string) (source, error) {
	s := newSource()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			rel = filepath.ToSlash(rel)
			switch {
			case e.IsDir() && slices.Contains(skipped, rel):
				return filepath.SkipDir
			case e.IsDir(), !strings.HasSuffix(rel, ".go"), strings.HasSuffix(rel, "_test.go"),
				strings.HasPrefix(e.Name(), "zz_generated"):
				return nil
			}
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			s.add(files, rel, parsed)
			return nil
		})
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// add takes the constants, literals and calls of one file.
func (s *source) add(files *token.FileSet, rel string, parsed *ast.File) {
	at := func(n ast.Node) string { return fmt.Sprintf("%s:%d", rel, files.Position(n.Pos()).Line) }
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.CONST || n.Tok == token.VAR {
				s.addConstants(files, rel, n)
			}
		case *ast.BasicLit:
			if text, ok := stringOf(n); ok && ownName.MatchString(text) && s.literals[text] == "" {
				s.literals[text] = at(n)
			}
		case *ast.CallExpr:
			switch reason := eventReason(n).(type) {
			case *ast.BasicLit:
				s.unnamed = append(s.unnamed, fmt.Sprintf("%s: %s", at(n), reason.Value))
			case *ast.Ident:
				s.recorded[reason.Name] = at(n)
			case *ast.SelectorExpr:
				s.recorded[reason.Sel.Name] = at(n)
			}
		}
		return true
	})
}

// addConstants takes the constants of a block, one entry per directive. Variables are taken too: some names are part of
// one.
func (s *source) addConstants(files *token.FileSet, rel string, block *ast.GenDecl) {
	blockDirectives := directivesOf(block.Doc)
	for _, spec := range block.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		doc := value.Doc
		if doc == nil && !block.Lparen.IsValid() {
			doc = block.Doc
		}
		directives := directivesOf(doc)
		if len(directives) == 0 {
			directives = blockDirectives
		}
		if len(directives) == 0 {
			directives = [][2]string{{}}
		}
		for i, name := range value.Names {
			if i >= len(value.Values) {
				continue
			}
			text, ok := stringOf(value.Values[i])
			if !ok {
				continue
			}
			for _, d := range directives {
				s.constants = append(s.constants, constant{file: rel, dir: filepath.Dir(rel),
					line: files.Position(name.Pos()).Line, name: name.Name, value: text, doc: textOf(doc, value.Comment),
					kind: d[0], about: d[1]})
			}
		}
	}
}

// stringOf returns the value of a string literal.
func stringOf(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// textOf returns a comment as one paragraph; examples in it, which are indented, are left out.
func textOf(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g == nil {
			continue
		}
		var words []string
		for line := range strings.Lines(g.Text()) {
			if !strings.HasPrefix(line, "\t") {
				words = append(words, strings.Fields(line)...)
			}
		}
		if len(words) > 0 {
			return strings.Join(words, " ")
		}
	}
	return ""
}

// directivesOf returns the kind and subject of each directive in a comment.
func directivesOf(g *ast.CommentGroup) (directives [][2]string) {
	if g == nil {
		return nil
	}
	for _, c := range g.List {
		if m := directive.FindStringSubmatch(c.Text); m != nil {
			directives = append(directives, [2]string{m[1], strings.TrimSpace(m[2])})
		}
	}
	return directives
}

// recording are the positions of the reason among the arguments of methods that record events.
var recording = map[string]int{"Event": 2, "Eventf": 2, "Succeeded": 0, "Stepped": 0}

// eventReason returns the reason in a call that records an event; nil for other calls.
func eventReason(call *ast.CallExpr) ast.Expr {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if i, ok := recording[method.Sel.Name]; ok && i < len(call.Args) {
		return call.Args[i]
	}
	return nil
}
