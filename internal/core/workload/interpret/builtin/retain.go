package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Fields that a template does not set belong to the member anyway, because apply sets only the template's fields. The
// rules here keep fields that a template does set, but that controllers in the member change for a good reason.

// retainer is a rule with the contract of interpret.Interpreter's Retain.
type retainer = func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured,
	error)

// retainAll applies the rules in order.
func retainAll(rules ...retainer) retainer {
	return func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		for _, rule := range rules {
			var err error
			if desired, err = rule(ctx, desired, observed); err != nil {
				return nil, err
			}
		}
		return desired, nil
	}
}

// retainFields keeps the observed values at these paths, which controllers in the member set.
func retainFields(paths ...[]string) retainer {
	return func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		retained := desired
		for _, path := range paths {
			v := field(observed.Object, path...)
			if v == nil || v == "" {
				continue
			}
			if retained == desired {
				retained = desired.DeepCopy()
			}
			if err := unstructured.SetNestedField(retained.Object, runtime.DeepCopyJSONValue(v), path...); err != nil {
				return nil, err
			}
		}
		return retained, nil
	}
}

// retainReplicas leaves the number of pods to the member, for example to an autoscaler, if the template's label
// requests it.
func retainReplicas(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if desired.GetLabels()[policyv1alpha1.RetainReplicasLabel] != "true" {
		return desired, nil
	}
	n, ok := whole(field(observed.Object, replicasPath(observed)...))
	if !ok {
		return desired, nil
	}
	return revise(ctx, desired, int32(n))
}

// rolloutAnnotations are on a workload during a rollout by Kruise Rollouts.
var rolloutAnnotations = []string{"rollouts.kruise.io/in-progressing", "batchrelease.rollouts.kruise.io/control-info"}

// rolloutFields are the fields with which Kruise Rollouts controls a workload, in both versions.
var rolloutFields = func() [][]string {
	paths := [][]string{{"spec", "minReadySeconds"}}
	for _, f := range []string{"partition", "paused", "maxSurge", "maxUnavailable", "minReadySeconds"} {
		paths = append(paths, []string{"spec", "updateStrategy", f}, []string{"spec", "updateStrategy", "rollingUpdate", f})
	}
	return paths
}()

// deploymentRolloutFields are the rollout fields of a Deployment.
var deploymentRolloutFields = [][]string{{"spec", "paused"}, {"spec", "strategy"}, {"spec", "minReadySeconds"},
	{"spec", "progressDeadlineSeconds"}}

// retainRollout keeps the fields of a workload that Kruise Rollouts controls in the member. The template's partition
// would release everything at once. A field that the member removed stays removed: API servers omit false and zero, and
// a lifted pause must not return.
func retainRollout(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return retainDriven(ctx, desired, observed, rolloutFields)
}

// retainDeploymentRollout is retainRollout for a Deployment, which is paused and has another strategy during a rollout.
func retainDeploymentRollout(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return retainDriven(ctx, desired, observed, deploymentRolloutFields)
}

func retainDriven(ctx context.Context, desired, observed *unstructured.Unstructured,
	fields [][]string) (*unstructured.Unstructured, error) {
	driven := func(key string) bool { return observed.GetAnnotations()[key] != "" }
	if !slices.ContainsFunc(rolloutAnnotations, driven) {
		return desired, nil
	}
	retained := desired.DeepCopy()
	for _, path := range fields {
		v := field(observed.Object, path...)
		if v == nil {
			unstructured.RemoveNestedField(retained.Object, path...)
			continue
		}
		if err := unstructured.SetNestedField(retained.Object, runtime.DeepCopyJSONValue(v), path...); err != nil {
			return nil, err
		}
	}
	paths := make([][]string, len(rolloutAnnotations))
	for i, key := range rolloutAnnotations {
		paths[i] = []string{"metadata", "annotations", key}
	}
	return retainFields(paths...)(ctx, retained, observed)
}

// clash is an immutable field of the member's object that differs from the template.
type clash struct {
	path []string
	keep any    // the value to keep; nil to remove the field
	why  string // the wanted and the kept value, for users
}

// retainImmutable keeps the clashing fields.
func retainImmutable(rules ...func(desired, observed map[string]any) []clash) retainer {
	return func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		var clashes []clash
		for _, rule := range rules {
			clashes = append(clashes, rule(desired.Object, observed.Object)...)
		}
		if len(clashes) == 0 {
			return desired, nil
		}
		retained := desired.DeepCopy()
		var why []string
		for _, c := range clashes {
			if why = append(why, c.why); c.keep == nil {
				unstructured.RemoveNestedField(retained.Object, c.path...)
				continue
			}
			if err := unstructured.SetNestedField(retained.Object, runtime.DeepCopyJSONValue(c.keep), c.path...); err != nil {
				return nil, err
			}
		}
		return withField(retained, strings.Join(why, "; "), "metadata", "annotations", wellknown.ImmutableFieldsAnnotation)
	}
}

