package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseGuard limits releases of several namespaces: the times when stages may start, the updates at the same time,
// and the approvals. It never stops a stage in progress, a pause, an abort or a rollback. See docs/release-guards.md.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=releaseguards,scope=Cluster,shortName=rgd
// +kubebuilder:printcolumn:JSONPath=`.status.open`,name=`OPEN`,type=boolean
// +kubebuilder:printcolumn:JSONPath=`.status.reason`,name=`REASON`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.nextOpen`,name=`NEXT-OPEN`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.nextClose`,name=`NEXT-CLOSE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.inUse.releases`,name=`RELEASES`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.inUse.clusters`,name=`CLUSTERS`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.waiting`,name=`WAITING`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.errorBudget.left`,name=`BUDGET`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ReleaseGuard struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects releases, and has the windows and limits for them.
	Spec ReleaseGuardSpec `json:"spec"`

	// Status is the state of the windows and limits. The hub writes it.
	Status ReleaseGuardStatus `json:"status,omitempty"`
}

// ReleaseGuardList is a list of ReleaseGuards.
// +kubebuilder:object:root=true
type ReleaseGuardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseGuard `json:"items"`
}

// ReleaseGuardSpec selects releases, and has the windows and limits for them.
type ReleaseGuardSpec struct {
	// Selector selects stages of releases. Default: all stages.
	Selector ReleaseGuardSelector `json:"selector,omitempty"`

	// Windows are the times at which stages and releases may start. The guard is open if no Deny window is active and, if
	// there are Allow windows, at least one of them is active. Default: always open.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Windows []ReleaseWindow `json:"windows,omitempty"`

	// Limits apply to all releases that the guard selects together.
	Limits *ReleaseLimits `json:"limits,omitempty"`

	// Approvals adds a gate before each stage that the guard selects. Default: none.
	Approvals *ReleaseGuardApprovals `json:"approvals,omitempty"`

	// Require decides about changes of pods of workloads in the namespaces of the guard whose template names no
	// ReleaseStrategy. Such changes are sent to clusters at once. Off: they are permitted. Record: the hub creates a
	// Release for each, which observes the change and never delays it. Enforce: the hub refuses them. Default: Off.
	// +kubebuilder:validation:Enum=Off;Record;Enforce
	// +kubebuilder:default=Off
	Require ReleaseRequirement `json:"require,omitempty"`
}

// ReleaseGuardSelector selects stages of releases. All of its fields must match.
type ReleaseGuardSelector struct {
	// Namespaces of the releases. Default: all namespaces.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// Clusters selects clusters by label. A stage matches if it has one; only these count for the limits. Default: all.
	Clusters *metav1.LabelSelector `json:"clusters,omitempty"`

	// Environments of the stages. Default: all stages, including those without an environment.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Environments []string `json:"environments,omitempty"`
}

// ReleaseWindow is a time at which releases may start, or may not. Set schedule and duration for a window that repeats,
// or from and to for a window that happens once.
type ReleaseWindow struct {
	// Kind of the window. Allow: releases may start during it. Deny: releases may not start during it.
	// +kubebuilder:validation:Enum=Allow;Deny
	Kind ReleaseWindowKind `json:"kind"`

	// Schedule has the times when the window begins, in the five fields of crontab, such as 0 22 * * 5. If daylight saving
	// time skips such a time, the window begins at the change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Schedule string `json:"schedule,omitempty"`

	// Duration of the window, such as 8h. It is elapsed time, also when daylight saving time begins or ends.
	Duration *metav1.Duration `json:"duration,omitempty"`

	// TimeZone of the schedule, such as Europe/Berlin. Default: UTC.
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// From is the time when the window begins. Default: no beginning.
	From *metav1.Time `json:"from,omitempty"`

	// To is the time when the window ends. Default: no end.
	To *metav1.Time `json:"to,omitempty"`

	// Reason for the window, for people.
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
}

// ReleaseWindowKind is Allow or Deny.
type ReleaseWindowKind string

