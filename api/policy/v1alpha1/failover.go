package v1alpha1

// FailoverBehavior is the reaction to a failed application or cluster.
type FailoverBehavior struct {
	// Application is what happens when the application is unhealthy in a cluster.
	// +optional
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`

	// Cluster configures the failover of workloads when a cluster is lost or has a NoExecute taint. If it is not set, the
	// hub moves workloads out of a lost cluster with purgeMode Gracefully. If the hub runs with --cluster-failover=Policy,
	// it then moves none.
	// +optional
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`

	FailoverDialect `json:",inline"`
}

// ApplicationFailoverBehavior moves an application that stays unhealthy.
type ApplicationFailoverBehavior struct {
	// DecisionConditions are the conditions for the eviction from a cluster.
	// +required
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode is when the workload is deleted from the cluster that it leaves. Gracefully: when its replacement is
	// healthy. Directly: at once; the replacement starts when the deletion is complete. Never: when a user sets
	// suppressDeletion of the eviction task to false. Default: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is the time in seconds that the replacement has to become healthy, with purgeMode Gracefully.
	// After that the hub reports a warning, and still keeps the workload in the cluster that it leaves. Default: 600.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation carries state from the old copy to the new one.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`

	ApplicationFailoverDialect `json:",inline"`
}

// DecisionConditions are the conditions for an eviction.
type DecisionConditions struct {
	// TolerationSeconds is how long the application may be unhealthy.
	// +kubebuilder:default=300
	// +optional
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// ClusterFailoverBehavior moves applications away from a cluster that fails.
type ClusterFailoverBehavior struct {
	// PurgeMode is when the workload is deleted from the cluster that it leaves. Gracefully: when its replacement is
	// healthy. Directly: at once; the replacement starts when the deletion is complete, so that no replica runs twice.
	// With Directly, replicas stay in a cluster that does not respond. Default: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation carries state from the old copy to the new one.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// PurgeMode is when a workload is deleted from a cluster that it leaves: Directly, Gracefully or Never.
type PurgeMode string

// The purge modes.
const (
	PurgeModeDirectly   PurgeMode = "Directly"
	PurgeModeGracefully PurgeMode = "Gracefully"
	PurgeModeNever      PurgeMode = "Never"
)

// StatePreservation carries parts of the status over as labels.
type StatePreservation struct {
	// Rules each carry one value.
	// +required
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule carries one value of the status over as a label.
type StatePreservationRule struct {
	// AliasLabelName is the label's key.
	// +required
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath finds the value below .status, in kubectl's syntax.
	// +required
	JSONPath string `json:"jsonPath"`
}
