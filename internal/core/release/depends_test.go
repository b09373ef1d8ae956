package release_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

func TestATargetWaitsForThoseThatItDependsOn(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	r := w.release("r1", "stages: [{name: all}]")
	r.Spec.Targets[0].DependsOn = []string{"db"}
	db := r.Spec.Targets[0]
	db.Name, db.Ref.Name, db.DependsOn = "db", "db", nil
	r.Spec.Targets = append(r.Spec.Targets, db)

	in := w.input(r)
	target := in.Targets["web"]
	current := w.template.DeepCopy()
	current.SetName("db")
	target.Template, target.Binding = current, w.binding.DeepCopy()
	target.Current = release.NewRevision(current, nil)
	target.Former = nil
	in.Targets["db"] = target

	step := release.Next(in)
	at := func(when string, web, db int) {
		t.Helper()
		if step.Bindings["web"].Plan.At != web || step.Bindings["db"].Plan.At != db {
			t.Fatalf("%s, web is at stage %d and db at %d, want %d and %d", when, step.Bindings["web"].Plan.At,
				step.Bindings["db"].Plan.At, web, db)
		}
	}
	at("at first", 0, 1)
	report := func(name string, reached bool) {
		target := in.Targets[name]
		b := step.Bindings[name]
		target.Binding.SetAnnotations(map[string]string{fleet.PlanAnnotation: b.Plan.String(),
			fleet.EffectiveRevisionAnnotation: b.Revision})
		target.Progress = []fleet.ClusterProgress{{Cluster: "c1", Replicas: 2, Target: 2, Reached: reached, Current: true},
			{Cluster: "c2", Replicas: 2, Target: 2, Reached: true, Current: true}}
		in.Targets[name] = target
		in.Release = in.Release.DeepCopy()
		in.Release.Status = step.Status
	}
	report("web", true) // its stage has no target yet
	report("db", false)
	step = release.Next(in)
	at("while db is not reached", 0, 1)
	c := meta.FindStatusCondition(step.Status.Conditions, releasev1alpha1.ReleaseProgressing)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != releasev1alpha1.ReasonDependencyNotReady ||
		c.Message != "in stage all, web waits until db is updated" {
		t.Errorf("while db is not reached, Progressing is %+v", c)
	}
	report("db", true)
	step = release.Next(in)
	at("when db is reached", 1, 1)
	if step.Status.Reason != releasev1alpha1.ReasonStageUpdating {
		t.Errorf("when db is reached, the reason is %s", step.Status.Reason)
	}
	report("web", false)
	step = release.Next(in)
	if step.Status.Phase != releasev1alpha1.ReleaseRunning {
		t.Errorf("it is %s before web is reached", step.Status.Phase)
	}
	report("web", true)
	if step = release.Next(in); step.Status.Phase != releasev1alpha1.ReleaseSucceeded {
		t.Errorf("it is %s when both are reached", step.Status.Phase)
	}
}
