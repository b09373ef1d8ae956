// Package shipped has built-in customizations for kinds of other projects: scripts as a user would write them, one file
// per kind in kinds/. Customizations and webhooks of users take precedence; the kinds in Go come last.
//
// Scripts may call the functions in lib/, one per file. The needed functions are prepended to a script, so that a
// customization from here is complete and can serve as a template.
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
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

//go:embed kinds/*.yaml lib/*.lua
var files embed.FS

// Customizations returns copies of the shipped customizations, sorted by name, with complete scripts.
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
		for _, o := range script.Operations {
			if rule := o.Rule(&c.Spec.Customizations); rule != nil {
				rule.LuaScript = library.link(rule.LuaScript)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// library has the functions of lib/ by name.
type library map[string]function

type function struct {
	text string
	// calls are the other functions that it calls, sorted.
	calls []string
}

// call matches the name of a called function.
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

// called returns the functions of the library that a text calls, sorted and unique.
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

// link prepends to a script the functions that it calls, dependencies first, as Lua requires.
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

// Tier returns the tier of shipped customizations. The scripts of a kind are compiled once on first use, because most
// fleets use few of these kinds.
func Tier() interpret.Tier { return lazy{} }

type lazy struct{}

// Find implements interpret.Tier.
func (lazy) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) (found interpret.Implementation) {
	if compiled := kinds()[kind.GroupKind()]; compiled != nil {
		found.Evaluate = compiled()[operation]
	}
	return found
}

var kinds = sync.OnceValue(func() map[schema.GroupKind]func() interpret.Operations {
	all, err := Customizations()
	if err != nil {
		panic(err) // embedded files, which a test checks
	}
	kinds := make(map[schema.GroupKind]func() interpret.Operations, len(all))
	for _, c := range all {
		kind := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind).GroupKind() // in all versions
		kinds[kind] = sync.OnceValue(func() interpret.Operations {
			// A script that does not compile returns its error. A test checks the shipped ones.
			operations, _ := script.Hooks(c.Name, c.Spec.Customizations, empties)
			return operations
		})
	}
	return kinds
})

// empties is the schema of empty tables in statuses that the CRDs require.
var empties = func() *script.Schema {
	list, object := &script.Schema{Type: "array"}, &script.Schema{Type: "object"}
	return &script.Schema{Type: "object",
		Properties: map[string]*script.Schema{"status": {Type: "object", Properties: map[string]*script.Schema{
			"conditions": list, "containerState": object, "driverInfo": object, "executorState": object,
			"replicaStatuses": object,
			"taskStatusCount": object,
		}}}}
}()
