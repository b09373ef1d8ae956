package release_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// guard is a ReleaseGuard with a spec in YAML.
func guard(t testing.TB, name, spec string) release.Guard {
	t.Helper()
	g := &releasev1alpha1.ReleaseGuard{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &g.Spec); err != nil {
		t.Fatal(err)
	}
	return release.Guard{ReleaseGuard: g}
}

func (w *world) guard(guards ...release.Guard) {
	w.guards = func() []release.Guard { return guards }
}

// breakGlass sets the annotation that starts the stage with which a release waits.
func breakGlass(t testing.TB, r *releasev1alpha1.Release, user, reason string) {
	t.Helper()
	old := r.DeepCopy()
	value, ok := release.BreakGlassValue(r.Status)
	if !ok {
		t.Fatalf("release %s does not wait for a guard: %+v", r.Name, r.Status)
	}
	r.Annotations[releasev1alpha1.BreakGlassAnnotation] = value
	r.Annotations[releasev1alpha1.ReleaseReasonAnnotation] = reason
	if errs := release.CheckAnnotations(old, r); len(errs) > 0 {
		t.Fatal(errs)
	}
	r.Annotations[release.VerbsAnnotation] = release.StampVerbs(old, r, user)
}

// frozen is a guard that is closed from 12:01 to 12:11; a world begins at 12:00.
const frozen = `{windows: [{kind: Deny, from: "2026-01-01T12:01:00Z", to: "2026-01-01T12:11:00Z", reason: a fair}]}`

const threeStages = `
stages:
- {name: some, to: {percent: 10}, soak: 90s}
- {name: more, to: {percent: 50}, soak: 90s}
- {name: rest}
`

// frozenWorld is at 12:05. The first stage has ended in the window, and the second one waits.
func frozenWorld(t *testing.T) (*world, *releasev1alpha1.Release) {
	w := newWorld(t, cloneSet, 10, 10)
	w.guard(guard(t, "fair", frozen))
	r := w.release("r1", threeStages)
	w.pass(5 * time.Minute)
	return w, r
}

// Scenario 10.
func TestAStageUnderWayEndsInAClosedWindowAndTheNextOneWaits(t *testing.T) {
	w, r := frozenWorld(t)
	w.expect("in the window", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonFrozen, "web:2", 2)
	if g := r.Status.Guard; g == nil || g.Name != "fair" || g.Until.UTC().Format("15:04") != "12:11" {
		t.Errorf("the release waits for %+v", g)
	}
	const want = "it waits: ReleaseGuard fair is closed until 2026-01-01T12:11:00Z: a fair"
	if what, next := release.Waits(r); what != want || !strings.Contains(next, "`argosy release break-glass r1 -n shop") {
		t.Errorf("the release waits: %s; %s", what, next)
	}
	writes := w.statusWrites
	w.pass(5 * time.Minute)
	if w.statusWrites != writes {
		t.Errorf("%d statuses are written while the release waits", w.statusWrites-writes)
	}
	w.pass(2 * time.Minute)
	w.expect("after the window", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 10)
	if r.Status.Guard != nil {
		t.Errorf("the release still waits for %+v", r.Status.Guard)
	}
	w.pass(5 * time.Minute)
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 20)
}

func TestAbortRollbackAndPausePassAClosedWindow(t *testing.T) {
	w, r := frozenWorld(t)
	r.Spec.State = releasev1alpha1.StateRollback
	w.pass(time.Minute)
	w.expect("after a rollback", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)

	w, r = frozenWorld(t)
	r.Spec.State = releasev1alpha1.StateAbort
	w.pass(time.Minute)
	w.expect("after an abort", r, releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "web:2", 2)

	w, r = frozenWorld(t)
	r.Spec.State = releasev1alpha1.StatePause
	w.pass(time.Minute)
	w.expect("after a pause", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByUser, "web:2", 2)
	if r.Status.Guard != nil {
		t.Errorf("a release that is paused waits for %+v", r.Status.Guard)
	}
}

