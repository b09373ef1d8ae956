package admission

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
)

// refuseUnreadable refuses a status that the schema accepts and controllers cannot read, such as one with the time
// 2026-01-01t00:00:00z: no list of its kind could be read anymore.
func (o *objects) refuseUnreadable(a admission.Attributes) error {
	u, ok := a.GetObject().(*unstructured.Unstructured)
	r := request{Attributes: a, obj: u}
	if !ok || a.GetSubresource() != "status" || r.fromHub() || o.scheme == nil {
		return nil
	}
	scheme, err := o.scheme()
	if err != nil {
		return err
	}
	// Controllers read a kind in one of its versions, which all have the same status.
	for _, version := range scheme.VersionsForGroupKind(u.GroupVersionKind().GroupKind()) {
		typed, err := scheme.New(version.WithKind(u.GetKind()))
		if err == nil {
			err = into(u, typed)
		}
		if err != nil {
			return r.invalid(err)
		}
	}
	return nil
}
