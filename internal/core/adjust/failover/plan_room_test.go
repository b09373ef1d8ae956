package failover

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// Two workloads leave a lost cluster in one plan. The room that the first takes is not there for the second.
func TestOnePlanUsesRoomOnce(t *testing.T) {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for _, c := range []struct {
		name string
		// summaries: no room is given, so that of the summaries of the clusters counts.
		summaries bool
		free      int32
		want      string
	}{
		{"room for both", false, 4, "one -a: b=2; two -a: b=2"},
		{"room for one", false, 2, "one -a: b=2; two !a NothingFits"},
		{"room for a part", false, 3, "one -a: b=2; two -a: a=1 b=1; two !a NothingFits"},
		{"summaries with room for both", true, 4, "one -a: b=2; two -a: b=2"},
		{"summaries with room for one", true, 2, "one -a: b=2; two !a NothingFits"},
		{"summaries with room for a part", true, 3, "one -a: b=2; two -a: a=1 b=1; two !a NothingFits"},
	} {
		w := newWorld(t, "a", "b", "c")
		for _, name := range []string{"one", "two"} {
			b := w.deployment(name, "a=2", byRoom())
			b.Spec.ReplicaRequirements.ResourceRequest = requests
		}
		for name, n := range map[string]int32{"a": 0, "b": c.free, "c": 0} {
			w.cluster(name).Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(int64(n), resource.DecimalSI)}}
			w.room[name] = n
		}
		w.lose("a")
		w.pass(10 * time.Minute)
		plan := w.plan
		if c.summaries {
			plan = func() Plan {
				in := w.in
				in.Fleet = w.snapshot()
				for _, b := range w.bindings {
					in.Bindings = append(in.Bindings, b)
				}
				return Make(in, w.now)
			}
		}
		for range 2 { // the plan leaves the room as it is
			if got := planText(plan()); got != c.want {
				t.Errorf("%s: planned %q, want %q", c.name, got, c.want)
			}
		}
	}
}
