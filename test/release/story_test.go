package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	corerelease "github.com/argosy-io/argosy/internal/core/release"
	fleetplan "github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit"
)

// image is the image of the pods at a version.
func image(version any) string { return fmt.Sprintf("example.com/shop:%v", version) }

// written is a CloneSet in a Work: its pods, and how many of them may have the image.
type written struct {
	image              string
	replicas, released int64
}

// story is a scenario in a namespace of its own, with all that the streams have shown of it. The fields below the lock
// of the observer are changed by events.
type story struct {
	t        *testing.T
	ns       string
	clusters []string

	// pods are by cluster and name.
	pods map[string]map[string]*pod
	// sequence is what was written to members, by workload and cluster.
	sequence map[string]map[string][]written
	// settledOf is true if a member has observed its CloneSet and updated all pods that it may, by workload and cluster.
	settledOf map[string]map[string]bool
	releases  map[string]*releasev1alpha1.Release
	bindings  map[string]*workv1alpha2.ResourceBinding
	works     map[string]*workv1alpha1.Work
	// statusWrites are by release, bindingWrites by binding and release, workWrites by cluster.
	statusWrites, bindingWrites, workWrites map[string]int
	// events counts all events, hubEvents those of objects that the hub writes.
	events, hubEvents int
	// reported is when a member last reported something; delays are the times from there to the next stage.
	reported time.Time
	delays   []time.Duration
	// checks run after every event.
	checks []func(e event)
	wrong  []string
}

// newStory is a story in some clusters.
func newStory(t *testing.T, clusters ...string) *story {
	t.Helper()
	s := &story{t: t, ns: fleet.Namespace(t), clusters: clusters, pods: map[string]map[string]*pod{},
		sequence: map[string]map[string][]written{}, settledOf: map[string]map[string]bool{},
		releases: map[string]*releasev1alpha1.Release{}, bindings: map[string]*workv1alpha2.ResourceBinding{},
		works: map[string]*workv1alpha1.Work{}, statusWrites: map[string]int{}, bindingWrites: map[string]int{},
		workWrites: map[string]int{}}
	streams.mu.Lock()
	streams.stories[s.ns] = s
	streams.mu.Unlock()
	t.Cleanup(func() {
		streams.mu.Lock()
		delete(streams.stories, s.ns)
		streams.mu.Unlock()
		for _, wrong := range s.wrong {
			t.Error(wrong)
		}
		if t.Failed() {
			s.dump()
		}
	})
	return s
}

// dump logs what explains a failure.
func (s *story) dump() {
	for name, r := range s.releases {
		s.t.Logf("release %s is %s (%s)", name, r.Status.Phase, r.Status.Reason)
		for _, e := range r.Status.Journal {
			s.t.Logf("  %s %s %s %s %s %s", e.At.UTC().Format(time.TimeOnly), e.Type, e.Stage, e.Cluster, e.Reason, e.Message)
		}
	}
	for name, byCluster := range s.sequence {
		for _, c := range slices.Sorted(maps.Keys(byCluster)) {
			s.t.Logf("%s in %s was written as %v", name, c, byCluster[c])
		}
	}
	for _, b := range s.bindings {
		s.t.Logf("binding %s has %v", b.Name, b.Annotations)
	}
}

