package v1alpha2

// Labels, annotations and finalizers of bindings, Works, manifests and member objects.
const (
	ResourceBindingPermanentIDLabel        = "resourcebinding.karmada.io/permanent-id"
	ClusterResourceBindingPermanentIDLabel = "clusterresourcebinding.karmada.io/permanent-id"

	// BindingManagedByLabel marks a binding made by something other than a policy.
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
	// ConflictResolutionAnnotation is overwrite or abort; on a template it outranks the policy.
	ConflictResolutionAnnotation = "work.karmada.io/conflict-resolution"
	ConflictResolutionOverwrite  = "overwrite"
	ConflictResolutionAbort      = "abort"

	TemplateUIDAnnotation        = "resourcetemplate.karmada.io/uid"
	TemplateGenerationAnnotation = "resourcetemplate.karmada.io/generation"
	// ManagedAnnotationsAnnotation and ManagedLabelsAnnotation list, sorted and joined by commas, the keys that we set.
	ManagedAnnotationsAnnotation = "resourcetemplate.karmada.io/managed-annotations"
	ManagedLabelsAnnotation      = "resourcetemplate.karmada.io/managed-labels"

	// AcceptRestoredAnnotation on a Work has what is held of it since the hub was restored be done; its value is since when it is held.
	AcceptRestoredAnnotation = "argosy.io/accept-restored"
	// HubAnnotation is on every member object that was written since hubs have identities: the one that wrote it last.
	HubAnnotation = "argosy.io/hub"

	// ManagedLabel = "true" is on every member object that we created or adopted.
	ManagedLabel = "karmada.io/managed"
	// SystemLabel = "true" is on namespaces, accounts and secrets of the system itself.
	SystemLabel = "karmada.io/system"

	BindingFinalizer                 = "karmada.io/binding-controller"
	ClusterBindingFinalizer          = "karmada.io/cluster-resource-binding-controller"
	DependenciesDistributorFinalizer = "karmada.io/binding-dependencies-distributor"
	ExecutionFinalizer               = "karmada.io/execution-controller"
	ClusterFinalizer                 = "karmada.io/cluster-controller"
)

// Event reasons, Failed and Succeed by pairs, as the contract has them.
const (
	EventApplyPolicyFailed               = "ApplyPolicyFailed"
	EventApplyPolicySucceed              = "ApplyPolicySucceed"
	EventApplyOverridePolicyFailed       = "ApplyOverridePolicyFailed"
	EventApplyOverridePolicySucceed      = "ApplyOverridePolicySucceed"
	EventPreemptPolicyFailed             = "PreemptPolicyFailed"
	EventPreemptPolicySucceed            = "PreemptPolicySucceed"
	EventGetReplicasFailed               = "GetReplicasFailed"
	EventGetComponentsFailed             = "GetComponentsFailed"
	EventGetReplicasSucceed              = "GetReplicasSucceed"
	EventGetComponentsSucceed            = "GetComponentsSucceed"
	EventGetDependenciesFailed           = "GetDependenciesFailed"
	EventGetDependenciesSucceed          = "GetDependenciesSucceed"
	EventDependencyPolicyConflict        = "DependencyPolicyConflict"
	EventSyncScheduleResultFailed        = "SyncScheduleResultToDependenciesFailed"
	EventSyncScheduleResultSucceed       = "SyncScheduleResultToDependenciesSucceed"
	EventScheduleBindingFailed           = "ScheduleBindingFailed"
	EventScheduleBindingSucceed          = "ScheduleBindingSucceed"
	EventDescheduleBindingFailed         = "DescheduleBindingFailed"
	EventDescheduleBindingSucceed        = "DescheduleBindingSucceed"
	EventEvictWorkloadFromClusterFailed  = "EvictWorkloadFromClusterFailed"
	EventEvictWorkloadFromClusterSucceed = "EvictWorkloadFromClusterSucceed"
	EventSyncWorkFailed                  = "SyncWorkFailed"
	EventSyncWorkSucceed                 = "SyncWorkSucceed"
	EventCleanupWorkFailed               = "CleanupWorkFailed"
	EventAggregateStatusFailed           = "AggregateStatusFailed"
	EventAggregateStatusSucceed          = "AggregateStatusSucceed"
	EventSyncFailed                      = "SyncFailed"
	EventSyncSucceed                     = "SyncSucceed"
	EventWorkDispatching                 = "WorkDispatching"
	EventReflectStatusFailed             = "ReflectStatusFailed"
	EventReflectStatusSucceed            = "ReflectStatusSucceed"
	EventInterpretHealthFailed           = "InterpretHealthFailed"
	EventInterpretHealthSucceed          = "InterpretHealthSucceed"
	EventCreateExecutionSpaceFailed      = "CreateExecutionSpaceFailed"
	EventCreateExecutionSpaceSucceed     = "CreateExecutionSpaceSucceed"
	EventRemoveExecutionSpaceFailed      = "RemoveExecutionSpaceFailed"
	EventRemoveExecutionSpaceSucceed     = "RemoveExecutionSpaceSucceed"
	EventSyncImpersonationFailed         = "SyncImpersonationConfigFailed"
	EventSyncImpersonationSucceed        = "SyncImpersonationConfigSucceed"
	EventTaintClusterFailed              = "TaintClusterFailed"
	EventTaintClusterSucceed             = "TaintClusterSucceed"
)
