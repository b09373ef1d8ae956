// Package wellknown lists all names with the prefix argosy.io/: labels, annotations and keys of taints.
//
// Each comment names the objects, the packages below internal that write and read the name, and whether users may set
// it. A test keeps the lists of packages correct. Names of other projects are in the packages of their kinds.
package wellknown

// Prefix is the prefix of all names.
const Prefix = "argosy.io/"

// RestAnnotation has the fields that the version of the object lacks and another version has, as JSON.
//
// On: bindings, OpenKruise workloads. Users may set it: no.
func RestAnnotation(version string) string { return Prefix + version + "-rest" }

// Settings of templates. They have no effect in members; Bare of core/workload/fleet removes those of rollouts.
const (
	// RolloutScopeAnnotation is the scope of the numbers of a template, such as a partition, maxUnavailable, a budget, or
	// the bounds of an autoscaler. Fleet: the pods of all clusters together; the hub divides the numbers. Cluster: the
	// pods of each cluster, as in Karmada. The default is Fleet for OpenKruise workloads whose replicas
	// are divided, and Cluster for all others. If a user sets the label resourcetemplate.karmada.io/retain-replicas on
	// such a workload, it is always Cluster.
	//
	// On: templates. Written by: users, core/source/migrate. Read by: core/source/migrate, core/workload/fleet. Users may
	// set it: yes.
	RolloutScopeAnnotation = "argosy.io/rollout-scope"

	// RolloutOrderAnnotation is the order in which clusters get new pods: all in proportion (Proportional, the default),
	// one after the other (Ordered), or as in RolloutStagesAnnotation (Stages).
	//
	// On: templates. Written by: users. Read by: cli, core/release, core/workload/fleet. Users may set it: yes.
	RolloutOrderAnnotation = "argosy.io/rollout-order"

	// RolloutClustersAnnotation is the order of clusters, "a,b,c". Other clusters follow in the order of the
	// placement, then by name.
	//
	// On: templates. Written by: users. Read by: core/release, core/workload/fleet. Users may set it: yes.
	RolloutClustersAnnotation = "argosy.io/rollout-clusters"

	// RolloutStagesAnnotation is a JSON list of stages. A stage has either the percentage of all replicas that are new at
	// its end, up to 100, or clusters whose pods are all new at its end. With pause, the next stage waits for
	// RolloutStageAnnotation.
	//
	//	[{"percent": 10, "pause": true}, {"clusters": ["eu"]}, {"percent": 100}]
	//
	// On: templates. Written by: users. Read by: core/release, core/workload/fleet. Users may set it: yes.
	RolloutStagesAnnotation = "argosy.io/rollout-stages"

	// RolloutStageAnnotation approves the pauses of the stages up to a number, counted from 1, for one revision. `argosy
	// rollout status` shows the revision. A number alone is valid for the revision that the template has when the hub
	// first reads it.
	//
	//	{"stage": 2, "revision": "1b2c3d4e"}
	//
	// On: templates. Written by: users, cli, console. Read by: core/release, core/workload/fleet. Users may set it:
	// yes.
	RolloutStageAnnotation = "argosy.io/rollout-stage"

	// ReleaseStrategyAnnotation names the ReleaseStrategy for changes of the pods of a template. Without a release,
	// members keep their pods.
	//
	// On: templates. Written by: users. Read by: api/release/v1alpha1. Users may set it: yes.
	ReleaseStrategyAnnotation = "argosy.io/release-strategy"

	// PlacementDecisionAnnotation publishes the clusters of a policy as PlacementDecisions of Open Cluster Management,
	// under the name of a Placement. The value is the name, in the namespace of the policy; on a ClusterPropagationPolicy,
	// NAMESPACE/NAME.
	//
	// On: PropagationPolicies, ClusterPropagationPolicies. Written by: users. Read by: controller/admission,
	// core/source/ocm/placement. Users may set it: yes.
	PlacementDecisionAnnotation = "argosy.io/placement-decision"

	// SkipStageAnnotation skips a stage of a release. The value is the stage and its attempt, such as prod@1.
	//
	// On: Releases. Written by: users. Read by: api/release/v1alpha1. Users may set it: yes.
	SkipStageAnnotation = "argosy.io/skip-stage"

	// RetryAnnotation starts a failed stage of a release again. The value is the stage and its attempt, such as prod@1.
	//
	// On: Releases. Written by: users. Read by: api/release/v1alpha1. Users may set it: yes.
	RetryAnnotation = "argosy.io/retry"

	// BreakGlassAnnotation starts a stage of a release although ReleaseGuards are closed or their limits are reached. The
	// value is the stage and its attempt, such as prod@1.
	//
	// On: Releases. Written by: users. Read by: api/release/v1alpha1. Users may set it: yes.
	BreakGlassAnnotation = "argosy.io/break-glass"

	// ReleasePlanAnnotation is the plan of the release that is in progress, or that was aborted, as JSON.
	//
	// On: bindings. Written by: core/workload/fleet. Read by: core/workload/fleet. Users may set it: no.
	ReleasePlanAnnotation = "argosy.io/release-plan"

	// EffectiveRevisionAnnotation names the ReleaseRevision whose pods members get instead of those of the template. On a
	// Work, it names the ReleaseRevision of the manifest.
	//
	// On: bindings, Works. Written by: core/workload/fleet. Read by: core/workload/fleet. Users may set it: no.
	EffectiveRevisionAnnotation = "argosy.io/effective-revision"

	// VersionOfAnnotation names the ConfigMap of which a ConfigMap is an immutable version for releases. Admission refuses
	// users who set, change or remove it, and keeps versions that pods read.
	//
	// On: ConfigMaps. Written by: core/release. Read by: core/release, core/admission/protect,
	// core/source/adopt. Users may set it: no.
	VersionOfAnnotation = "argosy.io/version-of"

	// ReleaseReasonAnnotation is the reason of the user, for people, for skipping, retrying or forcing a stage of a
	// release, or for changing its state.
	//
	// On: Releases. Written by: users. Read by: api/release/v1alpha1. Users may set it: yes.
	ReleaseReasonAnnotation = "argosy.io/release-reason"

	// ReleaseVerbsAnnotation has the user and reason of the last change of the state of a release, and of the last
	// skipped, retried or forced stage, as JSON. The hub replaces values of clients.
	//
	// On: Releases. Written by: core/release. Read by: core/release. Users may set it: no.
	ReleaseVerbsAnnotation = "argosy.io/release-verbs"

	// UnreachableClustersAnnotation is CountAsDown (the pods of an unreachable cluster count as unavailable, and the
	// rollout waits) or Ignore (they do not count). Default: CountAsDown.
	//
	// On: templates. Written by: users. Read by: core/workload/fleet. Users may set it: yes.
	UnreachableClustersAnnotation = "argosy.io/unreachable-clusters"

	// AutoHaltAnnotation = "false" continues a rollout whose new revision is unhealthy in a member.
	//
	// On: templates. Written by: users. Read by: core/workload/fleet. Users may set it: yes.
	AutoHaltAnnotation = "argosy.io/auto-halt"

	// FailedPodsThresholdAnnotation is the number, or the percentage of all replicas, of new pods that may fail before a
	// rollout stops in all clusters. Without it, the first unhealthy member stops the rollout. A pod has failed if it is
	// not available in an unhealthy member, or after spec.progressDeadlineSeconds without progress.
	//
	// On: templates. Written by: users. Read by: core/workload/fleet. Users may set it: yes.
	FailedPodsThresholdAnnotation = "argosy.io/failed-pods-threshold"

	// UniqueOrdinalsAnnotation = "true" gives each pod of an Advanced StatefulSet an ordinal that no other cluster
	// uses.
	//
	// On: templates. Written by: users. Read by: core/adjust/deschedule, core/dispatch, core/workload/fleet. Users may
	// set it: yes.
	UniqueOrdinalsAnnotation = "argosy.io/unique-ordinals"

	// OrdinalMobilityAnnotation is Never, WithoutPVC or Always: when the ordinals of a cluster that has left move to other
	// clusters. WithoutPVC, the default, moves those without volumeClaimTemplates, whose data would stay behind.
	//
	// On: templates. Written by: users. Read by: core/workload/fleet. Users may set it: yes.
	OrdinalMobilityAnnotation = "argosy.io/ordinal-mobility"

	// OrdinalScaleDownAnnotation selects the unique ordinals that a scale-down removes: the highest of each cluster that
	// gets fewer replicas (ClusterHighest, the default), or the highest of all clusters (GlobalHighest).
	//
	// On: templates. Written by: users. Read by: core/workload/fleet. Users may set it: yes.
	OrdinalScaleDownAnnotation = "argosy.io/ordinal-scale-down"

	// PrePullAnnotation pulls the new images of a workload in a cluster before the cluster gets new pods. The value is
	// the percentage of nodes that must have the images, or "true" for 95%.
	//
	// On: templates. Written by: users. Read by: core/dispatch, core/explain/why, core/workload/fleet. Users may set
	// it: yes.
	PrePullAnnotation = "argosy.io/pre-pull"

	// PrePullTimeoutAnnotation is the longest time that a cluster waits for the images, such as 10m. Default: 10m.
	//
	// On: templates. Written by: users. Read by: core/dispatch, core/workload/fleet. Users may set it: yes.
	PrePullTimeoutAnnotation = "argosy.io/pre-pull-timeout"

	// PauseManagementAnnotation = "true" stops the hub from writing or deleting the template's objects in members, also
	// when the template or the policy changes. Statuses are still collected. Dependencies are not paused.
	//
	// On: templates. Written by: users. Read by: core/explain/why, core/propagate. Users may set it: yes.
	PauseManagementAnnotation = "argosy.io/pause-management"

	// RunPerClusterAnnotation = "true" runs the template in each cluster that its policy selects. Without it, a
	// Workflow goes to one cluster.
	//
	// On: templates that run once or by schedule. Written by: users. Read by: core/propagate. Users may set it: yes.
	RunPerClusterAnnotation = "argosy.io/run-per-cluster"

	// ApprovedStepsAnnotation has the step of the revision that may continue in each cluster, as JSON. The hub sends it to
	// members with the Rollout. A value for another step or revision has no effect.
	//
	// On: Kruise Rollouts. Written by: users, cli, console. Read by: cli, console, core/workload/rollout. Users may set
	// it: yes.
	ApprovedStepsAnnotation = "argosy.io/approved-steps"

	// SubsetWorkloadAnnotation is the kind of the subsets if the template is a bare pod: CloneSet (the default),
	// Deployment, StatefulSet or AdvancedStatefulSet.
	//
	// On: UnitedDeployments. Written by: users. Read by: core/admission/dialect. Users may set it: yes.
	SubsetWorkloadAnnotation = "argosy.io/subset-workload"

	// NamespaceAsSelectorAnnotation = "true" turns metadata.namespace of a SidecarSet into its namespaceSelector.
	//
	// On: SidecarSets. Written by: users. Read by: core/admission/dialect. Users may set it: yes.
	NamespaceAsSelectorAnnotation = "argosy.io/namespace-as-selector"
)