// immutableText returns a rule for a string that is immutable once set.
func immutableText(path ...string) func(desired, observed map[string]any) []clash {
	return func(desired, observed map[string]any) []clash {
		want, have := text(desired, path...), text(observed, path...)
		if want == "" || have == "" || want == have {
			return nil
		}
		return []clash{{path, have, fmt.Sprintf("%s is still %q, but the template has %q", strings.Join(path, "."), have,
			want)}}
	}
}

// immutableSelector keeps the selector of a workload if the template's pods still match it. If not, the workload must
// be recreated, and the member's error explains that.
func immutableSelector(desired, observed map[string]any) []clash {
	path := []string{"spec", "selector"}
	want, have := object(desired, path...), object(observed, path...)
	if want == nil || have == nil || equal(want, have) {
		return nil
	}
	w, err := match.ParseSelector(want)
	if err != nil {
		return nil
	}
	h, err := match.ParseSelector(have)
	if err != nil || w.String() == h.String() {
		return nil
	}
	pods, _, err := unstructured.NestedStringMap(desired, "spec", "template", "metadata", "labels")
	if err != nil || !h.Matches(labels.Set(pods)) {
		return nil
	}
	return []clash{{path, have, fmt.Sprintf("spec.selector is still %q, but the template has %q", h, w)}}
}

// immutableStorage keeps the sizes of claim templates that would shrink.
func immutableStorage(desired, observed map[string]any) []clash {
	path := []string{"spec", "volumeClaimTemplates"}
	size := []string{"spec", "resources", "requests", "storage"}
	var why []string
	wanted := slices.Clone(list(desired, path...))
	for i, w := range wanted {
		want, ok := w.(map[string]any)
		have := withName(objects(observed, path...), text(want, "metadata", "name"), "metadata", "name")
		if !ok || have == nil {
			continue
		}
		small, err := quantity(field(want, size...))
		if err != nil {
			continue
		}
		large, err := quantity(field(have, size...))
		if err != nil || small.Cmp(large) >= 0 {
			continue
		}
		kept := runtime.DeepCopyJSON(want)
		if unstructured.SetNestedField(kept, large.String(), size...) != nil {
			continue
		}
		wanted[i] = kept
		why = append(why, fmt.Sprintf("the storage of spec.volumeClaimTemplates[%s] is still %s, but the template has %s, and volume claims cannot shrink",
			text(want, "metadata", "name"), &large, &small))
	}
	if why == nil {
		return nil
	}
	return []clash{{path, wanted, strings.Join(why, "; ")}}
}

// quantity parses a quantity from a string or number.
func quantity(v any) (resource.Quantity, error) {
	switch v.(type) {
	case string, int64, float64:
		return resource.ParseQuantity(fmt.Sprint(v))
	}
	return resource.Quantity{}, fmt.Errorf("%v is not a quantity", v)
}

// withName returns the first object with the name at path; nil if there is none.
func withName(objects []map[string]any, name string, path ...string) map[string]any {
	for _, o := range objects {
		if text(o, path...) == name {
			return o
		}
	}
	return nil
}

// sameDecoded reports whether two values decode to equal Ts. Values that do not decode are compared as they are.
func sameDecoded[T any](a, b any) bool {
	type box struct {
		Value T `json:"value,omitempty"`
	}
	decode := func(v any) (*box, error) {
		var out box
		return &out, runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"value": v}, &out)
	}
	x, err := decode(a)
	if err != nil {
		return equality.Semantic.DeepEqual(a, b)
	}
	y, err := decode(b)
	return err == nil && equality.Semantic.DeepEqual(x, y)
}

// keptCondition returns the condition about kept immutable fields; nil if there are none.
func keptCondition(observed *unstructured.Unstructured) map[string]any {
	kept := observed.GetAnnotations()[wellknown.ImmutableFieldsAnnotation]
	if kept == "" {
		return nil
	}
	return map[string]any{
		"type": interpret.ImmutableFieldConflict, "status": "True", "reason": "MemberKeepsItsValue",
		"message": kept + "; this field is immutable: revert the template, or delete the object in the member to have it recreated",
	}
}
