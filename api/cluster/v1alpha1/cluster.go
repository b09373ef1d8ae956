package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a member cluster of the fleet.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusters,scope=Cluster
// +kubebuilder:printcolumn:JSONPath=`.status.kubernetesVersion`,name=`Version`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.syncMode`,name=`Mode`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].status`,name=`Ready`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`Age`,type=date
// +kubebuilder:printcolumn:JSONPath=`.spec.taints[*].key`,name=`Taints`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.zones`,name=`Zones`,type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.region`,name=`Region`,type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.provider`,name=`Provider`,type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.apiEndpoint`,name=`API-Endpoint`,type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.proxyURL`,name=`Proxy-URL`,type=string,priority=1
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the connection to the cluster, its location and its taints.
	Spec ClusterSpec `json:"spec"`

	// Status is the state of the cluster when the hub last read it. The hub, or the agent in Pull mode, writes it.
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Cluster.
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// ClusterSyncMode is Push or Pull.
// +kubebuilder:validation:Enum=Push;Pull
type ClusterSyncMode string

// The sync modes. Push: the hub writes to the cluster. Pull: an agent in the cluster reads from the hub and writes.
const (
	Push ClusterSyncMode = "Push"
	Pull ClusterSyncMode = "Pull"
)

// ClusterSpec has the connection to a cluster, its location and its taints.
type ClusterSpec struct {
	// ID identifies the cluster: its property cluster.clusterset.k8s.io, or else the UID of its namespace kube-system.
	// +kubebuilder:validation:MaxLength=128000
	ID string `json:"id,omitempty"`

	// SyncMode is Push (the hub writes to the cluster) or Pull (an agent in the cluster reads from the hub).
	SyncMode ClusterSyncMode `json:"syncMode"`

	// APIEndpoint is the URL of the API server of the cluster.
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef names the Secret with the credentials of the hub in the cluster. Its keys are token and caBundle.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ImpersonatorSecretRef names the Secret with the token by which the hub impersonates users in the cluster.
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`

	// InsecureSkipTLSVerification accepts any certificate of the API server. Not for production. Default: false.
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// ProxyURL is the proxy for connections to the cluster: http, https or socks5. Default: no proxy.
	ProxyURL string `json:"proxyURL,omitempty"`

	// ProxyHeader has headers for the proxy. A comma separates several values of a header.
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Provider of the cluster, such as aws. Policies can select and spread by it.
	Provider string `json:"provider,omitempty"`

	// Region of the cluster, such as eu-west-1. Policies can select and spread by it.
	Region string `json:"region,omitempty"`

	// Zone is deprecated. Use zones. The hub stores it as zones.
	Zone string `json:"zone,omitempty"`

	// Zones of the cluster, such as eu-west-1a. Policies can select and spread by them.
	Zones []string `json:"zones,omitempty"`

	// Taints of the cluster. Templates that do not tolerate NoSchedule are not placed there; NoExecute also evicts them.
	Taints []corev1.Taint `json:"taints,omitempty"`

	// ResourceModels are grades of nodes by their free resources, for the estimate of the capacity of the cluster.
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// LocalSecretReference names a Secret of the hub.
type LocalSecretReference struct {
	// Namespace of the Secret.
	Namespace string `json:"namespace"`

	// Name of the Secret.
	Name string `json:"name"`
}

// ResourceModel is a grade of nodes by their free resources.
type ResourceModel struct {
	// Grade is the number of the grade, counted from 0.
	Grade uint `json:"grade"`

	// Ranges are the free resources of the nodes of this grade.
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange is a range of the free amount of a resource: min or more, and less than max.
type ResourceModelRange struct {
	// Name of the resource, such as cpu.
	Name corev1.ResourceName `json:"name"`

	// Min is the smallest amount in the range.
	Min resource.Quantity `json:"min"`

	// Max is the amount that is no longer in the range.
	Max resource.Quantity `json:"max"`
}

// Condition types of a Cluster.
//
//reference:condition Cluster
const (
	// ClusterConditionReady: the cluster responds, is healthy, and is managed by this hub.
	ClusterConditionReady = "Ready"
	// ClusterConditionCompleteAPIEnablements: the hub knows all kinds that the cluster serves.
	ClusterConditionCompleteAPIEnablements = "CompleteAPIEnablements"
	// ClusterConditionCurrentOpenKruise: the cluster serves OpenKruise in the versions that the hub stores. Absent
	// without OpenKruise. Not in Karmada.
	ClusterConditionCurrentOpenKruise = "CurrentOpenKruise"
	// ClusterConditionWorksKept: True after Works of the cluster were deleted by a client other than the hub. Their
	// objects are kept in the cluster. Not in Karmada.
	ClusterConditionWorksKept = "WorksKept"
	// ClusterConditionFailoverPaused: True while the cluster is lost and nothing is evicted from it, because many
	// clusters were lost at the same time. Otherwise absent. Not in Karmada.
	//
	//reference:condition Cluster
	//reference:event Warning on Cluster
	ClusterConditionFailoverPaused = "FailoverPaused"
	// ClusterConditionCertificateUntrusted: True while the cluster is not ready because the hub does not trust the
	// certificate of its API server. Otherwise absent. Not in Karmada.
	ClusterConditionCertificateUntrusted = "CertificateUntrusted"
)

// Reasons of Ready.
//
//reference:reason Ready of Cluster
const (
	// ReasonClusterReady: the cluster is healthy.
	ReasonClusterReady = "ClusterReady"
	// ReasonClusterNotReady: the cluster responds and reports that it is not healthy, or refuses the hub's
	// credentials.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonClusterNotReachable: the cluster does not respond.
	ReasonClusterNotReachable = "ClusterNotReachable"
	// ReasonStatusCollectionFailed: the cluster responds, but the hub cannot read its version, nodes or pods.
	ReasonStatusCollectionFailed = "StatusCollectionFailed"
	// ReasonHeldByAnotherHub: another hub manages the cluster, so this hub writes nothing there. Not in Karmada.
	//
	//reference:reason Ready of Cluster
	//reference:event Warning on Cluster
	ReasonHeldByAnotherHub = "HeldByAnotherHub"
	// ReasonClusterStatusUnknown: the agent of a cluster in Pull mode has stopped reporting.
	ReasonClusterStatusUnknown = "ClusterStatusUnknown"
	// ReasonClusterStatusNeverUpdated: the agent of a cluster in Pull mode has never reported.
	ReasonClusterStatusNeverUpdated = "ClusterStatusNeverUpdated"
)

// The reason of FailoverPaused.
//
//reference:reason FailoverPaused of Cluster
const (
	// ReasonTooManyClustersLost: more clusters were lost than --failover-brake-share allows.
	ReasonTooManyClustersLost = "TooManyClustersLost"
)

// The reason of CertificateUntrusted.
//
//reference:reason CertificateUntrusted of Cluster
const (
	// ReasonCertificateUntrusted: join the cluster again, with its present certificate.
	ReasonCertificateUntrusted = "CertificateUntrusted"
)

// Reasons of WorksKept.
//
//reference:reason WorksKept of Cluster
const (
	// ReasonWorksDeletedByOthers: Works were deleted recently. The message has their number, and why nothing was
	// deleted in the cluster.
	ReasonWorksDeletedByOthers = "WorksDeletedByOthers"
	// ReasonNoWorksDeletedByOthers: no more Works were deleted.
	ReasonNoWorksDeletedByOthers = "NoWorksDeletedByOthers"
)

// Reasons of CompleteAPIEnablements.
//
//reference:reason CompleteAPIEnablements of Cluster
const (
	// ReasonComplete: all kinds are known.
	ReasonComplete = "Complete"
	// ReasonPartial: some API groups could not be read. The message names them.
	ReasonPartial = "Partial"
	// ReasonEmpty: no kind could be read.
	ReasonEmpty = "Empty"
)

// Reasons of CurrentOpenKruise.
//
//reference:reason CurrentOpenKruise of Cluster
const (
	// ReasonSameVersions: all kinds are served in the stored version.
	ReasonSameVersions = "SameVersions"
	// ReasonOlderVersions: some kinds are served only in an older version. The message names them.
	ReasonOlderVersions = "OlderVersions"
)

// The taints that the hub sets. The first two follow the condition Ready, with the effects NoSchedule and NoExecute.
// The third is for a cluster that a user cordons, with NoSchedule.
const (
	TaintNotReady      = "cluster.karmada.io/not-ready"
	TaintUnreachable   = "cluster.karmada.io/unreachable"
	TaintUnschedulable = "cluster.karmada.io/unschedulable"
)

// ClusterStatus is the state of a cluster when the hub last read it.
type ClusterStatus struct {
	// KubernetesVersion of the API server.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements are the kinds that the cluster serves, sorted by group and version.
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions of the cluster. See docs/reference/conditions.md.
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary has the number of nodes.
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// ResourceSummary has the sums of resources over all nodes.
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// RemedyActions are the actions of the Remedies that apply to the cluster, such as TrafficControl, sorted. Only the
	// hub writes them.
	RemedyActions []string `json:"remedyActions,omitempty"`

	// Brakes are the namespaces of the cluster with the annotation argosy.io/hands-off: the hub neither writes nor
	// deletes objects in them. kube-system stands for the whole cluster, and is then the only one. At most 100 are listed.
	Brakes []string `json:"brakes,omitempty"`
}

// APIEnablement lists the kinds of one group and version.
type APIEnablement struct {
	// GroupVersion is the group and version, such as apps/v1.
	GroupVersion string `json:"groupVersion"`

	// Resources are the kinds, sorted by name, without subresources.
	Resources []APIResource `json:"resources,omitempty"`
}

// APIResource is a kind that a cluster serves.
type APIResource struct {
	// Name is the plural name, such as deployments.
	Name string `json:"name"`

	// Kind of the resource, such as Deployment.
	Kind string `json:"kind"`
}

// NodeSummary has the number of nodes of a cluster.
type NodeSummary struct {
	// TotalNum is the number of nodes.
	TotalNum int32 `json:"totalNum,omitempty"`

	// ReadyNum is the number of ready nodes.
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary has the sums of the resources of a cluster.
type ResourceSummary struct {
	// Allocatable is the sum of the allocatable resources of the nodes.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Allocating is the sum of the requests of pods that are not on a node yet.
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// Allocated is the sum of the requests of the pods on nodes.
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatableModelings have the number of nodes of each grade of spec.resourceModels.
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// AllocatableModeling has the number of nodes of a grade.
type AllocatableModeling struct {
	// Grade is the number of the grade.
	Grade uint `json:"grade"`

	// Count is the number of nodes.
	Count int `json:"count"`
}

// Serves reports whether the cluster's last discovery listed the kind in that group and version.
func (s *ClusterStatus) Serves(groupVersion, kind string) bool {
	for i := range s.APIEnablements {
		if s.APIEnablements[i].GroupVersion != groupVersion {
			continue
		}
		for _, r := range s.APIEnablements[i].Resources {
			if r.Kind == kind {
				return true
			}
		}
	}
	return false
}
