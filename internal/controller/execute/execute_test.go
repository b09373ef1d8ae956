package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// world is a hub that carries Works out in one member, m1.
type world struct {
	*controllertest.Hub
	t       *testing.T
	m1      *membertest.Server
	members *member.Members
	// cached is the reader of the controller.
	cached client.Reader
	stop   func()
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{Hub: controllertest.New(t), t: t}
	w.m1 = w.Join("m1", controllertest.ClusterRole, controllertest.Deployment)
	w.m1.SeparateStatus(controllertest.Deployment)
	w.m1.Put(namespace("shop"))
	o.Workers = 2
	if o.Interpreter == nil {
		o.Interpreter = interpret.New(builtin.Tier())
	}
	w.stop = w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		w.cached = mgr.GetClient()
		w.members = member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Dial: membertest.Dial})
		o.Members = w.members
		if err := mgr.Add(o.Members); err != nil {
			return err
		}
		return Setup(ctx, mgr, o)
	})
	return w
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// scopes are a manifest of each scope.
var scopes = map[string]struct {
	kind      membertest.Kind
	namespace string
}{
	"namespaced":     {membertest.ConfigMap, "shop"},
	"cluster-scoped": {controllertest.ClusterRole, ""},
}

// manifest returns an object that says value.
func manifest(k membertest.Kind, namespace, value string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": value}}}
	u.SetGroupVersionKind(k.GroupVersionKind)
	u.SetNamespace(namespace)
	u.SetName("c")
	return u
}

func raw(t *testing.T, u *unstructured.Unstructured) []workv1alpha1.Manifest {
	t.Helper()
	text, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	return []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: text}}}
}

// work makes the Work of a manifest for m1.
func (w *world) work(u *unstructured.Unstructured, change ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	w.t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.ExecutionSpace("m1"), Name: names.Work(u.GetKind(), u.GetName(), u.GetNamespace()),
		Finalizers: []string{workv1alpha2.ExecutionFinalizer},
		Labels:     map[string]string{workv1alpha2.WorkPermanentIDLabel: "id"},
	}}
	work.Spec.Workload.Manifests = raw(w.t, u)
	for _, c := range change {
		c(work)
	}
	w.Make(work)
	return work
}

func (w *world) set(work *workv1alpha1.Work, u *unstructured.Unstructured) {
	w.t.Helper()
	controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) { work.Spec.Workload.Manifests = raw(w.t, u) })
}

// holds waits until m1 holds an object that says value; empty is no object.
func (w *world) expectContent(u *unstructured.Unstructured, value string) {
	w.t.Helper()
	w.Eventually("m1 holds "+value, func() string {
		obj := w.m1.Object(membertest.Kind{GroupVersionKind: u.GroupVersionKind(), Plural: plural(u),
			Namespaced: u.GetNamespace() != ""}, u.GetNamespace(), u.GetName())
		got := ""
		if obj != nil {
			got, _, _ = unstructured.NestedString(obj.Object, "data", "value")
		}
		if got != value {
			return fmt.Sprintf("it holds %q", got)
		}
		return ""
	})
}

func plural(u *unstructured.Unstructured) string { return strings.ToLower(u.GetKind()) + "s" }

// condition waits until the Work has a condition of that status, and returns it.
func (w *world) condition(work *workv1alpha1.Work, kind string, status metav1.ConditionStatus) metav1.Condition {
	w.t.Helper()
	var found metav1.Condition
	w.Eventually(fmt.Sprintf("%s is %s", kind, status), func() string {
		if !w.HasObject(work) {
			return "the work is gone"
		}
		c := meta.FindStatusCondition(work.Status.Conditions, kind)
		if c == nil || c.Status != status {
			return fmt.Sprintf("conditions are %+v", work.Status.Conditions)
		}
		found = *c
		return ""
	})
	return found
}

// applied waits until what the Work says now was applied.
func (w *world) applied(work *workv1alpha1.Work) {
	w.t.Helper()
	w.Eventually("it is applied", func() string {
		if !w.HasObject(work) || !execute.Applied(work) {
			return fmt.Sprintf("generation %d, conditions %+v", work.Generation, work.Status.Conditions)
		}
		return ""
	})
}

