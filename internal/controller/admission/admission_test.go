package admission

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

const (
	ppID  = "propagationpolicy.karmada.io/permanent-id"
	cppID = "clusterpropagationpolicy.karmada.io/permanent-id"
)

// pp returns a PropagationPolicy in namespace default, cpp a cluster policy; each with an id that is its name.
func pp(t *testing.T, name, spec string) *unstructured.Unstructured {
	return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: `+name+
		`, namespace: default, labels: {`+ppID+`: `+name+`}}, spec: `+spec+`}`)
}

func cpp(t *testing.T, name, spec string) *unstructured.Unstructured {
	return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: `+name+
		`, labels: {`+cppID+`: `+name+`}}, spec: `+spec+`}`)
}

const configMaps = `{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}`

func TestPoliciesAreNormalisedDefaultedAndIdentified(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		stored := h.create(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: default, labels: {` + ppID + `: copied}},
		spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c}], placement: {spreadConstraints: [{maxGroups: 2}], replicaScheduling: {}}}}`)
		id := stored.GetLabels()[ppID]
		if len(id) != 36 {
			t.Errorf("permanent id is %q, want a UUID of its own", id)
		}
		if diff := cmp.Diff([]string{"karmada.io/propagation-policy-controller"}, stored.GetFinalizers()); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
		want := object(t, `{kind: x, spec: {conflictResolution: Abort, preemption: Never, priority: 0, schedulerName: default-scheduler,
		overriders: null, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c, namespace: default}],
		placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}], replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}}`)
		delete(want.Object["spec"].(map[string]any), "overriders")
		if diff := cmp.Diff(want.Object["spec"], stored.Object["spec"]); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}

		again, warnings, err := h.write("admin", stored, stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored, again); diff != "" || warnings != nil {
			t.Errorf("an update that changes nothing (-stored +again):\n%s\nwarnings %q", diff, warnings)
		}

		changed := stored.DeepCopy()
		changed.SetLabels(nil)
		h.refuses("admin", changed, stored, "label "+ppID+" is required")
		changed.SetLabels(map[string]string{ppID: "other"})
		h.refuses("admin", changed, stored, "label "+ppID+" is immutable")
		changed = stored.DeepCopy()
		changed.Object["spec"].(map[string]any)["schedulerName"] = "other"
		h.refuses("admin", changed, stored, "the schedulerName should not be updated")
		now := metav1.Now()
		going := changed.DeepCopy() // as it cannot be written any more
		going.SetDeletionTimestamp(&now)
		gone := going.DeepCopy()
		gone.SetFinalizers(nil)
		if _, _, err := h.write("admin", gone, going); err != nil {
			t.Errorf("the finalizer of a policy that goes cannot be removed: %v", err)
		}
	})
}

// A finalizer keeps a policy that was deleted, and what it says counts until it is gone.
func TestObjectsInDeletionAreStillValidated(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		policy := func(path string) *unstructured.Unstructured {
			return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: shop, name: o, finalizers: [example.com/mine]},
			spec: {overrideRules: [{overriders: {plaintext: [{path: `+path+`, operator: replace, value: x}]}}]}}`)
		}
		stored, _, err := h.write("admin", policy("/data/a"), nil)
		if err != nil {
			t.Fatal(err)
		}
		now := metav1.Now()
		stored.SetDeletionTimestamp(&now)
		changed := policy("/kind")
		changed.SetDeletionTimestamp(&now)
		h.refuses("admin", changed, stored, "reaches kind")
	})
}

