package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const wellknown = "api/wellknown"

// prefixed finds a name with the prefix argosy.io/ in a text, but no API group such as release.argosy.io.
var prefixed = regexp.MustCompile(`(^|[^a-z0-9.-])argosy\.io/`)

// Tests may spell names as users do; production code uses the constants.
func TestNamesWithOurPrefixAreOnlyInWellknown(t *testing.T) {
	for _, f := range files(t) {
		if f.test || withinAny(f.folder, testSupport) || f.folder == wellknown {
			continue
		}
		for _, c := range spelledNames(f) {
			t.Error(c)
		}
	}
}

func TestSpelledNamesAreFound(t *testing.T) {
	for source, want := range map[string]bool{
		`const x = "argosy.io/new"`:                             true,
		"const x = `{\"annotations\": {\"argosy.io/new\": 1}}`": true,
		`var x = "remove the annotation argosy.io/new"`:         true,
		`var x = "argosy.io/" + key`:                            true,
		`const x = "release.argosy.io/v1alpha1"`:                false,
		`const x = "sim.argosy.io/conflicts"`:                   false,
		`import _ "github.com/argosy.io/argosy"`:                false,
	} {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, "x.go", "package x\n"+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := spelledNames(file{folder: "internal/x", name: "x.go", ast: parsed, set: set}); (len(got) > 0) != want {
			t.Errorf("%s: complaints %q, want some: %t", source, got, want)
		}
	}
}

// spelledNames returns the complaints about string literals with our prefix.
func spelledNames(f file) (complaints []string) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(n.Value); err == nil && prefixed.MatchString(text) {
				complaints = append(complaints, f.describe(n.Pos(), "%s: use the constant of %s, or add one there", n.Value,
					wellknown))
			}
		}
		return true
	})
	return complaints
}

// documented is the last paragraph of the comment of a constant in wellknown.
var documented = regexp.MustCompile(
	`(?:^|\n\n)On: ([^.]+)\. Written by: ([^.]+)\. Read by: ([^.]+)\. Users may set it: ([^.]+)\.\n$`)

func TestWellknownNamesHaveCorrectWritersAndReaders(t *testing.T) {
	names, err := parser.ParseFile(token.NewFileSet(), "../../"+wellknown+"/wellknown.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	users := map[string][]string{} // name → packages that use it
	for _, f := range files(t) {
		if f.test || withinAny(f.folder, testSupport) {
			continue
		}
		folder := strings.TrimPrefix(f.folder, "internal/")
		if strings.HasPrefix(folder, "cli/") {
			folder = "cli" // its packages are groups of verbs
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == path.Base(wellknown) && !slices.Contains(users[s.Sel.Name], folder) {
				users[s.Sel.Name] = append(users[s.Sel.Name], folder)
			}
			return true
		})
	}
	seen := map[string]string{}
	for _, d := range names.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			spec := s.(*ast.ValueSpec)
			name := spec.Names[0].Name
			if name == "Prefix" {
				continue
			}
			value, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if !strings.HasPrefix(value, "argosy.io/") {
				t.Errorf("%s = %q has not our prefix", name, value)
			}
			// A label and an annotation may share a name.
			if strings.HasSuffix(name, "Label") {
				value = "label " + value
			}
			if seen[value] != "" {
				t.Errorf("%s and %s are both %s", seen[value], name, value)
			}
			seen[value] = name
			text := strings.Join(strings.Fields(strings.ReplaceAll(spec.Doc.Text(), "\n\n", " ¶ ")), " ")
			text = strings.ReplaceAll(text, " ¶ ", "\n\n") + "\n"
			m := documented.FindStringSubmatch(text)
			if m == nil {
				t.Errorf("%s: the comment must end with a paragraph "+
					"\"On: …. Written by: …. Read by: …. Users may set it: ….\", but is %q", name, text)
				continue
			}
			var listed []string
			for _, p := range strings.Split(m[2]+", "+m[3], ", ") {
				if p != "users" && p != "nothing" && !slices.Contains(listed, p) {
					listed = append(listed, p)
				}
			}
			slices.Sort(listed)
			slices.Sort(users[name])
			if !slices.Equal(listed, users[name]) {
				t.Errorf("%s: the comment lists %q as writers and readers, but the packages that use it are %q", name, listed,
					users[name])
			}
		}
	}
}
