package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argosy-io/argosy/api/wellknown"
)

// Annotations of releases.
const (
	// ReleaseStrategyAnnotation on a template names the ReleaseStrategy for changes of its pods.
	ReleaseStrategyAnnotation = wellknown.ReleaseStrategyAnnotation
	// SkipStageAnnotation on a Release skips a stage, and RetryAnnotation starts a failed stage again. The value is the
	// stage and its attempt, such as prod@1. Attempts are counted from 1; see status.stages.
	SkipStageAnnotation = wellknown.SkipStageAnnotation
	RetryAnnotation     = wellknown.RetryAnnotation
	// BreakGlassAnnotation on a Release starts a stage although ReleaseGuards are closed or their limits are reached. The
	// value is the stage and its attempt, such as prod@1.
	BreakGlassAnnotation = wellknown.BreakGlassAnnotation
	// ReleaseReasonAnnotation on a Release is the reason of the user for skipping, retrying or forcing a stage, or for
	// changing the state of the release.
	ReleaseReasonAnnotation = wellknown.ReleaseReasonAnnotation
)

// ReleaseKind is the kind of Release.
var ReleaseKind = schema.GroupKind{Group: GroupVersion.Group, Kind: "Release"}

// Release is one run of a strategy: stage by stage, it updates the pods of workloads in their clusters to one revision.
// It does not change the templates of the workloads.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=releases,scope=Namespaced,shortName=rel
// +kubebuilder:printcolumn:JSONPath=`.status.phase`,name=`PHASE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.stage`,name=`STAGE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.targets[0].ref.name`,name=`TARGET`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.progress`,name=`PROGRESS`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.reason`,name=`REASON`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type Release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the workloads, the strategy and the desired state. Only state, supersede and ttlSecondsAfterFinished can be
	// changed after the release is accepted.
	Spec ReleaseSpec `json:"spec"`

	// Status is the progress of the release. The hub writes it.
	Status ReleaseStatus `json:"status,omitempty"`
}

// ReleaseList is a list of Releases.
// +kubebuilder:object:root=true
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Release `json:"items"`
}

