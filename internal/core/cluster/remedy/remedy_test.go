package remedy

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
)

func clusterWith(name string, conditions ...string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i < len(conditions); i += 2 {
		c.Status.Conditions = append(c.Status.Conditions,
			metav1.Condition{Type: conditions[i], Status: metav1.ConditionStatus(conditions[i+1])})
	}
	return c
}

func parse(t *testing.T, name, spec string) remedyv1alpha1.Remedy {
	t.Helper()
	r := remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &r.Spec); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRemedyAppliesByClusterAndCondition(t *testing.T) {
	const act = ", actions: [TrafficControl]}"
	equal := func(kind, operator, status string) string {
		return "{clusterConditionMatch: {conditionType: " + kind + ", operator: " + operator + `, conditionStatus: "` +
			status + `"}}`
	}
	for _, tc := range []struct {
		name, spec string
		conditions []string
		want       bool
	}{
		{"no cluster, no match", "{actions: [TrafficControl]}", nil, true},
		{"its name", "{clusterAffinity: {clusterNames: [m0, m1]}" + act, nil, true},
		{"another name", "{clusterAffinity: {clusterNames: [m0]}" + act, nil, false},
		{"no name", "{clusterAffinity: {}" + act, nil, false},
		{"no action", "{clusterAffinity: {clusterNames: [m1]}}", nil, false},
		{"equal", "{decisionMatches: [" + equal("Ready", "Equal", "False") + "]" + act, []string{"Ready", "False"}, true},
		{"not equal to that", "{decisionMatches: [" + equal("Ready", "Equal", "False") + "]" + act,
			[]string{"Ready", "Unknown"}, false},
		{"different", "{decisionMatches: [" + equal("Ready", "NotEqual", "True") + "]" + act, []string{"Ready", "Unknown"},
			true},
		{"not different", "{decisionMatches: [" + equal("Ready", "NotEqual", "True") + "]" + act, []string{"Ready", "True"},
			false},
		{"a missing condition equals nothing", "{decisionMatches: [" + equal("DNS", "Equal", "False") + "]" + act,
			[]string{"Ready", "False"}, false},
		{"a missing condition differs from nothing", "{decisionMatches: [" + equal("DNS", "NotEqual", "True") + "]" + act,
			[]string{"Ready", "False"}, false},
		{"an unknown operator", "{decisionMatches: [" + equal("Ready", "In", "False") + "]" + act, []string{"Ready", "False"},
			false},
		{"an empty requirement", "{decisionMatches: [{}]" + act, []string{"Ready", "False"}, false},
		{"the second requirement", "{decisionMatches: [" + equal("DNS", "Equal", "False") + ", " +
			equal("Ready", "Equal", "False") + "]" + act, []string{"Ready", "False"}, true},
		{"a requirement, and another cluster", "{clusterAffinity: {clusterNames: [m0]}, decisionMatches: [" +
			equal("Ready", "Equal", "False") + "]" + act, []string{"Ready", "False"}, false},
	} {
		c := clusterWith("m1", tc.conditions...)
		got := Actions(c, []remedyv1alpha1.Remedy{parse(t, "r", tc.spec)})
		if want := map[bool][]string{true: {"TrafficControl"}}[tc.want]; !slices.Equal(got, want) {
			t.Errorf("%s: actions %q, want %q", tc.name, got, want)
		}
	}
}

func TestActionsOfSeveralRemediesAreSortedAndUnique(t *testing.T) {
	going := parse(t, "going", "{actions: [Other]}")
	going.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0)))
	all := []remedyv1alpha1.Remedy{parse(t, "b", "{actions: [TrafficControl, TrafficControl]}"),
		parse(t, "c", "{clusterAffinity: {clusterNames: [m2]}, actions: [TrafficControl]}"), going,
		parse(t, "a", "{actions: [TrafficControl, Annotate]}")}
	m1, m2 := clusterWith("m1"), clusterWith("m2")
	if got := Actions(m1, all); !slices.Equal(got, []string{"Annotate", "TrafficControl"}) {
		t.Errorf("actions: %q", got)
	}
	if got := Giving(remedyv1alpha1.TrafficControl, []*clusterv1alpha1.Cluster{m1}, all); !slices.Equal(got,
		[]string{"a", "b"}) {
		t.Errorf("the Remedies of m1 are %q", got)
	}
	if got := Giving(remedyv1alpha1.TrafficControl, []*clusterv1alpha1.Cluster{m1, m2}, all); !slices.Equal(got,
		[]string{"a", "b", "c"}) {
		t.Errorf("the Remedies of both are %q", got)
	}
}