func TestRefusalsAreFieldErrorsOfTheAPIServer(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		_, _, err := h.write("admin", object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: p},
		spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {}, clusterAffinities: [{affinityName: a}]}}}`), nil)
		status := apierrors.APIStatus(nil)
		if s, ok := err.(apierrors.APIStatus); ok {
			status = s
		} else {
			t.Fatalf("error is %T: %v", err, err)
		}
		if status.Status().Code != http.StatusUnprocessableEntity || len(status.Status().Details.Causes) != 1 ||
			status.Status().Details.Causes[0].Field != "spec.placement.clusterAffinities" {
			t.Errorf("status %+v", status.Status())
		}
		if want := `ClusterPropagationPolicy.policy.karmada.io "p" is invalid: `; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %q does not begin with %q", err, want)
		}
		h.refuses("admin", object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: r},
		spec: {target: {apiVersion: v1, kind: Pod}, customizations: {replicas: {luaScript: a}, replicaResource: {luaScript: b}}}}`), nil,
			`ResourceInterpreterCustomization.config.karmada.io "r" is invalid: spec.customizations.replicas: duplicates replicaResource`)
		_, _, err = h.write("admin", object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: r},
		spec: {target: {apiVersion: v1, kind: Pod}, customizations: {replicas: {luaScript: a}, replicaResource: {luaScript: b}}}}`), nil)
		want := []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.customizations.replicas",
			Message: "duplicates replicaResource"}}
		if diff := cmp.Diff(want, err.(apierrors.APIStatus).Status().Details.Causes); diff != "" {
			t.Errorf("causes, which clients print (-want +got):\n%s", diff)
		}
		h.refuses("admin", pp(t, "p", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {replicaScheduling: {replicaDivisionPreference: Whatever}}}`), nil,
			`spec.placement.replicaScheduling.replicaDivisionPreference: Unsupported value: "Whatever"`)
		h.refuses("admin", pp(t, "p", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}}}`), nil,
			`staticWeightList[0].weight: Invalid value: 0: spec.placement.replicaScheduling.weightPreference.staticWeightList[0].weight in body should be greater than or equal to 1`)
	})
}

func TestAClusterScopedSelectionStaysApproved(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		stored := h.create(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: default},
		spec: {resourceSelectors: [{apiVersion: v1, kind: Namespace, name: team, namespace: default}]}}`)
		selectors := stored.Object["spec"].(map[string]any)["resourceSelectors"].([]any)
		if ns, found := selectors[0].(map[string]any)["namespace"]; found {
			t.Errorf("the selector of a Namespace has namespace %q", ns)
		}
		labelled := stored.DeepCopy()
		labelled.SetAnnotations(map[string]string{"a": "b"})
		if _, warnings, err := h.write("developer", labelled, stored); err != nil || warnings != nil {
			t.Errorf("an update of something else: error %v, warnings %q", err, warnings)
		}
		// What becomes of it in members is not for those to say who could not have selected it.
		for _, change := range []string{"conflictResolution: Overwrite", "placement: {clusterAffinity: {clusterNames: [m1]}}",
			"preemption: Always", "preserveResourcesOnDeletion: false"} {
			steered := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: default},
			spec: {resourceSelectors: [{apiVersion: v1, kind: Namespace, name: team}], `+change+`}}`)
			steered.SetLabels(stored.GetLabels())
			h.refuses("developer", steered, stored, "Namespace is cluster-scoped; use ClusterPropagationPolicy")
		}
		grown := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: default},
		spec: {resourceSelectors: [{apiVersion: v1, kind: Namespace, name: kube-system}]}}`)
		grown.SetLabels(stored.GetLabels())
		h.refuses("developer", grown, stored, "Namespace is cluster-scoped; use ClusterPropagationPolicy")
		for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
			h.refuses("developer", object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy,
				metadata: {name: rights, namespace: shop}, spec: {resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1,
				kind: `+kind+`, name: all}]}}`), nil, kind+" is cluster-scoped; use ClusterPropagationPolicy")
		}
	})
}

func TestSelectingQuotasNeedsRightToChangeThem(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		const refusal = "you need permission to update resourcequotas"
		policy := func(kind, namespace, selectors string) *unstructured.Unstructured {
			p := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: `+kind+
				`, metadata: {name: p}, spec: {resourceSelectors: [`+selectors+`]}}`)
			p.SetNamespace(namespace)
			return p
		}
		const quota, configMap = `{apiVersion: v1, kind: ResourceQuota, name: bound}`, `{apiVersion: v1, kind: ConfigMap}`
		h.refuses("developer", policy("PropagationPolicy", "shop", quota), nil, refusal, `in namespace "shop"`)
		h.mayCreateCPP["developer"] = true
		h.refuses("developer", policy("ClusterPropagationPolicy", "", quota), nil, refusal, "in all namespaces")
		if _, _, err := h.write("developer", policy("PropagationPolicy", "shop", configMap), nil); err != nil {
			t.Errorf("a policy of another kind: %v", err)
		}
		harmless := h.create(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: shop}, spec: {resourceSelectors: [` + configMap + `]}}`)
		grown := policy("PropagationPolicy", "shop", configMap+","+quota)
		grown.SetLabels(harmless.GetLabels())
		h.refuses("developer", grown, harmless, refusal)
		approved, _, err := h.write("admin", policy("PropagationPolicy", "shop", quota), nil)
		if err != nil {
			t.Fatal(err)
		}
		same := policy("PropagationPolicy", "shop", quota)
		same.SetLabels(approved.GetLabels())
		same.SetAnnotations(map[string]string{"a": "b"})
		if _, _, err := h.write("developer", same, approved); err != nil {
			t.Errorf("an update of something else: %v", err)
		}
		wider := policy("PropagationPolicy", "shop", `{apiVersion: v1, kind: ResourceQuota}`)
		wider.SetLabels(approved.GetLabels())
		h.refuses("developer", wider, approved, refusal)
	})
}

func TestClusterScopedOverrideNeedsClusterOverrideRights(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		policy := func(app string) *unstructured.Unstructured {
			return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: o, namespace: default}, spec: {
			resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, name: s, namespace: default}, {apiVersion: v1, kind: ConfigMap, name: c}],
			overrideRules: [{overriders: {plaintext: [{path: /spec/selector/matchLabels/app, operator: replace, value: `+app+`}]}}]}}`)
		}
		h.refuses("developer", policy("a"), nil, "SidecarSet is cluster-scoped; use ClusterOverridePolicy")
		stored, warnings, err := h.write("admin", policy("a"), nil)
		if err != nil || len(warnings) != 1 ||
			warnings[0] != "spec.resourceSelectors[0]: SidecarSet is cluster-scoped; it is treated as if selected by a ClusterOverridePolicy, which you may create" {
			t.Fatalf("error %v, warnings %q", err, warnings)
		}
		var namespaces []string
		for _, s := range stored.Object["spec"].(map[string]any)["resourceSelectors"].([]any) {
			ns, _, _ := unstructured.NestedString(s.(map[string]any), "namespace")
			namespaces = append(namespaces, ns)
		}
		if diff := cmp.Diff([]string{"", "default"}, namespaces); diff != "" {
			t.Errorf("namespaces of the selectors stored (-want +got):\n%s", diff)
		}
		labelled := policy("a")
		labelled.SetLabels(map[string]string{"a": "b"})
		if _, warnings, err := h.write("developer", labelled, stored); err != nil || warnings != nil {
			t.Errorf("an update of something else: error %v, warnings %q", err, warnings)
		}
		h.refuses("developer", policy("b"), stored, "SidecarSet is cluster-scoped; use ClusterOverridePolicy")
		h.refuses("admin", object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: o, namespace: default},
		spec: {resourceSelectors: [{apiVersion: v1, kind: Namespace, name: team}]}}`), nil, "Namespace is cluster-scoped; use ClusterOverridePolicy")
	})
}

func TestReplicasOverridersGiveWayToTheScheduler(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t,
			pp(t, "divides", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx, namespace: default}], placement: {replicaScheduling: {replicaSchedulingType: Divided}}}`),
			pp(t, "copies", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: other, namespace: default}], placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}}`))
		override := func(selector string) *unstructured.Unstructured {
			return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: o, namespace: default},
			spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment`+selector+`}], overrideRules: [{overriders: {replicasOverrider: [{value: 3}]}}]}}`)
		}
		const refusal = "replicasOverrider: the replicas of this Deployment are divided by propagation policy default/divides"
		h.refuses("admin", override(", name: nginx"), nil, "spec.resourceSelectors[0]: Forbidden", refusal)
		h.refuses("admin", override(""), nil, refusal)
		if _, _, err := h.write("admin", override(", name: other"), nil); err != nil {
			t.Errorf("replicas that are copied: %v", err)
		}
		forced := override(", name: nginx")
		forced.SetAnnotations(map[string]string{wellknown.OverrideReplicasAnnotation: dialect.OverrideReplicasForce})
		if _, _, err := h.write("admin", forced, nil); err != nil {
			t.Errorf("forced: %v", err)
		}
	})
}