// Settings of policies and of other objects of the hub.
const (
	// MoveVolumesAnnotation = "true" lets workloads with persistent volumes move to another cluster without their
	// data.
	//
	// On: propagation policies. Written by: users. Read by: core/adjust/failover, core/admission/validate. Users may
	// set it: yes.
	MoveVolumesAnnotation = "argosy.io/failover-persistent-volumes"

	// FailbackAfterAnnotation is the time for which a cluster must be ready again before workloads return to it, such as
	// "10m". Without it, workloads stay in their clusters.
	//
	// On: propagation policies. Written by: users. Read by: core/adjust/failover, core/admission/validate. Users may
	// set it: yes.
	FailbackAfterAnnotation = "argosy.io/failback-after"

	// ChangedByAnnotation is the user who last changed the spec, for the time line, cut after 256 bytes. The hub replaces
	// values of clients. Do not put it into manifests.
	//
	// On: propagation and override policies. Written by: controller/admission. Read by: console, core/explain/simulate,
	// history. Users may set it: no.
	ChangedByAnnotation = "argosy.io/changed-by"

	// OverrideReplicasAnnotation = "force" sets replicas also where a propagation policy divides them.
	//
	// On: override policies. Written by: users. Read by: controller/admission. Users may set it: yes.
	OverrideReplicasAnnotation = "argosy.io/override-replicas"

	// AutoscalingModeAnnotation is Central (the hub scales the workload) or Distributed (autoscalers in the member
	// clusters scale it, and the hub splits the limits between them). Default: Central.
	//
	// On: FederatedHPAs. Written by: users. Read by: api/autoscaling/v1alpha1, controller/autoscale,
	// core/admission/validate. Users may set it: yes.
	AutoscalingModeAnnotation = "argosy.io/autoscaling-mode"

	// LenientAnnotation = "true" stores a customization although some of its scripts are not valid Lua. The operations
	// of those scripts return the error.
	//
	// On: ResourceInterpreterCustomizations. Written by: users. Read by: controller/admission. Users may set it: yes.
	LenientAnnotation = "argosy.io/lenient"

	// ForbidOverwriteLabel forbids that objects of the namespace take over objects in members that the hub does not
	// manage. Every value except "false" forbids. A label can only forbid, never allow.
	//
	// On: namespaces of the hub. Written by: users. Read by: core/dispatch. Users may set it: yes.
	ForbidOverwriteLabel = "argosy.io/forbid-overwrite"

	// SystemNamesAnnotation lists the users and groups with names from "system:" that may act in the cluster under these
	// names, separated by commas. Each cluster has system users of its own: the service account of the hub is not that of
	// the member.
	//
	// On: Clusters. Written by: users. Read by: controller/admission, controller/cluster, core/cluster/access,
	// member/proxy. Users may set it: users that may impersonate these names.
	SystemNamesAnnotation = "argosy.io/impersonate-system-names"

	// KeepWorkloadsAnnotation = "true" keeps the objects in the cluster, no longer managed, when the cluster leaves.
	//
	// On: Clusters. Written by: users, cli. Read by: controller/admission, core/cluster/membership. Users may set it:
	// users that may delete Clusters.
	KeepWorkloadsAnnotation = "argosy.io/keep-workloads"

	// ForceRemovalAnnotation = "true" lets the hub remove a ManagedCluster that is being deleted although its klusterlet
	// does not clean up. The objects of its ManifestWorks stay in the cluster. It has no effect while the cluster is
	// available.
	//
	// On: ManagedClusters. Written by: users. Read by: controller/addons, controller/cluster, controller/klusterlet.
	// Users may set it: yes.
	ForceRemovalAnnotation = "argosy.io/force-removal"

	// ConfirmDeletionAnnotation confirms the deletion of an object that the hub needs. The value is the name of the
	// object, so that one command for many objects confirms nothing.
	//
	// On: objects that protect the hub. Written by: users. Read by: core/admission/protect. Users may set it: yes.
	ConfirmDeletionAnnotation = "argosy.io/confirm-deletion"
)

