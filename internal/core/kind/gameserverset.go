package kind

// A GameServerSet makes an Advanced StatefulSet of its name, which creates pods in parallel. Its status.replicas
// repeats the spec.
var _ = Register(Kind{GroupKind: groupKind("game.kruise.io", "GameServerSet"), Replicas: replicas,
	Pods: Pods{Templates: [][]string{{"spec", "gameServerTemplate"}}, Makers: []string{"StatefulSet"}, Ordinals: true,
		Label:          "game.kruise.io/owner-gss",
		TemplateFields: []string{"volumeClaimTemplates", "reclaimPolicy"},
		Claims:         [][]string{{"spec", "gameServerTemplate", "volumeClaimTemplates"}}},
	Counters: Counters{All: "replicas", Updated: "updatedReplicas", Ready: "readyReplicas",
		Available: "availableReplicas", Existing: []string{"currentReplicas"},
		Others: []string{"updatedReadyReplicas", "maintainingReplicas", "waitToBeDeletedReplicas"}},
	Scale: true, Revisions: true, Pause: pausesRolling, Divides: DividesRollout,
	Rolling:  &Rolling{Numeric: true, UnavailableRoundsDown: true, Unset: int64(1), LimitsScaling: true},
	Feedback: []string{"ReadyReplicas", "Replicas", "AvailableReplicas", "UpdatedReplicas", "UpdatedReadyReplicas"},
})