func TestOverridersKeepTheirValues(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		stored := h.create(`{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: o, namespace: default},
		spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: ConfigMap, namespace: default}],
		overrideRules: [{overriders: {plaintext: [{path: /a, operator: remove}, {path: /b, operator: add, value: {c: [1, null, 2.5]}}]}}]}}`)
		want := object(t, `{kind: x, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: default}, {apiVersion: v1, kind: ConfigMap, namespace: default}],
		overrideRules: [{overriders: {plaintext: [{path: /a, operator: remove}, {path: /b, operator: add, value: {c: [1, null, 2.5]}}]}}]}}`)
		if diff := cmp.Diff(want.Object["spec"], stored.Object["spec"]); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
	})
}

func TestClustersAreDefaultedOnce(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		stored := h.create(`{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: member1}, spec: {syncMode: Push, taints: [{key: a, effect: NoExecute}]}}`)
		models, _, _ := unstructured.NestedSlice(stored.Object, "spec", "resourceModels")
		if len(models) != 9 {
			t.Errorf("%d grades, want the default nine", len(models))
		}
		taints, _, _ := unstructured.NestedSlice(stored.Object, "spec", "taints")
		if taints[0].(map[string]any)["timeAdded"] == nil {
			t.Error("the NoExecute taint has no time")
		}
		again, _, err := h.write("admin", stored, stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored, again); diff != "" {
			t.Errorf("an update that changes nothing (-stored +again):\n%s", diff)
		}
		bare := stored.DeepCopy()
		unstructured.RemoveNestedField(bare.Object, "spec", "resourceModels")
		if again, _, err = h.write("admin", bare, stored); err != nil {
			t.Fatal(err)
		}
		if _, found, _ := unstructured.NestedSlice(again.Object, "spec", "resourceModels"); found {
			t.Error("grades that were taken away come back")
		}
		h.refuses("admin", object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: `+
			strings.Repeat("a", 49)+`}, spec: {syncMode: Push}}`), nil,
			"must be no more than 48 characters")
	})
}

func TestCustomizationsConflictWithExistingOnes(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		ric := func(name string) *unstructured.Unstructured {
			return object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: `+name+`},
			spec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: {healthInterpretation: {luaScript: "function InterpretHealth(o) return true end"}}}}`)
		}
		h := newHub(t, ric("first"))
		h.refuses("admin", ric("second"), nil,
			"conflicting with InterpreterOperation(InterpretHealth) of existing ResourceInterpreterCustomization(first)")
		if _, _, err := h.write("admin", ric("first"), ric("first")); err != nil {
			t.Errorf("an update of itself: %v", err)
		}
	})
}

