package v1alpha1

// Labels and annotations of Open Cluster Management for add-ons.
const (
	// AddonNamespaceLabel on a ManifestWork has the cluster of the add-on, if another cluster hosts its agent.
	AddonNamespaceLabel = "open-cluster-management.io/addon-namespace"
	// LifecycleAnnotation = "self" on a ClusterManagementAddOn: its manager installs the add-on, not the hub.
	LifecycleAnnotation = "addon.open-cluster-management.io/lifecycle"
	// HostingClusterAnnotation on a ManagedClusterAddOn has the cluster that hosts its agent.
	HostingClusterAnnotation = "addon.open-cluster-management.io/hosting-cluster-name"
	// PreDeleteAnnotation marks a Job or Pod that runs before the add-on is deleted.
	PreDeleteAnnotation = "addon.open-cluster-management.io/addon-pre-delete"
	// PreDeleteLabel is the former label for PreDeleteAnnotation.
	PreDeleteLabel = "open-cluster-management.io/addon-pre-delete"
	// DeletionOrphanAnnotation marks an object that stays in the cluster when the add-on is deleted.
	DeletionOrphanAnnotation = "addon.open-cluster-management.io/deletion-orphan"
	// ConfigSpecHashAnnotation on a ManifestWork has the hashes of the objects that configure the add-on, as JSON.
	ConfigSpecHashAnnotation = "open-cluster-management.io/config-spec-hash"
)

// LifecycleSelf is the value of LifecycleAnnotation for an add-on that its manager installs.
const LifecycleSelf = "self"

// DefaultInstallNamespace is the namespace of an add-on in the cluster if nothing else is configured.
const DefaultInstallNamespace = "open-cluster-management-agent-addon"

// NoDefaultConfig is the name in spec.defaultConfigs of v1beta1 of a kind without a default object.
const NoDefaultConfig = "__reserved_no_default__"

// Condition types of a ManagedClusterAddOn.
//
//reference:condition ManagedClusterAddOn
const (
	// Available: the agent of the add-on works. The klusterlet writes it by a Lease, the hub by the ManifestWork of an
	// AddOnTemplate. While the cluster is silent, it is that of the ManagedCluster.
	Available = "Available"
	// Degraded: the agent of the add-on reports trouble. The agent or the manager of the add-on writes it.
	Degraded = "Degraded"
	// Configured: the add-on has its configuration. False while it waits in the rollout of its Placement.
	Configured = "Configured"
	// ManifestApplied: the cluster has the objects of the add-on.
	ManifestApplied = "ManifestApplied"
	// HostingManifestApplied: the cluster that hosts the agent has its objects. The manager of the add-on writes it.
	HostingManifestApplied = "HostingManifestApplied"
	// RegistrationApplied: the agent of the add-on has its permissions on the hub.
	RegistrationApplied = "RegistrationApplied"
)

// Progressing: clusters are getting the configuration of the add-on.
//
//reference:condition ManagedClusterAddOn
//reference:condition ClusterManagementAddOn
const Progressing = "Progressing"

// Reasons of Available. Tools know them.
//
//reference:reason Available of ManagedClusterAddOn
const (
	// ReasonLeaseUpdated: the agent renews its Lease in the cluster. The klusterlet writes it.
	ReasonLeaseUpdated = "ManagedClusterAddOnLeaseUpdated"
	// ReasonLeaseStopped: the agent stopped renewing its Lease in the cluster. The klusterlet writes it.
	ReasonLeaseStopped = "ManagedClusterAddOnLeaseUpdateStopped"
	// ReasonLeaseNotFound: the agent has no Lease in the cluster. The klusterlet writes it.
	ReasonLeaseNotFound = "ManagedClusterAddOnLeaseNotFound"
	// ReasonWorkNotFound: the add-on has no ManifestWork.
	ReasonWorkNotFound = "WorkNotFound"
	// ReasonWorkApplyFailed: the ManifestWork cannot be applied. The manager of the add-on writes it.
	ReasonWorkApplyFailed = "WorkApplyFailed"
	// ReasonWorkNotApplied: the objects of the ManifestWork are not available.
	ReasonWorkNotApplied = "WorkNotApplied"
	// ReasonWorkApplied: the objects of the ManifestWork are available. The manager of the add-on writes it.
	ReasonWorkApplied = "WorkApplied"
	// ReasonNoProbeResult: the klusterlet does not report the numbers of pods.
	ReasonNoProbeResult = "NoProbeResult"
	// ReasonProbeUnavailable: pods are not ready. The message has the workload.
	ReasonProbeUnavailable = "ProbeUnavailable"
	// ReasonProbeAvailable: the pods are ready.
	ReasonProbeAvailable = "ProbeAvailable"
)

