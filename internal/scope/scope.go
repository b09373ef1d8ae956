// Package scope makes one noun of a kind that exists namespaced and cluster-scoped.
// It is the only code that knows which of the two is meant: an empty namespace is the cluster-scoped one.
package scope

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Pair is a kind in two scopes, as the interface T that both implement.
type Pair[T client.Object] struct {
	// kinds and lists are empty objects, the namespaced one first.
	kinds [2]T
	lists [2]client.ObjectList
}

// Bindings are ResourceBinding and ClusterResourceBinding.
var Bindings = Pair[workv1alpha2.Binding]{
	kinds: [2]workv1alpha2.Binding{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}},
	lists: [2]client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}},
}

// Propagations are PropagationPolicy and ClusterPropagationPolicy.
var Propagations = Pair[policyv1alpha1.Propagation]{
	kinds: [2]policyv1alpha1.Propagation{&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}},
	lists: [2]client.ObjectList{&policyv1alpha1.PropagationPolicyList{}, &policyv1alpha1.ClusterPropagationPolicyList{}},
}

// Overrides are OverridePolicy and ClusterOverridePolicy.
var Overrides = Pair[policyv1alpha1.Override]{
	kinds: [2]policyv1alpha1.Override{&policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{}},
	lists: [2]client.ObjectList{&policyv1alpha1.OverridePolicyList{}, &policyv1alpha1.ClusterOverridePolicyList{}},
}

// New returns an empty object: namespaced if the namespace is not empty, otherwise cluster-scoped.
func (p Pair[T]) New(namespace string) T {
	if namespace == "" {
		return p.kinds[1].DeepCopyObject().(T)
	}
	obj := p.kinds[0].DeepCopyObject().(T)
	obj.SetNamespace(namespace)
	return obj
}

// Kinds returns an empty object of each scope, for watches.
func (p Pair[T]) Kinds() []T {
	return []T{p.kinds[0].DeepCopyObject().(T), p.kinds[1].DeepCopyObject().(T)}
}

// Get reads one object; an empty namespace is the cluster-scoped kind. The error is the reader's.
func (p Pair[T]) Get(ctx context.Context, r client.Reader, key types.NamespacedName) (T, error) {
	obj := p.New(key.Namespace)
	return obj, r.Get(ctx, key, obj)
}

// List reads the objects of both scopes. client.InNamespace restricts it to the namespaced kind.
func (p Pair[T]) List(ctx context.Context, r client.Reader, opts ...client.ListOption) ([]T, error) {
	var o client.ListOptions
	o.ApplyOptions(opts)
	all, err := p.appendListed(ctx, r, nil, 0, opts)
	if err != nil || o.Namespace != "" {
		return all, err
	}
	return p.appendListed(ctx, r, all, 1, opts)
}

// appendListed appends the objects of one scope to all: 0 is the namespaced one.
func (p Pair[T]) appendListed(ctx context.Context, r client.Reader, all []T, scope int,
	opts []client.ListOption) ([]T, error) {
	list := p.lists[scope].DeepCopyObject().(client.ObjectList)
	if err := r.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	all = slices.Grow(all, meta.LenList(list))
	err := meta.EachListItem(list, func(obj runtime.Object) error { all = append(all, obj.(T)); return nil })
	return all, err
}

// Over reads the objects that apply to a namespace: its own and the cluster-scoped ones. For cluster-scoped objects, it
// reads all.
func (p Pair[T]) Over(ctx context.Context, r client.Reader, namespace string, opts ...client.ListOption) ([]T, error) {
	if namespace == "" {
		return p.List(ctx, r, opts...)
	}
	all, err := p.List(ctx, r, append(opts, client.InNamespace(namespace))...)
	if err != nil {
		return nil, err
	}
	return p.appendListed(ctx, r, all, 1, opts)
}

// Pointers returns the addresses of the items of a list.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
