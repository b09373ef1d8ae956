package interpret

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Requirements returns the requirements of a pod of obj's first pod template; nil if there is none. An unknown kind has
// one if there are containers at .spec.template; then nothing is an error.
func Requirements(obj *unstructured.Unstructured) (*workv1alpha2.ReplicaRequirements, error) {
	if paths := PodTemplates(obj); len(paths) > 0 {
		t, err := PodTemplate(obj, paths[0])
		if err != nil {
			return nil, err
		}
		return PodRequirements(t, obj.GetNamespace()), nil
	}
	guess := []string{"spec", "template"}
	if fields.List(obj.Object, "spec", "template", "spec", "containers") == nil {
		return nil, nil
	}
	t, err := PodTemplate(obj, guess)
	if err != nil {
		return nil, nil
	}
	return PodRequirements(t, obj.GetNamespace()), nil
}
