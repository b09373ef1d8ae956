package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/test/kit"
)

// pairs are the policies in both scopes: the head of one, in a namespace if it has one.
var pairs = map[string]struct {
	namespaced     bool
	id, finalizers string
}{
	"PropagationPolicy": {true, "propagationpolicy.karmada.io/permanent-id",
		"karmada.io/propagation-policy-controller"},
	"ClusterPropagationPolicy": {false, "clusterpropagationpolicy.karmada.io/permanent-id",
		"karmada.io/cluster-propagation-policy-controller"},
	"OverridePolicy":        {namespaced: true},
	"ClusterOverridePolicy": {namespaced: false},
}

// policyOf is a policy of a kind, which selects nothing that there is unless its spec says so.
func policyOf(t *testing.T, kind, ns, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := kit.Object(t, "apiVersion: policy.karmada.io/v1alpha1\nkind: "+kind+"\nmetadata: {name: "+name+"}")
	if pairs[kind].namespaced {
		u.SetNamespace(ns)
	}
	body := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &body); err != nil {
		t.Fatal(err)
	}
	if body["resourceSelectors"] == nil {
		body["resourceSelectors"] = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody"}}
	}
	u.Object["spec"] = body
	return u
}

var strict = client.FieldValidation(metav1.FieldValidationStrict)

