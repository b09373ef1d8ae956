package release

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit"
)

const (
	running    = releasev1alpha1.ReleaseRunning
	succeeded  = releasev1alpha1.ReleaseSucceeded
	rolledBack = releasev1alpha1.ReleaseRolledBack
	completed  = releasev1alpha1.ReasonCompleted
	forGate    = releasev1alpha1.ReasonWaitingForApproval
)

// plan is what `argosy release plan` prints: how many pods of a target each stage lets be new in each cluster.
type plan struct {
	Steps []struct {
		Target, Stage, Cluster string
		Released               int64
	}
	Hash string
}

// plans previews a release of the CloneSet shop.
func (s *story) plans(strategy string) (p plan) {
	s.t.Helper()
	out := s.does("plan", "cloneset/shop", "-f", s.file(strategy), "-o", "json")
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		s.t.Fatalf("read %s: %v", out, err)
	}
	return p
}

// planned checks that members were written what the plan says at the end of each stage, in that order, and nothing that
// takes it back (scenario 18). Within a stage, clusters take turns as they report.
func (s *story) planned(p plan, release, image string) {
	s.t.Helper()
	ends := map[string][]int64{} // of the stages, by cluster
	stages := map[string]string{}
	for _, step := range p.Steps {
		c := step.Cluster
		if stages[c] == step.Stage {
			ends[c] = ends[c][:len(ends[c])-1]
		}
		ends[c], stages[c] = append(ends[c], step.Released), step.Stage
	}
	s.read(func() {
		if hash := s.releases[release].Status.PlanHash; len(ends) == 0 || hash != p.Hash {
			s.t.Errorf("the hash of the plan %v is %s, and the release has %s", ends, p.Hash, hash)
		}
		for c, all := range s.sequence["shop"] {
			left, last := ends[c], int64(0)
			for _, w := range all {
				if w.image != image {
					continue
				}
				if w.released < last {
					s.t.Errorf("%s was written %v, which takes pods back", c, all)
				}
				if last = w.released; len(left) > 0 && w.released == left[0] {
					left = left[1:]
				}
			}
			if planned := ends[c]; len(left) > 0 || len(planned) > 0 && planned[len(planned)-1] != last {
				s.t.Errorf("the stages in %s are planned to end at %v, and it was written %v", c, planned, all)
			}
		}
	})
}

func weightsStopAtTheirShares(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3", "m4", "m5")
	s.shop(30, "5%")
	var uids map[string]string
	s.read(func() { uids = s.uids("shop") })
	const strategy = `{stages: [{name: one, to: {weight: 1}, soak: 2s}, {name: two, to: {weight: 2}, soak: 2s},
		{name: seven, to: {weight: 7}, soak: 2s}]}`
	s.sets(image(2))
	p := s.plans(strategy)
	s.budget("shop", 2)
	s.stages("gray", "shop", image(2), []string{"one", "two", "seven"}, []int{3, 9, 30})
	s.starts("gray", strategy)
	s.becomes("gray", succeeded, completed)
	s.runs("shop", image(2), 30)
	s.read(func() {
		if is := s.uids("shop"); !maps.Equal(is, uids) {
			t.Errorf("pods were replaced: they were %v and are %v", uids, is)
		}
	})
	s.planned(p, "gray", image(2))
	s.costs("1", "gray", "shop-cloneset", 3, 0, 0)
}

