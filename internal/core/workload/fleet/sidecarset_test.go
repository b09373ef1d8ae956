package fleet

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// inject makes the SidecarSet one of a version, with its image.
func (h *hub) inject(version, image string) {
	h.t.Helper()
	h.edit([]any{map[string]any{"name": "s", "image": image}}, "spec", "containers")
	if strings.HasSuffix(h.in.Template.GetAPIVersion(), "v1alpha1") {
		h.edit(version, "metadata", "labels", customVersionLabel)
	} else {
		h.edit(version, "spec", "customVersion")
	}
}

// reject makes a member reject its current Work.
func (h *hub) reject(i int) { h.fail(i, workv1alpha1.ReasonRejected) }

// fail makes the current Work of a member fail for a reason.
func (h *hub) fail(i int, reason string) {
	m := &h.in.Members[i]
	work := m.Work.DeepCopy()
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkFailure, Status: metav1.ConditionTrue,
		Reason: reason, ObservedGeneration: work.Generation}}
	m.Work = work
}

const made = "latestRevision: x"

func TestMemberGetsTheNameOfAVersionThatItCreated(t *testing.T) {
	const named = "spec.injectionStrategy.revision.customVersion"
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			h := newHub(t, "{apiVersion: apps.kruise.io/"+version+
				`, kind: SidecarSet, metadata: {name: x, labels: {a: b}}, spec: {containers: []}}`, 0, 0)
			h.in.Divided = false
			h.inject("v1", "s:1")
			h.edit("v1", "spec", "injectionStrategy", "revision", "customVersion")
			h.expect("its own version, before members created it", named+"=<nil> <nil>")
			h.report(made)
			h.expect("in the one that created it", named+"=v1 <nil>")
			h.report(made, made)
			h.expect("in both", named+"=v1 v1")
			h.report(made, made)

			h.inject("v2", "s:2")
			h.expect("an earlier version", named+"=v1 v1")
			h.report(made, made)
			h.edit("v2", "spec", "injectionStrategy", "revision", "customVersion")
			h.expect("the current one, which they created", named+"=v2 v2")
			h.report(made, made)
			h.expectConditions("when all is well", "")
		})
	}
}

// A cluster that joins later has no earlier revision: its user must decide.
func TestMemberWithoutTheNamedRevisionIsReported(t *testing.T) {
	for _, field := range []string{"customVersion", "revisionName"} {
		h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {containers: []}}", 0)
		h.in.Divided = false
		h.inject("v1", "s:1")
		h.look()
		h.report(made)
		h.inject("v2", "s:2")
		h.edit("v1", "spec", "injectionStrategy", "revision", field)
		h.in.Members = append(h.in.Members, Member{Cluster: "c2", Reachable: true})
		h.expect("it is sent as it is", "spec.injectionStrategy.revision."+field+"=v1 v1")
		if h.in.Members[1].Work.Annotations[wellknown.FleetAnnotation] == "" {
			t.Error("a report of the new member does not wake the hub")
		}
		h.expectConditions("before it reports", "")
		for _, reason := range []string{workv1alpha1.ReasonForbidden, workv1alpha1.ReasonKindNotServed,
			workv1alpha1.ReasonObjectUnmanaged, workv1alpha1.ReasonObjectOfAnother} {
			h.fail(1, reason)
			h.look()
			h.expectConditions("when it fails with reason "+reason, "")
		}
		h.reject(1)
		h.look()
		h.expectConditions("when it rejects it", "RevisionMissing: spec.injectionStrategy.revision names a revision, and c2 does not")
		if field != "customVersion" {
			continue // members have names of their own for it
		}
		// The template becomes the version that it names: the member creates it without the name, and gets the name then.
		h.inject("v1", "s:1")
		h.expect("when the template has that version again", "spec.injectionStrategy.revision.customVersion=v1 <nil>")
		h.expectConditions("when the template has that version again", "")
		h.report(made, made)
		h.expect("when the member has created it", "spec.injectionStrategy.revision.customVersion=v1 v1")
		h.expectConditions("when the member has created it", "")
	}
}

func TestSidecarSetWithoutVersionsIsNotDivided(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {containers: []}}", 0, 0)
	if concerns, err := Concerns(h.in.Template, false); concerns || err != nil {
		t.Errorf("it is divided: %v", err)
	}
	h.edit("v1", "spec", "customVersion")
	if concerns, err := Concerns(h.in.Template, false); !concerns || err != nil {
		t.Errorf("with a version, it is not: %v", err)
	}
}

func TestClustersWithOldSidecarsAreReported(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {customVersion: v1, containers: []}}", 0, 0)
	h.in.Divided = false
	h.look()
	h.report(made, made)
	h.look()
	h.expectConditions("at rest", "")
	h.inject("v2", "s:2")
	h.look()
	h.expectConditions("on the way", "")
	h.report(made)
	h.in.Members[1].Reachable = false
	h.look()
	h.expectConditions("of a cluster that does not answer", "RevisionSkew: c2 may still inject the previous sidecars")
	h.in.Members[1].Reachable = true
	h.look()
	h.expectConditions("when it answers", "")
	work := h.in.Members[1].Work.DeepCopy()
	work.Status.Conditions[0].Status = "False"
	h.in.Members[1].Work = work
	h.look()
	h.expectConditions("of a cluster that refuses", "RevisionSkew: c2 may")
}
