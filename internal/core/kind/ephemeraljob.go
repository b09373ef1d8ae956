package kind

var ephemeralJob = Kind{GroupKind: groupKind(kruise, "EphemeralJob"),
	Pods: Pods{Specs: [][]string{{"spec", "template"}}},
	Once: &Once{Over: either(completed, reached(phase, "Succeeded", "Failed")), TTL: ttlOfJob, Standard: 1800,
		Ended: "completionTime"}}
