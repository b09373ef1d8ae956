package script

import (
	"math"
	"math/rand/v2"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// library is the library of all scripts, shared by all calls and immutable. Scripts only reach empty read-only tables
// that read from it.
var library *libraries

func init() { library = newLibrary() }

type libraries struct {
	// base has everything. envMeta makes the environment of a call fall back on the library.
	base, envMeta *lua.LTable
	// Metatables: globalsMeta of _G, closedMeta of closed tables, stringMeta of strings.
	globalsMeta, closedMeta, stringMeta *lua.LTable
}

func newLibrary() *libraries {
	lib := &libraries{}

	// Use gopher-lua's functions if their cost is limited.
	source := lua.NewState(lua.Options{SkipOpenLibs: true})
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenMath, lua.OpenOs, lua.OpenString} {
		open(source)
	}
	builtin := func(path ...string) lua.LGFunction {
		t := source.G.Global
		for _, step := range path[:len(path)-1] {
			t = t.RawGetString(step).(*lua.LTable)
		}
		return t.RawGetString(path[len(path)-1]).(*lua.LFunction).GFunction
	}
	function := func(f lua.LGFunction) *lua.LFunction { return source.NewFunction(f) }
	table := func(functions map[string]lua.LGFunction) *lua.LTable {
		t := source.NewTable()
		for name, f := range functions {
			t.RawSetString(name, function(f))
		}
		return t
	}
	frozen := func(name string, t *lua.LTable) *lua.LTable {
		meta := source.NewTable()
		meta.RawSetString("__index", t)
		meta.RawSetString("__newindex", function(func(l *lua.LState) int {
			l.RaiseError("%s cannot be changed", name)
			return 0
		}))
		return &lua.LTable{Metatable: meta}
	}

	base := table(map[string]lua.LGFunction{
		concatGuard: concat, setGuard: set, indexGuard: index, listGuard: listed,
		"ipairs": ipairs, "next": next, "pairs": pairs, "print": print, "require": require, "tostring": tostring,
		"unpack": unpack(builtin("unpack")),
	})
	for _, name := range []string{"assert", "error", "pcall", "select", "tonumber", "type", "xpcall"} {
		base.RawSetString(name, function(builtin(name)))
	}
	base.RawSetString("_VERSION", lua.LString(lua.LuaVersion))

	texts := table(stringFunctions)
	for _, name := range []string{"char", "len", "sub"} {
		texts.RawSetString(name, function(builtin("string", name)))
	}
	for _, name := range []string{"lower", "reverse", "upper"} {
		texts.RawSetString(name, function(sized(builtin("string", name))))
	}
	base.RawSetString("string", frozen("string", texts))
	base.RawSetString("table", frozen("table", table(map[string]lua.LGFunction{
		"concat": tableConcat, "getn": tableLength, "insert": tableInsert, "maxn": tableMaxN, "remove": tableRemove,
		"sort": tableSort,
	})))

	numbers := source.NewTable()
	source.G.Global.RawGetString("math").(*lua.LTable).ForEach(func(name, v lua.LValue) { numbers.RawSet(name, v) })
	numbers.RawSetString("random", function(random))
	numbers.RawSetString("randomseed", function(randomSeed))
	base.RawSetString("math", frozen("math", numbers))

	clock := source.NewTable()
	for _, name := range []string{"clock", "difftime", "time"} {
		clock.RawSetString(name, function(opened(builtin("os", name))))
	}
	date := builtin("os", "date")
	clock.RawSetString("date", function(func(l *lua.LState) int {
		runOf(l).grow(32 * len(l.OptString(1, "")))
		return date(l)
	}))
	base.RawSetString("os", frozen("os", clock))

	// Available only through require.
	base.RawSetString(kubeModule, frozen("kube", table(kubeFunctions)))

	lib.base, lib.envMeta = base, source.NewTable()
	lib.envMeta.RawSetString("__index", base)

	lib.globalsMeta = source.NewTable()
	lib.globalsMeta.RawSetString("__index", function(func(l *lua.LState) int {
		l.Push(l.GetTable(runOf(l).env, l.CheckAny(2)))
		return 1
	}))
	lib.globalsMeta.RawSetString("__newindex", function(func(l *lua.LState) int {
		name, ok := l.Get(2).(lua.LString)
		if !ok || strings.HasPrefix(string(name), "(") {
			l.RaiseError("%s is not the name of a global", describe(l.Get(2)))
		}
		runOf(l).env.RawSetString(string(name), l.Get(3))
		return 0
	}))

	lib.closedMeta = source.NewTable()
	lib.closedMeta.RawSetString("__index", function(func(l *lua.LState) int {
		l.Push(readable(l, 1).RawGet(l.Get(2)))
		return 1
	}))
	lib.closedMeta.RawSetString("__newindex", function(func(l *lua.LState) int {
		readable(l, 1).RawSet(l.Get(2), l.Get(3))
		return 0
	}))
	lib.closedMeta.RawSetString("__len", function(func(l *lua.LState) int {
		l.Push(lua.LNumber(readable(l, 1).Len()))
		return 1
	}))

	lib.stringMeta = source.NewTable()
	lib.stringMeta.RawSetString("__index", texts)
	return lib
}

