package execute

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// endInBackup returns a hub restored from a backup in which a Work was being deleted, by the hub's order; the member
// has an object of that name that was made since, of another template and by a Work of that permanent ID.
func endInBackup(t *testing.T, id string) (*world, *workv1alpha1.Work) {
	made := make(chan struct{})
	w := newWorld(t, Options{ReadRestore: func(ctx context.Context) (bool, error) {
		select {
		case <-made:
		case <-ctx.Done():
		}
		return true, nil
	}})
	u := manifest(membertest.ConfigMap, "shop", "old")
	u.SetAnnotations(map[string]string{workv1alpha2.TemplateUIDAnnotation: "t1"})
	work := w.work(u, func(work *workv1alpha1.Work) {
		work.Finalizers = append(work.Finalizers,
			execute.OrderedFinalizer)
	})
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		Reason:             workv1alpha1.ReasonAppliedSuccessful,
		ObservedGeneration: 1, LastTransitionTime: metav1.Now()}}
	if err := w.Status().Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	w.Gone(work)
	w.Eventually("the controller finds it being deleted when it starts", func() string {
		seen := &workv1alpha1.Work{}
		if err := w.cached.Get(t.Context(), client.ObjectKeyFromObject(work), seen); err != nil {
			return err.Error()
		}
		if seen.DeletionTimestamp == nil {
			return "it is not being deleted"
		}
		return ""
	})

	u = manifest(membertest.ConfigMap, "shop", "new")
	u.SetLabels(map[string]string{workv1alpha2.ManagedLabel: "true", workv1alpha2.WorkPermanentIDLabel: id})
	u.SetAnnotations(map[string]string{workv1alpha2.TemplateUIDAnnotation: "t2",
		workv1alpha2.WorkNamespaceAnnotation: work.Namespace, workv1alpha2.WorkNameAnnotation: work.Name})
	w.m1.Put(u)
	close(made)
	return w, work
}

func TestRestoredHubKeepsObjectsOfLaterWorks(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w, work := endInBackup(t, "later")
		w.gone(work)
		w.expectContent(manifest(membertest.ConfigMap, "shop", ""), "new")
	})
}

func TestRestoredHubKeepsObjectsOfLaterTemplates(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w, work := endInBackup(t, "id")
		w.Eventually("it says that the template is another", func() string {
			if c := w.condition(work, workv1alpha1.WorkHeldAfterRestore, metav1.ConditionTrue); !strings.Contains(c.Message,
				"another template") {
				return c.Message
			}
			return ""
		})
		if failure := execute.FailureOf(work); failure == nil || failure.Reason != workv1alpha1.ReasonRestored ||
			failure.Message != "its Work is being deleted, but it was created from another template, since the backup" {
			t.Errorf("the failure is %+v", failure)
		}
		w.expectContent(manifest(membertest.ConfigMap, "shop", ""), "new")
		controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) {
			work.Annotations = map[string]string{wellknown.AcceptRestoredAnnotation: execute.Acceptance(work)}
		})
		w.gone(work)
		w.expectContent(manifest(membertest.ConfigMap, "shop", ""), "")
	})
}

// The contents of a paused namespace are not read. A user who accepts the restore while its deletion is decided deletes
// it with the next decision, which reads them.
func TestARestoreAcceptedDuringADeletionKeepsContents(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuietWorld(t, clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
		hub, err := client.NewWithWatch(w.Config, client.Options{Scheme: w.Scheme(), Mapper: w.RESTMapper()})
		if err != nil {
			t.Fatal(err)
		}
		var r *reconciler
		reads, last := 0, 4 // The decision lies between the third and the fourth read of the cluster.
		reader := interceptor.NewClient(hub, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				opts ...client.GetOption) error {
				if _, ok := obj.(*clusterv1alpha1.Cluster); ok {
					if reads++; reads == last {
						r.restore.pending.Store(false)
					}
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
		r = w.newReconciler(reader, clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
		r.restore.pending.Store(true)
		w.r = r

		team := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": "team",
				"annotations": map[string]any{workv1alpha2.TemplateUIDAnnotation: "t1"}}}}
		work := w.work(team, func(work *workv1alpha1.Work) {
			work.Finalizers = append(work.Finalizers, execute.OrderedFinalizer)
		})
		work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha1.ReasonAppliedSuccessful, ObservedGeneration: 1, LastTransitionTime: metav1.Now()}}
		if err := w.Status().Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		held := team.DeepCopy()
		execute.Mark(held, work)
		held.SetAnnotations(map[string]string{workv1alpha2.TemplateUIDAnnotation: "t2",
			workv1alpha2.WorkNamespaceAnnotation: work.Namespace, workv1alpha2.WorkNameAnnotation: work.Name})
		w.m1.Put(held)
		w.m1.Put(manifest(membertest.ConfigMap, "team", "a tenant's"))
		w.Gone(work)
		w.look(work)
		w.condition(work, workv1alpha1.WorkHeldAfterRestore, metav1.ConditionTrue)
		if r.restore.pending.Load() {
			t.Fatal("the restore was not accepted during the decision")
		}
		if w.m1.Object(membertest.Namespace, "", "team") == nil {
			t.Error("the namespace is deleted, and its contents were not read")
		}
	})
}

