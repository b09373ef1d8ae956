package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "ContainerRecreateRequest"), Divides: DividesNothingButPods,
	Once: &Once{Over: either(completed, reached(phase, "Succeeded", "Failed", "Completed")), TTL: ttlOfJob, Standard: -1,
		Ended: "completionTime"}})
