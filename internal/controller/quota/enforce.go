package quota

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/filter"
)

// Enforce returns mgr with a client that refuses writes of bindings which exceed a FederatedResourceQuota. All
// controllers of the hub write through it, and they run in one process at a time.
func Enforce(ctx context.Context, mgr ctrl.Manager) (ctrl.Manager, error) {
	c := &enforcing{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	bindings, err := mgr.GetCache().GetInformer(ctx, &workv1alpha2.ResourceBinding{})
	if err != nil {
		return nil, fmt.Errorf("watch bindings: %w", err)
	}
	if _, err := bindings.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: c.seen, DeleteFunc: c.gone,
		UpdateFunc: func(_, obj any) { c.seen(obj) }}); err != nil {
		return nil, fmt.Errorf("watch bindings: %w", err)
	}
	return enforcedManager{mgr, c}, nil
}

type enforcedManager struct {
	ctrl.Manager
	client *enforcing
}

func (m enforcedManager) GetClient() client.Client { return m.client }

// enforcing is a client with a cache. Writes of bindings are made one after the other in each namespace with a quota,
// and count until the cache shows them: two of them cannot use the same rest of a quota.
type enforcing struct {
	client.Client
	// live bypasses the cache.
	live client.Reader
	// growing has a *sync.Mutex by namespace.
	growing sync.Map
	// pending are the bindings that were written, by namespace, until the cache shows them: however late that is, a stale
	// cache permits nothing. A binding does not disappear before, because the hub removes its finalizer.
	pending commit.PendingWrites[*workv1alpha2.ResourceBinding]
}

// seen forgets what the cache shows.
func (c *enforcing) seen(obj any) {
	if b, ok := obj.(*workv1alpha2.ResourceBinding); ok {
		c.pending.Seen(types.NamespacedName{Namespace: b.Namespace}, b)
	}
}

// gone forgets what was deleted.
func (c *enforcing) gone(obj any) {
	if b, ok := filter.LastState(obj).(*workv1alpha2.ResourceBinding); ok {
		c.pending.Gone(types.NamespacedName{Namespace: b.Namespace}, b)
	}
}

func (c *enforcing) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.permitted(ctx, obj, func() error { return c.Client.Create(ctx, obj, opts...) })
}

func (c *enforcing) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.permitted(ctx, obj, func() error { return c.Client.Update(ctx, obj, opts...) })
}

// permitted writes obj unless it is a binding that would exceed a quota.
func (c *enforcing) permitted(ctx context.Context, obj client.Object, write func() error) error {
	b, bound := obj.(*workv1alpha2.ResourceBinding)
	if !bound {
		return write()
	}
	var quotas policyv1alpha1.FederatedResourceQuotaList
	if err := c.List(ctx, &quotas, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list FederatedResourceQuotas of namespace %q: %w", b.Namespace, err)
	}
	if len(quotas.Items) == 0 {
		return write()
	}
	growing, _ := c.growing.LoadOrStore(b.Namespace, &sync.Mutex{})
	growing.(*sync.Mutex).Lock()
	defer growing.(*sync.Mutex).Unlock()
	err := c.check(ctx, quotas.Items, b)
	if err != nil && c.forgetAbsent(ctx, b.Namespace) {
		err = c.check(ctx, quotas.Items, b)
	}
	if err != nil {
		return err
	}
	// Record also what uses less: the cache may show it only after the binding has grown again.
	if err := write(); err != nil || b.DeletionTimestamp != nil {
		return err // it may be the last write, which removes the finalizer
	}
	c.pending.Add(types.NamespacedName{Namespace: b.Namespace}, b.DeepCopy())
	return nil
}

// check returns an error if b would exceed a quota.
func (c *enforcing) check(ctx context.Context, quotas []policyv1alpha1.FederatedResourceQuota,
	b *workv1alpha2.ResourceBinding) error {
	if len(propagate.Used(&b.Spec)) == 0 {
		return nil
	}
	all, err := c.bindings(ctx, b.Namespace)
	if err != nil {
		return err
	}
	var was *workv1alpha2.ResourceBindingSpec
	if known := all[b.Name]; known != nil && known.UID == b.UID {
		was = &known.Spec
	}
	if !propagate.Grows(was, &b.Spec) {
		return nil
	}
	delete(all, b.Name)
	if err := quota.Check(quotas, propagate.Sum(all), was, &b.Spec); err != nil {
		return quota.Denied(err)
	}
	return nil
}

// forgetAbsent forgets old pending writes of bindings that do not exist any more: their deletion came before they were
// recorded. It reports whether there were some.
func (c *enforcing) forgetAbsent(ctx context.Context, namespace string) (forgotten bool) {
	key := types.NamespacedName{Namespace: namespace}
	for _, written := range c.pending.Older(key, commit.PendingWriteLife) {
		name, b := client.ObjectKeyFromObject(written), &workv1alpha2.ResourceBinding{}
		if c.Get(ctx, name, b) == nil {
			c.pending.Seen(key, b)
		} else if commit.Absent(c.live.Get(ctx, name, b)) {
			c.pending.Gone(key, written)
			forgotten = true
		}
	}
	return forgotten
}

// bindings returns the bindings of a namespace by name, with pending writes. They are read-only.
func (c *enforcing) bindings(ctx context.Context,
	namespace string) (map[string]*workv1alpha2.ResourceBinding, error) {
	// Read before the cache, which has what is forgotten meanwhile.
	written := c.pending.Get(types.NamespacedName{Namespace: namespace})
	var cached workv1alpha2.ResourceBindingList
	if err := c.List(ctx, &cached, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list bindings of namespace %q: %w", namespace, err)
	}
	all := map[string]*workv1alpha2.ResourceBinding{}
	for _, b := range written {
		all[b.Name] = b
	}
	for i := range cached.Items {
		b := &cached.Items[i]
		all[b.Name] = commit.Newest(b, written)
	}
	return all, nil
}