func TestBreakGlassStartsOneStageAndIsRecorded(t *testing.T) {
	w, r := frozenWorld(t)
	breakGlass(t, r, "ann", "checkout is down")
	w.pass(3 * time.Minute)
	w.expect("after the glass was broken", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonFrozen, "web:2", 10)
	var entries []string
	for _, e := range r.Status.Journal {
		if e.Type == releasev1alpha1.JournalVerb {
			entries = append(entries, e.Stage+" "+e.Reason+" by "+e.Actor+": "+e.Message)
		}
	}
	const want = "more BreakGlass by ann: checkout is down (ReleaseGuard fair is closed until 2026-01-01T12:11:00Z: a fair)"
	if len(entries) != 1 || entries[0] != want {
		t.Errorf("the journal has %q, want %q", entries, want)
	}
}

func TestBreakGlassNamesTheStageThatWaitsAndAReason(t *testing.T) {
	const key, reason = releasev1alpha1.BreakGlassAnnotation, releasev1alpha1.ReleaseReasonAnnotation
	waits := func() *releasev1alpha1.Release {
		r := releaseAtProd(t)
		r.Annotations = map[string]string{}
		r.Status.Guard = &releasev1alpha1.ReleaseGuardWait{Name: "fair"}
		return r
	}
	for _, c := range []struct {
		name, want string
		change     func(old, r *releasev1alpha1.Release)
	}{
		{"the stage that waits", "", func(_, r *releasev1alpha1.Release) {}},
		{"another attempt", "must be prod@2", func(_, r *releasev1alpha1.Release) { r.Annotations[key] = "prod@1" }},
		{"another stage", "must be prod@2", func(_, r *releasev1alpha1.Release) { r.Annotations[key] = "test@1" }},
		{"no reason", "needs a reason", func(_, r *releasev1alpha1.Release) { r.Annotations[reason] = " " }},
		{"a release that does not wait", "does not wait for a ReleaseGuard",
			func(old, _ *releasev1alpha1.Release) { old.Status.Guard = nil }},
	} {
		old, r := waits(), waits()
		r.Annotations[key], r.Annotations[reason] = "prod@2", "checkout is down"
		c.change(old, r)
		errs := release.CheckAnnotations(old, r)
		if c.want == "" && len(errs) > 0 || c.want != "" && !strings.Contains(fmt.Sprint(errs), c.want) {
			t.Errorf("%s: %v, want %q", c.name, errs, c.want)
		}
		if rights := release.RightsFor(old, r); len(rights) != 1 || rights[0].Verb != releasev1alpha1.VerbBreakGlass {
			t.Errorf("%s needs %v", c.name, rights)
		}
	}
	r := waits()
	r.Annotations[key], r.Annotations[reason] = "prod@1", "now"
	if errs := release.CheckAnnotations(nil, r); len(errs) != 1 {
		t.Errorf("a new release that breaks the glass: %v", errs)
	}
}

func TestAReleaseStartsWhenItsGuardsAreOpen(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10)
	w.guard(guard(t, "days", `{windows: [{kind: Allow, schedule: 0 14 * * *, duration: 2h}]}`),
		guard(t, "later", `{windows: [{kind: Deny, to: "2026-01-01T15:00:00Z"}]}`),
		guard(t, "bank", `{selector: {namespaces: [bank]}, windows: [{kind: Deny, from: "2026-01-01T00:00:00Z"}]}`),
		guard(t, "prod", `{selector: {environments: [prod]}, windows: [{kind: Deny, from: "2026-01-01T00:00:00Z"}]}`),
		guard(t, "edge", `{selector: {clusters: {matchLabels: {edge: "yes"}}},
			windows: [{kind: Deny, from: "2026-01-01T00:00:00Z"}]}`))
	r := w.release("r1", "stages: [{name: all, environment: test}]")
	w.rest()
	w.expect("at noon", r, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonFrozen, "web:2", 0)
	w.pass(150 * time.Minute)
	w.expect("at half past two", r, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonFrozen, "web:2", 0)
	w.pass(time.Hour)
	w.expect("at half past three", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 20)
}

