package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// sample is what the hub shows of a release and its workload, and what the members' pods run right after that.
type sample struct {
	at       time.Time
	phase    releasev1alpha1.ReleasePhase
	stage    string
	reason   string
	progress string // of the release: new and available pods, and all
	template running
	clusters map[string]running // of the binding, whose updated pods are those of the member's own template
	pods     map[string]running
}

// String returns the sample as a line of a log.
func (s sample) String() string {
	return fmt.Sprintf("%s %s %s (%s): progress %s, template %v, clusters %v, pods %v", s.at.UTC().Format(time.TimeOnly),
		s.phase, s.stage, s.reason, s.progress, s.template, s.clusters, s.pods)
}

// wrong returns how the sample shows more than the pods run, or less than the sample before; empty if it does not.
// Between two reports of members, the hub may show less than there is.
func (s sample) wrong(before sample) string {
	var available, all int
	if _, err := fmt.Sscanf(s.progress, "%d/%d", &available, &all); s.progress != "" && err != nil {
		return "the progress is no two numbers"
	}
	var was int
	_, _ = fmt.Sscanf(before.progress, "%d/", &was) // 0 if there was none
	live := s.pods["k1"].add(s.pods["k2"])
	switch {
	case available > live.Image:
		return "more pods are shown as new and available than run the new image"
	case s.template.Image > live.Image:
		return "the status of the template counts more updated pods than run the new image"
	case available < was || s.template.Image < before.template.Image:
		return "fewer are shown than before"
	}
	return ""
}

// showsPods returns how a sample of a release that waits differs from the pods; empty if it does not.
func (s sample) showsPods() string {
	live := s.pods["k1"].add(s.pods["k2"])
	want := fmt.Sprintf("%d/%d", live.Image, live.Pods)
	if s.progress != want && !(s.progress == "" && live.Image == 0) { // no cluster is updated yet
		return fmt.Sprintf("the progress is %s, want %s", s.progress, want)
	}
	if s.template != live {
		return fmt.Sprintf("the template shows %v, want %v", s.template, live)
	}
	for name, want := range s.pods {
		if is := s.clusters[name]; is.Pods != want.Pods || is.Ready != want.Ready {
			return fmt.Sprintf("%s is shown with %v, want %v", name, is, want)
		}
	}
	return ""
}

// sample takes a sample. The pods are read last, so that they are never behind what the hub shows.
func (k *kruise) sample(t *testing.T, w workload, release, image string) sample {
	t.Helper()
	r := &releasev1alpha1.Release{}
	err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: release}, r)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	s := sample{at: time.Now(), phase: r.Status.Phase, stage: r.Status.Stage, reason: r.Status.Reason,
		progress: r.Status.Progress}
	s.template, s.clusters, _ = w.shown(t)
	s.pods = k.countsOf(t, w.ns, w.name, image)
	return s
}

// countsOf is counts by what pods are to run, which a node reports later.
func (k *kruise) countsOf(t *testing.T, ns, app, image string) map[string]running {
	t.Helper()
	all := map[string]running{}
	for name, c := range k.members {
		var n running
		for _, p := range pods(t, c, ns, app) {
			n = n.add(running{Pods: 1})
			if isReady(p) {
				n.Ready++
			}
			if p.Spec.Containers[0].Image == image {
				n.Image++
			}
		}
		all[name] = n
	}
	return all
}

