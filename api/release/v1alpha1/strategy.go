package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// ReleaseStrategy is a plan for releases: in which stages pods of a new revision replace the old ones, what each stage
// waits for, and what happens when a stage fails. A Release copies it when it is accepted, so a later change of the
// strategy does not change a release that is under way.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=releasestrategies,scope=Namespaced,shortName=rst
// +kubebuilder:printcolumn:JSONPath=`.spec.stages[*].name`,name=`FIRST-STAGE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.failure.action`,name=`ON-FAILURE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ReleaseStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the plan.
	// +required
	Spec ReleaseStrategySpec `json:"spec"`
}

// ReleaseStrategyList is a list of ReleaseStrategies.
// +kubebuilder:object:root=true
type ReleaseStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseStrategy `json:"items"`
}

// ReleaseStrategySpec is the plan of a release.
type ReleaseStrategySpec struct {
	// Stages run one after the other. Names are unique.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +required
	Stages []ReleaseStage `json:"stages"`

	// Failure is when a stage fails, in addition to its deadline, and the reaction.
	// +kubebuilder:default={}
	// +optional
	Failure ReleaseFailure `json:"failure,omitempty"`

	// Rollback is how a release returns to the revision before it.
	// +kubebuilder:default={}
	// +optional
	Rollback ReleaseRollback `json:"rollback,omitempty"`

	// OnLostCluster is the reaction of a release to a cluster that does not respond.
	// +kubebuilder:default={}
	// +optional
	OnLostCluster ReleaseLostCluster `json:"onLostCluster,omitempty"`

	// OnNewCluster decides what a cluster gets that joins the placement of a workload while the release is under way.
	// Include: the old revision at first, and the new one with the last stage. Defer: the old revision until the release
	// has ended, then the new one. Hold: nothing until the release has ended.
	// +kubebuilder:validation:Enum=Include;Defer;Hold
	// +kubebuilder:default=Include
	// +optional
	OnNewCluster NewClusterAction `json:"onNewCluster,omitempty"`

	// Failover limits the clusters to which failover moves replicas during a release. PreferSameRevision: clusters that
	// run the same revision are used first, and other clusters if these have no room. SameRevision: only clusters that run
	// the same revision are used. If they have no room, the replicas stay in their cluster, where they may not run.
	// Default: PreferSameRevision.
	// +kubebuilder:validation:Enum=PreferSameRevision;SameRevision
	// +kubebuilder:default=PreferSameRevision
	// +optional
	Failover FailoverMode `json:"failover,omitempty"`

	// Unassigned is the reaction to clusters of the placement that are in no stage. Refuse: the release is not
	// accepted. LastStage: they belong to the last stage.
	// +kubebuilder:validation:Enum=Refuse;LastStage
	// +kubebuilder:default=Refuse
	// +optional
	Unassigned UnassignedAction `json:"unassigned,omitempty"`

	// Autoscaling decides what FederatedHPAs of a workload do while a stage of its release updates, soaks or is checked.
	// Follow: they scale it. Freeze: the hub keeps its number of replicas, and the bounds of the autoscalers in clusters;
	// those scale within their bounds. Freeze ends with the stage, and does not count while the release is paused, rolls
	// back, or waits for a cluster that does not answer. A gate after a stage is part of the stage.
	// +kubebuilder:validation:Enum=Follow;Freeze
	// +kubebuilder:default=Follow
	// +optional
	Autoscaling AutoscalingMode `json:"autoscaling,omitempty"`

	// Config decides how pods get a change of the ConfigMaps that they read. AtOnce: all pods get it at once, and a
	// rollback does not revert it. Versioned: the ConfigMaps are part of a revision. The hub makes an immutable ConfigMap
	// of each content, and pods read the one of their revision. This needs propagateDeps in the policy of the workload.
	// +kubebuilder:validation:Enum=AtOnce;Versioned
	// +kubebuilder:default=AtOnce
	// +optional
	Config ConfigMode `json:"config,omitempty"`

	// AutoStart makes the hub start a release when the pods, overrides or versioned ConfigMaps of a workload change. The
	// template of the workload must name this strategy. Without AutoStart, users start releases. Only in a
	// ReleaseStrategy.
	// +optional
	AutoStart *ReleaseAutoStart `json:"autoStart,omitempty"`
}

