package execute_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/execute"
)

// world makes objects out of few words, so that they meet in many ways.
type world struct{ *rand.Rand }

var listKeys = map[string]string{"containers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath",
	"hostAliases": "ip"}

func (r world) pick(from ...string) string { return from[r.Intn(len(from))] }

func (r world) value(depth int) any {
	if depth == 0 {
		switch r.Intn(7) {
		case 0:
			return int64(r.Intn(3))
		case 1:
			return float64(r.Intn(3)) / 2
		case 2:
			return r.Intn(2) == 0
		case 3:
			return nil
		default:
			return r.pick("", "a", "b", "0.5", "500m", "1Gi")
		}
	}
	switch r.Intn(4) {
	case 0:
		list := make([]any, r.Intn(3))
		for i := range list {
			list[i] = r.value(depth - 1)
		}
		return list
	default:
		return r.object(depth)
	}
}

func (r world) object(depth int) map[string]any {
	m := map[string]any{}
	for range r.Intn(4) {
		key := r.pick("x", "y", "limits", "labels", "data", "target", "value", "containers", "env", "volumes", "args",
			"selector")
		m[key] = r.value(depth - 1)
		if id := listKeys[key]; id != "" && r.Intn(4) > 0 {
			m[key] = r.items(id, depth-1)
		}
	}
	return m
}

func (r world) items(id string, depth int) []any {
	names := r.Perm(4)[:r.Intn(4)]
	list := make([]any, 0, len(names))
	for _, n := range names {
		item := r.object(max(depth, 1))
		item[id] = fmt.Sprint(n)
		list = append(list, item)
	}
	return list
}

// apply returns desired on top of observed, as a member's API server applies it: fields that are set are as desired,
// keyed items are merged, other lists replaced, and what is not set stays.
func apply(desired, observed any, key string) any {
	switch d := desired.(type) {
	case map[string]any:
		o, ok := observed.(map[string]any)
		out := map[string]any{}
		if ok {
			out = runtime.DeepCopyJSON(o)
		}
		for k, v := range d {
			if v == nil {
				continue // null sets nothing
			}
			out[k] = apply(v, out[k], k)
		}
		return out
	case []any:
		o, ok := observed.([]any)
		id := listKeys[key]
		if !ok || id == "" || !keyed(d, id) || !keyed(o, id) {
			return runtime.DeepCopyJSONValue(d)
		}
		out := runtime.DeepCopyJSONValue(o).([]any)
	next:
		for _, item := range d {
			for i := range out {
				if out[i].(map[string]any)[id] == item.(map[string]any)[id] {
					out[i] = apply(item, out[i], "")
					continue next
				}
			}
			out = append(out, apply(item, nil, ""))
		}
		return out
	}
	return desired
}

func keyed(list []any, id string) bool {
	seen := map[any]bool{}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok || m[id] == nil || seen[m[id]] {
			return false
		}
		seen[m[id]] = true
	}
	return true
}

func TestAfterAnApplyThereIsNothingToDo(t *testing.T) {
	for seed := range int64(3000) {
		r := world{rand.New(rand.NewSource(seed))}
		manifest := map[string]any{"apiVersion": "x/v1", "kind": r.pick("Any", "Pod"),
			"metadata": map[string]any{"name": "n"}, "spec": r.object(4)}
		raw, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		w := work(t, string(raw), overwriting)
		observed := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "x/v1", "kind": manifest["kind"],
			"metadata": map[string]any{"name": "n", "labels": map[string]any{"theirs": "x"}}, "spec": r.object(4),
			"status": r.object(2),
		}}
		d := desired(t, w, observed)
		first := execute.Plan(w, d, observed)
		if first.Kind != execute.Apply {
			t.Fatalf("seed %d: plan = %s (%s), want to adopt", seed, first.Kind, first.Reason)
		}
		after := &unstructured.Unstructured{Object: apply(first.Object.Object, observed.Object, "").(map[string]any)}
		if second := execute.Plan(w, desired(t, w, after), after); second.Kind != execute.Nothing {
			t.Fatalf("seed %d: after the apply there is still %s (%s)\ndesired  %v\nobserved %v\nafter    %v",
				seed, second.Kind, second.Reason, d.Object["spec"], observed.Object["spec"], after.Object["spec"])
		}
	}
}

