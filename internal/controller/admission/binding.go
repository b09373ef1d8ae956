package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/warning"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/validate"
)

// mutateBinding gives a new binding the id that its Works refer to. Our own controllers bring one along.
func (o *objects) mutateBinding(ctx context.Context, r request) error {
	if !r.creating() {
		return nil
	}
	label := workv1alpha2.ResourceBindingPermanentIDLabel
	if r.GetKind().Kind == "ClusterResourceBinding" {
		label = workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	if labels := r.obj.GetLabels(); !r.ours() && labels[label] == "" && labels[workv1alpha2.BindingManagedByLabel] == "" {
		warning.AddWarning(ctx, "", "the hub makes bindings by itself, of a template and the policy that selects it; one made by hand is not scheduled: "+
			"write a PropagationPolicy that selects the template instead")
	}
	identify(r.obj, nil, label)
	r.disown()
	return nil
}

// validateBinding decodes a binding only if it has something to validate: they are written often.
func (o *objects) validateBinding(_ context.Context, r request) error {
	if r.GetKind().Version != workv1alpha2.GroupVersion.Version {
		return nil
	}
	components, _, _ := unstructured.NestedFieldNoCopy(r.obj.Object, "spec", "components")
	dependencies, _, _ := unstructured.NestedFieldNoCopy(r.obj.Object, "metadata", "annotations", workv1alpha2.DependenciesAnnotation)
	if components == nil && dependencies == nil {
		return nil
	}
	var b workv1alpha2.Binding = &workv1alpha2.ResourceBinding{}
	if r.GetKind().Kind == "ClusterResourceBinding" {
		b = &workv1alpha2.ClusterResourceBinding{}
	}
	if err := into(r.obj, b); err != nil {
		return r.invalid(err)
	}
	return r.refuse(validate.Binding(b))
}

// identify gives obj a permanent id if it has none: the one it had, else a new one.
func identify(obj, old *unstructured.Unstructured, label string) {
	labels := obj.GetLabels()
	if labels[label] != "" {
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[label] = string(uuid.NewUUID())
	if old != nil && old.GetLabels()[label] != "" {
		labels[label] = old.GetLabels()[label]
	}
	obj.SetLabels(labels)
}
