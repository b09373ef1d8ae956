package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
)

// refuseOverwrite rejects an object of any kind whose annotation newly requests to overwrite objects in members, where
// that is forbidden. An existing request may stay, since it counts as abort. Users who may write Works have the hub's
// rights anyway.
func (o *objects) refuseOverwrite(ctx context.Context, a admission.Attributes) error {
	group := a.GetResource().Group
	if a.GetSubresource() != "" || group == workv1alpha1.GroupVersion.Group || group == ocmv1.GroupVersion.Group ||
		a.GetUserInfo().GetName() == user.APIServerUser {
		return nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil || !dispatch.Overwrites(obj.GetAnnotations()) {
		return nil
	}
	if a.GetOldObject() != nil {
		if old, err := meta.Accessor(a.GetOldObject()); err == nil && dispatch.Overwrites(old.GetAnnotations()) {
			return nil
		}
	}
	return o.mayOverwrite(ctx, a, "the annotation "+workv1alpha2.ConflictResolutionAnnotation+": overwrite")
}

// mayOverwrite rejects a request to overwrite where that is forbidden.
func (o *objects) mayOverwrite(ctx context.Context, a admission.Attributes, what string) error {
	namespace := a.GetNamespace()
	var labels map[string]string
	switch {
	case o.ForbidOverwrite:
	case a.GetResource().GroupResource() == namespaces.GroupResource():
		obj, err := meta.Accessor(a.GetObject())
		if err != nil {
			return err
		}
		namespace, labels = obj.GetName(), obj.GetLabels()
	case namespace == "":
		return nil
	default:
		// Only such requests need this read, which is rare.
		ns, err := o.client.Resource(namespaces).Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // the write is refused for that
		}
		if err != nil {
			return fmt.Errorf("get namespace %s: %w", namespace, err)
		}
		labels = ns.GetLabels()
	}
	if why := dispatch.Forbidden(o.ForbidOverwrite, namespace, labels); why != "" {
		return admission.NewForbidden(a, fmt.Errorf(
			"%s would take over objects in members that the hub does not manage, but %s; remove it, "+
				"or ask an administrator to take them over with a ClusterPropagationPolicy with conflictResolution Overwrite", what,
			why))
	}
	return nil
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