func TestInvalidObjectGetsStandardError(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	propagation := map[string]string{
		`{placement: {clusterAffinity: {clusterNames: [a]}, clusterAffinities: [{affinityName: t}]}}`: "clusterAffinities cannot co-exist with clusterAffinity",
		`{placement: {clusterAffinities: [{affinityName: t}, {affinityName: t}]}}`: "each affinity term in a policy " +
			"must have a unique name",
		`{placement: {spreadConstraints: [{spreadByField: cluster}, {spreadByField: cluster}]}}`:                         "multiple cluster spread constraints are not allowed",
		`{placement: {spreadConstraints: [{spreadByField: cluster}, {spreadByField: region}, {spreadByField: region}]}}`: "multiple region spread constraints are not allowed",
		`{placement: {spreadConstraints: [{spreadByField: zone}]}}`:                                                      "the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled",
		`{placement: {spreadConstraints: [{spreadByField: cluster, spreadByLabel: x}]}}`:                                 "spreadByLabel should not co-exist with spreadByField",
		`{placement: {spreadConstraints: [{spreadByField: cluster, minGroups: -1}]}}`: "minGroups lower than 0 " +
			"is not allowed",
		`{placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]}}`:                      "maxGroups lower than minGroups is not allowed",
		`{placement: {spreadConstraints: [{spreadByField: rack}]}}`:                                                     `Unsupported value: "rack"`,
		`{placement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: rack, operator: In, values: [a]}]}}}}`: `unsupported key "rack", must be provider, region, or zone`,
		`{placement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: Exists}]}}}}`:          `unsupported operator "Exists", must be In or NotIn`,
		`{placement: {clusterTolerations: [{key: a, operator: Gt, value: "1"}]}}`:                                       `Unsupported value: "Gt"`,
		`{failover: {application: {decisionConditions: {tolerationSeconds: 1}}}}`: "application failover is set, " +
			"propagateDeps must be true",
		`{propagateDeps: true, failover: {application: {decisionConditions: {tolerationSeconds: -1}}}}`: "must be greater than or equal to 0",
		`{suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [a]}}}`:                 "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames",
		`{preemption: Always, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]}`:            "name cannot be empty if preemption is Always",
		`{resourceSelectors: [{kind: ConfigMap}]}`:                                                      "spec.resourceSelectors[0].apiVersion: Required value",
		`{resourceSelectors: [{apiVersion: v1}], placement: {spreadConstraints: [{}]}}`: "spec.resourceSelectors[0].kind: " +
			"Required value",
		`{resourceSelectors: []}`:     "should have at least 1 items",
		`{conflictResolution: Fight}`: `Unsupported value: "Fight"`,
		`{placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}}}`:        "greater than or equal to 1",
		`{placement: {clusterAffinity: {clusterName: [a]}}}`:                                                                `unknown field "spec.placement.clusterAffinity.clusterName"`,
		`{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Sometimes}}}`:          `Unsupported value: "Sometimes"`,
		`{schedulePriority: {priorityClassSource: PodPriorityClass, priorityClassName: a}}`:                                 `Unsupported value: "PodPriorityClass"`,
		`{placement: {workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}}}`:             "must not group by the same label",
		`{propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Never, gracePeriodSeconds: 1}}}`: "only takes effect when purgeMode is Gracefully",
	}
	rule := func(overriders string) string { return "{overrideRules: [{overriders: " + overriders + "}]}" }
	override := map[string]string{
		`{overrideRules: [], targetCluster: {}}`:                                                   "overrideRules and targetCluster can't co-exist",
		rule(`{imageOverrider: [{predicate: {path: spec/image}, component: Tag, operator: add}]}`): "path should be start with / character",
		`{overrideRules: [{}]}`:                                      "spec.overrideRules[0].overriders: Required value",
		rule(`{replicasOverrider: 3}`):                               "must be of type array",
		rule(`{imageOverrider: [{component: Name, operator: add}]}`): `Unsupported value: "Name"`,
		rule(`{labelsOverrider: [{operator: add, value: {a: "b c"}}]}`): "spec.overrideRules[0].overriders." +
			"labelsOverrider[0].value",
		rule(`{fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /x, operator: add, value: 1}], yaml: [{subPath: /x, operator: add, value: 1}]}]}`): "json and yaml cannot be set at the same time",
		rule(`{fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /x, operator: remove, value: 1}]}]}`):                                              "value is not allowed for remove operation",
		rule(`{fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /x, operator: add}]}]}`):                                                           "value is required for add or replace operation",
		rule(`{commandOverrider: [{containerName: c, operator: replace, value: [a]}]}`):                                                                  `Unsupported value: "replace"`,
	}
	for kind := range pairs {
		specs := propagation
		if strings.HasSuffix(kind, "OverridePolicy") {
			specs = override
		}
		for spec, want := range specs {
			u := policyOf(t, kind, ns, "invalid-"+ns, spec)
			refusedWith(t, fleet.Hub.Create(t.Context(), u, strict), want, kind+" "+spec)
		}
	}
	for _, kind := range []string{"PropagationPolicy", "OverridePolicy"} {
		u := policyOf(t, kind, ns, "invalid", `{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: other}]}`)
		refusedWith(t, fleet.Hub.Create(t.Context(), u, strict), `the namespace of a selector must be that of the policy, "`+
			ns+`"`, kind)
	}

	for text, want := range map[string]string{
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: ` + strings.Repeat("a", 49) +
			`}, spec: {syncMode: Push}}`: "must be no more than 48 characters",
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a.b}, spec: {syncMode: Push}}`:                                                                                                                                                                                                 "must not contain dots",
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {}}`:                                                                                                                                                                                                                 "spec.syncMode: Required value",
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {syncMode: Pulse}}`:                                                                                                                                                                                                  `Unsupported value: "Pulse"`,
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {syncMode: Push, apiEndpoint: "https://u:p@h"}}`:                                                                                                                                                                     "user information is not permitted",
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {syncMode: Push, proxyURL: "ftp://h"}}`:                                                                                                                                                                              `unsupported scheme "ftp", must be http, https, or socks5`,
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {syncMode: Push, zone: a, zones: [b]}}`:                                                                                                                                                                              "spec.zone: duplicates zones",
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {syncMode: Push, region: "a b"}}`:                                                                                                                                                                                    "spec.region: Invalid value",
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {syncMode: Push, taints: [{key: a, effect: PreferNoSchedule}]}}`:                                                                                                                                                     `Unsupported value: "PreferNoSchedule"`,
		`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {syncMode: Push, taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]}}`:                                                                                                                             "taints must be unique by key and effect pair",
		`{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, namespace: default, annotations: {resourcebinding.karmada.io/dependencies: "no"}}, spec: {resource: {apiVersion: v1, kind: A, name: a}}}`:                                                                              "annotation value must be a valid JSON",
		`{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, namespace: default}, spec: {resource: {apiVersion: v1, kind: A, name: a}, components: [{name: x, replicas: 1}, {name: x, replicas: 1}]}}`:                                                                              `Duplicate value: "x"`,
		`{apiVersion: work.karmada.io/v1alpha2, kind: ClusterResourceBinding, metadata: {name: a}, spec: {resource: {apiVersion: v1, kind: A, name: a}, gracefulEvictionTasks: [{fromCluster: a, reason: "1", producer: p}]}}`:                                                                                    "spec.gracefulEvictionTasks[0].reason",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: a}, spec: {target: {apiVersion: e/v1, kind: A}, customizations: {replicaResource: {luaScript: "function GetReplicas(obj) return 1"}}}}`:                                                                "'end' expected near <eof>",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: a}, spec: {customizations: {}}}`:                                                                                                                                                                       "spec.target: Required value",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ReplicaSchedulingPolicy, metadata: {name: a}, spec: {reschedulePolicy: {threshold: {}}}}`:                                                                                                                                                                 "must set cpuUtilization, memoryUtilization or both",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ReplicaSchedulingPolicy, metadata: {name: a}, spec: {reschedulePolicy: {interval: 60ms, threshold: {cpuUtilization: 80%}}}}`:                                                                                                                              "must be 1s or more",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ReplicaSchedulingPolicy, metadata: {name: a}, spec: {reschedulePolicy: {threshold: {cpuUtilization: 800}}}}`:                                                                                                                                              "should be less than or equal to 100",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.b.c, clientConfig: {url: "http://h"}, interpreterContextVersions: [v1alpha1], rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], kinds: [A]}]}]}`:          "'https' is the only allowed URL scheme",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.b.c, clientConfig: {}, interpreterContextVersions: [v1alpha1], rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], kinds: [A]}]}]}`:                         "exactly one of url or service is required",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.b.c, clientConfig: {url: "https://h"}, interpreterContextVersions: [v1alpha1], rules: [{operations: ["*", Retain], apiGroups: [""], apiVersions: [v1], kinds: [A]}]}]}`: "if '*' is present, must not specify other values",
		`{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.b.c, clientConfig: {url: "https://h"}, interpreterContextVersions: [v2], rules: [{operations: [Retain], apiGroups: [""], apiVersions: [v1], kinds: [A]}]}]}`:            "v1alpha1",
	} {
		refusedWith(t, fleet.Hub.Create(t.Context(), kit.Object(t, text), strict), want, text)
	}

	t.Run("two customizations of one operation", func(t *testing.T) {
		const one = `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: NAME}, spec: {target: {apiVersion: e.example.com/v1, kind: A}, customizations: {healthInterpretation: {luaScript: "function InterpretHealth(o) return true end"}}}}`
		first := fleet.Hub.Apply(t, strings.Replace(one, "NAME", "first-"+ns, 1))[0]
		kit.Eventually(t, "the second is refused", func() string { // the first must be known before
			u := kit.Object(t, strings.Replace(one, "NAME", "second-"+ns, 1))
			err := fleet.Hub.Create(t.Context(), u, client.DryRunAll)
			if want := "conflicting with InterpreterOperation(InterpretHealth) of existing ResourceInterpreterCustomization(" +
				first.GetName() + ")"; err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Sprint(err)
			}
			return ""
		})
	})
}

// refusedWith wants an error that a client takes for its own mistake, with these words.
func refusedWith(t *testing.T, err error, want, what string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%s is accepted, want %q", what, want)
	case !strings.Contains(err.Error(), want):
		t.Errorf("%s is refused with %q, want %q", what, err, want)
	case !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err):
		t.Errorf("%s is refused as %s, which no client takes for its own mistake", what, apierrors.ReasonForError(err))
	}
}

func TestDryRunReturnsTheResultAndChangesNothing(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	p := policyOf(t, "PropagationPolicy", ns, "dry", "{}")
	if err := fleet.Hub.Create(t.Context(), p, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if p.GetLabels()["propagationpolicy.karmada.io/permanent-id"] == "" || len(p.GetFinalizers()) != 1 {
		t.Errorf("the answer lacks what is stamped: %v %v", p.GetLabels(), p.GetFinalizers())
	}
	if fleet.Hub.Find(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "dry") != nil {
		t.Error("the policy is there")
	}

	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [m1]}}"))
	template := kit.Object(t, configMap(ns, "dry", "1"))
	kit.Eventually(t, "the answer says who would claim it", func() string { // the policy must be known before
		again := template.DeepCopy()
		if err := fleet.Hub.Create(t.Context(), again, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if again.GetAnnotations()["propagationpolicy.karmada.io/name"] != "p" {
			return fmt.Sprint(again.GetAnnotations())
		}
		return ""
	})
	if fleet.Hub.Find(t, "v1", "ConfigMap", ns, "dry") != nil || binding(t, ns, "dry-configmap") != nil ||
		fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "dry") != nil {
		t.Error("a dry run made something")
	}

	fleet.Hub.Apply(t, configMap(ns, "real", "1"))
	kit.Eventually(t, "the real one arrives", func() string { return lacks(t, "v1", "ConfigMap", ns, "real", "m1") })
	u := fleet.Hub.Find(t, "v1", "ConfigMap", ns, "real")
	version := u.GetResourceVersion()
	u.Object["data"] = map[string]any{"key": "2"}
	if err := fleet.Hub.Update(t.Context(), u, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Hub.Delete(t.Context(), u, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if got := fleet.Hub.Find(t, "v1", "ConfigMap", ns, "real"); got == nil || got.GetResourceVersion() != version ||
		got.GetDeletionTimestamp() != nil {
		t.Errorf("a dry update or deletion left %v", got)
	}

	protect := func(value string) {
		fleet.Hub.Change(t, "v1", "ConfigMap", ns, "real", func(u *unstructured.Unstructured) {
			u.SetLabels(withEntry(u.GetLabels(), "resourcetemplate.karmada.io/deletion-protected", value))
		})
	}
	protect("Always")
	for what, o := range map[string][]client.DeleteOption{"in earnest": nil, "dry": {client.DryRunAll}} {
		if err := fleet.Hub.Delete(t.Context(), u, o...); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected") {
			t.Errorf("%s, a protected template is deleted with %v", what, err)
		}
	}
	protect("")
}

// listener hears the warnings that a user reads.
type listener struct {
	mu    sync.Mutex
	heard []string
}

func (l *listener) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, text)
}

// take returns what was heard since the last time.
func (l *listener) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.heard = nil }()
	return strings.Join(l.heard, "\n")
}

// listening is a client of the hub for a user, the administrator if empty, and what that user is warned of.
func listening(t *testing.T, user string) (client.Client, *listener) {
	t.Helper()
	l := &listener{}
	config := rest.CopyConfig(fleet.Hub.Config)
	config.WarningHandlerWithContext = l
	config.Impersonate.UserName = user
	c, err := client.New(config, client.Options{Scheme: kit.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c, l
}

func TestGuideSpellingsAreStoredCanonicallyWithWarning(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	c, heard := listening(t, "")
	for what, spelling := range map[string]struct{ kind, spec, warns, want string }{
		"a dynamic weight beside the preference": {"PropagationPolicy", `