func TestUnusedKindIsAcceptedWithOneWarning(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		ric := func(name, target, health string) *unstructured.Unstructured {
			return object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: `+name+`},
			spec: {target: {`+target+`}, customizations: {`+health+`}}}`)
		}
		const health = "healthInterpretation: {jsonPath: .status.phase, expected: Fine}"
		widgets, old := ric("widgets", "apiVersion: example.org/v1, kind: Widget", health),
			ric("old", "apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet", health)
		// A kind that was just defined is known, although the API server's own map of kinds does not have it yet.
		stalls := object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: stalls.example.com},
		spec: {group: example.com, names: {kind: Stall}, conversion: {strategy: Webhook}, versions: [{name: v1, served: true}, {name: v1beta1, served: true}, {name: v2, served: false}]}}`)
		h := newHub(t, old, stalls)
		for _, c := range []struct {
			obj, was *unstructured.Unstructured
			want     []string
		}{
			{widgets, nil, []string{"spec.target: the hub serves no kind Widget of group example.org yet: nothing uses the customization until it does"}},
			{widgets, widgets, nil},
			{ric("stalls", "apiVersion: example.com/v1, kind: Stall", health), nil, nil},
			{ric("stalls", "apiVersion: example.com/v2, kind: Stall", health), nil,
				[]string{"spec.target: the hub serves Stall as example.com/v1, example.com/v1beta1, not as example.com/v2: nothing uses the customization until it does; use example.com/v1 if that is the intended version"}},
			{ric("stalls", "apiVersion: example.com/v1beta1, kind: Stall", health), nil,
				[]string{"spec.target: the hub reads Stall as example.com/v1, which cannot be converted to v1beta1: use example.com/v1 for the customization to take effect"}},
			{ric("typo", "apiVersion: apps/v9, kind: Deployment", health), nil,
				[]string{"spec.target: the hub serves Deployment as apps/v1, not as apps/v9: nothing uses the customization until it does; use apps/v1 if that is the intended version"}},
			{ric("empty", "apiVersion: apps/v1, kind: Deployment", ""), nil,
				[]string{"spec.customizations: is empty, so the customization has no effect; add an operation, such as replicaResource or healthInterpretation"}},
			{ric("new", "apiVersion: apps.kruise.io/v1beta1, kind: CloneSet", health), nil,
				[]string{"spec.customizations: ResourceInterpreterCustomization(old) also defines healthInterpretation for CloneSet v1alpha1: each is used for objects of its own version, and new, the first by name, for objects of other versions"}},
			{object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, metadata: {name: w}, webhooks: [{name: a.b.c, interpreterContextVersions: [v1alpha1],
			clientConfig: {url: "https://example.org"}, rules: [{operations: ["*"], apiGroups: [apps], apiVersions: [v1beta1], kinds: [Deployment]}]}]}`), nil,
				[]string{"webhooks[0].rules[0]: the hub serves Deployment as apps/v1, not as apps/v1beta1: nothing uses a.b.c until it does; use apps/v1 if that is the intended version"}},
		} {
			_, warnings, err := h.write("admin", c.obj, c.was)
			if diff := cmp.Diff(c.want, warnings); diff != "" || err != nil {
				t.Errorf("%s: %v, warnings (-want +got):\n%s", c.obj.GetName(), err, diff)
			}
		}
	})
}

func TestPodMistakeIsStoredWithOneWarning(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		const messages = `unknown field "spec.template.spec.containers[0].imagePullPolcy": members drop it or reject the object; did you mean imagePullPolicy?`
		for kind, text := range map[string]string{
			"apps.kruise.io/v1beta1, kind: CloneSet":     "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, imagePullPolcy: Always}]}}",
			"apps.kruise.io/v1beta1, kind: BroadcastJob": "template: {spec: {containers: [{name: c, imagePullPolcy: Always}]}}",
			"argoproj.io/v1alpha1, kind: Rollout":        "template: {spec: {containers: [{name: c, imagePullPolcy: Always}]}}",
		} {
			obj := object(t, `{apiVersion: `+kind+`, metadata: {name: w, namespace: default}, spec: {`+text+`}}`)
			stored, warnings, err := h.write("admin", obj, nil)
			if diff := cmp.Diff([]string{messages}, warnings); diff != "" || err != nil {
				t.Errorf("%s: %v, warnings (-want +got):\n%s", kind, err, diff)
				continue
			}
			if _, warnings, err := h.write("admin", stored, stored); len(warnings) > 0 || err != nil {
				t.Errorf("%s: a second time: %v, %q", kind, err, warnings)
			}
		}
	})
}

func TestBrokenCustomizationKeepsValidOperations(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		ric := func(annotations, rest string) *unstructured.Unstructured {
			return object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: r`+annotations+`},
			spec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: {dependencyInterpretation: {luaScript: "function GetDependencies(o)"},
				healthInterpretation: {luaScript: "function InterpretHealth(o) return true end"}`+rest+`}}}`)
		}
		h.refuses("admin", ric("", ""), nil,
			"spec.customizations.dependencyInterpretation.luaScript: Invalid value: dependencyInterpretation: line 1: 'end' expected near <eof>")
		_, warnings, err := h.write("admin", ric(`, annotations: {argosy.io/lenient: "true"}`, ""), nil)
		want := []string{"spec.customizations.dependencyInterpretation.luaScript: dependencyInterpretation: line 1: 'end' expected near <eof>; the operation fails until this is fixed"}
		if diff := cmp.Diff(want, warnings); diff != "" || err != nil {
			t.Errorf("%v, warnings (-want +got):\n%s", err, diff)
		}
		h.refuses("admin", ric(`, annotations: {argosy.io/lenient: "true"}`, ", replicaResource: {jsonPath: spec}"), nil,
			"write .spec")
	})
}

