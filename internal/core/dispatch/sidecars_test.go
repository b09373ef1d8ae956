package dispatch

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

func TestWorkloadsWaitForSidecarSets(t *testing.T) {
	work := func(applied metav1.ConditionStatus, status string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		if applied != "" {
			w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied,
				LastTransitionTime: metav1.Now()}}
		}
		if status != "" {
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(status)}}}
		}
		return w
	}
	now := metav1.Now()
	unnoticed := work(metav1.ConditionTrue, "")
	unnoticed.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
	going, heldBack := work("", ""), work("", "")
	going.DeletionTimestamp = &now
	heldBack.Spec.SuspendDispatching = new(true)
	for _, c := range []struct {
		name    string
		work    *workv1alpha1.Work
		lacking string
	}{
		{"there is no Work", nil, "has not been dispatched there yet"},
		{"nothing became of it", work("", ""), "has not been applied there yet"},
		{"it was refused", work(metav1.ConditionFalse, ""), ""},
		{"it was applied", work(metav1.ConditionTrue, ""), "has not been observed by OpenKruise there yet"},
		{"it has a status of nobody", work(metav1.ConditionTrue, `{"matchedPods":0}`),
			"has not been observed by OpenKruise there yet"},
		{"its status is no object", work(metav1.ConditionTrue, `[]`), "has not been observed by OpenKruise there yet"},
		{"it was not seen for long", unnoticed, ""},
		{"it was seen", work(metav1.ConditionTrue, `{"observedGeneration":1,"matchedPods":0}`), ""},
		{"it is going", going, ""},
		{"its users hold it back", heldBack, ""},
	} {
		if got := Lacking(c.work, now.Time, time.Minute); got != c.lacking {
			t.Errorf("%s: it %q, want %q", c.name, got, c.lacking)
		}
	}
}

func TestWorkloadsWaitForSidecarSetsBeforePlacement(t *testing.T) {
	cluster := func(name, region string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.Region = region
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps.kruise.io/v1beta1",
			Resources: []clusterv1alpha1.APIResource{{Kind: "SidecarSet", Name: "sidecarsets"}}}}
		return c
	}
	fleet := schedule.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("m1", "eu"), cluster("m2", "us")})
	now := metav1.Now()
	binding := func(change func(b *workv1alpha2.ClusterResourceBinding)) workv1alpha2.Binding {
		b := &workv1alpha2.ClusterResourceBinding{}
		b.Labels = map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "SidecarSet", Name: "s"}
		b.Spec.SchedulerName = policyv1alpha1.DefaultSchedulerName
		b.Spec.Placement = &policyv1alpha1.Placement{}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
		b.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: schedule.AppliedPlacement(
			b.Spec.Placement)}
		b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue}}
		if change != nil {
			change(b)
		}
		return b
	}
	eu := func(b *workv1alpha2.ClusterResourceBinding) {
		b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}
	}
	stays := &workv1alpha2.ResourceBinding{}
	for name, c := range map[string]struct {
		binding workv1alpha2.Binding
		cluster string
		want    bool
	}{
		"it has no binding yet":               {nil, "m2", true},
		"it goes there":                       {binding(nil), "m1", true},
		"a cluster joined that it will go to": {binding(nil), "m2", true},
		"it was never placed, and will go there": {binding(func(b *workv1alpha2.ClusterResourceBinding) {
			b.Annotations, b.Spec.Clusters = nil, nil
		}), "m2", true},
		"it was never placed, and will not": {binding(
			func(b *workv1alpha2.ClusterResourceBinding) { eu(b); b.Annotations, b.Spec.Clusters = nil, nil }), "m2", false},
		"its policy means others": {binding(func(b *workv1alpha2.ClusterResourceBinding) { eu(b) }), "m2",
			false},
		"one cluster suffices": {binding(func(b *workv1alpha2.ClusterResourceBinding) {
			b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{
				{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
			b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = schedule.AppliedPlacement(b.Spec.Placement)
		}), "m2", false},
		"it is required there": {binding(func(b *workv1alpha2.ClusterResourceBinding) {
			eu(b)
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "m2"}}}}
		}), "m2", true},
		"it is going": {binding(func(b *workv1alpha2.ClusterResourceBinding) { b.DeletionTimestamp = &now }), "m1", false},
		"its users stopped the scheduler": {binding(func(b *workv1alpha2.ClusterResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		}), "m2", false},
		"another scheduler places it": {binding(func(b *workv1alpha2.ClusterResourceBinding) { b.Spec.SchedulerName = "x" }),
			"m2", false},
	} {
		if got := Coming(c.binding, stays, c.cluster, fleet, policyv1alpha1.DefaultSchedulerName); got != c.want {
			t.Errorf("%s: it is coming to %s: %v, want %v", name, c.cluster, got, c.want)
		}
	}
	if !Coming(binding(func(b *workv1alpha2.ClusterResourceBinding) { b.Spec.SchedulerName = "x" }), stays, "m2", fleet,
		"x") {
		t.Error("the hub's scheduler has a name of its own, and its placements are not foreseen")
	}

	policy := func(name string) *policyv1alpha1.ClusterPropagationPolicy {
		p := &policyv1alpha1.ClusterPropagationPolicy{}
		p.Name, p.Labels = name, map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-" + name}
		return p
	}
	evicted := &workv1alpha2.ResourceBinding{}
	evicted.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
	for name, c := range map[string]struct {
		of, from string
		want     bool
	}{
		"the workload of its policy leaves its cluster":     {"a", "m1", true},
		"a workload of another policy leaves its cluster":   {"b", "m1", false},
		"the workload of its policy leaves another cluster": {"a", "m3", false},
	} {
		b := binding(func(b *workv1alpha2.ClusterResourceBinding) { eu(b); propagate.Claim(b, policy("a")) })
		propagate.Claim(evicted, policy(c.of))
		evicted.Spec.GracefulEvictionTasks[0].FromCluster = c.from
		if got := Coming(b, evicted, "m2", fleet, policyv1alpha1.DefaultSchedulerName); got != c.want {
			t.Errorf("%s: it is coming to m2: %v, want %v", name, got, c.want)
		}
	}
}
