package v1alpha1

// FailoverBehavior configures the failover of workloads.
type FailoverBehavior struct {
	// Application configures the failover of a workload that is unhealthy in a cluster. Default: such a workload stays.
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`

	// Cluster configures the failover of workloads when a cluster is lost or has a NoExecute taint. If it is not set, the
	// hub moves workloads out of a lost cluster with purgeMode Gracefully. If the hub runs with --cluster-failover=Policy,
	// it then moves none.
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`

	FailoverDialect `json:",inline"`
}

// ApplicationFailoverBehavior configures the failover of a workload that is unhealthy in a cluster that responds.
type ApplicationFailoverBehavior struct {
	// DecisionConditions must be met before the workload is evicted from a cluster.
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode is the time when the workload is deleted from the cluster that it leaves. Gracefully: when its replacement
	// is healthy. Directly: at once; the replacement starts when the deletion is complete. Never: when a user sets
	// suppressDeletion of the eviction task to false. Default: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +kubebuilder:default=Gracefully
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is the time in seconds for the replacement to become healthy, 1 or more, with purgeMode
	// Gracefully. After it, the hub records a warning event and keeps the workload in the cluster that it leaves. Default:
	// 600.
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation copies values of the status of the evicted workload to labels of its replacement.
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`

	ApplicationFailoverDialect `json:",inline"`
}

// DecisionConditions must be met before a workload is evicted.
type DecisionConditions struct {
	// TolerationSeconds is the time in seconds that the workload must be unhealthy before it is evicted. Default: 300.
	// +kubebuilder:default=300
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// ClusterFailoverBehavior configures the failover of workloads from a cluster that is lost or has a NoExecute taint.
type ClusterFailoverBehavior struct {
	// PurgeMode is the time when the workload is deleted from the cluster that it leaves. Gracefully: when its replacement
	// is healthy. Directly: at once; the replacement starts when the deletion is complete, so that no replica runs twice.
	// With Directly, replicas stay in a cluster that does not respond. Default: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully
	// +kubebuilder:default=Gracefully
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation copies values of the status of the evicted workload to labels of its replacement.
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// PurgeMode is the time when a workload is deleted from a cluster that it leaves: Directly, Gracefully or Never.
type PurgeMode string

const (
	PurgeModeDirectly   PurgeMode = "Directly"
	PurgeModeGracefully PurgeMode = "Gracefully"
	PurgeModeNever      PurgeMode = "Never"
)

// StatePreservation copies values of the status of an evicted workload to labels of its replacement.
type StatePreservation struct {
	// Rules each copy one value.
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule copies one value of the status to a label.
type StatePreservationRule struct {
	// AliasLabelName is the key of the label.
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath is the path of the value below .status, such as {.jobStatus.jobID}: fields and indexes, as in kubectl.
	JSONPath string `json:"jsonPath"`
}
