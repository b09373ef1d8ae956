package kind

var broadcastJob = Kind{GroupKind: groupKind(kruise, "BroadcastJob"), Pods: specTemplate,
	Once: &Once{Over: either(jobOver, reached(phase, "completed", "failed")), TTL: ttlByPolicy, Standard: -1,
		Ended: "completionTime"}}