// releasesInStages is the story of a release of a CloneSet in three stages with gates: what the hub shows is at no
// moment more than the pods in the members run, and at each gate exactly that.
func (k *kruise) releasesInStages(t *testing.T) {
	ns := fleet.Namespace(t)
	w := replicated("apps.kruise.io/v1beta1", "CloneSet", ns, "web")
	fleet.Hub.Apply(t, weighted(w.apiVersion, w.kind, ns, w.name)+"\n---\n"+strings.Replace(
		cloneSet("v1beta1", ns, w.name, 9, "nginx:1", 0), "metadata: {",
		"metadata: {annotations: {argosy.io/release-strategy: any}, ", 1))
	k.settles(t, "9 pods are divided 2 to 1", w, "nginx:1", map[string]running{"k1": {6, 6, 6}, "k2": {3, 3, 3}})
	kit.Eventually(t, "the revision before the change is stored", func() string {
		var list releasev1alpha1.ReleaseRevisionList
		if err := fleet.Hub.List(t.Context(), &list, client.InNamespace(ns)); err != nil || len(list.Items) != 1 {
			return fmt.Sprintf("there are %d revisions: %v", len(list.Items), err)
		}
		return ""
	})

	const release = "web-2"
	var log []sample
	take := func() (s sample) {
		s = k.sample(t, w, release, "nginx:2")
		before := s
		if len(log) > 0 {
			before = log[len(log)-1]
		}
		if wrong := s.wrong(before); wrong != "" {
			t.Errorf("%s: %s", s, wrong)
		}
		log = append(log, s)
		return s
	}
	t.Cleanup(func() {
		if t.Failed() {
			for i, s := range log {
				if same := s; i > 0 { // what changes nothing is not worth a line
					if same.at = log[i-1].at; same.String() == log[i-1].String() {
						continue
					}
				}
				t.Log(s)
			}
		}
	})
	// reaches takes samples until the release is as wanted, and the last sample shows exactly what the pods run.
	reaches := func(what string, want map[string]running, as func(s sample) bool) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			s := take()
			if t.Failed() {
				t.FailNow()
			}
			if !as(s) {
				return "it is not: " + s.String()
			}
			for name, n := range want {
				if s.pods[name] != n {
					return fmt.Sprintf("the pods are %v, want %v", s.pods, want)
				}
			}
			if wrong := s.showsPods(); wrong != "" {
				return s.String() + ": " + wrong
			}
			return ""
		})
		k.printed(t, w, release, want)
	}
	waitsFor := func(stage string) func(sample) bool {
		return func(s sample) bool {
			return s.stage == stage && s.reason == releasev1alpha1.ReasonWaitingForApproval
		}
	}

	setsImage(t, w, "nginx:2", podContainers...)
	err := fleet.Hub.Create(t.Context(), kit.Object(t, fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: Release,
		metadata: {name: %s, namespace: %s}, spec: {targets: [{name: web, ref: {apiVersion: %s, kind: CloneSet, name: web}}], strategy: {stages: [
		{name: one, to: {weight: 1}, before: [{name: go, approval: {count: 1}}]}, {name: two, to: {weight: 1}, before: [{name: go, approval: {count: 1}}]},
		{name: three, to: {weight: 1}, before: [{name: go, approval: {count: 1}}]}]}}}`, release, ns, w.apiVersion)))
	if err != nil {
		t.Fatal(err)
	}
	for i, stage := range []string{"one", "two", "three"} {
		n := 3 * i
		reaches("the release waits before stage "+stage, map[string]running{"k1": {6, 6, n * 2 / 3}, "k2": {3, 3, n / 3}},
			waitsFor(stage))
		run(t, fleet.Lab.Hub.Binary, "release", "approve", release, "-n", ns, "--yes")
	}
	reaches("the release has succeeded", map[string]running{"k1": {6, 6, 6}, "k2": {3, 3, 3}}, func(s sample) bool {
		return s.phase == releasev1alpha1.ReleaseSucceeded
	})
	t.Logf("%d samples were taken", len(log))
}

// printed checks what the commands print while a release waits, or when it has ended.
func (k *kruise) printed(t *testing.T, w workload, release string, want map[string]running) {
	t.Helper()
	var sum running
	for _, n := range want {
		sum = sum.add(n)
	}
	status := run(t, fleet.Lab.Hub.Binary, "release", "status", release, "-n", w.ns)
	text := fmt.Sprintf("%d/%d pods are new", sum.Image, sum.Pods)
	if !strings.Contains(status, text) && !(sum.Image == 0 && !strings.Contains(status, "pods are new")) {
		t.Errorf("argosy release status prints no %q:\n%s", text, status)
	}
	table := run(t, fleet.Lab.Hub.Binary, "rollout", "status", "cloneset", w.name, "-n", w.ns)
	for name, n := range want {
		row := []string{name, "Healthy", fmt.Sprint(n.Pods), fmt.Sprint(n.Image), fmt.Sprint(n.Ready)}
		found := false
		for line := range strings.Lines(table) {
			found = found || strings.Join(strings.Fields(line), " ") == strings.Join(row, " ")
		}
		if !found {
			t.Errorf("argosy rollout status prints no row %v:\n%s", row, table)
		}
	}
	list := run(t, fleet.Lab.Hub.Binary, "get", "cloneset", w.name, "-n", w.ns, "--no-headers")
	// NAME, DESIRED, UPDATED, UPDATED_READY, READY, TOTAL and AGE.
	if cells := strings.Fields(list); len(cells) != 7 || !slices.Equal(cells[1:6], []string{fmt.Sprint(sum.Pods),
		fmt.Sprint(sum.Image), fmt.Sprint(sum.Image), fmt.Sprint(sum.Ready), fmt.Sprint(sum.Pods)}) {
		t.Errorf("argosy get prints %q, want %v", list, sum)
	}
}
