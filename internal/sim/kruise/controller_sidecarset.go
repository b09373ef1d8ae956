package kruise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// injectorIndex finds pods by the SidecarSets that they were injected by.
const injectorIndex = "sidecarset"

// sidecarSets keeps the revisions of SidecarSets and brings their images to the pods that have them. The injection is
// the Injector's.
type sidecarSets struct{ reconciler }

func addSidecarSets(ctx context.Context, mgr ctrl.Manager, k kind) error {
	r := &sidecarSets{reconciler{client: mgr.GetClient(), cache: mgr.GetCache(), kind: k, pending: &pending{}}}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, injectorIndex, func(o client.Object) []string {
		return injectors(o.(*corev1.Pod))
	}); err != nil {
		return fmt.Errorf("index by SidecarSet: %w", err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk)
	return ctrl.NewControllerManagedBy(mgr).Named("kruise-sidecarset").
		For(u).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
			o client.Object) []reconcile.Request {
			var out []reconcile.Request
			for _, name := range injectors(o.(*corev1.Pod)) {
				out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			}
			return out
		})).
		Complete(r)
}

func (r *sidecarSets) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind.gvk)
	err := r.client.Get(ctx, req.NamespacedName, u)
	if apierrors.IsNotFound(err) {
		r.pending.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil || u.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	set, err := read[SidecarSet](u)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("read %s: %w", req.Name, err))
	}
	now := time.Now()
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.MatchingFields{injectorIndex: set.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	byName := make([]*corev1.Pod, len(list.Items)) // as pending knows them
	for i := range list.Items {
		pods[i] = &list.Items[i]
		byName[i] = &corev1.Pod{ObjectMeta: list.Items[i].ObjectMeta}
		byName[i].Name = podKey(pods[i])
	}
	if !r.pending.settled(req.NamespacedName, byName, now) {
		return reconcile.Result{RequeueAfter: cacheTimeout}, nil
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	revision, err := r.reviseSidecars(ctx, u, set, pods)
	if conflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("keep the revisions of SidecarSet %s: %w", set.Name, err)
	}
	update, status, err := decideSidecarSet(set, pods, revision)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("decide for SidecarSet %s: %w", set.Name, err))
	}
	var errs []error
	for _, p := range update {
		next, err := withSidecarImages(p, set, revision, now)
		if err == nil {
			err = r.client.Update(ctx, next)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("update pod %s: %w", podKey(p), err))
			continue
		}
		r.pending.expect(req.NamespacedName, podKey(p), write{version: next.ResourceVersion, at: now})
	}
	errs = append(errs, r.report(ctx, u, &status))
	if err := errors.Join(errs...); err != nil {
		if conflict(err) {
			return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
		}
		return reconcile.Result{}, fmt.Errorf("act for SidecarSet %s: %w", set.Name, err)
	}
	return reconcile.Result{}, nil
}

func podKey(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// reviseSidecars makes sure that what the set injects is stored as its newest revision, and returns the revision's
// name.
func (r *sidecarSets) reviseSidecars(ctx context.Context, u *unstructured.Unstructured, set *SidecarSet,
	pods []*corev1.Pod) (string, error) {
	var list appsv1.ControllerRevisionList
	if err := r.client.List(ctx, &list, client.InNamespace(SystemNamespace),
		client.MatchingLabels{sidecarRevisionLabel: set.Name}); err != nil {
		return "", err
	}
	var revisions []*appsv1.ControllerRevision
	for i := range list.Items {
		revisions = append(revisions, &list.Items[i])
	}
	data, err := json.Marshal(map[string]any{"spec": set.Spec.Injected})
	if err != nil {
		return "", err
	}
	inUse := map[string]bool{}
	for _, p := range pods {
		inUse[injectedState(p, sidecarHashAnnotation)[set.Name].ControllerRevision] = true
	}
	if named := set.Spec.InjectionStrategy.Revision; named != nil {
		inUse[named.RevisionName] = true
		for _, rev := range revisions {
			if named.CustomVersion != "" && rev.Labels[customVersionLabel] == named.CustomVersion {
				inUse[rev.Name] = true
			}
		}
	}
	same, number, surplus := history(revisions, data, inUse, orDefault(set.Spec.RevisionHistoryLimit, 10))
	version := set.customVersion()
	switch {
	case same == nil:
		hash, _ := set.Spec.hashes()
		same = &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Name: set.Name + "-" + hash, Namespace: SystemNamespace,
				Labels:          map[string]string{sidecarRevisionLabel: set.Name},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(u, u.GroupVersionKind())},
			},
			Data:     runtime.RawExtension{Raw: data},
			Revision: number,
		}
		if version != "" {
			same.Labels[customVersionLabel] = version
		}
		if err := r.client.Create(ctx, same); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", err
		}
	case same.Revision < number || version != "" && same.Labels[customVersionLabel] != version:
		same.Revision = number
		if version != "" {
			same.Labels[customVersionLabel] = version
		}
		if err := r.client.Update(ctx, same); err != nil {
			return "", err
		}
	}
	for _, old := range surplus {
		if err := r.client.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
			return "", err
		}
	}
	return same.Name, nil
}

