package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestDue(t *testing.T) {
	type binding = *workv1alpha2.ResourceBinding
	change := func(b binding, change func(binding)) binding { change(b); return b }
	inProd := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
	}}
	terms := policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
		{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}},
	}}
	observed := func(name string) func(binding) {
		return func(b binding) { b.Status.SchedulerObservedAffinityName = name }
	}
	s := fleet(
		cluster("a", labelled("env", "prod")), cluster("b", labelled("env", "test")),
		cluster("c", leaving), cluster("d", tainted("down", corev1.TaintEffectNoSchedule)),
	)

	for name, test := range map[string]struct {
		binding binding
		want    Reason
	}{
		"a new binding": {deployment(1, policyv1alpha1.Placement{}), NeverScheduled},
		"a binding of a dependency never is": {change(deployment(1, policyv1alpha1.Placement{}),
			func(b binding) { b.Spec.Placement = nil }), notDue},
		"a binding scheduled and not changed": {placed(deployment(1, policyv1alpha1.Placement{}), "a=1 b=1"), notDue},
		"another placement": {change(placed(deployment(1, equally()), "a=1"),
			func(b binding) { *b.Spec.Placement = together() }), PlacementChanged},
		"the same placement in another spelling": {change(placed(deployment(1, policyv1alpha1.Placement{}), "a=1 b=1"),
			func(b binding) {
				b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = ` { "clusterTolerations" : [] } `
			}), notDue},
		"an applied placement that is not JSON": {change(placed(deployment(1, policyv1alpha1.Placement{}),
			"a=1 b=1"), func(b binding) { b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = "{" }), PlacementChanged},
		"a rebalancing later than the last run": {rebalanced(placed(deployment(1, equally()), "a=1")),
			RescheduleAsked},
		"... but not one before it": {change(placed(deployment(1, equally()), "a=1"),
			func(b binding) { b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(99, 0)} }), notDue},
		"a rebalancing of what was created with its clusters": {unconfirmed(placed(deployment(1, equally()), "a=1"), 50, 51),
			RescheduleAsked},
		"... asked for before that": {unconfirmed(placed(deployment(1, equally()), "a=1"), 50, 50),
			NotYetSuccessful},
		"divided replicas that do not add up": {placed(deployment(3, equally()), "a=1 b=1"), ReplicasChanged},
		"a duplicate that has other replicas": {placed(deployment(2, policyv1alpha1.Placement{}), "a=2 b=1"),
			ReplicasChanged},
		"replicas of what has no longer any": {placed(configMap(policyv1alpha1.Placement{}), "a=1 b=1"),
			ReplicasChanged},
		"components that were never placed": {components(placed(deployment(0, policyv1alpha1.Placement{}),
			"a b")), ReplicasChanged},
		"components placed and not changed": {change(
			components(placed(deployment(0, policyv1alpha1.Placement{}), "a b")), takeAll), notDue},
		"a component that was scaled": {change(change(components(placed(deployment(0, policyv1alpha1.Placement{}), "a b")),
			takeAll), func(b binding) {
			b.Spec.Components[1].Replicas = 9
		}), ReplicasChanged},
		"a target that is being deleted": {placed(deployment(2, equally()), "a=1 c=1"), TargetLeft},
		"a target that there is not":     {placed(deployment(2, equally()), "a=1 x=1"), TargetLeft},
		"a run that failed": {change(placed(deployment(1, equally()), "a=1"),
			func(b binding) { b.Status.Conditions[0].Status = metav1.ConditionFalse }), NotYetSuccessful},
		"a run that was not recorded": {change(placed(deployment(1, equally()), "a=1"),
			func(b binding) { b.Status.Conditions = nil }), NotYetSuccessful},
		"the affinity term in use was renamed": {change(placed(configMap(terms), "a"), observed("zeroth")), AffinityRemoved},
		"the second affinity term in use":      {change(placed(configMap(terms), "b"), observed("second")), notDue},
		"a cluster that joined, duplicated":    {placed(configMap(policyv1alpha1.Placement{}), "a"), CandidatesChanged},
		"... but not with as many as allowed":  {placed(configMap(upTo(policyv1alpha1.Placement{}, 1, 1)), "b"), notDue},
		"a cluster that joined, divided":       {placed(deployment(3, equally()), "a=3"), notDue},
		"a target that stopped to match":       {placed(deployment(3, inProdDivided(inProd)), "a=2 b=1"), TargetUnwanted},
		"... duplicated":                       {placed(configMap(inProd), "a b"), CandidatesChanged},
		"a target tainted NoSchedule stays":    {placed(configMap(policyv1alpha1.Placement{}), "a b d"), notDue},
		"an evicted target is not missed": {change(placed(configMap(policyv1alpha1.Placement{}), "a"), func(b binding) {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "b"}}
		}), notDue},
	} {
		t.Run(name, func(t *testing.T) {
			reason, due := Due(test.binding, s)
			if reason != test.want || due != (test.want != notDue) {
				t.Errorf("due: %v, because %q, want %q", due, reason, test.want)
			}
		})
	}
}

