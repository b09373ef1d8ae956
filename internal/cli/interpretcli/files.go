package interpretcli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
)

// source is a file that was read.
type source struct {
	name string
	text []byte
}

// readFiles reads files, and what lies in folders, sorted by name.
func readFiles(names []string, recursive bool, in io.Reader) (all []source, err error) {
	err = hubcli.EachFile(in, recursive, names, func(name string, text []byte) error {
		all = append(all, source{name, text})
		return nil
	})
	return all, err
}

// listed returns names as people read them.
func listed(names []string) string {
	shown := slices.Clone(names)
	for i, name := range shown {
		if name == "-" {
			shown[i] = hubcli.StandardInput
		}
	}
	return strings.Join(shown, ", ")
}

// objectsIn returns the documents of a file that are mappings; a document that is a list comes as {items: …}, with no
// kind.
func objectsIn(name string, in io.Reader) ([]*unstructured.Unstructured, error) {
	sources, err := readFiles([]string{name}, false, in)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, s := range sources {
		objects, err := s.objects()
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func (s source) objects() ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(s.text)))
	var all []*unstructured.Unstructured
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: read document %d: %w", s.name, n, err)
		}
		data, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", s.name, n, err)
		}
		var value any
		if err := k8sjson.Unmarshal(data, &value); err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", s.name, n, err)
		}
		switch v := value.(type) {
		case map[string]any:
			all = append(all, &unstructured.Unstructured{Object: v})
		case []any:
			all = append(all, &unstructured.Unstructured{Object: map[string]any{"items": v}})
		}
	}
}

// customizationFile is a customization and where it was read.
type customizationFile struct {
	file   string
	object *configv1alpha1.ResourceInterpreterCustomization
}

// customizations returns the customizations in the sources, converted to the API's spelling; other objects are skipped.
func customizations(sources []source, warnings io.Writer) ([]customizationFile, error) {
	var all []customizationFile
	for _, s := range sources {
		objects, err := s.objects()
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(objects); i++ {
			obj := objects[i]
			if items, ok := obj.Object["items"].([]any); ok && obj.GetKind() == "List" {
				for _, item := range items {
					if m, ok := item.(map[string]any); ok {
						objects = append(objects, &unstructured.Unstructured{Object: m})
					}
				}
			}
			if obj.GetKind() != "ResourceInterpreterCustomization" ||
				obj.GroupVersionKind().Group != configv1alpha1.GroupVersion.Group {
				continue
			}
			_, advice, err := dialect.Normalise(obj)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.name, obj.GetName(), err)
			}
			for _, w := range advice {
				text.Fprintf(warnings, "Warning: %s: %s: %s\n", s.name, obj.GetName(), w)
			}
			c := &configv1alpha1.ResourceInterpreterCustomization{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, c, true); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.name, obj.GetName(), err)
			}
			all = append(all, customizationFile{s.name, c})
		}
	}
	return all, nil
}

// customizationsOf returns the customizations for a kind, in any version.
func customizationsOf(all []customizationFile, kind schema.GroupKind) []customizationFile {
	return slices.DeleteFunc(slices.Clone(all), func(c customizationFile) bool {
		target := c.object.Spec.Target
		return schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind() != kind
	})
}

// tierOf returns an interpreter with the customizations; below handles the operations that they do not define.
func tierOf(all []customizationFile, set *schemas.Set, below interpret.Tiers) interpret.Tier {
	return customization.New(objectsOf(all), customization.Options{Schema: schemaOf(set), Convert: tiers.Convert,
		Below: below})
}

func objectsOf(all []customizationFile) []*configv1alpha1.ResourceInterpreterCustomization {
	objects := make([]*configv1alpha1.ResourceInterpreterCustomization, len(all))
	for i, c := range all {
		objects[i] = c.object
	}
	return objects
}

// schemaOf returns the schemas of kinds for scripts.
func schemaOf(set *schemas.Set) func(schema.GroupVersionKind) *script.Schema {
	return func(gvk schema.GroupVersionKind) *script.Schema { return script.SchemaOf(set.Get(gvk)) }
}

// definitions adds the CustomResourceDefinitions in the sources to a set.
func definitions(set *schemas.Set, sources []source) error {
	for _, s := range sources {
		objects, err := s.objects()
		if err != nil {
			return err
		}
		for _, obj := range objects {
			if obj.GetKind() != "CustomResourceDefinition" || obj.GroupVersionKind().Group != apiextensionsv1.GroupName {
				continue
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd); err != nil {
				return fmt.Errorf("%s: CustomResourceDefinition %s: %w", s.name, obj.GetName(), err)
			}
			set.Add(crd)
		}
	}
	return nil
}