// Settings of objects in members, and of Works.
const (
	// HandsOffAnnotation = "true" stops the hub from writing or deleting the object. On a namespace of a member, it also
	// applies to the objects in it, and on kube-system to the whole cluster. It works without a healthy hub: a user of the
	// member can set it there. The hub never sends it, since a template author could use it to keep an object.
	//
	// On: objects in members, Works. Written by: users, cli. Read by: core/admission/validate, core/execute,
	// core/explain/why, core/source/adopt, core/source/ocm, migration. Users may set it: yes.
	HandsOffAnnotation = "argosy.io/hands-off"

	// AcceptRestoredAnnotation applies a Work that waits since the hub was restored. The value is the start of the wait.
	//
	// On: Works. Written by: cli. Read by: core/execute. Users may set it: with `argosy restore accept`.
	AcceptRestoredAnnotation = "argosy.io/accept-restored"

	// LeavingAnnotation = "true" ends the management of an object that its Work preserves, when a user deletes the Work:
	// the hub removes its labels, annotations and field ownership from the object. The limit on deleted Works does not
	// apply, since no object is deleted.
	//
	// On: Works. Written by: migration. Read by: core/dispatch, core/execute, core/source/migrate. Users may set it: with
	// `argosy migrate out`.
	LeavingAnnotation = "argosy.io/leaving"
)

