package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronFederatedHPA scales a workload, or sets the bounds of a FederatedHPA, at times that its rules name.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=cronfederatedhpas,scope=Namespaced,shortName=cronfhpa,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name=`REFERENCE-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name=`REFERENCE-NAME`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type CronFederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the workload and the schedule.
	// +required
	Spec CronFederatedHPASpec `json:"spec"`

	// Status has the next and the last executions of each rule.
	// +optional
	Status CronFederatedHPAStatus `json:"status,omitempty"`
}

// CronFederatedHPASpec is the workload and the schedule.
type CronFederatedHPASpec struct {
	// ScaleTargetRef names a workload, or a FederatedHPA, in the same namespace of the hub.
	// +required
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// Rules are the schedule.
	// +required
	Rules []CronFederatedHPARule `json:"rules"`
}

// CronFederatedHPARule is a schedule and its number of replicas.
type CronFederatedHPARule struct {
	// Name of the rule, other than those of the other rules.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Schedule is when, as in crontab: minute, hour, day of the month, month, day of the week.
	// +required
	Schedule string `json:"schedule"`

	// TargetReplicas are the replicas of the workload from then on; for targets other than a FederatedHPA.
	// +optional
	TargetReplicas *int32 `json:"targetReplicas,omitempty"`

	// TargetMinReplicas is minReplicas of the FederatedHPA from then on.
	// +optional
	TargetMinReplicas *int32 `json:"targetMinReplicas,omitempty"`

	// TargetMaxReplicas is maxReplicas of the FederatedHPA from then on.
	// +optional
	TargetMaxReplicas *int32 `json:"targetMaxReplicas,omitempty"`

	// Suspend stops the rule: it does not scale at its times. Default: false.
	// +optional
	// +kubebuilder:default=false
	Suspend *bool `json:"suspend,omitempty"`

	// TimeZone of the schedule, such as Europe/Berlin; default the hub's.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// SuccessfulHistoryLimit is how many executions that did what they should the status keeps; default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	SuccessfulHistoryLimit *int32 `json:"successfulHistoryLimit,omitempty"`

	// FailedHistoryLimit is how many executions that failed the status keeps; default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`
}

// CronFederatedHPAStatus has the next and the last executions of each rule.
type CronFederatedHPAStatus struct {
	// ExecutionHistories has an entry for each rule.
	// +optional
	ExecutionHistories []ExecutionHistory `json:"executionHistories,omitempty"`
}

// ExecutionHistory is when a rule is next, and what became of it before.
type ExecutionHistory struct {
	// RuleName is the rule's.
	// +required
	RuleName string `json:"ruleName"`

	// NextExecutionTime is when the rule is next; unset while it is suspended.
	// +optional
	NextExecutionTime *metav1.Time `json:"nextExecutionTime,omitempty"`

	// SuccessfulExecutions are the last ones that did what they should, the newest first.
	// +optional
	SuccessfulExecutions []SuccessfulExecution `json:"successfulExecutions,omitempty"`

	// FailedExecutions are the last ones that failed, the newest first.
	// +optional
	FailedExecutions []FailedExecution `json:"failedExecutions,omitempty"`
}

// SuccessfulExecution is an execution that scaled the workload.
type SuccessfulExecution struct {
	// ScheduleTime is when it should have been.
	// +required
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is when it was.
	// +required
	ExecutionTime *metav1.Time `json:"executionTime"`

	// AppliedReplicas are the replicas that the workload got.
	// +optional
	AppliedReplicas *int32 `json:"appliedReplicas,omitempty"`

	// AppliedMaxReplicas is maxReplicas of the FederatedHPA since.
	// +optional
	AppliedMaxReplicas *int32 `json:"appliedMaxReplicas,omitempty"`

	// AppliedMinReplicas is minReplicas of the FederatedHPA since.
	// +optional
	AppliedMinReplicas *int32 `json:"appliedMinReplicas,omitempty"`
}

// FailedExecution is one that failed.
type FailedExecution struct {
	// ScheduleTime is when it should have been.
	// +required
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is when it was tried.
	// +required
	ExecutionTime *metav1.Time `json:"executionTime"`

	// Message is the reason of the failure.
	// +required
	Message string `json:"message"`
}

// CronFederatedHPAList is a list of CronFederatedHPAs.
// +kubebuilder:object:root=true
type CronFederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronFederatedHPA `json:"items"`
}
