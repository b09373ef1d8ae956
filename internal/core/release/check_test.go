package release_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/release/sample"
)

// The samples of these tests.
var (
	good    = sample.Sample{Outcome: sample.Pass, Value: "0.99"}
	bad     = sample.Sample{Outcome: sample.Fail, Value: "0.97", Message: "the condition is false"}
	empty   = sample.Sample{Outcome: sample.NoData, Message: "the query has no data"}
	noReply = sample.Failure("the server answers 500")
	later   = sample.Sample{Outcome: sample.Wait, After: time.Minute}
)

// sampled gives a sample to the first check that a release waits for, as controller/check does.
func (w *world) sampled(r *releasev1alpha1.Release, spec *releasev1alpha1.ReleaseCheckSpec, s sample.Sample) {
	w.t.Helper()
	calls := release.CheckCalls(r)
	if len(calls) == 0 {
		w.t.Fatalf("release %s waits for no check: it is %s (%s)", r.Name, r.Status.Phase, r.Status.Reason)
	}
	if w.checks == nil {
		w.checks = map[string]releasev1alpha1.ReleaseCheckStatus{}
	}
	was, ok := w.checks[calls[0].Status.Key]
	if !ok {
		was = calls[0].Status
	}
	w.checks[was.Key] = release.WithSample(spec, was, s, w.now)
	w.rest()
}

func TestSamplesMakeAVerdict(t *testing.T) {
	limit := func(n int32) *int32 { return &n }
	spec := releasev1alpha1.ReleaseCheckSpec{Count: 2, FailureLimit: 1, InconclusiveLimit: limit(2)}
	for _, c := range []struct {
		name    string
		samples []sample.Sample
		want    releasev1alpha1.CheckVerdict
	}{
		{"too few", []sample.Sample{good}, ""},
		{"enough", []sample.Sample{good, good}, releasev1alpha1.CheckPass},
		{"one failure", []sample.Sample{good, bad, good}, releasev1alpha1.CheckPass},
		{"two failures", []sample.Sample{bad, good, bad}, releasev1alpha1.CheckFail},
		{"a little without data", []sample.Sample{empty, noReply}, ""},
		{"much without data", []sample.Sample{empty, empty, empty}, releasev1alpha1.CheckInconclusive},
		{"no answer", []sample.Sample{empty, empty, noReply}, releasev1alpha1.CheckError},
		{"data in between", []sample.Sample{empty, empty, good, empty, empty}, ""},
		{"data at last", []sample.Sample{empty, empty, empty, good, good}, releasev1alpha1.CheckPass},
		{"no data is no success", slices.Repeat([]sample.Sample{empty}, 100), releasev1alpha1.CheckInconclusive},
		{"no answer is no failure", slices.Repeat([]sample.Sample{noReply}, 100), releasev1alpha1.CheckError},
		{"waiting is nothing", slices.Repeat([]sample.Sample{later}, 100), ""},
		{"a verdict stays", []sample.Sample{good, good, bad, bad}, releasev1alpha1.CheckPass},
	} {
		status, now := releasev1alpha1.ReleaseCheckStatus{}, time.Unix(1000, 0)
		for _, s := range c.samples {
			status = release.WithSample(&spec, status, s, now)
		}
		if status.Verdict != c.want {
			t.Errorf("%s: the verdict is %q, want %q", c.name, status.Verdict, c.want)
		}
	}
}

func TestTheNextSampleIsDueAfterTheIntervalOrWhatTheWebhookAsks(t *testing.T) {
	now := time.Unix(1000, 0)
	call, spec := release.CheckCall{Since: now}, &releasev1alpha1.ReleaseCheckSpec{}
	if due := call.Due(spec, releasev1alpha1.ReleaseCheckStatus{}); !due.IsZero() {
		t.Errorf("the first sample is due at %s, want at once", due)
	}
	delayed := &releasev1alpha1.ReleaseCheckSpec{InitialDelay: &metav1.Duration{Duration: 5 * time.Minute}}
	if due := call.Due(delayed, releasev1alpha1.ReleaseCheckStatus{}); !due.Equal(now.Add(5 * time.Minute)) {
		t.Errorf("with an initial delay, the first sample is due at %s, want 5m after the gate began to wait", due)
	}
	for want, s := range map[time.Duration]sample.Sample{30 * time.Second: empty, time.Minute: later} {
		status := release.WithSample(delayed, releasev1alpha1.ReleaseCheckStatus{}, s, now)
		if due := call.Due(delayed, status); !due.Equal(now.Add(want)) {
			t.Errorf("after %s, the next sample is due at %s, want %s later", s.Outcome, due, want)
		}
	}
}

