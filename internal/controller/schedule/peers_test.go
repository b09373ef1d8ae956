package schedule

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestAntiAffineWorkloadsNeverShareAClusterAndTheLastWaits(t *testing.T) {
	forBothScopes(t, []string{"m1", "m2"}, func(w *world) {
		var all []workv1alpha2.Binding
		for i := range 3 {
			b := w.binding.DeepCopyObject().(workv1alpha2.Binding)
			b.SetName(fmt.Sprint("b", i))
			b.BindingSpec().Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{
				SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
			b.BindingSpec().WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "team=x"}
			all = append(all, b)
			w.Make(b)
		}
		places := func() (used []string, waiting int) {
			for _, b := range all {
				w.HasObject(b)
				for _, c := range b.BindingSpec().Clusters {
					used = append(used, c.Name)
				}
				if !confirmed(b) {
					waiting++
				}
			}
			return used, waiting
		}
		inBoth := func(n int) func() string {
			return func() string {
				used, waiting := places()
				if len(used) != 2 || used[0] == used[1] || waiting != n {
					return fmt.Sprintf("in %s, %d wait", strings.Join(used, " "), waiting)
				}
				return ""
			}
		}
		w.Eventually("one in each cluster, and one waits", inBoth(1))
		for i, b := range all {
			if len(b.BindingSpec().Clusters) > 0 {
				w.Gone(b)
				all = append(all[:i:i], all[i+1:]...)
				break
			}
		}
		w.Eventually("the one that waited takes the place of one that went", inBoth(0))
	})
}

func versionOfBinding(version string, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b", UID: "1",
		ResourceVersion: version}}
	for _, name := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
	}
	return b
}

func TestPendingPlacementCountsAsPeer(t *testing.T) {
	indexed := []workv1alpha2.Binding{versionOfBinding("1")}
	var p peers
	p.pending.Add(client.ObjectKeyFromObject(indexed[0]), versionOfBinding("2", "m1"))
	p.placements(&workv1alpha2.ResourceBinding{}, indexed)
	if got := indexed[0].BindingSpec().Clusters; len(got) != 1 {
		t.Errorf("the peer is in %v, want m1, where it was placed last", got)
	}
}

func TestPlacementIsNotConfirmedBeforeTheCacheShowsIt(t *testing.T) {
	written, r := versionOfBinding("2", "m1"), &reconciler{}
	key := client.ObjectKeyFromObject(written)
	r.pending.Add(key, pendingPlacement{written, outcome{confirmed: true}})
	if b, err := r.confirmPending(t.Context(), versionOfBinding("1")); b != nil || err != nil {
		t.Errorf("an older binding: got %v (%v), want nothing", b, err)
	}
	if b, err := r.confirmPending(t.Context(), written); b == nil || err != nil || r.pending.Len() != 0 {
		t.Errorf("the written binding: got %v (%v) with %d pending writes", b, err, r.pending.Len())
	}
}