func (w *world) gone(work *workv1alpha1.Work) {
	w.t.Helper()
	w.Eventually("the work is gone", func() string {
		if w.HasObject(work) {
			return fmt.Sprintf("it is there with finalizers %v", work.Finalizers)
		}
		return ""
	})
}

// attempts returns the requests by which m1 was asked to create an object of the kind.
func (w *world) attempts(k membertest.Kind) int {
	path := "/api/v1"
	if k.Group != "" {
		path = "/apis/" + k.Group + "/" + k.Version
	}
	return len(slices.DeleteFunc(w.m1.Requests("POST "+path), func(r string) bool {
		return !strings.HasSuffix(r, "/"+k.Plural)
	}))
}

// refuses makes m1 reject the creation of objects of the kind until the returned function is called.
func (w *world) refuses(k membertest.Kind, with *apierrors.StatusError) (end func()) {
	var over atomic.Bool
	w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
		if over.Load() || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/"+k.Plural) {
			return false
		}
		status := with.Status()
		status.APIVersion, status.Kind = "v1", "Status"
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(int(status.Code))
		_ = json.NewEncoder(rw).Encode(status)
		return true
	})
	return func() { over.Store(true) }
}

var (
	forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", fmt.Errorf("a webhook says no"))
	invalid   = apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "c", nil)
)

func TestWorkCostsOneCreationAndOneStatus(t *testing.T) {
	t.Parallel()
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.Quiet()
				u := manifest(s.kind, s.namespace, "1")
				work := w.work(u)
				w.expectContent(u, "1")
				w.applied(work)

				if got := w.Quiet(); len(got) != 2 || !strings.HasPrefix(got[1], "update works/status") {
					t.Errorf("the hub was written to: %v, want the work and one status", got)
				}
				want := []string{"create " + s.kind.Plural + " " + strings.TrimPrefix(s.namespace+"/c", "/")}
				if got := w.m1.Writes(); !slices.Equal(got, want) {
					t.Errorf("the member was written to: %v, want %v", got, want)
				}
				if len(work.Status.ManifestStatuses) != 1 ||
					work.Status.ManifestStatuses[0].Health != workv1alpha1.ResourceHealthy {
					t.Errorf("the status is %+v, want one healthy manifest", work.Status.ManifestStatuses)
				}
				if got := w.Events(); len(got) != 0 {
					t.Errorf("reported: %v; that all goes well is no news", got)
				}
			})
		})
	}
}

func TestChangesAreAppliedAndDriftIsRepaired(t *testing.T) {
	t.Parallel()
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				work := w.work(manifest(s.kind, s.namespace, "1"))
				w.applied(work)
				u := manifest(s.kind, s.namespace, "2")
				w.set(work, u)
				w.expectContent(u, "2")
				w.applied(work)

				other := w.m1.Object(s.kind, s.namespace, "c")
				_ = unstructured.SetNestedField(other.Object, "drift", "data", "value")
				w.m1.Put(other)
				w.expectContent(u, "2")

				w.m1.Remove(s.kind, s.namespace, "c")
				w.expectContent(u, "2")
			})
		})
	}
}

func TestWorkDeletionDeletesItsObject(t *testing.T) {
	t.Parallel()
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				u := manifest(s.kind, s.namespace, "1")
				work := w.work(u)
				w.applied(work)
				w.Gone(work)
				w.gone(work)
				w.expectContent(u, "")
			})
		})
	}
}

func TestObjectMissingFromTheCacheIsDeleted(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		first := manifest(membertest.ConfigMap, "shop", "1")
		first.SetName("first")
		w.applied(w.work(first)) // from here on the kind is watched
		w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("watch") == "" || !strings.HasSuffix(r.URL.Path, "/configmaps") {
				return false
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusOK)
			rw.(http.Flusher).Flush()
			<-r.Context().Done() // an open watch that shows nothing
			return true
		})
		w.m1.BreakWatches()
		w.Eventually("the silent watch is open", func() string {
			if n := len(w.m1.Requests("GET /api/v1/configmaps")); n < 3 {
				return fmt.Sprintf("%d requests", n)
			}
			return ""
		})

		u := manifest(membertest.ConfigMap, "shop", "1")
		work := w.work(u)
		w.applied(work)
		w.Gone(work)
		w.gone(work)
		w.expectContent(u, "")
	})
}

func TestRefusalIsReportedOnceAndRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.refuses(membertest.ConfigMap, forbidden)
		since := time.Now()
		work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
		c := w.condition(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
		if want := `Failed to apply all manifests (0/1): create ConfigMap shop/c in cluster "m1": configmaps "c" is forbidden: a webhook says no`; c.Message != want || c.Reason != workv1alpha1.ReasonAppliedFailed {
			t.Errorf("the condition says %q (%s), want %q", c.Message, c.Reason, want)
		}
		w.Eventually("it is tried again, and reported once", func() string {
			if n, messages := w.attempts(membertest.ConfigMap), w.Events(); n < 5 || len(messages) != 1 {
				return fmt.Sprintf("tried %d times, reported: %v", n, messages)
			}
			return ""
		})
		// At 0, 100, 300, 700 and 1500 ms, or later; an event of the start may add one.
		if took := time.Since(since); took < 500*time.Millisecond {
			t.Errorf("tried five times in %s", took)
		}
		c = w.condition(work, workv1alpha1.WorkDispatching, metav1.ConditionTrue)
		if c.Reason != workv1alpha1.ReasonDispatching {
			t.Errorf("Dispatching is %+v", c)
		}
	})
}

func TestFailureIsRetriedAtOnceAfterARelevantChange(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(w *world, work *workv1alpha1.Work){
		"the work changes": func(w *world, work *workv1alpha1.Work) {
			w.set(work, manifest(membertest.ConfigMap, "shop", "2"))
		},
		"the member serves other kinds": func(w *world, _ *workv1alpha1.Work) {
			w.ClusterStatus("m1", func(status *clusterv1alpha1.ClusterStatus) {
				status.APIEnablements[0].Resources = append(status.APIEnablements[0].Resources,
					clusterv1alpha1.APIResource{Name: "others", Kind: "Other"})
			})
		},
		"the cluster becomes ready": func(w *world, _ *workv1alpha1.Work) {
			w.Ready("m1", metav1.ConditionFalse, "ClusterNotReachable")
			w.Ready("m1", metav1.ConditionTrue, "ClusterReady")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{FirstRetry: time.Hour}) // by itself it is not tried again
				end := w.refuses(membertest.ConfigMap, invalid)
				work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
				w.condition(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
				end()
				mend(w, work)
				w.applied(work)
				w.Eventually("the recovery is reported", func() string {
					got := w.Events()
					if !slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, workv1alpha2.EventSyncSucceed) }) {
						return fmt.Sprintf("reported: %v", got)
					}
					return ""
				})
			})
		})
	}
}

func TestNewKindOfTheMemberIsApplied(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		later := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "demo.io", Version: "v1", Kind: "Thing"},
			Plural: "things", Namespaced: true}
		u := manifest(later, "shop", "1")
		work := w.work(u)
		c := w.condition(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
		if !strings.Contains(c.Message, `cluster "m1" does not serve the kind Thing of demo.io/v1`) {
			t.Errorf("the condition says %q", c.Message)
		}
		w.m1.Serve(later)
		m, err := w.members.Get("m1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Discover(t.Context()); err != nil { // as who collects the status does
			t.Fatal(err)
		}
		w.ClusterStatus("m1", func(status *clusterv1alpha1.ClusterStatus) {
			status.APIEnablements = append(status.APIEnablements, controllertest.Serves(later)...)
		})
		w.expectContent(u, "1")
		w.applied(work)
	})
}

