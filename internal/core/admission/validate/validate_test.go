package validate

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// refusal is a spec and the texts that its refusal must hold; none: it is accepted.
type refusal struct {
	name, spec string
	want       []string
}

var propagations = []refusal{
	{"the plainest policy", `{}`, nil},
	{"an affinity beside affinity terms",
		`{placement: {clusterAffinity: {clusterNames: [a]}, clusterAffinities: [{affinityName: t}]}}`,
		[]string{"spec.placement.clusterAffinities: Invalid value",
			"clusterAffinities cannot co-exist with clusterAffinity"}},
	{"affinity terms of the same name", `{placement: {clusterAffinities: [{affinityName: t}, {affinityName: t}]}}`,
		[]string{"spec.placement.clusterAffinities[1].affinityName",
			"each affinity term in a policy must have a unique name"}},
	{"an affinity term whose name is no label key", `{placement: {clusterAffinities: [{affinityName: "a b"}]}}`,
		[]string{"spec.placement.clusterAffinities[0].affinityName", "name part must consist of alphanumeric characters"}},
	{"two cluster constraints", `{placement: {spreadConstraints: [{spreadByField: cluster}, {spreadByField: cluster}]}}`,
		[]string{"multiple cluster spread constraints are not allowed"}},
	{"two region constraints", `{placement: {spreadConstraints: [{spreadByField: cluster}, {spreadByField: region}, {spreadByField: region}]}}`,
		[]string{"multiple region spread constraints are not allowed"}},
	{"a zone constraint without one by cluster", `{placement: {spreadConstraints: [{spreadByField: zone}]}}`,
		[]string{"the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"}},
	{"a label constraint without one by cluster",
		`{placement: {spreadConstraints: [{spreadByLabel: topology.kubernetes.io/zone, minGroups: 2, maxGroups: 3}]}}`, nil},
	{"field and label in one constraint", `{placement: {spreadConstraints: [{spreadByField: cluster, spreadByLabel: x}]}}`,
		[]string{"spec.placement.spreadConstraints[0].spreadByLabel",
			"spreadByLabel should not co-exist with spreadByField"}},
	{"minGroups below 0", `{placement: {spreadConstraints: [{spreadByField: cluster, minGroups: -1}]}}`,
		[]string{"minGroups lower than 0 is not allowed"}},
	{"maxGroups below 0", `{placement: {spreadConstraints: [{spreadByField: cluster, maxGroups: -1}]}}`,
		[]string{"maxGroups lower than 0 is not allowed"}},
	{"maxGroups below minGroups", `{placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]}}`,
		[]string{"maxGroups lower than minGroups is not allowed"}},
	{"maxGroups 0 is no limit", `{placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 0}]}}`,
		nil},
	{"a field selector by another key",
		`{placement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: rack, operator: In, values: [a]}]}}}}`,
		[]string{"spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].key",
			`unsupported key "rack", must be provider, region, or zone`}},
	{"a field selector with another operator",
		`{placement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: Exists}]}}}}`,
		[]string{`unsupported operator "Exists", must be In or NotIn`}},
	{"a field selector in a static weight",
		`{placement: {replicaScheduling: {weightPreference: {staticWeightList: [{weight: 1, targetCluster: {fieldSelector: {matchExpressions: [{key: rack, operator: In}]}}}]}}}}`,
		[]string{"staticWeightList[0].targetCluster.fieldSelector", `unsupported key "rack"`}},
	{"a toleration that compares numbers", `{placement: {clusterTolerations: [{key: a, operator: Gt, value: "1"}]}}`,
		[]string{"spec.placement.clusterTolerations[0].operator", `Unsupported value: "Gt"`}},
	{"application failover without dependencies",
		`{failover: {application: {decisionConditions: {tolerationSeconds: 1}}}}`,
		[]string{"spec.propagateDeps", "application failover is set, propagateDeps must be true"}},
	{"a negative toleration", `{propagateDeps: true, failover: {application: {decisionConditions: {tolerationSeconds: -1}}}}`,
		[]string{"spec.failover.application.decisionConditions.tolerationSeconds", "must be greater than or equal to 0"}},
	{"a grace period without grace", `{propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Directly, gracePeriodSeconds: 5}}}`,
		[]string{"spec.failover.application.gracePeriodSeconds", "only takes effect when purgeMode is Gracefully"}},
	{"no time for grace", `{propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 0}}}`,
		[]string{"must be greater than 0"}},
	{"state at a path that cannot be read",
		`{propagateDeps: true, failover: {application: {decisionConditions: {}, statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.x"}]}}}}`,
		[]string{"spec.failover.application.statePreservation.rules[0].jsonPath", "is not a JSONPath"}},
	{"state at a path without braces",
		`{failover: {cluster: {statePreservation: {rules: [{aliasLabelName: a, jsonPath: ".x"}]}}}}`,
		[]string{"spec.failover.cluster.statePreservation.rules[0].jsonPath", "no expression in braces"}},
	{"state at many places", `{failover: {cluster: {statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{range .x[*]}{..y}{end}"}]}}}}`,
		[]string{"spec.failover.cluster.statePreservation.rules[0].jsonPath", "only fields and indexes"}},
	{"state kept under a name that is no label",
		`{propagateDeps: true, failover: {application: {decisionConditions: {}, statePreservation: {rules: [{aliasLabelName: "a b", jsonPath: "{.x}"}]}}}}`,
		[]string{"spec.failover.application.statePreservation.rules[0].aliasLabelName"}},
	{"suspension of all and of some", `{suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [a]}}}`,
		[]string{"suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"}},
	{"suspension of some", `{suspension: {dispatching: false, dispatchingOnClusters: {clusterNames: [a]}}}`, nil},
	{"preemption of whatever there is",
		`{preemption: Always, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]}`,
		[]string{"spec.resourceSelectors[0].name", "name cannot be empty if preemption is Always"}},
	{"a selector that cannot be parsed",
		`{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]}`,
		[]string{"spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator"}},
	{"overflow without anything to overflow",
		`{placement: {clusterAffinities: [{affinityName: t, overflowAffinities: [{affinityName: o, clusterNames: [a]}]}]}}`,
		[]string{"overflowAffinities need replicaDivisionPreference Aggregated or a dynamicWeight"}},
	{"overflow of aggregated replicas",
		`{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}, clusterAffinities: [{affinityName: t, overflowAffinities: [{affinityName: o, clusterNames: [a]}]}]}}`, nil},
	{"overflow to every cluster, under its term's name",
		`{placement: {replicaScheduling: {weightPreference: {dynamicWeight: AvailableReplicas}}, clusterAffinities: [{affinityName: t, overflowAffinities: [{affinityName: t}]}]}}`,
		[]string{"an overflow affinity must restrict the clusters", "different from that of its term"}},
	{"affinity and anti-affinity by the same label",
		`{placement: {workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}}}`,
		[]string{"affinity and antiAffinity must not group by the same label"}},
	{"a workload affinity by no label", `{placement: {workloadAffinity: {affinity: {groupByLabelKey: ""}}}}`,
		[]string{"spec.placement.workloadAffinity.affinity.groupByLabelKey"}},
}

