package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// ResourceBinding binds a namespaced template to the clusters that take it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=resourcebindings,scope=Namespaced,shortName=rb,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name=`SCHEDULED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name=`FULLYAPPLIED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is where the template goes.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is what became of it.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBinding.
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// ClusterResourceBinding binds a cluster-scoped template to the clusters that take it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourcebindings,scope=Cluster,shortName=crb,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name=`SCHEDULED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name=`FULLYAPPLIED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is where the template goes.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is what became of it.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBinding.
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec is where a template goes.
type ResourceBindingSpec struct {
	// Resource is the template.
	// +required
	Resource ObjectReference `json:"resource"`

	// PropagateDeps sends along what the template refers to.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// ReplicaRequirements is what one replica needs.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas of the template; 0 without requirements means it is not a workload.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components of a template with several pod templates.
	// +optional
	Components []Component `json:"components,omitempty"`

	// Clusters is the scheduling result.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`

	// Placement is the policy's; nil means that the binding came from a dependency and is not scheduled.
	// +optional
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`

	// GracefulEvictionTasks are clusters that the template is leaving.
	// +optional
	GracefulEvictionTasks []GracefulEvictionTask `json:"gracefulEvictionTasks,omitempty"`

	// RequiredBy are the bindings of the templates that depend on this one.
	// +optional
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`

	// SchedulerName is the scheduler that places the template.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover is the policy's.
	// +optional
	Failover *policyv1alpha1.FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution is the policy's.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +optional
	ConflictResolution policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`

	// RescheduleTriggeredAt asks for a fresh scheduling; in effect when later than status.lastScheduledTime.
	// +optional
	RescheduleTriggeredAt *metav1.Time `json:"rescheduleTriggeredAt,omitempty"`

	// Suspension stops scheduling or dispatching.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion is the policy's.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority orders the scheduling of bindings.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`

	// WorkloadAffinityGroups are the groups that the template belongs to, as key=value.
	// +optional
	WorkloadAffinityGroups *WorkloadAffinityGroups `json:"workloadAffinityGroups,omitempty"`
}

