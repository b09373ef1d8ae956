package script

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Operation is an operation that scripts can implement.
type Operation struct {
	Operation configv1alpha1.InterpreterOperation
	// Field is its place under spec.customizations, such as replicaResource.
	Field string
	// Function and Params declare the function of a script.
	Function string
	Params   []string
	// Rule returns the operation's rule; nil if it is not set.
	Rule func(*configv1alpha1.CustomizationRules) *configv1alpha1.OperationRule
	// args are the arguments in order.
	args func(*run, interpret.Inputs) ([]lua.LValue, error)
	// read reads the results; missing ones are nil.
	read func(rs results, in interpret.Inputs, out *Outputs) error
}

// results are the values that a function returned.
type results struct {
	run      *run
	function string
	schema   *Schema
	values   []lua.LValue
}

type (
	rules = configv1alpha1.CustomizationRules
	rule  = configv1alpha1.OperationRule
)

// Operations are all operations, in the order in which karmadactl lists them.
var Operations = []Operation{
	{configv1alpha1.InterpreterOperationRetain, "retention", "Retain", []string{"desiredObj", "observedObj"},
		func(r *rules) *rule {
			if r.Retention == nil {
				return nil
			}
			return &r.Retention.OperationRule
		}, objectAndObserved, readObject},
	{configv1alpha1.InterpreterOperationInterpretReplica, "replicaResource", "GetReplicas", []string{"obj"},
		func(r *rules) *rule { return r.ReplicaResource }, object, readReplicas},
	{configv1alpha1.InterpreterOperationInterpretComponent, "componentResource", "GetComponents", []string{"obj"},
		func(r *rules) *rule { return r.ComponentResource }, object, readComponents},
	{configv1alpha1.InterpreterOperationReviseReplica, "replicaRevision", "ReviseReplica",
		[]string{"obj", "desiredReplica"},
		func(r *rules) *rule { return r.ReplicaRevision }, objectAndReplicas, readObject},
	{configv1alpha1.InterpreterOperationInterpretStatus, "statusReflection", "ReflectStatus", []string{"observedObj"},
		func(r *rules) *rule { return r.StatusReflection }, object, readStatus},
	{configv1alpha1.InterpreterOperationAggregateStatus, "statusAggregation", "AggregateStatus",
		[]string{"desiredObj", "statusItems"},
		func(r *rules) *rule {
			if r.StatusAggregation == nil {
				return nil
			}
			return &r.StatusAggregation.OperationRule
		}, objectAndItems, readAggregated},
	{configv1alpha1.InterpreterOperationInterpretHealth, "healthInterpretation", "InterpretHealth",
		[]string{"observedObj"},
		func(r *rules) *rule {
			if r.HealthInterpretation == nil {
				return nil
			}
			return &r.HealthInterpretation.OperationRule
		}, object, readHealth},
	{configv1alpha1.InterpreterOperationInterpretDependency, "dependencyInterpretation", "GetDependencies",
		[]string{"desiredObj"},
		func(r *rules) *rule { return r.DependencyInterpretation }, object, readDependencies},
}

// contracts are the operations by name.
var contracts = func() map[configv1alpha1.InterpreterOperation]Operation {
	all := map[configv1alpha1.InterpreterOperation]Operation{}
	for _, o := range Operations {
		all[o.Operation] = o
	}
	return all
}()

// Signature returns the function declaration of an operation.
func (o Operation) Signature() string {
	return fmt.Sprintf("%s(%s)", o.Function, strings.Join(o.Params, ", "))
}

// fault converts any error to an Error.
func (p *Program) fault(err error) error {
	e := &Error{Customization: p.customization, Operation: p.operation, Reason: Runtime, Message: err.Error()}
	if f, ok := err.(*fault); ok {
		e.Reason, e.Line, e.Message = f.reason, f.line, f.message
	}
	if m := e.Message; len(m) > longestMessage {
		// Keep the beginning and the end of a long message.
		e.Message = strings.ToValidUTF8(m[:longestMessage*3/4]+"…"+m[len(m)-longestMessage/4:], "")
	}
	return e
}

// longestMessage limits messages in bytes: error() accepts any string, and messages go into events, conditions and
// logs.
const longestMessage = 1 << 10

