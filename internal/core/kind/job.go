package kind

var job = Kind{GroupKind: groupKind(batch, "Job"), Pods: specTemplate,
	Once: &Once{Over: jobOver, TTL: ttlOfJob, Standard: -1, Swept: true}}