// person is a client for the hub as a user of a group.
func person(t *testing.T, user, group string) kit.Cluster {
	t.Helper()
	config := rest.CopyConfig(fleet.Hub.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{group, "system:authenticated"}}
	c, err := kit.Connect(user, config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func environmentsWaitForApprovals(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3", "m4", "m5")
	people := map[string]kit.Cluster{}
	for user, role := range map[string]string{"a": "admin", "b": "admin", "c": "admin", "d": "edit"} {
		fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding,
			metadata: {name: %[1]s, namespace: %[2]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole,
			name: %[3]s}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: %[1]s-%[2]s}]}`, user, s.ns, role))
		people[user] = person(t, user+"-"+s.ns, "none")
	}
	create := func(user, text string) error { return people[user].Create(t.Context(), kit.Object(t, text)) }
	s.shop(10, "100%")
	const strategy = `{stages: [{name: test, clusters: {labelSelector: {matchLabels: {env: test}}}},
		{name: pre, clusters: {labelSelector: {matchLabels: {env: pre}}}},
		{name: prod, before: [{name: sign, approval: {count: 2, notAuthor: true}}]}]}`
	s.noWayBack("shop", image(1), image(2), image(3))
	for n, name := range []string{"first", "second"} {
		is := image(n + 2)
		s.sets(is)
		p := s.plans(strategy)
		s.limits(name, func(begun map[string]bool) string {
			pre, prod := s.count("shop", is, "m2", "m3"), s.count("shop", is, "m4", "m5")
			if pre > 0 && !begun["pre"] || prod > 0 && !begun["prod"] {
				return fmt.Sprintf("%d pods in pre and %d in prod have %s in the stages %v of release %s", pre, prod, is, begun,
					name)
			}
			return ""
		})
		kit.Eventually(t, "the author creates the release", func() string {
			if err := create("a", s.release(name, strategy, "")); err != nil {
				return err.Error() // until the hub has seen the role
			}
			return ""
		})
		r := s.awaits(name, "prod")
		out, err := fleet.Argosy(t.Context(), "get", "releases", name, "-n", s.ns)
		if columns := strings.Fields(out); err != nil || !slices.Contains(columns, "PHASE") ||
			!slices.Contains(columns, string(running)) || !slices.Contains(columns, "prod") ||
			!slices.Contains(columns, "6/10") || !slices.Contains(columns, forGate) {
			t.Errorf("the table of releases does not show what it waits for: %v\n%s", err, out)
		}
		s.read(func() {
			if n := s.count("shop", is); n != 6 {
				t.Errorf("%d pods have %s before prod, want 6", n, is)
			}
			if by := r.Status.Stages[2].Gates[0].By; len(by) > 0 { // approvals of the first release are there
				t.Errorf("release %s is approved by %v (I4)", name, by)
			}
		})
		for _, user := range []string{"a", "d"} {
			if err := create(user, s.approval(r, "prod", "sign", user)); !apierrors.IsForbidden(err) {
				t.Errorf("the approval by %s: %v, want it forbidden", user, err)
			}
		}
		for i, user := range []string{"b", "c"} {
			if err := create(user, s.approval(r, "prod", "sign", user)); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				s.waits("the first approval counts, by its user", func() bool {
					by := s.releases[name].Status.Stages[2].Gates[0].By
					return slices.Equal(by, []string{"b-" + s.ns}) && s.releases[name].Status.Reason == forGate
				})
			}
		}
		s.becomes(name, succeeded, completed)
		s.runs("shop", is, 10)
		s.planned(p, name, is)
		s.costs("2", name, "shop-cloneset", 3, 2, 0) // each approval of the gate is written
	}
}

func batchesOfClusters(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3", "m4", "m5")
	s.shop(5, "100%")
	const strategy = `{stages: [{name: a, to: {pods: 1}}, {name: b, to: {pods: 2}}, {name: c, to: {pods: 4}}, {name: d}]}`
	s.sets(image(2))
	p := s.plans(strategy)
	s.budget("shop", 5)
	s.stages("batches", "shop", image(2), []string{"a", "b", "c", "d"}, []int{1, 2, 4, 5})
	s.starts("batches", strategy)
	s.becomes("batches", succeeded, completed)
	s.runs("shop", image(2), 5)
	s.planned(p, "batches", image(2))
	s.costs("3", "batches", "shop-cloneset", 4, 0, 0)
}

func failureGoesBack(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3", "m4", "m5")
	s.shop(15, 2)
	s.change(func(u *unstructured.Unstructured) { // failing pods are a failure after this time
		if err := unstructured.SetNestedField(u.Object, int64(10), "spec", "progressDeadlineSeconds"); err != nil {
			t.Fatal(err)
		}
	})
	var uids map[string]string
	s.read(func() { uids = s.uids("shop") })
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy,
		metadata: {name: bad, namespace: %s}, spec: {
		resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}],
		overrideRules: [{targetCluster: {clusterNames: [m2, m3]},
		overriders: {imageOverrider: [{component: Tag, operator: replace, value: bad}]}}]}}`, s.ns))
	s.rounds() // the change waits for a release
	s.sets(image(2))
	before := map[string]int{}
	s.read(func() {
		for _, c := range s.clusters {
			before[c] = len(s.sequence["shop"][c])
			if before[c] != 1 {
				t.Errorf("before the release, %s was written %v", c, s.sequence["shop"][c])
			}
		}
	})
	s.check(func(event) {
		if n := s.count("shop", image("bad")); n > 2 {
			s.violated("%d pods fail where 2 may be unavailable (I2)", n)
		}
		if len(s.sequence["shop"]["m4"])+len(s.sequence["shop"]["m5"]) != 2 {
			s.violated("prod was written %v", s.sequence["shop"])
		}
	})
	const strategy = `{stages: [{name: test, clusters: {labelSelector: {matchLabels: {env: test}}}},
		{name: pre, clusters: {labelSelector: {matchLabels: {env: pre}}}}, {name: prod}], failure: {action: Rollback}}`
	s.starts("gray", strategy)
	r := s.becomes("gray", rolledBack, releasev1alpha1.ReasonRolledBack)
	s.runs("shop", image(1), 15)
	s.read(func() {
		for name, uid := range s.uids("shop") {
			if uids[name] != uid {
				t.Errorf("pod %s was replaced", name)
			}
		}
	})
	s.costs("4", "gray", "shop-cloneset", 3, 0, 1)
	revision := fleet.Hub.Find(t, "release.argosy.io/v1alpha1", "ReleaseRevision", s.ns, r.Status.Targets[0].To)
	if kit.Field(revision, "status", "blocked", "release") != "gray" {
		t.Errorf("the revision has the status %v", revision.Object["status"])
	}
	s.starts("again", strategy)
	r = s.becomes("again", releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRevisionBlocked)
	if !slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == releasev1alpha1.ReleaseAccepted && c.Reason == releasev1alpha1.ReasonRevisionBlocked
	}) {
		t.Errorf("the conditions are %v", r.Status.Conditions)
	}
}

