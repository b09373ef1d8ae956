package autoscale

// Reasons of warnings.
//
//reference:event Warning on FederatedHPA
const (
	// eventFailedRescale: the replicas of the workload, or the autoscaler of a cluster, cannot be written.
	eventFailedRescale = "FailedRescale"
	// eventFailedMetrics: the metrics do not give a number of replicas. The message has the error.
	eventFailedMetrics = "FailedComputeMetricsReplicas"
	// eventRuleFailed: a rule could not be executed.
	//
	//reference:event Warning on CronFederatedHPA
	eventRuleFailed = "ScaleFailed"
)

// Reasons of successes.
//
//reference:event Normal on FederatedHPA
const (
	// eventRescaled: the workload was scaled. The message has the replicas and the metric.
	eventRescaled = "SuccessfulRescale"
)

// Reasons of BoundsSplit. Warnings have the first two as well.
//
//reference:reason BoundsSplit of FederatedHPA
const (
	// reasonManyClusters: maxReplicas is less than the number of clusters, so each has one replica. Also a warning.
	reasonManyClusters = "MoreClustersThanReplicas"
	// reasonNotApplied: a cluster refuses its autoscaler. Also a warning.
	reasonNotApplied = "AutoscalerNotApplied"
	// reasonPending: some clusters have not applied their autoscaler yet.
	reasonPending = "AutoscalersPending"
	// reasonSplit: every cluster has its autoscaler. The message has the bounds.
	reasonSplit = "BoundsSplit"
)

// Reasons of ScalingActive and AbleToScale, beside those that core/adjust/autoscale sets.
//
//reference:reason ScalingActive of FederatedHPA
const (
	// reasonInvalidSelector: the workload has no selector that finds its pods.
	reasonInvalidSelector = "InvalidSelector"
	// reasonAmbiguous: an older FederatedHPA scales the same workload.
	reasonAmbiguous = "AmbiguousSelector"
	// reasonFailedGetScale: the replicas of the workload cannot be read.
	//
	//reference:reason AbleToScale of FederatedHPA
	reasonFailedGetScale = "FailedGetScale"
)