placement: {clusterAffinity: {clusterNames: [a]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Dynamic, dynamicWeight: AvailableReplicas}}`,
			"spec.placement.replicaScheduling.dynamicWeight: stored as weightPreference.dynamicWeight", `
placement: {clusterAffinity: {clusterNames: [a]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}`},
		"a region without clusters": {"ClusterPropagationPolicy",
			`placement: {spreadConstraints: [{spreadByField: region, minGroups: 2, maxGroups: 3}]}`,
			"{spreadByField: cluster, minGroups: 2}, which a region constraint requires",
			`placement: {spreadConstraints: [{spreadByField: region, minGroups: 2, maxGroups: 3}, {spreadByField: cluster, minGroups: 2}]}`},
		"replicas for a cluster": {"OverridePolicy", `
resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nobody}]
overrideRules: [{overriders: {replicasOverrider: [{operator: replace, value: 3}]}}]`, "stored as plaintext, replacing /spec/replicas",
			`overrideRules: [{overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 3}]}}]`},
		"labels added if absent": {"ClusterOverridePolicy",
			`overrideRules: [{overriders: {labelsOverrider: [{operator: addIfAbsent, value: {a: b}}]}}]`, "",
			`overrideRules: [{overriders: {labelsOverrider: [{operator: addIfAbsent, value: {a: b}}]}}]`},
	} {
		t.Run(what, func(t *testing.T) {
			u := policyOf(t, spelling.kind, ns, "guide-"+ns, spelling.spec)
			if err := c.Create(t.Context(), u, strict); err != nil {
				t.Fatal(err)
			}
			fleet.Hub.RemoveAtEnd(t, u)
			if output := heard.take(); !strings.Contains(output, spelling.warns) {
				t.Errorf("the user is warned of %q, want %q", output, spelling.warns)
			}
			var want map[string]any
			if err := yaml.Unmarshal([]byte(spelling.want), &want); err != nil {
				t.Fatal(err)
			}
			stored := fleet.Hub.Find(t, u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName())
			fields := stored.DeepCopy()
			unstructured.RemoveNestedField(fields.Object, "spec", "placement", "clusterTolerations") // the defaults
			for key, value := range want {
				if got := asJSON(t, kit.Field(fields, "spec", key)); got != asJSON(t, value) {
					t.Errorf("%s is stored as %s, want %s", key, got, asJSON(t, value))
				}
			}
			// Whoever writes the guide's text again, as a GitOps tool does, changes nothing.
			again := policyOf(t, spelling.kind, ns, "guide-"+ns, spelling.spec)
			if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(again), client.FieldOwner("gitops"),
				client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
			if again.GetGeneration() != stored.GetGeneration() {
				t.Errorf("the same text again made generation %d of %d: %s", again.GetGeneration(), stored.GetGeneration(),
					asJSON(t, again.Object["spec"]))
			}
		})
	}
	t.Run("an interpreter's", func(t *testing.T) {
		u := kit.Object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: guide-`+ns+`}, spec: {target: {apiVersion: g.example.com/v1, kind: A}, customizations: {replicas: {luaScript: "function GetReplicas(o) return 1 end"}}}}`)
		if err := c.Create(t.Context(), u, strict); err != nil {
			t.Fatal(err)
		}
		fleet.Hub.RemoveAtEnd(t, u)
		if output := heard.take(); !strings.Contains(output, "spec.customizations.replicas: stored as replicaResource") {
			t.Errorf("the user is warned of %q", output)
		}
		if kit.Field(u, "spec", "customizations", "replicaResource", "luaScript") == nil ||
			kit.Field(u, "spec", "customizations", "replicas") != nil {
			t.Errorf("stored as %v", u.Object["spec"])
		}
	})
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNamespacedPolicyNeedsRightsForClusterScopedKinds(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, strings.ReplaceAll(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: developer, namespace: NS}
rules: [{apiGroups: [policy.karmada.io], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: developer, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: developer}
subjects: [{kind: User, name: developer, apiGroup: rbac.authorization.k8s.io}]`, "NS", ns))
	developer, _ := listening(t, "developer")
	admin, heard := listening(t, "")
	scoped := func() *unstructured.Unstructured {
		return policyOf(t, "PropagationPolicy", ns, "p", `
resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: role-`+ns+`}]
placement: {clusterAffinity: {clusterNames: [m2]}}`)
	}
	kit.Eventually(t, "the developer is refused", func() string { // the role must be known before
		err := developer.Create(t.Context(), scoped())
		if !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "ClusterRole is cluster-scoped; use ClusterPropagationPolicy") {
			return fmt.Sprint(err)
		}
		return ""
	})
	p := scoped()
	if err := admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	fleet.Hub.RemoveAtEnd(t, p)
	if output := heard.take(); !strings.Contains(output,
		"ClusterRole is cluster-scoped; it is treated as if selected by a ClusterPropagationPolicy, which you may create") {
		t.Errorf("the administrator is warned of %q", output)
	}
	fleet.Hub.Apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: role-`+ns+`}}`)
	kit.Eventually(t, "it is honoured", func() string {
		return lacks(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "role-"+ns, "m2")
	})

	// A developer may have the policy select more of the namespace, and may not say what becomes of what only an
	// administrator could select.
	if err := developer.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	spec := p.Object["spec"].(map[string]any)
	spec["resourceSelectors"] = append(spec["resourceSelectors"].([]any),
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "more"})
	if err := developer.Update(t.Context(), p); err != nil {
		t.Errorf("a developer selects a ConfigMap as well: %v", err)
	}
	p.Object["spec"].(map[string]any)["conflictResolution"] = "Overwrite"
	if err := developer.Update(t.Context(), p); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "ClusterRole is cluster-scoped; use ClusterPropagationPolicy") {
		t.Errorf("a developer has a ClusterRole of members overwritten: %v", err)
	}
}

