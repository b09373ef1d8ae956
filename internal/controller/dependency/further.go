package dependency

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// further are the refs of a template in a namespace, and those of the dependencies that lead on, as far as they are
// there. What is cluster-scoped and leads on needs its dependencies in the namespace of the template. Each is looked at
// once, so that those that refer to one another end. complete is false if there may be more: the kind of one that leads
// on is not served now.
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
			// Before it is looked up: what appears from here on wakes this binding.
			r.index.add(key, []configv1alpha1.DependentObjectReference{ref})
			seen[referenceOf(ref)] = true
			obj, there, err := r.Templates.Get(ctx, propagate.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
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
