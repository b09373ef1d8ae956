package kruise

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status is a status of an object of that kind in its version, whichever of the two versions it is of: what a member
// reports does not say. What neither version knows stays, since scripts report what they like. status is not changed;
// kinds of one version have theirs.
func Status(kind schema.GroupVersionKind, status map[string]any) map[string]any {
	k, known := kinds()[kind.GroupKind()]
	if !known || k.schemas[kind.Version] == nil {
		return status
	}
	fields := func(version string) map[string]bool {
		of := map[string]bool{}
		for name := range k.schemas[version].Properties["status"].Properties {
			of[name] = true
		}
		return of
	}
	// As if it were of the other version: what is of this one already is left alone by rules that look for other names.
	made := object(k.translate(map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
		"status": status}, kind.Version), "status")
	was, is := fields(otherVersion(kind.Version)), fields(kind.Version)
	out := maps.Clone(status)
	maps.DeleteFunc(out, func(name string, _ any) bool { return was[name] && !is[name] })
	maps.Copy(out, made)
	return out
}
