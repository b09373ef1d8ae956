package release_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// starting is a CloneSet web with the strategy gray that the hub starts. Its clusters have web:1, and its template has
// web:2.
type starting struct {
	release.StartInput
	t   *testing.T
	now time.Time
}

func newStarting(t *testing.T) *starting {
	s := &starting{t: t, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	s.Stored = map[string]*releasev1alpha1.ReleaseRevision{}
	s.Strategy = &releasev1alpha1.ReleaseStrategySpec{AutoStart: &releasev1alpha1.ReleaseAutoStart{}}
	s.setImage("web:1")
	s.effective(s.store())
	s.setImage("web:2")
	return s
}

// setImage changes the image of the template.
func (s *starting) setImage(image string) {
	s.t.Helper()
	s.Template = coretest.Object(s.t, cloneSet)
	s.Template.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "gray"})
	s.Template.Object["spec"].(map[string]any)["template"] = map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": image}}}}
	s.Current = release.NewRevision(s.Template, nil)
}

// store stores the revision of the template, and returns its name.
func (s *starting) store() string {
	s.now = s.now.Add(time.Minute)
	r := s.Current.DeepCopy()
	r.CreationTimestamp = metav1.NewTime(s.now)
	s.Stored[r.Name] = r
	return r.Name
}

// effective is the revision that clusters have.
func (s *starting) effective(name string) {
	s.Binding = &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{fleet.EffectiveRevisionAnnotation: name}}}
}

// was adds a release of the present revision of the template, which is accepted and in a phase.
func (s *starting) was(name string, phase releasev1alpha1.ReleasePhase) *releasev1alpha1.Release {
	s.now = s.now.Add(time.Minute)
	r := releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.NewTime(s.now)}}
	r.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}}}
	r.Status = releasev1alpha1.ReleaseStatus{Phase: phase,
		Targets: []releasev1alpha1.ReleaseTargetStatus{{Name: "web", To: s.store()}}}
	s.Releases = append(s.Releases, r)
	return &s.Releases[len(s.Releases)-1]
}

func TestTheHubStartsAReleaseOfAChange(t *testing.T) {
	s := newStarting(t)
	r := release.ReleaseToStart(s.StartInput)
	if r == nil {
		t.Fatal("no release is started")
	}
	if r.Spec.Trigger == nil || r.Spec.Trigger.Type != releasev1alpha1.TriggerTemplate ||
		r.Spec.Trigger.Revision != s.Current.Name || r.Spec.StrategyRef.Name != "gray" ||
		r.Spec.Targets[0].Ref.Name != "web" || r.Spec.Targets[0].To.Current == nil {
		t.Errorf("the release is %+v", r.Spec)
	}
	if again := release.ReleaseToStart(s.StartInput); again.Name != r.Name {
		t.Errorf("the same change gives %s and %s", r.Name, again.Name)
	}
}

func TestTheHubStartsARevisionOnce(t *testing.T) {
	for name, c := range map[string]struct {
		before func(s *starting)
		starts bool
	}{
		"clusters have it":         {func(s *starting) { s.effective(s.Current.Name) }, false},
		"users start releases":     {func(s *starting) { s.Strategy.AutoStart = nil }, false},
		"no strategy":              {func(s *starting) { s.Strategy = nil }, false},
		"an unknown revision":      {func(s *starting) { s.effective("") }, false},
		"under way":                {func(s *starting) { s.was("r1", releasev1alpha1.ReleaseRunning) }, false},
		"rolled back":              {func(s *starting) { s.was("r1", releasev1alpha1.ReleaseRolledBack) }, false},
		"aborted":                  {func(s *starting) { s.was("r1", releasev1alpha1.ReleaseAborted) }, false},
		"its release was rejected": {func(s *starting) { rejected(s) }, false},
		"its release was deleted":  {func(s *starting) { s.store() }, false},
		"its release was deleted, and an older one was not": {func(s *starting) {
			s.setImage("web:0")
			s.was("r0", releasev1alpha1.ReleaseSucceeded)
			s.setImage("web:2")
			s.store()
		}, false},
		"changed after a rollback": {func(s *starting) {
			s.was("r1", releasev1alpha1.ReleaseRolledBack)
			s.setImage("web:3")
		}, true},
		"changed back": {func(s *starting) {
			s.setImage("web:1")
			s.was("r0", releasev1alpha1.ReleaseSucceeded)
			s.setImage("web:2")
			s.was("r1", releasev1alpha1.ReleaseSucceeded)
			s.effective(s.Current.Name)
			s.setImage("web:1")
		}, true},
		"an earlier revision was released meanwhile": {func(s *starting) {
			s.was("r1", releasev1alpha1.ReleaseSucceeded)
			changed := s.Current.Name
			s.setImage("web:1")
			s.was("r2", releasev1alpha1.ReleaseSucceeded).Status.Targets[0].TemplateRevision = changed
			s.setImage("web:2")
		}, false},
	} {
		s := newStarting(t)
		c.before(s)
		if r := release.ReleaseToStart(s.StartInput); (r != nil) != c.starts {
			t.Errorf("%s: the release is %v, want one: %t", name, r, c.starts)
		}
	}
}

