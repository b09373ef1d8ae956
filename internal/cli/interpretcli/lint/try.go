package lint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/jsonpath"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// trial is one run of a script with its description.
type trial struct {
	what string // reads on from "fails on an object …"
	in   script.Inputs
}

// try runs the script on objects with missing fields, and on some with a known result.
func (c *checker) try(ctx context.Context, program *script.Program, read *reading) {
	failed := map[int]bool{} // by line: report one missing field per line
	for _, t := range c.trials(read) {
		_, err := program.Evaluate(ctx, t.in)
		var e *script.Error
		if err == nil || !errors.As(err, &e) || failed[e.Line] {
			continue
		}
		failed[e.Line] = true
		line := e.Line
		if line == 0 {
			line = lineOf(program, first(program.Function()))
		}
		switch e.Reason {
		case script.Canceled:
			return
		case script.Runtime:
			rule, fix := NilCheck, "check for nil before it is used, such as: local status = obj.status or {}"
			switch {
			case strings.Contains(e.Message, "takes a pod template"):
				fix = "call it only if there is a template: if obj.spec.template ~= nil"
			case !strings.Contains(e.Message, "nil"):
				rule, fix = Result, "fix that line: it fails for every object"
			}
			c.reportAt(line, Warning, rule, fmt.Sprintf("fails on an object %s: %s", t.what, e.Message), fix)
		case script.BadResult:
			c.reportAt(line, Warning, Result, fmt.Sprintf("of an object %s: %s", t.what, e.Message),
				"return "+returns[c.script.operation.Operation]+", whatever the object lacks")
		default:
			c.reportAt(line, Error, Result, fmt.Sprintf("on an object %s: %s", t.what, e.Message),
				"limit the loop, or the size of what it builds")
			return
		}
	}
	c.judge(ctx, program, read)
}

func first(name string, _ bool) string { return name }

// trials returns the objects for which a script may fail.
func (c *checker) trials(read *reading) []trial {
	all, bare := c.object(true, 3), c.object(false, 1)
	inputs := func(obj *unstructured.Unstructured) script.Inputs {
		return script.Inputs{Object: obj, Observed: obj, Replicas: 2, Items: items(obj)}
	}
	trials := []trial{
		{"that has only required fields", inputs(bare)},
		{"with an empty status", inputs(withValue(bare, map[string]any{}, "status"))},
	}
	for _, path := range c.optional(read, 0) {
		if !slices.Equal(path, []string{"status"}) || !observedOnly(c.script.operation.Operation) {
			in := inputs(without(all, path))
			if c.script.operation.Operation == configv1alpha1.InterpreterOperationRetain {
				in.Observed = all
			}
			trials = append(trials, trial{"without " + strings.Join(path, "."), in})
		}
	}
	switch c.script.operation.Operation {
	case configv1alpha1.InterpreterOperationRetain:
		for _, path := range c.optional(read, 1) {
			trials = append(trials, trial{"without " + strings.Join(path, ".") + " in the member",
				script.Inputs{Object: all, Observed: without(all, path)}})
		}
		trials = append(trials, trial{"that has all fields, while the member has only required fields",
			script.Inputs{Object: all, Observed: bare}},
			trial{"that has only required fields, while the member has all fields", script.Inputs{Object: bare, Observed: all}})
	case configv1alpha1.InterpreterOperationAggregateStatus:
		trials = append(trials,
			trial{"that no cluster has reported on", script.Inputs{Object: bare}},
			trial{"of which one cluster has no status yet",
				script.Inputs{Object: bare, Items: []workv1alpha2.AggregatedStatusItem{{ClusterName: "member1"}}}},
			trial{"with an empty status in one cluster",
				script.Inputs{Object: bare, Items: items(withValue(bare, map[string]any{}, "status"))}})
		if c.kind != nil {
			for _, a := range read.reads {
				if a.root == 1 && len(a.path) > 2 && a.path[0] == each && a.path[1] == "status" && a.path[2] != each {
					path := append([]string{"status"}, a.path[2])
					trials = append(trials, trial{"with a cluster without " + strings.Join(path, "."),
						script.Inputs{Object: all, Items: items(without(all, path))}})
				}
			}
		}
	}
	if c.kind != nil {
		trials = append(trials, trial{"that has all fields", inputs(all)})
	}
	return trials
}

// items returns reports of two clusters with the object's status.
func items(obj *unstructured.Unstructured) []workv1alpha2.AggregatedStatusItem {
	status := interpret.WholeStatus(obj)
	if status == nil {
		return nil
	}
	status["generation"], status["resourceTemplateGeneration"] = obj.GetGeneration(), obj.GetGeneration()
	raw, err := json.Marshal(status)
	if err != nil {
		return nil
	}
	var all []workv1alpha2.AggregatedStatusItem
	for _, cluster := range []string{"member1", "member2"} {
		all = append(all, workv1alpha2.AggregatedStatusItem{
			ClusterName: cluster, Applied: true, Health: workv1alpha1.ResourceHealthy, Status: &runtime.RawExtension{Raw: raw},
		})
	}
	return all
}

