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
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member/membertest"
)

// The story of a controller in a member that undoes the hub's every write: it was fought without a pause.
func TestAnObjectThatIsChangedAgainAndAgainIsPutRightEverLessOften(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC))
		w := newWorld(t, Options{Clock: clock})
		u := manifest(membertest.ConfigMap, "shop", "1")
		work := w.work(u)
		w.holds(u, "1")
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
			w.holds(u, "1")
		}

		// 2. Then it has to wait, and users are told, in one write. That may take a change more: one that comes before the
		//    hub has seen
		// its own last write counts as nobody's.
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
			if !w.Has(work) || !meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.WorkContested) {
				return "nobody is told"
			}
			return ""
		})
		before := repairs()
		w.Quiet()
		told := w.condition(work, workv1alpha1.WorkContested, metav1.ConditionTrue)
		if !strings.Contains(told.Message, "repeatedly changes data.value of ConfigMap shop/c in cluster \"m1\"") {
			t.Errorf("users are told %q", told.Message)
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
		w.holds(u2, "2")
		clock.SetTime(clock.Now().Add(100 * time.Millisecond))
		w.applied(work)

		// 4. When the pause is over it is put right, once.
		clock.SetTime(clock.Now().Add(time.Second))
		meddle("meddled again")
		w.holds(u2, "2")

		// 5. After a calm nobody is told any more.
		clock.SetTime(clock.Now().Add(time.Hour))
		meddle("a first time")
		w.holds(u2, "2")
		w.Eventually("the condition is gone", func() string {
			if w.Has(work) && meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkContested) != nil {
				return "it is there"
			}
			return ""
		})
	})
}

// What the watch has not shown yet would count twice what somebody did once, or make a repair of what nobody did.
func TestARepairCountsOnceForEachChange(t *testing.T) {
	t.Parallel()
	at := func(version string) *unstructured.Unstructured {
		u := manifest(membertest.ConfigMap, "shop", "1")
		u.SetResourceVersion(version)
		return u
	}
	repair := execute.Action{Kind: execute.Apply, Repairs: true, Path: "data.value"}
	key, now := types.NamespacedName{Namespace: "karmada-es-m1", Name: "c"}, time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for name, story := range map[string]struct {
		events func(c *contests)
		want   int
	}{
		"a change": {func(c *contests) { c.wrote(key, repair, at("10"), at("11"), now) }, 1},
		"an update of the template": {func(c *contests) {
			c.wrote(key, execute.Action{Kind: execute.Apply}, at("10"), at("11"), now)
		}, 0},
		"a change, seen again before the repair is": {func(c *contests) {
			c.wrote(key, repair, at("10"), at("11"), now)
			c.wrote(key, repair, at("10"), at("11"), now)
		}, 1},
		"a change, the repair seen, another": {func(c *contests) {
			c.wrote(key, repair, at("10"), at("11"), now)
			c.settled(key, at("11"))
			c.wrote(key, repair, at("12"), at("13"), now)
		}, 2},
		"the member was asked, and the watch is behind": {func(c *contests) {
			c.wrote(key, repair, at("10"), at("11"), now)
			c.settled(key, at("9"))
			c.wrote(key, repair, at("10"), at("11"), now)
		}, 1},
		"a write that changes nothing": {func(c *contests) { c.wrote(key, repair, at("10"), at("10"), now) }, 0},
		"deleted, and deleted again": {func(c *contests) {
			again := execute.Action{Kind: execute.Create, Repairs: true}
			c.wrote(key, again, nil, at("10"), now)
			c.wrote(key, again, nil, at("20"), now)
		}, 2},
		"a member whose versions are no numbers": {func(c *contests) {
			c.wrote(key, repair, at("a"), at("b"), now)
			c.wrote(key, repair, at("c"), at("d"), now)
		}, 2},
	} {
		c := &contests{}
		story.events(c)
		if got := c.of(key, now).Repairs; got != story.want {
			t.Errorf("%s: counted %d times, want %d", name, got, story.want)
		}
	}
}
