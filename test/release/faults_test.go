package release

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// uses has every pod of shop in a member use that much CPU.
func (s *story) uses(member, cpu string) {
	s.t.Helper()
	var list corev1.PodList
	if err := fleet.Members[member].List(s.t.Context(), &list, client.InNamespace(s.ns),
		client.MatchingLabels{"app": "shop"}); err != nil {
		s.t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"annotations": {"kwok.x-k8s.io/usage-cpu": %q}}}`, cpu))
	for i := range list.Items {
		if p := &list.Items[i]; p.Annotations["kwok.x-k8s.io/usage-cpu"] != cpu {
			if err := fleet.Members[member].Patch(s.t.Context(), p, patch); client.IgnoreNotFound(err) != nil {
				s.t.Fatal(err)
			}
		}
	}
}

func lostCluster(t *testing.T) {
	s := newStory(t, "m1", "m6")
	s.shop(12, 1)
	s.sets(image(2))
	s.budget("shop", 1) // of the clusters that answer
	s.stages("gray", "shop", image(2), []string{"some", "rest"}, []int{3, 12})
	s.starts("gray", `{stages: [{name: some, to: {percent: 25}}, {name: rest, before: [{name: go}]}],
		onLostCluster: {action: Skip, after: 5s}}`)
	s.approves("gray", "rest")
	s.waits("m6 is updated in the last stage", func() bool {
		n := s.count("shop", image(2), "m6")
		return n > 1 && n < 6 && s.releases["gray"].Status.Stages[1].StartedAt != nil
	})
	m6 := fleet.Lab.Fleet.Members()[5]
	m6.Kill()
	s.waits("the release waits for m6", func() bool {
		return slices.ContainsFunc(s.releases["gray"].Status.LostClusters, func(l releasev1alpha1.LostClusterStatus) bool {
			return l.Name == "m6" && !l.Skipped
		})
	})
	r := s.becomes("gray", succeeded, completed)
	if n := r.Status.Stages[1].Counts.Skipped; n != 1 {
		t.Errorf("the last stage has skipped %d clusters, want 1: %+v", n, r.Status.Stages[1])
	}
	s.read(func() {
		if n := s.count("shop", image(2), "m1"); n != 6 {
			t.Errorf("%d pods are new in m1, want 6", n)
		}
		if n := s.count("shop", image(2), "m6"); n == 6 {
			t.Error("all pods were new in m6 before it was lost")
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := m6.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	s.runs("shop", image(2), 12)
	s.waits("the release has nothing left to catch up", func() bool {
		r := s.releases["gray"]
		return slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == releasev1alpha1.ReleaseProgressing && c.Reason == releasev1alpha1.ReasonFinished
		})
	})
}

// fiveStages has three gates. One person approves them as soon as the release waits.
const fiveStages = `{stages: [{name: a, to: {percent: 5}}, {name: b, to: {percent: 20}, before: [{name: go}]},
	{name: c, to: {percent: 50}}, {name: d, to: {percent: 80}, before: [{name: go}]}, {name: e, before: [{name: go}]}]}`

// runsFiveStages runs a release of five stages, with something before it and in between. It returns what was
// written to members.
func runsFiveStages(s *story, before func(), meanwhile func(ended func() bool)) map[string][]written {
	s.t.Helper()
	s.shop(20, "100%")
	s.sets(image(2))
	before()
	s.noWayBack("shop", image(1), image(2))
	s.stages("five", "shop", image(2), []string{"a", "b", "c", "d", "e"}, []int{1, 4, 10, 16, 20})
	s.starts("five", fiveStages)
	approved := make(chan struct{})
	go func() {
		defer close(approved)
		for _, stage := range []string{"b", "d", "e"} {
			// The release does not wait yet, or the hub is down.
			_ = wait.PollUntilContextCancel(s.t.Context(), 20*time.Millisecond, true,
				func(context.Context) (bool, error) { return s.approvesOnce("five", stage) == nil, nil })
		}
	}()
	meanwhile(func() (ended bool) {
		s.read(func() { ended = s.releases["five"] != nil && s.releases["five"].Status.Phase.Ended() })
		return ended
	})
	s.becomes("five", succeeded, completed)
	<-approved
	s.runs("shop", image(2), 20)
	var all map[string][]written
	s.read(func() { all = s.sequence["shop"] })
	return all
}

// approvesOnce approves a gate if the release waits for it now.
func (s *story) approvesOnce(name, stage string) error {
	var text string
	s.read(func() {
		if r := s.releases[name]; r != nil && r.Status.Stage == stage &&
			r.Status.Reason == releasev1alpha1.ReasonWaitingForApproval {
			text = s.approval(r, stage, "go", "admin")
		}
	})
	if text == "" {
		return fmt.Errorf("release %s does not wait", name)
	}
	return client.IgnoreAlreadyExists(fleet.Hub.Create(s.t.Context(), kit.Object(s.t, text)))
}

// calm is what an undisturbed release writes to members.
var calm map[string][]written

func undisturbed(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3", "m4", "m5")
	var p plan
	calm = runsFiveStages(s, func() { p = s.plans(fiveStages) }, func(func() bool) {})
	s.planned(p, "five", image(2))
	s.costs("16, undisturbed", "five", "shop-cloneset", 5, 3, 0)
}

// patientArgs are of a hub for which no cluster is lost while it starts again and again.
var patientArgs = []string{"--cluster-failure-threshold=5m", "--cluster-success-threshold=1s",
	"--cluster-status-update-frequency=1s", "--release-check-networks=127.0.0.0/8"}

// restarts kills the hub and starts it again, with something done while it is down.
func restarts(t *testing.T, down func()) {
	t.Helper()
	fleet.Lab.Hub.Kill()
	down()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := fleet.Lab.Hub.Start(ctx, patientArgs...); err != nil {
		t.Fatal(err)
	}
}

// kills is how often the hub is killed.
const kills = 10

func hubKilled(t *testing.T) {
	restarts(t, func() {})
	s := newStory(t, "m1", "m2", "m3", "m4", "m5")
	data := filepath.Join(fleet.Lab.Hub.Dir, "data")
	random := rand.New(rand.NewSource(16))
	during := 0
	got := runsFiveStages(s, func() {}, func(ended func() bool) {
		for n := range kills {
			// The moment is a number of events of this release, or a time when nothing happens.
			var from int
			s.read(func() { from = s.hubEvents })
			until, patience := from+1+random.Intn(8), time.Duration(500+random.Intn(1000))*time.Millisecond
			_ = wait.PollUntilContextTimeout(s.t.Context(), 5*time.Millisecond, patience, true,
				func(context.Context) (reached bool, err error) {
					s.read(func() { reached = s.hubEvents >= until })
					return reached, nil
				})
			if !ended() {
				during++
			}
			restarts(t, func() {
				if n == kills/2 {
					removeHistory(t, data)
				}
			})
		}
	})
	t.Logf("%d of %d times, the release was under way", during, kills)
	if during < kills/2 {
		t.Errorf("the release was under way %d of %d times that the hub was killed", during, kills)
	}
	if !reflect.DeepEqual(got, calm) {
		t.Errorf("members were written %v\nand undisturbed %v", got, calm)
	}
	s.costs("16, hub killed ten times", "five", "shop-cloneset", 5, 3, 0)

	// A restart without anything to do writes nothing (I7), and the history is made again from the objects.
	s.rounds()
	before := s.exported(data)
	type versions map[string]string
	stored := func() versions {
		all := versions{}
		s.read(func() {
			for name, r := range s.releases {
				all["Release "+name] = r.ResourceVersion
			}
			for name, b := range s.bindings {
				all["binding "+name] = b.Annotations["argosy.io/release-plan"]
			}
			for name, w := range s.works {
				all["Work "+name] = fmt.Sprint(w.Generation)
			}
			for c, writes := range s.sequence["shop"] {
				all["CloneSet in "+c] = fmt.Sprint(len(writes))
			}
		})
		return all
	}
	was := stored()
	restarts(t, func() { removeHistory(t, data) })
	s.rounds()
	is := stored()
	for name := range is {
		if strings.Contains(name, "round-") {
			delete(is, name)
		}
	}
	for name := range was {
		if strings.Contains(name, "round-") {
			delete(was, name)
		}
	}
	if !reflect.DeepEqual(is, was) {
		t.Errorf("a restart changes %v\nto %v (I7)", was, is)
	}
	kit.Eventually(t, "the history is complete again", func() string {
		if after := s.exported(data); !slices.Equal(after, before) {
			return "it has\n" + strings.Join(after, "\n") + "\nand had\n" + strings.Join(before, "\n")
		}
		return ""
	})
}

// removeHistory deletes the history database and its copies.
func removeHistory(t *testing.T, data string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "history*"))
	if err != nil || len(files) == 0 {
		t.Errorf("there is no history in %s (%v)", data, err)
	}
	for _, file := range files {
		if err := os.RemoveAll(file); err != nil {
			t.Error(err)
		}
	}
}

// exported returns the rows of this story in the history of releases, sorted. The time line has more: what it observed
// in the fleet cannot be written again.
func (s *story) exported(data string) (rows []string) {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), fleet.Lab.Hub.Binary, "release", "export", "--data-dir", data).Output()
	if err != nil {
		s.t.Fatalf("export the history: %v: %s", err, out)
	}
	var uid string
	s.read(func() { uid = string(s.releases["five"].UID) })
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, `"table":"fleet_events"`) || strings.Contains(line, `"table":"usage_samples"`) {
			continue // no object has them
		}
		if strings.Contains(line, uid) || strings.Contains(line, `"`+s.ns+`"`) {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	slices.Sort(rows)
	return rows
}
