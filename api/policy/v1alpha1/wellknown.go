package v1alpha1

// Labels and annotations by which a policy claims templates and bindings.
const (
	// PropagationPolicyPermanentIDLabel is on the policy itself and on the templates it claims; a UUID.
	PropagationPolicyPermanentIDLabel = "propagationpolicy.karmada.io/permanent-id"
	// ClusterPropagationPolicyPermanentIDLabel is the same for ClusterPropagationPolicy.
	ClusterPropagationPolicyPermanentIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"

	PropagationPolicyNamespaceAnnotation   = "propagationpolicy.karmada.io/namespace"
	PropagationPolicyNameAnnotation        = "propagationpolicy.karmada.io/name"
	ClusterPropagationPolicyNameAnnotation = "clusterpropagationpolicy.karmada.io/name"

	// AppliedPlacementAnnotation on a binding is the JSON of the Placement that was last scheduled.
	AppliedPlacementAnnotation = "policy.karmada.io/applied-placement"
	// AppliedOverridesAnnotation and AppliedClusterOverridesAnnotation on a Work are JSON lists of {policyName,
	// overriders}.
	AppliedOverridesAnnotation        = "policy.karmada.io/applied-overrides"
	AppliedClusterOverridesAnnotation = "policy.karmada.io/applied-cluster-overrides"

	PropagationPolicyFinalizer        = "karmada.io/propagation-policy-controller"
	ClusterPropagationPolicyFinalizer = "karmada.io/cluster-propagation-policy-controller"

	// NamespaceSkipAutoPropagationLabel = "true" keeps a namespace from being sent to the members.
	NamespaceSkipAutoPropagationLabel = "namespace.karmada.io/skip-auto-propagation"
	// DeletionProtectionLabel = DeletionProtectionAlways has every DELETE of the object denied.
	DeletionProtectionLabel  = "resourcetemplate.karmada.io/deletion-protected"
	DeletionProtectionAlways = "Always"
	// RetainReplicasLabel = "true" leaves spec.replicas of the member object to the member.
	RetainReplicasLabel = "resourcetemplate.karmada.io/retain-replicas"
	// ClaimedByLabel on a template names a component that propagates it by itself; policies leave it alone.
	ClaimedByLabel = "resourcetemplate.karmada.io/claimed-by"

	DefaultSchedulerName = "default-scheduler"
)
