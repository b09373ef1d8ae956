package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argosy-io/argosy/api/wellknown"
)

// Annotations of releases.
const (
	// ReleaseStrategyAnnotation on a template names the ReleaseStrategy by which changes of its pods are released.
	ReleaseStrategyAnnotation = wellknown.ReleaseStrategyAnnotation
	// SkipStageAnnotation on a Release ends a stage, and RetryAnnotation starts a stage again that failed. The value is
	// the stage and its attempt, such as prod@1. Attempts count from 1; see status.stages.
	SkipStageAnnotation = wellknown.SkipStageAnnotation
	RetryAnnotation     = wellknown.RetryAnnotation
	// BreakGlassAnnotation on a Release starts a stage though ReleaseGuards are closed or their limits are reached. The
	// value is as that of SkipStageAnnotation.
	BreakGlassAnnotation = wellknown.BreakGlassAnnotation
	// ReleaseReasonAnnotation on a Release is why a user skipped or retried a stage, started it in spite of
	// ReleaseGuards, or changed the state of the release.
	ReleaseReasonAnnotation = wellknown.ReleaseReasonAnnotation
)

// ReleaseKind is the kind of Release.
var ReleaseKind = schema.GroupKind{Group: GroupVersion.Group, Kind: "Release"}

// Release is one run of a strategy: it replaces the pods of workloads in their clusters by those of one revision, stage
// by stage. It does not change the templates of the workloads.
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

	// Spec is what is released, how, and whether the release runs. All but state, supersede and ttlSecondsAfterFinished
	// cannot be changed once the release is accepted.
	// +required
	Spec ReleaseSpec `json:"spec"`

	// Status is how far the release is.
	// +optional
	Status ReleaseStatus `json:"status,omitempty"`
}

// ReleaseList is a list of Releases.
// +kubebuilder:object:root=true
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Release `json:"items"`
}

// ReleaseSpec is what a release shall do.
// +kubebuilder:validation:XValidation:rule="has(self.strategyRef) != has(self.strategy)",message="set one strategy"
type ReleaseSpec struct {
	// Targets are the workloads that are released together, stage by stage. Names are unique.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +required
	Targets []ReleaseTarget `json:"targets"`

	// StrategyRef names the strategy in the namespace of the release.
	// +optional
	StrategyRef *ReleaseStrategyReference `json:"strategyRef,omitempty"`

	// Strategy is a strategy for this release alone.
	// +optional
	Strategy *ReleaseStrategySpec `json:"strategy,omitempty"`

	// Supersede decides what happens if another release of one of the targets is under way. Queue: this one waits until
	// the other has ended; a newer one that replaces ends it. Replace: the other one ends as Superseded, and this one
	// continues from the pods that are there. Refuse: this one is not accepted.
	// +kubebuilder:validation:Enum=Queue;Replace;Refuse
	// +kubebuilder:default=Queue
	// +optional
	Supersede SupersedeAction `json:"supersede,omitempty"`

	// State that the release shall be in. Run; Pause: no more pods are updated until it is Run again; Abort: the release
	// ends and pods stay as they are, new and old; Rollback: it goes back to the revision before it. A release that has
	// succeeded or was aborted can be rolled back too.
	// +kubebuilder:validation:Enum=Run;Pause;Abort;Rollback
	// +kubebuilder:default=Run
	// +optional
	State ReleaseState `json:"state,omitempty"`

	// Change is the origin of the change, for users and the history.
	// +optional
	Change *ReleaseChange `json:"change,omitempty"`

	// TTLSecondsAfterFinished is after how many seconds a release that has ended is deleted. Default: 2592000 (30 days).
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=2592000
	// +optional
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`

	// CreatedBy is the user who created the release. The hub sets it and replaces other values.
	// +optional
	CreatedBy *ReleaseUser `json:"createdBy,omitempty"`

	// Trigger is why the hub created the release; not set for a release of a user. What a client writes is removed.
	// +optional
	Trigger *ReleaseTrigger `json:"trigger,omitempty"`
}

// ReleaseTrigger is why the hub created a release.
type ReleaseTrigger struct {
	// Type is Template: the workload has changed, and its strategy has autoStart. Direct: a change was sent to clusters at
	// once, and a ReleaseGuard requires a record of it. Such a release only observes.
	// +kubebuilder:validation:Enum=Template;Direct
	// +required
	Type ReleaseTriggerType `json:"type"`

	// Revision is the ReleaseRevision of the change.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Revision string `json:"revision"`
}

// ReleaseTriggerType is why the hub created a release.
type ReleaseTriggerType string

// The triggers.
const (
	TriggerTemplate ReleaseTriggerType = "Template"
	TriggerDirect   ReleaseTriggerType = "Direct"
)

// SupersedeAction is what happens when another release of a target is under way.
type SupersedeAction string

// The actions when another release is under way.
const (
	SupersedeQueue   SupersedeAction = "Queue"
	SupersedeReplace SupersedeAction = "Replace"
	SupersedeRefuse  SupersedeAction = "Refuse"
)

// ReleaseState is the state that a release shall be in.
type ReleaseState string

// The states.
const (
	StateRun      ReleaseState = "Run"
	StatePause    ReleaseState = "Pause"
	StateAbort    ReleaseState = "Abort"
	StateRollback ReleaseState = "Rollback"
)

// ReleaseTarget is a workload that is released.
type ReleaseTarget struct {
	// Name of the target in this release, unique.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// Ref is the workload, in the namespace of the release.
	// +required
	Ref ReleaseObjectReference `json:"ref"`

	// To is the revision that is released. Default: the one that the template has now.
	// +kubebuilder:default={current: {}}
	// +optional
	To ReleaseRevisionSource `json:"to,omitempty"`

	// DependsOn names targets that reach a stage before this target starts it.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`
}

