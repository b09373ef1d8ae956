package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InstallNamespaceAnnotation has the field spec.installNamespace of v1alpha1 in objects of v1beta1.
const InstallNamespaceAnnotation = "addon.open-cluster-management.io/v1alpha1-install-namespace"

// ManagedClusterAddOn is an add-on of Open Cluster Management in a cluster. Its namespace has the name of the cluster.
// The hub creates it for the clusters that the ClusterManagementAddOn of the same name chooses, or users do.
// Klusterlets and the managers of add-ons read and write it.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	// InstallNamespace is the namespace of the add-on in the cluster. Deprecated: v1beta1 has it in the annotation
	// addon.open-cluster-management.io/v1alpha1-install-namespace.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:default=open-cluster-management-agent-addon
	InstallNamespace string `json:"installNamespace,omitempty"`

	// Configs are the objects that configure the add-on.
	Configs []AddOnConfig `json:"configs,omitempty"`
}

// AddOnConfig is an object that configures an add-on.
type AddOnConfig struct {
	ConfigGroupResource `json:",inline"`

	// Namespace of the object. Empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`
}

// ConfigGroupResource is a kind of objects that configure an add-on.
type ConfigGroupResource struct {
	// Group of the kind. Empty for the core group.
	// +optional
	// +kubebuilder:default=""
	Group string `json:"group"`

	// Resource is the plural name of the kind, such as addondeploymentconfigs.
	Resource string `json:"resource"`
}

// ManagedClusterAddOnStatus is the state of an add-on.
type ManagedClusterAddOnStatus struct {
	AddOnState `json:",inline"`

	// AddOnConfiguration is the object that configures the add-on. Deprecated: v1beta1 does not have it. See
	// configReferences.
	AddOnConfiguration ConfigCoordinates `json:"addOnConfiguration,omitempty"`

	// ConfigReferences are the objects that configure the add-on.
	ConfigReferences []ConfigReference `json:"configReferences,omitempty"`

	// Registrations are the credentials that the klusterlet requests for the add-on.
	Registrations []RegistrationConfig `json:"registrations,omitempty"`

	// KubeClientDriver is csr (a client certificate) or token (of a service account), the kind of credentials for the API
	// of the hub. The klusterlet sets it. In v1beta1 it is in registrations.
	// +kubebuilder:validation:Enum=csr;token
	KubeClientDriver string `json:"kubeClientDriver,omitempty"`
}

// AddOnState has the fields of the status that all versions have.
type AddOnState struct {
	// Conditions of the add-on.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// RelatedObjects are objects that belong to the add-on.
	RelatedObjects []ObjectReference `json:"relatedObjects,omitempty"`

	// AddOnMeta describes the add-on.
	AddOnMeta AddOnMeta `json:"addOnMeta,omitempty"`

	// SupportedConfigs are the kinds of objects that configs may name.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	SupportedConfigs []ConfigGroupResource `json:"supportedConfigs,omitempty"`

	// Namespace in the cluster of the credentials for the hub and of the Lease of the add-on.
	Namespace string `json:"namespace,omitempty"`

	// HealthCheck decides about the condition Available.
	HealthCheck HealthCheck `json:"healthCheck,omitempty"`
}

// ObjectReference names an object.
type ObjectReference struct {
	// Group of the object. Empty for the core group.
	Group string `json:"group"`

	// Resource is the plural name of the kind of the object, such as deployments.
	Resource string `json:"resource"`

	// Namespace of the object. Empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`
}

// AddOnMeta describes an add-on.
type AddOnMeta struct {
	// DisplayName is the name of the add-on for users.
	DisplayName string `json:"displayName,omitempty"`

	// Description of the add-on for users.
	Description string `json:"description,omitempty"`
}

// ConfigCoordinates names the object that configures an add-on.
type ConfigCoordinates struct {
	// CRDName is the name of the CustomResourceDefinition of the object.
	CRDName string `json:"crdName,omitempty"`

	// CRName is the name of the object.
	CRName string `json:"crName,omitempty"`

	// LastObservedGeneration is the generation of the object that was read last.
	LastObservedGeneration int64 `json:"lastObservedGeneration,omitempty"`
}

// ConfigReference is the state of an object that configures an add-on.
type ConfigReference struct {
	ConfigState `json:",inline"`

	// Namespace of the object. Deprecated: see desiredConfig.
	Namespace string `json:"namespace,omitempty"`

	// Name of the object. Deprecated: see desiredConfig.
	Name string `json:"name"`
}

// ConfigState is the state of an object that configures an add-on.
type ConfigState struct {
	ConfigGroupResource `json:",inline"`

	// LastObservedGeneration is the generation of the object that was read last.
	// +optional
	LastObservedGeneration int64 `json:"lastObservedGeneration"`

	// DesiredConfig is the configuration that the add-on should have.
	// +nullable
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`

	// LastAppliedConfig is the configuration that was last applied in the cluster.
	// +nullable
	LastAppliedConfig *ConfigSpecHash `json:"lastAppliedConfig,omitempty"`
}

// ConfigSpecHash is an object that configures an add-on, with its content.
type ConfigSpecHash struct {
	// Namespace of the object. Empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`

	// SpecHash is the hash of the content.
	SpecHash string `json:"specHash,omitempty"`
}

// RegistrationConfig is a request for credentials.
type RegistrationConfig struct {
	// SignerName is the signer of the certificate. kubernetes.io/kube-apiserver-client is for the API of the hub.
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$`
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=571
	SignerName string `json:"signerName"`

	// Subject of the certificate. Default: a user and groups with the names of the cluster and of the add-on.
	Subject Subject `json:"subject,omitempty"`
}

// Subject is the user of a certificate.
type Subject struct {
	User `json:",inline"`

	// OrganizationUnits of the certificate.
	OrganizationUnits []string `json:"organizationUnit,omitempty"`
}

// User is a user with its groups.
type User struct {
	// Name of the user.
	// +optional
	Name string `json:"user"`

	// Groups of the user.
	Groups []string `json:"groups,omitempty"`
}

// HealthCheck decides about the condition Available.
type HealthCheck struct {
	// Mode is Lease (the klusterlet reads the Lease of the add-on in the cluster) or Customized (the manager of the add-on
	// sets the condition).
	// +kubebuilder:validation:Enum=Lease;Customized
	// +kubebuilder:default=Lease
	Mode HealthCheckMode `json:"mode,omitempty"`
}

// HealthCheckMode is Lease or Customized.
type HealthCheckMode string

// The health checks.
const (
	HealthCheckLease      HealthCheckMode = "Lease"
	HealthCheckCustomized HealthCheckMode = "Customized"
)
