package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	corefailover "github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	corefleet "github.com/argosy-io/argosy/internal/core/workload/fleet"
	releasehistory "github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// releaseWorld is a hub with a CloneSet of 30 pods in three members that simulate OpenKruise.
type releaseWorld struct {
	*controllertest.Hub
	t       *testing.T
	members []*cloneSetMember
	stop    func()
	// failing is an image whose pods never become available.
	failing string
	// history returns the release history of a hub process; nil for none.
	history func() *releasehistory.Source
}

// cloneSetMember is a member with the pods of one CloneSet.
type cloneSetMember struct {
	name   string
	server *membertest.Server
	images []string
	ready  []bool
	// seen are the images and partitions that the CloneSet had, without repetition.
	seen []string
	down bool
}

// newReleaseWorld has web:1 in all members, and a template that is changed to web:2.
func newReleaseWorld(t *testing.T) *releaseWorld { return newRecordedWorld(t, nil) }

// newRecordedWorld is newReleaseWorld with a release history.
func newRecordedWorld(t *testing.T, source func() *releasehistory.Source) *releaseWorld {
	w := &releaseWorld{Hub: controllertest.New(t), t: t, history: source}
	w.Embed()
	for _, name := range []string{"m1", "m2", "m3"} {
		w.members = append(w.members, &cloneSetMember{name: name, server: w.Join(name, controllertest.CloneSet)})
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	p := policy("shop", "apps.kruise.io/v1alpha1", "CloneSet")
	p.PropagationSpec().Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}
	w.Make(p)
	web := parsed(t, controllertest.CloneSet, "web", `replicas: 30, updateStrategy: {maxUnavailable: "100%"},
		template: {spec: {containers: [{name: main, image: "web:1"}]}}`)
	web.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "gray"})
	w.Make(claimed(web, p))
	w.pass(10 * time.Second)
	w.pods("at the start", "web:1", 10, 10, 10)
	w.image("web:2")
	w.pods("without a release", "web:2", 0, 0, 0)
	w.Quiet()
	return w
}

// start runs a hub process.
func (w *releaseWorld) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	o := Options{Config: w.Config, DialMember: membertest.Dial, DialCheck: membertest.Dial,
		Failover: &Failover{Options: corefailover.Defaults}}
	if w.history != nil {
		o.History = w.history()
	}
	go func() { ended <- Run(ctx, o) }()
	w.Advance(time.Second)
	w.stop = func() {
		w.Disconnected(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Error(err)
			}
			if o.History != nil {
				if err := o.History.Close(); err != nil {
					w.t.Error(err)
				}
			}
		})
		w.stop = func() {}
	}
}

// image changes the template.
func (w *releaseWorld) image(image string) {
	w.setImage(image)
	w.pass(3 * time.Second)
}

// setImage changes the image of the template.
func (w *releaseWorld) setImage(image string) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(controllertest.CloneSet.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	controllertest.Change(w.Hub, u, func(u *unstructured.Unstructured) {
		containers := fields.Objects(u.Object, "spec", "template", "spec", "containers")
		containers[0]["image"] = image
	})
}

// pass lets time pass, and the members act.
func (w *releaseWorld) pass(d time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		w.Advance(time.Second)
		for _, m := range w.members {
			synctest.Wait()
			if !m.down {
				m.act(w.failing)
			}
		}
	}
	synctest.Wait()
}

// act is one pass of the CloneSet's controller.
func (m *cloneSetMember) act(failing string) {
	u := m.server.Object(controllertest.CloneSet, "shop", "web")
	if u == nil {
		m.images, m.ready = nil, nil
		return
	}
	replicas, _ := fields.Whole(fields.Value(u.Object, "spec", "replicas"))
	kept, _ := fields.Whole(fields.Value(u.Object, "spec", "updateStrategy", "partition"))
	image := fields.Text(fields.Objects(u.Object, "spec", "template", "spec", "containers")[0], "image")
	if seen := fmt.Sprintf("%s keep %d", image, kept); len(m.seen) == 0 || m.seen[len(m.seen)-1] != seen {
		m.seen = append(m.seen, seen)
	}
	for i := range m.ready {
		m.ready[i] = m.images[i] != failing
	}
	for int64(len(m.images)) < replicas {
		m.images, m.ready = append(m.images, image), append(m.ready, false)
	}
	var updated, ready, updatedReady int64
	for i := range m.images {
		if m.images[i] == image {
			updated++
		}
	}
	for i := range m.images {
		if m.images[i] != image && updated < replicas-kept {
			m.images[i], m.ready[i] = image, false
			updated++
		}
		if m.ready[i] {
			ready++
			if m.images[i] == image {
				updatedReady++
			}
		}
	}
	status := map[string]any{"observedGeneration": u.GetGeneration(), "replicas": replicas, "updatedReplicas": updated,
		"readyReplicas": ready, "availableReplicas": ready, "updatedReadyReplicas": updatedReady,
		"updatedAvailableReplicas": updatedReady}
	if !equality.Semantic.DeepEqual(u.Object["status"], status) {
		u.Object["status"] = status
		m.server.Put(u)
	}
}

