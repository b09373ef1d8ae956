package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	policyHead = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p}
`
	overrideHead = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: p}
`
	interpreterHead = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: p}
`
	clusterHead = `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: p}
`
)

func kruiseHead(version, kind string) string {
	return "\napiVersion: apps.kruise.io/" + version + "\nkind: " + kind + "\nmetadata: {name: p}\n"
}

var cases = []struct {
	name, head, spec string
	want             string // of the spec; empty: unchanged
	warn             []string
	err              string
}{{
	name: "a policy in Karmada's own words is left alone",
	head: policyHead,
	spec: `{placement: {clusterAffinity: {clusterNames: [a]}, replicaScheduling: {replicaDivisionPreference: Aggregated}}}`,
}, {
	name: "Dynamic is Weighted by available replicas, and the misplaced weight finds its place",
	head: policyHead,
	spec: `{placement: {replicaScheduling: {replicaDivisionPreference: Dynamic, dynamicWeight: AvailableReplicas}}}`,
	want: `{placement: {replicaScheduling: {replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}}`,
	warn: []string{
		"spec.placement.replicaScheduling.dynamicWeight: stored as weightPreference.dynamicWeight",
		"spec.placement.replicaScheduling.replicaDivisionPreference: stored as Weighted with weightPreference.dynamicWeight AvailableReplicas",
	},
}, {
	name: "Dynamic alone implies the weight",
	head: policyHead,
	spec: `{placement: {replicaScheduling: {replicaDivisionPreference: Dynamic}}}`,
	want: `{placement: {replicaScheduling: {replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}}`,
	warn: []string{"spec.placement.replicaScheduling.replicaDivisionPreference: stored as Weighted with weightPreference.dynamicWeight AvailableReplicas"},
}, {
	name: "two different dynamic weights contradict each other",
	head: policyHead,
	spec: `{placement: {replicaScheduling: {dynamicWeight: AvailableReplicas, weightPreference: {dynamicWeight: Other}}}}`,
	err:  "spec.placement.replicaScheduling.dynamicWeight: duplicates weightPreference.dynamicWeight",
}, {
	name: "weight 0 stands by in a term of its own",
	head: policyHead,
	spec: `{placement: {clusterAffinity: {clusterNames: [a, b]}, replicaScheduling: {weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [a]}, weight: 10}, {targetCluster: {clusterNames: [b]}, weight: 0}]}}}}`,
	want: `{placement: {clusterAffinities: [{affinityName: active, clusterNames: [a]}, {affinityName: standby, clusterNames: [b]}],
		replicaScheduling: {weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [a]}, weight: 10}, {targetCluster: {clusterNames: [b]}, weight: 1}]}}}}`,
	warn: []string{"spec.placement.replicaScheduling.weightPreference.staticWeightList: stored as clusterAffinities active and standby, because weight 0 means a standby cluster"},
}, {
	name: "standby keeps the rest of the affinity, and only clusters that it allows",
	head: policyHead,
	spec: `{placement: {clusterAffinity: {clusterNames: [a, b, c], exclude: [x], labelSelector: {matchLabels: {env: prod}}}, replicaScheduling: {weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [a]}, weight: 10}, {targetCluster: {clusterNames: [b, other]}, weight: 1}, {targetCluster: {clusterNames: [c]}, weight: 0}]}}}}`,
	want: `{placement: {clusterAffinities: [
		{affinityName: active, clusterNames: [a, b], exclude: [x], labelSelector: {matchLabels: {env: prod}}},
		{affinityName: standby, clusterNames: [c], exclude: [x], labelSelector: {matchLabels: {env: prod}}}],
		replicaScheduling: {weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [a]}, weight: 10}, {targetCluster: {clusterNames: [b, other]}, weight: 1}, {targetCluster: {clusterNames: [c]}, weight: 1}]}}}}`,
	warn: []string{"spec.placement.replicaScheduling.weightPreference.staticWeightList: stored as clusterAffinities active and standby, because weight 0 means a standby cluster"},
}, {
	name: "standby beside affinity terms of one's own is a contradiction",
	head: policyHead,
	spec: `{placement: {clusterAffinities: [{affinityName: t}], replicaScheduling: {weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [a]}, weight: 1}, {targetCluster: {clusterNames: [b]}, weight: 0}]}}}}`,
	err: "weight 0 means standby, which cannot be combined with clusterAffinities",
}, {
	name: "several standby selectors cannot be one term",
	head: policyHead,
	spec: `{placement: {replicaScheduling: {weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [a]}, weight: 1},
		{targetCluster: {labelSelector: {matchLabels: {x: "1"}}}, weight: 0}, {targetCluster: {labelSelector: {matchLabels: {x: "2"}}}, weight: 0}]}}}}`,
	err: "several rules can be combined only if each uses clusterNames",
}, {
	name: "weights that are all 0 leave nobody to stand by for, and are left to the schema",
	head: policyHead,
	spec: `{placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [a]}, weight: 0}]}}}}`,
}, {
	name: "spreading by region alone implies clusters enough for the regions",
	head: policyHead,
	spec: `{placement: {spreadConstraints: [{spreadByField: region, spreadByLabel: "", minGroups: 2, maxGroups: 3}]}}`,
	want: `{placement: {spreadConstraints: [{spreadByField: region, spreadByLabel: "", minGroups: 2, maxGroups: 3}, {spreadByField: cluster, minGroups: 2}]}}`,
	warn: []string{"spec.placement.spreadConstraints: stored as that and {spreadByField: cluster, minGroups: 2}, which a region constraint requires"},
}, {
	name: "spreading by zone alone keeps Karmada's refusal",
	head: policyHead,
	spec: `{placement: {spreadConstraints: [{spreadByField: zone, minGroups: 2}]}}`,
}, {
	name: "a constraint without a field is one by cluster",
	head: policyHead,
	spec: `{placement: {spreadConstraints: [{spreadByField: region}, {minGroups: 2}]}}`,
}, {
	name: "applicationMigrationPolicy is failover of the application, which needs propagateDeps, and of the cluster",
	head: policyHead,
	spec: `{failover: {applicationMigrationPolicy: {decisionConditions: {tolerationSeconds: 60}, purgePolicy: Gracefully}}}`,
	want: `{propagateDeps: true, placement: {clusterTolerations: [` + tolerated("not-ready", 60) + `, ` + tolerated("unreachable", 60) + `]},
		failover: {application: {decisionConditions: {tolerationSeconds: 60}, purgeMode: Gracefully}, cluster: {purgeMode: Gracefully}}}`,
	warn: []string{
		"spec.failover.applicationMigrationPolicy.purgePolicy: stored as purgeMode",
		"spec.failover.applicationMigrationPolicy: stored as application",
		"spec.propagateDeps: set to true, because application failover requires it",
		"spec.failover.cluster: set to purgeMode Gracefully, because applicationMigrationPolicy is also about lost clusters",
		"spec.placement.clusterTolerations: lost clusters are tolerated for 60 s, as applicationMigrationPolicy says",
	},
}, {
	name: "applicationMigrationPolicy carries Directly and the state over, by their old names",
	head: policyHead,
	spec: `{propagateDeps: true, failover: {applicationMigrationPolicy: {purgePolicy: Immediately, statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.b}"}]}}}}`,
	want: `{propagateDeps: true, failover: {application: {purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.b}"}]}},
		cluster: {purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.b}"}]}}}}`,
	warn: []string{
		"spec.failover.applicationMigrationPolicy.purgePolicy: stored as purgeMode",
		"spec.failover.applicationMigrationPolicy: stored as application",
		"spec.failover.application.purgeMode: stored as Directly",
		"spec.failover.cluster: set to purgeMode Directly, because applicationMigrationPolicy is also about lost clusters",
	},
}, {
	name: "a lost cluster has no Never, which keeps the old copy: Directly keeps it",
	head: policyHead,
	spec: `{propagateDeps: true, failover: {applicationMigrationPolicy: {purgePolicy: Never}}}`,
	want: `{propagateDeps: true, failover: {application: {purgeMode: Never}, cluster: {purgeMode: Directly}}}`,
	warn: []string{
		"spec.failover.applicationMigrationPolicy.purgePolicy: stored as purgeMode",
		"spec.failover.applicationMigrationPolicy: stored as application",
		"spec.failover.cluster: set to purgeMode Directly, because applicationMigrationPolicy is also about lost clusters",
	},
}, {
	name: "applicationMigrationPolicy leaves tolerations and cluster failover of one's own alone",
	head: policyHead,
	spec: `{propagateDeps: true, placement: {clusterTolerations: [{operator: Exists}]},
		failover: {cluster: {purgeMode: Directly}, applicationMigrationPolicy: {decisionConditions: {tolerationSeconds: 60}}}}`,
	want: `{propagateDeps: true, placement: {clusterTolerations: [{operator: Exists}]},
		failover: {cluster: {purgeMode: Directly}, application: {decisionConditions: {tolerationSeconds: 60}}}}`,
	warn: []string{"spec.failover.applicationMigrationPolicy: stored as application"},
}, {
	name: "purgePolicy wins over the purgeMode that the schema defaulted",
	head: policyHead,
	spec: `{propagateDeps: true, failover: {application: {purgeMode: Gracefully, purgePolicy: Never}}}`,
	want: `{propagateDeps: true, failover: {application: {purgeMode: Never}}}`,
	warn: []string{"spec.failover.application.purgePolicy: stored as purgeMode"},
}, {
	name: "purgePolicy does not win over a purgeMode that was chosen",
	head: policyHead,
	spec: `{failover: {application: {purgeMode: Directly, purgePolicy: Never}}}`,
	err:  "spec.failover.application.purgePolicy: duplicates purgeMode",
}, {
	name: "purge modes have the names of Karmada before v1.19, too",
	head: policyHead,
	spec: `{propagateDeps: true, failover: {application: {purgeMode: Graciously}, cluster: {purgeMode: Immediately}}}`,
	want: `{propagateDeps: true, failover: {application: {purgeMode: Gracefully}, cluster: {purgeMode: Directly}}}`,
	warn: []string{"spec.failover.application.purgeMode: stored as Gracefully",
		"spec.failover.cluster.purgeMode: stored as Directly"},
}, {
	name: "replicasOverrider replaces the replicas of the kind",
	head: overrideHead,
	spec: `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}],
		overrideRules: [{overriders: {replicasOverrider: [{value: 3}], plaintext: [{path: /a, operator: remove}]}}]}`,
	want: `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}],
		overrideRules: [{overriders: {plaintext: [{path: /a, operator: remove}, {path: /spec/replicas, operator: replace, value: 3}]}}]}`,
	warn: []string{"spec.overrideRules[0].overriders.replicasOverrider: stored as plaintext, replacing /spec/replicas"},
}, {
	name: "the replicas of a Job are its parallelism",
	head: overrideHead,
	spec: `{resourceSelectors: [{apiVersion: batch/v1, kind: Job}], overriders: {replicasOverrider: [{value: 3, operator: replace}]}}`,
	want: `{resourceSelectors: [{apiVersion: batch/v1, kind: Job}], overriders: {plaintext: [{path: /spec/parallelism, operator: replace, value: 3}]}}`,
	warn: []string{"spec.overriders.replicasOverrider: stored as plaintext, replacing /spec/parallelism"},
}, {
	name: "a replicasOverrider for a kind without replicas is refused",
	head: overrideHead,
	spec: `{resourceSelectors: [{apiVersion: apps/v1, kind: DaemonSet}], overriders: {replicasOverrider: [{value: 3}]}}`,
	err:  "spec.overriders.replicasOverrider: the path of the replicas of kind DaemonSet is unknown; use plaintext",
}, {
	name: "a replicasOverrider that is no list is left to the schema, which refuses it",
	head: overrideHead,
	spec: `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overriders: {replicasOverrider: 3}}`,
}, {
	name: "a replicasOverrider for everything is refused",
	head: overrideHead,
	spec: `{overriders: {replicasOverrider: [{value: 3}]}}`,
	err:  "spec.overriders.replicasOverrider: requires resourceSelectors, because the path of the replicas depends on the kind",
}, {
	name: "a replicasOverrider for kinds that differ is refused",
	head: overrideHead,
	spec: `{resourceSelectors: [{apiVersion: batch/v1, kind: Job}, {apiVersion: apps/v1, kind: Deployment}], overriders: {replicasOverrider: [{value: 3}]}}`,
	err:  "have their replicas at different paths, /spec/parallelism and /spec/replicas",
}, {
	name: "replicas can only be replaced",
	head: overrideHead,
	spec: `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overriders: {replicasOverrider: [{value: 3, operator: add}]}}`,
	err:  "spec.overriders.replicasOverrider[0].operator: add is not supported; use replace",
}, {
	name: "replicas need a number",
	head: overrideHead,
	spec: `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overriders: {replicasOverrider: [{operator: replace}]}}`,
	err:  "spec.overriders.replicasOverrider[0].value: must be a number of replicas",
}, {
	name: "zone is zones with one item",
	head: clusterHead,
	spec: `{syncMode: Push, zone: us-west-2a}`,
	want: `{syncMode: Push, zones: [us-west-2a]}`,
	warn: []string{"spec.zone: stored as zones"},
}, {
	name: "zone and zones together are refused",
	head: clusterHead,
	spec: `{syncMode: Push, zone: a, zones: [b]}`,
	err:  "spec.zone: duplicates zones",
}, {
	name: "every other name of an operation",
	head: interpreterHead,
	spec: `{customizations: {interpretReplica: {luaScript: a}, interpretComponent: {luaScript: b}, scale: {jsonPath: .c}, retain: {jsonPaths: [.d]},
		interpretStatus: {luaScript: e}, aggregateStatus: {luaScript: f}, health: {luaScript: g}, interpretDependency: {luaScript: h}}}`,
	want: `{customizations: {replicaResource: {luaScript: a}, componentResource: {luaScript: b}, replicaRevision: {jsonPath: .c}, retention: {jsonPaths: [.d]},
		statusReflection: {luaScript: e}, statusAggregation: {luaScript: f}, healthInterpretation: {luaScript: g}, dependencyInterpretation: {luaScript: h}}}`,
	warn: []string{
		"spec.customizations.interpretReplica: stored as replicaResource",
		"spec.customizations.interpretComponent: stored as componentResource",
		"spec.customizations.scale: stored as replicaRevision",
		"spec.customizations.retain: stored as retention",
		"spec.customizations.interpretStatus: stored as statusReflection",
		"spec.customizations.aggregateStatus: stored as statusAggregation",
		"spec.customizations.health: stored as healthInterpretation",
		"spec.customizations.interpretDependency: stored as dependencyInterpretation",
	},
}, {
	name: "both spellings of an operation are refused",
	head: interpreterHead,
	spec: `{customizations: {replicas: {luaScript: a}, replicaResource: {luaScript: b}}}`,
	err:  "spec.customizations.replicas: duplicates replicaResource",
}, {
	name: "two other spellings of an operation are refused",
	head: interpreterHead,
	spec: `{customizations: {replicas: {luaScript: a}, replica: {luaScript: a}}}`,
	err:  "spec.customizations.replica: duplicates replicas",
}, {
	name: "a CloneSet of v1alpha1 whose strategy is in the words of v1beta1, of which one is empty, and whose selector goes without saying",
	head: kruiseHead("v1alpha1", "CloneSet"),
	spec: `{updateStrategy: {type: RollingUpdate, rollingUpdate: null}, template: {metadata: {labels: {app: a}}}}`,
	want: `{updateStrategy: {type: ReCreate}, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}}}`,
	warn: []string{
		"spec.selector: not set; stored as the labels of the template, and immutable from now on",
		"spec.updateStrategy.type: stored as ReCreate",
	},
}, {
	name: "what v1beta1 says of an update",
	head: kruiseHead("v1alpha1", "CloneSet"),
	spec: `{selector: {}, updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 1, paused: true}}}`,
	want: `{selector: {}, updateStrategy: {type: InPlaceIfPossible, partition: 1, paused: true}}`,
	warn: []string{
		"spec.updateStrategy.type: stored as InPlaceIfPossible",
		"spec.updateStrategy.rollingUpdate.partition: stored as spec.updateStrategy.partition",
		"spec.updateStrategy.rollingUpdate.paused: stored as spec.updateStrategy.paused",
	},
}, {
	name: "a CloneSet of v1beta1 is in its own words",
	head: kruiseHead("v1beta1", "CloneSet"),
	spec: `{selector: {}, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}`,
}, {
	name: "v1alpha1 cannot wait for deletion",
	head: kruiseHead("v1alpha1", "CloneSet"),
	spec: `{updateStrategy: {type: OnDelete}}`,
	err:  "spec.updateStrategy.type: OnDelete exists only in v1beta1",
}, {
	name: "nor download images first",
	head: kruiseHead("v1alpha1", "CloneSet"),
	spec: `{updateStrategy: {rollingUpdate: {inPlaceUpdateStrategy: {imagePreDownloadTimeoutSeconds: 5}}}}`,
	err:  "spec.updateStrategy.inPlaceUpdateStrategy.imagePreDownloadTimeoutSeconds: exists only in v1beta1",
}, {
	name: "two partitions",
	head: kruiseHead("v1alpha1", "CloneSet"),
	spec: `{updateStrategy: {partition: 1, rollingUpdate: {partition: 2}}}`,
	err:  "spec.updateStrategy.rollingUpdate.partition: duplicates spec.updateStrategy.partition",
}, {
	name: "a StatefulSet without a selector",
	head: kruiseHead("v1beta1", "StatefulSet"),
	spec: `{template: {metadata: {labels: {app: a}}}}`,
	want: `{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}}}`,
	warn: []string{"spec.selector: not set; stored as the labels of the template, and immutable from now on"},
}, {
	name: "without labels there is nothing to select by, which the schema says",
	head: kruiseHead("v1beta1", "StatefulSet"),
	spec: `{template: {spec: {}}}`,
}, {
	name: "pools of another project's UnitedDeployment are subsets, and a bare pod is a CloneSet's",
	head: kruiseHead("v1alpha1", "UnitedDeployment"),
	spec: `{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c}]}}, topology: {pools: [{name: p, replicas: 2}]}}`,
	want: `{selector: {matchLabels: {app: a}}, topology: {subsets: [{name: p, replicas: 2}]}, template: {cloneSetTemplate: {metadata: {labels: {app: a}},
		spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c}]}}}}}}`,
	warn: []string{
		"spec.topology.pools: stored as subsets",
		"spec.template.spec: stored as spec.template.cloneSetTemplate.spec.template.spec; use the annotation argosy.io/subset-workload for another kind of workload",
	},
}, {
	name: "a bare pod beside a workload",
	head: kruiseHead("v1alpha1", "UnitedDeployment"),
	spec: `{template: {spec: {containers: []}, cloneSetTemplate: {spec: {}}}}`,
	err:  "spec.template.spec: duplicates spec.template.cloneSetTemplate",
}, {
	name: "a revision by its name alone, of this very version, and the policy that belongs to it",
	head: kruiseHead("v1beta1", "SidecarSet"),
	spec: `{injectionStrategy: {revision: v1, policy: Always}}`,
	want: `{customVersion: v1, injectionStrategy: {revision: {customVersion: v1, policy: Always}}}`,
	warn: []string{
		"spec.injectionStrategy.revision: stored as revision.customVersion",
		"spec.customVersion: not set; stored as v1, because injectionStrategy.revision refers to this version",
		"spec.injectionStrategy.policy: stored as spec.injectionStrategy.revision.policy",
	},
}, {
	name: "a policy of pulling images, which the schema refuses where it belongs",
	head: kruiseHead("v1beta1", "SidecarSet"),
	spec: `{injectionStrategy: {policy: IfNotPresent}}`,
	want: `{injectionStrategy: {revision: {policy: IfNotPresent}}}`,
	warn: []string{
		"spec.injectionStrategy.policy: stored as spec.injectionStrategy.revision.policy",
		"spec.injectionStrategy.policy: IfNotPresent is a value of containers[].imagePullPolicy, for pulling images; use Always or Partial here, which select the pods that get the revision",
	},
}, {
	name: "thresholds with a sign",
	head: "apiVersion: config.karmada.io/v1alpha1\nkind: ReplicaSchedulingPolicy\nmetadata: {name: r}\n",
	spec: `{reschedulePolicy: {threshold: {cpuUtilization: 80%, memoryUtilization: 75}}}`,
	want: `{reschedulePolicy: {threshold: {cpuUtilization: 80, memoryUtilization: 75}}}`,
	warn: []string{"spec.reschedulePolicy.threshold.cpuUtilization: stored as 80"},
}, {
	name: "the port of the pods is said by the Service",
	head: networkingHead("MultiClusterService"),
	spec: `{types: [CrossCluster], ports: [{name: http, port: 80, targetPort: 8080}, {name: https, port: 443}]}`,
	want: `{types: [CrossCluster], ports: [{name: http, port: 80}, {name: https, port: 443}]}`,
	warn: []string{"spec.ports[0].targetPort: stored as nothing, because the target port comes from the Service web in the same namespace"},
}, {
	name: "an Ingress in a template",
	head: networkingHead("MultiClusterIngress"),
	spec: `{template: {spec: {ingressClassName: nginx, rules: [{host: a.example.com}]}}}`,
	want: `{ingressClassName: nginx, rules: [{host: a.example.com}]}`,
	warn: []string{
		"spec.template.spec.ingressClassName: stored as spec.ingressClassName",
		"spec.template.spec.rules: stored as spec.rules",
	},
}, {
	name: "an Ingress in a template that says something else",
	head: networkingHead("MultiClusterIngress"),
	spec: `{ingressClassName: traefik, template: {spec: {ingressClassName: nginx}}}`,
	err:  "spec.template.spec.ingressClassName: duplicates spec.ingressClassName",
}, {
	name: "another kind is none of our business",
	head: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
	spec: `{customizations: {replicas: {luaScript: a}}}`,
}}

