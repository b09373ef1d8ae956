package core_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The layers, from the bottom: a package imports its own layer and those below. A folder belongs to the layer of its
// longest prefix here; a folder without one has to be placed before the test passes.
var layers = []struct {
	folder string
	layer  int
}{
	{"api", 0},
	{"examples", 0},
	{"internal/core", 1},
	{"internal/scope", 2},
	{"internal/commit", 2},
	{"internal/member", 2},
	{"internal/template", 2},
	{"internal/capacity", 2},
	{"internal/hook", 2},
	{"internal/component", 2},
	{"internal/controller", 3},
	{"internal/server", 4},
	{"internal/agent", 4},
	{"internal/sim", 4},
	{"internal/lab", 4},
	{"internal/bench", 4},
	{"internal/cli", 4},
	{"internal/web", 4},
	{"cmd", 5},
	{"test", 6},
	{"tools", 6},
	{"hack", 6},
}

// forbidden are imports that a folder must not have, and why. Prefixes; the exceptions may be imported all the same.
var forbidden = []struct {
	folder  string
	imports []string
	except  []string
	because string
}{
	{
		folder:  "internal/core",
		imports: []string{"os", "net", "log", "syscall", "testing", "plugin", "unsafe"},
		except:  []string{"net/url", "net/netip", "net/http"}, // of net/http the status codes alone, see below
		because: "core only decides: what it knows comes in as arguments, and reasons go out as results",
	},
	{
		folder:  "internal/core",
		imports: []string{"k8s.io/utils/clock", "k8s.io/apimachinery/pkg/util/wait", "k8s.io/apimachinery/pkg/util/uuid", "k8s.io/apimachinery/pkg/watch"},
		because: "core knows no clock, waits for nothing and draws no lots: now and ids are arguments",
	},
	{
		folder:  "internal/core",
		imports: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/klog", "github.com/prometheus", "k8s.io/component-base", "k8s.io/apiserver", "k8s.io/kubectl", "go.etcd.io"},
		because: "core has no client, log or metric; the controllers around it do",
	},
	{
		folder:  "api",
		imports: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/klog", "github.com/prometheus"},
		because: "api is wire types; whoever imports it must not get a client with it",
	},
	{
		folder:  ".",
		imports: []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server", "sigs.k8s.io/kwok"},
		because: "only internal/server/embed and internal/sim may: they bring global flags, feature gates and log state",
	},
}

// exempt are the folders that a rule of a folder above does not hold for.
var exempt = map[string][]string{
	".": {"internal/server/embed", "internal/sim", "test", "tools"},
}

// only are the folders of core that alone may import something heavy.
var only = map[string][]string{
	"github.com/yuin/gopher-lua":     {"internal/core/interpret/lua", "internal/core/validate"},
	"gopkg.in/evanphx/json-patch.v4": {"internal/core/override"},
	"github.com/evanphx/json-patch":  {"internal/core/override"},
}

// impure are functions of packages that core may import otherwise.
var impure = map[string]struct {
	names   []string
	because string
}{
	"time": {
		[]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"core has no clock: take now as an argument",
	},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {
		[]string{"Now", "NowMicro"},
		"core has no clock: take now as an argument",
	},
	"k8s.io/apimachinery/pkg/util/rand": {
		[]string{"Int", "Intn", "IntnRange", "Int63nRange", "Perm", "Seed", "String"},
		"core draws no lots: take the value, or a seed, as an argument",
	},
}

const module = "github.com/argosy-io/argosy"

// file is one Go file, by its folder relative to the repository.
type file struct {
	folder, name string
	test         bool
	ast          *ast.File
	set          *token.FileSet
}

func (f file) complain(t *testing.T, pos token.Pos, format string, args ...any) {
	t.Helper()
	t.Errorf("%s/%s:%d: %s", f.folder, f.name, f.set.Position(pos).Line, fmt.Sprintf(format, args...))
}

func TestEveryPackageImportsOnlyWhatItsLayerMay(t *testing.T) {
	for _, f := range files(t) {
		layer, ok := layerOf(f.folder)
		if !ok {
			t.Errorf("%s has no layer: place it in the table of internal/core/purity_test.go", f.folder)
			continue
		}
		for _, spec := range f.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
				below, known := layerOf(ours)
				switch {
				case known && below > layer && !f.test:
					f.complain(t, spec.Pos(), "imports %s, of a layer above its own: the code, or the type it needs, is in the wrong folder", ours)
				case controllerOf(f.folder) != "" && controllerOf(ours) != "" && controllerOf(f.folder) != controllerOf(ours) && !f.test:
					f.complain(t, spec.Pos(), "imports the controller %s: controllers speak through API objects", ours)
				}
				continue
			}
			if f.test {
				continue
			}
			for _, rule := range forbidden {
				if within(f.folder, rule.folder) && !withinAny(f.folder, exempt[rule.folder]) &&
					withinAny(imported, rule.imports) && !withinAny(imported, rule.except) {
					f.complain(t, spec.Pos(), "imports %s: %s", imported, rule.because)
				}
			}
			for heavy, folders := range only {
				if within(imported, heavy) && within(f.folder, "internal/core") && !withinAny(f.folder, folders) {
					f.complain(t, spec.Pos(), "imports %s: in core only %s may", imported, strings.Join(folders, " and "))
				}
			}
		}
	}
}

func TestCoreHasNeitherClockNorDiceNorGoroutines(t *testing.T) {
	for _, f := range files(t) {
		if f.test || !within(f.folder, "internal/core") {
			continue
		}
		imports := map[string]string{} // local name → path
		for _, spec := range f.ast.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			local := path.Base(imported)
			if v, err := strconv.Atoi(strings.TrimPrefix(local, "v")); err == nil && v > 0 && strings.HasPrefix(local, "v") {
				local = path.Base(path.Dir(imported))
			}
			if spec.Name != nil {
				local = spec.Name.Name
			}
			imports[local] = imported
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				f.complain(t, n.Pos(), "starts a goroutine: core answers when it is asked, and is done then")
			case *ast.SelectorExpr:
				pkg, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				imported := imports[pkg.Name]
				if why, ok := impure[imported]; ok && slices.Contains(why.names, n.Sel.Name) {
					f.complain(t, n.Pos(), "calls %s.%s: %s", pkg.Name, n.Sel.Name, why.because)
				}
				if imported == "net/http" && !strings.HasPrefix(n.Sel.Name, "Status") {
					f.complain(t, n.Pos(), "uses http.%s: core may name status codes, and speaks to nobody", n.Sel.Name)
				}
				if within(imported, "math/rand") && !strings.HasPrefix(n.Sel.Name, "New") && !slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8"}, n.Sel.Name) {
					f.complain(t, n.Pos(), "calls %s.%s, which draws from a global source: make one from a seed that is an argument", pkg.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}

// files are all Go files of the repository.
func files(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("find the repository: %v", err)
	}
	var found []file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" || base == "vendor") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(base, ".go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found = append(found, file{filepath.ToSlash(folder), base, strings.HasSuffix(base, "_test.go"), parsed, set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func layerOf(folder string) (int, bool) {
	for _, l := range layers {
		if within(folder, l.folder) {
			return l.layer, true
		}
	}
	return 0, false
}

// controllerOf is the controller that a folder belongs to; empty for the list of them and for what is none.
func controllerOf(folder string) string {
	rest, ok := strings.CutPrefix(folder, "internal/controller/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// within says whether a path is the folder or below it.
func within(path, folder string) bool {
	return folder == "." || path == folder || strings.HasPrefix(path, folder+"/")
}

func withinAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return within(path, folder) })
}
