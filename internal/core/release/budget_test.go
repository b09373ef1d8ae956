package release_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/release/sample"
)

// budgeted is a guard that requires 20 percent of an error budget.
const budgeted = `{limits: {minErrorBudget: {percent: 20, checkRef: {namespace: shop, name: slo}}}}`

func TestTheErrorBudgetOfAGuardFollowsItsSamples(t *testing.T) {
	g := guard(t, "budget", budgeted).ReleaseGuard
	none := &sample.Sample{Outcome: sample.NoData, Message: "no data"}
	b := release.Budget{}
	for _, c := range []struct {
		when    string
		percent float64
		unclear *sample.Sample
		state   releasev1alpha1.ErrorBudgetState
		shown   string
	}{
		{"at first", 0, none, releasev1alpha1.ErrorBudgetUnknown, ""},
		{"with data", 50, nil, releasev1alpha1.ErrorBudgetEnough, "50.0"},
		{"a little less", 49.5, nil, releasev1alpha1.ErrorBudgetEnough, "50.0"}, // not worth a write
		{"less", 48.9, nil, releasev1alpha1.ErrorBudgetEnough, "48.9"},
		{"once without data", 0, none, releasev1alpha1.ErrorBudgetEnough, "48.9"},
		{"too little", 19.9, nil, releasev1alpha1.ErrorBudgetSpent, "19.9"},
		{"just enough", 20, nil, releasev1alpha1.ErrorBudgetEnough, "20.0"},
		{"without data", 0, none, releasev1alpha1.ErrorBudgetEnough, "20.0"},
		{"still without data", 0, none, releasev1alpha1.ErrorBudgetEnough, "20.0"},
		{"long without data", 0, none, releasev1alpha1.ErrorBudgetUnknown, ""},
		{"overspent", -30, nil, releasev1alpha1.ErrorBudgetSpent, "-30.0"},
	} {
		if b = b.AfterSample(g, c.percent, c.unclear, 2); b.State != c.state || b.Left != c.shown {
			t.Errorf("%s, the budget is %+v, want %s and %q", c.when, b, c.state, c.shown)
		}
	}
	g.Generation++
	if b = b.AfterSample(g, 0, none, 2); b.State != releasev1alpha1.ErrorBudgetUnknown {
		t.Errorf("after a change of the guard, the budget is %+v, want it unknown", b)
	}
}

// A hub that starts again does not know what has happened since the last sample.
func TestAStoredErrorBudgetIsUnknownAfterASampleWithoutData(t *testing.T) {
	g := guard(t, "budget", budgeted).ReleaseGuard
	g.Status.ErrorBudget = &releasev1alpha1.ReleaseGuardBudget{State: releasev1alpha1.ErrorBudgetEnough, Left: "50.0"}
	none := &sample.Sample{Outcome: sample.NoData, Message: "no data"}
	b := release.StoredBudget(g).AfterSample(g, 0, none, 1000)
	if b.State != releasev1alpha1.ErrorBudgetUnknown || b.Message != "no data" {
		t.Errorf("after a sample without data, the budget is %+v", b)
	}
	b = release.StoredBudget(g).AfterSample(g, 50.4, nil, 1000)
	if b.ReleaseGuardBudget != *g.Status.ErrorBudget {
		t.Errorf("after a sample with data, the budget is %+v: a write without need", b)
	}
	if b = b.AfterSample(g, 0, none, 1000); b.State != releasev1alpha1.ErrorBudgetEnough {
		t.Errorf("after the next one without data, the budget is %+v", b)
	}
}

// A stage that is under way ends. The next one waits for the budget, and a rollback does not.
func TestAStageWaitsForTheErrorBudget(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10)
	g := guard(t, "budget", budgeted)
	is := func(state releasev1alpha1.ErrorBudgetState) {
		g.Budget = &releasev1alpha1.ReleaseGuardBudget{State: state, Message: "no data"}
		w.guard(g)
		w.rest()
	}
	w.guard(g)
	r := w.release("r1", threeStages)
	w.rest()
	w.expect("without a sample", r, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonErrorBudgetUnknown, "web:2", 0)
	g.Status.ErrorBudget = &releasev1alpha1.ReleaseGuardBudget{State: releasev1alpha1.ErrorBudgetEnough}
	w.rest()
	w.expect("with the budget of an earlier hub", r, releasev1alpha1.ReleaseQueued,
		releasev1alpha1.ReasonErrorBudgetUnknown, "web:2", 0)
	is(releasev1alpha1.ErrorBudgetUnknown)
	w.expect("without data", r, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonErrorBudgetUnknown, "web:2", 0)
	if what, next := release.Waits(r); !strings.Contains(what, "the error budget is not known: no data") ||
		!strings.Contains(next, "argosy release break-glass r1") {
		t.Errorf("the release waits: %s; %s", what, next)
	}
	is(releasev1alpha1.ErrorBudgetEnough)
	w.expect("with a budget", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 2)
	is(releasev1alpha1.ErrorBudgetSpent)
	w.pass(2 * time.Minute)
	w.expect("after the stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonErrorBudgetSpent, "web:2", 2)
	if r.Status.Guard == nil || r.Status.Guard.Limit != releasev1alpha1.LimitErrorBudget {
		t.Errorf("the release waits for %+v", r.Status.Guard)
	}
	breakGlass(t, r, "ann", "down")
	w.rest()
	w.expect("after the emergency", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking, "web:2", 10)
	r.Spec.State = releasev1alpha1.StateRollback
	w.rest()
	w.expect("after the rollback", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
}

func TestAGuardRefusesChecksThatNeedAStage(t *testing.T) {
	for spec, want := range map[string]string{
		`{slo: {url: "https://a", good: "a[{{window}}]", total: "b[{{window}}]"}}`:              "",
		`{prometheus: {url: "https://a"}}`:                                                      "has no slo",
		`{slo: {member: {service: a}, good: "a", total: "b"}}`:                                  "set slo.url",
		`{slo: {url: "https://a", good: 'a{x="{{stage}}"}[{{window}}]', total: "b"}}`:           "has {{stage}}",
		`{slo: {url: "https://a", good: "a[{{window}}]", total: "b[{{window}}] > {{args.a}}"}}`: "has {{args.a}}",
	} {
		c := &releasev1alpha1.ReleaseCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "slo"}}
		if err := yaml.UnmarshalStrict([]byte(spec), &c.Spec); err != nil {
			t.Fatal(err)
		}
		if got := release.UnfitForBudget(c); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}
