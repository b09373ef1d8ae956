package jsonpath

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RetainedAnnotation is on a member's object with fields that are left to the member: a digest of what the template
// said there when it was last applied, by path. It tells a template that changed, which wins, from a member that did.
const RetainedAnnotation = "argosy.io/retained-fields"

// Retain leaves the fields to the member as long as the template says there what it said when it was last applied.
//
//	template unchanged, member's value differs or is gone   the member's
//	template changed                                        the template's
//	not known yet what was applied                          the member's, if it has one
func Retain(paths []Path, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	last := map[string]string{}
	// An annotation that somebody wrote into says nothing.
	_ = json.Unmarshal([]byte(observed.GetAnnotations()[RetainedAnnotation]), &last)
	out := desired.DeepCopy()
	// What was left to the member before this, by somebody else's paths, is remembered, too.
	var now map[string]string
	_ = json.Unmarshal([]byte(desired.GetAnnotations()[RetainedAnnotation]), &now)
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
		has, found, err := p.get(observed.Object)
		switch {
		case err != nil:
			return nil, fmt.Errorf("in the member: %w", err)
		case found:
			err = p.set(out.Object, copied(has))
		case known:
			err = p.remove(out.Object)
		}
		if err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[RetainedAnnotation] = string(text)
	out.SetAnnotations(annotations)
	return out, nil
}

// Keep leaves the fields to the member for good: they are as observed has them, or absent as they are there.
func Keep(paths []Path, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := desired.DeepCopy()
	for _, p := range paths {
		has, found, err := p.get(observed.Object)
		switch {
		case err != nil:
			return nil, fmt.Errorf("in the member: %w", err)
		case found:
			err = p.set(out.Object, copied(has))
		default:
			err = p.remove(out.Object)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// digestOf is short and the same for equal values.
func digestOf(v any) (string, error) {
	data, err := json.Marshal(v) // keys are sorted
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6]), nil
}
