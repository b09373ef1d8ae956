package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// matcher implements patterns of Lua 5.1. It counts steps, so that exponential backtracking ends at the deadline.
// gopher-lua's matcher cannot be interrupted, and no practical limit of its input helps: a*a*a*a*a*a*a*a*b takes 4 s
// for 28 characters and six times as long for 6 more. It also lacks %f.
type matcher struct {
	run             *run
	machine         *lua.LState
	source, pattern string
	// floating makes ^ at the beginning an ordinary character.
	floating bool

	captures []capture
	depth    int
	steps    int
}

// capture is a part of the source. A negative length means open, or a position only.
type capture struct{ begin, length int }

const (
	captureOpen     = -1
	capturePosition = -2
	// maxCaptures and deepestMatch are Lua's own limits.
	maxCaptures, deepestMatch = 32, 200
)

// anchored reports whether the pattern is anchored, and removes the anchor.
func (m *matcher) anchored() bool {
	if m.floating || !strings.HasPrefix(m.pattern, "^") {
		return false
	}
	m.pattern = m.pattern[1:]
	return true
}

// search returns the first match from a position on.
func (m *matcher) search(from int) (begin, end int, ok bool) {
	anchored := m.anchored()
	for begin = from; begin <= len(m.source); begin++ {
		if end, ok = m.matchAt(begin); ok || anchored {
			return begin, end, ok
		}
	}
	return 0, 0, false
}

// matchAt matches at one position.
func (m *matcher) matchAt(at int) (end int, ok bool) {
	m.captures, m.depth = m.captures[:0], 0
	end = m.match(at, 0)
	return end, end >= 0
}

// tick counts a step. Steps are spent in batches.
func (m *matcher) tick() {
	const many = 32
	if m.steps++; m.steps == many {
		m.steps = 0
		m.run.spend(many / 4) // a step takes a quarter of an instruction
	}
}

func (m *matcher) malformed(what string) {
	m.machine.RaiseError("the pattern %q is malformed: %s", m.pattern, what)
}

// match returns the end of a match of the pattern from p in the source from s; -1 if there is none.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > deepestMatch {
		m.machine.RaiseError("the pattern %q is too complex", m.pattern)
	}
	defer func() { m.depth-- }()
	for {
		m.tick()
		if p == len(m.pattern) {
			return s
		}
		switch c := m.pattern[p]; {
		case c == '(':
			if strings.HasPrefix(m.pattern[p+1:], ")") {
				return m.capturing(s, p+2, capturePosition)
			}
			return m.capturing(s, p+1, captureOpen)
		case c == ')':
			return m.closing(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.source) {
				return s
			}
			return -1
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] == 'b':
			if s = m.balanced(s, p+2); s < 0 {
				return -1
			}
			p += 4
			continue
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] == 'f':
			p += 2
			if p >= len(m.pattern) || m.pattern[p] != '[' {
				m.malformed("%f is followed by no set")
			}
			next := m.class(p)
			var before, after byte
			if s > 0 {
				before = m.source[s-1]
			}
			if s < len(m.source) {
				after = m.source[s]
			}
			if m.inSet(before, p, next-1) || !m.inSet(after, p, next-1) {
				return -1
			}
			p = next
			continue
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] >= '0' && m.pattern[p+1] <= '9':
			same := m.captured(int(m.pattern[p+1]) - '1')
			m.run.spend(1 + len(same)>>6)
			if !strings.HasPrefix(m.source[s:], same) {
				return -1
			}
			s, p = s+len(same), p+2
			continue
		}

		next := m.class(p)
		var repeat byte
		if next < len(m.pattern) {
			repeat = m.pattern[next]
		}
		switch repeat {
		case '?':
			if m.one(s, p, next) {
				if end := m.match(s+1, next+1); end >= 0 {
					return end
				}
			}
			p = next + 1
		case '*':
			return m.longest(s, p, next, 0)
		case '+':
			return m.longest(s, p, next, 1)
		case '-':
			for {
				if end := m.match(s, next+1); end >= 0 {
					return end
				}
				if !m.one(s, p, next) {
					return -1
				}
				s++
				m.tick()
			}
		default:
			if !m.one(s, p, next) {
				return -1
			}
			s, p = s+1, next
		}
	}
}

