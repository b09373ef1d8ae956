package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
)

// ManagedClusterAddOn is an add-on of Open Cluster Management in a cluster. Its namespace has the name of the cluster.
// The hub creates it for the clusters that the ClusterManagementAddOn of the same name chooses, or users do.
// Klusterlets and the managers of add-ons read and write it. The hub stores it as v1alpha1.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=managedclusteraddons,scope=Namespaced,shortName={mca,mcas}
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
type ManagedClusterAddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the configuration of the add-on.
	Spec ManagedClusterAddOnSpec `json:"spec"`

	// Status is the state of the add-on. The klusterlet and the manager of the add-on write it.
	Status ManagedClusterAddOnStatus `json:"status,omitempty"`
}

// ManagedClusterAddOnList is a list of ManagedClusterAddOn.
// +kubebuilder:object:root=true
type ManagedClusterAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManagedClusterAddOn `json:"items"`
}

// ManagedClusterAddOnSpec has the configuration of an add-on.
type ManagedClusterAddOnSpec struct {
	// Configs are the objects that configure the add-on.
	Configs []addonv1alpha1.AddOnConfig `json:"configs,omitempty"`
}

// ManagedClusterAddOnStatus is the state of an add-on.
type ManagedClusterAddOnStatus struct {
	addonv1alpha1.AddOnState `json:",inline"`

	// ConfigReferences are the objects that configure the add-on.
	ConfigReferences []addonv1alpha1.ConfigState `json:"configReferences,omitempty"`

	// Registrations are the credentials that the klusterlet requests for the add-on.
	Registrations []RegistrationConfig `json:"registrations,omitempty"`
}

// RegistrationType is the kind of credentials.
type RegistrationType string

// The kinds of credentials.
const (
	// KubeClient is for the API of the hub.
	KubeClient RegistrationType = "kubeClient"
	// CustomSigner is for others, with a certificate of a signer of the add-on.
	CustomSigner RegistrationType = "customSigner"
)

// RegistrationConfig is a request for credentials.
type RegistrationConfig struct {
	// Type is kubeClient (for the API of the hub) or customSigner (a certificate for others).
	// +kubebuilder:validation:Enum=kubeClient;customSigner
	Type RegistrationType `json:"type"`

	// KubeClient is for the type kubeClient.
	KubeClient *KubeClientConfig `json:"kubeClient,omitempty"`

	// CustomSigner is for the type customSigner.
	CustomSigner *CustomSignerConfig `json:"customSigner,omitempty"`
}

// KubeClientConfig is a request for credentials for the API of the hub.
type KubeClientConfig struct {
	// Subject of the credentials. Default: a user and groups with the names of the cluster and of the add-on.
	Subject addonv1alpha1.User `json:"subject,omitempty"`

	// Driver is csr (a client certificate) or token (of a service account). The klusterlet sets it.
	// +kubebuilder:validation:Enum=csr;token
	Driver string `json:"driver,omitempty"`
}

// CustomSignerConfig is a request for a certificate.
type CustomSignerConfig struct {
	// SignerName is the signer of the certificate.
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$`
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=571
	SignerName string `json:"signerName"`

	// Subject of the certificate. Default: a user and groups with the names of the cluster and of the add-on.
	Subject Subject `json:"subject,omitempty"`
}

// Subject is the user of a certificate.
type Subject struct {
	addonv1alpha1.User `json:",inline"`

	// OrganizationUnits of the certificate.
	OrganizationUnits []string `json:"organizationUnits,omitempty"`
}
