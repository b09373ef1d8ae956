package kind

var daemonSet = Kind{GroupKind: groupKind(apps, "DaemonSet"), Pods: specTemplate, Counters: ofDaemons, Restart: true,
	Revisions: true}