// judge checks results. It needs the schema of the kind.
func (c *checker) judge(ctx context.Context, program *script.Program, read *reading) {
	if c.kind == nil {
		return
	}
	line := lineOf(program, first(program.Function()))
	all := c.object(true, 3)
	ask := func(in script.Inputs) *script.Outputs {
		out, err := program.Evaluate(ctx, in)
		if err != nil {
			return nil
		}
		return out
	}
	switch c.script.operation.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		_, pods := c.kind.Schema.Properties["spec"].Properties["template"]
		if out := ask(script.Inputs{Object: all}); out != nil && out.Requirements == nil && pods && out.Replicas > 0 {
			c.reportAt(line, Info, NoRequirement,
				"it does not return the requirements of a replica: Argosy uses the next tier for them, Karmada divides replicas without them",
				`return as well: require("kube").accuratePodRequirements(obj.spec.template)`)
		}
	case configv1alpha1.InterpreterOperationInterpretStatus:
		c.judgeReflection(line, ask(script.Inputs{Observed: all}), all)
	case configv1alpha1.InterpreterOperationAggregateStatus:
		c.judgeAggregation(line, ask(script.Inputs{Object: all, Items: items(all)}), all)
	case configv1alpha1.InterpreterOperationRetain:
		c.judgeRetention(read, ask)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		c.judgeHealth(line, read, ask)
	}
}

func (c *checker) judgeReflection(line int, out *script.Outputs, all *unstructured.Unstructured) {
	if out == nil {
		return
	}
	c.undefined(line, out.Status, "generation", "resourceTemplateGeneration")
	status := interpret.WholeStatus(all)
	if missing := absent(status, out.Status); len(missing) > 0 {
		severity := Info
		if slices.Contains(missing, "observedGeneration") {
			severity = Warning
		}
		c.reportAt(line, severity, Dropped, "it leaves out "+strings.Join(missing, ", ")+
			", so they appear neither in the template nor in the binding",
			"return observedObj.status, with your changes in it")
	}
}

// undefined reports status fields that the kind does not have.
func (c *checker) undefined(line int, status map[string]any, but ...string) {
	schema := c.kind.Schema.Properties["status"]
	for _, name := range slices.Sorted(maps.Keys(status)) {
		next, open := descend(&schema, name)
		if next == nil && !open && !slices.Contains(but, name) {
			c.reportAt(line, Warning, UnknownField,
				fmt.Sprintf("it sets status.%s, which %s does not have: the API server drops it",
					name, c.target.Kind),
				alternatives(&schema, name))
		}
	}
}

