package match

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

func TestAffinity(t *testing.T) {
	frankfurt := cluster("frankfurt", labelled("tier", "prod"), located("acme", "eu", "eu-1", "eu-2"))
	nowhere := cluster("nowhere")
	old := cluster("old")
	old.Spec.Zone = "eu-1"

	byLabel := func(key string, op metav1.LabelSelectorOperator, values ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}},
		}}
	}
	byField := func(key string, op corev1.NodeSelectorOperator, values ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}},
		}}
	}
	for name, test := range map[string]struct {
		affinity                policyv1alpha1.ClusterAffinity
		frankfurt, nowhere, old bool
	}{
		"nothing set means every cluster": {policyv1alpha1.ClusterAffinity{}, true, true, true},
		"names": {policyv1alpha1.ClusterAffinity{ClusterNames: []string{"frankfurt", "old"}}, true,
			false, true},
		"exclude": {policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"frankfurt"}}, false,
			true, true},
		"exclude wins over names": {policyv1alpha1.ClusterAffinity{ClusterNames: []string{"old"},
			ExcludeClusters: []string{"old"}}, false, false, false},
		"an empty label selector means every one": {policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{}},
			true, true, true},
		"a label in": {byLabel("tier", metav1.LabelSelectorOpIn, "prod", "test"), true, false, false},
		"a label not in, also when it is missing": {byLabel("tier", metav1.LabelSelectorOpNotIn, "prod"), false, true, true},
		"a label exists": {byLabel("tier", metav1.LabelSelectorOpExists), true, false, false},
		"a label does not exist": {byLabel("tier", metav1.LabelSelectorOpDoesNotExist), false, true,
			true},
		"an operator that there is not means none": {byLabel("tier", "Near", "prod"), false, false, false},
		"a provider in": {byField("provider", corev1.NodeSelectorOpIn, "acme"), true, false,
			false},
		"a provider not in, also when it is missing": {byField("provider", corev1.NodeSelectorOpNotIn, "acme"), false, true,
			true},
		"a region in": {byField("region", corev1.NodeSelectorOpIn, "us", "eu"), true, false,
			false},
		"zone in: one of several is enough": {byField("zone", corev1.NodeSelectorOpIn, "eu-2", "eu-3"), true, false,
			false},
		"zone in, with the deprecated field": {byField("zone", corev1.NodeSelectorOpIn, "eu-1"), true, false, true},
		"zone not in: none may be listed": {byField("zone", corev1.NodeSelectorOpNotIn, "eu-2"), false, true,
			true},
		"a field that there is not means none": {byField("continent", corev1.NodeSelectorOpNotIn, "eu"), false, false,
			false},
		"an operator that fields do not have": {byField("region", corev1.NodeSelectorOpExists), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Affinity(&test.affinity, frankfurt); got != test.frankfurt {
				t.Errorf("frankfurt: %v, want %v", got, test.frankfurt)
			}
			if got := Affinity(&test.affinity, nowhere); got != test.nowhere {
				t.Errorf("nowhere: %v, want %v", got, test.nowhere)
			}
			if got := Affinity(&test.affinity, old); got != test.old {
				t.Errorf("old: %v, want %v", got, test.old)
			}
		})
	}
}

func TestLabelSelectorsEqualKubernetes(t *testing.T) {
	keys, values := []string{"a", "b", "c"}, []string{"x", "y", "z"}
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
		metav1.LabelSelectorOpDoesNotExist, "Odd",
	}
	for seed := range uint64(5000) {
		r := rng(seed)
		set := map[string]string{}
		for _, k := range keys {
			if r.IntN(2) == 0 {
				set[k] = values[r.IntN(3)]
			}
		}
		selector := &metav1.LabelSelector{}
		if r.IntN(2) == 0 {
			selector.MatchLabels = map[string]string{keys[r.IntN(3)]: values[r.IntN(3)]}
		}
		for range r.IntN(3) {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: keys[r.IntN(3)], Operator: operators[r.IntN(5)], Values: shuffled(r, values)[:r.IntN(3)],
			})
		}
		twin, err := metav1.LabelSelectorAsSelector(selector)
		want := err == nil && twin.Matches(labels.Set(set))
		if got := Labels(selector, set); got != want {
			t.Fatalf("seed %d: %v on %v: %v, Kubernetes says %v (%v)", seed, selector, set, got, want, err)
		}
	}
}
