package kind

var all = []*Kind{
	&pod, &podTemplate, &replicationController,
	&deployment, &replicaSet, &statefulSet, &daemonSet,
	&job, &cronJob,
	&cloneSet, &advancedStatefulSet, &advancedDaemonSet, &unitedDeployment, &sidecarSet,
	&broadcastJob, &advancedCronJob, &imagePullJob, &imageListPullJob, &ephemeralJob, &containerRecreateRequest,
	&kruiseRollout,
	&argoRollout, &workflow, &workflowTemplate, &clusterWorkflowTemplate, &cronWorkflow,
	&volcanoJob, &pyTorchJob, &tfJob, &mpiJob, &rayJob, &sparkApplication,
}
