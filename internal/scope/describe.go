package scope

import (
	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Describe names a binding as messages of Karmada do.
func Describe(b workv1alpha2.Binding) string {
	if b.GetNamespace() == "" {
		return "clusterResourceBinding(" + b.GetName() + ")"
	}
	return "resourceBinding(" + b.GetNamespace() + "/" + b.GetName() + ")"
}

// TemplateOf names the template of a binding in events: who wrote it looks there when it does not arrive.
func TemplateOf(b workv1alpha2.Binding) *corev1.ObjectReference {
	ref := b.BindingSpec().Resource
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		UID: ref.UID}
}
