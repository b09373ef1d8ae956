package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedResourceQuota limits the requests of the workloads of a namespace, in all clusters together.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=federatedresourcequotas,scope=Namespaced,categories=karmada-io
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.overall`,name=OVERALL,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.overallUsed`,name=OVERALL_USED,type=string
type FederatedResourceQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the limits.
	Spec FederatedResourceQuotaSpec `json:"spec"`

	// Status has the limits in effect and the usage.
	Status FederatedResourceQuotaStatus `json:"status,omitempty"`
}

// FederatedResourceQuotaList is a list of FederatedResourceQuota.
// +kubebuilder:object:root=true
type FederatedResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FederatedResourceQuota `json:"items"`
}

// FederatedResourceQuotaSpec has the limits of a namespace.
type FederatedResourceQuotaSpec struct {
	// Overall has the limit of each resource for all clusters together. A workload counts with its replicas in its
	// clusters times the requests of one replica. A resource that is not listed has no limit.
	Overall corev1.ResourceList `json:"overall"`

	// StaticAssignments are the limits of single clusters. Each becomes a ResourceQuota in that cluster, with the name and
	// namespace of this quota. Clusters that are not listed get none. The scheduler does not divide replicas by them.
	StaticAssignments []StaticClusterAssignment `json:"staticAssignments,omitempty"`
}

// StaticClusterAssignment has the limits of one cluster.
type StaticClusterAssignment struct {
	// ClusterName is the name of the cluster. It may join later.
	ClusterName string `json:"clusterName"`

	// Hard has the limit of each resource in the cluster. Each resource must be in overall, and the limits of all clusters
	// together must not exceed it.
	Hard corev1.ResourceList `json:"hard"`
}

// FederatedResourceQuotaStatus has the limits in effect and the usage.
type FederatedResourceQuotaStatus struct {
	// Overall are the limits in effect.
	Overall corev1.ResourceList `json:"overall,omitempty"`

	// OverallUsed is the usage of the namespace in all clusters, for the resources in overall.
	OverallUsed corev1.ResourceList `json:"overallUsed,omitempty"`

	// AggregatedStatus has the usage that clusters report for their ResourceQuotas, for clusters in staticAssignments.
	AggregatedStatus []ClusterQuotaStatus `json:"aggregatedStatus,omitempty"`
}

// ClusterQuotaStatus is the status of the ResourceQuota in one cluster.
type ClusterQuotaStatus struct {
	// ClusterName is the name of the cluster.
	ClusterName string `json:"clusterName"`

	corev1.ResourceQuotaStatus `json:",inline"`
}

const (
	// FederatedResourceQuotaNamespaceLabel and FederatedResourceQuotaNameLabel name the quota of a Work with a
	// ResourceQuota.
	FederatedResourceQuotaNamespaceLabel = "federatedresourcequota.karmada.io/namespace"
	FederatedResourceQuotaNameLabel      = "federatedresourcequota.karmada.io/name"
)