func TestAReleaseThatWaitsForItsWindowReplacesNoOther(t *testing.T) {
	w, first := frozenWorld(t)
	w.image("web:3")
	second := w.release("r2", threeStages)
	second.Spec.Supersede = releasev1alpha1.SupersedeReplace
	w.pass(time.Minute)
	w.expect("in the window", second, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonFrozen, "web:3", 0)
	if first.Status.Phase != releasev1alpha1.ReleaseRunning {
		t.Errorf("the first release is %s", first.Status.Phase)
	}
	w.pass(time.Hour)
	w.expect("after the window", second, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:3", 20)
	if first.Status.Phase != releasev1alpha1.ReleaseSuperseded {
		t.Errorf("the first release is %s", first.Status.Phase)
	}
}

func TestAGuardAddsApprovalsBeforeTheStagesThatItSelects(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10)
	w.guard(guard(t, "four-eyes", `{selector: {environments: [prod]}, approvals: {count: 2, notAuthor: true}}`))
	r := w.release("r1", `{stages: [{name: test, to: {percent: 10}}, {name: prod, environment: prod}]}`)
	r.Spec.CreatedBy = &releasev1alpha1.ReleaseUser{User: "ann"}
	w.rest()
	w.expect("before prod", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 2)
	w.approve(r, "prod", release.GuardGate, "ann")
	w.approve(r, "prod", release.GuardGate, "bob")
	w.rest()
	w.expect("after the author's approval", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval,
		"web:2", 2)
	w.guard() // the gate stays
	w.approve(r, "prod", release.GuardGate, "eve")
	w.rest()
	w.expect("after two approvals", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 20)
}

// guardedFleet is several workloads under the same guards.
type guardedFleet struct {
	t      testing.TB
	worlds []*world
	guards []release.Guard
}

// newGuardedFleet has workloads with a release each, the first one the oldest. Clusters c1 and c2 are in region eu, the
// others in us.
func newGuardedFleet(t testing.TB, replicas [][]int64, strategy string, guards ...release.Guard) *guardedFleet {
	f := &guardedFleet{t: t, guards: guards}
	for i, numbers := range replicas {
		w := newWorld(t, cloneSet, numbers...)
		for name, c := range w.clusters {
			c.Labels = map[string]string{"region": map[bool]string{true: "eu", false: "us"}[name == "c1" || name == "c2"]}
		}
		r := w.release(fmt.Sprintf("r%d", i+1), strategy)
		r.CreationTimestamp = metav1.NewTime(w.now.Add(time.Duration(i) * time.Second))
		w.guards, w.peers = f.current, f.releases
		f.worlds = append(f.worlds, w)
	}
	return f
}

// current are the guards with the pods that there are.
func (f *guardedFleet) current() []release.Guard {
	out := slices.Clone(f.guards)
	for i := range out {
		out[i].Pods = map[string]int64{}
		for _, w := range f.worlds {
			for _, c := range w.binding.Spec.Clusters {
				out[i].Pods[c.Name] += int64(c.Replicas)
			}
		}
	}
	return out
}

func (f *guardedFleet) releases() (all []releasev1alpha1.Release) {
	for _, w := range f.worlds {
		for _, r := range w.releases {
			all = append(all, *r.DeepCopy())
		}
	}
	return all
}

// rest lets all workloads act until nothing changes.
func (f *guardedFleet) rest() (after time.Duration) {
	f.t.Helper()
	for range 1000 {
		was, is := 0, 0
		after = 0
		for _, w := range f.worlds {
			was += w.statusWrites
			if due := w.rest(); due > 0 && (after == 0 || due < after) {
				after = due
			}
			is += w.statusWrites
		}
		if was == is {
			return after
		}
	}
	f.t.Fatal("the fleet does not come to rest")
	return 0
}

func (f *guardedFleet) pass(d time.Duration) {
	f.t.Helper()
	end := f.worlds[0].now.Add(d)
	for {
		after := f.rest()
		next := f.worlds[0].now.Add(after)
		if after == 0 || next.After(end) {
			next = end
		}
		for _, w := range f.worlds {
			w.now = next
		}
		if next.Equal(end) {
			f.rest()
			return
		}
	}
}