// TestDriftOfAnySetValueIsFound changes one value that the manifest sets.
func TestDriftOfAnySetValueIsFound(t *testing.T) {
	found := 0
	for seed := range int64(3000) {
		r := world{rand.New(rand.NewSource(seed))}
		spec := r.object(4)
		raw, err := json.Marshal(map[string]any{"apiVersion": "x/v1", "kind": "Any", "metadata": map[string]any{"name": "n"},
			"spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		w := work(t, string(raw))
		d := desired(t, w, nil)
		observed := d.DeepCopy()
		if !drift(observed.Object["spec"]) {
			continue
		}
		found++
		if got := execute.Plan(w, d, observed); got.Kind != execute.Apply {
			t.Fatalf("seed %d: plan = %s (%s)\ndesired  %v\nobserved %v", seed, got.Kind, got.Reason, d.Object["spec"],
				observed.Object["spec"])
		}
	}
	if found < 1000 {
		t.Fatalf("only %d objects had anything to change: the test does not test", found)
	}
}

// drift changes one scalar somewhere in v, if there is one.
func drift(v any) bool {
	switch node := v.(type) {
	case map[string]any:
		for k, c := range node {
			if drift(c) {
				return true
			}
			switch c.(type) {
			case nil, map[string]any, []any:
			default:
				node[k] = "drifted"
				return true
			}
		}
	case []any:
		for _, c := range node {
			if drift(c) {
				return true
			}
		}
	}
	return false
}

func TestUnmarkedObjectIsNotDeleted(t *testing.T) {
	deletions := 0
	for seed := range int64(5000) {
		r := world{rand.New(rand.NewSource(seed))}
		maybe := func(m map[string]string, key string, values ...string) {
			if r.Intn(4) > 0 {
				m[key] = r.pick(values...)
			}
		}
		labels, annotations := map[string]string{}, map[string]string{}
		maybe(labels, "karmada.io/managed", "true", "true", "false")
		maybe(labels, "work.karmada.io/permanent-id", "id-1", "id-2")
		maybe(annotations, "work.karmada.io/namespace", "karmada-es-eu", "karmada-es-eu", "karmada-es-us")
		maybe(annotations, "work.karmada.io/name", "web-1", "web-1", "web-2")
		observed := object(t, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"}}`)
		observed.SetLabels(labels)
		observed.SetAnnotations(annotations)

		w := work(t, service, deleting)
		if r.Intn(2) == 0 {
			preserving(w)
		}
		marked := labels["karmada.io/managed"] == "true" && annotations["work.karmada.io/namespace"] == w.Namespace &&
			annotations["work.karmada.io/name"] == w.Name &&
			labels["work.karmada.io/permanent-id"] != "id-2"
		got := execute.Plan(w, nil, observed)
		if touched := got.Kind == execute.Delete || got.Kind == execute.Release; touched != marked {
			t.Fatalf("seed %d: %s (%s) of an object with labels %v and annotations %v", seed, got.Kind, got.Reason, labels,
				annotations)
		}
		if got.Kind == execute.Delete {
			deletions++
		}
	}
	if deletions < 100 {
		t.Fatalf("only %d deletions: the test does not test", deletions)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","labels":7},"stringData":[1],"data":"x"}`),
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"tolerations":[1,{}],"containers":[{"name":[]}]}}`), []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","annotations":[]},"spec":[]}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"port":{}},{"port":1}]}}`),
		[]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"port":1,"protocol":7}]}}`))
	f.Fuzz(func(t *testing.T, manifest, member []byte) {
		observed := &unstructured.Unstructured{}
		if observed.UnmarshalJSON(member) != nil || observed.IsList() {
			t.Skip()
		}
		w := work(t, service)
		w.Spec.Workload.Manifests[0].Raw = manifest
		d, err := execute.Desired(w, observed, nil)
		if err != nil {
			t.Skip()
		}
		if execute.Plan(w, d, observed).Kind == "" {
			t.Fatal("no action")
		}
		overwriting(w)
		execute.Plan(w, d, observed)
		execute.Released(observed)
	})
}

func BenchmarkPlanOfAnObjectAsDesired(b *testing.B) {
	w := work(b, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {app: web}}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1", args: [a, b], env: [{name: A, value: b}], resources: {limits: {cpu: 500m, memory: 1Gi}}}]}}}}`)
	d := desired(b, w, nil)
	observed := d.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if execute.Plan(w, d, observed).Kind != execute.Nothing {
			b.Fatal("differs")
		}
	}
}
