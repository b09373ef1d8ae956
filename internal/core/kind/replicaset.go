package kind

var (
	_ = Register(Kind{GroupKind: groupKind(apps, "ReplicaSet"), Pods: specTemplate, Replicas: replicas, Scale: true})
	_ = Register(Kind{GroupKind: groupKind(core, "ReplicationController"), Pods: specTemplate, Replicas: replicas})
)
