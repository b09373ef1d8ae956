package kind

// Rolling is an update strategy that can keep old pods with a partition, and limits pods that are not available.
type Rolling struct {
	// Numeric is true if the partition is a number of pods, never a percentage.
	Numeric bool
	// PartitionRoundsDown and UnavailableRoundsDown are of percentages, which otherwise round up; the latter applies
	// without a surge.
	PartitionRoundsDown, UnavailableRoundsDown bool
	// Surges is true if the kind knows maxSurge.
	Surges bool
	// Unset is the limit when none is given.
	Unset any
	// LimitsScaling is true if spec.scaleStrategy.maxUnavailable limits how fast pods are created.
	LimitsScaling bool
}

// Division is what of an object the hub divides among clusters, beside its replicas.
type Division int

// The values of Division.
const (
	DividesNothing Division = iota
	// DividesRollout: the partition, maxUnavailable and maxSurge.
	DividesRollout
	// DividesRolloutAndPods: these, and the names of pods to delete.
	DividesRolloutAndPods
	// DividesRolloutAndOrdinals: these, and the ordinals of pods.
	DividesRolloutAndOrdinals
	// DividesOrdinals: the ordinals of pods alone.
	DividesOrdinals
	// DividesInjection: the rollout of what is injected into pods, and the versions of it.
	DividesInjection
	// DividesSubsets: the replicas of subsets, and their limits and partitions.
	DividesSubsets
	// DividesSubsetLimits: the maximum of pods in subsets of the workload that it refers to.
	DividesSubsetLimits
	// DividesSteps: the replicas of steps, by the workload that it refers to.
	DividesSteps
	// DividesBudget: the pods that must be available, or may not be.
	DividesBudget
	// DividesParallelism: the pods that run at the same time.
	DividesParallelism
	// DividesPodsAndParallelism: these, and the pods that it changes.
	DividesPodsAndParallelism
	// DividesNothingButPods: it goes to the cluster that has its pod.
	DividesNothingButPods
	// DividesBounds: the smallest and the largest number of pods of the workload that it refers to.
	DividesBounds
)