func networkingHead(kind string) string {
	return "apiVersion: networking.karmada.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: web}\n"
}

func TestNormalise(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			obj := parse(t, c.head, c.spec)
			before := obj.DeepCopy()
			changed, warnings, err := Normalise(obj)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error is %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.warn, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			want := c.want
			if want == "" {
				want = c.spec
			}
			if diff := cmp.Diff(parse(t, c.head, want).Object["spec"], obj.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if changed != (c.want != "") {
				t.Errorf("changed is %v", changed)
			}
			// What was merely added is not what anybody submitted.
			added := len(warnings) == 1 && strings.Contains(warnings[0], "not set")
			if _, annotated := obj.GetAnnotations()[wellknown.SubmittedFieldsAnnotation]; annotated != (changed && !added) {
				t.Errorf("annotated is %v, changed %v", annotated, changed)
			}

			once := obj.DeepCopy()
			if again, warnings, err := Normalise(obj); again || warnings != nil || err != nil {
				t.Errorf("the second run: changed %v, warnings %q, error %v", again, warnings, err)
			}
			if diff := cmp.Diff(once, obj); diff != "" {
				t.Errorf("the second run changed (-once +twice):\n%s", diff)
			}

			// What kubectl apply and kubectl diff send when nothing was edited: their fields again, on top of what is stored.
			overlay(obj.Object, before.Object)
			if _, _, err := Normalise(obj); err != nil {
				t.Fatalf("applied again: %v", err)
			}
			if diff := cmp.Diff(once, obj); diff != "" {
				t.Errorf("applied again, it is not as stored (-stored +applied):\n%s", diff)
			}
		})
	}
}

