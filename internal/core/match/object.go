package match

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// SameObject reports whether two references name the same object, in any version.
func SameObject(a, b configv1alpha1.DependentObjectReference) bool {
	return GroupKind(a.APIVersion, a.Kind) == GroupKind(b.APIVersion, b.Kind) &&
		a.Namespace == b.Namespace && a.Name == b.Name
}

// ParseSelector reads a label selector from an object as JSON has it.
func ParseSelector(raw map[string]any) (labels.Selector, error) {
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&s)
}

// KindDefined returns the kind that a CustomResourceDefinition defines.
func KindDefined(crd *unstructured.Unstructured) schema.GroupKind {
	return schema.GroupKind{Group: fields.Text(crd.Object, "spec", "group"),
		Kind: fields.Text(crd.Object, "spec", "names", "kind")}
}
