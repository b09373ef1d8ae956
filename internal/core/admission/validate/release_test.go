package validate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestRelease(t *testing.T) {
	scoped := func(gk schema.GroupKind) (namespaced, known bool) { return gk.Kind != "SidecarSet", true }
	targets := func(list string) string { return `{strategyRef: {name: s}, targets: [` + list + `]}` }
	target := func(name, more string) string {
		return `{name: ` + name + `, ref: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: ` + name + `}` + more +
			`}`
	}
	const at = "spec.targets[0].ref"
	for _, c := range []refusal{
		{"one target", targets(target("web", "")), nil},
		{"a dependency", targets(target("web", ", dependsOn: [db]") + `, ` + target("db", "")), nil},
		{"a dependency that does not exist", targets(target("web", ", dependsOn: [db]")),
			[]string{"spec.targets", "target web depends on db: they depend on each other, or one does not exist"}},
		{"a cycle", targets(target("web", ", dependsOn: [db]") + `, ` + target("db", ", dependsOn: [web]")),
			[]string{"target web depends on db"}},
		{"itself", targets(target("web", ", dependsOn: [web]")), []string{"target web depends on web"}},
		{"one workload twice", targets(target("web", "") +
			`, {name: again, ref: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}`),
			[]string{"spec.targets[1].ref", "targets web and again are the same workload"}},
		{"no version", targets(`{name: web, ref: {apiVersion: a/b/c, kind: CloneSet, name: web}}`),
			[]string{at + ".apiVersion", "such as v1 or apps/v1"}},
		{"a cluster-scoped kind", targets(`{name: s, ref: {apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, name: s}}`),
			[]string{at + ".kind", "a SidecarSet is cluster-scoped"}},
		{"a strategy inside", `{targets: [` + target("web", "") + `], strategy: {stages: [{name: a, soak: -1m}]}}`,
			[]string{"spec.strategy.stages[0].soak", "must not be negative"}},
	} {
		r := &releasev1alpha1.Release{}
		parse(t, c.spec, &r.Spec)
		check(t, c.name, Release(r, scoped), c.want)
	}
}