// ReleaseAutoStart configures the releases that the hub starts. The author of such a release is unknown. At gates with
// notAuthor, every user who may update a target of the release, or act as a service account that may, counts as the
// author.
type ReleaseAutoStart struct {
	// Supersede is the reaction to a change of the workload during a release of it. Queue: the hub starts the next
	// release when the current one has ended. Replace: the next release replaces it at once, unless it rolls back or
	// a user has paused it.
	// +kubebuilder:validation:Enum=Queue;Replace
	// +kubebuilder:default=Queue
	// +optional
	Supersede SupersedeAction `json:"supersede,omitempty"`
}

// AutoscalingMode is what FederatedHPAs do while a stage of a release is under way.
type AutoscalingMode string

// The modes of autoscaling during a stage.
const (
	AutoscalingFollow AutoscalingMode = "Follow"
	AutoscalingFreeze AutoscalingMode = "Freeze"
)

// ConfigMode is how pods get a change of the ConfigMaps that they read.
type ConfigMode string

// The ways in which pods get a change of ConfigMaps.
const (
	ConfigAtOnce    ConfigMode = "AtOnce"
	ConfigVersioned ConfigMode = "Versioned"
)

// NewClusterAction is what a cluster gets that joins during a release.
type NewClusterAction string

// The actions about clusters that join.
const (
	NewClusterInclude NewClusterAction = "Include"
	NewClusterDefer   NewClusterAction = "Defer"
	NewClusterHold    NewClusterAction = "Hold"
)

// FailoverMode selects the clusters to which failover moves replicas during a release.
type FailoverMode string

// The modes of failover.
const (
	FailoverPreferSameRevision FailoverMode = "PreferSameRevision"
	FailoverSameRevision       FailoverMode = "SameRevision"
)

// UnassignedAction is what to do about clusters in no stage.
type UnassignedAction string

// The actions about clusters in no stage.
const (
	UnassignedRefuse    UnassignedAction = "Refuse"
	UnassignedLastStage UnassignedAction = "LastStage"
)

