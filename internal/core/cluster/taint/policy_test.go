package taint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clusterWith has conditions such as "Ready=False".
func clusterWith(name string, conditions ...string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": name}}}
	for _, text := range conditions {
		of, status, _ := strings.Cut(text, "=")
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: of, Status: metav1.ConditionStatus(status)})
	}
	return c
}

// parseConditions parses conditions such as "Ready In False,Unknown".
func parseConditions(texts ...string) (conditions []policyv1alpha1.MatchCondition) {
	for _, text := range texts {
		parts := strings.Fields(text)
		m := policyv1alpha1.MatchCondition{ConditionType: parts[0], Operator: policyv1alpha1.MatchConditionOperator(parts[1])}
		for _, s := range strings.Split(parts[2], ",") {
			m.StatusValues = append(m.StatusValues, metav1.ConditionStatus(s))
		}
		conditions = append(conditions, m)
	}
	return conditions
}

// policy is about all clusters; older ones have a lower age.
func policy(name string, age int, add, remove []policyv1alpha1.MatchCondition,
	taints ...string) policyv1alpha1.ClusterTaintPolicy {
	p := policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: name,
		CreationTimestamp: metav1.NewTime(start.Add(time.Duration(age) * time.Hour))},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{AddOnConditions: add, RemoveOnConditions: remove}}
	for _, t := range parse(taints...) {
		p.Spec.Taints = append(p.Spec.Taints, policyv1alpha1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return p
}

// parse reads taints such as "disk=full:NoSchedule".
func parse(texts ...string) (taints []corev1.Taint) {
	for _, text := range texts {
		pair, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(pair, "=")
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return taints
}

func texts(taints []corev1.Taint) (out []string) {
	for _, t := range taints {
		out = append(out, t.ToString())
	}
	return out
}

func TestPoliciesAddAndRemoveTaints(t *testing.T) {
	down, up := parseConditions("Fit In False,Unknown"), parseConditions("Fit In True")
	disk := policy("disk", 0, down, up, "disk=full:NoSchedule", "disk=full:NoExecute")
	only := func(p policyv1alpha1.ClusterTaintPolicy, a policyv1alpha1.ClusterAffinity) policyv1alpha1.ClusterTaintPolicy {
		p.Spec.TargetClusters = &a
		return p
	}
	deleted := disk
	deleted.DeletionTimestamp = &metav1.Time{Time: start}
	type policies = []policyv1alpha1.ClusterTaintPolicy
	for name, tc := range map[string]struct {
		cluster  *clusterv1alpha1.Cluster
		taints   []string
		policies policies
		want     []string
		steps    int
	}{
		"no policy": {clusterWith("eu", "Fit=False"), []string{"gpu:NoSchedule"}, nil,
			[]string{"gpu:NoSchedule"}, 0},
		"the conditions match": {clusterWith("eu", "Fit=False"), []string{"gpu:NoSchedule"},
			policies{disk}, []string{"gpu:NoSchedule", "disk=full:NoSchedule", "disk=full:NoExecute"}, 2},
		"the conditions to remove match": {clusterWith("eu", "Fit=True"),
			[]string{"disk=full:NoExecute", "gpu:NoSchedule"}, policies{disk}, []string{"gpu:NoSchedule"}, 1},
		"a condition is missing": {clusterWith("eu"), []string{"disk=full:NoExecute"}, policies{disk},
			[]string{"disk=full:NoExecute"}, 0},
		"a missing condition is not NotIn": {clusterWith("eu"), nil,
			policies{policy("p", 0, parseConditions("Fit NotIn True"), nil, "a:NoSchedule")}, nil, 0},
		"NotIn": {clusterWith("eu", "Fit=Unknown"), nil,
			policies{policy("p", 0, parseConditions("Fit NotIn True"), nil, "a:NoSchedule")}, []string{"a:NoSchedule"}, 1},
		"one of two conditions matches": {clusterWith("eu", "Fit=False", "Disk=True"), nil,
			policies{policy("p", 0, parseConditions("Fit In False", "Disk In False"), nil, "a:NoSchedule")}, nil, 0},
		"no conditions": {clusterWith("eu", "Fit=False"), []string{"b:NoSchedule"},
			policies{policy("p", 0, nil, nil, "a:NoSchedule", "b:NoSchedule")}, []string{"b:NoSchedule"}, 0},
		"both match": {clusterWith("eu", "Fit=False"), []string{"b:NoSchedule"},
			policies{policy("p", 0, down, down, "a:NoSchedule", "b:NoSchedule")}, []string{"b:NoSchedule"}, 0},
		"a taint of another value stays": {clusterWith("eu", "Fit=False"),
			[]string{"disk=slow:NoSchedule", "disk:NoExecute"}, policies{disk},
			[]string{"disk=slow:NoSchedule", "disk:NoExecute"}, 0},
		"another cluster": {clusterWith("eu", "Fit=False"), nil,
			policies{only(disk, policyv1alpha1.ClusterAffinity{ClusterNames: []string{"us"}})}, nil, 0},
		"a cluster by label": {clusterWith("eu", "Fit=False"), nil,
			policies{only(disk, policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"tier": "eu"}}})}, []string{"disk=full:NoSchedule", "disk=full:NoExecute"}, 2},
		"a policy that is being deleted": {clusterWith("eu", "Fit=False"), nil, policies{deleted}, nil, 0},
		"the younger policy has the last word": {clusterWith("eu", "Fit=True"), nil,
			policies{policy("young", 2, nil, up, "a:NoSchedule"), policy("old", 1, up, nil, "a:NoSchedule", "b:NoSchedule")},
			[]string{"b:NoSchedule"}, 3},
		"the hub's own taints are not its to add": {clusterWith("eu", "Fit=True"), nil,
			policies{policy("p", 0, up, nil, "cluster.karmada.io/not-ready:NoExecute")}, nil, 0},
		"NoExecute does not follow from Ready": {clusterWith("eu", "Ready=False"), nil,
			policies{policy("p", 0, parseConditions("Ready In False"), nil, "a:NoSchedule", "a:NoExecute")},
			[]string{"a:NoSchedule"}, 1},
		"nor from FailoverPaused and others": {clusterWith("eu", "Fit=False", "FailoverPaused=True"), nil,
			policies{policy("p", 0, parseConditions("Fit In False", "FailoverPaused In True"), nil, "a:NoExecute")}, nil, 0},
		"NoExecute is removed by Ready": {clusterWith("eu", "Ready=True"), []string{"a:NoExecute"},
			policies{policy("p", 0, parseConditions("Ready In False"), parseConditions("Ready In True"), "a:NoExecute")},
			nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			given := parse(tc.taints...)
			got, steps := Apply(tc.cluster, given, tc.policies, true, start)
			if !slices.Equal(texts(got), tc.want) || len(steps) != tc.steps {
				t.Fatalf("got %v by %v, want %v by %d steps", texts(got), steps, tc.want, tc.steps)
			}
			if !slices.Equal(texts(given), tc.taints) {
				t.Error("the given taints were changed")
			}
			for _, taint := range got {
				if added := !slices.Contains(tc.taints, taint.ToString()); added &&
					(taint.Effect == corev1.TaintEffectNoExecute) != taint.TimeAdded.Equal(&metav1.Time{Time: start}) {
					t.Errorf("%s was added at %v", taint.ToString(), taint.TimeAdded)
				}
			}
			if again, _ := Apply(tc.cluster, got, tc.policies, true,
				start.Add(time.Hour)); fmt.Sprint(again) != fmt.Sprint(got) {
				t.Errorf("a second run changed %v to %v", texts(got), texts(again))
			}
		})
	}
}