// rejected adds a release of the hub that was not accepted.
func rejected(s *starting) {
	r := s.was("r1", releasev1alpha1.ReleaseFailed)
	delete(s.Stored, s.Current.Name)
	r.Status.Targets = nil
	r.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerTemplate, Revision: s.Current.Name}
}

func TestAChangeDuringAReleaseWaitsOrReplacesIt(t *testing.T) {
	for name, c := range map[string]struct {
		supersede releasev1alpha1.SupersedeAction
		phase     releasev1alpha1.ReleasePhase
		state     releasev1alpha1.ReleaseState
		starts    bool
	}{
		"by default":          {"", releasev1alpha1.ReleaseRunning, "", false},
		"queue":               {releasev1alpha1.SupersedeQueue, releasev1alpha1.ReleasePaused, "", false},
		"replace":             {releasev1alpha1.SupersedeReplace, releasev1alpha1.ReleaseRunning, "", true},
		"replace what failed": {releasev1alpha1.SupersedeReplace, releasev1alpha1.ReleasePaused, "", true},
		"not a rollback":      {releasev1alpha1.SupersedeReplace, releasev1alpha1.ReleaseRollingBack, "", false},
		"not a wish to roll back": {releasev1alpha1.SupersedeReplace, releasev1alpha1.ReleaseRunning,
			releasev1alpha1.StateRollback, false},
		"not what a user has paused": {releasev1alpha1.SupersedeReplace, releasev1alpha1.ReleasePaused,
			releasev1alpha1.StatePause, false},
		"queue until it has ended": {releasev1alpha1.SupersedeQueue, releasev1alpha1.ReleaseRolledBack, "", true},
	} {
		s := newStarting(t)
		s.Strategy.AutoStart.Supersede = c.supersede
		s.was("r1", c.phase).Spec.State = c.state
		s.setImage("web:3")
		r := release.ReleaseToStart(s.StartInput)
		if (r != nil) != c.starts {
			t.Errorf("%s: the release is %v, want one: %t", name, r, c.starts)
		}
		if r != nil && c.phase != releasev1alpha1.ReleaseRolledBack && r.Spec.Supersede != releasev1alpha1.SupersedeReplace {
			t.Errorf("%s: the release supersedes with %s", name, r.Spec.Supersede)
		}
	}
}

// recording is a CloneSet without a strategy whose direct changes are recorded.
func recording(t *testing.T) *starting {
	s := newStarting(t)
	s.Stored = map[string]*releasev1alpha1.ReleaseRevision{}
	s.Strategy = nil
	s.effective("")
	s.direct("web:1")
	return s
}

func (s *starting) direct(image string) {
	s.setImage(image)
	s.Template.SetAnnotations(nil)
}

func TestADirectChangeIsRecordedOnce(t *testing.T) {
	s := recording(t)
	if r, baseline := release.RecordToStart(s.StartInput); r != nil || baseline == nil || baseline.Name != s.Current.Name {
		t.Fatalf("at first, the record is %v and the baseline %v", r, baseline)
	}
	s.store()
	if r, baseline := release.RecordToStart(s.StartInput); r != nil || baseline != nil {
		t.Errorf("without a change, the record is %v and the baseline %v", r, baseline)
	}
	s.direct("web:2")
	r, baseline := release.RecordToStart(s.StartInput)
	if r == nil || baseline != nil || r.Spec.Trigger.Type != releasev1alpha1.TriggerDirect ||
		r.Spec.Trigger.Revision != s.Current.Name {
		t.Fatalf("after a change, the record is %+v and the baseline %v", r, baseline)
	}
	s.was("r1", releasev1alpha1.ReleaseRunning)
	if r, _ := release.RecordToStart(s.StartInput); r != nil {
		t.Errorf("the change is recorded again as %s", r.Name)
	}
	s.direct("web:1") // which is stored
	if r, _ := release.RecordToStart(s.StartInput); r == nil {
		t.Error("the way back is not recorded")
	}
	for name, change := range map[string]func(s *starting){
		"a strategy": func(s *starting) { s.setImage("web:3") },
		"a release":  func(s *starting) { s.direct("web:3"); s.effective("r") },
	} {
		change(s)
		if r, baseline := release.RecordToStart(s.StartInput); r != nil || baseline != nil {
			t.Errorf("with %s, the record is %v and the baseline %v", name, r, baseline)
		}
	}
}

