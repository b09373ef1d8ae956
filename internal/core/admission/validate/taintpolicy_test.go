package validate

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// taintPolicy adds taints to clusters whose condition DiskHealthy has one of the statuses.
func taintPolicy(statuses string, taints ...policyv1alpha1.Taint) *policyv1alpha1.ClusterTaintPolicy {
	m := policyv1alpha1.MatchCondition{ConditionType: "DiskHealthy", Operator: policyv1alpha1.MatchConditionOpIn}
	for _, s := range strings.Split(statuses, ",") {
		m.StatusValues = append(m.StatusValues, metav1.ConditionStatus(s))
	}
	return &policyv1alpha1.ClusterTaintPolicy{Spec: policyv1alpha1.ClusterTaintPolicySpec{
		AddOnConditions: []policyv1alpha1.MatchCondition{m}, Taints: taints}}
}

func TestClusterTaintPolicy(t *testing.T) {
	schedule, execute := policyv1alpha1.Taint{Key: "disk", Effect: "NoSchedule"},
		policyv1alpha1.Taint{Key: "disk", Effect: "NoExecute"}
	with := func(p *policyv1alpha1.ClusterTaintPolicy,
		change func(*policyv1alpha1.ClusterTaintPolicySpec)) *policyv1alpha1.ClusterTaintPolicy {
		change(&p.Spec)
		return p
	}
	for name, tc := range map[string]struct {
		policy    *policyv1alpha1.ClusterTaintPolicy
		noExecute bool
		want      []string
	}{
		"a valid policy": {taintPolicy("False", schedule), false, nil},
		"NoExecute": {taintPolicy("False", schedule, execute), false,
			[]string{"spec.taints[1].effect: Forbidden: a NoExecute taint moves workloads"}},
		"NoExecute that is permitted": {taintPolicy("False", schedule, execute), true, nil},
		"NoExecute by Ready": {with(taintPolicy("False", schedule, execute), func(s *policyv1alpha1.ClusterTaintPolicySpec) {
			s.AddOnConditions[0].ConditionType = "Ready"
		}), true, []string{"spec.taints[1].effect: Forbidden: a NoExecute taint must not follow from the condition Ready"}},
		"NoExecute removed by Ready": {with(taintPolicy("False", execute), func(s *policyv1alpha1.ClusterTaintPolicySpec) {
			s.RemoveOnConditions = []policyv1alpha1.MatchCondition{{ConditionType: "Ready", Operator: "In",
				StatusValues: []metav1.ConditionStatus{"True"}}}
		}), true, nil},
		"another effect": {taintPolicy("False", policyv1alpha1.Taint{Key: "disk", Effect: "PreferNoSchedule"}),
			true, []string{"spec.taints[0].effect: Unsupported value"}},
		"the same taint twice": {taintPolicy("False", schedule, schedule), false,
			[]string{"spec.taints[1]: Duplicate value"}},
		"a bad key": {taintPolicy("False", policyv1alpha1.Taint{Key: "a b", Effect: "NoSchedule"}), false,
			[]string{"spec.taints[0].key"}},
		"a taint that the hub manages": {taintPolicy("False",
			policyv1alpha1.Taint{Key: "cluster.karmada.io/not-ready", Effect: "NoExecute"}), true,
			[]string{"spec.taints[0]: Forbidden: the hub sets and removes"}},
		"a status that there is not": {taintPolicy("No", schedule), false,
			[]string{"spec.addOnConditions[0].statusValues[0]: Unsupported value"}},
		"an incomplete condition": {with(taintPolicy("False", schedule), func(s *policyv1alpha1.ClusterTaintPolicySpec) {
			s.RemoveOnConditions = []policyv1alpha1.MatchCondition{{Operator: "Exists"}}
		}), false, []string{"spec.removeOnConditions[0].conditionType", "spec.removeOnConditions[0].operator",
			"spec.removeOnConditions[0].statusValues"}},
		"a bad selector": {with(taintPolicy("False", schedule), func(s *policyv1alpha1.ClusterTaintPolicySpec) {
			s.TargetClusters = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"a b": "c"}}}
		}), false, []string{"spec.targetClusters.labelSelector"}},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ClusterTaintPolicy(tc.policy, tc.noExecute)
			if len(errs) != len(tc.want) {
				t.Fatalf("got %v, want %v", errs, tc.want)
			}
			for i, err := range errs {
				if !strings.HasPrefix(err.Error(), tc.want[i]) {
					t.Errorf("got %q, want %q", err, tc.want[i])
				}
			}
		})
	}
}

func TestPolicyEvictingEverythingIsWarnedAbout(t *testing.T) {
	fleet := func(statuses ...metav1.ConditionStatus) (clusters []*clusterv1alpha1.Cluster) {
		for i, s := range statuses {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
			c.Status.Conditions = []metav1.Condition{{Type: "DiskHealthy", Status: s}}
			clusters = append(clusters, c)
		}
		return clusters
	}
	execute := policyv1alpha1.Taint{Key: "disk", Effect: "NoExecute"}
	some := taintPolicy("True", execute)
	some.Spec.TargetClusters = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}
	idle := taintPolicy("True", execute)
	idle.Spec.AddOnConditions = nil
	for name, tc := range map[string]struct {
		policy *policyv1alpha1.ClusterTaintPolicy
		fleet  []*clusterv1alpha1.Cluster
		want   string
	}{
		"all clusters match now": {taintPolicy("True", execute), fleet("True", "True"),
			"all clusters of the fleet (2) match now"},
		"all clusters may match": {taintPolicy("False", execute), fleet("True", "False"),
			"is about all clusters of the fleet (2)"},
		"some clusters may match": {some, fleet("True", "True"), ""},
		"NoSchedule": {taintPolicy("True", policyv1alpha1.Taint{Key: "disk", Effect: "NoSchedule"}),
			fleet("True"), ""},
		"before the first join": {taintPolicy("True", execute), nil, ""},
		"no conditions":         {idle, fleet("True"), "neither adds nor removes"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(ClusterTaintPolicyAdvice(tc.policy, tc.fleet), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTolerationsWithoutEffectAreWarnedOf(t *testing.T) {
	seconds := func(effect corev1.TaintEffect, n int64) corev1.Toleration {
		return corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: effect, TolerationSeconds: &n}
	}
	advice := TolerationAdvice([]corev1.Toleration{{Key: "a"}, seconds("NoExecute", 60), seconds("NoExecute", 0),
		seconds("", -1), seconds("NoSchedule", 60)})
	want := []string{"clusterTolerations[2].tolerationSeconds: 0 tolerates",
		"clusterTolerations[3].tolerationSeconds: -1 tolerates", "clusterTolerations[4].tolerationSeconds: has no effect"}
	if !slices.EqualFunc(advice, want, strings.Contains) {
		t.Errorf("got %q, want %q", advice, want)
	}
}
