package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterProfile represents one cluster of an inventory for programs that work in several clusters. All ClusterProfiles
// of a namespace are one inventory.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterprofiles
// +kubebuilder:printcolumn:JSONPath=`.spec.clusterManager.name`,name=`Manager`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="ControlPlaneHealthy")].status`,name=`Healthy`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.version.kubernetes`,name=`Version`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`Age`,type=date
type ClusterProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterProfileSpec `json:"spec"`
	// Status is written by the cluster manager.
	Status ClusterProfileStatus `json:"status,omitempty"`
}

// ClusterProfileSpec has a name of the cluster for people, and the name of its cluster manager.
type ClusterProfileSpec struct {
	// DisplayName is a name for people.
	DisplayName string `json:"displayName,omitempty"`
	// ClusterManager is the program that writes the ClusterProfile: argosy for this hub. It cannot be changed.
	ClusterManager ClusterManager `json:"clusterManager"`
}

// ClusterManager is a program that writes ClusterProfiles.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ClusterManager is immutable"
type ClusterManager struct {
	// Name of the program, also in the label x-k8s.io/cluster-manager.
	Name string `json:"name"`
}

// ClusterProfileStatus has the state of the cluster, and the ways to it.
type ClusterProfileStatus struct {
	// Conditions are ControlPlaneHealthy and Joined. ControlPlaneHealthy is True while the API server of the cluster
	// responds. Joined is True while the cluster is a member of the fleet, and False while it is being removed.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Version of the cluster.
	Version ClusterVersion `json:"version,omitempty"`
	// Properties of the cluster, such as its region.
	// +listType=map
	// +listMapKey=name
	Properties []Property `json:"properties,omitempty"`
	// CredentialProviders is the former name of AccessProviders. The hub does not write it.
	// +listType=map
	// +listMapKey=name
	CredentialProviders []AccessProvider `json:"credentialProviders,omitempty"`
	// AccessProviders are the ways to connect to the cluster.
	// +listType=map
	// +listMapKey=name
	AccessProviders []AccessProvider `json:"accessProviders,omitempty"`
}

// ClusterVersion has versions of a cluster.
type ClusterVersion struct {
	// Kubernetes is the version of the API server, such as v1.36.3.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Property is a property of a cluster.
type Property struct {
	// Name of the property, such as id.k8s.io.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
	// LastObservedTime is when the property got its value.
	LastObservedTime metav1.Time `json:"lastObservedTime,omitempty"`
}

// AccessProvider is a way to connect to a cluster. Programs know by its name which credential plugin to use.
type AccessProvider struct {
	// Name of the way: argosy for the proxy of this hub, with `argosy credential` as the plugin.
	Name string `json:"name"`
	// Cluster has the URL of the API server and its certificate authorities, as in a kubeconfig.
	Cluster AccessCluster `json:"cluster,omitempty"`
}

// AccessCluster is the cluster of a kubeconfig.
type AccessCluster struct {
	// Server is the URL of the API server.
	Server string `json:"server"`
	// TLSServerName is the name in the certificate of the server, if it is not the host of the URL.
	TLSServerName string `json:"tls-server-name,omitempty"`
	// InsecureSkipTLSVerify trusts any certificate of the server.
	InsecureSkipTLSVerify bool `json:"insecure-skip-tls-verify,omitempty"`
	// CertificateAuthority is the path of a file with certificate authorities.
	CertificateAuthority string `json:"certificate-authority,omitempty"`
	// CertificateAuthorityData are certificate authorities in PEM.
	CertificateAuthorityData []byte `json:"certificate-authority-data,omitempty"`
	// ProxyURL is the URL of a proxy to the server.
	ProxyURL string `json:"proxy-url,omitempty"`
	// DisableCompression turns off the compression of responses.
	DisableCompression bool `json:"disable-compression,omitempty"`
	// Extensions have data for programs. The credential plugin gets that of the name client.authentication.k8s.io/exec.
	Extensions []NamedExtension `json:"extensions,omitempty"`
}

// NamedExtension is data for a program.
type NamedExtension struct {
	// Name of the extension.
	Name string `json:"name"`
	// Extension is any object.
	// +kubebuilder:pruning:PreserveUnknownFields
	Extension runtime.RawExtension `json:"extension"`
}

// ClusterProfileList is a list of ClusterProfile.
// +kubebuilder:object:root=true
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProfile `json:"items"`
}

// Labels, conditions and names of ClusterProfiles.
const (
	// ClusterManagerLabel has the name of the cluster manager.
	ClusterManagerLabel = "x-k8s.io/cluster-manager"
	// ClusterSetLabel and ClusterSetKEPLabel name the ClusterSet of a namespace with ClusterProfiles: the first is the
	// constant of the API's module, the second the name in the text of KEP-4322.
	ClusterSetLabel    = "multicluster.x-k8s.io/clusterset"
	ClusterSetKEPLabel = "clusterset.multicluster.x-k8s.io"

	// ConditionControlPlaneHealthy is True while the API server of the cluster responds, False while it does not, and
	// Unknown while the cluster does not report.
	ConditionControlPlaneHealthy = "ControlPlaneHealthy"
	// ConditionJoined is True while the cluster is a member of the fleet, and False while it is being removed.
	ConditionJoined = "Joined"

	// ExecExtension is the name of the extension that client-go passes to credential plugins.
	ExecExtension = "client.authentication.k8s.io/exec"
)
