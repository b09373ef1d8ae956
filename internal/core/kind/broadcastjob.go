package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "BroadcastJob"), Divides: DividesParallelism,
	Pods:     Pods{Templates: specTemplate.Templates, Owned: true, Label: "broadcastjob-name"},
	Counters: Counters{Desired: "desired", Active: "active", Existing: []string{"active", "succeeded", "failed"}},
	Once: &Once{Over: either(jobOver, reached(phase, "completed", "failed")), TTL: ttlByPolicy, Standard: -1,
		Ended: "completionTime", Pauses: true, Final: true},
	Feedback: []string{"Desired", "Active", "Succeeded", "Failed", "Phase"},
})
