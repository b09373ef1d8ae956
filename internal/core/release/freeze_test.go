package release_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

func TestFreezeLastsWhileAStageIsUnderWay(t *testing.T) {
	for name, freeze := range map[string]bool{"Freeze": true, "Follow": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cloneSet, 5, 5)
			r := w.release("r1", "autoscaling: "+name+`
stages:
- {name: one, to: {percent: 50}, soak: 5s, after: [{name: look}]}
- {name: two, before: [{name: go}]}
`)
			is := func(when, want string) {
				t.Helper()
				if !freeze {
					want = ""
				}
				if got := release.FrozenStage(fleet.PlanOf(w.binding.Annotations), r); got != want {
					t.Errorf("%s, autoscaling is frozen by stage %q, want %q", when, got, want)
				}
			}
			state := func(state releasev1alpha1.ReleaseState) {
				r.Spec.State = state
				r.Generation++
				w.reconcile(r)
			}
			is("before the release", "")
			w.reconcile(r)
			is("while pods are updated", "one")
			state(releasev1alpha1.StatePause)
			is("paused", "")
			state(releasev1alpha1.StateRun)
			is("resumed", "one")
			w.lose("c2", true)
			w.rest()
			is("while a cluster is lost, and another is updated", "one")
			w.lose("c2", false)
			w.rest()
			is("while pods soak", "one")
			w.pass(5 * time.Second)
			is("while the stage is checked", "one")
			writes := w.bindingWrites
			w.approve(r, "one", "look", "ann")
			w.approvals[0].Spec.Position = releasev1alpha1.GateAfter
			w.rest()
			is("while the next stage waits for its approval", "")
			if w.bindingWrites != writes {
				t.Errorf("the end of a stage writes the binding")
			}
			w.approve(r, "two", "go", "ann")
			w.reconcile(r)
			is("in the last stage", "two")
			state(releasev1alpha1.StateAbort)
			is("aborted", "")
			state(releasev1alpha1.StateRollback)
			is("rolled back", "")
			w.rest()
			is("after the rollback", "")
		})
	}
}

func TestAReleaseFreezesNothingByThePlanOfAnother(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", "{autoscaling: Freeze, stages: [{name: all}]}")
	w.reconcile(r)
	plan := fleet.PlanOf(w.binding.Annotations)
	if stage := release.FrozenStage(plan, r); stage != "all" {
		t.Fatalf("autoscaling is frozen by stage %q, want all", stage)
	}
	lost := r.DeepCopy()
	meta.SetStatusCondition(&lost.Status.Conditions, metav1.Condition{Type: releasev1alpha1.ReleaseProgressing,
		Status: metav1.ConditionFalse, Reason: releasev1alpha1.ReasonClusterUnreachable})
	if stage := release.FrozenStage(plan, lost); stage != "" {
		t.Errorf("autoscaling is frozen by stage %q while only a lost cluster is awaited", stage)
	}
	again := r.DeepCopy() // it was deleted, and created with the same name
	again.UID = "other"
	for name, got := range map[string]string{"another release": release.FrozenStage(plan, again),
		"no release": release.FrozenStage(plan, nil), "no plan": release.FrozenStage(nil, r)} {
		if got != "" {
			t.Errorf("%s: autoscaling is frozen by stage %q", name, got)
		}
	}
}
