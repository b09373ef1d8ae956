package fleet

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var sidecarSetKind = schema.GroupKind{Group: kruise, Kind: "SidecarSet"}

// sidecarSet holds an injected revision back from members that cannot have it yet, and divides the rollout if that was
// asked for.
func (f *fleet) sidecarSet() error {
	if f.options.scope == "Fleet" {
		if err := f.rollOut(workloads[sidecarSetKind], nil); err != nil {
			return err
		}
	}
	if err := f.stageRevision(); err != nil {
		return err
	}
	if f.options.scope == "Fleet" || versioned(f.Template.Object) {
		f.skew()
	}
	return nil
}

// versioned reports whether members wait for each other's revisions of a SidecarSet: it gives its versions names, or
// names one to inject.
func versioned(obj map[string]any) bool { return CustomVersion(obj) != "" || stagesRevision(obj) }

// stagesRevision reports whether a SidecarSet names the revision to inject.
func stagesRevision(obj map[string]any) bool {
	return len(object(obj, "spec", "injectionStrategy", "revision")) > 0
}