const checked = `
stages:
- {name: one, to: {percent: 20}, after: [{name: errors, type: Check, checkRef: {name: error-rate}%s}]}
- {name: rest}
`

// Scenario 8: neither missing data nor errors move a release, and one failure is permitted.
func TestAReleaseWaitsWhileACheckHasNoData(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", fmt.Sprintf(checked, ""))
	spec := &releasev1alpha1.ReleaseCheckSpec{FailureLimit: 1}
	w.rest()
	w.expect("at the gate", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 2)
	if what, _ := release.Waits(r); !strings.Contains(what, "errors of stage one") {
		t.Errorf("the release says %q", what)
	}
	for range 5 {
		w.sampled(r, spec, empty)
	}
	w.expect("without data", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonCheckInconclusive, "web:2", 2)
	for range 5 {
		w.sampled(r, spec, noReply)
	}
	w.expect("without an answer", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonCheckUnavailable, "web:2", 2)
	if what, next := release.Waits(r); !strings.Contains(what, "last the server answers 500") ||
		!strings.Contains(next, "argosy release skip r1") {
		t.Errorf("the release says %q and %q", what, next)
	}
	w.sampled(r, spec, bad)
	w.expect("after a failure", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 2)
	w.sampled(r, spec, good)
	w.expect("after a success", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
	g := r.Status.Stages[0].Gates[0]
	if g.Phase != releasev1alpha1.GatePassed || g.Check.Value != "0.99" || g.Check.Failed != 1 || g.Check.Passed != 1 {
		t.Errorf("the gate is %+v with the check %+v", g, g.Check)
	}
}

func TestAFailedCheckRollsBackByDefault(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", fmt.Sprintf(checked, ""))
	w.rest()
	w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{}, bad)
	w.expect("after the failure", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
	if b := w.revisions[r.Status.Targets[0].To].Status.Blocked; b == nil || b.Reason != releasev1alpha1.ReasonCheckFailed {
		t.Errorf("the revision is blocked by %+v", b)
	}
	for _, e := range r.Status.Journal {
		if e.Type == releasev1alpha1.JournalGate && e.Reason == "Failed" && strings.Contains(e.Message, "0.97") {
			return
		}
	}
	t.Errorf("the journal lacks the evidence: %+v", r.Status.Journal)
}

func TestTheStrategyDecidesWhatAFailedCheckDoes(t *testing.T) {
	for action, want := range map[string]releasev1alpha1.ReleasePhase{"Pause": releasev1alpha1.ReleasePaused,
		"Rollback": releasev1alpha1.ReleaseRolledBack, "Continue": releasev1alpha1.ReleaseSucceeded} {
		w := newWorld(t, cloneSet, 5, 5)
		r := w.release("r1", fmt.Sprintf(checked, "")+"failure: {action: "+action+"}\n")
		w.rest()
		w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{}, bad)
		if r.Status.Phase != want {
			t.Errorf("with %s, the release is %s, want %s", action, r.Status.Phase, want)
		}
	}
}

