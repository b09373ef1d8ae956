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
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// A condition that changes with each short failure of the server would cost more writes than the failures.
func TestWorksWrittenReportsOnlyLastingFailures(t *testing.T) {
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
		if got := isLasting(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
