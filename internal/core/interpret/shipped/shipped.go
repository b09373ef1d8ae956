// Package shipped is what Argosy knows, out of the box, of kinds that neither Kubernetes nor OpenKruise nor Argo
// define: scripts in customizations as a user would write them, one file per kind in kinds/. Customizations and
// webhooks of users outrank it; the kinds in Go come after it.
//
// Scripts may call the functions in lib/, one per file; those that a script names, and those that they name, are put
// before it, so that a customization that was read from here is whole, and a template for a user's own.
package shipped

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/interpret/script"
)

//go:embed kinds/*.yaml lib/*.lua
var files embed.FS

// Customizations are fresh copies of the shipped customizations, sorted by name, with all that their scripts call in
// them.
func Customizations() ([]*configv1alpha1.ResourceInterpreterCustomization, error) {
	library, err := readLibrary()
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "kinds/*.yaml")
	if err != nil {
		return nil, err
	}
	all := make([]*configv1alpha1.ResourceInterpreterCustomization, 0, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		if err := yaml.UnmarshalStrict(text, c); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		for _, script := range scripts(&c.Spec.Customizations) {
			*script = library.link(*script)
		}
		all = append(all, c)
	}
	return all, nil
}

// scripts are the scripts that are set, in place.
func scripts(r *configv1alpha1.CustomizationRules) []*string {
	var all []*string
	for _, rule := range []*configv1alpha1.OperationRule{
		r.ReplicaResource, r.ComponentResource, r.ReplicaRevision, r.StatusReflection, r.DependencyInterpretation,
	} {
		if rule != nil {
			all = append(all, &rule.LuaScript)
		}
	}
	if r.Retention != nil {
		all = append(all, &r.Retention.LuaScript)
	}
	if r.StatusAggregation != nil {
		all = append(all, &r.StatusAggregation.LuaScript)
	}
	if r.HealthInterpretation != nil {
		all = append(all, &r.HealthInterpretation.LuaScript)
	}
	return all
}

// library holds the functions of lib/ by name.
type library map[string]function

type function struct {
	text string
	// calls are the other functions it calls, sorted.
	calls []string
}

// call is the name of whatever is called.
var call = regexp.MustCompile(`\b([a-z]+)\(`)

func readLibrary() (library, error) {
	names, err := fs.Glob(files, "lib/*.lua")
	if err != nil {
		return nil, err
	}
	l := make(library, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		l[strings.TrimSuffix(path.Base(name), ".lua")] = function{text: string(text)}
	}
	for name, f := range l {
		f.calls = slices.DeleteFunc(l.called(f.text), func(other string) bool { return other == name })
		l[name] = f
	}
	return l, nil
}

// called are the functions of the library that a text calls, sorted, each once.
func (l library) called(text string) []string {
	var names []string
	for _, match := range call.FindAllStringSubmatch(text, -1) {
		if _, ok := l[match[1]]; ok {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// link puts before a script what it calls; what that calls comes first, as Lua wants it.
func (l library) link(script string) string {
	var linked strings.Builder
	done := map[string]bool{}
	var add func(names []string)
	add = func(names []string) {
		for _, name := range names {
			if done[name] {
				continue
			}
			done[name] = true
			add(l[name].calls)
			linked.WriteString(l[name].text)
			linked.WriteByte('\n')
		}
	}
	add(l.called(script))
	linked.WriteString(script)
	return linked.String()
}

// kindOf is the kind that a customization is about; every version of it means the same.
func kindOf(c *configv1alpha1.ResourceInterpreterCustomization) (schema.GroupKind, error) {
	gv, err := schema.ParseGroupVersion(c.Spec.Target.APIVersion)
	if err != nil {
		return schema.GroupKind{}, err
	}
	return schema.GroupKind{Group: gv.Group, Kind: c.Spec.Target.Kind}, nil
}

// Tier is what the shipped customizations say, of every version of their kinds. A kind's scripts are compiled when it
// is asked for the first time, and once: few fleets have more than one or two of these kinds.
func Tier() interpret.Tier { return lazy{} }

type lazy struct{}

// Hooks implements interpret.Tier.
func (lazy) Hooks(kind schema.GroupKind) *interpret.Hooks {
	if compiled := kinds()[kind]; compiled != nil {
		return compiled()
	}
	return nil
}

var kinds = sync.OnceValue(func() map[schema.GroupKind]func() *interpret.Hooks {
	all, err := Customizations()
	if err != nil {
		panic(err) // our own files; their test says what is wrong
	}
	kinds := make(map[schema.GroupKind]func() *interpret.Hooks, len(all))
	for _, c := range all {
		kind, err := kindOf(c)
		if err != nil {
			panic(err)
		}
		kinds[kind] = sync.OnceValue(func() *interpret.Hooks {
			// A script that does not compile answers with the error; here again it is our test that finds it.
			hooks, _ := script.Hooks(c.Name, c.Spec.Customizations, empties)
			return hooks
		})
	}
	return kinds
})

// empties tell what an empty table of a status is, where the kinds' definitions want it to be there.
var empties = func() *script.Schema {
	list, object := &script.Schema{Type: "array"}, &script.Schema{Type: "object"}
	return &script.Schema{Type: "object",
		Properties: map[string]*script.Schema{"status": {Type: "object", Properties: map[string]*script.Schema{
			"conditions": list, "containerState": object, "driverInfo": object, "executorState": object,
			"replicaStatuses": object,
			"taskStatusCount": object,
		}}}}
}()
