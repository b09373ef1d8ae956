package script

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stringFunctions replace functions of gopher-lua: its pattern matcher takes exponential time, cannot be interrupted,
// and recurses per character; gsub copies the whole string per match; format and rep allocate without a limit; byte
// without a position returns all bytes.
var stringFunctions = map[string]lua.LGFunction{
	"byte": stringByte, "find": stringFind, "format": stringFormat, "gmatch": stringGmatch, "gsub": stringGsub,
	"match": stringMatch, "rep": stringRep,
}

// sized wraps a function of gopher-lua whose result is as long as its first argument, to count the memory.
func sized(f lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		runOf(l).grow(len(l.CheckString(1)))
		return f(l)
	}
}

func push(l *lua.LState, s string) int {
	l.Push(lua.LString(s))
	return 1
}

// between returns the part of a string between two positions, counted from 1, or from the end if negative.
func between(s string, from, to int) (int, int) {
	if from < 0 {
		from = max(len(s)+from+1, 1)
	}
	if to < 0 {
		to = len(s) + to + 1
	}
	from, to = max(from, 1), min(to, len(s))
	if from > to {
		return 0, 0
	}
	return from - 1, to
}

func stringByte(l *lua.LState) int {
	s := l.CheckString(1)
	first := l.OptInt(2, 1)
	from, to := between(s, first, l.OptInt(3, first))
	runOf(l).spend(to - from)
	for i := from; i < to; i++ {
		l.Push(lua.LNumber(s[i]))
	}
	return to - from
}

func stringRep(l *lua.LState) int {
	s, n := l.CheckString(1), l.CheckInt(2)
	if n <= 0 || s == "" {
		return push(l, "")
	}
	r := runOf(l)
	if n > r.bounds.memory/len(s) {
		r.stop(r.tooMuch())
		l.RaiseError("%s", r.stopped.message)
	}
	r.grow(n * len(s))
	return push(l, strings.Repeat(s, n))
}

// matching prepares a search in the first argument for the pattern in the second.
func matching(l *lua.LState) *matcher {
	return &matcher{run: runOf(l), machine: l, source: l.CheckString(1), pattern: l.CheckString(2)}
}

// start returns the start of a search at a position, from 0; false beyond the end.
func start(l *lua.LState, s string) (int, bool) {
	from := l.OptInt(3, 1)
	if from < 0 {
		from = max(len(s)+from+1, 1)
	}
	from = max(from, 1)
	return from - 1, from <= len(s)+1
}

func stringFind(l *lua.LState) int {
	m := matching(l)
	from, ok := start(l, m.source)
	if !ok {
		l.Push(lua.LNil)
		return 1
	}
	if lua.LVAsBool(l.Get(4)) || !strings.ContainsAny(m.pattern, "^$*+?.([%-") {
		m.run.spend(1 + (len(m.source)-from)>>6)
		at := strings.Index(m.source[from:], m.pattern)
		if at < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(from + at + 1))
		l.Push(lua.LNumber(from + at + len(m.pattern)))
		return 2
	}
	begin, end, ok := m.search(from)
	if !ok {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(lua.LNumber(begin + 1))
	l.Push(lua.LNumber(end))
	return 2 + m.pushCaptures()
}

func stringMatch(l *lua.LState) int {
	m := matching(l)
	from, ok := start(l, m.source)
	if ok {
		var begin, end int
		if begin, end, ok = m.search(from); ok {
			return m.pushResult(begin, end)
		}
	}
	l.Push(lua.LNil)
	return 1
}

func stringGmatch(l *lua.LState) int {
	source, pattern := l.CheckString(1), l.CheckString(2)
	at := 0
	// The string is also an upvalue, so that weighing finds it.
	l.Push(l.NewClosure(func(l *lua.LState) int {
		if at > len(source) {
			return 0
		}
		// ^ has no meaning here, as in Lua.
		m := &matcher{run: runOf(l), machine: l, source: source, pattern: pattern, floating: true}
		begin, end, ok := m.search(at)
		if !ok {
			at = len(source) + 1
			return 0
		}
		if at = end; begin == end {
			at++
		}
		return m.pushResult(begin, end)
	}, lua.LString(source)))
	return 1
}

