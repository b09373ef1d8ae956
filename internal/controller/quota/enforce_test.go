package quota

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

func oneCPU() corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse("1")} }

// placed is a binding that uses one CPU.
func placed(namespace, name string) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: workv1alpha2.ResourceBindingSpec{Clusters: coretest.Targets("m1=1"),
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: oneCPU()}}}
}

// enforcingOne permits one CPU in each of the namespaces. Its cache never shows a binding, and written is called for
// each write.
func enforcingOne(written func(client.Object), namespaces ...string) *enforcing {
	b := fake.NewClientBuilder().WithScheme(controllertest.Scheme())
	for _, ns := range namespaces {
		b = b.WithObjects(&policyv1alpha1.FederatedResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"},
			Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: oneCPU()}})
	}
	return &enforcing{Client: b.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*workv1alpha2.ResourceBindingList); ok {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			written(obj)
			return c.Create(ctx, obj, opts...)
		},
	}).Build()}
}

func refused(err error) bool { return errors.As(err, new(*quota.ExceededError)) }

// Two writes at the same moment cannot both get the last part of a quota.
func TestConcurrentWritesCannotShareTheRestOfAQuota(t *testing.T) {
	start, writing := make(chan struct{}), make(chan struct{}, 8)
	c := enforcingOne(func(client.Object) { writing <- struct{}{}; <-start }, "shop")
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = c.Create(t.Context(), placed("shop", fmt.Sprint("web", i))) })
	}
	<-writing
	for range 1000 {
		runtime.Gosched() // the others wait, or write too
	}
	close(start)
	all.Wait()
	permitted := 0
	for _, err := range errs {
		switch {
		case err == nil:
			permitted++
		case !refused(err):
			t.Error(err)
		}
	}
	if permitted != 1 {
		t.Errorf("%d writes of one CPU each are permitted by a quota of one", permitted)
	}
}

// A write that takes long in one namespace keeps no other namespace waiting.
func TestWritesInOtherNamespacesDoNotWait(t *testing.T) {
	var others []string
	for i := range 32 {
		others = append(others, fmt.Sprint("other", i))
	}
	writing, end := make(chan struct{}), make(chan struct{})
	c := enforcingOne(func(obj client.Object) {
		if obj.GetNamespace() == "slow" {
			close(writing)
			<-end
		}
	}, append(others, "slow")...)
	slow := make(chan error, 1)
	go func() { slow <- c.Create(t.Context(), placed("slow", "web")) }()
	<-writing
	for _, ns := range others {
		if err := c.Create(t.Context(), placed(ns, "web")); err != nil {
			t.Error(err)
		}
	}
	close(end)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// However long the cache lacks a write, the write counts. What the cache shows is forgotten.
func TestStaleCachePermitsNoMore(t *testing.T) {
	c := enforcingOne(func(client.Object) {}, "shop")
	now := clocktesting.NewFakePassiveClock(time.Now())
	c.pending.Clock = now
	first := placed("shop", "web")
	if err := c.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	now.SetTime(now.Now().Add(time.Hour))
	if err := c.Create(t.Context(), placed("shop", "late")); !refused(err) {
		t.Errorf("with a cache that is an hour late: %v", err)
	}
	again := first.DeepCopy()
	again.Spec.Clusters[0].Replicas = 2
	if err := c.Update(t.Context(), again); !refused(err) {
		t.Errorf("growth with a cache that is an hour late: %v", err)
	}
	c.seen(first)
	if err := c.Create(t.Context(), placed("shop", "late")); err != nil {
		t.Errorf("after the cache has shown the first, and that it is gone: %v", err)
	}
}

// A write that the API server refuses uses nothing.
func TestFailedWriteUsesNothing(t *testing.T) {
	c := enforcingOne(func(client.Object) {}, "shop")
	ended, end := context.WithCancel(t.Context())
	end()
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		}})
	if err := c.Create(ended, placed("shop", "web")); err == nil || refused(err) {
		t.Errorf("a canceled write: %v", err)
	}
	if err := c.Create(t.Context(), placed("shop", "late")); err != nil {
		t.Errorf("the next one: %v", err)
	}
}
