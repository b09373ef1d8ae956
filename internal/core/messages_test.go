package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// mayParse are the functions that may parse text for people, and why. Each stands for a program that gives no reason
// but a text.
var mayParse = map[string]string{
	// Others' programs, which give no reason but a text.
	"internal/migration/migration.go:PreviewApply":          "Kubernetes gives no reason when a webhook does not support a dry run",
	"internal/core/workload/interpret/failing.go:failureOf": "OpenKruise reports a conflict as a text only",
	"internal/member/acting/acting.go:Keep": "Kubernetes gives rights that the writer of a role lacks " +
		"the reason of any denial",
	"internal/console/change.go:badLine":                         "the YAML library gives the line of an error in its text only",
	"internal/core/workload/interpret/script/sandbox.go:explain": "the Lua machine reports its overflows as texts",
	// Only what is shown depends on the text.
	"internal/cli/hubcli/kubectl.go:Fatal": "kubectl puts \"error: \" before its messages",
	"internal/core/explain/state/state.go:See": "conditions of a binding name clusters in their " +
		"messages only; no more than the shown state depends on it",
	"internal/core/explain/why/advice.go:adviceFor": "Kubernetes says in a sentence only why a pod finds no node, or " +
		"is refused",
	"internal/core/explain/simulate/nodes.go:strictly": "drops the name of the JSON package",
	// The user gives the text.
	"internal/cli/interpretcli/cases.go:judge": "a case of a user's file names a part of " +
		"the error that it expects",
}

// testSupport are folders that only tests use.
var testSupport = []string{"test", "tools", "hack"}

func TestNoCodeParsesMessages(t *testing.T) {
	used := map[string]bool{}
	for _, f := range files(t) {
		if f.test || withinAny(f.folder, testSupport) {
			continue
		}
		for function, complaints := range parsedMessages(f) {
			at := f.folder + "/" + f.name + ":" + function
			used[at] = true
			if mayParse[at] != "" {
				continue
			}
			for _, c := range complaints {
				t.Error(c)
			}
		}
	}
	for at := range mayParse {
		if !used[at] {
			t.Errorf("%s parses no message: remove it from mayParse", at)
		}
	}
}

func TestParsedMessagesAreFound(t *testing.T) {
	name := filepath.Join("testdata", "messages", "planted.go")
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]bool{}
	for _, complaints := range parsedMessages(file{folder: "x", name: "x.go", ast: parsed, set: set}) {
		for _, c := range complaints {
			line, err := strconv.Atoi(strings.Split(c, ":")[1])
			if err != nil {
				t.Fatalf("%q: %v", c, err)
			}
			got[line] = true
		}
	}
	for i, line := range strings.Split(string(source), "\n") {
		if want := strings.HasSuffix(line, "// parses"); want != got[i+1] {
			t.Errorf("line %d is found: %t, want %t: %s", i+1, got[i+1], want, strings.TrimSpace(line))
		}
	}
}

// parsedMessages returns the complaints about code that concludes something from a text for people, by function. Such
// texts are the messages of conditions, events and statuses, the texts of errors, parameters with the name message, and
// what is made of these.
func parsedMessages(f file) map[string][]string {
	complaints := map[string][]string{}
	for _, d := range f.ast.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		m := messages{texts: map[string]bool{}}
		for _, field := range function.Type.Params.List {
			for _, name := range field.Names {
				m.texts[name.Name] = isMessage(name.Name) && isString(field.Type)
			}
		}
		ast.Inspect(function.Body, func(n ast.Node) bool {
			if what := m.visit(n); what != "" {
				at := function.Name.Name
				complaints[at] = append(complaints[at],
					f.describe(n.Pos(), "%s: read a reason, a field or a typed error; text for people is not parsed", what))
			}
			return true
		})
	}
	return complaints
}

// messages follows texts for people through one function.
type messages struct {
	// texts are the variables that hold such a text.
	texts map[string]bool
	// cases are those of a switch over such a text.
	cases []*ast.CaseClause
}

