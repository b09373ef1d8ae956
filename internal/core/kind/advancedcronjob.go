package kind

var _ = Register(Kind{GroupKind: groupKind(kruise, "AdvancedCronJob"), Runs: InEachCluster, Pods: Pods{
	Templates: [][]string{
		{"spec", "template", "jobTemplate", "spec", "template"},
		{"spec", "template", "broadcastJobTemplate", "spec", "template"},
	},
	Makers: []string{"Job", "BroadcastJob"},
	Images: [][]string{{"spec", "template", "imageListPullJobTemplate", "spec", "images", Each}},
}})
