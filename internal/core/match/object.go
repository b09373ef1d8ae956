package match

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
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
