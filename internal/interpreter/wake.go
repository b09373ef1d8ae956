package interpreter

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
)

// OnChange has tell called for each change of what kinds mean, when it has taken effect; never for an interpreter that
// does not change. tell must not wait for anything.
func OnChange(i interpret.Interpreter, tell func(Concerns)) {
	if changing, ok := i.(interface{ OnChange(func(Concerns)) }); ok {
		changing.OnChange(tell)
	}
}

// Bindings are those whose templates are of the kinds, from what is in memory. They are shared: read only.
func Bindings(r client.Reader, concerns Concerns) []workv1alpha2.Binding {
	all, err := scope.Bindings.List(context.Background(), r, client.UnsafeDisableDeepCopy)
	if err != nil {
		// The cache is in memory; it fails when the hub ends.
		log.Error(err, "list the bindings of kinds whose interpretation changed")
	}
	var out []workv1alpha2.Binding
	for _, b := range all {
		ref := b.BindingSpec().Resource
		if concerns(propagate.GroupKind(ref.APIVersion, ref.Kind)) {
			out = append(out, b)
		}
	}
	return out
}

// Changes is a source of the bindings whose templates mean something else than before.
func Changes(i interpret.Interpreter, r client.Reader) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		OnChange(i, func(concerns Concerns) {
			for _, b := range Bindings(r, concerns) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
			}
		})
		return nil
	})
}
