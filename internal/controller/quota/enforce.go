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
	c := &enforcing{Client: mgr.GetClient()}
	bindings, err := mgr.GetCache().GetInformer(ctx, &workv1alpha2.ResourceBinding{})
	if err != nil {
		return nil, fmt.Errorf("watch bindings: %w", err)
	}
	if _, err := bindings.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: c.seen, DeleteFunc: c.seen,
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

// enforcing is a client with a cache. Writes by which a binding uses more are made one after the other in each
// namespace, and count until the cache shows them: two of them cannot use the same rest of a quota.
type enforcing struct {
	client.Client
	// growing has a *sync.Mutex by namespace.
	growing sync.Map
	// pending are the bindings that were written, by namespace, until the cache shows them: however late that is, a stale
	// cache permits nothing. A binding does not disappear before, because the hub removes its finalizer.
	pending commit.PendingWrites[*workv1alpha2.ResourceBinding]
}

// seen forgets what the cache shows.
func (c *enforcing) seen(obj any) {
	if b, ok := filter.LastState(obj).(*workv1alpha2.ResourceBinding); ok {
		c.pending.Seen(types.NamespacedName{Namespace: b.Namespace}, b)
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
	if !bound || len(b.Spec.Clusters) == 0 || b.Spec.ReplicaRequirements == nil && len(b.Spec.Components) == 0 {
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
	all, err := c.bindings(ctx, b.Namespace)
	if err != nil {
		return err
	}
	var was *workv1alpha2.ResourceBindingSpec
	if known := all[b.Name]; known != nil && known.UID == b.UID {
		was = &known.Spec
	}
	if !propagate.Grows(was, &b.Spec) {
		return write() // it may be the last one, which removes the finalizer
	}
	delete(all, b.Name)
	if err := quota.Check(quotas.Items, propagate.Sum(all), was, &b.Spec); err != nil {
		return quota.Denied(err)
	}
	if err := write(); err != nil {
		return err
	}
	c.pending.Add(types.NamespacedName{Namespace: b.Namespace}, b.DeepCopy())
	return nil
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