// The objects in a member that does not answer are unknown, so their Works count as unchecked.
func TestUncheckedWorksAreCountedAfterARestore(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		made := make(chan struct{})
		var mu sync.Mutex
		var messages []map[string]int
		w := newWorld(t, Options{RestoreCheck: 10 * time.Millisecond,
			ReadRestore: func(ctx context.Context) (bool, error) {
				select {
				case <-made:
				case <-ctx.Done():
				}
				return true, nil
			},
			PublishUnchecked: func(_ context.Context, unseen map[string]int) error {
				mu.Lock()
				defer mu.Unlock()
				messages = append(messages, unseen)
				return nil
			}})
		sent := w.work(manifest(membertest.ConfigMap, "shop", "old"))
		sent.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason:             workv1alpha1.ReasonAppliedSuccessful,
			ObservedGeneration: 1, LastTransitionTime: metav1.Now()}}
		if err := w.Status().Update(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		stray := sent.DeepCopy() // of a cluster that is not in the fleet
		stray.ResourceVersion, stray.UID, stray.Namespace = "", "", names.ExecutionSpace("left")
		w.Make(namespace(stray.Namespace))
		w.Make(stray)
		w.Eventually("the controller finds both when it starts", func() string {
			for _, work := range []*workv1alpha1.Work{sent, stray} {
				seen := &workv1alpha1.Work{}
				if err := w.cached.Get(t.Context(), client.ObjectKeyFromObject(work), seen); err != nil {
					return err.Error()
				}
				if work == sent && len(seen.Status.Conditions) == 0 {
					return "it was never applied"
				}
			}
			return ""
		})
		w.m1.Down(true)
		close(made)
		wantText := func(want ...map[string]int) func() string {
			return func() string {
				mu.Lock()
				defer mu.Unlock()
				if !reflect.DeepEqual(messages, want) {
					return fmt.Sprint(messages)
				}
				return ""
			}
		}
		w.Eventually("the Work counts while its cluster does not answer", wantText(map[string]int{"m1": 1}))
		w.m1.Down(false)
		w.Eventually("it counts no more when it is held, and no event is recorded twice",
			wantText(map[string]int{"m1": 1}, map[string]int{}))
		w.condition(sent, workv1alpha1.WorkHeldAfterRestore, metav1.ConditionTrue)
	})
}

// A large fleet always has such Works. They must not prevent that a user accepts the restore as a whole.
func TestUnappliableWorkIsChecked(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		kind membertest.Kind
		is   func(w *world, u *unstructured.Unstructured)
	}{
		"its object is somebody else's by now": {membertest.ConfigMap,
			func(w *world, u *unstructured.Unstructured) { w.m1.Put(u) }},
		"its kind is not served any more": {membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com",
			Version: "v1", Kind: "Gone"}, Plural: "gones", Namespaced: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				made := make(chan struct{})
				var messages atomic.Pointer[map[string]int]
				w := newWorld(t, Options{RestoreCheck: 10 * time.Millisecond,
					ReadRestore: func(ctx context.Context) (bool, error) {
						select {
						case <-made:
						case <-ctx.Done():
						}
						return true, nil
					},
					PublishUnchecked: func(_ context.Context, unseen map[string]int) error { messages.Store(&unseen); return nil }})
				u := manifest(story.kind, "shop", "old")
				if story.is != nil {
					story.is(w, u)
				}
				sent := w.work(u)
				sent.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
					Reason:             workv1alpha1.ReasonAppliedSuccessful,
					ObservedGeneration: 1, LastTransitionTime: metav1.Now()}}
				if err := w.Status().Update(t.Context(), sent); err != nil {
					t.Fatal(err)
				}
				w.Eventually("the controller knows that it was applied", func() string {
					seen := &workv1alpha1.Work{}
					if err := w.cached.Get(t.Context(), client.ObjectKeyFromObject(sent), seen); err != nil {
						return err.Error()
					}
					if len(seen.Status.Conditions) == 0 {
						return "it was never applied"
					}
					return ""
				})
				close(made)
				w.Eventually("nothing is left to be looked at", func() string {
					if unseen := messages.Load(); unseen == nil || len(*unseen) > 0 {
						return fmt.Sprint(unseen)
					}
					return ""
				})
			})
		})
	}
}
