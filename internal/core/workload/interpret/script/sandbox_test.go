package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// printed runs a script that has nothing to do with objects, and gives what it printed.
func printed(t *testing.T, body string) string {
	t.Helper()
	p, err := Compile("ours", replicasOp, "function GetReplicas(obj)\n"+body+"\nreturn 1\nend", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.bounds.deadline = time.Minute
	out, err := p.Evaluate(context.Background(), inputs{})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return strings.Join(out.Printed, "|")
}

func TestLibraryMatchesLuaManual(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`print(("abc"):upper(), ("ABC"):lower(), ("abc"):reverse(), ("abc"):len())`:                                                                                                 "ABC\tabc\tcba\t3",
		`print(("abc"):sub(2), ("abc"):sub(-2, -1), ("abc"):sub(0), ("abc"):sub(3, 2), ("abc"):sub(-9, 1))`:                                                                         "bc\tbc\tabc\t\ta",
		`print(("abc"):byte(), ("abc"):byte(-1), ("abc"):byte(1, 3))`:                                                                                                               "97\t99\t97\t98\t99",
		`print(string.char(97, 98), ("ab"):rep(3), ("ab"):rep(0))`:                                                                                                                  "ab\tababab\t",
		`print(("hello world"):find("wor"), ("a.b"):find(".", 1, true), ("abc"):find("b", -1))`:                                                                                     "7\t2\tnil",
		`print(("hello"):find("(l)(l)")) print(("hello"):find("")) print(("hello"):find("", 10))`:                                                                                   "3\t4\tl\tl|1\t0|nil",
		`print(("key = value"):match("^(%w+)%s*=%s*(%w+)$"), ("x"):match("y"))`:                                                                                                     "key\tnil",
		`print(("2024-01-31"):match("(%d+)-(%d+)-(%d+)"))`:                                                                                                                          "2024\t01\t31",
		`print(("[[x]]"):match("%b[]")) print(("THE (quick) fox"):find("%((%a+)%)")) print(("a,b"):match("()b"))`:                                                                   "[[x]]|5\t11\tquick|3",
		`print(("THE (quick) fox"):gsub("%f[%a]%a+", string.lower))`:                                                                                                                "the (quick) fox\t3",
		`print(("hello world"):gsub("o", "0", 1), ("abc"):gsub("", "-"), ("abc"):gsub("%w", "%0%0"))`:                                                                               "hell0 world\t-a-b-c-\taabbcc\t3",
		`print(("$a $b"):gsub("%$(%w+)", {a = "1"}), ("abc"):gsub("^a", "x"), ("x=1"):gsub("(%w)=(%w)", "%2=%1"))`:                                                                  "1 $b\txbc\t1=x\t1",
		`for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do print(k, v) end for w in ("one two"):gmatch("%a+") do print(w) end`:                                                      "a\t1|b\t2|one|two",
		`print(("aaa"):match("a-"), ("aaab"):match("a-b"), ("aXb"):match("%u"), ("a-b"):match("[a%-]+"), ("x]y"):match("[]]"), ("abc"):match("[^a]+"))`:                             "\taaab\tX\ta-\t]\tbc",
		`print(("abab"):match("(ab)%1"), ("5"):match("[1-5]"), ("e"):match("[a-c]"))`:                                                                                               "ab\t5\tnil",
		`print(string.format("%d %5.2f %s %q %x %%", 3, 1.5, "a", "b\n", 255), string.format("%-5s|%05d", "a", 42), string.format("%s %s", nil, true))`:                             "3  1.50 a \"b\\\n\" ff %\ta    |00042\tnil true",
		`print(tostring(1), tostring(1.5), tostring(nil), tostring({}), tonumber("0x10"), tonumber("10", 2), tonumber("x"))`:                                                        "1\t1.5\tnil\ttable\t16\t2\tnil",
		`print(1 .. 2, "a" .. 1.5 .. "b" .. "c")`:                                                                                                                                   "12\ta1.5bc",
		`local t = {3, 1, 2} table.sort(t) print(table.concat(t, ","), table.concat(t), table.concat({}, ","), table.concat(t, "-", 2, 3))`:                                         "1,2,3\t123\t\t2-3",
		`local t = {"b", "a"} table.sort(t, function(a, b) return a > b end) print(t[1], #t, table.getn(t), table.maxn(t))`:                                                         "b\t2\t2\t2",
		`local t = {1, 2, 3} print(table.remove(t, 1), table.remove(t), #t, table.remove({}), table.remove(t, 9))`:                                                                  "1\t3\t1\tnil\tnil",
		`local a, b, c = unpack({1, 2, 3}, 2) print(a, b, c, select("#", 1, nil), select(2, "a", "b"))`:                                                                             "2\t3\tnil\t2\tb",
		`local t = {10, 20, 30} t[1], t[3] = t[3], t[1] local i = 1 i, t[i] = i + 1, 5 print(t[1], t[2], t[3], i)`:                                                                  "5\t20\t10\t2",
		`local t = {} t[1], t[2], t.x = (function() return 1, 2, 3 end)() print(t[1], t[2], t.x)`:                                                                                   "1\t2\t3",
		`local function f(...) return ... end local t = {0, f(1, 2, 3)} print(#t, (f(4, 5)), #{f()}, #{(f(1, 2))})`:                                                                 "4\t4\t0\t1",
		`local t = {[1] = "a", [2] = "b", c = "d", ["e f"] = 1} print(#t, t.c, t["e f"])`:                                                                                           "2\td\t1",
		`local function f(n) if n == 0 then return "done" end return f(n - 1) end print(f(50))`:                                                                                     "done",
		`print(pcall(error, "no")) print(pcall(error, {code = 1})) print(select(2, pcall(function() local x = nil; return x.y end)) ~= nil)`:                                        "false\tscript:2: no|false\ttable|true",
		`print(xpcall(function() error("x", 0) end, function(e) return e .. "!" end))`:                                                                                              "false\tx!",
		`print(math.floor(1.5), math.max(1, 3), math.huge > 1, math.random(3) <= 3, math.random() < 1)`:                                                                             "1\t3\ttrue\ttrue\ttrue",
		`print(os.time({year = 2024, month = 1, day = 2, hour = 3}) > 0, type(os.time()), type(os.date()), os.getenv, os.execute, os.exit)`:                                         "true\tnumber\tstring\tnil\tnil\tnil",
		`print(io, debug, package, load, loadstring, loadfile, dofile, rawget, rawset, rawequal, setmetatable, getmetatable, setfenv, collectgarbage, module, newproxy, coroutine)`: strings.TrimSuffix(strings.Repeat("nil\t", 17), "\t"),
		`print(_G == nil, _G.print == print, next({}), next({7}), type(_VERSION))`:                                                                                                  "false\ttrue\tnil\t1\tstring",
		`_G.x = 4 print(x, _G["x"])`: "4\t4",
		`local kube = require("kube") print(kube.resourceAdd("1Gi", "512Mi"), kube.resourceAdd("500m", "1"), kube.resourceAdd(), kube.getResourceQuantity("250m"), kube.getResourceQuantity("1Ki"), kube.resourceAdd(nil, 2))`: "1536Mi\t1500m\t0\t0.25\t1024\t2",
	} {
		if got := printed(t, body); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", body, got, want)
		}
	}
}

