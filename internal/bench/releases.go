package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
)

// releasedReplicas are the pods of each CloneSet that is released, over all members.
const releasedReplicas = 10

// releases measures releases that run at the same time, in the ratio 1:2:7 without gates. It takes about three minutes.
func releases(ctx context.Context, o Options) ([]Row, error) {
	if o.Releases == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
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
	return rows, nil
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

// measureReleases runs a release of each of a number of CloneSets.
func (f *fleet) measureReleases(ctx context.Context, o Options) ([]Row, error) {
	// 1. The workloads run, and all have a change that waits.
	o.Say("%d releases at once: creating their workloads", o.Releases)
	w := cloneSets(o.Releases)
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

	// 2. All are released.
	o.Say("%d releases at once: running them", o.Releases)
	before, err := f.account(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	gvr := releasev1alpha1.GroupVersion.WithResource("releases")
	if err := runParallel(w.n, o.Workers, func(i int) error {
		r := object(gvr, releasev1alpha1.ReleaseKind.Kind, name(i), map[string]any{"spec": map[string]any{
			"strategy": map[string]any{"stages": []any{weighted("one", 1), weighted("two", 2), weighted("seven", 7)}},
			"targets": []any{map[string]any{"name": "app", "ref": map[string]any{
				"apiVersion": w.gvr.GroupVersion().String(), "kind": w.kind, "name": name(i)}}}}})
		_, err := f.hub.Resource(gvr).Namespace("default").Create(ctx, r, metav1.CreateOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	if err := poll(ctx, "the releases do not succeed", func() (bool, error) {
		return f.allReleased(ctx, gvr)
	}); err != nil {
		return nil, err
	}
	took := time.Since(began)
	after, err := f.account(ctx)
	if err != nil {
		return nil, err
	}
	return []Row{
		{Work: fmt.Sprintf("%d releases at once, 3 stages × 3 members: all succeeded", w.n), Unit: "s",
			Value: took.Seconds()},
		{Work: "… hub CPU meanwhile", Unit: "cores", Value: (after.cpu - before.cpu).Seconds() / took.Seconds(), Must: 1},
		{Work: "… hub CPU per release", Unit: "ms", Value: (after.cpu - before.cpu).Seconds() * 1000 / float64(w.n)},
		{Work: "… hub writes per release, all objects", Unit: "writes",
			Value: float64(after.revision-before.revision) / float64(w.n)},
	}, nil
}

// weighted returns a stage with a weight.
func weighted(name string, weight int64) map[string]any {
	return map[string]any{"name": name, "to": map[string]any{"weight": weight}}
}

// allReleased reports whether all releases have succeeded. One that ended otherwise is an error.
func (f *fleet) allReleased(ctx context.Context, gvr schema.GroupVersionResource) (bool, error) {
	list, err := f.hub.Resource(gvr).Namespace("default").List(ctx, metav1.ListOptions{})
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