func TestPropagation(t *testing.T) {
	for _, c := range propagations {
		for _, namespace := range []string{"default", ""} {
			p := policy(namespace)
			parse(t, c.spec, p.PropagationSpec())
			Identify(p, "id")
			check(t, c.name, Propagation(p, nil), c.want)
		}
	}
}

func TestAPolicyKeepsItsIdentity(t *testing.T) {
	for _, namespace := range []string{"default", ""} {
		old := policy(namespace)
		old.SetLabels(map[string]string{policyID(old).label: "copied"})
		Identify(old, "id")
		Identify(old, "id")
		if got := old.GetLabels()[policyID(old).label]; got != "id" {
			t.Errorf("permanent id is %q", got)
		}
		if diff := cmp.Diff([]string{policyID(old).finalizer}, old.GetFinalizers()); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
		old.PropagationSpec().SchedulerName = "default-scheduler"

		p := old.DeepCopyObject().(policyv1alpha1.Propagation)
		check(t, "unchanged", Propagation(p, old), nil)
		p.PropagationSpec().SchedulerName = "other"
		check(t, "another scheduler", Propagation(p, old),
			[]string{"spec.schedulerName", "the schedulerName should not be updated"})
		p.PropagationSpec().SchedulerName = "default-scheduler"
		p.SetLabels(map[string]string{policyID(old).label: "other"})
		check(t, "another id", Propagation(p, old), []string{"propagationpolicy.karmada.io/permanent-id is immutable"})
		p.SetLabels(nil)
		check(t, "no id", Propagation(p, old), []string{"propagationpolicy.karmada.io/permanent-id is required"})
	}
}

func TestDefaultPropagation(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"a selector takes the policy's namespace, unless the kind has none",
			`{resourceSelectors: [{apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: Namespace}, {apiVersion: v1, kind: Pod, namespace: other}]}`,
			`{resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: default}, {apiVersion: v1, kind: Namespace}, {apiVersion: v1, kind: Pod, namespace: other}]}`},
		{"a spread constraint is by cluster and for one group at least",
			`{placement: {spreadConstraints: [{maxGroups: 2}, {spreadByLabel: x}, {spreadByField: region, minGroups: 2}]}}`,
			`{placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}, {spreadByLabel: x, minGroups: 1}, {spreadByField: region, minGroups: 2}]}}`},
		{"divided replicas are weighted",
			`{placement: {replicaScheduling: {replicaSchedulingType: Divided}}}`,
			`{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}`},
		{"duplicated ones are not",
			`{placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}}`,
			`{placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}}`},
		{"a graceful purge takes ten minutes",
			`{failover: {application: {decisionConditions: {}}}}`,
			`{failover: {application: {decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 600}}}`},
		{"another purge has no grace period",
			`{failover: {application: {decisionConditions: {}, purgeMode: Never}}}`,
			`{failover: {application: {decisionConditions: {}, purgeMode: Never}}}`},
		{"a ServiceImport brings its dependencies",
			`{resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, namespace: default}]}`,
			`{propagateDeps: true, resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, namespace: default}]}`},
	} {
		got, want := policy("default"), policy("default")
		parse(t, c.spec, got.PropagationSpec())
		parse(t, c.want, want.PropagationSpec())
		clusterScoped := func(s policyv1alpha1.ResourceSelector) bool { return s.Kind == "Namespace" }
		for range 2 {
			DefaultPropagation(got, clusterScoped)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
		}
	}
}