func TestSidecarSetNamesRequestedVersion(t *testing.T) {
	obj := parse(t, kruiseHead("v1alpha1", "SidecarSet"), `{injectionStrategy: {revision: v1}}`)
	if _, _, err := Normalise(obj); err != nil {
		t.Fatal(err)
	}
	if got := obj.GetLabels()[customVersionLabel]; got != "v1" {
		t.Errorf("the label says %q, want v1", got)
	}
}

func TestTheNamespaceOfASidecarSetIsDroppedOrMeantForItsPods(t *testing.T) {
	const everywhere = `; it injects into pods of all namespaces, not only of shop: set spec.namespaceSelector, or the annotation argosy.io/namespace-as-selector: "true", which creates the selector from metadata.namespace`
	const shop = `{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}`
	for _, c := range []struct {
		name, annotation, version, spec, want, warn, err string
	}{
		{"who says no more is told", "", "v1beta1", `{paused: true}`, `{paused: true}`,
			"metadata.namespace: removed, because a SidecarSet is cluster-scoped" + everywhere, ""},
		{"who says it otherwise is told less", "", "v1alpha1", `{namespace: shop}`, `{namespace: shop}`,
			"metadata.namespace: removed, because a SidecarSet is cluster-scoped", ""},
		{"who asks for it has it", "true", "v1beta1", `{}`, shop, "metadata.namespace: stored as spec.namespaceSelector", ""},
		{"and may say it twice", "true", "v1beta1", shop, shop, "metadata.namespace: stored as spec.namespaceSelector", ""},
		{"but not two things", "true", "v1beta1", `{namespaceSelector: {matchLabels: {team: a}}}`, "", "",
			"metadata.namespace: duplicates spec.namespaceSelector; remove one of them, or the annotation argosy.io/namespace-as-selector"},
	} {
		obj := parse(t, kruiseHead(c.version, "SidecarSet"), c.spec)
		obj.SetNamespace("shop")
		if c.annotation != "" {
			obj.SetAnnotations(map[string]string{wellknown.NamespaceAsSelectorAnnotation: c.annotation})
		}
		_, warnings, err := Normalise(obj)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v, want %s", c.name, err, c.err)
			}
			continue
		}
		if err != nil || obj.GetNamespace() != "" {
			t.Fatalf("%s: namespace %q, %v", c.name, obj.GetNamespace(), err)
		}
		if diff := cmp.Diff([]string{c.warn}, warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(parse(t, kruiseHead(c.version, "SidecarSet"), c.want).Object["spec"],
			obj.Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// kubectl apply sends the namespace with every patch, the stored object having none.
func TestTheNamespaceOfASidecarSetMayMoveWithItsAuthor(t *testing.T) {
	obj := parse(t, kruiseHead("v1beta1", "SidecarSet"), `{}`)
	obj.SetAnnotations(map[string]string{wellknown.NamespaceAsSelectorAnnotation: "true"})
	for _, namespace := range []string{"shop", "shop", "bank"} {
		obj.SetNamespace(namespace)
		if _, _, err := Normalise(obj); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedString(obj.Object, "spec", "namespaceSelector", "matchLabels",
			"kubernetes.io/metadata.name"); got != namespace {
			t.Errorf("selects the namespace %q, want %q", got, namespace)
		}
	}
}

func TestBarePodFollowsItsAnnotation(t *testing.T) {
	for kind, field := range map[string]string{"Deployment": "deploymentTemplate", "StatefulSet": "statefulSetTemplate",
		"AdvancedStatefulSet": "advancedStatefulSetTemplate", "Pod": ""} {
		obj := parse(t, kruiseHead("v1beta1", "UnitedDeployment"), `{template: {spec: {containers: []}}}`)
		obj.SetAnnotations(map[string]string{wellknown.SubsetWorkloadAnnotation: kind})
		_, _, err := Normalise(obj)
		if _, found, _ := unstructured.NestedMap(obj.Object, "spec", "template", field, "spec", "template",
			"spec"); found != (field != "") || (err == nil) != (field != "") {
			t.Errorf("%s: %v %v", kind, obj.Object["spec"], err)
		}
	}
}

// kubectl apply sends a patch of what changed: of a bare pod the list of its containers, say, without its labels.
func TestAChangedPodOfAUnitedDeploymentReplacesTheStoredOne(t *testing.T) {
	obj := parse(t, kruiseHead("v1alpha1", "UnitedDeployment"),
		`{template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: "1"}]}}}`)
	if _, _, err := Normalise(obj); err != nil {
		t.Fatal(err)
	}
	overlay(obj.Object, parse(t, kruiseHead("v1alpha1", "UnitedDeployment"),
		`{template: {spec: {containers: [{name: c, image: "2"}]}}}`).Object)
	if _, _, err := Normalise(obj); err != nil {
		t.Fatal(err)
	}
	pod, _, _ := unstructured.NestedMap(obj.Object, "spec", "template", "cloneSetTemplate", "spec", "template")
	want := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "2"}}}}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// tolerated is a toleration for a lost cluster.