// pods compares the pods of an image in each member.
func (w *releaseWorld) pods(when, image string, want ...int) {
	w.t.Helper()
	var got []int
	for _, m := range w.members {
		n := 0
		for i, have := range m.images {
			if have == image && (m.ready[i] || image == w.failing) {
				n++
			}
		}
		got = append(got, n)
	}
	if !slices.Equal(got, want) {
		r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r1"}}
		w.HasObject(r)
		status, _ := yaml.Marshal(r.Status)
		w.t.Fatalf("%s, pods of %s are %v, want %v; the release is\n%s", when, image, got, want, status)
	}
}

const oneTwoSeven = `
stages:
- {name: one, to: {weight: 1}, soak: 10s}
- {name: two, to: {weight: 2}, soak: 10s}
- {name: seven, to: {weight: 7}, soak: 10s}
`

// Time passes here only where something waits for a timer. So this finds delays of the hub, and none of the machine.
func TestTheNextStageStartsWithinASecondOfTheLastReport(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		r := w.release("r1", "stages: [{name: one, to: {percent: 10}}, {name: two, to: {percent: 50}}, {name: three}]")
		available := func() (n int) {
			for _, m := range w.members {
				for i := range m.images {
					if m.ready[i] && m.images[i] == "web:2" {
						n++
					}
				}
			}
			return n
		}
		var reported time.Time
		last, stage, stages := 0, "one", []string{"one"}
		for range 600 {
			w.Advance(50 * time.Millisecond)
			synctest.Wait()
			if w.HasObject(r); r.Status.Stage != "" && r.Status.Stage != stage {
				stage = r.Status.Stage
				stages = append(stages, stage)
				if delay := time.Since(reported); delay > time.Second {
					t.Errorf("stage %s starts %s after the last report, want at most 1s", stage, delay)
				}
			}
			for _, m := range w.members {
				m.act("")
			}
			if n := available(); n != last {
				last, reported = n, time.Now()
			}
		}
		if !slices.Equal(stages, []string{"one", "two", "three"}) || r.Status.Phase != releasev1alpha1.ReleaseSucceeded {
			t.Errorf("the stages were %v, and the release is %s", stages, r.Status.Phase)
		}
	})
}

// release creates a ReleaseStrategy and a Release of the CloneSet.
func (w *releaseWorld) release(name, strategy string) *releasev1alpha1.Release {
	w.t.Helper()
	s := &releasev1alpha1.ReleaseStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(strategy), &s.Spec); err != nil {
		w.t.Fatal(err)
	}
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		CreationTimestamp: metav1.Now()}}
	r.Spec = releasev1alpha1.ReleaseSpec{StrategyRef: &releasev1alpha1.ReleaseStrategyReference{Name: name},
		State: releasev1alpha1.StateRun, Targets: []releasev1alpha1.ReleaseTarget{{Name: "web",
			Ref: releasev1alpha1.ReleaseObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}}}}
	// The hub has the strategy first. Otherwise it writes once more that there is no strategy.
	w.Make(s)
	synctest.Wait()
	w.Make(r)
	return r
}

// expect compares the phase and the reason of a release.
func (w *releaseWorld) expect(when string, r *releasev1alpha1.Release, phase releasev1alpha1.ReleasePhase,
	reason string) {
	w.t.Helper()
	if !w.HasObject(r) {
		w.t.Fatalf("%s, the release does not exist", when)
	}
	if r.Status.Phase != phase || r.Status.Reason != reason {
		status, _ := yaml.Marshal(r.Status)
		w.t.Fatalf("%s, the release is %s (%s), want %s (%s):\n%s", when, r.Status.Phase, r.Status.Reason, phase, reason,
			status)
	}
}

