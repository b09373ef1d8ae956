package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
)

// mutateMultiClusterService sets the ID that other objects use to refer to it.
func (o *objects) mutateMultiClusterService(ctx context.Context, r request) error {
	identify(r.obj, r.old, networkingv1alpha1.MultiClusterServicePermanentIDLabel)
	return r.normalise(ctx)
}

func (o *objects) validateMultiClusterService(ctx context.Context, r request,
	service, was *networkingv1alpha1.MultiClusterService) error {
	var known []string
	if was != nil {
		known = validate.MultiClusterServiceAdvice(was)
	}
	errs := validate.MultiClusterService(service, was)
	// What belongs to the object is found by the label: it is given once.
	const label = networkingv1alpha1.MultiClusterServicePermanentIDLabel
	if id := idOf(r.old, label); id != "" && idOf(r.obj, label) != id {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "labels").Key(label), idOf(r.obj, label),
			"is given by the hub and cannot be changed"))
	}
	if err := r.refuse(errs); err != nil {
		return err
	}
	warn(ctx, validate.MultiClusterServiceAdvice(service), known)
	o.adviseNames(ctx, r, validate.NamesOfService(service))
	return nil
}

// validateRemedy validates a Remedy, and warns of clusters that do not exist.
func (o *objects) validateRemedy(ctx context.Context, r request, remedy, _ *remedyv1alpha1.Remedy) error {
	if err := r.refuse(validate.Remedy(remedy)); err != nil {
		return err
	}
	warn(ctx, validate.RemedyAdvice(remedy), nil)
	o.adviseNames(ctx, r, validate.NamesOfRemedy(remedy))
	return nil
}

func idOf(obj *unstructured.Unstructured, label string) string {
	if obj == nil {
		return ""
	}
	return obj.GetLabels()[label]
}

func (o *objects) validateServiceImport(_ context.Context, r request, i, _ *multiclusterv1alpha1.ServiceImport) error {
	if r.old != nil {
		return nil // its name has not changed
	}
	return r.refuse(validate.ServiceImport(i))
}
