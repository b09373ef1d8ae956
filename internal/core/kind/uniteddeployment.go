package kind

var unitedDeployment = Kind{GroupKind: groupKind(kruise, "UnitedDeployment"), Revisions: true,
	Failures: []string{"SubsetFailure"},
	Counters: Counters{"replicas", "updatedReplicas", "readyReplicas", "readyReplicas"},
	Pods: Pods{Templates: [][]string{
		{"spec", "template", "statefulSetTemplate", "spec", "template"},
		{"spec", "template", "advancedStatefulSetTemplate", "spec", "template"},
		{"spec", "template", "cloneSetTemplate", "spec", "template"},
		{"spec", "template", "deploymentTemplate", "spec", "template"},
	}}}
