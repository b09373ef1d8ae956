package interpretcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/diff"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// caseFile is a file with cases.
type caseFile struct {
	// Customization is the path of the customizations to test, relative to this file. Without it the built-in tiers are
	// tested.
	Customization string `json:"customization,omitempty"`
	// Object is the object of the cases. Each case may patch it.
	Object map[string]any `json:"object,omitempty"`
	// Cases in display order.
	Cases []testCase `json:"cases"`
}

// testCase is one call and its result. Exactly one of Want, WantChange and WantError is set.
type testCase struct {
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

// parseCases parses and validates a file of cases. Unknown fields are errors, because a misspelled field would make a
// case weaker than intended.
func parseCases(text []byte) (*caseFile, error) {
	f := &caseFile{}
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		// Hide that YAML is decoded through JSON.
		return nil, errors.New(strings.NewReplacer("error unmarshaling JSON: while decoding JSON: ", "",
			"error converting YAML to JSON: ", "", "json: ", "",
			"Go struct field caseFile.", "", "Go value", "value").Replace(err.Error()))
	}
	if len(f.Cases) == 0 {
		return nil, fmt.Errorf("it contains no cases")
	}
	for i, c := range f.Cases {
		if c.Name == "" {
			return nil, fmt.Errorf("case %d has no name", i+1)
		}
		if err := f.check(c); err != nil {
			return nil, fmt.Errorf("case %d, %q: %w", i+1, c.Name, err)
		}
	}
	return f, nil
}

func (f *caseFile) check(c testCase) error {
	set := 0
	for _, is := range []bool{c.Want != nil, c.WantChange != nil, c.WantError != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		return errors.New("set exactly one of want, wantChange and wantError")
	}
	q, err := f.question(c)
	if err != nil {
		return err
	}
	if err := q.check("desired", "observed", "desiredReplica"); err != nil {
		return err
	}
	if q.object().GetKind() == "" || q.object().GetAPIVersion() == "" {
		return errors.New("the object has no apiVersion or no kind")
	}
	if c.WantChange != nil && !slices.Contains([]configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationRetain, configv1alpha1.InterpreterOperationReviseReplica,
		configv1alpha1.InterpreterOperationAggregateStatus}, c.Operation) {
		return errors.New("wantChange is for Retain, ReviseReplica and AggregateStatus, which return an object; use want")
	}
	return nil
}

// question returns the question of a case.
func (f *caseFile) question(c testCase) (q question, err error) {
	q = question{operation: c.Operation, replicas: c.DesiredReplica, items: c.StatusItems}
	retain := c.Operation == configv1alpha1.InterpreterOperationRetain
	if retain || c.Desired != nil || c.Observed == nil {
		if q.desired, err = patched(f.Object, c.Desired); err != nil {
			return q, err
		}
	}
	if retain || c.Observed != nil {
		q.observed, err = patched(f.Object, c.Observed)
	}
	return q, err
}

// caseResult is the result of one case.
type caseResult struct {
	Name      string                              `json:"name"`
	Operation configv1alpha1.InterpreterOperation `json:"operation"`
	// Failure is empty if the case passes. Otherwise it has a diff (-want +got).
	Failure string `json:"failure,omitempty"`
}

// run runs all cases.
func (f *caseFile) run(ctx context.Context, tier interpret.Tier) ([]caseResult, error) {
	results := make([]caseResult, 0, len(f.Cases))
	for _, c := range f.Cases {
		q, err := f.question(c)
		if err != nil {
			return nil, err
		}
		answer, err := q.answer(ctx, tier)
		failure, err := c.judge(q, answer, err)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		results = append(results, caseResult{Name: c.Name, Operation: c.Operation, Failure: failure})
	}
	return results, nil
}

// judge returns the failure, or empty if the answer is as wanted. given is the error of the answer.
func (c testCase) judge(q question, answer []part, given error) (failure string, err error) {
	switch {
	case c.WantError != "" && given == nil:
		out, err := yaml.Marshal(answered(answer))
		return fmt.Sprintf("no error, want one with %q; the result was:\n%s", c.WantError, out), err
	case c.WantError != "" && !strings.Contains(given.Error(), c.WantError):
		return fmt.Sprintf("the error is %q, want one with %q", given, c.WantError), nil
	case c.WantError != "":
		return "", nil
	case given != nil:
		return fmt.Sprintf("error: %v", given), nil
	}
	got, want := answered(answer), any(nil)
	if c.WantChange != nil {
		object, err := patched(q.object().Object, c.WantChange)
		if err != nil {
			return "", err
		}
		want = object.Object
	} else if err := k8sjson.Unmarshal(c.Want, &want); err != nil {
		return "", fmt.Errorf("read want: %w", err)
	}
	// A case may check one of the two health fields.
	if health, ok := got.(map[string]any); ok && c.Operation == configv1alpha1.InterpreterOperationInterpretHealth {
		if wanted, ok := want.(map[string]any); ok {
			maps.DeleteFunc(health, func(key string, _ any) bool { _, asked := wanted[key]; return !asked })
		}
	}
	if failure = diff.Diff(want, got); failure != "" {
		failure = "(-want +got)\n" + failure
	}
	return failure, nil
}

// answered returns an answer of one part as it is, and of several parts as an object.
func answered(answer []part) any {
	if len(answer) == 1 {
		return answer[0].value
	}
	all := map[string]any{}
	for _, p := range answer {
		if p.value != nil {
			all[p.name] = p.value
		}
	}
	return all
}

// patched returns a copy of an object with a merge patch.
func patched(object, patch map[string]any) (*unstructured.Unstructured, error) {
	var data [2][]byte
	for i, m := range []map[string]any{object, patch} {
		var err error
		if data[i], err = json.Marshal(m); err != nil {
			return nil, err
		}
		if m == nil {
			data[i] = []byte("{}")
		}
	}
	merged, err := jsonpatch.MergePatch(data[0], data[1])
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, k8sjson.Unmarshal(merged, &out.Object)
}
