package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// ReplicaSchedulingPolicy moves replicas from clusters whose utilization is above a threshold to clusters below it. It
// moves only replicas that are divided by capacity: Divided with dynamic weights, or Aggregated. Not in Karmada.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=replicaschedulingpolicies,scope=Cluster,shortName=rsp,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.reschedulePolicy.threshold.cpuUtilization`,name=`CPU`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.spec.reschedulePolicy.threshold.memoryUtilization`,name=`MEMORY`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Balanced")].status`,name=`BALANCED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ReplicaSchedulingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects workloads, and has the threshold and the speed of moves.
	Spec ReplicaSchedulingPolicySpec `json:"spec"`

	// Status is the result of the last check of the clusters. The hub writes it.
	Status ReplicaSchedulingPolicyStatus `json:"status,omitempty"`
}

// ReplicaSchedulingPolicyList is a list of ReplicaSchedulingPolicy.
// +kubebuilder:object:root=true
type ReplicaSchedulingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReplicaSchedulingPolicy `json:"items"`
}

// ReplicaSchedulingPolicySpec selects workloads, and has the threshold and the speed of moves.
type ReplicaSchedulingPolicySpec struct {
	// ResourceSelectors select the templates of the policy. Default: all templates.
	ResourceSelectors []policyv1alpha1.ResourceSelector `json:"resourceSelectors,omitempty"`

	// ReschedulePolicy has the threshold and the speed of moves.
	ReschedulePolicy ReschedulePolicy `json:"reschedulePolicy"`
}

// ReschedulePolicy has the threshold and the speed of moves.
type ReschedulePolicy struct {
	// Enabled is false to stop moving replicas. Default: true.
	Enabled *bool `json:"enabled,omitempty"`

	// Interval is the time between two checks of the clusters, 1s or more. Default: 60s.
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Threshold is the utilization above which replicas leave a cluster. Set at least one of its fields.
	Threshold UtilizationThreshold `json:"threshold"`

	// MaxMoved is the largest number of replicas of a workload that move in an interval: a number, 1 or more, or a
	// percentage of its replicas, rounded up. Default: 25%.
	// +kubebuilder:validation:XIntOrString
	MaxMoved *intstr.IntOrString `json:"maxMoved,omitempty"`
}

// UtilizationThreshold is the share of the allocatable resources of a cluster that pods request, in percent.
type UtilizationThreshold struct {
	// CPUUtilization is the percentage of CPU, 1 to 100. Default: CPU is not checked.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	CPUUtilization *int32 `json:"cpuUtilization,omitempty"`

	// MemoryUtilization is the percentage of memory, 1 to 100. Default: memory is not checked.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MemoryUtilization *int32 `json:"memoryUtilization,omitempty"`
}

// ReplicaSchedulingPolicyStatus is the result of the last check of the clusters.
type ReplicaSchedulingPolicyStatus struct {
	// ObservedGeneration is the generation of the policy that the status is for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions has Balanced: True if no cluster is above the threshold. The message has the reasons if one is.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Balanced: no cluster is above its threshold.
//
//reference:condition ReplicaSchedulingPolicy
const Balanced = "Balanced"

// Reasons of Balanced.
//
//reference:reason Balanced of ReplicaSchedulingPolicy
const (
	// ReasonBelowThreshold: no cluster is above the threshold.
	ReasonBelowThreshold = "BelowThreshold"
	// ReasonMoving: replicas were moved, or are about to be.
	ReasonMoving = "Moving"
	// ReasonNothingToMove: a cluster is above the threshold, and none of its replicas can be moved. The message has why.
	ReasonNothingToMove = "NothingToMove"
	// ReasonDisabled: spec.reschedulePolicy.enabled is false.
	ReasonDisabled = "Disabled"
)
