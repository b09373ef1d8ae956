package release_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

func TestEvidenceNamesTheStagesThatAnApprovalStarts(t *testing.T) {
	gate := func(stage, position, name string) string {
		return fmt.Sprintf("%s %s %s", stage, position, name)
	}
	for name, c := range map[string]struct {
		strategy, at string
		starts       []string
	}{
		"a gate before the first stage": {`
stages:
- {name: one, to: {percent: 20}, before: [{name: go}]}
- {name: two, to: {percent: 50}}
- {name: rest, before: [{name: go}]}
`, gate("one", "Before", "go"), []string{"one", "two"}},
		"a gate before the last stage": {`
stages: [{name: one, to: {percent: 20}}, {name: rest, before: [{name: go}]}]
`, gate("rest", "Before", "go"), []string{"rest"}},
		"a gate after a stage": {`
stages:
- {name: one, to: {percent: 20}, after: [{name: look}]}
- {name: two, to: {percent: 50}, after: [{name: look}]}
- {name: rest}
`, gate("one", "After", "look"), []string{"two"}},
		"a gate after a stage, and one before the next": {`
stages: [{name: one, to: {percent: 20}, after: [{name: look}]}, {name: rest, before: [{name: go}]}]
`, gate("one", "After", "look"), nil},
		"a gate after the last stage": {`
stages: [{name: all, after: [{name: look}]}]
`, gate("all", "After", "look"), nil},
	} {
		w := newWorld(t, cloneSet, 10, 10)
		r := w.release("r1", c.strategy)
		w.pass(time.Hour)
		waiting := release.WaitingGates(r)
		if len(waiting) != 1 {
			t.Fatalf("%s: %d gates wait: %s", name, len(waiting), r.Status.Reason)
		}
		in := w.input(r)
		plan, err := release.PlanOf(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e := release.EvidenceOf(r, waiting[0], nil, plan)
		var starts []string
		pods := int64(0)
		for _, s := range e.Starts {
			starts = append(starts, s.Name)
			for _, p := range s.Clusters {
				pods += p.New - p.Former
			}
		}
		if at := gate(e.Stage, string(waiting[0].Position), e.Gate); at != c.at || !slices.Equal(starts, c.starts) ||
			(pods > 0) != (len(starts) > 0) || (len(e.Steps) > 0) != (pods > 0) {
			t.Errorf("%s: at %s, an approval starts %q with %d pods in %d steps, want %s and %q", name, at, starts, pods,
				len(e.Steps), c.at, c.starts)
		}
	}
}

// The plan says of each stage what then happens.
func TestThePlanSkipsTheStagesThatAreSkipped(t *testing.T) {
	w := newWorld(t, cloneSet, 4, 4)
	w.place("c2", 0)
	r := w.release("r1", "unassigned: LastStage\nstages:\n- {name: empty, clusters: {clusterNames: [none]}, "+unsigned+
		"}\n- {name: first, clusters: {clusterNames: [c1]}}\n- {name: zero, clusters: {clusterNames: [c2]}, "+unsigned+"}")
	plan, err := release.PlanOf(w.input(r))
	if err != nil {
		t.Fatal(err)
	}
	w.rest()
	if r.Status.Stage != "zero" || r.Status.Reason != releasev1alpha1.ReasonWaitingForApproval {
		t.Fatalf("the release is at %+v", r.Status)
	}
	for i, stage := range r.Status.Stages {
		if planned := plan.Stages[i].Skipped; (planned != "") != (stage.Phase == releasev1alpha1.StageSkipped) {
			t.Errorf("stage %s is %s, and the plan says it is skipped because %q", stage.Name, stage.Phase, planned)
		}
	}
}

func TestEvidenceHasTheChecksSoFar(t *testing.T) {
	r := &releasev1alpha1.Release{}
	check := &releasev1alpha1.ReleaseCheckStatus{Name: "error-rate", Verdict: "Passed", Passed: 3, Value: "0.01"}
	r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{
		{Name: "canary", EndedAt: r.Status.EndedAt, Attempt: 1, Gates: []releasev1alpha1.ReleaseGateStatus{
			{Name: "errors", Phase: releasev1alpha1.GatePassed, Check: check},
			{Name: "sign", Phase: releasev1alpha1.GateWaiting}}}}
	e := release.EvidenceOf(r, r.Status.Stages[0].Gates[1], nil, nil)
	if len(e.Checks) != 1 || e.Checks[0].Check != "error-rate" || e.Checks[0].Stage != "canary" ||
		!strings.Contains(e.Checks[0].Text, "0.01") {
		t.Errorf("the checks are %+v", e.Checks)
	}
}

func TestChangesOfATargetAreImagesAndOtherFields(t *testing.T) {
	revision := func(pods string) *releasev1alpha1.ReleaseRevision {
		r := release.NewRevision(coretest.Object(t, strings.Replace(deployment,
			`{spec: {containers: [{name: main, image: "web:1"}]}}`, pods, 1)), nil)
		return r
	}
	from := revision(`{spec: {containers: [{name: main, image: "web:1"}, {name: log, image: "log:1"}], initContainers: [` +
		`{name: wait, image: "wait:1"}]}}`)
	to := revision(`{spec: {containers: [{name: main, image: "web:2", args: [-v]}], initContainers: [{name: wait, ` +
		`image: "wait:1"}, {name: load, image: "load:1"}]}}`)
	got, err := release.ChangesOfTarget(release.PlannedTarget{Name: "web"}, from, to)
	if err != nil {
		t.Fatal(err)
	}
	images, fields := "[{load <nil> load:1} {log log:1 <nil>} {main web:1 web:2}]", []string{
		"spec.template.spec.containers[log]", "spec.template.spec.containers[main].args",
		"spec.template.spec.initContainers[load]"}
	var paths []string
	for _, c := range got.Changes {
		paths = append(paths, c.Path)
	}
	if fmt.Sprint(got.Images) != images || !slices.Equal(paths, fields) {
		t.Errorf("the images are %v and the fields %q, want %s and %q", got.Images, paths, images, fields)
	}
	if got, err = release.ChangesOfTarget(release.PlannedTarget{}, nil, to); err != nil ||
		len(got.Images)+len(got.Changes) > 0 {
		t.Errorf("without a former revision, the changes are %v, %v", got, err)
	}
}

func TestTheCommentsOfVerdictsAreKept(t *testing.T) {
	for verdict, want := range map[releasev1alpha1.ApprovalVerdict]string{
		releasev1alpha1.VerdictApprove: "Passed by ann, bob: sign (ann: see SHOP-17)",
		releasev1alpha1.VerdictReject:  "Rejected by ann: sign (ann: see SHOP-17)",
	} {
		w := newWorld(t, cloneSet, 5, 5)
		r := w.release("r1", "\nstages: [{name: all, before: [{name: sign, approval: {count: 2}}]}]\n")
		w.rest()
		w.approve(r, "all", "sign", "ann")
		w.approvals[0].Spec.Comment, w.approvals[0].Spec.Verdict = " see SHOP-17 ", verdict
		w.rest()
		if verdict == releasev1alpha1.VerdictApprove {
			if g := r.Status.Stages[0].Gates[0]; fmt.Sprint(g.By, g.Comments) != "[ann] [ann: see SHOP-17]" {
				t.Errorf("at the gate, %v has the comments %q", g.By, g.Comments)
			}
			w.approve(r, "all", "sign", "bob")
		}
		w.pass(time.Hour)
		i := slices.IndexFunc(r.Status.Journal, func(e releasev1alpha1.ReleaseJournalEntry) bool {
			return e.Type == releasev1alpha1.JournalGate
		})
		if i < 0 {
			t.Fatalf("%s: the journal has no gate", verdict)
		}
		e, gate := r.Status.Journal[i], r.Status.Stages[0].Gates[0]
		if got := fmt.Sprintf("%s by %s: %s", e.Reason, e.Actor, e.Message); got != want ||
			fmt.Sprint(gate.Comments) != "[ann: see SHOP-17]" {
			t.Errorf("%s: the journal says %q, and the gate %q; want %q", verdict, got, gate.Comments, want)
		}
	}
}