// Function returns the name of the called function, as far as the text shows it.
func (p *Program) Function() (name string, byContract bool) {
	wanted := contracts[p.operation].Function
	names := p.compiled.functions
	if slices.Contains(names, wanted) || len(names) != 1 {
		return wanted, true
	}
	return names[0], false
}

// answerable returns an error if no function can implement the operation. Functions defined through _G are found at run
// time.
func (p *Program) answerable() error {
	c, ok := contracts[p.operation]
	if !ok {
		return p.fault(&fault{NoFunction, 0, "scripts do not support this operation"})
	}
	names := p.compiled.functions
	if slices.Contains(names, c.Function) || len(names) == 1 || p.compiled.globals {
		return nil
	}
	return p.fault(missing(p.compiled, c, names))
}

// missing returns the error of a script without the function, or with several others.
func missing(compiled *compiled, c Operation, names []string) *fault {
	if line, ok := compiled.locals[c.Function]; ok {
		return &fault{NoFunction, line,
			fmt.Sprintf("%s is local, so it cannot be called; write function %s without local", c.Function, c.Signature())}
	}
	if len(names) == 0 {
		return &fault{NoFunction, 0, fmt.Sprintf("the script defines no function; it must define %s", c.Signature())}
	}
	return &fault{NoFunction, 0, fmt.Sprintf(
		"the script defines %s, but not %s; of several functions one must have that name", strings.Join(names, ", "),
		c.Signature())}
}

// pick returns the function to call.
func (p *Program) pick(r *run) (string, lua.LValue, error) {
	c := contracts[p.operation]
	if f := r.env.RawGetString(c.Function); f != lua.LNil {
		if f.Type() != lua.LTFunction {
			return "", nil, &fault{NoFunction, 0, fmt.Sprintf("%s is %s, not a function; define %s", c.Function, describe(f),
				c.Signature())}
		}
		return c.Function, f, nil
	}
	var names []string
	var only lua.LValue
	r.env.ForEach(func(name, v lua.LValue) {
		if v.Type() == lua.LTFunction {
			names, only = append(names, name.String()), v
		}
	})
	if len(names) == 1 {
		return names[0], only, nil
	}
	slices.Sort(names)
	return "", nil, missing(p.compiled, c, names)
}

// Evaluate runs the operation once, at most for Deadline and until ctx ends. The error is an *Error.
func (p *Program) Evaluate(ctx context.Context, in interpret.Inputs) (*Outputs, error) {
	if err := ctx.Err(); err != nil {
		return nil, p.canceled(err)
	}
	c := contracts[p.operation]
	out := &Outputs{}
	var name string
	err := execute(ctx, p.bounds, p.compiled,
		func(r *run) (f lua.LValue, err error) {
			name, f, err = p.pick(r)
			return f, err
		},
		func(r *run) ([]lua.LValue, error) { return c.args(r, in) },
		func(r *run, values []lua.LValue) error {
			out.Printed = r.printed
			return c.read(results{r, name, p.schema, values}, in, out)
		})
	if err != nil {
		if f, ok := err.(*fault); ok && f.reason == Canceled {
			return nil, p.canceled(ctx.Err())
		}
		return nil, p.fault(err)
	}
	if name != c.Function {
		out.Warnings = append(out.Warnings,
			fmt.Sprintf("%s is called for %s because it is the only function; Karmada only calls %s", name, p.operation,
				c.Signature()))
	}
	return out, nil
}

func (p *Program) canceled(err error) error {
	return &Error{Customization: p.customization, Operation: p.operation, Reason: Canceled,
		Message: "the call was canceled: " + err.Error(), Cause: err}
}

// Arguments.

// given returns an object as an argument; nil if there is none.
func given(r *run, u *unstructured.Unstructured) (lua.LValue, error) {
	if u == nil || u.Object == nil {
		return lua.LNil, nil
	}
	return r.toLua(u.Object)
}

// template returns the object of in, and remembers its table to recognize it in the result.
func template(r *run, in interpret.Inputs) (lua.LValue, error) {
	v, err := given(r, in.Object)
	r.object, _ = v.(*lua.LTable)
	return v, err
}

func object(r *run, in interpret.Inputs) ([]lua.LValue, error) {
	v, err := template(r, in)
	return []lua.LValue{v}, err
}

