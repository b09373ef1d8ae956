package interpretcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// trial runs a valid script on sample objects.
type trial struct {
	program   *script.Program
	operation configv1alpha1.InterpreterOperation
	target    configv1alpha1.CustomizationTarget
	// kind is the schema of the target; nil if it is not known.
	kind *apiextensionsv1.JSONSchemaProps
}

// findings are what is wrong with a script that a hub accepts.
type findings struct {
	// failures of a script that fails on every sample or exceeds a limit.
	failures []string
	warnings []string
}

// usesKube matches a call of the library kube, loadsKube the call that loads it.
var usesKube, loadsKube = regexp.MustCompile(`\bkube\.\w+\s*\(`), regexp.MustCompile(`require\s*\(?\s*["']kube["']`)

// try returns what is wrong with the scripts of a customization that a hub accepts, by operation.
func try(ctx context.Context, c *configv1alpha1.ResourceInterpreterCustomization,
	set *schemas.Set) map[configv1alpha1.InterpreterOperation]findings {
	found := map[configv1alpha1.InterpreterOperation]findings{}
	target := c.Spec.Target
	kind := set.Get(schema.FromAPIVersionAndKind(target.APIVersion, target.Kind))
	for _, s := range script.Scripts(c.Spec.Customizations) {
		program, err := script.Compile(c.Name, s.Operation, s.Source, script.SchemaOf(kind))
		if err == nil {
			t := trial{program, s.Operation, target, kind}
			f := findings{}
			if failed, always := t.failures(ctx); always {
				f = findings{failures: failed, warnings: t.habits(ctx, t.sample(true, 3))}
			} else {
				f = findings{warnings: append(failed, t.mistakes(ctx)...)}
			}
			if usesKube.MatchString(s.Source) && !loadsKube.MatchString(s.Source) {
				f.warnings = append(f.warnings,
					`uses kube without loading it: start the function with local kube = require("kube")`)
			}
			found[s.Operation] = f
		}
	}
	if c.Spec.Customizations.Retention != nil && len(c.Spec.Customizations.Retention.JSONPaths) > 0 {
		// These are only about the paths, because there is no script.
		if object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c); err == nil {
			advice := dialect.Advise(&unstructured.Unstructured{Object: object})
			found[configv1alpha1.InterpreterOperationRetain] = findings{warnings: advice}
		}
	}
	return found
}

// failures returns how the script fails on samples, once per line. always is true if it fails on each, or exceeds a
// limit, because each further sample would take as long. The samples lack fields that the schema leaves open, so
// scripts that work may fail on all of them.
func (t trial) failures(ctx context.Context) (failed []string, always bool) {
	bare, full := t.sample(false, 1), t.sample(true, 3)
	empty := withValue(bare, map[string]any{}, "status")
	samples := []struct {
		what              string
		desired, observed *unstructured.Unstructured
		items             []workv1alpha2.AggregatedStatusItem
	}{
		{"that has only required fields", bare, bare, reports(bare)},
		{"with an empty status", empty, empty, reports(empty)},
		{"that has all fields", full, full, reports(full)},
		{"that has all fields, while the member has only required fields", full, bare, nil},
		{"that has only required fields, while the member has all fields", bare, full, reports(full)},
		{"of which a cluster has no status yet", bare, bare, []workv1alpha2.AggregatedStatusItem{{ClusterName: "member1"}}},
	}
	lines := map[int]bool{}
	always = t.kind != nil && !isOpen(*t.kind, 2)
	for _, s := range samples {
		in := interpret.Inputs{Object: s.desired, Observed: s.observed, Replicas: 2, Items: s.items}
		_, err := t.program.Evaluate(ctx, in)
		var e *script.Error
		if !errors.As(err, &e) {
			always = false
			continue
		}
		if lines[e.Line] {
			continue
		}
		lines[e.Line] = true
		failed = append(failed, fmt.Sprintf("fails on an object %s: %s", s.what, lineAnd(e)))
		if e.Reason != script.Runtime && e.Reason != script.BadResult {
			return failed, true
		}
	}
	return failed, always
}

// isOpen reports whether a schema, or one of its fields down to a depth, allows fields that it does not name. The
// metadata of an object always does.
func isOpen(props apiextensionsv1.JSONSchemaProps, depth int) bool {
	if open := props.XPreserveUnknownFields; open != nil && *open {
		return true
	}
	for name, field := range props.Properties {
		if name != "metadata" && depth > 0 && isOpen(field, depth-1) {
			return true
		}
	}
	return false
}

