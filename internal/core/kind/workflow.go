package kind

var (
	workflow = Kind{GroupKind: groupKind(argo, "Workflow"), Pods: podsOfWorkflow("spec"), StatusIsShared: true,
		Once: &Once{Over: reached(phase, "Succeeded", "Failed", "Error"), TTL: []string{"spec", "ttlStrategy"},
			Standard: -1, Ended: "finishedAt"}}
	workflowTemplate        = Kind{GroupKind: groupKind(argo, "WorkflowTemplate"), Pods: podsOfWorkflow("spec")}
	clusterWorkflowTemplate = Kind{GroupKind: groupKind(argo, "ClusterWorkflowTemplate"), Pods: podsOfWorkflow("spec")}
	cronWorkflow            = Kind{GroupKind: groupKind(argo, "CronWorkflow"), Pods: podsOfWorkflow("spec", "workflowSpec"),
		StatusIsShared: true}
)

// podsOfWorkflow returns the containers of the templates in the spec of a workflow.
func podsOfWorkflow(spec ...string) (p Pods) {
	at := func(path ...string) []string { return append(append([]string{}, spec...), path...) }
	for _, t := range [][]string{
		{"templates", Each}, {"templateDefaults"},
		{"templates", Each, "steps", Each, Each, "inline"}, {"templates", Each, "dag", "tasks", Each, "inline"},
	} {
		in := func(path ...string) []string { return at(append(append([]string{}, t...), path...)...) }
		p.Containers = append(p.Containers,
			in("container"), in("script"), in("containerSet", "containers", Each), in("sidecars", Each))
		p.InitContainers = append(p.InitContainers, in("initContainers", Each))
	}
	return p
}
