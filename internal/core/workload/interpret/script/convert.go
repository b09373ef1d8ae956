package script

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"k8s.io/apimachinery/pkg/runtime"
)

// Objects are converted to tables lazily. A closed table is empty until it is read or written; then it is opened, one
// level deep. A closed table converts back to the original value. An opened one remembers the original, so that values
// without a Lua equivalent survive: [] and {}, null, 1 and 1.0, integers beyond 2^53.

// source is the origin of a table. It contains the table to save an allocation.
type source struct {
	table lua.LTable
	// value is an immutable map[string]any or []any, or a typed result of the kube library.
	value any
	// closed is true while the content is only in value.
	closed bool
}

// toLua converts a value for the script. Maps and slices become closed tables.
func (r *run) toLua(v any) (lua.LValue, error) {
	switch v := v.(type) {
	case nil:
		return lua.LNil, nil
	case bool:
		return lua.LBool(v), nil
	case string:
		return lua.LString(v), nil
	case int64:
		return r.integer(v), nil
	case float64:
		return lua.LNumber(v), nil
	case int32:
		return lua.LNumber(v), nil
	case int:
		return lua.LNumber(v), nil
	case map[string]any:
		return r.closed(v), nil
	case []any:
		return r.closed(v), nil
	}
	return nil, &fault{BadInput, 0, fmt.Sprintf("the object contains a value of type %T, which is not valid JSON", v)}
}

// exact is the limit up to which Lua numbers represent all integers.
const exact = 1 << 53

func (r *run) integer(v int64) lua.LNumber {
	n := lua.LNumber(v)
	if -exact <= v && v <= exact {
		return n
	}
	if r.large == nil {
		r.large = map[lua.LNumber]int64{}
	}
	if other, ok := r.large[n]; ok && other != v {
		v = 0
	}
	r.large[n] = v
	return n
}

// closed returns a closed table of a value.
func (r *run) closed(v any) *lua.LTable {
	s := &source{table: lua.LTable{Metatable: library.closedMeta}, value: v, closed: true}
	r.sources[&s.table] = s
	return &s.table
}

// asGiven returns the original value of a table that was not opened.
func (r *run) asGiven(t *lua.LTable) (v any, ok bool) {
	s := r.sources[t]
	if s == nil || !s.closed {
		return nil, false
	}
	return s.value, true
}

// hasField reports whether an object has a field, opened or not.
func (r *run) hasField(t *lua.LTable, field string) bool {
	if s := r.sources[t]; s != nil && s.closed {
		m, _ := s.value.(map[string]any)
		return m[field] != nil
	}
	return t.RawGetString(field) != lua.LNil
}

// open fills a closed table, one level deep.
func (r *run) open(t *lua.LTable) error {
	s := r.sources[t]
	if s == nil || !s.closed {
		return nil
	}
	if err := s.untype(); err != nil {
		return err
	}
	switch v := s.value.(type) {
	case map[string]any:
		r.spend(len(v))
	case []any:
		r.spend(len(v))
	}
	return r.fill(t, s)
}

// fill is open for a closed table with source s.
func (r *run) fill(t *lua.LTable, s *source) error {
	s.closed = false
	switch v := s.value.(type) {
	case map[string]any:
		*t = *r.machine.CreateTable(0, len(v))
		// In sorted order, so that iteration is deterministic.
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			lv, err := r.toLua(v[name])
			if err != nil {
				return err
			}
			if lv != lua.LNil {
				t.RawSetString(name, lv)
			}
		}
	case []any:
		*t = *r.machine.CreateTable(len(v), 0)
		for i, element := range v {
			lv, err := r.toLua(element)
			if err != nil {
				return err
			}
			if lv != lua.LNil {
				t.RawSetInt(i+1, lv)
			}
		}
	default:
		t.Metatable = lua.LNil
	}
	return nil
}

