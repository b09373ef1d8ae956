package execute

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// IsDefinition says whether an object is a definition, with all that this means for the objects of its kind.
func IsDefinition(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == definitionKind
}

// TakesAlong says whether objects of a kind, when they are deleted, take others along that nobody named: all in a
// namespace, and all of a definition's kind.
func TakesAlong(gk schema.GroupKind) bool { return gk == namespaceKind || gk == definitionKind }

// EndDefinition decides what becomes of the observed definition, by the objects of its kind: it is deleted if the hub
// made it, and if none of them is left but what is being deleted. more says that there are others than these. Whatever
// stays, reason says.
func EndDefinition(observed *unstructured.Unstructured, objects []Content, more bool,
	workOf func(types.NamespacedName) WorkState) (fate Fate, reason string) {
	if field(observed, "annotations", CreatedAnnotation) != marked {
		return FateReleased, notMade
	}
	var staying, owned []string
	waits := ""
	for _, c := range objects {
		switch name := c.Kind + " " + c.Name; {
		case c.Going:
		case c.Managed && workOf(c.Work) == WorkGoes:
			waits = name
		case len(c.Owners) > 0:
			owned = append(owned, name) // perhaps by what goes first
		default:
			staying = append(staying, name)
		}
	}
	switch {
	case len(staying) > 0:
		return FateReleased, "objects of this kind remain: " + someOf(slices.Concat(staying, owned))
	case waits != "":
		return FateWaits, waits + " is deleted first"
	case len(owned) > 0:
		return FateReleased, "objects of this kind remain: " + someOf(owned)
	case more:
		return FateWaits, "objects of this kind are deleted first"
	}
	return FateDeleted, "the hub created it, and no objects of this kind remain"
}
