package release_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// inputAfterDeletion returns the input of a release after a version of a ConfigMap was deleted.
func (w *world) inputAfterDeletion(r *releasev1alpha1.Release, version string) release.Input {
	in := w.input(r)
	target := in.Targets["web"]
	target.DeletedVersions, target.ConfigMaps = []string{version}, maps.Clone(target.ConfigMaps)
	delete(target.ConfigMaps, version)
	in.Targets["web"] = target
	return in
}

func TestARevisionWhoseVersionWasDeletedIsNotReleased(t *testing.T) {
	w := newConfigWorld(t)
	first, version := w.releases[0].Status.Targets[0].To, versionOf(t, "settings", "1")
	w.configMaps["settings"] = configMap(t, "settings", "2")
	w.release("r2", "config: Versioned\nstages: [{name: all}]")
	w.pass(time.Hour)

	back := w.release("r3", "config: Versioned\nstages: [{name: all}]")
	back.Spec.Targets[0].To.Revision = first
	if a := release.Accept(w.input(back)); a.Reason != releasev1alpha1.ReasonPlanned {
		t.Fatalf("with the version, it is %s: %s", a.Reason, a.Message)
	}
	a := release.Accept(w.inputAfterDeletion(back, version))
	for _, part := range []string{"target web", first, "ConfigMap " + version + ", which was deleted",
		"give ConfigMap settings the content"} {
		if a.Reason != releasev1alpha1.ReasonConfigMapNotFound || !strings.Contains(a.Message, part) {
			t.Errorf("without the version, it is %s: %q, want %q", a.Reason, a.Message, part)
		}
	}
	// The hub makes it again of the same content.
	w.configMaps["settings"] = configMap(t, "settings", "1")
	a = release.Accept(w.inputAfterDeletion(back, version))
	if a.Reason != releasev1alpha1.ReasonPlanned || len(a.ConfigMaps) != 1 || a.ConfigMaps[0].GetName() != version {
		t.Errorf("with the content of the version, it is %s: %s, and makes %v", a.Reason, a.Message, a.ConfigMaps)
	}
	// A release without versions makes none.
	w.configMaps = nil
	back.Spec.Strategy.Config = releasev1alpha1.ConfigAtOnce
	if a := release.Accept(w.inputAfterDeletion(back, version)); a.Reason != releasev1alpha1.ReasonConfigMapNotFound {
		t.Errorf("by a strategy without versions, it is %s: %s", a.Reason, a.Message)
	}
}

func TestAReleaseDoesNotGoBackToADeletedVersion(t *testing.T) {
	version := versionOf(t, "settings", "1")
	mentions := func(when, text string) {
		t.Helper()
		if !strings.Contains(text, "ConfigMap "+version+", which was deleted") {
			t.Errorf("%s: %q", when, text)
		}
	}
	begin := func() (*world, *releasev1alpha1.Release) {
		w := newConfigWorld(t)
		w.configMaps["settings"] = configMap(t, "settings", "2")
		r := w.release("r2", "config: Versioned\nstages: [{name: some, to: {percent: 20}}, {name: rest, before: [{name: go}]}]")
		a := release.Accept(w.inputAfterDeletion(r, version))
		if a.Reason != releasev1alpha1.ReasonPlanned {
			t.Fatalf("it is %s: %s", a.Reason, a.Message)
		}
		mentions("a release that cannot be rolled back", a.Message)
		w.pass(time.Minute)
		return w, r
	}

	w, r := begin()
	w.approve(r, "rest", "go", "ann")
	w.pass(time.Hour)
	w.expect("after the release", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
	_, err := release.RequestFor(w.inputAfterDeletion(r, version), releasev1alpha1.VerbRollback)
	if err == nil {
		t.Fatal("the rollback of a release that has ended is promised")
	}
	mentions("the rollback of a release that has ended", err.Error())
	r.Spec.State = releasev1alpha1.StateRollback
	step := release.Next(w.inputAfterDeletion(r, version))
	c := meta.FindStatusCondition(step.Status.Conditions, releasev1alpha1.ReleaseProgressing)
	if step.Status.Phase != releasev1alpha1.ReleaseSucceeded || c.Reason != releasev1alpha1.ReasonNotRolledBack {
		t.Errorf("a release that has ended is %s, and shows %s", step.Status.Phase, c.Reason)
	}
	mentions("a release that has ended", c.Message)
	if step := release.Next(w.input(r)); step.Status.Phase != releasev1alpha1.ReleaseRollingBack {
		t.Errorf("with the version, a release that has ended is %s", step.Status.Phase)
	}

	w, r = begin()
	r.Spec.State = releasev1alpha1.StateRollback
	step = release.Next(w.inputAfterDeletion(r, version))
	c = meta.FindStatusCondition(step.Status.Conditions, releasev1alpha1.ReleaseConditionSucceeded)
	if step.Status.Phase != releasev1alpha1.ReleaseFailed || c.Reason != releasev1alpha1.ReasonRollbackFailed ||
		!step.Bindings["web"].Plan.Hold {
		t.Errorf("a release that runs is %s (%s), with the plan %+v", step.Status.Phase, c.Reason, step.Bindings["web"].Plan)
	}
	mentions("a release that runs", c.Message)
	if step := release.Next(w.input(r)); step.Status.Phase != releasev1alpha1.ReleaseRollingBack {
		t.Errorf("with the version, a release that runs is %s", step.Status.Phase)
	}
}

// Each missing version is looked for on the server.
func TestOnlyRevisionsThatAReleaseCanGoToAreAhead(t *testing.T) {
	w := newConfigWorld(t)
	first := w.releases[0].Status.Targets[0].To
	w.image("web:3")
	second := w.release("r2", "config: Versioned\nstages: [{name: all}]")
	w.pass(time.Hour)
	to := second.Status.Targets[0].To
	w.image("web:4")
	third := w.release("r3", "config: Versioned\nstages: [{name: all, before: [{name: go}]}]")
	ahead := func(when string, r *releasev1alpha1.Release, want ...string) {
		t.Helper()
		got := slices.Sorted(maps.Keys(w.input(r).Targets["web"].RevisionsAhead(r, r.Spec.Targets[0])))
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s, the revisions are %q, want %q", when, got, want)
		}
	}
	ahead("after its end", second)
	ahead("before it is accepted", third, to)
	third.Spec.Targets[0].To.Revision = first
	ahead("for a revision that it names", third, first, to)
	third.Spec.Targets[0].To.Revision = ""
	second.Spec.State = releasev1alpha1.StateRollback
	ahead("for a rollback", second, w.releases[1].Status.Targets[0].From, to)
	second.Spec.State = releasev1alpha1.StateRun
	w.pass(time.Minute)
	ahead("while it runs", third, to, third.Status.Targets[0].To)
}
