package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PropagationPolicy sends the templates of its namespace that it selects to member clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=propagationpolicies,scope=Namespaced,shortName=pp,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name=`CONFLICT-RESOLUTION`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name=`PRIORITY`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type PropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired propagation.
	// +required
	Spec PropagationSpec `json:"spec"`
}

// PropagationPolicyList is a list of PropagationPolicy.
// +kubebuilder:object:root=true
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PropagationPolicy `json:"items"`
}

// ClusterPropagationPolicy sends cluster-scoped templates, and templates of any namespace but reserved ones, to member
// clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterpropagationpolicies,scope=Cluster,shortName=cpp,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name=`CONFLICT-RESOLUTION`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name=`PRIORITY`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ClusterPropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired propagation.
	// +required
	Spec PropagationSpec `json:"spec"`
}

// ClusterPropagationPolicyList is a list of ClusterPropagationPolicy.
// +kubebuilder:object:root=true
type ClusterPropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPropagationPolicy `json:"items"`
}

// PropagationSpec selects templates and their clusters.
type PropagationSpec struct {
	// ResourceSelectors select the templates; one of them must match.
	// +kubebuilder:validation:MinItems=1
	// +required
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Association is deprecated and not used.
	// +optional
	Association bool `json:"association,omitempty"`

	// PropagateDeps sends along what the templates refer to, such as ConfigMaps and Secrets.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// Placement selects the clusters.
	// +optional
	Placement Placement `json:"placement,omitempty"`

	// Priority decides between policies that select the same template; the higher wins.
	// +kubebuilder:default=0
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Preemption is whether this policy takes templates from policies of lower priority. Always needs names in all
	// selectors.
	// +kubebuilder:default="Never"
	// +kubebuilder:validation:Enum=Always;Never
	// +optional
	Preemption PreemptionBehavior `json:"preemption,omitempty"`

	// DependentOverrides names override policies that must exist before a template is sent.
	// +optional
	DependentOverrides []string `json:"dependentOverrides,omitempty"`

	// SchedulerName is the scheduler that places the templates. Immutable.
	// +kubebuilder:default="default-scheduler"
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover is the reaction to a failed application or cluster.
	// +optional
	Failover *FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution is the reaction to an object that exists in a member and that no hub manages.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +optional
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// ActivationPreference Lazy makes a change of the policy take effect only with the next change of a template.
	// +kubebuilder:validation:Enum=Lazy
	// +optional
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`

	// Suspension stops dispatching.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion leaves member objects behind when the template is deleted.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority orders the scheduling of templates.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// PreemptionBehavior is Always or Never.
type PreemptionBehavior string

// The preemption behaviours.
const (
	PreemptAlways PreemptionBehavior = "Always"
	PreemptNever  PreemptionBehavior = "Never"
)

// ConflictResolution is Abort or Overwrite.
type ConflictResolution string

// The conflict resolutions.
const (
	ConflictAbort     ConflictResolution = "Abort"
	ConflictOverwrite ConflictResolution = "Overwrite"
)

// ActivationPreference is Lazy or empty.
type ActivationPreference string

// LazyActivation delays a policy's effect until a template changes.
const LazyActivation ActivationPreference = "Lazy"

// Suspension stops dispatching to all clusters or to some.
type Suspension struct {
	// Dispatching stops all dispatching. Not together with dispatchingOnClusters.
	// +optional
	Dispatching *bool `json:"dispatching,omitempty"`

	// DispatchingOnClusters stops dispatching to the clusters named.
	// +optional
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters names clusters.
type SuspendClusters struct {
	// ClusterNames are the clusters that nothing is dispatched to.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// SchedulePriority takes a scheduling priority from a PriorityClass.
type SchedulePriority struct {
	// PriorityClassSource is KubePriorityClass.
	// +kubebuilder:validation:Enum=KubePriorityClass
	// +required
	PriorityClassSource PriorityClassSource `json:"priorityClassSource"`

	// PriorityClassName names the class.
	// +required
	PriorityClassName string `json:"priorityClassName"`
}

// PriorityClassSource is the kind of class that a priority is taken from.
type PriorityClassSource string

// The sources of a priority; only KubePriorityClass is accepted.
const (
	KubePriorityClass      PriorityClassSource = "KubePriorityClass"
	PodPriorityClass       PriorityClassSource = "PodPriorityClass"
	FederatedPriorityClass PriorityClassSource = "FederatedPriorityClass"
)