// State on templates. Users must not change it.
const (
	// AwaitingChangeAnnotation is the digest of the template when a Lazy policy claimed it. The policy has no effect
	// on the binding until users change the template. It never goes to a member.
	//
	// On: templates. Written by: core/propagate. Read by: core/dispatch, core/propagate. Users may set it: no.
	AwaitingChangeAnnotation = "argosy.io/awaiting-change"

	// SubmittedFieldsAnnotation has the spelling of the client for fields that are stored differently: JSON, by path, long
	// values cut. A client that computes patches sends its spelling again on top of the stored one; the new spelling wins.
	//
	// On: objects written in another dialect. Written by: core/admission/dialect. Read by: cli,
	// core/admission/dialect, core/explain/simulate. Users may set it: no.
	SubmittedFieldsAnnotation = "argosy.io/submitted-fields"

	// AccessLabel = "true" marks what `argosy access grant` made. The annotation of the same name on a template is the
	// grant, as JSON.
	//
	// On: templates, policies, cluster roles and their bindings of grants. Written by: cli, core/source/grant. Read by:
	// cli, core/source/grant. Users may set it: no.
	AccessLabel = "argosy.io/access"

	// DerivedFromAnnotation marks one of the two objects of a cluster, the Cluster of Karmada and the ManagedCluster of
	// Open Cluster Management, that the hub writes from the other one: "ManagedCluster" on a Cluster with a klusterlet,
	// "Cluster" on a ManagedCluster without one. DerivedAnnotation lists the labels and taints that came from there.
	//
	// On: Clusters, ManagedClusters. Written by: core/cluster/klusterlet. Read by: controller/admission,
	// core/admission/validate, core/cluster/klusterlet. Users may set it: no.
	DerivedFromAnnotation = "argosy.io/derived-from"

	// AddonFinalizer keeps a ManagedClusterAddOn that the hub installed until its ManifestWork and its RoleBindings are
	// deleted.
	//
	// On: ManagedClusterAddOns. Written by: core/source/ocm/addons. Read by: controller/addons, controller/admission,
	// core/source/ocm/addons. Users may set it: no.
	AddonFinalizer = "argosy.io/addon"

	// WorkAnnotation is on a ManifestWork that the hub writes for a klusterlet: the name of its Work; empty if it asks
	// which kinds the cluster serves.
	//
	// On: ManifestWorks. Written by: core/cluster/klusterlet, core/source/ocm. Read by: controller/admission,
	// controller/execute, controller/klusterlet, core/admission/validate, core/cluster/klusterlet, core/source/ocm,
	// core/source/ocm/replicaset. Users may set it: no.
	WorkAnnotation = "argosy.io/work"

	// DerivedAnnotation lists the labels and taints of an object with DerivedFromAnnotation that came from the other
	// object, as JSON. Others are the users' own, and stay.
	//
	//	{"labels": ["region"], "taints": ["dedicated:NoSchedule"]}
	//
	// On: Clusters, ManagedClusters. Written by: core/cluster/klusterlet. Read by: core/admission/validate,
	// core/cluster/klusterlet. Users may set it: no.
	DerivedAnnotation = "argosy.io/derived"

	// AddonLabel is the name of the addon that the object belongs to.
	//
	// On: templates and policies of addons. Written by: cli, core/source/addon. Read by: cli. Users may set it: no.
	AddonLabel = "argosy.io/addon"

	// BindingRestAnnotation has the fields of a binding that v1alpha1 lacks, as JSON, so that a client that reads and
	// writes v1alpha1 loses nothing.
	//
	// On: bindings in version v1alpha1. Written by: core/admission/convert. Read by: core/admission/convert. Users may
	// set it: no.
	BindingRestAnnotation = "argosy.io/v1alpha2-rest"

	// RevisionOfLabel is the UID of the template.
	//
	// On: ControllerRevisions of the hub. Written by: controller/dispatch. Read by: controller/dispatch, why. Users may
	// set it: no.
	RevisionOfLabel = "argosy.io/revision-of"
)

