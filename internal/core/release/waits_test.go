package release_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

func TestAReleaseDescribesWhatItWaitsForAndTheNextCommand(t *testing.T) {
	w := environmentsWorld(t)
	r := w.release("r1", environments)
	expect := func(when, what, next string) {
		t.Helper()
		gotWhat, gotNext := release.Waits(r)
		if !strings.Contains(gotWhat, what) || !strings.Contains(gotNext, next) || next == "" && gotNext != "" {
			t.Errorf("%s, it waits for %q and next is %q, want %q and %q", when, gotWhat, gotNext, what, next)
		}
	}
	expect("at first", "not accepted", "")
	w.pass(time.Hour)
	expect("at a gate", "approval: gates sign of stage prod", "`argosy release approve r1 -n shop`")
	if stage := release.StageUnderWay(r); stage == nil || stage.Name != "prod" {
		t.Errorf("the stage under way is %v, want prod", stage)
	}
	r.Spec.State = releasev1alpha1.StatePause
	w.rest()
	expect("while paused", "paused", "`argosy release resume r1 -n shop`")
	r.Spec.State = releasev1alpha1.StateAbort
	w.rest()
	expect("when aborted", "aborted", "`argosy release rollback r1 -n shop`")

	refused := w.release("r2", "stages: [{name: one, clusters: {clusterNames: [t1]}}]")
	w.rest()
	if what, next := release.Waits(refused); !strings.Contains(what, "ClustersUnassigned") || next == "" {
		t.Errorf("refused, it says %q and next is %q", what, next)
	}
}

func TestAFailedStageNamesRetryAndRollback(t *testing.T) {
	w := environmentsWorld(t)
	for _, m := range w.members {
		m.fails["web:2"] = true
	}
	r := w.release("r1", environments)
	w.pass(time.Hour)
	if what, next := release.Waits(r); !strings.Contains(what, "stage test has failed") ||
		!strings.Contains(next, "retry r1 -n shop --reason") || !strings.Contains(next, "rollback r1") {
		t.Errorf("it says %q and next is %q", what, next)
	}
}

func TestChangesOfRevisionsNameContainersAndOverrides(t *testing.T) {
	w := newWorld(t, cloneSet, 1)
	from := release.NewRevision(w.template, nil)
	w.edit([]any{map[string]any{"name": "main", "image": "web:3"}, map[string]any{"name": "log", "image": "log:1"}},
		"spec", "template", "spec", "containers")
	o := &policyv1alpha1.OverridePolicy{}
	o.Name, o.Namespace = "eu", "shop"
	to := release.NewRevision(w.template, []policyv1alpha1.Override{o})
	if len(to.Spec.Overrides) == 0 {
		to.Spec.Overrides = []releasev1alpha1.RevisionOverride{{Kind: "OverridePolicy", Name: "eu",
			Spec: runtime.RawExtension{Raw: []byte(`{}`)}}}
	}
	all, err := release.Changes(from, to)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, c := range all {
		paths = append(paths, c.Path)
	}
	want := "OverridePolicy eu, spec.template.spec.containers[log], " +
		"spec.template.spec.containers[main].image"
	if got := strings.Join(paths, ", "); got != want {
		t.Errorf("changes are %s, want %s", got, want)
	}
	if last := all[len(all)-1]; last.From != "web:2" || last.To != "web:3" {
		t.Errorf("the image changes from %v to %v", last.From, last.To)
	}
	if all, err := release.Changes(nil, to); err != nil || len(all) > 0 {
		t.Errorf("without a former revision, changes are %v, %v", all, err)
	}
}

func TestAReleaseNamesTheUsersWhoMayApprove(t *testing.T) {
	const notAda = "; ada, who created it, cannot approve, nor can users who may act as such a user"
	for gate, want := range map[string]string{
		"{name: sign}":                                                           "",
		"{name: sign, approval: {count: 1}}":                                     "",
		"{name: sign, approval: {count: 1, notAuthor: true}}":                    notAda,
		"{name: sign, approval: {count: 1, from: [{kind: Group, name: leads}]}}": "; only Group leads can approve",
		"{name: sign, approval: {count: 1, from: [{kind: User, name: ada}]}}":    "; only User ada can approve",
		"{name: sign, approval: {count: 1, notAuthor: true, from: [{kind: User, name: ada}, {kind: User, name: lea}]}}": notAda +
			"; only User ada, User lea can approve",
	} {
		w := newWorld(t, cloneSet, 2)
		r := w.release("r1", "stages: [{name: one, before: ["+gate+"]}]")
		r.Spec.CreatedBy = &releasev1alpha1.ReleaseUser{User: "ada"}
		w.rest()
		what, next := release.Waits(r)
		_, who, _ := strings.Cut(what, "gates sign of stage one")
		if who != want || next != "`argosy release approve r1 -n shop`" {
			t.Errorf("at the gate %s, it says %q, then %q; want %q", gate, what, next, want)
		}
	}
}
