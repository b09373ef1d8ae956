package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "DaemonSet"), Pods: specTemplate, Counters: ofDaemons,
	Revisions: true, Pause: pausesRolling, Divides: DividesRollout,
	Rolling:  &Rolling{PartitionRoundsDown: true, Surges: true, Unset: int64(1)},
	Feedback: []string{"NumberReady", "DesiredNumberScheduled", "NumberAvailable", "UpdatedNumberScheduled"},
	Defaults: &Defaults{Policy: "rollingUpdateType", Way: "Standard",
		Spec: map[string]any{"burstReplicas": int64(250), "revisionHistoryLimit": int64(10)}},
})
