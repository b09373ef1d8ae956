package admission

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/warning"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/interpret/tiers"
	"github.com/argosy-io/argosy/internal/core/interpret/webhook"
	"github.com/argosy-io/argosy/internal/core/validate"
	"github.com/argosy-io/argosy/internal/interpreter"
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
	if len(errs) > 0 {
		return r.refuse(errs)
	}
	crd, err := o.definitionOf(ctx, schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind).GroupKind())
	if err != nil {
		return err
	}
	if of := fieldsOf(crd, c.Spec.Target); of != nil {
		errs = validate.CustomizationPaths(c, of)
	}
	if len(errs) == 0 {
		convert := convertOf(crd)
		var known []string
		if was := (&configv1alpha1.ResourceInterpreterCustomization{}); r.old != nil && into(r.old, was) == nil {
			known = validate.CustomizationAdvice(was, others, o.served, convert)
		}
		warn(ctx, validate.CustomizationAdvice(c, others, o.served, convert), known)
	}
	return r.refuse(errs)
}

// warn tells a client what is advised now and was not before.
func warn(ctx context.Context, advice, known []string) {
	for _, text := range advice {
		if !slices.Contains(known, text) {
			warning.AddWarning(ctx, "", text)
		}
	}
}

// served are the versions in which the hub serves a kind, the preferred one first. What it cannot be asked it does not serve.
func (o *objects) served(kind schema.GroupKind) []string {
	preferred, err := o.mapper.RESTMapping(kind)
	if err != nil {
		return nil
	}
	versions := []string{preferred.GroupVersionKind.Version}
	all, _ := o.mapper.RESTMappings(kind)
	for _, m := range all {
		if v := m.GroupVersionKind.Version; !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	return versions
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definitionOf is the definition of a kind; nil if there is none, or not yet.
func (o *objects) definitionOf(ctx context.Context, kind schema.GroupKind) (*unstructured.Unstructured, error) {
	mapping, err := o.mapper.RESTMapping(kind)
	if err != nil || kind.Group == "" {
		return nil, nil // a kind that is not served is judged by its name alone
	}
	crd, err := o.client.Resource(definitions).Get(ctx, mapping.Resource.GroupResource().String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the definition of %s: %w", kind, err)
	}
	return crd, nil
}

// fieldsOf is the schema that a definition has for a version; nil if it has none.
func fieldsOf(crd *unstructured.Unstructured, target configv1alpha1.CustomizationTarget) map[string]any {
	if crd == nil {
		return nil
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["name"] == schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).Version {
			found, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
			return found
		}
	}
	return nil
}

// convertOf is how the interpreter converts objects, given the definitions of their kinds, of which some may be nil.
func convertOf(crds ...*unstructured.Unstructured) interpret.Convert {
	var defined []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		typed := &apiextensionsv1.CustomResourceDefinition{}
		if crd != nil && into(crd, typed) == nil {
			defined = append(defined, typed)
		}
	}
	return interpreter.Known(defined, customization.Options{Convert: tiers.Convert}).Convert
}

func (o *objects) validateWebhookConfiguration(ctx context.Context, r request) error {
	c := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	if err := into(r.obj, c); err != nil {
		return r.invalid(err)
	}
	errs := validate.WebhookConfiguration(c)
	if len(errs) > 0 {
		return r.refuse(errs)
	}
	var crds []*unstructured.Unstructured
	for _, kind := range webhook.Kinds(c) {
		crd, err := o.definitionOf(ctx, kind)
		if err != nil {
			return err
		}
		crds = append(crds, crd)
	}
	convert := convertOf(crds...)
	var known []string
	if was := (&configv1alpha1.ResourceInterpreterWebhookConfiguration{}); r.old != nil && into(r.old, was) == nil {
		known = validate.WebhookConfigurationAdvice(was, o.served, convert)
	}
	warn(ctx, validate.WebhookConfigurationAdvice(c, o.served, convert), known)
	return nil
}
