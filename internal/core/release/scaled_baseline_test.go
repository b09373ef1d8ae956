package release_test

import (
	"math/rand"
	"testing"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/release"
)

// No pod has another revision: a partition that a scale-up or a scale-down leaves in Works keeps no old pod.
func TestClustersHaveACommonRevisionWhileReplicasChange(t *testing.T) {
	for seed := range int64(60) {
		random := rand.New(rand.NewSource(seed))
		w := newWorld(t, cloneSet, 2, 3)
		w.template.SetAnnotations(nil)
		w.edit([]any{map[string]any{"name": "main", "image": "web:1"}}, "spec", "template", "spec", "containers")
		w.rest()
		for n := range 60 {
			m := w.members[random.Intn(len(w.members))]
			switch random.Intn(6) {
			case 0:
				w.place(m.name, 1+random.Int63n(9))
			case 1, 2:
				w.dispatch()
			default:
				w.act(m)
			}
			var works []workv1alpha1.Work
			for cluster, work := range w.works {
				work = work.DeepCopy()
				work.Namespace = names.ExecutionSpace(cluster)
				works = append(works, *work)
			}
			target := release.Target{Template: w.template, Binding: w.binding, Current: w.revision()}
			if err := target.SetRevisions(w.revision().Spec.Target, nil, works, nil); err != nil {
				t.Fatal(err)
			}
			baseline, err := release.Baseline(w.template, works, w.clusters, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if baseline == nil || target.Former == nil || baseline.Name != target.Former.Name {
				t.Fatalf("seed %d, event %d: the common revision is %v, and that of the plan %v", seed, n, baseline != nil,
					target.Former != nil)
			}
		}
	}
}
