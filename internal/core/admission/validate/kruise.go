package validate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// PullSecretsAdvice warns of changed pullSecrets of an ImagePullJob or ImageListPullJob. They are immutable in members.
// The hub sends the other changes without this one, so no member rejects it.
func PullSecretsAdvice(obj, old *unstructured.Unstructured) []string {
	if of := kind.Facts(obj); old == nil || of.Once == nil || of.Pods.Images == nil {
		return nil
	}
	was, is := fields.List(old.Object, "spec", "pullSecrets"), fields.List(obj.Object, "spec", "pullSecrets")
	if len(was)+len(is) == 0 || reflect.DeepEqual(was, is) {
		return nil
	}
	return []string{"spec.pullSecrets: Forbidden: cannot be changed: members that have the object keep the original pullSecrets, and all other changes are applied; to use other pullSecrets, delete and recreate the object"}
}