func objectAndReplicas(r *run, in interpret.Inputs) ([]lua.LValue, error) {
	v, err := template(r, in)
	return []lua.LValue{v, lua.LNumber(in.Replicas)}, err
}

func objectAndObserved(r *run, in interpret.Inputs) ([]lua.LValue, error) {
	desired, err := template(r, in)
	if err != nil {
		return nil, err
	}
	observed, err := given(r, in.Observed)
	return []lua.LValue{desired, observed}, err
}

// objectAndItems passes the items as in the API. Without items it is an empty list, because # of nil fails.
func objectAndItems(r *run, in interpret.Inputs) ([]lua.LValue, error) {
	v, err := template(r, in)
	if err != nil {
		return nil, err
	}
	items := make([]any, len(in.Items))
	for i, item := range in.Items {
		m := map[string]any{"clusterName": item.ClusterName}
		if item.Status != nil && len(item.Status.Raw) > 0 {
			var status any
			if err := json.Unmarshal(item.Status.Raw, &status); err != nil {
				return nil, &fault{BadInput, 0, fmt.Sprintf("the status of cluster %q is not valid JSON: %v", item.ClusterName,
					err)}
			}
			if status != nil {
				m["status"] = status
			}
		}
		if item.Applied {
			m["applied"] = true
		}
		if item.AppliedMessage != "" {
			m["appliedMessage"] = item.AppliedMessage
		}
		if item.Health != "" {
			m["health"] = string(item.Health)
		}
		items[i] = m
	}
	list, err := r.toLua(items)
	return []lua.LValue{v, list}, err
}

// Results.

// get returns result i, from 0; nil if there are fewer.
func (rs results) get(i int) lua.LValue {
	if i < len(rs.values) {
		return rs.values[i]
	}
	return lua.LNil
}

// got describes an unsuitable first result and what was expected.
func (rs results) got(wanted string) error {
	found := describe(rs.get(0))
	if len(rs.values) == 0 {
		found = "nothing"
	}
	return rs.wrong("returned %s; it must return %s", found, wanted)
}

func (rs results) wrong(format string, args ...any) error {
	return &fault{BadResult, 0, rs.function + " " + fmt.Sprintf(format, args...)}
}

// json converts result i to JSON. hint is the input that it is based on, if any.
func (rs results) json(i int, hint any, schema *Schema) (any, error) {
	v, _, misfit := (&reader{run: rs.run}).value(rs.get(i), hint, schema, 0)
	if misfit != nil {
		return nil, rs.wrong("returned a value that is not a Kubernetes object: %s", strings.TrimPrefix(misfit.Error(), "."))
	}
	return v, nil
}

// typed returns a result of the kube library that the script returned unchanged.
func typed[T any](rs results, i int) (v T, ok bool) {
	t, isTable := rs.get(i).(*lua.LTable)
	if !isTable {
		return v, false
	}
	if s := rs.run.sources[t]; s != nil && s.closed {
		v, ok = s.value.(T)
	}
	return v, ok
}

// whole returns the number of replicas in a value.
func whole(n float64) (int32, bool) {
	return int32(n), n == math.Trunc(n) && n >= 0 && n <= math.MaxInt32
}

func readReplicas(rs results, in interpret.Inputs, out *Outputs) error {
	const wanted = "the number of replicas, followed by the requirements of one replica"
	n, ok := rs.get(0).(lua.LNumber)
	if !ok {
		if rs.get(0) == lua.LNil && len(rs.values) > 0 {
			return rs.wrong("returned nil; it must return %s. If the field may be unset, give a default: obj.spec.replicas or 1",
				wanted)
		}
		return rs.got(wanted)
	}
	if out.Replicas, ok = whole(float64(n)); !ok {
		return rs.wrong("returned %s replicas; it must return a whole number from 0 to %d", n, math.MaxInt32)
	}
	if rs.get(1) == lua.LNil {
		return nil
	}
	req, ok := typed[*workv1alpha2.ReplicaRequirements](rs, 1)
	if !ok {
		req = &workv1alpha2.ReplicaRequirements{}
		if err := rs.decode(1, "{nodeClaim, resourceRequest, namespace, priorityClassName}", req, out); err != nil {
			return err
		}
	}
	if req.Namespace == "" && in.Object != nil {
		req.Namespace = in.Object.GetNamespace()
	}
	out.Requirements = req
	return nil
}

