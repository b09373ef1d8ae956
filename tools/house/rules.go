package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxColumns  = 120
	maxTestName = 60
	// longString is the length from which a string may make its line too long: a message in one piece can be searched for.
	longString = 80
)

// The rules. A name is a key of limits.txt.
const (
	// a line has at most maxColumns characters, unless a long string fills it or it is a marker of controller-gen, which
	// cannot be broken; a tab and an alignment by gofmt are one
	ruleColumns  = "columns"
	ruleFuncName = "func-name" // a function is not named by a function word or a verb of speech
	ruleTestName = "test-name" // the name of a test has at most maxTestName characters
	rulePronoun  = "pronoun"   // a user is "the user" or "they"
	ruleWord     = "word"      // comments use the words of the glossary
	ruleVague    = "vague"     // comments state what a field is, its unit, default and limits; only below plainDirs
)

// bareNames are function names that do not say what the function does or returns.
var bareNames = func() map[string]bool {
	words := strings.Fields(`
		again all alone as ask asked asks at both by do each every from has heard in is may must none not now of on once
		only other others ours own said same say says since tell tells then there theirs to told unseen until when where
		which whose with word words`)
	set := map[string]bool{}
	for _, word := range words {
		set[word] = true
	}
	return set
}()

// foreignNames are methods that a library calls: errors.Is, the sets of series of Prometheus, and sets of labels.
var foreignNames = map[string]bool{"Is": true, "At": true, "Has": true}

var pronoun = regexp.MustCompile(`\b([Hh]e|[Hh]is|[Hh]im)\b`)

// words are those that STYLE.md replaces, with what to write instead.
var words = map[string]string{
	"shall": "must, or the present tense", "unset which": "Default:",
	"told": "report, record an event or log", "nobody": "no user, no controller", "heirless": "orphan",
	"patience": "timeout or tolerance", "untold": "pending", "says that": "is true if or reports that",
	"says whether": "reports whether", "returns whether": "reports whether", "must hold the lock": "must lock",
}

var word = regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(words)), "|") + `)\b`)

// vague are phrases of comments that name no unit, default or limit.
var vague = regexp.MustCompile(`\b([iI]s how|[iI]s what|[aA]re what|anew|which it is when|came of it|became of)\b`)

// plainDirs are the folders without vague comments. The list grows until it has all of internal.
var plainDirs = []string{"api/", "internal/capacity/", "internal/controller/", "internal/core/adjust/",
	"internal/core/cluster/", "internal/core/dispatch/", "internal/core/execute/", "internal/core/release/",
	"internal/facts/"}

// alignment is the space between a key and its value, or before a comment, where gofmt aligns several lines.
var alignment = regexp.MustCompile(` {2,}`)

// finding is one line that breaks a rule.
type finding struct {
	rule, pkg, file string
	line            int
	text            string
}

// inspect returns the findings of all Go files below root, generated files excluded, in the order of their paths.
func inspect(root string) ([]finding, error) {
	var findings []finding
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "zz_generated") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		of, err := inspectFile(filepath.ToSlash(relative), content)
		findings = append(findings, of...)
		return err
	})
	return findings, err
}

// inspectFile returns the findings of one Go file.
func inspectFile(path string, content []byte) ([]finding, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var findings []finding
	add := func(rule string, line int, text string) {
		findings = append(findings, finding{
			rule: rule, pkg: filepath.ToSlash(filepath.Dir(path)), file: path, line: line, text: text,
		})
	}
	texts := longStrings(files, file)
	for i, line := range strings.Split(string(content), "\n") {
		columns := utf8.RuneCountInString(alignment.ReplaceAllString(line, " "))
		if columns > maxColumns && !texts[i+1] && !strings.HasPrefix(strings.TrimSpace(line), "// +kubebuilder:") {
			add(ruleColumns, i+1, fmt.Sprintf("%d columns, at most %d", columns, maxColumns))
		}
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name, line := function.Name.Name, files.Position(function.Pos()).Line
		if bareNames[strings.ToLower(name)] && !(foreignNames[name] && function.Recv != nil) {
			add(ruleFuncName, line, fmt.Sprintf("func %s: name it by what it does or returns", name))
		}
		if strings.HasPrefix(name, "Test") && len(name) > maxTestName {
			add(ruleTestName, line, fmt.Sprintf("%s has %d characters, at most %d", name, len(name), maxTestName))
		}
	}
	for _, group := range file.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		plain := slices.ContainsFunc(plainDirs, func(dir string) bool { return strings.HasPrefix(path, dir) })
		if found := vague.FindString(text); found != "" && plain {
			add(ruleVague, files.Position(group.Pos()).Line, fmt.Sprintf("%q: write what it is, unit, default, limits", found))
		}
		for _, comment := range group.List {
			if he := pronoun.FindString(comment.Text); he != "" {
				add(rulePronoun, files.Position(comment.Pos()).Line, fmt.Sprintf("%q: write \"the user\" or \"they\"", he))
			}
			if found := word.FindString(comment.Text); found != "" {
				add(ruleWord, files.Position(comment.Pos()).Line, fmt.Sprintf("%q: write %s", found, words[found]))
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if he := pronoun.FindString(literal.Value); he != "" {
				add(rulePronoun, files.Position(literal.Pos()).Line, fmt.Sprintf("%q: write \"the user\" or \"they\"", he))
			}
		}
		return true
	})
	return findings, nil
}

// longStrings returns the lines that a string of at least longString characters is on.
func longStrings(files *token.FileSet, file *ast.File) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING && len(literal.Value) >= longString {
			for line := files.Position(literal.Pos()).Line; line <= files.Position(literal.End()).Line; line++ {
				lines[line] = true
			}
		}
		return true
	})
	return lines
}

// key identifies a limit: a rule in a package.
type key struct{ rule, pkg string }

func (f finding) key() key { return key{f.rule, f.pkg} }

// count returns the number of findings per rule and package.
func count(findings []finding) map[key]int {
	counts := map[key]int{}
	for _, f := range findings {
		counts[f.key()]++
	}
	return counts
}

// compare returns a line for each finding of a rule and package that has more findings than its limit.
func compare(findings []finding, limits map[key]int) []string {
	counts := count(findings)
	var lines []string
	for _, f := range findings {
		if found, limit := counts[f.key()], limits[f.key()]; found > limit {
			lines = append(lines, fmt.Sprintf("%s:%d: %s (%s: %d in %s, limit %d)",
				f.file, f.line, f.text, f.rule, found, f.pkg, limit))
		}
	}
	return lines
}

// formatLimits writes one line per rule and package, sorted: rule, package, number.
func formatLimits(counts map[key]int) []byte {
	var out strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
		return strings.Compare(a.rule+" "+a.pkg, b.rule+" "+b.pkg)
	}) {
		fmt.Fprintf(&out, "%s %s %d\n", k.rule, k.pkg, counts[k])
	}
	return []byte(out.String())
}

// parseLimits reads what formatLimits writes.
func parseLimits(text string) (map[key]int, error) {
	limits := map[key]int{}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if line == "" {
			continue
		}
		var k key
		var limit int
		if n, err := fmt.Sscanf(line, "%s %s %d", &k.rule, &k.pkg, &limit); n != 3 {
			return nil, fmt.Errorf("line %d: want RULE PACKAGE NUMBER: %w", i+1, err)
		}
		limits[k] = limit
	}
	return limits, nil
}
