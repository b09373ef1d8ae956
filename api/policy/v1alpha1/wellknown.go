package v1alpha1

// Labels and annotations by which a policy claims templates and bindings.
const (
	// PropagationPolicyPermanentIDLabel is on the policy and on the templates that it claims. The value is a UUID.
	PropagationPolicyPermanentIDLabel = "propagationpolicy.karmada.io/permanent-id"
	// ClusterPropagationPolicyPermanentIDLabel is the same label for a ClusterPropagationPolicy.
	ClusterPropagationPolicyPermanentIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"

	PropagationPolicyNamespaceAnnotation   = "propagationpolicy.karmada.io/namespace"
	PropagationPolicyNameAnnotation        = "propagationpolicy.karmada.io/name"
	ClusterPropagationPolicyNameAnnotation = "clusterpropagationpolicy.karmada.io/name"

	// AppliedPlacementAnnotation on a binding is the Placement that was scheduled last, as JSON.
	AppliedPlacementAnnotation = "policy.karmada.io/applied-placement"
	// AppliedOverridesAnnotation and AppliedClusterOverridesAnnotation of a Work are JSON lists of {policyName,
	// overriders}.
	AppliedOverridesAnnotation        = "policy.karmada.io/applied-overrides"
	AppliedClusterOverridesAnnotation = "policy.karmada.io/applied-cluster-overrides"

	PropagationPolicyFinalizer        = "karmada.io/propagation-policy-controller"
	ClusterPropagationPolicyFinalizer = "karmada.io/cluster-propagation-policy-controller"

	// NamespaceSkipAutoPropagationLabel = "true" on a namespace: the hub does not create it in members by itself.
	NamespaceSkipAutoPropagationLabel = "namespace.karmada.io/skip-auto-propagation"
	// DeletionProtectionLabel = DeletionProtectionAlways: the hub denies every deletion of the object.
	DeletionProtectionLabel  = "resourcetemplate.karmada.io/deletion-protected"
	DeletionProtectionAlways = "Always"
	// RetainReplicasLabel = "true": the hub does not change spec.replicas of the object in members.
	RetainReplicasLabel = "resourcetemplate.karmada.io/retain-replicas"
	// ClaimedByLabel on a template names the component that propagates it. Policies do not claim the template.
	ClaimedByLabel = "resourcetemplate.karmada.io/claimed-by"

	DefaultSchedulerName = "default-scheduler"
)