// untype converts a result of the kube library to JSON values.
func (s *source) untype() error {
	switch s.value.(type) {
	case map[string]any, []any:
		return nil
	}
	// The converter supports only objects, but the library also returns lists.
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Value any `json:"value"`
	}{s.value})
	if err != nil {
		return err
	}
	s.value = object["value"]
	return nil
}

// reader converts values back from a script.
type reader struct {
	run *run
	// size is the approximate number of bytes so far. A small table may stand for a large or endless value.
	size int
}

// deepest limits the nesting of tables. A table that contains itself has no end, and its conversion would overflow the
// stack of the hub.
const deepest = 500

// longestPath limits the steps shown of a path. A table that contains itself has endless ones.
const longestPath = 10

// misfit is why a value cannot be converted, with its path, which is built from the inside.
type misfit struct {
	path    []string
	message string
}

func (m *misfit) Error() string {
	if len(m.path) == 0 {
		return m.message
	}
	path := m.path
	if len(path) > longestPath {
		path = append(slices.Clone(path[:longestPath]), "…")
	}
	return strings.Join(path, "") + ": " + m.message
}

func (m *misfit) inside(step string) *misfit {
	m.path = append([]string{step}, m.path...)
	return m
}

// value converts a value. hint is the input at the same place, schema the kind's schema there. Both are used only for
// ambiguous values. known is false for an empty table that may be [] or {}.
func (rd *reader) value(lv lua.LValue, hint any, schema *Schema, depth int) (v any, known bool, m *misfit) {
	rd.size += slotBytes
	switch lv := lv.(type) {
	case lua.LBool:
		return bool(lv), true, nil
	case lua.LNumber:
		n, m := rd.number(lv, hint)
		return n, true, m
	case lua.LString:
		rd.size += len(lv)
		return string(lv), true, nil
	case *lua.LTable:
		return rd.table(lv, hint, schema, depth)
	}
	return nil, false, &misfit{message: fmt.Sprintf("is %s, which an object cannot contain", describe(lv))}
}

// number returns an integer if possible. An unchanged number keeps its type.
func (rd *reader) number(n lua.LNumber, hint any) (any, *misfit) {
	switch h := hint.(type) {
	case int64:
		if lua.LNumber(h) == n {
			return h, nil
		}
	case float64:
		if lua.LNumber(h) == n {
			return h, nil
		}
	}
	if v := rd.run.large[n]; v != 0 {
		return v, nil
	}
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, &misfit{message: fmt.Sprintf("is %v, which is not a valid JSON number; look for a division by zero", f)}
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return f, nil
}

func (rd *reader) table(t *lua.LTable, hint any, schema *Schema, depth int) (v any, known bool, m *misfit) {
	if depth > deepest {
		return nil, false, &misfit{message: fmt.Sprintf("has more than %d nested tables; does one contain itself?", deepest)}
	}
	if rd.size += slotBytes; rd.size > rd.run.bounds.memory {
		return nil, false, rd.tooLarge()
	}
	own := rd.run.sources[t]
	if t.Metatable != lua.LNil && own == nil {
		return nil, false, &misfit{message: "is a library, which an object cannot contain"}
	}
	if own != nil {
		if err := own.untype(); err != nil {
			return nil, false, &misfit{message: err.Error()}
		}
		if given, ok := rd.run.asGiven(t); ok {
			if v = rd.copy(given); rd.size > rd.run.bounds.memory {
				return nil, false, rd.tooLarge()
			}
			return v, true, nil
		}
		if own.closed {
			if err := rd.run.fill(t, own); err != nil {
				return nil, false, &misfit{message: err.Error()}
			}
		}
		hint = own.value
	}

	length, fields := t.MaxN(), 0
	var odd lua.LValue
	t.ForEach(func(key, _ lua.LValue) {
		switch k := key.(type) {
		case lua.LString:
			fields++
		case lua.LNumber:
			if k != lua.LNumber(int(k)) || k < 1 || int(k) > length {
				odd = key
			}
		default:
			odd = key
		}
	})
	switch {
	case odd != nil:
		return nil, false, &misfit{message: fmt.Sprintf(
			"has %s as a key; the keys of an object are strings, and those of a list are numbers starting at 1", describe(odd))}
	case length > 0 && fields > 0:
		return nil, false, &misfit{message: "has both numbers and names as keys; it can be a list or an object"}
	case length > 0:
		return rd.list(t, length, hint, own != nil, schema.items(), depth)
	case fields > 0:
		return rd.object(t, hint, own != nil, schema, depth)
	}
	// An empty table. If the input had only null elements they stay.
	switch h := hint.(type) {
	case []any:
		if own != nil {
			return rd.list(t, 0, hint, true, nil, depth)
		}
		return []any{}, true, nil
	case map[string]any:
		if own != nil {
			return rd.object(t, h, true, nil, depth)
		}
		return map[string]any{}, true, nil
	}
	switch {
	case schema == nil:
		return map[string]any{}, false, nil
	case schema.Type == "array":
		return []any{}, true, nil
	default:
		return map[string]any{}, schema.Type == "object", nil
	}
}