func TestCallsAreIsolated(t *testing.T) {
	t.Parallel()
	source := `
		count = (count or 0) + 1
		function GetReplicas(obj)
		  seen = (seen or 0) + 1
		  if string.x or string.twice or ("a").twice then return 97 end
		  math.randomseed(math.random(1000))
		  pcall(function() string.rep = nil end)
		  pcall(function() local s = string s.x = 1 end)
		  pcall(function() table.insert(math, 1) end)
		  pcall(function() for k in pairs(os) do os[k] = nil end end)
		  local s = ("x"):rep(2)
		  if s ~= "xx" or os.time == nil or #math > 0 then return 99 end
		  function string.twice(s) return s .. s end
		  if s:twice() ~= "xxxx" or string.twice("a") ~= "aa" or ("a"):rep(2) ~= "aa" then return 98 end
		  return count + seen
		end`
	p, err := Compile("ours", replicasOp, source, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		out, err := p.Evaluate(context.Background(), inputs{})
		if err != nil || out.Replicas != 2 {
			t.Fatalf("got %+v, %v", out, err)
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	web := cloneSet(t)
	broken, err := Compile("ours", replicasOp,
		`function GetReplicas(obj) local t = obj.spec.template for i = 1, 100 do t = {t} end return obj.status.nothing.x end`,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 100 {
				// Half of them are compiled at the same time by several.
				source := fmt.Sprintf(`local kube = require("kube")
					local own = %d
					function GetReplicas(obj)
					  last = obj.spec.replicas + own
					  obj.spec.template.spec.containers[1].name = "x" .. own
					  return last, kube.accuratePodRequirements(obj.spec.template)
					end`, i/2)
				p, err := Compile("ours", replicasOp, source, nil)
				if err != nil {
					t.Error(err)
					return
				}
				out, err := p.Evaluate(context.Background(), inputs{Object: web})
				if err != nil || int(out.Replicas) != 5+i/2 || out.Requirements.ResourceRequest.Cpu().MilliValue() != 300 {
					t.Errorf("worker %d: got %+v, %v", worker, out, err)
					return
				}
				if _, err := broken.Evaluate(context.Background(), inputs{Object: web}); err == nil {
					t.Error("the broken script worked")
				}
			}
		})
	}
	all.Wait()
}

