package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseGuard limits releases of several namespaces: when a stage may start, how much may be updated at the same time,
// and how many users must approve. It never stops what is under way, and never a pause, an abort or a rollback. See
// docs/release-guards.md.
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

	// Spec is what the guard permits, and for which releases.
	// +required
	Spec ReleaseGuardSpec `json:"spec"`

	// Status is whether the guard is open, and what is in use of its limits.
	// +optional
	Status ReleaseGuardStatus `json:"status,omitempty"`
}

// ReleaseGuardList is a list of ReleaseGuards.
// +kubebuilder:object:root=true
type ReleaseGuardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseGuard `json:"items"`
}

// ReleaseGuardSpec is what a guard permits.
type ReleaseGuardSpec struct {
	// Selector is for which stages of which releases the guard is. Default: all.
	// +optional
	Selector ReleaseGuardSelector `json:"selector,omitempty"`

	// Windows are the times at which stages and releases may start. The guard is open if no Deny window is active and, if
	// there are Allow windows, one of them is.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Windows []ReleaseWindow `json:"windows,omitempty"`

	// Limits are for all releases that the guard selects together.
	// +optional
	Limits *ReleaseLimits `json:"limits,omitempty"`

	// Approvals adds a gate before each stage that the guard selects.
	// +optional
	Approvals *ReleaseGuardApprovals `json:"approvals,omitempty"`

	// Require is whether workloads in the namespaces of the guard need releases. It is about changes of the pods of a
	// workload whose template names no ReleaseStrategy, since they are sent to clusters at once. Off: they need none.
	// Record: the hub creates a Release for each, which observes the change and never holds it. Enforce: the hub refuses
	// them.
	// +kubebuilder:validation:Enum=Off;Record;Enforce
	// +kubebuilder:default=Off
	// +optional
	Require ReleaseRequirement `json:"require,omitempty"`
}

// ReleaseGuardSelector selects stages of releases. All of its fields must match.
type ReleaseGuardSelector struct {
	// Namespaces of the releases. Default: all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// Clusters selects clusters by label. A stage matches if it has one of them, and only these count for the limits.
	// Default: all clusters.
	// +optional
	Clusters *metav1.LabelSelector `json:"clusters,omitempty"`

	// Environments of the stages. Default: all, and stages without one.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Environments []string `json:"environments,omitempty"`
}