func TestStoredPolicyAddsNoExecuteOnlyWithTheFlag(t *testing.T) {
	p := []policyv1alpha1.ClusterTaintPolicy{
		policy("p", 0, parseConditions("Fit In False"), parseConditions("Fit In True"), "a:NoSchedule",
			"a:NoExecute")}
	got, _ := Apply(clusterWith("eu", "Fit=False"), nil, p, false, start)
	if want := []string{"a:NoSchedule"}; !slices.Equal(texts(got), want) {
		t.Errorf("without the flag the taints are %v, want %v", texts(got), want)
	}
	if got, _ := Apply(clusterWith("eu", "Fit=True"), parse("a:NoExecute"), p, false, start); len(got) > 0 {
		t.Errorf("without the flag the policy does not remove %v", texts(got))
	}
}

func TestNoExecuteTaintGetsATimeOnce(t *testing.T) {
	given := parse("drain:NoExecute", "gpu:NoSchedule")
	got, steps := Apply(clusterWith("eu"), given, nil, true, start)
	if len(steps) > 0 || got[0].TimeAdded == nil || !got[0].TimeAdded.Time.Equal(start) || got[1].TimeAdded != nil {
		t.Fatalf("got %v by %v, want the time %s for the NoExecute taint alone", got, steps, start)
	}
	if given[0].TimeAdded != nil {
		t.Error("the given taint was changed")
	}
	if again, _ := Apply(clusterWith("eu"), got, nil, true, start.Add(time.Hour)); !again[0].TimeAdded.Time.Equal(start) {
		t.Errorf("the time became %s", again[0].TimeAdded)
	}
}

func TestEvictsByPresentCondition(t *testing.T) {
	up := parseConditions("Fit In True")
	p := policy("p", 0, up, nil, "a:NoExecute")
	mild := policy("p", 0, up, nil, "a:NoSchedule")
	if !Evicts(&p, clusterWith("eu", "Fit=True")) || Evicts(&p, clusterWith("eu", "Fit=False")) ||
		Evicts(&mild, clusterWith("eu", "Fit=True")) {
		t.Error("the policy evicts from another cluster than it taints NoExecute")
	}
}
