package jsonpath_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/jsonpath"
)

// interpreter answers for a Shop by the rules alone.
func interpreter(t *testing.T, rules string) interpret.Interpreter {
	t.Helper()
	r := &configv1alpha1.CustomizationRules{}
	if err := yaml.UnmarshalStrict([]byte(rules), r); err != nil {
		t.Fatal(err)
	}
	return interpret.New(jsonpath.Hooks(r))
}

// shop returns an object of the kind, with integers as an API server has them.
func shop(t *testing.T, rest string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("{apiVersion: example.com/v1, kind: Shop, " + rest + "}"))
	if err != nil {
		t.Fatalf("%v in %s", err, rest)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func items(t *testing.T, statuses ...string) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	var all []workv1alpha2.AggregatedStatusItem
	for i, s := range statuses {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: fmt.Sprintf("m%d", i+1)}
		if s != "" {
			raw, err := yaml.YAMLToJSON([]byte(s))
			if err != nil {
				t.Fatal(err)
			}
			item.Status = &runtime.RawExtension{Raw: raw}
		}
		all = append(all, item)
	}
	return all
}

// expectObject fails the test unless err says all of the texts; none: there is no error.
func expectObject(t *testing.T, name string, err error, want ...string) {
	t.Helper()
	if err != nil && len(want) == 0 {
		t.Errorf("%s: %v", name, err)
	}
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %v does not say %q", name, err, w)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		".spec.replicas":                      "",
		"$.spec.template":                     "",
		".metadata.annotations['a.b/c']":      "",
		`.metadata.annotations["a.b/c"]`:      "",
		".spec.containers[0].image":           "",
		"":                                    "must name a field, such as .spec.replicas",
		"$":                                   "must name a field",
		"{.spec.replicas}":                    "write it without braces: .spec.replicas",
		"spec.replicas":                       "character 1: expected .name, ['name'] or [index]; write .spec.replicas",
		".spec.x[?(@.a)]":                     "character 8: expected .name, ['name'] or [index]; a path selects one field",
		".spec.*":                             "character 6",
		".spec.list[*].x":                     "list several paths where that is possible, or write a luaScript",
		".spec..x":                            "character 6",
		".spec.x[-1]":                         "character 8",
		".spec.x['']":                         "character 8",
		"[0].x":                               "must start with a name",
		".spec.x[99999999999999999999]":       "character 8",
		".spec.x[" + strings.Repeat("9", 500): "character 8",
	} {
		_, err := jsonpath.Parse(text)
		if want == "" {
			expectObject(t, text, err)
			continue
		}
		expectObject(t, text, err, want)
	}
}

