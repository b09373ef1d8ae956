package kind

// For these kinds the deadlines of members apply, as in Karmada. They are not run again either.
var (
	_ = Register(Kind{GroupKind: groupKind("batch.volcano.sh", "Job"),
		Once: &Once{Over: reached([]string{"state", "phase"}, "Completed", "Failed", "Terminated"), Standard: -1}})
	_ = Register(Kind{GroupKind: groupKind("kubeflow.org", "PyTorchJob"), Once: &training})
	_ = Register(Kind{GroupKind: groupKind("kubeflow.org", "TFJob"), Once: &training})
	_ = Register(Kind{GroupKind: groupKind("kubeflow.org", "MPIJob"), Once: &training})
	_ = Register(Kind{GroupKind: groupKind("ray.io", "RayJob"),
		Once: &Once{Over: reached([]string{"jobDeploymentStatus"}, "Complete", "Failed"), Standard: -1}})
	_ = Register(Kind{GroupKind: groupKind("sparkoperator.k8s.io", "SparkApplication"),
		Once: &Once{Over: reached([]string{"applicationState", "state"}, "COMPLETED", "FAILED"), Standard: -1}})

	training = Once{Over: conditioned("Succeeded", "Failed"), Standard: -1}
)
