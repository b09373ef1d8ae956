package interpreter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
	"github.com/argosy-io/argosy/internal/scope"
)

// EventChangedNothing: an interpreter webhook returned no patch where one was needed. The message has the effect.
//
//reference:event Warning on template
const EventChangedNothing = "InterpreterChangedNothing"

// answered identifies a call that returned no patch.
type answered struct {
	hook      string
	operation configv1alpha1.InterpreterOperation
	uid       types.UID
}

// unchanged records an event on the template if an empty patch leaves it wrong. An empty patch is also a valid answer:
// a member may have no status or already the right number of replicas.
func (i *Interpreter) unchanged(ctx context.Context, u webhook.Unchanged) {
	if i.options.Events == nil {
		return
	}
	text := ""
	switch u.Operation {
	case configv1alpha1.InterpreterOperationReviseReplica:
		if n, _, workload, err := i.Replicas(ctx, u.Object); err == nil && workload && n != u.Replicas {
			// The text omits the share, which differs per cluster, so that the event is recorded once.
			text = fmt.Sprintf("every cluster gets all %d replicas instead of its share: set the replicas of the object to request.replicas in the patch", n)
		}
	case configv1alpha1.InterpreterOperationAggregateStatus:
		reported := 0
		for _, item := range u.Items {
			if item.Status != nil {
				reported++
			}
		}
		if status, _ := u.Object.Object["status"].(map[string]any); len(status) == 0 && reported > 0 {
			text = fmt.Sprintf("the status stays empty although %d of %d clusters reported one: set /status from request.aggregatedStatus in the patch", reported, len(u.Items))
		}
	}
	if text == "" {
		return
	}
	if i.recorded.IsNew(answered{u.Hook.String(), u.Operation, u.Object.GetUID()}, text) {
		i.options.Events.Eventf(u.Object, corev1.EventTypeWarning, EventChangedNothing,
			"Interpreter webhook %s returned no patch for %s, so %s", u.Hook, u.Operation, text)
	}
}

// Report sets the condition for failing interpreter operations in the status of a binding. Operations not in err count
// as successful. It writes only changes and returns the current binding. A nil binding stays nil.
func Report(ctx context.Context, c client.Client, b workv1alpha2.Binding, err error,
	operations ...configv1alpha1.InterpreterOperation) (workv1alpha2.Binding, error) {
	if b == nil {
		return nil, nil
	}
	var want workv1alpha2.Binding
	for _, operation := range operations {
		fault := interpret.FaultOf(err, operation)
		if fault == nil && meta.FindStatusCondition(b.BindingStatus().Conditions, string(operation)) == nil {
			continue
		}
		if want == nil {
			want = b.DeepCopyObject().(workv1alpha2.Binding)
		}
		var cause error
		if fault != nil {
			cause = fault
		}
		interpret.SetFault(&want.BindingStatus().Conditions, operation, cause, metav1.Now())
	}
	if want == nil {
		return b, nil
	}
	if _, err := commit.Status(ctx, c, b, want); err != nil {
		return b, err
	}
	return want, nil
}

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