// record is a release that observes a direct change, and what it sees of the clusters c1 and c2.
func record(s *starting, progress ...fleet.ClusterProgress) release.Input {
	s.t.Helper()
	s.store()
	s.direct("web:2")
	r, _ := release.RecordToStart(s.StartInput)
	if r == nil {
		s.t.Fatal("nothing is recorded")
	}
	r.UID, r.CreationTimestamp, r.Generation = "r1", metav1.NewTime(s.now), 1
	return recorded(s, r, progress...)
}

func recorded(s *starting, r *releasev1alpha1.Release, progress ...fleet.ClusterProgress) release.Input {
	b := s.Binding.(*workv1alpha2.ResourceBinding).DeepCopy()
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "c1", Replicas: 2}, {Name: "c2", Replicas: 2}}
	t := release.Target{Template: s.Template, Binding: b, Divided: true, Current: s.Current, Revisions: s.Stored,
		Progress: progress}
	return release.Input{Release: r, Targets: map[string]release.Target{r.Spec.Targets[0].Name: t}, Now: s.now,
		Others: []releasev1alpha1.Release{*r}}
}

// progressIn is the progress of a cluster with two pods.
func progressIn(cluster string, available int64) fleet.ClusterProgress {
	return fleet.ClusterProgress{Cluster: cluster, Current: true, Replicas: 2, Target: 2, Released: 2,
		New: available, Available: available, Reached: available == 2}
}

func TestARecordObservesTheChangeAndHoldsNothing(t *testing.T) {
	s := recording(t)
	former := s.Current.Name
	in := record(s, progressIn("c1", 2), progressIn("c2", 1))
	step := release.Next(in)
	if step.Status.Phase != releasev1alpha1.ReleaseRunning || step.Status.Targets[0].From != former ||
		step.Status.Targets[0].To != s.Current.Name || len(step.Revisions) != 1 || len(step.Bindings) != 0 {
		t.Fatalf("at first, the step is %+v", step)
	}
	in.Release.Status = step.Status
	if again := release.Next(in); len(again.Bindings) != 0 || again.Status.Phase != releasev1alpha1.ReleaseRunning {
		t.Errorf("without news, the step is %+v", again)
	}
	done := release.Next(recorded(s, in.Release, progressIn("c1", 2), progressIn("c2", 2)))
	if done.Status.Phase != releasev1alpha1.ReleaseSucceeded || done.Status.Stages[0].Phase != releasev1alpha1.StageDone ||
		len(done.Bindings) != 0 {
		t.Errorf("in the end, the step is %+v", done)
	}
}

func TestARecordEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *starting, r *releasev1alpha1.Release)
		want   releasev1alpha1.ReleasePhase
		reason string
	}{
		"another change": {func(s *starting, _ *releasev1alpha1.Release) { s.direct("web:3") },
			releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded},
		"a release": {func(s *starting, _ *releasev1alpha1.Release) { s.effective("r") },
			releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded},
		"another workload": {func(s *starting, _ *releasev1alpha1.Release) { s.Template.SetUID("u-2") },
			releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonTargetReplaced},
		"no progress": {func(s *starting, _ *releasev1alpha1.Release) { s.now = s.now.Add(31 * time.Minute) },
			releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonIncomplete},
		"an abort": {func(_ *starting, r *releasev1alpha1.Release) { r.Spec.State = releasev1alpha1.StateAbort },
			releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted},
	} {
		s := recording(t)
		in := record(s, progressIn("c1", 0), progressIn("c2", 0))
		in.Release.Status = release.Next(in).Status
		c.change(s, in.Release)
		got := release.Next(recorded(s, in.Release, progressIn("c1", 0), progressIn("c2", 0))).Status
		if got.Phase != c.want || got.Reason != c.reason {
			t.Errorf("%s: the record is %s (%s), want %s (%s)", name, got.Phase, got.Reason, c.want, c.reason)
		}
		in.Release.Status = got
		if what, next := release.Waits(in.Release); what == "" || strings.Contains(next, "argosy release") {
			t.Errorf("%s: status describes it as %q, and names the command %q", name, what, next)
		}
	}
}

// A change that was sent already neither blocks a release nor takes a place of one.
func TestARecordBlocksNoRelease(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	direct := w.release("r0", "{stages: [{name: direct}]}")
	direct.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerDirect,
		Revision: w.revision().Name}
	direct.Status.Phase = releasev1alpha1.ReleaseRunning
	w.guard(guard(t, "one", `{limits: {releases: 1}}`))
	r := w.release("r1", oneTwoSeven)
	w.reconcile(r)
	w.reconcile(r)
	if r.Status.Phase != releasev1alpha1.ReleaseRunning {
		t.Errorf("the release is %s (%s), want Running", r.Status.Phase, r.Status.Reason)
	}
}
