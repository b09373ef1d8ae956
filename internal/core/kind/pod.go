package kind

var (
	_ = Register(Kind{GroupKind: groupKind(core, "Pod"), Pods: Pods{Templates: [][]string{{}}, Owned: true},
		Feedback: []string{"PodPhase=phase", `PodReady=conditions[?(@.type=="Ready")].status`}})
	_ = Register(Kind{GroupKind: groupKind(core, "PodTemplate"), Pods: Pods{Templates: [][]string{{"template"}}}})
)
