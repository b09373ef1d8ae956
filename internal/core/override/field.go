package override

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// overrideField changes the JSON or YAML document in a string field. It does not keep comments and the order of keys.
// It keeps numbers; in JSON exactly.
func overrideField(m *unstructured.Unstructured, o *policyv1alpha1.FieldOverrider) error {
	path, err := parsePointer(o.FieldPath)
	if err != nil {
		return err
	}
	if len(o.JSON) > 0 && len(o.YAML) > 0 {
		return errors.New("json and yaml cannot be set at the same time")
	}
	if len(o.JSON)+len(o.YAML) == 0 {
		return nothing("it must have json or yaml")
	}
	v, ok := path.get(m.Object)
	if !ok {
		return fmt.Errorf("%s does not exist", path)
	}
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("%q is not a string", o.FieldPath)
	}
	var edited string
	if len(o.JSON) > 0 {
		edited, err = editJSON([]byte(text), o.JSON)
	} else {
		edited, err = editYAML(text, o.YAML)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = edit(m.Object, path, policyv1alpha1.OverriderOpReplace, edited)
	return err
}

func editJSON(text []byte, operations []policyv1alpha1.FieldPatchOperation) (string, error) {
	doc, err := exact(text)
	if err != nil {
		return "", fmt.Errorf("read JSON: %w", err)
	}
	for _, o := range operations {
		path, err := parsePointer(o.SubPath)
		if err != nil {
			return "", err
		}
		var value any
		if len(o.Value.Raw) > 0 {
			if value, err = exact(o.Value.Raw); err != nil {
				return "", fmt.Errorf("value for %s: %w", o.SubPath, err)
			}
		}
		if doc, err = edit(doc, path, o.Operator, value); err != nil {
			return "", fmt.Errorf("%s %q: %w", o.Operator, o.SubPath, err)
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// exact decodes one JSON value and keeps its numbers unchanged.
func exact(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return doc, nil
}

func editYAML(text string, operations []policyv1alpha1.FieldPatchOperation) (string, error) {
	if several(text) {
		return "", errors.New("the field contains several YAML documents; only one can be changed")
	}
	doc, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return "", fmt.Errorf("read YAML: %w", err)
	}
	edited, err := editJSON(doc, operations)
	if err != nil {
		return "", err
	}
	out, err := yaml.JSONToYAML([]byte(edited))
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return string(out), nil
}

// several reports whether text has more than one YAML document. All but the first would be lost.
func several(text string) bool {
	stream := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	documents := 0
	for {
		doc, err := stream.Read()
		if len(bytes.TrimSpace(doc)) > 0 {
			documents++
		}
		if err != nil || documents > 1 {
			return documents > 1
		}
	}
}
