package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// timeline waits until the time line has exactly these entries, in any order.
func (w *world) timeline(want ...string) {
	w.t.Helper()
	w.Eventually("the time line has "+strings.Join(want, "; "), func() string {
		s, _, err := w.Store(w.t.Context())
		if err != nil {
			return err.Error()
		}
		found, err := s.Timeline(w.t.Context(), history.TimelineFilter{}, 100)
		if err != nil {
			return err.Error()
		}
		var got []string
		for _, e := range slices.Backward(found) {
			by := ""
			if e.User != "" {
				by = " by " + e.User
			}
			got = append(got, fmt.Sprintf("%s %s: %v → %v%s", e.Type, e.Name, e.From, e.To, by))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return "it has: " + strings.Join(got, "; ")
		}
		return ""
	})
}

// place moves the workload of a binding to a cluster.
func (w *world) place(b *workv1alpha2.ResourceBinding, cluster string) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		w.t.Fatal(err)
	}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster, Replicas: 2}}
	b.Generation++
	if err := w.Update(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

func TestFleetIsRecordedWithoutAWrite(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", CreationTimestamp: metav1.Now()}}
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment",
			CreationTimestamp: metav1.Now()}, Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 2}}}}
		w.Make(c)
		w.Make(b)
		joined, first := "Joined eu: [] → [{eu 0}]", "Placed web: [] → [{eu 2}]"
		w.timeline(joined, first)
		w.Quiet()

		w.place(b, "us")
		moved := "Moved web: [{eu 2}] → [{us 2}]"
		w.timeline(joined, first, moved)
		if writes := w.Quiet(); len(writes) != 1 { // that of the test
			t.Errorf("the writes are %v", writes)
		}

		t.Log("a restarted hub does not record it again, and sees what happened meanwhile")
		w.stop()
		w.place(b, "asia")
		w.start()
		later := "Moved web: [{us 2}] → [{asia 2}]"
		w.timeline(joined, first, moved, later)

		t.Log("what is deleted has left the fleet")
		if err := w.Delete(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := w.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		w.timeline(joined, first, moved, later, "Removed web: [{asia 2}] → []", "Left eu: [{eu 0}] → []")
	})
}

// The removal of a cluster takes time: it has left when its object is gone.
func TestClusterHasLeftWhenItsObjectIsGone(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", CreationTimestamp: metav1.Now(),
			Finalizers: []string{"example.com/wait"}}}
		w.Make(c)
		joined := "Joined eu: [] → [{eu 0}]"
		w.timeline(joined)
		w.Gone(c)
		w.Quiet()
		w.timeline(joined)
		controllertest.Change(w.Hub, c, func(c *clusterv1alpha1.Cluster) { c.Finalizers = nil })
		w.timeline(joined, "Left eu: [{eu 0}] → []")
	})
}

func TestDeletionOfEachKindOfPolicyIsRecorded(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		var want []string
		for _, p := range []client.Object{
			&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}},
			&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "two"}},
			&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "three"}},
			&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "four"}},
		} {
			w.Make(p)
			want = append(want, "Changed "+p.GetName()+": [] → []")
			w.timeline(want...)
			w.Gone(p)
			want = append(want, "Deleted "+p.GetName()+": [] → []")
			w.timeline(want...)
		}
		if len(want) != 2*len(history.PolicyResources) {
			t.Errorf("of %d kinds, the test has %d", len(history.PolicyResources), len(want)/2)
		}
	})
}

func TestChangeOfAPolicyHasTheUserWhomAdmissionStored(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one",
			Annotations: map[string]string{wellknown.ChangedByAnnotation: "ann"}}})
		w.timeline("Changed one: [] → [] by ann")
	})
}

// Without the placements of before, the first move after the loss would not be seen.
func TestLostFileIsWrittenAgainWithTheFleet(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment",
			CreationTimestamp: metav1.Now()}, Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 2}}}}
		w.Make(b)
		w.Make(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", CreationTimestamp: metav1.Now()}})
		w.Make(&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}})
		joined, changed := "Joined eu: [] → [{eu 0}]", "Changed one: [] → []"
		w.timeline(joined, changed, "Placed web: [] → [{eu 2}]")
		w.Advance(upkeepPeriod / 2) // the binding is no longer a new one, and there is no copy of the file

		w.loseFile()
		w.Make(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "us", CreationTimestamp: metav1.Now()}})
		w.timeline(joined, changed, "Joined us: [] → [{us 0}]")
		w.place(b, "us")
		w.timeline(joined, changed, "Joined us: [] → [{us 0}]", "Moved web: [{eu 2}] → [{us 2}]")
	})
}

// SQLite needs memory: a hub without a fleet does not open it.
func TestHistoryIsOpenedWhenSomethingHappens(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Advance(2 * upkeepPeriod)
		if w.Opened() != nil {
			t.Error("the database is open although nothing has happened")
		}
		w.Make(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", CreationTimestamp: metav1.Now()}})
		w.Eventually("the database is open", func() string {
			if w.Opened() == nil {
				return "it is not"
			}
			return ""
		})
	})
}

// A move during a failure of the database is recorded when it answers again.
func TestMoveIsRecordedAfterTheDatabaseWasDown(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, dir: t.TempDir()}
		w.down.Store(true)
		w.start()
		w.Make(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", CreationTimestamp: metav1.Now()}})
		w.Advance(2 * retry)
		w.down.Store(false)
		w.Advance(2 * retry)
		w.timeline("Joined eu: [] → [{eu 0}]")
	})
}
