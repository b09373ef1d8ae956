package dispatch_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

func TestPurgeIsStuckWhileNoWorkCanBeDeleted(t *testing.T) {
	clusters := map[string]*clusterv1alpha1.Cluster{}
	for name, status := range map[string]metav1.ConditionStatus{"eu": metav1.ConditionTrue, "us": metav1.ConditionFalse,
		"ap": metav1.ConditionUnknown} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
			Status: status})
		clusters[name] = c
	}
	for _, c := range []struct {
		name  string
		in    []string
		kept  string // the cluster with the annotation hands-off
		stuck bool
	}{
		{"nothing is purged", nil, "", false},
		{"the cluster responds", []string{"eu"}, "", false},
		{"neither responds", []string{"us", "ap"}, "", true},
		{"one of them responds", []string{"us", "eu"}, "", false},
		{"the annotation hands-off keeps the object", []string{"eu"}, "eu", true},
		{"one is kept and one does not respond", []string{"eu", "us"}, "eu", true},
		{"one is kept and one responds", []string{"us", "eu"}, "us", false},
	} {
		var works []workv1alpha1.Work
		for _, cluster := range c.in {
			w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster}}
			if cluster == c.kept {
				w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkHandsOff, Status: metav1.ConditionTrue}}
			}
			works = append(works, w)
		}
		if got := dispatch.PurgeIsStuck(works, func(name string) *clusterv1alpha1.Cluster {
			return clusters[name]
		}); got != c.stuck {
			t.Errorf("%s: stuck is %t", c.name, got)
		}
	}
}

func TestHandsOffOfDeletedWorkIsAnEvent(t *testing.T) {
	free := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
	kept := free.DeepCopy()
	kept.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkHandsOff, Status: metav1.ConditionTrue}}
	if !dispatch.Moved(free, kept) || !dispatch.Moved(kept, free) || dispatch.Moved(kept, kept) {
		t.Error("the binding is not reconciled when the annotation is set or removed, or is without a change")
	}
}

func TestStuckPurgeUpdatesOtherCopiesAndStartsNoReplacement(t *testing.T) {
	const divided = "placement: {replicaScheduling: {replicaSchedulingType: Divided}}\nreplicas: 5\n"
	before := input(t, deployment, divided+"clusters: [{name: eu, replicas: 3}, {name: us, replicas: 2}]")
	existing := works(t, before)

	// It leaves eu directly: us gains one, and ap takes two.
	in := input(t, deployment, divided+"clusters: [{name: ap, replicas: 2}, {name: us, replicas: 3}]\n"+
		"gracefulEvictionTasks: [{fromCluster: eu, purgeMode: Directly, reason: R, producer: p}]")
	in.Existing = map[string]*workv1alpha1.Work{"us": existing["us"]}
	in.Template.SetLabels(map[string]string{"app": "new"})
	in.Purging = true
	got := works(t, in)
	if len(got) != 1 || got["us"] == nil {
		t.Fatalf("%d Works are made, want the one in us", len(got))
	}
	m := manifest(t, got["us"])
	if n, _, _ := unstructured.NestedInt64(m.Object, "spec", "replicas"); n != 2 || m.GetLabels()["app"] != "new" {
		t.Errorf("us gets %d replicas with the labels %v; want the 2 that it has, with the new label", n, m.GetLabels())
	}
	if n := in.Binding.BindingSpec().Clusters[1].Replicas; n != 3 {
		t.Errorf("the binding itself was changed to %d replicas", n)
	}
	// Fewer replicas replace nothing.
	in.Binding.BindingSpec().Clusters[1].Replicas = 1
	if n, _, _ := unstructured.NestedInt64(manifest(t, works(t, in)["us"]).Object, "spec", "replicas"); n != 1 {
		t.Errorf("us gets %d replicas, want 1", n)
	}

	in.Purging = false
	in.Binding.BindingSpec().Clusters[1].Replicas = 3
	got = works(t, in)
	if n, _, _ := unstructured.NestedInt64(manifest(t, got["us"]).Object, "spec", "replicas"); n != 3 || got["ap"] == nil {
		t.Errorf("after the purge, us gets %d replicas and ap %v", n, got["ap"])
	}
}

const leavesEUDirectly = "gracefulEvictionTasks: [{fromCluster: eu, purgeMode: Directly, reason: R, producer: p}]\n"

func TestStuckPurgeKeepsTheCompletionsOfAJob(t *testing.T) {
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: shop, uid: u}, spec: {parallelism: 5, completions: 10}}"
	const divided = "placement: {replicaScheduling: {replicaSchedulingType: Divided}}\nreplicas: 5\n"
	existing := works(t, input(t, job, divided+"clusters: [{name: eu, replicas: 3}, {name: us, replicas: 2}]"))
	completions := func(w *workv1alpha1.Work) int64 {
		n, _, _ := unstructured.NestedInt64(manifest(t, w).Object, "spec", "completions")
		return n
	}
	if n := completions(existing["us"]); n != 4 {
		t.Fatalf("us has %d completions, want 4", n)
	}
	for _, clusters := range []string{"[{name: ap, replicas: 3}, {name: us, replicas: 2}]", "[{name: us, replicas: 5}]"} {
		in := input(t, job, divided+leavesEUDirectly+"clusters: "+clusters)
		in.Existing = map[string]*workv1alpha1.Work{"us": existing["us"]}
		in.Purging = true
		if n := completions(works(t, in)["us"]); n != 4 {
			t.Errorf("with the clusters %s, us gets %d completions, want the 4 that it was sent", clusters, n)
		}
	}
}

