package scope

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// BindingFor returns the binding of a template, nil if there is none, and the name that is free for a new one: see
// propagate.Find. Create a new binding with NewBindingName. Only these two derive the name of a binding from a
// template.
func BindingFor(ctx context.Context, r client.Reader, gk schema.GroupKind, namespace, name string,
	opts ...client.GetOption) (b workv1alpha2.Binding, free string, err error) {
	return propagate.Find(gk, namespace, name, func(key types.NamespacedName) (workv1alpha2.Binding, error) {
		b := Bindings.New(key.Namespace)
		err := r.Get(ctx, key, b, opts...)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("get binding %s of %s %s: %w", key, gk, name, err)
		}
		return b, nil
	})
}

// NewBindingName returns the name for the binding of a template that has none. r is a cache with the index of
// IndexWorks. The error wraps propagate.ErrTaken if the bindings of other templates have all names.
//
// It is the free name of BindingFor, unless Works of BindingApart remain: then the template had a binding of that name,
// which was lost, for example in a restore. Objects in members name these Works. If several templates that share
// Karmada's name lost their bindings, each gets its own name and Works again, in whatever order.
func NewBindingName(ctx context.Context, r client.Reader, gk schema.GroupKind, namespace, name string) (string, error) {
	b, free, err := BindingFor(ctx, r, gk, namespace, name, client.UnsafeDisableDeepCopy)
	switch {
	case err != nil:
		return "", err
	case b != nil:
		return b.GetName(), nil // created meanwhile: its creation fails with AlreadyExists
	case free == "":
		return "", propagate.TakenError(gk, name)
	}
	apart := types.NamespacedName{Namespace: namespace, Name: names.BindingApart(gk, name)}
	works, err := WorksOf(ctx, r, apart)
	if err != nil || len(works) == 0 {
		return free, err
	}
	if _, err := Bindings.Get(ctx, r, apart); !apierrors.IsNotFound(err) {
		return free, err // another template has it
	}
	return apart.Name, nil
}
