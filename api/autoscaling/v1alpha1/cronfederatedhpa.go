package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronFederatedHPA scales a workload, or sets the limits of a FederatedHPA, on a schedule.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=cronfederatedhpas,scope=Namespaced,shortName=cronfhpa,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name=`REFERENCE-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name=`REFERENCE-NAME`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type CronFederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the target and the rules of its schedule.
	Spec CronFederatedHPASpec `json:"spec"`

	// Status has the next and the last executions of each rule. The hub writes it.
	Status CronFederatedHPAStatus `json:"status,omitempty"`
}

// CronFederatedHPASpec has the target and the rules of its schedule.
type CronFederatedHPASpec struct {
	// ScaleTargetRef names a workload or a FederatedHPA, in the same namespace of the hub.
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// Rules have the times, and the numbers of replicas from each time on.
	Rules []CronFederatedHPARule `json:"rules"`
}

// CronFederatedHPARule is a schedule with a number of replicas.
type CronFederatedHPARule struct {
	// Name of the rule, unique in the list.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Schedule has the five fields of crontab: minute, hour, day of the month, month, day of the week.
	Schedule string `json:"schedule"`

	// TargetReplicas is the number of replicas that the workload gets, 0 or more. Required, but not for a FederatedHPA.
	TargetReplicas *int32 `json:"targetReplicas,omitempty"`

	// TargetMinReplicas is the minReplicas that the FederatedHPA gets. Set it, targetMaxReplicas or both.
	TargetMinReplicas *int32 `json:"targetMinReplicas,omitempty"`

	// TargetMaxReplicas is the maxReplicas that the FederatedHPA gets.
	TargetMaxReplicas *int32 `json:"targetMaxReplicas,omitempty"`

	// Suspend is true to skip the executions of the rule. Default: false.
	// +kubebuilder:default=false
	Suspend *bool `json:"suspend,omitempty"`

	// TimeZone of the schedule, such as Europe/Berlin. Default: the time zone of the hub.
	TimeZone *string `json:"timeZone,omitempty"`

	// SuccessfulHistoryLimit is the number of successful executions in the status, 1 to 32. Default: 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	SuccessfulHistoryLimit *int32 `json:"successfulHistoryLimit,omitempty"`

	// FailedHistoryLimit is the number of failed executions in the status, 0 to 32. Default: 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`
}

// CronFederatedHPAStatus has the next and the last executions of each rule.
type CronFederatedHPAStatus struct {
	// ExecutionHistories has an entry for each rule.
	ExecutionHistories []ExecutionHistory `json:"executionHistories,omitempty"`
}

// ExecutionHistory has the next and the last executions of a rule.
type ExecutionHistory struct {
	// RuleName is the name of the rule.
	RuleName string `json:"ruleName"`

	// NextExecutionTime is the time of the next execution. Not set while the rule is suspended.
	NextExecutionTime *metav1.Time `json:"nextExecutionTime,omitempty"`

	// SuccessfulExecutions are the last successful executions, newest first.
	SuccessfulExecutions []SuccessfulExecution `json:"successfulExecutions,omitempty"`

	// FailedExecutions are the last failed executions, newest first.
	FailedExecutions []FailedExecution `json:"failedExecutions,omitempty"`
}

// SuccessfulExecution is an execution that scaled the workload.
type SuccessfulExecution struct {
	// ScheduleTime is the time by the schedule.
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is the time of the execution.
	ExecutionTime *metav1.Time `json:"executionTime"`

	// AppliedReplicas is the number of replicas that the workload got.
	AppliedReplicas *int32 `json:"appliedReplicas,omitempty"`

	// AppliedMaxReplicas is the maxReplicas that the FederatedHPA got.
	AppliedMaxReplicas *int32 `json:"appliedMaxReplicas,omitempty"`

	// AppliedMinReplicas is the minReplicas that the FederatedHPA got.
	AppliedMinReplicas *int32 `json:"appliedMinReplicas,omitempty"`
}

// FailedExecution is an execution that failed.
type FailedExecution struct {
	// ScheduleTime is the time by the schedule.
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is the time of the attempt.
	ExecutionTime *metav1.Time `json:"executionTime"`

	// Message is the error.
	Message string `json:"message"`
}

// CronFederatedHPAList is a list of CronFederatedHPAs.
// +kubebuilder:object:root=true
type CronFederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronFederatedHPA `json:"items"`
}
