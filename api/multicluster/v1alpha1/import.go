package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceImport has a Service that other clusters export be reached in the clusters in which a policy places the
// ServiceImport, as derived-<name>: a Service without selector, with the endpoints of all the clusters that export it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=serviceimports,shortName=svcim
// +kubebuilder:printcolumn:JSONPath=`.spec.type`,name=`Type`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.ips`,name=`IP`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`Age`,type=date
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is how the Service is reached.
	// +optional
	Spec ServiceImportSpec `json:"spec,omitempty"`

	// Status lists the clusters that export the Service.
	// +optional
	Status ServiceImportStatus `json:"status,omitempty"`
}

// ServiceImportSpec is how an imported Service is reached.
type ServiceImportSpec struct {
	// Ports of the derived Service. A name has to be that of the exported Service's port: endpoints are found by it.
	// +listType=atomic
	Ports []ServicePort `json:"ports"`

	// IPs are accepted as in Karmada; each cluster gives the derived Service an address of its own.
	// +kubebuilder:validation:MaxItems=1
	// +optional
	IPs []string `json:"ips,omitempty"`

	// Type is ClusterSetIP for a Service with one address in each cluster, Headless for none.
	// +kubebuilder:validation:Enum=ClusterSetIP;Headless
	Type ServiceImportType `json:"type"`

	// SessionAffinity of the derived Service; None by default.
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// SessionAffinityConfig is the configuration of that.
	// +optional
	SessionAffinityConfig *corev1.SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
}

// ServiceImportType is whether an imported Service has an address.
type ServiceImportType string

// The types.
const (
	ClusterSetIP ServiceImportType = "ClusterSetIP"
	Headless     ServiceImportType = "Headless"
)

// ServicePort is a port of an imported Service.
type ServicePort struct {
	// Name of the port, as the exported Service has it; it may be empty if there is one port alone.
	// +optional
	Name string `json:"name,omitempty"`

	// Protocol is TCP, UDP or SCTP; TCP by default.
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// AppProtocol is the application protocol of the port.
	// +optional
	AppProtocol *string `json:"appProtocol,omitempty"`

	// Port at which the derived Service is reached.
	Port int32 `json:"port"`
}

// ServiceImportStatus lists the clusters that export a Service.
type ServiceImportStatus struct {
	// Clusters from which endpoints are known, sorted.
	// +optional
	// +patchStrategy=merge
	// +patchMergeKey=cluster
	// +listType=map
	// +listMapKey=cluster
	Clusters []ClusterStatus `json:"clusters,omitempty" patchStrategy:"merge" patchMergeKey:"cluster"`
}

// ClusterStatus is a cluster that exports a Service.
type ClusterStatus struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
}

// ServiceImportList is a list of ServiceImport.
// +kubebuilder:object:root=true
type ServiceImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceImport `json:"items"`
}