func TestCustomizationPathsAreCheckedForDefinedKinds(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		ric := object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: r},
		spec: {target: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet}, customizations: {replicaResource: {jsonPath: .spec.replica}}}}`)
		if _, _, err := newHub(t).write("admin", ric, nil); err != nil {
			t.Errorf("a kind that is not defined yet: %v", err)
		}
		h := newHub(t, object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: clonesets.apps.kruise.io},
		spec: {group: apps.kruise.io, names: {kind: CloneSet}, versions: [{name: v1alpha1, served: true, schema: {openAPIV3Schema: {type: object}}},
		{name: v1beta1, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}}}}}}]}}`))
		h.refuses("admin", ric, nil, `spec.customizations.replicaResource.jsonPath: Invalid value: ".spec.replica": .spec.replica does not exist in the kind's schema; did you mean replicas?`)
		ric.Object["spec"].(map[string]any)["target"].(map[string]any)["apiVersion"] = "apps.kruise.io/v1"
		if _, _, err := h.write("admin", ric, nil); err != nil {
			t.Errorf("a version that is not defined yet: %v", err)
		}
	})
}

func TestBindingsAreIdentifiedAndTheirAnnotationRead(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		for kind, label := range map[string]string{
			"ResourceBinding":        "resourcebinding.karmada.io/permanent-id",
			"ClusterResourceBinding": "clusterresourcebinding.karmada.io/permanent-id",
		} {
			text := func(metadata string) string {
				namespace := ""
				if kind == "ResourceBinding" {
					namespace = ", namespace: shop"
				}
				return `{apiVersion: work.karmada.io/v1alpha2, kind: ` + kind + `, metadata: {name: b` + namespace + metadata +
					`}, spec: {resource: {apiVersion: v1, kind: Pod, name: p` + namespace + `}}}`
			}
			if id := h.create(text("")).GetLabels()[label]; len(id) != 36 {
				t.Errorf("%s: permanent id is %q, want a UUID", kind, id)
			}
			if id := h.create(text(", labels: {" + label + ": mine}")).GetLabels()[label]; id != "mine" {
				t.Errorf("%s: permanent id is %q, want the one it was created with", kind, id)
			}
			h.refuses("admin", object(t, text(`, annotations: {resourcebinding.karmada.io/dependencies: "{"}`)), nil,
				"annotation value must be a valid JSON")
		}
		h.create(`{apiVersion: work.karmada.io/v1alpha1, kind: ResourceBinding, metadata: {name: b, namespace: shop, annotations: {resourcebinding.karmada.io/dependencies: "{"}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p, namespace: shop}}}`)
	})
}