func rollbackTouchesNewPods(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3", "m4", "m5")
	s.shop(20, 4)
	s.sets(image(2))
	version := func() string {
		return fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "shop").GetResourceVersion()
	}
	const strategy = `{stages: [{name: one, to: {weight: 1}}, {name: two, to: {weight: 2}},
		{name: seven, to: {weight: 7}, before: [{name: go}]}], rollback: {order: Reverse}}`
	s.budget("shop", 4)
	s.stages("gray", "shop", image(2), []string{"one", "two", "seven"}, []int{2, 6, 20})
	s.starts("gray", strategy)
	s.awaits("gray", "seven")
	s.waits("6 pods are new", func() bool { return s.count("shop", image(2)) == 6 })
	template := kit.Field(fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "shop"), "spec")
	s.does("rollback", "gray", "--yes")
	s.becomes("gray", rolledBack, releasev1alpha1.ReasonRolledBack)
	s.runs("shop", image(1), 20)
	s.read(func() {
		back := 0
		for _, pods := range s.pods {
			for name, p := range pods {
				switch {
				case slices.Equal(p.images, []string{image(1), image(2), image(1)}):
					back++
				case len(p.images) > 1:
					t.Errorf("pod %s had the images %v", name, p.images)
				}
			}
		}
		if back != 6 {
			t.Errorf("%d pods were updated and went back, want 6", back)
		}
	})
	if is := kit.Field(fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "shop"),
		"spec"); !reflect.DeepEqual(is, template) {
		t.Errorf("the rollback changed the template, which is at version %s: %v", version(), is)
	}
	s.costs("5", "gray", "shop-cloneset", 3+2, 1, 0) // the rollback has the stages that had begun
}

