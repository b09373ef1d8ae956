package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MultiClusterServiceKind is the kind in the labels that name the MultiClusterService of a Service.
const MultiClusterServiceKind = "MultiClusterService"

// TrafficKept: Remedies would take all clusters out of traffic that could serve, so those in the message stay. The
// condition is removed once it is over.
//
//reference:condition MultiClusterService
//reference:condition MultiClusterIngress
const TrafficKept = "TrafficKept"

const (
	// MultiClusterServicePermanentIDLabel is on the MultiClusterService, and on the Service and binding that it claims.
	// The value is a UUID.
	MultiClusterServicePermanentIDLabel = "multiclusterservice.karmada.io/permanent-id"
	// The namespace and name of the MultiClusterService: annotations of the Service and the binding, labels of Works.
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

	// Spec has the clusters that provide the Service, and those that consume it.
	Spec MultiClusterServiceSpec `json:"spec"`

	// Status has the conditions ServiceApplied and EndpointSliceDispatched, and TrafficKept while the hub keeps clusters
	// in traffic against a Remedy.
	Status corev1.ServiceStatus `json:"status,omitempty"`
}

// MultiClusterServiceSpec has the clusters that provide a Service, and those that consume it.
type MultiClusterServiceSpec struct {
	// Types has one exposure type, which cannot be changed. CrossCluster: clusters reach the Service in other clusters.
	// LoadBalancer: an external controller exposes it; the hub does nothing.
	Types []ExposureType `json:"types"`

	// Ports are the ports of the Service to expose, for LoadBalancer. Default: all ports. CrossCluster exposes all ports.
	Ports []ExposurePort `json:"ports,omitempty"`

	// Range is deprecated and has no effect.
	Range ExposureRange `json:"range,omitempty"`

	// ServiceProvisionClusters is the former spelling of providerClusters. It is used if providerClusters is empty.
	ServiceProvisionClusters []string `json:"serviceProvisionClusters,omitempty"`

	// ServiceConsumptionClusters is the former spelling of consumerClusters. It is used if consumerClusters is empty.
	ServiceConsumptionClusters []string `json:"serviceConsumptionClusters,omitempty"`

	// ProviderClusters are the clusters whose endpoints are collected. Default: all clusters.
	ProviderClusters []ClusterSelector `json:"providerClusters,omitempty"`

	// ConsumerClusters are the clusters that get the endpoints of the provider clusters. Default: all clusters.
	ConsumerClusters []ClusterSelector `json:"consumerClusters,omitempty"`
}

// ClusterSelector names a cluster.
type ClusterSelector struct {
	// Name of the cluster.
	Name string `json:"name"`
}

// ExposureType is the way in which a Service is exposed.
type ExposureType string

const (
	ExposureTypeCrossCluster ExposureType = "CrossCluster"
	ExposureTypeLoadBalancer ExposureType = "LoadBalancer"
)

// ExposurePort is a port of a Service to expose.
type ExposurePort struct {
	// Name of the port in the Service. It may be empty if the Service has only one port.
	Name string `json:"name,omitempty"`

	// Port is the port number of the Service.
	Port int32 `json:"port"`

	// TargetPort is accepted and not stored. The target port of the Service is used.
	TargetPort *intstr.IntOrString `json:"targetPort,omitempty"`
}

// ExposureRange is a list of clusters.
type ExposureRange struct {
	// ClusterNames is deprecated and has no effect.
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// MultiClusterServiceList is a list of MultiClusterService.
// +kubebuilder:object:root=true
type MultiClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MultiClusterService `json:"items"`
}