func TestCanceledContextEndsScript(t *testing.T) {
	t.Parallel()
	p, err := Compile("ours", replicasOp, `function GetReplicas(obj) while true do pcall(function() end) end end`, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.bounds.deadline = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for range 2 { // in the middle, and before it began
		_, err = p.Evaluate(ctx, inputs{})
		var e *Error
		if !errors.As(err, &e) || e.Reason != Canceled || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the caller's context", err)
		}
	}
}

func TestInvalidScriptFailsOnlyItsOperation(t *testing.T) {
	t.Parallel()
	rule := func(source string) *configv1alpha1.OperationRule {
		return &configv1alpha1.OperationRule{LuaScript: source}
	}
	hooks, err := Hooks("ours", configv1alpha1.CustomizationRules{
		ReplicaResource:          rule(`function GetReplicas(obj) return obj.spec.replicas end`),
		ReplicaRevision:          &configv1alpha1.OperationRule{JSONPath: ".spec.replicas"},
		HealthInterpretation:     &configv1alpha1.HealthRule{OperationRule: *rule(`function InterpretHealth(obj) return`)},
		DependencyInterpretation: rule(`-- nothing yet`),
		StatusReflection:         rule(`function ReflectStatus(obj) return obj.status.a.b end`),
	}, nil)
	if faults := Errors(fmt.Errorf("wrapped: %w", err)); len(faults) != 2 || faults[0].Operation != healthOp ||
		faults[0].Reason != Syntax || faults[1].Operation != dependenciesOp || faults[1].Reason != NoFunction {
		t.Errorf("got %v, want the faults of two scripts", err)
	}
	if len(hooks) != 4 {
		t.Error("operations without scripts have hooks")
	}
	ctx, web, i := context.Background(), cloneSet(t), interpret.New(hooks)
	if n, req, _, err := i.Replicas(ctx, web); n != 5 || req != nil || err != nil {
		t.Errorf("got %d, %v, %v; want 5", n, req, err)
	}
	if h, err := i.Health(ctx, web); h != interpret.Unknown || len(Errors(err)) != 1 {
		t.Errorf("got %s, %v; want the fault of the script", h, err)
	}
	if _, err := i.Dependencies(ctx, web); len(Errors(err)) != 1 {
		t.Errorf("got %v, want the fault of the script", err)
	}
	if _, err := i.Reflect(ctx, web); err == nil ||
		!strings.Contains(err.Error(), `customization "ours", InterpretStatus, line 1: attempt to index a non-table`) {
		t.Errorf("got %v", err)
	}
}

