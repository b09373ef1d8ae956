package interpret

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Requirements returns the requirements of a pod of obj's first pod template; nil if there is none. An unknown kind has
// one if there are containers at .spec.template; then nothing is an error.
func Requirements(obj *unstructured.Unstructured) (*workv1alpha2.ReplicaRequirements, error) {
	path, known := FirstPodTemplate(obj)
	if path == nil {
		return nil, nil
	}
	t, err := PodTemplate(obj, path)
	switch {
	case err == nil:
		return PodRequirements(t, obj.GetNamespace()), nil
	case known:
		return nil, err
	}
	return nil, nil
}

// FirstPodTemplate returns the path of obj's first pod template; nil if there is none. known is false for the guess
// .spec.template of an unknown kind, which has containers there.
func FirstPodTemplate(obj *unstructured.Unstructured) (path []string, known bool) {
	if paths := PodTemplates(obj); len(paths) > 0 {
		return append([]string{}, paths[0]...), true // that of a Pod is empty, and not nil
	}
	if fields.List(obj.Object, "spec", "template", "spec", "containers") == nil {
		return nil, false
	}
	return []string{"spec", "template"}, false
}
