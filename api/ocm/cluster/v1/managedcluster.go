package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedCluster is a member cluster in the API of Open Cluster Management. The Cluster of the same name is the same
// cluster in the API of Karmada. Whichever was registered first is the source of the other, see docs/ocm.md.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=managedclusters,scope=Cluster,shortName={mcl,mcls}
// +kubebuilder:printcolumn:name="Hub Accepted",type=boolean,JSONPath=`.spec.hubAcceptsClient`
// +kubebuilder:printcolumn:name="Managed Cluster URLs",type=string,JSONPath=`.spec.managedClusterClientConfigs[*].url`
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="ManagedClusterJoined")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ManagedCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the settings of the cluster.
	Spec ManagedClusterSpec `json:"spec"`

	// Status is the state of the cluster. Its klusterlet and the hub write it.
	Status ManagedClusterStatus `json:"status,omitempty"`
}

// ManagedClusterList is a list of ManagedCluster.
// +kubebuilder:object:root=true
type ManagedClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManagedCluster `json:"items"`
}

// ManagedClusterSpec has the settings of a cluster.
type ManagedClusterSpec struct {
	// ManagedClusterClientConfigs are the addresses of the API server of the cluster. The hub does not connect to them.
	ManagedClusterClientConfigs []ClientConfig `json:"managedClusterClientConfigs,omitempty"`

	// HubAcceptsClient gives the klusterlet of the cluster its rights on the hub; false takes them away. To set it to true
	// needs permission to update managedclusters/accept in the group register.open-cluster-management.io. Default: false.
	HubAcceptsClient bool `json:"hubAcceptsClient"`

	// LeaseDurationSeconds is the interval in seconds at which the klusterlet renews its Lease. After five intervals
	// without a renewal, the condition ManagedClusterConditionAvailable becomes Unknown. 0 means 60.
	// +kubebuilder:default=60
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`

	// Taints of the cluster. Placements that do not tolerate them do not select it. The Cluster of the same name gets them
	// too.
	Taints []Taint `json:"taints,omitempty"`
}

// ClientConfig is an address of an API server.
type ClientConfig struct {
	// URL of the API server. It must begin with https://.
	URL string `json:"url"`

	// CABundle has the PEM-encoded certificates of the authorities that sign the certificate of the API server.
	CABundle []byte `json:"caBundle,omitempty"`
}

// Taint keeps Placements from selecting a cluster.
type Taint struct {
	// Key of the taint.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`

	// Value of the taint.
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`

	// Effect on Placements that do not tolerate the taint. NoSelect: they do not select the cluster, also if they did
	// before. NoSelectIfNew: they do not select it unless they did before. PreferNoSelect has no effect yet.
	Effect TaintEffect `json:"effect"`

	// TimeAdded is when the taint was added or changed. The hub sets it.
	// +kubebuilder:validation:Format=date-time
	// +nullable
	TimeAdded metav1.Time `json:"timeAdded,omitempty"`
}

// TaintEffect is the effect of a taint.
// +kubebuilder:validation:Enum=NoSelect;PreferNoSelect;NoSelectIfNew
type TaintEffect string

// The effects of taints.
const (
	NoSelect       TaintEffect = "NoSelect"
	PreferNoSelect TaintEffect = "PreferNoSelect"
	NoSelectIfNew  TaintEffect = "NoSelectIfNew"
)

// ManagedClusterStatus is the state of a cluster.
type ManagedClusterStatus struct {
	// Conditions of the cluster. See docs/reference/conditions.md.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Capacity has the sums of the resources of all nodes.
	Capacity ResourceList `json:"capacity,omitempty"`

	// Allocatable has the sums of the resources that pods can use, of all nodes that accept pods.
	Allocatable ResourceList `json:"allocatable,omitempty"`

	// Version of the cluster.
	Version ManagedClusterVersion `json:"version,omitempty"`

	// ClusterClaims are the ClusterClaims of the cluster.
	ClusterClaims []ManagedClusterClaim `json:"clusterClaims,omitempty"`

	// ManagedNamespaces are the namespaces that the ManagedClusterSets of the cluster require in it. The klusterlet
	// creates them.
	// +listType=map
	// +listMapKey=clusterSet
	// +listMapKey=name
	ManagedNamespaces []ClusterSetManagedNamespace `json:"managedNamespaces,omitempty"`
}

// ResourceList has quantities by the name of the resource.
type ResourceList map[corev1.ResourceName]resource.Quantity

// ManagedClusterVersion is the version of a cluster.
type ManagedClusterVersion struct {
	// Kubernetes is the version of the API server, such as v1.36.0.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// ManagedClusterClaim is a property of a cluster.
type ManagedClusterClaim struct {
	// Name of the property, such as id.k8s.io.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Value of the property.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// ClusterSetManagedNamespace is a namespace that a ManagedClusterSet requires in a cluster.
type ClusterSetManagedNamespace struct {
	// Name of the namespace.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// ClusterSet is the ManagedClusterSet that requires the namespace.
	ClusterSet string `json:"clusterSet"`

	// Conditions of the namespace. The klusterlet writes NamespaceAvailable.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
