package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PropagationPolicy propagates templates of its namespace to member clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=propagationpolicies,scope=Namespaced,shortName=pp,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name=`CONFLICT-RESOLUTION`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name=`PRIORITY`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type PropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the templates and their clusters.
	Spec PropagationSpec `json:"spec"`
}

// PropagationPolicyList is a list of PropagationPolicy.
// +kubebuilder:object:root=true
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PropagationPolicy `json:"items"`
}

// ClusterPropagationPolicy propagates templates to member clusters: cluster-scoped ones, and those of any namespace
// that is not reserved for the system.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterpropagationpolicies,scope=Cluster,shortName=cpp,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name=`CONFLICT-RESOLUTION`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name=`PRIORITY`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ClusterPropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the templates and their clusters.
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
	// ResourceSelectors select the templates. One of them must match.
	// +kubebuilder:validation:MinItems=1
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Association is deprecated and not used.
	Association bool `json:"association,omitempty"`

	// PropagateDeps also propagates objects that the templates refer to, such as ConfigMaps. Default: false.
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// Placement selects the clusters, and configures the division of replicas. Default: all clusters.
	Placement Placement `json:"placement,omitempty"`

	// Priority decides which of several policies claims a template: the one with the highest number. Default: 0.
	// +kubebuilder:default=0
	Priority *int32 `json:"priority,omitempty"`

	// Preemption decides whether this policy takes templates from policies of lower priority: Always or Never. Always
	// requires a name in each resource selector. Default: Never.
	// +kubebuilder:default="Never"
	// +kubebuilder:validation:Enum=Always;Never
	Preemption PreemptionBehavior `json:"preemption,omitempty"`

	// DependentOverrides are names of override policies. A template is not sent to clusters before they exist.
	DependentOverrides []string `json:"dependentOverrides,omitempty"`

	// SchedulerName is the scheduler that places the templates. It cannot be changed. Default: default-scheduler.
	// +kubebuilder:default="default-scheduler"
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover configures the failover of workloads that are unhealthy, or whose cluster is lost or has a NoExecute taint.
	Failover *FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution decides about an object that already exists in a cluster and that this hub does not
	// manage. Abort: the hub does not change it, and reports an error. Overwrite: the hub takes it over. Default: Abort.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// ActivationPreference Lazy applies a change of the policy only when a template changes. Default: empty, at once.
	// +kubebuilder:validation:Enum=Lazy
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`

	// Suspension suspends dispatching to clusters.
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in clusters when the template is deleted. Default: false.
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority is the order in which the scheduler places templates.
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// PreemptionBehavior is Always or Never.
type PreemptionBehavior string

const (
	PreemptAlways PreemptionBehavior = "Always"
	PreemptNever  PreemptionBehavior = "Never"
)

// ConflictResolution is Abort or Overwrite.
type ConflictResolution string

const (
	ConflictAbort     ConflictResolution = "Abort"
	ConflictOverwrite ConflictResolution = "Overwrite"
)

// ActivationPreference is Lazy or empty.
type ActivationPreference string

// LazyActivation applies a change of the policy to a template only when that template changes.
const LazyActivation ActivationPreference = "Lazy"

// Suspension suspends dispatching to all clusters or to some of them.
type Suspension struct {
	// Dispatching suspends dispatching to all clusters. Not together with dispatchingOnClusters. Default: false.
	Dispatching *bool `json:"dispatching,omitempty"`

	// DispatchingOnClusters suspends dispatching to some clusters. Not together with dispatching.
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters lists clusters.
type SuspendClusters struct {
	// ClusterNames are the names of the clusters to which dispatching is suspended.
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// SchedulePriority refers to the priority of a PriorityClass.
type SchedulePriority struct {
	// PriorityClassSource is the kind of the class. Only KubePriorityClass, a PriorityClass of the hub, is supported.
	// +kubebuilder:validation:Enum=KubePriorityClass
	PriorityClassSource PriorityClassSource `json:"priorityClassSource"`

	// PriorityClassName is the name of the PriorityClass.
	PriorityClassName string `json:"priorityClassName"`
}

// PriorityClassSource is the kind of class that has a priority.
type PriorityClassSource string

// KubePriorityClass is the one source of a priority.
const KubePriorityClass PriorityClassSource = "KubePriorityClass"
