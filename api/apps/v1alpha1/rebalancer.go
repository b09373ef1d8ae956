package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadRebalancer schedules workloads again, once, without regard to their present clusters: to return replicas to a
// cluster that was down, or to gather replicas that were spread because clusters were full. Policies apply.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloadrebalancers,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.result`,name=`RESULT`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.finishTime`,name=`ENDED`,type=date
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type WorkloadRebalancer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec lists the workloads.
	Spec WorkloadRebalancerSpec `json:"spec"`

	// Status has the result for each workload.
	Status WorkloadRebalancerStatus `json:"status,omitempty"`
}

// WorkloadRebalancerSpec lists the workloads to schedule again.
type WorkloadRebalancerSpec struct {
	// Workloads are the templates to schedule again. Those that were scheduled again since the rebalancer was created are
	// skipped. Users may add workloads later.
	// +kubebuilder:validation:MinItems=1
	Workloads []ObjectReference `json:"workloads"`

	// TTLSecondsAfterFinished is the time in seconds after status.finishTime when the rebalancer is deleted. 0: at once.
	// Default: it is not deleted.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ObjectReference names a workload.
type ObjectReference struct {
	// APIVersion of the workload, such as apps/v1. The hub compares the group and ignores the version.
	APIVersion string `json:"apiVersion"`

	// Kind of the workload.
	Kind string `json:"kind"`

	// Name of the workload.
	Name string `json:"name"`

	// Namespace of the workload. Empty for a cluster-scoped workload.
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadRebalancerStatus has the result for each workload.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads has one entry for each workload, sorted by apiVersion, kind, namespace and name. A workload with
	// the result Successful stays after it is removed from the spec.
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`

	// ObservedGeneration is the generation of the rebalancer that the status is for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FinishTime is the time when the last workload got its result, Successful or Failed. Not set while one has none.
	FinishTime *metav1.Time `json:"finishTime,omitempty"`

	// Result is Failed if a workload of the spec has that result, otherwise Successful. Not set while one has none. Not in
	// Karmada.
	Result RebalanceResult `json:"result,omitempty"`
}

// ObservedWorkload is a workload with its result.
type ObservedWorkload struct {
	// Workload is the template to schedule again.
	Workload ObjectReference `json:"workload"`

	// Result is Successful if the hub requested the scheduling of the workload. The condition Scheduled of its binding has
	// the outcome of the scheduling. Empty while the request is in progress.
	Result RebalanceResult `json:"result,omitempty"`

	// Reason of the result Failed, for programs.
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}

// RebalanceResult is the result for one workload.
type RebalanceResult string

const (
	RebalanceSuccessful RebalanceResult = "Successful"
	RebalanceFailed     RebalanceResult = "Failed"
)

// RebalanceFailedReason is the reason of the result Failed.
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
