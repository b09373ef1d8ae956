package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestDeletionOfWork(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	ordered := &workv1alpha1.Work{}
	ordered.DeletionTimestamp, ordered.Finalizers = &now, []string{workv1alpha2.ExecutionFinalizer, OrderedFinalizer}
	others := &workv1alpha1.Work{}
	others.DeletionTimestamp, others.Finalizers = &now, []string{workv1alpha2.ExecutionFinalizer}
	leaving := others.DeepCopy()
	leaving.Annotations = map[string]string{wellknown.LeavingAnnotation: "true"}
	preserved := leaving.DeepCopy()
	preserved.Spec.PreserveResourcesOnDeletion = new(true)
	broken := []string{"clusters.cluster.karmada.io"}
	one := End{Others: 1, Bound: 10, Settle: 5 * time.Second}
	with := func(change func(*End)) End {
		e := one
		change(&e)
		return e
	}

	for _, tc := range []struct {
		story    string
		work     *workv1alpha1.Work
		end      End
		want     EndKind
		after    time.Duration
		wantText string
	}{
		{"the hub's order is carried out at once", ordered, one, EndOrdered, 0, "the hub requested it"},
		{"as many as it orders", ordered, with(func(e *End) { e.Others = 1000 }), EndOrdered, 0, ""},
		{"but for as long as a definition is missing", ordered, with(func(e *End) { e.Broken = broken }), EndWaits,
			time.Second, "clusters.cluster.karmada.io"},
		{"what goes with its definition stays in the member, whatever was ordered before", ordered,
			with(func(e *End) { e.WorksGo, e.Broken = true, []string{"works.work.karmada.io"} }), EndKept, 0,
			"the CustomResourceDefinition of Works"},
		{"so does what goes with its execution space", others, with(func(e *End) { e.SpaceGoes = true }), EndKept, 0,
			"execution space"},
		{"but for that of a cluster that leaves", ordered, with(func(e *End) { e.SpaceGoes, e.Leaving = true, true }),
			EndOrdered, 0, ""},
		{"a cluster that leaves takes the Works along that others have deleted", others,
			with(func(e *End) { e.Leaving, e.Others = true, 1000 }), EndOrdered, 0, "its cluster is being removed"},
		{"a cluster that leaves while its definition goes does not leave by anybody's order", others,
			with(func(e *End) { e.Leaving, e.Broken = true, broken }), EndWaits, time.Second, ""},
		{"what a binding does not want goes, whoever deletes the Work", others,
			with(func(e *End) { e.Unwanted, e.Others = true, 1000 }), EndOrdered, 0, "no longer needs it"},
		{"a user's word on one Work waits to see whether there are more", others,
			with(func(e *End) { e.Known = 2 * time.Second }), EndWaits, 3 * time.Second, ""},
		{"and is carried out", others, with(func(e *End) { e.Known = 5 * time.Second }), EndOrdered, 0, "this Work"},
		{"as the last that may be", others, with(func(e *End) { e.Known, e.Others = 5*time.Second, 10 }), EndOrdered, 0, ""},
		{"one more is a wave", others, with(func(e *End) { e.Others = 11 }), EndKept, 0, "11 Works"},
		{"one of which nobody saw how many there were is kept", others,
			with(func(e *End) { e.Known, e.AtStart = 5*time.Second, true }), EndKept, 0, "not watching"},
		{"but the hub's own order outlives a restart", ordered, with(func(e *End) { e.AtStart = true }), EndOrdered, 0, ""},
		{"what went with its owner's definition stays, though the hub's loops saw its owner go", ordered,
			with(func(e *End) { e.OwnerWent, e.Broken = "manifestworks", broken }), EndKept, 0, "manifestworks"},
		{"but in a cluster that leaves", ordered, with(func(e *End) { e.OwnerWent, e.Leaving = "manifestworks", true }),
			EndOrdered, 0, ""},
		{"what a user releases is no deletion, however many they are", preserved,
			with(func(e *End) { e.Others, e.Bound, e.AtStart = 1000, 0, true }), EndOrdered, 0, "preserved"},
		{"but not if its object would be deleted", leaving, with(func(e *End) { e.Others = 1000 }), EndKept, 0, "1000 Works"},
		{"nor with the definition of Works", preserved,
			with(func(e *End) { e.WorksGo = true }), EndKept, 0, "the CustomResourceDefinition of Works"},
		{"where nobody may, each is one", others, with(func(e *End) { e.Bound = 0 }), EndKept, 0, "at most 0 may be"},
	} {
		t.Run(tc.story, func(t *testing.T) {
			kind, after, reason := JudgeEnd(tc.work, tc.end)
			if kind != tc.want || after != tc.after || !strings.Contains(reason, tc.wantText) {
				t.Errorf("got %s after %s: %s; want %s after %s: … %s", kind, after, reason, tc.want, tc.after, tc.wantText)
			}
		})
	}
}

// In every state: nothing is written while a CRD of the hub is missing, and many unrequested deletions at once are
// never carried out.
func TestDeletionNeedsRequest(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	for bits := range 1 << 9 {
		is := func(bit int) bool { return bits&(1<<bit) != 0 }
		w := &workv1alpha1.Work{}
		w.DeletionTimestamp = &now
		if is(0) {
			w.Finalizers = []string{OrderedFinalizer}
		}
		e := End{WorksGo: is(1), SpaceGoes: is(2), Leaving: is(3), Unwanted: is(4), AtStart: is(8), Bound: 10, Others: 10,
			Settle: 5 * time.Second}
		if is(5) || is(1) {
			e.Broken = []string{"a definition"}
		}
		if is(6) {
			e.Others = 11
		}
		if is(7) {
			e.Known = 5 * time.Second
		}
		kind, after, _ := JudgeEnd(w, e)
		what := fmt.Sprintf("ordered %v, %+v: %s after %s", is(0), e, kind, after)
		if len(e.Broken) > 0 && kind == EndOrdered {
			t.Error("carried out while a definition is missing:", what)
		}
		if (kind == EndWaits) != (after > 0) {
			t.Error("it waits for a time, and nothing else does:", what)
		}
		if kind == EndOrdered && !is(0) && !e.Leaving && !e.Unwanted &&
			(e.Others > e.Bound || e.SpaceGoes || e.AtStart || e.Known < e.Settle) {
			t.Error("carried out without an order:", what)
		}
	}
}
