package schedule

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// TestUnschedulableMessageNamesRemedy: the condition has Karmada's reason and text, and then what to do about it, in
// words of this fleet and this policy.
func TestUnschedulableMessageNamesRemedy(t *testing.T) {
	s := fleet(
		cluster("a", located("acme", "eu", "eu-1"), labelled("env", "prod"), labelled("disk", "ssd")),
		cluster("b", located("acme", "eu", "eu-2"), labelled("env", "prod")),
		cluster("c", located("zeta", "us", "us-1"), labelled("env", "test")),
		cluster("d", located("zeta", "us", "us-2"), labelled("env", "test"), tainted("down", corev1.TaintEffectNoSchedule)),
	)
	affinity := func(a policyv1alpha1.ClusterAffinity) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ClusterAffinity: &a}
	}
	labels := func(keysAndValues ...string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := 0; i < len(keysAndValues); i += 2 {
			s.MatchLabels[keysAndValues[i]] = keysAndValues[i+1]
		}
		return s
	}
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op,
			Values: values}}}
	}
	field := func(key string, op corev1.NodeSelectorOperator, values ...string) *policyv1alpha1.FieldSelector {
		return &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op,
			Values: values}}}
	}
	named := func(names ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	terms := func(p policyv1alpha1.Placement, names ...string) policyv1alpha1.Placement {
		for i := 0; i < len(names); i += 2 {
			p.ClusterAffinities = append(p.ClusterAffinities,
				policyv1alpha1.ClusterAffinityTerm{AffinityName: names[i], ClusterAffinity: named(names[i+1])})
		}
		return p
	}
	none := policyv1alpha1.Placement{}

	const (
		noFit    = "0/4 clusters are available: 4 cluster(s) did not match the placement cluster affinity constraint"
		fewer    = "the number of feasible %s is less than spreadConstraint.MinGroups"
		noFitWhy = workv1alpha2.ReasonNoClusterFit
		failed   = workv1alpha2.ReasonSchedulerError
		full     = workv1alpha2.ReasonUnschedulable
	)
	few := func(what string) string { return strings.Replace(fewer, "%s", what, 1) }
	for name, test := range map[string]struct {
		binding             workv1alpha2.Binding
		room                string
		reason, text, toFit string
	}{
		// Affinities that match nothing.
		"a name that no cluster has": {configMap(affinity(named("x"))), "", noFitWhy, noFit,
			"the fleet has no x, which clusterNames lists: correct it to one of a, b, c, d, or join a cluster of that name"},
		"names that no cluster has": {configMap(affinity(named("x", "y"))), "", noFitWhy, noFit,
			"the fleet has no x or y, which clusterNames lists: correct it to one of a, b, c, d, or join a cluster of that name"},
		"all that is named is excluded": {configMap(affinity(policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a", "b"},
			ExcludeClusters: []string{"a", "b"}})), "", noFitWhy, noFit,
			"exclude removes all clusters that the rest of the affinity matches (a, b): remove one of them from exclude"},
		"an unknown label key": {configMap(affinity(policyv1alpha1.ClusterAffinity{LabelSelector: labels("tier", "gold")})),
			"", noFitWhy, noFit,
			"no cluster has label tier: label one with tier=gold, or correct the labelSelector"},
		"an unknown value of a label": {configMap(
			affinity(policyv1alpha1.ClusterAffinity{LabelSelector: labels("env", "staging")})), "", noFitWhy, noFit,
			"no cluster has staging of label env, whose values are prod, test: label one with env=staging, or correct the labelSelector"},
		"a label that every cluster has is ruled out": {configMap(
			affinity(policyv1alpha1.ClusterAffinity{LabelSelector: expression("env", metav1.LabelSelectorOpDoesNotExist)})), "",
			noFitWhy, noFit,
			"every cluster has label env, which the labelSelector excludes: remove it from one, or correct the labelSelector"},
		"all values of a label are ruled out": {configMap(
			affinity(policyv1alpha1.ClusterAffinity{LabelSelector: expression("env", metav1.LabelSelectorOpNotIn, "prod",
				"test")})), "", noFitWhy, noFit,
			"every cluster has label env with a value that the labelSelector excludes (prod, test): change the label of one, or correct the labelSelector"},
		"labels that no cluster has together": {configMap(
			affinity(policyv1alpha1.ClusterAffinity{LabelSelector: labels("env", "test", "disk", "ssd")})), "", noFitWhy, noFit,
			"no cluster meets all requirements of the affinity, although each of them is met by some: label disk (a), label env (c, d); make one cluster meet all of them, or remove requirements"},
		"a region that no cluster is in": {configMap(
			affinity(policyv1alpha1.ClusterAffinity{FieldSelector: field("region", corev1.NodeSelectorOpIn, "ap")})), "",
			noFitWhy, noFit,
			"no cluster's region is ap (they are eu, us): set spec.region of one, or correct the fieldSelector"},
		"zones that are all ruled out": {configMap(
			affinity(policyv1alpha1.ClusterAffinity{FieldSelector: field("zone", corev1.NodeSelectorOpNotIn, "eu-1", "eu-2",
				"us-1", "us-2")})), "", noFitWhy, noFit,
			"the fieldSelector excludes every cluster by zone (eu-1, eu-2, us-1, us-2): correct it"},
		"two parts wrong at once": {configMap(affinity(policyv1alpha1.ClusterAffinity{ClusterNames: []string{"x"},
			LabelSelector: labels("tier", "gold")})), "", noFitWhy, noFit,
			"the fleet has no x, which clusterNames lists: correct it to one of a, b, c, d, or join a cluster of that name; no cluster has label tier: label one with tier=gold, or correct the labelSelector"},
		"the one that is named has a taint": {configMap(affinity(named("d"))), "", noFitWhy,
			"0/4 clusters are available: 1 cluster(s) had untolerated taint {down:NoSchedule}, 3 cluster(s) did not match the placement cluster affinity constraint",
			"for d: tolerate {down:NoSchedule} in clusterTolerations, or remove the taint"},
		"several terms, each for its own reason": {deployment(50, terms(byAvailability(), "own", "x", "rented", "a")), "a=3",
			noFitWhy, noFit,
			"satisfy one of the affinities: own: the fleet has no x, which clusterNames lists: correct it to one of a, b, c, d, or join a cluster of that name; or rented: 50 are required: free capacity for 47 more, select more clusters in the policy, or request fewer replicas"},

		// Constraints that contradict each other, or the fleet.
		"minimum above maximum, of clusters": {configMap(upTo(none, 3, 2)), "", failed, few("clusters"),
			"minGroups 3 of the cluster spread constraint is greater than its maxGroups 2: lower minGroups or raise maxGroups"},
		"minimum above maximum, of regions": {configMap(spreadBy(none, "region", 3, 2)), "", failed, few("region"),
			"minGroups 3 of the region spread constraint is greater than its maxGroups 2: lower minGroups or raise maxGroups"},
		"more clusters than fit": {configMap(upTo(none, 4, 0)), "", failed, few("clusters"),
			"3 clusters fit, but at least 4 are required: let the policy match 1 more, or lower minGroups to 3"},
		"more regions than there are": {configMap(spreadBy(none, "region", 3, 0)), "", failed, few("region"),
			"3 by region are required, but clusters fit in only 2 (eu, us): add clusters in 1 more, or lower minGroups to 2"},
		"more clusters than the regions have": {configMap(upTo(spreadBy(none, "region", 1, 1), 3, 0)), "", failed,
			"the number of clusters is less than the cluster spreadConstraint.MinGroups",
			"the groups that may be used have 2 clusters, but at least 3 are required: lower minGroups of the cluster spread constraint, or raise maxGroups by region"},
		"two providers in one region": {configMap(spreadBy(spreadBy(none, "region", 1, 1), "provider", 2, 2)), "", failed,
			few("provider"),
			"clusters that maxGroups by region allows are in 1 by provider, but 2 are required: raise maxGroups by region, or lower minGroups by provider to 1"},
		"three zones in one region": {configMap(spreadBy(spreadBy(none, "region", 1, 1), "zone", 3, 0)), "", failed,
			few("zone"),
			"clusters in 1 group by region are in at most 2 by zone, but 3 are required: raise maxGroups by region, or lower minGroups by zone to 2"},
		"a label to spread by that no cluster has": {configMap(spreadBy(none, "rack", 2, 0)), "", noFitWhy,
			"0/4 clusters are available: 1 cluster(s) had untolerated taint {down:NoSchedule}, 3 cluster(s) did not have label rack",
			"for a, b, c: label the cluster with rack; for d: tolerate {down:NoSchedule} in clusterTolerations, or remove the taint"},
		"a label to spread by that one cluster has": {configMap(spreadBy(none, "disk", 2, 0)), "", failed, few("label disk"),
			"2 by label disk are required, but clusters fit in only 1 (ssd): add clusters in 1 more, or lower minGroups to 1"},

		// Replicas and weights.
		"weights that match nothing": {deployment(6, byWeight("x=3 y=1")), "", failed, "no clusters available to schedule",
			"no staticWeightList rule matches any cluster: correct its targetCluster, or remove the weights to divide equally"},
		"weights that match nothing, beside a constraint": {deployment(6, spreadBy(byWeight("x=3"), "region", 1, 1)), "",
			failed,
			"no clusters available to schedule",
			"no staticWeightList rule matches any cluster: correct its targetCluster, or remove the weights to divide equally"},
		"replicas beyond everything": {deployment(500, byAvailability()), "a=3 b=4 c=5", full,
			"Clusters available replicas 12 are not enough to schedule",
			"500 are required: free capacity for 488 more, select more clusters in the policy, or request fewer replicas"},
		"replicas that keep apart, beyond the nodes": {apart(deployment(9, byAvailability())), "a=3 b=1 c=0", full,
			"Clusters available replicas 4 are not enough to schedule",
			"9 are required: free capacity for 5 more, select more clusters in the policy, or request fewer replicas; a cluster has room for one per node by podAntiAffinity"},
		"replicas beyond everything, packed": {deployment(500, together()), "a=3 b=4 c=5", full,
			"Clusters available replicas 12 are not enough to schedule",
			"500 are required: free capacity for 488 more, select more clusters in the policy, or request fewer replicas"},
		"replicas beyond the clusters allowed": {deployment(10, upTo(byAvailability(), 1, 2)), "a=3 b=4 c=5", failed,
			"no enough resource when selecting 2 clusters",
			"they have capacity for 9 of 10 replicas: free capacity for 1 more, or request fewer replicas, or raise maxGroups to use more clusters"},
		"replicas beyond the regions allowed": {deployment(10, spreadBy(byAvailability(), "region", 1, 1)), "a=3 b=4 c=5",
			failed,
			"no enough resource when selecting 2 clusters",
			"they have capacity for 7 of 10 replicas: free capacity for 3 more, or request fewer replicas, or raise maxGroups to use more clusters"},
		"several components that fit nowhere together": {components(deployment(0, upTo(none, 1, 1))), "a=0 b=0 c=0", full,
			"Clusters available replicas 0 are not enough to schedule",
			"1 are required: free capacity for 1 more, select more clusters in the policy, or request fewer replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Schedule(test.binding, s, room(test.room))
			c := Condition(err)
			if c.Status != metav1.ConditionFalse || c.Reason != test.reason || c.Message != test.text+". To fit: "+test.toFit+
				"." {
				t.Errorf("got  %s: %s\nwant %s: %s. To fit: %s.", c.Reason, c.Message, test.reason, test.text, test.toFit)
			}
			if len(r.Clusters) > 0 {
				t.Errorf("and is placed, in %q", targetList(r.Clusters))
			}
		})
	}
}

// What admission refuses may have been stored before, or written by others: it must not harm.
func TestTermsOfTheSameNameAreTriedOneAfterTheOther(t *testing.T) {
	p := policyv1alpha1.Placement{}
	for _, name := range []string{"x", "b"} {
		p.ClusterAffinities = append(p.ClusterAffinities,
			policyv1alpha1.ClusterAffinityTerm{AffinityName: "own",
				ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}})
	}
	b, s := configMap(p), fleet(named("a", "b")...)
	for range 2 {
		if got := schedule(t, b, s, nil); got != "b" {
			t.Fatalf("got %q, want b", got)
		}
		placed(b, "b").Status.SchedulerObservedAffinityName = "own"
	}
}

// apart has the pods of a binding keep to nodes of their own.
func apart(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.Annotations = map[string]string{wellknown.PodSpreadAnnotation: `{"apart":["kubernetes.io/hostname"]}`}
	return b
}
