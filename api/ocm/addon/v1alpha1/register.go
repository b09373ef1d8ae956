// Package v1alpha1 holds the wire types of addon.open-cluster-management.io/v1alpha1, compatible with the API of Open
// Cluster Management. It contains types and schemas only.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var GroupVersion = schema.GroupVersion{Group: "addon.open-cluster-management.io", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ManagedClusterAddOn{}, &ManagedClusterAddOnList{}, &ClusterManagementAddOn{},
		&ClusterManagementAddOnList{}, &AddOnDeploymentConfig{}, &AddOnDeploymentConfigList{}, &AddOnTemplate{},
		&AddOnTemplateList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Resource returns the group-resource of a plural name of this package.
func Resource(plural string) schema.GroupResource {
	return GroupVersion.WithResource(plural).GroupResource()
}
