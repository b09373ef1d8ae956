package release_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

const oneTwoSeven = `
stages:
- {name: one, to: {weight: 1}, soak: 5s}
- {name: two, to: {weight: 2}, soak: 5s}
- {name: seven, to: {weight: 7}, soak: 5s}
`

func repeat(n int64, times int) []int64 { return slices.Repeat([]int64{n}, times) }

// Scenario 1.
func TestAReleaseByWeightsStopsAtEachStage(t *testing.T) {
	w := newWorld(t, cloneSet, repeat(10, 10)...)
	r := w.release("r1", oneTwoSeven)
	var most []int
	w.watch = func() {
		if n := w.count("web:2"); len(most) == 0 || n > most[len(most)-1] {
			most = append(most, n)
		}
		if n := w.down(); n > 5 {
			t.Fatalf("%d pods are unavailable, want at most 5", n)
		}
	}
	w.rest()
	w.expect("in the first stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 10)
	for _, m := range w.members {
		if n := w.count("web:2", m.name); n != 1 {
			t.Errorf("%s has %d new pods, want 1", m.name, n)
		}
	}
	w.pass(5 * time.Second)
	w.expect("in the second stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 30)
	w.pass(5 * time.Second)
	w.expect("in the last stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 100)
	w.pass(5 * time.Second)
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 100)
	if w.statusWrites > 2+3*3 || w.bindingWrites > 3+1 {
		t.Errorf("%d writes of the status and %d of the binding, want at most 11 and 4", w.statusWrites, w.bindingWrites)
	}
	if fleet.PlanOf(w.binding.Annotations) != nil {
		t.Error("the binding has a plan after the release")
	}
}

// Scenario 2.
const environments = `
stages:
- {name: test, clusters: {labelSelector: {matchLabels: {env: test}}}}
- {name: pre, clusters: {labelSelector: {matchLabels: {env: pre}}}}
- {name: prod, before: [{name: sign, type: Approval}], clusters: {labelSelector: {matchLabels: {env: prod}}}}
`

// environmentsWorld has clusters t1-t2, p1-p3 and x1-x3 of test, pre-release and production with five pods each.
func environmentsWorld(t testing.TB) *world { return environmentsOf(t, cloneSet) }

func environmentsOf(t testing.TB, template string) *world {
	w := newWorld(t, template)
	w.template = w.template.DeepCopy()
	w.template.SetAnnotations(nil)
	w.edit([]any{map[string]any{"name": "main", "image": "web:1"}}, "spec", "template", "spec", "containers")
	env := map[byte]string{'t': "test", 'p': "pre", 'x': "prod"}
	for _, c := range []string{"t1", "t2", "p1", "p2", "p3", "x1", "x2", "x3"} {
		w.join(c, 5, map[string]string{"env": env[c[0]]})
	}
	w.edit("20%", "spec", "updateStrategy", "maxUnavailable")
	w.rest()
	w.former = w.revision()
	w.workWrites, w.sequence, w.released = map[string]int{}, nil, map[string]int64{}
	w.image("web:2")
	return w
}

func TestProductionIsLastAndWaitsForAnApproval(t *testing.T) {
	w := environmentsWorld(t)
	r := w.release("r1", environments)
	var order []string
	w.watch = func() {
		for _, m := range w.members {
			if env := w.clusters[m.name].Labels["env"]; w.count("web:2", m.name) > 0 && !slices.Contains(order, env) {
				order = append(order, env)
			}
		}
	}
	w.pass(time.Hour)
	w.expect("before the approval", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2",
		25)
	if n := w.workWrites["x1"] + w.workWrites["x2"] + w.workWrites["x3"]; n > 0 {
		t.Errorf("production was written %d times before the approval", n)
	}
	w.approve(r, "prod", "sign", "ann")
	w.rest()
	w.expect("after it", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 40)
	if strings.Join(order, " ") != "test pre prod" {
		t.Errorf("the order of environments is %v", order)
	}
}

// Scenario 3.
func TestStagesOfPodsAddClustersOneByOne(t *testing.T) {
	w := newWorld(t, cloneSet, repeat(1, 10)...)
	strategy := "stages:\n"
	for i, n := range []int{1, 3, 5, 7, 10} {
		strategy += fmt.Sprintf("- {name: s%d, to: {pods: %d}, before: [{name: go}]}\n", i, n)
	}
	r := w.release("r1", strategy)
	for i, n := range []int{1, 3, 5, 7, 10} {
		w.rest()
		w.approve(r, fmt.Sprintf("s%d", i), "go", "ann")
		w.rest()
		if got := w.count("web:2"); got != n {
			t.Fatalf("after stage %d, %d pods are new, want %d", i+1, got, n)
		}
	}
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
}

// Scenario 4.
func TestAFailureRollsBackAndBlocksTheRevision(t *testing.T) {
	w := environmentsWorld(t)
	for _, m := range w.members {
		m.fails["web:2"] = strings.HasPrefix(m.name, "p")
	}
	r := w.release("r1", environments+"failure: {action: Rollback}\n")
	most := 0
	w.watch = func() {
		most = max(most, w.count("web:2", "p1", "p2", "p3"))
		if n := w.workWrites["x1"] + w.workWrites["x2"] + w.workWrites["x3"]; n > 0 && r.Status.Rollback == nil {
			t.Fatalf("production was written %d times before the rollback", n)
		}
	}
	w.rest()
	w.expect("in the end", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
	if most == 0 || most > 8 {
		t.Errorf("%d pods failed, want some, and at most 8", most)
	}
	if n := w.count("web:1"); n != 40 {
		t.Errorf("%d pods are old, want 40", n)
	}
	for _, m := range w.members {
		// The template has another generation, which is written once.
		if m.name[0] == 'x' && (m.updated > 0 || w.workWrites[m.name] > 1) {
			t.Errorf("production cluster %s was written %d times, and %d pods were updated", m.name, w.workWrites[m.name],
				m.updated)
		}
	}
	again := w.release("r2", environments)
	w.rest()
	w.expect("the same image again", again, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRevisionBlocked, "web:2",
		0)
}

// Scenario 5.
func TestARollbackInReverseUpdatesOnlyTheNewPods(t *testing.T) {
	for _, order := range []string{"Reverse", "AtOnce"} {
		w := newWorld(t, cloneSet, repeat(10, 10)...)
		r := w.release("r1", strings.ReplaceAll(oneTwoSeven, "5s", "1h")+"rollback: {order: "+order+"}\n")
		w.pass(time.Hour)
		w.expect("in the second stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 30)
		before := 0
		for _, m := range w.members {
			before += m.updated
		}
		template := w.template.DeepCopy()
		r.Spec.State = releasev1alpha1.StateRollback
		w.rest()
		w.expect("after the rollback, "+order, r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack,
			"web:2", 0)
		after := 0
		for _, m := range w.members {
			after += m.updated
		}
		if after-before != 30 {
			t.Errorf("%s: %d pods were updated back, want 30", order, after-before)
		}
		if !reflect.DeepEqual(template, w.template) {
			t.Errorf("%s: the template was changed", order)
		}
	}
}

// Scenario 6.
func TestAGateNeedsDifferentApproversForThisRevision(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	const gate = `
stages: [{name: all, before: [{name: two, approval: {count: 2, notAuthor: true,
  from: [{kind: User, name: a}, {kind: User, name: b}, {kind: User, name: c}]}}]}]
`
	r := w.release("r1", gate)
	r.Spec.CreatedBy = &releasev1alpha1.ReleaseUser{User: "a"}
	w.rest()
	for _, user := range []string{"a", "d", "b", "b"} {
		w.approve(r, "all", "two", user)
		w.rest()
		w.expect("after "+user, r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 0)
	}
	w.approve(r, "all", "two", "c")
	w.approvals[len(w.approvals)-1].Spec.By = nil // not stamped by the hub
	w.rest()
	w.expect("after one without a user", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval,
		"web:2", 0)
	w.approve(r, "all", "two", "c")
	w.rest()
	w.expect("after c", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 4)

	w.image("web:3")
	r.Name, w.releases = "old", nil
	next := w.release("r1", gate)
	next.UID = r.UID
	w.rest()
	w.expect("the approvals of another revision", next, releasev1alpha1.ReleaseRunning,
		releasev1alpha1.ReasonWaitingForApproval, "web:3", 0)
}

func TestARejectionPausesAndARetryAsksAgain(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	r := w.release("r1", "stages: [{name: all, before: [{name: go}]}]")
	w.rest()
	w.approve(r, "all", "go", "ann")
	w.approvals[0].Spec.Verdict = releasev1alpha1.VerdictReject
	w.rest()
	w.expect("after the rejection", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, "web:2", 0)
	r.Annotations[releasev1alpha1.RetryAnnotation] = "all@1"
	w.rest()
	w.expect("after the retry", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 0)
	w.approve(r, "all", "go", "ann")
	w.approvals[1].Spec.Attempt = 2
	w.rest()
	w.expect("after the approval", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 4)
}

// Scenario 7.
func TestSoakingStartsAgainAfterAFlap(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", "stages: [{name: half, to: {percent: 50}, soak: 60s}, {name: rest}]")
	w.rest()
	start := w.now
	w.pass(40 * time.Second)
	i := slices.Index(w.members[0].images, "web:2")
	w.members[0].ready[i] = false
	w.members[0].fails["web:2"] = true
	w.report(w.members[0], w.works["c1"], "web:2")
	work := w.works["c1"].DeepCopy()
	work.Status.ManifestStatuses[0].Health = "Unknown" // it is unavailable, not failed
	w.works["c1"] = work
	w.reconcile(r)
	w.members[0].fails["web:2"] = false
	w.rest()
	w.pass(59 * time.Second)
	w.expect("at 99 s", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 5)
	w.pass(time.Second)
	w.expect("at 100 s", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
	if got := w.now.Sub(start); got != 100*time.Second {
		t.Errorf("it took %s", got)
	}
	if !slices.ContainsFunc(r.Status.Journal, func(e releasev1alpha1.ReleaseJournalEntry) bool {
		return e.Cluster == "c1" && e.Reason == "Interrupted"
	}) {
		t.Errorf("the journal does not name the cluster: %+v", r.Status.Journal)
	}
}

// Scenario 11.
func TestPauseAndAbortHoldWhatIsThere(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10, 10)
	w.edit(int64(2), "spec", "updateStrategy", "maxUnavailable")
	r := w.release("r1", "stages: [{name: half, to: {percent: 50}}, {name: rest, before: [{name: go}]}]")
	grown := 0
	w.watch = func() {
		switch n := w.count("web:2"); {
		case r.Spec.State == releasev1alpha1.StateRun && n >= 5:
			r.Spec.State = releasev1alpha1.StatePause
		case r.Spec.State == releasev1alpha1.StatePause:
			grown = max(grown, n)
		}
	}
	w.rest()
	if grown < 5 || grown > 7 {
		t.Errorf("%d pods are new after the pause, want 5 and at most the budget of 2 more", grown)
	}
	w.expect("paused", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByUser, "web:2", grown)
	w.watch = func() {}
	r.Spec.State = releasev1alpha1.StateRun
	w.rest()
	w.expect("resumed", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 15)
	r.Spec.State = releasev1alpha1.StateAbort
	w.rest()
	w.expect("aborted", r, releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "web:2", 15)
	w.releases = nil // without the Release the binding stays held (I11)
	w.rest()
	if n := w.count("web:2"); n != 15 {
		t.Errorf("without the Release, %d pods are new, want 15", n)
	}
	w.releases = []*releasev1alpha1.Release{r}
	r.Spec.State = releasev1alpha1.StateRollback
	w.rest()
	w.expect("rolled back", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
}

// I11.
func TestNoStageStartsWithoutTheReleaseController(t *testing.T) {
	w := newWorld(t, cloneSet, repeat(10, 10)...)
	r := w.release("r1", "stages: [{name: one, to: {percent: 10}}, {name: rest}]")
	w.reconcile(r)
	plan := w.binding.Annotations[fleet.PlanAnnotation]
	w.releases = nil // no controller reconciles them
	w.pass(24 * time.Hour)
	if n := w.count("web:2"); n != 10 || len(w.works) != 10 {
		t.Errorf("%d pods in %d clusters are new, want the 10 of the first stage", n, len(w.works))
	}
	if plan == "" || w.binding.Annotations[fleet.PlanAnnotation] != plan {
		t.Errorf("the plan is %q, was %q", w.binding.Annotations[fleet.PlanAnnotation], plan)
	}
}

// Scenario 12, without guards.
func TestReleasesOfATargetQueueOrReplaceEachOther(t *testing.T) {
	const gated = "stages: [{name: some, to: {percent: 30}}, {name: rest, before: [{name: go}]}]"
	w := newWorld(t, cloneSet, 10, 10)
	one := w.release("r1", gated)
	w.rest()
	w.expect("the first", one, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 6)
	w.image("web:3")
	two := w.release("r2", gated)
	w.rest()
	w.expect("the second", two, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonQueued, "web:3", 0)
	if c := meta.FindStatusCondition(one.Status.Conditions, releasev1alpha1.ReleaseDrifted); c == nil ||
		c.Reason != releasev1alpha1.ReasonTemplateChanged {
		t.Errorf("Drifted of the first is %+v", c)
	}
	w.approve(one, "rest", "go", "ann")
	w.rest()
	w.expect("the first", one, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 14)
	w.expect("the second", two, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:3", 6)

	w.image("web:4")
	three := w.release("r3", gated)
	three.Spec.Supersede = releasev1alpha1.SupersedeReplace
	most := 0
	w.watch = func() {
		most = max(most, w.count("web:3"))
		running := 0
		for _, r := range w.releases {
			if r.Status.Phase.UnderWay() {
				running++
			}
		}
		if running > 1 {
			t.Fatalf("%d releases are under way (I5)", running)
		}
	}
	w.rest()
	w.expect("the second", two, releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded, "web:4", 6)
	w.expect("the third", three, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:4", 6)
	w.approve(three, "rest", "go", "ann")
	w.rest()
	w.expect("the third", three, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:4", 20)
	if most > 6 {
		t.Errorf("%d pods of the second revision, want at most 6", most)
	}

	w.image("web:5")
	four, five := w.release("r4", gated), w.release("r5", gated)
	five.Spec.Supersede = releasev1alpha1.SupersedeRefuse
	w.reconcile(four)
	w.rest()
	w.expect("the fifth", five, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonAnotherUnderWay, "web:5", 6)
}

// Scenario 13.
func TestAStageFollowsScalingAndTheFleet(t *testing.T) {
	for _, action := range []string{"Defer", "Include", "Hold"} {
		w := newWorld(t, cloneSet, 4, 3, 3)
		r := w.release("r1", "stages: [{name: some, to: {percent: 10}}, {name: rest, before: [{name: go}]}]\nonNewCluster: "+
			action)
		w.rest()
		w.expect("at first", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 1)
		w.place("c1", 8)
		w.place("c2", 6)
		w.place("c3", 6)
		w.rest()
		if n := w.count("web:2"); n > 2 {
			t.Errorf("%s: %d of 20 pods are new, want at most 2", action, n)
		}
		for c, n := range map[string]int64{"c1": 2, "c2": 2, "c3": 2} {
			w.place(c, n)
		}
		w.rest()
		if n := w.count("web:2"); n > 2 {
			t.Errorf("%s: %d of 6 pods are new, want at most 2", action, n)
		}
		w.place("c3", -1)
		w.members = slices.DeleteFunc(w.members, func(m *member) bool { return m.name == "c3" })
		w.join("c4", 2, nil)
		w.rest()
		if n := w.count("web:2", "c4"); n != 0 {
			t.Errorf("%s: the cluster that joined has %d new pods, want none", action, n)
		}
		if n, want := w.count("web:1", "c4"), map[string]int{"Hold": 0}[action]; action == "Hold" && n != want ||
			action != "Hold" && n != 2 {
			t.Errorf("%s: the cluster that joined has %d old pods", action, n)
		}
		w.approve(r, "rest", "go", "ann")
		w.rest()
		w.expect("in the end, "+action, r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 6)
	}
}

// Scenario 15.
func TestALostClusterIsWaitedForOrSkipped(t *testing.T) {
	const stages = "stages: [{name: half, to: {percent: 50}}, {name: rest}]\n"
	for _, action := range []string{"Wait", "Skip", "Fail"} {
		w := newWorld(t, cloneSet, 4, 4, 4)
		w.edit(int64(6), "spec", "updateStrategy", "maxUnavailable")
		r := w.release("r1", stages+"onLostCluster: {action: "+action+", after: 60s}")
		killed := false
		w.watch = func() {
			if !killed && w.count("web:2") >= 7 {
				killed = true
				w.lose("c2", true)
			}
			if n := w.down(); n > 6 {
				t.Fatalf("%s: %d pods are unavailable, want at most 6", action, n)
			}
		}
		w.pass(10 * time.Minute)
		switch action {
		case "Wait":
			if r.Status.Reason != releasev1alpha1.ReasonClusterUnreachable {
				t.Errorf("Wait: it is %s (%s)", r.Status.Phase, r.Status.Reason)
			}
		case "Skip":
			w.expect("Skip", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2",
				8+w.count("web:2", "c2"))
		case "Fail":
			w.expect("Fail", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, "web:2",
				w.count("web:2"))
			continue
		}
		w.lose("c2", false)
		w.pass(time.Minute)
		w.expect("after its return, "+action, r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2",
			12)
	}
}

// Kinds without a partition are updated by whole clusters.
func TestADeploymentIsReleasedByWholeClusters(t *testing.T) {
	w := newWorld(t, deployment, 3, 3, 3)
	r := w.release("r1",
		"stages: [{name: one, to: {pods: 1}}, {name: rest, before: [{name: go}], maxConcurrentClusters: 1}]")
	w.rest()
	w.expect("in the first stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 3)
	if w.workWrites["c2"]+w.workWrites["c3"] > 0 {
		t.Errorf("other clusters were written: %v", w.workWrites)
	}
	w.approve(r, "rest", "go", "ann")
	w.watch = func() {
		if n := w.count("web:2", "c3"); n > 0 && w.count("web:2", "c2") < 3 {
			t.Fatal("two clusters are updated at the same time")
		}
	}
	w.rest()
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 9)
}

// Scenario 18.
func TestAPlanIsWhatThenHappens(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 30
	}
	for seed := range int64(seeds) {
		random := rand.New(rand.NewSource(seed))
		replicas := make([]int64, 1+random.Intn(5))
		for i := range replicas {
			replicas[i] = random.Int63n(6)
		}
		replicas[0]++
		template := cloneSet
		if seed%5 == 4 {
			template = deployment
			for i := range replicas {
				replicas[i] = 2
			}
		}
		w := newWorld(t, template, replicas...)
		if w.divided {
			w.edit(1+random.Int63n(4), "spec", "updateStrategy", "maxUnavailable")
		}
		r := w.release("r1", randomStrategy(random))
		planned, err := release.PlanOf(w.input(r))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		w.pass(time.Hour)
		if r.Status.Phase != releasev1alpha1.ReleaseSucceeded {
			t.Fatalf("seed %d: it is %s (%s): %+v", seed, r.Status.Phase, r.Status.Reason, r.Status)
		}
		if r.Status.PlanHash != planned.Hash {
			t.Errorf("seed %d: the hash of the plan is %s, then %s", seed, planned.Hash, r.Status.PlanHash)
		}
		if got, plan := final(w.sequence), final(steps(planned.Steps)); !reflect.DeepEqual(got, plan) {
			t.Errorf("seed %d: %+v\nplanned  %v\nhappened %v", seed, r.Spec.Strategy, planned.Steps, w.sequence)
		}
	}
}

func steps(planned []release.Planned) (all []fleet.Released) {
	for _, p := range planned {
		all = append(all, p.Released)
	}
	return all
}

// final returns the pods that each stage has released in each cluster when it ends: within a stage, clusters take turns
// as members report.
func final(all []fleet.Released) map[string]int64 {
	out := map[string]int64{}
	for _, r := range all {
		out[r.Stage+" "+r.Cluster] = r.Released
	}
	return out
}

func randomStrategy(random *rand.Rand) string {
	switch random.Intn(4) {
	case 0:
		return oneTwoSeven
	case 1:
		return fmt.Sprintf("stages: [{name: a, to: {percent: %d}, order: Ordered}, {name: b, maxConcurrentClusters: 1}]",
			1+random.Intn(100))
	case 2:
		return fmt.Sprintf("stages: [{name: a, to: {pods: %d}}, {name: b}]", 1+random.Intn(6))
	default:
		return "stages: [{name: a, clusters: {clusterNames: [c1]}, to: {percent: 50}}, " +
			"{name: b, clusters: {clusterNames: [c1]}}, {name: c, unit: Cluster}]\nunassigned: LastStage"
	}
}