// ReleaseStage is a step of a release over clusters, or over a part of their pods.
type ReleaseStage struct {
	// Name of the stage, unique in the strategy.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// Environment is shown beside the stage, such as test or prod.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Environment string `json:"environment,omitempty"`

	// Clusters selects the clusters of the stage among those of the workload's placement. They are resolved once, when
	// the release starts. If it is not set, the stage has all clusters that no earlier stage updates completely.
	// +optional
	Clusters *policyv1alpha1.ClusterAffinity `json:"clusters,omitempty"`

	// To is how many pods of the stage's clusters are new when the stage ends. Default: all of them.
	// +optional
	To *ReleaseAmount `json:"to,omitempty"`

	// Unit is what is updated at a time. Pods: some pods of a cluster can be new while others are old. Cluster: a cluster
	// is all old or all new; To then counts clusters instead of pods. Kinds without a partition, and workloads that are
	// duplicated instead of divided, always use Cluster.
	// +kubebuilder:validation:Enum=Pods;Cluster
	// +kubebuilder:default=Pods
	// +optional
	Unit ReleaseUnit `json:"unit,omitempty"`

	// MaxConcurrentClusters is how many clusters of the stage are updated at the same time: a number, or a percentage of
	// the stage's clusters, rounded up and at least 1. Default: all. For clusters that do not answer, see OnLostCluster.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +optional
	MaxConcurrentClusters *intstr.IntOrString `json:"maxConcurrentClusters,omitempty"`

	// Order is the order in which clusters get new pods. Proportional: all alike, by their replicas. Ordered: one cluster
	// after the other, as clusterNames of Clusters lists them, then by name. label:KEY: as Ordered, with the clusters
	// sorted by the value of that label first.
	// +kubebuilder:validation:Pattern=`^(Proportional|Ordered|label:[A-Za-z0-9][-A-Za-z0-9_./]*)$`
	// +kubebuilder:validation:MaxLength=323
	// +kubebuilder:default=Proportional
	// +optional
	Order string `json:"order,omitempty"`

	// Before are the gates that must all pass before the stage starts, at most 8. A release has one more before stages for
	// which ReleaseGuards need approvals.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=9
	// +optional
	Before []ReleaseGate `json:"before,omitempty"`

	// After are the gates that must all pass before the stage is done. They open when the stage has soaked.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	After []ReleaseGate `json:"after,omitempty"`

	// Soak is for how long all pods of the stage must stay available, without interruption, after the last one is
	// updated. Default: 0s.
	// +optional
	Soak metav1.Duration `json:"soak,omitempty"`

	// Deadline is for how long the stage may be without another new available pod before it fails. A stage whose pods come
	// and go fails if it has not soaked within Soak and Deadline together.
	// +kubebuilder:default="30m"
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// ReleaseUnit is what a stage updates at a time.
type ReleaseUnit string

// The units.
const (
	UnitPods    ReleaseUnit = "Pods"
	UnitCluster ReleaseUnit = "Cluster"
)

// The orders of clusters in a stage, and the prefix of the one by a label.
const (
	OrderProportional  = "Proportional"
	OrderOrdered       = "Ordered"
	OrderByLabelPrefix = "label:"
)

// ReleaseAmount is how many of the pods of a stage's clusters are new when the stage ends; it includes those that
// earlier stages updated. It has exactly one field. Where the replicas change, the amount follows.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type ReleaseAmount struct {
	// Percent of the pods of the stage's clusters, rounded up.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percent *int64 `json:"percent,omitempty"`

	// Pods is a number of pods.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Pods *int64 `json:"pods,omitempty"`

	// Weight is relative to the weights of all stages that select the same clusters. Of 100 pods, the weights 1, 2 and 7
	// make 10, 30 and 100 pods new. Numbers are rounded up; a stage that adds no pod by rounding is skipped with its
	// gates.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Weight *int64 `json:"weight,omitempty"`
}

// ReleaseGate is a condition on the way from one stage to the next.
type ReleaseGate struct {
	// Name of the gate, unique among the gates beside it.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// Type of the gate. Approval: people approve or reject with a ReleaseApproval. Check: a ReleaseCheck judges.
	// +kubebuilder:validation:Enum=Approval;Check
	// +kubebuilder:default=Approval
	// +optional
	Type ReleaseGateType `json:"type,omitempty"`

	// Approval is which approvals the gate needs. Default: one, of any user who may approve releases.
	// +optional
	Approval *ReleaseApprovalRule `json:"approval,omitempty"`

	// CheckRef names the ReleaseCheck of a gate of type Check.
	// +optional
	CheckRef *ReleaseCheckReference `json:"checkRef,omitempty"`

	// OnInconclusive is the reaction if the check of the gate has no data, or no answer; see InconclusiveLimit of the
	// check. Wait: the gate stays closed, and the check goes on until the gate times out. Pause: the release is paused.
	// Fail: the stage fails. Pass: the gate opens without data; without an answer, it waits. Default: Wait.
	// +kubebuilder:validation:Enum=Wait;Pause;Fail;Pass
	// +optional
	OnInconclusive InconclusiveAction `json:"onInconclusive,omitempty"`

	// Timeout is how long the gate waits. Default: without end.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// OnTimeout is the reaction at the end of the timeout. Pause: the release is paused. Fail: the stage fails.
	// +kubebuilder:validation:Enum=Pause;Fail
	// +kubebuilder:default=Pause
	// +optional
	OnTimeout GateTimeoutAction `json:"onTimeout,omitempty"`
}

// ReleaseGateType is the type of a gate.
type ReleaseGateType string

// GateApproval is a gate that people open.
const GateApproval ReleaseGateType = "Approval"

// GateTimeoutAction is what happens at the end of a gate's timeout.
type GateTimeoutAction string

