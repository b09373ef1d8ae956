package v1alpha1

// The verbs on releases beside those of Kubernetes. Admission requires them for a ReleaseApproval, for a change of
// spec.state, and for SkipStageAnnotation, RetryAnnotation and BreakGlassAnnotation.
const (
	VerbApprove  = "approve"
	VerbPause    = "pause"
	VerbResume   = "resume"
	VerbAbort    = "abort"
	VerbRollback = "rollback"
	VerbSkip     = "skip"
	VerbRetry    = "retry"
	// VerbBreakGlass is to start a stage though ReleaseGuards do not permit it.
	VerbBreakGlass = "break-glass"
)
