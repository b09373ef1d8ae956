package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/warning"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
)

// validateCustomization reads the others from the server: customizations are few and seldom written, so no index is
// kept of them.
func (o *objects) validateCustomization(ctx context.Context, r request,
	c, was *configv1alpha1.ResourceInterpreterCustomization) error {
	var all configv1alpha1.ResourceInterpreterCustomizationList
	if err := list(ctx, o.client.Resource(configv1alpha1.GroupVersion.WithResource("resourceinterpretercustomizations")),
		metav1.ListOptions{}, &all); err != nil {
		return fmt.Errorf("list resourceinterpretercustomizations: %w", err)
	}
	others := scope.Pointers(all.Items)
	errs := validate.Customization(c, others)
	if c.Annotations[wellknown.LenientAnnotation] == "true" {
		var warnings []string
		warnings, errs = validate.Lenient(errs)
		for _, text := range warnings {
			warning.AddWarning(ctx, "", text)
		}
	}
	if len(errs) > 0 {
		return r.refuse(errs)
	}
	target := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
	known, err := o.knows(ctx, target.GroupKind())
	if err != nil {
		return err
	}
	if errs = validate.CustomizationPaths(c, known.options().Schema(target)); len(errs) == 0 {
		var before []string
		if was != nil {
			before = validate.CustomizationAdvice(was, others, known.served, known.options().Convert)
		}
		warn(ctx, validate.CustomizationAdvice(c, others, known.served, known.options().Convert), before)
	}
	return r.refuse(errs)
}

// warn sends the client the advice that is not in known.
func warn(ctx context.Context, advice, known []string) {
	for _, text := range advice {
		if !slices.Contains(known, text) {
			warning.AddWarning(ctx, "", text)
		}
	}
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// kindsKnown has the definitions of some kinds.
type kindsKnown struct {
	mapper meta.RESTMapper
	crds   map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
}

// knows reads the definitions of kinds; kinds without one are left out.
func (o *objects) knows(ctx context.Context, kinds ...schema.GroupKind) (kindsKnown, error) {
	k := kindsKnown{o.mapper, map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}}
	for _, kind := range kinds {
		if _, read := k.crds[kind]; read || kind.Group == "" {
			continue
		}
		// The mapper learns of new kinds after some time, and until then a kind's name is a good guess.
		resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		if mapping, err := o.mapper.RESTMapping(kind); err == nil {
			resource = mapping.Resource
		}
		crd, err := get[apiextensionsv1.CustomResourceDefinition](ctx, o.client.Resource(definitions),
			resource.GroupResource().String())
		if err != nil {
			return k, fmt.Errorf("get the definition of %s: %w", kind, err)
		}
		if crd != nil && crd.Spec.Names.Kind == kind.Kind {
			k.crds[kind] = crd
		}
	}
	return k, nil
}

// served returns the versions in which the hub serves a kind, the preferred one first.
func (k kindsKnown) served(kind schema.GroupKind) []string {
	var versions []string
	if crd := k.crds[kind]; crd != nil {
		for _, v := range crd.Spec.Versions {
			if v.Served {
				versions = append(versions, v.Name)
			}
		}
		slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		return versions
	}
	preferred, err := k.mapper.RESTMapping(kind)
	if err != nil {
		return nil
	}
	versions = append(versions, preferred.GroupVersionKind.Version)
	all, _ := k.mapper.RESTMappings(kind)
	for _, m := range all {
		if v := m.GroupVersionKind.Version; !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	return versions
}

// options are the schemas of the kinds and the conversion for their objects.
func (k kindsKnown) options() customization.Options {
	return interpreter.Known(slices.Collect(maps.Values(k.crds)), customization.Options{Convert: tiers.Convert})
}

func (o *objects) validateWebhookConfiguration(ctx context.Context, r request,
	c, was *configv1alpha1.ResourceInterpreterWebhookConfiguration) error {
	if errs := validate.WebhookConfiguration(c); len(errs) > 0 {
		return r.refuse(errs)
	}
	known, err := o.knows(ctx, webhook.Kinds(c)...)
	if err != nil {
		return err
	}
	var before []string
	if was != nil {
		before = validate.WebhookConfigurationAdvice(was, known.served, known.options().Convert)
	}
	warn(ctx, validate.WebhookConfigurationAdvice(c, known.served, known.options().Convert), before)
	return nil
}
