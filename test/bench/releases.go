package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	releasehistory "github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
)

// releaseResource is that of Releases.
var releaseResource = releasev1alpha1.GroupVersion.WithResource("releases")

// releasedReplicas are the pods of each CloneSet that is released, over all members.
const releasedReplicas = 10

// releasesAlone are the releases that run one after the other, before those that run at the same time.
const releasesAlone = 5

// releases measures releases that run at the same time, in the ratio 1:2:7 without gates, and what their history costs.
// It takes about five minutes.
func releases(ctx context.Context, o Options) ([]Row, error) {
	if o.Releases == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	history, err := historyMemory(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("release history: %w", err)
	}
	o.Say("%d releases at once: starting a hub and %d members", o.Releases, members)
	lo := lab.Options{Binary: o.Binary, Dir: o.Dir + "/releases", HubArgs: o.HubArgs}
	for i := range members {
		lo.Members = append(lo.Members, sim.Member{Name: fmt.Sprintf("member%d", i+1),
			Nodes: 1 + o.Releases*releasedReplicas/members/200})
	}
	l, err := lab.Start(ctx, lo)
	if err != nil {
		return nil, err
	}
	defer l.Stop() // the figures are taken
	f, err := newFleet(l)
	if err != nil {
		return nil, err
	}
	rows, err := f.measureReleases(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("releases: %w", err)
	}
	return append(rows, history), nil
}

// cloneSets are CloneSets whose changes wait for a release.
func cloneSets(n int) workload {
	w := deployments(n)
	w.name, w.kind, w.replicas = "clonesets", "CloneSet", releasedReplicas
	w.gvr = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "clonesets"}
	template := w.make
	w.make = func(name string, replicas int64) *unstructured.Unstructured {
		u := template(name, replicas)
		u.SetGroupVersionKind(w.gvr.GroupVersion().WithKind(w.kind))
		u.SetAnnotations(map[string]string{wellknown.ReleaseStrategyAnnotation: "bench"})
		// The fields are those of a literal.
		_ = unstructured.SetNestedMap(u.Object, map[string]any{"type": "InPlaceIfPossible", "maxUnavailable": "100%"},
			"spec", "updateStrategy")
		return u
	}
	w.done = func(u *unstructured.Unstructured) bool {
		available, _, _ := unstructured.NestedInt64(u.Object, "status", "availableReplicas")
		return available == releasedReplicas
	}
	return w
}

