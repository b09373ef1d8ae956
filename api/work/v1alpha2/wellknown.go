package v1alpha2

// Labels, annotations and finalizers of bindings, Works, manifests and member objects.
const (
	ResourceBindingPermanentIDLabel        = "resourcebinding.karmada.io/permanent-id"
	ClusterResourceBindingPermanentIDLabel = "clusterresourcebinding.karmada.io/permanent-id"

	// BindingManagedByLabel is on bindings that no policy created.
	BindingManagedByLabel = "binding.karmada.io/managed-by"
	// DependedByLabelPrefix + hash of the independent binding = its permanent id, on an attached binding.
	DependedByLabelPrefix = "resourcebinding.karmada.io/depended-by-"

	ResourceBindingNamespaceAnnotation   = "resourcebinding.karmada.io/namespace"
	ResourceBindingNameAnnotation        = "resourcebinding.karmada.io/name"
	ClusterResourceBindingNameAnnotation = "clusterresourcebinding.karmada.io/name"
	// DependenciesAnnotation on an independent binding is JSON of []DependentObjectReference.
	DependenciesAnnotation = "resourcebinding.karmada.io/dependencies"

	WorkPermanentIDLabel    = "work.karmada.io/permanent-id"
	WorkNamespaceAnnotation = "work.karmada.io/namespace"
	WorkNameAnnotation      = "work.karmada.io/name"
	// ConflictResolutionAnnotation is overwrite or abort. On a template, it takes precedence over the policy.
	ConflictResolutionAnnotation = "work.karmada.io/conflict-resolution"
	ConflictResolutionOverwrite  = "overwrite"
	ConflictResolutionAbort      = "abort"

	TemplateUIDAnnotation        = "resourcetemplate.karmada.io/uid"
	TemplateGenerationAnnotation = "resourcetemplate.karmada.io/generation"
	// ManagedAnnotationsAnnotation and ManagedLabelsAnnotation list the keys that the hub sets, sorted, joined by commas.
	ManagedAnnotationsAnnotation = "resourcetemplate.karmada.io/managed-annotations"
	ManagedLabelsAnnotation      = "resourcetemplate.karmada.io/managed-labels"

	// ManagedLabel = "true" is on every object in a member that the hub created or took over.
	ManagedLabel = "karmada.io/managed"
	// SystemLabel = "true" is on namespaces, accounts and secrets of the system itself.
	SystemLabel = "karmada.io/system"

	BindingFinalizer                 = "karmada.io/binding-controller"
	ClusterBindingFinalizer          = "karmada.io/cluster-resource-binding-controller"
	DependenciesDistributorFinalizer = "karmada.io/binding-dependencies-distributor"
	ExecutionFinalizer               = "karmada.io/execution-controller"
	ClusterFinalizer                 = "karmada.io/cluster-controller"
)

// Warnings about a template.
//
//reference:event Warning on template and policy
const (
	// EventApplyPolicyAdvised: the policy is applied, and the template may run in more or fewer clusters than intended.
	// The message has the remedy. Not in Karmada.
	//
	//reference:event Warning on template
	EventApplyPolicyAdvised = "ApplyPolicyAdvised"
	// EventApplyPolicyFailed: the hub cannot apply the policy to the template, or cannot write the binding.
	EventApplyPolicyFailed = "ApplyPolicyFailed"
	// EventPreemptPolicyFailed: a policy with preemption cannot take the template over.
	EventPreemptPolicyFailed = "PreemptPolicyFailed"
	// EventGetReplicasFailed: no interpreter can read the replicas.
	EventGetReplicasFailed = "GetReplicasFailed"
	// EventGetComponentsFailed: no interpreter can read the components.
	EventGetComponentsFailed = "GetComponentsFailed"
)

// Successes of a template.
//
//reference:event Normal on template
const (
	// EventApplyPolicySucceed: a policy claimed the template.
	//
	//reference:event Normal on template and policy
	EventApplyPolicySucceed = "ApplyPolicySucceed"
	// EventPreemptPolicySucceed: a policy with preemption took the template over.
	EventPreemptPolicySucceed = "PreemptPolicySucceed"
	// EventApplyOverridePolicySucceed: override policies were applied. The message names policies and clusters.
	EventApplyOverridePolicySucceed = "ApplyOverridePolicySucceed"
	// EventGetDependenciesSucceed: the dependencies are known. The message names them.
	EventGetDependenciesSucceed = "GetDependenciesSucceed"
)

// Steps of a template.
//
//reference:event Normal, all on template
const (
	// EventGetReplicasSucceed: the replicas were read.
	EventGetReplicasSucceed = "GetReplicasSucceed"
	// EventGetComponentsSucceed: the components were read.
	EventGetComponentsSucceed = "GetComponentsSucceed"
)

