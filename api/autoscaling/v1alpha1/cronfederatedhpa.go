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

	// Spec says what is scaled, and when to how much.
	// +required
	Spec CronFederatedHPASpec `json:"spec"`

	// Status says when each rule is next, and what became of it before.
	// +optional
	Status CronFederatedHPAStatus `json:"status,omitempty"`
}

// CronFederatedHPASpec says what is scaled, and when to how much.
type CronFederatedHPASpec struct {
	// ScaleTargetRef names a workload, or a FederatedHPA, in the same namespace of the hub.
	// +required
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// Rules say when to how much.
	// +required
	Rules []CronFederatedHPARule `json:"rules"`
}

// CronFederatedHPARule says when to scale to how much.
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

	// Suspend lets times pass without scaling; default false.
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

// CronFederatedHPAStatus says when each rule is next, and what became of it before.
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

// SuccessfulExecution is one that did what it should.
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

	// Message says why it failed.
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