// measureReleases runs a release of each of a number of CloneSets: first a few alone, then the others at once.
func (f *fleet) measureReleases(ctx context.Context, o Options) ([]Row, error) {
	// 1. The workloads run, and all have a change that waits.
	o.Say("%d releases at once: creating their workloads", o.Releases)
	w := cloneSets(releasesAlone + o.Releases)
	if err := f.policy(ctx, w); err != nil {
		return nil, err
	}
	if _, err := f.propagate(ctx, w, w.name, w.n, o.Workers); err != nil {
		return nil, err
	}
	name := func(i int) string { return w.name + "-" + strconv.Itoa(i) }
	change := []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/app:2"}]`)
	if err := runParallel(w.n, o.Workers, func(i int) error {
		_, err := f.hub.Resource(w.gvr).Namespace("default").Patch(ctx, name(i), types.JSONPatchType, change,
			metav1.PatchOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	if err := f.quiet(ctx); err != nil {
		return nil, err
	}
	delays, err := f.watchStages(ctx)
	if err != nil {
		return nil, err
	}
	start := func(i int) error {
		r := object(releaseResource, releasev1alpha1.ReleaseKind.Kind, name(i), map[string]any{"spec": map[string]any{
			"strategy": map[string]any{"stages": []any{weighted("one", 1), weighted("two", 2), weighted("seven", 7)}},
			"targets": []any{map[string]any{"name": "app", "ref": map[string]any{
				"apiVersion": w.gvr.GroupVersion().String(), "kind": w.kind, "name": name(i)}}}}})
		_, err := f.hub.Resource(releaseResource).Namespace("default").Create(ctx, r, metav1.CreateOptions{})
		return err
	}
	finish := func() error {
		return poll(ctx, "the releases do not succeed", func() (bool, error) { return f.allReleased(ctx) })
	}

	// 2. A few are released, one after the other.
	o.Say("%d releases, one after the other", releasesAlone)
	for i := range releasesAlone {
		if err := start(i); err != nil {
			return nil, err
		}
		if err := finish(); err != nil {
			return nil, err
		}
	}
	alone, err := delays.take(2 * releasesAlone)
	if err != nil {
		return nil, err
	}

	// 3. The others are released at once.
	o.Say("%d releases at once: running them", o.Releases)
	before, err := f.account(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := runParallel(o.Releases, o.Workers, func(i int) error { return start(releasesAlone + i) }); err != nil {
		return nil, err
	}
	if err := finish(); err != nil {
		return nil, err
	}
	took := time.Since(began)
	after, err := f.account(ctx)
	if err != nil {
		return nil, err
	}
	atOnce, err := delays.take(2 * o.Releases)
	if err != nil {
		return nil, err
	}
	return []Row{
		{Work: fmt.Sprintf("%d releases, one after the other: a member's last report → next stage, slowest", releasesAlone),
			Unit: "s", Value: alone[len(alone)-1].Seconds(), Must: 1},
		{Work: fmt.Sprintf("%d releases at once, 3 stages × 3 members: all succeeded", o.Releases), Unit: "s",
			Value: took.Seconds()},
		{Work: "… a member's last report → next stage, median", Unit: "s", Value: atOnce[len(atOnce)/2].Seconds()},
		{Work: "… hub CPU meanwhile", Unit: "cores", Value: (after.cpu - before.cpu).Seconds() / took.Seconds(), Must: 1},
		{Work: "… hub CPU per release", Unit: "ms", Value: (after.cpu - before.cpu).Seconds() * 1000 / float64(o.Releases)},
		{Work: "… hub writes per release, all objects", Unit: "writes",
			Value: float64(after.revision-before.revision) / float64(o.Releases)},
	}, nil
}

// stageDelays are the times from the last report of a member to the next stage of its release, as two watches show
// them.
type stageDelays struct {
	mu sync.Mutex
	// statuses are the last status of each Work, and reported is when one of a binding changed last.
	statuses map[string]any
	reported map[string]time.Time
	// begun are the stages of each release that have begun.
	begun map[string]int
	all   []time.Duration
}

func newStageDelays() *stageDelays {
	return &stageDelays{statuses: map[string]any{}, reported: map[string]time.Time{}, begun: map[string]int{}}
}

// watchStages follows the Works and the releases until ctx ends.
func (f *fleet) watchStages(ctx context.Context) (*stageDelays, error) {
	d := newStageDelays()
	for gvr, note := range map[schema.GroupVersionResource]func(u *unstructured.Unstructured){
		workv1alpha1.GroupVersion.WithResource("works"): d.noteWork, releaseResource: d.noteRelease} {
		list, err := f.hub.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			note(&list.Items[i])
		}
		w, err := f.hub.Resource(gvr).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			return nil, err
		}
		go func() {
			for e := range w.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok && (e.Type == watch.Added || e.Type == watch.Modified) {
					note(u)
				}
			}
		}()
	}
	return d, nil
}

func (d *stageDelays) noteWork(u *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, status := u.GetNamespace()+"/"+u.GetName(), u.Object["status"]
	if was, known := d.statuses[key]; known && !reflect.DeepEqual(was, status) {
		d.reported[u.GetAnnotations()[workv1alpha2.ResourceBindingNameAnnotation]] = time.Now()
	}
	d.statuses[key] = status
}

func (d *stageDelays) noteRelease(u *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stages, _, _ := unstructured.NestedSlice(u.Object, "status", "stages")
	begun := 0
	for _, stage := range stages {
		if stage, ok := stage.(map[string]any); ok && stage["startedAt"] != nil {
			begun++
		}
	}
	for n := d.begun[u.GetName()]; n < begun; n++ {
		if n > 0 { // the first stage waits for no report
			d.all = append(d.all, time.Since(d.reported[names.Binding("CloneSet", u.GetName())]))
		}
	}
	d.begun[u.GetName()] = begun
}

// take returns the delays since the last call, sorted. There must be n.
func (d *stageDelays) take(n int) ([]time.Duration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.all
	if d.all = nil; len(all) != n {
		return nil, fmt.Errorf("%d stages were seen to follow another, want %d", len(all), n)
	}
	slices.Sort(all)
	return all, nil
}

// historyMemory measures how much more memory an idle hub uses that has recorded a release in its history.
func historyMemory(ctx context.Context, o Options) (Row, error) {
	const without, with = "off", "auto"
	least := map[string]int64{}
	for i := range 6 { // the least of three: a hub may be measured before it has collected its garbage
		mode := []string{without, with}[i%2]
		o.Say("an idle hub with --history=%s", mode)
		used, err := idleMemory(ctx, o, fmt.Sprintf("%s/history-%d", o.Dir, i), mode)
		if err != nil {
			return Row{}, err
		}
		if least[mode] == 0 || used < least[mode] {
			least[mode] = used
		}
	}
	return Row{Work: "idle hub with a release history: memory more than without", Unit: "MiB",
		Value: mib(least[with] - least[without]), Must: 20}, nil
}

// idleMemory returns the bytes that a hub uses which has aborted one release and then done nothing.
func idleMemory(ctx context.Context, o Options, dir, history string) (int64, error) {
	h, err := lab.NewHub(o.Binary, dir)
	if err != nil {
		return 0, err
	}
	if err := h.Start(ctx, append(slices.Clone(o.HubArgs), "--history="+history)...); err != nil {
		return 0, err
	}
	defer h.Kill() // the figure is taken
	config, err := h.Config()
	if err != nil {
		return 0, err
	}
	hub, err := dynamic.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	const name = "aborted"
	aborted := object(releaseResource, releasev1alpha1.ReleaseKind.Kind, name, map[string]any{"spec": map[string]any{
		"state": string(releasev1alpha1.StateAbort), "strategy": map[string]any{"stages": []any{weighted("all", 1)}},
		"targets": []any{map[string]any{"name": "app", "ref": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"name": "missing"}}}}})
	if _, err := hub.Resource(releaseResource).Namespace("default").Create(ctx, aborted,
		metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	if err := poll(ctx, "the release is not aborted", func() (bool, error) {
		u, err := hub.Resource(releaseResource).Namespace("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return phase == string(releasev1alpha1.ReleaseAborted), nil
	}); err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(10 * time.Second):
	}
	if _, err := os.Stat(filepath.Join(dir, "data", releasehistory.File)); (err == nil) != (history == "auto") {
		return 0, fmt.Errorf("a hub with --history=%s has a history file: %t", history, err == nil)
	}
	used, err := readUsage(h.PID())
	return used.Memory, err
}

// weighted returns a stage with a weight.
func weighted(name string, weight int64) map[string]any {
	return map[string]any{"name": name, "to": map[string]any{"weight": weight}}
}

// allReleased reports whether all releases have succeeded. One that ended otherwise is an error.
func (f *fleet) allReleased(ctx context.Context) (bool, error) {
	list, err := f.hub.Resource(releaseResource).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	all := true
	for i := range list.Items {
		text, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
		phase := releasev1alpha1.ReleasePhase(text)
		if phase.Ended() && phase != releasev1alpha1.ReleaseSucceeded || phase == releasev1alpha1.ReleasePaused {
			reason, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "reason")
			return false, fmt.Errorf("release %s is %s (%s)", list.Items[i].GetName(), phase, reason)
		}
		all = all && phase == releasev1alpha1.ReleaseSucceeded
	}
	return all, nil
}