// Warnings about a binding.
//
//reference:event Warning on binding and template
const (
	// EventApplyOverridePolicyFailed: an override policy cannot be applied for a cluster, or changes nothing.
	EventApplyOverridePolicyFailed = "ApplyOverridePolicyFailed"
	// EventGetDependenciesFailed: no interpreter can read the dependencies.
	EventGetDependenciesFailed = "GetDependenciesFailed"
	// EventSyncScheduleResultFailed: the binding of a dependency cannot be written.
	EventSyncScheduleResultFailed = "SyncScheduleResultToDependenciesFailed"
	// EventScheduleBindingFailed: the binding is not scheduled. The message has the remedy.
	EventScheduleBindingFailed = "ScheduleBindingFailed"
	// EventDescheduleBindingFailed: replicas without capacity cannot be moved.
	EventDescheduleBindingFailed = "DescheduleBindingFailed"
	// EventEvictWorkloadFromClusterFailed: a workload should leave a cluster, and waits. The message has the reason.
	EventEvictWorkloadFromClusterFailed = "EvictWorkloadFromClusterFailed"
	// EventSyncWorkFailed: the Work of a cluster cannot be written.
	EventSyncWorkFailed = "SyncWorkFailed"
	// EventAggregateStatusFailed: the status of the template cannot be computed or written.
	EventAggregateStatusFailed = "AggregateStatusFailed"
	// EventDependencyPolicyConflict: the policies of templates that share a dependency disagree. The message has the
	// settings in effect.
	//
	//reference:event Warning on binding of a dependency
	EventDependencyPolicyConflict = "DependencyPolicyConflict"
	// EventCleanupWorkFailed: Works that are not needed any more cannot be deleted.
	//
	//reference:event Warning on binding
	EventCleanupWorkFailed = "CleanupWorkFailed"
)

// Successes of a binding.
//
//reference:event Normal on binding and template
const (
	// EventScheduleBindingSucceed: the binding is scheduled. The message has the replicas by cluster. On the template
	// with --success-events=all only.
	//
	//reference:event Normal on binding
	EventScheduleBindingSucceed = "ScheduleBindingSucceed"
	// EventSyncScheduleResultSucceed: the dependencies follow the workload to its clusters.
	//
	//reference:event Normal on binding
	EventSyncScheduleResultSucceed = "SyncScheduleResultToDependenciesSucceed"
	// EventDescheduleBindingSucceed: replicas were moved to clusters with capacity.
	EventDescheduleBindingSucceed = "DescheduleBindingSucceed"
	// EventEvictWorkloadFromClusterSucceed: a workload was evicted from a cluster, or its eviction ended. On the
	// Cluster: how many workloads were evicted.
	//
	//reference:event Normal on binding, template and Cluster
	EventEvictWorkloadFromClusterSucceed = "EvictWorkloadFromClusterSucceed"
)

// Steps of a binding.
//
//reference:event Normal, all on binding and template
const (
	// EventSyncWorkSucceed: the Works are written. By default on a FederatedResourceQuota.
	EventSyncWorkSucceed = "SyncWorkSucceed"
	// EventAggregateStatusSucceed: the status was aggregated. By default on a FederatedResourceQuota, the first time.
	EventAggregateStatusSucceed = "AggregateStatusSucceed"
	// EventCollectOverallStatusSucceed: the usage of the namespace was counted. By default the first time.
	//
	//reference:event Normal, all on FederatedResourceQuota
	EventCollectOverallStatusSucceed = "CollectOverallStatusSucceed"
)

// Warnings about a Work.
//
//reference:event Warning on Work
const (
	// EventSyncFailed: the member did not apply or delete the object.
	EventSyncFailed = "SyncFailed"
	// EventReflectStatusFailed: no interpreter can read the status of the object.
	//
	//reference:event Warning on Work and template
	EventReflectStatusFailed = "ReflectStatusFailed"
	// EventInterpretHealthFailed: no interpreter can read the health of the object.
	//
	//reference:event Warning on Work and template
	EventInterpretHealthFailed = "InterpretHealthFailed"
)

// Steps of a Work. Two are recorded by default after a failure or a suspension.
//
//reference:event Normal, all on Work
const (
	// EventSyncSucceed: the member applied the object. Recorded by default when a failure ends.
	EventSyncSucceed = "SyncSucceed"
	// EventWorkDispatching: the Work is sent, or suspended. Recorded by default when that changes.
	EventWorkDispatching = "WorkDispatching"
	// EventReflectStatusSucceed: the status of the object was read.
	EventReflectStatusSucceed = "ReflectStatusSucceed"
	// EventInterpretHealthSucceed: the health of the object was read.
	EventInterpretHealthSucceed = "InterpretHealthSucceed"
)

// Warnings about a Cluster.
//
//reference:event Warning on Cluster
const (
	// EventCreateExecutionSpaceFailed: the namespace karmada-es-NAME cannot be created.
	EventCreateExecutionSpaceFailed = "CreateExecutionSpaceFailed"
	// EventRemoveExecutionSpaceFailed: the namespace karmada-es-NAME cannot be deleted.
	EventRemoveExecutionSpaceFailed = "RemoveExecutionSpaceFailed"
	// EventSyncImpersonationFailed: the roles for users of clusters/proxy cannot be written in the member.
	EventSyncImpersonationFailed = "SyncImpersonationConfigFailed"
	// EventTaintClusterFailed: the taints of the cluster cannot be written.
	EventTaintClusterFailed = "TaintClusterFailed"
)

// Successes of a Cluster.
//
//reference:event Normal on Cluster
const (
	// EventCreateExecutionSpaceSucceed: the namespace karmada-es-NAME was created.
	EventCreateExecutionSpaceSucceed = "CreateExecutionSpaceSucceed"
	// EventRemoveExecutionSpaceSucceed: the namespace karmada-es-NAME was deleted.
	EventRemoveExecutionSpaceSucceed = "RemoveExecutionSpaceSucceed"
	// EventSyncImpersonationSucceed: the roles for users of clusters/proxy were written in the member.
	EventSyncImpersonationSucceed = "SyncImpersonationConfigSucceed"
	// EventTaintClusterSucceed: taints were added or removed. The message has the reasons.
	EventTaintClusterSucceed = "TaintClusterSucceed"
)
