package kind

var argoRollout = Kind{GroupKind: groupKind(argo, "Rollout"), Pods: specTemplate, Counters: OfReplicas,
	Failures: []string{ReplicaFailure}, Pause: pauses("spec", "paused"), Scale: true, Revisions: true}
