package peers

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// cloneSets is the definition of CloneSets in a member, which has no controller of OpenKruise: the test writes the
// status.
const cloneSets = `
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: clonesets.apps.kruise.io},
 spec: {group: apps.kruise.io, scope: Namespaced, names: {kind: CloneSet, plural: clonesets},
  versions: [{name: v1alpha1, served: true, storage: true, subresources: {status: {}},
   schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
`

var manifestWorkList = schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1",
	Kind: "ManifestWorkList"}

func (k *klusterlet) bindingText(t *testing.T, ns, name string) string {
	u := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, name)
	if u == nil {
		return "no binding"
	}
	items, _ := kit.Field(u, "status", "aggregatedStatus").([]any)
	for _, item := range items {
		if m := item.(map[string]any); m["clusterName"] == k.Member.Name {
			return fmt.Sprint("applied=", m["applied"] == true, " health=", m["health"], " status=", m["status"], " ",
				m["appliedMessage"])
		}
	}
	return fmt.Sprint("no status: ", kit.Field(u, "spec", "clusters"), kit.Field(u, "status", "conditions"))
}

func (k *klusterlet) reports(t *testing.T, ns, binding string, wants ...string) {
	t.Helper()
	kit.Eventually(t, binding+" reports "+strings.Join(wants, ", "), func() string {
		got := k.bindingText(t, ns, binding)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				return got
			}
		}
		return ""
	})
}

func (k *klusterlet) setStatus(t *testing.T, apiVersion, kind, ns, name string, status map[string]any) {
	t.Helper()
	u := k.Find(t, apiVersion, kind, ns, name)
	if u == nil {
		t.Fatalf("the member has no %s %s", kind, name)
	}
	u.Object["status"] = status
	if err := k.Client.Status().Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// A policy of Karmada reaches a cluster whose only agents are those of Open Cluster Management.
func TestPoliciesReachAKlusterletOfOpenClusterManagement(t *testing.T) {
	k := newKlusterlet(t, "edge")
	k.Apply(t, cloneSets)
	name := k.Member.Name
	k.register(t)
	k.accept(t)
	ready(t, name, "True")
	k.apply(t)

	// 1. The hub knows which kinds the cluster serves, by what the klusterlet reads there.
	c := &clusterv1alpha1.Cluster{}
	kit.Eventually(t, "the hub knows that the cluster serves CloneSets and no Rollouts", func() string {
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
			return err.Error()
		}
		if !c.Status.Serves("apps.kruise.io/v1alpha1", "CloneSet") || !c.Status.Serves("apps/v1", "Deployment") ||
			c.Status.Serves("argoproj.io/v1alpha1", "Rollout") {
			return fmt.Sprint(c.Status.APIEnablements, c.Status.Conditions)
		}
		return ""
	})

	// 2. A workload and its configuration arrive in their namespace, and their status and health come back.
	ns := fleet.Namespace(t)
	k.Apply(t, fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: %[1]s}, data: {of: somebody}}