func TestReleaseStrategy(t *testing.T) {
	const eu, us = `clusters: {clusterNames: [eu]}`, `clusters: {clusterNames: [us]}`
	for _, c := range []refusal{
		{"weights", `{stages: [{name: a, to: {weight: 1}}, {name: b, to: {weight: 2}}, {name: c, to: {weight: 7}}]}`, nil},
		{"a canary in one region, weights in another", `{stages: [{name: a, ` + eu + `, to: {percent: 10}}, {name: b, ` + us +
			`, to: {weight: 1}}, {name: c, ` + eu + `}, {name: d, ` + us + `, to: {weight: 9}}]}`, nil},
		{"weights and percent of the same clusters", `{stages: [{name: a, to: {weight: 1}}, {name: b, ` + us +
			`}, {name: c, to: {percent: 50}}]}`, []string{"stages[2].to",
			"stages of the same clusters must all have a weight or none: stage a has weight 1"}},
		{"weights and all pods", `{stages: [{name: a, ` + eu + `, to: {weight: 1}}, {name: b, ` + eu + `}]}`,
			[]string{`"all pods"`, "must all have a weight or none"}},
		{"pods and percent", `{stages: [{name: a, to: {pods: 1}}, {name: b, to: {percent: 50}}, {name: c}]}`, nil},
		{"percent that grows", `{stages: [{name: a, to: {percent: 10}}, {name: b, to: {percent: 30}}, {name: c}]}`, nil},
		{"percent that does not grow", `{stages: [{name: a, to: {percent: 30}}, {name: b, to: {percent: 30}}]}`,
			[]string{"stages[1].to", "must be more than in stage a of the same clusters, which has 30 percent"}},
		{"pods that do not grow", `{stages: [{name: a, to: {pods: 3}}, {name: b, to: {pods: 1}}]}`,
			[]string{"which has 3 pods"}},
		{"a stage with nothing left", `{stages: [{name: a, ` + eu + `}, {name: b, ` + eu + `, to: {pods: 1}}]}`,
			[]string{"which has all pods"}},
		{"bad selectors", `{stages: [{name: a, clusters: {labelSelector: {matchLabels: {"a b": c}}}}]}`,
			[]string{"stages[0].clusters.labelSelector"}},
		{"times", `{stages: [{name: a, deadline: 0s, before: [{name: g, timeout: -1s}]}], rollback: {deadline: 0s},
			onLostCluster: {after: 0s}}`, []string{"stages[0].deadline", "stages[0].before[0].timeout", "rollback.deadline",
			"onLostCluster.after", "must be more than 0"}},
		{"numbers", `{stages: [{name: a, maxConcurrentClusters: 0}], failure: {maxFailedPods: -1, maxFailedClusters: -1}}`,
			[]string{"stages[0].maxConcurrentClusters: Invalid value: 0: must be at least 1",
				"failure.maxFailedPods: Invalid value: -1: must be at least 0", "failure.maxFailedClusters"}},
		{"numbers that are percentages", `{stages: [{name: a, maxConcurrentClusters: 10%}], failure: {maxFailedPods: 0}}`,
			nil},
		{"a gate that can open", `{stages: [{name: a, after: [{name: g, approval: {count: 3,
			from: [{kind: Group, name: leads}]}}]}]}`, nil},
		{"a gate that cannot open", `{stages: [{name: a, after: [{name: g, approval: {count: 3,
			from: [{kind: User, name: bob}, {kind: ServiceAccount, name: ci}, {kind: User, name: bob}]}}]}]}`,
			[]string{"stages[0].after[0].approval.count", "more than the 2 users in from: the gate could not open"}},
	} {
		s := &releasev1alpha1.ReleaseStrategySpec{}
		parse(t, c.spec, s)
		check(t, c.name, ReleaseStrategy(s, field.NewPath("spec")), c.want)
	}
}

func TestAnAcceptedReleaseIsFrozen(t *testing.T) {
	stored := func() *releasev1alpha1.Release {
		r := &releasev1alpha1.Release{}
		parse(t, `{strategy: {stages: [{name: a}]},
			targets: [{name: web, ref: {apiVersion: apps/v1, kind: Deployment, name: web}}]}`, &r.Spec)
		r.Status.Conditions = []metav1.Condition{{Type: releasev1alpha1.ReleaseAccepted, Status: metav1.ConditionTrue}}
		return r
	}
	for _, c := range []struct {
		name   string
		change func(*releasev1alpha1.ReleaseSpec)
		want   []string
	}{
		{"the targets", func(s *releasev1alpha1.ReleaseSpec) { s.Targets[0].To.Revision = "web-1" },
			[]string{"spec.targets: Forbidden: cannot be changed once the release is accepted"}},
		{"the strategy", func(s *releasev1alpha1.ReleaseSpec) { s.Strategy.Stages[0].Name = "b" },
			[]string{"spec.strategy: Forbidden"}},
		{"another strategy", func(s *releasev1alpha1.ReleaseSpec) {
			s.Strategy, s.StrategyRef = nil, &releasev1alpha1.ReleaseStrategyReference{Name: "s"}
		}, []string{"spec.strategyRef: Forbidden", "spec.strategy: Forbidden"}},
		{"the change", func(s *releasev1alpha1.ReleaseSpec) {
			s.Change = &releasev1alpha1.ReleaseChange{Ticket: "1"}
		}, []string{"spec.change: Forbidden"}},
		{"what may change", func(s *releasev1alpha1.ReleaseSpec) {
			s.State, s.Supersede, s.TTLSecondsAfterFinished = "Pause", "Replace", new(int64)
		}, nil},
	} {
		old, r := stored(), stored()
		c.change(&r.Spec)
		check(t, c.name, ReleaseUpdate(r, old), c.want)
		old.Status.Conditions[0].Status = metav1.ConditionFalse
		check(t, c.name+", not accepted", ReleaseUpdate(r, old), nil)
	}
}
