package kind

var _ = Register(Kind{GroupKind: groupKind(apps, "StatefulSet"), Pods: numbered, Replicas: replicas,
	Counters: OfReplicas, Scale: true, Restart: true, Revisions: true, Divides: DividesOrdinals,
	Feedback: []string{"ReadyReplicas", "Replicas", "AvailableReplicas", "UpdatedReplicas"}})