func pausedAndAborted(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3")
	s.shop(15, 1)
	s.sets(image(2))
	s.budget("shop", 1)
	s.stages("half", "shop", image(2), []string{"half", "rest"}, []int{8, 15})
	s.starts("half", `{stages: [{name: half, to: {percent: 50}}, {name: rest, before: [{name: go}]}]}`)
	s.waits("2 pods are new", func() bool { return s.count("shop", image(2)) >= 2 })
	s.does("pause", "half", "--yes")
	s.becomes("half", releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByUser)
	n, end := s.pause(image(2))
	if n > 8 {
		t.Errorf("%d pods are new in a pause", n)
	}
	end()
	s.does("resume", "half", "--yes")
	if n < 8 {
		s.waits("another pod is new", func() bool { return s.count("shop", image(2)) > n })
	}
	s.does("pause", "half", "--yes")
	s.becomes("half", releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByUser)
	_, end = s.pause(image(2))
	s.does("abort", "half", "--yes")
	s.becomes("half", releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted)
	s.rounds()
	end()
	s.does("rollback", "half", "--yes")
	s.becomes("half", rolledBack, releasev1alpha1.ReasonRolledBack)
	s.runs("shop", image(1), 15)
}

func releasesQueue(t *testing.T) {
	s := newStory(t, "m1", "m2")
	s.shop(10, "100%")
	s.noWayBack("shop", image(1), image(2), image(4), image(5), image(6), image(7))
	s.check(func(event) {
		if n := s.count("shop", image(3)); n > 0 {
			s.violated("%d pods run a revision whose release was replaced before it began", n)
		}
	})
	const gated = `{stages: [{name: one, to: {pods: 1}}, {name: rest, before: [{name: go}]}]}`
	const plain = `{stages: [{name: one, to: {pods: 1}}, {name: rest}]}`
	s.sets(image(2))
	s.starts("a", gated)
	s.awaits("a", "rest")
	s.sets(image(3))
	s.starts("b", gated)
	s.becomes("b", releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonQueued)
	s.sets(image(4))
	s.creates(s.release("c", plain, ", supersede: Replace"))
	for _, name := range []string{"a", "b"} {
		s.becomes(name, releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded)
	}
	s.becomes("c", succeeded, completed)
	s.runs("shop", image(4), 10)
	// Three more queue, in the order of their creation.
	for i, name := range []string{"d", "e", "f"} {
		s.sets(image(5 + i))
		s.starts(name, gated)
		if i == 0 {
			s.awaits(name, "rest")
		} else {
			s.becomes(name, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonQueued)
		}
	}
	for i, name := range []string{"d", "e", "f"} {
		s.approves(name, "rest")
		s.becomes(name, succeeded, completed)
		if i == 2 {
			s.runs("shop", image(7), 10)
		}
	}
}

