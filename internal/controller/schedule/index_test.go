package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
)

// history makes bindings and clusters that come, change and go.
type history struct {
	*rand.Rand
	versions int64
}

func (h *history) one(n int) bool { return h.IntN(n) == 0 }

func pick[T any](h *history, of ...T) T { return of[h.IntN(len(of))] }

func (h *history) placement() *policyv1alpha1.Placement {
	p := &policyv1alpha1.Placement{}
	named := func() policyv1alpha1.ClusterAffinity {
		a := policyv1alpha1.ClusterAffinity{}
		switch h.IntN(4) {
		case 0:
			a.ClusterNames = []string{pick(h, clusterNames...), pick(h, clusterNames...)}
		case 1:
			a.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": pick(h, "prod", "test")}}
		case 2:
			a.FieldSelector = &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "region",
				Operator: corev1.NodeSelectorOpIn, Values: []string{"north"}}}}
		}
		return a
	}
	if h.one(3) {
		p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "first", ClusterAffinity: named()},
			{AffinityName: "second", ClusterAffinity: named()}}
	} else if a := named(); !h.one(3) {
		p.ClusterAffinity = &a
	}
	if h.one(2) {
		p.ClusterTolerations = []corev1.Toleration{{Key: "bad", Operator: corev1.TolerationOpExists}}
	}
	if h.one(3) {
		p.SpreadConstraints = []policyv1alpha1.SpreadConstraint{pick(h,
			policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 1},
			policyv1alpha1.SpreadConstraint{SpreadByLabel: "stage", MinGroups: 1},
			policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MaxGroups: 2})}
	}
	if h.one(2) {
		s := &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: pick(h, policyv1alpha1.ReplicaDivisionPreferenceAggregated,
				policyv1alpha1.ReplicaDivisionPreferenceWeighted)}
		if s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceWeighted {
			s.WeightPreference = pick(h, &policyv1alpha1.ClusterPreferences{
				DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
				&policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{{TargetCluster: named(),
					Weight: 1}}})
		}
		p.ReplicaScheduling = s
	}
	return p
}

var clusterNames = []string{"m1", "m2", "m3", "m4", "m5"}

// binding returns a binding of one of few placements; what is kept of was is its name.
func (h *history) binding(name string, placements []*policyv1alpha1.Placement) workv1alpha2.Binding {
	h.versions++
	b := scope.Bindings.New(pick(h, "shop", ""))
	b.SetName(name)
	b.SetUID(types.UID(name + pick(h, "", "-again")))
	b.SetGeneration(h.versions)
	if !h.one(8) {
		b.SetLabels(map[string]string{workv1alpha2.BindingManagedByLabel: "test"})
	}
	if h.one(10) {
		b.SetDeletionTimestamp(&metav1.Time{})
	}
	spec := b.BindingSpec()
	spec.Resource.APIVersion, spec.Resource.Kind = "v1", pick(h, "ConfigMap", "Secret")
	if !h.one(10) {
		spec.Placement = pick(h, placements...)
	}
	if h.one(2) {
		spec.Replicas, spec.ReplicaRequirements = int32(h.IntN(4)), &workv1alpha2.ReplicaRequirements{}
	} else if h.one(4) {
		spec.Components = []workv1alpha2.Component{{Name: "a", Replicas: 1}}
	}
	for _, cluster := range clusterNames {
		if h.one(2) {
			spec.Clusters = append(spec.Clusters,
				workv1alpha2.TargetCluster{Name: cluster, Replicas: int32(h.IntN(2)) * spec.Replicas})
		}
		if h.one(12) {
			spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks,
				workv1alpha2.GracefulEvictionTask{FromCluster: cluster})
		}
	}
	if h.one(4) {
		spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: pick(h, "", "x", "y"),
			AntiAffinityGroup: pick(h, "", "x", "y")}
	}
	h.confirm(b)
	return b
}

// parts writes the parts of a template to b, or removes them. A template that sets only the clusters of its subsets
// changes no generation.
func (h *history) parts(b workv1alpha2.Binding) {
	var p *schedule.Parts
	if h.one(2) {
		p = &schedule.Parts{Rest: h.one(2), Subsets: []schedule.Part{{Name: "s", Replicas: 1, ClusterAffinity: pick(h,
			policyv1alpha1.ClusterAffinity{ClusterNames: []string{pick(h, clusterNames...)}},
			policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": pick(h,
				"prod", "test")}}})}}}
	}
	schedule.SetParts(b, p)
}