// longest matches the class at p as often as possible, at least least times, and backtracks until the rest matches.
func (m *matcher) longest(s, p, next, least int) int {
	n := 0
	for m.one(s+n, p, next) {
		n++
		m.tick()
	}
	for ; n >= least; n-- {
		if end := m.match(s+n, next+1); end >= 0 {
			return end
		}
		m.tick()
	}
	return -1
}

// capturing opens a capture.
func (m *matcher) capturing(s, p, length int) int {
	if len(m.captures) == maxCaptures {
		m.malformed("it has too many captures")
	}
	n := len(m.captures)
	m.captures = append(m.captures, capture{s, length})
	end := m.match(s, p)
	if end < 0 {
		m.captures = m.captures[:n]
	}
	return end
}

// closing closes the last open capture.
func (m *matcher) closing(s, p int) int {
	for i := len(m.captures) - 1; i >= 0; i-- {
		if m.captures[i].length == captureOpen {
			m.captures[i].length = s - m.captures[i].begin
			end := m.match(s, p)
			if end < 0 {
				m.captures[i].length = captureOpen
			}
			return end
		}
	}
	m.malformed("it closes a capture that was not opened")
	return -1
}

// captured returns the text of capture i, from 0.
func (m *matcher) captured(i int) string {
	if i < 0 || i >= len(m.captures) || m.captures[i].length == captureOpen {
		m.malformed("it refers to a capture that does not exist")
	}
	c := m.captures[i]
	return m.source[c.begin : c.begin+max(c.length, 0)]
}

// balanced returns the end of a part enclosed by the two characters at p; -1 if there is none.
func (m *matcher) balanced(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.malformed("%b is not followed by two characters")
	}
	opening, closing := m.pattern[p], m.pattern[p+1]
	if s >= len(m.source) || m.source[s] != opening {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.source); i++ {
		m.tick()
		switch m.source[i] {
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		case opening:
			depth++
		}
	}
	return -1
}

// class returns the end of the character class at p.
func (m *matcher) class(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p == len(m.pattern) {
			m.malformed("it ends with %")
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pattern) || m.pattern[p] != ']'; first = false {
			if p >= len(m.pattern) {
				m.malformed("a set has no ]")
			}
			if p++; m.pattern[p-1] == '%' {
				p++
			}
		}
		return p + 1
	}
	return p
}

// one reports whether the class from p to end matches the character at s.
func (m *matcher) one(s, p, end int) bool {
	if s >= len(m.source) {
		return false
	}
	c := m.source[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.pattern[p] == c
}

// inSet reports whether the set from p, its [, to end, its ], matches a character.
func (m *matcher) inSet(c byte, p, end int) bool {
	found := true
	if p++; m.pattern[p] == '^' {
		found = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pattern[p] == '%':
			if p++; inClass(c, m.pattern[p]) {
				return found
			}
		case p+2 < end && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return found
			}
			p += 2
		case m.pattern[p] == c:
			return found
		}
	}
	return !found
}

// inClass reports whether a class such as %a matches a character. An upper-case class is the complement.
func inClass(c, class byte) bool {
	var in bool
	lower := 'a' <= c && c <= 'z'
	upper := 'A' <= c && c <= 'Z'
	digit := '0' <= c && c <= '9'
	graphic := '!' <= c && c <= '~'
	switch class | 0x20 {
	case 'a':
		in = lower || upper
	case 'c':
		in = c < ' ' || c == 127
	case 'd':
		in = digit
	case 'l':
		in = lower
	case 'p':
		in = graphic && !lower && !upper && !digit
	case 's':
		in = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		in = upper
	case 'w':
		in = lower || upper || digit
	case 'x':
		in = digit || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	return in == (class >= 'a')
}

// capture returns capture i, from 0. Without captures the first one is the whole match.
func (m *matcher) capture(i, begin, end int) lua.LValue {
	if i == 0 && len(m.captures) == 0 {
		return lua.LString(m.source[begin:end])
	}
	if i < len(m.captures) && m.captures[i].length == capturePosition {
		return lua.LNumber(m.captures[i].begin + 1)
	}
	return lua.LString(m.captured(i))
}

func (m *matcher) pushCaptures() int {
	for i := range m.captures {
		m.machine.Push(m.capture(i, 0, 0))
	}
	return len(m.captures)
}

// pushResult pushes the captures, or the whole match if there are none.
func (m *matcher) pushResult(begin, end int) int {
	if len(m.captures) == 0 {
		m.machine.Push(m.capture(0, begin, end))
		return 1
	}
	return m.pushCaptures()
}
