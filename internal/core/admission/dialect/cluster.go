package dialect

import (
	"fmt"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// cluster: zone is the deprecated spelling of zones with one item.
func (r *rewrite) cluster() {
	if r.spec["zone"] == "" {
		delete(r.spec, "zone")
		return
	}
	if zone, ok := r.spec["zone"].(string); ok {
		r.spec["zone"] = []any{zone}
		if zones, ok := r.spec["zones"].([]any); ok && len(zones) == 0 {
			delete(r.spec, "zones")
		}
		r.rename(r.spec, "spec", "zone", "zones")
	}
}

// adviseTaints warns of taints that come and go with the cluster's condition, whatever is written.
func adviseTaints(spec map[string]any) []string {
	var out []string
	for i, taint := range objects(spec, "taints") {
		switch taint["key"] {
		case clusterv1alpha1.TaintNotReady, clusterv1alpha1.TaintUnreachable:
			out = append(out, fmt.Sprintf("spec.taints[%d]: the hub adds and removes %v according to the cluster's condition", i,
				taint["key"]))
		}
	}
	return out
}
