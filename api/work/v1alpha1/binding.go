package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceBinding is the former version of that of v1alpha2. The hub serves and converts it, and never stores it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=resourcebindings,scope=Namespaced,shortName=rb,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name=`SCHEDULED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name=`FULLYAPPLIED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the placement of the template.
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the state of the object in each cluster. The hub writes it.
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBinding.
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// ClusterResourceBinding is the former version of that of v1alpha2. The hub converts it, and never stores it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterresourcebindings,scope=Cluster,shortName=crb,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name=`SCHEDULED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name=`FULLYAPPLIED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the placement of the template.
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the state of the object in each cluster. The hub writes it.
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBinding.
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec is the placement of a template.
type ResourceBindingSpec struct {
	// Resource is the template.
	Resource ObjectReference `json:"resource"`

	// Clusters are the clusters and replicas that the scheduler chose.
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// ObjectReference identifies a template, with its replicas.
type ObjectReference struct {
	// APIVersion of the template.
	APIVersion string `json:"apiVersion"`

	// Kind of the template.
	Kind string `json:"kind"`

	// Namespace of the template.
	Namespace string `json:"namespace,omitempty"`

	// Name of the template.
	Name string `json:"name"`

	// ResourceVersion of the template when the hub last read it.
	ResourceVersion string `json:"resourceVersion,omitempty"`

	// ReplicaResourceRequirements are the resources that one replica requests, such as cpu: 100m.
	ReplicaResourceRequirements corev1.ResourceList `json:"resourcePerReplicas,omitempty"`

	// Replicas is the number of replicas of the template.
	Replicas int32 `json:"replicas,omitempty"`
}

// TargetCluster is a cluster in which the template is placed.
type TargetCluster struct {
	// Name of the cluster.
	Name string `json:"name"`

	// Replicas is the number of replicas in the cluster.
	Replicas int32 `json:"replicas,omitempty"`
}

// ResourceBindingStatus is the state of the object in each cluster.
type ResourceBindingStatus struct {
	// Conditions of the binding. See docs/reference/conditions.md.
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is the state of the object in each cluster.
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

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
}
