// Package execute carries Works out: it makes the member's object what the Work says, and reports in the Work's status what
// the member answers. What to do to an object is decided by core/execute, what its status means by core/interpret.
package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/member"
)

// Options of the controller.
type Options struct {
	Members     *member.Members
	Interpreter interpret.Interpreter
	// Workers is the number of Works under way at once in each cluster.
	Workers int
	// StatusWindow is how long a change of status that leaves the health as it is may wait for further ones.
	StatusWindow time.Duration
}

// Controller carries Works out. Its lanes keep clusters from waiting for each other.
type Controller struct {
	Options
	client client.Client
	events record.EventRecorder
	lanes  lanes

	// reported is when the status of a Work was last written, for the window.
	reported sync.Map // types.NamespacedName → time.Time
}

// Setup registers the controller with the manager; with the members it is told of their objects.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorderFor("execution-controller")} //nolint:staticcheck // the contract names core/v1 events
	c.lanes = lanes{workers: o.Workers, reconcile: c.reconcile}
	o.Members.Handle(c.MemberEvent)
	works, err := mgr.GetCache().GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	if _, err := works.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.workEvent(nil, obj) },
		UpdateFunc: c.workEvent,
		DeleteFunc: func(obj any) { c.workEvent(nil, obj) },
	}); err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	clusters, err := mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: c.clusterEvent,
		DeleteFunc: func(obj any) {
			if cl, ok := last(obj).(*clusterv1alpha1.Cluster); ok {
				c.lanes.close(cl.Name)
			}
		},
	}); err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	return mgr.Add(c)
}

// Start implements manager.Runnable.
func (c *Controller) Start(ctx context.Context) error {
	c.lanes.start(ctx)
	var all workv1alpha1.WorkList
	if err := c.client.List(ctx, &all); err != nil {
		return fmt.Errorf("list works: %w", err)
	}
	for i := range all.Items {
		c.workEvent(nil, &all.Items[i])
	}
	<-ctx.Done()
	c.lanes.stop()
	return nil
}

func (c *Controller) workEvent(old, obj any) {
	w, ok := last(obj).(*workv1alpha1.Work)
	if !ok {
		return
	}
	cluster, err := names.ClusterOf(w.Namespace)
	if err != nil {
		return
	}
	// Our own status writes come back as events; they change nothing that is to be done.
	if before, ok := old.(*workv1alpha1.Work); ok && before.Generation == w.Generation && before.DeletionTimestamp.Equal(w.DeletionTimestamp) {
		return
	}
	c.lanes.retry(cluster, client.ObjectKeyFromObject(w))
}

// clusterEvent has the Works of a cluster looked at when it becomes reachable, or serves other kinds than before.
func (c *Controller) clusterEvent(old, obj any) {
	was, now := old.(*clusterv1alpha1.Cluster), obj.(*clusterv1alpha1.Cluster)
	back := !ready(was) && ready(now)
	if !back && len(was.Status.APIEnablements) == len(now.Status.APIEnablements) && was.Spec.APIEndpoint == now.Spec.APIEndpoint {
		return
	}
	var works workv1alpha1.WorkList
	// A read from the cache fails only when the hub is ending.
	if err := c.client.List(context.Background(), &works, client.InNamespace(names.ExecutionSpace(now.Name))); err != nil {
		return
	}
	for i := range works.Items {
		c.lanes.retry(now.Name, client.ObjectKeyFromObject(&works.Items[i]))
	}
}

// MemberEvent tells of an object of ours that changed in a member; nil is absent.
func (c *Controller) MemberEvent(cluster string, _ schema.GroupVersionResource, old, obj *unstructured.Unstructured) {
	if obj == nil {
		obj = old
	}
	notes := obj.GetAnnotations()
	key := types.NamespacedName{Namespace: notes[workv1alpha2.WorkNamespaceAnnotation], Name: notes[workv1alpha2.WorkNameAnnotation]}
	if key.Namespace != names.ExecutionSpace(cluster) || key.Name == "" {
		return
	}
	c.lanes.add(cluster, key)
}

// reconcile reads the Work and its object, has the core decide, acts once, and reports once.
func (c *Controller) reconcile(ctx context.Context, cluster string, key types.NamespacedName) (time.Duration, error) {
	work := &workv1alpha1.Work{}
	if err := c.client.Get(ctx, key, work); err != nil {
		c.reported.Delete(key)
		return 0, client.IgnoreNotFound(err)
	}
	m, err := c.member(ctx, cluster, work)
	if err != nil {
		return c.failed(ctx, work, err)
	}
	if m == nil { // the cluster is leaving, or gone
		return 0, commit.RemoveFinalizer(ctx, c.client, work, workv1alpha2.ExecutionFinalizer)
	}
	manifest, err := execute.Manifest(work)
	if err != nil {
		return c.failed(ctx, work, err)
	}
	observed, err := observe(ctx, m, manifest)
	if err != nil {
		return c.failed(ctx, work, err)
	}
	kind, observed, err := c.act(ctx, m, work, manifest, observed)
	switch {
	case err != nil && namespaceMissing(err) && c.namespaceFollows(ctx, work, manifest):
		return namespaceWait, nil
	case err != nil:
		return c.failed(ctx, work, err)
	case kind == execute.Delete || kind == execute.Wait:
		return deletionCheck, nil // the member's event comes first, as a rule
	case work.DeletionTimestamp == nil:
		return c.report(ctx, work, manifest, observed)
	}
	c.reported.Delete(key)
	return 0, commit.RemoveFinalizer(ctx, c.client, work, workv1alpha2.ExecutionFinalizer)
}

