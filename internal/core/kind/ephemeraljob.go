package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "EphemeralJob"), Divides: DividesPodsAndParallelism,
	Pods:     Pods{Specs: [][]string{{"spec", "template"}}},
	Counters: Counters{Desired: "match", Active: "running"},
	Once: &Once{Over: either(completed, reached(phase, "Succeeded", "Failed")), TTL: ttlOfJob, Standard: 1800,
		Ended: "completionTime", Pauses: true}})
