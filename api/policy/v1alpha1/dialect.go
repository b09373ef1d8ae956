package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// The types of this file hold spellings that public guides use and Karmada's API does not know.
// They stand in the schema because strict field validation runs before admission; admission rewrites each
// to its canonical form with a warning (internal/core/admission/dialect), so that none is ever stored.

// ReplicaSchedulingDialect holds spellings accepted beside those of ReplicaSchedulingStrategy.
type ReplicaSchedulingDialect struct {
	// DynamicWeight is rewritten to weightPreference.dynamicWeight.
	// +optional
	DynamicWeight string `json:"dynamicWeight,omitempty"`
}

// FailoverDialect holds spellings accepted beside those of FailoverBehavior.
type FailoverDialect struct {
	// ApplicationMigrationPolicy is rewritten to application and cluster.
	// +optional
	ApplicationMigrationPolicy *ApplicationMigrationPolicy `json:"applicationMigrationPolicy,omitempty"`
}

// ApplicationMigrationPolicy is ApplicationFailoverBehavior without defaults: a default purgeMode would contradict a
// purgePolicy of the user.
type ApplicationMigrationPolicy struct {
	// DecisionConditions are the conditions for the eviction from a cluster.
	// +optional
	DecisionConditions *DecisionConditions `json:"decisionConditions,omitempty"`

	// PurgeMode is when the workload is deleted from the cluster that it leaves: Directly, Gracefully or Never.
	// +optional
	PurgeMode string `json:"purgeMode,omitempty"`

	// PurgePolicy is rewritten to purgeMode.
	// +optional
	PurgePolicy string `json:"purgePolicy,omitempty"`

	// GracePeriodSeconds is the time in seconds that the replacement has to become healthy, with purgeMode Gracefully.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation carries state from the old copy to the new one.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// ApplicationFailoverDialect holds spellings accepted beside those of ApplicationFailoverBehavior.
type ApplicationFailoverDialect struct {
	// PurgePolicy is rewritten to purgeMode, over its default.
	// +optional
	PurgePolicy string `json:"purgePolicy,omitempty"`
}

// OverridersDialect holds spellings accepted beside those of Overriders.
type OverridersDialect struct {
	// ReplicasOverrider sets the replicas of a workload in a cluster; rewritten to a plaintext overrider.
	// +optional
	ReplicasOverrider []ReplicasOverrider `json:"replicasOverrider,omitempty"`
}

// ReplicasOverrider sets a workload's replicas.
type ReplicasOverrider struct {
	// Value is the number of replicas.
	// +optional
	Value *int32 `json:"value,omitempty"`

	// Operator is replace, the default.
	// +optional
	Operator string `json:"operator,omitempty"`
}

// ResourcesOverrider sets the resources of a container in every pod template of the workload. It is an addition of
// Argosy.
type ResourcesOverrider struct {
	// ContainerName names the container, in every pod template that the kind has.
	// +required
	ContainerName string `json:"containerName"`

	// Value is merged into the container's resources.
	// +required
	Value corev1.ResourceRequirements `json:"value"`
}
