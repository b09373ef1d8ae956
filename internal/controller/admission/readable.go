package admission

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// read has the kinds whose status the hub's controllers read in their Go types, and agents or users may write.
var read = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme, policyv1alpha1.AddToScheme, releasev1alpha1.AddToScheme, ocmv1.AddToScheme,
		ocmworkv1alpha1.AddToScheme, clusterv1.AddToScheme, scorev1alpha1.AddToScheme, placementv1beta1.AddToScheme,
		setv1beta2.AddToScheme, addonv1alpha1.AddToScheme, addonv1beta1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
})

// refuseUnreadable refuses a status that the schema accepts and controllers cannot read, such as one with the time
// 2026-01-01t00:00:00z: one such object would end the watch of its whole kind.
func refuseUnreadable(a admission.Attributes) error {
	u, ok := a.GetObject().(*unstructured.Unstructured)
	r := request{Attributes: a, obj: u}
	if !ok || a.GetSubresource() != "status" || r.fromHub() {
		return nil
	}
	s, err := read()
	if err != nil {
		return err
	}
	typed, err := s.New(u.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return nil
	}
	if err == nil {
		err = into(u, typed)
	}
	if err != nil {
		return r.invalid(err)
	}
	return nil
}
