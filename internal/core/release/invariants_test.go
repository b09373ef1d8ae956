package release_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// history is a world in which anything happens at any time. After every event, it is compared with what the text of the
// strategy and the verdicts allow, without the plan.
type history struct {
	*world
	random *rand.Rand
	budget int64
	// percents are those of the stages some, more and rest.
	percents [3]int64
	proceeds bool // on failure
	// done are the stages of which enough pods were available at some time, skipped those that the user has skipped.
	done, skipped [3]bool
	// approved is true if the gate may be passed: it was approved, or the last stage added no pod by rounding, as rounded
	// says. approvedAttempts are the attempts of the last stage that were approved.
	approved, rounded bool
	approvedAttempts  map[int32]bool
	// allowed are the new pods that the stages that may have begun allow; held are the pods that were released when the
	// hold was written, -1 without a hold.
	allowed, held int64
	// scaled is true if replicas were changed and not dispatched yet.
	scaled bool
	// reported is the progress that the release showed last.
	reported string
}

func newHistory(t testing.TB, seed int64) *history {
	random := rand.New(rand.NewSource(seed))
	replicas := make([]int64, 2+random.Intn(3))
	for i := range replicas {
		replicas[i] = 1 + random.Int63n(6)
	}
	h := &history{world: newWorld(t, cloneSet, replicas...), random: random, budget: 1 + random.Int63n(3),
		percents: [3]int64{1 + random.Int63n(60), 70, 100}, proceeds: random.Intn(3) == 0, held: -1,
		approvedAttempts: map[int32]bool{}}
	h.edit(h.budget, "spec", "updateStrategy", "maxUnavailable")
	return h
}

func (h *history) strategy() string {
	action := "Pause"
	if h.proceeds {
		action = "Continue"
	}
	return fmt.Sprintf(`
stages:
- {name: some, to: {percent: %d}, soak: 10s, deadline: 60s}
- {name: more, to: {percent: %d}, maxConcurrentClusters: 1, deadline: 60s}
- {name: rest, before: [{name: go}], deadline: 60s}
failure: {action: %s}
`, h.percents[0], h.percents[1], action)
}

// event lets one thing happen.
func (h *history) event(r *releasev1alpha1.Release) {
	m := h.members[h.random.Intn(len(h.members))]
	stage := release.StageUnderWay(r)
	switch n := h.random.Intn(32); n {
	case 0, 1, 2, 3:
		h.reconcile(r)
	case 4, 5, 6, 7:
		h.dispatch()
		h.scaled = false
	case 8:
		h.now = h.now.Add(time.Duration(h.random.Intn(20)) * time.Second)
	case 9:
		r.Spec.State = []releasev1alpha1.ReleaseState{releasev1alpha1.StateRun, releasev1alpha1.StatePause}[h.random.Intn(2)]
	case 10:
		h.lose(m.name, h.random.Intn(3) == 0)
	case 11:
		h.place(m.name, 1+h.random.Int63n(6))
		h.scaled = true
	case 12:
		if stage != nil && stage.Name == "rest" && h.random.Intn(3) == 0 {
			h.approveNow(r)
		}
	case 13:
		h.image(fmt.Sprintf("web:%d", 3+h.random.Intn(3))) // the release goes on with what it has accepted
	case 14:
		m.fails["web:2"] = h.random.Intn(3) == 0
	case 15:
		if stage != nil && h.random.Intn(6) == 0 {
			h.skip(r, stage)
		}
	case 16:
		h.retry(r)
	case 17:
		if stage != nil && stage.Name == "rest" && h.random.Intn(3) == 0 {
			h.reject(r, "rest", "go", "bob")
			h.approvals[len(h.approvals)-1].Spec.Attempt = stage.Attempt
		}
	case 18:
		if h.random.Intn(10) == 0 {
			r.Spec.State = releasev1alpha1.StateRollback
		}
	default:
		h.act(m)
	}
}

func (h *history) approveNow(r *releasev1alpha1.Release) {
	h.approve(r, "rest", "go", "ann")
	h.approvals[len(h.approvals)-1].Spec.Attempt = r.Status.Stages[2].Attempt
	h.approved, h.approvedAttempts[r.Status.Stages[2].Attempt] = true, true
}

func (h *history) skip(r *releasev1alpha1.Release, stage *releasev1alpha1.ReleaseStageStatus) {
	r.Annotations[releasev1alpha1.SkipStageAnnotation] = fmt.Sprintf("%s@%d", stage.Name, stage.Attempt)
	for k := range r.Status.Stages {
		if r.Status.Stages[k].Name == stage.Name {
			h.skipped[k] = true
		}
	}
}