`, ns))
	fleet.Hub.Apply(t, fmt.Sprintf(`
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: %[1]s}, spec: {
 resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}, {apiVersion: v1, kind: ConfigMap}],
 placement: {clusterAffinity: {clusterNames: [%[2]s]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: %[1]s}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: %[1]s}, data: {of: the-hub}}
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: %[1]s}, spec: {replicas: 2,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1"}]}}}}
`, ns, name))
	k.reports(t, ns, "settings-configmap", "applied=true")
	kit.Eventually(t, "the member has the CloneSet", func() string {
		if k.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web") == nil {
			return k.bindingText(t, ns, "web-cloneset")
		}
		return ""
	})
	k.reports(t, ns, "web-cloneset", "applied=true")
	generation := k.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web").GetGeneration()
	k.setStatus(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web", map[string]any{"observedGeneration": generation,
		"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "updatedReadyReplicas": 2, "availableReplicas": 2,
		"expectedUpdatedReplicas": 2, "updateRevision": "web-1", "currentRevision": "web-1"})
	k.reports(t, ns, "web-cloneset", "health=Healthy", "readyReplicas:2")

	// 3. An object of somebody else is neither taken over nor changed, until the policy says so.
	k.reports(t, ns, "foreign-configmap", "applied=false", "already exists in the cluster")
	foreign := func() string {
		return fmt.Sprint(kit.Field(k.Find(t, "v1", "ConfigMap", ns, "foreign"), "data", "of"),
			len(k.Find(t, "v1", "ConfigMap", ns, "foreign").GetOwnerReferences()))
	}
	if got := foreign(); got != "somebody0" {
		t.Errorf("the foreign object is %s", got)
	}

	// 4. A change follows, a change in the member is reverted, and neither happens while hands are off.
	image := func() any {
		containers, _ := kit.Field(k.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web"), "spec", "template", "spec",
			"containers").([]any)
		return containers[0].(map[string]any)["image"]
	}
	release := func(version string) {
		fleet.Hub.Change(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web", func(u *unstructured.Unstructured) {
			containers := kit.Field(u, "spec", "template", "spec", "containers").([]any)
			containers[0].(map[string]any)["image"] = version
			_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
		})
	}
	has := func(want string) {
		t.Helper()
		kit.Eventually(t, "the member runs "+want, func() string {
			if got := image(); got != want {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
	release("nginx:2")
	has("nginx:2")
	handsOff := func(value string) {
		k.Change(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web", func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			delete(annotations, "argosy.io/hands-off")
			if value != "" {
				annotations["argosy.io/hands-off"] = value
			}
			u.SetAnnotations(annotations)
		})
	}
	handsOff("true")
	work := func() string {
		var all unstructured.UnstructuredList
		all.SetAPIVersion("work.karmada.io/v1alpha1")
		all.SetKind("WorkList")
		if err := fleet.Hub.List(t.Context(), &all, client.InNamespace("karmada-es-"+name)); err != nil {
			return err.Error()
		}
		text := ""
		for _, w := range all.Items {
			text += fmt.Sprint(w.GetName(), kit.Field(&w, "status", "conditions"))
		}
		return text
	}
	kit.Eventually(t, "the Work says that hands are off", func() string {
		if text := work(); !strings.Contains(text, "HandsOff") {
			return text
		}
		return ""
	})
	release("nginx:3")
	kit.Eventually(t, "the hub has sent the change as one that is only looked at", func() string {
		var all unstructured.UnstructuredList
		all.SetAPIVersion("work.open-cluster-management.io/v1")
		all.SetKind("ManifestWorkList")
		if err := fleet.Hub.List(t.Context(), &all, client.InNamespace(name)); err != nil {
			return err.Error()
		}
		for _, w := range all.Items {
			if text := fmt.Sprint(w.Object["spec"]); strings.Contains(text, "nginx:3") && strings.Contains(text, "ReadOnly") {
				return ""
			}
		}
		return "it has not"
	})
	if got := image(); got != "nginx:2" {
		t.Errorf("with hands off, the member runs %v", got)
	}
	handsOff("")
	has("nginx:3")

	// 5. Overwrite takes the foreign object over; what is deleted on the hub is deleted in the member.
	fleet.Hub.Change(t, "v1", "ConfigMap", ns, "foreign", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"work.karmada.io/conflict-resolution": "overwrite"})
	})
	k.reports(t, ns, "foreign-configmap", "applied=true")
	kit.Eventually(t, "the hub has taken the object over", func() string {
		if got := foreign(); got != "the-hub1" {
			return got
		}
		return ""
	})
	fleet.Hub.Remove(t, "v1", "ConfigMap", ns, "settings")
	kit.Eventually(t, "the deleted ConfigMap is gone, in the member and as a ManifestWork", func() string {
		if u := k.Find(t, "v1", "ConfigMap", ns, "settings"); u != nil {
			return "the member has it"
		}
		return ""
	})

	// 6. What a policy preserves stays when the template is deleted.
	fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "p", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, true, "spec", "preserveResourcesOnDeletion")
	})
	kit.Eventually(t, "the Works preserve their objects", func() string {
		u := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "web-cloneset")
		if kit.Field(u, "spec", "preserveResourcesOnDeletion") != true {
			return "not yet"
		}
		return ""
	})
	fleet.Hub.Remove(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web")
	kit.Eventually(t, "the binding and its ManifestWork are gone", func() string {
		if u := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "web-cloneset"); u != nil {
			return fmt.Sprint(u.GetFinalizers())
		}
		var all metav1.PartialObjectMetadataList
		all.SetGroupVersionKind(manifestWorkList)
		if err := fleet.Hub.List(t.Context(), &all, client.InNamespace(name)); err != nil {
			return err.Error()
		}
		for _, w := range all.Items {
			if strings.HasPrefix(w.Name, "web-") {
				return w.Name
			}
		}
		return ""
	})
	if u := k.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web"); u == nil || u.GetDeletionTimestamp() != nil ||
		len(u.GetOwnerReferences()) > 0 {
		t.Errorf("the preserved CloneSet is %v", u)
	}
}