// violated notes a violation of an invariant. The caller has the lock.
func (s *story) violated(format string, args ...any) {
	if len(s.wrong) < 5 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

// take notes an event. The caller has the lock.
func (s *story) take(e event) {
	s.events++
	if e.cluster == "hub" {
		s.hubEvents++
	}
	switch obj := e.obj.(type) {
	case *corev1.Pod:
		s.takePod(e, obj)
	case *unstructured.Unstructured:
		s.takeCloneSet(e.cluster, obj)
	case *releasev1alpha1.Release:
		s.takeRelease(e, obj)
	case *workv1alpha2.ResourceBinding:
		if was := s.bindings[obj.Name]; was != nil {
			from, to := fleetplan.PlanOf(was.Annotations), fleetplan.PlanOf(obj.Annotations)
			if !reflect.DeepEqual(from, to) {
				s.bindingWrites[obj.Name+" "+cmp.Or(to, from).Release]++
			}
		}
		s.bindings[obj.Name] = obj
	case *workv1alpha1.Work:
		s.hubEvents++
		was := s.works[e.cluster+" "+obj.Name]
		if was != nil && was.Generation != obj.Generation {
			s.workWrites[e.cluster]++
		}
		if was != nil && !reflect.DeepEqual(was.Status, obj.Status) {
			s.reported = e.at
		}
		s.works[e.cluster+" "+obj.Name] = obj
	}
	for _, check := range s.checks {
		check(e)
	}
}

func (s *story) takePod(e event, obj *corev1.Pod) {
	if s.pods[e.cluster] == nil {
		s.pods[e.cluster] = map[string]*pod{}
	}
	is := podOf(obj)
	if e.deleted || is == nil {
		delete(s.pods[e.cluster], obj.Name)
		return
	}
	was := s.pods[e.cluster][obj.Name]
	if was != nil && was.uid == is.uid {
		is.images = was.images
	}
	if n := len(is.images); n == 0 || is.images[n-1] != is.image {
		is.images = append(slices.Clone(is.images), is.image)
	}
	s.pods[e.cluster][obj.Name] = is
}

func (s *story) takeCloneSet(cluster string, u *unstructured.Unstructured) {
	number := func(path ...string) int64 {
		n, _ := kit.Field(u, path...).(int64)
		return n
	}
	w := written{replicas: number("spec", "replicas")}
	w.released = w.replicas - number("spec", "updateStrategy", "partition")
	if text, ok := kit.Field(u, "spec", "updateStrategy", "partition").(string); ok {
		w.released = -1 // a percentage of what an autoscaler makes
		_ = text
	}
	w.image, _ = kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"].(string)
	if s.sequence[u.GetName()] == nil {
		s.sequence[u.GetName()], s.settledOf[u.GetName()] = map[string][]written{}, map[string]bool{}
	}
	all := s.sequence[u.GetName()][cluster]
	if n := len(all); n == 0 || all[n-1] != w {
		s.sequence[u.GetName()][cluster] = append(all, w)
	}
	s.settledOf[u.GetName()][cluster] = number("status", "observedGeneration") >= u.GetGeneration() &&
		number("status", "replicas") == w.replicas && number("status", "updatedReplicas") >= w.released &&
		number("status", "availableReplicas") == w.replicas
}

func (s *story) takeRelease(e event, r *releasev1alpha1.Release) {
	was := s.releases[r.Name]
	if e.deleted {
		delete(s.releases, r.Name)
		return
	}
	s.releases[r.Name] = r
	if was == nil || was.UID != r.UID {
		return
	}
	if !reflect.DeepEqual(was.Status, r.Status) {
		s.statusWrites[r.Name]++
	}
	if from, to := was.Status.Phase, r.Status.Phase; from.Ended() && from != to &&
		to != releasev1alpha1.ReleaseRollingBack {
		s.violated("release %s goes from %s to %s (I8)", r.Name, from, to)
	}
	var underWay []string
	for _, other := range s.releases {
		if other.Status.Phase.UnderWay() && !corerelease.IsRecord(other) {
			underWay = append(underWay, other.Name)
		}
	}
	if len(underWay) > 1 {
		s.violated("releases %v are under way at the same time (I5)", underWay)
	}
	for k, stage := range r.Status.Stages {
		if k == 0 || stage.StartedAt == nil || k >= len(was.Status.Stages) || was.Status.Stages[k].StartedAt != nil {
			continue
		}
		if spec := r.Status.Strategy.Stages; len(spec[k].Before)+len(spec[k-1].After) == 0 &&
			spec[k-1].Soak.Duration == 0 && !s.reported.IsZero() {
			s.delays = append(s.delays, e.at.Sub(s.reported))
		}
	}
}

// read calls f with the lock.
func (s *story) read(f func()) {
	streams.mu.Lock()
	defer streams.mu.Unlock()
	f()
}

// check runs f after every event from now on, and once now.
func (s *story) check(f func(e event)) {
	s.read(func() {
		s.checks = append(s.checks, f)
		f(event{})
	})
}

// count is the number of pods of an app with an image, in clusters or in all. The caller has the lock.
func (s *story) count(app, image string, clusters ...string) (n int) {
	for c, pods := range s.pods {
		if len(clusters) > 0 && !slices.Contains(clusters, c) {
			continue
		}
		for _, p := range pods {
			if p.app == app && (image == "" || p.image == image) {
				n++
			}
		}
	}
	return n
}

// live is count by the API servers themselves.
func (s *story) live(app, image string, clusters ...string) (n int) {
	for c, m := range fleet.Members {
		if len(clusters) > 0 && !slices.Contains(clusters, c) {
			continue
		}
		var list corev1.PodList
		if err := m.List(context.Background(), &list, client.InNamespace(s.ns)); err != nil {
			return -1
		}
		for i := range list.Items {
			if p := podOf(&list.Items[i]); p != nil && p.app == app && (image == "" || p.image == image) {
				n++
			}
		}
	}
	return n
}

// limits checks I1 and I3: no more pods are new than the stages of a release that have begun allow. begun is by name
// of stage.
func (s *story) limits(release string, allowed func(begun map[string]bool) (wrong string)) {
	stagesOf := func(r *releasev1alpha1.Release) map[string]bool {
		begun := map[string]bool{}
		if r != nil {
			for _, stage := range r.Status.Stages {
				begun[stage.Name] = stage.StartedAt != nil
			}
		}
		return begun
	}
	s.check(func(e event) {
		if _, isPod := e.obj.(*corev1.Pod); !isPod {
			return
		}
		if allowed(stagesOf(s.releases[release])) == "" {
			return
		}
		// The event of the stage may be on its way: the stage was stored before the pods could change.
		var r releasev1alpha1.Release
		if fleet.Hub.Get(context.Background(), client.ObjectKey{Namespace: s.ns, Name: release}, &r) != nil {
			return // the hub is down
		}
		if wrong := allowed(stagesOf(&r)); wrong != "" {
			s.violated("%s (I1, I3)", wrong)
		}
	})
}

// stages are limits by the number of new pods of an app in all clusters, in the order of the stages.
func (s *story) stages(release, app, image string, names []string, most []int) {
	s.limits(release, func(begun map[string]bool) string {
		limit := 0
		for i, name := range names {
			if begun[name] {
				limit = most[i]
			}
		}
		if n := s.count(app, image); n > limit {
			return fmt.Sprintf("%d pods of %s have %s where %d may", n, app, image, limit)
		}
		return ""
	})
}

// budget checks I2: never are more pods of an app unavailable. Events of two members may arrive in another order than
// they happened, so a pod counts if its API server still says so.
func (s *story) budget(app string, most int) {
	s.check(func(e event) {
		if obj, isPod := e.obj.(*corev1.Pod); !isPod || obj.Labels["app"] != app {
			return
		}
		down := s.down(app, "")
		n := 0
		for _, names := range down {
			n += len(names)
		}
		if n <= most {
			return
		}
		still := 0
		for _, names := range s.stillDown(down) {
			still += len(names)
		}
		if still > most {
			s.violated("%d pods of %s are unavailable where %d may be (I2)", still, app, most)
		}
	})
}

// down are the pods of an app that are not available, by cluster; with an image only those that have it. The caller has
// the lock.
func (s *story) down(app, image string) map[string][]string {
	all := map[string][]string{}
	for c, pods := range s.pods {
		for name, p := range pods {
			if p.app == app && !p.ready && (image == "" || p.image == image) {
				all[c] = append(all[c], name)
			}
		}
	}
	return all
}

// stillDown are those of the pods that are not available by their API servers themselves, by cluster.
func (s *story) stillDown(down map[string][]string) map[string][]string {
	all := map[string][]string{}
	for c, names := range down {
		for _, name := range names {
			var p corev1.Pod
			if fleet.Members[c].Get(context.Background(), client.ObjectKey{Namespace: s.ns, Name: name}, &p) == nil {
				if is := podOf(&p); is != nil && !is.ready {
					all[c] = append(all[c], name)
				}
			}
		}
	}
	return all
}

// noWayBack checks that no pod that had an image gets an older one.
func (s *story) noWayBack(app string, images ...string) {
	s.check(func(event) {
		for _, pods := range s.pods {
			for name, p := range pods {
				if p.app != app {
					continue
				}
				at := -1
				for _, has := range p.images {
					i := slices.Index(images, has)
					if i < at {
						s.violated("pod %s had the images %v", name, p.images)
					}
					at = max(at, i)
				}
			}
		}
	})
}

// policy propagates a workload to clusters, with its replicas divided.
func (s *story) policy(kind, apiVersion, name, replicas string, clusters ...string) {
	s.t.Helper()
	fleet.Hub.Apply(s.t, fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy,
		metadata: {name: %[1]s, namespace: %[2]s}, spec: {resourceSelectors: [{apiVersion: %[3]s, kind: %[4]s, name: %[1]s}],
		placement: {clusterAffinity: {clusterNames: [%[5]s]}, replicaScheduling: {%[6]s}}}}`, name, s.ns, apiVersion, kind,
		strings.Join(clusters, ", "), replicas))
}

const (
	divided    = "replicaSchedulingType: Divided, replicaDivisionPreference: Weighted"
	duplicated = "replicaSchedulingType: Duplicated"
)

// shop runs a CloneSet of that name with version 1 in all clusters of the story, and returns when all pods are ready.
// Changes of it wait for a release.
func (s *story) shop(replicas int, maxUnavailable any) {
	s.t.Helper()
	s.cloneSet(replicas, maxUnavailable, "argosy.io/release-strategy: any")
}

// cloneSet runs a CloneSet as shop does, with other annotations.
func (s *story) cloneSet(replicas int, maxUnavailable any, annotations string) {
	s.t.Helper()
	s.policy("CloneSet", "apps.kruise.io/v1alpha1", "shop", divided, s.clusters...)
	fleet.Hub.Apply(s.t, fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet,
		metadata: {name: shop, namespace: %s, annotations: {%s}},
		spec: {replicas: %d, selector: {matchLabels: {app: shop}},
		updateStrategy: {type: InPlaceIfPossible, maxUnavailable: %v},
		template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: main, image: "%s",
		resources: {requests: {cpu: 100m}}}]}}}}`, s.ns, annotations, replicas, maxUnavailable, image(1)))
	s.runs("shop", image(1), replicas)
}

