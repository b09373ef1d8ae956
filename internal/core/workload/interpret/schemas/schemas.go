// Package schemas has the fields of kinds: of Kubernetes from its Go types, of OpenKruise and Argo from the hub's CRDs,
// and of others from their CRDs.
package schemas

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/argo"
	"github.com/argosy-io/argosy/api/definition"
	"github.com/argosy-io/argosy/api/kruise"
	"github.com/argosy-io/argosy/internal/core/kind"
)

// Set has the schemas of whole objects, with metadata. They are immutable.
type Set struct {
	kinds map[schema.GroupVersionKind]*apiextensionsv1.JSONSchemaProps
}

// Builtin returns the kinds of Kubernetes, OpenKruise and Argo.
func Builtin() (*Set, error) {
	s := &Set{kinds: map[schema.GroupVersionKind]*apiextensionsv1.JSONSchemaProps{}}
	for gvk, object := range kubernetes {
		s.kinds[gvk] = ofType(object)
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
	for gvk, root := range s.kinds {
		if kind.Lookup(gvk.GroupKind()).IsWorkflow() {
			root.Properties["status"] = workflowStatus()
		}
	}
	return s, nil
}

// workflowStatus returns the fields of a Workflow's status, which its CRD does not specify.
func workflowStatus() apiextensionsv1.JSONSchemaProps {
	fields := map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string"}}
	for _, name := range []string{"message", "startedAt", "finishedAt", "progress", "estimatedDuration", "nodes",
		"compressedNodes", "offloadNodeStatusVersion", "storedTemplates", "storedWorkflowTemplateSpec",
		"persistentVolumeClaims", "outputs", "conditions", "resourcesDuration", "synchronization", "artifactRepositoryRef",
		"artifactGCStatus", "taskResultsCompletionStatus"} {
		fields[name] = apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
	}
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
}

// Add adds all versions of a CRD and replaces known ones.
func (s *Set) Add(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		root := *v.Schema.OpenAPIV3Schema
		if root.Properties = maps.Clone(root.Properties); root.Properties == nil {
			root.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		// CRDs need not specify these fields.
		root.Properties["metadata"] = *ofType(metav1.ObjectMeta{})
		root.Properties["apiVersion"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		root.Properties["kind"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		s.kinds[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = &root
	}
}

// Get returns the schema of a kind in a version; nil if it is not known.
func (s *Set) Get(gvk schema.GroupVersionKind) *apiextensionsv1.JSONSchemaProps { return s.kinds[gvk] }

// Kinds returns all known kinds, in no order.
func (s *Set) Kinds() []schema.GroupVersionKind { return slices.Collect(maps.Keys(s.kinds)) }
