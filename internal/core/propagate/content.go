package propagate

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Digest identifies the content of a template that users and Works see: everything but status, claims, and server-set
// fields. Its form is "<what users write>", or "<what users write>.<the rest>" if there is a rest: *.karmada.io labels
// and annotations, and podsToDelete, which the hub clears when the pods are gone.
func Digest(template *unstructured.Unstructured) string {
	own, system := map[string]any{}, map[string]any{}
	if pods := fleet.PodsToDelete(template); pods != nil {
		system["spec/podsToDelete"] = pods
		template = fleet.WithoutPods(template, pods)
	}
	for key, value := range template.Object {
		switch key {
		case "metadata", "status", "apiVersion", "kind":
		default:
			own[key] = value
		}
	}
	for field, values := range map[string]map[string]string{"labels": template.GetLabels(),
		"annotations": template.GetAnnotations()} {
		for key, value := range values {
			switch {
			case claimKey(key) || key == wellknown.AwaitingChangeAnnotation:
			case ofKarmada(key):
				system[field+"/"+key] = value
			default:
				// Beside the fields of the object, which have no slash in their names.
				own[field+"/"+key] = value
			}
		}
	}
	if len(system) == 0 {
		return sum(own)
	}
	return sum(own) + "." + sum(system)
}

// userPart returns the part of a digest that only users change.
func userPart(digest string) string {
	user, _, _ := strings.Cut(digest, ".")
	return user
}

// SameContent reports whether the change of a template from was to is has no effect: only its status or server-set
// fields differ. The start of a deletion has an effect.
func SameContent(was, is *unstructured.Unstructured) bool {
	if was.GetUID() != is.GetUID() || (was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil) ||
		!reflect.DeepEqual(was.GetLabels(), is.GetLabels()) || !reflect.DeepEqual(was.GetAnnotations(), is.GetAnnotations()) {
		return false
	}
	return covers(was.Object, is.Object) && covers(is.Object, was.Object)
}

// covers reports whether every field of a that users write is the same in b.
func covers(a, b map[string]any) bool {
	for key, value := range a {
		if key != "metadata" && key != "status" && !reflect.DeepEqual(value, b[key]) {
			return false
		}
	}
	return true
}

// claimKey reports whether a key belongs to a policy's claim. A change of it does not concern the Works.
func claimKey(key string) bool {
	return strings.HasPrefix(key, "propagationpolicy.karmada.io/") ||
		strings.HasPrefix(key, "clusterpropagationpolicy.karmada.io/")
}

// ofKarmada reports whether a key belongs to Karmada, so that its change is not a user's.
func ofKarmada(key string) bool { return strings.Contains(key, ".karmada.io") }

// sum returns a digest that is short enough for an annotation and long enough to avoid collisions.
func sum(content map[string]any) string {
	digest := sha256.Sum256([]byte(text.JSON(content))) // the keys are sorted
	return hex.EncodeToString(digest[:16])
}
