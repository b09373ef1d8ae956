package kind

var _ = Register(Kind{GroupKind: groupKind(batch, "CronJob"),
	Pods: madeBy("Job", "spec", "jobTemplate", "spec", "template")})