func TestManifestsOfWorksAreObjects(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		for manifest, field := range map[string]string{
			`{kind: ConfigMap, metadata: {name: c}}`:                   "apiVersion",
			`{apiVersion: v1, kind: "", metadata: {name: c}}`:          "kind",
			`{apiVersion: v1, kind: ConfigMap}`:                        "metadata.name",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: [1]}}`: "metadata.name",
		} {
			h.refuses("admin", object(t, `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: w, namespace: karmada-es-member1},
			spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}, `+manifest+`]}}}`), nil,
				"spec.workload.manifests[1]."+field+": Required value")
		}
	})
}

func TestWorksWrittenByHandAreMadeLikeOurs(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		stored := h.create(`{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: w, namespace: karmada-es-member1}, spec: {workload: {manifests: [
		{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default, uid: u, resourceVersion: "3", labels: {a: b}}, status: {x: 1}},
		{apiVersion: v1, kind: ConfigMap, metadata: {name: d, finalizers: [kept], annotations: {resourcetemplate.karmada.io/managed-annotations: x}}}]}}}`)
		id := stored.GetLabels()["work.karmada.io/permanent-id"]
		if len(id) != 36 {
			t.Errorf("permanent id is %q, want a UUID", id)
		}
		if diff := cmp.Diff([]string{"karmada.io/execution-controller"}, stored.GetFinalizers()); diff != "" {
			t.Errorf("its object would stay when it goes (-want +got):\n%s", diff)
		}
		if stray := h.create(`{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: w, namespace: default}, spec: {workload: {manifests: []}}}`); len(stray.GetFinalizers()) > 0 {
			t.Errorf("nobody would take %v off a Work that is for no cluster", stray.GetFinalizers())
		}
		manifests, _, _ := unstructured.NestedSlice(stored.Object, "spec", "workload", "manifests")
		want := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default,
		labels: {a: b, karmada.io/managed: "true", work.karmada.io/permanent-id: `+id+`},
		annotations: {work.karmada.io/name: w, work.karmada.io/namespace: karmada-es-member1,
			resourcetemplate.karmada.io/managed-labels: "a,karmada.io/managed,work.karmada.io/permanent-id",
			resourcetemplate.karmada.io/managed-annotations: "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,work.karmada.io/name,work.karmada.io/namespace"}}}`)
		if diff := cmp.Diff(want.Object, manifests[0]); diff != "" {
			t.Errorf("a manifest without marks (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]any{"kept"},
			manifests[1].(map[string]any)["metadata"].(map[string]any)["finalizers"]); diff != "" {
			t.Errorf("a marked manifest was changed (-want +got):\n%s", diff)
		}

		freed := stored.DeepCopy()
		freed.SetFinalizers(nil)
		if left, _, err := h.write("admin", freed, stored); err != nil || len(left.GetFinalizers()) > 0 {
			t.Errorf("a finalizer that an administrator takes off comes back: %v (%v)", left.GetFinalizers(), err)
		}
		unlabelled := stored.DeepCopy()
		unlabelled.SetLabels(nil)
		again, _, err := h.write("admin", unlabelled, stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored, again); diff != "" {
			t.Errorf("an update without the id (-stored +again):\n%s", diff)
		}
	})
}

func TestTemplatesAreClaimedAtCreation(t *testing.T) {
	policies := []*unstructured.Unstructured{
		pp(t, "all", `{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: default}]}`),
		pp(t, "named", `{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: named}]}`),
		pp(t, "waits", `{priority: 5, dependentOverrides: [there, missing], resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: waits}]}`),
		pp(t, "waited", `{priority: 5, dependentOverrides: [there], resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: waited}]}`),
		pp(t, "lazy", `{activationPreference: Lazy, resourceSelectors: [{apiVersion: apps/v1beta1, kind: Deployment, namespace: default}]}`),
		cpp(t, "everywhere", configMaps),
		cpp(t, "labelled", `{resourceSelectors: [{apiVersion: v1, kind: Namespace, labelSelector: {matchLabels: {a: b}}}]}`),
		pp(t, "services", `{resourceSelectors: [{apiVersion: v1, kind: Service, namespace: default}]}`),
		object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: there, namespace: default}, spec: {}}`),
		object(t, `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: everywhere, namespace: default}, spec: {types: [CrossCluster]}}`),
		object(t, `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: balanced, namespace: default}, spec: {types: [LoadBalancer]}}`),
	}
	h := newHub(t, policies...)
	for _, c := range []struct {
		name, kind, metadata string
		want                 string // the policy's name
	}{
		{"the policy of the namespace before that of the cluster", "{apiVersion: v1, kind: ConfigMap",
			`{name: c, namespace: default}`, "pp/all"},
		{"the exact name before all", "{apiVersion: v1, kind: ConfigMap", `{name: named, namespace: default}`, "pp/named"},
		{"the policy of the cluster in other namespaces", "{apiVersion: v1, kind: ConfigMap", `{name: c, namespace: other}`,
			"cpp/everywhere"},
		{"a policy whose overrides are missing, and no second best", "{apiVersion: v1, kind: ConfigMap",
			`{name: waits, namespace: default}`, ""},
		{"a policy whose overrides are there", "{apiVersion: v1, kind: ConfigMap", `{name: waited, namespace: default}`,
			"pp/waited"},
		{"a creation is a change, so that a lazy policy applies, of any version", "{apiVersion: apps/v1, kind: Deployment",
			`{name: d, namespace: default}`, "pp/lazy"},
		{"a namespace", "{apiVersion: v1, kind: Namespace", `{name: team, labels: {a: b}}`, "cpp/labelled"},
		{"a namespace without the label", "{apiVersion: v1, kind: Namespace", `{name: team}`, ""},
		{"a namespace of the system", "{apiVersion: v1, kind: Namespace", `{name: karmada-system, labels: {a: b}}`, ""},
		{"a ConfigMap of the system", "{apiVersion: v1, kind: ConfigMap", `{name: c, namespace: kube-system}`, ""},
		{"what another component propagates", "{apiVersion: v1, kind: ConfigMap",
			`{name: c, namespace: default, labels: {resourcetemplate.karmada.io/claimed-by: MultiClusterService}}`, ""},
		{"a Service", "{apiVersion: v1, kind: Service", `{name: s, namespace: default}`, "pp/services"},
		{"a Service that a MultiClusterService places", "{apiVersion: v1, kind: Service",
			`{name: everywhere, namespace: default}`, ""},
		{"a Service that a MultiClusterService balances only", "{apiVersion: v1, kind: Service",
			`{name: balanced, namespace: default}`, "pp/services"},
		{"another kind of that name", "{apiVersion: v1, kind: ConfigMap", `{name: everywhere, namespace: default}`, "pp/all"},
		{"a kind that no policy selects", "{apiVersion: v1, kind: Secret", `{name: s, namespace: default}`, ""},
		{"a claim that stands", "{apiVersion: v1, kind: ConfigMap", `{name: named, namespace: default, labels: {` + ppID +
			`: all}, annotations: {propagationpolicy.karmada.io/namespace: default, propagationpolicy.karmada.io/name: all}}`,
			"pp/all"},
		{"a claim that was copied from elsewhere", "{apiVersion: v1, kind: ConfigMap",
			`{name: named, namespace: default, labels: {` + cppID +
				`: gone}, annotations: {clusterpropagationpolicy.karmada.io/name: gone}}`, "pp/named"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stored := h.create(c.kind + ", metadata: " + c.metadata + "}")
			labels, annotations := stored.GetLabels(), stored.GetAnnotations()
			got := ""
			if id := labels[ppID]; id != "" {
				got = "pp/" + id
				if annotations["propagationpolicy.karmada.io/namespace"] != "default" ||
					annotations["propagationpolicy.karmada.io/name"] != id {
					t.Errorf("annotations %v", annotations)
				}
			}
			if id := labels[cppID]; id != "" {
				got += "cpp/" + id
				if annotations["clusterpropagationpolicy.karmada.io/name"] != id {
					t.Errorf("annotations %v", annotations)
				}
			}
			if got != c.want {
				t.Errorf("claimed by %q, want %q", got, c.want)
			}
		})
	}
}

func TestUpdatesAreLeftToTheController(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, cpp(t, "everywhere", configMaps))
		template := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}}`)
		stored, _, err := h.write("admin", template, template)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored.GetLabels()) > 0 {
			t.Errorf("labels %v", stored.GetLabels())
		}
	})
}

