package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadRebalancer schedules workloads once as if they were not placed yet. Replicas can return to a cluster that was
// down, and replicas that were scattered because clusters were full can come together. Policies apply as usual.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloadrebalancers,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.result`,name=`RESULT`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.finishTime`,name=`ENDED`,type=date
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type WorkloadRebalancer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec names the workloads.
	// +required
	Spec WorkloadRebalancerSpec `json:"spec"`

	// Status has the result for each workload.
	// +optional
	Status WorkloadRebalancerStatus `json:"status,omitempty"`
}

// WorkloadRebalancerSpec names the workloads to be scheduled anew.
type WorkloadRebalancerSpec struct {
	// Workloads are the templates to be scheduled anew, unless they were since the rebalancer was created. More may be
	// added later.
	// +required
	// +kubebuilder:validation:MinItems=1
	Workloads []ObjectReference `json:"workloads"`

	// TTLSecondsAfterFinished is how long the rebalancer is kept after status.finishTime, in seconds; 0 deletes it at
	// once. Without a value it is kept.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ObjectReference names a workload.
type ObjectReference struct {
	// APIVersion of the workload, such as apps/v1. The group counts, the version does not.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the workload.
	// +required
	Kind string `json:"kind"`

	// Name of the workload.
	// +required
	Name string `json:"name"`

	// Namespace of the workload; empty for a cluster-scoped one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadRebalancerStatus has the result for each workload.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads has one entry for each workload, sorted by apiVersion, kind, namespace and name. A workload that
	// was rebalanced stays after it is taken out of the spec.
	// +optional
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`

	// ObservedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FinishTime is when the last of the workloads got its result, also if that is Failed; unset while one has none.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`

	// Result is Failed if the request for a workload of the spec failed, and Successful if none did; unset while one has
	// no result. Not in Karmada.
	// +optional
	Result RebalanceResult `json:"result,omitempty"`
}

// ObservedWorkload is a workload and what became of the request for it.
type ObservedWorkload struct {
	// Workload that was to be scheduled anew.
	// +required
	Workload ObjectReference `json:"workload"`

	// Result is Successful if the workload's binding was asked for a fresh schedule; what the scheduler made of it is in
	// the binding's condition Scheduled. Empty while the request is being made.
	// +optional
	Result RebalanceResult `json:"result,omitempty"`

	// Reason is why a request Failed.
	// +optional
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}

// RebalanceResult is what became of the request for one workload.
type RebalanceResult string

// The results.
const (
	RebalanceSuccessful RebalanceResult = "Successful"
	RebalanceFailed     RebalanceResult = "Failed"
)

// RebalanceFailedReason is why a request failed.
type RebalanceFailedReason string

// RebalanceObjectNotFound: no policy propagates the workload, or there is none of that name. The hub retries when its
// binding appears.
//
//reference:reason status.observedWorkloads[].reason of WorkloadRebalancer
const RebalanceObjectNotFound RebalanceFailedReason = "ReferencedBindingNotFound"

// WorkloadRebalancerList is a list of WorkloadRebalancer.
// +kubebuilder:object:root=true
type WorkloadRebalancerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadRebalancer `json:"items"`
}
