package execute

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
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
		w.HasObject(work)
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
				w.expectContent(u, "1")
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionTrue)

				// 1. Nothing is written.
				w.brake(s.kind, s.namespace, true)
				w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionTrue)
				w.emitted("Work HandsOff: the annotation argosy.io/hands-off is set on the object in the member")
				w.set(work, manifest(s.kind, s.namespace, "2"))
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
				w.Quiet()
				w.expectContent(u, "1")
				w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkHandsOff); !strings.Contains(c.Message,
					wellknown.HandsOffAnnotation) {
					t.Errorf("the condition says %q", c.Message)
				}
				if failure := execute.FailureOf(work); failure == nil || failure.Reason != workv1alpha1.ReasonHandsOff {
					t.Errorf("the failure is %+v", failure)
				}
				w.brake(s.kind, s.namespace, false)
				w.expectContent(u, "2")
				w.conditionOf(work, workv1alpha1.WorkHandsOff, "")
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionTrue)
				w.conditionOf(work, workv1alpha1.WorkFailure, "")

				// 2. Nothing is deleted.
				w.brake(s.kind, s.namespace, true)
				w.Gone(work)
				w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				w.Quiet()
				w.expectContent(u, "2")
				if !w.HasObject(work) {
					t.Fatal("the Work has gone before its object")
				}
				w.brake(s.kind, s.namespace, false)
				w.expectContent(u, "")
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
		w.expectContent(u, "1")
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
		w.expectContent(u, "1")
		annotate("false")
		w.expectContent(u, "2")
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
		w.expectContent(u, "1")
		if got := w.m1.Object(membertest.ConfigMap, "shop", "c").GetAnnotations()[wellknown.HandsOffAnnotation]; got != "" {
			t.Errorf("the member has the annotation with %q", got)
		}
		changed := manifest(membertest.ConfigMap, "shop", "2")
		changed.SetAnnotations(u.GetAnnotations())
		w.set(work, changed)
		w.expectContent(u, "2")
	})
}

// brakeNamespace sets the annotation on a namespace of the member, or removes it, as kubectl there does.
func (w *world) brakeNamespace(name, value string) {
	w.t.Helper()
	u := namespace(name)
	if value != "" {
		u.Annotations = map[string]string{wellknown.HandsOffAnnotation: value}
	}
	w.m1.Put(u)
	w.Quiet()
}

// emitted waits for an event that contains a text.
func (w *world) emitted(text string) {
	w.t.Helper()
	w.Eventually("an event says "+text, func() string {
		events := w.Events()
		if !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, text) }) {
			return "the events are: " + strings.Join(events, "; ")
		}
		return ""
	})
}

func TestBrakeOnNamespaceStopsTheHub(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		kind              membertest.Kind
		namespace, braked string
	}{
		"of the object":             {membertest.ConfigMap, "shop", "shop"},
		"kube-system":               {membertest.ConfigMap, "shop", "kube-system"},
		"kube-system, cluster-wide": {controllertest.ClusterRole, "", "kube-system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				u := manifest(s.kind, s.namespace, "1")
				work := w.work(u)
				w.applied(work)
				unchanged := manifest(s.kind, s.namespace, "1")
				unchanged.SetName("unchanged")
				atRest := w.work(unchanged)
				w.applied(atRest)
				w.Quiet()

				// 1. A brake alone writes nothing on the hub.
				writes := len(w.m1.Writes())
				w.m1.Put(&corev1.Namespace{TypeMeta: namespace("").TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: s.braked,
					Annotations: map[string]string{wellknown.HandsOffAnnotation: "true"}}})
				if got := w.Quiet(); len(got) > 0 {
					t.Errorf("a brake in the member writes %v on the hub", got)
				}
				w.emitted("Cluster HandsOff: the annotation argosy.io/hands-off is set on the namespace " + s.braked)

				// 2. Nothing is changed, created or repaired.
				w.set(work, manifest(s.kind, s.namespace, "2"))
				w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				w.conditionOf(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
				if f := execute.FailureOf(work); f == nil || f.Reason != workv1alpha1.ReasonHandsOff ||
					!strings.Contains(f.Message, "namespace "+s.braked) {
					t.Errorf("the failure is %+v", f)
				}
				w.emitted("Work SyncFailed: the annotation argosy.io/hands-off is set on the namespace " + s.braked)
				other := manifest(s.kind, s.namespace, "1")
				other.SetName("other")
				added := w.work(other)
				w.conditionOf(added, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				w.restart()
				w.expectContent(u, "1")
				w.expectContent(other, "")

				// 3. Nothing is deleted.
				w.Gone(work)
				w.Gone(atRest)
				w.conditionOf(atRest, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
				w.emitted("Work HandsOff: the annotation argosy.io/hands-off is set on the namespace " + s.braked)
				w.Quiet()
				w.expectContent(u, "1")
				w.expectContent(unchanged, "1")
				if !w.HasObject(work) || !w.HasObject(atRest) {
					t.Fatal("a Work is gone before its object")
				}
				if got := w.m1.Writes()[writes:]; len(got) > 0 {
					t.Errorf("the hub wrote into the member: %v", got)
				}

				// 4. Without the brake, all of this is done.
				w.brakeNamespace(s.braked, "false")
				w.expectContent(other, "1")
				w.expectContent(u, "")
				w.gone(work)
				w.expectContent(unchanged, "")
				w.gone(atRest)
				w.conditionOf(added, workv1alpha1.WorkHandsOff, "")
				w.emitted("Cluster HandsOffEnded: the annotation argosy.io/hands-off is no longer set on the namespace " + s.braked)
			})
		})
	}
}