func tolerated(taint string, seconds int) string {
	return fmt.Sprintf("{key: cluster.karmada.io/%s, operator: Exists, effect: NoExecute, tolerationSeconds: %d}", taint, seconds)
}

func TestEditedMigrationPolicyReplacesWhatItWasStoredAs(t *testing.T) {
	const migration = "{failover: {applicationMigrationPolicy: {decisionConditions: {tolerationSeconds: %d}, purgePolicy: %s}%s}, placement: {%s}}"
	const ofUser = "{purgeMode: Gracefully, statePreservation: {rules: []}}"
	both := tolerated("not-ready", 90) + ", " + tolerated("unreachable", 90)
	for _, c := range []struct{ name, own, placement, cluster, tolerations string }{
		{"what the hub set follows", "", "", "{purgeMode: Directly}", both},
		{"the user's cluster failover stays", ", cluster: " + ofUser, "", ofUser, both},
		{"the user's tolerations stay", "", "clusterTolerations: [" + tolerated("not-ready", 5) + "]",
			"{purgeMode: Directly}", tolerated("not-ready", 5) + ", " + tolerated("unreachable", 90)},
	} {
		obj := parse(t, policyHead, fmt.Sprintf(migration, 60, "Gracefully", c.own, c.placement))
		if _, _, err := Normalise(obj); err != nil {
			t.Fatal(err)
		}
		overlay(obj.Object, parse(t, policyHead, fmt.Sprintf(migration, 90, "Directly", c.own, c.placement)).Object)
		if _, _, err := Normalise(obj); err != nil {
			t.Fatal(err)
		}
		want := parse(t, policyHead, fmt.Sprintf(`{propagateDeps: true, placement: {clusterTolerations: [%s]}, failover: {
			application: {decisionConditions: {tolerationSeconds: 90}, purgeMode: Directly}, cluster: %s}}`,
			c.tolerations, c.cluster)).Object["spec"]
		if diff := cmp.Diff(want, obj.Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestMigrationPolicyWithoutATimeKeepsTolerations(t *testing.T) {
	obj := parse(t, policyHead, `{failover: {applicationMigrationPolicy: {decisionConditions: {tolerationSeconds: 60}}}}`)
	for range 2 {
		if _, _, err := Normalise(obj); err != nil {
			t.Fatal(err)
		}
		overlay(obj.Object, parse(t, policyHead, `{failover: {applicationMigrationPolicy: {purgePolicy: Never}}}`).Object)
	}
	want := parse(t, policyHead, fmt.Sprintf(`{clusterTolerations: [%s, %s]}`, tolerated("not-ready", 60),
		tolerated("unreachable", 60))).Object["spec"]
	if diff := cmp.Diff(want, child(obj.Object, "spec")["placement"]); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
}

func TestEditedSpellingReplacesTheStoredField(t *testing.T) {
	obj := parse(t, interpreterHead, `{customizations: {replicas: {luaScript: old}}}`)
	if _, _, err := Normalise(obj); err != nil {
		t.Fatal(err)
	}
	overlay(obj.Object, parse(t, interpreterHead, `{customizations: {replicas: {luaScript: new}}}`).Object)
	if _, _, err := Normalise(obj); err != nil {
		t.Fatal(err)
	}
	want := parse(t, interpreterHead, `{customizations: {replicaResource: {luaScript: new}}}`).Object["spec"]
	if diff := cmp.Diff(want, obj.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestAnotherSpellingMayTakeTheFirstOnesPlace(t *testing.T) {
	obj := parse(t, interpreterHead, `{customizations: {reviseReplica: {luaScript: old}}}`)
	if _, _, err := Normalise(obj); err != nil {
		t.Fatal(err)
	}
	overlay(obj.Object, parse(t, interpreterHead, `{customizations: {scale: {jsonPath: .spec.replicas}}}`).Object)
	if _, _, err := Normalise(obj); err != nil {
		t.Fatal(err)
	}
	want := parse(t, interpreterHead, `{customizations: {replicaRevision: {jsonPath: .spec.replicas}}}`).Object["spec"]
	if diff := cmp.Diff(want, obj.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if got, want := obj.GetAnnotations()[wellknown.SubmittedFieldsAnnotation],
		`{"spec.customizations.scale":{"jsonPath":".spec.replicas"}}`; got != want {
		t.Errorf("annotation is %s, want %s", got, want)
	}
}

func TestTheAnnotationStaysSmall(t *testing.T) {
	obj := parse(t, interpreterHead, `{customizations: {replicas: {luaScript: "`+strings.Repeat("x", 10_000)+
		`"}, scale: {jsonPath: .spec.replicas}}}`)
	if _, _, err := Normalise(obj); err != nil {
		t.Fatal(err)
	}
	want := `{"spec.customizations.replicas":"(10016 bytes)","spec.customizations.scale":{"jsonPath":".spec.replicas"}}`
	if got := obj.GetAnnotations()[wellknown.SubmittedFieldsAnnotation]; got != want {
		t.Errorf("annotation is %s, want %s", got, want)
	}
}

func TestShapesRefusedByTheSchemaPass(t *testing.T) {
	for _, head := range []string{policyHead, overrideHead, interpreterHead, clusterHead} {
		for _, spec := range []string{
			`3`, `null`, `[]`, `{}`, `{placement: 3, failover: [], customizations: x, overriders: 1, overrideRules: 2, zone: 4, taints: {}}`,
			`{placement: 3, failover: {applicationMigrationPolicy: {decisionConditions: {tolerationSeconds: 5}}}}`,
			`{placement: {clusterTolerations: [1]}, failover: {applicationMigrationPolicy: {decisionConditions: {tolerationSeconds: 5}}}}`,
			`{placement: {replicaScheduling: 1, spreadConstraints: [1, null, {spreadByField: 2}]}, failover: {application: 1, applicationMigrationPolicy: x}}`,
			`{placement: {replicaScheduling: {weightPreference: {staticWeightList: [1, {weight: 0}, {weight: 1}]}}}}`,
			`{overriders: {replicasOverrider: 3}, overrideRules: [1, {overriders: []}], resourceSelectors: 1}`,
			`{customizations: {replicas: 1, replica: null, retention: {jsonPaths: [1]}}, resourceSelectors: [1]}`,
		} {
			obj := parse(t, head, spec)
			_, _, _ = Normalise(obj) // must not panic
			_ = Advise(obj)
			_ = SetsReplicas(obj)
		}
	}
}

func TestAdvise(t *testing.T) {
	for _, c := range []struct{ name, head, spec, want string }{
		{"a selector without a name", policyHead,
			`{resourceSelectors: [{apiVersion: v1, kind: Pod, name: a}, {apiVersion: a/v1, kind: CloneSet}]}`,
			"spec.resourceSelectors[1]: selects every CloneSet, because it has neither name nor labelSelector"},
		{"a claim of a StatefulSet", policyHead,
			`{resourceSelectors: [{apiVersion: v1, kind: PersistentVolumeClaim, name: data-db-0}, {apiVersion: v1, kind: PersistentVolumeClaim, name: data}]}`,
			"spec.resourceSelectors[0]: data-db-0 looks like a claim of a StatefulSet; the StatefulSet creates its claims in each member, and a propagated claim conflicts with them"},
		{"fewer clusters than regions", policyHead,
			`{placement: {spreadConstraints: [{spreadByField: cluster, maxGroups: 1}, {spreadByField: region, minGroups: 2}, {spreadByField: zone, minGroups: 3}]}}`,
			"spec.placement.spreadConstraints[0]: maxGroups 1 is lower than minGroups 2 by region; 2 clusters are chosen"},
		{"as many clusters as regions", policyHead,
			`{placement: {spreadConstraints: [{spreadByField: cluster, maxGroups: 2}, {spreadByField: region, minGroups: 2}]}}`,
			""},
		{"a selector by label", policyHead, `{resourceSelectors: [{apiVersion: a/v1, kind: CloneSet, labelSelector: {}}]}`,
			""},
		{"a taint that the cluster's condition decides", clusterHead,
			`{taints: [{key: mine, effect: NoSchedule}, {key: cluster.karmada.io/not-ready, effect: NoSchedule}]}`,
			"spec.taints[1]: the hub adds and removes cluster.karmada.io/not-ready according to the cluster's condition"},
		{"retention of a field that rollouts are steered by", interpreterHead,
			`{customizations: {retention: {jsonPaths: [.status, .spec.updateStrategy]}}}`,
			"spec.customizations.retention.jsonPaths[1]: .spec.updateStrategy keeps the value of the member until the template changes it"},
		{"a script that does what it shall", interpreterHead,
			`{customizations: {replicaResource: {luaScript: "function GetReplicas(obj) return 1 end"}}}`, ""},
		{"a script whose only function has another name", interpreterHead,
			`{customizations: {replicaResource: {luaScript: "function ReplicasCount(obj) return 1 end"}}}`,
			"spec.customizations.replicaResource.luaScript: function ReplicasCount is used because it is the only one; Karmada requires another name"},
		{"a script without a function", interpreterHead, `{customizations: {replicaResource: {luaScript: "return 1"}}}`,
			"spec.customizations.replicaResource.luaScript: the script defines no function; it must define GetReplicas(obj)"},
		{"a script that is none, which is refused", interpreterHead,
			`{customizations: {replicaResource: {luaScript: "function"}}}`, ""},
	} {
		if got := strings.Join(Advise(parse(t, c.head, c.spec)), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func parse(t testing.TB, head, spec string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(head + "spec: " + strings.ReplaceAll(spec, "\t", " ") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

// overlay merges as a JSON merge patch does: objects by key, the rest replaced.
func overlay(target, patch map[string]any) {
	for key, value := range patch {
		inside, isObject := value.(map[string]any)
		if present, ok := target[key].(map[string]any); ok && isObject {
			overlay(present, inside)
			continue
		}
		target[key] = value
	}
}