// ReleaseObjectReference is a workload in the namespace of the release.
type ReleaseObjectReference struct {
	// APIVersion of the workload. Only its group counts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// ReleaseRevisionSource is where the revision of a target comes from. It has exactly one field.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type ReleaseRevisionSource struct {
	// Current is the revision that the template and its overrides have when the release is accepted.
	// +optional
	Current *CurrentRevision `json:"current,omitempty"`

	// Revision is the name of a ReleaseRevision of the workload. Members get its pods; the template is not changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Revision string `json:"revision,omitempty"`
}

// CurrentRevision is the revision that the template has. It has no fields.
type CurrentRevision struct{}

// ReleaseStrategyReference names a ReleaseStrategy.
type ReleaseStrategyReference struct {
	// Name of the ReleaseStrategy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// ReleaseChange is the origin of a change.
type ReleaseChange struct {
	// URL of the change, such as a pull request or a pipeline.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`

	// Commit that is released.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Commit string `json:"commit,omitempty"`

	// CommittedAt is when it was committed.
	// +optional
	CommittedAt *metav1.Time `json:"committedAt,omitempty"`

	// Ticket of the change.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Ticket string `json:"ticket,omitempty"`

	// Reason for the change, for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ReleaseUser is a user of the hub, as the hub authenticated them.
type ReleaseUser struct {
	// User is the name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	User string `json:"user"`

	// UID of the user, if the hub knows one.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	UID string `json:"uid,omitempty"`

	// Groups of the user.
	// +listType=atomic
	// +optional
	Groups []string `json:"groups,omitempty"`
}

// ReleaseStatus is how far a release is.
type ReleaseStatus struct {
	// ObservedGeneration is the generation of the release that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the release: Pending, Queued, Running, Paused or RollingBack; when it has ended Succeeded, Failed,
	// Aborted, Superseded or RolledBack.
	// +optional
	Phase ReleasePhase `json:"phase,omitempty"`

	// Reason is that of the condition that explains the phase best.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Stage is the name of the stage under way.
	// +optional
	Stage string `json:"stage,omitempty"`

	// Progress is the number of new pods that are available, and of all pods, of all targets together: 30/100. During and
	// after a rollback, it counts pods of the former revision instead.
	// +optional
	Progress string `json:"progress,omitempty"`

	// Revision names all revisions that are released together. Approvals count for one revision only.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Targets are the revisions of the targets, in the order of spec.targets.
	// +listType=map
	// +listMapKey=name
	// +optional
	Targets []ReleaseTargetStatus `json:"targets,omitempty"`

	// Strategy is the strategy of this release, as it was when the release was accepted.
	// +optional
	Strategy *ReleaseStrategySpec `json:"strategy,omitempty"`

	// PlanHash is the hash of the steps that were planned when the release started.
	// +optional
	PlanHash string `json:"planHash,omitempty"`

	// Stages are in the order of the strategy.
	// +listType=map
	// +listMapKey=name
	// +optional
	Stages []ReleaseStageStatus `json:"stages,omitempty"`

	// SoakUntil is when the stage under way has soaked, if it stays healthy.
	// +optional
	SoakUntil *metav1.Time `json:"soakUntil,omitempty"`

	// Rollback is how far the rollback is, if there is one.
	// +optional
	Rollback *ReleaseRollbackStatus `json:"rollback,omitempty"`

	// LostClusters are clusters that do not answer, and since when.
	// +listType=map
	// +listMapKey=name
	// +optional
	LostClusters []LostClusterStatus `json:"lostClusters,omitempty"`

	// Guard is what the release waits for at ReleaseGuards; unset if it waits for none.
	// +optional
	Guard *ReleaseGuardWait `json:"guard,omitempty"`

	// StartedAt is when the first stage was entered, EndedAt when the release ended.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// Journal has the last 64 things that happened.
	// +listType=map
	// +listMapKey=seq
	// +optional
	Journal []ReleaseJournalEntry `json:"journal,omitempty"`

	// RecordedSeq is the last entry of the journal that the release history is known to have. It is written along with
	// the rest of the status, so that the history may have more.
	// +optional
	RecordedSeq int64 `json:"recordedSeq,omitempty"`

	// Conditions are Accepted, Progressing, Healthy, Succeeded, Recorded and, while they are so, Drifted and
	// RevisionChanged.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReleasePhase is the phase of a release.
type ReleasePhase string

// The phases of a release.
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

// ReleaseTargetStatus is which revisions of a target are released.
type ReleaseTargetStatus struct {
	// Name of the target.
	Name string `json:"name"`

	// From is the ReleaseRevision that was there before, empty if none is known.
	// +optional
	From string `json:"from,omitempty"`

	// To is the ReleaseRevision that is released.
	To string `json:"to"`

	// TemplateRevision is the ReleaseRevision that the template had when the release was accepted; not set if that is To.
	// +optional
	TemplateRevision string `json:"templateRevision,omitempty"`

	// UID of the workload. A workload that was deleted and created again is another one: the release ends.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// Unit is the smallest unit in which the target can be updated, by its template when the release started: Pods or
	// Cluster. If the template is changed so that this is no longer possible, no pod is updated until the change is
	// undone.
	// +optional
	Unit ReleaseUnit `json:"unit,omitempty"`

	// Failed is true if new pods of the target failed, a cluster refused it, it missed a deadline, or a gate was rejected
	// after it began. A rollback then blocks its revision. A retry clears it.
	// +optional
	Failed bool `json:"failed,omitempty"`
}

// ReleaseStageStatus is how far a stage is.
type ReleaseStageStatus struct {
	// Name of the stage.
	Name string `json:"name"`

	// Phase of the stage.
	Phase ReleaseStagePhase `json:"phase"`

	// Attempt counts how often the stage was started, from 1.
	Attempt int32 `json:"attempt"`

	// SameClusters is true if the stage has the same clusters as the one before it; clusterNames is then empty.
	// +optional
	SameClusters bool `json:"sameClusters,omitempty"`

	// ClusterNames are the clusters of the stage, in the order in which they are updated. They are chosen when the release
	// starts.
	// +listType=set
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// Counts are of the stage's clusters.
	// +optional
	Counts ReleaseStageCounts `json:"counts,omitempty"`

	// Clusters are those that are not reached, while the stage is under way, and those that failed; at most 200.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Clusters []ReleaseClusterStatus `json:"clusters,omitempty"`

	// BegunTargets are the targets that the stage updates. A target with dependsOn begins when those that it depends on
	// have reached the stage.
	// +listType=set
	// +optional
	BegunTargets []string `json:"begunTargets,omitempty"`

	// Gates are those that the stage waits for or has passed.
	// +listType=atomic
	// +optional
	Gates []ReleaseGateStatus `json:"gates,omitempty"`

	// Reserved is what the stage counts for ReleaseGuards that limit pods. It is unset if there was none when the stage
	// started, and when the stage has ended.
	// +optional
	Reserved *ReleaseReservation `json:"reserved,omitempty"`

	// Available is the largest number of new pods of the stage that were available, first at progressAt.
	// +optional
	Available int64 `json:"available,omitempty"`
	// +optional
	ProgressAt *metav1.Time `json:"progressAt,omitempty"`

	// StartedAt is when the stage began to update, ReachedAt when all its clusters were reached, EndedAt when it was done.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	ReachedAt *metav1.Time `json:"reachedAt,omitempty"`
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// ReleaseStagePhase is the phase of a stage.
type ReleaseStagePhase string

// The phases of a stage.
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

// ReleaseStageCounts are the clusters and pods of a stage, of all targets.
type ReleaseStageCounts struct {
	// Clusters in the stage, and of them those that are reached, that failed, and that the release goes on without.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`
	// +optional
	Reached int32 `json:"reached,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// +optional
	Skipped int32 `json:"skipped,omitempty"`

	// Pods that shall be new when the stage ends, and of them those that are new, and new and available.
	// +optional
	Pods int64 `json:"pods,omitempty"`
	// +optional
	New int64 `json:"new,omitempty"`
	// +optional
	Available int64 `json:"available,omitempty"`
}

// ReleaseClusterStatus is how far a target is in a cluster.
type ReleaseClusterStatus struct {
	// Name of the cluster.
	Name string `json:"name"`

	// Workload is the name of the target in spec.targets.
	Workload string `json:"workload"`

	// Replicas of the workload in the cluster; Target of them shall be new when the stage ends; New are, and Available
	// are new and available.
	Replicas int64 `json:"replicas"`
	// +optional
	Target int64 `json:"target,omitempty"`
	// +optional
	New int64 `json:"new,omitempty"`
	// +optional
	Available int64 `json:"available,omitempty"`

	// Phase is Updating, Failed, Lost or Skipped.
	Phase ReleaseClusterPhase `json:"phase"`

	// Message is the reason. If the member refused the workload, it is the member's message.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}

// ReleaseClusterPhase is how far a cluster is.
type ReleaseClusterPhase string

// The phases of a cluster.
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

	// Check is the state of the check, of a gate of type Check.
	// +optional
	Check *ReleaseCheckStatus `json:"check,omitempty"`

	// By are the users who approved, or the one who rejected.
	// +listType=atomic
	// +optional
	By []string `json:"by,omitempty"`

	// Comments are the comments of these users, such as "ann: see SHOP-17".
	// +listType=atomic
	// +optional
	Comments []string `json:"comments,omitempty"`

	// Since is when the gate began to wait, Until when it times out.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// GatePosition is where a gate is.
type GatePosition string

// The positions of gates.
const (
	GateBefore GatePosition = "Before"
	GateAfter  GatePosition = "After"
)

// GatePhase is the state of a gate.
type GatePhase string

// The states of a gate.
const (
	GateWaiting  GatePhase = "Waiting"
	GatePassed   GatePhase = "Passed"
	GateRejected GatePhase = "Rejected"
	GateFailed   GatePhase = "Failed"
	GateTimedOut GatePhase = "TimedOut"
)

// ReleaseRollbackStatus is how far a rollback is.
type ReleaseRollbackStatus struct {
	// Reason for the rollback: UserRequest, or the reason of the failure.
	Reason string `json:"reason"`

	// Stage is the stage that is rolled back now, of a rollback in reverse order.
	// +optional
	Stage string `json:"stage,omitempty"`

	// Available is the largest number of old pods that were available during the rollback, first at progressAt.
	// +optional
	Available int64 `json:"available,omitempty"`
	// +optional
	ProgressAt *metav1.Time `json:"progressAt,omitempty"`

	// StartedAt is when the rollback began.
	StartedAt metav1.Time `json:"startedAt"`
}

// LostClusterStatus is a cluster that does not answer.
type LostClusterStatus struct {
	// Name of the cluster.
	Name string `json:"name"`

	// Since is when the release first saw that it does not answer.
	Since metav1.Time `json:"since"`

	// Skipped is true if the release continues without it.
	// +optional
	Skipped bool `json:"skipped,omitempty"`
}

// ReleaseJournalEntry is something that happened in a release.
type ReleaseJournalEntry struct {
	// Seq counts the entries of a release from 1.
	Seq int64 `json:"seq"`

	// At is when it happened.
	At metav1.Time `json:"at"`

	// Type is Phase, Stage, Gate, Cluster or Verb.
	Type JournalType `json:"type"`

	// +optional
	Stage string `json:"stage,omitempty"`
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Actor is the user who gave the verdict or the verb.
	// +optional
	Actor string `json:"actor,omitempty"`

	// Reason is one word.
	Reason string `json:"reason"`

	// Message is for people.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}

// JournalType is what an entry of a journal is about.
type JournalType string

// The types of entries.
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
	// ReleaseAccepted: the release is planned. Otherwise the reason is why it cannot run.
	ReleaseAccepted = "Accepted"
	// ReleaseProgressing: pods are updated, or the time until the next step runs. Otherwise the reason says what the
	// release waits for.
	ReleaseProgressing = "Progressing"
	// ReleaseHealthy: no new pod, cluster or gate failed.
	ReleaseHealthy = "Healthy"
	// ReleaseConditionSucceeded: all clusters have the revision. It is Unknown until the release has ended.
	ReleaseConditionSucceeded = "Succeeded"
	// ReleaseDrifted: the template, its overrides or its versioned ConfigMaps were changed since the release was accepted,
	// or a member changes what it gets.
	ReleaseDrifted = "Drifted"
	// ReleaseRevisionChanged: failover moved replicas to clusters that run another revision. It is absent otherwise.
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
	// ReasonSameRevision: all clusters have the revision already.
	ReasonSameRevision = "SameRevision"
	// ReasonAnotherUnderWay: another release of the workload is under way, and this one does not wait.
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
	// ReasonRollingBack: the release goes back to the revision before it.
	ReasonRollingBack = "RollingBack"
	// ReasonCatchingUp: the release has succeeded, and clusters that were lost or that joined are updated.
	ReasonCatchingUp = "CatchingUp"
	// ReasonQueued: another release of the workload goes first.
	ReasonQueued = "Queued"
	// ReasonWaitingForApproval: a gate waits for approvals.
	ReasonWaitingForApproval = "WaitingForApproval"
	// ReasonPausedByUser: spec.state is Pause.
	ReasonPausedByUser = "PausedByUser"
	// ReasonPausedByFailure: a stage has failed.
	ReasonPausedByFailure = "PausedByFailure"
	// ReasonClusterUnreachable: a cluster does not answer.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonDependencyNotReady: in the stage, a target waits for another target that it depends on and that is still being
	// updated.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonFleetHalted: the hub updates no pods, because a template can no longer be updated in the unit of the release.
	ReasonFleetHalted = "FleetHalted"
	// ReasonConfigMapRefused: the hub cannot create a version of a ConfigMap, for example because of a quota. It tries
	// again each minute.
	ReasonConfigMapRefused = "ConfigMapRefused"
	// ReasonFinished: the release has ended.
	ReasonFinished = "Finished"
	// ReasonNotRolledBack: the release has ended, and spec.state asks for a rollback that is not possible. The message
	// says why.
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
	// ReasonNotObserved: nothing is known yet.
	ReasonNotObserved = "NotObserved"
)

// The reasons of Succeeded.
//
//reference:reason Succeeded of Release
const (
	// ReasonCompleted: all clusters have the revision, but those of stages that a user has skipped.
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
	// ReasonTemplateChanged: the template makes other pods.
	ReasonTemplateChanged = "TemplateChanged"
	// ReasonOverrideChanged: an override policy was changed.
	ReasonOverrideChanged = "OverrideChanged"
	// ReasonMemberChanged: a client in a member cluster changes a workload repeatedly; see the condition Contested of its
	// Work.
	ReasonMemberChanged = "MemberChanged"
)

// ReasonUserRequest is the reason of a rollback that a user asked for.
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

// UnderWay reports whether a release in the phase has begun and not ended.
func (p ReleasePhase) UnderWay() bool {
	return p == ReleaseRunning || p == ReleasePaused || p == ReleaseRollingBack
}