const (
	WindowAllow ReleaseWindowKind = "Allow"
	WindowDeny  ReleaseWindowKind = "Deny"
)

// ReleaseLimits limit releases in progress. A release or stage that would exceed a limit waits; older releases go
// first. The numbers that count are in the statuses of the releases.
type ReleaseLimits struct {
	// Releases is the number of releases that may be in progress. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	Releases *int32 `json:"releases,omitempty"`

	// Clusters is the number of clusters that stages in progress may update. A stage counts with all of its clusters, or
	// with its maxConcurrentClusters. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	Clusters *int32 `json:"clusters,omitempty"`

	// PodsPercent is the percentage of pods that stages in progress may replace, of all pods of workloads in the
	// namespaces and clusters of the guard, rounded up. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	PodsPercent *int32 `json:"podsPercent,omitempty"`

	// UnavailablePercent is the percentage of pods that stages in progress may make unavailable, as for podsPercent. A
	// stage counts with the maxUnavailable of its workloads. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	UnavailablePercent *int32 `json:"unavailablePercent,omitempty"`

	// Per is the key of a label of clusters, such as topology.kubernetes.io/region. The limits apply to each value of the
	// label separately, and to the clusters without the label. Default: the limits apply to all clusters together.
	// +kubebuilder:validation:MaxLength=317
	Per string `json:"per,omitempty"`

	// MinErrorBudget is the part of an error budget that must be left before a stage or a release starts.
	MinErrorBudget *MinErrorBudget `json:"minErrorBudget,omitempty"`
}

// MinErrorBudget is the part of an error budget that must be left. While the budget is unknown, nothing starts.
type MinErrorBudget struct {
	// Percent is the percentage of the error budget that must be left.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`

	// CheckRef names a ReleaseCheck with slo and a URL. The only variable of its queries is {{window}}.
	CheckRef NamespacedCheckReference `json:"checkRef"`
}