func TestWorkOfAMissingKindCanBeDeleted(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		unserved := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "demo.io", Version: "v1", Kind: "Thing"},
			Plural: "things", Namespaced: true}
		for name, work := range map[string]*workv1alpha1.Work{
			"a kind that is not served": w.work(manifest(unserved, "shop", "1")),
			"no manifest": w.work(manifest(membertest.ConfigMap, "shop", "1"), func(w *workv1alpha1.Work) {
				w.Spec.Workload.Manifests = nil
			}),
		} {
			t.Log(name)
			w.condition(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
			w.Gone(work)
			w.gone(work)
		}
	})
}

func TestDisconnectedMemberCatchesUp(t *testing.T) {
	t.Parallel()
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				before := manifest(s.kind, s.namespace, "1")
				stays := w.work(before)
				w.applied(stays)
				w.Ready("m1", metav1.ConditionFalse, "ClusterNotReachable")
				w.Quiet()

				u := manifest(s.kind, s.namespace, "1")
				u.SetName("other")
				work := w.work(u)
				c := w.condition(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
				if !strings.Contains(c.Message, `(0/1): cluster "m1" is not ready (ClusterNotReachable`) {
					t.Errorf("the condition says %q", c.Message)
				}
				requests := len(w.m1.Requests("POST"))
				w.Advance(300 * time.Millisecond)
				if now := len(w.m1.Requests("POST")); now != requests {
					t.Errorf("a member that is not ready was asked %d times", now-requests)
				}
				if w.HasObject(stays); !execute.Applied(stays) {
					t.Errorf("what was applied before it went is said not to be: %+v", stays.Status.Conditions)
				}

				w.Ready("m1", metav1.ConditionTrue, "ClusterReady")
				w.applied(work)
			})
		})
	}
}

func TestFailuresInSilenceAreRetriedOnAnswer(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{FirstRetry: time.Hour}) // by itself it is not tried again
		w.applied(w.work(manifest(controllertest.ClusterRole, "", "1")))
		w.m1.Down(true)
		work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
		w.condition(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
		w.m1.Down(false)
		m, err := w.members.Get("m1")
		if err != nil {
			t.Fatal(err)
		}
		if p := m.Probe(t.Context()); p.Code != http.StatusOK { // as who collects the status does
			t.Fatalf("the member answers %+v", p)
		}
		w.applied(work)
	})
}

// The agent of a cluster in Pull mode carries out its Works, and the hub those of one that is back in Push mode.
func TestHubActsAgainWhenAClusterLeavesPullMode(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.applied(w.work(manifest(controllertest.ClusterRole, "", "1")))
		change := func(mode clusterv1alpha1.ClusterSyncMode) {
			t.Helper()
			controllertest.Change(w.Hub, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}},
				func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = mode })
		}
		change(clusterv1alpha1.Pull)
		u := manifest(membertest.ConfigMap, "shop", "1")
		work := w.work(u)
		w.Advance(time.Minute)
		if w.m1.Object(membertest.ConfigMap, "shop", u.GetName()) != nil {
			t.Error("the hub acted in a cluster in Pull mode")
		}
		change(clusterv1alpha1.Push)
		w.applied(work)
	})
}

func TestSuspensionStopsAppliesAndIsReported(t *testing.T) {
	t.Parallel()
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				work := w.work(manifest(s.kind, s.namespace, "1"))
				w.applied(work)

				u := manifest(s.kind, s.namespace, "2")
				controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) {
					work.Spec.Workload.Manifests, work.Spec.SuspendDispatching = raw(t, u), new(true)
				})
				c := w.condition(work, workv1alpha1.WorkDispatching, metav1.ConditionFalse)
				if c.Reason != workv1alpha1.ReasonSuspendDispatching || c.Message != workv1alpha1.MessageSuspended {
					t.Errorf("Dispatching says %+v", c)
				}
				w.Quiet()
				w.expectContent(u, "1")

				controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) { work.Spec.SuspendDispatching = nil })
				w.expectContent(u, "2")
				w.applied(work)
				c = w.condition(work, workv1alpha1.WorkDispatching, metav1.ConditionTrue)
				if c.Reason != workv1alpha1.ReasonDispatching || c.Message != workv1alpha1.MessageDispatched {
					t.Errorf("Dispatching says %+v", c)
				}

				controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) { work.Spec.SuspendDispatching = new(true) })
				w.Gone(work)
				w.gone(work)
				w.expectContent(u, "")
			})
		})
	}
}

