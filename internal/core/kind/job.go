package kind

var _ = Register(Kind{GroupKind: groupKind(batch, "Job"), Replicas: []string{"spec", "parallelism"},
	Pods: Pods{Templates: specTemplate.Templates, Owned: true, Label: "job-name", Labels: []string{
		"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}},
	Counters: Counters{Existing: []string{"active"}},
	Once: &Once{Over: jobOver, TTL: ttlOfJob, Standard: -1, Swept: true, Final: true,
		Completions: []string{"spec", "completions"}},
	Feedback: []string{"JobSucceeded=succeeded", `JobComplete=conditions[?(@.type=="Complete")].status`}})
