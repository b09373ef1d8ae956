package kind

var _ = Register(Kind{GroupKind: groupKind(apps, "DaemonSet"), Pods: specTemplate, Counters: ofDaemons, Restart: true,
	Revisions: true, Feedback: []string{"NumberReady", "DesiredNumberScheduled", "NumberAvailable"}})
