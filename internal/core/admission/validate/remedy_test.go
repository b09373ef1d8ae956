package validate

import (
	"slices"
	"strings"
	"testing"

	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
)

func TestRemedy(t *testing.T) {
	const at, names = "spec.decisionMatches[0].clusterConditionMatch", "spec.clusterAffinity.clusterNames"
	match := func(kind, operator, status string) string {
		return `{decisionMatches: [{clusterConditionMatch: {conditionType: "` + kind + `", operator: "` + operator +
			`", conditionStatus: "` + status + `"}}], actions: [TrafficControl]}`
	}
	for _, c := range []refusal{
		{"all clusters, always", `{actions: [TrafficControl]}`, nil},
		{"some clusters", `{clusterAffinity: {clusterNames: [m1, m2]}, actions: [TrafficControl]}`, nil},
		{"no clusters", `{clusterAffinity: {}, actions: [TrafficControl]}`, nil},
		{"no action", `{}`, nil},
		{"a condition", match("Ready", "Equal", "False"), nil},
		{"a condition of its own", match("example.com/Sick", "NotEqual", "Maybe"), nil},
		{"an unknown action", `{actions: [TrafficControl, Restart]}`,
			[]string{`spec.actions[1]: Unsupported value: "Restart"`, `"TrafficControl"`}},
		{"an empty action", `{actions: [""]}`, []string{`spec.actions[0]: Unsupported value: ""`}},
		{"an unknown operator", match("Ready", "In", "True"), []string{at + `.operator: Unsupported value: "In"`, `"Equal"`,
			`"NotEqual"`}},
		{"no operator", match("Ready", "", "True"), []string{at + ".operator: Unsupported value"}},
		{"no condition type", match("", "Equal", "True"), []string{at + ".conditionType: Required value", "such as Ready"}},
		{"no status", match("Ready", "Equal", ""), []string{at + ".conditionStatus: Required value"}},
		{"an empty requirement", `{decisionMatches: [{}]}`, []string{at + ": Required value", "conditionType: Ready"}},
		{"an empty cluster name", `{clusterAffinity: {clusterNames: [m1, ""]}}`, []string{names + "[1]: Required value",
			"remove clusterAffinity to select all clusters"}},
		{"a cluster twice", `{clusterAffinity: {clusterNames: [m1, m2, m1]}}`, []string{names +
			`[2]: Duplicate value: "m1"`}},
	} {
		r := &remedyv1alpha1.Remedy{}
		parse(t, c.spec, &r.Spec)
		check(t, c.name, Remedy(r), c.want)
	}
}

func TestRemedyWithoutEffectIsWarnedOf(t *testing.T) {
	for spec, want := range map[string][]string{
		`{actions: [TrafficControl]}`: nil,
		`{clusterAffinity: {}}`:       {"spec.clusterAffinity: names no cluster", "spec.actions: without an action"},
	} {
		r := &remedyv1alpha1.Remedy{}
		parse(t, spec, &r.Spec)
		got := RemedyAdvice(r)
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%s: warnings %q, want %q", spec, got, want)
		}
	}
}
