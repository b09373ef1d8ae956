package why_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// A user who may not read Works gets the same explanation from the binding's status, except for what only a condition
// of the Work has.
func TestBindingExplainsAsMuchWithoutRightToReadWorks(t *testing.T) {
	compared := 0
	for _, s := range stories {
		h := s.given(t)
		if h.Binding == nil {
			continue
		}
		*h.Binding.BindingStatus() = aggregate.Binding(h.Binding, h.Works, nil, metav1.Time{})
		seen := why.Explain(h.Facts)
		blind := h.Facts
		blind.Works, blind.Unseen = why.WorksInStatus(h.Binding), true
		answer := why.Explain(blind)
		for _, c := range seen.Clusters {
			i := slices.IndexFunc(h.Works, func(w workv1alpha1.Work) bool { return w.Namespace == names.ExecutionSpace(c.Name) })
			if i < 0 || !slices.ContainsFunc(h.Binding.BindingStatus().AggregatedStatus,
				func(item workv1alpha2.AggregatedStatusItem) bool { return item.ClusterName == c.Name }) {
				continue
			}
			got, ok := answer.ForCluster(c.Name)
			if !ok {
				t.Errorf("%s: nothing is explained about %s", s.name, c.Name)
				continue
			}
			compared++
			more := slices.ContainsFunc(h.Works[i].Status.Conditions, func(c metav1.Condition) bool {
				return c.Type != workv1alpha1.WorkApplied
			})
			if g := got.Clusters[0]; g.State != c.State || !more && g.Why != c.Why {
				t.Errorf("%s: %s is %s, %q; with access to Works it is %s, %q", s.name, c.Name, g.State, g.Why, c.State,
					c.Why)
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d clusters were compared", compared)
	}
}

// What no binding reports is not explained as about to come.
func TestUnreadableObjectsAreNotExplained(t *testing.T) {
	h := start(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", cluster("m1"))
	h.Unseen = true
	answer := why.Explain(h.Facts)
	if c := answer.Clusters[0]; c.State != state.Progressing ||
		c.Why != "its state there is in its Work, which you may not read" {
		t.Errorf("it says %s, %q", c.State, c.Why)
	}
}
