package kind

// For these kinds the deadlines of members apply, as in Karmada. They are not run again either.
var (
	volcanoJob = Kind{GroupKind: groupKind("batch.volcano.sh", "Job"),
		Once: &Once{Over: reached([]string{"state", "phase"}, "Completed", "Failed", "Terminated"), Standard: -1}}
	pyTorchJob = Kind{GroupKind: groupKind("kubeflow.org", "PyTorchJob"), Once: &training}
	tfJob      = Kind{GroupKind: groupKind("kubeflow.org", "TFJob"), Once: &training}
	mpiJob     = Kind{GroupKind: groupKind("kubeflow.org", "MPIJob"), Once: &training}
	rayJob     = Kind{GroupKind: groupKind("ray.io", "RayJob"),
		Once: &Once{Over: reached([]string{"jobDeploymentStatus"}, "Complete", "Failed"), Standard: -1}}
	sparkApplication = Kind{GroupKind: groupKind("sparkoperator.k8s.io", "SparkApplication"),
		Once: &Once{Over: reached([]string{"applicationState", "state"}, "COMPLETED", "FAILED"), Standard: -1}}

	training = Once{Over: conditioned("Succeeded", "Failed"), Standard: -1}
)