// underWay counts the releases that are under way, and the clusters that their stages may update, in a region or in
// all.
func (f *guardedFleet) underWay(region string) (releases, clusters int) {
	for _, w := range f.worlds {
		in := func(name string) bool { return region == "" || w.clusters[name].Labels["region"] == region }
		for _, r := range w.releases {
			if !r.Status.Phase.UnderWay() || r.Status.Phase == releasev1alpha1.ReleaseRollingBack {
				continue
			}
			counted := false
			for k, stage := range r.Status.Stages {
				names := stage.ClusterNames
				for j := k; stage.SameClusters && len(names) == 0 && j > 0; j-- {
					names = r.Status.Stages[j-1].ClusterNames
				}
				n := 0
				for _, name := range names {
					if in(name) {
						n++
						counted = true
					}
				}
				if most := r.Status.Strategy.Stages[k].MaxConcurrentClusters; most != nil {
					n = min(n, most.IntValue())
				}
				if stage.StartedAt != nil && stage.EndedAt == nil {
					clusters += n
				}
			}
			if counted {
				releases++
			}
		}
	}
	return releases, clusters
}

// Scenario 12.
func TestReleasesTakeTurnsUnderTheLimitsOfAGuard(t *testing.T) {
	const strategy = `{stages: [{name: one, clusters: {clusterNames: [c1]}, soak: 1m}, {name: rest, soak: 1m}]}`
	f := newGuardedFleet(t, [][]int64{{2, 2, 2}, {2, 2, 2}, {2, 2, 2}, {2, 2, 2}, {2, 2, 2}}, strategy,
		guard(t, "all", `{limits: {releases: 2, clusters: 3}}`))
	mostReleases, mostClusters := 0, 0
	for _, w := range f.worlds {
		w.watch = func() {
			releases, clusters := f.underWay("")
			mostReleases, mostClusters = max(mostReleases, releases), max(mostClusters, clusters)
		}
	}
	f.rest()
	third := f.worlds[2].releases[0]
	f.worlds[2].expect("at first", third, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonLimitReached, "web:2", 0)
	if what, _ := release.Waits(third); what != "it waits: ReleaseGuard all: the limit of 2 releases is reached" {
		t.Errorf("the third release waits: %s", what)
	}
	f.pass(time.Hour)
	if mostReleases != 2 || mostClusters != 3 {
		t.Errorf("%d releases with %d clusters are under way at the same time, want 2 with 3", mostReleases, mostClusters)
	}
	var last time.Time
	for _, w := range f.worlds {
		r := w.releases[0]
		w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 6)
		if r.Status.StartedAt.Time.Before(last) {
			t.Errorf("release %s starts before an older one", r.Name)
		}
		last = r.Status.StartedAt.Time
	}
}

func TestAStageThatExceedsALimitByItselfSaysWhatToDo(t *testing.T) {
	for spec, want := range map[string]string{
		`{limits: {clusters: 2}}`: "stage all needs 3 clusters and can never start, because the limit is 2 clusters; " +
			"abort the release, and set maxConcurrentClusters: 2 in its strategy",
		`{limits: {podsPercent: 50}}`: "stage all needs 6 pods and can never start, because the limit is 3 pods " +
			"(50 percent); abort the release, and use smaller stages in its strategy",
		`{limits: {clusters: 1, per: region}}`: "maxConcurrentClusters: 1 in its strategy for region=eu",
	} {
		f := newGuardedFleet(t, [][]int64{{2, 2, 2}}, "stages: [{name: all}]", guard(t, "all", spec))
		f.rest()
		r := f.worlds[0].releases[0]
		f.worlds[0].expect("with "+spec, r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonLimitReached, "web:2", 0)
		if what, _ := release.Waits(r); !strings.Contains(what, want) {
			t.Errorf("with %s, it waits: %s; want %q", spec, what, want)
		}
		if len(r.Status.Guard.Queues) > 0 {
			t.Errorf("with %s, it is in the queues %v", spec, r.Status.Guard.Queues)
		}
	}
}

