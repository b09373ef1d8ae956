package execute_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
)

// What a ManifestWork says of how its objects are kept is on the Work.
func TestPlanFollowsUpdateStrategy(t *testing.T) {
	keptBy := func(strategy string) func(*workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) {
			w.Annotations = map[string]string{"argosy.io/update-strategy": strategy,
				"work.karmada.io/conflict-resolution": "overwrite"}
		}
	}
	type makeObject = func(*workv1alpha1.Work) *unstructured.Unstructured
	ours := func(w *workv1alpha1.Work) *unstructured.Unstructured { return desired(t, w, nil) }
	unmarked := func(*workv1alpha1.Work) *unstructured.Unstructured { return object(t, service) }
	other := func(of makeObject) makeObject {
		return func(w *workv1alpha1.Work) *unstructured.Unstructured {
			u := of(w)
			u.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(81)}}}
			return u
		}
	}
	going := func(of makeObject) makeObject {
		return func(w *workv1alpha1.Work) *unstructured.Unstructured {
			u := of(w)
			u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1_800_000_000, 0)})
			return u
		}
	}
	absent := func(*workv1alpha1.Work) *unstructured.Unstructured { return nil }
	for name, c := range map[string]struct {
		strategy string
		observed func(*workv1alpha1.Work) *unstructured.Unstructured
		change   []func(*workv1alpha1.Work)
		want     execute.Kind
		yields   bool
	}{
		"CreateOnly makes what is absent": {"CreateOnly", absent, nil, execute.Create, false},
		"CreateOnly leaves what differs": {"CreateOnly", other(ours), []func(*workv1alpha1.Work){changed},
			execute.Nothing, false},
		"CreateOnly leaves what was there":            {"CreateOnly", other(unmarked), nil, execute.Nothing, false},
		"CreateOnly awaits the end of what was there": {"CreateOnly", going(unmarked), nil, execute.Wait, false},
		"CreateOnly awaits the end of what it made":   {"CreateOnly", going(ours), nil, execute.Wait, false},
		"CreateOnly deletes what it made": {"CreateOnly", other(ours), []func(*workv1alpha1.Work){deleting},
			execute.Delete, false},
		"CreateOnly does not delete what was there": {"CreateOnly", other(unmarked), []func(*workv1alpha1.Work){deleting},
			execute.Nothing, false},
		"ServerSideApply yields where it differs":       {"ServerSideApply", other(ours), nil, execute.Apply, true},
		"ServerSideApply yields where it takes over":    {"ServerSideApply", unmarked, nil, execute.Apply, true},
		"ServerSideApply writes nothing without reason": {"ServerSideApply", ours, nil, execute.Nothing, false},
		"without a word nothing yields":                 {"", other(ours), nil, execute.Apply, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := work(t, service, append([]func(*workv1alpha1.Work){keptBy(c.strategy)}, c.change...)...)
			observed := c.observed(w)
			if got := execute.Plan(w, desired(t, w, observed), observed); got.Kind != c.want || got.Yields != c.yields {
				t.Errorf("got %s, yields %t, because %s; want %s, %t", got.Kind, got.Yields, got.Reason, c.want, c.yields)
			}
		})
	}
}

func TestReleasedObjectBelongsToNoManifestWork(t *testing.T) {
	u := object(t, service)
	u.SetAnnotations(map[string]string{"argosy.io/manifest-work": "it", "theirs": "stays"})
	if got := execute.Released(u).GetAnnotations(); len(got) != 1 || got["theirs"] != "stays" {
		t.Errorf("released, it has %v", got)
	}
}