// Reasons of Configured. Tools know them.
//
//reference:reason Configured of ManagedClusterAddOn
const (
	// ReasonConfigured: the add-on has its configuration.
	ReasonConfigured = "ConfigurationsConfigured"
	// ReasonNotConfigured: the add-on waits for its turn in the rollout. The message has the cause if the rollout is held.
	ReasonNotConfigured = "ConfigurationsNotConfigured"
)

// Reasons of Progressing for one and for all clusters. Tools know them.
//
//reference:reason Progressing of ManagedClusterAddOn
//reference:reason Progressing of ClusterManagementAddOn
const (
	// ReasonProgressing: clusters are awaited. The message has what is awaited.
	ReasonProgressing = "Progressing"
	// ReasonCompleted: the configuration is applied.
	ReasonCompleted = "Completed"
	// ReasonFailed: the configuration cannot be applied.
	ReasonFailed = "Failed"
	// ReasonWaitingForCanary: other clusters come first. The manager of the add-on writes it.
	ReasonWaitingForCanary = "WaitingForCanary"
	// ReasonConfigurationUnsupported: a configuration has a kind that the add-on does not support.
	ReasonConfigurationUnsupported = "ConfigurationUnsupported"
)

// Reasons of Progressing for one cluster. Tools know them.
//
//reference:reason Progressing of ManagedClusterAddOn
const (
	// ReasonWaitingForManifestApplied: the condition ManifestApplied is missing.
	ReasonWaitingForManifestApplied = "WaitingForManifestApplied"
	// ReasonWaitingForHostingManifestApplied: the condition HostingManifestApplied is missing.
	ReasonWaitingForHostingManifestApplied = "WaitingForHostingManifestApplied"
)

// Reasons of ManifestApplied and HostingManifestApplied. Tools know them.
//
//reference:reason ManifestApplied, HostingManifestApplied of ManagedClusterAddOn
const (
	// ReasonAddonManifestApplied: the klusterlet applied the ManifestWork.
	ReasonAddonManifestApplied = "AddonManifestApplied"
	// ReasonAddonManifestAppliedFailed: the klusterlet cannot apply the ManifestWork. The message has the error.
	ReasonAddonManifestAppliedFailed = "AddonManifestAppliedFailed"
	// ReasonManifestWorkApplyFailed: the ManifestWork cannot be rendered or written. The message has the error.
	ReasonManifestWorkApplyFailed = "ManifestWorkApplyFailed"
)

// Reasons of RegistrationApplied. Tools know them.
//
//reference:reason RegistrationApplied of ManagedClusterAddOn
const (
	// ReasonNilRegistration: the add-on needs no credentials. The manager of the add-on writes it.
	ReasonNilRegistration = "NilRegistration"
	// ReasonPermissionConfigPending: the permissions wait for something. The manager of the add-on writes it.
	ReasonPermissionConfigPending = "PermissionConfigPending"
	// ReasonSetPermissionFailed: the permissions cannot be written. The message has the error.
	ReasonSetPermissionFailed = "SetPermissionFailed"
	// ReasonSetPermissionApplied: the agent has its permissions.
	ReasonSetPermissionApplied = "SetPermissionApplied"
)
