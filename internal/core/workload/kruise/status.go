package kruise

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status converts the status of an object of a kind to that kind's version, whichever version it is of: a member's
// report does not name it. Unknown fields stay, since scripts may report any. status is not changed.
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