// decode decodes result i, an object with the given fields.
func (rs results) decode(i int, wanted string, into any, out *Outputs) error {
	v, err := rs.json(i, nil, nil)
	if err != nil {
		return err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return rs.wrong("returned as result %d %s; it must be a table of %s", i+1, describe(rs.get(i)), wanted)
	}
	return rs.fill(m, fmt.Sprintf("result %d", i+1), wanted, into, out)
}

// fill decodes an object. Unknown fields cause a warning, not an error, as in Karmada.
func (rs results) fill(m map[string]any, what, wanted string, into any, out *Outputs) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, into, true); err != nil {
		if !runtime.IsStrictDecodingError(err) {
			return rs.wrong("returned an invalid %s: %v; it must be a table of %s", what, err, wanted)
		}
		out.Warnings = append(out.Warnings, fmt.Sprintf("%s returned %s with unknown fields: %v; it must be a table of %s",
			rs.function, what, err, wanted))
	}
	return nil
}

func readComponents(rs results, _ interpret.Inputs, out *Outputs) error {
	const wanted = "a list of {name, replicas, replicaRequirements}"
	if rs.get(0) == lua.LNil {
		return nil
	}
	elements, err := rs.list(wanted)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for i, m := range elements {
		if requirements, ok := m["replicaRequirements"].(map[string]any); ok {
			delete(requirements, "namespace") // of kube.accuratePodRequirements; components have none
		}
		var c workv1alpha2.Component
		if err := rs.fill(m, fmt.Sprintf("component %d", i+1), "{name, replicas, replicaRequirements}", &c, out); err != nil {
			return err
		}
		switch {
		case c.Name == "":
			return rs.wrong("returned a component, number %d, without a name; it must return %s", i+1, wanted)
		case taken[c.Name]:
			return rs.wrong("returned two components named %q; each needs a unique name", c.Name)
		case c.Replicas < 0:
			return rs.wrong("returned %d replicas for the component %q; it must be 0 or more", c.Replicas, c.Name)
		}
		taken[c.Name] = true
		out.Components = append(out.Components, c)
	}
	slices.SortFunc(out.Components, func(a, b workv1alpha2.Component) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// list returns the first result as a list of tables. An empty table is an empty list.
func (rs results) list(wanted string) ([]map[string]any, error) {
	if _, ok := rs.get(0).(*lua.LTable); !ok {
		return nil, rs.got(wanted)
	}
	v, err := rs.json(0, nil, &Schema{Type: "array"})
	if err != nil {
		return nil, err
	}
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		return nil, rs.wrong("returned a table with names as keys; it must return %s", wanted)
	}
	list, _ := v.([]any)
	tables := make([]map[string]any, len(list))
	for i, element := range list {
		m, ok := element.(map[string]any)
		if !ok {
			return nil, rs.wrong("returned a list whose element %d is not a table; it must return %s", i+1, wanted)
		}
		tables[i] = m
	}
	return tables, nil
}

func readObject(rs results, in interpret.Inputs, out *Outputs) error {
	const wanted = "the whole object"
	if _, ok := rs.get(0).(*lua.LTable); !ok {
		return rs.got(wanted)
	}
	var hint any
	if in.Object != nil {
		hint = in.Object.Object
	}
	v, err := rs.json(0, hint, rs.schema)
	if err != nil {
		return err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return rs.wrong("returned a list; it must return %s", wanted)
	}
	if reflect.DeepEqual(v, hint) {
		out.Object = in.Object
		return nil
	}
	u := &unstructured.Unstructured{Object: m}
	if in.Object != nil && (u.GetAPIVersion() != in.Object.GetAPIVersion() || u.GetKind() != in.Object.GetKind() ||
		u.GetName() != in.Object.GetName() || u.GetNamespace() != in.Object.GetNamespace()) {
		if u.GetKind() == "" {
			return rs.wrong("returned a table without kind; it must return %s, not a part of it", wanted)
		}
		return rs.wrong("returned %s %s %q in place of %s %s %q; apiVersion, kind, namespace and name must stay",
			u.GetAPIVersion(), u.GetKind(), words.Path(u.GetNamespace(), u.GetName()),
			in.Object.GetAPIVersion(), in.Object.GetKind(), words.Path(in.Object.GetNamespace(), in.Object.GetName()))
	}
	out.Object = u
	return nil
}

// readAggregated takes the status of the returned object, or the returned table itself if it is a bare status, as in
// the guides.
func readAggregated(rs results, in interpret.Inputs, out *Outputs) error {
	const wanted = "the object with its status, or the status alone"
	t, ok := rs.get(0).(*lua.LTable)
	if !ok {
		return rs.got(wanted)
	}
	out.Object = in.Object
	var before map[string]any
	if in.Object != nil {
		before = in.Object.Object
	}
	bare := t != rs.run.object
	for _, key := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
		bare = bare && !rs.run.hasField(t, key)
	}
	hint, schema := any(before), rs.schema
	if bare {
		hint, schema = before["status"], rs.schema.Field("status")
	}
	v, err := rs.json(0, hint, schema)
	if err != nil {
		return err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return rs.wrong("returned a list; it must return %s", wanted)
	}
	status := m
	if bare {
		out.Warnings = append(out.Warnings,
			fmt.Sprintf("%s returned a status without its object, which Karmada does not understand; return desiredObj with its status set", rs.function))
	} else if m["status"] == nil {
		return nil
	} else if status, ok = m["status"].(map[string]any); !ok {
		return rs.wrong("returned an object whose status is not a table with names as keys")
	} else if reflect.DeepEqual(m, before) {
		out.Status = status
		return nil
	} else if m["spec"] == nil && before["spec"] != nil {
		out.Warnings = append(out.Warnings, rs.function+" returned the object without its spec; return desiredObj")
	}
	out.Status = status
	if in.Object != nil {
		out.Object = interpret.WithStatus(in.Object, status)
	}
	return nil
}

