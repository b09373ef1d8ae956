package scope

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// WorkFor returns the Work of the template of a binding in a cluster; nil if there is none.
func WorkFor(ctx context.Context, r client.Reader, b workv1alpha2.Binding, cluster string,
	opts ...client.GetOption) (*workv1alpha1.Work, error) {
	of := propagate.TemplateOfBinding(b)
	return WorkOf(ctx, r, cluster, names.WorkFor(b.GetName(), of.GroupKind(), of.Name, of.Namespace), of, opts...)
}

// WorkOf returns the Work of an object in a cluster; nil if there is none. work is the name that the Work has, unless
// the Work of another object has it: see names.Either.
func WorkOf(ctx context.Context, r client.Reader, cluster, work string, of identity.Object,
	opts ...client.GetOption) (*workv1alpha1.Work, error) {
	for _, name := range names.Either(work, of.GroupKind(), of.Name, of.Namespace) {
		w, key := &workv1alpha1.Work{}, types.NamespacedName{Namespace: names.ExecutionSpace(cluster), Name: name}
		err := r.Get(ctx, key, w, opts...)
		if err == nil && execute.IsOf(w, of) {
			return w, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get work %s: %w", key, err)
		}
	}
	return nil, nil
}

// WorksFor returns the Works of a template in all clusters, as WorkOf does for one.
func WorksFor(ctx context.Context, r client.Reader, work string,
	of identity.Object) (works []workv1alpha1.Work, err error) {
	for _, name := range names.Either(work, of.GroupKind(), of.Name, of.Namespace) {
		var list workv1alpha1.WorkList
		if err := r.List(ctx, &list, client.MatchingFields{"metadata.name": name}); err != nil {
			return nil, fmt.Errorf("list the works of %s: %w", of, err)
		}
		for i := range list.Items {
			if execute.IsOf(&list.Items[i], of) {
				works = append(works, list.Items[i])
			}
		}
	}
	return works, nil
}

// CreateWork creates the Work of an object. If the Work of another object has its name, it gets the longer one: the API
// server decides which came first. live reads past caches.
func CreateWork(ctx context.Context, c client.Client, live client.Reader, w *workv1alpha1.Work,
	of identity.Object) error {
	err := c.Create(ctx, w)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	other := &workv1alpha1.Work{}
	if failed := live.Get(ctx, client.ObjectKeyFromObject(w), other); failed != nil || execute.IsOf(other, of) {
		return err
	}
	longer, failed := execute.Renamed(w, names.Longer(w.Name, of.GroupKind(), of.Name, of.Namespace))
	if failed != nil {
		return failed
	}
	*w = *longer
	return c.Create(ctx, w)
}
