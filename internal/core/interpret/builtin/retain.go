package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// What a template leaves open is the member's without anybody's help: an apply sets only what the template sets. So
// what is retained here is what a template does set, or may, and somebody in the member has set otherwise with good
// reason.

// retainer is a rule of what belongs to the member, with the contract of interpret.Interpreter's Retain.
type retainer = func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured,
	error)

// retainAll follows the rules one after the other.
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

// retainFields keeps the observed values of the fields at these paths: controllers in the member set them, once.
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

// retainReplicas leaves spec.replicas to the member, an autoscaler there perhaps, when the template's label asks for
// it.
func retainReplicas(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if desired.GetLabels()[policyv1alpha1.RetainReplicasLabel] != "true" {
		return desired, nil
	}
	n, ok := whole(field(observed.Object, "spec", "replicas"))
	if !ok {
		return desired, nil
	}
	return revise(ctx, desired, int32(n))
}

// rolloutAnnotations are on a workload that Kruise Rollouts is rolling out.
var rolloutAnnotations = []string{"rollouts.kruise.io/in-progressing", "batchrelease.rollouts.kruise.io/control-info"}

// rolloutFields are what Kruise Rollouts steers a workload with, in either version's place.
var rolloutFields = func() [][]string {
	paths := [][]string{{"spec", "minReadySeconds"}}
	for _, f := range []string{"partition", "paused", "maxSurge", "maxUnavailable", "minReadySeconds"} {
		paths = append(paths, []string{"spec", "updateStrategy", f}, []string{"spec", "updateStrategy", "rollingUpdate", f})
	}
	return paths
}()

// deploymentRolloutFields are those of a Deployment.
var deploymentRolloutFields = [][]string{{"spec", "paused"}, {"spec", "strategy"}, {"spec", "minReadySeconds"},
	{"spec", "progressDeadlineSeconds"}}

// retainRollout leaves a workload that Kruise Rollouts drives in the member to it: the template's partition, most of
// all, would release in one go what is being released step by step. A field that is gone there stays gone: API servers
// leave out what is false or zero, and a pause that was lifted must not come back.
func retainRollout(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return retainDriven(ctx, desired, observed, rolloutFields)
}

// retainDeploymentRollout is retainRollout of a Deployment, which is held by a pause and by another strategy.
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

// What the member's admission would refuse to change is kept as the member has it, so that the rest of a template
// arrives, and the object is marked with what was kept; the mark comes back to the hub as a condition of the status.
const keptAnnotation = "argosy.io/immutable-fields"

// clash is a field that cannot change in the member and that the template wants otherwise.
type clash struct {
	path []string
	keep any    // what to set at path instead; nil for nothing
	why  string // which value is wanted, and which one stays
}

// retainImmutable keeps the fields that clash.
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
		return withField(retained, strings.Join(why, "; "), "metadata", "annotations", keptAnnotation)
	}
}

// immutableText is a text that cannot change once it is set.
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

// immutableSelector is the selector of a workload. It is kept only if the template's pods still match it: if they do
// not, nothing can be done but to make the workload anew, and the member's own refusal says so.
func immutableSelector(desired, observed map[string]any) []clash {
	path := []string{"spec", "selector"}
	want, have := object(desired, path...), object(observed, path...)
	if want == nil || have == nil || equal(want, have) {
		return nil
	}
	w, err := selectorOf(want)
	if err != nil {
		return nil
	}
	h, err := selectorOf(have)
	if err != nil || w.String() == h.String() {
		return nil
	}
	pods, _, err := unstructured.NestedStringMap(desired, "spec", "template", "metadata", "labels")
	if err != nil || !h.Matches(labels.Set(pods)) {
		return nil
	}
	return []clash{{path, have, fmt.Sprintf("spec.selector is still %q, but the template has %q", h, w)}}
}

// selectorOf reads a label selector.
func selectorOf(raw map[string]any) (labels.Selector, error) {
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&s)
}

// immutableStorage are the sizes of claims made from claim templates, which only grow.
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

// quantity reads a quantity, a text or a number.
func quantity(v any) (resource.Quantity, error) {
	switch v.(type) {
	case string, int64, float64:
		return resource.ParseQuantity(fmt.Sprint(v))
	}
	return resource.Quantity{}, fmt.Errorf("%v is not a quantity", v)
}

// withName is the first object with the name, at path in it; nil when there is none.
func withName(objects []map[string]any, name string, path ...string) map[string]any {
	for _, o := range objects {
		if text(o, path...) == name {
			return o
		}
	}
	return nil
}

// sameDecoded says whether two values are one T, whatever they leave out; values that are no T are compared as they
// are.
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

// keptCondition tells what the member keeps against the template, nil for nothing.
func keptCondition(observed *unstructured.Unstructured) map[string]any {
	kept := observed.GetAnnotations()[keptAnnotation]
	if kept == "" {
		return nil
	}
	return map[string]any{
		"type": interpret.ImmutableFieldConflict, "status": "True", "reason": "MemberKeepsItsValue",
		"message": kept + "; this field is immutable: revert the template, or delete the object in the member to have it recreated",
	}
}