// State on bindings. Users must not change it.
const (
	// TemplateDigestAnnotation is the digest of the template without its status. spec.resource.resourceVersion changes
	// only with it.
	//
	// On: bindings. Written by: core/propagate. Read by: core/explain/why, core/propagate. Users may set it: no.
	TemplateDigestAnnotation = "argosy.io/template-digest"

	// SidecarsAnnotation names the SidecarSets whose containers count in the requirements, "logs,proxy".
	//
	// On: bindings. Written by: core/propagate. Read by: core/propagate. Users may set it: no.
	SidecarsAnnotation = "argosy.io/sidecars"

	// QuotaRefusedAnnotation is the digest of the template whose requests exceed a FederatedResourceQuota.
	//
	// On: bindings. Written by: controller/propagate, core/propagate. Read by: core/propagate. Users may set it: no.
	QuotaRefusedAnnotation = "argosy.io/quota-refused"

	// PreservedByPauseAnnotation marks a binding that preserves resources only because its template is paused.
	//
	// On: bindings. Written by: core/propagate. Read by: core/propagate. Users may set it: no.
	PreservedByPauseAnnotation = "argosy.io/preserved-by-pause"

	// PodSpreadAnnotation has the anti-affinity and spread of the pods of the workload in a member, as JSON, for the
	// scheduler, which does not read the template.
	//
	// On: bindings. Written by: core/propagate. Read by: core/cluster/capacity, core/explain/simulate. Users may set
	// it: no.
	PodSpreadAnnotation = "argosy.io/pod-spread"

	// QuotaUseAnnotation has the limits of one pod of the workload, which ResourceQuotas of a member count, and whether
	// the pod has a deadline, as JSON: {"limits":{"limits.cpu":"1"},"terminating":true}, with Kubernetes quantities.
	// Without it, a pod has no limits and no deadline.
	//
	// On: bindings. Written by: core/propagate. Read by: core/cluster/capacity, core/explain/simulate. Users may set
	// it: no.
	QuotaUseAnnotation = "argosy.io/quota-use"

	// TemplateVersionsAnnotation lists the versions of the kind that can express the template, "v1beta1,v1", if
	// another served version cannot.
	//
	// On: bindings. Written by: core/propagate. Read by: core/schedule. Users may set it: no.
	TemplateVersionsAnnotation = "argosy.io/template-versions"

	// SubsetClustersAnnotation has the subsets of the template that name clusters, as JSON.
	//
	// On: bindings. Written by: core/schedule. Read by: controller/schedule, core/schedule. Users may set it: no.
	SubsetClustersAnnotation = "argosy.io/subset-clusters"

	// PinnedScaleDownAnnotation has the clusters that lose replicas, as JSON. It is written together with the replicas.
	//
	// On: bindings. Written by: core/schedule. Read by: core/schedule. Users may set it: no.
	PinnedScaleDownAnnotation = "argosy.io/pinned-scale-down"

	// ScaledByMembersAnnotation has the replicas that the autoscalers of the members set, {"a":3,"b":2,"c":0}. It is valid
	// only if their sum is the replicas of the binding.
	//
	// On: bindings. Written by: core/schedule. Read by: controller/autoscale, controller/schedule. Users may set it:
	// no.
	ScaledByMembersAnnotation = "argosy.io/scaled-by-members"

	// ScaledByAnnotation is the name of the FederatedHPA whose autoscalers run in the members, or the kinds and names of
	// the autoscalers that policies propagate, "HorizontalPodAutoscaler web". On a template the hub sets it together with
	// the label resourcetemplate.karmada.io/retain-replicas. Without it, the label is the user's.
	//
	// On: bindings, templates. Written by: core/adjust/autoscale, core/schedule. Read by: controller/autoscale,
	// core/adjust/autoscale, core/dispatch, core/explain/state, core/explain/why, core/schedule, core/workload/fleet.
	// Users may set it: no.
	ScaledByAnnotation = "argosy.io/scaled-by"

	// DescheduledAnnotation has the replicas that the descheduler moved, as JSON. It is written together with the
	// replicas.
	//
	// On: bindings. Written by: core/adjust/deschedule. Read by: core/adjust/deschedule. Users may set it: no.
	DescheduledAnnotation = "argosy.io/descheduled"

	// FailoverAnnotation is the failover plan in progress, as JSON. It is written together with the placement.
	//
	// On: bindings. Written by: core/adjust/failover. Read by: core/adjust/failover. Users may set it: no.
	FailoverAnnotation = "argosy.io/failover"

	// OrdinalsAnnotation has the present and former ordinals of each cluster: JSON, ranges by cluster.
	//
	// On: bindings. Written by: core/dispatch. Read by: core/dispatch, core/workload/fleet. Users may set it: no.
	OrdinalsAnnotation = "argosy.io/ordinals"

	// RolloutProgressAnnotation is the time of the last progress of a rollout with a deadline.
	//
	// On: bindings. Written by: core/dispatch. Read by: core/dispatch. Users may set it: no.
	RolloutProgressAnnotation = "argosy.io/rollout-progress"

	// ApprovedStageAnnotation is a RolloutStageAnnotation without a revision, with the revision for which it is valid.
	//
	// On: bindings. Written by: core/dispatch. Read by: core/dispatch. Users may set it: no.
	ApprovedStageAnnotation = "argosy.io/rollout-stage-approved"

	// RoutedToAnnotation lists the only clusters, "a,b", that get a template that names their pods.
	//
	// On: bindings. Written by: core/dispatch. Read by: core/dispatch, core/workload/fleet. Users may set it: no.
	RoutedToAnnotation = "argosy.io/routed-to"
)

