package jsonpath

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Retain keeps the member's values of the fields while the template's values are those of the last apply. A changed
// template wins. Without a record of the last apply the member's value is kept if there is one.
func Retain(paths []Path, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	last := map[string]string{}
	// An invalid annotation is ignored.
	_ = json.Unmarshal([]byte(observed.GetAnnotations()[wellknown.RetainedFieldsAnnotation]), &last)
	out := desired.DeepCopy()
	// Also keep the records of other sets of paths.
	var now map[string]string
	_ = json.Unmarshal([]byte(desired.GetAnnotations()[wellknown.RetainedFieldsAnnotation]), &now)
	if now == nil {
		now = make(map[string]string, len(paths))
	}
	for _, p := range paths {
		wanted, _, err := p.get(desired.Object)
		if err != nil {
			return nil, err
		}
		digest, err := digestOf(wanted)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		key := p.canonical()
		now[key] = digest
		before, known := last[key]
		if known && before != digest {
			continue
		}
		if err := p.keep(out.Object, observed.Object, known); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	fields.SetAnnotation(out, wellknown.RetainedFieldsAnnotation, string(text))
	return out, nil
}

// Keep always keeps the member's values of the fields, including absence.
func Keep(paths []Path, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := desired.DeepCopy()
	for _, p := range paths {
		if err := p.keep(out.Object, observed.Object, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keep writes the member's value of the field, and its absence if that counts.
func (p Path) keep(object, observed map[string]any, absence bool) error {
	has, found, err := p.get(observed)
	switch {
	case err != nil:
		return fmt.Errorf("in the member: %w", err)
	case found:
		return p.set(object, copied(has))
	case absence:
		return p.remove(object)
	}
	return nil
}

// digestOf is short and equal for equal values.
func digestOf(v any) (string, error) {
	data, err := json.Marshal(v) // sorts keys
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6]), nil
}
