package kind

var advancedCronJob = Kind{GroupKind: groupKind(kruise, "AdvancedCronJob"), Pods: Pods{
	Templates: [][]string{
		{"spec", "template", "jobTemplate", "spec", "template"},
		{"spec", "template", "broadcastJobTemplate", "spec", "template"},
	},
	Images: [][]string{{"spec", "template", "imageListPullJobTemplate", "spec", "images", Each}},
}}