func scaledMeanwhile(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3")
	s.shop(10, "100%")
	s.sets(image(2))
	s.noWayBack("shop", image(1), image(2))
	begun := func() bool { return s.releases["gray"].Status.Stages[1].StartedAt != nil }
	s.starts("gray", `{stages: [{name: some, to: {percent: 10}}, {name: rest, before: [{name: go}]}]}`)
	s.check(func(e event) {
		if r := s.releases["gray"]; r != nil && len(r.Status.Stages) == 2 && !begun() {
			if n := s.count("shop", image(2)); n > 2 {
				s.violated("%d pods are new in a stage of 10%% of at most 20 (I1)", n)
			}
			if n := s.count("shop", image(2), "m4"); n > 0 {
				s.violated("%d pods are new in a cluster that joined, before its stage", n)
			}
		}
	})
	s.awaits("gray", "rest")
	counts := func(what string, all, least, most int) {
		t.Helper()
		s.waits(what, func() bool {
			n := s.count("shop", image(2))
			return s.count("shop", "") == all && n >= least && n <= most
		})
	}
	counts("1 of 10 pods is new", 10, 1, 1)
	scale := func(n int64) {
		t.Helper()
		s.change(func(u *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(u.Object, n, "spec", "replicas"); err != nil {
				t.Fatal(err)
			}
		})
	}
	scale(20)
	counts("2 of 20 pods are new", 20, 2, 2)
	scale(6)
	counts("at most 2 of 6 pods are new", 6, 0, 2)
	s.policy("CloneSet", "apps.kruise.io/v1alpha1", "shop", divided, "m1", "m2", "m4")
	s.waits("the workload leaves m3 and joins m4", func() bool {
		return s.count("shop", "", "m3") == 0 && s.count("shop", "", "m4") == 2 && s.count("shop", "") == 6
	})
	s.clusters = []string{"m1", "m2", "m4"}
	s.rounds()
	s.approves("gray", "rest")
	s.becomes("gray", succeeded, completed)
	s.runs("shop", image(2), 6)
}