// readable returns a table argument and opens it.
func readable(l *lua.LState, n int) *lua.LTable {
	t := l.CheckTable(n)
	if t.Metatable == library.closedMeta {
		if err := runOf(l).open(t); err != nil {
			l.RaiseError("%s", err.Error())
		}
	}
	return t
}

// writable returns the first argument, a table that may be changed.
func writable(l *lua.LState) *lua.LTable {
	t := readable(l, 1)
	if t.Metatable != lua.LNil {
		l.RaiseError("a library cannot be changed")
	}
	return t
}

// opened wraps a function of the machine's library to open its first argument.
func opened(f lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		if _, ok := l.Get(1).(*lua.LTable); ok {
			readable(l, 1)
		}
		return f(l)
	}
}

// text returns a value as printed. Tables have no address, so that results do not depend on it.
func text(v lua.LValue) string {
	switch v.(type) {
	case *lua.LTable, *lua.LFunction:
		return v.Type().String()
	}
	return v.String()
}

// The guards.

func concat(l *lua.LState) int {
	n, size := l.GetTop(), 0
	for i := 1; i <= n; i++ {
		switch v := l.Get(i).(type) {
		case lua.LString:
			size += len(v)
		case lua.LNumber:
			size += 24
		default:
			l.RaiseError("cannot join %s to a string with ..", describe(v))
		}
	}
	runOf(l).grow(size)
	var b strings.Builder
	b.Grow(size)
	for i := 1; i <= n; i++ {
		b.WriteString(l.Get(i).String())
	}
	l.Push(lua.LString(b.String()))
	return 1
}

// widestGap limits the elements of a list that may be skipped at once. t[60000000] = 1 would allocate 1 GB in one
// instruction, between two checks of the memory.
const widestGap = 1024

// slot rejects an index far beyond the end of a list, because the gap would be filled.
func slot(l *lua.LState, t *lua.LTable, key lua.LNumber) {
	if key <= widestGap {
		return
	}
	if end := t.MaxN(); key > lua.LNumber(end+widestGap) {
		l.RaiseError("the index %s is far beyond the end of the list, which has %d elements", key, end)
	}
}

func set(l *lua.LState) int {
	t, ok := l.Get(1).(*lua.LTable)
	key, value := l.Get(2), l.Get(3)
	if !ok {
		l.RaiseError("attempt to index a non-table object(%s) with key '%s'", l.Get(1).Type(), text(key))
	}
	if t.Metatable == library.globalsMeta {
		l.SetTable(t, key, value)
		return 0
	}
	t = writable(l)
	r := runOf(l)
	switch k := key.(type) {
	case *lua.LNilType:
		l.RaiseError("the key is nil")
	case lua.LNumber:
		if math.IsNaN(float64(k)) {
			l.RaiseError("the key is not a number")
		}
		slot(l, t, k)
	}
	if value == lua.LNil && t.RawGet(key) != lua.LNil {
		r.leaked += fieldBytes // the machine never frees a key
	}
	t.RawSet(key, value)
	return 0
}

func index(l *lua.LState) int {
	if k, ok := l.Get(1).(lua.LNumber); ok && k > widestGap {
		l.RaiseError("the index %s is too large for a list that is written out", k)
	}
	l.SetTop(1)
	return 1
}

func listed(l *lua.LState) int {
	runOf(l).grow(l.CheckTable(1).MaxN() * slotBytes)
	l.SetTop(1)
	return 1
}

// Functions of the base library.

func pairs(l *lua.LState) int {
	t := readable(l, 1)
	l.Push(nextFunction)
	l.Push(t)
	l.Push(lua.LNil)
	return 3
}

func next(l *lua.LState) int {
	t := readable(l, 1)
	key, value := t.Next(l.Get(2))
	l.Push(key)
	if key == lua.LNil {
		return 1
	}
	l.Push(value)
	return 2
}

var nextFunction = &lua.LFunction{IsG: true, GFunction: next}

var ipairsNext = &lua.LFunction{IsG: true, GFunction: func(l *lua.LState) int {
	i := l.CheckInt(2) + 1
	v := readable(l, 1).RawGetInt(i)
	if v == lua.LNil {
		return 0
	}
	l.Push(lua.LNumber(i))
	l.Push(v)
	return 2
}}

func ipairs(l *lua.LState) int {
	t := readable(l, 1)
	l.Push(ipairsNext)
	l.Push(t)
	l.Push(lua.LNumber(0))
	return 3
}

func print(l *lua.LState) int {
	var parts []string
	size := 0
	for i := 1; i <= l.GetTop(); i++ {
		parts = append(parts, text(l.Get(i)))
		size += len(parts[i-1])
	}
	r := runOf(l)
	r.grow(size)
	r.print(strings.Join(parts, "\t"))
	return 0
}

func tostring(l *lua.LState) int {
	v := l.CheckAny(1)
	runOf(l).grow(24)
	l.Push(lua.LString(text(v)))
	return 1
}

