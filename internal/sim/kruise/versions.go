package kruise

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The other kinds that are simulated, in any version.
var (
	SidecarSetKind       = schema.GroupKind{Group: "apps.kruise.io", Kind: "SidecarSet"}
	UnitedDeploymentKind = schema.GroupKind{Group: "apps.kruise.io", Kind: "UnitedDeployment"}
	BroadcastJobKind     = schema.GroupKind{Group: "apps.kruise.io", Kind: "BroadcastJob"}
)

// Versions are the versions in which a member stores the kinds of OpenKruise; the controllers work in those. A kind
// that is missing is not served, and has no controller.
type Versions map[schema.GroupKind]string

// stored returns the kind in the version that the member stores; ok is false if the kind is not served.
func (v Versions) stored(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool) {
	version := v[gk]
	return gk.WithVersion(version), version != ""
}
