package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// ReleaseStrategy has the stages in which releases update pods to a new revision, their gates, and the reaction to
// failures. A Release copies it when it is accepted, so a later change does not change a release in progress.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=releasestrategies,scope=Namespaced,shortName=rst
// +kubebuilder:printcolumn:JSONPath=`.spec.stages[*].name`,name=`FIRST-STAGE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.failure.action`,name=`ON-FAILURE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ReleaseStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the stages and the reactions to failures.
	Spec ReleaseStrategySpec `json:"spec"`
}

// ReleaseStrategyList is a list of ReleaseStrategies.
// +kubebuilder:object:root=true
type ReleaseStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseStrategy `json:"items"`
}

// ReleaseStrategySpec has the stages and the reactions to failures.
type ReleaseStrategySpec struct {
	// Stages run one after the other. Their names are unique.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Stages []ReleaseStage `json:"stages"`

	// Failure configures when a stage fails, in addition to its deadline, and the reaction.
	// +kubebuilder:default={}
	Failure ReleaseFailure `json:"failure,omitempty"`

	// Rollback configures the return to the revision before the release.
	// +kubebuilder:default={}
	Rollback ReleaseRollback `json:"rollback,omitempty"`

	// OnLostCluster configures the reaction to a cluster that does not respond.
	// +kubebuilder:default={}
	OnLostCluster ReleaseLostCluster `json:"onLostCluster,omitempty"`

	// OnNewCluster decides about a cluster that joins the placement of a workload during the release. Include: it gets the
	// old revision first, and the new revision with the last stage. Defer: it gets the old revision until the release has
	// ended, then the new revision. Hold: it gets nothing until the release has ended. Default: Include.
	// +kubebuilder:validation:Enum=Include;Defer;Hold
	// +kubebuilder:default=Include
	OnNewCluster NewClusterAction `json:"onNewCluster,omitempty"`

	// Failover limits the clusters to which failover moves replicas during a release. PreferSameRevision: clusters with
	// the same revision first, and other clusters if these lack capacity. SameRevision: only clusters with the same
	// revision. If they lack capacity, the replicas stay in their cluster, where they may not run. Default:
	// PreferSameRevision.
	// +kubebuilder:validation:Enum=PreferSameRevision;SameRevision
	// +kubebuilder:default=PreferSameRevision
	Failover FailoverMode `json:"failover,omitempty"`

	// Unassigned decides about clusters of the placement that are in no stage. Refuse: the release is not accepted.
	// LastStage: they belong to the last stage. Default: Refuse.
	// +kubebuilder:validation:Enum=Refuse;LastStage
	// +kubebuilder:default=Refuse
	Unassigned UnassignedAction `json:"unassigned,omitempty"`

	// Autoscaling decides about FederatedHPAs of a workload while a stage of its release updates, soaks or is checked.
	// Follow: they scale it. Freeze: the hub keeps the number of replicas, and the limits of autoscalers in clusters,
	// which scale within these limits. Freeze ends with the stage and its gates. It has no effect while the release is
	// paused, rolls back, or waits for a cluster that does not respond. Default: Follow.
	// +kubebuilder:validation:Enum=Follow;Freeze
	// +kubebuilder:default=Follow
	Autoscaling AutoscalingMode `json:"autoscaling,omitempty"`

	// Config decides how pods get a change of the ConfigMaps that they read. AtOnce: all pods get it at once, and a
	// rollback does not revert it. Versioned: the ConfigMaps are part of a revision. The hub creates an immutable
	// ConfigMap for each content, and pods read that of their revision. This requires propagateDeps in the policy of the
	// workload. Default: AtOnce.
	// +kubebuilder:validation:Enum=AtOnce;Versioned
	// +kubebuilder:default=AtOnce
	Config ConfigMode `json:"config,omitempty"`

	// AutoStart starts a release when the pods, overrides or versioned ConfigMaps of a workload change whose template
	// names this strategy. Default: users start releases. Only in a ReleaseStrategy.
	AutoStart *ReleaseAutoStart `json:"autoStart,omitempty"`
}

