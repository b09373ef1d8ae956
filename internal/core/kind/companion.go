package kind

// AutoGenerateAnnotation = "true" on a workload makes OpenKruise in a member create a PersistentPodState for it.
const AutoGenerateAnnotation = "kruise.io/auto-generate-persistent-pod-state"

// Companions go to the clusters of the workloads that they refer to.
var (
	_ = Register(Kind{GroupKind: groupKind(kruise, "WorkloadSpread"), Divides: DividesSubsetLimits,
		Refers: &References{Paths: targetRef, Follows: true}})
	_ = Register(Kind{GroupKind: groupKind(kruise, "PodProbeMarker"), Refers: &References{Selects: true, Follows: true}})
	_ = Register(Kind{GroupKind: groupKind(kruise, "PersistentPodState"), Refers: &References{Paths: targetRef,
		Follows: true, Generates: AutoGenerateAnnotation}})
	_ = Register(Kind{GroupKind: groupKind("policy.kruise.io", "PodUnavailableBudget"), Divides: DividesBudget,
		Counters: Counters{All: "totalReplicas", Available: "currentAvailable"},
		Refers:   &References{Paths: targetRef, Selects: true, Follows: true}})
	_ = Register(Kind{GroupKind: groupKind("policy", "PodDisruptionBudget"), Divides: DividesBudget,
		Counters: Counters{All: "expectedPods", Available: "currentHealthy"},
		Refers:   &References{Selects: true, Everything: true, Follows: true}})

	targetRef = [][]string{{"spec", "targetRef"}}
)
