package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
)

// AddOnTemplate has the objects of an add-on, and the permissions of its agents on the hub.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=addontemplates,scope=Cluster
// +kubebuilder:printcolumn:name="ADDON NAME",type=string,JSONPath=`.spec.addonName`
type AddOnTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the objects and the permissions.
	Spec AddOnTemplateSpec `json:"spec"`
}

// AddOnTemplateList is a list of AddOnTemplate.
// +kubebuilder:object:root=true
type AddOnTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnTemplate `json:"items"`
}

// AddOnTemplateSpec has the objects of an add-on, and the permissions of its agents on the hub.
type AddOnTemplateSpec struct {
	// AddonName is the name of the add-on.
	AddonName string `json:"addonName"`

	// AgentSpec is the spec of the ManifestWork in each cluster. {{NAME}} stands for a value of an AddOnDeploymentConfig,
	// or for one of the hub: CLUSTER_NAME, INSTALL_NAMESPACE or HUB_KUBECONFIG.
	AgentSpec ocmv1.ManifestWorkSpec `json:"agentSpec"`

	// Registration are the credentials of the agents.
	// +optional
	Registration []RegistrationSpec `json:"registration"`
}

// RegistrationType is the kind of credentials of an agent.
type RegistrationType string

// The kinds of credentials of an agent.
const (
	// RegistrationKubeClient is for the API of the hub.
	RegistrationKubeClient RegistrationType = "KubeClient"
	// RegistrationCustomSigner is for others, with a certificate of a signer of the add-on.
	RegistrationCustomSigner RegistrationType = "CustomSigner"
)

// RegistrationSpec are credentials of the agents of an add-on.
type RegistrationSpec struct {
	// Type is KubeClient (for the API of the hub) or CustomSigner (a certificate for others).
	// +kubebuilder:validation:Enum=KubeClient;CustomSigner
	Type RegistrationType `json:"type"`

	// KubeClient is for the type KubeClient.
	KubeClient *KubeClientRegistration `json:"kubeClient,omitempty"`

	// CustomSigner is for the type CustomSigner.
	CustomSigner *CustomSignerRegistration `json:"customSigner,omitempty"`
}

// KubeClientRegistration are credentials for the API of the hub.
type KubeClientRegistration struct {
	// HubPermissions are the permissions of the agents on the hub.
	HubPermissions []HubPermission `json:"hubPermissions,omitempty"`
}

// HubPermissionType is the scope of a permission.
type HubPermissionType string

// The scopes of permissions.
const (
	// PermissionCurrentCluster is the namespace of the cluster of the agent.
	PermissionCurrentCluster HubPermissionType = "CurrentCluster"
	// PermissionSingleNamespace is one namespace for the agents of all clusters.
	PermissionSingleNamespace HubPermissionType = "SingleNamespace"
)

// HubPermission is a permission of agents on the hub.
type HubPermission struct {
	// Type is CurrentCluster (in the namespace of the cluster of the agent) or SingleNamespace (in one namespace).
	// +kubebuilder:validation:Enum=CurrentCluster;SingleNamespace
	Type HubPermissionType `json:"type"`

	// CurrentCluster is for the type CurrentCluster.
	CurrentCluster *CurrentClusterPermission `json:"currentCluster,omitempty"`

	// SingleNamespace is for the type SingleNamespace.
	SingleNamespace *SingleNamespacePermission `json:"singleNamespace,omitempty"`
}

// CurrentClusterPermission is a permission in the namespace of the cluster of an agent.
type CurrentClusterPermission struct {
	// ClusterRoleName is the ClusterRole that the agent has there.
	ClusterRoleName string `json:"clusterRoleName"`
}

// SingleNamespacePermission is a permission in one namespace.
type SingleNamespacePermission struct {
	// Namespace on the hub.
	Namespace string `json:"namespace"`

	// RoleRef is the Role or ClusterRole that the agents have there.
	RoleRef rbacv1.RoleRef `json:"roleRef"`
}

// CustomSignerRegistration is a certificate of a signer of the add-on.
type CustomSignerRegistration struct {
	// SignerName is the signer of the certificate.
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$`
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=571
	SignerName string `json:"signerName"`

	// Subject of the certificate. Default: a user and groups with the names of the cluster and of the add-on.
	Subject *Subject `json:"subject,omitempty"`

	// SigningCA is the Secret with the certificate and the key of the signer, tls.crt and tls.key.
	SigningCA SigningCA `json:"signingCA"`
}

// SigningCA names a Secret on the hub.
type SigningCA struct {
	// Namespace of the Secret.
	Namespace string `json:"namespace,omitempty"`

	// Name of the Secret.
	Name string `json:"name"`
}