func (rd *reader) tooLarge() *misfit {
	return &misfit{message: fmt.Sprintf("is larger than %d MiB", rd.run.bounds.memory>>20)}
}

func (rd *reader) object(t *lua.LTable, hint any, own bool, schema *Schema, depth int) (any, bool, *misfit) {
	was, _ := hint.(map[string]any)
	object := make(map[string]any, len(was))
	var misfit *misfit
	t.ForEach(func(k, value lua.LValue) {
		if misfit != nil {
			return
		}
		key := string(k.(lua.LString))
		rd.size += len(key)
		v, known, m := rd.value(value, was[key], schema.Field(key), depth+1)
		if m != nil {
			misfit = m.inside("." + key)
			return
		}
		if known {
			object[key] = v
		}
	})
	if misfit != nil {
		return nil, false, misfit
	}
	if own {
		for key, v := range was {
			if _, ok := object[key]; v == nil && !ok {
				object[key] = nil
			}
		}
	}
	return object, true, nil
}

// list converts a list. It closes holes from assigned nil values, but keeps null elements of the input.
func (rd *reader) list(t *lua.LTable, length int, hint any, own bool, items *Schema, depth int) (any, bool, *misfit) {
	was, _ := hint.([]any)
	list := make([]any, 0, length)
	for i := range length {
		var before any
		if i < len(was) {
			before = was[i]
		}
		element := t.RawGetInt(i + 1)
		if element == lua.LNil {
			if own && i < len(was) && before == nil {
				list = append(list, nil)
			}
			continue
		}
		// An ambiguous element is an object, because lists of lists are rare.
		v, _, m := rd.value(element, before, items, depth+1)
		if m != nil {
			return nil, false, m.inside("[" + strconv.Itoa(i+1) + "]")
		}
		list = append(list, v)
	}
	if own && length < len(was) && !slices.ContainsFunc(was[length:], func(v any) bool { return v != nil }) {
		list = append(list, was[length:]...)
	}
	return list, true, nil
}

// copy copies JSON data and counts its size.
func (rd *reader) copy(v any) any {
	rd.size += slotBytes
	switch v := v.(type) {
	case string:
		rd.size += len(v)
	case map[string]any:
		if v == nil || rd.size > rd.run.bounds.memory {
			return v
		}
		object := make(map[string]any, len(v))
		for key, value := range v {
			rd.size += len(key)
			object[key] = rd.copy(value)
		}
		return object
	case []any:
		if v == nil || rd.size > rd.run.bounds.memory {
			return v
		}
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = rd.copy(element)
		}
		return list
	case int:
		return int64(v)
	case int32:
		return int64(v)
	}
	return v
}