// ReleaseSpec has the workloads, the strategy and the desired state of a release.
// +kubebuilder:validation:XValidation:rule="has(self.strategyRef) != has(self.strategy)",message="set one strategy"
type ReleaseSpec struct {
	// Targets are the workloads that are released together, stage by stage. Their names are unique.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Targets []ReleaseTarget `json:"targets"`

	// StrategyRef names a ReleaseStrategy in the namespace of the release. Set either strategyRef or strategy.
	StrategyRef *ReleaseStrategyReference `json:"strategyRef,omitempty"`

	// Strategy is a strategy for this release only. Set either strategyRef or strategy.
	Strategy *ReleaseStrategySpec `json:"strategy,omitempty"`

	// Supersede decides what happens while another release of one of the targets is in progress. Queue: this release waits
	// until the other has ended, or until a newer release with Replace ends it. Replace: the other release ends as
	// Superseded, and this release continues from the present pods. Refuse: this release is not accepted. Default: Queue.
	// +kubebuilder:validation:Enum=Queue;Replace;Refuse
	// +kubebuilder:default=Queue
	Supersede SupersedeAction `json:"supersede,omitempty"`

	// State is the desired state. Run: the release continues. Pause: no more pods are updated until the state is Run
	// again. Abort: the release ends, and pods stay as they are, new and old. Rollback: the release returns to the
	// revision before it. A release that has ended can be rolled back too, unless it was rolled
	// back. Default: Run.
	// +kubebuilder:validation:Enum=Run;Pause;Abort;Rollback
	// +kubebuilder:default=Run
	State ReleaseState `json:"state,omitempty"`

	// Change is the origin of the change, for people and the release history.
	Change *ReleaseChange `json:"change,omitempty"`

	// TTLSecondsAfterFinished is the time in seconds from the end of the release to its deletion. Default: 2592000 (30
	// days).
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=2592000
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`

	// CreatedBy is the user who created the release. The hub sets it and replaces other values.
	CreatedBy *ReleaseUser `json:"createdBy,omitempty"`

	// Trigger is the reason why the hub created the release. Not set if a user created it. The hub sets it.
	Trigger *ReleaseTrigger `json:"trigger,omitempty"`
}

// ReleaseTrigger is the reason why the hub created a release.
type ReleaseTrigger struct {
	// Type is Template (the workload changed, and its strategy has autoStart) or Direct (a change was sent to clusters at
	// once, and a ReleaseGuard requires a record of it; the release only observes).
	// +kubebuilder:validation:Enum=Template;Direct
	Type ReleaseTriggerType `json:"type"`

	// Revision is the ReleaseRevision of the change.
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
}

// ReleaseTriggerType is the reason why the hub created a release.
type ReleaseTriggerType string

const (
	TriggerTemplate ReleaseTriggerType = "Template"
	TriggerDirect   ReleaseTriggerType = "Direct"
)

// SupersedeAction decides what happens while another release of a target is in progress.
type SupersedeAction string

const (
	SupersedeQueue   SupersedeAction = "Queue"
	SupersedeReplace SupersedeAction = "Replace"
	SupersedeRefuse  SupersedeAction = "Refuse"
)

// ReleaseState is the desired state of a release.
type ReleaseState string

const (
	StateRun      ReleaseState = "Run"
	StatePause    ReleaseState = "Pause"
	StateAbort    ReleaseState = "Abort"
	StateRollback ReleaseState = "Rollback"
)

// ReleaseTarget is a workload of a release.
type ReleaseTarget struct {
	// Name of the target, unique in the release.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Ref names the workload, in the namespace of the release.
	Ref ReleaseObjectReference `json:"ref"`

	// To is the revision to release. Default: the present revision of the template.
	// +kubebuilder:default={current: {}}
	To ReleaseRevisionSource `json:"to,omitempty"`

	// DependsOn names targets that must reach a stage before this target starts it.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	DependsOn []string `json:"dependsOn,omitempty"`
}

// ReleaseObjectReference names a workload in the namespace of the release.
type ReleaseObjectReference struct {
	// APIVersion of the workload. The hub compares the group and ignores the version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// Kind of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ReleaseRevisionSource is the source of the revision of a target. Set exactly one field.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type ReleaseRevisionSource struct {
	// Current is the revision that the template and its overrides have when the release is accepted.
	Current *CurrentRevision `json:"current,omitempty"`

	// Revision is the name of a ReleaseRevision of the workload. Clusters get its pods, and the template is not changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
}

// CurrentRevision is the revision that the template has. It has no fields.
type CurrentRevision struct{}

// ReleaseStrategyReference names a ReleaseStrategy.
type ReleaseStrategyReference struct {
	// Name of the ReleaseStrategy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ReleaseChange is the origin of a change.
type ReleaseChange struct {
	// URL of the change, such as a pull request or a pipeline.
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// Commit is the ID of the commit that is released.
	// +kubebuilder:validation:MaxLength=253
	Commit string `json:"commit,omitempty"`

	// CommittedAt is the time of the commit.
	CommittedAt *metav1.Time `json:"committedAt,omitempty"`

	// Ticket is the ID of the ticket of the change.
	// +kubebuilder:validation:MaxLength=253
	Ticket string `json:"ticket,omitempty"`

	// Reason for the change, for people.
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// ReleaseUser is a user of the hub, as the hub authenticated them.
type ReleaseUser struct {
	// User is the name of the user.
	// +kubebuilder:validation:MaxLength=253
	User string `json:"user"`

	// UID of the user, if the hub knows one.
	// +kubebuilder:validation:MaxLength=253
	UID string `json:"uid,omitempty"`

	// Groups of the user.
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
}

// ReleaseStatus is the progress of a release.
type ReleaseStatus struct {
	// ObservedGeneration is the generation of the release that the status is for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the release: Pending, Queued, Running, Paused or RollingBack. After its end: Succeeded, Failed, Aborted,
	// Superseded or RolledBack.
	Phase ReleasePhase `json:"phase,omitempty"`

	// Reason is the reason of the condition that best explains the phase.
	Reason string `json:"reason,omitempty"`

	// Stage is the name of the stage in progress.
	Stage string `json:"stage,omitempty"`

	// Progress is the number of available new pods and of all pods of all targets, such as 30/100. During and after a
	// rollback, pods of the former revision are counted instead.
	Progress string `json:"progress,omitempty"`

	// Revision identifies the revisions of all targets together. Approvals are valid for one revision.
	Revision string `json:"revision,omitempty"`

	// Targets have the revisions of the targets, in the order of spec.targets.
	// +listType=map
	// +listMapKey=name
	Targets []ReleaseTargetStatus `json:"targets,omitempty"`

	// Strategy is the copy of the strategy from the time when the release was accepted.
	Strategy *ReleaseStrategySpec `json:"strategy,omitempty"`

	// PlanHash is the hash of the steps of the release, from the time when it started.
	PlanHash string `json:"planHash,omitempty"`

	// Stages have the progress of each stage, in the order of the strategy.
	// +listType=map
	// +listMapKey=name
	Stages []ReleaseStageStatus `json:"stages,omitempty"`

	// SoakUntil is the time when the soak of the stage ends, if its pods stay available.
	SoakUntil *metav1.Time `json:"soakUntil,omitempty"`

	// Rollback is the progress of the rollback. Not set without a rollback.
	Rollback *ReleaseRollbackStatus `json:"rollback,omitempty"`

	// LostClusters are the clusters that do not respond.
	// +listType=map
	// +listMapKey=name
	LostClusters []LostClusterStatus `json:"lostClusters,omitempty"`

	// Guard is the ReleaseGuard that the release waits for. Not set if it waits for none.
	Guard *ReleaseGuardWait `json:"guard,omitempty"`

	// StartedAt is the time when the first stage started.
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// EndedAt is the time when the release ended.
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// Journal has the last 64 events of the release.
	// +listType=map
	// +listMapKey=seq
	Journal []ReleaseJournalEntry `json:"journal,omitempty"`

	// RecordedSeq is the last journal entry that the hub knows to be in the release history. The hub writes it together
	// with other changes of the status, so the history can have more.
	RecordedSeq int64 `json:"recordedSeq,omitempty"`

	// Conditions of the release. See docs/reference/conditions.md.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReleasePhase is the phase of a release.
type ReleasePhase string

const (
	ReleasePending     ReleasePhase = "Pending"
	ReleaseQueued      ReleasePhase = "Queued"
	ReleaseRunning     ReleasePhase = "Running"
	ReleasePaused      ReleasePhase = "Paused"
	ReleaseRollingBack ReleasePhase = "RollingBack"
	ReleaseSucceeded   ReleasePhase = "Succeeded"
	ReleaseFailed      ReleasePhase = "Failed"
	ReleaseAborted     ReleasePhase = "Aborted"
	ReleaseSuperseded  ReleasePhase = "Superseded"
	ReleaseRolledBack  ReleasePhase = "RolledBack"
)

// ReleaseTargetStatus has the revisions of a target.
type ReleaseTargetStatus struct {
	// Name of the target.
	Name string `json:"name"`

	// From is the ReleaseRevision before the release. Empty if it is not known.
	From string `json:"from,omitempty"`

	// To is the ReleaseRevision to release.
	To string `json:"to"`

	// TemplateRevision is the ReleaseRevision of the template when the release was accepted. Not set if it is to.
	TemplateRevision string `json:"templateRevision,omitempty"`

	// UID of the workload. If the workload is deleted and created again, the release ends.
	UID types.UID `json:"uid,omitempty"`

	// Unit is the smallest unit in which the target can be updated, Pods or Cluster, from the time when the release
	// started. If the template changes so that this is no longer possible, no pod is updated until the change is reverted.
	Unit ReleaseUnit `json:"unit,omitempty"`

	// Failed is true if new pods of the target failed, a cluster refused it, it exceeded a deadline, or a gate was
	// rejected after the update began. A rollback then blocks its revision. A retry sets it to false.
	Failed bool `json:"failed,omitempty"`
}

// ReleaseStageStatus is the progress of a stage.
type ReleaseStageStatus struct {
	// Name of the stage.
	Name string `json:"name"`

	// Phase of the stage.
	Phase ReleaseStagePhase `json:"phase"`

	// Attempt is the number of starts of the stage, from 1.
	Attempt int32 `json:"attempt"`

	// SameClusters is true if the stage has the same clusters as the stage before it. clusterNames is then empty.
	SameClusters bool `json:"sameClusters,omitempty"`

	// ClusterNames are the clusters of the stage in the order of their update. They are selected when the release starts.
	// +listType=set
	ClusterNames []string `json:"clusterNames,omitempty"`

	// Counts has the numbers of clusters and pods of the stage.
	Counts ReleaseStageCounts `json:"counts,omitempty"`

	// Clusters are the clusters that failed and, while the stage is in progress, those that are not finished. At most 200.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Clusters []ReleaseClusterStatus `json:"clusters,omitempty"`

	// BegunTargets are the targets that the stage has started to update. A target with dependsOn starts when its
	// dependencies have reached the stage.
	// +listType=set
	BegunTargets []string `json:"begunTargets,omitempty"`

	// Gates are the gates that the stage waits for or has passed.
	// +listType=atomic
	Gates []ReleaseGateStatus `json:"gates,omitempty"`

	// Reserved is the share of the stage in the pod limits of ReleaseGuards. Not set if no guard limited pods when the
	// stage started, and after the stage has ended.
	Reserved *ReleaseReservation `json:"reserved,omitempty"`

	// Available is the largest number of new pods of the stage that were available at the same time.
	Available int64 `json:"available,omitempty"`
	// ProgressAt is the time when available reached its present value.
	ProgressAt *metav1.Time `json:"progressAt,omitempty"`

	// StartedAt is the time when the stage started to update pods.
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// ReachedAt is the time when all clusters of the stage were updated.
	ReachedAt *metav1.Time `json:"reachedAt,omitempty"`
	// EndedAt is the time when the stage was done.
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// ReleaseStagePhase is the phase of a stage.
type ReleaseStagePhase string

const (
	StagePending  ReleaseStagePhase = "Pending"
	StageGated    ReleaseStagePhase = "Gated"
	StageUpdating ReleaseStagePhase = "Updating"
	StageSoaking  ReleaseStagePhase = "Soaking"
	StageChecking ReleaseStagePhase = "Checking"
	StageDone     ReleaseStagePhase = "Done"
	StageSkipped  ReleaseStagePhase = "Skipped"
	StageFailed   ReleaseStagePhase = "Failed"
)

// ReleaseStageCounts has the numbers of clusters and pods of a stage, for all targets.
type ReleaseStageCounts struct {
	// Clusters is the number of clusters of the stage.
	Clusters int32 `json:"clusters,omitempty"`
	// Reached is the number of clusters that are updated.
	Reached int32 `json:"reached,omitempty"`
	// Failed is the number of clusters that failed.
	Failed int32 `json:"failed,omitempty"`
	// Skipped is the number of clusters that the release continues without.
	Skipped int32 `json:"skipped,omitempty"`

	// Pods is the number of pods that must be new at the end of the stage.
	Pods int64 `json:"pods,omitempty"`
	// New is the number of new pods.
	New int64 `json:"new,omitempty"`
	// Available is the number of new pods that are available.
	Available int64 `json:"available,omitempty"`
}

// ReleaseClusterStatus is the progress of a target in a cluster.
type ReleaseClusterStatus struct {
	// Name of the cluster.
	Name string `json:"name"`

	// Workload is the name of the target in spec.targets.
	Workload string `json:"workload"`

	// Replicas is the number of replicas of the workload in the cluster.
	Replicas int64 `json:"replicas"`
	// Target is the number of replicas that must be new at the end of the stage.
	Target int64 `json:"target,omitempty"`
	// New is the number of new replicas.
	New int64 `json:"new,omitempty"`
	// Available is the number of new replicas that are available.
	Available int64 `json:"available,omitempty"`

	// Phase is Updating, Failed, Lost or Skipped.
	Phase ReleaseClusterPhase `json:"phase"`

	// Message explains the phase. If the cluster refused the workload, it is the message of the cluster.
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// ReleaseClusterPhase is the phase of a target in a cluster.
type ReleaseClusterPhase string

const (
	ClusterUpdating ReleaseClusterPhase = "Updating"
	ClusterFailed   ReleaseClusterPhase = "Failed"
	ClusterLost     ReleaseClusterPhase = "Lost"
	ClusterSkipped  ReleaseClusterPhase = "Skipped"
)

// ReleaseGateStatus is the state of a gate.
type ReleaseGateStatus struct {
	// Name of the gate.
	Name string `json:"name"`

	// Position is Before or After.
	// +kubebuilder:validation:Enum=Before;After
	Position GatePosition `json:"position"`

	// Phase is Waiting, Passed, Rejected, Failed or TimedOut.
	Phase GatePhase `json:"phase"`

	// Check is the state of the check, for a gate of type Check.
	Check *ReleaseCheckStatus `json:"check,omitempty"`

	// By are the names of the users who approved, or of the user who rejected.
	// +listType=atomic
	By []string `json:"by,omitempty"`

	// Comments are the comments of these users, such as "ann: see SHOP-17".
	// +listType=atomic
	Comments []string `json:"comments,omitempty"`

	// Since is the time when the gate started to wait.
	Since *metav1.Time `json:"since,omitempty"`
	// Until is the time when the gate times out.
	Until *metav1.Time `json:"until,omitempty"`
}

// GatePosition is the position of a gate: before or after its stage.
type GatePosition string

const (
	GateBefore GatePosition = "Before"
	GateAfter  GatePosition = "After"
)

// GatePhase is the state of a gate.
type GatePhase string

const (
	GateWaiting  GatePhase = "Waiting"
	GatePassed   GatePhase = "Passed"
	GateRejected GatePhase = "Rejected"
	GateFailed   GatePhase = "Failed"
	GateTimedOut GatePhase = "TimedOut"
)

// ReleaseRollbackStatus is the progress of a rollback.
type ReleaseRollbackStatus struct {
	// Reason of the rollback: UserRequest, or the reason of the failure.
	Reason string `json:"reason"`

	// Stage is the name of the stage that is rolled back at present, for a rollback in reverse order.
	Stage string `json:"stage,omitempty"`

	// Available is the largest number of pods of the old revision that were available at the same time.
	Available int64 `json:"available,omitempty"`
	// ProgressAt is the time when available reached its present value.
	ProgressAt *metav1.Time `json:"progressAt,omitempty"`

	// StartedAt is the time when the rollback started.
	StartedAt metav1.Time `json:"startedAt"`
}

// LostClusterStatus is a cluster that does not respond.
type LostClusterStatus struct {
	// Name of the cluster.
	Name string `json:"name"`

	// Since is the time when the release first found that the cluster did not respond.
	Since metav1.Time `json:"since"`

	// Skipped is true if the release continues without the cluster.
	Skipped bool `json:"skipped,omitempty"`
}

// ReleaseJournalEntry is an event in a release.
type ReleaseJournalEntry struct {
	// Seq is the number of the entry in the release, from 1.
	Seq int64 `json:"seq"`

	// At is the time of the event.
	At metav1.Time `json:"at"`

	// Type is Phase, Stage, Gate, Cluster or Verb.
	Type JournalType `json:"type"`

	// Stage is the name of the stage, if the event is in one.
	Stage string `json:"stage,omitempty"`

	// Cluster is the name of the cluster, if the event is in one.
	Cluster string `json:"cluster,omitempty"`

	// Actor is the user who approved, rejected, or changed the release.
	Actor string `json:"actor,omitempty"`

	// Reason is one word, for programs.
	Reason string `json:"reason"`

	// Message explains the event, for people.
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// JournalType is the type of a journal entry.
type JournalType string

const (
	JournalPhase   JournalType = "Phase"
	JournalStage   JournalType = "Stage"
	JournalGate    JournalType = "Gate"
	JournalCluster JournalType = "Cluster"
	JournalVerb    JournalType = "Verb"
)

// The condition types of a Release.
//
//reference:condition Release
const (
	// ReleaseAccepted: the release is planned. If False, the reason is the cause.
	ReleaseAccepted = "Accepted"
	// ReleaseProgressing: pods are updated, or the time until the next step runs. If False, the reason is the cause.
	ReleaseProgressing = "Progressing"
	// ReleaseHealthy: no new pod, cluster or gate failed.
	ReleaseHealthy = "Healthy"
	// ReleaseConditionSucceeded: all clusters have the revision. It is Unknown until the release has ended.
	ReleaseConditionSucceeded = "Succeeded"
	// ReleaseDrifted: the template, its overrides or its versioned ConfigMaps were changed since the release was accepted,
	// or a member changes what it gets.
	ReleaseDrifted = "Drifted"
	// ReleaseRevisionChanged: failover moved replicas to clusters that run another revision. Otherwise absent.
	ReleaseRevisionChanged = "RevisionChanged"
)

// The reasons of Accepted.
//
//reference:reason Accepted of Release
const (
	// ReasonPlanned: the release can run.
	ReasonPlanned = "Planned"
	// ReasonStrategyNotFound: the ReleaseStrategy does not exist.
	ReasonStrategyNotFound = "StrategyNotFound"
	// ReasonTargetNotFound: a workload does not exist.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonTargetNotHeld: no policy propagates a workload.
	ReasonTargetNotHeld = "TargetNotHeld"
	// ReasonKindNotStaged: a workload cannot be updated in stages.
	ReasonKindNotStaged = "KindNotStaged"
	// ReasonClustersUnassigned: a cluster is in no stage, or no stage updates all of its pods.
	ReasonClustersUnassigned = "ClustersUnassigned"
	// ReasonStagesEmpty: the workloads are in no cluster.
	ReasonStagesEmpty = "StagesEmpty"
	// ReasonPlanTooLarge: the stages have too many different lists of clusters for a binding to record them.
	ReasonPlanTooLarge = "PlanTooLarge"
	// ReasonAnnotationsPresent: a template has an annotation argosy.io/rollout-*.
	ReasonAnnotationsPresent = "AnnotationsPresent"
	// ReasonForeignRollout: a Rollout of Kruise or Argo paces a workload.
	ReasonForeignRollout = "ForeignRollout"
	// ReasonPartitionOverridden: a template or an override policy sets the partition.
	ReasonPartitionOverridden = "PartitionOverridden"
	// ReasonRevisionNotFound: the ReleaseRevision does not exist.
	ReasonRevisionNotFound = "RevisionNotFound"
	// ReasonRevisionBlocked: the revision failed in a release that was rolled back.
	ReasonRevisionBlocked = "RevisionBlocked"
	// ReasonSameRevision: all clusters already have the revision.
	ReasonSameRevision = "SameRevision"
	// ReasonAnotherUnderWay: another release of the workload is in progress, and this release does not wait.
	ReasonAnotherUnderWay = "AnotherUnderWay"
	// ReasonDependencyCycle: targets depend on each other, or on one that does not exist.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonConfigNotPropagated: the ConfigMaps of a revision cannot reach clusters, because the policy of a workload does
	// not have propagateDeps.
	ReasonConfigNotPropagated = "ConfigNotPropagated"
	// ReasonConfigMapTaken: another ConfigMap has the name of a version that the release needs.
	ReasonConfigMapTaken = "ConfigMapTaken"
	// ReasonConfigMapNotFound: a version of a ConfigMap was deleted that the pods of the revision read.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
)

// The reasons of Progressing.
//
//reference:reason Progressing of Release
const (
	// ReasonStageUpdating: pods of the stage are updated.
	ReasonStageUpdating = "StageUpdating"
	// ReasonSoaking: the pods of the stage must stay available for some time.
	ReasonSoaking = "Soaking"
	// ReasonChecking: the gates after the stage are checked.
	ReasonChecking = "Checking"
	// ReasonRollingBack: the release returns to the revision before it.
	ReasonRollingBack = "RollingBack"
	// ReasonCatchingUp: the release has succeeded, and clusters that were lost or joined later are updated.
	ReasonCatchingUp = "CatchingUp"
	// ReasonQueued: the release waits for another release of the workload.
	ReasonQueued = "Queued"
	// ReasonWaitingForApproval: a gate waits for approvals.
	ReasonWaitingForApproval = "WaitingForApproval"
	// ReasonPausedByUser: spec.state is Pause.
	ReasonPausedByUser = "PausedByUser"
	// ReasonPausedByFailure: a stage has failed.
	ReasonPausedByFailure = "PausedByFailure"
	// ReasonClusterUnreachable: a cluster does not respond.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonDependencyNotReady: a target waits for a dependency that is still updated in the stage.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonFleetHalted: the hub updates no pods, because a template can no longer be updated in the unit of the release.
	ReasonFleetHalted = "FleetHalted"
	// ReasonConfigMapRefused: the hub cannot create a version of a ConfigMap, for example because of a quota. It tries
	// again each minute.
	ReasonConfigMapRefused = "ConfigMapRefused"
	// ReasonInternalError: the hub found no end of the transitions of the release. That is a mistake in Argosy.
	ReasonInternalError = "InternalError"
	// ReasonFinished: the release has ended.
	ReasonFinished = "Finished"
	// ReasonNotRolledBack: the release has ended, and the rollback of spec.state is not possible. The message has the
	// reason.
	ReasonNotRolledBack = "NotRolledBack"
)

// The reasons of Healthy, beside ReasonClusterUnreachable.
//
//reference:reason Healthy of Release
const (
	// ReasonAsExpected: nothing has failed.
	ReasonAsExpected = "AsExpected"
	// ReasonCopyUnhealthy: the workload is unhealthy in a cluster.
	ReasonCopyUnhealthy = "CopyUnhealthy"
	// ReasonPodsFailed: new pods fail.
	ReasonPodsFailed = "PodsFailed"
	// ReasonRefused: a cluster refuses the workload.
	ReasonRefused = "Refused"
	// ReasonDeadlineExceeded: no new pod has become available within the deadline, or pods did not stay available.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonGateFailed: a gate was rejected, or timed out.
	ReasonGateFailed = "GateFailed"
	// ReasonNotObserved: no state of the clusters is known yet.
	ReasonNotObserved = "NotObserved"
)

// The reasons of Succeeded.
//
//reference:reason Succeeded of Release
const (
	// ReasonCompleted: all clusters have the revision, except those of stages that a user has skipped.
	ReasonCompleted = "Completed"
	// ReasonRolledBack: all clusters have the revision before the release.
	ReasonRolledBack = "RolledBack"
	// ReasonIncomplete: a release that records a direct change saw no progress for 30 minutes.
	ReasonIncomplete = "Incomplete"
	// ReasonAborted: spec.state is Abort. Pods stay as they are.
	ReasonAborted = "Aborted"
	// ReasonSuperseded: a newer release of the workload replaced this one.
	ReasonSuperseded = "Superseded"
	// ReasonRejected: the release was not accepted.
	ReasonRejected = "Rejected"
	// ReasonRollbackFailed: the rollback failed. Pods stay as they are.
	ReasonRollbackFailed = "RollbackFailed"
	// ReasonTargetReplaced: a workload was deleted and created again. The new one is not released.
	ReasonTargetReplaced = "TargetReplaced"
	// ReasonUnderWay: the release has not ended.
	ReasonUnderWay = "UnderWay"
)

// The reasons of Drifted.
//
//reference:reason Drifted of Release
const (
	// ReasonTemplateChanged: the template has other pods.
	ReasonTemplateChanged = "TemplateChanged"
	// ReasonOverrideChanged: an override policy was changed.
	ReasonOverrideChanged = "OverrideChanged"
	// ReasonMemberChanged: a client in a member changes a workload repeatedly; see the condition Contested of its Work.
	ReasonMemberChanged = "MemberChanged"
)

// ReasonUserRequest is the reason of a rollback that a user requested.
//
//reference:none
const ReasonUserRequest = "UserRequest"

// Ended reports whether a release in the phase has ended.
func (p ReleasePhase) Ended() bool {
	switch p {
	case ReleaseSucceeded, ReleaseFailed, ReleaseAborted, ReleaseSuperseded, ReleaseRolledBack:
		return true
	}
	return false
}

// UnderWay reports whether a release in the phase has started and not ended.
func (p ReleasePhase) UnderWay() bool {
	return p == ReleaseRunning || p == ReleasePaused || p == ReleaseRollingBack
}
