package kind

var (
	_ = Register(Kind{GroupKind: groupKind(argo, "Workflow"), Pods: ofWorkflow, Workflow: spec, Runs: InOneCluster,
		StatusIsShared: true, Generated: ofRuns,
		Once: &Once{Final: true, Over: reached(phase, "Succeeded", "Failed", "Error"), TTL: []string{"spec", "ttlStrategy"},
			Standard: -1, Ended: "finishedAt"},
		Feedback: []string{"Phase", "Progress"}})
	_ = Register(Kind{GroupKind: groupKind(argo, "WorkflowTemplate"), Pods: podsOfWorkflow(spec), Workflow: spec})
	_ = Register(Kind{GroupKind: groupKind(argo, "ClusterWorkflowTemplate"), Pods: podsOfWorkflow(spec), Workflow: spec,
		ClusterScoped: true})
	_ = Register(Kind{GroupKind: groupKind(argo, "CronWorkflow"), Pods: ofCron, Workflow: cronSpec, Runs: InOneCluster,
		StatusIsShared: true, Generated: ofRuns})

	// Argo in a member creates these for its Workflows.
	_ = Register(Kind{GroupKind: groupKind(argo, "WorkflowTaskSet"), MemberMade: true})
	_ = Register(Kind{GroupKind: groupKind(argo, "WorkflowTaskResult"), MemberMade: true})
	_ = Register(Kind{GroupKind: groupKind(argo, "WorkflowArtifactGCTask"), MemberMade: true})

	spec, cronSpec = []string{"spec"}, []string{"spec", "workflowSpec"}

	ofWorkflow = func() Pods {
		p := podsOfWorkflow(spec)
		p.Owned, p.Label = true, "workflows.argoproj.io/workflow"
		return p
	}()
	ofCron = func() Pods {
		p := podsOfWorkflow(cronSpec)
		p.Makers = []string{"Workflow"}
		return p
	}()

	// ofRuns mark completed Workflows. Argo's controller would ignore an object with them.
	ofRuns = []string{"workflows.argoproj.io/completed", "workflows.argoproj.io/phase",
		"workflows.argoproj.io/workflow-archiving-status", "cronworkflows.argoproj.io/completed",
		"cronworkflows.argoproj.io/last-used-schedule"}
)

// podsOfWorkflow returns the containers of the templates in the spec of a workflow.
func podsOfWorkflow(spec []string) (p Pods) {
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
