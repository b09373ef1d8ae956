package kind

var sidecarSet = Kind{GroupKind: groupKind(kruise, "SidecarSet"), Pods: Pods{Specs: [][]string{{"spec"}}},
	Counters:  Counters{"matchedPods", "updatedPods", "readyPods", "readyPods"},
	Revisions: true, Pause: pauses("spec", "updateStrategy", "paused")}
