package v1

// Labels of Open Cluster Management.
const (
	// ClusterNameLabel has the name of the cluster that an object on the hub belongs to.
	ClusterNameLabel = "open-cluster-management.io/cluster-name"
	// AddonNameLabel has the name of the add-on that an object on the hub belongs to.
	AddonNameLabel = "open-cluster-management.io/addon-name"
	// ClusterSetLabel has the name of the ManagedClusterSet that a cluster belongs to.
	ClusterSetLabel = "cluster.open-cluster-management.io/clusterset"
	// AddonLabelPrefix precedes the name of an add-on in a label of a ManagedCluster.
	AddonLabelPrefix = "feature.open-cluster-management.io/addon-"
)

// DefaultSet and GlobalSet are the ManagedClusterSets that the hub keeps.
const (
	DefaultSet = "default"
	GlobalSet  = "global"
)

// Annotations of Open Cluster Management.
const (
	// AutoUpdateAnnotation = "false" on the ManagedClusterSets default and global stops the hub from restoring them.
	AutoUpdateAnnotation = "cluster.open-cluster-management.io/autoupdate"
	// SkipClockAnnotation = "true" on a ManagedCluster reports its clock as synced, whatever its Lease says.
	SkipClockAnnotation = "registration.open-cluster-management.io/skip-clock-sync-check"
	// CleanupPriorityAnnotation orders the deletion of objects in the namespace of a cluster: "0" to "100", ascending.
	CleanupPriorityAnnotation = "open-cluster-management.io/cleanup-priority"
)

// Finalizers of Open Cluster Management on a ManagedCluster.
const (
	// RightsFinalizer keeps a ManagedCluster until the rights of its klusterlet are removed.
	RightsFinalizer = "cluster.open-cluster-management.io/api-resource-cleanup"
	// CleanupFinalizer keeps a ManagedCluster until its add-ons and ManifestWorks are deleted.
	CleanupFinalizer = "cluster.open-cluster-management.io/resource-cleanup"
)

// LeaseName is the Lease in the namespace of a cluster that its klusterlet renews.
const LeaseName = "managed-cluster-lease"

// Keys of taints that the hub keeps.
const (
	// TaintUnavailable: the API server of the cluster is not available, as its klusterlet reports.
	TaintUnavailable = "cluster.open-cluster-management.io/unavailable"
	// TaintUnreachable: the klusterlet is silent.
	TaintUnreachable = "cluster.open-cluster-management.io/unreachable"
)

// Condition types of a ManagedCluster.
//
//reference:condition ManagedCluster
const (
	// HubAccepted: the hub gave the klusterlet its rights. False after a denial or an error.
	HubAccepted = "HubAcceptedManagedCluster"
	// Joined: the klusterlet connected with its own certificate. The klusterlet writes it.
	Joined = "ManagedClusterJoined"
	// ClusterAvailable: the API server of the cluster is available. The klusterlet writes it; the hub sets it to Unknown
	// when the klusterlet is silent.
	ClusterAvailable = "ManagedClusterConditionAvailable"
	// ClockSynced: the clock of the cluster agrees with that of the hub.
	ClockSynced = "ManagedClusterConditionClockSynced"
	// CertificateRotated: the klusterlet renewed its certificate. The klusterlet writes it.
	CertificateRotated = "ClusterCertificateRotated"
	// ClusterDeleting: the ManagedCluster is being deleted. The message counts what remains in its namespace.
	ClusterDeleting = "Deleting"
)

// Reasons of HubAcceptedManagedCluster. Tools know them.
//
//reference:reason HubAcceptedManagedCluster of ManagedCluster
const (
	// ReasonAccepted: an administrator accepted the cluster.
	ReasonAccepted = "HubClusterAdminAccepted"
	// ReasonDenied: an administrator denied the cluster after it was accepted.
	ReasonDenied = "HubClusterAdminDenied"
	// ReasonError: the rights cannot be written. The message has the error.
	ReasonError = "Error"
)

// Reasons of ManagedClusterJoined and ManagedClusterConditionAvailable. Tools know them.
//
//reference:reason ManagedClusterJoined, ManagedClusterConditionAvailable of ManagedCluster
const (
	// ReasonJoined: the cluster joined.
	ReasonJoined = "ManagedClusterJoined"
	// ReasonAvailable: the API server of the cluster answers.
	ReasonAvailable = "ManagedClusterAvailable"
	// ReasonUnavailable: the API server of the cluster does not answer.
	ReasonUnavailable = "ManagedClusterKubeAPIServerUnavailable"
	// ReasonLeaseStopped: the klusterlet stopped renewing its Lease.
	ReasonLeaseStopped = "ManagedClusterLeaseUpdateStopped"
)

// Reasons of ManagedClusterConditionClockSynced. Tools know them.
//
//reference:reason ManagedClusterConditionClockSynced of ManagedCluster
const (
	// ReasonClockSynced: the clocks agree.
	ReasonClockSynced = "ManagedClusterClockSynced"
	// ReasonClockOutOfSync: the clocks differ by five lease intervals or more.
	ReasonClockOutOfSync = "ManagedClusterClockOutOfSync"
)

// Reasons of Deleting. Tools know them.
//
//reference:reason Deleting of ManagedCluster
const (
	// ReasonResourceRemaining: add-ons or ManifestWorks of the cluster are being deleted.
	ReasonResourceRemaining = "ResourceRemaining"
	// ReasonNoResource: nothing remains.
	ReasonNoResource = "NoResource"
	// ReasonDeletingError: what remains cannot be read or deleted. The message has the error.
	ReasonDeletingError = "DeletingError"
)
