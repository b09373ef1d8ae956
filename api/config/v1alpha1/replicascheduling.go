package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// ReplicaSchedulingPolicy moves replicas out of member clusters that are used more than a threshold, into clusters that
// are not. It moves replicas that clusters share by the room that they have: Divided with dynamic weights, or
// Aggregated. It is an addition of Argosy.
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

	// Spec is what moves, and when.
	// +required
	Spec ReplicaSchedulingPolicySpec `json:"spec"`

	// Status is what came of it.
	// +optional
	Status ReplicaSchedulingPolicyStatus `json:"status,omitempty"`
}

// ReplicaSchedulingPolicyList is a list of ReplicaSchedulingPolicy.
// +kubebuilder:object:root=true
type ReplicaSchedulingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReplicaSchedulingPolicy `json:"items"`
}

// ReplicaSchedulingPolicySpec is what moves, and when.
type ReplicaSchedulingPolicySpec struct {
	// ResourceSelectors select the templates that the policy is for. Default: all.
	// +optional
	ResourceSelectors []policyv1alpha1.ResourceSelector `json:"resourceSelectors,omitempty"`

	// ReschedulePolicy is when replicas move, and how many at a time.
	// +required
	ReschedulePolicy ReschedulePolicy `json:"reschedulePolicy"`
}

// ReschedulePolicy is when replicas move, and how many at a time.
type ReschedulePolicy struct {
	// Enabled is false while nothing shall move; true when unset.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Interval is how often the clusters are looked at, such as 60s, which it is when unset.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Threshold is from when on a cluster gives replicas away; one of its fields is set.
	// +required
	Threshold UtilizationThreshold `json:"threshold"`

	// MaxMoved is how many replicas of a workload move in an interval at most: a number, or a percentage of its replicas,
	// rounded up; 25% when unset.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxMoved *intstr.IntOrString `json:"maxMoved,omitempty"`
}

// UtilizationThreshold is how much of a cluster may be requested by pods, in percent of what its nodes can allocate.
type UtilizationThreshold struct {
	// CPUUtilization is about CPU.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	CPUUtilization *int32 `json:"cpuUtilization,omitempty"`

	// MemoryUtilization is about memory.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MemoryUtilization *int32 `json:"memoryUtilization,omitempty"`
}

// ReplicaSchedulingPolicyStatus is what came of a policy.
type ReplicaSchedulingPolicyStatus struct {
	// ObservedGeneration of the policy.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions has Balanced: whether no cluster is over the threshold, and if one is, what keeps it there.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Balanced: no cluster is over its threshold.
//
//reference:condition ReplicaSchedulingPolicy
const Balanced = "Balanced"

// Reasons of Balanced.
//
//reference:reason Balanced of ReplicaSchedulingPolicy
const (
	// ReasonBelowThreshold: no cluster is over the threshold.
	ReasonBelowThreshold = "BelowThreshold"
	// ReasonMoving: replicas were moved, or are about to be.
	ReasonMoving = "Moving"
	// ReasonNothingToMove: a cluster is over the threshold, and no replica in it can be moved. The message has the
	// reasons.
	ReasonNothingToMove = "NothingToMove"
	// ReasonDisabled: the policy is switched off.
	ReasonDisabled = "Disabled"
)