func TestBindingsAreServedInTheirOldVersionToo(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment",
		"{clusterAffinity: {clusterNames: [m1, m2]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}"))
	fleet.Hub.Apply(t, deployment(ns, "web", 4, "example.com/web:1"))
	fleet.Hub.Apply(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: `+ns+`}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: old-`+ns+`}]
  placement: {clusterAffinity: {clusterNames: [m1]}}`)
	fleet.Hub.Apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: old-`+ns+`}}`)
	for _, b := range []struct{ kind, namespace, name, clusters, replicas string }{
		{"ResourceBinding", ns, "web-deployment", "[map[name:m1 replicas:2] map[name:m2 replicas:2]]", "4"},
		{"ClusterResourceBinding", "", "old-" + ns + "-clusterrole", "[map[name:m1]]", "<nil>"},
	} {
		t.Run(b.kind, func(t *testing.T) {
			var old *unstructured.Unstructured
			kit.Eventually(t, "it is applied", func() string {
				old = fleet.Hub.Find(t, "work.karmada.io/v1alpha1", b.kind, b.namespace, b.name)
				if old == nil || !strings.Contains(fmt.Sprint(kit.Field(old, "status", "conditions")), "FullyAppliedSuccess") {
					return fmt.Sprint(old)
				}
				return ""
			})
			if got := fmt.Sprint(kit.Field(old, "spec", "clusters")); got != b.clusters {
				t.Errorf("clusters %s, want %s", got, b.clusters)
			}
			if got := fmt.Sprint(kit.Field(old, "spec", "resource", "replicas")); got != b.replicas {
				t.Errorf("replicas %s, want %s", got, b.replicas)
			}
			if kit.Field(old, "status", "aggregatedStatus") == nil {
				t.Error("there is no aggregated status")
			}
			var list unstructured.UnstructuredList
			list.SetAPIVersion("work.karmada.io/v1alpha1")
			list.SetKind(b.kind + "List")
			if err := fleet.Hub.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool {
				return u.GetName() == b.name && u.GetAPIVersion() == "work.karmada.io/v1alpha1"
			}) {
				t.Errorf("the list of %d lacks it", len(list.Items))
			}

			before := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", b.kind, b.namespace, b.name)
			old.SetLabels(withEntry(old.GetLabels(), "written-as", "v1alpha1"))
			if err := fleet.Hub.Update(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			after := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", b.kind, b.namespace, b.name)
			if after.GetLabels()["written-as"] != "v1alpha1" {
				t.Errorf("the label is not written: %v", after.GetLabels())
			}
			if got, want := asJSON(t, after.Object["spec"]), asJSON(t, before.Object["spec"]); got != want {
				t.Errorf("a write in the old version made\n%s of\n%s", got, want)
			}
		})
	}
}

