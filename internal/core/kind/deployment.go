package kind

var _ = Register(Kind{GroupKind: groupKind(apps, "Deployment"), Pods: madeBy("ReplicaSet", "spec", "template"),
	Replicas: replicas, Counters: OfReplicas, Failures: []Failure{ReplicaFailure}, Pause: pauses("spec", "paused"),
	Scale: true, Restart: true, Revisions: true, UpdatesAll: true,
	Generated: []string{"deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"},
	Feedback:  []string{"ReadyReplicas", "Replicas", "AvailableReplicas"}})