func TestBrakeOnNamespaceLeavesOthersToTheHub(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.brakeNamespace("shop", "true")
		for _, s := range []struct {
			kind      membertest.Kind
			namespace string
		}{{membertest.ConfigMap, "default"}, {controllertest.ClusterRole, ""}} {
			u := manifest(s.kind, s.namespace, "1")
			w.applied(w.work(u))
			w.expectContent(u, "1")
		}
	})
}

func TestBrakeStopsApprovalsOfKruiseRollouts(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		k := served("rollouts.kruise.io", "v1beta1", "Rollout")
		w.serve(k)
		w.m1.SeparateStatus(controllertest.Deployment, k)
		u := manifest(k, "shop", "1")
		u.SetName("once")
		u.SetAnnotations(map[string]string{wellknown.ApprovedStepsAnnotation: `{"m1": {"step": 1, "revision": "abc"}}`})
		work := w.work(u)
		w.applied(work)
		w.brakeNamespace("shop", "true")
		w.setStatus(k, map[string]any{"canaryStatus": map[string]any{"currentStepIndex": int64(1),
			"currentStepState": "StepPaused", "canaryRevision": "abc"}})
		w.conditionOf(work, workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
		state := func() string {
			s, _, _ := unstructured.NestedString(w.m1.Object(k, "shop", "once").Object, "status", "canaryStatus",
				"currentStepState")
			return s
		}
		if got := state(); got != "StepPaused" {
			t.Errorf("with the brake, the step becomes %s", got)
		}
		w.brakeNamespace("shop", "")
		w.Eventually("the step is approved", func() string {
			if got := state(); got != "StepReady" {
				return got
			}
			return ""
		})
		w.conditionOf(work, workv1alpha1.WorkHandsOff, "")
	})
}

// namespaceReads counts the requests that read all namespaces of the member, and those that read a single one.
func (w *world) namespaceReads() (all, single int) {
	for _, r := range w.m1.Requests("GET /api/v1/namespaces") {
		switch strings.Count(r, "/") {
		case 3:
			all++
		case 4:
			single++
		}
	}
	return all, single
}

func TestBrakeIsReadWithOneWatch(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		for i := range 20 {
			u := manifest(membertest.ConfigMap, "shop", "1")
			u.SetName(fmt.Sprintf("c-%d", i))
			w.applied(w.work(u))
		}
		// A list and a watch, which are tried as one request first.
		if all, single := w.namespaceReads(); all > 3 || single > 0 {
			t.Errorf("the hub reads all namespaces of the member %d times, and single ones %d times", all, single)
		}
	})
}

// answerNamespaces has the member answer lists and watches of all namespaces by answer.
func (w *world) answerNamespaces(answer http.HandlerFunc) {
	w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces" {
			return false
		}
		answer(rw, r)
		return true
	})
}

func TestHubWritesWithoutTheRightToListNamespaces(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.answerNamespaces(func(rw http.ResponseWriter, _ *http.Request) {
			status := apierrors.NewForbidden(corev1.Resource("namespaces"), "", errors.New("no rights")).Status()
			status.APIVersion, status.Kind = "v1", "Status"
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(int(status.Code))
			_ = json.NewEncoder(rw).Encode(status)
		})
		w.applied(w.work(manifest(membertest.ConfigMap, "shop", "1")))
		if _, single := w.namespaceReads(); single > 0 {
			t.Errorf("an account without the right to list namespaces reads %d one by one", single)
		}
	})
}

func TestBrakeCountsWhileNamespacesAreNotListed(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.answerNamespaces(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		w.brakeNamespace("shop", "true")
		u := manifest(membertest.ConfigMap, "shop", "1")
		w.conditionOf(w.work(u), workv1alpha1.WorkHandsOff, metav1.ConditionTrue)
		w.expectContent(u, "")
		elsewhere := manifest(membertest.ConfigMap, "default", "1")
		w.applied(w.work(elsewhere))
	})
}
