package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// ResourceRegistry selects objects of member clusters that the hub caches, for search and the global proxy.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceregistries,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].status`,name=`READY`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].message`,name=`STATUS`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ResourceRegistry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects clusters and resources.
	Spec ResourceRegistrySpec `json:"spec,omitempty"`

	// Status is the state of the caches.
	Status ResourceRegistryStatus `json:"status,omitempty"`
}

// ResourceRegistrySpec selects what the hub caches.
type ResourceRegistrySpec struct {
	// TargetCluster selects the member clusters. An empty affinity selects all.
	TargetCluster policyv1alpha1.ClusterAffinity `json:"targetCluster"`

	// ResourceSelectors select the resources. Each is cached from all selected clusters that serve it.
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// BackendStore selects another store than the memory of the hub. This hub has no other: with openSearch, the registry
	// caches nothing, and its condition Ready is False with the reason BackendNotSupported.
	BackendStore *BackendStoreConfig `json:"backendStore,omitempty"`
}

// ResourceSelector selects the objects of a kind.
type ResourceSelector struct {
	// APIVersion of the objects, such as apps/v1.
	APIVersion string `json:"apiVersion"`

	// Kind of the objects, such as Deployment. The members must permit the hub to list and watch it.
	Kind string `json:"kind"`

	// Namespace of the objects. Empty: all namespaces.
	Namespace string `json:"namespace,omitempty"`
}

// BackendStoreConfig names a store outside of the hub.
type BackendStoreConfig struct {
	// OpenSearch is not supported by this hub.
	OpenSearch *OpenSearchConfig `json:"openSearch,omitempty"`
}

// OpenSearchConfig names an OpenSearch service.
type OpenSearchConfig struct {
	// Addresses of the service, as http or https URLs.
	Addresses []string `json:"addresses"`

	// SecretRef names the Secret with the keys userName and password.
	SecretRef LocalSecretReference `json:"secretRef,omitempty"`
}

// LocalSecretReference names a Secret of the hub.
type LocalSecretReference struct {
	// Namespace of the Secret.
	Namespace string `json:"namespace"`

	// Name of the Secret.
	Name string `json:"name"`
}

// ResourceRegistryStatus is the state of the caches.
type ResourceRegistryStatus struct {
	// Conditions of the registry: Ready is True if all selected resources are cached; its
	// message has their memory.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Ready: all selected resources of all selected clusters are cached.
//
//reference:condition ResourceRegistry
const Ready = "Ready"

// The reasons of the condition Ready.
const (
	// ReasonCached: all selected resources of all selected clusters are cached.
	//
	//reference:reason Ready of ResourceRegistry
	ReasonCached = "Cached"
	// ReasonIncomplete: some clusters or resources are not cached yet, not any more, or need more memory than permitted.
	//
	//reference:reason Ready of ResourceRegistry
	ReasonIncomplete = "Incomplete"
	// ReasonBackendNotSupported: the registry asks for OpenSearch. The hub caches nothing for it.
	//
	//reference:reason Ready of ResourceRegistry
	ReasonBackendNotSupported = "BackendNotSupported"
)

// ResourceRegistryList is a list of ResourceRegistry.
// +kubebuilder:object:root=true
type ResourceRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceRegistry `json:"items"`
}