func TestLimitsOfPodsArePercentagesOfAllPods(t *testing.T) {
	const strategy = `{stages: [{name: half, to: {percent: 50}, soak: 1m}, {name: rest, soak: 1m}]}`
	// 40 pods: 10 are 25 percent, and each stage of a release replaces 5.
	f := newGuardedFleet(t, [][]int64{{5, 5}, {5, 5}, {5, 5}, {5, 5}}, strategy,
		guard(t, "all", `{limits: {podsPercent: 25}}`))
	f.rest()
	var begun []string
	for _, w := range f.worlds {
		if r := w.releases[0]; r.Status.Stages[0].StartedAt != nil {
			begun = append(begun, r.Name)
		} else if r.Status.Reason != releasev1alpha1.ReasonLimitReached {
			t.Errorf("release %s waits for %s", r.Name, r.Status.Reason)
		}
	}
	if !slices.Equal(begun, []string{"r1", "r2"}) {
		t.Errorf("the first stages of %v have begun, want r1 and r2", begun)
	}
	f.pass(time.Hour)
	for _, w := range f.worlds {
		w.expect("in the end", w.releases[0], releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
	}
	// maxUnavailable is 5 percent of 10 pods: one pod in each release.
	f = newGuardedFleet(t, [][]int64{{5, 5}, {5, 5}, {5, 5}, {5, 5}}, strategy,
		guard(t, "all", `{limits: {unavailablePercent: 5}}`))
	f.rest()
	if n, _ := f.underWay(""); n != 4 {
		t.Errorf("%d releases are under way, want all", n)
	}
	if first, third := f.worlds[0].releases[0], f.worlds[2].releases[0]; first.Status.Stages[0].StartedAt == nil ||
		third.Status.Stages[0].StartedAt != nil || third.Status.Guard.Limit != releasev1alpha1.LimitUnavailable {
		t.Errorf("the third release waits for %+v", third.Status.Guard)
	}
}

func TestPreviewShowsWhatGuardsSay(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10)
	w.guard(guard(t, "now", `{selector: {environments: [prod]}, approvals: {count: 2},
		windows: [{kind: Deny, to: "2026-01-02T00:00:00Z", reason: a fair}]}`))
	got := release.PreviewGuards(w.input(w.release("r1",
		`{stages: [{name: test, to: {percent: 10}}, {name: prod, environment: prod}]}`)))
	if len(got) != 2 || got[0].Gate != nil || got[0].Waits != "" || got[1].Gate == nil ||
		got[1].Gate.Approval.Count != 2 || got[1].Waits != "ReleaseGuard now is closed until 2026-01-02T00:00:00Z: a fair" {
		t.Errorf("the preview is %+v", got)
	}
}

func TestTheStatusOfAGuardCountsWhatIsUnderWay(t *testing.T) {
	const strategy = `{stages: [{name: one, clusters: {clusterNames: [c1]}, soak: 1m}, {name: rest, soak: 1m}]}`
	f := newGuardedFleet(t, [][]int64{{2, 2, 2}, {2, 2, 2}, {2, 2, 2}}, strategy,
		guard(t, "all", `{limits: {releases: 2}, windows: [{kind: Allow, schedule: 0 9 * * *, duration: 8h}]}`))
	f.rest()
	w := f.worlds[0]
	status, until := release.GuardStatus(f.guards[0].ReleaseGuard, f.releases(), w.clusters, nil, w.now)
	if !status.Open || status.NextClose.UTC().Hour() != 17 || status.NextOpen != nil || until.UTC().Hour() != 17 ||
		status.InUse != (releasev1alpha1.ReleaseGuardUse{Releases: 2, Clusters: 2}) || status.Waiting != 1 {
		t.Errorf("the status is %+v until %s", status, until)
	}
	status, _ = release.GuardStatus(f.guards[0].ReleaseGuard, nil, w.clusters, nil, w.now.Add(6*time.Hour))
	if status.Open || status.Reason != releasev1alpha1.ReasonOutsideWindow || status.NextOpen.UTC().Hour() != 9 {
		t.Errorf("in the evening, the status is %+v", status)
	}
}

// guardHistory is a fleet in which anything happens at any time under random guards.
type guardHistory struct {
	*guardedFleet
	random *rand.Rand
	// closed are the times at which no stage may start.
	closed [][2]time.Time
	// releases, clusters and per are the limits; 0 for none.
	releasesLimit, clustersLimit int
	per                          bool
}

