package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddOnPlacementScore has scores of a cluster that an add-on measures, for Placements. It is in the namespace of the
// cluster.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=addonplacementscores,scope=Namespaced
type AddOnPlacementScore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status has the scores. The add-on writes it.
	Status AddOnPlacementScoreStatus `json:"status,omitempty"`
}

// AddOnPlacementScoreList is a list of AddOnPlacementScore.
// +kubebuilder:object:root=true
type AddOnPlacementScoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnPlacementScore `json:"items"`
}

// AddOnPlacementScoreStatus has the scores of a cluster.
type AddOnPlacementScoreStatus struct {
	// Conditions that the add-on reports.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Scores of the cluster.
	// +listType=map
	// +listMapKey=name
	Scores []AddOnPlacementScoreItem `json:"scores,omitempty"`

	// ValidUntil is the time at which the scores expire. An expired score counts as 0. Default: the scores do not expire.
	// +kubebuilder:validation:Format=date-time
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
}

// AddOnPlacementScoreItem is a score of a cluster.
type AddOnPlacementScoreItem struct {
	// Name of the score.
	Name string `json:"name"`

	// Value of the score. Higher is better.
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Value int32 `json:"value"`
}
