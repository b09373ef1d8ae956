package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/ocm/replicaset"
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
	if was != nil && slices.ContainsFunc(ownerLabels, func(key string) bool { return mw.Labels[key] != was.Labels[key] }) {
		if err := o.authorizeOwner(ctx, r); err != nil {
			return err
		}
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
	if err := refuseAsWebhook(validate.ManifestWork(mw)); err != nil {
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

// ownerLabels are the labels of ManifestWorks by which the hub finds those of ManifestWorkReplicaSets and add-ons.
var ownerLabels = []string{ocmworkv1alpha1.ReplicaSetLabel, ocmworkv1alpha1.PlacementLabel, clusterv1.AddonNameLabel,
	addonv1alpha1.AddonNamespaceLabel}

// authorizeOwner requires the rights to write and delete the Works of a cluster from users who change the labels of a
// ManifestWork by which the hub changes or deletes it.
func (o *objects) authorizeOwner(ctx context.Context, r request) error {
	if own, is := klusterletOf(r); is {
		return admission.NewForbidden(r, fmt.Errorf("the klusterlet of cluster %q may not change the labels %s", own,
			strings.Join(ownerLabels, ", ")))
	}
	return cmp.Or(o.authorizeWorks(ctx, r, "create"), o.authorizeWorks(ctx, r, "delete"))
}

// mutateReplicaSet adds the finalizer to a new ManifestWorkReplicaSet, as for ManifestWorks.
func mutateReplicaSet(_ context.Context, r request) error {
	if finalizers := r.obj.GetFinalizers(); r.creating() &&
		!slices.Contains(finalizers, ocmworkv1alpha1.ReplicaSetFinalizer) {
		r.obj.SetFinalizers(append(finalizers, ocmworkv1alpha1.ReplicaSetFinalizer))
	}
	return nil
}

// validateReplicaSet validates the changes of a ManifestWorkReplicaSet, which the hub applies in all clusters that its
// Placements choose, now or later.
func (o *objects) validateReplicaSet(ctx context.Context, r request,
	set, was *ocmworkv1alpha1.ManifestWorkReplicaSet) error {
	if r.keepsSpec() && (was == nil || maps.Equal(set.Labels, was.Labels)) {
		return nil
	}
	if err := o.authorizeFleet(ctx, r, "create"); err != nil {
		return err
	}
	if was != nil && slices.ContainsFunc(was.Spec.PlacementRefs, func(ref ocmworkv1alpha1.LocalPlacementReference) bool {
		return !slices.ContainsFunc(set.Spec.PlacementRefs, func(of ocmworkv1alpha1.LocalPlacementReference) bool {
			return of.Name == ref.Name
		})
	}) {
		if err := o.authorizeFleet(ctx, r, "delete"); err != nil {
			return err
		}
	}
	if err := refuseAsWebhook(validate.ManifestWorkReplicaSet(set)); err != nil {
		return err
	}
	if _, err := replicaset.OwnerLabel(set); err != nil {
		warning.AddWarning(ctx, "", "metadata.name: "+err.Error())
	}
	advise := func(set *ocmworkv1alpha1.ManifestWorkReplicaSet) []string {
		return validate.ManifestWorkAdvice(&ocmv1.ManifestWork{Spec: set.Spec.ManifestWorkTemplate}, nil, o.scoped())
	}
	var known []string
	if was != nil {
		known = advise(was)
	}
	warn(ctx, advise(set), known)
	return nil
}

// authorizeFleet requires the right to write or delete Works in all clusters from users who do so with a
// ManifestWorkReplicaSet or an add-on.
func (o *objects) authorizeFleet(ctx context.Context, r admission.Attributes, verb string) error {
	return o.require(ctx, r, right{verb: verb, resource: works},
		"%s reaches the clusters that Placements choose, for which you need permission to %s works.work.karmada.io in all "+
			"namespaces", r.GetKind().Kind, verb)
}

// authorizeWorks requires the right to write or delete Works from users who do so with a ManifestWork: a namespace of
// templates may have the name of a cluster, and its owner has no rights on that cluster. The hub's controllers have
// these rights by their roles.
func (o *objects) authorizeWorks(ctx context.Context, r admission.Attributes, verb string) error {
	space := names.ExecutionSpace(r.GetNamespace())
	return o.require(ctx, r, right{verb: verb, resource: works, namespace: space},
		"a ManifestWork in %s is applied in the cluster of that name, for which you need permission to %s works.work.karmada.io in the namespace %s", r.GetNamespace(), verb, space)
}
