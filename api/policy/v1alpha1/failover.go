package v1alpha1

// FailoverBehavior is the reaction to a failed application or cluster.
type FailoverBehavior struct {
	// Application is what happens when the application is unhealthy in a cluster.
	// +optional
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`

	// Cluster is what happens when a cluster fails. Without it, workloads leave a lost cluster as with purgeMode
	// Gracefully, unless the hub runs with --cluster-failover=Policy.
	// +optional
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`

	FailoverDialect `json:",inline"`
}

// ApplicationFailoverBehavior moves an application that stays unhealthy.
type ApplicationFailoverBehavior struct {
	// DecisionConditions are the conditions for the eviction from a cluster.
	// +required
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode is how the old copy goes.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is how long the old copy stays at most, with Gracefully; defaulted to 600.
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
	// PurgeMode is how the old copy goes. With Directly nothing runs twice: the replacement starts when the old copy is
	// deleted, and replicas stay in a cluster that does not respond.
	// +kubebuilder:validation:Enum=Directly;Gracefully
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation carries state from the old copy to the new one.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// PurgeMode is how an old copy is removed.
type PurgeMode string

// The purge modes. Gracefully waits for the new copy to be healthy, within a time.
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
