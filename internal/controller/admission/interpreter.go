package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/warning"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/validate"
)

func (o *objects) mutateCustomization(ctx context.Context, r request) error { return r.normalise(ctx) }

// validateCustomization reads the others from the server: customizations are few and seldom written, so no index is kept of them.
func (o *objects) validateCustomization(ctx context.Context, r request) error {
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	if err := into(r.obj, c); err != nil {
		return r.invalid(err)
	}
	list, err := o.client.Resource(configv1alpha1.GroupVersion.WithResource("resourceinterpretercustomizations")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list resourceinterpretercustomizations: %w", err)
	}
	others := make([]*configv1alpha1.ResourceInterpreterCustomization, 0, len(list.Items))
	for i := range list.Items {
		other := &configv1alpha1.ResourceInterpreterCustomization{}
		if err := into(&list.Items[i], other); err != nil {
			return fmt.Errorf("read resourceinterpretercustomization %q: %w", list.Items[i].GetName(), err)
		}
		others = append(others, other)
	}
	errs := validate.Customization(c, others)
	if c.Annotations[validate.LenientAnnotation] == "true" {
		var warnings []string
		warnings, errs = validate.Lenient(errs)
		for _, text := range warnings {
			warning.AddWarning(ctx, "", text)
		}
	}
	if len(errs) == 0 {
		of, err := o.schemaOf(ctx, c.Spec.Target)
		if err != nil {
			return err
		}
		if of != nil {
			errs = validate.CustomizationPaths(c, of)
		}
	}
	return r.refuse(errs)
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// schemaOf is the schema that the definition of a kind has for the version; nil if there is no such definition, or not yet.
func (o *objects) schemaOf(ctx context.Context, target configv1alpha1.CustomizationTarget) (map[string]any, error) {
	gvk := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
	mapping, err := o.mapper.RESTMapping(gvk.GroupKind())
	if err != nil || gvk.Group == "" {
		return nil, nil // a kind that is not served is judged by its name alone
	}
	crd, err := o.client.Resource(definitions).Get(ctx, mapping.Resource.GroupResource().String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the definition of %s: %w", gvk.GroupKind(), err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["name"] == gvk.Version {
			found, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
			return found, nil
		}
	}
	return nil, nil
}

func (o *objects) validateWebhookConfiguration(_ context.Context, r request) error {
	c := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	if err := into(r.obj, c); err != nil {
		return r.invalid(err)
	}
	return r.refuse(validate.WebhookConfiguration(c))
}
