package override

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/identity"
)

// pointer is a parsed JSON pointer (RFC 6901). The empty pointer is the whole document.
type pointer []string

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

var errPointer = errors.New(`a JSON pointer is empty or starts with "/"`)

func parsePointer(s string) (pointer, error) {
	if s == "" {
		return nil, nil
	}
	if s[0] != '/' {
		return nil, fmt.Errorf("path %q: %w", s, errPointer)
	}
	p := pointer(strings.Split(s[1:], "/"))
	for i := range p {
		p[i] = unescape.Replace(p[i])
	}
	return p, nil
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func (p pointer) String() string {
	var b strings.Builder
	for _, key := range p {
		b.WriteByte('/')
		b.WriteString(escape.Replace(key))
	}
	return b.String()
}

// get returns the value at p in doc, and whether it exists.
func (p pointer) get(doc any) (any, bool) {
	for _, key := range p {
		switch node := doc.(type) {
		case map[string]any:
			child, ok := node[key]
			if !ok {
				return nil, false
			}
			doc = child
		case []any:
			i, err := index(key, len(node))
			if err != nil {
				return nil, false
			}
			doc = node[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// edit applies one RFC 6902 operation, in place where possible, and returns the document. It works on decoded JSON to
// avoid encoding a large manifest for one field.
func edit(doc any, path pointer, op policyv1alpha1.OverriderOperator, value any) (any, error) {
	switch op {
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpRemove, policyv1alpha1.OverriderOpReplace:
	default:
		return nil, fmt.Errorf("unknown operator %q", op)
	}
	return editAt(doc, path, 0, op, value)
}

// editAt edits the value below the first depth keys of path.
func editAt(doc any, path pointer, depth int, op policyv1alpha1.OverriderOperator, value any) (any, error) {
	if depth == len(path) {
		if op == policyv1alpha1.OverriderOpRemove {
			return nil, errors.New("cannot remove the whole document")
		}
		return value, nil
	}
	key, last := path[depth], depth == len(path)-1

	switch node := doc.(type) {
	case map[string]any:
		child, exists := node[key]
		switch {
		case last && op == policyv1alpha1.OverriderOpAdd:
			node[key] = value
			return node, nil
		case !exists:
			return nil, fmt.Errorf("%s does not exist", path[:depth+1])
		case last && op == policyv1alpha1.OverriderOpRemove:
			delete(node, key)
			return node, nil
		}
		child, err := editAt(child, path, depth+1, op, value)
		if err != nil {
			return nil, err
		}
		node[key] = child
		return node, nil

	case []any:
		if last && op == policyv1alpha1.OverriderOpAdd {
			at := len(node)
			if key != "-" {
				var err error
				// An element may be added after the last one.
				if at, err = index(key, len(node)+1); err != nil {
					return nil, fmt.Errorf("%s: %w", path[:depth+1], err)
				}
			}
			return slices.Insert(node, at, value), nil
		}
		at, err := index(key, len(node))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path[:depth+1], err)
		}
		if last && op == policyv1alpha1.OverriderOpRemove {
			return slices.Delete(node, at, at+1), nil
		}
		if node[at], err = editAt(node[at], path, depth+1, op, value); err != nil {
			return nil, err
		}
		return node, nil

	default:
		if depth == 0 {
			return nil, fmt.Errorf("%s: the document is neither an object nor a list", path)
		}
		return nil, fmt.Errorf("%s is neither an object nor a list", path[:depth])
	}
}

// index parses a position in a list of n elements. Negative ones count from the end, as in Karmada.
func index(key string, n int) (int, error) {
	i, err := strconv.Atoi(key)
	if err != nil {
		return 0, fmt.Errorf("%q is not a list index", key)
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, fmt.Errorf("index %s is out of range in a list of %d", key, n)
	}
	return i, nil
}

// overridePlaintext applies the operations as one RFC 6902 patch. None may change the identity of m. With an error it
// returns the index of the operation.
func overridePlaintext(m *unstructured.Unstructured, object identity.Object,
	operations []policyv1alpha1.PlaintextOverrider) (int, error) {
	var doc any = m.Object
	for i, o := range operations {
		path, err := parsePointer(o.Path)
		if err != nil {
			return i, err
		}
		value, err := decode(o.Value.Raw)
		if err != nil {
			return i, fmt.Errorf("value for %s: %w", o.Path, err)
		}
		if doc, err = edit(doc, path, o.Operator, value); err != nil {
			return i, fmt.Errorf("%s %q: %w", o.Operator, o.Path, err)
		}
		is, ok := doc.(map[string]any)
		if !ok {
			return i, errors.New("the result is not an object")
		}
		if err := object.Keeps(&unstructured.Unstructured{Object: is}); err != nil {
			return i, fmt.Errorf("%s %q: %w", o.Operator, o.Path, err)
		}
		m.Object = is
	}
	return 0, nil
}

// decode decodes a value of a policy; empty is null. It decodes at each use, so that manifests do not share it.
func decode(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return value, nil
}