// change edits the CloneSet shop on the hub.
func (s *story) change(edit func(u *unstructured.Unstructured)) *unstructured.Unstructured {
	s.t.Helper()
	return fleet.Hub.Change(s.t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "shop", edit)
}

// sets gives the CloneSet shop another image.
func (s *story) sets(image string) {
	s.t.Helper()
	s.change(func(u *unstructured.Unstructured) {
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = image
	})
}

// runs waits until an app has so many pods, all with the image and ready.
func (s *story) runs(app, image string, pods int) {
	s.t.Helper()
	kit.Eventually(s.t, fmt.Sprintf("%d pods of %s run %s", pods, app, image), func() (wrong string) {
		s.read(func() {
			ready := 0
			for _, all := range s.pods {
				for _, p := range all {
					if p.app == app && p.ready {
						ready++
					}
				}
			}
			if n, all := s.count(app, image), s.count(app, ""); n != pods || all != pods || ready != pods {
				wrong = fmt.Sprintf("%d of %d pods do, and %d are ready; %s", n, all, ready, s.progress())
			}
		})
		return wrong
	})
}

// progress is the state of the releases. The caller has the lock.
func (s *story) progress() string {
	var all []string
	for _, r := range s.releases {
		all = append(all, fmt.Sprintf("release %s is %s at %s (%s, %s)", r.Name, r.Status.Phase, r.Status.Stage,
			r.Status.Reason, r.Status.Progress))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// waits until a condition of what the streams have shown is met.
func (s *story) waits(what string, met func() bool) {
	s.t.Helper()
	kit.Eventually(s.t, what, func() (wrong string) {
		s.read(func() {
			if !met() {
				wrong = fmt.Sprintf("it is not so with %d new pods; %s", s.count("shop", image(2)), s.progress())
			}
		})
		return wrong
	})
}

// target is a target of a release.
func target(apiVersion, kind, name string) string {
	return fmt.Sprintf("{name: %s, ref: {apiVersion: %s, kind: %s, name: %s}}", name, apiVersion, kind, name)
}

// shopTarget is the CloneSet shop as a target.
var shopTarget = target("apps.kruise.io/v1alpha1", "CloneSet", "shop")

// release is a Release with a strategy and more of its spec, by default of the CloneSet shop.
func (s *story) release(name, strategy, more string) string {
	if !strings.Contains(more, "targets:") {
		more += ", targets: [" + shopTarget + "]"
	}
	return fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: Release, metadata: {name: %s, namespace: %s},
		spec: {strategy: %s%s}}`, name, s.ns, strategy, more)
}

// creates makes an object on the hub.
func (s *story) creates(text string) {
	s.t.Helper()
	if err := fleet.Hub.Create(s.t.Context(), kit.Object(s.t, text)); err != nil {
		s.t.Fatal(err)
	}
}

// starts creates a release of the CloneSet shop.
func (s *story) starts(name, strategy string) {
	s.t.Helper()
	s.creates(s.release(name, strategy, ""))
}

// created returns a release that the hub has created by itself, one that is not among known, and adds it there.
func (s *story) created(known map[string]bool, trigger releasev1alpha1.ReleaseTriggerType) (name string) {
	s.t.Helper()
	s.waits("the hub creates a release", func() bool {
		for name = range s.releases {
			if !known[name] {
				return true
			}
		}
		return false
	})
	known[name] = true
	s.read(func() {
		r := s.releases[name]
		if r.Spec.Trigger == nil || r.Spec.Trigger.Type != trigger || r.Spec.CreatedBy != nil {
			s.t.Errorf("the release has the trigger %+v and the author %+v", r.Spec.Trigger, r.Spec.CreatedBy)
		}
	})
	return name
}

// becomes waits until a release has a phase and a reason.
func (s *story) becomes(name string, phase releasev1alpha1.ReleasePhase, reason string) (r *releasev1alpha1.Release) {
	s.t.Helper()
	s.waits(fmt.Sprintf("release %s is %s (%s)", name, phase, reason), func() bool {
		r = s.releases[name]
		return r != nil && r.Status.Phase == phase && r.Status.Reason == reason
	})
	return r
}

// awaits returns when a release waits for the approval of a stage.
func (s *story) awaits(name, stage string) (r *releasev1alpha1.Release) {
	s.t.Helper()
	s.waits(fmt.Sprintf("release %s waits for an approval of stage %s", name, stage), func() bool {
		r = s.releases[name]
		return r != nil && r.Status.Stage == stage && r.Status.Reason == releasev1alpha1.ReasonWaitingForApproval
	})
	return r
}

// approval of a gate of a release.
func (s *story) approval(r *releasev1alpha1.Release, stage, gate, by string) string {
	return fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseApproval,
		metadata: {name: %[2]s-%[3]s-%[6]s, namespace: %[1]s}, spec: {release: %[2]s, releaseUID: "%[4]s", revision: "%[5]s",
		stage: %[3]s, gate: %[7]s, verdict: Approve, by: {user: forged}}}`, s.ns, r.Name, stage, r.UID, r.Status.Revision, by,
		gate)
}

