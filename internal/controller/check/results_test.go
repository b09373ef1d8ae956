package check

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

func TestAGuardThatIsCreatedAgainHasNoErrorBudget(t *testing.T) {
	first := &releasev1alpha1.ReleaseGuard{ObjectMeta: metav1.ObjectMeta{Name: "budget", UID: "1", Generation: 1}}
	second := first.DeepCopy()
	second.UID = "2"
	enough := release.Budget{}
	enough.State = releasev1alpha1.ErrorBudgetEnough
	r, changes := &Results{}, 0
	r.SubscribeBudgets(func(string) { changes++ })
	r.setBudget(first, enough)
	if b := r.Budget(first); b == nil || b.State != enough.State {
		t.Errorf("the budget of the first guard is %+v", b)
	}
	if b, last := r.Budget(second), r.lastBudget(second); b != nil || last != (release.Budget{}) {
		t.Errorf("before a sample, the budget of the second guard is %+v, %+v", b, last)
	}
	r.setBudget(second, enough)
	r.setBudget(second, enough)
	if changes != 2 {
		t.Errorf("%d changes were reported, want one for each guard", changes)
	}
	if b := r.Budget(first); b != nil {
		t.Errorf("the budget of the first guard is still %+v", b)
	}
}