// The actions at the end of a timeout.
const (
	GateTimeoutPause GateTimeoutAction = "Pause"
	GateTimeoutFail  GateTimeoutAction = "Fail"
)

// ReleaseApprovalRule is which approvals open a gate. One rejection closes it.
type ReleaseApprovalRule struct {
	// Count is how many different users must approve.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:default=1
	// +optional
	Count int32 `json:"count,omitempty"`

	// From lists who may approve at this gate. Default: all who may approve releases.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	From []ReleaseSubject `json:"from,omitempty"`

	// If NotAuthor is true, the user who created the release cannot approve it at this gate, nor can users who may act as
	// that user. A service account cannot approve a release of a user who may act as it, or of a service account.
	// +optional
	NotAuthor bool `json:"notAuthor,omitempty"`
}

// ReleaseSubject is a user, a group or a service account.
type ReleaseSubject struct {
	// Kind of the subject.
	// +kubebuilder:validation:Enum=User;Group;ServiceAccount
	// +required
	Kind string `json:"kind"`

	// Name of the subject. A service account is namespace:name, or only the name in the namespace of the release.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// ReleaseFailure is when a stage fails, and the reaction.
type ReleaseFailure struct {
	// Action when a stage fails. Pause: nothing more is updated until somebody resumes, aborts or rolls back. Rollback:
	// the release goes back to the revision before it. Continue: the failure is recorded and the release continues; a gate
	// before a stage that fails pauses it all the same. Default: Rollback for a stage with a gate of type Check, Pause for
	// other stages.
	// +kubebuilder:validation:Enum=Pause;Rollback;Continue
	// +optional
	Action FailureAction `json:"action,omitempty"`

	// MaxFailedPods is how many new pods may fail, in all clusters together: a number, or a percentage of all replicas,
	// rounded down. Default: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	// +optional
	MaxFailedPods *intstr.IntOrString `json:"maxFailedPods,omitempty"`

	// MaxFailedClusters is how many clusters of a stage may fail: a number, or a percentage of the stage's clusters,
	// rounded down. Default: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	// +optional
	MaxFailedClusters *intstr.IntOrString `json:"maxFailedClusters,omitempty"`
}

// FailureAction is what happens when a stage fails.
type FailureAction string

// The actions when a stage fails.
const (
	FailurePause    FailureAction = "Pause"
	FailureRollback FailureAction = "Rollback"
	FailureContinue FailureAction = "Continue"
)

// ReleaseRollback is how a release returns to the revision before it.
type ReleaseRollback struct {
	// Order of a rollback. AtOnce: all clusters together, within the workload's maxUnavailable. Reverse: the stages
	// backwards, the last one that started first.
	// +kubebuilder:validation:Enum=AtOnce;Reverse
	// +kubebuilder:default=AtOnce
	// +optional
	Order RollbackOrder `json:"order,omitempty"`

	// Deadline is for how long a rollback may be without another available pod of the old revision before it fails.
	// +kubebuilder:default="30m"
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// RollbackOrder is the order of a rollback.
type RollbackOrder string

// The orders of a rollback.
const (
	RollbackAtOnce  RollbackOrder = "AtOnce"
	RollbackReverse RollbackOrder = "Reverse"
)

// ReleaseLostCluster is the reaction of a release to a cluster that does not respond.
type ReleaseLostCluster struct {
	// Action about a lost cluster. Wait: the stage waits for it. Skip: after the time of After the stage goes on without
	// it; the cluster is updated when it returns. Fail: after that time the stage fails.
	// +kubebuilder:validation:Enum=Wait;Skip;Fail
	// +kubebuilder:default=Wait
	// +optional
	Action LostClusterAction `json:"action,omitempty"`

	// After is how long a cluster may be lost before the action.
	// +kubebuilder:default="10m"
	// +optional
	After *metav1.Duration `json:"after,omitempty"`
}

// LostClusterAction is what a release does about a lost cluster.
type LostClusterAction string

// The actions about a lost cluster.
const (
	LostClusterWait LostClusterAction = "Wait"
	LostClusterSkip LostClusterAction = "Skip"
	LostClusterFail LostClusterAction = "Fail"
)
