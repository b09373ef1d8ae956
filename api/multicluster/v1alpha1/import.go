package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceImport imports a Service that other clusters export. Clusters in which a policy places it get the Service
// derived-NAME, without a selector, with the endpoints of all exporting clusters. With mcs: auto in its configuration,
// the hub writes a ServiceImport and the derived Service in each cluster with the namespace, without policies.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=serviceimports,shortName=svcim
// +kubebuilder:printcolumn:JSONPath=`.spec.type`,name=`Type`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.ips`,name=`IP`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`Age`,type=date
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the type and the ports of the derived Service.
	Spec ServiceImportSpec `json:"spec,omitempty"`

	// Status lists the clusters that export the Service.
	Status ServiceImportStatus `json:"status,omitempty"`
}

// ServiceImportSpec has the type and the ports of a derived Service.
type ServiceImportSpec struct {
	// Ports of the derived Service. Their names must be those of the exported Service.
	// +listType=atomic
	Ports []ServicePort `json:"ports"`

	// IPs are the addresses of the derived Service, which each cluster assigns. The hub does not use those that others
	// write.
	// +kubebuilder:validation:MaxItems=2
	IPs []string `json:"ips,omitempty"`

	// IPFamilies are the families of the addresses, in their order.
	// +kubebuilder:validation:MaxItems=2
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`

	// Type is ClusterSetIP (the derived Service has an address in each cluster) or Headless (it has none).
	// +kubebuilder:validation:Enum=ClusterSetIP;Headless
	Type ServiceImportType `json:"type"`

	// SessionAffinity of the derived Service: None or ClientIP. Default: None.
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// SessionAffinityConfig configures the session affinity ClientIP.
	SessionAffinityConfig *corev1.SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`

	// InternalTrafficPolicy of the derived Service: Cluster or Local. Local sends requests only to pods of the same node.
	// Default: Cluster.
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`

	// TrafficDistribution of the derived Service, such as PreferClose.
	TrafficDistribution *string `json:"trafficDistribution,omitempty"`
}

// ServiceImportType is ClusterSetIP or Headless.
type ServiceImportType string

const (
	ClusterSetIP ServiceImportType = "ClusterSetIP"
	Headless     ServiceImportType = "Headless"
)

// ServicePort is a port of a derived Service.
type ServicePort struct {
	// Name of the port, the same as in the exported Service. It may be empty if there is only one port.
	Name string `json:"name,omitempty"`

	// Protocol is TCP, UDP or SCTP. Default: TCP.
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// AppProtocol is the application protocol of the port, such as http.
	AppProtocol *string `json:"appProtocol,omitempty"`

	// Port is the port number of the derived Service.
	Port int32 `json:"port"`
}

// ServiceImportStatus lists the clusters that export a Service.
type ServiceImportStatus struct {
	// Clusters are the clusters with known endpoints, sorted by name.
	// +patchStrategy=merge
	// +patchMergeKey=cluster
	// +listType=map
	// +listMapKey=cluster
	Clusters []ClusterStatus `json:"clusters,omitempty" patchStrategy:"merge" patchMergeKey:"cluster"`

	// Conditions of the import. The hub writes none.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ClusterStatus is a cluster that exports a Service.
type ClusterStatus struct {
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster"`
}

// ServiceImportList is a list of ServiceImport.
// +kubebuilder:object:root=true
type ServiceImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceImport `json:"items"`
}
