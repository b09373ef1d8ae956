package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
)

// ClusterManagementAddOn is an add-on of Open Cluster Management for all clusters. The hub creates a
// ManagedClusterAddOn of the same name in the namespace of each cluster that its Placements choose. The hub stores it
// as v1alpha1.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clustermanagementaddons,scope=Cluster,shortName={cma,cmas}
// +kubebuilder:printcolumn:name="DISPLAY NAME",type=string,JSONPath=`.spec.addOnMeta.displayName`
type ClusterManagementAddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the clusters and the configuration of the add-on.
	Spec ClusterManagementAddOnSpec `json:"spec"`

	// Status is the progress of the add-on. The hub writes it.
	Status ClusterManagementAddOnStatus `json:"status,omitempty"`
}

// ClusterManagementAddOnList is a list of ClusterManagementAddOn.
// +kubebuilder:object:root=true
type ClusterManagementAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterManagementAddOn `json:"items"`
}

// ClusterManagementAddOnSpec has the clusters and the configuration of an add-on.
type ClusterManagementAddOnSpec struct {
	// AddOnMeta describes the add-on.
	AddOnMeta addonv1alpha1.AddOnMeta `json:"addOnMeta,omitempty"`

	// DefaultConfigs are the kinds of objects that configure the add-on, with the objects that all clusters use, unless a
	// Placement or a ManagedClusterAddOn names another one. The name __reserved_no_default__ stands for none.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	DefaultConfigs []addonv1alpha1.AddOnConfig `json:"defaultConfigs,omitempty"`

	// InstallStrategy decides in which clusters the add-on is installed. Default: Manual.
	// +kubebuilder:default={type: Manual}
	InstallStrategy addonv1alpha1.InstallStrategy `json:"installStrategy,omitempty"`
}

// ClusterManagementAddOnStatus is the progress of an add-on.
type ClusterManagementAddOnStatus struct {
	// DefaultConfigReferences are the default objects that configure the add-on.
	DefaultConfigReferences []addonv1alpha1.DefaultConfigReference `json:"defaultConfigReferences,omitempty"`

	// InstallProgressions are the progress in the clusters of each Placement.
	InstallProgressions []addonv1alpha1.InstallProgression `json:"installProgressions,omitempty"`
}

// AddOnDeploymentConfig has the settings of the pods of add-ons. The hub stores it as v1alpha1.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addondeploymentconfigs,scope=Namespaced
type AddOnDeploymentConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the settings.
	Spec addonv1alpha1.AddOnDeploymentConfigSpec `json:"spec"`
}

// AddOnDeploymentConfigList is a list of AddOnDeploymentConfig.
// +kubebuilder:object:root=true
type AddOnDeploymentConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnDeploymentConfig `json:"items"`
}

// AddOnTemplate has the objects of an add-on, and the permissions of its agents on the hub. The hub stores it as
// v1alpha1.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addontemplates,scope=Cluster
// +kubebuilder:printcolumn:name="ADDON NAME",type=string,JSONPath=`.spec.addonName`
type AddOnTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the objects and the permissions.
	Spec addonv1alpha1.AddOnTemplateSpec `json:"spec"`
}

// AddOnTemplateList is a list of AddOnTemplate.
// +kubebuilder:object:root=true
type AddOnTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnTemplate `json:"items"`
}
