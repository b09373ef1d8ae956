package execute

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// mover is a member with a namespace that the hub made, and an object of the hub in it.
type mover struct {
	*world
	ns, content *workv1alpha1.Work
}

func newMover(t *testing.T, o Options, change ...func(*workv1alpha1.Work)) *mover {
	o.ContentsTimeout = time.Second
	w := &mover{world: newWorld(t, o)}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(membertest.Namespace.GroupVersionKind)
	u.SetName("moves")
	w.ns = w.world.work(u, change...)
	w.applied(w.ns)
	w.content = w.world.work(manifest(membertest.ConfigMap, "moves", "1"))
	w.applied(w.content)
	return w
}

// leave deletes the Work of the namespace as the hub does, or as a user does.
func (w *mover) leave(byHub bool) {
	w.t.Helper()
	if !byHub {
		w.Gone(w.ns)
		return
	}
	if err := commit.Delete(w.t.Context(), w, w.ns); err != nil {
		w.t.Fatal(err)
	}
}

func (w *mover) namespace() *unstructured.Unstructured {
	return w.m1.Object(membertest.Namespace, "", "moves")
}

// released waits until the namespace is the member's, and an event gives the reason.
func (w *mover) released(why string) {
	w.t.Helper()
	w.gone(w.ns)
	if ns := w.namespace(); ns == nil || ns.GetDeletionTimestamp() != nil ||
		ns.GetAnnotations()[wellknown.CreatedAnnotation] != "" {
		w.t.Fatalf("the namespace is %v", ns)
	}
	w.Eventually("it is reported", func() string {
		if events := w.Events(); !slices.ContainsFunc(events, func(e string) bool {
			return strings.Contains(e, eventNamespaceReleased) && strings.Contains(e, why)
		}) {
			return fmt.Sprint(events)
		}
		return ""
	})
}

func TestNamespaceLeavesAfterTheLastObjectOfTheHub(t *testing.T) {
	t.Parallel()
	for story, change := range map[string]func(*workv1alpha1.Work){
		"an object that moves ten minutes later": func(*workv1alpha1.Work) {},
		"an object whose dispatch is suspended": func(work *workv1alpha1.Work) {
			work.Spec.SuspendDispatching = new(true)
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newMover(t, Options{})
				controllertest.Change(w.Hub, w.content, change)
				w.leave(true)
				w.Advance(time.Minute)
				listed := len(w.m1.Requests("GET /api/v1/namespaces/moves/"))
				w.Advance(10 * time.Minute)
				if ns := w.namespace(); ns == nil || ns.GetDeletionTimestamp() != nil || !w.HasObject(w.ns) {
					t.Fatal("the namespace did not wait")
				}
				if n := len(w.m1.Requests("GET /api/v1/namespaces/moves/")); n > listed {
					t.Errorf("waiting for a Work listed the namespace %d times", n-listed)
				}
				w.Gone(w.content)
				w.gone(w.content)
				w.gone(w.ns)
				if w.namespace() != nil {
					t.Error("the namespace is left")
				}
			})
		})
	}
}

func TestNamespaceStaysWithWhatIsNotOfTheHub(t *testing.T) {
	t.Parallel()
	theirs := manifest(membertest.ConfigMap, "moves", "theirs")
	theirs.SetName("theirs")
	for story, tc := range map[string]struct {
		options Options
		change  func(*workv1alpha1.Work)
		byUser  bool
		// happens makes the change that follows the deletion of the namespace's Work.
		happens func(*mover)
		why     string
	}{
		"somebody creates an object while the namespace waits": {happens: func(w *mover) {
			w.Advance(time.Minute)
			w.m1.Put(theirs)
			w.Gone(w.content)
		}, why: "ConfigMap theirs"},
		"an object of the hub is preserved": {happens: func(w *mover) {
			controllertest.Change(w.Hub, w.content, func(work *workv1alpha1.Work) {
				work.Spec.PreserveResourcesOnDeletion = new(true)
			})
			w.Gone(w.content)
		}, why: "ConfigMap c"},
		"an object is an orphan": {happens: func(w *mover) {
			controllertest.Change(w.Hub, w.content, func(work *workv1alpha1.Work) { work.Finalizers = nil })
			w.Gone(w.content)
		}, why: "ConfigMap c"},
		"a kind cannot be listed": {happens: func(w *mover) {
			w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces/moves/configmaps" {
					return false
				}
				rw.WriteHeader(http.StatusForbidden)
				return true
			})
			w.Gone(w.content)
		}, why: "cannot be listed"},
		"somebody takes the namespace over between check and deletion": {happens: func(w *mover) {
			w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/namespaces/moves") {
					w.m1.Behave(nil)
					ns := w.namespace()
					annotations := ns.GetAnnotations()
					delete(annotations, wellknown.CreatedAnnotation)
					ns.SetAnnotations(annotations)
					w.m1.Put(ns)
				}
				return false
			})
			w.Gone(w.content)
		}, why: "existed before"},
		"a ManifestWork, which waits for its Works, leaves before the object": {change: func(work *workv1alpha1.Work) {
			work.Annotations = map[string]string{wellknown.ManifestWorkAnnotation: "m"}
		}, happens: func(*mover) {}, why: "ConfigMap c"},
		"a user deletes the Work of the namespace": {byUser: true, happens: func(*mover) {}, why: "ConfigMap c"},
		"the agent of a Karmada hub, which does not take Works back": {byUser: true,
			options: Options{Deletions: &Deletions{All: true}, NoBindings: true}, happens: func(*mover) {}, why: "ConfigMap c"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				change := []func(*workv1alpha1.Work){}
				if tc.change != nil {
					change = append(change, tc.change)
				}
				w := newMover(t, tc.options, change...)
				w.leave(!tc.byUser)
				tc.happens(w)
				w.released(tc.why)
			})
		})
	}
}

// The hub takes the Work back when it sends the namespace again, and the next Work adopts it.
func TestRecalledNamespaceIsAdoptedAsItIs(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newMover(t, Options{})
		uid := w.namespace().GetUID()
		w.leave(true)
		w.Advance(execute.WorksSettle)
		w.HasObject(w.ns)
		if err := commit.Recall(t.Context(), w, w.ns); err != nil {
			t.Fatal(err)
		}
		w.gone(w.ns)
		w.ns = w.world.work(w.namespaceManifest("again"), func(work *workv1alpha1.Work) {
			work.Labels = map[string]string{"work.karmada.io/permanent-id": "another"}
		})
		w.applied(w.ns)
		if ns := w.namespace(); ns.GetUID() != uid || ns.GetLabels()["tier"] != "again" ||
			ns.GetAnnotations()[wellknown.CreatedAnnotation] != "true" {
			t.Errorf("the namespace is %v", ns)
		}
	})
}

func (w *mover) namespaceManifest(tier string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "moves",
		"labels": map[string]any{"tier": tier}}}}
	u.SetGroupVersionKind(membertest.Namespace.GroupVersionKind)
	return u
}