func readStatus(rs results, in interpret.Inputs, out *Outputs) error {
	switch rs.get(0).(type) {
	case *lua.LNilType:
		if len(rs.values) == 0 {
			return rs.got("the status, or nil when there is none")
		}
		return nil
	case *lua.LTable:
	default:
		return rs.got("the status, or nil when there is none")
	}
	var hint any
	if in.Object != nil {
		hint = in.Object.Object["status"]
	}
	v, err := rs.json(0, hint, rs.schema.Field("status"))
	if err != nil {
		return err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return rs.wrong("returned a list; it must return the status, an object")
	}
	out.Status = m
	return nil
}

// readHealth accepts a boolean, as Karmada does, or the name of a Health, which is an extension.
func readHealth(rs results, _ interpret.Inputs, out *Outputs) error {
	switch v := rs.get(0).(type) {
	case lua.LBool:
		if out.Health = interpret.Degraded; v {
			out.Health = interpret.Healthy
		}
		return nil
	case lua.LString:
		switch h := interpret.Health(v); h {
		case interpret.Healthy, interpret.Progressing, interpret.Suspended, interpret.Degraded, interpret.Unknown:
			out.Health = h
			return nil
		}
	}
	return rs.got("true or false")
}

func readDependencies(rs results, _ interpret.Inputs, out *Outputs) error {
	const wanted = "a list of {apiVersion, kind, namespace, name}, or with a labelSelector in place of the name"
	if deps, ok := typed[[]configv1alpha1.DependentObjectReference](rs, 0); ok {
		out.Dependencies = deps
		return nil
	}
	if rs.get(0) == lua.LNil && len(rs.values) > 0 {
		return nil
	}
	elements, err := rs.list(wanted)
	if err != nil {
		return err
	}
	var deps []configv1alpha1.DependentObjectReference
	for i, m := range elements {
		var d configv1alpha1.DependentObjectReference
		if err := rs.fill(m, fmt.Sprintf("dependency %d", i+1), "{apiVersion, kind, namespace, name, labelSelector}", &d,
			out); err != nil {
			return err
		}
		var missing string
		switch {
		case d.APIVersion == "":
			missing = "apiVersion"
		case d.Kind == "":
			missing = "kind"
		case d.Name == "" && d.LabelSelector == nil:
			missing = "name"
		}
		if missing != "" {
			return rs.wrong("returned a dependency, number %d, without %s; it must return %s", i+1, missing, wanted)
		}
		deps = append(deps, d)
	}
	out.Dependencies = interpret.SortDependencies(deps)
	return nil
}