// NamespacedCheckReference names a ReleaseCheck.
type NamespacedCheckReference struct {
	// Namespace of the ReleaseCheck.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name of the ReleaseCheck.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ErrorBudgetState is the state of the error budget of a guard.
type ErrorBudgetState string

// The states. Unknown: the check has no data or no answer, and nothing starts.
const (
	ErrorBudgetEnough  ErrorBudgetState = "Enough"
	ErrorBudgetSpent   ErrorBudgetState = "Spent"
	ErrorBudgetUnknown ErrorBudgetState = "Unknown"
)

// ReleaseGuardBudget is the error budget of a guard. The hub writes it when the state changes, or the budget changes by
// one percent or more.
type ReleaseGuardBudget struct {
	// State is Enough, Spent or Unknown.
	State ErrorBudgetState `json:"state"`

	// Left is the percentage of the budget that is left, such as 73.2. It is negative if more than the budget is spent,
	// and empty if it is unknown.
	Left string `json:"left,omitempty"`

	// Message explains why the budget is unknown.
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// ObservedGeneration is the generation of the guard that the budget is for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ReleaseGuardApprovals are approvals that a stage requires in addition to its own gates.
type ReleaseGuardApprovals struct {
	// Count is the number of different users who must approve. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:default=1
	Count int32 `json:"count,omitempty"`

	// NotAuthor excludes the user who created the release, and users who may act as that user. Default: false.
	NotAuthor bool `json:"notAuthor,omitempty"`
}

// ReleaseRequirement is Off, Record or Enforce.
type ReleaseRequirement string

const (
	RequireOff     ReleaseRequirement = "Off"
	RequireRecord  ReleaseRequirement = "Record"
	RequireEnforce ReleaseRequirement = "Enforce"
)

// ReleaseGuardStatus is the state of the windows and limits of a guard.
type ReleaseGuardStatus struct {
	// ObservedGeneration is the generation of the guard that the status is for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Open is true if the windows permit releases to start now.
	// +optional
	Open bool `json:"open"`

	// Reason of a closed guard: Frozen in a Deny window, OutsideWindow otherwise.
	Reason string `json:"reason,omitempty"`

	// Message is the reason of the window that closes the guard.
	Message string `json:"message,omitempty"`

	// NextOpen is the time when the guard opens. Not set if the hub finds no such time within a year.
	NextOpen *metav1.Time `json:"nextOpen,omitempty"`
	// NextClose is the time when the guard closes. Not set if the hub finds no such time within a year.
	NextClose *metav1.Time `json:"nextClose,omitempty"`

	// ErrorBudget is the error budget of spec.limits.minErrorBudget after the last sample. A hub that has restarted
	// samples again before a stage starts.
	ErrorBudget *ReleaseGuardBudget `json:"errorBudget,omitempty"`

	// InUse has the use of the limits by the selected releases.
	InUse ReleaseGuardUse `json:"inUse,omitempty"`

	// Waiting is the number of releases that wait for the guard.
	// +optional
	Waiting int32 `json:"waiting"`
}

// ReleaseGuardUse has the use of limits, also of limits that are not set.
type ReleaseGuardUse struct {
	// Releases is the number of releases in progress.
	// +optional
	Releases int32 `json:"releases"`

	// Clusters is the number of clusters that stages in progress may update, see spec.limits.clusters.
	// +optional
	Clusters int32 `json:"clusters"`
}

// ReleaseGuardWait is the ReleaseGuard that a release waits for.
type ReleaseGuardWait struct {
	// Name of the ReleaseGuard.
	Name string `json:"name"`

	// Limit is the limit that is reached: releases, clusters, podsPercent, unavailablePercent or minErrorBudget. Empty if
	// the windows are closed.
	Limit ReleaseLimit `json:"limit,omitempty"`

	// Until is the time when the windows open. Not set if they stay closed.
	Until *metav1.Time `json:"until,omitempty"`

	// Queues are the limits that the release is queued for: names of ReleaseGuards, with the value of their label if they
	// have one. It goes before younger releases.
	// +listType=set
	Queues []string `json:"queues,omitempty"`
}

// ReleaseLimit is the name of a limit.
type ReleaseLimit string

const (
	LimitReleases    ReleaseLimit = "releases"
	LimitClusters    ReleaseLimit = "clusters"
	LimitPods        ReleaseLimit = "podsPercent"
	LimitUnavailable ReleaseLimit = "unavailablePercent"
	LimitErrorBudget ReleaseLimit = "minErrorBudget"
)

// ReleaseReservation is the share of a stage in the pod limits of ReleaseGuards.
type ReleaseReservation struct {
	// Pods are the pods that the stage replaces, by cluster.
	// +listType=map
	// +listMapKey=cluster
	Pods []ReservedPods `json:"pods,omitempty"`

	// Unavailable is the number of these pods that may be unavailable at the same time, in all clusters.
	Unavailable int64 `json:"unavailable,omitempty"`
}

// ReservedPods is a number of pods in a cluster.
type ReservedPods struct {
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster"`

	// Pods is the number of pods.
	Pods int64 `json:"pods"`
}

// The reasons of Progressing of a release that waits for ReleaseGuards.
//
//reference:reason Progressing of Release
const (
	// ReasonOutsideWindow: a ReleaseGuard has Allow windows, and none is active.
	ReasonOutsideWindow = "OutsideWindow"
	// ReasonFrozen: a Deny window of a ReleaseGuard is active.
	ReasonFrozen = "Frozen"
	// ReasonLimitReached: other releases use the limit of a ReleaseGuard.
	ReasonLimitReached = "LimitReached"
	// ReasonErrorBudgetSpent: less of the error budget is left than a ReleaseGuard requires.
	ReasonErrorBudgetSpent = "ErrorBudgetSpent"
	// ReasonErrorBudgetUnknown: a ReleaseGuard requires an error budget, and the rest of the budget is unknown.
	ReasonErrorBudgetUnknown = "ErrorBudgetUnknown"
)
