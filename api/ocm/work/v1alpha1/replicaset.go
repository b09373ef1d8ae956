package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
)

// ManifestWorkReplicaSet is a ManifestWork for each cluster that Placements choose.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=manifestworkreplicasets,shortName=mwrs,scope=Namespaced
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="PlacementVerified")].reason`,name="Placement",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="PlacementVerified")].status`,name="Found",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="ManifestworkApplied")].reason`,name="ManifestWorks",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="ManifestworkApplied")].status`,name="Applied",type=string
type ManifestWorkReplicaSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the ManifestWork and the Placements.
	Spec ManifestWorkReplicaSetSpec `json:"spec,omitempty"`

	// Status counts the ManifestWorks. The hub writes it.
	Status ManifestWorkReplicaSetStatus `json:"status,omitempty"`
}

// ManifestWorkReplicaSetList is a list of ManifestWorkReplicaSet.
// +kubebuilder:object:root=true
type ManifestWorkReplicaSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManifestWorkReplicaSet `json:"items"`
}

// ManifestWorkReplicaSetSpec has a ManifestWork and the Placements that choose its clusters.
type ManifestWorkReplicaSetSpec struct {
	// ManifestWorkTemplate is the spec of each ManifestWork. It needs at least one manifest.
	// +optional
	ManifestWorkTemplate ocmv1.ManifestWorkSpec `json:"manifestWorkTemplate"`

	// PlacementRefs are the Placements, at least one, each at most once. A cluster that two of them choose gets two
	// ManifestWorks.
	// +kubebuilder:validation:MinItems=1
	PlacementRefs []LocalPlacementReference `json:"placementRefs"`

	// CascadeDeletionPolicy is Background (the ManifestWorkReplicaSet is removed when the deletion of its ManifestWorks
	// has
	// begun) or Foreground (it is removed after they are deleted).
	// +kubebuilder:validation:Enum=Background;Foreground
	// +kubebuilder:default=Background
	CascadeDeletionPolicy CascadeDeletionPolicy `json:"cascadeDeletionPolicy,omitempty"`
}

// CascadeDeletionPolicy orders the deletion of a ManifestWorkReplicaSet and of its ManifestWorks.
type CascadeDeletionPolicy string

// The deletion policies.
const (
	CascadeBackground CascadeDeletionPolicy = "Background"
	CascadeForeground CascadeDeletionPolicy = "Foreground"
)

// LocalPlacementReference names a Placement and has the order in which its clusters get a change.
type LocalPlacementReference struct {
	// Name of the Placement. It is in the namespace of the ManifestWorkReplicaSet.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// RolloutStrategy is the order in which the clusters get the ManifestWork and its changes. Default: all at once.
	// +kubebuilder:default={type: All, all: {progressDeadline: None}}
	// +optional
	RolloutStrategy scorev1alpha1.RolloutStrategy `json:"rolloutStrategy"`
}

// ManifestWorkReplicaSetStatus counts the ManifestWorks.
type ManifestWorkReplicaSetStatus struct {
	// Conditions of the ManifestWorkReplicaSet. See docs/reference/conditions.md.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Summary counts the ManifestWorks of all Placements.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary"`

	// PlacementsSummary counts the ManifestWorks of each Placement.
	// +optional
	PlacementsSummary []PlacementSummary `json:"placementSummary"`
}

// PlacementSummary counts the ManifestWorks of a Placement.
type PlacementSummary struct {
	// Name of the Placement.
	Name string `json:"name"`

	// AvailableDecisionGroups is a text: the number of decision groups, of clusters with the current ManifestWork, and of
	// chosen clusters, such as "2 (3 / 5 clusters applied)".
	// +optional
	AvailableDecisionGroups string `json:"availableDecisionGroups"`

	// Summary counts the ManifestWorks.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary"`
}

// ManifestWorkReplicaSetSummary counts ManifestWorks that have the current template.
type ManifestWorkReplicaSetSummary struct {
	// Total is the number of ManifestWorks with the current template.
	// +optional
	Total int `json:"total"`

	// Progressing is the number of those whose condition Progressing is True.
	// +optional
	Progressing int `json:"progressing"`

	// Available is the number of those whose condition Available is True.
	// +optional
	Available int `json:"available"`

	// Degraded is the number of those whose condition Degraded is True.
	// +optional
	Degraded int `json:"degraded"`

	// Applied is the number of those whose condition Applied is True.
	// +optional
	Applied int `json:"applied"`

	// DesiredTotal is never set, as in Open Cluster Management.
	// +optional
	DesiredTotal int `json:"desiredTotal"`

	// Updated is never set, as in Open Cluster Management.
	// +optional
	Updated int `json:"updated"`
}