// In more than one cluster, the members round each for itself: one pod of five is 20% of however many there will be.
func autoscaledMeanwhile(t *testing.T) {
	s := newStory(t, "m1")
	s.shop(10, "100%")
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA,
		metadata: {name: by-load, namespace: %s, annotations: {argosy.io/autoscaling-mode: Distributed}},
		spec: {scaleTargetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop},
		minReplicas: 10, maxReplicas: 20,
		metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`, s.ns))
	kit.Eventually(t, "there is an autoscaler in m1", func() string {
		if fleet.Members["m1"].Find(t, "autoscaling/v2", "HorizontalPodAutoscaler", s.ns, "by-load") == nil {
			return "there is none"
		}
		return ""
	})
	s.sets(image(2))
	s.check(func(event) {
		r := s.releases["gray"]
		if r != nil && len(r.Status.Stages) == 2 && r.Status.Stages[1].StartedAt == nil {
			if n := s.count("shop", image(2)); n > 2 {
				s.violated("%d pods are new in a stage of 10%% of at most 20 (I1)", n)
			}
		}
	})
	s.starts("gray", `{stages: [{name: some, to: {percent: 10}}, {name: rest, before: [{name: go}]}]}`)
	s.awaits("gray", "rest")
	kit.Eventually(t, "the autoscaler grows to the maximum", func() string {
		s.uses("m1", "100m")
		n := 0
		s.read(func() { n = s.count("shop", "") })
		if n != 20 {
			return fmt.Sprintf("there are %d pods", n)
		}
		return ""
	})
	s.rounds()
	s.approves("gray", "rest")
	s.becomes("gray", succeeded, completed)
	s.runs("shop", image(2), 20)
	s.freezesAutoscaling()
}

// freezesAutoscaling releases shop again, with autoscaling: Freeze. The bounds of the autoscaler in m1 follow the
// FederatedHPA only when the stage has ended.
func (s *story) freezesAutoscaling() {
	s.t.Helper()
	const group = "autoscaling.karmada.io/v1alpha1"
	highest := func() any {
		return kit.Field(fleet.Members["m1"].Find(s.t, "autoscaling/v2", "HorizontalPodAutoscaler", s.ns, "by-load"), "spec",
			"maxReplicas")
	}
	s.sets(image(3))
	s.starts("frozen", `{autoscaling: Freeze, stages: [{name: all, after: [{name: go}]}]}`)
	r := s.awaits("frozen", "all")
	generation := fleet.Hub.Change(s.t, group, "FederatedHPA", s.ns, "by-load", func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["maxReplicas"] = int64(24)
	}).GetGeneration()
	kit.Eventually(s.t, "the hub has seen the new bounds", func() string {
		f := fleet.Hub.Find(s.t, group, "FederatedHPA", s.ns, "by-load")
		if seen, _ := kit.Field(f, "status", "observedGeneration").(int64); seen < generation {
			return fmt.Sprintf("it has seen generation %d of %d", seen, generation)
		}
		return ""
	})
	s.rounds()
	if is := highest(); is != int64(20) {
		s.t.Errorf("during the stage, the maximum in m1 is %v, want 20", is)
	}
	s.creates(strings.Replace(s.approval(r, "all", "go", "admin"), "gate: go", "gate: go, position: After", 1))
	s.becomes("frozen", succeeded, completed)
	kit.Eventually(s.t, "the bounds follow", func() string {
		if is := highest(); is != int64(24) {
			return fmt.Sprintf("the maximum in m1 is %v", is)
		}
		return ""
	})
}

func dependentTargets(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3")
	s.shop(6, "100%")
	s.policy("Deployment", "apps/v1", "web", duplicated, s.clusters...)
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment,
		metadata: {name: web, namespace: %s, annotations: {argosy.io/release-strategy: any}},
		spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
		spec: {containers: [{name: main, image: "%s"}]}}}}`, s.ns, image(1)))
	s.runs("web", image(1), 6)
	s.sets(image(2))
	fleet.Hub.Change(t, "apps/v1", "Deployment", s.ns, "web", func(u *unstructured.Unstructured) {
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = image(2)
	})
	s.check(func(event) {
		for _, stage := range [][]string{{"m1"}, {"m2", "m3"}} {
			if s.count("web", image(2), stage...) > 0 && s.count("shop", image(2), stage...) < 2*len(stage) &&
				s.live("shop", image(2), stage...) < 2*len(stage) {
				s.violated("web is updated in %v before shop is", stage)
			}
		}
	})
	s.limits("both", func(begun map[string]bool) string {
		if n := s.count("shop", image(2), "m2", "m3") + s.count("web", image(2), "m2", "m3"); n > 0 && !begun["rest"] {
			return fmt.Sprintf("%d pods of the last stage are new", n)
		}
		return ""
	})
	s.creates(s.release("both", `{stages: [{name: first, clusters: {clusterNames: [m1]}}, {name: rest}]}`,
		", targets: ["+strings.Replace(target("apps/v1", "Deployment", "web"), "{name", "{dependsOn: [shop], name", 1)+", "+
			shopTarget+"]"))
	s.becomes("both", succeeded, completed)
	s.runs("shop", image(2), 6)
	s.runs("web", image(2), 6)
	s.costs("19, shop", "both", "shop-cloneset", 2, 2, 0) // in each stage, web begins after shop
	s.costs("19, web", "both", "web-deployment", 2, 2, 1) // it is held at first
}

