package dispatch

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/convert/kruise"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// A condition that came and went with every hiccup of the server would cost more writes than the failures.
func TestOnlyAFailureThatLastsIsACondition(t *testing.T) {
	works := schema.GroupResource{Group: "work.karmada.io", Resource: "works"}
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"none", nil, false},
		{"the store's limit", apierrors.NewInternalError(errors.New("etcdserver: request is too large")), true},
		{"the server's limit", apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		{"an override", fmt.Errorf("make the work: %w", errors.New("no such path")), true},
		{"old state", apierrors.NewConflict(works, "w", errors.New("changed")), false},
		{"a server with too much to do", apierrors.NewTooManyRequests("later", 1), false},
		{"a server that takes long", fmt.Errorf("create: %w", apierrors.NewServerTimeout(works, "create", 1)), false},
		{"the end", context.Canceled, false},
		{"what another condition says: a version", fmt.Errorf("make: %w", &kruise.Lossy{}), false},
		{"what another condition says: an interpreter",
			fmt.Errorf("make: %w", &interpret.Error{Operation: configv1alpha1.InterpreterOperationReviseReplica,
				Cause: errors.New("x")}), false},
	} {
		if got := lasting(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestTheConditionOfReviseReplicaNamesTheClusters(t *testing.T) {
	const revise = configv1alpha1.InterpreterOperationReviseReplica
	fails := func(cluster string, operation configv1alpha1.InterpreterOperation) dispatch.Result {
		return dispatch.Result{Cluster: cluster,
			Err: fmt.Errorf("make the work: %w",
				&interpret.Error{Operation: operation, About: "revise c", Cause: errors.New("line 3")})}
	}
	for _, tc := range []struct {
		results []dispatch.Result
		want    string
	}{
		{[]dispatch.Result{{Cluster: "a"}, fails("b", configv1alpha1.InterpreterOperationRetain)}, ""},
		{[]dispatch.Result{{Cluster: "a"}, fails("b", revise)}, `cluster "b": revise c: line 3`},
		{[]dispatch.Result{fails("a", revise), fails("b", revise)}, `clusters ["a" "b"]: revise c: line 3`},
		{[]dispatch.Result{fails("a", revise), fails("b", revise), fails("c", revise), fails("d", revise),
			fails("e", revise)}, `clusters ["a" "b" "c"] and 2 more: revise c: line 3`},
	} {
		err := unrevised(tc.results)
		if got := fmt.Sprint(err); err != nil && got != tc.want || err == nil && tc.want != "" {
			t.Errorf("got %s, want %s", got, tc.want)
		}
		if (interpret.FaultOf(err, revise) != nil) != (tc.want != "") {
			t.Errorf("%v: no fault of ReviseReplica", err)
		}
	}
}
