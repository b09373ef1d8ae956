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

// An object becomes tables only where the script looks at it. Until then a table is closed: it is empty, and opens, one
// level deep, when it is written, walked over or read often; a first few fields are read of it as it is. What stays
// closed comes back as it was. What was opened remembers where it came from, so that also there comes back what Lua
// cannot express: [] and {}, null, 1 and 1.0, integers beyond 2^53.

// source is where a table came from. It holds the table itself, so that the two take one allocation.
type source struct {
	table lua.LTable
	// value is a map[string]any or []any, which is never changed, or typed: a result of the kube library.
	value any
	// closed says that the table is empty still, for value is what is in it.
	closed bool
	// reads counts the fields that were read while it was closed. handed is the first of the tables among them, which the
	// script may have changed since; each knows its field and the one after it.
	reads  int
	handed *source
	field  string
	next   *source
}

// fewReads is how many fields are read of a closed object. To open one takes about as long, and then a read takes
// little.
const fewReads = 4

// tableFor is the table that was handed out for a field, nil if none was.
func (s *source) tableFor(field string) *lua.LTable {
	for h := s.handed; h != nil; h = h.next {
		if h.field == field {
			return &h.table
		}
	}
	return nil
}

// toLua gives a value to the script; maps and slices become closed tables.
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

// exact is up to where a number of Lua is any integer.
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

// closed is a closed table of a value.
func (r *run) closed(v any) *lua.LTable {
	s := &source{table: lua.LTable{Metatable: library.closedMeta}, value: v, closed: true}
	r.sources[&s.table] = s
	return &s.table
}

// asGiven is the value that a table came from, as long as neither it nor what was read of it was opened.
func (r *run) asGiven(t *lua.LTable) (v any, ok bool) {
	s := r.sources[t]
	if s == nil || !s.asGiven() {
		return nil, false
	}
	return s.value, true
}

func (s *source) asGiven() bool {
	for h := s.handed; h != nil; h = h.next {
		if !h.asGiven() {
			return false
		}
	}
	return s.closed
}

// read is a field of a closed table, which is opened if need be.
func (r *run) read(t *lua.LTable, key lua.LValue) (lua.LValue, error) {
	if s := r.sources[t]; s != nil && s.closed && s.reads < fewReads {
		object, isObject := s.value.(map[string]any)
		name, isName := key.(lua.LString)
		if isObject && isName {
			s.reads++
			field := string(name)
			if table := s.tableFor(field); table != nil {
				return table, nil
			}
			v, err := r.toLua(object[field])
			if table, ok := v.(*lua.LTable); ok {
				h := r.sources[table]
				h.field, h.next = field, s.handed
				s.handed = h
			}
			return v, err
		}
	}
	if err := r.open(t); err != nil {
		return nil, err
	}
	return t.RawGet(key), nil
}

// has says whether an object has a field, whether or not it was opened.
func (r *run) has(t *lua.LTable, field string) bool {
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

// fill is open of a closed table whose source is s, at any time.
func (r *run) fill(t *lua.LTable, s *source) error {
	s.closed = false
	switch v := s.value.(type) {
	case map[string]any:
		*t = *r.machine.CreateTable(0, len(v))
		// In order, so that a script that walks over an object gives the same answer each time.
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if table := s.tableFor(name); table != nil {
				t.RawSetString(name, table)
				continue
			}
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
	s.handed = nil
	return nil
}

// untype turns a result of the kube library into what JSON has.
func (s *source) untype() error {
	switch s.value.(type) {
	case map[string]any, []any:
		return nil
	}
	// The converter knows objects only, and the library gives lists as well.
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Value any `json:"value"`
	}{s.value})
	if err != nil {
		return err
	}
	s.value = object["value"]
	return nil
}

// reader takes values back from a script.
type reader struct {
	run *run
	// size is what was taken so far, in bytes, about; a small table may stand for a large object, or for an endless one.
	size int
}

// deepest is how many tables may be in one another.
const deepest = 500

// longestPath is how many steps of a path are shown: that of a table that holds itself has as many as there may be.
const longestPath = 10

// misfit is why a value cannot be taken back, and where in it; path is built from the inside.
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

func (m *misfit) in(step string) *misfit {
	m.path = append([]string{step}, m.path...)
	return m
}

// value takes a value back. hint is what was at its place in the input, schema what the kind has there; both decide
// only what the value itself leaves open. known is false for an empty table of which nobody knows whether it is [] or
// {}.
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

// number is an integer where it can be one; what was not changed stays what it was.
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
	if t.Metatable != lua.LNil && t.Metatable != library.closedMeta {
		return nil, false, &misfit{message: "is a library, which an object cannot contain"}
	}
	own := rd.run.sources[t]
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
	// An empty table. Where null elements were all there was they are there still.
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
		v, known, m := rd.value(value, was[key], schema.field(key), depth+1)
		if m != nil {
			misfit = m.in("." + key)
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

// list takes a list back. Holes are what assigning nil leaves, so the list closes over them; but null elements that
// were there and are there still stay.
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
		// An element that may be [] or {} is an object: lists of lists are rare.
		v, _, m := rd.value(element, before, items, depth+1)
		if m != nil {
			return nil, false, m.in("[" + strconv.Itoa(i+1) + "]")
		}
		list = append(list, v)
	}
	if own && length < len(was) && !slices.ContainsFunc(was[length:], func(v any) bool { return v != nil }) {
		list = append(list, was[length:]...)
	}
	return list, true, nil
}

// copy is a copy of JSON data that counts.
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
