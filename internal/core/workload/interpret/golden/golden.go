// Package golden runs test cases of an interpreter: a file has an object, and cases that each ask one operation. The
// caller finds the files and chooses the interpreter.
//
//	customization: cloneset.yaml       # who answers, relative to this file; without it, what Argosy knows by itself
//	object:                            # what all cases are about
//	  apiVersion: apps.kruise.io/v1alpha1
//	  kind: CloneSet
//	  spec: {replicas: 3}
//	cases:
//	- name: a canary paused by its partition is no failure
//	  operation: InterpretHealth
//	  observed: {spec: {partition: 2}, status: {updatedReplicas: 1}}   # a merge patch on object
//	  want: {healthy: true, health: Suspended}
//	- name: the replicas of a cluster are set
//	  operation: ReviseReplica
//	  desiredReplica: 2
//	  wantChange: {spec: {replicas: 2}}  # a merge patch from what was asked about to what came back
//	- name: replicas of nonsense are refused
//	  operation: InterpretReplica
//	  desired: {spec: {replicas: many}}
//	  wantError: is not a number         # a part of the message
package golden

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/ask"
)

// File is a file with cases.
type File struct {
	// Customization is the path of the customizations to test, relative to this file. Without it the built-in tiers are
	// tested.
	Customization string `json:"customization,omitempty"`
	// Object is the object of the cases. Each case may patch it.
	Object map[string]any `json:"object,omitempty"`
	// Cases in display order.
	Cases []Case `json:"cases"`
}

// Case is one call and its result. Exactly one of Want, WantChange and WantError is set.
type Case struct {
	Name      string                              `json:"name"`
	Operation configv1alpha1.InterpreterOperation `json:"operation"`

	// Desired and Observed are merge patches (RFC 7386) on the file's object. Retain needs both. Other operations use the
	// one that is set, or the object itself.
	Desired  map[string]any `json:"desired,omitempty"`
	Observed map[string]any `json:"observed,omitempty"`
	// DesiredReplica is the argument of ReviseReplica.
	DesiredReplica *int32 `json:"desiredReplica,omitempty"`
	// StatusItems are the argument of AggregateStatus.
	StatusItems []workv1alpha2.AggregatedStatusItem `json:"statusItems,omitempty"`

	// Want is the whole result: an object for Retain, ReviseReplica and AggregateStatus, a status for InterpretStatus, a
	// list for InterpretDependency and InterpretComponent, {replica, requires} for InterpretReplica, and {healthy, health}
	// or one of both for InterpretHealth. null is valid for InterpretStatus and means no status.
	Want json.RawMessage `json:"want,omitempty"`
	// WantChange is the answer as a merge patch on the object that was asked about, for the operations that answer with
	// one.
	WantChange map[string]any `json:"wantChange,omitempty"`
	// WantError is a part of the error message.
	WantError string `json:"wantError,omitempty"`
}

// Parse parses and validates a file of cases. Unknown fields are errors, because a misspelled field would make a case
// weaker than intended.
func Parse(text []byte) (*File, error) {
	f := &File{}
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		// Hide that YAML is decoded through JSON.
		return nil, errors.New(strings.NewReplacer("error unmarshaling JSON: while decoding JSON: ", "",
			"error converting YAML to JSON: ", "", "json: ", "",
			"Go struct field File.", "", "Go value", "value").Replace(err.Error()))
	}
	if len(f.Cases) == 0 {
		return nil, fmt.Errorf("it contains no cases")
	}
	for i, c := range f.Cases {
		name := fmt.Sprintf("case %d", i+1)
		if c.Name == "" {
			return nil, fmt.Errorf("%s has no name", name)
		}
		name = fmt.Sprintf("%s, %q", name, c.Name)
		set := 0
		for _, is := range []bool{c.Want != nil, c.WantChange != nil, c.WantError != ""} {
			if is {
				set++
			}
		}
		if set != 1 {
			return nil, fmt.Errorf("%s: set exactly one of want, wantChange and wantError", name)
		}
		q := f.Question(c)
		if err := q.Check("desired", "observed", "desiredReplica"); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if q.Object().GetKind() == "" || q.Object().GetAPIVersion() == "" {
			return nil, fmt.Errorf("%s: the object has no apiVersion or no kind", name)
		}
		if c.WantChange != nil && !slices.Contains(objects, c.Operation) {
			return nil, fmt.Errorf("%s: wantChange is for %s, which return an object; use want", name,
				"Retain, ReviseReplica and AggregateStatus")
		}
	}
	return f, nil
}

