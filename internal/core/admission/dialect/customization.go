package dialect

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// operations are the spellings of an operation, in the order in which they are looked at.
var operations = []struct {
	canonical string
	aliases   []string
}{
	{"replicaResource", []string{"replicas", "replica", "interpretReplica"}},
	{"componentResource", []string{"interpretComponent"}},
	{"replicaRevision", []string{"reviseReplica", "scale"}},
	{"retention", []string{"retain"}},
	{"statusReflection", []string{"status", "interpretStatus"}},
	{"statusAggregation", []string{"aggregateStatus"}},
	{"healthInterpretation", []string{"health", "interpretHealth"}},
	{"dependencyInterpretation", []string{"interpretDependency"}},
}

func (r *rewrite) customization() {
	rules := child(r.spec, "customizations")
	if rules == nil {
		return
	}
	const path = "spec.customizations"
	for _, o := range operations {
		var used string
		for _, alias := range o.aliases {
			if rules[alias] != nil && used != "" {
				r.refuse(path+"."+alias, "duplicates %s", used)
				continue
			}
			if rules[alias] != nil {
				used = alias
			}
			r.rename(rules, path, alias, o.canonical, o.aliases...)
		}
	}
}

// adviseCustomization warns of scripts that cannot answer, and of fields that are hardly meant to be kept.
func adviseCustomization(spec map[string]any) []string {
	return append(adviseScripts(spec), adviseRetention(spec)...)
}

// adviseScripts warns of scripts without a function, or with a function of another name than Karmada's. Like Karmada,
// the hub stores them; their operation reports the mistake again. Text that is not Lua is rejected.
func adviseScripts(spec map[string]any) []string {
	var rules configv1alpha1.CustomizationRules
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child(spec, "customizations"), &rules); err != nil {
		return nil // the schema has the better error
	}
	var out []string
	for _, s := range script.Scripts(rules) {
		place := "spec.customizations." + s.Field + ".luaScript: "
		p, err := script.Compile("", s.Operation, s.Source, nil)
		for _, fault := range script.Errors(err) {
			if fault.Reason == script.NoFunction {
				out = append(out, place+fault.Message)
			}
		}
		if err != nil {
			continue
		}
		if name, byContract := p.Function(); !byContract {
			out = append(out, fmt.Sprintf("%sfunction %s is used because it is the only one; Karmada requires another name",
				place, name))
		}
	}
	return out
}

// adviseRetention warns of retained fields that control rollouts.
func adviseRetention(spec map[string]any) []string {
	var out []string
	for i, p := range strs(child(spec, "customizations", "retention"), "jsonPaths") {
		if strings.HasPrefix(strings.TrimPrefix(p, "$"), ".spec") {
			out = append(out, fmt.Sprintf("spec.customizations.retention.jsonPaths[%d]: %s keeps the value of the member until the template changes it", i, p))
		}
	}
	return out
}