// set changes the state of a release.
func (w *releaseWorld) set(r *releasev1alpha1.Release, state releasev1alpha1.ReleaseState) {
	controllertest.Change(w.Hub, r, func(r *releasev1alpha1.Release) { r.Spec.State = state })
}

// plan is the plan of the binding.
func (w *releaseWorld) plan() *corefleet.Plan {
	w.t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-cloneset"}, b); err != nil {
		w.t.Fatal(err)
	}
	return corefleet.PlanOf(b.Annotations)
}

func TestBaselineIsStoredBeforeTheFirstRelease(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		var revisions releasev1alpha1.ReleaseRevisionList
		if err := w.List(t.Context(), &revisions); err != nil {
			t.Fatal(err)
		}
		if len(revisions.Items) != 1 || revisions.Items[0].Spec.Images[0] != "web:1" {
			t.Fatalf("the revisions are %+v", revisions.Items)
		}
		b := &workv1alpha2.ResourceBinding{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-cloneset"}, b); err != nil {
			t.Fatal(err)
		}
		if got := b.Annotations[corefleet.EffectiveRevisionAnnotation]; got != revisions.Items[0].Name {
			t.Errorf("the binding names the revision %q", got)
		}
		if !meta.IsStatusConditionTrue(b.Status.Conditions, corefleet.ChangeAwaitsRelease) {
			t.Errorf("the change does not wait: %+v", b.Status.Conditions)
		}
		w.pass(time.Minute)
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("written while the change waits: %q", writes)
		}
	})
}

// stage compares the reason of the condition StagesCompleted of the binding; empty for none.
func (w *releaseWorld) stage(when, want string) {
	w.t.Helper()
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-cloneset"}}
	w.HasObject(b)
	got := ""
	if c := meta.FindStatusCondition(b.Status.Conditions, corefleet.StagesCompleted); c != nil {
		got = c.Reason
	}
	if got != want {
		w.t.Errorf("%s, the binding is at %q, want %q", when, got, want)
	}
}

func TestReleaseUpdatesMembersStageByStage(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		r := w.release("r1", oneTwoSeven)
		w.pass(8 * time.Second)
		w.pods("in the first stage", "web:2", 1, 1, 1)
		w.expect("in the first stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking)
		w.pass(13 * time.Second)
		w.pods("in the second stage", "web:2", 3, 3, 3)
		w.pass(13 * time.Second)
		w.pods("in the last stage", "web:2", 10, 10, 10)
		w.expect("in the last stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking)
		w.pass(15 * time.Second)
		w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if w.plan() != nil {
			t.Error("the binding has a plan after the release")
		}
		w.stage("after the release", "")
		wrote := count(w.Quiet())
		if n := wrote["update releases/status"]; n > 2+3*3 {
			t.Errorf("the status was written %d times, want at most 11", n)
		}
		// One for each stage, and one to end the plan.
		if n := wrote["update resourcebindings"]; n > 4 {
			t.Errorf("the binding was written %d times, want at most 4", n)
		}
		var events []string
		for _, e := range w.Events() {
			if about, found := strings.CutPrefix(e, "Release "); found {
				reason, _, _ := strings.Cut(about, ":")
				events = append(events, reason)
			}
		}
		slices.Sort(events)
		if got := strings.Join(events, " "); got != "ReleaseAccepted ReleaseStarted ReleaseSucceeded" {
			t.Errorf("the events are %s", got)
		}
		w.pass(time.Minute)
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("written after the release: %q", writes)
		}
	})
}

func TestReleaseWaitsForAnApproval(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		r := w.release("r1", `stages: [{name: first, to: {percent: 10}}, {name: rest, before: [{name: sign}]}]`)
		w.pass(20 * time.Second)
		w.pods("before the approval", "web:2", 1, 1, 1)
		w.expect("before the approval", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval)
		approve := func(name, revision string) {
			w.Make(&releasev1alpha1.ReleaseApproval{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Spec: releasev1alpha1.ReleaseApprovalSpec{Release: "r1", ReleaseUID: r.UID, Revision: revision, Stage: "rest",
					Position: releasev1alpha1.GateBefore, Gate: "sign", Attempt: 1, Verdict: releasev1alpha1.VerdictApprove,
					By: &releasev1alpha1.ReleaseUser{User: "ann"}}})
			w.pass(10 * time.Second)
		}
		approve("other", "of-another-revision")
		w.pods("after an approval of another revision", "web:2", 1, 1, 1)
		approve("right", r.Status.Revision)
		w.pods("after the approval", "web:2", 10, 10, 10)
		w.expect("after the approval", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if n := count(w.Quiet())["update releases/status"]; n > 2+3*2+1 {
			t.Errorf("the status was written %d times, want at most 9", n)
		}
	})
}

