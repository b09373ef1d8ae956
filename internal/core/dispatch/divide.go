package dispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// division returns a function that makes the share of a cluster. A template that is duplicated, or that a cluster has
// only because another one requires it, is the template itself: it has its replicas already, unless a quota has refused
// some of them. completions are those of completionsOf.
func (in Input) division(template *unstructured.Unstructured,
	completions map[string]int32) func(context.Context, interpret.Interpreter, string) (*unstructured.Unstructured,
	error) {
	spec := in.Binding.BindingSpec()
	divides := Divides(spec)
	if !divides && !in.Limited {
		return func(context.Context, interpret.Interpreter, string) (*unstructured.Unstructured, error) {
			return template, nil
		}
	}
	replicas := make(map[string]int32, len(spec.Clusters))
	for _, c := range spec.Clusters {
		replicas[c.Name] = c.Replicas
	}

	return func(ctx context.Context, i interpret.Interpreter, cluster string) (*unstructured.Unstructured, error) {
		n, scheduled := replicas[cluster]
		if !scheduled || !divides && (n == 0 || n == spec.Replicas) {
			return template, nil
		}
		m, err := i.Revise(ctx, template, n)
		if err != nil {
			return nil, err
		}
		if share, ok := completions[cluster]; ok {
			if m == template {
				m = template.DeepCopy()
			}
			if err := unstructured.SetNestedField(m.Object, int64(share), "spec", "completions"); err != nil {
				return nil, fmt.Errorf("divide completions: %w", err)
			}
		}
		return m, nil
	}
}

// outgrows reports whether the template requests more than its binding: an enforced quota has refused that, or has not
// permitted it yet.
func (in Input) outgrows(ctx context.Context, i interpret.Interpreter) bool {
	if !in.Limited {
		return false
	}
	var m propagate.Meaning
	if m.Interpret(ctx, i, in.Template) != nil {
		return true
	}
	spec := in.Binding.BindingSpec()
	var asked, has corev1.ResourceList
	if m.Requirements != nil {
		asked = m.Requirements.ResourceRequest
	}
	if spec.ReplicaRequirements != nil {
		has = spec.ReplicaRequirements.ResourceRequest
	}
	return exceeds(asked, has) || slices.ContainsFunc(m.Components, func(c workv1alpha2.Component) bool {
		k := slices.IndexFunc(spec.Components, func(of workv1alpha2.Component) bool { return of.Name == c.Name })
		if k < 0 || c.Replicas > spec.Components[k].Replicas {
			return true
		}
		was := spec.Components[k].ReplicaRequirements
		if was == nil {
			was = &workv1alpha2.ComponentReplicaRequirements{}
		}
		return c.ReplicaRequirements != nil && exceeds(c.ReplicaRequirements.ResourceRequest, was.ResourceRequest)
	})
}

// anyWork returns the Work of the first cluster by name that has one; nil for none.
func (in Input) anyWork() *workv1alpha1.Work {
	for _, cluster := range slices.Sorted(maps.Keys(in.Existing)) {
		if w := in.Existing[cluster]; w != nil {
			return w
		}
	}
	return nil
}

// exceeds reports whether a has more of a resource than b.
func exceeds(a, b corev1.ResourceList) bool {
	for name, q := range a {
		if q.Cmp(b[name]) > 0 {
			return true
		}
	}
	return false
}

// completionsOf divides a Job's completions by the parallelism that each cluster was given; nil for anything else.
// The template's UID breaks ties, as in scheduling.
func completionsOf(spec *workv1alpha2.ResourceBindingSpec, template *unstructured.Unstructured) map[string]int32 {
	once := kind.Facts(template).Once
	if once == nil || once.Completions == nil || !Divides(spec) {
		return nil
	}
	total, ok, err := unstructured.NestedInt64(template.Object, once.Completions...)
	if !ok || err != nil {
		return nil
	}
	shares := make([]schedule.Share, len(spec.Clusters))
	for i, c := range spec.Clusters {
		shares[i] = schedule.Share{Name: c.Name, Weight: int64(c.Replicas)}
	}
	schedule.Apportion(int32(total), shares, spec.Resource.UID)
	seats := make(map[string]int32, len(shares))
	for _, s := range shares {
		seats[s.Name] = s.Seats
	}
	return seats
}