// objects are the operations that return an object.
var objects = []configv1alpha1.InterpreterOperation{
	configv1alpha1.InterpreterOperationRetain, configv1alpha1.InterpreterOperationReviseReplica,
	configv1alpha1.InterpreterOperationAggregateStatus,
}

// Question returns the question of a case.
func (f *File) Question(c Case) ask.Question {
	q := ask.Question{Operation: c.Operation, Replicas: c.DesiredReplica, Items: c.StatusItems}
	of := func(patch map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: merged(f.Object, patch)}
	}
	if c.Operation == configv1alpha1.InterpreterOperationRetain || c.Desired != nil || c.Observed == nil {
		q.Desired = of(c.Desired)
	}
	if c.Operation == configv1alpha1.InterpreterOperationRetain || c.Observed != nil {
		q.Observed = of(c.Observed)
	}
	return q
}

// Result is the result of one case.
type Result struct {
	Name      string                              `json:"name"`
	Operation configv1alpha1.InterpreterOperation `json:"operation"`
	// Failure is empty if the case passes. Otherwise it has a diff (-want +got).
	Failure string `json:"failure,omitempty"`
}

// Run runs all cases. hooks returns the implementation of an operation for a kind in a version.
func (f *File) Run(ctx context.Context,
	hooks func(*unstructured.Unstructured, configv1alpha1.InterpreterOperation) (*interpret.Hooks, error)) []Result {
	results := make([]Result, 0, len(f.Cases))
	for _, c := range f.Cases {
		r := Result{Name: c.Name, Operation: c.Operation}
		q := f.Question(c)
		h, err := hooks(q.Object(), c.Operation)
		var answer []ask.Part
		if err == nil {
			answer, err = q.Run(ctx, h)
		}
		r.Failure = c.judge(q, answer, err)
		results = append(results, r)
	}
	return results
}

// judge returns the failure, or empty if the result is as wanted.
func (c Case) judge(q ask.Question, answer []ask.Part, err error) string {
	switch {
	case c.WantError != "" && err == nil:
		return fmt.Sprintf("no error, want one with %q; the result was:\n%s", c.WantError, indent(text(got(answer))))
	case c.WantError != "" && !strings.Contains(err.Error(), c.WantError):
		return fmt.Sprintf("the error is %q, want one with %q", err, c.WantError)
	case c.WantError != "":
		return ""
	case err != nil:
		return fmt.Sprintf("error: %v", err)
	}
	want, err := c.wanted(q)
	if err != nil {
		return err.Error()
	}
	value := got(answer)
	// A case may check one of the two health fields.
	if health, ok := value.(map[string]any); ok && c.Operation == configv1alpha1.InterpreterOperationInterpretHealth {
		if wanted, ok := want.(map[string]any); ok {
			maps.DeleteFunc(health, func(key string, _ any) bool { _, asked := wanted[key]; return !asked })
		}
	}
	before, after := text(want), text(value)
	if before == after {
		return ""
	}
	return "(-want +got)\n" + Diff(before, after)
}

// got returns a result of one part as it is, and of several parts as an object.
func got(answer []ask.Part) any {
	if len(answer) == 1 {
		return answer[0].Value
	}
	all := map[string]any{}
	for _, part := range answer {
		if part.Value != nil {
			all[part.Name] = part.Value
		}
	}
	return all
}

func (c Case) wanted(q ask.Question) (any, error) {
	if c.WantChange != nil {
		return merged(q.Object().Object, c.WantChange), nil
	}
	var want any
	if err := k8sjson.Unmarshal(c.Want, &want); err != nil {
		return nil, fmt.Errorf("read want: %w", err)
	}
	return want, nil
}

// text returns a value as YAML. Equal values have equal texts.
func text(value any) string {
	out, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%v\n", value)
	}
	return string(out)
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}

// merged returns a copy of target with a merge patch: null removes, objects are merged, other values are replaced.
func merged(target, patch map[string]any) map[string]any {
	out := make(map[string]any, len(target)+len(patch))
	for key, value := range target {
		out[key] = jsonCopy(value)
	}
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		was, _ := out[key].(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isMap:
			out[key] = merged(was, inner)
		default:
			out[key] = jsonCopy(value)
		}
	}
	return out
}

// jsonCopy copies a value and converts whole floats to integers, as the API server does.
func jsonCopy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return merged(v, nil)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = jsonCopy(v[i])
		}
		return out
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return value
}
