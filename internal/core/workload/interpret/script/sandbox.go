package script

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	words "github.com/argosy-io/argosy/internal/core/object/text"
)

// The machine calls Done of its context before each instruction. This limits a call: Done counts instructions and
// regularly checks the time and the memory.
const (
	// roundSteps is the number of instructions between two checks.
	roundSteps = 64
	// stepBytes is the maximum average memory per instruction. Larger allocations call grow.
	stepBytes = 256
	// slack is the part of the limit by which a call may exceed it before it is noticed, because weighing takes time.
	slack = 8
	// quickRounds is the number of rounds without a timer. Most calls need none.
	quickRounds = 16
	// printedLines and printedBytes limit the kept output of print. A script may print in a loop until its deadline.
	printedLines, printedBytes = 100, 16 << 10
)

// machines are idle machines without state of earlier calls.
var machines = sync.Pool{New: func() any {
	l := lua.NewState(lua.Options{
		SkipOpenLibs:  true,
		CallStackSize: DepthLimit,
		RegistrySize:  1 << 10, RegistryMaxSize: 64 << 10, RegistryGrowStep: 1 << 10,
	})
	l.SetMetatable(lua.LString(""), library.stringMeta)
	return l
}}

// bounds are the time and memory limits of a call.
type bounds struct {
	deadline time.Duration
	memory   int
}

// run is one call of a script. It is the context of its machine.
type run struct {
	machine *lua.LState
	caller  context.Context
	bounds  bounds
	// limited ends with caller or at the deadline; nil until it is needed.
	limited context.Context
	release context.CancelFunc
	// steps are left in this round. rounds counts the rounds.
	steps, rounds int
	// slow is true if single instructions may take long, because values are large.
	slow bool

	// live is the memory at the last weighing, and visited the number of values. grown is what the library has allocated
	// since, and stepped the number of instructions since, each of which may have allocated stepBytes. leaked is memory
	// that weighing cannot find, pending what the library is building.
	live, visited, grown, stepped, leaked, pending int
	// stopped is why the call must end. The script cannot catch it.
	stopped *fault

	// env has the script's definitions. It falls back on the library.
	env *lua.LTable
	// sources are the origins of tables, see convert.go.
	sources map[*lua.LTable]*source
	// large maps Lua numbers to the input's integers that they cannot represent; 0 if ambiguous.
	large map[lua.LNumber]int64
	dice  *rand.Rand
	// object is the table of the operation's object, if any.
	object *lua.LTable

	printed      []string
	printedBytes int
}

// ended is a closed channel.
var ended = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done implements context.Context. It is called before each instruction.
func (r *run) Done() <-chan struct{} {
	if r.steps--; r.steps > 0 {
		return nil
	}
	r.round()
	if r.stopped != nil {
		return ended
	}
	return nil
}

// Err implements context.Context. The script sees it as the reason of its end.
func (r *run) Err() error {
	if r.stopped == nil {
		return nil
	}
	return r.stopped
}

// Deadline implements context.Context.
func (r *run) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (r *run) Value(key any) any { return r.caller.Value(key) }

// round begins a round and checks time and memory.
func (r *run) round() {
	if r.stopped != nil {
		r.steps = 0
		return
	}
	if r.steps = roundSteps; r.slow {
		r.steps = 1
	}
	r.rounds++
	if r.limited == nil && (r.rounds > quickRounds || r.slow) {
		r.limited, r.release = context.WithTimeout(r.caller, r.bounds.deadline)
	}
	if r.late() {
		return
	}
	if r.stepped += r.steps; r.heavy() {
		r.weigh()
	}
}

// heavy reports whether the call may use too much memory, so that it must be weighed. Weighing takes time, so a mere
// estimate is no reason to hurry.
func (r *run) heavy() bool {
	room := max(r.bounds.memory-r.live, r.bounds.memory/slack)
	return r.grown > room || r.grown+r.stepped*stepBytes > room && r.stepped > r.visited/8
}

// late stops the call after its deadline.
func (r *run) late() bool {
	over := r.limited != nil && r.limited.Err() != nil // check it first, because it also ends with the caller's
	if err := r.caller.Err(); err != nil {
		r.stop(&fault{Canceled, 0, "the call was canceled: " + err.Error()})
		return true
	}
	if over {
		r.stop(&fault{DeadlineExceeded, 0, fmt.Sprintf("ran longer than %s; look for a loop that does not end",
			r.bounds.deadline)})
	}
	return over
}

