package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "ImagePullJob"), Once: &completedJob, Divides: DividesParallelism,
	Pods:     Pods{Images: [][]string{{"spec", "image"}}},
	Counters: Counters{Desired: "desired", Active: "active"},
	Feedback: []string{"Desired", "Active", "Succeeded", "Completed", "Failed"}})

// An ImageListPullJob counts images and not nodes.
var _ = Register(Kind{GroupKind: groupKind(kruise, "ImageListPullJob"), Once: &completedJob,
	Divides: DividesParallelism, Pods: Pods{Images: [][]string{{"spec", "images", Each}}}})
