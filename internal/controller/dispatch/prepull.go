package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

// byPull is the index of the Works that pull images for a binding.
const byPull = "dispatch.pull"

func pullIndex(work client.Object) []string {
	if of := work.GetAnnotations()[wellknown.PrePullOfAnnotation]; of != "" {
		return []string{of}
	}
	return nil
}

// pulls returns the Works that pull images for a binding, by cluster.
func (r *reconciler) pulls(ctx context.Context, binding types.NamespacedName) (map[string][]*workv1alpha1.Work, error) {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.MatchingFields{byPull: binding.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the image pulls of binding %s: %w", binding, err)
	}
	if len(works.Items) == 0 {
		return nil, nil
	}
	in := map[string][]*workv1alpha1.Work{}
	for i := range works.Items {
		w := &works.Items[i]
		if cluster, err := names.ClusterOf(w.Namespace); err == nil {
			in[cluster] = append(in[cluster], w)
		}
	}
	return in, nil
}

// startPulls creates the missing Works of d.Pulls.
func (r *reconciler) startPulls(ctx context.Context, in dispatch.Input, d dispatch.Decision) error {
	for _, w := range d.Pulls {
		cluster, _ := names.ClusterOf(w.Namespace)
		if slices.ContainsFunc(in.Pulls[cluster], func(is *workv1alpha1.Work) bool { return is.Name == w.Name }) {
			continue
		}
		// The cache is milliseconds behind. A Work that is being deleted is created again when it is gone.
		err := scope.CreateWork(ctx, r.client, r.live, w, execute.ObjectOf(w))
		if err != nil && !apierrors.IsAlreadyExists(err) && !commit.NamespaceMissing(err) {
			return fmt.Errorf("create %s: %w", commit.Name(w), err)
		}
	}
	return nil
}

// stopPulls deletes the pulls of a binding except the wanted ones.
func (r *reconciler) stopPulls(ctx context.Context, binding types.NamespacedName, wanted []*workv1alpha1.Work) error {
	standing, err := r.pulls(ctx, binding)
	if err != nil {
		return err
	}
	var errs []error
	for _, works := range standing {
		for _, w := range works {
			if w.DeletionTimestamp == nil && !slices.ContainsFunc(wanted, func(is *workv1alpha1.Work) bool {
				return is.Namespace == w.Namespace && is.Name == w.Name
			}) {
				errs = append(errs, commit.Delete(ctx, r.client, w))
			}
		}
	}
	return errors.Join(errs...)
}

// pulls selects the Works that pull images, when they are created, deleted or report.
var pulls = predicate.And[client.Object](predicate.NewPredicateFuncs(func(work client.Object) bool {
	return pullIndex(work) != nil
}), filter.AfterStart, predicate.ResourceVersionChangedPredicate{})

func pullFor(_ context.Context, work client.Object) []reconcile.Request {
	namespace, name, _ := strings.Cut(work.GetAnnotations()[wellknown.PrePullOfAnnotation], "/")
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
