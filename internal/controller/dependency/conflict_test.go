package dependency

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// subjects records the names of the objects that events are about.
type subjects struct {
	record.EventRecorder
	names []string
}

func (s *subjects) Event(obj runtime.Object, eventType, reason, message string) {
	s.names = append(s.names, obj.(client.Object).GetName())
	s.EventRecorder.Event(obj, eventType, reason, message)
}

func TestPolicyConflictIsReportedAfterAPolicyChange(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		about := &subjects{EventRecorder: h.recorder}
		h.r.events = commit.Events{EventRecorder: about, Successes: commit.SuccessEventsNone}
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
		if got := slices.Compact(about.names); !slices.Equal(got, []string{"settings-configmap"}) {
			t.Errorf("the events are about %v, want the attached binding settings-configmap", got)
		}
	})
}