// Injector puts the sidecars of a member's SidecarSets into new pods. Until Serve was called it holds pods back.
type Injector struct {
	ready  chan struct{}
	client client.Reader
	gvk    schema.GroupVersionKind
}

// NewInjector makes an injector that waits for Serve.
func NewInjector() *Injector { return &Injector{ready: make(chan struct{})} }

// Serve has the injector read from the caches of the manager, which must have been filled; it is called once.
func (i *Injector) Serve(mgr ctrl.Manager, versions Versions) {
	if gvk, ok := versions.stored(SidecarSetKind); ok {
		i.client, i.gvk = mgr.GetCache(), gvk
	}
	close(i.ready)
}

// Injects reports whether pods have to be looked at: there are SidecarSets, or it is not known yet.
func (i *Injector) Injects() bool {
	select {
	case <-i.ready:
	default:
		return true
	}
	if i.client == nil {
		return false
	}
	sets := listOf(i.gvk)
	err := i.client.List(context.Background(), sets, client.UnsafeDisableDeepCopy, client.Limit(1))
	return err != nil || len(sets.Items) > 0
}

// SidecarSets are those of the member, not to be changed; which Serve makes known.
func (i *Injector) SidecarSets(ctx context.Context) ([]unstructured.Unstructured, error) {
	if err := i.wait(ctx); err != nil || i.client == nil {
		return nil, err
	}
	sets := listOf(i.gvk)
	err := i.client.List(ctx, sets, client.UnsafeDisableDeepCopy)
	return sets.Items, err
}

// FindRevision returns why a SidecarSet has no revision of that name or, if that is empty, of that custom version.
func (i *Injector) FindRevision(ctx context.Context, set, customVersion, name string) error {
	if err := i.wait(ctx); err != nil || i.client == nil {
		return err
	}
	_, err := findSidecarRevision(ctx, i.client, set, customVersion, name)
	return err
}

// injectorPatience is how long a pod may wait for the injector when a member starts.
const injectorPatience = 10 * time.Second

func (i *Injector) wait(ctx context.Context) error {
	select {
	case <-i.ready:
		return nil
	default:
	}
	select {
	case <-i.ready:
		return nil
	case <-time.After(injectorPatience):
		return errors.New("the SidecarSets of this member are not known yet: try again")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Inject adds the sidecars of the member's SidecarSets to a new pod, and reports whether it changed the pod. Such a pod
// needs its defaults again.
func (i *Injector) Inject(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if err := i.wait(ctx); err != nil || i.client == nil {
		return false, err
	}
	sets := listOf(i.gvk)
	if err := i.client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil || len(sets.Items) == 0 {
		return false, err
	}
	var namespace corev1.Namespace
	if err := i.client.Get(ctx, client.ObjectKey{Name: pod.Namespace}, &namespace); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	var injections []injection
	for n := range sets.Items {
		set, err := read[SidecarSet](&sets.Items[n])
		if err != nil {
			return false, fmt.Errorf("read SidecarSet %s: %w", sets.Items[n].GetName(), err)
		}
		if set.DeletionTimestamp != nil || set.Spec.InjectionStrategy.Paused ||
			!set.selects(pod.Labels, pod.Namespace, namespace.Labels) {
			continue
		}
		hash, _ := set.Spec.hashes()
		in := injection{name: set.Name, what: &set.Spec.Injected, revision: set.Name + "-" + hash}
		if version, name, named := set.namedRevision(pod.Labels); named {
			rev, err := findSidecarRevision(ctx, i.client, set.Name, version, name)
			if err != nil {
				return false, err
			}
			var stored struct{ Spec Injected }
			if err := json.Unmarshal(rev.Data.Raw, &stored); err != nil {
				return false, fmt.Errorf("read revision %s: %w", rev.Name, err)
			}
			in.what, in.revision = &stored.Spec, rev.Name
		}
		injections = append(injections, in)
	}
	return len(injections) > 0, inject(pod, injections, time.Now())
}

// findSidecarRevision returns the revision of a SidecarSet of that name or, if that is empty, the newest of that custom
// version.
func findSidecarRevision(ctx context.Context, c client.Reader, set, customVersion,
	name string) (*appsv1.ControllerRevision, error) {
	if name != "" {
		var rev appsv1.ControllerRevision
		err := c.Get(ctx, client.ObjectKey{Namespace: SystemNamespace, Name: name}, &rev)
		if err == nil && rev.Labels[sidecarRevisionLabel] != set {
			err = apierrors.NewNotFound(appsv1.Resource("controllerrevisions"), name)
		}
		return &rev, err
	}
	var list appsv1.ControllerRevisionList
	if err := c.List(ctx, &list, client.InNamespace(SystemNamespace),
		client.MatchingLabels{sidecarRevisionLabel: set, customVersionLabel: customVersion}); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("no ControllerRevision of SidecarSet %s has custom version %q", set, customVersion)
	}
	return slices.MaxFunc(slices.Collect(pointers(list.Items)), func(a, b *appsv1.ControllerRevision) int {
		return int(a.Revision - b.Revision)
	}), nil
}