// ReleaseAutoStart configures the releases that the hub starts. Their author is unknown: at gates with notAuthor, every
// user counts as the author who may update a target of the release, or act as a service account that may.
type ReleaseAutoStart struct {
	// Supersede decides about a change of the workload during a release of it. Queue: the hub starts the next release when
	// the current release has ended. Replace: the next release replaces it at once, unless it rolls back or a user has
	// paused it. Default: Queue.
	// +kubebuilder:validation:Enum=Queue;Replace
	// +kubebuilder:default=Queue
	Supersede SupersedeAction `json:"supersede,omitempty"`
}

// AutoscalingMode decides about FederatedHPAs during a stage: Follow or Freeze.
type AutoscalingMode string

const (
	AutoscalingFollow AutoscalingMode = "Follow"
	AutoscalingFreeze AutoscalingMode = "Freeze"
)

// ConfigMode decides how pods get a change of ConfigMaps: AtOnce or Versioned.
type ConfigMode string

const (
	ConfigAtOnce    ConfigMode = "AtOnce"
	ConfigVersioned ConfigMode = "Versioned"
)

// NewClusterAction decides about a cluster that joins during a release: Include, Defer or Hold.
type NewClusterAction string

const (
	NewClusterInclude NewClusterAction = "Include"
	NewClusterDefer   NewClusterAction = "Defer"
	NewClusterHold    NewClusterAction = "Hold"
)

// FailoverMode limits the clusters to which failover moves replicas: PreferSameRevision or SameRevision.
type FailoverMode string

const (
	FailoverPreferSameRevision FailoverMode = "PreferSameRevision"
	FailoverSameRevision       FailoverMode = "SameRevision"
)

// UnassignedAction decides about clusters in no stage: Refuse or LastStage.
type UnassignedAction string

const (
	UnassignedRefuse    UnassignedAction = "Refuse"
	UnassignedLastStage UnassignedAction = "LastStage"
)

