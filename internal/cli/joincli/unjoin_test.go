package joincli

import (
	"context"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// The hub's controllers write the Works of a cluster while a forced removal abandons them.
func TestForcedRemovalEndsThoughTheHubWritesMeanwhile(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu",
		Finalizers: []string{workv1alpha2.ClusterFinalizer}}}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: names.ExecutionSpace("eu"),
		Finalizers: []string{workv1alpha2.ExecutionFinalizer}}}
	conflicts := map[string]bool{}
	hub := fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithObjects(cluster, work).WithInterceptorFuncs(
		interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, obj client.Object,
			opts ...client.UpdateOption) error {
			if !conflicts[obj.GetName()] {
				conflicts[obj.GetName()] = true
				return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, obj.GetName(), nil)
			}
			return c.Update(ctx, obj, opts...)
		}}).Build()
	if err := hub.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	u := &unjoin{name: "eu", hub: hub, out: io.Discard}
	if err := u.abandon(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{cluster, work} {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v, want that it is gone", obj.GetName(), err)
		}
	}
	if len(conflicts) != 2 {
		t.Errorf("conflicts at %v, want one for the Work and one for the Cluster", conflicts)
	}
}