func TestFailedReleaseRollsBackAndBlocksTheRevision(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		w.failing = "web:2"
		r := w.release("r1", `{stages: [{name: first, to: {percent: 10}, deadline: 30s}, {name: rest}],
			failure: {action: Rollback}}`)
		w.pass(2 * time.Minute)
		w.expect("in the end", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack)
		w.pods("in the end", "web:1", 10, 10, 10)
		var revisions releasev1alpha1.ReleaseRevisionList
		if err := w.List(t.Context(), &revisions); err != nil {
			t.Fatal(err)
		}
		for _, revision := range revisions.Items {
			if blocked := revision.Status.Blocked != nil; blocked != (revision.Spec.Images[0] == "web:2") {
				t.Errorf("revision of %s is blocked: %v", revision.Spec.Images[0], blocked)
			}
		}
		if events := strings.Join(w.Events(), "\n"); !strings.Contains(events, "Release ReleaseStageFailed: Stage first: ") ||
			!strings.Contains(events, "Release ReleaseRolledBack: ") {
			t.Errorf("the events lack the failure: %s", events)
		}
		again := w.release("r2", oneTwoSeven)
		w.pass(5 * time.Second)
		w.expect("the same revision again", again, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRevisionBlocked)
	})
}

func TestReleasePausesResumesAndAborts(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		r := w.release("r1", oneTwoSeven)
		w.pass(8 * time.Second)
		w.set(r, releasev1alpha1.StatePause)
		w.pass(time.Minute)
		w.expect("paused", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByUser)
		w.pods("paused", "web:2", 1, 1, 1)
		w.stage("paused", "Stage1Of3Paused")
		w.set(r, releasev1alpha1.StateRun)
		w.pass(16 * time.Second)
		w.pods("resumed", "web:2", 3, 3, 3)
		w.set(r, releasev1alpha1.StateAbort)
		w.pass(time.Minute)
		w.expect("aborted", r, releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted)
		w.pods("aborted", "web:2", 3, 3, 3)
		if p := w.plan(); p == nil || !p.Hold {
			t.Errorf("the plan is not held after the abort: %+v", p)
		}
		if n := count(w.Quiet())["update resourcebindings"]; n > 2+1+1+1 {
			t.Errorf("the binding was written %d times, want at most 5", n)
		}
		w.set(r, releasev1alpha1.StateRollback)
		w.pass(20 * time.Second)
		w.expect("rolled back", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack)
		w.pods("rolled back", "web:1", 10, 10, 10)
	})
}

func TestReleaseContinuesAfterAHubRestart(t *testing.T) {
	run := func(restart bool) (seen []string, statusWrites int) {
		controllertest.Run(t, func(t *testing.T) {
			w := newReleaseWorld(t)
			r := w.release("r1", oneTwoSeven)
			for i := range 30 {
				w.pass(2 * time.Second)
				if restart && i%4 == 1 {
					w.stop()
					w.start()
				}
			}
			w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
			for _, m := range w.members {
				seen = append(seen, m.name+": "+strings.Join(m.seen, ", "))
			}
			statusWrites = count(w.Quiet())["update releases/status"]
		})
		return seen, statusWrites
	}
	want, writes := run(false)
	got, again := run(true)
	if !slices.Equal(got, want) {
		t.Errorf("with restarts, members got %q, want %q", got, want)
	}
	if again != writes {
		t.Errorf("with restarts, the status was written %d times, want %d", again, writes)
	}
}

