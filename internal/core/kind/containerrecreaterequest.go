package kind

var containerRecreateRequest = Kind{GroupKind: groupKind(kruise, "ContainerRecreateRequest"),
	Once: &Once{Over: either(completed, reached(phase, "Succeeded", "Failed", "Completed")), TTL: ttlOfJob, Standard: -1,
		Ended: "completionTime"}}
