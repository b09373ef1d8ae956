// Package v1alpha1 holds the wire types of release.argosy.io/v1alpha1, Argosy's own.
// It contains types and schemas only.
//
// +kubebuilder:object:generate=true
// +groupName=release.argosy.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var GroupVersion = schema.GroupVersion{Group: "release.argosy.io", Version: "v1alpha1"}

// Resource turns a plural into a GroupResource of this group.
func Resource(plural string) schema.GroupResource {
	return GroupVersion.WithResource(plural).GroupResource()
}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &EnclosedManifest{}, &EnclosedManifestList{}, &Release{}, &ReleaseList{},
		&ReleaseStrategy{}, &ReleaseStrategyList{}, &ReleaseApproval{}, &ReleaseApprovalList{},
		&ReleaseRevision{}, &ReleaseRevisionList{}, &ReleaseGuard{}, &ReleaseGuardList{},
		&ReleaseCheck{}, &ReleaseCheckList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
