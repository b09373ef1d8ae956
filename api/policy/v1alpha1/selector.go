package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceSelector selects templates of one kind.
// With a name it selects that one; else by label; with neither, all of the kind.
// Argosy matches by group and kind: the version written here may be any that the kind has.
type ResourceSelector struct {
	// APIVersion is the group and version of the templates.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind of the templates.
	// +required
	Kind string `json:"kind"`

	// Namespace of the templates. In a namespaced policy it defaults to the policy's and may be no other.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name selects one template; it wins over labelSelector.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector selects templates by label. An empty, non-nil selector matches all, with the priority of a label
	// selector.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ClusterAffinity selects member clusters. A cluster must match all fields that are set. Exclude always wins.
// An empty one allows every cluster.
type ClusterAffinity struct {
	// LabelSelector filters clusters by their labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// FieldSelector filters clusters by provider, region or zone.
	// +optional
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`

	// ClusterNames lists the clusters that may be used.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// ExcludeClusters lists the clusters that may not be used.
	// +optional
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// FieldSelector filters clusters by the fields provider, region and zone, with the operators In and NotIn.
type FieldSelector struct {
	// MatchExpressions must all hold.
	// +optional
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}
