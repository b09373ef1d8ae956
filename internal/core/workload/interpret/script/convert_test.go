package script

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// randomJSON is JSON of every shape, as the API machinery decodes it.
func randomJSON(rng *rand.Rand, depth int) any {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}
	switch rng.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return rng.IntN(2) == 0
	case 2:
		return []string{"", "a", "null", "1", "[]", "ü\x00\n", "a.b/c"}[rng.IntN(7)]
	case 3:
		return rng.Int64() - rng.Int64()
	case 4:
		return int64(rng.IntN(10))
	case 5:
		return []float64{0, 1, -1, 0.5, 1e300, -2.25, 9007199254740993, 1e15}[rng.IntN(8)]
	case 6:
		return []any{map[string]any{}, []any{}}[rng.IntN(2)]
	case 7:
		list := make([]any, rng.IntN(5))
		for i := range list {
			list[i] = randomJSON(rng, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range rng.IntN(12) {
		object[[]string{"a", "b", "c", "1", "", "name", "spec", "a-b", "x", "y", "z", "w"}[rng.IntN(12)]] = randomJSON(rng,
			depth-1)
	}
	return object
}

func TestUnchangedValuesSurvive(t *testing.T) {
	t.Parallel()
	// Each looks at more than the one before; the last one writes all that it found.
	looks := []string{
		`return d`,
		`local x = d.spec return d`,
		`local function read(t, deep) for _, name in ipairs({"spec", "all", "a", "b", "spec", "x", "c"}) do local v = t[name] if deep > 0 and type(v) == "table" then read(v, deep - 1) end end end read(d, 4) return d`,
		`local function walk(t) for k, v in pairs(t) do if type(v) == "table" then walk(v) end end end walk(d) return d`,
		`local function walk(t) local n = #t for i, v in ipairs(t) do if type(v) == "table" then walk(v) end end for k, v in pairs(t) do if type(v) == "table" then walk(v) end t[k] = v end end walk(d) return d`,
		`o.metadata = d.metadata o.spec, d.spec = d.spec, o.spec o.kind, o.apiVersion = d.kind, d.apiVersion return o`,
	}
	var programs []*Program
	for _, look := range looks {
		p, err := Compile("ours", retainOp, "function Retain(d, o) "+look+" end", nil)
		if err != nil {
			t.Fatal(err)
		}
		p.bounds.deadline = time.Minute // however slow the machine is
		programs = append(programs, p)
	}
	rounds := uint64(400)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 1))
		object := func() *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Test",
				"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"all": randomJSON(rng, 5)}}}
		}
		desired, observed := object(), object()
		for i, p := range programs {
			before := desired.DeepCopy()
			out, err := p.Evaluate(context.Background(), inputs{Object: desired, Observed: observed})
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, looks[i], err)
			}
			if diff := cmp.Diff(before.Object, out.Object.Object); diff != "" {
				t.Fatalf("seed %d, %s: %s", seed, looks[i], diff)
			}
			if diff := cmp.Diff(before.Object, desired.Object); diff != "" {
				t.Fatalf("seed %d, %s: the input was changed: %s", seed, looks[i], diff)
			}
			if out.Object != desired {
				scribble(out.Object.Object)
			}
			if diff := cmp.Diff(before.Object, desired.Object); diff != "" {
				t.Fatalf("seed %d, %s: the output shares memory with the input: %s", seed, looks[i], diff)
			}
		}
	}
}

// scribble changes everything in a value.
func scribble(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			scribble(value)
			delete(v, key)
		}
		v["scribbled"] = true
	case []any:
		for i, element := range v {
			scribble(element)
			v[i] = "scribbled"
		}
	}
}

