package dependency

import (
	"strings"
	"testing"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
)

func TestPolicyConflictIsReportedWhenAPolicyChanges(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.needs = []configv1alpha1.DependentObjectReference{settingsRef}
		h.create(object("ConfigMap", "shop", "settings"))
		web := h.workload("Deployment", "shop", "web", "eu")
		db := h.workload("Deployment", "shop", "db", "us")
		h.settle()
		expect := func(when string, want ...string) {
			t.Helper()
			h.settle()
			if len(h.recorder.Events) != min(len(want), 1) {
				t.Fatalf("%s: %d events, want %d", when, len(h.recorder.Events), min(len(want), 1))
			}
			if len(want) == 0 {
				return
			}
			e := <-h.recorder.Events
			for _, part := range []string{"ConflictResolution conflicted (Overwrite vs Abort)",
				"PreserveResourcesOnDeletion conflicted (true vs false)"} {
				if strings.Contains(e, part) != strings.Contains(strings.Join(want, ","), part) {
					t.Errorf("%s: the event is %q", when, e)
				}
			}
		}
		expect("the same settings")
		h.change(db, func(s *workv1alpha2.ResourceBindingSpec) { s.ConflictResolution = policyv1alpha1.ConflictOverwrite })
		expect("one overwrites", "ConflictResolution conflicted (Overwrite vs Abort)")
		yes := true
		h.change(web, func(s *workv1alpha2.ResourceBindingSpec) { s.PreserveResourcesOnDeletion = &yes })
		expect("the other preserves", "ConflictResolution conflicted (Overwrite vs Abort)",
			"PreserveResourcesOnDeletion conflicted (true vs false)")
		h.change(web, func(s *workv1alpha2.ResourceBindingSpec) { s.ConflictResolution = policyv1alpha1.ConflictOverwrite })
		expect("both overwrite", "PreserveResourcesOnDeletion conflicted (true vs false)")
	})
}