func (h *history) confirm(b workv1alpha2.Binding) {
	b.BindingStatus().Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled,
		Status: pick(h, metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse)}}
}

// cluster returns a cluster as it becomes after was, nil if it joins; nil if it leaves.
func (h *history) cluster(name string, was *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if was != nil {
		if h.one(6) {
			return nil
		}
		c = was.DeepCopy()
	}
	changes := []func(){
		func() { c.Labels = map[string]string{pick(h, "stage", "other"): pick(h, "prod", "test")} },
		func() { c.Spec.Region = pick(h, "", "north", "south") },
		func() {
			c.Spec.Taints = pick(h, nil, []corev1.Taint{{Key: pick(h, "bad", "worse"),
				Effect: pick(h, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)}})
		},
		func() {
			c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1",
				Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}, {Kind: pick(h, "Pod", "Secret")}}}}
		},
		func() {
			meta.SetStatusCondition(&c.Status.Conditions,
				metav1.Condition{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
					Status: pick(h, metav1.ConditionTrue, metav1.ConditionFalse)})
		},
		func() { c.DeletionTimestamp = pick(h, nil, nil, &metav1.Time{}) },
		func() {
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(int64(h.IntN(3)), resource.DecimalSI)}}
		},
	}
	changes[h.IntN(len(changes))]()
	if was == nil || h.one(4) {
		changes[h.IntN(len(changes))]()
	}
	return c
}

func listed(bindings []workv1alpha2.Binding) (out []string) {
	for _, b := range bindings {
		out = append(out, client.ObjectKeyFromObject(b).String())
	}
	return out
}

// The oracle asks every binding, as who has no index would.
func TestIndexEqualsAScanOfAllBindings(t *testing.T) {
	var found, asked, waited int
	for seed := range uint64(60) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 1))}
		placements := []*policyv1alpha1.Placement{h.placement(), h.placement(), h.placement(), h.placement()}
		x := newIndex(policyv1alpha1.DefaultSchedulerName, schedule.Plugins{})
		bindings := map[client.ObjectKey]workv1alpha2.Binding{}
		clusters := map[string]*clusterv1alpha1.Cluster{}
		naive := func(concerns func(workv1alpha2.Binding) bool) []workv1alpha2.Binding {
			var out []workv1alpha2.Binding
			for _, b := range bindings {
				if schedule.PlacedBy(b, policyv1alpha1.DefaultSchedulerName) && concerns(b) {
					out = append(out, b)
				}
			}
			slices.SortFunc(out, schedule.Urgency)
			return out
		}
		for step := range 200 {
			switch h.IntN(4) {
			case 0, 1:
				b := h.binding(fmt.Sprint("b", h.IntN(30)), placements)
				bindings[client.ObjectKeyFromObject(b)] = b
				x.put(b)
			case 2:
				for key, b := range bindings { // one of them
					if h.one(2) {
						delete(bindings, key)
						x.remove(key)
						break
					}
					b = b.DeepCopyObject().(workv1alpha2.Binding)
					if h.one(2) {
						h.parts(b)
					} else {
						h.confirm(b)
					}
					bindings[key] = b
					x.put(b)
					break
				}
			case 3:
				name := pick(h, clusterNames...)
				c := capacity.Change{Old: clusters[name], New: h.cluster(name, clusters[name])}
				if clusters[name] = c.New; c.New == nil {
					delete(clusters, name)
				}
				count := 0
				want := listed(naive(func(b workv1alpha2.Binding) bool {
					return schedule.Affects(b, c.Old, c.New, schedule.Plugins{})
				}))
				got := listed(x.changed(c))
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: a change of %s concerns\n%q, want\n%q\nwas %+v\nis %+v", seed, step, name, got, want,
						c.Old, c.New)
				}
				found += len(want)
				if c.New != nil {
					want := listed(naive(func(b workv1alpha2.Binding) bool {
						return schedule.AwaitsRoom(b, c.New, schedule.Plugins{})
					}))
					got := listed(x.waits(name, func(b workv1alpha2.Binding) bool {
						count++
						return schedule.AwaitsRoom(b, c.New,
							schedule.Plugins{})
					}))
					if !slices.Equal(got, want) {
						t.Fatalf("seed %d, step %d: room in %s wakes\n%q, want\n%q", seed, step, name, got, want)
					}
					waited += len(want)
					asked += count
				}
			}
			for _, b := range bindings {
				var want []workv1alpha2.Binding
				for _, other := range bindings {
					if together, apart := schedule.ArePeers(b, other); together || apart {
						want = append(want, other)
					}
				}
				got := x.peers(b)
				slices.SortFunc(want, schedule.Urgency)
				slices.SortFunc(got, schedule.Urgency)
				if !slices.Equal(listed(got), listed(want)) {
					t.Fatalf("seed %d, step %d: the peers of %s are %q, want %q", seed, step, b.GetName(), listed(got), listed(want))
				}
			}
		}
	}
	if found < 1000 || waited < 200 {
		t.Errorf("the histories concern %d bindings, and %d wait: too few to show anything", found, waited)
	}
}