func TestChangedValuesMatchSchema(t *testing.T) {
	t.Parallel()
	schema := SchemaOf(&apiextensionsv1.JSONSchemaProps{Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"args": {Type: "array"}}}}},
				"object": {Type: "object"},
				"byName": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
					Schema: &apiextensionsv1.JSONSchemaProps{Type: "array"}}},
				"any": {},
			}},
		}})
	const template = `{apiVersion: v1, kind: Test, metadata: {name: a}, spec: %s}`
	for _, c := range []struct {
		name, spec, change, want string
		schema                   *Schema
	}{
		{"the schema knows lists", `{}`, `d.spec.list = {}`, `{list: []}`, schema},
		{"the schema knows objects", `{}`, `d.spec.object = {}`, `{object: {}}`, schema},
		{"the schema knows what maps and lists hold", `{}`, `d.spec.byName = {a = {}} d.spec.list = {{args = {}}}`,
			`{byName: {a: []}, list: [{args: []}]}`, schema},
		{"nobody knows", `{keep: 1}`, `d.spec.any = {} d.spec.other = {a = {}}`, `{keep: 1, other: {}}`, schema},
		{"the input knows", `{list: [1], object: {a: 1}}`, `d.spec.list = {} d.spec.object = {}`, `{list: [], object: {}}`,
			nil},
		{"what is emptied stays what it is", `{list: [1], object: {a: 1}}`, `d.spec.list[1] = nil d.spec.object.a = nil`,
			`{list: [], object: {}}`, nil},
		{"what is moved stays what it is", `{list: [], object: {}}`,
			`d.spec.a, d.spec.b = d.spec.list, d.spec.object d.spec.list, d.spec.object = nil, nil`, `{a: [], b: {}}`, nil},
		{"an object in an object", `{}`, `d.spec.a = {b = {c = 1}}`, `{a: {b: {c: 1}}}`, nil},
		{"an integer beside a float", `{}`, `d.spec.a, d.spec.b, d.spec.c = 3, 1.5, 6 / 2`, `{a: 3, b: 1.5, c: 3}`, nil},
		{"a large integer beside a change", `{a: 9007199254740993, b: 1, c: 1.0}`, `d.spec.b = 2`,
			`{a: 9007199254740993, b: 2, c: 1.0}`, nil},
		{"a large integer that is moved", `{a: 9007199254740993, b: -9007199254740995}`, `d.spec.c = {d.spec.a, d.spec.b}`,
			`{a: 9007199254740993, b: -9007199254740995, c: [9007199254740993, -9007199254740995]}`, nil},
		{"null beside a change", `{a: null, b: 1, c: [null, 1, null]}`, `d.spec.b = 2 d.spec.c[2] = 3`,
			`{a: null, b: 2, c: [null, 3, null]}`, nil},
		{"an element removed", `{list: [1, 2, 3]}`, `table.remove(d.spec.list, 2)`, `{list: [1, 3]}`, nil},
		{"an element set to nil", `{list: [1, 2, 3]}`, `d.spec.list[2] = nil`, `{list: [1, 3]}`, nil},
		{"elements appended", `{list: [a]}`,
			`table.insert(d.spec.list, "b") d.spec.list[#d.spec.list + 1] = "c" table.insert(d.spec.list, 1, "z")`,
			`{list: [z, a, b, c]}`, nil},
		{"elements sorted", `{list: [b, c, a]}`, `table.sort(d.spec.list)`, `{list: [a, b, c]}`, nil},
		{"a field removed", `{a: 1, b: {c: {}}}`, `d.spec.a = nil`, `{b: {c: {}}}`, nil},
		{"a field that was numbers", `{a: {"1": x, "2": y}}`, `d.spec.a["3"] = "z"`, `{a: {"1": x, "2": y, "3": z}}`, nil},
		{"a part that was read before", `{a: {b: 1}}`, `local a = d.spec.a a.b = 2`, `{a: {b: 2}}`, nil},
		{"a part that was read, through the whole", `{a: {b: 1}}`,
			`local a, s = d.spec.a, d.spec s.a.b = a.b + 1 a.b = a.b + s.a.b`, `{a: {b: 4}}`, nil},
		{"a part that was read before its object opened", `{a: {b: 1}, c: {}}`,
			`local a, n = d.spec.a, 0 for _, v in pairs(d.spec) do if v == a then n = n + 1 end end a.b = n a.same = a == d.spec.a`, `{a: {b: 1, same: true}, c: {}}`, nil},
		{"a part that was read is replaced", `{a: {b: 1}}`, `local a = d.spec.a d.spec.a = {b = 3} a.b = 2`, `{a: {b: 3}}`,
			nil},
		{"a part that was read is removed", `{a: {b: 1}, c: 1}`, `local a = d.spec.a a.b = 2 d.spec.a = nil`, `{c: 1}`, nil},
		{"a part beside null and empty ones", `{a: {b: {c: 1}}, n: null, l: [], o: {}, f: 1.0}`, `d.spec.a.b.c = 2`,
			`{a: {b: {c: 2}}, n: null, l: [], o: {}, f: 1.0}`, nil},
		{"parts read more often than a few times", `{a: {b: 0}, c: 1}`,
			`local a = d.spec.a for i = 1, 9 do d.spec.a.b = d.spec.a.b + d.spec.c end a.b = a.b + 1`, `{a: {b: 10}, c: 1}`,
			nil},
		{"quantities", `{a: "9007199254740993", b: "1e3"}`, `d.spec.c = d.spec.a`,
			`{a: "9007199254740993", b: "1e3", c: "9007199254740993"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := Compile("ours", retainOp, "function Retain(d, o) "+c.change+" return d end", c.schema)
			if err != nil {
				t.Fatal(err)
			}
			out, err := p.Evaluate(context.Background(), inputs{Object: manifest(t, fmt.Sprintf(template, c.spec))})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(manifest(t, fmt.Sprintf(template, c.want)).Object, out.Object.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A script that only reads gives the input itself, and the kube library sees what a script changed, however deep.
func TestUnchangedObjectIsTheInput(t *testing.T) {
	t.Parallel()
	web := cloneSet(t)
	for body, same := range map[string]bool{
		`return d`: true,
		`if d.spec.replicas == 5 and d.spec.template.spec.nodeSelector.disk == "ssd" then return d end`: true,
		`local c = d.spec.template.spec.nodeSelector c.disk = "ssd" return d`:                           true,
		`local c = d.spec.template.spec.nodeSelector c.disk = "hdd" return d`:                           false,
	} {
		p, err := Compile("ours", retainOp, "function Retain(d, o) "+body+" end", nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Evaluate(context.Background(), inputs{Object: web, Observed: web})
		if err != nil {
			t.Fatal(err)
		}
		if (out.Object == web) != same {
			t.Errorf("%s: gives the input itself: %t", body, !same)
		}
		if diff := cmp.Diff(web.Object, out.Object.Object); (diff == "") != same {
			t.Errorf("%s: %s", body, diff)
		}
	}

	const changed = `function GetReplicas(obj)
  local selector = obj.spec.template.spec.nodeSelector
  selector.disk = "hdd"
  return 1, require("kube").accuratePodRequirements(obj.spec.template)
end`
	p, err := Compile("ours", replicasOp, changed, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Evaluate(context.Background(), inputs{Object: web})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Requirements.NodeClaim.NodeSelector["disk"]; got != "hdd" {
		t.Errorf("the requirements are for the disk %q, want the one that the script set", got)
	}
}