// ReleaseStage is a step of a release. It updates clusters, or a part of their pods.
type ReleaseStage struct {
	// Name of the stage, unique in the strategy.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Environment is a name that is shown with the stage, such as test or prod. ReleaseGuards can select it.
	// +kubebuilder:validation:MaxLength=63
	Environment string `json:"environment,omitempty"`

	// Clusters selects the clusters of the stage among those of the workload's placement. They are selected once, when the
	// release starts. Default: all clusters that no earlier stage updates completely.
	Clusters *policyv1alpha1.ClusterAffinity `json:"clusters,omitempty"`

	// To is the number of pods of the stage's clusters that are new at the end of the stage. Default: all pods.
	To *ReleaseAmount `json:"to,omitempty"`

	// Unit is the unit of updates. Pods: some pods of a cluster can be new while others are old. Cluster: all pods of a
	// cluster are new or all are old, and to counts clusters. Kinds without a partition, and duplicated workloads, always
	// use Cluster. Default: Pods.
	// +kubebuilder:validation:Enum=Pods;Cluster
	// +kubebuilder:default=Pods
	Unit ReleaseUnit `json:"unit,omitempty"`

	// MaxConcurrentClusters is the number of clusters of the stage that are updated at the same time: a number, or a
	// percentage of these clusters, rounded up, at least 1. Default: all. For lost clusters, see onLostCluster.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	MaxConcurrentClusters *intstr.IntOrString `json:"maxConcurrentClusters,omitempty"`

	// Order is the order in which clusters get new pods. Proportional: all clusters at once, in proportion to their
	// replicas. Ordered: one cluster after the other, as listed in clusterNames of clusters, then by name. label:KEY: as
	// Ordered, sorted by the value of the label first. Default: Proportional.
	// +kubebuilder:validation:Pattern=`^(Proportional|Ordered|label:[A-Za-z0-9][-A-Za-z0-9_./]*)$`
	// +kubebuilder:validation:MaxLength=323
	// +kubebuilder:default=Proportional
	Order string `json:"order,omitempty"`

	// Before are the gates that must pass before the stage starts, at most 8, and one more if ReleaseGuards require
	// approvals.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=9
	Before []ReleaseGate `json:"before,omitempty"`

	// After are the gates that must pass before the stage is done, at most 8. They wait when the stage has soaked.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	After []ReleaseGate `json:"after,omitempty"`

	// Soak is the time for which all pods of the stage must stay available, without interruption, after the last update,
	// such as 10m. Default: 0s.
	Soak metav1.Duration `json:"soak,omitempty"`

	// Deadline is the time without another available new pod after which the stage fails. A stage whose pods become
	// unavailable again fails if it has not soaked within soak and deadline together. Default: 30m.
	// +kubebuilder:default="30m"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// ReleaseUnit is the unit of updates of a stage: Pods or Cluster.
type ReleaseUnit string

const (
	UnitPods    ReleaseUnit = "Pods"
	UnitCluster ReleaseUnit = "Cluster"
)

// The orders of clusters in a stage, and the prefix of the order by label.
const (
	OrderProportional  = "Proportional"
	OrderOrdered       = "Ordered"
	OrderByLabelPrefix = "label:"
)

// ReleaseAmount is the number of pods of a stage's clusters that are new at the end of the stage, including those that
// earlier stages updated. Set exactly one field. When the replicas change, the number is computed again.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type ReleaseAmount struct {
	// Percent is a percentage of the pods of the stage's clusters, rounded up.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int64 `json:"percent,omitempty"`

	// Pods is a number of pods.
	// +kubebuilder:validation:Minimum=1
	Pods *int64 `json:"pods,omitempty"`

	// Weight is relative to the weights of all stages that select the same clusters. Of 100 pods, the weights 1, 2 and 7
	// make 10, 30 and 100 pods new. Numbers are rounded up. A stage that adds no pod is skipped with its gates.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Weight *int64 `json:"weight,omitempty"`
}

// ReleaseGate is a condition that must be met before a release continues.
type ReleaseGate struct {
	// Name of the gate, unique in its list.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Type of the gate. Approval: users approve or reject it. Check: a ReleaseCheck decides. Default: Approval.
	// +kubebuilder:validation:Enum=Approval;Check
	// +kubebuilder:default=Approval
	Type ReleaseGateType `json:"type,omitempty"`

	// Approval has the approvals that the gate requires. Default: one, of any user who may approve releases.
	Approval *ReleaseApprovalRule `json:"approval,omitempty"`

	// CheckRef names the ReleaseCheck of a gate of type Check.
	CheckRef *ReleaseCheckReference `json:"checkRef,omitempty"`

	// OnInconclusive is the reaction if the check has no data or no answer; see inconclusiveLimit of the check. Wait: the
	// gate stays closed, and the check continues until the gate times out. Pause: the release is paused. Fail: the stage
	// fails. Pass: the gate opens without data; without an answer, it waits. Default: Wait.
	// +kubebuilder:validation:Enum=Wait;Pause;Fail;Pass
	OnInconclusive InconclusiveAction `json:"onInconclusive,omitempty"`

	// Timeout is the time after which a waiting gate times out, such as 24h. Default: no timeout.
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// OnTimeout is the reaction to the timeout. Pause: the release is paused. Fail: the stage fails. Default: Pause.
	// +kubebuilder:validation:Enum=Pause;Fail
	// +kubebuilder:default=Pause
	OnTimeout GateTimeoutAction `json:"onTimeout,omitempty"`
}

// ReleaseGateType is the type of a gate.
type ReleaseGateType string

// GateApproval is a gate that users open.
const GateApproval ReleaseGateType = "Approval"

// GateTimeoutAction is the reaction to the timeout of a gate.
type GateTimeoutAction string

