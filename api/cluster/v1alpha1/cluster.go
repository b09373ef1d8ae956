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

	// Spec is how the cluster is reached and where it stands.
	// +required
	Spec ClusterSpec `json:"spec"`

	// Status is what was last seen of the cluster.
	// +optional
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

// The sync modes: the hub writes into the member, or an agent in the member reads from the hub.
const (
	Push ClusterSyncMode = "Push"
	Pull ClusterSyncMode = "Pull"
)

// ClusterSpec is how a cluster is reached and where it stands.
type ClusterSpec struct {
	// ID identifies the cluster: its property cluster.clusterset.k8s.io, else the UID of its namespace kube-system.
	// +kubebuilder:validation:MaxLength=128000
	// +optional
	ID string `json:"id,omitempty"`

	// SyncMode is Push or Pull.
	// +required
	SyncMode ClusterSyncMode `json:"syncMode"`

	// APIEndpoint is the URL of the cluster's API server.
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef is the secret with the keys token and caBundle.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ImpersonatorSecretRef is the secret with the key token, used to act as a user in the member.
	// +optional
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`

	// InsecureSkipTLSVerification trusts any certificate of the member. Not for production.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// ProxyURL is the proxy through which the member is reached: http, https or socks5.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`

	// ProxyHeader are headers sent to the proxy; a comma separates several values.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Provider of the cluster.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Region of the cluster.
	// +optional
	Region string `json:"region,omitempty"`

	// Zone is deprecated; it is stored as zones.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Zones of the cluster.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Taints repel what does not tolerate them.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// ResourceModels are grades of nodes by what they have free.
	// +optional
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// LocalSecretReference names a secret of the hub.
type LocalSecretReference struct {
	// Namespace of the secret.
	// +required
	Namespace string `json:"namespace"`

	// Name of the secret.
	// +required
	Name string `json:"name"`
}

// ResourceModel is a grade of nodes.
type ResourceModel struct {
	// Grade is the grade's number.
	// +required
	Grade uint `json:"grade"`

	// Ranges of free resources of the nodes of this grade.
	// +required
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange is a half-open range [min,max).
type ResourceModelRange struct {
	// Name of the resource.
	// +required
	Name corev1.ResourceName `json:"name"`

	// Min is part of the range.
	// +required
	Min resource.Quantity `json:"min"`

	// Max is not part of the range.
	// +required
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
	// ClusterConditionWorksKept: True after Works of the cluster were deleted by somebody other than the hub. Their
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
	// ReasonHeldByAnotherHub: another hub manages the cluster, so this one writes nothing there. Not in Karmada.
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

// The taints that Argosy itself sets: the first two by the condition Ready, with the effects NoSchedule and NoExecute,
// and the third when a user cordons a cluster, with NoSchedule.
const (
	TaintNotReady      = "cluster.karmada.io/not-ready"
	TaintUnreachable   = "cluster.karmada.io/unreachable"
	TaintUnschedulable = "cluster.karmada.io/unschedulable"
)

// ClusterStatus is what was last seen of a cluster.
type ClusterStatus struct {
	// KubernetesVersion of the API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements are the kinds the cluster serves, sorted by group and version.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions: Ready, CompleteAPIEnablements.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary counts nodes.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// ResourceSummary sums resources.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// RemedyActions are the actions that remedies ask for.
	// +optional
	RemedyActions []string `json:"remedyActions,omitempty"`
}

// APIEnablement are the kinds of one group and version.
type APIEnablement struct {
	// GroupVersion such as apps/v1.
	// +required
	GroupVersion string `json:"groupVersion"`

	// Resources served, sorted by name, without subresources.
	// +optional
	Resources []APIResource `json:"resources,omitempty"`
}

// APIResource is a kind that is served.
type APIResource struct {
	// Name is the plural.
	// +required
	Name string `json:"name"`

	// Kind of the resource.
	// +required
	Kind string `json:"kind"`
}

// NodeSummary counts nodes.
type NodeSummary struct {
	// TotalNum is the number of nodes.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`

	// ReadyNum is the number of ready nodes.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary sums the resources of a cluster.
type ResourceSummary struct {
	// Allocatable is the sum over the nodes.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Allocating is requested by pods without a node.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// Allocated is requested by pods on nodes.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatableModelings counts the nodes of each grade.
	// +optional
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// AllocatableModeling counts the nodes of a grade.
type AllocatableModeling struct {
	// Grade is the grade's number.
	// +required
	Grade uint `json:"grade"`

	// Count of nodes.
	// +required
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