// State on Works. Users must not change it.
const (
	// FleetAnnotation has the cluster's share of the fleet, as far as the manifest does not contain it, as JSON.
	//
	// On: Works. Written by: core/dispatch. Read by: core/dispatch, core/workload/fleet. Users may set it: no.
	FleetAnnotation = "argosy.io/fleet"

	// PreservedStateAnnotation has the labels that the Work got from the one that it replaces, as JSON.
	//
	// On: Works. Written by: core/dispatch. Read by: core/dispatch. Users may set it: no.
	PreservedStateAnnotation = "argosy.io/preserved-state"

	// PrePullOfAnnotation is the binding, "namespace/name", whose images the Work pulls.
	//
	// On: Works of ImagePullJobs. Written by: core/dispatch. Read by: controller/dispatch. Users may set it: no.
	PrePullOfAnnotation = "argosy.io/pre-pull-of"

	// CheckOfAnnotation is the Release, "namespace/name", for which the Work runs the Job of a ReleaseCheck.
	//
	// On: Works of Jobs. Written by: core/release. Read by: controller/check. Users may set it: no.
	CheckOfAnnotation = "argosy.io/check-of"

	// AutoscalerOfAnnotation is the FederatedHPA, "namespace/name", that the Work belongs to.
	//
	// On: Works of autoscalers. Written by: core/adjust/autoscale. Read by: controller/autoscale, controller/execute.
	// Users may set it: no.
	AutoscalerOfAnnotation = "argosy.io/autoscaler-of"

	// AutoscalingShareAnnotation is the cluster's share of the bounds, as JSON.
	//
	// On: Works of autoscalers. Written by: core/adjust/autoscale. Read by: core/adjust/autoscale. Users may set it:
	// no.
	AutoscalingShareAnnotation = "argosy.io/autoscaling-share"

	// ServiceOfAnnotation is the object that requests the Work.
	//
	// On: Works of Services and EndpointSlices. Written by: core/source/service. Read by: core/source/service. Users
	// may set it: no.
	ServiceOfAnnotation = "argosy.io/service-of"

	// ServiceExportsAnnotation has the ServiceExports of all clusters from which the hub made the ServiceImport, as JSON.
	// They count until a cluster responds again after a restart of the hub.
	//
	// On: Works of ServiceImports. Written by: core/source/service. Read by: core/source/service. Users may set it: no.
	ServiceExportsAnnotation = "argosy.io/service-exports"

	// EndpointSliceAnnotation is the name of the slice in the cluster that provides it.
	//
	// On: Works of EndpointSlices. Written by: core/source/service. Read by: core/source/service. Users may set it:
	// no.
	EndpointSliceAnnotation = "argosy.io/endpoint-slice"

	// ManifestWorkAnnotation is the name of the ManifestWork that the object belongs to.
	//
	// On: Works, objects in members. Written by: core/source/ocm. Read by: controller/execute, controller/ocm,
	// core/execute, core/explain/why, core/source/migrate. Users may set it: no.
	ManifestWorkAnnotation = "argosy.io/manifest-work"

	// UpdateStrategyAnnotation is CreateOnly, or ServerSideApply without taking fields from other managers. Absent for
	// Update.
	//
	// On: Works. Written by: core/source/ocm. Read by: core/dispatch, core/execute. Users may set it: no.
	UpdateStrategyAnnotation = "argosy.io/update-strategy"

	// IgnoredFieldsAnnotation has the ignoreFields of the update strategy, as JSON.
	//
	// On: Works. Written by: core/source/ocm. Read by: core/dispatch, core/source/ocm. Users may set it: no.
	IgnoredFieldsAnnotation = "argosy.io/ignored-fields"
)