// parsing are the functions of package strings that conclude something from their first argument.
var parsing = []string{"Contains", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Fields", "HasPrefix", "HasSuffix",
	"Index", "LastIndex",
	"Split", "SplitN", "SplitSeq", "TrimPrefix", "TrimSuffix"}

// visit returns what a node does to a text that it must not do; empty for nothing.
func (m *messages) visit(n ast.Node) string {
	switch n := n.(type) {
	case *ast.AssignStmt:
		m.assign(n)
	case *ast.CallExpr:
		fun, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) == 0 {
			return ""
		}
		name := fun.Sel.Name
		pkg, _ := fun.X.(*ast.Ident)
		switch {
		case pkg != nil && pkg.Name == "strings" && slices.Contains(parsing, name):
			text := m.isText(n.Args[0]) || name == "EqualFold" && m.isText(n.Args[1])
			if text && !harmless(name, n.Args) {
				return "strings." + name + " of a message"
			}
		case slices.ContainsFunc([]string{"MatchString", "FindString", "FindAllString"}, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		}):
			if m.isText(n.Args[0]) {
				return "a regular expression on a message"
			}
		}
	case *ast.BinaryExpr:
		compares := n.Op == token.EQL || n.Op == token.NEQ
		if compares && (m.isText(n.X) && isConstant(n.Y) || m.isText(n.Y) && isConstant(n.X)) {
			return "a comparison of a message"
		}
	case *ast.SwitchStmt:
		if init, ok := n.Init.(*ast.AssignStmt); ok {
			m.assign(init)
		}
		if n.Tag == nil || !m.isText(n.Tag) {
			return ""
		}
		for _, s := range n.Body.List {
			m.cases = append(m.cases, s.(*ast.CaseClause))
		}
	case *ast.CaseClause:
		if slices.Contains(m.cases, n) && slices.ContainsFunc(n.List, isConstant) {
			return "a comparison of a message"
		}
	}
	return ""
}

// assign notes which variables hold a text after an assignment.
func (m *messages) assign(n *ast.AssignStmt) {
	for i, left := range n.Lhs {
		name, ok := left.(*ast.Ident)
		if !ok {
			continue
		}
		if len(n.Rhs) == len(n.Lhs) {
			m.texts[name.Name] = m.isText(n.Rhs[i])
		} else {
			m.texts[name.Name] = m.isText(n.Rhs[0])
		}
	}
}

// isText reports whether an expression is a text for people.
func (m *messages) isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return m.texts[e.Name]
	case *ast.ParenExpr:
		return m.isText(e.X)
	case *ast.SelectorExpr:
		return isMessage(e.Sel.Name)
	case *ast.CallExpr:
		fun, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if fun.Sel.Name == "Error" && len(e.Args) == 0 {
			return true
		}
		pkg, _ := fun.X.(*ast.Ident)
		return pkg != nil && pkg.Name == "strings" && len(e.Args) > 0 && m.isText(e.Args[0])
	}
	return false
}

// harmless reports whether a call only formats: it drops punctuation at an end, or splits lines.
func harmless(name string, args []ast.Expr) bool {
	if len(args) < 2 {
		return false
	}
	literal, ok := args[1].(*ast.BasicLit)
	if !ok {
		return false
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return false
	}
	if strings.HasPrefix(name, "Split") {
		return text == "\n"
	}
	return strings.HasPrefix(name, "Trim") && !strings.ContainsFunc(text, unicode.IsLetter)
}

func isMessage(name string) bool {
	return slices.Contains([]string{"message", "msg", "Message", "AppliedMessage"}, name)
}

func isString(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "string"
}

// isConstant reports whether an expression is a text in the code: a literal, or a constant such as MessageApplied of
// another package.
func isConstant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING && len(e.Value) > 2
	case *ast.SelectorExpr:
		return strings.HasPrefix(e.Sel.Name, "Message") && !isMessage(e.Sel.Name)
	}
	return false
}
