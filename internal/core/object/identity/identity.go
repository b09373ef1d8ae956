// Package identity identifies the object of a manifest, and rejects a manifest that became another object on its way.
// Overrides and scripts of users may change an object's content, never its identity: the hub writes to members with
// rights that its users do not have.
package identity

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Object is what makes an object this one and no other. Its version does not: a member is sent one that it serves.
type Object struct{ Group, Kind, Namespace, Name string }

// FromManifest returns the identity of a manifest. A field that is not a string counts as absent; Keeps is stricter.
func FromManifest(manifest *unstructured.Unstructured) Object {
	gv, _ := schema.ParseGroupVersion(manifest.GetAPIVersion())
	return Object{gv.Group, manifest.GetKind(), manifest.GetNamespace(), manifest.GetName()}
}

func (o Object) String() string { return text.Object(o.GroupKind().String(), o.Namespace, o.Name) }

// GroupKind returns the kind of the object.
func (o Object) GroupKind() schema.GroupKind { return schema.GroupKind{Group: o.Group, Kind: o.Kind} }

// ChangedError reports that a manifest became another object.
type ChangedError struct {
	Object Object
	// Field is the one that has changed, Is what it would be.
	Field, Is string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s of %s would become %s; an override cannot change the group, kind, namespace or name of an object", e.Field, e.Object, e.Is)
}

// Keeps reports whether a manifest is still the object, whatever its version: a *ChangedError if it is not.
func (o Object) Keeps(manifest *unstructured.Unstructured) error {
	changed := func(field string, is any) error {
		if is == nil {
			return &ChangedError{o, field, "empty"}
		}
		return &ChangedError{o, field, fmt.Sprintf("%#v", is)}
	}
	apiVersion, _ := manifest.Object["apiVersion"].(string)
	// Parsed strictly: what others take for no group at all must not pass for the core group.
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, version = "", apiVersion
	}
	if version == "" || grouped && group == "" || strings.Contains(version, "/") || group != o.Group {
		return changed("apiVersion", manifest.Object["apiVersion"])
	}
	if kind, ok := manifest.Object["kind"].(string); !ok || kind != o.Kind {
		return changed("kind", manifest.Object["kind"])
	}
	metadata, ok := manifest.Object["metadata"].(map[string]any)
	if !ok && manifest.Object["metadata"] != nil {
		return changed("metadata", manifest.Object["metadata"])
	}
	if name, ok := metadata["name"].(string); name != o.Name || !ok && metadata["name"] != nil {
		return changed("metadata.name", metadata["name"])
	}
	if namespace, ok := metadata["namespace"].(string); namespace != o.Namespace || !ok && metadata["namespace"] != nil {
		return changed("metadata.namespace", metadata["namespace"])
	}
	return nil
}
