package kind

var _ = Register(Kind{GroupKind: groupKind(argo, "Rollout"), Pods: madeBy("ReplicaSet", "spec", "template"),
	Replicas: replicas, Counters: OfReplicas, Failures: []Failure{ReplicaFailure}, Pause: pauses("spec", "paused"),
	Scale: true, Revisions: true,
	Refers:   &References{Paths: [][]string{{"spec", "workloadRef"}}, Paces: true},
	Feedback: []string{"Phase", "ReadyReplicas", "Replicas", "AvailableReplicas", "UpdatedReplicas"},
})
