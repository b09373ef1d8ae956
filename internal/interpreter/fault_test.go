package interpreter

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/scope"
)

func TestFailingOperationIsInStatusUntilItSucceeds(t *testing.T) {
	s := runtime.NewScheme()
	if err := workv1alpha2.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	const revise, replica = configv1alpha1.InterpreterOperationReviseReplica,
		configv1alpha1.InterpreterOperationInterpretReplica
	broken := interpret.New(interpret.Kinds{schema.GroupKind{Kind: "Pod"}: &interpret.Hooks{
		Revise: func(context.Context, *unstructured.Unstructured, int32) (*unstructured.Unstructured, error) {
			return nil, errors.New("line 3: nil")
		},
	}})
	_, cause := broken.Revise(t.Context(), pod, 1)
	cause = fmt.Errorf("make the work: %w", cause)

	for _, namespace := range []string{"shop", ""} {
		b := scope.Bindings.New(namespace)
		b.SetName("b")
		writes := 0
		c := fake.NewClientBuilder().WithScheme(s).WithObjects(b).WithStatusSubresource(b).WithInterceptorFuncs(
			interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
					opts ...client.SubResourceUpdateOption) error {
					writes++
					return c.SubResource(sub).Update(ctx, obj, opts...)
				},
			}).Build()
		step := func(what string, err error, status metav1.ConditionStatus, wantWrites int) {
			t.Helper()
			stored, getErr := scope.Bindings.Get(t.Context(), c, client.ObjectKeyFromObject(b))
			if getErr != nil {
				t.Fatal(getErr)
			}
			now, reportErr := Report(t.Context(), c, stored, err, revise, replica)
			if reportErr != nil {
				t.Fatalf("%s: %v", what, reportErr)
			}
			got := metav1.ConditionStatus("")
			if c := meta.FindStatusCondition(now.BindingStatus().Conditions, string(revise)); c != nil {
				got = c.Status
			}
			if got != status || writes != wantWrites ||
				meta.FindStatusCondition(now.BindingStatus().Conditions, string(replica)) != nil {
				t.Errorf("%s: %+v after %d writes, want %q after %d", what, now.BindingStatus().Conditions, writes, status,
					wantWrites)
			}
		}
		step("all is well", nil, "", 0)
		step("an error of something else", errors.New("no room"), "", 0)
		step("a fault", cause, metav1.ConditionFalse, 1)
		step("the same again", cause, metav1.ConditionFalse, 1)
		step("mended", nil, "", 2)
	}
	if none, err := Report(t.Context(), nil, nil, cause, revise); none != nil || err != nil {
		t.Errorf("a missing binding gives %v, %v", none, err)
	}
}
