package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

var (
	clusters = clusterv1alpha1.GroupVersion.WithResource("clusters")
	works    = workv1alpha1.GroupVersion.WithResource("works")
)

// mutateManifestWork adds the finalizer to a new ManifestWork in the write that creates it: nothing is applied before
// it has one. A klusterlet adds it itself.
func (o *objects) mutateManifestWork(ctx context.Context, r request) error {
	finalizers := r.obj.GetFinalizers()
	if !r.creating() || slices.Contains(finalizers, ocmv1.ManifestWorkFinalizer) {
		return nil
	}
	if _, byKlusterlet, err := o.workCluster(ctx, r.GetNamespace()); err != nil || byKlusterlet {
		return err
	}
	r.obj.SetFinalizers(append(finalizers, ocmv1.ManifestWorkFinalizer))
	return nil
}

// validateManifestWork validates the changes of a ManifestWork, and warns of fields that have another effect here. A
// klusterlet may change the metadata of those of its cluster, such as finalizers.
func (o *objects) validateManifestWork(ctx context.Context, r request, mw, was *ocmv1.ManifestWork) error {
	if own, is := klusterletOf(r); is && (own != r.GetNamespace() || !r.keepsSpec()) {
		return admission.NewForbidden(r, fmt.Errorf(
			"the klusterlet of cluster %q may change only the metadata and the status of ManifestWorks in namespace %[1]s", own))
	}
	if r.keepsSpec() {
		return nil
	}
	if was != nil && !r.fromHub() {
		if _, rendered := was.Annotations[wellknown.WorkAnnotation]; rendered {
			return admission.NewForbidden(r, errors.New("the hub writes it from a Work: change the template or its policies"))
		}
	}
	if err := o.authorizeWorks(ctx, r, "create"); err != nil {
		return err
	}
	if err := r.refuse(validate.ManifestWork(mw)); err != nil {
		return err
	}
	cluster, byKlusterlet, err := o.workCluster(ctx, r.GetNamespace())
	if byKlusterlet {
		return nil // the warnings are about what the hub does
	}
	if cluster == nil && err == nil && r.old == nil {
		warning.AddWarning(ctx, "", fmt.Sprintf(
			"metadata.namespace: there is no cluster %q: a ManifestWork is applied in the cluster with the name of its namespace; this one is applied when the cluster joins", r.GetNamespace()))
	}
	var known []string
	if was != nil {
		known = validate.ManifestWorkAdvice(was, cluster, o.scoped())
	}
	warn(ctx, validate.ManifestWorkAdvice(mw, cluster, o.scoped()), known)
	return nil
}

// authorizeWorks requires the right to write or delete Works from users who do so with a ManifestWork: a namespace of
// templates may have the name of a cluster, and its owner has no rights on that cluster. The hub's controllers have
// these rights by their roles.
func (o *objects) authorizeWorks(ctx context.Context, r admission.Attributes, verb string) error {
	space := names.ExecutionSpace(r.GetNamespace())
	return o.require(ctx, r, right{verb: verb, resource: works, namespace: space},
		"a ManifestWork in %s is applied in the cluster of that name, for which you need permission to %s works.work.karmada.io in the namespace %s", r.GetNamespace(), verb, space)
}
