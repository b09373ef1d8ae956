package scope

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// BindingFor returns the binding of a template, nil if there is none, and the name for a new one: see propagate.Find.
// Only BindingFor derives the name of a binding from a template.
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