func TestReplicasPath(t *testing.T) {
	i := interpreter(t, `{replicaResource: {jsonPath: .spec.size.count}, replicaRevision: {jsonPath: .spec.size.count}}`)
	for name, c := range map[string]struct {
		spec  string
		want  int32
		error string
	}{
		"a number":     {spec: `{size: {count: 7}}`, want: 7},
		"none is one":  {spec: `{}`, want: 1},
		"null is one":  {spec: `{size: {count: null}}`, want: 1},
		"zero is zero": {spec: `{size: {count: 0}}`, want: 0},
		"a text": {spec: `{size: {count: "3"}}`,
			error: `.spec.size.count is the string "3", where a number of replicas is required`},
		"a fraction":        {spec: `{size: {count: 1.5}}`, error: "is 1.5"},
		"less than none":    {spec: `{size: {count: -1}}`, error: "is -1"},
		"too many":          {spec: `{size: {count: 3000000000}}`, error: "from 0 to 2147483647"},
		"nothing to follow": {spec: `{size: 3}`, error: `.spec.size: is 3, where the path goes on with "count"`},
	} {
		n, req, workload, err := i.Replicas(t.Context(), shop(t, "spec: "+c.spec))
		if c.error != "" {
			expectObject(t, name, err, c.error)
			continue
		}
		if err != nil || n != c.want || !workload || req != nil {
			t.Errorf("%s: %d %v workload=%v %v, want %d", name, n, req, workload, err, c.want)
		}
	}

	before := shop(t, "spec: {other: {a: 1}}")
	kept := before.DeepCopy()
	after, err := i.Revise(t.Context(), before, 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shop(t, "spec: {other: {a: 1}, size: {count: 5}}").Object, after.Object); diff != "" {
		t.Errorf("revised (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(kept.Object, before.Object); diff != "" {
		t.Errorf("the argument changed:\n%s", diff)
	}
	_, err = i.Revise(t.Context(), shop(t, "spec: {size: many}"), 5)
	expectObject(t, "a way that is blocked", err, "revise replicas of Shop", `.spec.size: is the string "many"`)
}

func TestRequirementsComeFromPodTemplate(t *testing.T) {
	i := interpreter(t, `{replicaResource: {jsonPath: .spec.count}}`)
	_, req, _, err := i.Replicas(t.Context(),
		shop(t, `spec: {count: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 250m}}}]}}}`))
	if err != nil || req == nil || req.ResourceRequest.Cpu().String() != "250m" {
		t.Errorf("requirements %v, %v, want 250m of cpu", req, err)
	}
	// What merely looks like a pod template is none of ours to judge.
	_, req, _, err = i.Replicas(t.Context(), shop(t, `spec: {count: 2, template: {spec: {containers: [{name: [c]}]}}}`))
	if err != nil || req != nil {
		t.Errorf("requirements %v, %v, want none", req, err)
	}
}

func TestReflectWholeOrOneField(t *testing.T) {
	for name, c := range map[string]struct {
		path, status string
		want         map[string]any
		error        string
	}{
		"all of it": {path: ".status", status: `{a: 1, b: {c: x}}`,
			want: map[string]any{"a": int64(1), "b": map[string]any{"c": "x"}}},
		"one field": {path: ".status.b.c", status: `{a: 1, b: {c: x, d: y}}`,
			want: map[string]any{"b": map[string]any{"c": "x"}}},
		"one that is not": {path: ".status.b.c", status: `{a: 1}`},
		"an element's list": {path: ".status.l[0].x", status: `{l: [{x: 1}, {x: 2}]}`,
			want: map[string]any{"l": []any{map[string]any{"x": int64(1)}, map[string]any{"x": int64(2)}}}},
		"a status that is not": {path: ".status", status: `gone`,
			error: `.status is the string "gone", where an object is required`},
	} {
		got, err := interpreter(t, `{statusReflection: {jsonPath: "`+c.path+`"}}`).Reflect(t.Context(),
			shop(t, "status: "+c.status))
		if c.error != "" {
			expectObject(t, name, err, c.error)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestHealthPath(t *testing.T) {
	for name, c := range map[string]struct {
		expected, status string
		want             interpret.Health
	}{
		"the value":        {"Running", `{phase: Running}`, interpret.Healthy},
		"another":          {"Running", `{phase: Failed}`, interpret.Degraded},
		"not said yet":     {"Running", `{}`, interpret.Progressing},
		"a truth":          {"true", `{phase: true}`, interpret.Healthy},
		"a number":         {"3", `{phase: 3}`, interpret.Healthy},
		"another number":   {"3", `{phase: 4}`, interpret.Degraded},
		"a list as a text": {"[]", `{phase: []}`, interpret.Healthy},
	} {
		got, err := interpreter(t, `{healthInterpretation: {jsonPath: .status.phase, expected: "`+c.expected+
			`"}}`).Health(t.Context(), shop(t, "status: "+c.status))
		if err != nil || got != c.want {
			t.Errorf("%s: %s %v, want %s", name, got, err, c.want)
		}
	}
}

func TestAggregatePaths(t *testing.T) {
	const rules = `{statusAggregation: {jsonPaths: {sum: [.status.ready, .status.load.total], max: [.status.height, .status.seen], last: [.status.revision]}}}`
	template := `status: {ready: 99, mine: kept, height: 99, revision: old}`
	for name, c := range map[string]struct {
		statuses []string
		want     string
		error    string
	}{
		"sums, maxima and the last": {
			statuses: []string{
				`{ready: 2, load: {total: 1}, height: 3, seen: "2026-01-02T00:00:00Z", revision: a}`,
				`{ready: 3, load: {total: 2}, height: 1, seen: "2026-01-01T00:00:00Z", revision: b}`,
			},
			want: `{ready: 5, load: {total: 3}, height: 3, seen: "2026-01-02T00:00:00Z", revision: b, mine: kept}`},
		"a cluster that said nothing": {statuses: []string{`{ready: 2, revision: a}`, ``, `{ready: 1}`},
			want: `{ready: 3, load: {total: 0}, revision: a, mine: kept}`},
		"no cluster leaves no numbers": {want: `{ready: 0, load: {total: 0}, mine: kept}`},
		"fractions": {statuses: []string{`{ready: 0.5}`, `{ready: 1}`},
			want: `{ready: 1.5, load: {total: 0}, mine: kept}`},
		"what is no number": {statuses: []string{`{ready: 1}`, `{ready: "2"}`},
			error: `cluster "m2": .status.ready is the string "2", and only numbers can be summed`},
		"what cannot be compared": {statuses: []string{`{height: 1}`, `{height: tall}`},
			error: `cluster "m2": .status.height is the string "tall", and in another cluster it is 1`},
		"what has no order": {statuses: []string{`{height: {}}`},
			error: "only numbers and strings can be compared"},
		"a status that is a list": {statuses: []string{`[1]`}, error: `the status from cluster "m1" is not an object`},
	} {
		got, err := interpreter(t, rules).Aggregate(t.Context(), shop(t, template), items(t, c.statuses...))
		if c.error != "" {
			expectObject(t, name, err, c.error)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(shop(t, "status: "+c.want).Object, got.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A field that is kept is a member's until the template changes it: life of one field, applied again and again.
func TestRetainedFieldFollowsTemplateChange(t *testing.T) {
	i := interpreter(t, `{retention: {jsonPaths: [.spec.strategy, "$.spec.items[0].x"]}}`)
	member := shop(t, `spec: {strategy: {partition: 1}, other: a}`)
	apply := func(step, template, want string) {
		t.Helper()
		desired := shop(t, "spec: "+template)
		got, err := i.Retain(t.Context(), desired, member)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if diff := cmp.Diff(shop(t, "spec: "+want).Object["spec"], got.Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
		again, err := i.Retain(t.Context(), desired, got)
		if diff := cmp.Diff(got.Object, again.Object); diff != "" || err != nil {
			t.Errorf("%s: a second time it is different: %v\n%s", step, err, diff)
		}
		member = got
	}
	edit := func(spec string) { member.Object["spec"] = shop(t, "spec: "+spec).Object["spec"] }

	apply("before anything was kept, the member's value stands", `{strategy: {partition: 0}, other: b}`,
		`{strategy: {partition: 1}, other: b}`)
	edit(`{strategy: {partition: 7}, other: x}`)
	apply("what somebody sets in the member stays, of kept fields only", `{strategy: {partition: 0}, other: b}`,
		`{strategy: {partition: 7}, other: b}`)
	apply("a template that changes another field changes nothing here", `{strategy: {partition: 0}, other: c}`,
		`{strategy: {partition: 7}, other: c}`)
	apply("a template that changes the field wins", `{strategy: {partition: 3}, other: c}`,
		`{strategy: {partition: 3}, other: c}`)
	edit(`{other: c}`)
	apply("what the member took away stays away", `{strategy: {partition: 3}, other: c}`, `{other: c}`)
	apply("until the template wants something else there", `{strategy: {partition: 4}, other: c}`,
		`{strategy: {partition: 4}, other: c}`)
	apply("a template that gives the field up takes it away", `{other: c}`, `{other: c}`)
}

// A customization and a ManifestWork may leave different fields of one object to the member.
func TestRecordsOfSeveralRetainersAreKept(t *testing.T) {
	retain := func(path string, desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		p, err := jsonpath.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		out, err := jsonpath.Retain([]jsonpath.Path{p}, desired, observed)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	template := shop(t, "spec: {a: 1, b: 1}")
	both := func(observed *unstructured.Unstructured) *unstructured.Unstructured {
		return retain(".spec.b", retain(".spec.a", template, observed), observed)
	}
	member := both(shop(t, "spec: {a: 1, b: 1}"))
	member.Object["spec"] = map[string]any{} // what somebody takes away stays away, if it is known what was applied
	if got := both(member).Object["spec"]; len(got.(map[string]any)) != 0 {
		t.Errorf("applied is %v", got)
	}
}

func TestInvalidPathFailsOnlyItsOperation(t *testing.T) {
	// Admission refuses these; they may come out of a backup all the same.
	i := interpreter(t, `{replicaResource: {jsonPath: spec}, retention: {jsonPaths: [".a", "b"]}, statusAggregation: {jsonPaths: {sum: ["c["]}}, statusReflection: {jsonPath: .status}}`)
	o := shop(t, "status: {a: 1}")
	_, _, _, err := i.Replicas(t.Context(), o)
	expectObject(t, "replicas", err, "read replicas of Shop", `jsonPath "spec": character 1`)
	_, err = i.Retain(t.Context(), o, o)
	expectObject(t, "retention", err, `jsonPath "b"`)
	_, err = i.Aggregate(t.Context(), o, nil)
	expectObject(t, "aggregation", err, `jsonPath "c["`)
	status, err := i.Reflect(t.Context(), o)
	if err != nil || status["a"] != int64(1) {
		t.Errorf("reflection: %v %v, want it to go on", status, err)
	}
}

// Whatever the path and the object, an answer comes, and the same one again.
func FuzzPaths(f *testing.F) {
	f.Add(".spec.a[0].b", `{"spec":{"a":[{"b":1}]}}`)
	f.Add(".status['x.y']", `{"status":{"x.y":[]}}`)
	f.Add(".a[3]", `{"a":[1]}`)
	f.Fuzz(func(t *testing.T, path, object string) {
		if _, err := jsonpath.Parse(path); err != nil {
			return
		}
		var content map[string]any
		if json.Unmarshal([]byte(object), &content) != nil || content == nil {
			return
		}
		i := interpret.New(jsonpath.Hooks(&configv1alpha1.CustomizationRules{
			ReplicaRevision: &configv1alpha1.OperationRule{JSONPath: path},
			ReplicaResource: &configv1alpha1.OperationRule{JSONPath: path},
			Retention:       &configv1alpha1.RetentionRule{JSONPaths: []string{path}},
		}))
		obj := &unstructured.Unstructured{Object: content}
		revised, err := i.Revise(t.Context(), obj, 5)
		if err != nil {
			return
		}
		if n, _, _, err := i.Replicas(t.Context(), revised); err != nil || n != 5 {
			t.Errorf("after writing 5 to %s it reads %d, %v", path, n, err)
		}
	})
}
