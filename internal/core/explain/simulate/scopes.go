package simulate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// noNamespace are common cluster-scoped kinds, by group.
var noNamespace = map[string][]string{
	"":                                 {"Namespace", "Node", "PersistentVolume"},
	"addon.open-cluster-management.io": {"AddOnTemplate", "ClusterManagementAddOn"},
	"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
	"apiextensions.k8s.io":   {"CustomResourceDefinition"},
	"apiregistration.k8s.io": {"APIService"},
	"apps.karmada.io":        {"WorkloadRebalancer"},
	"apps.kruise.io":         {"BroadcastJobTemplate", "ImagePullJobTemplate"},
	"argoproj.io":            {"ClusterAnalysisTemplate"},
	"cluster.karmada.io":     {"Cluster"},
	"cluster.open-cluster-management.io": {"ManagedCluster",
		"ManagedClusterSet"},
	"config.karmada.io": {"ReplicaSchedulingPolicy", "ResourceInterpreterCustomization",
		"ResourceInterpreterWebhookConfiguration"},
	"networking.k8s.io":         {"IngressClass"},
	"node.k8s.io":               {"RuntimeClass"},
	"policy.karmada.io":         {"ClusterPropagationPolicy", "ClusterOverridePolicy"},
	"rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
	"remedy.karmada.io":         {"Remedy"},
	"scheduling.k8s.io":         {"PriorityClass"},
	"storage.k8s.io":            {"StorageClass", "CSIDriver", "VolumeAttachment"},
	"work.karmada.io":           {"ClusterResourceBinding"},
}

var known = func() map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{}
	for group, kinds := range noNamespace {
		for _, kind := range kinds {
			all[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return all
}()

// isClusterScoped reports whether a kind is cluster-scoped; false if unknown.
func (f *Fleet) isClusterScoped(gk schema.GroupKind) bool {
	return known[gk] || f.clusterScoped[gk] || kind.Lookup(gk).ClusterScoped
}

// learnScope records the scope of a kind from an object or a definition: a recorded object without a namespace is
// cluster-scoped.
func (f *Fleet) learnScope(u *unstructured.Unstructured, recorded bool) {
	gk := u.GroupVersionKind().GroupKind()
	if gk == (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		if fields.Text(u.Object, "spec", "scope") == "Cluster" {
			f.clusterScoped[match.KindDefined(u)] = true
		}
	}
	// What came from a hub has a UID, and a namespace if its kind does.
	if recorded && u.GetUID() != "" && u.GetNamespace() == "" {
		f.clusterScoped[gk] = true
	}
}