// stop ends the call. The first reason counts.
func (r *run) stop(f *fault) {
	if r.stopped != nil {
		return
	}
	r.stopped, r.steps = f, 0
	// If the library called stop, the first frame is the library's.
	for level := range 2 {
		if frame, ok := r.machine.GetStack(level); ok {
			if _, err := r.machine.GetInfo("l", frame, lua.LNil); err == nil && frame.CurrentLine > 0 {
				f.line = frame.CurrentLine
				return
			}
		}
	}
}

// spend counts work of the library in instructions. It does not return after the deadline.
func (r *run) spend(steps int) {
	if r.steps -= steps; r.steps <= 0 {
		r.round()
		if r.stopped != nil {
			r.machine.RaiseError("%s", r.stopped.message)
		}
	}
}

// grow counts memory that the library is about to use. It does not return if there is none left.
func (r *run) grow(bytes int) {
	if bytes > 1<<20 {
		r.slow = true
	}
	if r.grown += bytes; r.heavy() {
		if bytes <= r.bounds.memory {
			r.weigh()
			r.grown = bytes
		}
		if r.live+bytes > r.bounds.memory {
			r.stop(r.tooMuch())
		}
	}
	r.spend(1 + bytes>>8)
}

// buffer is a string that the library builds.
type buffer struct {
	run *run
	strings.Builder
}

func (b *buffer) add(s string) {
	b.run.grow(len(s))
	b.run.pending += len(s)
	b.WriteString(s)
}

// close must be called when the string is passed to the script or discarded.
func (b *buffer) close() { b.run.pending -= b.Len() }

func (r *run) tooMuch() *fault {
	return &fault{MemoryExceeded, 0, fmt.Sprintf(
		"uses more than %d MiB; look for a table or a string that grows in a loop", r.bounds.memory>>20)}
}

// Approximate sizes in bytes. The first few fields of a table take less than later ones.
const (
	tableBytes, slotBytes                   = 160, 16
	fieldsBytes, fieldBytes, manyFieldBytes = 512, 100, 180
	fewFields                               = 8
	functionBytes, upvalueBytes             = 120, 48
	stringBytes, numberBytes                = 32, 8
)

// weigh sums up the memory that the script can reach, and stops the call if it exceeds the limit.
func (r *run) weigh() {
	total := r.leaked + r.pending
	r.visited = 0
	seen := map[lua.LValue]bool{}
	var open []lua.LValue
	visit := func(v lua.LValue) {
		r.visited++
		switch v := v.(type) {
		case lua.LString:
			total += stringBytes + len(v) // counted once per reference, because shared strings cannot be recognized
		case lua.LNumber:
			total += numberBytes
		case *lua.LTable, *lua.LFunction:
			if !seen[v] {
				seen[v] = true
				open = append(open, v)
			}
		}
	}

	visit(r.env)
	for level := 0; ; level++ {
		frame, ok := r.machine.GetStack(level)
		if !ok {
			break
		}
		for i := 1; ; i++ {
			name, v := r.machine.GetLocal(frame, i)
			if name == "" {
				break
			}
			total += slotBytes
			visit(v)
		}
		if f, err := r.machine.GetInfo("f", frame, lua.LNil); err == nil {
			visit(f)
		}
	}
	looked := r.visited
	for len(open) > 0 && total <= r.bounds.memory {
		if r.visited > looked+1<<16 {
			if looked = r.visited; r.late() {
				return
			}
		}
		v := open[len(open)-1]
		open = open[:len(open)-1]
		switch v := v.(type) {
		case *lua.LTable:
			n := v.MaxN()
			total += tableBytes + n*slotBytes
			for i := range n {
				visit(v.RawGetInt(i + 1))
			}
			last, fields := lua.LNil, 0
			if n > 0 {
				last = lua.LNumber(n)
			}
			for ; ; fields++ {
				var value lua.LValue
				if last, value = v.Next(last); last == lua.LNil {
					break
				}
				visit(last)
				visit(value)
			}
			if fields > 0 {
				total += fieldsBytes + min(fields, fewFields)*fieldBytes + max(0, fields-fewFields)*manyFieldBytes
			}
		case *lua.LFunction:
			total += functionBytes
			for _, u := range v.Upvalues {
				if u != nil {
					total += upvalueBytes
					visit(u.Value())
				}
			}
		}
	}
	r.live, r.grown, r.stepped = total, 0, 0
	if total > r.bounds.memory {
		r.stop(r.tooMuch())
	}
}

// print keeps the output of a script.
func (r *run) print(line string) {
	if len(r.printed) < printedLines && r.printedBytes+len(line) <= printedBytes {
		r.printed = append(r.printed, line)
		r.printedBytes += len(line)
	}
}

