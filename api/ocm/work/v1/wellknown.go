package v1

const (
	// ManifestWorkFinalizer holds a ManifestWork until its objects are gone from the cluster, or left to it.
	ManifestWorkFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"

	// ManifestWorkAnnotation is on a Work, and on its object in the member: the name of the ManifestWork that it is of. Ours.
	ManifestWorkAnnotation = "argosy.io/manifest-work"
	// UpdateStrategyAnnotation on a Work is how its object is kept, where that is not Update: CreateOnly, or ServerSideApply for one
	// that does not take fields from others. Ours.
	UpdateStrategyAnnotation = "argosy.io/update-strategy"
	// IgnoredFieldsAnnotation on a Work has the ignoreFields of its update strategy, as JSON. Ours.
	IgnoredFieldsAnnotation = "argosy.io/ignored-fields"
)

// The condition types of a ManifestWork and of its manifests.
const (
	Applied              = "Applied"
	Available            = "Available"
	Deleting             = "Deleting"
	Complete             = "Complete"
	Progressing          = "Progressing"
	Degraded             = "Degraded"
	StatusFeedbackSynced = "StatusFeedbackSynced"
)

// The reasons of conditions, word for word as tools know them.
const (
	ReasonWorkApplied            = "AppliedManifestWorkComplete"
	ReasonWorkApplyFailed        = "AppliedManifestWorkFailed"
	ReasonResourcesAvailable     = "ResourcesAvailable"
	ReasonResourcesNotAvailable  = "ResourcesNotAvailable"
	ReasonResourcesStatusUnknown = "ResourcesStatusUnknown"
	ReasonWorkDeleting           = "WorkDeleting"
	ReasonRulesAggregated        = "ConditionRulesAggregated"

	ReasonManifestApplied      = "AppliedManifestComplete"
	ReasonManifestApplyFailed  = "AppliedManifestFailed"
	ReasonResourceAvailable    = "ResourceAvailable"
	ReasonResourceNotAvailable = "ResourceNotAvailable"
	ReasonFetchingFailed       = "FetchingResourceFailed"
	ReasonNoFeedback           = "NoStatusFeedbackSynced"
	ReasonFeedbackSynced       = "StatusFeedbackSynced"
	ReasonFeedbackFailed       = "StatusFeedbackSyncFailed"
	ReasonRuleEvaluated        = "ConditionRuleEvaluated"
	ReasonRuleInvalid          = "ConditionRuleInvalid"
	ReasonRuleExpressionError  = "ConditionRuleExpressionError"

	MessageWorkApplied      = "Apply manifest work complete"
	MessageWorkApplyFailed  = "Failed to apply manifest work"
	MessageManifestApplied  = "Apply manifest complete"
	MessageManifestNotApply = "Failed to apply manifest: "
)
