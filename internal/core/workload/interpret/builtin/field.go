package builtin

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Short names of functions that read objects.
var (
	field   = fields.Value
	whole   = fields.Whole
	number  = fields.Number
	text    = fields.Text
	yes     = fields.Yes
	object  = fields.Object
	list    = fields.List
	objects = fields.Objects
)

// specNumber returns the integer at path in the spec, or otherwise if it is not set. Other types are an error.
func specNumber(obj *unstructured.Unstructured, otherwise int64, path ...string) (int64, error) {
	v := field(object(obj.Object, "spec"), path...)
	if v == nil {
		return otherwise, nil
	}
	n, ok := whole(v)
	if !ok {
		return 0, fmt.Errorf("spec.%s: %v is not an integer", strings.Join(path, "."), v)
	}
	return n, nil
}

// conditionText returns a string field of the condition of a type; empty if there is none.
func conditionText(status map[string]any, kind, name string) string {
	for _, c := range objects(status, "conditions") {
		if text(c, "type") == kind {
			return text(c, name)
		}
	}
	return ""
}

// isTrue reports whether the condition of a type is True.
func isTrue(status map[string]any, kind string) bool {
	return conditionText(status, kind, "status") == "True"
}

// judged returns the hook that judges the health of an object by its content and its status.
func judged(judge func(obj, status map[string]any) interpret.Health) healthHook {
	return func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
		return judge(observed.Object, object(observed.Object, "status")), nil
	}
}

// judgedFresh is judged for kinds with an observedGeneration: until it is current, the object is Progressing.
func judgedFresh(judge func(obj, status map[string]any) interpret.Health) healthHook {
	return func(ctx context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
		if !fresh(observed) {
			return interpret.Progressing, nil
		}
		return judged(judge)(ctx, observed)
	}
}

type healthHook = func(context.Context, *unstructured.Unstructured) (interpret.Health, error)

// needing returns the hook for dependencies that an object names, in any order.
func needing(names func(obj *unstructured.Unstructured) []configv1alpha1.DependentObjectReference) func(context.Context,
	*unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return func(_ context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
		return interpret.SortDependencies(names(obj)), nil
	}
}

// overdue reports whether the object's own progress deadline has expired.
func overdue(status map[string]any) bool {
	return conditionText(status, "Progressing", "status") == "False" &&
		conditionText(status, "Progressing", "reason") == "ProgressDeadlineExceeded"
}
