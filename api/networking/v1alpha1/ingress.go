package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MultiClusterIngress is an Ingress for Services of several clusters. The hub validates and stores it, and lists the
// clusters that Remedies take out of traffic. An ingress controller that watches the hub must implement it, such as
// multi-cluster-ingress-nginx of Karmada.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=multiclusteringresses,shortName=mci,categories=karmada-io
type MultiClusterIngress struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the rules of the Ingress.
	Spec MultiClusterIngressSpec `json:"spec,omitempty"`

	// Status is the state of the Ingress. The ingress controller writes it, except trafficBlockClusters and the condition
	// TrafficKept, which the hub writes.
	Status MultiClusterIngressStatus `json:"status,omitempty"`
}

// MultiClusterIngressSpec has the rules of an Ingress.
type MultiClusterIngressSpec struct {
	networkingv1.IngressSpec `json:",inline"`

	// Template is an alternative spelling. The hub stores its spec as the spec of the MultiClusterIngress.
	Template *IngressTemplate `json:"template,omitempty"`
}

// IngressTemplate has the spec of an Ingress.
type IngressTemplate struct {
	// Spec has the rules of the Ingress.
	Spec networkingv1.IngressSpec `json:"spec,omitempty"`
}

// MultiClusterIngressStatus is the state of an Ingress, with the clusters of its Services.
type MultiClusterIngressStatus struct {
	networkingv1.IngressStatus `json:",inline"`

	// TrafficBlockClusters are the names of clusters that must get no traffic at present, sorted: the hub lists clusters
	// with the action TrafficControl of a Remedy.
	TrafficBlockClusters []string `json:"trafficBlockClusters,omitempty"`

	// ServiceLocations are the clusters of each Service in the rules.
	ServiceLocations []ServiceLocation `json:"serviceLocations,omitempty"`

	// Conditions has TrafficKept while the hub keeps clusters in traffic against a Remedy. Not in Karmada.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServiceLocation lists the clusters of a Service.
type ServiceLocation struct {
	// Name of the Service.
	Name string `json:"name"`

	// Clusters are the names of the clusters that have the Service.
	Clusters []string `json:"clusters,omitempty"`
}

// MultiClusterIngressList is a list of MultiClusterIngress.
// +kubebuilder:object:root=true
type MultiClusterIngressList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MultiClusterIngress `json:"items"`
}