func stringGsub(l *lua.LState) int {
	m := matching(l)
	replacement := l.Get(3)
	switch r := replacement.(type) {
	case lua.LString, *lua.LFunction:
	case lua.LNumber:
		replacement = lua.LString(r.String())
	case *lua.LTable:
		readable(l, 3)
	default:
		l.RaiseError("string.gsub replaces with a string, a table or a function, not with %s", describe(r))
	}
	limit := l.OptInt(4, math.MaxInt)
	anchored := m.anchored()
	b := &buffer{run: m.run}
	defer b.close()
	at, count := 0, 0
	for count < limit {
		end, ok := m.matchAt(at)
		switch {
		case ok:
			count++
			b.add(m.replaced(replacement, at, end))
		case at < len(m.source):
			end = at
		}
		switch {
		case ok && end > at:
			at = end
		case at < len(m.source):
			b.add(m.source[at : at+1])
			at++
		default:
			at = len(m.source) + 1
		}
		if at > len(m.source) || anchored {
			break
		}
	}
	if at < len(m.source) {
		b.add(m.source[at:])
	}
	push(l, b.String())
	l.Push(lua.LNumber(count))
	return 2
}

// replaced returns the replacement of a match in gsub.
func (m *matcher) replaced(by lua.LValue, begin, end int) string {
	var v lua.LValue
	switch by := by.(type) {
	case lua.LString:
		if strings.IndexByte(string(by), '%') < 0 {
			return string(by)
		}
		b := &buffer{run: m.run}
		defer b.close()
		for i := 0; i < len(by); i++ {
			if by[i] != '%' || i+1 == len(by) {
				b.add(string(by[i : i+1]))
				continue
			}
			i++
			switch c := by[i]; {
			case c == '0':
				b.add(m.source[begin:end])
			case c >= '1' && c <= '9':
				b.add(m.capture(int(c-'1'), begin, end).String())
			default:
				b.add(string(by[i : i+1]))
			}
		}
		return b.String()
	case *lua.LTable:
		v = m.machine.GetTable(by, m.capture(0, begin, end))
	case *lua.LFunction:
		m.machine.Push(by)
		n := max(len(m.captures), 1)
		for i := range n {
			m.machine.Push(m.capture(i, begin, end))
		}
		kept := m.captures
		m.machine.Call(n, 1)
		m.captures = kept
		v = m.machine.Get(-1)
		m.machine.Pop(1)
	}
	switch {
	case lua.LVIsFalse(v):
		return m.source[begin:end]
	case !lua.LVCanConvToString(v):
		m.machine.RaiseError("string.gsub cannot replace a match with %s", describe(v))
	}
	return v.String()
}

// stringFormat implements the directives of Lua, with widths of at most two digits.
func stringFormat(l *lua.LState) int {
	format := l.CheckString(1)
	b := &buffer{run: runOf(l)}
	defer b.close()
	argument := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.add(format[i : i+1])
			continue
		}
		begin := i
		for i++; i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0; i++ {
		}
		if i == len(format) {
			l.RaiseError("the format %q ends within a directive", format)
		}
		flags, verb := format[begin:i], format[i]
		if verb == '%' {
			b.add("%")
			continue
		}
		width, precision, _ := strings.Cut(strings.TrimLeft(flags[1:], "-+ #0"), ".")
		if len(width) > 2 || len(precision) > 2 {
			l.RaiseError("the directive %q is wider than 99", format[begin:i+1])
		}
		argument++
		if argument > l.GetTop() {
			l.RaiseError("the directive %q of the format has no argument", format[begin:i+1])
		}
		switch verb {
		case 'd', 'i', 'u':
			b.add(fmt.Sprintf(flags+"d", int64(l.CheckNumber(argument))))
		case 'c':
			b.add(string([]byte{byte(l.CheckInt(argument))}))
		case 'o', 'x', 'X':
			b.add(fmt.Sprintf(flags+string(verb), int64(l.CheckNumber(argument))))
		case 'e', 'E', 'f', 'g', 'G':
			b.add(fmt.Sprintf(flags+string(verb), float64(l.CheckNumber(argument))))
		case 'q':
			b.add(`"` + quoted.Replace(l.CheckString(argument)) + `"`)
		case 's':
			b.add(fmt.Sprintf(flags+"s", text(l.CheckAny(argument))))
		default:
			l.RaiseError("the format has an unknown directive, %q", format[begin:i+1])
		}
	}
	return push(l, b.String())
}

// quoted replaces what a string in Lua syntax cannot have.
var quoted = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", "\\\n", "\r", `\r`, "\x00", `\000`)
