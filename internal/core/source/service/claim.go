package service

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// Claim returns the Service claimed by the MultiClusterService, so that policies ignore it; nil if it is claimed
// already.
func Claim(template *unstructured.Unstructured, s *networkingv1alpha1.MultiClusterService) *unstructured.Unstructured {
	want := template.DeepCopy()
	changed := propagate.Unclaim(want)
	if !mark(want, policyv1alpha1.ClaimedByLabel, s) && !changed {
		return nil
	}
	return want
}

// mark sets the claim of s on obj, with the kind under the given key, and reports whether it changed.
func mark(obj metav1.Object, key string, s *networkingv1alpha1.MultiClusterService) bool {
	labels, notes := obj.GetLabels(), obj.GetAnnotations()
	fields.SetLabel(obj, key, networkingv1alpha1.MultiClusterServiceKind)
	if id := s.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel]; id != "" {
		fields.SetLabel(obj, networkingv1alpha1.MultiClusterServicePermanentIDLabel, id)
	}
	fields.SetAnnotation(obj, networkingv1alpha1.MultiClusterServiceNamespaceKey, s.Namespace)
	fields.SetAnnotation(obj, networkingv1alpha1.MultiClusterServiceNameKey, s.Name)
	return !maps.Equal(labels, obj.GetLabels()) || !maps.Equal(notes, obj.GetAnnotations())
}

// Claims reports whether the owner claims obj, a Service or its binding.
func Claims(me Owner, obj metav1.Object) bool {
	labels, notes := obj.GetLabels(), obj.GetAnnotations()
	return (labels[policyv1alpha1.ClaimedByLabel] == me.Kind || labels[workv1alpha2.BindingManagedByLabel] == me.Kind) &&
		notes[networkingv1alpha1.MultiClusterServiceNamespaceKey] == me.Namespace &&
		notes[networkingv1alpha1.MultiClusterServiceNameKey] == me.Name
}

// Unclaim removes the claim from obj in place.
func Unclaim(obj metav1.Object) {
	labels, notes := maps.Clone(obj.GetLabels()), maps.Clone(obj.GetAnnotations())
	for _, key := range []string{policyv1alpha1.ClaimedByLabel, workv1alpha2.BindingManagedByLabel,
		networkingv1alpha1.MultiClusterServicePermanentIDLabel} {
		delete(labels, key)
	}
	for _, key := range []string{networkingv1alpha1.MultiClusterServiceNamespaceKey,
		networkingv1alpha1.MultiClusterServiceNameKey} {
		delete(notes, key)
	}
	obj.SetLabels(labels)
	obj.SetAnnotations(notes)
}

// Binding returns the binding that places a claimed Service. existing is the binding with its name, or nil. id is for a
// new binding. Its errors come from propagate.
//
// A Service of the same name in a member stays as it is, unless the Service on the hub is annotated to overwrite it.
func Binding(template *unstructured.Unstructured, s *networkingv1alpha1.MultiClusterService, clusters Clusters,
	existing workv1alpha2.Binding, id string) (workv1alpha2.Binding, error) {
	// Use a policy with the same placement.
	policy := &policyv1alpha1.PropagationPolicy{}
	policy.Namespace = s.Namespace
	// Include missing clusters: an empty list would select all clusters.
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: append(clusters.Union(),
		clusters.Missing...)}
	b, err := propagate.Binding(template, policy, propagate.Meaning{ID: id}, existing)
	if err != nil {
		return nil, err
	}
	mark(b, workv1alpha2.BindingManagedByLabel, s)
	return b, nil
}