// approves lets a stage begin that waits for the gate go.
func (s *story) approves(name, stage string) {
	s.t.Helper()
	s.creates(s.approval(s.awaits(name, stage), stage, "go", "admin"))
}

// argosy runs a verb of `argosy release` in the namespace, and returns what it printed and its exit code.
func (s *story) argosy(args ...string) (out string, code int) {
	s.t.Helper()
	out, err := fleet.Argosy(s.t.Context(), append(append([]string{"release"}, args...), "-n", s.ns)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, exit.ExitCode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return out, 0
}

// does runs a verb of `argosy release` that has to succeed.
func (s *story) does(args ...string) string {
	s.t.Helper()
	out, code := s.argosy(args...)
	if code != 0 {
		s.t.Fatalf("argosy release %s exits with %d: %s", strings.Join(args, " "), code, out)
	}
	return out
}

// file writes a strategy for `argosy release -f`.
func (s *story) file(strategy string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "strategy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy, "+
		"metadata: {name: any}, spec: %s}", strategy), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// pause waits until all members have updated what they may, and checks from then on that no more pods get an image
// until the returned function is called (I6). It returns how many have it.
func (s *story) pause(image string) (n int, end func()) {
	s.t.Helper()
	s.waits("the hold is observed in all clusters", func() bool {
		for _, c := range s.clusters {
			if !s.settledOf["shop"][c] {
				return false
			}
		}
		return true
	})
	s.rounds()
	ended := false
	s.read(func() { n = s.count("shop", image) })
	s.check(func(event) {
		if is := s.count("shop", image); is > n && !ended {
			s.violated("%d pods have %s during a hold, and %d had it before (I6)", is, image, n)
		}
	})
	s.rounds()
	return n, func() { s.read(func() { ended = true }) }
}

// rounds waits until the hub has propagated something else, so that it had time for what must not happen.
func (s *story) rounds() {
	s.t.Helper()
	name := fmt.Sprintf("round-%d", time.Now().UnixNano())
	fleet.Hub.Apply(s.t, fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy,
		metadata: {name: %[1]s, namespace: %[2]s}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: %[1]s}],
		placement: {clusterAffinity: {clusterNames: [%[3]s]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: %[2]s}}`, name, s.ns,
		strings.Join(s.clusters, ", ")))
	for _, c := range s.clusters {
		kit.Eventually(s.t, "a ConfigMap is propagated to "+c, func() string {
			if fleet.Members[c].Find(s.t, "v1", "ConfigMap", s.ns, name) == nil {
				return "it is not there"
			}
			return ""
		})
	}
}

// uids are the pods of an app, by cluster and name. The caller has the lock.
func (s *story) uids(app string) map[string]string {
	all := map[string]string{}
	for c, pods := range s.pods {
		for name, p := range pods {
			if p.app == app {
				all[c+" "+name] = p.uid
			}
		}
	}
	return all
}

// costs adds the figures of a release that has ended to the table, and checks its writes. A binding has a write for
// each stage and each pause, and one for the end of the plan.
func (s *story) costs(scenario, release, binding string, stages, gates, pauses int) {
	s.t.Helper()
	s.waits("binding "+binding+" has no plan", func() bool {
		return s.bindings[binding].Annotations[wellknown.ReleasePlanAnnotation] == ""
	})
	s.read(func() {
		row := row{scenario: scenario, status: s.statusWrites[release], statusLimit: 2 + 3*stages + gates,
			binding: s.bindingWrites[binding+" "+release], bindingLimit: stages + pauses + 1, delays: s.delays}
		table.add(row)
		if row.status > row.statusLimit {
			s.t.Errorf("the status of release %s was written %d times, want at most %d", release, row.status, row.statusLimit)
		}
		if row.binding > row.bindingLimit {
			s.t.Errorf("the plan of binding %s was written %d times, want at most %d", binding, row.binding, row.bindingLimit)
		}
	})
}
