package kind

var (
	replicaSet            = Kind{GroupKind: groupKind(apps, "ReplicaSet"), Pods: specTemplate, Scale: true}
	replicationController = Kind{GroupKind: groupKind(core, "ReplicationController"), Pods: specTemplate}
)