// runOf returns the run in which a function of the library was called.
func runOf(l *lua.LState) *run { return l.Context().(*run) }

// execute runs the script and then the function from pick with the arguments from args. read gets the results. Only
// what read keeps remains of the call. The error is a *fault.
func execute(ctx context.Context, b bounds, c *compiled, pick func(*run) (lua.LValue, error),
	args func(*run) ([]lua.LValue, error), read func(*run, []lua.LValue) error) error {
	l := machines.Get().(*lua.LState)
	r := &run{machine: l, caller: ctx, bounds: b, steps: roundSteps, sources: map[*lua.LTable]*source{}}
	r.env = l.CreateTable(0, len(c.functions))
	r.env.Metatable = library.envMeta
	if c.globals {
		r.env.RawSetString("_G", &lua.LTable{Metatable: library.globalsMeta})
	}
	for _, name := range c.extended {
		own := r.extend(name)
		r.env.RawSetString(name, own)
		if name == "string" {
			meta := l.CreateTable(0, 1)
			meta.RawSetString("__index", own)
			l.SetMetatable(lua.LString(""), meta)
		}
	}
	l.SetContext(r)
	defer func() {
		if r.release != nil {
			r.release()
		}
	}()

	if err := r.protected(0, func() { l.Push(&lua.LFunction{Env: r.env, Proto: c.main}) }, 0); err != nil {
		return explain(err)
	}
	function, err := pick(r)
	if err != nil {
		return err
	}
	arguments, err := args(r)
	if err != nil {
		return err
	}
	err = r.protected(len(arguments), func() {
		l.Push(function)
		for _, a := range arguments {
			l.Push(a)
		}
	}, lua.MultRet)
	if err != nil {
		return explain(err)
	}
	results := make([]lua.LValue, l.GetTop())
	for i := range results {
		results[i] = l.Get(i + 1)
	}
	if err := read(r, results); err != nil {
		return err
	}

	// A machine with a failure is not reused.
	l.SetTop(0)
	l.RemoveContext()
	if slices.Contains(c.extended, "string") {
		l.SetMetatable(lua.LString(""), library.stringMeta)
	}
	machines.Put(l)
	return nil
}

// extend creates a copy of a library for the call, which falls back on the shared one.
func (r *run) extend(name string) *lua.LTable {
	own, meta := r.machine.CreateTable(0, 1), r.machine.CreateTable(0, 1)
	meta.RawSetString("__index", library.base.RawGetString(name))
	own.Metatable = meta
	return own
}

// protected calls the pushed function.
func (r *run) protected(args int, push func(), results int) error {
	push()
	err := r.machine.PCall(args, results, nil)
	if r.stopped != nil {
		return r.stopped
	}
	return err
}

// position matches the beginning of the machine's errors.
var position = regexp.MustCompile(`^` + chunk + `:(\d+): ?`)

// explain splits an error of the machine into line and message. The result is a *fault.
func explain(err error) error {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	var e *lua.ApiError
	if !errors.As(err, &e) {
		return &fault{Runtime, 0, err.Error()}
	}
	var message string
	switch object := e.Object.(type) {
	case lua.LString, lua.LNumber:
		message = object.String()
	case *lua.LTable:
		// A table passed to error() usually has a field message.
		message = "error() was called with a table; call it with a string that describes the problem"
		if m, ok := object.RawGetString("message").(lua.LString); ok {
			message = string(m)
		}
	default:
		message = fmt.Sprintf("error() was called with %s", describe(object))
	}
	f = &fault{reason: Runtime, message: message}
	if m := position.FindStringSubmatch(message); m != nil {
		f.line, _ = strconv.Atoi(m[1])
		f.message = message[len(m[0]):]
	}
	switch {
	case strings.Contains(f.message, "stack overflow"), strings.Contains(f.message, "callstack overflow"):
		f.reason, f.message = TooDeep, fmt.Sprintf("more than %d nested calls; look for infinite recursion", DepthLimit)
	case strings.Contains(f.message, "registry overflow"):
		f.reason, f.message = TooDeep, "too many values at once; look for unpack of a large table or infinite recursion"
	case f.message == "__len undefined":
		f.message = "# asks for the length of a value that is neither a table nor a string"
	}
	return f
}

// describe describes a value for messages.
func describe(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LBool, lua.LNumber:
		return fmt.Sprintf("the %s %s", v.Type(), v)
	case lua.LString:
		return fmt.Sprintf("the string %q", words.Cut(string(v), 40))
	}
	if v == nil || v == lua.LNil {
		return "nil"
	}
	return "a " + v.Type().String()
}