func TestDeletedReleaseKeepsPlanPaused(t *testing.T) {
	for name, down := range map[string]bool{"while the hub runs": false, "while the hub is down": true} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newReleaseWorld(t)
				r := w.release("r1", oneTwoSeven)
				w.pass(8 * time.Second)
				if down {
					w.stop()
				}
				w.Quiet()
				w.Gone(r)
				if down {
					w.start()
				}
				w.pass(2 * time.Minute)
				if p := w.plan(); p == nil || !p.Hold {
					t.Fatalf("the plan is not held: %+v", p)
				}
				w.pods("after the deletion", "web:2", 1, 1, 1)
				for write := range count(w.Quiet()) {
					if strings.HasPrefix(write, "delete ") && write != "delete releases" {
						t.Errorf("the hub did %q after the deletion of the release", write)
					}
				}
				next := w.release("r2", oneTwoSeven)
				w.pass(time.Minute)
				w.expect("the next release", next, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
				w.pods("after the next release", "web:2", 10, 10, 10)
			})
		})
	}
}

func TestEndedReleasesAndOldRevisionsAreDeleted(t *testing.T) {
	if testing.Short() {
		t.Skip("in the long suite: make test-long")
	}
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		minutes := int64(15 * 60)
		for i := range 12 {
			w.image(fmt.Sprintf("web:%d", i+2))
			r := w.release(fmt.Sprintf("r%d", i+1), "stages: [{name: all}]")
			controllertest.Change(w.Hub, r, func(r *releasev1alpha1.Release) { r.Spec.TTLSecondsAfterFinished = &minutes })
			w.pass(15 * time.Second)
			w.expect("one of many", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		}
		var revisions releasev1alpha1.ReleaseRevisionList
		if err := w.List(t.Context(), &revisions); err != nil {
			t.Fatal(err)
		}
		if n := len(revisions.Items); n < 10 || n > 11 {
			t.Errorf("%d revisions are kept of 13, want 10 or 11", n)
		}
		w.pass(5 * time.Minute)
		var releases releasev1alpha1.ReleaseList
		if err := w.List(t.Context(), &releases); err != nil || len(releases.Items) != 12 {
			t.Errorf("before their time, %d releases are left: %v", len(releases.Items), err)
		}
		w.pass(15 * time.Minute)
		if err := w.List(t.Context(), &releases); err != nil || len(releases.Items) > 0 {
			t.Errorf("after their time, %d releases are left: %v", len(releases.Items), err)
		}
		w.pods("in the end", "web:13", 10, 10, 10)
	})
}

func TestMissingRevisionStopsWritesToMembers(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		w.release("r1", oneTwoSeven)
		w.pass(8 * time.Second)
		var revisions releasev1alpha1.ReleaseRevisionList
		if err := w.List(t.Context(), &revisions); err != nil {
			t.Fatal(err)
		}
		for i := range revisions.Items {
			w.Gone(&revisions.Items[i])
		}
		w.pass(time.Minute)
		w.pods("without the revision", "web:2", 1, 1, 1)
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-cloneset"}}
		w.HasObject(b)
		if c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.WorksWritten); c == nil ||
			c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "ReleaseRevision") {
			t.Errorf("the conditions of the binding are %+v", b.Status.Conditions)
		}
		for _, revision := range revisions.Items {
			revision.ResourceVersion, revision.UID = "", ""
			w.Make(&revision)
		}
		w.pass(time.Minute)
		w.pods("with the revision again", "web:2", 10, 10, 10)
	})
}

func TestQueuedReleaseStartsWhenTheOtherEnds(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		first := w.release("r1", oneTwoSeven)
		w.pass(8 * time.Second)
		w.image("web:3")
		w.pods("when the template has changed", "web:2", 1, 1, 1)
		second := w.release("r2", oneTwoSeven)
		w.pass(3 * time.Second)
		w.expect("at first, the second release", second, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonQueued)
		w.HasObject(first)
		if c := meta.FindStatusCondition(first.Status.Conditions, releasev1alpha1.ReleaseDrifted); c == nil ||
			c.Reason != releasev1alpha1.ReasonTemplateChanged {
			t.Errorf("the conditions of the first release are %+v", first.Status.Conditions)
		}
		w.pass(30 * time.Second)
		w.expect("the first release", first, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		w.pass(50 * time.Second)
		w.expect("the second release", second, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		w.pods("in the end", "web:3", 10, 10, 10)
	})
}

