package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MultiClusterServiceKind is the kind in the labels that name the claim of a Service.
const MultiClusterServiceKind = "MultiClusterService"

const (
	// MultiClusterServicePermanentIDLabel is on the MultiClusterService itself, and on the Service and the binding that it
	// claims; a UUID.
	MultiClusterServicePermanentIDLabel = "multiclusterservice.karmada.io/permanent-id"
	// These name the MultiClusterService: annotations of the Service and the binding, labels of Works.
	MultiClusterServiceNamespaceKey = "multiclusterservice.karmada.io/namespace"
	MultiClusterServiceNameKey      = "multiclusterservice.karmada.io/name"
)

// Condition types of a MultiClusterService.
//
//reference:condition MultiClusterService
const (
	// ServiceApplied: all clusters have the Service.
	ServiceApplied = "ServiceApplied"
	// EndpointSliceDispatched: the consumers have the endpoints of the providers.
	EndpointSliceDispatched = "EndpointSliceDispatched"
)

// MultiClusterService makes the Service of the same name and namespace reachable under its own name in several
// clusters. Provider and consumer clusters get the Service; consumer clusters also get the endpoints of the providers.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=multiclusterservices,shortName=mcs,categories=karmada-io
type MultiClusterService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is which clusters provide and consume the Service.
	// +required
	Spec MultiClusterServiceSpec `json:"spec"`

	// Status has the conditions ServiceApplied and EndpointSliceDispatched.
	// +optional
	Status corev1.ServiceStatus `json:"status,omitempty"`
}

// MultiClusterServiceSpec is which clusters provide and consume a Service.
type MultiClusterServiceSpec struct {
	// Types is how the Service is exposed, one of CrossCluster and LoadBalancer; it cannot be changed. CrossCluster is
	// what this hub carries out; LoadBalancer is for a provider of load balancers outside of it.
	// +required
	Types []ExposureType `json:"types"`

	// Ports of the Service to expose, for LoadBalancer; all by default, and for CrossCluster.
	// +optional
	Ports []ExposurePort `json:"ports,omitempty"`

	// Range is deprecated, and without effect.
	// +optional
	Range ExposureRange `json:"range,omitempty"`

	// ServiceProvisionClusters is the earlier form of providerClusters, used if that is empty.
	// +optional
	ServiceProvisionClusters []string `json:"serviceProvisionClusters,omitempty"`

	// ServiceConsumptionClusters is the earlier form of consumerClusters, used if that is empty.
	// +optional
	ServiceConsumptionClusters []string `json:"serviceConsumptionClusters,omitempty"`

	// ProviderClusters are the clusters that endpoints are collected from. Default: all.
	// +optional
	ProviderClusters []ClusterSelector `json:"providerClusters,omitempty"`

	// ConsumerClusters are the clusters that get the endpoints of the providers. Default: all.
	// +optional
	ConsumerClusters []ClusterSelector `json:"consumerClusters,omitempty"`
}

// ClusterSelector names a cluster.
type ClusterSelector struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`
}

// ExposureType is how a Service is exposed.
type ExposureType string

// The types.
const (
	ExposureTypeCrossCluster ExposureType = "CrossCluster"
	ExposureTypeLoadBalancer ExposureType = "LoadBalancer"
)

// ExposurePort is a port to expose.
type ExposurePort struct {
	// Name of the port in the Service; it may be empty if the Service has one port alone.
	// +optional
	Name string `json:"name,omitempty"`

	// Port of the Service.
	// +required
	Port int32 `json:"port"`

	// TargetPort is accepted and not stored: it is the Service's own.
	// +optional
	TargetPort *intstr.IntOrString `json:"targetPort,omitempty"`
}

// ExposureRange is a list of clusters.
type ExposureRange struct {
	// ClusterNames is deprecated, and without effect.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// MultiClusterServiceList is a list of MultiClusterService.
// +kubebuilder:object:root=true
type MultiClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MultiClusterService `json:"items"`
}
