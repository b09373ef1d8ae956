package interpret

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// serviceKind is the kind with fields that an API server allocates from its own ranges.
var serviceKind = schema.GroupKind{Kind: "Service"}

// allocated are the fields of a Service's spec that an API server allocates unless they are set, and that each member
// allocates itself. The hub's also allocates clusterIP and clusterIPs, which are never sent, and the nodePort of each
// port.
var allocated = []string{"healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"}

// KeepsManagedFields reports whether DropAllocated needs the managed fields of objects of this kind.
func KeepsManagedFields(kind schema.GroupKind) bool { return kind == serviceKind }

// DropAllocated removes, in place, what the hub's API server allocated in a Service, and marks the node ports that it
// allocated: all members use them where they are free. A field belongs to the user if metadata.managedFields or the
// last applied configuration contains it. Without both, all fields belong to the user.
func DropAllocated(obj *unstructured.Unstructured) {
	if obj.GroupVersionKind().GroupKind() != serviceKind {
		return
	}
	spec := fields.Object(obj.Object, "spec")
	dropKeys(obj.Object, func(key string) bool { return key == wellknown.AllocatedNodePortsAnnotation },
		"metadata", "annotations") // of a copy from a member
	u := userFieldsOf(obj)
	if spec == nil || !u.known() {
		return
	}
	for _, name := range allocated {
		if !u.set(name) {
			delete(spec, name)
		}
	}
	var marks []string
	for _, port := range fields.Objects(spec, "ports") {
		if port["nodePort"] != nil && !u.setNodePort(port) {
			marks = append(marks, nodePortMark(port))
		}
	}
	if len(marks) > 0 {
		annotations := fields.Ensure(fields.Ensure(obj.Object, "metadata"), "annotations")
		annotations[wellknown.AllocatedNodePortsAnnotation] = strings.Join(marks, ",")
	}
}

// nodePortMark returns the text that marks the node port of a port as allocated by the hub. An override that sets
// another node port does not match it.
func nodePortMark(port map[string]any) string {
	return fmt.Sprintf("%d/%s=%d", fields.Number(port, "port"), cmp.Or(fields.Text(port, "protocol"),
		string(corev1.ProtocolTCP)), fields.Number(port, "nodePort"))
}

// AllocatedNodePort reports whether the hub's API server allocated the node port of a port of a Service, so that a
// member may use another one.
func AllocatedNodePort(service *unstructured.Unstructured, port map[string]any) bool {
	marks := strings.Split(service.GetAnnotations()[wellknown.AllocatedNodePortsAnnotation], ",")
	return fields.Number(port, "nodePort") != 0 && slices.Contains(marks, nodePortMark(port))
}

// WithoutAllocatedNodePorts returns a copy of an object whose node ports a member refused, without those that the hub
// allocated; ok is false if it has none of them.
func WithoutAllocatedNodePorts(obj *unstructured.Unstructured) (without *unstructured.Unstructured, ok bool) {
	if obj.GroupVersionKind().GroupKind() != serviceKind {
		return nil, false
	}
	without = obj.DeepCopy()
	for _, port := range fields.Objects(without.Object, "spec", "ports") {
		if AllocatedNodePort(obj, port) {
			delete(port, "nodePort")
			ok = true
		}
	}
	return without, ok
}

// userFields knows which fields of an object users set.
type userFields struct {
	// owned are the specs of all managed fields. applied is the spec of the last applied configuration. Both may be
	// missing.
	owned   []map[string]any
	applied map[string]any
}

func userFieldsOf(obj *unstructured.Unstructured) (u userFields) {
	// GetManagedFields is slow: it decodes and encodes all entries.
	for _, entry := range fields.Objects(obj.Object, "metadata", "managedFields") {
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

// known reports whether there is any record of the fields that users set.
func (u userFields) known() bool { return len(u.owned) > 0 || u.applied != nil }

// set reports whether a user set a field of the spec.
func (u userFields) set(name string) bool {
	if u.applied[name] != nil {
		return true
	}
	return slices.ContainsFunc(u.owned, func(spec map[string]any) bool { return spec["f:"+name] != nil })
}

// setNodePort reports whether a user set the node port of a port.
func (u userFields) setNodePort(port map[string]any) bool {
	for _, own := range fields.Objects(u.applied, "ports") {
		if samePort(own, port) && own["nodePort"] != nil {
			return true
		}
	}
	for _, spec := range u.owned {
		ports := fields.Object(spec, "f:ports")
		if ports != nil && len(ports) == 0 {
			return true // the user owns the whole list
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

// samePort reports whether two ports of a Service have the same key.
func samePort(a, b map[string]any) bool {
	key := func(p map[string]any) (number int64, protocol string) {
		return fields.Number(p, "port"), cmp.Or(fields.Text(p, "protocol"), string(corev1.ProtocolTCP))
	}
	x, xp := key(a)
	y, yp := key(b)
	return x == y && xp == yp
}
