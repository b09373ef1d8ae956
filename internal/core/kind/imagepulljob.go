package kind

var (
	imagePullJob = Kind{GroupKind: groupKind(kruise, "ImagePullJob"), Once: &completedJob,
		Pods: Pods{Images: [][]string{{"spec", "image"}}}}
	imageListPullJob = Kind{GroupKind: groupKind(kruise, "ImageListPullJob"), Once: &completedJob,
		Pods: Pods{Images: [][]string{{"spec", "images", Each}}}}
)
