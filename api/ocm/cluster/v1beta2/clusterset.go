package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedClusterSet is a group of clusters.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=managedclustersets,scope=Cluster,shortName={mclset,mclsets}
// +kubebuilder:printcolumn:name="Empty",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterSetEmpty")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ManagedClusterSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the clusters of the set. Default: those with the label
	// cluster.open-cluster-management.io/clusterset and the name of the set.
	// +kubebuilder:default={clusterSelector: {selectorType: ExclusiveClusterSetLabel}}
	Spec ManagedClusterSetSpec `json:"spec,omitempty"`

	// Status has the number of clusters. The hub writes it.
	Status ManagedClusterSetStatus `json:"status,omitempty"`
}

// ManagedClusterSetList is a list of ManagedClusterSet.
// +kubebuilder:object:root=true
type ManagedClusterSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManagedClusterSet `json:"items"`
}

// ManagedClusterSetSpec selects the clusters of a set.
type ManagedClusterSetSpec struct {
	// ClusterSelector selects the clusters.
	// +kubebuilder:default={selectorType: ExclusiveClusterSetLabel}
	ClusterSelector ManagedClusterSelector `json:"clusterSelector,omitempty"`

	// ManagedNamespaces are created in each cluster of the set by its klusterlet.
	// +listType=map
	// +listMapKey=name
	ManagedNamespaces []ManagedNamespace `json:"managedNamespaces,omitempty"`
}

// ManagedClusterSelector selects clusters.
type ManagedClusterSelector struct {
	// SelectorType is ExclusiveClusterSetLabel (the label cluster.open-cluster-management.io/clusterset of a cluster has
	// the name of the set) or LabelSelector (labelSelector selects it).
	// +kubebuilder:default=ExclusiveClusterSetLabel
	SelectorType SelectorType `json:"selectorType"`

	// LabelSelector selects clusters by their labels, with selectorType LabelSelector. An empty one selects all clusters;
	// without one, none is selected.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// SelectorType is a way of selecting clusters.
// +kubebuilder:validation:Enum=ExclusiveClusterSetLabel;LabelSelector
type SelectorType string

// The ways in which a set selects its clusters.
const (
	ExclusiveClusterSetLabel SelectorType = "ExclusiveClusterSetLabel"
	LabelSelector            SelectorType = "LabelSelector"
)

// ManagedNamespace is a namespace that each cluster of a set has.
type ManagedNamespace struct {
	// Name of the namespace.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// ManagedClusterSetStatus has the number of clusters of a set.
type ManagedClusterSetStatus struct {
	// Conditions of the set. See docs/reference/conditions.md.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedClusterSetBinding lets the Placements of its namespace select the clusters of a set. It has the name of the
// set. To create one needs permission to create managedclustersets/bind for the set.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=managedclustersetbindings,scope=Namespaced,shortName={mclsetbinding,mclsetbindings}
type ManagedClusterSetBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec names the set.
	Spec ManagedClusterSetBindingSpec `json:"spec,omitempty"`

	// Status reports whether the set exists. The hub writes it.
	Status ManagedClusterSetBindingStatus `json:"status,omitempty"`
}

// ManagedClusterSetBindingList is a list of ManagedClusterSetBinding.
// +kubebuilder:object:root=true
type ManagedClusterSetBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManagedClusterSetBinding `json:"items"`
}

// ManagedClusterSetBindingSpec names a set.
type ManagedClusterSetBindingSpec struct {
	// ClusterSet is the name of the set.
	// +kubebuilder:validation:MinLength=1
	ClusterSet string `json:"clusterSet"`
}

// ManagedClusterSetBindingStatus reports whether the set exists.
type ManagedClusterSetBindingStatus struct {
	// Conditions of the binding. See docs/reference/conditions.md.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The condition type of a ManagedClusterSet.
//
//reference:condition ManagedClusterSet
const (
	// ClusterSetEmpty: no cluster belongs to the set. The message has their number.
	ClusterSetEmpty = "ClusterSetEmpty"
)

// Reasons of ClusterSetEmpty. Tools know them.
//
//reference:reason ClusterSetEmpty of ManagedClusterSet
const (
	// ReasonNoClusterMatched: no cluster belongs to the set.
	ReasonNoClusterMatched = "NoClusterMatched"
	// ReasonClustersSelected: some clusters belong to the set.
	ReasonClustersSelected = "ClustersSelected"
)

// The condition type of a ManagedClusterSetBinding.
//
//reference:condition ManagedClusterSetBinding
const (
	// Bound: the set exists.
	Bound = "Bound"
)

// Reasons of Bound. Tools know them.
//
//reference:reason Bound of ManagedClusterSetBinding
const (
	// ReasonSetBound: the set exists.
	ReasonSetBound = "ClusterSetBound"
	// ReasonSetNotFound: the set does not exist.
	ReasonSetNotFound = "ClusterSetNotFound"
)