func newGuardHistory(t testing.TB, seed int64) *guardHistory {
	random := rand.New(rand.NewSource(seed))
	h := &guardHistory{random: random, per: random.Intn(3) == 0}
	replicas := make([][]int64, 2+random.Intn(3))
	for i := range replicas {
		for range 2 + random.Intn(2) {
			replicas[i] = append(replicas[i], 1+random.Int63n(3))
		}
	}
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var windows, limits []string
	for range random.Intn(3) {
		from := begin.Add(time.Duration(random.Intn(1800)) * time.Second)
		to := from.Add(time.Duration(1+random.Intn(600)) * time.Second)
		h.closed = append(h.closed, [2]time.Time{from, to})
		windows = append(windows, fmt.Sprintf(`{kind: Deny, from: "%s", to: "%s"}`, from.Format(time.RFC3339),
			to.Format(time.RFC3339)))
	}
	if random.Intn(4) > 0 {
		h.releasesLimit = 1 + random.Intn(2)
		limits = append(limits, fmt.Sprintf("releases: %d", h.releasesLimit))
	}
	if random.Intn(4) > 0 {
		h.clustersLimit = 2 + random.Intn(2)
		limits = append(limits, fmt.Sprintf("clusters: %d", h.clustersLimit))
	}
	if random.Intn(3) == 0 {
		limits = append(limits, "podsPercent: 100")
	}
	if h.per {
		limits = append(limits, "per: region")
	}
	// Guards after the first one have no limits of their own, but more windows.
	all := guard(t, "all", fmt.Sprintf("{windows: [%s], limits: {%s}}", strings.Join(windows, ", "),
		strings.Join(limits, ", ")))
	h.guardedFleet = newGuardedFleet(t, replicas, fmt.Sprintf(`
stages:
- {name: some, to: {percent: %d}, maxConcurrentClusters: 2, soak: 10s}
- {name: rest, maxConcurrentClusters: 1}
`, 1+random.Intn(60)), all)
	for _, w := range h.worlds {
		w.edit(int64(2), "spec", "updateStrategy", "maxUnavailable")
	}
	return h
}

// event lets one thing happen.
func (h *guardHistory) event(what string) {
	h.t.Helper()
	w := h.worlds[h.random.Intn(len(h.worlds))]
	r := w.releases[0]
	switch n := h.random.Intn(24); n {
	case 0, 1, 2, 3, 4, 5:
		h.reconcile(what, w)
	case 6, 7, 8:
		w.dispatch()
	case 9, 10:
		now := w.now.Add(time.Duration(h.random.Intn(60)) * time.Second)
		for _, w := range h.worlds {
			w.now = now
		}
	case 11:
		if !r.Status.Phase.Ended() && r.Spec.State != releasev1alpha1.StateRollback {
			r.Spec.State = []releasev1alpha1.ReleaseState{releasev1alpha1.StateRun, releasev1alpha1.StatePause}[h.random.Intn(2)]
		}
	case 12:
		if h.random.Intn(12) == 0 {
			h.rollback(what, w)
		}
	case 13:
		if h.random.Intn(30) == 0 {
			r.Spec.State = releasev1alpha1.StateAbort
			h.reconcile(what, w)
			if r.Status.Phase != releasev1alpha1.ReleaseAborted && !r.Status.Phase.Ended() {
				h.t.Fatalf("%s: an abort leaves release %s %s", what, r.Name, r.Status.Phase)
			}
		}
	default:
		w.act(w.members[h.random.Intn(len(w.members))])
	}
	h.check(what)
}

// rollback asks for a rollback, which never waits.
func (h *guardHistory) rollback(what string, w *world) {
	h.t.Helper()
	r := w.releases[0]
	if r.Status.Phase == "" || r.Status.Phase.Ended() {
		return
	}
	r.Spec.State = releasev1alpha1.StateRollback
	h.reconcile(what, w)
	if r.Status.Phase != releasev1alpha1.ReleaseRollingBack && !r.Status.Phase.Ended() {
		h.t.Fatalf("%s: a rollback leaves release %s %s: %+v", what, r.Name, r.Status.Phase, r.Status.Guard)
	}
}

