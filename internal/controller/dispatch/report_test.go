package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
	"github.com/argosy-io/argosy/test/kit/controllertest"
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

func TestPassWritesTheStatusOnceAfterTheWorks(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.StatefulSet, forbidsOverwrite: true}
		old := w.kind
		old.Version = "v1alpha1"
		w.Join("m1", old)
		w.Join("m2", w.kind)
		w.template = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"reserveOrdinals": []any{int64(1)}}}}
		w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
		w.template.SetNamespace("shop")
		w.template.SetName("c")
		w.template.SetAnnotations(map[string]string{
			workv1alpha2.ConflictResolutionAnnotation: workv1alpha2.ConflictResolutionOverwrite})
		w.Make(w.template)
		w.run()
		w.Quiet()
		w.bind("id", "m1", "m2")

		var kinds []string
		for _, write := range w.Quiet() {
			words := strings.Fields(write)
			kinds = append(kinds, words[0]+" "+words[1])
		}
		if want := []string{"create resourcebindings", "create works", "update resourcebindings/status"}; !slices.Equal(kinds,
			want) {
			t.Errorf("written %q, want %q", kinds, want)
		}
		b := &workv1alpha2.ResourceBinding{}
		b.Namespace, b.Name = w.key().Namespace, w.key().Name
		if w.HasObject(b); !meta.IsStatusConditionFalse(b.Status.Conditions, workv1alpha2.VersionServed) ||
			!meta.IsStatusConditionTrue(b.Status.Conditions, fleet.OverwriteForbidden) {
			t.Errorf("the conditions are %+v", b.Status.Conditions)
		}
	})
}
