// Package scope makes one noun of a kind that exists namespaced and cluster-scoped.
// It is the only code that knows which of the two is meant: an empty namespace is the cluster-scoped one.
package scope

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Pair is a kind in two scopes, as the interface T that both implement.
type Pair[T client.Object] struct {
	namespaced, cluster func() T
	lists               []func() list[T]
}

type list[T any] struct {
	object client.ObjectList
	items  func() []T
}

// Bindings are ResourceBinding and ClusterResourceBinding.
var Bindings = Pair[workv1alpha2.Binding]{
	namespaced: func() workv1alpha2.Binding { return &workv1alpha2.ResourceBinding{} },
	cluster:    func() workv1alpha2.Binding { return &workv1alpha2.ClusterResourceBinding{} },
	lists: []func() list[workv1alpha2.Binding]{
		func() list[workv1alpha2.Binding] {
			l := &workv1alpha2.ResourceBindingList{}
			return list[workv1alpha2.Binding]{l, func() []workv1alpha2.Binding {
				return Pointers[workv1alpha2.Binding](l.Items)
			}}
		},
		func() list[workv1alpha2.Binding] {
			l := &workv1alpha2.ClusterResourceBindingList{}
			return list[workv1alpha2.Binding]{l, func() []workv1alpha2.Binding {
				return Pointers[workv1alpha2.Binding](l.Items)
			}}
		},
	},
}

// Propagations are PropagationPolicy and ClusterPropagationPolicy.
var Propagations = Pair[policyv1alpha1.Propagation]{
	namespaced: func() policyv1alpha1.Propagation { return &policyv1alpha1.PropagationPolicy{} },
	cluster:    func() policyv1alpha1.Propagation { return &policyv1alpha1.ClusterPropagationPolicy{} },
	lists: []func() list[policyv1alpha1.Propagation]{
		func() list[policyv1alpha1.Propagation] {
			l := &policyv1alpha1.PropagationPolicyList{}
			return list[policyv1alpha1.Propagation]{l, func() []policyv1alpha1.Propagation {
				return Pointers[policyv1alpha1.Propagation](l.Items)
			}}
		},
		func() list[policyv1alpha1.Propagation] {
			l := &policyv1alpha1.ClusterPropagationPolicyList{}
			return list[policyv1alpha1.Propagation]{l, func() []policyv1alpha1.Propagation {
				return Pointers[policyv1alpha1.Propagation](l.Items)
			}}
		},
	},
}

// Overrides are OverridePolicy and ClusterOverridePolicy.
var Overrides = Pair[policyv1alpha1.Override]{
	namespaced: func() policyv1alpha1.Override { return &policyv1alpha1.OverridePolicy{} },
	cluster:    func() policyv1alpha1.Override { return &policyv1alpha1.ClusterOverridePolicy{} },
	lists: []func() list[policyv1alpha1.Override]{
		func() list[policyv1alpha1.Override] {
			l := &policyv1alpha1.OverridePolicyList{}
			return list[policyv1alpha1.Override]{l, func() []policyv1alpha1.Override {
				return Pointers[policyv1alpha1.Override](l.Items)
			}}
		},
		func() list[policyv1alpha1.Override] {
			l := &policyv1alpha1.ClusterOverridePolicyList{}
			return list[policyv1alpha1.Override]{l, func() []policyv1alpha1.Override {
				return Pointers[policyv1alpha1.Override](l.Items)
			}}
		},
	},
}

// New returns an empty object: namespaced if the namespace is not empty, otherwise cluster-scoped.
func (p Pair[T]) New(namespace string) T {
	if namespace == "" {
		return p.cluster()
	}
	obj := p.namespaced()
	obj.SetNamespace(namespace)
	return obj
}

// Kinds returns an empty object of each scope, for watches.
func (p Pair[T]) Kinds() []T { return []T{p.namespaced(), p.cluster()} }

// Get reads one object; an empty namespace is the cluster-scoped kind. The error is the reader's.
func (p Pair[T]) Get(ctx context.Context, r client.Reader, key types.NamespacedName) (T, error) {
	obj := p.New(key.Namespace)
	return obj, r.Get(ctx, key, obj)
}

// List reads the objects of both scopes. client.InNamespace restricts it to the namespaced kind.
func (p Pair[T]) List(ctx context.Context, r client.Reader, opts ...client.ListOption) ([]T, error) {
	var o client.ListOptions
	o.ApplyOptions(opts)
	lists := p.lists
	if o.Namespace != "" {
		lists = lists[:1]
	}
	var all []T
	for _, newList := range lists {
		l := newList()
		if err := r.List(ctx, l.object, opts...); err != nil {
			return nil, err
		}
		all = append(all, l.items()...)
	}
	return all, nil
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
	l := p.lists[1]()
	if err := r.List(ctx, l.object, opts...); err != nil {
		return nil, err
	}
	return append(all, l.items()...), nil
}

// Pointers returns pointers to the items of a list: T is the type of the pointers, or an interface that they implement.
func Pointers[T, S any](items []S) []T {
	out := make([]T, len(items))
	for i := range items {
		out[i] = any(&items[i]).(T)
	}
	return out
}