// reconcile takes a step of a release, and compares what has started with the guard.
func (h *guardHistory) reconcile(what string, w *world) {
	h.t.Helper()
	r := w.releases[0]
	was, others := r.DeepCopy(), h.releases()
	w.reconcile(r)
	started := was.Status.StartedAt == nil && r.Status.StartedAt != nil
	for k, stage := range r.Status.Stages {
		begun := stage.StartedAt != nil && (k >= len(was.Status.Stages) || was.Status.Stages[k].StartedAt == nil)
		for _, c := range h.closed {
			if (begun || started) && !w.now.Before(c[0]) && w.now.Before(c[1]) {
				h.t.Fatalf("%s: stage %s of release %s starts at %s in a closed window", what, stage.Name, r.Name, w.now)
			}
		}
	}
	for _, p := range others {
		older := p.CreationTimestamp.Before(&r.CreationTimestamp)
		if started && !h.per && older && p.Status.Phase == releasev1alpha1.ReleaseQueued && p.Status.Guard != nil &&
			p.Status.Guard.Limit != "" {
			h.t.Fatalf("%s: release %s starts before %s, which is older and waits for the same limit", what, r.Name, p.Name)
		}
	}
}

func (h *guardHistory) check(what string) {
	h.t.Helper()
	regions := []string{""}
	if h.per {
		regions = []string{"eu", "us"}
	}
	for _, region := range regions {
		releases, clusters := h.underWay(region)
		if h.releasesLimit > 0 && releases > h.releasesLimit {
			h.t.Fatalf("%s: %d releases are under way in %q where %d may be", what, releases, region, h.releasesLimit)
		}
		if h.clustersLimit > 0 && clusters > h.clustersLimit {
			h.t.Fatalf("%s: %d clusters are updated in %q where %d may be", what, clusters, region, h.clustersLimit)
		}
	}
}

func TestGuardsHoldInRandomHistories(t *testing.T) {
	seeds := int64(150)
	if testing.Short() {
		seeds = 30
	}
	ends := map[string]int{}
	for seed := range seeds {
		h := newGuardHistory(t, seed)
		for n := range 400 {
			h.event(fmt.Sprintf("seed %d, event %d", seed, n))
			for _, w := range h.worlds {
				ends[w.releases[0].Status.Reason]++
			}
		}
		// Every release gets its turn.
		for _, w := range h.worlds {
			if r := w.releases[0]; r.Spec.State == releasev1alpha1.StatePause {
				r.Spec.State = releasev1alpha1.StateRun
			}
			w.watch = func() { h.check(fmt.Sprintf("seed %d, in the end", seed)) }
		}
		h.pass(4 * time.Hour)
		for _, w := range h.worlds {
			if r := w.releases[0]; !r.Status.Phase.Ended() {
				t.Fatalf("seed %d: release %s is %s (%s) in the end: %+v", seed, r.Name, r.Status.Phase, r.Status.Reason,
					r.Status.Guard)
			}
			ends[string(w.releases[0].Status.Phase)]++
		}
	}
	for _, end := range []string{"Succeeded", "RolledBack", "Aborted", "Frozen", "LimitReached"} {
		if ends[end] == 0 {
			t.Errorf("no history has %s: %v", end, ends)
		}
	}
}

// The invariants of releases do not depend on guards.
func TestInvariantsHoldInRandomHistoriesWithGuards(t *testing.T) {
	seeds := int64(60)
	if testing.Short() {
		seeds = 12
	}
	waited := 0
	for seed := range seeds {
		h := newHistory(t, 1000+seed)
		begin := h.now
		h.guard(guard(t, "fair", fmt.Sprintf(`{windows: [{kind: Deny, from: "%s", to: "%s"}]}`,
			begin.Add(time.Duration(seed)*time.Second).Format(time.RFC3339),
			begin.Add(time.Duration(100+seed)*time.Second).Format(time.RFC3339))),
			guard(t, "one", `{limits: {releases: 1, unavailablePercent: 100}}`))
		r := h.release("r1", h.strategy())
		h.reconcile(r)
		for n := range 300 {
			h.event(r)
			h.check(fmt.Sprintf("seed %d, event %d", seed, n), r)
			if r.Status.Guard != nil {
				waited++
			}
		}
		if r.Status.StartedAt == nil && (r.Status.Phase.Ended() || r.Spec.State == releasev1alpha1.StateRollback) {
			continue // it is rolled back before it starts
		}
		h.finish(seed, r)
	}
	if waited == 0 {
		t.Error("no release waits for a guard")
	}
}
