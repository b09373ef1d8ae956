package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "CloneSet"), Replicas: replicas,
	Counters: ofPods("expectedUpdatedReplicas", "updatedReadyReplicas"),
	Pods:     Pods{Templates: specTemplate.Templates, Owned: true, Claims: [][]string{{"spec", "volumeClaimTemplates"}}},
	Failures: []Failure{{Type: "FailedScale"}, {Type: "FailedUpdate", Updating: true}},
	Scale:    true, Revisions: true, Divides: DividesRolloutAndPods,
	Rolling: &Rolling{Surges: true, Unset: "20%", LimitsScaling: true},
	Pause: func(version string) []string {
		if version == "v1alpha1" {
			return []string{"spec", "updateStrategy", "paused"}
		}
		return pausesRolling(version)
	},
	Feedback: []string{"ReadyReplicas", "Replicas", "AvailableReplicas", "UpdatedReplicas", "UpdatedReadyReplicas"},
	Defaults: &Defaults{Policy: "podUpdatePolicy", Way: "ReCreate",
		Spec:    map[string]any{"replicas": int64(1), "revisionHistoryLimit": int64(10)},
		Rolling: map[string]any{"partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0)}},
})
