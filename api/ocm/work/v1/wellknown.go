package v1

const (
	// ManifestWorkFinalizer keeps a ManifestWork until its objects are deleted from the cluster, or are no longer managed.
	ManifestWorkFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"
)

// Condition types of a ManifestWork and of its manifests.
//
//reference:condition ManifestWork
const (
	// Applied: the objects are applied in the cluster.
	Applied = "Applied"
	// Available: the objects exist in the cluster.
	Available = "Available"
	// Deleting: the ManifestWork is being deleted. The message lists what remains.
	Deleting = "Deleting"
	// Complete: True when the condition rules of all objects are fulfilled.
	Complete = "Complete"
	// Progressing: as a condition rule of the objects sets it.
	Progressing = "Progressing"
	// Degraded: as a condition rule of the objects sets it.
	Degraded = "Degraded"
	// StatusFeedbackSynced: of a manifest: the values of its feedback rules are up to date.
	StatusFeedbackSynced = "StatusFeedbackSynced"
)

// Reasons of Applied. Tools know them.
//
//reference:reason Applied of ManifestWork
const (
	// ReasonWorkApplied: all objects are applied.
	ReasonWorkApplied = "AppliedManifestWorkComplete"
	// ReasonWorkApplyFailed: an object is not applied, or the cluster has not joined.
	ReasonWorkApplyFailed = "AppliedManifestWorkFailed"
	// ReasonManifestApplied: of a manifest: the object is applied.
	ReasonManifestApplied = "AppliedManifestComplete"
	// ReasonManifestApplyFailed: of a manifest: the object is not applied. The message has the error.
	ReasonManifestApplyFailed = "AppliedManifestFailed"
)

// Reasons of Available. Tools know them.
//
//reference:reason Available of ManifestWork
const (
	// ReasonResourcesAvailable: all objects exist.
	ReasonResourcesAvailable = "ResourcesAvailable"
	// ReasonResourcesNotAvailable: an object does not exist.
	ReasonResourcesNotAvailable = "ResourcesNotAvailable"
	// ReasonResourcesStatusUnknown: an object could not be read.
	ReasonResourcesStatusUnknown = "ResourcesStatusUnknown"
	// ReasonResourceAvailable: of a manifest: the object exists.
	ReasonResourceAvailable = "ResourceAvailable"
	// ReasonResourceNotAvailable: of a manifest: the object does not exist.
	ReasonResourceNotAvailable = "ResourceNotAvailable"
	// ReasonFetchingFailed: of a manifest: the object could not be read.
	ReasonFetchingFailed = "FetchingResourceFailed"
)

// The reason of Deleting. Tools know it.
//
//reference:reason Deleting of ManifestWork
const (
	// ReasonWorkDeleting: the objects in the cluster are deleted or released first.
	ReasonWorkDeleting = "WorkDeleting"
)

// Reasons of StatusFeedbackSynced. Tools know them.
//
//reference:reason StatusFeedbackSynced of ManifestWork
const (
	// ReasonNoFeedback: there are no feedback rules.
	ReasonNoFeedback = "NoStatusFeedbackSynced"
	// ReasonFeedbackSynced: the values are in statusFeedback.
	ReasonFeedbackSynced = "StatusFeedbackSynced"
	// ReasonFeedbackFailed: a value cannot be read. The message has the error.
	ReasonFeedbackFailed = "StatusFeedbackSyncFailed"
)

// Reasons of conditions that condition rules set. Tools know them.
//
//reference:reason conditions of rules of ManifestWork
const (
	// ReasonRulesAggregated: the condition follows from those of the manifests.
	ReasonRulesAggregated = "ConditionRulesAggregated"
	// ReasonRuleEvaluated: the rule was evaluated.
	ReasonRuleEvaluated = "ConditionRuleEvaluated"
	// ReasonRuleInvalid: the rule has no expression, or it does not compile.
	ReasonRuleInvalid = "ConditionRuleInvalid"
	// ReasonRuleExpressionError: an expression of the rule failed.
	ReasonRuleExpressionError = "ConditionRuleExpressionError"
)

// Messages of conditions. Tools know them.
const (
	MessageWorkApplied      = "Apply manifest work complete"
	MessageWorkApplyFailed  = "Failed to apply manifest work"
	MessageManifestApplied  = "Apply manifest complete"
	MessageManifestNotApply = "Failed to apply manifest: "
)