func (h *history) retry(r *releasev1alpha1.Release) {
	if stage := release.StageUnderWay(r); stage != nil && stage.Phase == releasev1alpha1.StageFailed {
		r.Annotations[releasev1alpha1.RetryAnnotation] = fmt.Sprintf("%s@%d", stage.Name, stage.Attempt)
	}
}

// limit returns the number of pods that stage k updates.
func (h *history) limit(k int) int64 {
	return (h.percents[k]*int64(h.binding.Spec.Replicas) + 99) / 100
}

// mayBegin reports whether stage k may have begun.
func (h *history) mayBegin(k int, r *releasev1alpha1.Release) bool {
	if k == 0 {
		return true
	}
	failed := h.proceeds && len(r.Status.Stages) > 0 && r.Status.Stages[k-1].Phase == releasev1alpha1.StageFailed
	return h.mayBegin(k-1, r) && (h.done[k-1] || h.skipped[k-1] || failed) && (k < 2 || h.approved)
}

// lastingNew are the new pods without those that are about to be deleted: a cluster that has yet to scale down has more
// pods than its Work asks for. Other clusters do not wait for that, as a lost one may never do it.
func (h *history) lastingNew() (n int64) {
	h.t.Helper()
	for _, m := range h.members {
		manifest := h.manifest(m)
		replicas, all := number(manifest, "spec", "replicas"), int64(len(m.images))
		current := h.current(m)
		others := all - current
		surplus := max(0, all-replicas)
		gone := min(surplus, max(0, others-min(number(manifest, "spec", "updateStrategy", "partition"), replicas)))
		if imageOf(manifest) == "web:2" {
			n += current - (surplus - gone)
		} else {
			n += min(int64(h.count("web:2", m.name)), others-gone)
		}
	}
	return n
}

// missing are the pods that are not available. In a cluster that has yet to scale down, only the replicas count: its
// other pods are about to be deleted.
func (h *history) missing() (n int64) {
	h.t.Helper()
	for _, m := range h.members {
		n += max(0, min(int64(len(m.images)), number(h.manifest(m), "spec", "replicas"))-m.available())
	}
	return n
}

// current are the pods of a member that are of the revision of its Work.
func (h *history) current(m *member) int64 {
	return int64(h.count(imageOf(h.manifest(m)), m.name))
}

// imageOf is the image in a manifest.
func imageOf(manifest map[string]any) string {
	return fields.Text(fields.Objects(manifest, "spec", "template", "spec", "containers")[0], "image")
}

// manifest returns the manifest in the Work of a member.
func (h *history) manifest(m *member) (manifest map[string]any) {
	h.t.Helper()
	if err := json.Unmarshal(h.works[m.name].Spec.Workload.Manifests[0].Raw, &manifest); err != nil {
		h.t.Fatal(err)
	}
	return manifest
}

func (h *history) check(what string, r *releasev1alpha1.Release) {
	h.t.Helper()
	// I1 and I3.
	var available int64
	for _, m := range h.members {
		for i, image := range m.images {
			if image == "web:2" && m.ready[i] {
				available++
			}
		}
	}
	plan := fleet.PlanOf(h.binding.Annotations)
	for k := range h.percents {
		if h.mayBegin(k, r) {
			h.allowed = max(h.allowed, h.limit(k))
			h.done[k] = h.done[k] || available >= h.limit(k)
			h.rounded = h.rounded || k == 1 && (h.done[k] || h.skipped[k]) && h.limit(1) == h.limit(2)
			h.approved = h.approved || h.rounded
		} else if plan != nil && r.Status.Rollback == nil && plan.At > k && !plan.Stages[k].Skip {
			h.t.Fatalf("%s: stage %d has begun, and may not (I3): %+v", what, k+1, r.Status.Stages)
		}
	}
	if n := h.lastingNew(); n > h.allowed {
		h.t.Fatalf("%s: %d pods are new where %d may be (I1)", what, n, h.allowed)
	}
	// I4: an approval of an earlier attempt opens no gate.
	if len(r.Status.Stages) == 3 && r.Status.Rollback == nil && !h.rounded {
		switch last := r.Status.Stages[2]; last.Phase {
		case releasev1alpha1.StageUpdating, releasev1alpha1.StageSoaking, releasev1alpha1.StageChecking,
			releasev1alpha1.StageDone:
			if !h.approvedAttempts[last.Attempt] {
				h.t.Fatalf("%s: attempt %d of the last stage is %s without its approval (I4)", what, last.Attempt, last.Phase)
			}
		}
	}
	// I2.
	if n := h.missing(); n > h.budget {
		h.t.Fatalf("%s: %d pods are unavailable where %d may be (I2)", what, n, h.budget)
	}
	h.checkNumbers(what, r)
	// I10: no pod of a template that was not released.
	for _, image := range []string{"web:3", "web:4", "web:5"} {
		if h.count(image) > 0 {
			h.t.Fatalf("%s: a pod has %s, which was not released (I10)", what, image)
		}
	}
	// I6.
	if plan == nil || !plan.Hold || h.scaled {
		h.held = -1
		return
	}
	var released int64
	progress, err := dispatch.ProgressOf(h.dispatchInput())
	if err != nil {
		h.t.Fatal(err)
	}
	for i, p := range progress {
		released += p.Released
		// That more pods are new already may be written during a hold: no other pod is updated by it.
		if m := h.members[i]; p.Current && m.name == p.Cluster {
			released += max(0, min(p.Replicas, h.current(m))-p.Released)
		}
	}
	if h.held >= 0 && released > h.held {
		h.t.Fatalf("%s: %d pods are released during a hold, and %d were before (I6)", what, released, h.held)
	}
	h.held = released
}

