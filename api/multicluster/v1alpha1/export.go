package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServiceExport exports the Service of the same name and namespace. Clusters in which a policy places the ServiceExport
// provide it to clusters in which a policy places a ServiceImport of that name. With mcs: auto in the configuration of
// the hub, a ServiceExport in a cluster provides the Service to all clusters with the namespace, without policies.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=serviceexports,shortName=svcex
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`Age`,type=date
type ServiceExport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has labels and annotations for the ServiceImport.
	Spec ServiceExportSpec `json:"spec,omitempty"`

	// Status of the export. The hub writes it in clusters, with mcs: auto.
	Status ServiceExportStatus `json:"status,omitempty"`
}

// ServiceExportSpec has labels and annotations for the ServiceImport.
type ServiceExportSpec struct {
	// ExportedLabels are labels of the ServiceImport.
	ExportedLabels map[string]string `json:"exportedLabels,omitempty"`
	// ExportedAnnotations are annotations of the ServiceImport.
	ExportedAnnotations map[string]string `json:"exportedAnnotations,omitempty"`
}

// ServiceExportStatus is the status of an export.
type ServiceExportStatus struct {
	// Conditions are Valid, Ready and Conflict. With policies, the hub writes none: see the status of the ServiceImport.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ServiceExportList is a list of ServiceExport.
// +kubebuilder:object:root=true
type ServiceExportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceExport `json:"items"`
}

// Conditions of a ServiceExport in a cluster, with mcs: auto.
//
//reference:condition ServiceExport
const (
	// ConditionValid: True while the Service can be exported.
	ConditionValid = "Valid"
	// ConditionReady: True while the hub exports the Service to the other clusters.
	ConditionReady = "Ready"
	// ConditionConflict: True while the Services of the same name that clusters export differ.
	ConditionConflict = "Conflict"
)
