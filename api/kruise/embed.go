// Package kruise holds the OpenKruise kinds as CustomResourceDefinitions of our own: the same for the hub, where
// they are templates, and for simulated members. It says what may be written; what it means is decided elsewhere.
package kruise

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// CRDs are fresh copies of the definitions, in the order of their file names. Their schemas carry no defaults: those
// are written by a member's own admission, and a template keeps only what its author set.
// No conversion is asked for: a definition with several versions has none whose fields differ in meaning.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(names))
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}
