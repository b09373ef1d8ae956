package release_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// history is a world in which anything happens at any time, with what is compared after every event.
type history struct {
	*world
	random *rand.Rand
	budget int64
	scales bool
	// allowed are the new pods that the stages entered so far allow; held are the pods that were released when the hold
	// was written, -1 without a hold.
	allowed, held int64
}

func newHistory(t testing.TB, seed int64) *history {
	random := rand.New(rand.NewSource(seed))
	replicas := make([]int64, 2+random.Intn(3))
	for i := range replicas {
		replicas[i] = 1 + random.Int63n(6)
	}
	h := &history{world: newWorld(t, cloneSet, replicas...), random: random, budget: 1 + random.Int63n(3),
		scales: seed%2 == 1, held: -1}
	h.edit(h.budget, "spec", "updateStrategy", "maxUnavailable")
	return h
}

// event lets one thing happen.
func (h *history) event(r *releasev1alpha1.Release) {
	m := h.members[h.random.Intn(len(h.members))]
	switch h.random.Intn(24) {
	case 0, 1, 2, 3:
		h.reconcile(r)
	case 4, 5, 6, 7:
		h.dispatch()
	case 8:
		h.now = h.now.Add(time.Duration(h.random.Intn(20)) * time.Second)
	case 9:
		r.Spec.State = []releasev1alpha1.ReleaseState{releasev1alpha1.StateRun, releasev1alpha1.StatePause}[h.random.Intn(2)]
	case 10:
		h.lose(m.name, h.random.Intn(3) == 0)
	case 11:
		if h.scales {
			h.place(m.name, 1+h.random.Int63n(6))
		}
	case 12:
		if len(r.Status.Stages) > 0 && h.random.Intn(3) == 0 {
			h.approve(r, "rest", "go", "ann")
		}
	case 13:
		h.image(fmt.Sprintf("web:%d", 3+h.random.Intn(3))) // the release goes on with what it has accepted
	default:
		h.act(m)
	}
}

func (h *history) check(what string, r *releasev1alpha1.Release) {
	h.t.Helper()
	// I1 and I3.
	plan := fleet.PlanOf(h.binding.Annotations)
	if plan != nil {
		ended := 0
		for _, stage := range r.Status.Stages {
			if stage.EndedAt != nil {
				ended++
			}
		}
		if plan.At > ended+1 {
			h.t.Fatalf("%s: stage %d begins before the one before it has ended (I3)", what, plan.At)
		}
		var clusters []string
		var replicas []int64
		for _, c := range h.binding.Spec.Clusters {
			clusters, replicas = append(clusters, c.Name), append(replicas, int64(c.Replicas))
		}
		var limit int64
		for _, n := range plan.Targets(clusters, replicas, plan.At) {
			limit += n
		}
		h.allowed = max(h.allowed, limit)
		if n := int64(h.count("web:2")); n > h.allowed && !h.scales {
			h.t.Fatalf("%s: %d pods are new where %d may be (I1)", what, n, h.allowed)
		}
	}
	// I2.
	if n := int64(h.down()); n > h.budget && !h.scales {
		h.t.Fatalf("%s: %d pods are unavailable where %d may be (I2)", what, n, h.budget)
	}
	// I10: no pod of a template that was not released.
	for _, image := range []string{"web:3", "web:4", "web:5"} {
		if h.count(image) > 0 {
			h.t.Fatalf("%s: a pod has %s, which was not released (I10)", what, image)
		}
	}
	// I6.
	if plan == nil || !plan.Hold || h.scales {
		h.held = -1
		return
	}
	var released int64
	progress, err := dispatch.ProgressOf(h.dispatchInput())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range progress {
		released += p.Released
	}
	if h.held >= 0 && released > h.held {
		h.t.Fatalf("%s: %d pods are released during a hold, and %d were before (I6)", what, released, h.held)
	}
	h.held = released
}

func TestInvariantsHoldInRandomHistories(t *testing.T) {
	seeds := int64(60)
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		h := newHistory(t, seed)
		r := h.release("r1", fmt.Sprintf(`
stages:
- {name: some, to: {percent: %d}, soak: 10s}
- {name: more, to: {percent: 70}, maxConcurrentClusters: 1}
- {name: rest, before: [{name: go}]}
`, 1+h.random.Intn(60)))
		h.reconcile(r)
		for n := range 300 {
			h.event(r)
			h.check(fmt.Sprintf("seed %d, event %d", seed, n), r)
		}
		for _, m := range h.members {
			h.lose(m.name, false)
		}
		r.Spec.State = releasev1alpha1.StateRun
		h.pass(time.Hour)
		h.approve(r, "rest", "go", "ann")
		h.pass(time.Hour)
		if r.Status.Phase != releasev1alpha1.ReleaseSucceeded || h.count("web:1") > 0 {
			t.Fatalf("seed %d: it ends as %s (%s) with %d old pods: %+v", seed, r.Status.Phase, r.Status.Reason,
				h.count("web:1"), r.Status)
		}
		status, binding := h.statusWrites, h.bindingWrites
		h.rest()
		if h.statusWrites != status || h.bindingWrites != binding {
			t.Fatalf("seed %d: a restart writes (I7)", seed)
		}
	}
}