// absent returns the keys of want that got lacks, sorted.
func absent(want, got map[string]any) []string {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

func (c *checker) judgeAggregation(line int, out *script.Outputs, all *unstructured.Unstructured) {
	if out == nil {
		return
	}
	for _, w := range out.Warnings {
		c.reportAt(line, Warning, Result, w, "set desiredObj.status, and return desiredObj")
	}
	status := out.Status
	if status == nil && out.Object != nil {
		status = interpret.WholeStatus(out.Object)
	}
	c.undefined(line, status)
	if missing := absent(interpret.WholeStatus(all), status); len(missing) > 0 && len(status) > 0 {
		c.reportAt(line, Info, Dropped, "it leaves out "+strings.Join(missing, ", ")+
			": Argosy fills them in from the next tier, Karmada leaves them out of the template",
			"set them too, or leave the operation to the built-in interpreter")
	}
}

// judgeRetention reports fields that the hub can no longer change.
func (c *checker) judgeRetention(read *reading, ask func(script.Inputs) *script.Outputs) {
	for _, k := range read.kept {
		path := strings.Join(k.path, ".")
		if k.path[0] == "status" {
			if c.kind.StatusApart {
				c.reportAt(k.line, Info, MemberOwned,
					"the status is a subresource, which updates of the object do not change: retaining it has no effect", "remove it")
			}
			continue
		}
		if k.path[0] != "spec" || slices.Contains(k.path, each) {
			continue
		}
		desired, observed := c.object(true, 2), c.object(true, 3)
		hub, ok := valueAt(desired, k.path)
		member, _ := valueAt(observed, k.path)
		out := ask(script.Inputs{Object: desired, Observed: observed})
		if !ok || out == nil || out.Object == nil {
			continue
		}
		kept, _ := valueAt(out.Object, k.path)
		if !reflect.DeepEqual(kept, member) || reflect.DeepEqual(kept, hub) {
			continue
		}
		message := fmt.Sprintf("the member's %s always wins: the hub cannot change it any more", path)
		fix := fmt.Sprintf("retain it only if the template does not set it: if desiredObj.%s == nil", path)
		switch k.path[len(k.path)-1] {
		case "replicas":
			message = fmt.Sprintf("the member's %s always wins: once it is set in the member, neither scaling on the hub nor the division of replicas has any effect there", path)
			fix = "remove it; where an autoscaler in the member owns the replicas, label the template resourcetemplate.karmada.io/retain-replicas: \"true\""
		case "suspend", "paused":
			message = fmt.Sprintf("the member's %s always wins: the hub can neither suspend nor resume it", path)
		}
		c.reportAt(k.line, Warning, MemberOwned, message, fix)
	}
}

func valueAt(obj *unstructured.Unstructured, path []string) (any, bool) {
	v, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	return v, ok && err == nil
}

// judgeHealth checks the health of objects with an obvious health.
func (c *checker) judgeHealth(line int, read *reading, ask func(script.Inputs) *script.Outputs) {
	health := func(obj *unstructured.Unstructured) interpret.Health {
		if out := ask(script.Inputs{Observed: obj}); out != nil {
			return out.Health
		}
		return interpret.Unknown
	}
	status, has := c.kind.Schema.Properties["status"]
	if !has {
		return
	}
	done := c.rollout(3, 3, 3)
	if _, ok := status.Properties["observedGeneration"]; ok && !read.readsPath(0, "status", "observedGeneration") &&
		health(withValue(done, done.GetGeneration()-1, "status", "observedGeneration")) == interpret.Healthy {
		c.reportAt(line, Warning, Generation,
			"it does not check status.observedGeneration: after a change, the old status is taken for the current one",
			"unhealthy, or not yet known, while (status.observedGeneration or 0) < observedObj.metadata.generation")
	}
	bare := c.object(false, 1)
	if health(withValue(bare, map[string]any{}, "status")) == interpret.Healthy && !c.counted() {
		c.reportAt(line, Warning, FalseHealth, "an object with an empty status is healthy: nil equals nil",
			"give counters a default: (status.readyReplicas or 0)")
	}
	if health(bare) == interpret.Degraded {
		c.reportAt(line, Info, FalseHealth,
			"an object that was just created and has no status is unhealthy: failover may remove it before its controller has observed it",
			`return "Progressing", which Argosy understands, or true`)
	}
	if !c.scaled() && c.partitionPath() == nil {
		return
	}
	if c.scaled() {
		if health(c.rollout(3, 0, 0)) == interpret.Healthy {
			c.reportAt(line, Warning, FalseHealth, "an object with none of its 3 replicas is healthy",
				"compare with spec.replicas, not with the current replicas")
		}
		if health(done) == interpret.Healthy && health(c.rollout(0, 0, 0)) == interpret.Degraded {
			c.reportAt(line, Warning, FalseHealth,
				"an object that is scaled to 0 replicas is unhealthy, although it has all its replicas",
				"do not require more than 0 replicas")
		}
	}
	if path := c.partitionPath(); path != nil && health(done) == interpret.Healthy {
		if health(withValue(c.rollout(3, 3, 1), int64(2), path...)) == interpret.Degraded {
			c.reportAt(line, Warning, FalseHealth, "a canary that its partition pauses is unhealthy: failover may remove it",
				"do not require more updated pods than the partition allows")
		}
	}
}

// counted reports whether the kind has no counters of replicas.
func (c *checker) counted() bool {
	_, matched := c.kind.Schema.Properties["status"].Properties["matchedPods"]
	return matched
}

// immutable reports whether a field of a workload is immutable anyway, so that retaining it does no harm.
func immutable(path string) bool {
	return slices.Contains([]string{"selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"},
		path[strings.LastIndex(path, ".")+1:])
}

// checkPath checks an operation with a path.
func checkPath(p pathText, kind *schemas.Kind, target configv1alpha1.CustomizationTarget, report func(Finding)) {
	path, err := jsonpath.Parse(p.value)
	if err != nil {
		report(Finding{Line: p.line, Severity: Error, Rule: Spelling, Field: p.field, Message: err.Error(),
			Fix: "write it as .spec.replicas"})
		return
	}
	if p.operation.Operation == configv1alpha1.InterpreterOperationRetain && path.Under("spec") && !immutable(p.value) {
		report(Finding{Line: p.line, Severity: Warning, Rule: MemberOwned, Field: p.field,
			Message: fmt.Sprintf("%s keeps the value of the member until the template changes it; a script that retains it always overrides the hub", p.value),
			Fix:     "list only fields that a controller in the member writes"})
	}
	if kind == nil {
		return
	}
	schema, err := schemas.Map(kind.Schema)
	if err != nil {
		return
	}
	want := jsonpath.Anything
	if o := p.operation.Operation; o == configv1alpha1.InterpreterOperationInterpretReplica ||
		o == configv1alpha1.InterpreterOperationReviseReplica {
		want = jsonpath.Whole
	}
	if err := path.Check(schema, want); err != nil {
		report(Finding{Line: p.line, Severity: Error, Rule: UnknownField, Field: p.field,
			Message: fmt.Sprintf("%s: %v", target.Kind, err), Fix: "use a field of the kind"})
	}
}
