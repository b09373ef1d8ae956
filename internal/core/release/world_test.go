package release_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// member is a cluster with a simulated CloneSet or Deployment controller.
type member struct {
	name   string
	images []string // of its pods
	ready  []bool
	// fails are images whose pods never become available here; flaps makes a pod unavailable for one report.
	fails map[string]bool
	lost  bool
	// refuses is why the member does not take its Work; empty if it does.
	refuses string
	// image is that of its Work, and former the one before it, which the workload's controller remembers.
	image, former string
	// rejects is an image that the member's API server rejects.
	rejects string
	// updated counts the pods that got another image.
	updated int
}

// world is a hub with one workload in its members, and releases of it.
type world struct {
	t         testing.TB
	now       time.Time
	template  *unstructured.Unstructured
	binding   *workv1alpha2.ResourceBinding
	divided   bool
	clusters  map[string]*clusterv1alpha1.Cluster
	members   []*member
	works     map[string]*workv1alpha1.Work
	releases  []*releasev1alpha1.Release
	approvals []releasev1alpha1.ReleaseApproval
	checks    map[string]releasev1alpha1.ReleaseCheckStatus
	revisions map[string]*releasev1alpha1.ReleaseRevision
	former    *releasev1alpha1.ReleaseRevision
	// configMaps are those of the hub; nil if configuration is not versioned.
	configMaps release.ConfigMaps
	// The writes so far.
	statusWrites, bindingWrites int
	workWrites                  map[string]int
	sequence                    []fleet.Released
	released                    map[string]int64
	// refuses is true if dispatch may fail.
	refuses bool
	// conditions are those of the binding about its template in the fleet.
	conditions []fleet.Condition
	// crashes reports whether the hub stops between the status of a release and the bindings; nil for never.
	crashes func() bool
	// watch is called after every event.
	watch func()
	// guards are those of the hub, and peers all of its releases; nil for none.
	guards func() []release.Guard
	peers  func() []releasev1alpha1.Release
}

const cloneSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: shop, uid: u-1, generation: 1}
spec:
  updateStrategy: {maxUnavailable: "5%"}
  template: {spec: {containers: [{name: main, image: "web:1"}]}}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-1, generation: 1}
spec:
  template: {spec: {containers: [{name: main, image: "web:1"}]}}
