// Package crds holds the CustomResourceDefinitions generated from the types in api.
// It contains definitions only: other packages install them and serve conversion.
package crds

import (
	"embed"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Definitions returns copies of the definitions, sorted by name. Those for which Converted is true need a conversion
// webhook before they are installed.
func Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := parsed()
	if err != nil {
		return nil, err
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, len(crds))
	for i := range crds {
		all[i] = crds[i].DeepCopy()
	}
	return all, nil
}

// Converted reports whether the schema differs between versions, so that conversion strategy None would lose fields.
// core/admission/convert does the conversion.
func Converted(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !reflect.DeepEqual(v.Schema, crd.Spec.Versions[0].Schema)
	})
}

var parsed = sync.OnceValues(func() ([]apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := fs.ReadDir(files, ".") // sorted by file name, which is <group>_<plural>
	if err != nil {
		return nil, fmt.Errorf("list embedded definitions: %w", err)
	}
	crds := make([]apiextensionsv1.CustomResourceDefinition, len(entries))
	for i, e := range entries {
		data, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("read embedded %s: %w", e.Name(), err)
		}
		if err := yaml.UnmarshalStrict(data, &crds[i]); err != nil {
			return nil, fmt.Errorf("parse embedded %s: %w", e.Name(), err)
		}
		if crds[i].Spec.Group == "cluster.karmada.io" {
			allowNoReason(&crds[i])
		}
		if kind := crds[i].Spec.Names.Kind; kind == "ServiceExport" || kind == "ServiceImport" {
			serveV1beta1(&crds[i])
		}
	}
	return crds, nil
})

// allowNoReason lets conditions of Clusters have an empty reason. Karmada serves Clusters without a schema, and its
// clients write such conditions, for example for Remedies.
func allowNoReason(clusters *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range clusters.Spec.Versions {
		condition := v.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"].Items.Schema
		reason := condition.Properties["reason"]
		reason.MinLength, reason.Pattern = nil, ""
		condition.Properties["reason"] = reason
	}
}

// serveV1beta1 adds the version v1beta1 of SIG Multicluster, whose schema is that of v1alpha1. The hub keeps to store
// v1alpha1, so that an earlier version of the hub can start with its store.
func serveV1beta1(crd *apiextensionsv1.CustomResourceDefinition) {
	beta := crd.Spec.Versions[0].DeepCopy()
	beta.Name, beta.Storage = "v1beta1", false
	crd.Spec.Versions = append(crd.Spec.Versions, *beta)
}
