package dialect

import (
	"fmt"
	"maps"
	"slices"
)

// multiClusterService: only the exposed Service names the port of the pods.
func (r *rewrite) multiClusterService() {
	for i, port := range objects(r.spec, "ports") {
		if given, ok := port["targetPort"]; ok {
			delete(port, "targetPort")
			path := fmt.Sprintf("spec.ports[%d].targetPort", i)
			r.rewritten(path, given, "nothing, because the target port comes from the Service "+r.obj.GetName()+
				" in the same namespace")
		}
	}
}

// multiClusterIngress: the content of a template's spec is the spec.
func (r *rewrite) multiClusterIngress() {
	template, ok := r.spec["template"].(map[string]any)
	if !ok {
		return
	}
	inner := child(template, "spec")
	for _, key := range slices.Sorted(maps.Keys(inner)) {
		r.move(inner, key, "spec.template.spec."+key, r.spec, key, "spec."+key)
	}
	delete(r.spec, "template")
	r.changed = true
}
