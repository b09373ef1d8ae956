// Package acting maintains the roles in members that let the hub impersonate its users. core/cluster/access decides
// which users; the hub's authorizer decides before who may use the proxy of a cluster.
package acting

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/member"
)

// Source returns the users who are allowed now, and a channel that is closed when that may have changed.
type Source func(context.Context) (access.Grants, <-chan struct{}, error)

// Fixed returns a Source that never changes.
func Fixed(g access.Grants) Source {
	return func(context.Context) (access.Grants, <-chan struct{}, error) { return g, nil, nil }
}

// Follow returns the Source of a hub. It watches the hub's cluster roles from the first call until done is closed. It
// keeps only the rules about clusters.
func Follow(config *rest.Config, done <-chan struct{}) Source {
	f := &follower{config: config, done: done, changed: make(chan struct{})}
	return f.grants
}

type follower struct {
	config *rest.Config
	done   <-chan struct{}

	once sync.Once
	err  error
	// What they list is trimmed.
	roles    rbaclisters.ClusterRoleLister
	bindings rbaclisters.ClusterRoleBindingLister
	// listed reports whether the handlers got the initial lists; synced that all did.
	listed []cache.InformerSynced
	synced atomic.Bool

	mu      sync.Mutex
	changed chan struct{}
	known   *access.Grants // the current grants; nil after a change
}

func (f *follower) start() {
	client, err := rbacclient.NewForConfig(f.config) // a client of all groups needs megabytes
	if err != nil {
		f.err = err
		return
	}
	watch := func(resource string, kind runtime.Object) cache.SharedIndexInformer {
		informer := cache.NewSharedIndexInformer(cache.NewListWatchFromClient(client.RESTClient(), resource, "",
			fields.Everything()), kind, 0, cache.Indexers{})
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { f.change(obj) }, UpdateFunc: func(old, obj any) { f.change(old, obj) },
			DeleteFunc: func(obj any) { f.change(obj) }})
		if f.err = errors.Join(f.err, err, informer.SetTransform(trim)); f.err == nil {
			f.listed = append(f.listed, registration.HasSynced)
		}
		return informer
	}
	roles, bindings := watch("clusterroles", &rbacv1.ClusterRole{}),
		watch("clusterrolebindings", &rbacv1.ClusterRoleBinding{})
	f.roles, f.bindings = rbaclisters.NewClusterRoleLister(roles.GetIndexer()),
		rbaclisters.NewClusterRoleBindingLister(bindings.GetIndexer())
	if f.err == nil {
		go roles.Run(f.done)
		go bindings.Run(f.done)
	}
}

// trim keeps only the rules of a role that give access to clusters.
func trim(obj any) (any, error) {
	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		kept := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID,
			ResourceVersion: o.ResourceVersion}}
		if len(access.Clusters(o.Rules)) > 0 {
			kept.Rules = o.Rules
		}
		return kept, nil
	case *rbacv1.ClusterRoleBinding:
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID,
			ResourceVersion: o.ResourceVersion}, RoleRef: o.RoleRef, Subjects: o.Subjects}, nil
	}
	return obj, nil
}

// change is called with a role or binding before and after a change. Most do not concern clusters.
func (f *follower) change(was ...any) {
	if !slices.ContainsFunc(was, f.matters) || len(was) == 2 && sameRole(was[0], was[1]) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known != nil {
		f.known = nil
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// matters reports whether a role or binding may give access to a cluster. A binding does with its role, which has its
// own events.
func (f *follower) matters(obj any) bool {
	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		return len(o.Rules) > 0
	case *rbacv1.ClusterRoleBinding:
		role, err := f.roles.Get(o.RoleRef.Name)
		return err == nil && len(role.Rules) > 0
	}
	return true // it was deleted in the meantime
}

func sameRole(a, b any) bool {
	switch a := a.(type) {
	case *rbacv1.ClusterRole:
		b, ok := b.(*rbacv1.ClusterRole)
		return ok && reflect.DeepEqual(a.Rules, b.Rules)
	case *rbacv1.ClusterRoleBinding:
		b, ok := b.(*rbacv1.ClusterRoleBinding)
		return ok && a.RoleRef == b.RoleRef && reflect.DeepEqual(a.Subjects, b.Subjects)
	}
	return false
}

func (f *follower) grants(ctx context.Context) (access.Grants, <-chan struct{}, error) {
	f.once.Do(f.start)
	if f.err != nil {
		return access.Grants{}, nil, f.err
	}
	if !f.synced.Load() {
		if !cache.WaitForCacheSync(ctx.Done(), f.listed...) {
			return access.Grants{}, nil, errors.New("the hub's ClusterRoles and ClusterRoleBindings were not listed in time")
		}
		f.synced.Store(true)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		roles, err := f.roles.List(labels.Everything())
		if err != nil {
			return access.Grants{}, nil, err
		}
		bindings, err := f.bindings.List(labels.Everything())
		if err != nil {
			return access.Grants{}, nil, err
		}
		g := access.Derive(values(roles), values(bindings))
		f.known = &g
	}
	return *f.known, f.changed, nil
}

func values[T any](pointers []*T) []T {
	out := make([]T, len(pointers))
	for i, p := range pointers {
		out[i] = *p
	}
	return out
}

// ErrTheirs reports that a client in the member created or changed an object, so the hub does not change it.
var ErrTheirs = errors.New("a client in the member created or changed it, so the hub does not update the users that it may impersonate there; delete it, and the hub recreates it")

var (
	roles    = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	bindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
)

// Keep updates the role of a member for the allowed users, and for id, which may be empty. hub is the identity of the
// hub; client must check the ownership of the member. wrote reports whether it wrote. If the member refuses rights that
// the hub lacks, Keep ends those that are to end, and returns the refusal.
func Keep(ctx context.Context, client dynamic.Interface, hub string, a access.Allowed,
	id access.Identity) (wrote bool, err error) {
	var refused error
	for step := range access.Narrowings {
		wrote, err = put(ctx, client.Resource(roles), "ClusterRole", nil,
			func(existing *rbacv1.ClusterRole) (*rbacv1.ClusterRole, bool) {
				want, ours := a.Role(existing, hub, id)
				if !ours {
					return want, false
				}
				return access.Narrowed(existing, want, step), true
			})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), access.NotHeld) {
			break
		}
		if refused == nil {
			refused = err
		}
	}
	if err == nil {
		err = refused
	}
	return wrote, err
}