func TestTheIndexFollowsThePolicies(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		gvr := schema.GroupVersionResource{Group: "policy.karmada.io", Version: "v1alpha1",
			Resource: "clusterpropagationpolicies"}
		ctx := context.Background()
		selects := func(kind string) bool {
			return len(h.index.selecting(schema.GroupKind{Kind: kind}, "default", "c")) > 0
		}
		if _, err := h.client.Resource(gvr).Create(ctx, cpp(t, "p", configMaps), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		h.wait("the policy is known", func() bool { return selects("ConfigMap") })
		if _, err := h.client.Resource(gvr).Update(ctx, cpp(t, "p", `{resourceSelectors: [{apiVersion: v1, kind: Secret}]}`),
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		h.wait("the policy's new selector is known", func() bool { return selects("Secret") })
		if selects("ConfigMap") {
			t.Error("the old selector is still known")
		}
		if err := h.client.Resource(gvr).Delete(ctx, "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.wait("the policy is forgotten", func() bool { return !selects("Secret") })
		if left := h.index.policies.ListKeys(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestTemplateIsClaimedByEarlierPolicies(t *testing.T) {
	const template = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}}`
	better := func(priority string) *unstructured.Unstructured {
		return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: better},
			spec: {priority: `+priority+`, resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}}`)
	}
	claimed := func(h *hub) string {
		return h.create(template).GetAnnotations()["clusterpropagationpolicy.karmada.io/name"]
	}
	gvr := schema.GroupVersionResource{Group: "policy.karmada.io", Version: "v1alpha1",
		Resource: "clusterpropagationpolicies"}

	t.Run("a watch that is late", func(t *testing.T) {
		membertest.Run(t, func(t *testing.T) {
			h := newHub(t, cpp(t, "everywhere", configMaps))
			stored, _, err := h.write("admin", better("5"), nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-time.After(50 * time.Millisecond)
				_, _ = h.client.Resource(gvr).Create(context.Background(), stored, metav1.CreateOptions{})
			}()
			if got := claimed(h); got != "better" {
				t.Errorf("claimed by %q", got)
			}
		})
	})
	t.Run("an older state on its way", func(t *testing.T) {
		membertest.Run(t, func(t *testing.T) {
			h := newHub(t, cpp(t, "everywhere", configMaps))
			low, _, err := h.write("admin", better("-5"), nil)
			if err != nil {
				t.Fatal(err)
			}
			high := low.DeepCopy()
			high.Object["spec"].(map[string]any)["priority"] = int64(5)
			high, _, err = h.write("admin", high, low)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = h.client.Resource(gvr).Create(context.Background(), low, metav1.CreateOptions{})
				<-time.After(50 * time.Millisecond)
				_, _ = h.client.Resource(gvr).Update(context.Background(), high, metav1.UpdateOptions{})
			}()
			if got := claimed(h); got != "better" {
				t.Errorf("claimed by %q", got)
			}
		})
	})
	t.Run("a policy that was refused after all", func(t *testing.T) {
		membertest.Run(t, func(t *testing.T) {
			h := newHub(t, cpp(t, "everywhere", configMaps))
			if _, _, err := h.write("admin", better("5"), nil); err != nil {
				t.Fatal(err)
			}
			if got := claimed(h); got != "everywhere" {
				t.Errorf("claimed by %q", got)
			}
			if until, _ := h.index.expected.next(schema.GroupKind{Kind: "ConfigMap"}); time.Until(until) > 0 {
				t.Errorf("it is still waited for until %s", until)
			}
		})
	})
	t.Run("a policy of another kind", func(t *testing.T) {
		membertest.Run(t, func(t *testing.T) {
			h := newHub(t, cpp(t, "everywhere", configMaps))
			if _, _, err := h.write("admin", object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: p},
			spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}]}}`), nil); err != nil {
				t.Fatal(err)
			}
			if until, _ := h.index.expected.next(schema.GroupKind{Kind: "ConfigMap"}); !until.IsZero() {
				t.Errorf("it is waited for until %s", until)
			}
			if got := claimed(h); got != "everywhere" {
				t.Errorf("claimed by %q", got)
			}
		})
	})
}

func TestNothingIsClaimedUntilAllPoliciesAreKnown(t *testing.T) {
	x := newIndex()
	p := newPropagation("ClusterPropagationPolicy")
	if err := into(cpp(t, "p", configMaps), p); err != nil {
		t.Fatal(err)
	}
	x.set(p)
	gk := schema.GroupKind{Kind: "ConfigMap"}
	if len(x.selecting(gk, "default", "c")) > 0 {
		t.Error("an index that is not fed answers")
	}
}

// A policy that changes is found as it was or as it is: not both, and not neither.
func TestPolicyThatChangesIsFoundOnce(t *testing.T) {
	x := newIndex()
	x.synced.Store(true)
	version := func(name string) *policyv1alpha1.PropagationPolicy {
		return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
			Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}}}}
	}
	one, anyName := version("c"), version("")
	x.set(one)
	ctx, end := context.WithCancel(t.Context())
	var changes sync.WaitGroup
	changes.Go(func() {
		for ctx.Err() == nil {
			x.set(anyName)
			x.set(one)
		}
	})
	for range 20_000 {
		if found := x.selecting(schema.GroupKind{Kind: "ConfigMap"}, "default", "c"); len(found) != 1 {
			t.Errorf("%d versions of it are found", len(found))
			break
		}
	}
	end()
	changes.Wait()
}

func TestProtectedObjectsAreNotDeleted(t *testing.T) {
	deletion := func(labels map[string]string) error {
		var old runtime.Object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default",
			Labels: labels}}
		return newProtection().Validate(context.Background(),
			admission.NewAttributesRecord(nil, old, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
				"default", "c", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", admission.Delete, nil,
				false,
				&user.DefaultInfo{Name: "admin"}), nil)
	}
	err := deletion(map[string]string{"resourcetemplate.karmada.io/deletion-protected": "Always"})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
		"This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected") {
		t.Errorf("error is %v", err)
	}
	for _, labels := range []map[string]string{nil, {"resourcetemplate.karmada.io/deletion-protected": "Never"}} {
		if err := deletion(labels); err != nil {
			t.Errorf("labels %v: %v", labels, err)
		}
	}
}

func TestNamesAreThePluginsInOrder(t *testing.T) {
	var names []string
	for _, p := range Plugins(Options{}) {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff(names, Names()); diff != "" {
		t.Errorf("(-plugins +names):\n%s", diff)
	}
}

// BenchmarkClaim: a thousand policies that each name one template of the kind.
func BenchmarkClaim(b *testing.B) {
	x := newIndex()
	for i := range 1000 {
		name := fmt.Sprintf("p%d", i)
		x.set(&policyv1alpha1.PropagationPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{ppID: name}},
			Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}}},
		})
	}
	x.synced.Store(true)
	c := newClaim(x)
	for b.Loop() {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "p500", Namespace: "default"}}
		a := admission.NewAttributesRecord(obj, nil, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			"default", "p500", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", admission.Create, nil,
			false, nil)
		if err := c.Admit(context.Background(), a, nil); err != nil {
			b.Fatal(err)
		}
		if obj.Labels[ppID] != "p500" {
			b.Fatal("not claimed")
		}
	}
}

// The schema names a missing spec better than a spec of null.
func TestDefaultsAddNoEmptySpec(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		c := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m}}`)
		if _, _, err := h.write("admin", c, c); err == nil || !strings.Contains(err.Error(), "Required") {
			t.Errorf("the error is %v", err)
		}
	})
}
