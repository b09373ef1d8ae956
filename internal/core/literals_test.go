package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// namesKinds are the files outside of core/kind that name kinds of workloads, and why.
var namesKinds = map[string]string{
	"internal/core/workload/interpret/builtin/builtin.go": "lists the hooks that need code",
	"internal/core/workload/kruise/rules.go":              "converts between versions, one function per kind",
	"internal/core/admission/dialect/dialect.go":          "rewrites old spellings, one function per kind",
	"internal/core/admission/dialect/kruise.go":           "reads an annotation with the name of a kind",
	"internal/core/release/checkjob.go":                   "creates a Job",
	"internal/core/cluster/membership/versions.go":        "knows which kinds of OpenKruise have v1beta1 in every release",
}

// TestKindsAreNamedInOnePlace: a decision asks for a fact about a kind. One that asks for its name is wrong for the
// next kind that is like it.
func TestKindsAreNamedInOnePlace(t *testing.T) {
	workloads := map[string]bool{}
	for k := range kind.List() {
		if k.Pods.IsPod() {
			continue // what workloads have
		}
		if k.Pods.HaveOwners() || k.Pods.Specs != nil || k.Pods.Images != nil || k.Workflow != nil || k.Once != nil ||
			k.Pause != nil {
			workloads[k.Kind] = true
		}
	}
	used := map[string]bool{}
	files := token.NewFileSet()
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder := strings.TrimPrefix(filepath.ToSlash(name), "../../")
		switch {
		case d.IsDir() && (folder == "internal/sim" || folder == "internal/core/kind" ||
			name != "../.." && folder != "internal" && folder != "cmd" && !strings.HasPrefix(folder, "internal/") &&
				!strings.HasPrefix(folder, "cmd/")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(folder, ".go") || strings.HasSuffix(folder, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range kindsNamed(file, workloads) {
			used[folder] = true
			if namesKinds[folder] == "" {
				t.Errorf("%s names a kind: ask internal/core/kind for the fact that matters", files.Position(at))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range namesKinds {
		if !used[file] {
			t.Errorf("%s names no kind any more: remove the exception", file)
		}
	}
}

// kindsNamed returns where a file has a GroupKind of one of the kinds, or compares with its name.
func kindsNamed(file *ast.File, kinds map[string]bool) (found []token.Pos) {
	named := func(e ast.Expr) bool {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return false
		}
		text, _ := strconv.Unquote(lit.Value)
		name, _, _ := strings.Cut(text, ".") // Deployment.apps
		return kinds[name]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if at, ok := n.Type.(*ast.SelectorExpr); ok && at.Sel.Name != "GroupKind" && at.Sel.Name != "GroupVersionKind" {
				return true // an object, or a reference to one
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && (named(kv.Key) || isField(kv.Key, "Kind") && named(kv.Value)) {
					found = append(found, kv.Pos())
				}
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (named(n.X) || named(n.Y)) {
				found = append(found, n.Pos())
			}
		case *ast.CaseClause:
			if slices.ContainsFunc(n.List, named) {
				found = append(found, n.Pos())
			}
		case *ast.CallExpr:
			called, _ := n.Fun.(*ast.SelectorExpr)
			if called != nil && slices.Contains([]string{"GroupKind", "EqualFold", "ParseGroupKind"}, called.Sel.Name) &&
				slices.ContainsFunc(n.Args, named) {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

func isField(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func TestNamedKindsAreFound(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
var (
	_ = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	_ = map[schema.GroupKind]bool{{Kind: "Deployment"}: true}
	_ = map[string]bool{"Deployment.apps": true, "Pod": true}
	_ = match.GroupKind("apps/v1", "Deployment")
	_ = gk.Kind == "Deployment" || gk.Kind == "Service"
	_ = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
)
func f() { switch kind { case "Pod", "Deployment": } }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := kindsNamed(file, map[string]bool{"Deployment": true}); len(found) != 6 {
		t.Errorf("%d are found, want 6", len(found))
	}
}