// I10.
func TestAPlanOfAnotherRevisionHoldsAllClusters(t *testing.T) {
	plan := &fleet.Plan{Release: "r1", UID: "u", Revision: "a", Stages: []fleet.PlanStage{{Name: "all",
		Clusters: []string{"c1"}, Part: [2]int64{1, 1}}, {Name: "again", Clusters: []string{"c1"}}}, At: 2}
	annotations := map[string]string{fleet.PlanAnnotation: plan.String(), fleet.EffectiveRevisionAnnotation: "a"}
	if got := fleet.PlanOf(annotations); got.Hold || got.At != 2 || len(got.Stages[1].Clusters) != 1 {
		t.Errorf("the plan is read as %+v", got)
	}
	for _, other := range []string{"b", ""} {
		annotations[fleet.EffectiveRevisionAnnotation] = other
		if got := fleet.PlanOf(annotations); !got.Hold || len(got.Stages) > 0 {
			t.Errorf("for revision %q, the plan is read as %+v", other, got)
		}
	}
	annotations[fleet.PlanAnnotation] = "broken"
	if got := fleet.PlanOf(annotations); !got.Hold {
		t.Errorf("a broken plan is read as %+v", got)
	}
}

func TestWeightsAreRoundedUpAndTheLastIsWhole(t *testing.T) {
	for replicas, want := range map[int64]string{100: "[10 30 100]", 7: "[1 3 7]", 3: "[1 1 3]", 1: "[1 1 1]"} {
		p := &fleet.Plan{}
		for _, n := range []int64{1, 3, 10} {
			p.Stages = append(p.Stages, fleet.PlanStage{Clusters: []string{"c1"}, Part: [2]int64{n, 10}})
		}
		var got []int64
		for at := 1; at <= 3; at++ {
			got = append(got, p.Targets([]string{"c1"}, []int64{replicas}, at)[0])
		}
		if fmt.Sprint(got) != want {
			t.Errorf("of %d pods, the stages make %v new, want %s", replicas, got, want)
		}
	}
}

func TestReleasesThatCannotRunAreRefused(t *testing.T) {
	const all = "stages: [{name: all}]"
	for reason, change := range map[string]func(in *release.Input, t *release.Target){
		releasev1alpha1.ReasonStrategyNotFound: func(in *release.Input, _ *release.Target) { in.Strategy = nil },
		releasev1alpha1.ReasonTargetNotFound:   func(_ *release.Input, t *release.Target) { t.Template = nil },
		releasev1alpha1.ReasonTargetNotHeld:    func(_ *release.Input, t *release.Target) { t.Binding = nil },
		releasev1alpha1.ReasonKindNotStaged: func(_ *release.Input, t *release.Target) {
			t.Template = t.Template.DeepCopy()
			t.Template.SetKind("Settings")
		},
		releasev1alpha1.ReasonAnnotationsPresent: func(_ *release.Input, t *release.Target) {
			t.Template = t.Template.DeepCopy()
			t.Template.SetAnnotations(map[string]string{wellknown.RolloutOrderAnnotation: "Ordered"})
		},
		releasev1alpha1.ReasonForeignRollout:      func(_ *release.Input, t *release.Target) { t.Pacer = "Rollout web" },
		releasev1alpha1.ReasonPartitionOverridden: func(_ *release.Input, t *release.Target) { t.PartitionOverridden = true },
		releasev1alpha1.ReasonRevisionNotFound: func(in *release.Input, _ *release.Target) {
			in.Release.Spec.Targets[0].To.Revision = "none"
		},
		releasev1alpha1.ReasonRevisionBlocked: func(_ *release.Input, t *release.Target) {
			t.Current = t.Current.DeepCopy()
			t.Current.Status.Blocked = &releasev1alpha1.RevisionBlock{Reason: "PodsFailed"}
		},
		releasev1alpha1.ReasonSameRevision: func(_ *release.Input, t *release.Target) { t.Former = t.Current },
		releasev1alpha1.ReasonDependencyCycle: func(in *release.Input, _ *release.Target) {
			in.Release.Spec.Targets[0].DependsOn = []string{"web"}
		},
		releasev1alpha1.ReasonClustersUnassigned: func(in *release.Input, _ *release.Target) {
			fifty := int64(50)
			in.Strategy.Stages[0].To = &releasev1alpha1.ReleaseAmount{Percent: &fifty}
		},
		releasev1alpha1.ReasonAnotherUnderWay: func(in *release.Input, _ *release.Target) {
			other := in.Release.DeepCopy()
			other.Name, other.Status.Phase = "other", releasev1alpha1.ReleaseRunning
			in.Others = append(in.Others, *other)
			in.Release.Spec.Supersede = releasev1alpha1.SupersedeRefuse
		},
		releasev1alpha1.ReasonPlanned: func(*release.Input, *release.Target) {},
	} {
		w := newWorld(t, cloneSet, 2, 2)
		in := w.input(w.release("r1", all))
		target := in.Targets["web"]
		change(&in, &target)
		in.Targets["web"] = target
		if a := release.Accept(in); a.Reason != reason {
			t.Errorf("the reason is %s (%s), want %s", a.Reason, a.Message, reason)
		}
	}
	w := newWorld(t, cloneSet)
	if a := release.Accept(w.input(w.release("r1", all))); a.Reason != releasev1alpha1.ReasonStagesEmpty {
		t.Errorf("in no cluster, the reason is %s (%s)", a.Reason, a.Message)
	}
}