const (
	// namespaceWait is how soon an object is tried again whose namespace is on its way to the member.
	namespaceWait = 50 * time.Millisecond
	// deletionCheck is how soon an object is looked at again whose deletion the member has accepted.
	deletionCheck = 2 * time.Second
)

// member is the cluster of a Work; nil when it has left, or leaves and cannot be reached.
func (c *Controller) member(ctx context.Context, cluster string, work *workv1alpha1.Work) (*member.Member, error) {
	cl := &clusterv1alpha1.Cluster{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: cluster}, cl); err != nil {
		if apierrors.IsNotFound(err) && work.DeletionTimestamp != nil {
			return nil, nil
		}
		return nil, err
	}
	if !ready(cl) {
		if work.DeletionTimestamp != nil && cl.DeletionTimestamp != nil {
			return nil, nil
		}
		return nil, &awayError{cluster: cluster, why: whyNotReady(cl)}
	}
	return c.Members.Get(cluster)
}

// awayError says that a cluster is known not to answer, so that it was not asked.
type awayError struct{ cluster, why string }

func (e *awayError) Error() string {
	return fmt.Sprintf("cluster %q is not ready (%s); this is tried again when it is", e.cluster, e.why)
}

// observe is the manifest's object in the member, nil if there is none of ours: from memory once the kind is watched.
func observe(ctx context.Context, m *member.Member, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mapping, err := m.Mapping(ctx, manifest.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	m.Watch(mapping.Resource)
	namespace := manifest.GetNamespace()
	if !mapping.Namespaced {
		namespace = ""
	}
	if observed, synced := m.Cached(mapping.Resource, namespace, manifest.GetName()); synced {
		return observed, nil
	}
	return m.Get(ctx, manifest.GroupVersionKind(), namespace, manifest.GetName())
}

// act does what the core plans, and looks again at the member itself, once, if its object was another than the one in memory.
// The object is as it is afterwards.
func (c *Controller) act(ctx context.Context, m *member.Member, work *workv1alpha1.Work, manifest, observed *unstructured.Unstructured) (execute.Kind, *unstructured.Unstructured, error) {
	for again := true; ; again = false {
		kind, after, err := c.actOn(ctx, m, work, observed)
		if !again || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return kind, after, err
		}
		if observed, err = m.Get(ctx, manifest.GroupVersionKind(), manifest.GetNamespace(), manifest.GetName()); err != nil {
			return "", nil, err
		}
	}
}

func (c *Controller) actOn(ctx context.Context, m *member.Member, work *workv1alpha1.Work, observed *unstructured.Unstructured) (execute.Kind, *unstructured.Unstructured, error) {
	var desired *unstructured.Unstructured
	if work.DeletionTimestamp == nil {
		var err error
		desired, err = execute.Desired(work, observed, func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return c.Interpreter.Retain(ctx, desired, observed)
		})
		if err != nil {
			return "", observed, err
		}
	}
	action := execute.Plan(work, desired, observed)
	after, err := observed, error(nil)
	switch action.Kind {
	case execute.Create:
		after, err = m.Create(ctx, action.Object)
	case execute.Apply:
		after, err = m.Apply(ctx, action.Object, observed)
	case execute.Delete:
		err = m.Delete(ctx, observed)
	case execute.Release:
		after, err = nil, m.Release(ctx, observed)
	case execute.Conflict:
		err = errors.New(action.Reason)
	}
	if action.Kind != execute.Nothing {
		ctrl.Log.WithName("execute").V(1).Info("acted", "cluster", m.Name, "work", work.Name, "action", action.Kind, "reason", action.Reason, "error", err)
	}
	return action.Kind, after, err
}

// failed reports what went wrong in the Applied condition and, when that is news, in an event; then it is tried again, later each time.
func (c *Controller) failed(ctx context.Context, work *workv1alpha1.Work, cause error) (time.Duration, error) {
	if commit.Stale(cause) || errors.Is(cause, context.Canceled) || work.DeletionTimestamp != nil {
		return 0, cause
	}
	away := errors.As(cause, new(*awayError)) || errors.Is(cause, member.ErrUnreachable)
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if away && applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == work.Generation {
		return 0, cause // a member that is away says nothing about what was applied before it went
	}
	want := work.DeepCopy()
	meta.SetStatusCondition(&want.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse,
		Reason: workv1alpha1.ReasonAppliedFailed, Message: "Failed to apply all manifests (0/1): " + cause.Error(), ObservedGeneration: lastApplied(applied)})
	wrote, err := commit.Status(ctx, c.client, work, want)
	if err != nil {
		return 0, err
	}
	if wrote {
		c.events.Event(work, corev1.EventTypeWarning, workv1alpha2.EventSyncFailed, cause.Error())
	}
	return 0, cause
}