// Bind binds the role to the service account of the hub. Before the write, it calls verify, because only the token
// claims that the account is the hub's.
func Bind(ctx context.Context, client dynamic.Interface, hub, namespace, account string,
	verify func() error) (wrote bool, err error) {
	return put(ctx, client.Resource(bindings), "ClusterRoleBinding", verify,
		func(existing *rbacv1.ClusterRoleBinding) (*rbacv1.ClusterRoleBinding, bool) {
			return access.Binding(existing, hub, namespace, account)
		})
}

// Leave removes the hub's right to impersonate users from a member: the binding and the role, unless somebody changed
// them after the hub.
func Leave(ctx context.Context, client dynamic.Interface, hub string) error {
	return errors.Join(remove[rbacv1.ClusterRoleBinding](ctx, client.Resource(bindings), "ClusterRoleBinding", hub),
		remove[rbacv1.ClusterRole](ctx, client.Resource(roles), "ClusterRole", hub))
}

func remove[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, at dynamic.ResourceInterface, kind, hub string) error {
	read, err := at.Get(ctx, access.Impersonator, metav1.GetOptions{})
	if err == nil {
		existing := P(new(T))
		if err = runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, existing); err == nil &&
			access.Goes(existing, hub) {
			uid, version := existing.GetUID(), existing.GetResourceVersion()
			err = at.Delete(ctx, access.Impersonator,
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		}
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a changed object stays
		return nil
	}
	return fmt.Errorf("%s %s: %w", kind, access.Impersonator, err)
}

// put writes the object that decide returns, if it differs and verify allows it; decide gets nil if there is no object.
func put[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, at dynamic.ResourceInterface, kind string, verify func() error,
	decide func(existing P) (want P, ours bool)) (wrote bool, err error) {
	const attempts = 3 // another writer may be active
	for range attempts {
		if wrote, err = putOnce(ctx, at, kind, verify, decide); !apierrors.IsConflict(err) &&
			!apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return false, fmt.Errorf("%s %s: %w", kind, access.Impersonator, err)
	}
	return wrote, nil
}

func putOnce[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, at dynamic.ResourceInterface, kind string, verify func() error,
	decide func(existing P) (want P, ours bool)) (bool, error) {
	var existing P
	read, err := at.Get(ctx, access.Impersonator, metav1.GetOptions{})
	switch {
	case err == nil:
		existing = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, existing); err != nil {
			return false, err
		}
	case !apierrors.IsNotFound(err):
		return false, err
	}
	want, ours := decide(existing)
	if !ours {
		return false, ErrTheirs
	}
	if existing != nil && !access.Differs(existing, want) {
		return false, nil
	}
	if verify != nil {
		if err := verify(); err != nil {
			return false, err
		}
	}
	obj, err := object(want, kind)
	if err != nil {
		return false, err
	}
	if existing == nil {
		_, err = at.Create(ctx, obj, metav1.CreateOptions{FieldManager: member.Manager})
	} else {
		_, err = at.Update(ctx, obj, metav1.UpdateOptions{FieldManager: member.Manager})
	}
	return err == nil, err
}

func object(typed any, kind string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
	return u, nil
}
