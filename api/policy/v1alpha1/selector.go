package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceSelector selects templates of one kind: by name if name is set, else by label if labelSelector is set, else
// all of the kind. The hub compares group and kind, and ignores the version.
type ResourceSelector struct {
	// APIVersion is the group and version of the templates.
	APIVersion string `json:"apiVersion"`

	// Kind is the kind of the templates.
	Kind string `json:"kind"`

	// Namespace of the templates. In a namespaced policy it must be the namespace of the policy. Default: that namespace;
	// in a cluster-scoped policy, all namespaces.
	Namespace string `json:"namespace,omitempty"`

	// Name selects one template by name. If it is set, labelSelector is not used.
	Name string `json:"name,omitempty"`

	// LabelSelector selects templates by label. An empty selector {} selects all, with the precedence of a label selector.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ClusterAffinity selects member clusters. A cluster must match all fields that are set, and not be in excludeClusters.
// An empty ClusterAffinity selects every cluster.
type ClusterAffinity struct {
	// LabelSelector selects clusters by label.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// FieldSelector selects clusters by provider, region or zone.
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`

	// ClusterNames are the names of the clusters to select. Default: all clusters.
	ClusterNames []string `json:"clusterNames,omitempty"`

	// ExcludeClusters are the names of clusters that are never selected.
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// FieldSelector selects clusters by the fields provider, region and zone, with the operators In and NotIn.
type FieldSelector struct {
	// MatchExpressions must all be true.
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}