// takeAll gives each target all components.
func takeAll(b *workv1alpha2.ResourceBinding) {
	for i := range b.Spec.Clusters {
		b.Spec.Clusters[i].Components = sharesOf(b.Spec.Components)
	}
}

func inProdDivided(p policyv1alpha1.Placement) policyv1alpha1.Placement {
	d := equally()
	d.ClusterAffinity = p.ClusterAffinity
	return d
}

// TestAffectsMissesNothing changes one cluster at random: if that makes a binding due, or lets a failed run succeed,
// Affects must return true.
func TestAffectsMissesNothing(t *testing.T) {
	changes := []struct {
		name string
		with
	}{
		{"label", labelled("env", "prod")}, {"label", labelled("env", "test")},
		{"region", located("acme", "eu", "eu-1")}, {"no region", located("", "")},
		{"taint", tainted("down", corev1.TaintEffectNoSchedule)}, {"taint", tainted("down", corev1.TaintEffectNoExecute)},
		{"untaint", func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil }},
		{"undiscovered", undiscovered}, {"discovered", func(c *clusterv1alpha1.Cluster) { c.Status = cluster("x").Status }},
		{"deleted", leaving}, {"alive", func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = nil }},
		{"full", free("cpu=1 pods=10")}, {"empty", free("cpu=64 pods=100")},
		{"silent", func(c *clusterv1alpha1.Cluster) { c.Status.ResourceSummary = nil }},
	}
	prod := policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
		"env": "prod"}}}
	europe := policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "region", Operator: corev1.NodeSelectorOpIn,
			Values: []string{"eu"}}},
	}}
	weighted := byWeight("x=2")
	weighted.ReplicaScheduling.WeightPreference.StaticWeightList[0].TargetCluster = prod
	var affected, unaffected int
	for seed := range uint64(6000) {
		r := rng(seed)
		before := named("a", "b", "c")
		for _, c := range before {
			for range r.IntN(5) {
				changes[r.IntN(len(changes))].with(c)
			}
		}
		p := []policyv1alpha1.Placement{{}, equally(), byAvailability(), together(), upTo(byAvailability(), 1, 2),
			upTo(policyv1alpha1.Placement{}, 1, 2), upTo(weighted, 1, 2), upTo(equally(), 1, 2)}[r.IntN(8)]
		switch r.IntN(4) {
		case 0:
			p.ClusterAffinity = &prod
		case 1:
			p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "prod", ClusterAffinity: prod},
				{AffinityName: "eu", ClusterAffinity: europe}}
		}
		b := deployment(int32(1+r.IntN(40)), p)
		b.Spec.ReplicaRequirements.ResourceRequest = quantities("cpu=1")
		if r.IntN(3) == 0 {
			b = configMap(p)
		}
		plugins := Plugins{}
		if r.IntN(3) == 0 {
			plugins.off = uint16(r.Uint32N(1 << len(allPlugins)))
		}
		s := Settings{Plugins: plugins}.Snapshot(before)
		result, err := Schedule(b, s, s.Room(b))
		record(b, result, err, time.Unix(100, 0))
		if reason, due := Due(b, s); due && err == nil {
			t.Fatalf("seed %d, plugins %s: due again when placed, because %s", seed, plugins, reason)
		}

		i := r.IntN(3)
		old, now := before[i], before[i].DeepCopy()
		change := changes[r.IntN(len(changes))]
		change.with(now)
		after := append(before[:i:i], now)
		after = append(after, before[i+1:]...)
		if r.IntN(10) == 0 {
			change.name, now, after = "removed", nil, append(before[:i:i], before[i+1:]...)
		}
		next := s.Next(after)

		wantText := Affects(b, old, now, plugins)
		_, wasDue := Due(b, s)
		reason, isDue := Due(b, next)
		_, errNow := Schedule(b, next, next.Room(b))
		if wantText {
			affected++
		} else {
			unaffected++
		}
		if !wantText && (isDue && !wasDue || err != nil && errNow == nil) {
			t.Fatalf("seed %d, plugins %s: %s of %s is said not to affect %q, due because %q (before: %v, now: %v)",
				seed, plugins, change.name, old.Name, targetList(b.Spec.Clusters), reason, err, errNow)
		}
	}
	if affected == 0 || unaffected < affected/2 {
		t.Errorf("%d changes affect and %d do not: the question is not worth asking", affected, unaffected)
	}
}

