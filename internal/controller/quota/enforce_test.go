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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
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
	live := b.Build()
	return &enforcing{live: live, Client: interceptor.NewClient(live, interceptor.Funcs{
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
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			if _, ok := obj.(*workv1alpha2.ResourceBinding); ok {
				return apierrors.NewNotFound(workv1alpha2.Resource("resourcebindings"), key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})}
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

// stored is a binding of one CPU, as the API server returned it.
func stored(uid, version string) *workv1alpha2.ResourceBinding {
	b := placed("shop", "web")
	b.UID, b.ResourceVersion = types.UID(uid), version
	return b
}

// A pending write ends if the cache shows it or something later, or if the object is gone. An older state, or an
// earlier object of the name, does not end it.
func TestEventsOfOtherStatesForgetNoWrite(t *testing.T) {
	for name, c := range map[string]struct {
		event func(c *enforcing)
		kept  bool
	}{
		"an earlier state":                  {func(c *enforcing) { c.seen(stored("new", "9")) }, true},
		"the write":                         {func(c *enforcing) { c.seen(stored("new", "10")) }, false},
		"an earlier object":                 {func(c *enforcing) { c.seen(stored("old", "9")) }, true},
		"a later object":                    {func(c *enforcing) { c.seen(stored("later", "11")) }, false},
		"the deletion":                      {func(c *enforcing) { c.gone(stored("new", "11")) }, false},
		"the deletion of an earlier object": {func(c *enforcing) { c.gone(stored("old", "9")) }, true},
		"a deletion that was missed":        {func(c *enforcing) { c.gone(missed(stored("new", "9"))) }, false},
		"one of an earlier object":          {func(c *enforcing) { c.gone(missed(stored("old", "9"))) }, true},
		"the deletion of a later object":    {func(c *enforcing) { c.gone(stored("later", "12")) }, false},
	} {
		c2 := enforcingOne(func(client.Object) {}, "shop")
		c2.pending.Add(types.NamespacedName{Namespace: "shop"}, stored("new", "10"))
		c.event(c2)
		if err := c2.Create(t.Context(), placed("shop", "late")); refused(err) != c.kept {
			t.Errorf("%s: another binding of the whole quota: %v", name, err)
		}
	}
}

func missed(b *workv1alpha2.ResourceBinding) any {
	return cache.DeletedFinalStateUnknown{Key: "shop/web", Obj: b}
}

// A cached binding that was deleted does not hide the new one of its name.
func TestEarlierBindingInTheCacheHidesNoWrite(t *testing.T) {
	c := enforcingOne(func(client.Object) {}, "shop")
	c.Client = showing{c.Client, stored("old", "9")}
	c.Client.(showing).cached.Spec.Clusters = nil
	c.pending.Add(types.NamespacedName{Namespace: "shop"}, stored("new", "10"))
	if err := c.Create(t.Context(), placed("shop", "late")); !refused(err) {
		t.Errorf("another binding of the whole quota: %v", err)
	}
}

// showing has one binding in its cache.
type showing struct {
	client.Client
	cached *workv1alpha2.ResourceBinding
}

func (s showing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if bindings, ok := list.(*workv1alpha2.ResourceBindingList); ok {
		bindings.Items = []workv1alpha2.ResourceBinding{*s.cached}
		return nil
	}
	return s.Client.List(ctx, list, opts...)
}

// A binding that shrinks and grows again, before the cache shows either, uses what it used before, and no more.
func TestShrinkingIsRecorded(t *testing.T) {
	for name, shrink := range map[string]func(*workv1alpha2.ResourceBinding){
		"no replicas":     func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 0 },
		"no clusters":     func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil },
		"no requirements": func(b *workv1alpha2.ResourceBinding) { b.Spec.ReplicaRequirements = nil },
	} {
		c := enforcingOne(func(client.Object) {}, "shop")
		web := placed("shop", "web")
		if err := c.Create(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		c.seen(web)
		c.Client = showing{c.Client, web.DeepCopy()} // for all that follows
		small := web.DeepCopy()
		shrink(small)
		if err := c.Update(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		again := web.DeepCopy()
		again.ResourceVersion = small.ResourceVersion
		late := placed("shop", "late")
		if err := c.Create(t.Context(), late); err != nil {
			t.Errorf("%s: it leaves the quota to others: %v", name, err)
		}
		if err := c.Update(t.Context(), again.DeepCopy()); !refused(err) {
			t.Errorf("%s: it grows again after another one has the quota: %v", name, err)
		}
		if err := c.Delete(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		c.gone(late)
		if err := c.Update(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		c.seen(small)
		c.Client.(showing).cached.ResourceVersion = small.ResourceVersion
		c.Client.(showing).cached.Spec = small.Spec
		if err := c.Create(t.Context(), placed("shop", "late")); !refused(err) {
			t.Errorf("%s: another binding of the whole quota: %v", name, err)
		}
	}
}

// A write that removes the last finalizer is the last event of a binding: nothing would forget it.
func TestWritesOfDeletedBindingsAreNotRecorded(t *testing.T) {
	c := enforcingOne(func(client.Object) {}, "shop")
	web := placed("shop", "web")
	web.Finalizers = []string{"example.com/last"}
	if err := c.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	if err := c.live.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
		t.Fatal(err)
	}
	c.seen(web)
	web.Finalizers = nil
	if err := c.Update(t.Context(), web); err != nil || c.pending.Len() != 0 {
		t.Errorf("%d writes are pending, %v", c.pending.Len(), err)
	}
}

// A binding can be deleted before its write is recorded. Then nothing else forgets the write.
func TestRefusalLooksForDeletedBindings(t *testing.T) {
	c := enforcingOne(func(client.Object) {}, "shop")
	now := clocktesting.NewFakePassiveClock(time.Now())
	c.pending.Clock = now
	web := placed("shop", "web")
	if err := c.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), placed("shop", "late")); !refused(err) {
		t.Errorf("at once, while the event may come: %v", err)
	}
	now.SetTime(now.Now().Add(commit.PendingWriteLife))
	if err := c.Create(t.Context(), placed("shop", "late")); err != nil {
		t.Errorf("after a while: %v", err)
	}
}