// lastApplied is the generation that a failure leaves as the one last applied.
func lastApplied(applied *metav1.Condition) int64 {
	if applied == nil {
		return 0
	}
	return applied.ObservedGeneration
}

// report writes what the member answered, unless the same is written already or the window has not passed.
func (c *Controller) report(ctx context.Context, work *workv1alpha1.Work, manifest, observed *unstructured.Unstructured) (time.Duration, error) {
	want := work.DeepCopy()
	suspended := work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
	dispatching := metav1.Condition{Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.ReasonDispatching, Message: workv1alpha1.MessageDispatched}
	if suspended {
		dispatching.Status, dispatching.Reason, dispatching.Message = metav1.ConditionFalse, workv1alpha1.ReasonSuspendDispatching, workv1alpha1.MessageSuspended
	}
	// Saying that a Work is dispatched would cost a write of its own before it is applied; it is said with the result.
	meta.SetStatusCondition(&want.Status.Conditions, dispatching)
	if !suspended {
		meta.SetStatusCondition(&want.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha1.ReasonAppliedSuccessful, Message: workv1alpha1.MessageApplied, ObservedGeneration: work.Generation})
	}
	if observed != nil {
		status, err := c.reflect(ctx, manifest, observed)
		if err != nil {
			c.events.Event(work, corev1.EventTypeWarning, workv1alpha2.EventReflectStatusFailed, err.Error())
		}
		if status != nil {
			want.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{*status}
		}
	}
	key := client.ObjectKeyFromObject(work)
	if wait := c.wait(key, work, want); wait > 0 {
		return wait, nil
	}
	wrote, err := commit.Status(ctx, c.client, work, want)
	if wrote {
		c.reported.Store(key, time.Now())
	}
	return 0, err
}

// wait is how long a status may still be held back: not at all when a condition or the health changes, or nothing does.
func (c *Controller) wait(key types.NamespacedName, was, want *workv1alpha1.Work) time.Duration {
	if c.StatusWindow == 0 || healthOf(was) != healthOf(want) {
		return 0
	}
	for _, cond := range want.Status.Conditions {
		if before := meta.FindStatusCondition(was.Status.Conditions, cond.Type); before == nil || before.Status != cond.Status || before.ObservedGeneration != cond.ObservedGeneration {
			return 0
		}
	}
	at, ok := c.reported.Load(key)
	if !ok {
		return 0
	}
	return c.StatusWindow - time.Since(at.(time.Time))
}

// reflect is the manifest's entry in the Work's status. An error comes with an entry if only a part of it could be read.
func (c *Controller) reflect(ctx context.Context, manifest, observed *unstructured.Unstructured) (*workv1alpha1.ManifestStatus, error) {
	gvk := manifest.GroupVersionKind()
	entry := &workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
			Namespace: manifest.GetNamespace(), Name: manifest.GetName()},
	}
	health, healthErr := c.Interpreter.Health(ctx, observed)
	if healthErr != nil {
		health = interpret.Unknown
	}
	entry.Health = health.Karmada()
	status, err := c.Interpreter.Reflect(ctx, observed)
	if err != nil {
		return nil, errors.Join(err, healthErr)
	}
	if status != nil {
		raw, err := json.Marshal(status)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("encode the status of %s: %w", commit.Name(observed), err), healthErr)
		}
		entry.Status = &runtime.RawExtension{Raw: raw}
	}
	return entry, healthErr
}

// namespaceFollows says whether the namespace of the manifest is on its way to the same member.
func (c *Controller) namespaceFollows(ctx context.Context, work *workv1alpha1.Work, manifest *unstructured.Unstructured) bool {
	ns := &workv1alpha1.Work{}
	key := client.ObjectKey{Namespace: work.Namespace, Name: names.Work("Namespace", manifest.GetNamespace(), "")}
	return c.client.Get(ctx, key, ns) == nil && ns.DeletionTimestamp == nil && !meta.IsStatusConditionTrue(ns.Status.Conditions, workv1alpha1.WorkApplied)
}

// namespaceMissing says whether an object was refused for want of its namespace.
func namespaceMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

func healthOf(w *workv1alpha1.Work) workv1alpha1.ResourceHealth {
	if len(w.Status.ManifestStatuses) == 0 {
		return ""
	}
	return w.Status.ManifestStatuses[0].Health
}

func ready(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

func whyNotReady(c *clusterv1alpha1.Cluster) string {
	cond := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if cond == nil {
		return "its status was not collected yet"
	}
	return cond.Reason + ": " + cond.Message
}

// last is the object of an event, the last known state where its deletion was missed.
func last(obj any) any {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return obj
}