// checkNumbers compares what users see with the pods that there are (I11): no pod counts as new that is not.
func (h *history) checkNumbers(what string, r *releasev1alpha1.Release) {
	h.t.Helper()
	image := "web:2"
	if r.Status.Rollback != nil {
		image = "web:1"
	}
	var progress, available, updated, current int64
	_, _ = fmt.Sscanf(r.Status.Progress, "%d/", &progress)
	for _, m := range h.members {
		for i := range m.images {
			if m.images[i] == image && m.ready[i] {
				available++
			}
		}
		current += int64(h.count(imageOf(h.template.Object), m.name))
		if w := h.works[m.name]; len(w.Status.ManifestStatuses) > 0 {
			var status map[string]any
			if err := json.Unmarshal(w.Status.ManifestStatuses[0].Status.Raw, &status); err != nil {
				h.t.Fatal(err)
			}
			pods, _ := interpret.PodsOf(h.template.GroupVersionKind().GroupKind(), status)
			if interpret.CountsUpdated(status, h.template.GetGeneration()) {
				updated += pods.Updated
			}
		}
	}
	if h.reported != r.Status.Progress && progress > available {
		h.t.Fatalf("%s: the release shows %s pods with %s, and %d are available (I11)", what, r.Status.Progress, image,
			available)
	}
	h.reported = r.Status.Progress
	if updated > current {
		h.t.Fatalf("%s: %d pods count as updated, and %d are of the template (I11)", what, updated, current)
	}
}

// finish lets everything succeed that can, and compares the end with what the user has asked for.
func (h *history) finish(seed int64, r *releasev1alpha1.Release) {
	h.t.Helper()
	for _, m := range h.members {
		h.lose(m.name, false)
		m.fails = map[string]bool{}
	}
	for range 8 {
		if r.Spec.State != releasev1alpha1.StateRollback {
			r.Spec.State = releasev1alpha1.StateRun
		}
		h.retry(r)
		h.pass(time.Hour)
		if stage := release.StageUnderWay(r); stage != nil && stage.Name == "rest" {
			h.approveNow(r)
		}
		h.pass(time.Hour)
		h.check(fmt.Sprintf("seed %d, in the end", seed), r)
	}
	old, kept := h.count("web:1"), len(release.KeptClusters(&r.Status)) > 0
	switch {
	case r.Status.Rollback != nil:
		if r.Status.Phase != releasev1alpha1.ReleaseRolledBack || h.count("web:2") > 0 {
			h.t.Fatalf("seed %d: the rollback ends as %s (%s) with %d new pods: %+v", seed, r.Status.Phase, r.Status.Reason,
				h.count("web:2"), r.Status)
		}
	case r.Status.Phase != releasev1alpha1.ReleaseSucceeded || old > 0 && !kept:
		h.t.Fatalf("seed %d: it ends as %s (%s) with %d old pods: %+v", seed, r.Status.Phase, r.Status.Reason, old, r.Status)
	}
	status, binding := h.statusWrites, h.bindingWrites
	h.rest()
	if h.statusWrites != status || h.bindingWrites != binding {
		h.t.Fatalf("seed %d: a restart writes (I7)", seed)
	}
}

func TestInvariantsHoldInRandomHistories(t *testing.T) {
	seeds := int64(200)
	if testing.Short() {
		seeds = 24
	}
	ends := map[string]int{}
	for seed := range seeds {
		h := newHistory(t, seed)
		r := h.release("r1", h.strategy())
		h.reconcile(r)
		for n := range 300 {
			h.event(r)
			h.check(fmt.Sprintf("seed %d, event %d", seed, n), r)
		}
		h.finish(seed, r)
		ends[string(r.Status.Phase)]++
		for _, e := range r.Status.Journal {
			ends[e.Reason]++
		}
	}
	for _, end := range []string{"Succeeded", "RolledBack", "SkipStage", "Retry", "Rejected", "PodsFailed"} {
		if ends[end] == 0 {
			t.Errorf("no history has %s: %v", end, ends)
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
