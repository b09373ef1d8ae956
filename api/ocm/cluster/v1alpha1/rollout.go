package v1alpha1

import "k8s.io/apimachinery/pkg/util/intstr"

// RolloutType is the order in which clusters get a change.
type RolloutType string

// The orders.
const (
	// RolloutAll: all clusters at once.
	RolloutAll RolloutType = "All"
	// RolloutProgressive: by name, some clusters at a time.
	RolloutProgressive RolloutType = "Progressive"
	// RolloutProgressivePerGroup: one decision group of the Placement after the other.
	RolloutProgressivePerGroup RolloutType = "ProgressivePerGroup"
)

// RolloutStrategy is the order in which the clusters of a Placement get a change.
type RolloutStrategy struct {
	// Type is All (all clusters at once), Progressive (by name, some clusters at a time) or ProgressivePerGroup (one
	// decision group after the other).
	// +kubebuilder:validation:Enum=All;Progressive;ProgressivePerGroup
	// +kubebuilder:default=All
	Type RolloutType `json:"type,omitempty"`

	// All has the settings of the type All. They have no effect.
	All *RolloutAllConfig `json:"all,omitempty"`

	// Progressive has the settings of the type Progressive.
	Progressive *RolloutProgressiveConfig `json:"progressive,omitempty"`

	// ProgressivePerGroup has the settings of the type ProgressivePerGroup.
	ProgressivePerGroup *RolloutPerGroupConfig `json:"progressivePerGroup,omitempty"`
}

// RolloutAllConfig has the settings of the type All.
type RolloutAllConfig struct {
	RolloutConfig `json:",inline"`
}

// RolloutPerGroupConfig has the settings of the type ProgressivePerGroup.
type RolloutPerGroupConfig struct {
	RolloutConfig `json:",inline"`

	MandatoryDecisionGroups `json:",inline"`
}

// RolloutProgressiveConfig has the settings of the type Progressive.
type RolloutProgressiveConfig struct {
	RolloutConfig `json:",inline"`

	MandatoryDecisionGroups `json:",inline"`

	// MaxConcurrency is the greatest number of clusters that are awaited at a time, or their share of the clusters outside
	// of mandatory groups, rounded up. Default, and for values of 0 or above the number of these clusters: all of them.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxConcurrency intstr.IntOrString `json:"maxConcurrency,omitempty"`
}

// RolloutConfig decides when a cluster is no longer awaited.
type RolloutConfig struct {
	// MinSuccessTime is a duration, such as 5m: the time for which a cluster that has succeeded is awaited. Default: 0.
	// +kubebuilder:default="0"
	MinSuccessTime string `json:"minSuccessTime,omitempty"`

	// ProgressDeadline is a duration, such as 10m, or None. A cluster that is progressing or degraded for that long has
	// failed, and is not awaited. A cluster that reports nothing is awaited without limit. Default: None.
	// +kubebuilder:validation:Pattern=`^(([0-9])+[h|m|s])|None$`
	// +kubebuilder:default=None
	ProgressDeadline string `json:"progressDeadline,omitempty"`

	// MaxFailures is the number of clusters that may fail before no further cluster gets the change, or their share of all
	// clusters (Progressive) or of the group (ProgressivePerGroup), rounded up. A value above the number of these clusters
	// is 0. Mandatory groups tolerate no failure. Default: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +kubebuilder:default=0
	MaxFailures intstr.IntOrString `json:"maxFailures,omitempty"`
}

// MandatoryDecisionGroups are decision groups that come before all others.
type MandatoryDecisionGroups struct {
	// MandatoryDecisionGroups are decision groups of the Placement that get a change before all others, one after the
	// other in the order of the Placement. All their clusters must succeed.
	MandatoryDecisionGroups []MandatoryDecisionGroup `json:"mandatoryDecisionGroups,omitempty"`
}

// MandatoryDecisionGroup names a decision group.
type MandatoryDecisionGroup struct {
	// GroupName is the name of the group.
	GroupName string `json:"groupName,omitempty"`

	// GroupIndex is the index of the group, from 0. It is ignored if groupName is set. Default: 0.
	GroupIndex int32 `json:"groupIndex,omitempty"`
}
