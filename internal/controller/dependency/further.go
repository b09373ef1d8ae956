package dependency

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// further adds the dependencies of dependencies, such as of a Workflow's templates, to refs. Those of cluster-scoped
// objects are looked up in the namespace of the template. Each object is visited once, so cycles end. complete is false
// if a kind is not served and more may exist.
func (r *reconciler) further(ctx context.Context, key types.NamespacedName, namespace string,
	refs []configv1alpha1.DependentObjectReference) (all []configv1alpha1.DependentObjectReference, complete bool,
	err error) {
	complete = true
	seen := map[reference]bool{}
	next := refs
	for range dependency.Depth {
		var found []configv1alpha1.DependentObjectReference
		for _, ref := range next {
			if !dependency.LeadsOn(ref) || seen[referenceOf(ref)] {
				continue
			}
			// Index it before the lookup, so that no change is missed.
			r.index.add(key, []configv1alpha1.DependentObjectReference{ref})
			seen[referenceOf(ref)] = true
			obj, there, err := r.Templates.Get(ctx, match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
			if meta.IsNoMatchError(err) {
				complete = false
				continue
			}
			if err != nil {
				return nil, false, err
			}
			if !there || obj.GetDeletionTimestamp() != nil {
				continue
			}
			if obj.GetNamespace() == "" {
				obj = obj.DeepCopy()
				obj.SetNamespace(namespace)
			}
			more, err := r.Interpreter.Dependencies(ctx, obj)
			if err != nil {
				return nil, false, err
			}
			found = append(found, more...)
		}
		if len(found) == 0 {
			break
		}
		refs = interpret.SortDependencies(slices.Concat(refs, found))
		next = found
	}
	return refs, complete, nil
}