func storedRevision(t *testing.T) {
	s := newStory(t, "m1", "m2")
	registry := func(name string) string {
		return fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy,
		metadata: {name: registry, namespace: %s}, spec: {
		resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}],
		overrideRules: [{targetCluster: {clusterNames: [m2]},
		overriders: {imageOverrider: [{component: Registry, operator: replace, value: %s}]}}]}}`, s.ns, name)
	}
	fleet.Hub.Apply(t, registry("one.example.com"))
	s.policy("CloneSet", "apps.kruise.io/v1alpha1", "shop", divided, s.clusters...)
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet,
		metadata: {name: shop, namespace: %s, annotations: {argosy.io/release-strategy: any}},
		spec: {replicas: 6, selector: {matchLabels: {app: shop}},
		updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 2},
		template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: main, image: "%s"}]}}}}`, s.ns, image(1)))
	are := func(first, second string) {
		t.Helper()
		s.waits("the pods run "+first+" and "+second, func() bool {
			return s.count("shop", first, "m1") == 3 && s.count("shop", second, "m2") == 3
		})
	}
	are(image(1), "one.example.com/shop:1")
	s.rounds()
	fleet.Hub.Apply(t, registry("two.example.com"))
	s.sets(image(2))
	s.budget("shop", 2)
	strategy := `{stages: [{name: half, to: {percent: 50}}, {name: rest}]}`
	s.starts("there", strategy)
	r := s.becomes("there", succeeded, completed)
	are(image(2), "two.example.com/shop:2")
	spec := kit.Field(fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "shop"), "spec")
	out, code := s.argosy("start", "cloneset/shop", "--revision", r.Status.Targets[0].From, "-f", s.file(strategy),
		"--wait")
	if code != 0 {
		t.Fatalf("argosy release start --wait exits with %d: %s", code, out)
	}
	are(image(1), "one.example.com/shop:1")
	s.rounds()
	are(image(1), "one.example.com/shop:1")
	if is := kit.Field(fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "shop"),
		"spec"); !reflect.DeepEqual(is, spec) {
		t.Errorf("the template has become %v", is)
	}
}

func deletedRelease(t *testing.T) {
	s := newStory(t, "m1", "m2")
	s.shop(10, 1)
	s.sets(image(2))
	s.starts("gone", `{stages: [{name: half, to: {percent: 50}}, {name: rest, before: [{name: go}]}]}`)
	s.waits("a pod is new", func() bool { return s.count("shop", image(2)) > 0 })
	fleet.Hub.Remove(t, "release.argosy.io/v1alpha1", "Release", s.ns, "gone")
	s.waits("the release is gone, and its plan is held", func() bool {
		b := s.bindings["shop-cloneset"]
		return s.releases["gone"] == nil && strings.Contains(b.Annotations[wellknown.ReleasePlanAnnotation], `"hold":true`)
	})
	n, end := s.pause(image(2))
	if n > 5 {
		t.Errorf("%d pods are new in a stage of 5", n)
	}
	end()
	s.starts("next", `{stages: [{name: all}]}`)
	s.becomes("next", succeeded, completed)
	s.runs("shop", image(2), 10)
}

// The strategy that the workload names has autoStart, so that the hub creates the Releases.
func startedByTheHub(t *testing.T) {
	s := newStory(t, "m1", "m2")
	s.shop(6, "100%")
	s.change(func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, int64(10), "spec", "progressDeadlineSeconds"); err != nil {
			t.Fatal(err)
		}
	})
	s.creates(fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy,
		metadata: {name: any, namespace: %s}, spec: {autoStart: {}, failure: {action: Rollback},
		stages: [{name: canary, to: {pods: 1}}, {name: rest, before: [{name: go}]}]}}`, s.ns))
	known := map[string]bool{}
	started := func() string {
		t.Helper()
		return s.created(known, releasev1alpha1.TriggerTemplate)
	}
	s.check(func(event) {
		if len(s.releases) > len(known)+1 {
			s.violated("the hub has started %d releases after %d changes", len(s.releases), len(known)+1)
		}
	})

	s.sets(image(2))
	first := started()
	s.awaits(first, "rest")
	s.waits("1 pod is new", func() bool { return s.count("shop", image(2)) == 1 })
	s.approves(first, "rest")
	s.becomes(first, succeeded, completed)
	s.runs("shop", image(2), 6)

	s.sets(image("bad"))
	failed := started()
	s.becomes(failed, rolledBack, releasev1alpha1.ReasonRolledBack)
	s.runs("shop", image(2), 6)
	template := fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "shop")
	if is := kit.Field(template, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"]; is !=
		image("bad") {
		t.Errorf("the rollback has written the image %v to the template", is)
	}
	s.rounds() // it starts nothing until the template changes
	s.runs("shop", image(2), 6)

	s.sets(image(3))
	fix := started()
	s.approves(fix, "rest")
	s.becomes(fix, succeeded, completed)
	s.runs("shop", image(3), 6)
}
