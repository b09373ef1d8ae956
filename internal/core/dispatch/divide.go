package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// errKept means that a cluster keeps the Work that it has, and gets none if it has none.
var errKept = errors.New("the share of the cluster is not known")

// division returns a function that makes the share of a cluster. A template that is duplicated, or that a cluster has
// only because another one requires it, is the template itself: it has its replicas already, unless a quota has refused
// some of the replicas that it asks for. completions are those of completionsOf.
//
// A workload that has no replicas in its binding, because its kind was not read before or another scheduler wrote none,
// keeps those of its Works. The error is errKept if they cannot be read, or if a quota has refused replicas and the
// interpreter cannot set them.
func (in Input) division(template *unstructured.Unstructured, asked int32,
	completions map[string]int32) func(context.Context, interpret.Interpreter, string) (*unstructured.Unstructured,
	error) {
	spec := in.Binding.BindingSpec()
	divides := Divides(spec)
	if !divides && !in.Limited {
		return func(context.Context, interpret.Interpreter, string) (*unstructured.Unstructured, error) {
			return template, nil
		}
	}
	replicas, all := make(map[string]int32, len(spec.Clusters)), int32(0)
	for _, c := range spec.Clusters {
		replicas[c.Name] = c.Replicas
		all += c.Replicas
	}

	return func(ctx context.Context, i interpret.Interpreter, cluster string) (*unstructured.Unstructured, error) {
		n, scheduled := replicas[cluster]
		if !scheduled || !divides && (n == asked || spec.Placement == nil) {
			return template, nil
		}
		if n == 0 && (!divides || all == 0) && in.Existing[cluster] != nil {
			if n = in.sentTo(ctx, i, workv1alpha2.TargetCluster{Name: cluster, Replicas: -1}); n < 0 {
				return nil, errKept
			}
		}
		m, err := i.Revise(ctx, template, n)
		if err != nil {
			return nil, err
		}
		if in.Limited && n < asked && (!divides || all < asked) && equality.Semantic.DeepEqual(m.Object, template.Object) {
			return nil, errKept
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

// outgrown returns the replicas that the template asks for, and whether a quota has not permitted its requests.
func (in Input) outgrown(ctx context.Context, i interpret.Interpreter) (replicas int32, overQuota bool) {
	if !in.Limited {
		return in.Binding.BindingSpec().Replicas, false
	}
	return propagate.Outgrown(ctx, i, in.Template, in.Binding)
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
