package v1alpha1

// Labels of a ManifestWork of a ManifestWorkReplicaSet.
const (
	// ReplicaSetLabel has the namespace and the name of the ManifestWorkReplicaSet, as NAMESPACE.NAME.
	ReplicaSetLabel = "work.open-cluster-management.io/manifestworkreplicaset"
	// PlacementLabel has the name of the Placement.
	PlacementLabel = "work.open-cluster-management.io/placementname"
)

// ReplicaSetFinalizer keeps a ManifestWorkReplicaSet until its ManifestWorks are deleted.
const ReplicaSetFinalizer = "work.open-cluster-management.io/manifest-work-cleanup"

// Condition types of a ManifestWorkReplicaSet.
//
//reference:condition ManifestWorkReplicaSet
const (
	// PlacementVerified: the Placements exist and have chosen clusters.
	PlacementVerified = "PlacementVerified"
	// PlacementRolledOut: each chosen cluster has the current template, and its condition Progressing is False. That
	// condition exists only with a condition rule.
	PlacementRolledOut = "PlacementRolledOut"
	// ManifestworkApplied: the ManifestWorks are available, and none is progressing or degraded.
	ManifestworkApplied = "ManifestworkApplied"
)

// Reasons of the conditions of a ManifestWorkReplicaSet. Tools know them.
//
//reference:reason conditions of ManifestWorkReplicaSet
const (
	// ReasonAsExpected: the condition is True.
	ReasonAsExpected = "AsExpected"
	// ReasonNotAsExpected: a rollout strategy is not valid, or a ManifestWork is missing, not available or degraded. See
	// the message.
	ReasonNotAsExpected = "NotAsExpected"
	// ReasonDecisionNotFound: a Placement does not exist.
	ReasonDecisionNotFound = "PlacementDecisionNotFound"
	// ReasonDecisionEmpty: no ManifestWork has the current template, for example because no cluster is chosen. The message
	// has the number of chosen clusters.
	ReasonDecisionEmpty = "PlacementDecisionEmpty"
	// ReasonProcessing: a ManifestWork is progressing, and none is degraded.
	ReasonProcessing = "Processing"
	// ReasonInvalidName: namespace and name together are longer than a label value, so there are no ManifestWorks.
	ReasonInvalidName = "InvalidManifestWorkName"
	// ReasonProgressing: not all clusters have succeeded. The message has what is awaited.
	ReasonProgressing = "Progressing"
	// ReasonComplete: all clusters have succeeded.
	ReasonComplete = "Complete"
)