// withEntry returns a copy of m with one more entry.
func withEntry(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

func TestKubectlShowsOurKindsAsItShowsKarmadas(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [m1]}}"))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "it is applied", func() string { return placed(t, ns, "c-configmap", "m1") })
	fleet.Hub.Apply(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: table-`+ns+`}, spec: {target: {apiVersion: t.example.com/v1, kind: A}, customizations: {}}}`)

	c := kubernetes.NewForConfigOrDie(fleet.Hub.Config)
	table := func(path string) *metav1.Table {
		t.Helper()
		raw, err := c.RESTClient().Get().AbsPath(path).SetHeader("Accept",
			"application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := &metav1.Table{}
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const policies, work, config = "/apis/policy.karmada.io/v1alpha1/", "/apis/work.karmada.io/",
		"/apis/config.karmada.io/v1alpha1/"
	for path, want := range map[string]string{
		policies + "propagationpolicies":                      "Name CONFLICT-RESOLUTION PRIORITY AGE",
		policies + "clusterpropagationpolicies":               "Name CONFLICT-RESOLUTION PRIORITY AGE",
		policies + "overridepolicies":                         "Name Age",
		policies + "clusteroverridepolicies":                  "Name Age",
		work + "v1alpha2/resourcebindings":                    "Name SCHEDULED FULLYAPPLIED AGE",
		work + "v1alpha2/clusterresourcebindings":             "Name SCHEDULED FULLYAPPLIED AGE",
		work + "v1alpha1/works":                               "Name WORKLOAD-KIND APPLIED AGE",
		config + "resourceinterpretercustomizations":          "Name TARGET-API-VERSION TARGET-KIND AGE",
		config + "resourceinterpreterwebhookconfigurations":   "Name Age",
		"/apis/multicluster.x-k8s.io/v1alpha1/serviceexports": "Name Age",
		"/apis/multicluster.x-k8s.io/v1alpha1/serviceimports": "Name Type IP Age",
		"/apis/cluster.karmada.io/v1alpha1/clusters":          "Name Version Mode Ready Age Taints +Zones +Region +Provider +API-Endpoint +Proxy-URL",
	} {
		var columns []string
		for _, column := range table(path).ColumnDefinitions {
			name := column.Name
			if column.Priority > 0 {
				name = "+" + name
			}
			columns = append(columns, name)
		}
		if got := strings.Join(columns, " "); got != want {
			t.Errorf("%s shows %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{
		policies + "namespaces/" + ns + "/propagationpolicies/p":             "p Abort 0",
		work + "v1alpha2/namespaces/" + ns + "/resourcebindings/c-configmap": "c-configmap True True",
		config + "resourceinterpretercustomizations/table-" + ns:             "table-" + ns + " t.example.com/v1 A",
		"/apis/cluster.karmada.io/v1alpha1/clusters/m1": "m1 " +
			clusterOf(t, "m1").Status.KubernetesVersion + " Push True",
	} {
		var cells []string
		for _, cell := range table(path).Rows[0].Cells {
			cells = append(cells, fmt.Sprint(cell))
		}
		if got := strings.Join(cells, " "); !strings.HasPrefix(got, want) {
			t.Errorf("%s shows %q, want %q", path, got, want)
		}
	}

	_, lists, err := c.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if (strings.Contains(list.GroupVersion, "karmada.io/") || strings.Contains(list.GroupVersion, "argosy.io/") ||
				strings.Contains(list.GroupVersion, "open-cluster-management.io/") ||
				strings.HasPrefix(list.GroupVersion, "multicluster.")) && !strings.Contains(r.Name, "/") {
				shown[list.GroupVersion+" "+r.Name] = fmt.Sprintf("%s %v %v %v", r.Kind, r.Namespaced, r.ShortNames, r.Categories)
			}
		}
	}
	for name, want := range map[string]string{
		"policy.karmada.io/v1alpha1 propagationpolicies":        "PropagationPolicy true [pp] [karmada-io]",
		"policy.karmada.io/v1alpha1 clusterpropagationpolicies": "ClusterPropagationPolicy false [cpp] [karmada-io]",
		"policy.karmada.io/v1alpha1 overridepolicies":           "OverridePolicy true [op] [karmada-io]",
		"policy.karmada.io/v1alpha1 clusteroverridepolicies":    "ClusterOverridePolicy false [cop] [karmada-io]",
		"policy.karmada.io/v1alpha1 clustertaintpolicies":       "ClusterTaintPolicy false [] [karmada-io]",
		"policy.karmada.io/v1alpha1 federatedresourcequotas":    "FederatedResourceQuota true [] [karmada-io]",
		"work.karmada.io/v1alpha2 resourcebindings":             "ResourceBinding true [rb] [karmada-io]",
		"work.karmada.io/v1alpha2 clusterresourcebindings":      "ClusterResourceBinding false [crb] [karmada-io]",
		"work.karmada.io/v1alpha1 resourcebindings":             "ResourceBinding true [rb] [karmada-io]",
		"work.karmada.io/v1alpha1 clusterresourcebindings":      "ClusterResourceBinding false [crb] [karmada-io]",
		"work.karmada.io/v1alpha1 works":                        "Work true [wk] [karmada-io]",
		"config.karmada.io/v1alpha1 resourceinterpretercustomizations": "ResourceInterpreterCustomization " +
			"false [ric] [karmada-io]",
		"config.karmada.io/v1alpha1 resourceinterpreterwebhookconfigurations": "ResourceInterpreterWebhookConfiguration " +
			"false [] [karmada-io]",
		"config.karmada.io/v1alpha1 replicaschedulingpolicies": "ReplicaSchedulingPolicy false [rsp] [karmada-io]",
		"cluster.karmada.io/v1alpha1 clusters":                 "Cluster false [] []",
		"apps.karmada.io/v1alpha1 workloadrebalancers":         "WorkloadRebalancer false [] []",
		"search.karmada.io/v1alpha1 resourceregistries":        "ResourceRegistry false [] []",
		"remedy.karmada.io/v1alpha1 remedies":                  "Remedy false [] [karmada-io]",
		"autoscaling.karmada.io/v1alpha1 federatedhpas":        "FederatedHPA true [fhpa] [karmada-io]",
		"autoscaling.karmada.io/v1alpha1 cronfederatedhpas":    "CronFederatedHPA true [cronfhpa] [karmada-io]",
		"networking.karmada.io/v1alpha1 multiclusterservices":  "MultiClusterService true [mcs] [karmada-io]",
		"networking.karmada.io/v1alpha1 multiclusteringresses": "MultiClusterIngress true [mci] [karmada-io]",
		"multicluster.x-k8s.io/v1alpha1 serviceexports":        "ServiceExport true [svcex] []",
		"multicluster.x-k8s.io/v1alpha1 serviceimports":        "ServiceImport true [svcim] []",
		"multicluster.x-k8s.io/v1alpha1 clusterprofiles":       "ClusterProfile true [] []",
		"multicluster.x-k8s.io/v1alpha1 placementdecisions":    "PlacementDecision true [] []",
		"release.argosy.io/v1alpha1 enclosedmanifests":         "EnclosedManifest false [] []",
		"release.argosy.io/v1alpha1 releases":                  "Release true [rel] []",
		"release.argosy.io/v1alpha1 releasestrategies":         "ReleaseStrategy true [rst] []",
		"release.argosy.io/v1alpha1 releaseapprovals":          "ReleaseApproval true [rap] []",
		"release.argosy.io/v1alpha1 releaserevisions":          "ReleaseRevision true [rrev] []",
		"release.argosy.io/v1alpha1 releaseguards":             "ReleaseGuard false [rgd] []",
		"release.argosy.io/v1alpha1 releasechecks":             "ReleaseCheck true [rck] []",
		"work.open-cluster-management.io/v1 manifestworks":     "ManifestWork true [] []",
		"work.open-cluster-management.io/v1alpha1 manifestworkreplicasets": "ManifestWorkReplicaSet " +
			"true [mwrs] []",
		"cluster.open-cluster-management.io/v1 managedclusters": "ManagedCluster " +
			"false [mcl mcls] []",
		"cluster.open-cluster-management.io/v1beta2 managedclustersets": "ManagedClusterSet " +
			"false [mclset mclsets] []",
		"cluster.open-cluster-management.io/v1beta2 managedclustersetbindings": "ManagedClusterSetBinding " +
			"true [mclsetbinding mclsetbindings] []",
		"cluster.open-cluster-management.io/v1beta1 placements":            "Placement true [] []",
		"cluster.open-cluster-management.io/v1beta1 placementdecisions":    "PlacementDecision true [] []",
		"cluster.open-cluster-management.io/v1alpha1 addonplacementscores": "AddOnPlacementScore true [] []",
		"addon.open-cluster-management.io/v1alpha1 managedclusteraddons": "ManagedClusterAddOn " +
			"true [mca mcas] []",
		"addon.open-cluster-management.io/v1beta1 managedclusteraddons": "ManagedClusterAddOn " +
			"true [mca mcas] []",
		"addon.open-cluster-management.io/v1alpha1 clustermanagementaddons": "ClusterManagementAddOn " +
			"false [cma cmas] []",
		"addon.open-cluster-management.io/v1alpha1 addondeploymentconfigs": "AddOnDeploymentConfig true [] []",
		"addon.open-cluster-management.io/v1alpha1 addontemplates":         "AddOnTemplate false [] []",
		"addon.open-cluster-management.io/v1beta1 clustermanagementaddons": "ClusterManagementAddOn " +
			"false [cma cmas] []",
		"addon.open-cluster-management.io/v1beta1 addondeploymentconfigs": "AddOnDeploymentConfig true [] []",
		"addon.open-cluster-management.io/v1beta1 addontemplates":         "AddOnTemplate false [] []",
	} {
		if shown[name] != want {
			t.Errorf("%s is %q, want %q", name, shown[name], want)
		}
		delete(shown, name)
	}
	if len(shown) > 0 {
		t.Errorf("unexpected kinds: %v", shown)
	}
	for _, path := range []string{"/openapi/v3/apis/policy.karmada.io/v1alpha1",
		"/openapi/v3/apis/work.karmada.io/v1alpha2"} {
		if raw, err := c.RESTClient().Get().AbsPath(path).DoRaw(t.Context()); err != nil ||
			!strings.Contains(string(raw), "karmada.io") {
			t.Errorf("%s: %v, %d bytes", path, err, len(raw))
		}
	}
}

func TestRepeatedApplyOfAGitOpsToolChangesNothing(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	texts := map[string]string{
		"policy": policy(ns, "p", "v1", "ConfigMap",
			"{clusterAffinity: {clusterNames: [m1]}, spreadConstraints: [{maxGroups: 1}], replicaScheduling: {replicaSchedulingType: Divided}}"),
		"override": policyOfText(t, "OverridePolicy", ns, "o",
			"{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], overrideRules: [{overriders: {plaintext: [{path: /data/extra, operator: add, value: x}]}}]}"),
		"template":  configMap(ns, "c", "1"),
		"unclaimed": strings.Replace(configMap(ns, "other", "1"), "v1\nkind: ConfigMap", "v1\nkind: Secret", 1),
	}
	apply := func(what string, force bool) *unstructured.Unstructured {
		t.Helper()
		u := kit.Object(t, texts[what])
		if what == "unclaimed" {
			delete(u.Object, "data")
		}
		o := []client.PatchOption{client.FieldOwner("gitops"), strict}
		if force {
			o = append(o, client.ForceOwnership)
		}
		//lint:ignore SA1019 its successor takes no field validation
		if err := fleet.Hub.Patch(t.Context(), u, client.Apply, o...); err != nil {
			t.Fatalf("apply the %s: %v", what, err)
		}
		return u
	}
	for _, what := range []string{"policy", "override", "template", "unclaimed"} {
		fleet.Hub.RemoveAtEnd(t, apply(what, false))
	}
	kit.Eventually(t, "it arrives, overridden", func() string {
		if got := kit.Field(fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c"), "data", "extra"); got != "x" {
			return fmt.Sprint(got)
		}
		return placed(t, ns, "c-configmap", "m1")
	})
	for what := range texts {
		before := apply(what, false)
		for _, force := range []bool{false, true, false} {
			after := apply(what, force)
			if after.GetResourceVersion() != before.GetResourceVersion() {
				t.Errorf("the %s changes when it is applied again: %v, then %v", what, before.Object, after.Object)
			}
		}
	}
	claimed := func() string {
		if got := fleet.Hub.Find(t, "v1", "ConfigMap", ns,
			"c").GetAnnotations()["propagationpolicy.karmada.io/name"]; got != "p" {
			return fmt.Sprintf("claimed by %q", got)
		}
		return ""
	}
	if wrong := claimed(); wrong != "" {
		t.Error(wrong)
	}

	// What the tool changes goes through; what the tool does not say stays.
	texts["template"] = configMap(ns, "c", "2")
	apply("template", false)
	kit.Eventually(t, "a change goes through", func() string {
		if got := kit.Field(fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c"), "data", "key"); got != "2" {
			return fmt.Sprint(got)
		}
		return claimed()
	})

	// A tool that replaces the whole object takes the claim away; it comes back.
	u := kit.Object(t, configMap(ns, "c", "3"))
	u.SetResourceVersion(fleet.Hub.Find(t, "v1", "ConfigMap", ns, "c").GetResourceVersion())
	for {
		err := fleet.Hub.Update(t.Context(), u)
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		u.SetResourceVersion(fleet.Hub.Find(t, "v1", "ConfigMap", ns, "c").GetResourceVersion())
	}
	kit.Eventually(t, "a claim that is taken away comes back", claimed)
	kit.Eventually(t, "and the change goes through", func() string {
		if got := kit.Field(fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c"), "data", "key"); got != "3" {
			return fmt.Sprint(got)
		}
		return ""
	})

	// An update of a policy by apply keeps what the hub stamped.
	texts["policy"] = policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [m1, m2]}}")
	p := apply("policy", false)
	if p.GetLabels()["propagationpolicy.karmada.io/permanent-id"] == "" || len(p.GetFinalizers()) != 1 {
		t.Errorf("the policy lost its stamps: %v %v", p.GetLabels(), p.GetFinalizers())
	}
	kit.Eventually(t, "it follows", func() string { return lacks(t, "v1", "ConfigMap", ns, "c", "m1", "m2") })
}

// policyOfText is policyOf as text.
func policyOfText(t *testing.T, kind, ns, name, spec string) string {
	t.Helper()
	b, err := yaml.Marshal(policyOf(t, kind, ns, name, spec).Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