const (
	GateTimeoutPause GateTimeoutAction = "Pause"
	GateTimeoutFail  GateTimeoutAction = "Fail"
)

// ReleaseApprovalRule has the approvals that open a gate. One rejection closes it.
type ReleaseApprovalRule struct {
	// Count is the number of different users who must approve. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:default=1
	Count int32 `json:"count,omitempty"`

	// From lists the subjects that may approve at this gate. Default: all who may approve releases.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	From []ReleaseSubject `json:"from,omitempty"`

	// NotAuthor excludes the user who created the release, and users who may act as that user, from approving at this
	// gate. A service account cannot approve a release of a user who may act as it, or of a service account. Default:
	// false.
	NotAuthor bool `json:"notAuthor,omitempty"`
}

// ReleaseSubject is a user, a group or a service account.
type ReleaseSubject struct {
	// Kind of the subject.
	// +kubebuilder:validation:Enum=User;Group;ServiceAccount
	Kind string `json:"kind"`

	// Name of the subject. A service account is namespace:name, or only the name in the namespace of the release.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ReleaseFailure configures when a stage fails, and the reaction.
type ReleaseFailure struct {
	// Action is the reaction to a failed stage. Pause: nothing more is updated until a user resumes, aborts or rolls back.
	// Rollback: the release returns to the revision before it. Continue: the failure is recorded and the release
	// continues; a gate that fails before a stage still pauses it. Default: Rollback for a stage with a gate of type
	// Check, Pause for other stages.
	// +kubebuilder:validation:Enum=Pause;Rollback;Continue
	Action FailureAction `json:"action,omitempty"`

	// MaxFailedPods is the number of new pods that may fail in all clusters together: a number, or a percentage of all
	// replicas, rounded down. Default: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	MaxFailedPods *intstr.IntOrString `json:"maxFailedPods,omitempty"`

	// MaxFailedClusters is the number of clusters of a stage that may fail: a number, or a percentage of the clusters of
	// the stage, rounded down. Default: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	MaxFailedClusters *intstr.IntOrString `json:"maxFailedClusters,omitempty"`
}

// FailureAction is the reaction to a failed stage.
type FailureAction string

const (
	FailurePause    FailureAction = "Pause"
	FailureRollback FailureAction = "Rollback"
	FailureContinue FailureAction = "Continue"
)

// ReleaseRollback configures the return to the revision before a release.
type ReleaseRollback struct {
	// Order of a rollback. AtOnce: all clusters together, within the maxUnavailable of the workload. Reverse: stage by
	// stage, starting with the last stage that started. Default: AtOnce.
	// +kubebuilder:validation:Enum=AtOnce;Reverse
	// +kubebuilder:default=AtOnce
	Order RollbackOrder `json:"order,omitempty"`

	// Deadline is the time without another available pod of the old revision after which a rollback fails. Default: 30m.
	// +kubebuilder:default="30m"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// RollbackOrder is the order of a rollback.
type RollbackOrder string

const (
	RollbackAtOnce  RollbackOrder = "AtOnce"
	RollbackReverse RollbackOrder = "Reverse"
)

// ReleaseLostCluster configures the reaction to a cluster that does not respond.
type ReleaseLostCluster struct {
	// Action for a lost cluster. Wait: the stage waits for it. Skip: after the time in after, the stage continues without
	// it, and the cluster is updated when it returns. Fail: after that time the stage fails. Default: Wait.
	// +kubebuilder:validation:Enum=Wait;Skip;Fail
	// +kubebuilder:default=Wait
	Action LostClusterAction `json:"action,omitempty"`

	// After is the time for which a cluster may be lost before the action. Default: 10m.
	// +kubebuilder:default="10m"
	After *metav1.Duration `json:"after,omitempty"`
}

// LostClusterAction is the reaction to a lost cluster.
type LostClusterAction string

const (
	LostClusterWait LostClusterAction = "Wait"
	LostClusterSkip LostClusterAction = "Skip"
	LostClusterFail LostClusterAction = "Fail"
)
