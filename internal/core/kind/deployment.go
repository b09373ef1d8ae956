package kind

// ReplicaFailure is the condition of a Deployment while pods cannot be created. In a rollout these may be additional
// ones, while enough run.
const ReplicaFailure = "ReplicaFailure"

var deployment = Kind{GroupKind: groupKind(apps, "Deployment"), Pods: specTemplate, Counters: OfReplicas,
	Failures: []string{ReplicaFailure}, Pause: pauses("spec", "paused"), Scale: true, Restart: true, Revisions: true}
