package kind

var cloneSet = Kind{GroupKind: groupKind(kruise, "CloneSet"), Pods: specTemplate, Counters: OfReplicas,
	Failures: []string{"FailedScale", "FailedUpdate"}, Scale: true, Revisions: true,
	Pause: func(version string) []string {
		if version == "v1alpha1" {
			return []string{"spec", "updateStrategy", "paused"}
		}
		return []string{"spec", "updateStrategy", "rollingUpdate", "paused"}
	}}
