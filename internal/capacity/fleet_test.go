package capacity_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

func TestSubscribersSeeChangesInSnapshot(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		h.Join("m1")
		var fleet *capacity.Fleet
		var mu sync.Mutex
		var changes []string
		h.Run(func(ctx context.Context, mgr ctrl.Manager) (err error) {
			if fleet, err = capacity.NewFleet(ctx, mgr.GetCache()); err != nil {
				return err
			}
			fleet.OnChange(func(c capacity.Change) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case c.New == nil:
					changes = append(changes, fmt.Sprintf("%s left, %d remain", c.Old.Name, fleet.Snapshot().Len()))
				case c.Old == nil:
					changes = append(changes, fmt.Sprintf("%s came, there are %d", c.New.Name, fleet.Snapshot().Len()))
				case c.Old.Labels["stage"] != c.New.Labels["stage"]:
					changes = append(changes, fmt.Sprintf("%s is %s", c.New.Name,
						fleet.Snapshot().Cluster(c.New.Name).Labels["stage"]))
				}
			})
			return nil
		})
		if err := fleet.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := fleet.Snapshot()
		m2 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}
		h.Make(m2)
		controllertest.Change(h, m2, func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"stage": "prod"} })
		h.Gone(m2)

		want := "[m2 came, there are 2 m2 is prod m2 left, 1 remain]"
		h.Eventually("changes "+want, func() string {
			mu.Lock()
			defer mu.Unlock()
			if got := fmt.Sprint(changes); got != want {
				return got
			}
			return ""
		})
		if before.Len() != 1 {
			t.Errorf("a snapshot changed afterwards: it has %d clusters", before.Len())
		}
	})
}

func TestWaitForSyncEndsWithContext(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		mgr, err := ctrl.NewManager(h.Config, ctrl.Options{Scheme: h.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		fleet, err := capacity.NewFleet(t.Context(), mgr.GetCache()) // which never starts
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := fleet.WaitForSync(ctx); err == nil || fleet.Synced() {
			t.Errorf("synced: %t, %v", fleet.Synced(), err)
		}
	})
}
