// Package jsonpath implements operations that only use a field: replicas, aggregated fields, retained fields. It is the
// part of a ResourceInterpreterCustomization without a script. interpret/customization decides which customization
// applies.
package jsonpath

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Path selects one field of an object.
//
//	.spec.replicas   $.spec.template   .metadata.annotations['a.b/c']   .spec.containers[0].image
type Path struct {
	text  string
	steps []step
}

// step is a key, or an index if key is empty.
type step struct {
	key   string
	index int
}

// String returns the original text.
func (p Path) String() string { return p.text }

// Parse parses a path. Filters, wildcards and slices select several fields and are rejected. The error has the position
// and a suggestion.
func Parse(text string) (Path, error) {
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		return Path{}, fmt.Errorf("write it without braces: %s", strings.TrimSuffix(inner, "}"))
	}
	p := Path{text: text}
	rest := strings.TrimPrefix(text, "$")
	if rest == "" {
		return Path{}, errors.New("must name a field, such as .spec.replicas")
	}
	for rest != "" {
		s, after, ok := parseStep(rest)
		if !ok {
			return Path{}, fmt.Errorf("character %d: expected .name, ['name'] or [index]%s", len(text)-len(rest)+1,
				hint(text, rest))
		}
		p.steps, rest = append(p.steps, s), after
	}
	if p.steps[0].key == "" {
		return Path{}, errors.New("character 1: must start with a name, such as .spec")
	}
	return p, nil
}

func parseStep(text string) (s step, rest string, ok bool) {
	switch {
	case text[0] == '.':
		n := 1
		for n < len(text) && isNameByte(text[n], n == 1) {
			n++
		}
		return step{key: text[1:n]}, text[n:], n > 1
	case text[0] == '[' && len(text) > 1 && (text[1] == '\'' || text[1] == '"'):
		end := strings.Index(text[2:], string(text[1])+"]")
		if end <= 0 {
			return step{}, "", false
		}
		return step{key: text[2 : 2+end]}, text[2+end+2:], true
	case text[0] == '[':
		digits, after, closed := strings.Cut(text[1:], "]")
		index, err := strconv.ParseUint(digits, 10, 16)
		return step{index: int(index)}, after, closed && err == nil
	}
	return step{}, "", false
}

func isNameByte(c byte, first bool) bool {
	letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	return letter || !first && ('0' <= c && c <= '9' || c == '-')
}

// hint returns a suggestion for a likely mistake.
func hint(text, rest string) string {
	switch {
	case rest == text && isNameByte(text[0], true):
		return "; write ." + text
	case strings.HasPrefix(rest, "..") || strings.HasPrefix(rest, ".*") || strings.HasPrefix(rest, "[*") ||
		strings.HasPrefix(rest, "[?") || strings.HasPrefix(rest, "[:"):
		return "; a path selects one field: list several paths where that is possible, or write a luaScript"
	}
	return ""
}

// Under reports whether the path is the named root field or a field in it.
func (p Path) Under(root string) bool { return p.steps[0].key == root }

// Inside reports whether the path is inside of the field with these keys.
func (p Path) Inside(keys ...string) bool {
	if len(p.steps) <= len(keys) {
		return false
	}
	for i, key := range keys {
		if p.steps[i].key != key {
			return false
		}
	}
	return true
}

// Root reports whether the path is a root field.
func (p Path) Root() bool { return len(p.steps) == 1 }

// get returns the field's value, which is shared; false if a part of the path is absent or null. A value of the wrong
// type on the way is an error.
func (p Path) get(object map[string]any) (any, bool, error) {
	var v any = object
	for i, s := range p.steps {
		if v == nil {
			return nil, false, nil
		}
		if s.key == "" {
			list, ok := v.([]any)
			if !ok {
				return nil, false, fmt.Errorf("%s: %s, where the path has an index", p.upTo(i), describe(v))
			}
			if s.index >= len(list) {
				return nil, false, nil
			}
			v = list[s.index]
			continue
		}
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false, fmt.Errorf("%s: %s, where the path goes on with %q", p.upTo(i), describe(v), s.key)
		}
		v = m[s.key]
	}
	return v, v != nil, nil
}

// set writes the field in object, which the caller must own. It creates missing objects, but not list elements.
func (p Path) set(object map[string]any, value any) error {
	return p.change(object, func(m map[string]any, key string) { m[key] = value }, value)
}

// remove removes the field. An element of a list is not removed, because others would move.
func (p Path) remove(object map[string]any) error {
	if _, found, err := p.get(object); !found || err != nil {
		return err
	}
	if p.steps[len(p.steps)-1].key == "" {
		return fmt.Errorf("%s: an element of a list cannot be removed", p)
	}
	return p.change(object, func(m map[string]any, key string) { delete(m, key) }, nil)
}

func (p Path) change(object map[string]any, last func(map[string]any, string), element any) error {
	var v any = object
	for i, s := range p.steps {
		end := i == len(p.steps)-1
		if s.key == "" {
			list, ok := v.([]any)
			if !ok || s.index >= len(list) {
				return fmt.Errorf("%s: %s, where the path selects element %d of a list", p.upTo(i), describe(v), s.index)
			}
			if end {
				list[s.index] = element
				return nil
			}
			v = list[s.index]
			continue
		}
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %s, where the path goes on with %q", p.upTo(i), describe(v), s.key)
		}
		if end {
			last(m, s.key)
			return nil
		}
		if m[s.key] == nil {
			if p.steps[i+1].key == "" {
				return fmt.Errorf("%s: the list does not exist", p.upTo(i+1))
			}
			m[s.key] = map[string]any{}
		}
		v = m[s.key]
	}
	return nil
}

// upTo returns the first n steps of the path, for messages.
func (p Path) upTo(n int) string {
	if n == 0 {
		return "the object"
	}
	var b strings.Builder
	for _, s := range p.steps[:n] {
		switch {
		case s.key == "":
			fmt.Fprintf(&b, "[%d]", s.index)
		case strings.ContainsFunc(s.key, func(r rune) bool { return r > 127 || !isNameByte(byte(r), false) }):
			fmt.Fprintf(&b, "['%s']", s.key)
		default:
			b.WriteString("." + s.key)
		}
	}
	return b.String()
}

// canonical returns the same text for all spellings of a path.
func (p Path) canonical() string { return p.upTo(len(p.steps)) }

// Overlap reports whether one path is equal to or inside of the other.
func Overlap(a, b Path) bool {
	n := min(len(a.steps), len(b.steps))
	return slices.Equal(a.steps[:n], b.steps[:n])
}

// describe describes a value in a message, with its content if it is short.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "is not set"
	case map[string]any:
		return "is an object"
	case []any:
		return fmt.Sprintf("is a list of %d", len(v))
	case string:
		if len(v) > 40 {
			return "is a text"
		}
		return fmt.Sprintf("is the string %q", v)
	}
	return fmt.Sprintf("is %v", v)
}

func copied(v any) any { return runtime.DeepCopyJSONValue(v) }
