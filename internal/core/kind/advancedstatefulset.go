package kind

var advancedStatefulSet = Kind{GroupKind: groupKind(kruise, "StatefulSet"), Pods: specTemplate, Counters: OfReplicas,
	Failures: []string{"FailedCreatePod", "FailedUpdatePod"}, Scale: true, Revisions: true,
	Pause: pauses("spec", "updateStrategy", "rollingUpdate", "paused")}