// State of registrations of clusters in Pull mode.
const (
	// TokenClusterAnnotation is the only cluster that the token can register. The hub sets it at the first use.
	//
	// On: Secrets of bootstrap tokens. Written by: cli, controller/agents. Read by: cli, controller/agents. Users may set
	// it: yes.
	TokenClusterAnnotation = "argosy.io/token-cluster"

	// TokenRenewsAnnotation = "true" states that the token also replaces the credentials of the agent of
	// TokenClusterAnnotation if that cluster is registered.
	//
	// On: Secrets of bootstrap tokens. Written by: cli. Read by: controller/agents. Users may set it: yes.
	TokenRenewsAnnotation = "argosy.io/token-renews"

	// AgentKeysAnnotation has the hashes of the keys in the certificates of the agent, separated by commas.
	//
	// On: ClusterRoles of agents. Written by: core/cluster/pull. Read by: core/cluster/pull. Users may set it: no.
	AgentKeysAnnotation = "argosy.io/agent-keys"

	// AgentKeyExtra is the hash of the key in the certificate with which an agent sends a request.
	//
	// On: the extra fields of CertificateSigningRequests. Written by: server. Read by: controller/agents. Users may set
	// it: no.
	AgentKeyExtra = "argosy.io/agent-key"

	// ReportedByAnnotation is the cluster whose agent created the Secret.
	//
	// On: Secrets of agents. Written by: core/cluster/pull. Read by: core/cluster/pull. Users may set it: no.
	ReportedByAnnotation = "argosy.io/reported-by"
)

