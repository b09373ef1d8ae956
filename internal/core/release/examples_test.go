package release_test

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/examples"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/release/sample"
)

// exampleStrategy is the spec of a strategy in examples/.
func exampleStrategy(t *testing.T, file string) string {
	t.Helper()
	raw, err := examples.Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &releasev1alpha1.ReleaseStrategy{}
	if err := yaml.UnmarshalStrict(raw, s); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(s.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(spec)
}

func TestTheExampleInTheRatio127WaitsForTwoApprovals(t *testing.T) {
	w := newWorld(t, cloneSet, repeat(10, 10)...)
	r := w.release("r1", exampleStrategy(t, "release-1-2-7/strategy.yaml"))
	w.pass(10 * time.Minute)
	w.expect("after ten minutes", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 30)
	w.pass(10 * time.Minute)
	w.expect("after twenty minutes", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2",
		30)
	for _, user := range []string{"ann", "bob"} {
		w.approve(r, "two", "both-parties-check", user)
		w.approvals[len(w.approvals)-1].Spec.Position = releasev1alpha1.GateAfter
	}
	w.pass(10 * time.Minute)
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 100)
}

func TestTheExampleOfEnvironmentsNeedsAnotherUserForProduction(t *testing.T) {
	w := environmentsWorld(t)
	r := w.release("r1", exampleStrategy(t, "release-environments/strategy.yaml"))
	r.Spec.CreatedBy = &releasev1alpha1.ReleaseUser{User: "ann"}
	w.pass(time.Hour)
	w.approve(r, "prod-canary", "sign-off", "ann")
	w.pass(time.Hour)
	w.expect("after the author's approval", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval,
		"web:2", 25)
	w.approve(r, "prod-canary", "sign-off", "bob")
	w.rest()
	w.expect("after another user's", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 27)
	w.pass(time.Hour)
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 40)
}

func TestTheExampleOfAGuardReleasesInOfficeHoursWithTwoApprovals(t *testing.T) {
	raw, err := examples.Files.ReadFile("release-guard/guard.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g := &releasev1alpha1.ReleaseGuard{}
	if err := yaml.UnmarshalStrict(raw, g); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, cloneSet, 10, 10)
	w.guard(release.Guard{ReleaseGuard: g})
	for _, c := range w.clusters {
		c.Labels = map[string]string{"env": "prod"}
	}
	w.now = time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC) // 16 o'clock on a Friday in Berlin
	r := w.release("r1", "stages: [{name: all}]")
	r.Spec.CreatedBy = &releasev1alpha1.ReleaseUser{User: "ann"}
	w.pass(2 * time.Hour)
	w.expect("after office hours", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 0)
	for _, user := range []string{"ann", "bob", "eve"} {
		w.approve(r, "all", release.GuardGate, user)
	}
	w.pass(time.Hour)
	w.expect("with two approvals", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonOutsideWindow, "web:2", 0)
	w.pass(62 * time.Hour) // until Monday
	w.expect("on Monday", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 20)
}

func TestTheExampleOfACheckComparesTheCanaryWithOtherClusters(t *testing.T) {
	raw, err := examples.Files.ReadFile("release-check/check.yaml")
	if err != nil {
		t.Fatal(err)
	}
	check := &releasev1alpha1.ReleaseCheck{}
	if err := yaml.UnmarshalStrict(raw, check); err != nil {
		t.Fatal(err)
	}
	condition, err := sample.NewCondition(check.Spec.Prometheus.Condition, true)
	if err != nil {
		t.Fatal(err)
	}
	number := func(n string) sample.Answer {
		return sample.Answer{Code: 200,
			Body: []byte(`{"status":"success","data":{"resultType":"scalar","result":[1,"` + n + `"]}}`)}
	}
	judged := func(canary, others string) sample.Sample {
		control := number(others)
		return sample.OfPrometheus(condition, number(canary), &control, "")
	}
	for _, bad := range []bool{false, true} {
		w := newWorld(t, cloneSet, 5, 5)
		w.clusters["c1"].Labels = map[string]string{"env": "canary"}
		r := w.release("r1", exampleStrategy(t, "release-check/strategy.yaml"))
		w.pass(6 * time.Minute)
		w.expect("at the gate", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 5)
		query, err := release.CheckCalls(r)[0].Variables(r).Fill(check.Spec.Prometheus.Query)
		if err != nil || !strings.Contains(query, `{service="web",cluster=~"c1",code=~"5.."}`) {
			t.Errorf("the query is %s", query)
		}
		w.sampled(r, &check.Spec, judged("0.2", "0.15")) // both are bad
		w.sampled(r, &check.Spec, judged("0.2", "0.1"))
		w.sampled(r, &check.Spec, judged("0.005", "0"))
		w.expect("after two good samples", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking, "web:2", 5)
		if bad {
			w.sampled(r, &check.Spec, judged("0.2", "0.1"))
			w.expect("in the end", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
			continue
		}
		w.sampled(r, &check.Spec, judged("0.005", "0"))
		w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
	}
}
