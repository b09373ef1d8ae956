package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// ResourceBinding is the placement of a namespaced template in clusters. The hub writes it.
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

	// Spec is the placement of the template, with the settings of its policy.
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the state of the scheduling, and of the object in each cluster. The hub writes it.
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBinding.
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// ClusterResourceBinding is the placement of a cluster-scoped template in clusters. The hub writes it.
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

	// Spec is the placement of the template, with the settings of its policy.
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the state of the scheduling, and of the object in each cluster. The hub writes it.
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBinding.
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec is the placement of a template, with the settings of its policy.
type ResourceBindingSpec struct {
	// Resource is the template.
	Resource ObjectReference `json:"resource"`

	// PropagateDeps also propagates the objects that the template refers to. Copied from the policy.
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// ReplicaRequirements are the node requirements and resource requests of one replica.
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is the number of replicas of the template. 0 without replicaRequirements: the template is not a workload.
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the components of a template with several pod templates.
	Components []Component `json:"components,omitempty"`

	// Clusters are the clusters and replicas that the scheduler chose.
	Clusters []TargetCluster `json:"clusters,omitempty"`

	// Placement is copied from the policy. If it is not set, the binding follows those in requiredBy and is not scheduled.
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`

	// GracefulEvictionTasks are the evictions from clusters that are in progress.
	GracefulEvictionTasks []GracefulEvictionTask `json:"gracefulEvictionTasks,omitempty"`

	// RequiredBy are the bindings of the templates that depend on this template.
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`

	// SchedulerName is the name of the scheduler that places the template. Copied from the policy.
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover configures the failover of the workload. Copied from the policy.
	Failover *policyv1alpha1.FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution decides about an object that exists in a cluster and that this hub does not manage: Abort
	// (report an error) or Overwrite (take it over). Copied from the policy. Default: Abort.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	ConflictResolution policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`

	// RescheduleTriggeredAt requests a new scheduling. It has an effect if it is later than status.lastScheduledTime.
	RescheduleTriggeredAt *metav1.Time `json:"rescheduleTriggeredAt,omitempty"`

	// Suspension suspends scheduling or dispatching.
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in clusters when the template is deleted. Copied from the policy.
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority is the priority of the binding in the queue of the scheduler.
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`

	// WorkloadAffinityGroups are the groups of the template for workload affinity, as key=value.
	WorkloadAffinityGroups *WorkloadAffinityGroups `json:"workloadAffinityGroups,omitempty"`
}

// ObjectReference identifies a template.
type ObjectReference struct {
	// APIVersion of the template.
	APIVersion string `json:"apiVersion"`

	// Kind of the template.
	Kind string `json:"kind"`

	// Namespace of the template.
	Namespace string `json:"namespace,omitempty"`

	// Name of the template.
	Name string `json:"name"`

	// UID of the template.
	UID types.UID `json:"uid,omitempty"`

	// ResourceVersion of the template when the hub last read it. When it changes, the hub updates the Works.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// ReplicaRequirements are the node requirements and resource requests of one replica.
type ReplicaRequirements struct {
	// NodeClaim are the requirements for nodes.
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest are the resources that one replica requests, such as cpu: 100m.
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// Namespace of the template. Its quotas in clusters limit the replicas.
	Namespace string `json:"namespace,omitempty"`

	// PriorityClassName of the pods. Quotas can depend on it.
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// NodeClaim are the requirements of a replica for its node.
type NodeClaim struct {
	// HardNodeAffinity is the required node affinity of the pods.
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`

	// NodeSelector of the pods.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Component is one of several pod templates of a template.
type Component struct {
	// Name of the component, unique in the template.
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Replicas is the number of replicas of the component.
	Replicas int32 `json:"replicas"`

	// ReplicaRequirements are the node requirements and resource requests of one replica.
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// ComponentReplicaRequirements are the node requirements and resource requests of one replica of a component.
type ComponentReplicaRequirements struct {
	// NodeClaim are the requirements for nodes.
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest are the resources that one replica requests, such as cpu: 100m.
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// PriorityClassName of the pods.
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// TargetCluster is a cluster in which the template is placed.
type TargetCluster struct {
	// Name of the cluster.
	Name string `json:"name"`

	// Replicas is the number of replicas in the cluster. Not set if the template has no replicas.
	Replicas int32 `json:"replicas,omitempty"`

	// Components have the replicas of each component in the cluster, for a template with several pod templates.
	Components []TargetComponent `json:"components,omitempty"`
}

// TargetComponent is the number of replicas of a component in a cluster.
type TargetComponent struct {
	// Name of the component.
	Name string `json:"name"`

	// Replicas is the number of replicas of the component in the cluster.
	Replicas int32 `json:"replicas"`
}

// GracefulEvictionTask is the eviction of a template from a cluster.
type GracefulEvictionTask struct {
	// FromCluster is the name of the cluster that the template leaves.
	FromCluster string `json:"fromCluster"`

	// PurgeMode is the time when the template is deleted from the cluster. Gracefully: when its replacement is healthy.
	// Directly: at once. Never: when a user sets suppressDeletion to false.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`

	// Replicas is the number of replicas that leave the cluster. Default: all.
	Replicas *int32 `json:"replicas,omitempty"`

	// Reason is one word in CamelCase, for programs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason"`

	// Message explains the eviction, for people.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// Producer is the name of the controller that created the task.
	Producer string `json:"producer"`

	// GracePeriodSeconds is the time in seconds for the replacement to become healthy, with purgeMode Gracefully. After
	// it, the hub records a warning event and keeps the template in the cluster.
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// SuppressDeletion keeps the template in the cluster (true), or ends the task and deletes it at once (false). Users
	// may set it. Default: the task ends by its purgeMode.
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`

	// PreservedLabelState has the labels that the replacement gets, with values of the status of the workload.
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`

	// CreationTimestamp is the time when the task was created.
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// ClustersBeforeFailover are the clusters of the binding at that time.
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}

// BindingSnapshot is a binding whose template depends on this one.
type BindingSnapshot struct {
	// Namespace of the binding.
	Namespace string `json:"namespace,omitempty"`

	// Name of the binding.
	Name string `json:"name"`

	// Clusters of the binding.
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// Suspension suspends scheduling or dispatching.
type Suspension struct {
	policyv1alpha1.Suspension `json:",inline"`

	// Scheduling suspends the scheduling of the binding. Default: false.
	Scheduling *bool `json:"scheduling,omitempty"`
}

// SchedulePriority is the priority of a binding in the queue of the scheduler.
type SchedulePriority struct {
	// Priority is a number. A binding with a higher number is scheduled first. Default: 0.
	// +kubebuilder:default=0
	Priority int32 `json:"priority,omitempty"`
}

// WorkloadAffinityGroups are the groups of a template for workload affinity.
type WorkloadAffinityGroups struct {
	// AffinityGroup is the group for affinity, as key=value.
	AffinityGroup string `json:"affinityGroup,omitempty"`

	// AntiAffinityGroup is the group for anti-affinity, as key=value.
	AntiAffinityGroup string `json:"antiAffinityGroup,omitempty"`
}

// ResourceBindingStatus is the state of the scheduling, and of the object in each cluster.
type ResourceBindingStatus struct {
	// SchedulerObservedGeneration is the generation of the binding that was scheduled last.
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`

	// SchedulerObservedAffinityName is the name of the term of clusterAffinities that is in use.
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`

	// LastScheduledTime is the time when the binding was scheduled last.
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`

	// Conditions of the binding. See docs/reference/conditions.md.
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is the state of the object in each cluster, sorted by cluster.
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
	// ReasonQuotaExceeded: a FederatedResourceQuota of the namespace does not permit the placement, which stays as it was.
	// The scheduler retries when the quota permits more.
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
	// ReasonRunFinished: an object that runs once has finished, and its clusters have left. No Work is created again.
	//
	//reference:reason FullyApplied of ResourceBinding and ClusterResourceBinding
	//reference:reason Scheduled of ResourceBinding and ClusterResourceBinding
	ReasonRunFinished = "RunFinished"
	// ReasonRunFailed: an object that runs once has failed, and its clusters have left. No Work is created again.
	//
	//reference:reason FullyApplied of ResourceBinding and ClusterResourceBinding
	//reference:reason Scheduled of ResourceBinding and ClusterResourceBinding
	ReasonRunFailed = "RunFailed"
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
	// ReasonTemplateRefused: no Work can be created or updated, for example because an annotation of the template has an
	// invalid value. The message has the error.
	ReasonTemplateRefused = "TemplateRefused"
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
	MessageRunFinished       = "the run has finished; it does not move to another cluster"
	MessageRunFailed         = "the run has failed; it does not move to another cluster"
	MessageFullyAppliedFails = "Failed to apply all works, see status.aggregatedStatus for details"
)

// AggregatedStatusItem is the state of the object in one cluster.
type AggregatedStatusItem struct {
	// ClusterName is the name of the cluster.
	ClusterName string `json:"clusterName"`

	// Status is the status of the object in the cluster, or the part of it that the interpreter reads.
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied is true if the cluster applied the manifest.
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage is the error if applied is false.
	AppliedMessage string `json:"appliedMessage,omitempty"`

	// Health of the object in the cluster: Healthy, Unhealthy or Unknown.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	Health workv1alpha1.ResourceHealth `json:"health,omitempty"`

	// UnhealthySince is the time when the health became Unhealthy. Not set for another health. The toleration of
	// spec.failover.application starts then. Not in Karmada.
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`
}