// State on objects in members. Users must not change it.
const (
	// HubAnnotation is the ID of the hub that wrote the object last.
	//
	// On: objects in members. Written by: core/cluster/access, core/execute. Read by: cli, core/cluster/access,
	// core/execute, core/source/ocm, migration. Users may set it: no.
	HubAnnotation = "argosy.io/hub"

	// CreatedAnnotation = "true" marks an object that the hub created. The hub deletes no other namespace or
	// definition.
	//
	// On: namespaces and definitions in members. Written by: agent, cli, core/execute. Read by: core/execute,
	// core/source/ocm. Users may set it: no.
	CreatedAnnotation = "argosy.io/created"

	// SentEntriesAnnotation has the names of the list entries that the hub sent, by list, as JSON. Other entries belong to
	// the member and stay.
	//
	// On: objects in members. Written by: core/workload/interpret. Read by: core/workload/interpret. Users may set it:
	// no.
	SentEntriesAnnotation = "argosy.io/sent-entries"

	// FormerRevisionAnnotation is the name of the ReleaseRevision of the pods in the member, if it is not the revision of
	// the template.
	//
	// On: objects in members. Written by: core/dispatch. Read by: core/execute, core/workload/interpret. Users
	// may set it: no.
	FormerRevisionAnnotation = "argosy.io/former-revision"

	// SentPodsToDeleteAnnotation has the names "a,b" of spec.scaleStrategy.podsToDelete that the hub sent. The member's
	// controller has removed a name that is in it and not in the list.
	//
	// On: CloneSets in members. Written by: core/workload/fleet. Read by: core/workload/fleet,
	// core/workload/interpret/builtin. Users may set it: no.
	SentPodsToDeleteAnnotation = "argosy.io/sent-pods-to-delete"

	// TemplateSuspendsAnnotation = "true" states that the template suspends the object. Users of the member may resume
	// it: the later change wins.
	//
	// On: objects in members. Written by: core/workload/interpret. Read by: core/execute, core/workload/interpret,
	// core/workload/interpret/builtin. Users may set it: no.
	TemplateSuspendsAnnotation = "argosy.io/template-suspends"

	// AllocatedNodePortsAnnotation lists the node ports of a Service that the hub allocated, as "80/TCP=30080", separated
	// by commas. A member uses them if they are free, and allocates others if not.
	//
	// On: Services in members. Written by: core/workload/interpret. Read by: core/explain/simulate,
	// core/workload/interpret. Users may set it: no.
	AllocatedNodePortsAnnotation = "argosy.io/allocated-node-ports"

	// RetainedFieldsAnnotation is a digest of the template's values of retained fields when they were last applied, by
	// path. A changed template wins over the member, an unchanged one does not.
	//
	// On: objects in members. Written by: core/workload/interpret/jsonpath. Read by: core/workload/interpret/jsonpath.
	// Users may set it: no.
	RetainedFieldsAnnotation = "argosy.io/retained-fields"

	// ImmutableFieldsAnnotation has the reason why fields that the member's admission protects keep the member's values.
	//
	// On: objects in members. Written by: core/workload/interpret/builtin. Read by: core/workload/interpret/builtin.
	// Users may set it: no.
	ImmutableFieldsAnnotation = "argosy.io/immutable-fields"

	// ReleasedField is a field that no object has. It keeps a manager's entry that owns nothing else.
	//
	// On: managed fields of objects in members. Written by: member. Read by: nothing. Users may set it: no.
	ReleasedField = "argosy.io/released"

	// WrittenDigestAnnotation is the digest of what the hub wrote. Another digest means that something else changed
	// the role.
	//
	// On: roles of the hub in members. Written by: core/cluster/access. Read by: core/cluster/access. Users may set
	// it: no.
	WrittenDigestAnnotation = "argosy.io/written-digest"

	// MembersOfGroupsAnnotation has the users in the role because of their groups, as JSON.
	//
	// On: the role for impersonation in members. Written by: core/cluster/access. Read by: core/cluster/access. Users
	// may set it: no.
	MembersOfGroupsAnnotation = "argosy.io/members-of-groups"

	// HubAddressAnnotation is the address of the hub that owns the member, for people.
	//
	// On: the Lease of the hub in members. Written by: core/cluster/tenure. Read by: core/cluster/tenure. Users may
	// set it: no.
	HubAddressAnnotation = "argosy.io/hub-address"

	// HubRunAnnotation is the run of the hub that renews the Lease.
	//
	// On: the Lease of the hub in members. Written by: core/cluster/tenure. Read by: core/cluster/tenure. Users may
	// set it: no.
	HubRunAnnotation = "argosy.io/hub-run"

	// TokenOfLabel is the service account of the token.
	//
	// On: Secrets that anchor tokens in members. Written by: member. Read by: member, cli. Users may set it: no.
	TokenOfLabel = "argosy.io/token-of"

	// HubLabel is the ID of the hub that has the token.
	//
	// On: Secrets that anchor tokens in members. Written by: member. Read by: member, cli. Users may set it: no.
	HubLabel = "argosy.io/hub"

	// DescriptionAnnotation explains the Secret to people.
	//
	// On: Secrets that anchor tokens in members. Written by: member. Read by: nothing. Users may set it: no.
	DescriptionAnnotation = "argosy.io/description"
)

// State on the hub's own objects. Users must not change it.
const (
	// MigrationAnnotation is the state of a migration in each cluster of a workload, as JSON. It marks the policy that
	// `argosy migrate` created, and holds what a cluster ran before the hub wrote it.
	//
	// On: policies. Written by: core/source/migrate. Read by: core/source/migrate. Users may set it: no.
	MigrationAnnotation = "argosy.io/migration"

	// ReplacesTokenAnnotation is the Secret in the member whose token never ends and must be revoked.
	//
	// On: Secrets of clusters. Written by: controller/cluster. Read by: controller/cluster. Users may set it: no.
	ReplacesTokenAnnotation = "argosy.io/replaces-token-of"

	// RestoreUnseenAnnotation is the number of Works, by cluster, whose objects the hub has not checked since it was
	// restored, as JSON.
	//
	// On: the ConfigMap argosy-restore. Written by: controller/execute. Read by: cli. Users may set it: no.
	RestoreUnseenAnnotation = "argosy.io/restore-unseen"

	// InstalledAnnotation = "true" marks a definition that the hub installed and updates.
	//
	// On: CustomResourceDefinitions of workload kinds. Written by: server. Read by: server. Users may set it: removing
	// it keeps the hub from updating the definition.
	InstalledAnnotation = "argosy.io/installed"

	// NudgedAnnotation changes so that the API server reads the definition again.
	//
	// On: CustomResourceDefinitions of workload kinds. Written by: server. Read by: nothing. Users may set it: no.
	NudgedAnnotation = "argosy.io/nudged"

	// SpecGenerationAnnotation is the generation after the hub's last write. Another generation means that a user
	// changed the object, which the hub then leaves alone. The API server deletes objects with Kubernetes' own
	// annotation for this.
	//
	// On: flow schemas and priority levels of the hub. Written by: server. Read by: server. Users may set it: no.
	SpecGenerationAnnotation = "argosy.io/spec-generation"

	// DrainedTaint is the key of the taint of a cluster that a simulation drains.
	//
	// On: clusters in simulations. Written by: core/explain/simulate. Read by: core/explain/simulate. Users may set
	// it: no.
	DrainedTaint = "argosy.io/drained"
)
