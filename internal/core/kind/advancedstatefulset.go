package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "StatefulSet"), Pods: numbered, Replicas: replicas,
	Counters: ofPods("currentReplicas", "updatedReadyReplicas"),
	Failures: []Failure{{Type: "FailedCreatePod"}, {Type: "FailedUpdatePod", Updating: true}},
	Scale:    true, Revisions: true, Pause: pausesRolling, Divides: DividesRolloutAndOrdinals,
	Rolling:  &Rolling{Numeric: true, UnavailableRoundsDown: true, Unset: int64(1), LimitsScaling: true},
	Feedback: []string{"ReadyReplicas", "Replicas", "AvailableReplicas", "UpdatedReplicas"},
	Defaults: &Defaults{Policy: "podUpdatePolicy", Way: "ReCreate",
		Spec: map[string]any{"replicas": int64(1), "revisionHistoryLimit": int64(10),
			"podManagementPolicy": "OrderedReady"},
		Rolling: map[string]any{"partition": int64(0), "maxUnavailable": int64(1), "minReadySeconds": int64(0)}},
})