func TestAffects(t *testing.T) {
	inProd := inProdDivided(policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
	}})
	prod := labelled("env", "prod")
	unscheduled := placed(deployment(9, byAvailability()), "")
	for name, test := range map[string]struct {
		binding  workv1alpha2.Binding
		old, now *clusterv1alpha1.Cluster
		want     bool
	}{
		"a heartbeat": {placed(configMap(policyv1alpha1.Placement{}), "a"), cluster("a"),
			cluster("a", free("cpu=3")), false},
		"a cluster joins, duplicated": {placed(configMap(policyv1alpha1.Placement{}), "a"), nil, cluster("b"),
			true},
		"a cluster joins that the policy excludes": {placed(configMap(restrictedTo(policyv1alpha1.Placement{}, "a")), "a"),
			nil,
			cluster("b"), false},
		"a cluster joins, divided": {placed(deployment(1, equally()), "a=1"), nil, cluster("b"), false},
		"a target starts to leave": {placed(deployment(1, equally()), "a=1"), cluster("a"),
			cluster("a", leaving), true},
		"a target that does not match leaves": {placed(deployment(9, inProd), "a=1"), cluster("a"),
			cluster("a", leaving), true},
		"another starts to leave, divided": {placed(deployment(1, equally()), "a=1"), cluster("b"),
			cluster("b", leaving), false},
		"a leaving target is gone": {placed(deployment(1, equally()), "a=1"), cluster("a", leaving), nil,
			false},
		"a target's label goes": {placed(deployment(1, inProd), "a=1"), cluster("a", prod), cluster("a"),
			true},
		"a label that nobody asks for": {placed(deployment(1, inProd), "a=1"), cluster("a", prod),
			cluster("a", prod, labelled("x", "y")), false},
		"a taint, duplicated": {placed(configMap(policyv1alpha1.Placement{}), ""), cluster("a"),
			cluster("a", tainted("down", corev1.TaintEffectNoSchedule)), true},
		"a taint on a target": {placed(configMap(policyv1alpha1.Placement{}), "a"), cluster("a"),
			cluster("a", tainted("down", corev1.TaintEffectNoSchedule)), false},
		"a kind appears": {placed(configMap(policyv1alpha1.Placement{}), ""),
			cluster("a", undiscovered), cluster("a"), true},
		"room, when it was missing": {unscheduled, cluster("a", free("cpu=1")), cluster("a", free("cpu=2")),
			true},
		"less room": {unscheduled, cluster("a", free("cpu=2")), cluster("a", free("cpu=1")),
			false},
		"room, when there was enough": {placed(deployment(9, byAvailability()), "a=9"),
			cluster("b", free("cpu=1")), cluster("b", free("cpu=2")), false},
		"room, for static weights": {placed(deployment(9, equally()), ""), cluster("a", free("cpu=1")),
			cluster("a", free("cpu=2")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Affects(test.binding, test.old, test.now, Plugins{}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAppliedPlacementReadsBack(t *testing.T) {
	for i, p := range []policyv1alpha1.Placement{{}, equally(), byWeight("a=1"), upTo(together(), 1, 2),
		restrictedTo(byAvailability(), "a")} {
		if text := AppliedPlacement(&p); !samePlacement(text, &p) || !strings.HasPrefix(text, "{") {
			t.Errorf("%d: %s", i, text)
		}
		for j, other := range []policyv1alpha1.Placement{{}, equally(), byWeight("a=1"), upTo(together(), 1, 2),
			restrictedTo(byAvailability(), "a")} {
			if samePlacement(AppliedPlacement(&p), &other) != (i == j) {
				t.Errorf("%s", fmt.Sprint(i, " and ", j))
			}
		}
	}
}

func TestConfirmationIsRecordedInTheStatus(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	b := placed(deployment(2, equally()), "a=1 b=1")
	b.Status = workv1alpha2.ResourceBindingStatus{}
	if !Confirm(b, Confirmation{Generation: 3, Affinity: "first"}, now) {
		t.Error("the condition Scheduled did not change")
	}
	if s := b.Status; s.SchedulerObservedGeneration != 3 || s.SchedulerObservedAffinityName != "first" ||
		!s.LastScheduledTime.Equal(&now) || !meta.IsStatusConditionTrue(s.Conditions, workv1alpha2.Scheduled) {
		t.Errorf("the status is %+v", s)
	}
	if reason, due := Due(b, fleet(cluster("a"), cluster("b"))); due {
		t.Errorf("after its confirmation it is due, since %s", reason)
	}

	later := metav1.NewTime(time.Unix(2000, 0))
	if Confirm(b, Confirmation{Generation: 4}, later) || !b.Status.LastScheduledTime.Equal(&now) {
		t.Errorf("without a run, the status became %+v", b.Status)
	}
	if Confirm(b, Confirmation{Generation: 4, Ran: true}, later) || !b.Status.LastScheduledTime.Equal(&later) {
		t.Errorf("after a run, the status is %+v", b.Status)
	}
	asked := metav1.NewTime(time.Unix(2001, 0))
	b.Spec.RescheduleTriggeredAt = &asked
	Confirm(b, Confirmation{Generation: 5, Ran: true}, later)
	if !b.Status.LastScheduledTime.Equal(&asked) {
		t.Errorf("a run that was asked for within this second is dated %v", b.Status.LastScheduledTime)
	}
	if !Confirm(b, Confirmation{Generation: 6, Ran: true, Failure: errNoClusters}, now) ||
		!b.Status.LastScheduledTime.Equal(&asked) || meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled) {
		t.Errorf("after a run that failed, the status is %+v", b.Status)
	}
}

func TestPlacementOfOthersIsConfirmedOnlyIfTheSchedulerKeepsIt(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	for name, tc := range map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   bool
	}{
		"a placement that fits":   {func(*workv1alpha2.ResourceBinding) {}, true},
		"no clusters":             {func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil }, false},
		"another placement since": {func(b *workv1alpha2.ResourceBinding) { *b.Spec.Placement = together() }, false},
		"a run that is asked for": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(3000, 0)}
		}, false},
		"other replicas":    {func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 5 }, false},
		"another scheduler": {func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "another" }, false},
		"a run that failed before": {func(b *workv1alpha2.ResourceBinding) {
			b.Status.Conditions = []metav1.Condition{Condition(errNoClusters)}
		}, false},
	} {
		b := placed(deployment(2, equally()), "a=1 b=1")
		Confirm(b, Confirmation{Generation: 1, Ran: true}, now)
		tc.change(b)
		before := b.Status.DeepCopy()
		if got := Keep(b, "", policyv1alpha1.DefaultSchedulerName, fleet(cluster("a"), cluster("b")), now); got != tc.want {
			t.Errorf("%s: confirmed %t, want %t", name, got, tc.want)
		} else if !got && !equality.Semantic.DeepEqual(before, &b.Status) {
			t.Errorf("%s: the status became %+v", name, b.Status)
		}
	}
}

// unconfirmed returns a binding created with its clusters at a time, without a status, with a requested reschedule at
// another.
func unconfirmed(b *workv1alpha2.ResourceBinding, created, asked int64) *workv1alpha2.ResourceBinding {
	b.Status = workv1alpha2.ResourceBindingStatus{}
	b.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
	b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(asked, 0)}
	return b
}
