package kind

var advancedDaemonSet = Kind{GroupKind: groupKind(kruise, "DaemonSet"), Pods: specTemplate, Counters: ofDaemons,
	Revisions: true, Pause: pauses("spec", "updateStrategy", "rollingUpdate", "paused")}