// mistakes returns warnings about results that are probably not intended.
func (t trial) mistakes(ctx context.Context) []string {
	ask := func(in interpret.Inputs) script.Outputs {
		out, err := t.program.Evaluate(ctx, in)
		if err != nil {
			return script.Outputs{} // see failures
		}
		return *out
	}
	full := t.sample(true, 3)
	all := ask(interpret.Inputs{Object: full, Observed: full, Replicas: 2, Items: reports(full)})
	found := append(all.Warnings, t.habits(ctx, full)...)
	spec, _ := full.Object["spec"].(map[string]any)
	status, _ := full.Object["status"].(map[string]any)
	switch t.operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		if spec["template"] != nil && all.Replicas > 0 && all.Requirements == nil {
			found = append(found, "does not return the requirements of a replica, without which Karmada divides replicas: "+
				`return also require("kube").accuratePodRequirements(obj.spec.template)`)
		}
	case configv1alpha1.InterpreterOperationRetain:
		other := t.sample(true, 2)
		retained := ask(interpret.Inputs{Object: other, Observed: full}).Object
		for _, name := range slices.Sorted(maps.Keys(spec)) {
			hub, _, _ := unstructured.NestedFieldNoCopy(other.Object, "spec", name)
			if retained == nil || reflect.DeepEqual(hub, spec[name]) {
				continue
			}
			if kept, _, _ := unstructured.NestedFieldNoCopy(retained.Object, "spec", name); reflect.DeepEqual(kept, spec[name]) {
				found = append(found, fmt.Sprintf("the member's spec.%s always wins: the hub cannot change it any more", name))
			}
		}
	case configv1alpha1.InterpreterOperationInterpretStatus:
		if status["observedGeneration"] != nil && all.Status != nil && all.Status["observedGeneration"] == nil {
			found = append(found, "leaves out observedGeneration, so the template has none")
		}
	case configv1alpha1.InterpreterOperationAggregateStatus:
		aggregate := builtin.Tier().Find(full.GroupVersionKind(), t.operation).Evaluate
		in := interpret.Inputs{Object: withValue(t.sample(false, 1), map[string]any{}, "status"), Items: reports(full)}
		own := ask(in).Status
		if aggregate == nil || len(own) == 0 {
			break
		}
		out, err := aggregate(ctx, in)
		if err != nil {
			break // the sample is not valid in all
		}
		given, _ := out.Object.Object["status"].(map[string]any)
		missing := slices.DeleteFunc(slices.Sorted(maps.Keys(given)), func(name string) bool {
			return own[name] != nil
		})
		if len(missing) > 0 {
			found = append(found, fmt.Sprintf("leaves out %s: Argosy fills them in, Karmada does not",
				strings.Join(missing, ", ")))
		}
	case configv1alpha1.InterpreterOperationInterpretHealth:
		found = append(found, t.misjudged(full, func(obj *unstructured.Unstructured) interpret.Health {
			return ask(interpret.Inputs{Object: obj}).Health
		})...)
	}
	return found
}

// habits returns what a script does that its results do not show.
func (t trial) habits(ctx context.Context, full *unstructured.Unstructured) []string {
	var found []string
	in := interpret.Inputs{Object: full, Observed: full, Replicas: 2, Items: reports(full)}
	trace, failed := t.program.Trace(ctx, in)
	for _, path := range trace.Unknown {
		found = append(found, fmt.Sprintf("reads a field that is always nil: %s has no field %s", t.target.Kind, path))
	}
	for _, name := range trace.Globals {
		found = append(found, name+" is global, so later calls in Karmada may see it: declare it with local")
	}
	if failed == nil && t.operation == configv1alpha1.InterpreterOperationAggregateStatus {
		in.Items = nil
		var e *script.Error
		if _, err := t.program.Trace(ctx, in); errors.As(err, &e) {
			found = append(found, "fails in Karmada if the items are nil, because no cluster has reported: "+lineAnd(e))
		}
	}
	return found
}

// misjudged returns for which objects with an obvious health a script returns another one.
func (t trial) misjudged(full *unstructured.Unstructured,
	health func(*unstructured.Unstructured) interpret.Health) []string {
	if t.kind == nil {
		return nil
	}
	has := func(path ...string) bool {
		v, _, err := unstructured.NestedFieldNoCopy(full.Object, path...)
		return err == nil && v != nil
	}
	bare, done := t.sample(false, 1), t.rollout(3, 3, 3)
	healthy := health(done) == interpret.Healthy
	observes := has("status", "observedGeneration")
	scales := has("spec", "replicas") && has("status", "readyReplicas")
	partition := []string{"spec", "updateStrategy", "partition"}
	if !has(partition...) {
		partition = []string{"spec", "updateStrategy", "rollingUpdate", "partition"}
	}
	var found []string
	for _, c := range []struct {
		applies bool
		object  *unstructured.Unstructured
		wrong   interpret.Health
		finding string
	}{
		{observes, withValue(done, done.GetGeneration()-1, "status", "observedGeneration"), interpret.Healthy,
			"does not check status.observedGeneration: after a change, it judges the old status"},
		{!observes && has("status"), bare, interpret.Degraded,
			"an object that was just created is unhealthy: failover may move it before it runs"},
		{has("spec", "replicas"), withValue(bare, map[string]any{}, "status"), interpret.Healthy,
			"an object with an empty status is healthy: give counters a default, such as (status.readyReplicas or 0)"},
		{scales, t.rollout(3, 0, 0), interpret.Healthy, "an object with none of its 3 replicas is healthy"},
		{scales && healthy, t.rollout(0, 0, 0), interpret.Degraded, "an object that is scaled to 0 replicas is unhealthy"},
		{healthy && has(partition...), withValue(t.rollout(3, 3, 1), int64(2), partition...), interpret.Degraded,
			"a canary that its partition pauses is unhealthy: failover may move it"},
	} {
		if c.applies && health(c.object) == c.wrong {
			found = append(found, c.finding)
		}
	}
	return found
}

