// Package builtin implements the kinds of Kubernetes, OpenKruise and Argo. Kinds that need more than a few lines have
// their own file. It is the last tier of core/workload/interpret, so customizations take precedence.
//
// Statuses are maps, because they are aggregated for each report and only a few fields matter. Missing or malformed
// status fields count as zero. Malformed spec fields are errors.
package builtin

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Tier returns the tier of this package. The hooks of unlisted kinds follow from the facts about them.
func Tier() interpret.Tier {
	kinds := interpret.Kinds{
		{Group: "apps", Kind: "Deployment"}:                     deployment(),
		{Group: "apps", Kind: "ReplicaSet"}:                     replicaSet(),
		{Group: "apps", Kind: "StatefulSet"}:                    statefulSet(),
		{Group: "apps", Kind: "DaemonSet"}:                      daemonSet(),
		{Kind: "ReplicationController"}:                         {Health: replicaSetHealth},
		{Group: "batch", Kind: "Job"}:                           job(),
		{Group: "batch", Kind: "CronJob"}:                       cronJob(),
		{Kind: "Pod"}:                                           pod(),
		{Kind: "Service"}:                                       service(),
		{Kind: "PersistentVolumeClaim"}:                         persistentVolumeClaim(),
		{Kind: "PersistentVolume"}:                              persistentVolume(),
		{Kind: "ServiceAccount"}:                                serviceAccount(),
		{Kind: "Secret"}:                                        secret(),
		{Group: "networking.k8s.io", Kind: "Ingress"}:           ingress(),
		{Group: "policy", Kind: "PodDisruptionBudget"}:          podDisruptionBudget(),
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: horizontalPodAutoscaler(),
		{Group: "multicluster.x-k8s.io", Kind: "ServiceImport"}: serviceImport(),
		{Group: "apps.kruise.io", Kind: "SidecarSet"}:           sidecarSet(),
		{Group: "apps.kruise.io", Kind: "UnitedDeployment"}:     unitedDeployment(),
		{Group: "apps.kruise.io", Kind: "DaemonSet"}:            advancedDaemonSet(),

		{Group: "apps.kruise.io", Kind: "BroadcastJob"}:             broadcastJob(),
		{Group: "apps.kruise.io", Kind: "AdvancedCronJob"}:          advancedCronJob(),
		{Group: "apps.kruise.io", Kind: "ImagePullJob"}:             imagePullJob(),
		{Group: "apps.kruise.io", Kind: "ImageListPullJob"}:         imageListPullJob(),
		{Group: "apps.kruise.io", Kind: "WorkloadSpread"}:           workloadSpread(),
		{Group: "apps.kruise.io", Kind: "PersistentPodState"}:       persistentPodState(),
		{Group: "apps.kruise.io", Kind: "ResourceDistribution"}:     resourceDistribution(),
		{Group: "apps.kruise.io", Kind: "ContainerRecreateRequest"}: containerRecreateRequest(),
		{Group: "apps.kruise.io", Kind: "EphemeralJob"}:             ephemeralJob(),
		{Group: "apps.kruise.io", Kind: "PodProbeMarker"}:           podProbeMarker(),
		{Group: "policy.kruise.io", Kind: "PodUnavailableBudget"}:   podUnavailableBudget(),
		{Group: "rollouts.kruise.io", Kind: "Rollout"}:              kruiseRollout(),
		{Group: "rollouts.kruise.io", Kind: "BatchRelease"}:         batchRelease(),
		{Group: "rollouts.kruise.io", Kind: "TrafficRouting"}:       trafficRouting(),

		{Group: "argoproj.io", Kind: "Workflow"}:                workflow(),
		{Group: "argoproj.io", Kind: "CronWorkflow"}:            cronWorkflow(),
		{Group: "argoproj.io", Kind: "WorkflowTemplate"}:        workflowTemplate(),
		{Group: "argoproj.io", Kind: "ClusterWorkflowTemplate"}: workflowTemplate(),
		{Group: "argoproj.io", Kind: "Rollout"}:                 argoRollout(),

		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               customResourceDefinition(),
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   webhookConfiguration(),
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: webhookConfiguration(),
	}
	byFacts := map[schema.GroupKind]func(*kind.Kind) *interpret.Hooks{
		{Group: "apps.kruise.io", Kind: "CloneSet"}:    cloneSet,
		{Group: "apps.kruise.io", Kind: "StatefulSet"}: advancedStatefulSet,
	}
	for k := range kind.List() {
		if of := byFacts[k.GroupKind]; of != nil {
			kinds[k.GroupKind] = of(k)
		}
		if hooks := ofFacts(k); hooks != nil && kinds[k.GroupKind] == nil {
			kinds[k.GroupKind] = hooks
		}
		if len(k.Pods.Templates)+len(k.Pods.Specs) == 0 {
			continue
		}
		if kinds[k.GroupKind] == nil {
			kinds[k.GroupKind] = &interpret.Hooks{}
		}
		if kinds[k.GroupKind].Dependencies == nil {
			kinds[k.GroupKind].Dependencies = podDependencies
		}
	}
	return kinds
}