func TestWarningsAboutKarmadaIncompatibility(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operation    configv1alpha1.InterpreterOperation
		source, want string
	}{
		{replicasOp, `function Count(obj) return 1 end`,
			"[Count is called for InterpretReplica because it is the only function; Karmada only calls GetReplicas(obj)]"},
		{aggregateOp, `function AggregateStatus(d, i) return {replicas = 1} end`,
			"[AggregateStatus returned a status without its object, which Karmada does not understand; return desiredObj with its status set]"},
		{replicasOp, `function GetReplicas(obj) return 1, {resources = {cpu = 1}} end`,
			`[GetReplicas returned result 2 with unknown fields: strict decoding error: unknown field "resources"; it must be a table of {nodeClaim, resourceRequest, namespace, priorityClassName}]`},
		{replicasOp, `function GetReplicas(obj) return 1 end`, "[]"},
	} {
		p, err := Compile("ours", c.operation, c.source, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Evaluate(context.Background(), inputs{Object: cloneSet(t)})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(out.Warnings); got != c.want {
			t.Errorf("%s: got %s, want %s", c.source, got, c.want)
		}
	}
}

func TestInvalidItemIsNamed(t *testing.T) {
	t.Parallel()
	p, err := Compile("ours", aggregateOp, `function AggregateStatus(d, i) return d end`, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Evaluate(context.Background(),
		inputs{Object: cloneSet(t), Items: []workv1alpha2.AggregatedStatusItem{{ClusterName: "eu",
			Status: &runtime.RawExtension{Raw: []byte(`{`)}}}})
	if all := Errors(err); len(all) != 1 || all[0].Reason != BadInput ||
		!strings.Contains(err.Error(), `the status of cluster "eu" is not valid JSON`) {
		t.Errorf("got %v", err)
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	p, err := Compile("ours", healthOp,
		"local kube = require('kube')\nfunction helper(a, b) function inner() end end\nlocal function own() end\nlocal mine\nfunction mine() end\nif kube then\n  InterpretHealth = function(observedObj) return true end\nend", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(p.compiled.functions), "[helper mine InterpretHealth]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if name, byContract := p.Function(); name != "InterpretHealth" || !byContract {
		t.Errorf("got %s, %t", name, byContract)
	}
}

func TestCacheKeepsRecentScripts(t *testing.T) {
	first := compiledOf(t, "return 0")
	for i := range 3 * cachedScripts {
		compiledOf(t, fmt.Sprintf("return %d", i%(2*cachedScripts)))
		if compiledOf(t, "return 0") != first {
			t.Fatalf("a script that is used all the time was compiled again after %d others", i)
		}
	}
	if n := cache.Len(); n > cachedScripts {
		t.Errorf("the cache holds %d scripts, more than %d", n, cachedScripts)
	}
}

func compiledOf(t *testing.T, source string) *compiled {
	t.Helper()
	c, err := compileOnce(source)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDeeplyNestedScriptsCompileOrFail(t *testing.T) {
	t.Parallel()
	size := SizeLimit
	if testing.Short() {
		size /= 10
	}
	for name, source := range map[string]string{
		"parentheses": "return " + strings.Repeat("(", size/2-10) + "1" + strings.Repeat(")", size/2-10),
		"tables":      "return " + strings.Repeat("{", size/2-10) + strings.Repeat("}", size/2-10),
		"a chain":     "return " + strings.Repeat("a..", size/3-10) + "a",
		"blocks":      strings.Repeat("do ", size/7) + strings.Repeat("end ", size/7),
		"functions":   strings.Repeat("f(function() ", size/18) + strings.Repeat("end) ", size/18),
		"assignments": strings.Repeat("a[i]=", 1) + strings.Repeat("a[", size/3-10) + "1" + strings.Repeat("]", size/3-10),
	} {
		if err := Check(source); err != nil {
			t.Logf("%s: %v", name, err) // whatever the verdict, it comes, and without a stack overflow
		}
	}
}