func TestForeignObjectIsNeitherChangedNorReported(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		theirs := manifest(membertest.ConfigMap, "shop", "theirs")
		w.m1.Put(theirs)
		work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
		c := w.condition(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
		if want := "Failed to apply all manifests (0/1): resource(kind=ConfigMap, shop/c) already exists in the cluster m1 and the work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource"; c.Message != want {
			t.Errorf("the condition says\n%s, want\n%s", c.Message, want)
		}
		if len(work.Status.ManifestStatuses) != 0 {
			t.Errorf("the status of another's object is reported: %+v", work.Status.ManifestStatuses)
		}
		w.expectContent(theirs, "theirs")

		controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) {
			work.Annotations = map[string]string{
				workv1alpha2.ConflictResolutionAnnotation: workv1alpha2.ConflictResolutionOverwrite}
		})
		w.expectContent(theirs, "1")
		w.applied(work)
	})
}

func TestWorkWaitsQuietlyForItsNamespace(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ns := &unstructured.Unstructured{}
		ns.SetGroupVersionKind(membertest.Namespace.GroupVersionKind)
		ns.SetName("fresh")
		// The namespace's work is there, and held up.
		suspend := func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) }
		space := w.work(ns, suspend)
		u := manifest(membertest.ConfigMap, "fresh", "1")
		work := w.work(u)
		w.Eventually("it was tried", func() string {
			if w.attempts(membertest.ConfigMap) == 0 {
				return "not yet"
			}
			return ""
		})
		w.Advance(200 * time.Millisecond)
		if w.HasObject(work); len(work.Status.Conditions) != 0 {
			t.Errorf("a work whose namespace is on its way says %+v", work.Status.Conditions)
		}
		if n := w.attempts(membertest.ConfigMap); n > 2 {
			t.Errorf("it was tried %d times in vain", n)
		}

		controllertest.Change(w.Hub, space, func(work *workv1alpha1.Work) { work.Spec.SuspendDispatching = nil })
		w.applied(work)
	})
}

func TestObjectIsRecreatedWithItsNamespace(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ns := &unstructured.Unstructured{}
		ns.SetGroupVersionKind(membertest.Namespace.GroupVersionKind)
		ns.SetName("fresh")
		w.applied(w.work(ns))
		work := w.work(manifest(controllertest.Deployment, "fresh", "1"))
		w.applied(work)
		if len(work.Status.ManifestStatuses) != 1 {
			t.Fatalf("the status is %+v", work.Status)
		}

		// Somebody in the member deletes the namespace, and it takes its time.
		going := w.m1.Object(membertest.Namespace, "", "fresh")
		going.SetFinalizers([]string{"kubernetes"})
		now := metav1.Now()
		going.SetDeletionTimestamp(&now)
		w.m1.Put(going)
		w.m1.Remove(controllertest.Deployment, "fresh", "c")
		c := w.condition(work, workv1alpha1.WorkApplied, metav1.ConditionFalse)
		if !strings.Contains(c.Message, "because it is being terminated") {
			t.Errorf("the condition says %q", c.Message)
		}
		if len(work.Status.ManifestStatuses) != 0 {
			t.Errorf("the status of an object that is gone stays: %+v", work.Status.ManifestStatuses)
		}

		w.m1.Remove(membertest.Namespace, "", "fresh")
		w.applied(work)
	})
}

func TestRemovedMarksAreRestored(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		u := manifest(membertest.ConfigMap, "shop", "1")
		w.applied(w.work(u))
		for name, strip := range map[string]func(*unstructured.Unstructured){
			"the annotations": func(u *unstructured.Unstructured) { u.SetAnnotations(nil) },
			"the label": func(u *unstructured.Unstructured) {
				labels := u.GetLabels()
				delete(labels, workv1alpha2.ManagedLabel)
				u.SetLabels(labels)
			},
		} {
			t.Log(name)
			obj := w.m1.Object(membertest.ConfigMap, "shop", "c")
			strip(obj)
			w.m1.Put(obj)
			w.Eventually("the marks are back", func() string {
				obj := w.m1.Object(membertest.ConfigMap, "shop", "c")
				if obj.GetLabels()[workv1alpha2.ManagedLabel] != "true" ||
					obj.GetAnnotations()[workv1alpha2.WorkNameAnnotation] == "" {
					return fmt.Sprintf("labels %v, annotations %v", obj.GetLabels(), obj.GetAnnotations())
				}
				return ""
			})
		}
	})
}

