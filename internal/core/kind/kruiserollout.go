package kind

var kruiseRollout = Kind{GroupKind: groupKind("rollouts.kruise.io", "Rollout"),
	Pause: pauses("spec", "strategy", "paused")}
