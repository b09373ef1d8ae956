package execute

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member/membertest"
)

// brake sets or removes the annotation in the member, as kubectl there does.
func (w *world) brake(k membertest.Kind, namespace string, on bool) {
	w.t.Helper()
	u := w.m1.Object(k, namespace, "c")
	annotations := u.GetAnnotations()
	if on {
		annotations[wellknown.HandsOffAnnotation] = "true"
	} else {
		delete(annotations, wellknown.HandsOffAnnotation)
	}
	u.SetAnnotations(annotations)
	w.m1.Put(u)
	w.Quiet()
}

// conditionOf waits for the status of a condition of a Work; "" is none.
func (w *world) conditionOf(work *workv1alpha1.Work, kind string, want metav1.ConditionStatus) {
	w.t.Helper()
	w.Eventually(kind+" is "+string(want), func() string {
		w.Has(work)
		c := meta.FindStatusCondition(work.Status.Conditions, kind)
		switch {
		case c == nil && want == "", c != nil && c.Status == want:
			return ""
		case c == nil:
			return "there is none"
		}
		return string(c.Status) + ": " + c.Message
	})
}

func TestHandsOffInMemberStopsTheHub(t *testing.T) {
	t.Parallel()
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				u := manifest(s.kind, s.namespace, "1")
				work := w.work(u)
				w.holds(u, "1")
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionTrue)

				// 1. Nothing is written.
				w.brake(s.kind, s.namespace, true)
				w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionTrue)
				w.set(work, manifest(s.kind, s.namespace, "2"))
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
				w.Quiet()
				w.holds(u, "1")
				w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkHandsOff); !strings.Contains(c.Message,
					wellknown.HandsOffAnnotation) {
					t.Errorf("the condition says %q", c.Message)
				}
				if failure := execute.FailureOf(work); failure == nil || failure.Reason != workv1alpha1.ReasonHandsOff {
					t.Errorf("the failure is %+v", failure)
				}
				w.brake(s.kind, s.namespace, false)
				w.holds(u, "2")
				w.conditionOf(work, workv1alpha1.WorkHandsOff, "")
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionTrue)
				w.conditionOf(work, workv1alpha1.WorkFailure, "")

				// 2. Nothing is deleted.
				w.brake(s.kind, s.namespace, true)
				w.Gone(work)
				w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				w.Quiet()
				w.holds(u, "2")
				if !w.Has(work) {
					t.Fatal("the Work has gone before its object")
				}
				w.brake(s.kind, s.namespace, false)
				w.holds(u, "")
			})
		})
	}
}

func TestHandsOffOnWorkStopsTheHub(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		u := manifest(membertest.ConfigMap, "shop", "1")
		work := w.work(u)
		w.holds(u, "1")
		annotate := func(value string) {
			controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) {
				work.Annotations = map[string]string{wellknown.HandsOffAnnotation: value}
			})
		}
		annotate("true")
		w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
		w.set(work, manifest(membertest.ConfigMap, "shop", "2"))
		w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
		w.Quiet()
		w.holds(u, "1")
		annotate("false")
		w.holds(u, "2")
		w.conditionOf(work, workv1alpha1.WorkHandsOff, "")
	})
}

// A template that carries the annotation would else make an object that no policy changes or removes.
func TestTemplateCannotSetHandsOff(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		u := manifest(membertest.ConfigMap, "shop", "1")
		u.SetAnnotations(map[string]string{wellknown.HandsOffAnnotation: "true"})
		work := w.work(u, func(work *workv1alpha1.Work) { work.Finalizers = []string{workv1alpha2.ExecutionFinalizer} })
		w.holds(u, "1")
		if got := w.m1.Object(membertest.ConfigMap, "shop", "c").GetAnnotations()[wellknown.HandsOffAnnotation]; got != "" {
			t.Errorf("the member has the annotation with %q", got)
		}
		changed := manifest(membertest.ConfigMap, "shop", "2")
		changed.SetAnnotations(u.GetAnnotations())
		w.set(work, changed)
		w.holds(u, "2")
	})
}
