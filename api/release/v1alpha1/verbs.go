package v1alpha1

// The verbs on releases, in addition to those of Kubernetes. Admission requires them for a ReleaseApproval, a change of
// spec.state, and SkipStageAnnotation, RetryAnnotation and BreakGlassAnnotation.
const (
	VerbApprove  = "approve"
	VerbPause    = "pause"
	VerbResume   = "resume"
	VerbAbort    = "abort"
	VerbRollback = "rollback"
	VerbSkip     = "skip"
	VerbRetry    = "retry"
	// VerbBreakGlass permits starting a stage although ReleaseGuards do not allow it.
	VerbBreakGlass = "break-glass"
)
