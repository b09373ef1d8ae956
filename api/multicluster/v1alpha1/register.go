// Package v1alpha1 holds the wire types of multicluster.x-k8s.io/v1alpha1, the APIs of Kubernetes' SIG Multicluster:
// multi-cluster services as Karmada serves them, and the cluster inventory. It contains types and schemas only.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var GroupVersion = schema.GroupVersion{Group: "multicluster.x-k8s.io", Version: "v1alpha1"}

// The kinds of the group.
var (
	ServiceExportKind  = schema.GroupKind{Group: GroupVersion.Group, Kind: "ServiceExport"}
	ClusterProfileKind = schema.GroupKind{Group: GroupVersion.Group, Kind: "ClusterProfile"}
	DecisionKind       = schema.GroupKind{Group: GroupVersion.Group, Kind: "PlacementDecision"}
	ServiceImportKind  = schema.GroupKind{Group: GroupVersion.Group, Kind: "ServiceImport"}
)

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ServiceExport{}, &ServiceExportList{}, &ServiceImport{}, &ServiceImportList{},
		&ClusterProfile{}, &ClusterProfileList{}, &PlacementDecision{}, &PlacementDecisionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Resource returns the group-resource of a plural name of this package.
func Resource(plural string) schema.GroupResource {
	return GroupVersion.WithResource(plural).GroupResource()
}
