package kind

var statefulSet = Kind{GroupKind: groupKind(apps, "StatefulSet"), Pods: specTemplate, Counters: OfReplicas,
	Scale: true, Restart: true, Revisions: true}