func TestAStageWithoutACheckPausesByDefault(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", `
stages:
- {name: one, to: {percent: 20}, after: [{name: sign}]}
- {name: rest, after: [{name: errors, type: Check, checkRef: {name: error-rate}}]}
`)
	w.rest()
	w.reject(r, "one", "sign", "ann")
	w.approvals[0].Spec.Position = releasev1alpha1.GateAfter
	w.rest()
	w.expect("after the rejection", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, "web:2", 2)
}

func TestTheGateDecidesWhatAnInconclusiveCheckDoes(t *testing.T) {
	for _, c := range []struct {
		action string
		s      sample.Sample
		want   releasev1alpha1.ReleasePhase
	}{
		{"Wait", empty, releasev1alpha1.ReleaseRunning}, {"Wait", noReply, releasev1alpha1.ReleaseRunning},
		{"Pause", empty, releasev1alpha1.ReleasePaused}, {"Pause", noReply, releasev1alpha1.ReleasePaused},
		{"Fail", empty, releasev1alpha1.ReleaseRolledBack}, {"Fail", noReply, releasev1alpha1.ReleaseRolledBack},
		{"Pass", empty, releasev1alpha1.ReleaseSucceeded},
		{"Pass", noReply, releasev1alpha1.ReleaseRunning}, // an error is never a success
	} {
		w := newWorld(t, cloneSet, 5, 5)
		r := w.release("r1", fmt.Sprintf(checked, ", onInconclusive: "+c.action))
		w.rest()
		for i := 0; i < 20 && len(release.CheckCalls(r)) > 0; i++ {
			w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{}, c.s)
		}
		if r.Status.Phase != c.want {
			t.Errorf("with %s and %s, the release is %s, want %s", c.action, c.s.Outcome, r.Status.Phase, c.want)
		}
		if r.Status.Phase == releasev1alpha1.ReleaseRolledBack &&
			w.revisions[r.Status.Targets[0].To].Status.Blocked != nil {
			t.Error("the revision is blocked, although nothing is known about it")
		}
	}
}

func TestACheckThatDoesNotEndTimesOut(t *testing.T) {
	for action, want := range map[string]releasev1alpha1.ReleasePhase{"Pause": releasev1alpha1.ReleasePaused,
		"Fail": releasev1alpha1.ReleaseRolledBack} {
		w := newWorld(t, cloneSet, 5, 5)
		r := w.release("r1", fmt.Sprintf(checked, ", timeout: 10m, onTimeout: "+action))
		w.pass(9 * time.Minute)
		w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{Count: 2}, good)
		w.expect("before the timeout", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 2)
		w.pass(2 * time.Minute)
		if r.Status.Phase != want || r.Status.Stages[0].Gates[0].Phase != releasev1alpha1.GateTimedOut {
			t.Errorf("with %s, the release is %s, want %s", action, r.Status.Phase, want)
		}
	}
}

// A verdict counts for one release, revision, stage, gate and attempt (I4).
func TestARetryAsksAgainWithAnotherKey(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", fmt.Sprintf(checked, "")+"failure: {action: Pause}\n")
	w.rest()
	first := release.CheckCalls(r)[0].Status
	w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{}, bad)
	r.Annotations[releasev1alpha1.RetryAnnotation] = "one@1"
	w.checks[first.Key] = releasev1alpha1.ReleaseCheckStatus{Name: first.Name, Key: first.Key, Attempt: 1,
		Verdict: releasev1alpha1.CheckPass} // late news of the first attempt
	w.rest()
	w.expect("after the retry", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 2)
	second := release.CheckCalls(r)[0].Status
	if second.Key == first.Key || second.Attempt != 2 || second.Failed != 0 {
		t.Errorf("the second attempt is %+v, after %+v", second, first)
	}
	w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{}, good)
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
}

func TestKeysDifferByReleaseRevisionStageAndGate(t *testing.T) {
	keys := map[string]bool{}
	for i, name := range []string{"r1", "r2", "r2"} {
		w := newWorld(t, cloneSet, 5, 5)
		if i == 2 {
			w.image("web:3")
		}
		gate := "{name: %s, type: Check, checkRef: {name: error-rate}}"
		gates := "[" + fmt.Sprintf(gate, "a") + ", " + fmt.Sprintf(gate, "b") + "]"
		r := w.release(name, fmt.Sprintf("stages:\n- {name: one, before: %s, after: %s, to: {percent: 20}}\n"+
			"- {name: rest, before: %s, after: %s}\n", gates, gates, gates, gates))
		w.rest()
		for len(release.CheckCalls(r)) > 0 {
			keys[release.CheckCalls(r)[0].Status.Key] = true
			w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{}, good)
		}
		if r.Status.Phase != releasev1alpha1.ReleaseSucceeded {
			t.Fatalf("release %s is %s", name, r.Status.Phase)
		}
		if limit := 2 + 3*2 + 8; w.statusWrites > limit {
			t.Errorf("%d writes of the status, want at most %d", w.statusWrites, limit)
		}
	}
	if len(keys) != 3*8 {
		t.Errorf("%d keys of 24 gates", len(keys))
	}
}

// A hub that restarts knows no samples. It asks again with the key that is stored, and writes nothing.
func TestARestartRepeatsTheKey(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", fmt.Sprintf(checked, ""))
	spec := &releasev1alpha1.ReleaseCheckSpec{Count: 3, FailureLimit: 2}
	w.rest()
	before := release.CheckCalls(r)
	w.sampled(r, spec, bad)
	w.sampled(r, spec, good)
	writes := w.statusWrites
	w.checks = nil
	w.rest()
	after := release.CheckCalls(r)
	if before[0].Status.Key != after[0].Status.Key || w.statusWrites != writes {
		t.Errorf("after a restart with %d writes the call is %+v, before it was %+v", w.statusWrites-writes, after, before)
	}
	if after[0].Status.Failed != 1 {
		t.Errorf("%d failures are known after a restart, want 1", after[0].Status.Failed)
	}
}

func TestAReleaseOfAMissingCheckIsRefused(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	in := w.input(w.release("r1", fmt.Sprintf(checked, "")))
	in.ReleaseChecks = map[string]bool{"latency": true}
	if a := release.Accept(in); a.Reason != releasev1alpha1.ReasonCheckNotFound ||
		!strings.Contains(a.Message, `ReleaseCheck "error-rate" does not exist`) {
		t.Errorf("it is %s: %s", a.Reason, a.Message)
	}
	in.ReleaseChecks["error-rate"] = true
	if a := release.Accept(in); a.Reason != releasev1alpha1.ReasonPlanned {
		t.Errorf("with the check it is %s: %s", a.Reason, a.Message)
	}
}

func TestNoUserOpensTheGateOfACheck(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", fmt.Sprintf(checked, ""))
	w.rest()
	w.approve(r, "one", "errors", "ann")
	w.approvals[0].Spec.Position = releasev1alpha1.GateAfter
	w.rest()
	w.expect("after an approval", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 2)
	if _, err := release.CheckApproval(r, &w.approvals[0]); err == nil ||
		!strings.Contains(err.Error(), "ReleaseCheck error-rate opens the gate") {
		t.Errorf("the approval is refused with %v", err)
	}
}

// Whatever happens, a gate passes only by enough samples of its own attempt, and never after too many failures.
func TestAGatePassesOnlyByItsOwnSamples(t *testing.T) {
	seeds := int64(150)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		random := rand.New(rand.NewSource(seed))
		w := newWorld(t, cloneSet, 3, 3)
		r := w.release("r1", strings.TrimSuffix(fmt.Sprintf(checked, ""), "- {name: rest}\n")+
			"- {name: rest, before: [{name: errors, type: Check, checkRef: {name: error-rate}}]}\nfailure: {action: Pause}\n")
		spec := &releasev1alpha1.ReleaseCheckSpec{Count: 1 + random.Int31n(3), FailureLimit: random.Int31n(2)}
		passed, failed := map[string]int32{}, map[string]int32{}
		w.watch = func() {
			for _, stage := range r.Status.Stages {
				for _, g := range stage.Gates {
					key := g.Check.Key
					if g.Phase == releasev1alpha1.GatePassed && (passed[key] < spec.Count || failed[key] > spec.FailureLimit) {
						t.Fatalf("seed %d: gate %s of stage %s passed after %d good and %d bad samples, with %+v", seed, g.Name,
							stage.Name, passed[key], failed[key], spec)
					}
					if g.Check.Attempt != stage.Attempt {
						t.Fatalf("seed %d: the check of stage %s has attempt %d of %d", seed, stage.Name, g.Check.Attempt, stage.Attempt)
					}
				}
			}
		}
		w.rest()
		old := map[string]releasev1alpha1.ReleaseCheckStatus{}
		for range 40 {
			calls := release.CheckCalls(r)
			switch n := random.Intn(10); {
			case n < 5 && len(calls) > 0:
				s := []sample.Sample{good, good, good, bad, empty, noReply, later}[random.Intn(7)]
				switch key := calls[0].Status.Key; s.Outcome {
				case sample.Pass:
					passed[key]++
				case sample.Fail:
					failed[key]++
				}
				w.sampled(r, spec, s)
				for key, status := range w.checks {
					status.Verdict = releasev1alpha1.CheckPass
					old[key] = status
				}
			case n == 5:
				w.checks = nil // a restart
			case n == 6:
				r.Spec.State = []releasev1alpha1.ReleaseState{releasev1alpha1.StateRun, releasev1alpha1.StatePause}[random.Intn(2)]
			case n == 7 && r.Status.Phase == releasev1alpha1.ReleasePaused:
				stage := release.StageUnderWay(r)
				r.Annotations[releasev1alpha1.RetryAnnotation] = fmt.Sprintf("%s@%d", stage.Name, stage.Attempt)
			case n == 8 && w.checks != nil: // what is known of earlier attempts comes again, and all of it is good
				current := map[string]bool{}
				for _, stage := range r.Status.Stages {
					for _, g := range stage.Gates {
						current[g.Check.Key] = true
					}
				}
				for key, status := range old {
					if !current[key] {
						w.checks[key] = status
					}
				}
			}
			w.rest()
			if in := w.input(r); !reflect.DeepEqual(release.Next(in).Status, r.Status) {
				t.Fatalf("seed %d: a release at rest has another step (I7)", seed)
			}
		}
	}
}

func TestACheckThatReportsOpensItsGateWithEachVerdict(t *testing.T) {
	for name, samples := range map[string][]sample.Sample{
		"pass": {good}, "fail": {bad}, "no data": slices.Repeat([]sample.Sample{empty}, 5),
		"no answer": slices.Repeat([]sample.Sample{noReply}, 5),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cloneSet, 5, 5)
			r := w.release("r1", fmt.Sprintf(checked, ""))
			w.rest()
			w.expect("at the gate", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 2)
			for _, s := range samples {
				w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{Report: true}, s)
			}
			w.expect("after the verdict", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
			if g := r.Status.Stages[0].Gates[0]; g.Phase != releasev1alpha1.GatePassed || g.Check.Verdict == "" ||
				!g.Check.Report {
				t.Errorf("the gate is %s with the check %+v", g.Phase, g.Check)
			}
		})
	}
}

func TestACheckThatReportsDoesNotTimeOut(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", fmt.Sprintf(checked, ", timeout: 10m, onTimeout: Fail"))
	w.rest()
	w.sampled(r, &releasev1alpha1.ReleaseCheckSpec{Report: true}, empty)
	w.expect("at the gate", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 2)
	w.pass(11 * time.Minute)
	w.expect("after the timeout", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
}

func TestTheArgumentsOfAGateAreVariablesOfItsCheck(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", `
stages:
- {name: one, to: {percent: 20}, after: [{name: errors, type: Check, checkRef: {name: c, args: {service: "shop\"}"}}}]}
- {name: rest}`)
	w.rest()
	call := release.CheckCalls(r)[0]
	variables := call.Variables(r)
	if got, err := variables.Fill(`errors{service="{{args.service}}"}`); err != nil || got != `errors{service="shop__"}` {
		t.Errorf("the query is %s", got)
	}
	if got := variables.MissingArgument("up", "{{args.service}} {{args.zone}}"); got != "zone" {
		t.Errorf("the missing argument is %q, want zone", got)
	}
	if body := string(call.WebhookBody(r)); !strings.Contains(body, `"args":{"service":`) {
		t.Errorf("a webhook gets %s", body)
	}
}