// kubeModule is the internal name of the kube library. No script can name it.
const kubeModule = "(kube)"

func require(l *lua.LState) int {
	if name := l.CheckString(1); name != "kube" {
		l.RaiseError("there is no module %q; the only module is \"kube\"", name)
	}
	l.Push(l.GetField(runOf(l).env, kubeModule))
	return 1
}

func unpack(builtin lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		t := readable(l, 1)
		n := l.OptInt(3, t.Len()) - l.OptInt(2, 1)
		runOf(l).spend(max(0, min(n, 1<<16)))
		return builtin(l)
	}
}

// Functions of the table library.

func tableLength(l *lua.LState) int {
	l.Push(lua.LNumber(readable(l, 1).Len()))
	return 1
}

func tableMaxN(l *lua.LState) int {
	l.Push(lua.LNumber(readable(l, 1).MaxN()))
	return 1
}

func tableInsert(l *lua.LState) int {
	t := writable(l)
	r := runOf(l)
	switch n := l.GetTop(); n {
	case 2:
		t.Append(l.Get(2))
	case 3:
		at, length := l.CheckInt(2), t.Len()
		if at < 1 || at > length+1 {
			l.RaiseError("the position %d is outside of the list, which has %d elements", at, length)
		}
		r.spend(1 + (length-at)>>6)
		t.Insert(at, l.Get(3))
	default:
		l.RaiseError("table.insert takes a list, a position if it is not the end, and a value; it got %d arguments", n)
	}
	return 0
}

func tableRemove(l *lua.LState) int {
	t := writable(l)
	length := t.Len()
	at := l.OptInt(2, length)
	if length == 0 || at < 1 || at > length {
		l.Push(lua.LNil)
		return 1
	}
	runOf(l).spend(1 + (length-at)>>6)
	l.Push(t.Remove(at))
	return 1
}

func tableConcat(l *lua.LState) int {
	t := readable(l, 1)
	separator := l.OptString(2, "")
	from, to := l.OptInt(3, 1), l.OptInt(4, t.Len())
	b := &buffer{run: runOf(l)}
	defer b.close()
	for i := from; i <= to; i++ {
		v := t.RawGetInt(i)
		if !lua.LVCanConvToString(v) {
			l.RaiseError("the element %d of the list is %s, which cannot be joined to a string", i, describe(v))
		}
		b.add(v.String())
		if i < to {
			b.add(separator)
		}
	}
	l.Push(lua.LString(b.String()))
	return 1
}

func tableSort(l *lua.LState) int {
	s := &sorter{machine: l, run: runOf(l), table: writable(l)}
	if s.length = s.table.Len(); l.GetTop() > 1 {
		s.less = l.CheckFunction(2)
	}
	sort.Sort(s)
	return 0
}

type sorter struct {
	machine *lua.LState
	run     *run
	table   *lua.LTable
	length  int
	less    *lua.LFunction
}

func (s *sorter) Len() int { return s.length }

func (s *sorter) Swap(i, j int) {
	a, b := s.table.RawGetInt(i+1), s.table.RawGetInt(j+1)
	s.table.RawSetInt(i+1, b)
	s.table.RawSetInt(j+1, a)
}

func (s *sorter) Less(i, j int) bool {
	a, b := s.table.RawGetInt(i+1), s.table.RawGetInt(j+1)
	if s.less != nil {
		s.machine.Push(s.less)
		s.machine.Push(a)
		s.machine.Push(b)
		s.machine.Call(2, 1)
		less := lua.LVAsBool(s.machine.Get(-1))
		s.machine.Pop(1)
		return less
	}
	if x, ok := a.(lua.LString); ok {
		if y, ok := b.(lua.LString); ok {
			s.run.spend(1 + min(len(x), len(y))>>6)
			return x < y
		}
	}
	s.run.spend(1)
	if x, ok := a.(lua.LNumber); ok {
		if y, ok := b.(lua.LNumber); ok {
			return x < y
		}
	}
	s.machine.RaiseError("cannot sort %s and %s; give table.sort a function that compares them", describe(a), describe(b))
	return false
}

// Random numbers are the same in each call, so that results are deterministic.

func (r *run) roll(seed uint64) { r.dice = rand.New(rand.NewPCG(seed, 0)) }

func randomSeed(l *lua.LState) int {
	runOf(l).roll(uint64(l.CheckInt64(1)))
	return 0
}

func random(l *lua.LState) int {
	r := runOf(l)
	if r.dice == nil {
		r.roll(0)
	}
	low, high := 1, 0
	switch l.GetTop() {
	case 0:
		l.Push(lua.LNumber(r.dice.Float64()))
		return 1
	case 1:
		high = l.CheckInt(1)
	default:
		low, high = l.CheckInt(1), l.CheckInt(2)
	}
	if low > high {
		l.RaiseError("math.random has nothing to choose from: %d is more than %d", low, high)
	}
	l.Push(lua.LNumber(low) + lua.LNumber(math.Floor(r.dice.Float64()*float64(high-low+1))))
	return 1
}
