// Package schemas has the fields of kinds: of Kubernetes from its Go types, of OpenKruise and Argo from the hub's CRDs,
// and of others from their CRDs.
package schemas

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/argo"
	"github.com/argosy-io/argosy/api/definition"
	"github.com/argosy-io/argosy/api/kruise"
)

// Kind is the schema of one version of a kind.
type Kind struct {
	// Schema of the whole object including metadata. It is shared and immutable.
	Schema *apiextensionsv1.JSONSchemaProps
	// ClusterScoped is true if objects have no namespace.
	ClusterScoped bool
	// StatusApart is true if the status is a subresource.
	StatusApart bool
}

// Set is a set of kinds. The zero value is empty.
type Set struct {
	kinds map[schema.GroupVersionKind]Kind
}

// Builtin returns the kinds of Kubernetes, OpenKruise and Argo.
func Builtin() (*Set, error) {
	s := &Set{}
	for gvk, object := range kubernetes {
		s.put(gvk, Kind{Schema: ofType(object), ClusterScoped: clusterScoped[gvk.Kind], StatusApart: true})
	}
	for _, known := range []func() ([]definition.Kind, error){kruise.Kinds, argo.Kinds} {
		kinds, err := known()
		if err != nil {
			return nil, err
		}
		for _, k := range kinds {
			for _, v := range k.Versions {
				s.Add(k.Member(v.Name))
			}
		}
	}
	for gvk, fields := range statuses {
		known, ok := s.kinds[gvk]
		if !ok {
			continue
		}
		status := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for _, name := range fields {
			status.Properties[name] = apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
		}
		status.Properties["phase"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		known.Schema.Properties["status"] = status
	}
	return s, nil
}

// statuses are status fields that CRDs do not specify, so that misspelled ones are noticed.
var statuses = map[schema.GroupVersionKind][]string{
	{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}: {
		"phase", "message", "startedAt", "finishedAt", "progress", "estimatedDuration", "nodes", "compressedNodes",
		"offloadNodeStatusVersion", "storedTemplates", "storedWorkflowTemplateSpec", "persistentVolumeClaims", "outputs",
		"conditions",
		"resourcesDuration", "synchronization", "artifactRepositoryRef", "artifactGCStatus", "taskResultsCompletionStatus",
	},
}

// Add adds all versions of a CRD and replaces known ones. Objects without a schema keep the known fields. Fields that
// the hub accepts and rewrites are omitted.
func (s *Set) Add(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		root := v.Schema.OpenAPIV3Schema.DeepCopy()
		if root.Properties == nil {
			root.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		// CRDs need not specify these fields.
		root.Properties["metadata"] = *ofType(metav1.ObjectMeta{})
		root.Properties["apiVersion"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		root.Properties["kind"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
		dropRewritten(root)
		if before, known := s.kinds[gvk]; known {
			fillOpen(root, before.Schema)
		}
		s.put(gvk, Kind{
			Schema:        root,
			ClusterScoped: crd.Spec.Scope == apiextensionsv1.ClusterScoped,
			StatusApart:   v.Subresources != nil && v.Subresources.Status != nil,
		})
	}
}

// dropRewritten removes the alternative spellings that a hub accepts.
func dropRewritten(props *apiextensionsv1.JSONSchemaProps) {
	for name, p := range props.Properties {
		if p.Description == definition.Rewritten {
			delete(props.Properties, name)
			continue
		}
		dropRewritten(&p)
		props.Properties[name] = p
	}
	if props.Items != nil && props.Items.Schema != nil {
		dropRewritten(props.Items.Schema)
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		dropRewritten(props.AdditionalProperties.Schema)
	}
}

// fillOpen gives objects without properties the fields that were known before.
func fillOpen(props, before *apiextensionsv1.JSONSchemaProps) {
	for name, p := range props.Properties {
		was, known := before.Properties[name]
		switch {
		case !known:
			continue
		case len(p.Properties) == 0 && p.XPreserveUnknownFields != nil && len(was.Properties) > 0:
			p = was
		default:
			fillOpen(&p, &was)
		}
		props.Properties[name] = p
	}
	if props.Items != nil && props.Items.Schema != nil && before.Items != nil && before.Items.Schema != nil {
		fillOpen(props.Items.Schema, before.Items.Schema)
	}
}

func (s *Set) put(gvk schema.GroupVersionKind, k Kind) {
	if s.kinds == nil {
		s.kinds = map[schema.GroupVersionKind]Kind{}
	}
	s.kinds[gvk] = k
}

// Get returns a kind in a version. ok is false if it is unknown.
func (s *Set) Get(gvk schema.GroupVersionKind) (Kind, bool) {
	if s == nil {
		return Kind{}, false
	}
	k, ok := s.kinds[gvk]
	return k, ok
}

// Versions returns the known versions of a kind, in no order.
func (s *Set) Versions(kind schema.GroupKind) []string {
	if s == nil {
		return nil
	}
	var versions []string
	for gvk := range s.kinds {
		if gvk.GroupKind() == kind {
			versions = append(versions, gvk.Version)
		}
	}
	return versions
}

// Kinds returns all known kinds, in no order.
func (s *Set) Kinds() []schema.GroupVersionKind {
	all := make([]schema.GroupVersionKind, 0, len(s.kinds))
	for gvk := range s.kinds {
		all = append(all, gvk)
	}
	return all
}

// Map returns a schema as JSON.
func Map(props *apiextensionsv1.JSONSchemaProps) (map[string]any, error) {
	data, err := json.Marshal(props)
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	var m map[string]any
	return m, json.Unmarshal(data, &m)
}
