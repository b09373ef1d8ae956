package script

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// writer writes programs that do all that the guard rewrites, and never fail.
type writer struct {
	rng   *rand.Rand
	depth int
}

func (w *writer) one(of ...string) string { return of[w.rng.IntN(len(of))] }

func (w *writer) number() string {
	if w.depth++; w.depth > 4 {
		w.depth--
		return w.one("1", "2", "a", "b", "c")
	}
	defer func() { w.depth-- }()
	switch w.rng.IntN(9) {
	case 0:
		return fmt.Sprint(w.rng.IntN(9))
	case 1:
		return "#" + w.one("t", "u", "s")
	case 2:
		return fmt.Sprintf("(%s[%s] or %s)", w.one("t", "u"), w.key(), w.number())
	case 3:
		return fmt.Sprintf("(t.x or %s)", w.number())
	case 4:
		return fmt.Sprintf("f(%s, %s)", w.number(), w.number())
	case 5:
		return fmt.Sprintf("(%s %s %s) %% 1000", w.number(), w.one("+", "-", "*"), w.number())
	case 6:
		return fmt.Sprintf("#(%s .. %s .. %s)", w.number(), w.one(`"x"`, "s", "f(1, 2)"), w.number())
	}
	return w.one("a", "b", "c")
}

// key returns a small one, so that no list has a wide gap.
func (w *writer) key() string { return fmt.Sprintf("(%s) %% 5 + 1", w.number()) }

func (w *writer) many() string {
	return w.one(w.number()+", "+w.number(), fmt.Sprintf("f(%s, %s)", w.number(), w.number()),
		fmt.Sprintf("(f(%s, 3))", w.number()), w.number())
}

func (w *writer) statement() string {
	if w.depth++; w.depth > 4 {
		w.depth--
		return "a = a + 1"
	}
	defer func() { w.depth-- }()
	element := func() string { return fmt.Sprintf("%s[%s]", w.one("t", "u"), w.key()) }
	switch w.rng.IntN(13) {
	case 0:
		return element() + " = " + w.number()
	case 1:
		return fmt.Sprintf("%s, %s = %s", element(), element(), w.many())
	case 2:
		// Not to a local variable: the machine alone sets such a one before it has evaluated the rest.
		return fmt.Sprintf("t.y, %s, t.x = b, %s", element(), w.many())
	case 3:
		return fmt.Sprintf("%s, %s = (%s) or 0, (%s) or 0", w.one("a", "b"), "c", w.number(), w.number())
	case 4:
		return fmt.Sprintf("%s = {%s, %s}", w.one("t", "u"), w.number(), w.many())
	case 5:
		return fmt.Sprintf(`t = {[%s] = %s, x = %s, ["y z"] = %s}`, w.key(), w.number(), w.number(), w.number())
	case 6:
		return fmt.Sprintf("s = (%s .. s .. %s .. '-' .. (%s)):sub(-30)", w.number(), w.number(), w.number())
	case 7:
		return fmt.Sprintf("if %s > %s then %s else %s end", w.number(), w.number(), w.statement(), w.statement())
	case 8:
		return fmt.Sprintf("for i = 1, 3 do %s %s t[i] = i %s end", w.statement(), w.one("", "if i == 2 then break end"),
			w.statement())
	case 9:
		return fmt.Sprintf("do local a = %s %s b = a end", w.number(), w.statement())
	case 10:
		return fmt.Sprintf("f = function(x, ...) local y = ... %s return (x or 0) %% 100, (y or 1) %% 100, select('#', ...) end", w.one("", "y = #{...}", "y = (select('#', ...)) .. 1"))
	case 11:
		return fmt.Sprintf("local n = 0 repeat n = n + 1 local last = n > 2 %s until last", w.statement())
	}
	return fmt.Sprintf("b = (function(...) %s return f(...) end)(%s)", w.statement(), w.many())
}

func TestGuardKeepsBehaviour(t *testing.T) {
	t.Parallel()
	const dump = `
		local function dump(t) local out = {} for k, v in pairs(t) do out[#out + 1] = tostring(k) .. "=" .. tostring(v) end table.sort(out) return table.concat(out, ",") end
		print(a, b, c, s, dump(t), dump(u))`
	ran := 0
	rounds := uint64(1500)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		w := &writer{rng: rand.New(rand.NewPCG(seed, 7))}
		program := "local a, b, c, s, t, u = 1, 2, 3, 'x', {}, {5, 6}\nlocal f = function(x, y) return (x + (y or 0)) % 100, x end\n"
		for range 1 + w.rng.IntN(6) {
			program += "do " + w.statement() + " end\n"
		}
		program += dump

		l := lua.NewState()
		var plain []string
		l.SetGlobal("print", l.NewFunction(func(l *lua.LState) int {
			for i := range l.GetTop() {
				plain = append(plain, l.ToString(i+1))
			}
			return 0
		}))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		l.SetContext(ctx)
		err := l.DoString(program)
		cancel()
		l.Close()
		if err != nil {
			continue // such as a list that got a hole; the next one will do
		}
		ran++

		p, err := Compile("ours", replicasOp, "function GetReplicas()\n"+program+"\nreturn 1 end", nil)
		if err != nil {
			t.Fatalf("%s\n%v", program, err)
		}
		p.bounds.deadline = time.Minute
		out, err := p.Evaluate(context.Background(), inputs{})
		if err != nil {
			t.Fatalf("seed %d: %s\n%v", seed, program, err)
		}
		if got, want := strings.Join(out.Printed, "\n"), strings.Join(plain, "\t"); got != want {
			t.Fatalf("seed %d: %s\ngot  %s\nwant %s", seed, program, got, want)
		}
	}
	if ran < int(rounds/3) {
		t.Errorf("only %d programs ran", ran)
	}
	t.Logf("%d programs", ran)
}
