package failover

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// interrupted is a client that calls during when clusters are listed.
type interrupted struct {
	client.Client
	during func()
}

func (c interrupted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if _, is := list.(*clusterv1alpha1.ClusterList); is {
		c.during()
	}
	return err
}

// A plan that read the fleet before room appeared does not know of the room, whether something waits for it or not.
func TestRoomThatAppearsWhileAPlanIsMadeCausesAnother(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		h.Join("m1")
		room := int64(1)
		appears := func() {
			room++
			h.ClusterStatus("m1", func(status *clusterv1alpha1.ClusterStatus) {
				status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
					corev1.ResourceCPU: *resource.NewQuantity(room, resource.DecimalSI)}}
			})
		}
		var r *reconciler
		h.Run(func(ctx context.Context, mgr ctrl.Manager) (err error) {
			fleet, err := capacity.NewFleet(ctx, mgr.GetCache())
			r = newReconciler(interrupted{mgr.GetClient(), appears}, Options{Options: failover.Defaults, Fleet: fleet})
			r.events = commit.Recorder(mgr, "failover-controller")
			return err
		})
		if err := r.Fleet.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		if err := (changes{r}).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		planned := func() bool {
			if q.Len() == 0 {
				return false
			}
			request, _ := q.Get()
			q.Done(request)
			return true
		}
		if !planned() {
			t.Fatal("there is no first plan")
		}
		for _, s := range []struct {
			when string
			room func()
			want bool
		}{
			{"before a plan", appears, false},
			{"while its input is read", func() {
				if _, err := r.Reconcile(t.Context(), plan); err != nil {
					t.Fatal(err)
				}
			}, true},
			{"after it, while nothing waits for room", appears, false},
		} {
			if s.room(); planned() != s.want {
				t.Errorf("room appears %s: another plan follows: %t, want %t", s.when, !s.want, s.want)
			}
		}
	})
}