func TestANamespacedPolicySelectsInItsNamespaceOnly(t *testing.T) {
	p := policy("default")
	Identify(p, "id")
	parse(t, `{resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: other}]}`, p.PropagationSpec())
	want := []string{"spec.resourceSelectors[0].namespace",
		`the namespace of a selector must be that of the policy, "default"`}
	check(t, "propagation", Propagation(p, nil), want)

	o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
	o.Spec.ResourceSelectors = p.PropagationSpec().ResourceSelectors
	check(t, "override", Override(o), want)
	check(t, "cluster override", Override(&policyv1alpha1.ClusterOverridePolicy{Spec: o.Spec}), nil)
}

func TestOverride(t *testing.T) {
	rule := func(overriders string) string { return `{overrideRules: [{overriders: ` + overriders + `}]}` }
	for _, c := range []refusal{
		{"nothing", `{}`, nil},
		{"rules beside the deprecated overriders",
			`{overrideRules: [], targetCluster: {}, overriders: {plaintext: [{path: /a, operator: remove}]}}`,
			[]string{"overrideRules and targetCluster can't co-exist", "overrideRules and overriders can't co-exist"}},
		{"an image predicate that is no pointer",
			rule(`{imageOverrider: [{predicate: {path: spec/image}, component: Tag, operator: add}]}`),
			[]string{"spec.overrideRules[0].overriders.imageOverrider[0].predicate.path",
				"path should be start with / character"}},
		{"an image predicate with a broken escape",
			rule(`{imageOverrider: [{predicate: {path: /a~2}, component: Tag, operator: add}]}`),
			[]string{"~ must be followed by 0 or 1"}},
		{"a label value that is none", rule(`{labelsOverrider: [{operator: add, value: {a: "b c"}}]}`),
			[]string{"spec.overrideRules[0].overriders.labelsOverrider[0].value"}},
		{"an annotation key that is none", rule(`{annotationsOverrider: [{operator: addIfAbsent, value: {"a b": c}}]}`),
			[]string{"spec.overrideRules[0].overriders.annotationsOverrider[0].value"}},
		{"a field of two languages", rule(
			`{fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /x, operator: remove}], yaml: [{subPath: /x, operator: remove}]}]}`),
			[]string{"json and yaml cannot be set at the same time"}},
		{"a field of no language", rule(`{fieldOverrider: [{fieldPath: /data/a}]}`),
			[]string{"one of json and yaml must be set"}},
		{"a field removed with a value", rule(
			`{fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /x, operator: remove, value: 1}]}]}`),
			[]string{"fieldOverrider[0].json[0].value", "value is not allowed for remove operation"}},
		{"a field added without a value",
			rule(`{fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /x, operator: add}]}]}`),
			[]string{"fieldOverrider[0].yaml[0].value", "value is required for add or replace operation"}},
		{"a field removed with null, as clients send it",
			rule(`{fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /x, operator: remove, value: null}]}]}`), nil},
		{"resources of nobody", rule(`{resourcesOverrider: [{containerName: "", value: {limits: {cpu: -1}}}]}`),
			[]string{"resourcesOverrider[0].containerName: Required value", "resourcesOverrider[0].value.limits[cpu]",
				"must be greater than or equal to 0"}},
		{"a kind replaced", rule(`{plaintext: [{path: /kind, operator: replace, value: ClusterRoleBinding}]}`),
			[]string{"spec.overrideRules[0].overriders.plaintext[0].path: Forbidden",
				`"/kind" reaches kind: an override cannot change the group, kind, namespace or name of an object`}},
		{"a name, by the deprecated overriders",
			`{overriders: {plaintext: [{path: /data/a, operator: remove}, {path: /metadata/name, operator: add, value: x}]}}`,
			[]string{"spec.overriders.plaintext[1].path: Forbidden", "reaches metadata.name"}},
		{"a namespace, by escapes", rule(`{plaintext: [{path: /metadata/namespace/~1~0, operator: add, value: x}]}`),
			[]string{"reaches metadata.namespace"}},
		{"all metadata", rule(`{plaintext: [{path: /metadata, operator: replace, value: {name: x}}]}`),
			[]string{`"/metadata" reaches metadata, and with it metadata.namespace and metadata.name`}},
		{"all metadata, with a slash behind it",
			rule(`{plaintext: [{path: /metadata/, operator: replace, value: {name: x}}]}`), []string{"reaches metadata"}},
		{"a name, with a slash behind it", rule(`{plaintext: [{path: /metadata/name/, operator: replace, value: x}]}`),
			[]string{"reaches metadata.name"}},
		{"the whole document", rule(`{plaintext: [{path: "", operator: replace, value: {}}]}`),
			[]string{`plaintext[0].path: Forbidden: "" reaches the whole document`}},
		{"a kind by an image", rule(`{imageOverrider: [{predicate: {path: /kind}, component: Repository, operator: replace, value: ClusterRole}]}`),
			[]string{"imageOverrider[0].predicate.path: Forbidden", `"/kind" reaches kind`}},
		{"a name by a field", rule(`{fieldOverrider: [{fieldPath: /metadata/name, json: [{subPath: /x, operator: remove}]}]}`), []string{"fieldOverrider[0].fieldPath: Forbidden", "reaches metadata.name"}},
		{"another group", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [{overriders: {plaintext: [{path: /apiVersion, operator: replace, value: apps.kruise.io/v1}]}}]}`,
			[]string{"plaintext[0].path: Forbidden", "replace it with one of the same group"}},
		{"the core group", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [{overriders: {plaintext: [{path: /apiVersion, operator: replace, value: v1}]}}]}`, []string{"reaches apiVersion"}},
		{"no version at all", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [{overriders: {plaintext: [{path: /apiVersion, operator: remove}]}}]}`, []string{"reaches apiVersion"}},
		{"a version, of templates of any kind", rule(`{plaintext: [{path: /apiVersion, operator: replace, value: apps/v1}]}`),
			[]string{"reaches apiVersion"}},
		{"a version, of templates of two groups",
			`{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: ConfigMap}], overrideRules: [{overriders: {plaintext: [{path: /apiVersion, operator: replace, value: apps/v1}]}}]}`,
			[]string{"reaches apiVersion"}},
		{"another version of the same group",
			`{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [{overriders: {plaintext: [{path: /apiVersion, operator: replace, value: apps/v1beta2}]}}]}`, nil},
		{"the mark of a Work", rule(`{annotationsOverrider: [{operator: add, value: {work.karmada.io/name: x}}]}`),
			[]string{"annotationsOverrider[0].value: Forbidden", "work.karmada.io/name identifies the hub's own objects"}},
		{"the mark of the hub taken off",
			rule(`{labelsOverrider: [{operator: remove, value: {karmada.io/managed: "true"}}]}`),
			[]string{"labelsOverrider[0].value: Forbidden", "karmada.io/managed identifies the hub's own objects"}},
		{"the annotation that stops the hub",
			rule(`{annotationsOverrider: [{operator: add, value: {argosy.io/hands-off: "true"}}]}`),
			[]string{"annotationsOverrider[0].value: Forbidden", "argosy.io/hands-off stops the hub"}},
		{"a mark by its path", rule(`{plaintext: [{path: /metadata/annotations/resourcetemplate.karmada.io~1uid, operator: add, value: x}]}`), []string{"plaintext[0].path: Forbidden", "resourcetemplate.karmada.io/uid identifies the hub's own objects"}},
		{"what members are told to do about conflicts",
			rule(`{annotationsOverrider: [{operator: add, value: {work.karmada.io/conflict-resolution: abort}}]}`), nil},
		{"labels of its own", rule(`{plaintext: [{path: /metadata/labels, operator: add, value: {a: b}}, {path: /metadata/annotations/name, operator: add, value: x}]}`), nil},
		{"names that are none of the object",
			rule(`{plaintext: [{path: /spec/kind, operator: add, value: x}, {path: /spec/metadata/name, operator: add, value: x}, {path: /data/metadata, operator: add, value: x}]}`), nil},
		{"a field selector by another key",
			`{overrideRules: [{targetCluster: {fieldSelector: {matchExpressions: [{key: rack, operator: In}]}}, overriders: {}}]}`,
			[]string{"spec.overrideRules[0].targetCluster.fieldSelector",
				`unsupported key "rack", must be provider, region, or zone`}},
	} {
		o := &policyv1alpha1.ClusterOverridePolicy{}
		parse(t, c.spec, &o.Spec)
		check(t, c.name, Override(o), c.want)
	}
}

func TestCluster(t *testing.T) {
	for _, c := range []refusal{
		{"the plainest cluster", `{syncMode: Push}`, nil},
		{"an endpoint without host", `{apiEndpoint: "https:///x"}`, []string{"spec.apiEndpoint", "host must be provided"}},
		{"an endpoint with too much", `{apiEndpoint: "https://u:p@host/?q=1#f"}`,
			[]string{"user information is not permitted", "fragments are not permitted", "query parameters are not permitted"}},
		{"an endpoint that is no URL", `{apiEndpoint: "%"}`, []string{"must be a valid URL"}},
		{"a proxy of another kind", `{proxyURL: "ftp://host"}`,
			[]string{"spec.proxyURL", `unsupported scheme "ftp", must be http, https, or socks5`}},
		{"a socks proxy", `{proxyURL: "socks5://host:1080"}`, nil},
		{"properties that are no label values", `{provider: "a b", region: "-", zones: [ok, "c d"]}`,
			[]string{"spec.provider", "spec.region", "spec.zones[1]"}},
		{"zone and zones", `{zone: a, zones: [b]}`, []string{"zone and zones cannot be set at the same time"}},
		{"the same taint twice", `{taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}, {key: a, value: x, effect: NoSchedule}]}`,
			[]string{"spec.taints[2]: Duplicate value", "taints must be unique by key and effect pair"}},
		{"a taint that only prefers", `{taints: [{key: a, effect: PreferNoSchedule}]}`,
			[]string{"spec.taints[0].effect", `Unsupported value: "PreferNoSchedule"`}},
		{"a taint without key and effect", `{taints: [{value: "a b"}]}`,
			[]string{"spec.taints[0].key", "spec.taints[0].value", "spec.taints[0].effect: Required value"}},
		{"grades with a gap", `{resourceModels: [{grade: 0, ranges: [{name: cpu, min: 0, max: 1}]}, {grade: 1, ranges: [{name: cpu, min: 2, max: 4}]}]}`,
			[]string{"spec.resourceModels[1].ranges[0].min", "must equal the max of the previous grade, 1"}},
		{"grades of different resources",
			`{resourceModels: [{grade: 0, ranges: [{name: cpu, min: 0, max: 1}]}, {grade: 1, ranges: [{name: memory, min: 1, max: 4}]}]}`,
			[]string{"the resource types must be the same in each grade"}},
		{"grades of different length", `{resourceModels: [{grade: 0, ranges: [{name: cpu, min: 0, max: 1}]}, {grade: 1, ranges: []}]}`,
			[]string{"the number of resource types must be the same in each grade"}},
		{"a grade twice", `{resourceModels: [{grade: 1, ranges: []}, {grade: 1, ranges: []}]}`,
			[]string{"spec.resourceModels[1].grade: Duplicate value"}},
		{"a range of nothing", `{resourceModels: [{grade: 1, ranges: [{name: cpu, min: 1, max: 1}]}]}`,
			[]string{"max value must be greater than min value"}},
	} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}}
		parse(t, c.spec, &cluster.Spec)
		check(t, c.name, Cluster(cluster), c.want)
	}
	for name, want := range map[string]string{
		strings.Repeat("a", 48): "",
		strings.Repeat("a", 49): "must be no more than 48 characters",
		"a.b":                   "must not contain dots",
		"Member":                "a lowercase RFC 1123 label must consist of",
	} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		var wants []string
		if want != "" {
			wants = []string{"metadata.name", want}
		}
		check(t, name, Cluster(cluster), wants)
	}
	long := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 300_000)}}
	if errs := Cluster(long).ToAggregate(); errs == nil || len(errs.Error()) > 200 {
		t.Errorf("the error of a long name is %d bytes", len(fmt.Sprint(errs)))
	}
}

func TestDefaultCluster(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	earlier := metav1.NewTime(time.Unix(1, 0))
	c := &clusterv1alpha1.Cluster{}
	parse(t, `{zone: z, taints: [{key: a, effect: NoExecute}, {key: b, effect: NoSchedule}],
		resourceModels: [{grade: 2, ranges: [{name: cpu, min: 1, max: 8}]}, {grade: 1, ranges: [{name: cpu, min: 500m, max: 1}]}]}`, &c.Spec)
	for range 2 {
		DefaultCluster(c, now)
		if c.Spec.Zone != "" || len(c.Spec.Zones) != 1 || c.Spec.Zones[0] != "z" {
			t.Errorf("zone %q, zones %q", c.Spec.Zone, c.Spec.Zones)
		}
		if got := c.Spec.Taints[0].TimeAdded; got == nil || !got.Equal(&now) {
			t.Errorf("the NoExecute taint counts from %v", got)
		}
		if got := c.Spec.Taints[1].TimeAdded; got != nil {
			t.Errorf("the NoSchedule taint counts from %v", got)
		}
		first, last := c.Spec.ResourceModels[0], c.Spec.ResourceModels[1]
		if first.Grade != 1 || !first.Ranges[0].Min.IsZero() || last.Ranges[0].Max.Value() != math.MaxInt64 {
			t.Errorf("grades %+v", c.Spec.ResourceModels)
		}
		check(t, "defaulted", clusterSpecErrors(c), nil)
		now = earlier // a second run keeps the time of the first
		now = *c.Spec.Taints[0].TimeAdded
	}

	c.Spec.ResourceModels = DefaultGrades()
	before := c.DeepCopy()
	DefaultCluster(c, now)
	if len(c.Spec.ResourceModels) != 9 {
		t.Errorf("%d default grades", len(c.Spec.ResourceModels))
	}
	a, _ := yaml.Marshal(before)
	b, _ := yaml.Marshal(c)
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Errorf("defaulting changes the default grades (-before +after):\n%s", diff)
	}
	check(t, "default grades", clusterSpecErrors(c), nil)
	if g := c.Spec.ResourceModels[3].Ranges[1]; g.Min.String() != "32Gi" || g.Max.String() != "64Gi" {
		t.Errorf("grade 3 is for memory from %s to %s", g.Min.String(), g.Max.String())
	}
}

func clusterSpecErrors(c *clusterv1alpha1.Cluster) field.ErrorList {
	c.Name = "member1"
	return Cluster(c)
}

func TestCustomization(t *testing.T) {
	for _, c := range []refusal{
		{"a script", `{replicaResource: {luaScript: "function GetReplicas(obj) return 1 end"}}`, nil},
		{"a path", `{replicaResource: {jsonPath: .spec.replicas}, retention: {jsonPaths: [".spec.a", "$.metadata.annotations['a.b/c']"]}, statusAggregation: {jsonPaths: {sum: [".status.x"]}}, healthInterpretation: {jsonPath: ".status.phase", expected: Running}}`, nil},
		{"a script that was cut off", `{dependencyInterpretation: {luaScript: "function GetDependencies(obj)\n  if obj then\n  return {}\n  end\n"}}`,
			[]string{"spec.customizations.dependencyInterpretation.luaScript",
				"dependencyInterpretation: line 4: 'end' expected near <eof>"}},
		{"a script that is none", `{retention: {luaScript: "function\nRetain((\nend"}}`,
			[]string{"retention: line 2: syntax error near '('"}},
		{"a script that cannot be compiled", `{retention: {luaScript: "goto nowhere"}}`,
			[]string{"retention: line 2: no visible label 'nowhere' for <goto> at line 1"}},
		{"a script that nests without end", `{retention: {luaScript: "return ` + strings.Repeat("(", 200_000) + `"}}`,
			[]string{"bytes, more than 65536"}},
		{"both", `{replicaResource: {luaScript: "return 1", jsonPath: .spec.replicas}}`,
			[]string{"luaScript and jsonPath cannot be set at the same time"}},
		{"neither", `{replicaResource: {}}`, []string{"spec.customizations.replicaResource.luaScript: Required value"}},
		{"a path where a script is needed", `{componentResource: {jsonPath: .a}}`,
			[]string{"spec.customizations.componentResource.luaScript: Required value"}},
		{"a path with a filter", `{replicaRevision: {jsonPath: ".spec.x[?(@.a)]"}}`,
			[]string{"spec.customizations.replicaRevision.jsonPath", "character 8: expected .name, ['name'] or [index]"}},
		{"a listed path without a dot", `{retention: {jsonPaths: [spec]}}`,
			[]string{"spec.customizations.retention.jsonPaths[0]", "character 1"}},
		{"a health path without a value to expect", `{healthInterpretation: {jsonPath: .a}}`,
			[]string{"jsonPath and expected must be set together"}},
		{"a path as kubectl takes it", `{replicaResource: {jsonPath: "{.spec.replicas}"}}`,
			[]string{"spec.customizations.replicaResource.jsonPath", "write it without braces: .spec.replicas"}},
		{"components by path", `{componentResource: {jsonPath: .a}}`,
			[]string{"define function GetComponents(obj) in luaScript"}},
		{"dependencies by path", `{dependencyInterpretation: {jsonPath: .a}}`,
			[]string{"define function GetDependencies(desiredObj) in luaScript"}},
		{"aggregation that does not say how", `{statusAggregation: {jsonPath: .status.a}}`,
			[]string{"spec.customizations.statusAggregation.jsonPath: Forbidden",
				"jsonPaths.sum, jsonPaths.max or jsonPaths.last"}},
		{"aggregation of what is no status", `{statusAggregation: {jsonPaths: {sum: [.status, .spec.a]}}}`,
			[]string{"jsonPaths.sum[0]", "jsonPaths.sum[1]", "must be a field of the status, such as .status.readyReplicas"}},
		{"a field folded twice", `{statusAggregation: {jsonPaths: {sum: [.status.a], last: ["$.status['a'].b"]}}}`,
			[]string{"jsonPaths.last[0]", "the same field as spec.customizations.statusAggregation.jsonPaths.sum[0]"}},
		{"replicas written to the status", `{replicaRevision: {jsonPath: .status.replicas}}`,
			[]string{"replicas cannot be written to .status; use the field of the spec"}},
		{"a status that is none", `{statusReflection: {jsonPath: .spec}}`, []string{"must be .status, or a field below it"}},
		{"a status that is kept", `{retention: {jsonPaths: [.status.phase]}}`,
			[]string{"the status is never sent to members, so it is always retained"}},
		{"all that is kept", `{retention: {jsonPath: .spec}}`,
			[]string{"cannot be retained as a whole; use a field of the spec"}},
		{"a name that is kept", `{retention: {jsonPaths: [.metadata.name]}}`,
			[]string{"only labels and annotations can be retained in the metadata"}},
	} {
		r := &configv1alpha1.ResourceInterpreterCustomization{}
		r.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.com/v1", Kind: "Shop"}
		parse(t, c.spec, &r.Spec.Customizations)
		check(t, c.name, Customization(r, nil), c.want)
	}
}

func TestACustomizationNamesAKind(t *testing.T) {
	for target, want := range map[configv1alpha1.CustomizationTarget]string{
		{APIVersion: "v1", Kind: "Pod"}:               "",
		{APIVersion: "apps/v1", Kind: "Deployment"}:   "",
		{APIVersion: "apps/v1/x", Kind: "Deployment"}: "spec.target.apiVersion: Invalid value",
		{Kind: "Deployment"}:                          "such as apps/v1 or v1",
		{APIVersion: "v1"}:                            "spec.target.kind: Required value",
	} {
		var wants []string
		if want != "" {
			wants = []string{want}
		}
		check(t, target.APIVersion+" "+target.Kind, Customization(&configv1alpha1.ResourceInterpreterCustomization{
			Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{Target: target}}, nil), wants)
	}
}

func TestPathsAreCheckedAgainstTheKind(t *testing.T) {
	props := &apiextensionsv1.JSONSchemaProps{}
	parse(t, `{type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}, name: {type: string}}},
		status: {type: object, properties: {ready: {type: integer}, phase: {type: string}}}}}`, props)
	for _, c := range []refusal{
		{"all there", `{replicaResource: {jsonPath: .spec.replicas}, retention: {jsonPaths: [.spec.name, .metadata.labels.a]},
			statusReflection: {jsonPath: .status}, statusAggregation: {jsonPaths: {sum: [.status.ready], last: [.status.phase]}}}`, nil},
		{"a field that is not", `{replicaResource: {jsonPath: .spec.replica}}`,
			[]string{"spec.customizations.replicaResource.jsonPath",
				".spec.replica does not exist in the kind's schema; did you mean replicas?"}},
		{"a listed one that is not", `{retention: {jsonPaths: [.spec.name, .spec.no]}}`,
			[]string{"retention.jsonPaths[1]", ".spec.no does not exist"}},
		{"replicas that are a text", `{replicaRevision: {jsonPath: .spec.name}}`,
			[]string{".spec.name is of type string in the kind's schema, but a whole number is required"}},
		{"a text that is summed", `{statusAggregation: {jsonPaths: {sum: [.status.phase]}}}`,
			[]string{"statusAggregation.jsonPaths.sum[0]", "a number is required"}},
	} {
		r := &configv1alpha1.ResourceInterpreterCustomization{}
		parse(t, c.spec, &r.Spec.Customizations)
		check(t, c.name, CustomizationPaths(r, script.SchemaOf(props)), c.want)
	}
}

func TestDeeplyNestedScriptsOfTheLargestSizeOverflowNoStack(t *testing.T) {
	const scriptLimit = script.SizeLimit
	for _, source := range []string{
		"return " + strings.Repeat("(", scriptLimit/2-10) + "1" + strings.Repeat(")", scriptLimit/2-10),
		"return " + strings.Repeat("not ", scriptLimit/4-10) + "1",
		"return " + strings.Repeat("{", scriptLimit/2-10) + strings.Repeat("}", scriptLimit/2-10),
		"return " + strings.Repeat("a..", scriptLimit/3-10) + "a",
		strings.Repeat("do ", scriptLimit/7) + strings.Repeat("end ", scriptLimit/7),
	} {
		_ = script.Check(source) // either verdict is right; a stack overflow ends the process
	}
}

func TestCustomizationsOfOneKindDoNotConflict(t *testing.T) {
	r := func(name, kind, rules string) *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		c.Name = name
		c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "apps/v1", Kind: kind}
		parse(t, rules, &c.Spec.Customizations)
		return c
	}
	const replicas, both = `{replicaResource: {luaScript: return 1}}`,
		`{replicaResource: {luaScript: return 1}, dependencyInterpretation: {luaScript: return 1}}`
	first := r("first", "Deployment", both)
	check(t, "the same operation", Customization(r("second", "Deployment", replicas),
		[]*configv1alpha1.ResourceInterpreterCustomization{first}),
		[]string{"conflicting with InterpreterOperation(InterpretReplica) of existing ResourceInterpreterCustomization(first)"})
	check(t, "dependencies are joined",
		Customization(r("second", "Deployment", `{dependencyInterpretation: {luaScript: return 1}}`),
			[]*configv1alpha1.ResourceInterpreterCustomization{first}), nil)
	check(t, "another kind", Customization(r("second", "StatefulSet", replicas),
		[]*configv1alpha1.ResourceInterpreterCustomization{first}), nil)
	check(t, "itself", Customization(r("first", "Deployment", replicas),
		[]*configv1alpha1.ResourceInterpreterCustomization{first}), nil)
}

func TestWebhookConfiguration(t *testing.T) {
	const rest = `, interpreterContextVersions: [v1alpha1]}`
	for _, c := range []refusal{
		{"a url", `[{name: a.example.com, clientConfig: {url: "https://h/p"}, rules: [{operations: [Retain], apiGroups: [a], apiVersions: ["*"], kinds: [K]}]` + rest + `]`, nil},
		{"a service", `[{name: a.example.com, clientConfig: {service: {namespace: n, name: s, path: /p, port: 443}}` + rest +
			`]`, nil},
		{"a short name", `[{name: a, clientConfig: {url: "https://h"}` + rest + `]`,
			[]string{"webhooks[0].name", "should be a domain with at least three segments"}},
		{"a name twice", `[{name: a.b.c, clientConfig: {url: "https://h"}` + rest +
			`, {name: a.b.c, clientConfig: {url: "https://h"}` + rest + `]`, []string{"webhooks[1].name: Duplicate value"}},
		{"neither url nor service", `[{name: a.b.c, clientConfig: {}` + rest + `]`,
			[]string{"exactly one of url or service is required"}},
		{"both", `[{name: a.b.c, clientConfig: {url: "https://h", service: {namespace: n, name: s}}` + rest + `]`,
			[]string{"exactly one of url or service is required"}},
		{"plain http", `[{name: a.b.c, clientConfig: {url: "http://h"}` + rest + `]`,
			[]string{"'https' is the only allowed URL scheme"}},
		{"a broken service", `[{name: a.b.c, clientConfig: {service: {path: p, port: 70000}}` + rest + `]`,
			[]string{"service name is required", "service namespace is required", "must be between 1 and 65535",
				"must start with a '/'"}},
		{"an unknown operation", `[{name: a.b.c, clientConfig: {url: "https://h"}, rules: [{operations: [Prune], apiGroups: [a], apiVersions: [b], kinds: [K]}]` + rest + `]`,
			[]string{"webhooks[0].rules[0].operations[0]", `Unsupported value: "Prune"`}},
		{"a star among others", `[{name: a.b.c, clientConfig: {url: "https://h"}, rules: [{operations: ["*", Retain], apiGroups: [], apiVersions: ["*", b], kinds: [K]}]` + rest + `]`,
			[]string{"if '*' is present, must not specify other values", "apiGroups: Required value"}},
		{"no version that we speak", `[{name: a.b.c, clientConfig: {url: "https://h"}, interpreterContextVersions: [v2]}]`,
			[]string{"must include at least one of v1alpha1"}},
	} {
		w := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
		parse(t, c.spec, &w.Webhooks)
		check(t, c.name, WebhookConfiguration(w), c.want)
	}
}

func TestReplicaScheduling(t *testing.T) {
	const at = "spec.reschedulePolicy."
	for _, c := range []refusal{
		{"both thresholds", `{reschedulePolicy: {enabled: true, interval: 60s, threshold: {cpuUtilization: 80, memoryUtilization: 80}}}`, nil},
		{"one threshold, and a number of replicas", `{reschedulePolicy: {threshold: {memoryUtilization: 80}, maxMoved: 3}}`,
			nil},
		{"no threshold", `{reschedulePolicy: {interval: 60s, threshold: {}}}`,
			[]string{at + "threshold", "must set cpuUtilization, memoryUtilization or both"}},
		{"an interval that is no time", `{reschedulePolicy: {interval: 60ms, threshold: {cpuUtilization: 80}}}`,
			[]string{at + "interval", "must be 1s or more"}},
		{"a negative interval", `{reschedulePolicy: {interval: -1m, threshold: {cpuUtilization: 80}}}`,
			[]string{at + "interval", "must be 1s or more"}},
		{"nothing may move", `{reschedulePolicy: {threshold: {cpuUtilization: 80}, maxMoved: 0}}`,
			[]string{at + "maxMoved", "set enabled to false"}},
		{"no percent may move", `{reschedulePolicy: {threshold: {cpuUtilization: 80}, maxMoved: 0%}}`,
			[]string{at + "maxMoved", "from 1% to 100%"}},
		{"more than all", `{reschedulePolicy: {threshold: {cpuUtilization: 80}, maxMoved: 120%}}`,
			[]string{at + "maxMoved", "from 1% to 100%"}},
		{"no number", `{reschedulePolicy: {threshold: {cpuUtilization: 80}, maxMoved: some}}`,
			[]string{at + "maxMoved", "a number of replicas"}},
		{"a selector that cannot be parsed",
			`{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchExpressions: [{key: a, operator: Near}]}}], reschedulePolicy: {threshold: {cpuUtilization: 80}}}`,
			[]string{"spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator"}},
	} {
		p := &configv1alpha1.ReplicaSchedulingPolicy{}
		parse(t, c.spec, &p.Spec)
		check(t, c.name, ReplicaScheduling(p), c.want)
	}

	p := &configv1alpha1.ReplicaSchedulingPolicy{}
	parse(t, `{reschedulePolicy: {threshold: {cpuUtilization: 80}}}`, &p.Spec)
	DefaultReplicaScheduling(p)
	r := p.Spec.ReschedulePolicy
	if !*r.Enabled || r.Interval.Duration != time.Minute || r.MaxMoved.String() != "25%" {
		t.Errorf("defaults: %+v", r)
	}
	check(t, "the defaults", ReplicaScheduling(p), nil)
}

func TestBinding(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	check(t, "nothing", Binding(b), nil)
	b.Annotations = map[string]string{
		workv1alpha2.DependenciesAnnotation: `[{"apiVersion":"v1","kind":"ConfigMap","name":"a"}]`}
	check(t, "dependencies", Binding(b), nil)
	b.Annotations[workv1alpha2.DependenciesAnnotation] = `{`
	check(t, "dependencies that are no JSON", Binding(b),
		[]string{"metadata.annotations[resourcebinding.karmada.io/dependencies]", "annotation value must be a valid JSON"})
	b.Annotations = nil
	parse(t, `{components: [{name: a}, {name: ""}, {name: a}]}`, &b.Spec)
	check(t, "components", Binding(b),
		[]string{"component name must not be empty", "spec.components[2].name: Duplicate value"})
}

func policy(namespace string) policyv1alpha1.Propagation {
	if namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	}
	return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "\t", " ")), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func check(t *testing.T, name string, errs field.ErrorList, want []string) {
	t.Helper()
	var got string
	if err := errs.ToAggregate(); err != nil {
		got = err.Error()
	}
	if len(want) == 0 && got != "" {
		t.Errorf("%s: refused: %s", name, got)
	}
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s: %q does not say %q", name, got, w)
		}
	}
}
