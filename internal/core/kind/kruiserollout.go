package kind

// KruiseRollout paces the rollout of a workload in steps.
var KruiseRollout = Register(Kind{GroupKind: groupKind(rollouts, "Rollout"), Divides: DividesSteps,
	Pause: pauses("spec", "strategy", "paused"), Refers: &References{Follows: true, Paces: true,
		Paths: [][]string{{"spec", "workloadRef"}, {"spec", "objectRef", "workloadRef"}}}})

var (
	_ = Register(Kind{GroupKind: groupKind(rollouts, "BatchRelease"), MemberMade: true})
	_ = Register(Kind{GroupKind: groupKind(rollouts, "RolloutHistory"), MemberMade: true})
)
