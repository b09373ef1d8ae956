package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
)

// ClusterManagementAddOn is an add-on of Open Cluster Management for all clusters. The hub creates a
// ManagedClusterAddOn of the same name in the namespace of each cluster that its Placements choose.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clustermanagementaddons,scope=Cluster,shortName={cma,cmas}
// +kubebuilder:printcolumn:name="DISPLAY NAME",type=string,JSONPath=`.spec.addOnMeta.displayName`
// +kubebuilder:printcolumn:name="CRD NAME",type=string,JSONPath=`.spec.addOnConfiguration.crdName`
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
	AddOnMeta AddOnMeta `json:"addOnMeta,omitempty"`

	// AddOnConfiguration is the object that configures the add-on. Deprecated: v1beta1 does not have it. See
	// supportedConfigs.
	AddOnConfiguration ConfigCoordinates `json:"addOnConfiguration,omitempty"`

	// SupportedConfigs are the kinds of objects that configure the add-on, with their default objects.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	SupportedConfigs []ConfigMeta `json:"supportedConfigs,omitempty"`

	// InstallStrategy decides in which clusters the add-on is installed. Default: Manual.
	// +kubebuilder:default={type: Manual}
	InstallStrategy InstallStrategy `json:"installStrategy,omitempty"`
}

// ConfigMeta is a kind of objects that configure an add-on.
type ConfigMeta struct {
	ConfigGroupResource `json:",inline"`

	// DefaultConfig is the object that all clusters use, unless a Placement or a ManagedClusterAddOn names another one.
	DefaultConfig *ConfigReferent `json:"defaultConfig,omitempty"`
}

// ConfigReferent names an object that configures an add-on.
type ConfigReferent struct {
	// Namespace of the object. Empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// InstallStrategyType is Manual or Placements.
type InstallStrategyType string

// The install strategies.
const (
	// InstallManual: users create the ManagedClusterAddOns.
	InstallManual InstallStrategyType = "Manual"
	// InstallPlacements: the hub creates and deletes the ManagedClusterAddOns by Placements.
	InstallPlacements InstallStrategyType = "Placements"
)

// InstallStrategy decides in which clusters an add-on is installed.
type InstallStrategy struct {
	// Type is Manual (users create the ManagedClusterAddOns) or Placements (the hub creates and deletes them, for the
	// clusters that the Placements choose).
	// +kubebuilder:validation:Enum=Manual;Placements
	// +kubebuilder:default=Manual
	// +optional
	Type InstallStrategyType `json:"type"`

	// Placements choose the clusters, for the type Placements. The last one counts for a cluster that several choose.
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	Placements []PlacementStrategy `json:"placements,omitempty"`
}

// PlacementStrategy names a Placement, with the configuration of its clusters.
type PlacementStrategy struct {
	PlacementRef `json:",inline"`

	// Configs are the objects that configure the add-on in the clusters of the Placement. They replace the default objects
	// of the same kind.
	Configs []AddOnConfig `json:"configs,omitempty"`

	// RolloutStrategy is the order in which the clusters get a change of the configuration. Default: all at once.
	// +kubebuilder:default={type: All}
	RolloutStrategy scorev1alpha1.RolloutStrategy `json:"rolloutStrategy,omitempty"`
}

// PlacementRef names a Placement.
type PlacementRef struct {
	// Namespace of the Placement.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`

	// Name of the Placement.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ClusterManagementAddOnStatus is the progress of an add-on.
type ClusterManagementAddOnStatus struct {
	// DefaultConfigReferences are the default objects that configure the add-on. In v1beta1 the name of the field is
	// defaultConfigReferences.
	DefaultConfigReferences []DefaultConfigReference `json:"defaultconfigReferences,omitempty"`

	// InstallProgressions are the progress in the clusters of each Placement.
	InstallProgressions []InstallProgression `json:"installProgressions,omitempty"`
}

// DefaultConfigReference is a default object that configures an add-on.
type DefaultConfigReference struct {
	ConfigGroupResource `json:",inline"`

	// DesiredConfig is the object with its current content.
	// +nullable
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`
}

// InstallProgression is the progress of an add-on in the clusters of a Placement.
type InstallProgression struct {
	PlacementRef `json:",inline"`

	// ConfigReferences are the objects that configure the add-on in these clusters.
	ConfigReferences []InstallConfigReference `json:"configReferences,omitempty"`

	// Conditions of the add-on in these clusters. See docs/reference/conditions.md.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InstallConfigReference is the progress of an object that configures an add-on.
type InstallConfigReference struct {
	ConfigGroupResource `json:",inline"`

	// DesiredConfig is the configuration that all clusters should have.
	// +nullable
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`

	// LastKnownGoodConfig is the configuration with which the add-on was last ready in all clusters.
	// +nullable
	LastKnownGoodConfig *ConfigSpecHash `json:"lastKnownGoodConfig,omitempty"`

	// LastAppliedConfig is the configuration that all clusters had last.
	// +nullable
	LastAppliedConfig *ConfigSpecHash `json:"lastAppliedConfig,omitempty"`
}
