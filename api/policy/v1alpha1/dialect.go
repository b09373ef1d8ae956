package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// The fields of this file are alternative spellings that public guides use and the API of Karmada lacks. The schema
// needs them because strict field validation runs before admission. Admission rewrites each to its canonical field,
// with a warning (internal/core/admission/dialect). None is stored.

// ReplicaSchedulingDialect has alternative spellings of fields of ReplicaSchedulingStrategy.
type ReplicaSchedulingDialect struct {
	// DynamicWeight is an alternative spelling of weightPreference.dynamicWeight. The hub rewrites it.
	DynamicWeight string `json:"dynamicWeight,omitempty"`
}

// FailoverDialect has alternative spellings of fields of FailoverBehavior.
type FailoverDialect struct {
	// ApplicationMigrationPolicy is an alternative spelling of application and cluster. The hub rewrites it.
	ApplicationMigrationPolicy *ApplicationMigrationPolicy `json:"applicationMigrationPolicy,omitempty"`
}

// ApplicationMigrationPolicy is ApplicationFailoverBehavior without defaults, since a default purgeMode would
// contradict the purgePolicy of the user.
type ApplicationMigrationPolicy struct {
	// DecisionConditions must be met before the workload is evicted from a cluster.
	DecisionConditions *DecisionConditions `json:"decisionConditions,omitempty"`

	// PurgeMode is the time when the workload is deleted from the cluster that it leaves: Directly, Gracefully or Never.
	PurgeMode string `json:"purgeMode,omitempty"`

	// PurgePolicy is an alternative spelling of purgeMode. The hub rewrites it.
	PurgePolicy string `json:"purgePolicy,omitempty"`

	// GracePeriodSeconds is the time in seconds for the replacement to become healthy, with purgeMode Gracefully.
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation copies values of the status of the evicted workload to labels of its replacement.
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// ApplicationFailoverDialect has alternative spellings of fields of ApplicationFailoverBehavior.
type ApplicationFailoverDialect struct {
	// PurgePolicy is an alternative spelling of purgeMode. The hub rewrites it, also over the default of purgeMode.
	PurgePolicy string `json:"purgePolicy,omitempty"`
}

// OverridersDialect has alternative spellings of fields of Overriders.
type OverridersDialect struct {
	// ReplicasOverrider is an alternative spelling of plaintext for the replicas of a workload. The hub rewrites it.
	ReplicasOverrider []ReplicasOverrider `json:"replicasOverrider,omitempty"`
}

// ReplicasOverrider sets the replicas of a workload.
type ReplicasOverrider struct {
	// Value is the number of replicas.
	Value *int32 `json:"value,omitempty"`

	// Operator must be replace. Default: replace.
	Operator string `json:"operator,omitempty"`
}

// ResourcesOverrider sets the resources of a container in every pod template of the workload. Not in Karmada.
type ResourcesOverrider struct {
	// ContainerName is the name of the container, in every pod template of the workload.
	ContainerName string `json:"containerName"`

	// Value has the requests and limits to set. Other requests and limits of the container stay.
	Value corev1.ResourceRequirements `json:"value"`
}