func TestLostClusterIsSkippedAndCatchesUp(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		r := w.release("r1", oneTwoSeven+"onLostCluster: {action: Skip, after: 1m}\n")
		w.pass(8 * time.Second)
		lost := w.members[2]
		lost.down = true
		lost.server.Down(true)
		w.pass(5 * time.Minute)
		w.pods("without a cluster", "web:2", 10, 10, 1)
		w.expect("without a cluster", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseProgressing); c == nil ||
			c.Reason != releasev1alpha1.ReasonCatchingUp {
			t.Errorf("the conditions are %+v", r.Status.Conditions)
		}
		lost.server.Down(false)
		lost.down = false
		w.pass(3 * time.Minute)
		w.pods("when the cluster is back", "web:2", 10, 10, 10)
		w.expect("when the cluster is back", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if p := w.plan(); p != nil {
			t.Errorf("the binding still has a plan: %+v", p)
		}
	})
}

// The bounds of autoscalers in members follow the FederatedHPA between the stages, and not during them.
func TestAReleaseFreezesAutoscalingDuringItsStages(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		f := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-load",
			Annotations: map[string]string{wellknown.AutoscalingModeAnnotation: autoscalingv1alpha1.ModeDistributed}}}
		f.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps.kruise.io/v1alpha1",
			Kind: "CloneSet", Name: "web"}
		f.Spec.MaxReplicas = 60
		w.Make(f)
		highest := func(when string, want int32) {
			t.Helper()
			w.pass(30 * time.Second)
			for _, m := range w.members {
				work := &workv1alpha1.Work{}
				key := client.ObjectKey{Namespace: names.ExecutionSpace(m.name), Name: names.WorkOfAutoscaler("by-load", "shop")}
				if err := w.Get(t.Context(), key, work); err != nil {
					t.Fatal(err)
				}
				if s, _ := autoscale.ShareOf(work); s.Max != want {
					t.Errorf("%s, the maximum in %s is %d, want %d", when, m.name, s.Max, want)
				}
			}
		}
		bounds := func(n int32) {
			controllertest.Change(w.Hub, f, func(f *autoscalingv1alpha1.FederatedHPA) { f.Spec.MaxReplicas = n })
		}
		highest("at the start", 20)
		r := w.release("r1", `{autoscaling: Freeze, stages: [{name: first, clusters: {clusterNames: [m1]}, soak: 2m},
			{name: rest, before: [{name: sign}]}]}`)
		w.pass(20 * time.Second)
		w.pods("in the first stage", "web:2", 10, 0, 0)
		w.expect("in the first stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonSoaking)
		bounds(90)
		highest("in the first stage", 20)
		w.set(r, releasev1alpha1.StatePause)
		highest("in a pause", 30)
		bounds(120)
		highest("in a pause", 40)
		w.set(r, releasev1alpha1.StateRun)
		w.pass(5 * time.Second)
		bounds(150)
		highest("resumed", 40)
		w.pass(2 * time.Minute)
		w.expect("before the next stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval)
		highest("before the next stage", 50)
	})
}

// Cluster m1 has the new revision, and production waits for an approval.
func TestReleaseReportsAMoveToTheNewRevision(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		r := w.release("r1", `{stages: [{name: first, clusters: {clusterNames: [m1]}}, {name: rest, before: [{name: sign}]}]}`)
		w.pass(20 * time.Second)
		w.expect("before the approval", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval)
		drain := func(cluster string) {
			now := metav1.Now()
			controllertest.Change(w.Hub, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
				func(c *clusterv1alpha1.Cluster) {
					c.Spec.Taints = append(c.Spec.Taints,
						corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoExecute, TimeAdded: &now})
				})
			w.pass(2 * time.Minute)
		}
		changed := func() string {
			w.expect("after the move", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval)
			if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseRevisionChanged); c != nil {
				return c.Message
			}
			return ""
		}
		drain("m2")
		w.pods("a cluster of production has room", "web:1", 0, 0, 20)
		if got := changed(); got != "" {
			t.Errorf("the old revision is kept, and the release says %q", got)
		}
		drain("m3")
		w.pods("only the first stage has room", "web:2", 30, 0, 0)
		want := "20 replicas of cluster m3 moved to m1, which runs revision " + r.Status.Targets[0].To +
			" (release r1 has not started stage rest)"
		if got := changed(); got != want {
			t.Errorf("the release says %q, want %q", got, want)
		}
	})
}