`

// newWorld is a workload that runs web:1 in clusters c1, c2 and so on with so many replicas.
func newWorld(t testing.TB, template string, replicas ...int64) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), template: coretest.Object(t, template),
		clusters: map[string]*clusterv1alpha1.Cluster{}, works: map[string]*workv1alpha1.Work{},
		revisions: map[string]*releasev1alpha1.ReleaseRevision{}, workWrites: map[string]int{},
		released: map[string]int64{}, watch: func() {},
		divided: template == cloneSet,
		binding: &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
			Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-1"},
			Annotations: map[string]string{}}}}
	w.binding.Spec.Resource.UID = "u-1"
	w.binding.Spec.Placement = &policyv1alpha1.Placement{}
	if w.divided {
		w.binding.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}
	}
	for i, n := range replicas {
		w.join(fmt.Sprintf("c%d", i+1), n, nil)
	}
	w.rest()
	w.former = w.revision()
	w.workWrites, w.sequence = map[string]int{}, nil
	w.image("web:2")
	return w
}

func (w *world) join(name string, replicas int64, labels map[string]string) {
	w.clusters[name] = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	w.members = append(w.members, &member{name: name, fails: map[string]bool{}})
	w.place(name, replicas)
}

// place gives a cluster so many replicas; none takes it out of the placement if negative.
func (w *world) place(name string, replicas int64) {
	w.t.Helper()
	spec := &w.binding.Spec
	spec.Clusters = slices.DeleteFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == name })
	if replicas >= 0 {
		spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: int32(replicas)})
	} else {
		delete(w.works, name)
	}
	var total int64
	for _, c := range spec.Clusters {
		total += int64(c.Replicas)
	}
	spec.Replicas = int32(total)
	if !w.divided {
		total = replicas
	}
	w.edit(total, "spec", "replicas")
}

func (w *world) edit(value any, path ...string) {
	w.t.Helper()
	w.template = w.template.DeepCopy()
	if err := unstructured.SetNestedField(w.template.Object, value, path...); err != nil {
		w.t.Fatal(err)
	}
	w.template.SetGeneration(w.template.GetGeneration() + 1)
}

// image changes the template; without a release, dispatch must not run before one holds it.
func (w *world) image(image string) {
	w.template.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "s"})
	w.edit([]any{map[string]any{"name": "main", "image": image}}, "spec", "template", "spec", "containers")
}

func (w *world) revision() *releasev1alpha1.ReleaseRevision {
	w.t.Helper()
	return release.CurrentRevision(w.template, nil, w.configMaps,
		w.revisions[w.binding.Annotations[fleet.EffectiveRevisionAnnotation]])
}

// release creates a Release with a strategy in YAML.
func (w *world) release(name, strategy string) *releasev1alpha1.Release {
	w.t.Helper()
	s := &releasev1alpha1.ReleaseStrategySpec{}
	if err := yaml.UnmarshalStrict([]byte(strategy), s); err != nil {
		w.t.Fatal(err)
	}
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1,
		UID: types.UID(name), CreationTimestamp: metav1.NewTime(w.now.Add(time.Duration(len(w.releases)) * time.Second)),
		Annotations: map[string]string{}}}
	r.Spec = releasev1alpha1.ReleaseSpec{Strategy: s, State: releasev1alpha1.StateRun,
		Targets: []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
			APIVersion: w.template.GetAPIVersion(), Kind: w.template.GetKind(), Name: "web"}}}}
	w.releases = append(w.releases, r)
	return r
}

func (w *world) approve(r *releasev1alpha1.Release, stage, gate, user string) {
	w.approvals = append(w.approvals, releasev1alpha1.ReleaseApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("a%d", len(w.approvals))},
		Spec: releasev1alpha1.ReleaseApprovalSpec{Release: r.Name, ReleaseUID: r.UID, Revision: r.Status.Revision,
			Stage: stage, Gate: gate, Attempt: 1, Verdict: releasev1alpha1.VerdictApprove,
			By: &releasev1alpha1.ReleaseUser{User: user}}})
}

func (w *world) dispatchInput() dispatch.Input {
	return dispatch.Input{Binding: w.binding.DeepCopy(), Template: w.template, Clusters: w.clusters, Existing: w.works,
		Revisions: w.revisions, ConfigMaps: w.configMaps, Now: w.now}
}

// lose cuts a cluster off, or connects it again.
func (w *world) lose(cluster string, lost bool) {
	for _, m := range w.members {
		if m.name == cluster {
			m.lost = lost
		}
	}
	c := w.clusters[cluster].DeepCopy()
	ready := metav1.ConditionTrue
	if lost {
		ready = metav1.ConditionUnknown
	}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}
	w.clusters[cluster] = c
}

// input returns the input for the decision about a release.
func (w *world) input(r *releasev1alpha1.Release) release.Input {
	w.t.Helper()
	t := release.Target{Template: w.template, Binding: w.binding.DeepCopy(), Divided: dispatch.Divides(&w.binding.Spec),
		Current: w.revision(), Former: w.former, Revisions: w.revisions, ConfigMaps: w.configMaps,
		RevisionChanges: failover.RevisionChanges(w.binding)}
	if fleet.PlanOf(w.binding.Annotations) != nil {
		var err error
		missing := (*dispatch.RevisionMissingError)(nil)
		if t.Progress, err = dispatch.ProgressOf(w.dispatchInput()); err != nil && !errors.As(err, &missing) {
			w.t.Fatal(err)
		}
	}
	in := release.Input{Release: r.DeepCopy(), Strategy: r.Spec.Strategy, Targets: map[string]release.Target{"web": t},
		Clusters: w.clusters, Approvals: w.approvals, Checks: w.checks, Now: w.now}
	for _, other := range w.releases {
		in.Others = append(in.Others, *other.DeepCopy())
	}
	in.Peers = in.Others
	if w.guards != nil {
		in.Guards = w.guards()
	}
	if w.peers != nil {
		in.Peers = w.peers()
	}
	return in
}

// reconcile takes the next step of a release, and reports whether it wrote something.
func (w *world) reconcile(r *releasev1alpha1.Release) (wrote bool, after time.Duration) {
	w.t.Helper()
	step := release.Next(w.input(r))
	if again := release.Next(w.input(r)); !reflect.DeepEqual(step, again) {
		w.t.Fatalf("the same input gives another step (I7):\n%+v\n%+v", step, again)
	}
	for _, version := range step.ConfigMaps {
		w.configMaps[version.GetName()] = version
	}
	for _, revision := range step.Revisions {
		if w.revisions[revision.Name] == nil {
			w.revisions[revision.Name] = revision.DeepCopy()
		}
	}
	for _, name := range step.Block {
		w.revisions[name].Status.Blocked = step.Blocked
	}
	if !reflect.DeepEqual(r.Status, step.Status) {
		if was := r.Status.Phase; was.Ended() && was != step.Status.Phase &&
			step.Status.Phase != releasev1alpha1.ReleaseRollingBack {
			w.t.Fatalf("release %s goes from %s to %s (I8)", r.Name, was, step.Status.Phase)
		}
		r.Status = step.Status
		w.statusWrites++
		wrote = true
	}
	if w.crashes != nil && w.crashes() {
		return true, step.RequeueAfter
	}
	for _, b := range step.Bindings {
		annotations := maps.Clone(w.binding.Annotations)
		delete(annotations, fleet.PlanAnnotation)
		delete(annotations, fleet.EffectiveRevisionAnnotation)
		if b.Plan != nil {
			annotations[fleet.PlanAnnotation] = b.Plan.String()
		}
		if b.Revision != "" {
			annotations[fleet.EffectiveRevisionAnnotation] = b.Revision
		}
		if !maps.Equal(annotations, w.binding.Annotations) {
			w.binding.Annotations = annotations
			w.bindingWrites++
			wrote = true
		}
	}
	return wrote, step.RequeueAfter
}

// dispatch writes the Works, and reports whether it wrote something.
func (w *world) dispatch() (wrote bool) {
	w.t.Helper()
	d := dispatch.Decide(context.Background(), w.dispatchInput(), interpret.New(builtin.Tier()))
	if d.Err != nil {
		if !w.refuses {
			w.t.Fatal(d.Err)
		}
		return false
	}
	w.conditions = d.Conditions
	for _, r := range d.Results {
		if r.Err != nil {
			w.t.Fatal(r.Err)
		}
		was := w.works[r.Cluster]
		switch {
		case was == nil:
			r.Work.Generation = 1
			w.works[r.Cluster] = r.Work
		case dispatch.Differs(was, r.Work):
			is := dispatch.Onto(was, r.Work)
			if string(is.Spec.Workload.Manifests[0].Raw) != string(was.Spec.Workload.Manifests[0].Raw) {
				is.Generation++
				w.workWrites[r.Cluster]++
			}
			w.works[r.Cluster] = is
		default:
			continue
		}
		wrote = true
	}
	if plan := fleet.PlanOf(w.binding.Annotations); plan != nil && wrote {
		w.note(plan)
	}
	return wrote
}

// hasCondition reports whether the binding has a condition of a type.
func (w *world) hasCondition(kind string) bool {
	return slices.ContainsFunc(w.conditions, func(c fleet.Condition) bool { return c.Type == kind })
}

// note records what is released where.
func (w *world) note(plan *fleet.Plan) {
	progress, err := dispatch.ProgressOf(w.dispatchInput())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range progress {
		if p.Released > w.released[p.Cluster] {
			w.released[p.Cluster] = p.Released
			stage := ""
			if plan.At > 0 && plan.At <= len(plan.Stages) {
				stage = plan.Stages[plan.At-1].Name
			}
			w.sequence = append(w.sequence, fleet.Released{Stage: stage, Cluster: p.Cluster, Released: p.Released})
		}
	}
}

// act lets a member do one thing that its Work asks for, and reports whether it did.
func (w *world) act(m *member) bool {
	w.t.Helper()
	work := w.works[m.name]
	if work == nil || m.lost {
		return false
	}
	if m.refuses != "" {
		return w.refuse(m, work)
	}
	var manifest map[string]any
	if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &manifest); err != nil {
		w.t.Fatal(err)
	}
	replicas := int(number(manifest, "spec", "replicas"))
	image := fields.Text(fields.Objects(manifest, "spec", "template", "spec", "containers")[0], "image")
	kept, budget := 0, 1
	if image == m.rejects {
		return w.refuse(m, work)
	}
	if w.divided {
		kept = int(number(manifest, "spec", "updateStrategy", "partition"))
		if n, ok := fields.Whole(fields.Value(manifest, "spec", "updateStrategy", "maxUnavailable")); ok {
			budget = int(n)
		}
	}
	if image != m.image {
		m.image, m.former = image, m.image
	}
	did := m.control(replicas, image, kept, budget)
	return w.report(m, work, image) || did
}

// refuse reports that a member does not take its Work.
func (w *world) refuse(m *member, work *workv1alpha1.Work) bool {
	out := work.DeepCopy()
	out.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, ObservedGeneration: work.Generation},
		{Type: workv1alpha1.WorkFailure, Status: metav1.ConditionTrue, Reason: workv1alpha1.ReasonRejected,
			Message: m.refuses, ObservedGeneration: work.Generation}}
	w.works[m.name] = out
	return !reflect.DeepEqual(work.Status, out.Status)
}

func number(manifest map[string]any, path ...string) int64 {
	n, _ := fields.Whole(fields.Value(manifest, path...))
	return n
}

// control is one step of the workload's controller.
func (m *member) control(replicas int, image string, kept, budget int) bool {
	down, current := 0, 0
	for i := range m.images {
		if !m.ready[i] {
			down++
		}
		if m.images[i] == image {
			current++
		}
	}
	for i := range m.ready { // a pod becomes available
		if !m.ready[i] && !m.fails[m.images[i]] {
			m.ready[i] = true
			return true
		}
	}
	switch {
	case len(m.images) < replicas: // new pods are old ones as far as the partition keeps them
		add := image
		if m.former != "" && len(m.images)-current < kept {
			add = m.former
		}
		// A pod that is added is available at once: what is not is so because of a release.
		m.images, m.ready = append(m.images, add), append(m.ready, true)
		return true
	case len(m.images) > replicas: // old pods go first, as far as the partition lets them; of these, one that is down
		old := len(m.images)-current > min(kept, replicas)
		i := m.first(image, !old)
		if i < 0 {
			i = m.first(image, old)
		}
		m.images, m.ready = slices.Delete(m.images, i, i+1), slices.Delete(m.ready, i, i+1)
		return true
	case len(m.images)-current > kept && current < replicas-kept:
		// A pod that fails is updated first, as it costs no budget.
		best := -1
		for i := range m.images {
			if m.images[i] != image && (best < 0 || !m.ready[i]) {
				best = i
			}
		}
		if m.ready[best] && down >= budget {
			return false
		}
		m.images[best], m.ready[best] = image, false
		m.updated++
		return true
	}
	return false
}

// first is the pod with, or without, an image that is deleted first; -1 if there is none.
func (m *member) first(image string, with bool) int {
	first := -1
	for i, have := range m.images {
		if (have == image) == with && (first < 0 || m.ready[first] && !m.ready[i]) {
			first = i
		}
	}
	return first
}

// available are the pods that are available.
func (m *member) available() (n int64) {
	for _, ready := range m.ready {
		if ready {
			n++
		}
	}
	return n
}

// report writes the status of the Work, and reports whether it has changed.
func (w *world) report(m *member, work *workv1alpha1.Work, image string) bool {
	var updated, updatedReady, ready int64
	for i := range m.images {
		if m.ready[i] {
			ready++
		}
		if m.images[i] == image {
			updated++
			if m.ready[i] {
				updatedReady++
			}
		}
	}
	var manifest unstructured.Unstructured
	if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &manifest.Object); err != nil {
		w.t.Fatal(err)
	}
	manifest.SetGeneration(work.Generation)
	raw, err := json.Marshal(interpret.WithOrigin(map[string]any{"replicas": len(m.images), "updatedReplicas": updated,
		"readyReplicas": ready, "availableReplicas": ready, "updatedReadyReplicas": updatedReady,
		"updatedAvailableReplicas": updatedReady, "observedGeneration": work.Generation}, &manifest))
	if err != nil {
		w.t.Fatal(err)
	}
	health := workv1alpha1.ResourceHealthy
	for i := range m.images {
		if m.images[i] == image && m.fails[image] && !m.ready[i] {
			health = workv1alpha1.ResourceUnhealthy
		}
	}
	if !w.divided && (updatedReady < updated || updated < int64(len(m.images))) {
		health = workv1alpha1.ResourceUnknown
		if m.fails[image] && updated > updatedReady {
			health = workv1alpha1.ResourceUnhealthy
		}
	}
	status := workv1alpha1.WorkStatus{
		Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			ObservedGeneration: work.Generation}},
		ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: health, Status: &runtime.RawExtension{Raw: raw}}}}
	if reflect.DeepEqual(work.Status, status) {
		return false
	}
	out := work.DeepCopy()
	out.Status = status
	w.works[m.name] = out
	return true
}

// rest lets everybody act until nothing changes, without the clock. It returns when the next step is due.
func (w *world) rest() (after time.Duration) {
	w.t.Helper()
	for range 20000 {
		moved := false
		after = 0
		for _, r := range w.releases {
			wrote, due := w.reconcile(r)
			moved = moved || wrote
			if due > 0 && (after == 0 || due < after) {
				after = due
			}
		}
		w.watch()
		moved = w.dispatch() || moved
		w.watch()
		for _, m := range w.members {
			moved = w.act(m) || moved
			w.watch()
		}
		if !moved {
			return after
		}
	}
	w.t.Fatal("the world does not come to rest")
	return 0
}

// pass lets time pass until so long from now, and everybody act meanwhile.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for {
		after := w.rest()
		if after == 0 || w.now.Add(after).After(end) {
			w.now = end
			w.rest()
			return
		}
		w.now = w.now.Add(after)
	}
}

// count is the number of pods of an image, in the clusters given or in all.
func (w *world) count(image string, clusters ...string) (n int) {
	for _, m := range w.members {
		if len(clusters) > 0 && !slices.Contains(clusters, m.name) {
			continue
		}
		for _, have := range m.images {
			if have == image {
				n++
			}
		}
	}
	return n
}

func (w *world) down() (n int) {
	for _, m := range w.members {
		for _, ready := range m.ready {
			if !ready {
				n++
			}
		}
	}
	return n
}

// expect compares the phase and reason of a release and the number of new pods.
func (w *world) expect(when string, r *releasev1alpha1.Release, phase releasev1alpha1.ReleasePhase, reason string,
	image string, pods int) {
	w.t.Helper()
	if r.Status.Phase != phase || r.Status.Reason != reason || w.count(image) != pods {
		raw, _ := json.MarshalIndent(r.Status.Journal, "", " ")
		w.t.Fatalf("%s, release %s is %s (%s) with %d pods of %s, want %s (%s) with %d; conditions %+v; journal %s", when,
			r.Name, r.Status.Phase, r.Status.Reason, w.count(image), image, phase, reason, pods, r.Status.Conditions, raw)
	}
}