func TestStuckPurgeKeepsTheOrdinalsOfTheEvictedCluster(t *testing.T) {
	for _, kind := range []string{"apps.kruise.io/v1beta1", "apps/v1"} {
		s := begin(t, strings.NewReplacer("apps.kruise.io/v1beta1", kind,
			"volumeClaimTemplates: [{metadata: {name: data}}]", "").Replace(database), threeAndTwo)
		s.look()
		s.report("eu", 3, 3)
		s.report("us", 2, 2)
		record := s.in.Binding.GetAnnotations()[wellknown.OrdinalsAnnotation]

		delete(s.in.Existing, "eu")
		spec := s.in.Binding.BindingSpec()
		spec.Clusters = []workv1alpha2.TargetCluster{{Name: "ap", Replicas: 3}, {Name: "us", Replicas: 2}}
		spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "eu", PurgeMode: "Directly"}}
		s.in.Purging = true
		s.edit([]any{int64(3)}, "spec", "reserveOrdinals")
		s.look()
		if kind == "apps/v1" {
			if got := s.fieldValues("spec", "ordinals", "start"); got != "3" {
				t.Errorf("%s: the ordinals of us start at %s, want 3", kind, got)
			}
		} else if got := s.fieldValues("spec", "reserveOrdinals"); got != "[0 1 2 3]" {
			t.Errorf("%s: us must not run %s, want the ordinals of eu and the reserved one", kind, got)
		}
		if got := s.in.Binding.GetAnnotations()[wellknown.OrdinalsAnnotation]; !strings.Contains(got, "eu") {
			t.Errorf("%s: the record is %s, and was %s; want that it still has eu", kind, got, record)
		}
	}
}

func TestStuckPurgeRemovesNoRecords(t *testing.T) {
	s := beginPulling(t)
	s.image("nginx:2")
	s.rest()
	pulls := s.in.Pulls
	recorded := map[string]string{wellknown.RolloutProgressAnnotation: "progress", wellknown.RoutedToAnnotation: "routed"}
	s.in.Binding.SetAnnotations(recorded)
	status := s.in.Binding.BindingStatus()
	status.Conditions = []metav1.Condition{{Type: fleet.FleetHalted, Status: metav1.ConditionTrue,
		Message: "eu is unhealthy"}}

	// Only ap has a copy, so that it is alone for now.
	spec := s.in.Binding.BindingSpec()
	spec.Clusters = slices.DeleteFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == "eu" })
	spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "eu", PurgeMode: "Directly"}}
	s.in.Existing = map[string]*workv1alpha1.Work{"ap": s.in.Existing["ap"]}
	s.in.Purging = true
	decide := func() dispatch.Decision {
		return dispatch.Decide(context.Background(), s.in, interpret.New(builtin.Tier()))
	}
	d := decide()
	if d.Progress != "progress" || d.Routed != "routed" || len(d.Conditions) != 1 ||
		d.Conditions[0] != (fleet.Condition{Type: fleet.FleetHalted, Message: "eu is unhealthy"}) {
		t.Errorf("recorded are %q, %q and %v; want what was recorded before", d.Progress, d.Routed, d.Conditions)
	}
	if len(d.Pulls) != 2 || d.Pulls[0] != pulls["eu"][0] || d.Pulls[1] != pulls["us"][0] {
		t.Errorf("%d image pulls are kept, want the 2 that exist", len(d.Pulls))
	}

	// A pull that a remaining cluster does not need ends as always.
	s.in.Pulls = maps.Clone(pulls)
	s.in.Pulls["ap"] = pulls["us"]
	if d := decide(); len(d.Pulls) != 2 {
		t.Errorf("%d image pulls are kept, want the 2 of the clusters that are left out", len(d.Pulls))
	}
	s.in.Purging = false
	spec.Clusters = slices.DeleteFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == "us" })
	if d := decide(); d.Progress+d.Routed != "" || len(d.Conditions)+len(d.Pulls) > 0 {
		t.Errorf("after the purge, %q, %q, %v and %d pulls are kept", d.Progress, d.Routed, d.Conditions, len(d.Pulls))
	}
}

// A namespace starts nothing, and its deletion may wait for objects in it, so its replacement does not wait.
func TestNamespaceIsSentBeforeItsDeletionElsewhere(t *testing.T) {
	for kind, want := range map[string]int{"Namespace": 0, "PersistentVolume": 1} {
		b := &workv1alpha2.ClusterResourceBinding{}
		label := propagate.BindingIDLabel("")
		b.Labels = map[string]string{label: "id"}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: kind, Name: "shop"}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "us"}}
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "eu",
			PurgeMode: policyv1alpha1.PurgeModeDirectly}}
		works := []workv1alpha1.Work{{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu", Labels: b.Labels}}}
		if got := len(dispatch.Purging(b, works)); got != want {
			t.Errorf("%s: %d Works must go first, want %d", kind, got, want)
		}
	}
}
