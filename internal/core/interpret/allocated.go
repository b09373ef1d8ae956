package interpret

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/fields"
)

// serviceKind is the kind whose fields an API server allocates from ranges of its own.
var serviceKind = schema.GroupKind{Kind: "Service"}

// allocated are the fields of a Service's spec that an API server allocates unless the user sets them. It also
// allocates clusterIP and clusterIPs, which are never sent, and the nodePort of each port.
var allocated = []string{"healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"}

// KeepsManagedFields says whether DropAllocated needs the managed fields of objects of this kind.
func KeepsManagedFields(kind schema.GroupKind) bool { return kind == serviceKind }

// DropAllocated removes from a Service, in place, what the API server that stores it allocated. A field is the user's
// if somebody owns it in metadata.managedFields, or if the last applied configuration has it. If neither is there, all
// fields are taken for the user's.
func DropAllocated(obj *unstructured.Unstructured) {
	if obj.GroupVersionKind().GroupKind() != serviceKind {
		return
	}
	spec := fields.Object(obj.Object, "spec")
	u := userFieldsOf(obj)
	if spec == nil || !u.known() {
		return
	}
	for _, name := range allocated {
		if !u.set(name) {
			delete(spec, name)
		}
	}
	ports, _ := spec["ports"].([]any)
	for i, p := range ports {
		port, ok := p.(map[string]any)
		if ok && port["nodePort"] != nil && !u.setNodePort(port) {
			ports = slices.Clone(ports)
			port = maps.Clone(port)
			delete(port, "nodePort")
			ports[i], spec["ports"] = port, ports
		}
	}
}

// userFields tells which fields of an object users wrote.
type userFields struct {
	// owned are the specs of all sets of managed fields, applied is the spec of the last applied configuration; both may
	// be missing.
	owned   []map[string]any
	applied map[string]any
}

func userFieldsOf(obj *unstructured.Unstructured) (u userFields) {
	// Not by GetManagedFields, which decodes and encodes all.
	entries, _ := fields.At(obj.Object, "metadata", "managedFields").([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if fields.Text(entry, "subresource") != "" {
			continue
		}
		if spec := fields.Object(entry, "fieldsV1", "f:spec"); spec != nil {
			u.owned = append(u.owned, spec)
		}
	}
	if text := obj.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; text != "" {
		var applied map[string]any
		if json.Unmarshal([]byte(text), &applied) == nil {
			u.applied = fields.Object(applied, "spec")
		}
	}
	return u
}

// known says whether there is any record of what users wrote.
func (u userFields) known() bool { return len(u.owned) > 0 || u.applied != nil }

// set says whether a user wrote a field of the spec.
func (u userFields) set(name string) bool {
	if u.applied[name] != nil {
		return true
	}
	return slices.ContainsFunc(u.owned, func(spec map[string]any) bool { return spec["f:"+name] != nil })
}

// setNodePort says whether a user wrote the node port of a port.
func (u userFields) setNodePort(port map[string]any) bool {
	applied, _ := u.applied["ports"].([]any)
	for _, p := range applied {
		if own, ok := p.(map[string]any); ok && samePort(own, port) && own["nodePort"] != nil {
			return true
		}
	}
	for _, spec := range u.owned {
		ports := fields.Object(spec, "f:ports")
		if ports != nil && len(ports) == 0 {
			return true // the list as a whole
		}
		for key, below := range ports {
			text, isKey := strings.CutPrefix(key, "k:")
			var own map[string]any
			if !isKey || json.Unmarshal([]byte(text), &own) != nil || !samePort(own, port) {
				continue
			}
			if set, _ := below.(map[string]any); set["f:nodePort"] != nil {
				return true
			}
		}
	}
	return false
}

// samePort says whether two ports of a Service have the same key.
func samePort(a, b map[string]any) bool {
	key := func(p map[string]any) (number int64, protocol string) {
		return fields.Number(p, "port"), cmp.Or(fields.Text(p, "protocol"), string(corev1.ProtocolTCP))
	}
	x, xp := key(a)
	y, yp := key(b)
	return x == y && xp == yp
}
