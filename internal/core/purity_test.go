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
	{"internal/apistatus", 2},
	{"internal/scope", 2},
	{"internal/version", 2},
	{"internal/commit", 2},
	{"internal/definition", 2},
	{"internal/filter", 2},
	{"internal/history", 2},
	{"internal/member", 2},
	{"internal/template", 2},
	{"internal/capacity", 2},
	{"internal/interpreter", 2},
	{"internal/migration", 2},
	{"internal/facts", 2},
	{"internal/why", 2},
	{"internal/usage", 2},
	{"internal/search", 2},
	{"internal/controller", 3},
	{"internal/agent", 4},
	{"internal/console", 4},
	{"internal/server", 4},
	{"internal/sim", 4},
	{"internal/install", 4},
	{"internal/lab", 4},
	{"internal/cli", 4},
	{"cmd", 5},
	{"test", 6},
	{"tools", 6},
	{"hack", 6},
}

// groups are the groups of packages in core, and the other groups that each may import. A package belongs to the group
// of its folder. README.md has the same table.
var groups = []struct {
	name    string
	folders []string
	imports []string
}{
	{"object", []string{"object"}, nil},
	{"match", []string{"match"}, []string{"object"}},
	{"kind", []string{"kind"}, []string{"object"}},
	{"cluster", []string{"cluster"}, []string{"object", "match", "kind"}},
	{"workload", []string{"workload"}, []string{"object", "match", "kind", "cluster"}},
	{"pipeline", []string{"propagate", "schedule", "override", "release", "dispatch", "execute", "aggregate"},
		[]string{"object", "match", "kind", "cluster", "workload"}},
	{"adjust", []string{"adjust"}, []string{"object", "match", "kind", "cluster", "workload", "pipeline"}},
	{"source", []string{"source"}, []string{"object", "match", "kind", "cluster", "workload", "pipeline"}},
	{"admission", []string{"admission"},
		[]string{"object", "match", "kind", "cluster", "workload", "pipeline", "adjust", "source"}},
	{"hub", []string{"hub"}, []string{"object", "kind"}},
	{"explain", []string{"explain"},
		[]string{"object", "match", "kind", "cluster", "workload", "pipeline", "adjust", "source", "admission", "hub"}},
}

// forbidden are imports that a folder must not have, and why; not in the folders named by unless, and not those named
// by except.
var forbidden = []struct {
	folder  string
	unless  []string
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
		folder: "internal/core",
		imports: []string{"k8s.io/utils/clock", "k8s.io/apimachinery/pkg/util/wait", "k8s.io/apimachinery/pkg/util/uuid",
			"k8s.io/apimachinery/pkg/watch"},
		because: "core knows no clock, waits for nothing and draws no lots: now and ids are arguments",
	},
	{
		folder: "internal/core",
		imports: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/klog", "github.com/prometheus",
			"k8s.io/component-base", "k8s.io/apiserver", "k8s.io/kubectl", "go.etcd.io"},
		// languages, which only compute
		except:  []string{"k8s.io/client-go/util/jsonpath", "k8s.io/apiserver/pkg/cel/library"},
		because: "core has no client, log or metric; the controllers around it do",
	},
	{
		folder:  "api",
		imports: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/klog", "github.com/prometheus"},
		because: "api is wire types; whoever imports it must not get a client with it",
	},
	{
		folder:  ".",
		unless:  []string{"internal/server/embed", "internal/sim", "test", "tools"},
		imports: []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server", "sigs.k8s.io/kwok"},
		because: "only internal/server/embed and internal/sim may: they bring global flags, feature gates and log state",
	},
}

// only are the folders of core that alone may import something heavy.
var only = map[string][]string{
	"github.com/yuin/gopher-lua":     {"internal/core/workload/interpret/script"},
	"gopkg.in/evanphx/json-patch.v4": {"internal/core/override", "internal/core/workload/interpret/webhook"},
	"github.com/evanphx/json-patch":  {"internal/core/override"},
	"github.com/google/cel-go": {"internal/core/source/ocm", "internal/core/admission/validate",
		"internal/core/release/sample"},
	"k8s.io/apiserver/pkg/cel":       {"internal/core/source/ocm"},
	"k8s.io/client-go/util/jsonpath": {"internal/core/source/ocm", "internal/core/adjust/failover"},
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

// describe returns a complaint with its position.
func (f file) describe(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s/%s:%d: %s", f.folder, f.name, f.set.Position(pos).Line, fmt.Sprintf(format, args...))
}

func TestPackagesImportOnlyAllowedLayers(t *testing.T) {
	for _, f := range files(t) {
		for _, c := range misplaced(f) {
			t.Error(c)
		}
	}
}

// The table of README.md is the one for people.
func TestReadmeListsGroupsAndTheirImports(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		imports := ""
		if len(g.imports) > 0 {
			imports = "`" + strings.Join(g.imports, "`, `") + "` "
		}
		found := slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "| `"+g.name+"` |") && strings.HasSuffix(line, "| "+imports+"|")
		})
		if !found {
			t.Errorf("the table of groups has no row that starts with `%s` and ends with %q", g.name, imports)
		}
	}
}

