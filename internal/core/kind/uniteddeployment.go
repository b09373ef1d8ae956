package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "UnitedDeployment"), Replicas: replicas, Revisions: true,
	Failures: []Failure{{Type: "SubsetFailure"}}, Divides: DividesSubsets,
	Counters: Counters{All: "replicas", Updated: "updatedReplicas", Ready: "readyReplicas", Available: "readyReplicas"},
	Pods: Pods{
		Templates: [][]string{
			{"spec", "template", "statefulSetTemplate", "spec", "template"},
			{"spec", "template", "advancedStatefulSetTemplate", "spec", "template"},
			{"spec", "template", "cloneSetTemplate", "spec", "template"},
			{"spec", "template", "deploymentTemplate", "spec", "template"},
		},
		Claims: [][]string{
			{"spec", "template", "statefulSetTemplate", "spec", "volumeClaimTemplates"},
			{"spec", "template", "advancedStatefulSetTemplate", "spec", "volumeClaimTemplates"},
			{"spec", "template", "cloneSetTemplate", "spec", "volumeClaimTemplates"},
		},
		Makers: []string{"ReplicaSet", "StatefulSet", "CloneSet"}, Subsets: true,
	},
	Feedback: []string{"ReadyReplicas", "Replicas", "UpdatedReplicas", "UpdatedReadyReplicas"}})
