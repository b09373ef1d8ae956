package interpreter

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/scope"
)

// OnChange subscribes notify to changes of the interpreter, if it can change. notify is called after a change took
// effect and must not block.
func OnChange(i interpret.Interpreter, notify func(Concerns)) {
	if changing, ok := i.(interface{ OnChange(func(Concerns)) }); ok {
		changing.OnChange(notify)
	}
}

// Bindings returns the bindings whose templates are of the kinds, from the cache. They are shared: do not modify them.
func Bindings(r client.Reader, concerns Concerns) []workv1alpha2.Binding {
	all, err := scope.Bindings.List(context.Background(), r, client.UnsafeDisableDeepCopy)
	if err != nil {
		// The cache is in memory. It fails only during shutdown.
		log.Error(err, "list the bindings of kinds whose interpretation changed")
	}
	var out []workv1alpha2.Binding
	for _, b := range all {
		ref := b.BindingSpec().Resource
		if concerns(match.GroupKind(ref.APIVersion, ref.Kind)) {
			out = append(out, b)
		}
	}
	return out
}

// Changes returns a source of bindings with templates that a change affects.
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