// trouble are parts of the names of counters that are 0 in a healthy object.
var trouble = regexp.MustCompile("(?i)unavailable|failed|reserved|collision|terminating|unknown|mis")

// rollout returns an object with its desired, current and updated replicas, which its controller has observed.
func (t trial) rollout(desired, current, updated int64) *unstructured.Unstructured {
	obj := t.sample(false, 1)
	if _, ok := t.kind.Properties["spec"].Properties["replicas"]; ok {
		obj = withValue(obj, desired, "spec", "replicas")
	}
	status := map[string]any{}
	for name, p := range t.kind.Properties["status"].Properties {
		switch {
		case p.Type != "integer":
		case name == "observedGeneration":
			status[name] = obj.GetGeneration()
		case trouble.MatchString(name):
			status[name] = int64(0)
		case strings.Contains(strings.ToLower(name), "updated"):
			status[name] = updated
		default:
			status[name] = current
		}
	}
	return withValue(obj, status, "status")
}

// sample returns an object with all fields, or only with those that every object has. Its numbers are n.
func (t trial) sample(all bool, n int64) *unstructured.Unstructured {
	m := map[string]any{"spec": map[string]any{}}
	if t.kind != nil {
		// A definition in a user's file may say that its objects are something else.
		if object, ok := sampleOf(t.kind, all, n, 0).(map[string]any); ok {
			m = object
		}
	}
	m["apiVersion"], m["kind"] = t.target.APIVersion, t.target.Kind
	m["metadata"] = map[string]any{"name": "sample", "namespace": "default", "generation": int64(2)}
	return &unstructured.Unstructured{Object: m}
}

// deepest limits the depth of samples: schemas may be recursive, and scripts rarely look deeper.
const deepest = 7

func sampleOf(s *apiextensionsv1.JSONSchemaProps, all bool, n int64, depth int) any {
	switch {
	case s.Type == "integer", s.XIntOrString:
		return n
	case s.Type == "number":
		return float64(n)
	case s.Type == "boolean":
		return n%2 == 1
	case s.Type == "string" && s.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	case s.Type == "string" && len(s.Enum) > 0:
		var text string
		if err := json.Unmarshal(s.Enum[int(n)%len(s.Enum)].Raw, &text); err == nil {
			return text
		}
		return ""
	case s.Type == "string":
		return fmt.Sprintf("x%d", n)
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil && depth < deepest:
		return []any{sampleOf(s.Items.Schema, all, n, depth+1)}
	case s.Type == "array":
		return []any{}
	}
	m := map[string]any{}
	if depth >= deepest {
		return m
	}
	for name, p := range s.Properties {
		// A spec without required fields may be missing.
		if all || slices.Contains(s.Required, name) || name == "spec" && len(p.Required) > 0 {
			m[name] = sampleOf(&p, all, n, depth+1)
		}
	}
	if a := s.AdditionalProperties; all && a != nil && a.Schema != nil {
		m["x"] = sampleOf(a.Schema, all, n, depth+1)
	}
	return m
}

// withValue returns a copy of an object with a value at a path.
func withValue(obj *unstructured.Unstructured, v any, path ...string) *unstructured.Unstructured {
	out := obj.DeepCopy()
	_ = unstructured.SetNestedField(out.Object, v, path...) // a status of another type stays as it is
	return out
}

// reports returns the items of two clusters with the object's status; nil if it has none.
func reports(obj *unstructured.Unstructured) []workv1alpha2.AggregatedStatusItem {
	raw, err := json.Marshal(obj.Object["status"])
	if err != nil || obj.Object["status"] == nil {
		return nil
	}
	status := &runtime.RawExtension{Raw: raw}
	return []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "member1", Applied: true, Status: status}, {ClusterName: "member2", Applied: true, Status: status}}
}
