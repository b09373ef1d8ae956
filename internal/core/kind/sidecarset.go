package kind

// SidecarSet injects containers into pods of others, which need its dependencies.
var SidecarSet = Register(Kind{GroupKind: groupKind(kruise, "SidecarSet"), ClusterScoped: true,
	Pods: Pods{Specs: [][]string{{"spec"}},
		Injected: []string{"containers", "initContainers", "volumes", "imagePullSecrets", "patchPodMetadata"}},
	Counters: Counters{All: "matchedPods", Updated: "updatedPods", Ready: "readyPods", Available: "readyPods",
		UpdatedAvailable: "updatedReadyPods", Desired: "matchedPods"},
	Revisions: true, Revision: [][]string{{"spec", "containers"}, {"spec", "initContainers"}, {"spec", "volumes"}},
	Pause:   pauses("spec", "updateStrategy", "paused"),
	Divides: DividesInjection, Rolling: &Rolling{Unset: int64(1)},
	Feedback: []string{"MatchedPods", "UpdatedPods", "ReadyPods"}})
