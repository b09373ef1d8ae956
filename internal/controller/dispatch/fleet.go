package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/fleet"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/text"
	"github.com/argosy-io/argosy/internal/filter"
)

// tellFleet puts what users should know of a template in its fleet into conditions of the binding, True for as long as
// it is so, and into events, each when it begins or changes. The binding returned is the one to go on with.
func (r *reconciler) tellFleet(ctx context.Context, b workv1alpha2.Binding, tmpl *unstructured.Unstructured,
	conditions []fleet.Condition) (workv1alpha2.Binding, error) {
	want := b
	change := func(apply func(all *[]metav1.Condition)) {
		if want == b {
			want = b.DeepCopyObject().(workv1alpha2.Binding)
		}
		apply(&want.BindingStatus().Conditions)
	}
	for _, kind := range fleet.ConditionTypes() {
		var err error
		was := meta.FindStatusCondition(b.BindingStatus().Conditions, kind)
		if i := slices.IndexFunc(conditions, func(c fleet.Condition) bool { return c.Type == kind }); i >= 0 {
			err = errors.New(conditions[i].Message)
			if message := text.Message(conditions[i].Message); was == nil || was.Message != message {
				change(func(all *[]metav1.Condition) {
					meta.SetStatusCondition(all, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind,
						Message: message})
				})
			}
		} else if was != nil {
			change(func(all *[]metav1.Condition) { meta.RemoveStatusCondition(all, kind) })
		}
		r.warn(b, tmpl, "", kind, err)
	}
	if want == b {
		return b, nil
	}
	if _, err := commit.Status(ctx, r.client, b, want); err != nil {
		return b, err
	}
	return want, nil
}

// record writes what the Works alone do not remember to the binding, before they are written.
func (r *reconciler) record(ctx context.Context, b workv1alpha2.Binding, d dispatch.Decision) error {
	values := map[string]string{fleet.OrdinalsAnnotation: d.Record, fleet.ProgressAnnotation: d.Progress,
		fleet.RoutedAnnotation:   d.Routed,
		fleet.ApprovedAnnotation: d.Approved}
	annotations := maps.Clone(b.GetAnnotations())
	for key, value := range values {
		switch {
		case value == "":
			delete(annotations, key)
		case annotations == nil:
			annotations = map[string]string{key: value}
		default:
			annotations[key] = value
		}
	}
	if maps.Equal(annotations, b.GetAnnotations()) {
		return nil
	}
	wanted := b.DeepCopyObject().(workv1alpha2.Binding)
	wanted.SetAnnotations(annotations)
	_, err := commit.Update(ctx, r.client, b, wanted)
	return err
}

// workMoved passes the statuses by which Works of a fleet wait for each other.
var workMoved = filter.Updates(dispatch.Moved)

// answersAnew passes clusters that stop or begin to answer.
var answersAnew = filter.Updates(dispatch.Reachability)

// following are the bindings with a Work in the cluster whose other Works depend on it.
func (r *reconciler) following(ctx context.Context, cluster client.Object) []reconcile.Request {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(names.ExecutionSpace(cluster.GetName())),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the works of a cluster", "cluster", cluster.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range works.Items {
		if dispatch.Follows(&works.Items[i]) {
			out = append(out, bindingOf(ctx, &works.Items[i])...)
		}
	}
	return out
}
