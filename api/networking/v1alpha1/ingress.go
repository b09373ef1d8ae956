package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MultiClusterIngress is an Ingress for Services of several clusters. The hub checks and keeps it; to act on it is for
// an ingress controller that watches the hub, such as Karmada's multi-cluster-ingress-nginx, which also writes the
// status.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=multiclusteringresses,shortName=mci,categories=karmada-io
type MultiClusterIngress struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is that of an Ingress.
	// +optional
	Spec MultiClusterIngressSpec `json:"spec,omitempty"`

	// Status is written by whoever acts on it.
	// +optional
	Status MultiClusterIngressStatus `json:"status,omitempty"`
}

// MultiClusterIngressSpec is that of an Ingress.
type MultiClusterIngressSpec struct {
	networkingv1.IngressSpec `json:",inline"`

	// Template is another spelling. The hub stores its spec as the spec of the MultiClusterIngress.
	// +optional
	Template *IngressTemplate `json:"template,omitempty"`
}

// IngressTemplate holds the spec of an Ingress.
type IngressTemplate struct {
	// Spec is the Ingress's.
	// +optional
	Spec networkingv1.IngressSpec `json:"spec,omitempty"`
}

// MultiClusterIngressStatus is that of an Ingress, and where its Services are.
type MultiClusterIngressStatus struct {
	networkingv1.IngressStatus `json:",inline"`

	// TrafficBlockClusters are clusters that get no traffic for now.
	// +optional
	TrafficBlockClusters []string `json:"trafficBlockClusters,omitempty"`

	// ServiceLocations are the clusters of each Service that the Ingress refers to.
	// +optional
	ServiceLocations []ServiceLocation `json:"serviceLocations,omitempty"`
}

// ServiceLocation is where a Service is.
type ServiceLocation struct {
	// Name of the Service.
	// +required
	Name string `json:"name"`

	// Clusters that have it.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
}

// MultiClusterIngressList is a list of MultiClusterIngress.
// +kubebuilder:object:root=true
type MultiClusterIngressList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MultiClusterIngress `json:"items"`
}
