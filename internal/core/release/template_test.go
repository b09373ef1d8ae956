package release_test

import (
	"testing"
	"time"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// A template that can no longer be divided would be updated in all clusters at once. Its replicas still follow it.
func TestAChangeOfTheUpdateModeHoldsTheRolloutAlone(t *testing.T) {
	for name, change := range map[string]func(w *world, undo bool){
		"retained replicas": func(w *world, undo bool) {
			w.template = w.template.DeepCopy()
			w.template.SetLabels(map[string]string{policyv1alpha1.RetainReplicasLabel: map[bool]string{false: "true"}[undo]})
		},
		"scope Cluster": func(w *world, undo bool) {
			w.template = w.template.DeepCopy()
			w.template.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "s",
				wellknown.RolloutScopeAnnotation: map[bool]string{false: "Cluster", true: "Fleet"}[undo]})
		},
		"OnDelete": func(w *world, undo bool) {
			w.edit(map[bool]string{false: "OnDelete", true: "ReCreate"}[undo], "spec", "updateStrategy", "type")
		},
		"no division": func(w *world, undo bool) {
			strategy := policyv1alpha1.ReplicaSchedulingTypeDuplicated
			if undo {
				strategy = policyv1alpha1.ReplicaSchedulingTypeDivided
			}
			w.binding.Spec.Placement.ReplicaScheduling.ReplicaSchedulingType = strategy
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cloneSet, 10, 10)
			r := w.release("r1", oneTwoSeven)
			w.rest()
			w.expect("in the first stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 2)
			change(w, false)
			w.pass(time.Minute)
			w.expect("after the change", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonFleetHalted, "web:2", 2)
			if !w.hasCondition(fleet.FleetHalted) {
				t.Error("no condition says that the rollout is halted")
			}
			w.place("c1", 15)
			w.place("c2", 15)
			w.join("c3", 15, nil)
			w.pass(time.Minute)
			w.expect("scaled up", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonFleetHalted, "web:2", 2)
			want := 43
			if !dispatch.Divides(&w.binding.Spec) {
				want = 3*45 - 2 // each cluster has all replicas of the template
			}
			if n := w.count("web:1"); n != want {
				t.Errorf("%d pods are old, want %d", n, want)
			}
			w.place("c1", 4)
			w.place("c2", 4)
			w.place("c3", 4)
			w.pass(time.Minute)
			w.expect("scaled down", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonFleetHalted, "web:2", 2)
			change(w, true)
			w.pass(10 * time.Minute)
			w.expect("after it was undone", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 12)
			if w.hasCondition(fleet.FleetHalted) {
				t.Error("the condition stays")
			}
		})
	}
}

func TestAWorkloadThatWaitsForAReleaseKeepsItsPodsWithOnDelete(t *testing.T) {
	w := newWorld(t, cloneSet, 3, 3)
	w.edit("OnDelete", "spec", "updateStrategy", "type")
	w.rest()
	w.edit("ReCreate", "spec", "updateStrategy", "type")
	w.rest()
	if n := w.count("web:2"); n > 0 {
		t.Errorf("without a release, %d pods are new", n)
	}
}

func TestAReleaseContinuesWhenItsWorkloadIsScaledToZeroAndBack(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10)
	r := w.release("r1", "stages: [{name: some, to: {percent: 10}}, {name: rest, before: [{name: go}]}]")
	w.rest()
	w.expect("at first", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 2)
	for _, n := range []int64{0, 10} {
		w.place("c1", n)
		w.place("c2", n)
		w.pass(time.Hour)
	}
	progress, err := dispatch.ProgressOf(w.dispatchInput())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range progress { // members without pods do not know which pods are old
		if p.Released != 1 {
			t.Errorf("%s may have %d new pods, want 1", p.Cluster, p.Released)
		}
	}
	w.approve(r, "rest", "go", "ann")
	w.pass(time.Hour)
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 20)
}

func TestAReleaseEndsWhenItsWorkloadIsDeletedAndCreatedAgain(t *testing.T) {
	for _, sameBinding := range []bool{false, true} {
		w := newWorld(t, cloneSet, 10, 10)
		r := w.release("r1", "stages: [{name: some, to: {percent: 10}}, {name: rest, before: [{name: go}]}]")
		w.rest()
		w.approve(r, "rest", "go", "ann")
		w.template = w.template.DeepCopy()
		w.template.SetUID("u-2")
		w.binding.Spec.Resource.UID = "u-2"
		if !sameBinding {
			w.binding.Annotations = map[string]string{}
		}
		w.pass(time.Hour)
		w.expect("the release", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonTargetReplaced, "web:2", 2)
		if len(w.binding.Annotations) > 0 {
			t.Errorf("the binding of the new workload has %v", w.binding.Annotations)
		}
		r.Spec.State = releasev1alpha1.StateRollback
		w.pass(time.Hour)
		w.expect("after a rollback", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonTargetReplaced, "web:2", 2)
	}
}