func TestThousandsOfBindingsOfOnePlacementAreAskedAboutTwice(t *testing.T) {
	x := newIndex(policyv1alpha1.DefaultSchedulerName, schedule.Plugins{})
	h := &history{Rand: rand.New(rand.NewPCG(1, 1))}
	placement := &policyv1alpha1.Placement{}
	for i := range 5000 {
		b := h.binding(fmt.Sprint("b", i), []*policyv1alpha1.Placement{placement})
		b.SetLabels(map[string]string{workv1alpha2.BindingManagedByLabel: "test"})
		b.SetDeletionTimestamp(nil)
		*b.BindingSpec() = workv1alpha2.ResourceBindingSpec{Placement: placement.DeepCopy(),
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap"},
			Clusters: []workv1alpha2.TargetCluster{{Name: clusterNames[i%2]}}}
		meta.SetStatusCondition(&b.BindingStatus().Conditions,
			metav1.Condition{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue})
		x.put(b)
	}
	asked := 0
	onM1 := func(b workv1alpha2.Binding) bool { asked++; return b.BindingSpec().Clusters[0].Name == "m1" }
	if got := x.concerned("m1", onM1); len(got) != 2500 || asked != 2 {
		t.Errorf("%d of 5000 bindings are concerned after %d questions, want 2500 after 2", len(got), asked)
	}
	asked = 0
	if got := x.waits("m1", func(workv1alpha2.Binding) bool { asked++; return true }); len(got) != 0 || asked != 0 {
		t.Errorf("%d bindings that are placed wait, after %d questions", len(got), asked)
	}
}

// A taint on a cluster that one of twenty placements allows, and 10,000 bindings.
func BenchmarkAChangeOfAClusterIsAskedAbout(b *testing.B) {
	x := newIndex(policyv1alpha1.DefaultSchedulerName, schedule.Plugins{})
	var all []workv1alpha2.Binding
	for i := range 10_000 {
		binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("b", i),
			Labels: map[string]string{workv1alpha2.BindingManagedByLabel: "test"}}}
		binding.Spec = workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1",
			Kind: "ConfigMap"},
			Placement: &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{
				fmt.Sprint("m", i%20)}}},
			Clusters: []workv1alpha2.TargetCluster{{Name: fmt.Sprint("m", i%20)}}}
		binding.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue}}
		all = append(all, binding)
		x.put(binding)
	}
	was := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m7"}}
	was.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1",
		Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}}}}
	is := was.DeepCopy()
	is.Spec.Taints = []corev1.Taint{{Key: "bad", Effect: corev1.TaintEffectNoExecute}}
	b.Run("by the index", func(b *testing.B) {
		for b.Loop() {
			if n := len(x.changed(capacity.Change{Old: was, New: is})); n != 500 {
				b.Fatalf("%d are concerned", n)
			}
		}
	})
	b.Run("every binding", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for _, binding := range all {
				if schedule.PlacedBy(binding, policyv1alpha1.DefaultSchedulerName) &&
					schedule.Affects(binding, was, is, schedule.Plugins{}) {
					n++
				}
			}
			if n != 500 {
				b.Fatalf("%d are concerned", n)
			}
		}
	})
}