// ObjectReference names a template.
type ObjectReference struct {
	// APIVersion of the template.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the template.
	// +required
	Kind string `json:"kind"`

	// Namespace of the template.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the template.
	// +required
	Name string `json:"name"`

	// UID of the template.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// ResourceVersion of the template, as last seen; a change of it makes the Works anew.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// ReplicaRequirements is what one replica needs.
type ReplicaRequirements struct {
	// NodeClaim selects suitable nodes.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is what one replica requests.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// Namespace of the template, for quotas.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PriorityClassName of the pods, for quotas.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// NodeClaim selects suitable nodes for a replica.
type NodeClaim struct {
	// HardNodeAffinity is the required node affinity.
	// +optional
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`

	// NodeSelector of the pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Component is one pod template of several.
type Component struct {
	// Name of the component, unique in the template.
	// +kubebuilder:validation:MaxLength=32
	// +required
	Name string `json:"name"`

	// Replicas of the component.
	// +required
	Replicas int32 `json:"replicas"`

	// ReplicaRequirements is what one replica needs.
	// +optional
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// ComponentReplicaRequirements is what one replica of a component needs.
type ComponentReplicaRequirements struct {
	// NodeClaim selects suitable nodes.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is what one replica requests.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// PriorityClassName of the pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// TargetCluster is a cluster that takes the template.
type TargetCluster struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`

	// Replicas in the cluster.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components in the cluster.
	// +optional
	Components []TargetComponent `json:"components,omitempty"`
}

// TargetComponent is a component's share of a cluster.
type TargetComponent struct {
	// Name of the component.
	// +required
	Name string `json:"name"`

	// Replicas of the component in the cluster.
	// +required
	Replicas int32 `json:"replicas"`
}

// GracefulEvictionTask is a cluster that a template is leaving.
type GracefulEvictionTask struct {
	// FromCluster is the cluster left.
	// +required
	FromCluster string `json:"fromCluster"`

	// PurgeMode is when the template is deleted from the cluster. Gracefully: when its replacement is healthy. Directly:
	// at once. Never: when a user sets suppressDeletion to false.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +optional
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`

	// Replicas that leave; nil is all.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Reason in CamelCase.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	// +required
	Reason string `json:"reason"`

	// Message for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Producer is the controller that asked.
	// +required
	Producer string `json:"producer"`

	// GracePeriodSeconds is the time in seconds that the replacement has to become healthy, with purgeMode Gracefully.
	// After that the hub reports a warning, and still keeps the template in the cluster.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// SuppressDeletion keeps the old workload (true) or deletes it at once (false).
	// +optional
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`

	// PreservedLabelState is state for the new copy.
	// +optional
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`

	// CreationTimestamp is when the task was made.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// ClustersBeforeFailover are the clusters at that time.
	// +optional
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}

// BindingSnapshot is a binding that requires this one.
type BindingSnapshot struct {
	// Namespace of the binding.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the binding.
	// +required
	Name string `json:"name"`

	// Clusters of the binding.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// Suspension stops scheduling or dispatching.
type Suspension struct {
	policyv1alpha1.Suspension `json:",inline"`

	// Scheduling stops the scheduler.
	// +optional
	Scheduling *bool `json:"scheduling,omitempty"`
}

// SchedulePriority is the priority of a binding in the scheduler's queue.
type SchedulePriority struct {
	// Priority: the higher goes first.
	// +kubebuilder:default=0
	// +optional
	Priority int32 `json:"priority,omitempty"`
}

// WorkloadAffinityGroups are the groups that a template belongs to.
type WorkloadAffinityGroups struct {
	// AffinityGroup as key=value.
	// +optional
	AffinityGroup string `json:"affinityGroup,omitempty"`

	// AntiAffinityGroup as key=value.
	// +optional
	AntiAffinityGroup string `json:"antiAffinityGroup,omitempty"`
}

// ResourceBindingStatus is what became of a template.
type ResourceBindingStatus struct {
	// SchedulerObservedGeneration is the generation that the scheduler last saw.
	// +optional
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`

	// SchedulerObservedAffinityName is the affinity term in use.
	// +optional
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`

	// LastScheduledTime is when the scheduler last ran.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`

	// Conditions: Scheduled, FullyApplied.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is the state in each cluster, sorted by cluster.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// Condition types of a binding.
//
//reference:condition ResourceBinding and ClusterResourceBinding
const (
	// Scheduled: the scheduler placed the template in clusters.
	Scheduled = "Scheduled"
	// FullyApplied: every cluster applied the object.
	FullyApplied = "FullyApplied"
	// VersionServed: every cluster serves the kind in a version that has all fields of the template. Absent if no
	// version lacks any. Not in Karmada.
	VersionServed = "VersionServed"
	// WorksWritten: the hub could create and store the Work of every cluster. Not in Karmada.
	WorksWritten = "WorksWritten"
	// SidecarsInForce: False while the hub does not send a workload to a cluster for the first time, because
	// SidecarSets that inject into its pods are not in force there yet. Not in Karmada.
	SidecarsInForce = "SidecarsInForce"
	// StatusCurrent: False while the status of a cluster is stale, because the cluster is not ready. Otherwise absent.
	// Not in Karmada.
	StatusCurrent = "StatusCurrent"
	// ImagesPulled: False while a cluster keeps its old pods, because it pulls the new images first. Not in Karmada.
	ImagesPulled = "ImagesPulled"
)

// Reasons of Scheduled.
//
//reference:reason Scheduled of ResourceBinding and ClusterResourceBinding
const (
	// ReasonSuccess: the clusters are chosen.
	ReasonSuccess = "Success"
	// ReasonSchedulerError: the scheduler failed; it retries.
	ReasonSchedulerError = "SchedulerError"
	// ReasonNoClusterFit: no cluster passes the filters, or a subset of the template has none. The message has the
	// number of clusters by filter.
	ReasonNoClusterFit = "NoClusterFit"
	// ReasonUnschedulable: the clusters lack capacity. The scheduler retries when that changes.
	ReasonUnschedulable = "Unschedulable"
	// ReasonQuotaExceeded: known to Karmada's tools. The hub does not set it.
	//
	//reference:none
	ReasonQuotaExceeded = "QuotaExceeded"
)

// Reasons of FullyApplied.
//
//reference:reason FullyApplied of ResourceBinding and ClusterResourceBinding
const (
	// ReasonFullyAppliedSuccess: every cluster applied the object.
	ReasonFullyAppliedSuccess = "FullyAppliedSuccess"
	// ReasonFullyAppliedFailed: a cluster has not applied it. status.aggregatedStatus names the cluster and the error.
	ReasonFullyAppliedFailed = "FullyAppliedFailed"
)

// Reasons of VersionServed.
//
//reference:reason VersionServed of ResourceBinding and ClusterResourceBinding
const (
	// ReasonVersionServed: every cluster serves a suitable version.
	ReasonVersionServed = "VersionServed"
	// ReasonFieldsNotServed: a cluster serves the kind only in a version without some fields of the template. The
	// message names cluster and fields.
	ReasonFieldsNotServed = "FieldsNotServed"
)

// Reasons of WorksWritten.
//
//reference:reason WorksWritten of ResourceBinding and ClusterResourceBinding
const (
	// ReasonWorksWritten: all Works are stored.
	ReasonWorksWritten = "WorksWritten"
	// ReasonWorksRefused: a Work could not be created, for example because an override fails or the object is too
	// large. The message has the error.
	ReasonWorksRefused = "WorksRefused"
)

// Reasons of SidecarsInForce.
//
//reference:reason SidecarsInForce of ResourceBinding and ClusterResourceBinding
const (
	// ReasonSidecarsInForce: every cluster has the SidecarSets.
	ReasonSidecarsInForce = "SidecarsInForce"
	// ReasonWaitingForSidecars: a cluster does not have them yet. The message names the cluster and the SidecarSets.
	ReasonWaitingForSidecars = "WaitingForSidecars"
)

// The reason of StatusCurrent.
//
//reference:reason StatusCurrent of ResourceBinding and ClusterResourceBinding
const (
	// ReasonClusterNotReady: a cluster is not ready. The message names it, and since when.
	ReasonClusterNotReady = "ClusterNotReady"
)

// Reasons of ImagesPulled.
//
//reference:reason ImagesPulled of ResourceBinding and ClusterResourceBinding
const (
	// ReasonImagesPulled: the nodes have the images.
	ReasonImagesPulled = "ImagesPulled"
	// ReasonPullingImages: nodes are pulling. The message has the progress by cluster.
	ReasonPullingImages = "PullingImages"
)

// Messages of conditions. Karmada's tools know them.
const (
	MessageScheduled         = "Binding has been scheduled successfully."
	MessageFullyApplied      = "All works have been successfully applied"
	MessageFullyAppliedFails = "Failed to apply all works, see status.aggregatedStatus for details"
)

// AggregatedStatusItem is the state in one cluster.
type AggregatedStatusItem struct {
	// ClusterName is the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Status reflected from the member object.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied is true if the manifest was applied.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage is why not.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`

	// Health of the member object.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	// +optional
	Health workv1alpha1.ResourceHealth `json:"health,omitempty"`

	// UnhealthySince is when the health became Unhealthy; unset for another health. The toleration of
	// spec.failover.application counts from it. Not in Karmada.
	// +optional
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`
}