func TestWorksOfAMissingClusterCanBeDeleted(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		before := w.work(manifest(membertest.ConfigMap, "shop", "1"))
		w.applied(before)
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		w.m1.Down(true)
		w.Gone(before) // cannot be asked, so it stays
		w.Gone(cluster)
		w.gone(before)

		after := w.work(manifest(controllertest.ClusterRole, "", "1"))
		w.Gone(after)
		w.gone(after)
	})
}

func TestWorksOfAnUnreachableLeavingClusterCanBeDeleted(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
		w.applied(work)
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		controllertest.Change(w.Hub, cluster,
			func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{workv1alpha2.ClusterFinalizer} })
		w.Ready("m1", metav1.ConditionFalse, "ClusterNotReachable")
		w.Quiet() // the hub's caches of clusters and of works are two
		w.Gone(work)
		w.Quiet()
		if !w.HasObject(work) {
			t.Fatal("a work of a cluster that may come back went without its object")
		}
		w.Gone(cluster)
		w.gone(work)
	})
}

func TestProgressIsDelayedAndHealthIsNot(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{StatusWindow: time.Hour})
		u := manifest(controllertest.Deployment, "shop", "1")
		_ = unstructured.SetNestedField(u.Object, int64(5), "spec", "replicas")
		work := w.work(u)
		w.expectContent(u, "1")
		w.Quiet()

		status := func(ready int64) {
			obj := w.m1.Object(controllertest.Deployment, "shop", "c")
			obj.Object["status"] = map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": int64(5),
				"updatedReplicas": int64(5),
				"readyReplicas":   ready, "availableReplicas": ready}
			w.m1.Put(obj)
		}
		gathered := func(doing string) {
			t.Helper()
			for ready := range int64(5) {
				status(ready)
			}
			if got := w.Quiet(); len(got) > 0 {
				t.Errorf("%s was written as %v before the window was over", doing, got)
			}
		}
		becomes := func(health workv1alpha1.ResourceHealth) {
			t.Helper()
			w.Eventually("it is "+string(health), func() string {
				if w.HasObject(work); execute.HealthOf(work) != health {
					return fmt.Sprintf("it is %q", execute.HealthOf(work))
				}
				return ""
			})
			w.Quiet()
		}
		gathered("that it has come and is on its way")
		status(5) // which does not wait for the window
		becomes(workv1alpha1.ResourceHealthy)
		if again := w.m1.Requests("PATCH /apis/apps/"); len(again) > 0 {
			t.Errorf("while that was not told the object was written again: %v", again)
		}
		status(0)
		becomes(workv1alpha1.ResourceUnknown)
		gathered("counters on their way")
	})
}

func TestARestartWritesNothing(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
		w.applied(work)
		w.Quiet()
		w.stop()
		writes := len(w.m1.Writes())

		w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
			members := member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Dial: membertest.Dial})
			if err := mgr.Add(members); err != nil {
				return err
			}
			return Setup(ctx, mgr, Options{Members: members, Interpreter: interpret.New(builtin.Tier()), Workers: 2})
		})
		if got := w.Quiet(); len(got) != 0 {
			t.Errorf("a restart wrote %v", got)
		}
		if got := w.m1.Writes()[writes:]; len(got) != 0 {
			t.Errorf("a restart wrote to the member: %v", got)
		}
		// And it looks at them: a change in the member is seen.
		other := w.m1.Object(membertest.ConfigMap, "shop", "c")
		_ = unstructured.SetNestedField(other.Object, "drift", "data", "value")
		w.m1.Put(other)
		w.expectContent(manifest(membertest.ConfigMap, "shop", "1"), "1")
	})
}
