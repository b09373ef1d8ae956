package dispatch

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
)

func TestBindingIsKeptWhileCacheLacksItsWork(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.stop()
		c, err := client.NewWithWatch(w.Config, client.Options{Scheme: w.Scheme(), Mapper: w.RESTMapper()})
		if err != nil {
			w.t.Fatal(err)
		}
		cache := interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				opts ...client.GetOption) error {
				if _, ok := obj.(*workv1alpha1.Work); ok {
					return apierrors.NewNotFound(workv1alpha1.Resource("works"), key.Name)
				}
				return c.Get(ctx, key, obj, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*workv1alpha1.WorkList); ok {
					return nil
				}
				return c.List(ctx, list, opts...)
			},
		})
		clock := clocktesting.NewFakePassiveClock(time.Now())
		r := &reconciler{Options: w.options, client: cache, events: commit.Events{EventRecorder: record.NewFakeRecorder(10)}}
		r.pending.Life, r.pending.Clock = commit.PendingWriteLife, clock
		r.Clock = clock
		look := func() reconcile.Result {
			w.t.Helper()
			result, err := r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: w.key()})
			if err != nil {
				w.t.Fatal(err)
			}
			return result
		}

		b := w.bind("id", "m1")
		look()
		if w.sent() != "m1:1" {
			w.t.Fatalf("works are %q", w.sent())
		}
		w.Gone(b)
		if look().RequeueAfter == 0 || !w.HasObject(b) {
			w.t.Error("the binding went without its work")
		}
		clock.SetTime(clock.Now().Add(commit.PendingWriteLife)) // whatever the cache lacks now is not there
		if look(); w.HasObject(b) {
			w.t.Error("the binding is held for ever by a work that is not there")
		}
		if look(); r.pending.Len() != 0 {
			w.t.Errorf("%d pending writes of a deleted binding are kept", r.pending.Len())
		}
	})
}