func TestCoreHasNeitherClockNorDiceNorGoroutines(t *testing.T) {
	for _, f := range files(t) {
		for _, c := range impurities(f) {
			t.Error(c)
		}
	}
}

func TestRulesFindViolations(t *testing.T) {
	for _, c := range []struct {
		name, folder, source, want string
	}{
		{"core with a client", "internal/core/match", `import _ "k8s.io/client-go/rest"`, "core has no client"},
		{"core with an adapter", "internal/core/match", `import _ "` + module + `/internal/scope"`,
			"of a layer above its own"},
		{"a group below that knows one above", "internal/core/workload/x", `import _ "` + module +
			`/internal/core/execute"`, "workload may import only"},
		{"a pipeline that knows what adjusts it", "internal/core/schedule", `import _ "` + module +
			`/internal/core/adjust/failover"`, "pipeline may import only"},
		{"a helper for tests in core", "internal/core/match", `import _ "` + module + `/test/kit/coretest"`,
			"of a layer above its own"},
		{"a folder of core without a group", "internal/core/util", ``, "has no group"},
		{"core that reads files", "internal/core/match", `import _ "os"`, "core only decides"},
		{"core with Lua outside of its folder", "internal/core/match", `import _ "github.com/yuin/gopher-lua/parse"`,
			"in core only"},
		{"an API type with a client", "api/x/v1", `import _ "sigs.k8s.io/controller-runtime/pkg/client"`,
			"api is wire types"},
		{"two controllers", "internal/controller/x", `import _ "` + module + `/internal/controller/y"`,
			"controllers speak through API objects"},
		{"a server inside of an adapter", "internal/member", `import _ "k8s.io/kubernetes/pkg/features"`,
			"only internal/server/embed"},
		{"an adapter that knows controllers", "internal/commit", `import _ "` + module + `/internal/controller"`,
			"of a layer above its own"},
		{"a folder nobody placed", "internal/util", ``, "has no layer"},
		{"a clock in core", "internal/core/match", `import "time"; var now = time.Now()`, "core has no clock"},
		{"the API's clock in core", "internal/core/match",
			`import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"; var now = metav1.Now()`, "core has no clock"},
		{"dice in core", "internal/core/match", `import "math/rand/v2"; var n = rand.IntN(6)`, "draws from a global source"},
		{"a goroutine in core", "internal/core/match", `func f() { go f() }`, "starts a goroutine"},
		{"a request from core", "internal/core/match", `import "net/http"; var c http.Client`, "speaks to nobody"},

		{"seeded dice in core", "internal/core/match", `import "math/rand/v2"; var r = rand.New(rand.NewPCG(1, 2))`, ""},
		{"a duration in core", "internal/core/match", `import "time"; const d = time.Second`, ""},
		{"a group above that knows one below", "internal/core/explain/x", `import _ "` + module +
			`/internal/core/adjust/failover"`, ""},
		{"two packages of a group", "internal/core/dispatch", `import _ "` + module + `/internal/core/execute"`, ""},
		{"the list of controllers", "internal/controller", `import _ "` + module + `/internal/controller/y"`, ""},
		{"the embedded server", "internal/server/embed/apiserver", `import _ "k8s.io/kubernetes/pkg/features"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, "x.go", "package x\n"+c.source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			f := file{folder: c.folder, name: "x.go", ast: parsed, set: set}
			got := strings.Join(append(misplaced(f), impurities(f)...), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// misplaced returns the complaints about what f imports.
func misplaced(f file) (complaints []string) {
	complain := func(pos token.Pos, format string, args ...any) {
		complaints = append(complaints, f.describe(pos, format, args...))
	}
	layer, ok := layerOf(f.folder)
	if !ok {
		complain(f.ast.Package, "the folder has no layer: place it in the table of internal/core/purity_test.go")
		return complaints
	}
	mayImport, ok := groupsFor(f.folder)
	if !ok {
		complain(f.ast.Package, "the folder has no group: add it to the table of internal/core/purity_test.go")
		return complaints
	}
	if f.test {
		return nil
	}
	for _, spec := range f.ast.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
			below, known := layerOf(ours)
			mine, other := controllerOf(f.folder), controllerOf(ours)
			switch {
			case known && below > layer:
				complain(spec.Pos(), "imports %s, of a layer above its own: the code, or the type it needs, is in the wrong folder",
					ours)
			case mayImport != nil && groupOf(ours) != "" && !slices.Contains(mayImport, groupOf(ours)):
				complain(spec.Pos(), "imports %s: %s may import only %s", ours, groupOf(f.folder), strings.Join(mayImport, ", "))
			case mine != "" && other != "" && mine != other:
				complain(spec.Pos(), "imports the controller %s: controllers speak through API objects", ours)
			}
			continue
		}
		for _, rule := range forbidden {
			if within(f.folder, rule.folder) && !withinAny(f.folder, rule.unless) &&
				withinAny(imported, rule.imports) && !withinAny(imported, rule.except) {
				complain(spec.Pos(), "imports %s: %s", imported, rule.because)
			}
		}
		for heavy, folders := range only {
			if within(imported, heavy) && within(f.folder, "internal/core") && !withinAny(f.folder, folders) {
				complain(spec.Pos(), "imports %s: in core only %s may", imported, strings.Join(folders, " and "))
			}
		}
	}
	return complaints
}

// impurities returns the complaints about what f does, if it is of core.
func impurities(f file) (complaints []string) {
	if f.test || !within(f.folder, "internal/core") {
		return nil
	}
	complain := func(pos token.Pos, format string, args ...any) {
		complaints = append(complaints, f.describe(pos, format, args...))
	}
	imports := map[string]string{} // local name → path
	for _, spec := range f.ast.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		local := path.Base(imported)
		if version, ok := strings.CutPrefix(local, "v"); ok {
			if _, err := strconv.Atoi(version); err == nil {
				local = path.Base(path.Dir(imported))
			}
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		imports[local] = imported
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			complain(n.Pos(), "starts a goroutine: core answers when it is asked, and is done then")
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			imported := imports[pkg.Name]
			if why, ok := impure[imported]; ok && slices.Contains(why.names, n.Sel.Name) {
				complain(n.Pos(), "calls %s.%s: %s", pkg.Name, n.Sel.Name, why.because)
			}
			if imported == "net/http" && !strings.HasPrefix(n.Sel.Name, "Status") {
				complain(n.Pos(), "uses http.%s: core may name status codes, and speaks to nobody", n.Sel.Name)
			}
			if within(imported, "math/rand") && !strings.HasPrefix(n.Sel.Name, "New") &&
				!slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8"}, n.Sel.Name) {
				complain(n.Pos(), "calls %s.%s, which draws from a global source: make one from a seed that is an argument",
					pkg.Name, n.Sel.Name)
			}
		}
		return true
	})
	return complaints
}

// files returns all Go files of the repository.
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
		if d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" ||
			base == "vendor") {
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

// groupOf returns the group of core that a folder belongs to; empty for none.
func groupOf(folder string) string {
	for _, g := range groups {
		for _, in := range g.folders {
			if within(folder, "internal/core/"+in) {
				return g.name
			}
		}
	}
	return ""
}

// groupsFor returns the groups of core that a folder may import, its own first; nil for a folder that is not in a group
// of core. ok is false for a folder of core that has no group.
func groupsFor(folder string) (names []string, ok bool) {
	if !within(folder, "internal/core") || folder == "internal/core" {
		return nil, true
	}
	name := groupOf(folder)
	for _, g := range groups {
		if g.name == name {
			return append([]string{name}, g.imports...), true
		}
	}
	return nil, false
}

func layerOf(folder string) (int, bool) {
	for _, l := range layers {
		if within(folder, l.folder) {
			return l.layer, true
		}
	}
	return 0, false
}

// controllerOf returns the controller that a folder belongs to; empty for the list of them and for what is none.
func controllerOf(folder string) string {
	rest, ok := strings.CutPrefix(folder, "internal/controller/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// within reports whether a path is the folder or below it.
func within(path, folder string) bool {
	return folder == "." || path == folder || strings.HasPrefix(path, folder+"/")
}

func withinAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return within(path, folder) })
}
