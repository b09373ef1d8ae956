package dialect

import (
	"fmt"
	"strings"
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

// adviseRetention warns where what the member has is kept in fields that rollouts are steered by.
func adviseRetention(spec map[string]any) []string {
	var out []string
	for i, p := range strs(child(child(spec, "customizations"), "retention"), "jsonPaths") {
		if strings.HasPrefix(strings.TrimPrefix(p, "$"), ".spec") {
			out = append(out, fmt.Sprintf("spec.customizations.retention.jsonPaths[%d]: %s is kept as the member has it, until the template changes it", i, p))
		}
	}
	return out
}
