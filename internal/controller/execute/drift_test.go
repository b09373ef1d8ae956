package execute

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// A controller in the member undoes every write of the hub.
func TestRepairsOfRepeatedDriftAreDelayed(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC))
		w := newWorld(t, Options{Clock: clock})
		u := manifest(membertest.ConfigMap, "shop", "1")
		work := w.work(u)
		w.expectContent(u, "1")
		clock.SetTime(clock.Now().Add(100 * time.Millisecond)) // reports wait for a moment without new Works
		w.applied(work)
		meddle := func(value string) {
			obj := w.m1.Object(membertest.ConfigMap, "shop", "c")
			_ = unstructured.SetNestedField(obj.Object, value, "data", "value")
			w.m1.Put(obj)
		}
		repairs := func() int {
			return len(slices.DeleteFunc(w.m1.Writes(), func(s string) bool {
				return !strings.HasPrefix(s, "patch configmaps") && !strings.HasPrefix(s, "apply configmaps")
			}))
		}

		// 1. The first changes are put right at once.
		for i := range 3 {
			meddle(fmt.Sprint("meddled ", i))
			w.expectContent(u, "1")
		}

		// 2. Then it waits, and reports that in one write. It may take one change more: a change before the hub has seen its
		// own last write does not count.
		more := 0
		w.Eventually("it has to wait", func() string {
			if value, _, _ := unstructured.NestedString(w.m1.Object(membertest.ConfigMap, "shop", "c").Object, "data",
				"value"); value == "1" {
				if more++; more > 10 {
					t.Fatalf("it is put right at once after %d changes", 3+more)
				}
				meddle("meddled")
				return "it is put right at once"
			}
			if !w.HasObject(work) || !meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.WorkContested) {
				return "no event was recorded"
			}
			return ""
		})
		before := repairs()
		w.Quiet()
		messages := w.condition(work, workv1alpha1.WorkContested, metav1.ConditionTrue)
		if !strings.Contains(messages.Message, "repeatedly changes data.value of ConfigMap shop/c in cluster \"m1\"") {
			t.Errorf("the message is %q", messages.Message)
		}
		for i := range 20 {
			meddle(fmt.Sprint("meddled more ", i))
		}
		w.Eventually("the last change was seen", func() string {
			m, err := w.members.Get("m1")
			if err != nil {
				return err.Error()
			}
			cached, _ := m.Cached(membertest.ConfigMap.GroupVersion().WithResource("configmaps"), "shop", "c")
			value, _, _ := unstructured.NestedString(cached.Object, "data", "value")
			if value != "meddled more 19" {
				return "it is " + value
			}
			return ""
		})
		if n := repairs(); n != before {
			t.Errorf("it was put right %d times more while it had to wait", n-before)
		}
		if writes := slices.DeleteFunc(w.Quiet(), func(s string) bool {
			return !strings.Contains(s, "works/status")
		}); len(writes) > 1 {
			t.Errorf("the hub was written to: %v, want one status at most", writes)
		}

		// 3. A change of the template does not wait.
		u2 := manifest(membertest.ConfigMap, "shop", "2")
		w.set(work, u2)
		w.expectContent(u2, "2")
		clock.SetTime(clock.Now().Add(100 * time.Millisecond))
		w.applied(work)

		// 4. When the pause is over it is put right, once.
		clock.SetTime(clock.Now().Add(time.Second))
		meddle("meddled again")
		w.expectContent(u2, "2")

		// 5. After a calm period the condition ends.
		clock.SetTime(clock.Now().Add(time.Hour))
		meddle("a first time")
		w.expectContent(u2, "2")
		w.Eventually("the condition is gone", func() string {
			if w.HasObject(work) && meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkContested) != nil {
				return "it is there"
			}
			return ""
		})
	})
}

// A stale cache must not count a change twice.
func TestRepairCountsOnceForEachChange(t *testing.T) {
	t.Parallel()
	at := func(version string) *unstructured.Unstructured {
		u := manifest(membertest.ConfigMap, "shop", "1")
		u.SetResourceVersion(version)
		return u
	}
	repair := execute.Action{Kind: execute.Apply, Repairs: true, Path: "data.value"}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "c"}}
	for name, story := range map[string]struct {
		events func(d *drift)
		want   int
	}{
		"a change": {func(d *drift) { d.wrote(work, repair, at("10"), at("11")) }, 1},
		"an update of the template": {func(d *drift) {
			d.wrote(work, execute.Action{Kind: execute.Apply}, at("10"), at("11"))
		}, 0},
		"a change, seen again before the repair is": {func(d *drift) {
			d.wrote(work, repair, at("10"), at("11"))
			d.wrote(work, repair, at("10"), at("11"))
		}, 1},
		"a change, the repair seen, another": {func(d *drift) {
			d.wrote(work, repair, at("10"), at("11"))
			d.settled(work, at("11"))
			d.wrote(work, repair, at("12"), at("13"))
		}, 2},
		"the member was asked, and the watch is behind": {func(d *drift) {
			d.wrote(work, repair, at("10"), at("11"))
			d.settled(work, at("9"))
			d.wrote(work, repair, at("10"), at("11"))
		}, 1},
		"a write that changes nothing": {func(d *drift) { d.wrote(work, repair, at("10"), at("10")) }, 0},
		"deleted, and deleted again": {func(d *drift) {
			again := execute.Action{Kind: execute.Create, Repairs: true}
			d.wrote(work, again, nil, at("10"))
			d.wrote(work, again, nil, at("20"))
		}, 2},
		"a member whose versions are no numbers": {func(d *drift) {
			d.wrote(work, repair, at("a"), at("b"))
			d.wrote(work, repair, at("c"), at("d"))
		}, 2},
	} {
		d := &drift{memory: newMemory(), clock: clock.RealClock{}}
		story.events(d)
		if got := d.memory.factsOf(client.ObjectKeyFromObject(work)).drift.Repairs; got != story.want {
			t.Errorf("%s: counted %d times, want %d", name, got, story.want)
		}
	}
}