// ReleaseWindow is a time at which releases may start, or may not. It is either repeated, with schedule and duration,
// or happens once, between from and to.
type ReleaseWindow struct {
	// Kind of the window. Allow: releases may start during it. Deny: they may not.
	// +kubebuilder:validation:Enum=Allow;Deny
	// +required
	Kind ReleaseWindowKind `json:"kind"`

	// Schedule is when the window begins, with five fields as in crontab, such as 0 22 * * 5. If the clock is set forward
	// over a beginning, the window begins at that moment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Duration of the window, such as 8h. It is elapsed time, also on days when the clock is changed.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// TimeZone of the schedule, such as Europe/Berlin. Default: UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// From is when the window begins. Default: it has always been active.
	// +optional
	From *metav1.Time `json:"from,omitempty"`

	// To is when the window ends. Default: it stays active.
	// +optional
	To *metav1.Time `json:"to,omitempty"`

	// Reason for the window, for people.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ReleaseWindowKind is what a window does.
type ReleaseWindowKind string

// The kinds of windows.
const (
	WindowAllow ReleaseWindowKind = "Allow"
	WindowDeny  ReleaseWindowKind = "Deny"
)

// ReleaseLimits are how much releases may do at the same time. A release or stage that would exceed one waits; older
// releases go first. What counts is written in the statuses of the releases.
type ReleaseLimits struct {
	// Releases is how many releases may be under way.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Releases *int32 `json:"releases,omitempty"`

	// Clusters is how many clusters stages that are under way may update. A stage counts with all of its clusters, or
	// with its maxConcurrentClusters.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Clusters *int32 `json:"clusters,omitempty"`

	// PodsPercent is how many pods stages that are under way may replace, as a percentage of all pods of workloads in the
	// namespaces and clusters of the guard, rounded up.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	PodsPercent *int32 `json:"podsPercent,omitempty"`

	// UnavailablePercent is how many pods stages that are under way may make unavailable, as a percentage like
	// PodsPercent. A stage counts with the maxUnavailable of its workloads.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	UnavailablePercent *int32 `json:"unavailablePercent,omitempty"`

	// Per is the key of a label of clusters, such as topology.kubernetes.io/region. Each value of it has the limits of its
	// own, and so have the clusters without the label together.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	Per string `json:"per,omitempty"`

	// MinErrorBudget is how much of an error budget must be left, so that a stage or a release may start.
	// +optional
	MinErrorBudget *MinErrorBudget `json:"minErrorBudget,omitempty"`
}

// MinErrorBudget is how much of an error budget must be left. While the budget is not known, nothing starts.
type MinErrorBudget struct {
	// Percent of the error budget that must be left.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +required
	Percent int32 `json:"percent"`

	// CheckRef names a ReleaseCheck with slo and a URL. Its queries can have no variable but {{window}}.
	// +required
	CheckRef NamespacedCheckReference `json:"checkRef"`
}

// NamespacedCheckReference names a ReleaseCheck.
type NamespacedCheckReference struct {
	// Namespace of the ReleaseCheck.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// Name of the ReleaseCheck.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// ErrorBudgetState is what an error budget means for a guard.
type ErrorBudgetState string

// The states. Unknown means that there is no data, or no answer: nothing starts.
const (
	ErrorBudgetEnough  ErrorBudgetState = "Enough"
	ErrorBudgetSpent   ErrorBudgetState = "Spent"
	ErrorBudgetUnknown ErrorBudgetState = "Unknown"
)

// ReleaseGuardBudget is the error budget of a guard. It is written when the state changes, and when the budget has
// changed by a percent or more.
type ReleaseGuardBudget struct {
	// State is Enough, Spent or Unknown.
	State ErrorBudgetState `json:"state"`

	// Left is the percentage of the budget that is left, such as 73.2; negative if more than the budget is spent. Empty
	// if it is not known.
	// +optional
	Left string `json:"left,omitempty"`

	// Message is why the budget is not known.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`

	// ObservedGeneration is the generation of the guard that the budget is for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ReleaseGuardApprovals are approvals that a stage needs in addition to its own gates.
type ReleaseGuardApprovals struct {
	// Count is how many different users must approve.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:default=1
	// +optional
	Count int32 `json:"count,omitempty"`

	// NotAuthor is true if the user who created the release cannot approve it, nor users who may act as that user.
	// +optional
	NotAuthor bool `json:"notAuthor,omitempty"`
}

// ReleaseRequirement is whether workloads need releases.
type ReleaseRequirement string

// The requirements.
const (
	RequireOff     ReleaseRequirement = "Off"
	RequireRecord  ReleaseRequirement = "Record"
	RequireEnforce ReleaseRequirement = "Enforce"
)

// ReleaseGuardStatus is the state of a guard.
type ReleaseGuardStatus struct {
	// ObservedGeneration is the generation of the guard that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Open is true if the windows let releases start now.
	// +optional
	Open bool `json:"open"`

	// Reason why the guard is closed: Frozen in a Deny window, OutsideWindow otherwise.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is the reason of the window that closes the guard.
	// +optional
	Message string `json:"message,omitempty"`

	// NextOpen is when the guard opens, NextClose when it closes; unset if that is more than a year ahead.
	// +optional
	NextOpen *metav1.Time `json:"nextOpen,omitempty"`
	// +optional
	NextClose *metav1.Time `json:"nextClose,omitempty"`

	// ErrorBudget is the error budget of spec.limits.minErrorBudget after the last sample. A hub that has started since
	// asks again before a stage starts.
	// +optional
	ErrorBudget *ReleaseGuardBudget `json:"errorBudget,omitempty"`

	// InUse is what the releases that the guard selects do now.
	// +optional
	InUse ReleaseGuardUse `json:"inUse,omitempty"`

	// Waiting is how many releases wait for the guard.
	// +optional
	Waiting int32 `json:"waiting"`
}

// ReleaseGuardUse is what counts for the limits of a guard, whatever limits it has.
type ReleaseGuardUse struct {
	// Releases that are under way.
	// +optional
	Releases int32 `json:"releases"`

	// Clusters that stages under way may update, see spec.limits.clusters.
	// +optional
	Clusters int32 `json:"clusters"`
}

// ReleaseGuardWait is what a release waits for at ReleaseGuards.
type ReleaseGuardWait struct {
	// Name of the ReleaseGuard.
	Name string `json:"name"`

	// Limit that is reached: releases, clusters, podsPercent, unavailablePercent or minErrorBudget. Empty if the windows
	// are closed.
	// +optional
	Limit ReleaseLimit `json:"limit,omitempty"`

	// Until is when the windows open; unset if they stay closed.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Queues are the limits for which the release is in the queue: the names of ReleaseGuards, with the value of their
	// label if they have one. It goes before younger releases there.
	// +listType=set
	// +optional
	Queues []string `json:"queues,omitempty"`
}

// ReleaseLimit is the name of a limit.
type ReleaseLimit string

// The limits.
const (
	LimitReleases    ReleaseLimit = "releases"
	LimitClusters    ReleaseLimit = "clusters"
	LimitPods        ReleaseLimit = "podsPercent"
	LimitUnavailable ReleaseLimit = "unavailablePercent"
	LimitErrorBudget ReleaseLimit = "minErrorBudget"
)

// ReleaseReservation is what a stage counts for limits of pods while it is under way.
type ReleaseReservation struct {
	// Pods that the stage replaces, by cluster.
	// +listType=map
	// +listMapKey=cluster
	// +optional
	Pods []ReservedPods `json:"pods,omitempty"`

	// Unavailable is how many of them may be unavailable at the same time, in all clusters.
	// +optional
	Unavailable int64 `json:"unavailable,omitempty"`
}

// ReservedPods are pods in a cluster.
type ReservedPods struct {
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster"`

	// Pods is their number.
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
	// ReasonLimitReached: other releases use what a ReleaseGuard permits.
	ReasonLimitReached = "LimitReached"
	// ReasonErrorBudgetSpent: less of the error budget is left than a ReleaseGuard requires.
	ReasonErrorBudgetSpent = "ErrorBudgetSpent"
	// ReasonErrorBudgetUnknown: a ReleaseGuard requires an error budget, and how much is left is not known.
	ReasonErrorBudgetUnknown = "ErrorBudgetUnknown"
)
