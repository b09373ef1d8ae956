package interpreter

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

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
