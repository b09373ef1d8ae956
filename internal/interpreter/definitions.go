package interpreter

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
	hubdefinition "github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/filter"
)

// definition has the properties of a CustomResourceDefinition that matter here. It is immutable.
type definition struct {
	resourceVersion string
	schemas         map[string]*script.Schema // by version
	// relabelled is true if versions differ only in apiVersion.
	relabelled bool
}

// known maps the kinds that customizations and webhooks name to their definitions. Kinds without one are absent.
type known map[schema.GroupKind]*definition

// Known adds schemas and conversions from the definitions to the built-in ones in o.
func Known(crds []*apiextensionsv1.CustomResourceDefinition, o customization.Options) customization.Options {
	k := known{}
	for _, crd := range crds {
		k[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = newDefinition(crd.ResourceVersion, crd)
	}
	o.Schema, o.Convert = k.schema(o.Schema), k.convert(o.Convert)
	return o
}

// schema returns schemas from the definitions first, then from fallback.
func (k known) schema(
	fallback func(schema.GroupVersionKind) *script.Schema,
) func(schema.GroupVersionKind) *script.Schema {
	return func(gvk schema.GroupVersionKind) *script.Schema {
		if d := k[gvk.GroupKind()]; d != nil {
			return d.schemas[gvk.Version]
		}
		if fallback == nil {
			return nil
		}
		return fallback(gvk)
	}
}

// convert uses fallback if it can convert the kind, else the definition if its versions differ only by name.
func (k known) convert(fallback interpret.Convert) interpret.Convert {
	return func(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
		if fallback != nil {
			if out, err := fallback(obj, version); out != nil || err != nil {
				return out, err
			}
		}
		gvk := obj.GroupVersionKind()
		d := k[gvk.GroupKind()]
		if d == nil || !d.relabelled || d.schemas[gvk.Version] == nil || d.schemas[version] == nil {
			return nil, nil
		}
		out := obj.DeepCopy()
		out.SetAPIVersion(schema.GroupVersion{Group: gvk.Group, Version: version}.String())
		return out, nil
	}
}

// definitions reads the definitions of the kinds that customizations and webhooks name. It starts a watch when the
// first kind is named.
type definitions struct {
	client dynamic.Interface
	mapper meta.RESTMapper

	mu    sync.Mutex
	run   context.Context // nil before start
	touch func()
	watch bool
	// read are the named kinds with the versions of their definitions as read last; empty if there was none.
	read map[schema.GroupKind]string
	// names maps the kinds of watched definitions to the names of these.
	names map[schema.GroupKind]string
}

func newDefinitions(o Options) *definitions {
	return &definitions{client: o.Definitions, mapper: o.Mapper, names: map[schema.GroupKind]string{}}
}

// start begins to watch and calls touch when the definition of a named kind changes.
func (d *definitions) start(ctx context.Context, touch func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.run, d.touch = ctx, touch
	d.follow()
}

// follow starts the watch if any kind is named. The caller must hold mu.
func (d *definitions) follow() {
	if d.watch || d.run == nil || len(d.read) == 0 {
		return
	}
	d.watch = true
	informer := hubdefinition.Informer(d.client)
	// A new informer accepts a handler.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    d.changed,
		UpdateFunc: func(_, is any) { d.changed(is) },
		DeleteFunc: func(obj any) { d.changed(filter.LastState(obj)) },
	})
	go informer.RunWithContext(d.run)
}

// changed calls touch if the definition of a named kind differs from the one that was read.
func (d *definitions) changed(obj any) {
	crd, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	kind := match.KindDefined(crd)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[kind] = crd.GetName()
	if read, named := d.read[kind]; named && read != versionOf(crd) {
		d.touch()
	}
}

// versionOf returns a value that changes with the spec of a definition, not with its status.
func versionOf(crd *unstructured.Unstructured) string {
	return fmt.Sprintf("%s/%d", crd.GetName(), crd.GetGeneration())
}

// kindsOf returns the kinds that customizations and webhooks name, with duplicates and without wildcards.
func kindsOf(customizations []configv1alpha1.ResourceInterpreterCustomization,
	configurations []configv1alpha1.ResourceInterpreterWebhookConfiguration) []schema.GroupKind {
	var all []schema.GroupKind
	for i := range customizations {
		all = append(all, kindOf(&customizations[i]))
	}
	for i := range configurations {
		all = append(all, webhook.Kinds(&configurations[i])...)
	}
	return all
}

// lookUp returns the definitions of the kinds.
func (d *definitions) lookUp(ctx context.Context, kinds []schema.GroupKind) (known, error) {
	read := map[schema.GroupKind]string{}
	for _, kind := range kinds {
		if kind.Group != "" {
			read[kind] = ""
		}
	}
	// Start to watch before reading, so that no change is missed.
	d.mu.Lock()
	d.read = maps.Clone(read)
	d.follow()
	d.mu.Unlock()

	out := known{}
	for kind := range read {
		definition, err := d.get(ctx, kind)
		if err != nil {
			return nil, err
		}
		if definition == nil {
			continue
		}
		out[kind] = definition
		d.mu.Lock()
		d.read[kind] = definition.resourceVersion
		d.mu.Unlock()
	}
	return out, nil
}

// get reads the definition of a kind. It returns nil if there is none yet.
func (d *definitions) get(ctx context.Context, kind schema.GroupKind) (*definition, error) {
	d.mu.Lock()
	name := d.names[kind]
	d.mu.Unlock()
	if name == "" {
		mapping, err := d.mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", kind, err)
		}
		name = mapping.Resource.GroupResource().String()
	}
	raw, err := d.client.Resource(hubdefinition.Resource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the definition of %s: %w", kind, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, crd); err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", kind, err)
	}
	return newDefinition(versionOf(raw), crd), nil
}

func newDefinition(version string, crd *apiextensionsv1.CustomResourceDefinition) *definition {
	d := &definition{resourceVersion: version, schemas: map[string]*script.Schema{},
		relabelled: crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter}
	for _, v := range crd.Spec.Versions {
		known := &script.Schema{Type: "object"}
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			known = script.SchemaOf(v.Schema.OpenAPIV3Schema)
		}
		d.schemas[v.Name] = known
	}
	return d
}
