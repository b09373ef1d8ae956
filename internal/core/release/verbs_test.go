package release_test

import (
	"strings"
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// act lets a user change a release, as admission would stamp it.
func act(r *releasev1alpha1.Release, user, reason string, change func()) {
	old := r.DeepCopy()
	change()
	if reason != "" {
		r.Annotations[releasev1alpha1.ReleaseReasonAnnotation] = reason
	}
	r.Annotations[release.VerbsAnnotation] = release.StampVerbs(old, r, user)
	r.Generation++
}

func TestJournalNamesTheUserOfEachVerb(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	r := w.release("r1", "stages: [{name: one, clusters: {clusterNames: [c1]}, soak: 1m}, {name: two}]")
	set := func(state releasev1alpha1.ReleaseState) func() { return func() { r.Spec.State = state } }
	w.pass(time.Second)
	act(r, "ann", "the graphs are red", set(releasev1alpha1.StatePause))
	w.pass(time.Second)
	act(r, "bob", "", set(releasev1alpha1.StateRun))
	w.pass(time.Second)
	w.members[1].fails["web:2"] = true
	w.pass(2 * time.Minute)
	act(r, "eve", "fixed", func() { r.Annotations[releasev1alpha1.RetryAnnotation] = "two@1" })
	w.pass(5 * time.Minute)
	act(r, "joe", "errors in checkout", set(releasev1alpha1.StateRollback))
	w.pass(time.Minute)
	var got []string
	for _, e := range r.Status.Journal {
		if e.Actor != "" {
			got = append(got, strings.TrimSpace(e.Reason+" "+e.Actor+" "+e.Message))
		}
	}
	want := "PausedByUser ann the graphs are red\nResumed bob\nRetry eve fixed\nUserRequest joe errors in checkout"
	if strings.Join(got, "\n") != want {
		t.Errorf("the journal has\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestVerbsCannotBeForged(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	old := w.release("r1", "stages: [{name: one}]")
	r := old.DeepCopy()
	r.Spec.State = releasev1alpha1.StatePause
	r.Annotations[release.VerbsAnnotation] = `{"state":{"value":"Pause","user":"boss"}}`
	if got, want := release.StampVerbs(old, r, "ann"), `{"state":{"value":"Pause","user":"ann"}}`; got != want {
		t.Errorf("a verb is stamped %s, want %s", got, want)
	}
	r.Spec.State = old.Spec.State
	if got := release.StampVerbs(old, r, "ann"); got != "" {
		t.Errorf("a forged annotation without a verb becomes %s", got)
	}
	if got := release.StampVerbs(nil, r, "ann"); got != "" {
		t.Errorf("a forged annotation of a new release becomes %s", got)
	}
	for _, right := range release.RightsFor(old, r) {
		t.Errorf("the annotation alone needs %+v", right)
	}
}
