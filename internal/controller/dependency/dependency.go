// Package dependency propagates the dependencies of templates to the clusters of these, through attached bindings.
// core/source/dependency decides the content of an attached binding. core/workload/interpret finds the dependencies of
// a template.
package dependency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

const (
	// firstRetry is the first delay of the backoff after an error.
	firstRetry = 5 * time.Millisecond
	// unsyncedRetry is the delay while the cache does not contain all dependencies yet.
	unsyncedRetry = time.Second
	// unservedRetry is the delay while a kind that may contain dependencies is not served. Objects that appear trigger
	// earlier.
	unservedRetry = time.Minute
	// endRetry is the delay while it is unknown whether the deletion of a binding was requested.
	endRetry = 2 * time.Second
	// takenRetry is the delay while another binding has the name of a dependency's binding.
	takenRetry = time.Minute
	// recreateTimeout is the time to wait until a binding that was deleted without a request is recreated.
	recreateTimeout = time.Minute
)

// Options of the controller.
type Options struct {
	Templates   *template.Store
	Interpreter interpret.Interpreter
	// Concurrency is the number of bindings that are reconciled at once.
	Concurrency int
}

type reconciler struct {
	Options
	client client.Client
	events commit.Events
	index  index
	// injections are the SidecarSets, whose containers need dependencies where the pods of others run.
	injections injections
	// leaders are the bindings that may have companions.
	leaders leaders
	// missing has, per deleted binding with attached bindings, the time since when it is missing: key → time.Time.
	missing sync.Map

	// reported has the last failure event of each binding, made the last event about companions that members create.
	reported, made commit.Dedup[types.NamespacedName]
	// conflicts are those reported last of attached bindings.
	conflicts commit.Dedup[types.NamespacedName]
}

// byIndependent indexes attached bindings by the label of the independent binding.
const byIndependent = "dependency.independent"

// Setup registers the controller with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r := &reconciler{
		Options: o,
		client:  mgr.GetClient(),
		events:  commit.Recorder(mgr, "dependencies-distributor"),
	}
	for _, kind := range scope.Bindings.Kinds() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, byIndependent, independents); err != nil {
			return fmt.Errorf("index bindings by those that they are attached to: %w", err)
		}
	}
	c, err := controller.New("dependency", mgr, controller.Options{
		MaxConcurrentReconciles: o.Concurrency, RateLimiter: commit.Backoff[reconcile.Request](firstRetry), Reconciler: r})
	if err != nil {
		return fmt.Errorf("set up the distribution of dependencies: %w", err)
	}
	sources := []source.Source{interpreter.Changes(o.Interpreter, r.client),
		source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			o.Templates.Subscribe(r.objectChanged(q.Add))
			return nil
		})}
	for _, kind := range scope.Bindings.Kinds() {
		sources = append(sources, source.Kind(mgr.GetCache(), kind, r.bindingChanged()))
	}
	sources = append(sources, source.Kind(mgr.GetCache(), &corev1.Namespace{}, r.namespaceChanged()))
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watch for the distribution of dependencies: %w", err)
		}
	}
	return nil
}

// Reconcile attaches the dependencies of one binding and detaches those that it no longer needs.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	after, err := r.distribute(ctx, req.NamespacedName)
	if commit.Stale(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: commit.SlowRetry}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}

func (r *reconciler) distribute(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	b, err := scope.Bindings.Get(ctx, r.client, key)
	if apierrors.IsNotFound(err) {
		r.injections.drop(key)
		r.forgetLeader(key)
		return r.awaitRecreation(ctx, key)
	}
	if err != nil {
		return 0, fmt.Errorf("get binding %s: %w", key, err)
	}
	if !dependency.Distributes(b) {
		r.injections.drop(key)
		r.forgetLeader(key)
		kept, err := r.keptVersions(ctx, b)
		if err != nil {
			return 0, err
		}
		if len(kept) == 0 {
			return r.end(ctx, key, b)
		}
		tpl, err := r.template(ctx, b)
		if err != nil || tpl == nil {
			return 0, err
		}
		return r.settle(ctx, key, b, tpl, required{refs: kept, complete: true})
	}
	r.missing.Delete(key)

	// 1. Find dependencies and companions of the template.
	tpl, err := r.template(ctx, b)
	if err != nil || tpl == nil {
		return 0, err
	}
	asked, where, unread, err := r.sidecars(ctx, key, tpl)
	if err != nil {
		r.fails(b, tpl, workv1alpha2.EventGetDependenciesFailed, err)
		return 0, err
	}
	refs, err := r.Interpreter.Dependencies(ctx, asked)
	served, stored := true, true
	if err == nil {
		refs, stored, err = r.withRevisions(ctx, b, tpl, refs)
	}
	if err == nil {
		refs, served, err = r.further(ctx, key, tpl.GetNamespace(), refs)
		served = served && stored
	}
	var rights, watched []configv1alpha1.DependentObjectReference
	known := true
	if err == nil {
		rights, watched, known, err = r.authorized(ctx, b, tpl, refs)
	}
	if err != nil {
		r.fails(b, tpl, workv1alpha2.EventGetDependenciesFailed, err)
	}
	b, reported := interpreter.Report(ctx, r.client, b, err, configv1alpha1.InterpreterOperationInterpretDependency)
	if err = cmp.Or(err, reported); err != nil {
		return 0, err
	}
	if !served {
		rights = append(rights, recorded(b)...) // the recorded ones stay
	}
	refs, again := r.accompanied(b, tpl, dependency.Merge(refs, rights))
	if again = commit.ShorterDelay(again, unread); !known {
		again = unsyncedRetry
	}
	return r.settle(ctx, key, b, tpl, required{refs: refs, watched: watched, where: where, complete: served, again: again})
}

// end detaches the dependencies of a binding that distributes none, unless they stay attached.
func (r *reconciler) end(ctx context.Context, key types.NamespacedName, b workv1alpha2.Binding) (time.Duration,
	error) {
	if dependency.KeepsAttached(b) {
		return 0, nil // its deletion or its placement causes an event
	}
	again, known, err := r.willBeRecreated(ctx, b)
	if err != nil {
		return 0, err
	}
	if !known {
		return endRetry, nil // dispatch reports the error
	}
	if again {
		return 0, commit.RemoveFinalizer(ctx, r.client, b, workv1alpha2.DependenciesDistributorFinalizer)
	}
	r.missing.Delete(key)
	return 0, r.detachAll(ctx, key, b)
}

// template returns the template of a binding; nil if nothing can be done for it now.
func (r *reconciler) template(ctx context.Context, b workv1alpha2.Binding) (*unstructured.Unstructured, error) {
	tpl, found, err := r.Templates.ForBinding(ctx, b)
	if errors.Is(err, propagate.ErrReference) {
		return nil, nil // dispatch reports the error
	}
	if err != nil {
		return nil, err
	}
	if !found || tpl.GetUID() != b.BindingSpec().Resource.UID {
		return nil, nil // the binding will be deleted or recreated
	}
	return tpl, nil
}

// required are the dependencies of a template.
type required struct {
	refs []configv1alpha1.DependentObjectReference
	// watched are other objects whose changes concern the dependencies.
	watched []configv1alpha1.DependentObjectReference
	// where are the clusters that need dependencies, by their namespace; nil for all clusters.
	where map[string]map[string]bool
	// complete is false if there may be more. Then nothing is detached.
	complete bool
	// again is the delay until the next look; 0 means never.
	again time.Duration
}

// settle records, attaches and detaches the dependencies of a binding.
func (r *reconciler) settle(ctx context.Context, key types.NamespacedName, b workv1alpha2.Binding,
	tpl *unstructured.Unstructured, need required) (time.Duration, error) {
	again := need.again
	refs, failures := dependency.Within(tpl.GetNamespace(), need.refs)
	if len(refs)+len(failures) == 0 && need.complete {
		return again, r.detachAll(ctx, key, b, need.watched...)
	}
	// Index them before the lookup, so that no change is missed.
	r.index.set(key, slices.Concat(refs, need.watched))

	// 2. Record the dependencies first. With the finalizer nothing stays attached when the binding is deleted.
	recorded := dependency.Record(b, refs)
	news, err := commit.Update(ctx, r.client, b, recorded)
	if err != nil {
		return 0, err
	}

	// 3. Attach the existing dependencies and detach the others.
	objs, wanted, unclear, err := r.lookUp(ctx, tpl.GetNamespace(), refs)
	if err != nil {
		r.fails(recorded, tpl, workv1alpha2.EventGetDependenciesFailed, err)
		return 0, err
	}
	for _, obj := range objs {
		of := recorded
		if clusters := need.where[obj.GetNamespace()]; clusters != nil {
			of = dependency.RestrictTo(recorded, clusters)
		}
		wrote, err := r.attach(ctx, of, obj)
		news = news || wrote
		if err != nil {
			failures = append(failures, fmt.Errorf("%s %s: %w", obj.GetKind(), client.ObjectKeyFromObject(obj), err))
		}
	}
	for _, after := range unclear {
		again = commit.ShorterDelay(again, after)
	}
	if !need.complete {
		again = commit.ShorterDelay(again, unservedRetry)
	} else if err := r.detach(ctx, key, wanted, unclear); err != nil {
		failures = append(failures, err)
	}
	if news && len(failures) == 0 {
		r.events.RecordSuccess(workv1alpha2.EventGetDependenciesSucceed, "Get dependencies("+listed(refs)+") succeed.", tpl)
		r.events.RecordSuccess(workv1alpha2.EventSyncScheduleResultSucceed, "Sync schedule results to dependencies succeed.",
			recorded)
	}
	return r.verdict(recorded, tpl, again, failures)
}

// verdict returns the delay until the next look, at most after, 0 for never. It records events for failures that a
// retry will not fix.
func (r *reconciler) verdict(b workv1alpha2.Binding, tpl *unstructured.Unstructured, after time.Duration,
	failures []error) (time.Duration, error) {
	var lasting []error
	for _, err := range failures {
		switch {
		case commit.Stale(err) || apierrors.IsNotFound(err):
			after = commit.SlowRetry
		case errors.Is(err, propagate.ErrTerminating) || errors.Is(err, propagate.ErrOutlived):
			// The old binding is being deleted, which causes an event.
		default:
			lasting = append(lasting, err)
		}
	}
	if len(lasting) == 0 {
		r.recovers(client.ObjectKeyFromObject(b))
		return after, nil
	}
	err := errors.Join(lasting...)
	r.fails(b, tpl, workv1alpha2.EventSyncScheduleResultFailed, err)
	switch is := func(target error) bool {
		return !slices.ContainsFunc(lasting, func(err error) bool {
			return !errors.Is(err, target) && !errors.Is(err, dependency.ErrElsewhere)
		})
	}; {
	case is(dependency.ErrElsewhere):
		return after, nil // only a change of the template helps, which causes an event
	case is(propagate.ErrTaken):
		return takenRetry, nil
	}
	return 0, err
}

// lookUp returns the existing objects for the references of a template in a namespace, and all objects whose bindings
// are wanted. The latter include missing named objects, whose bindings are deleted with the object. unclear are the
// selected kinds that cannot be read now, with the delay until the next look.
func (r *reconciler) lookUp(ctx context.Context, namespace string,
	refs []configv1alpha1.DependentObjectReference) (objs []*unstructured.Unstructured, wanted []identity.Object,
	unclear map[schema.GroupKind]time.Duration, err error) {
	unclear = map[schema.GroupKind]time.Duration{}
	seen := map[types.UID]bool{}
	add := func(obj *unstructured.Unstructured) {
		if obj.GetDeletionTimestamp() == nil && dependency.MayFollow(namespace, obj) &&
			!propagate.Excluded(match.TemplateOf(obj)) && !seen[obj.GetUID()] {
			seen[obj.GetUID()] = true
			objs = append(objs, obj)
			wanted = append(wanted, identity.FromManifest(obj))
		}
	}
	for _, ref := range refs {
		gk := match.GroupKind(ref.APIVersion, ref.Kind)
		if ref.LabelSelector == nil {
			wanted = append(wanted, identity.Object{Group: gk.Group, Kind: gk.Kind, Namespace: ref.Namespace, Name: ref.Name})
			obj, found, err := r.Templates.Get(ctx, gk, ref.Namespace, ref.Name)
			if err != nil && !meta.IsNoMatchError(err) {
				return nil, nil, nil, err
			}
			if found {
				add(obj)
			}
			continue
		}
		if retry := r.unreadRetry(gk); retry > 0 {
			unclear[gk] = retry
		}
		for _, obj := range r.Templates.List(gk, ref.Namespace, nil) {
			selected, err := dependency.Selects(ref, obj)
			if err != nil {
				return nil, nil, nil, err
			}
			if selected {
				add(obj)
			}
		}
	}
	return objs, wanted, unclear, nil
}

// unreadRetry returns when to look again for objects of a kind that cannot be read now; 0 if they can be read.
func (r *reconciler) unreadRetry(gk schema.GroupKind) time.Duration {
	switch {
	case r.Templates.Unknown(gk):
		return unservedRetry
	case !r.Templates.Synced(gk):
		return unsyncedRetry
	}
	return 0
}

// attach attaches the binding of one dependency to b, and reports whether that is new.
func (r *reconciler) attach(ctx context.Context, b workv1alpha2.Binding,
	obj *unstructured.Unstructured) (wrote bool, err error) {
	gk := obj.GroupVersionKind().GroupKind()
	existing, _, err := scope.BindingFor(ctx, r.client, gk, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return false, err
	}
	want, err := dependency.Attach(b, obj, existing, uuid.NewString())
	if err != nil {
		return false, err
	}
	if existing == nil {
		name, err := scope.NewBindingName(ctx, r.client, gk, obj.GetNamespace(), obj.GetName())
		if err != nil {
			return false, err
		}
		want.SetName(name)
		return true, r.client.Create(ctx, want)
	}
	if err := r.reportConflicts(ctx, b, want); err != nil {
		return false, err
	}
	return commit.Update(ctx, r.client, existing, want)
}

// reportConflicts records an event on an attached binding if b and others require it with different policy settings,
// once until the conflict changes.
func (r *reconciler) reportConflicts(ctx context.Context, b, attached workv1alpha2.Binding) error {
	var conflicts []string
	if dependency.MayConflict(b, attached) {
		requiring := []workv1alpha2.Binding{b}
		for _, key := range requirers(attached) {
			if key == client.ObjectKeyFromObject(b) {
				continue
			}
			other, err := scope.Bindings.Get(ctx, r.client, key)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("get binding %s: %w", key, err)
			}
			if err == nil && dependency.Distributes(other) {
				requiring = append(requiring, other)
			}
		}
		conflicts = dependency.Conflicts(attached, requiring)
	}
	about := client.ObjectKeyFromObject(attached)
	if len(conflicts) == 0 {
		r.conflicts.Forget(about)
		return nil
	}
	what := strings.Join(conflicts, "; ")
	if granted := attached.BindingSpec(); r.conflicts.IsNew(about, what) {
		r.events.Eventf(attached, corev1.EventTypeWarning, workv1alpha2.EventDependencyPolicyConflict,
			"%s: policies of templates that depend on it have different settings; conflictResolution=%s and preserveResourcesOnDeletion=%t are in effect",
			what, granted.ConflictResolution, set(granted.PreserveResourcesOnDeletion))
	}
	return nil
}

// listed names the first dependencies with their kinds, for events.
func listed(refs []configv1alpha1.DependentObjectReference) string {
	var out []string
	for _, ref := range refs {
		name := ref.Name
		if ref.LabelSelector != nil {
			name = metav1.FormatLabelSelector(ref.LabelSelector)
		}
		out = append(out, ref.Kind+" "+types.NamespacedName{Namespace: ref.Namespace, Name: name}.String())
	}
	return text.Names(out, 10)
}

// willBeRecreated reports whether a binding is being deleted without a request. Then its dependencies stay until it is
// recreated. known is false while this cannot be decided.
func (r *reconciler) willBeRecreated(ctx context.Context, b workv1alpha2.Binding) (again, known bool, err error) {
	if b.GetDeletionTimestamp() == nil ||
		!controllerutil.ContainsFinalizer(b, workv1alpha2.DependenciesDistributorFinalizer) {
		return false, true, nil
	}
	ref := b.BindingSpec().Resource
	e := dispatch.End{}
	var found bool
	e.Template, found, err = r.Templates.Live(ctx, match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if e.Unserved = meta.IsNoMatchError(err); err != nil && !e.Unserved {
		return false, false, err
	}
	if !found {
		e.Template = nil
	}
	if b.GetNamespace() != "" {
		ns := &corev1.Namespace{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: b.GetNamespace()}, ns); client.IgnoreNotFound(err) != nil {
			return false, false, fmt.Errorf("get namespace %s: %w", b.GetNamespace(), err)
		}
		e.NamespaceGoes = ns.DeletionTimestamp != nil
	}
	ordered, known := dispatch.Ordered(b, e)
	return !ordered, known, nil
}

// awaitRecreation waits until a deleted binding that still has dependencies is recreated, and detaches them after a
// timeout. A requested deletion detaches them before.
func (r *reconciler) awaitRecreation(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	attached, err := r.attached(ctx, key)
	if err != nil {
		return 0, err
	}
	if len(attached) > 0 {
		since, _ := r.missing.LoadOrStore(key, time.Now())
		if left := recreateTimeout - time.Since(since.(time.Time)); left > 0 {
			return left, nil
		}
	}
	r.missing.Delete(key)
	return 0, r.detachAll(ctx, key, nil)
}

// detachAll detaches all dependencies of a binding and then removes its finalizer. b is nil if it does not exist. The
// keys to watch for it stay in the index.
func (r *reconciler) detachAll(ctx context.Context, key types.NamespacedName, b workv1alpha2.Binding,
	watched ...configv1alpha1.DependentObjectReference) error {
	r.index.set(key, watched)
	r.recovers(key)
	if err := r.detach(ctx, key, nil, nil); err != nil || b == nil {
		return err
	}
	want := dependency.Record(b, nil)
	controllerutil.RemoveFinalizer(want, workv1alpha2.DependenciesDistributorFinalizer)
	_, err := commit.Update(ctx, r.client, b, want)
	return err
}

// attached returns the bindings that are attached to the one with the key. They are read-only.
func (r *reconciler) attached(ctx context.Context, key types.NamespacedName) ([]workv1alpha2.Binding, error) {
	all, err := scope.Bindings.List(ctx, r.client, client.MatchingFields{byIndependent: mark(key)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the bindings attached to %s: %w", key, err)
	}
	return all, nil
}

// detach detaches the bindings that are not wanted, except those of kinds for which that is unclear.
func (r *reconciler) detach(ctx context.Context, key types.NamespacedName, wanted []identity.Object,
	unclear map[schema.GroupKind]time.Duration) error {
	attached, err := r.attached(ctx, key)
	if err != nil {
		return err
	}
	var failures []error
	for _, b := range dependency.Leaving(key, wanted, attached) {
		if ref := b.BindingSpec().Resource; unclear[match.GroupKind(ref.APIVersion, ref.Kind)] > 0 {
			continue
		}
		want, remove := dependency.Detach(key, b)
		if remove {
			failures = append(failures, r.remove(ctx, b, want))
			continue
		}
		_, err := commit.Update(ctx, r.client, b, want)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// remove deletes an attached binding, unless it changed since it was read: another one may require it now. First it
// writes that nothing requires it, because a binding that is deleted while others need it is recreated. The labels
// stay, so that it is found again if only the first write succeeds.
func (r *reconciler) remove(ctx context.Context, b, want workv1alpha2.Binding) error {
	if b.GetDeletionTimestamp() != nil && len(b.BindingSpec().RequiredBy) == 0 {
		return nil
	}
	want.SetLabels(b.GetLabels())
	if _, err := commit.Update(ctx, r.client, b, want); err != nil {
		return client.IgnoreNotFound(err)
	}
	if b.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, version := want.GetUID(), want.GetResourceVersion()
	err := r.client.Delete(ctx, want, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", commit.Name(b), err)
	}
	return nil
}

// objectChanged enqueues the bindings that depend on an object that was created, changed or deleted.
func (r *reconciler) objectChanged(add func(reconcile.Request)) template.Handler {
	return func(was, is *unstructured.Unstructured) {
		enqueue(add, r.injections.moved(was, is))
		if was != nil && is != nil && propagate.SameContent(was, is) {
			return
		}
		if is != nil {
			enqueue(add, r.leaders.followedBy(is))
		}
		for _, obj := range []*unstructured.Unstructured{was, is} {
			if obj != nil {
				enqueue(add, r.index.dependents(obj))
			}
		}
	}
}

func enqueue(add func(reconcile.Request), keys []types.NamespacedName) {
	for _, key := range keys {
		add(reconcile.Request{NamespacedName: key})
	}
}

// bindingChanged enqueues a changed binding, and the requirers of an attached binding whose marks were changed.
func (r *reconciler) bindingChanged() handler.TypedFuncs[workv1alpha2.Binding, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[workv1alpha2.Binding, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[workv1alpha2.Binding], q queue) {
			enqueue(q.Add, r.injections.placed(e.Object))
			if concerned(e.Object) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[workv1alpha2.Binding], q queue) {
			was, is := e.ObjectOld, e.ObjectNew
			if !sameClusters(was, is) {
				enqueue(q.Add, r.injections.placed(is))
			}
			if (concerned(was) || concerned(is)) && changesDependencies(was, is) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(is)})
			}
			// Enqueue only the affected requirers. Each writes the binding once and would trigger all others.
			for _, key := range requirers(was) {
				if !dependency.SameMarks(was, is, key) || !dependency.SameClaim(was, is) {
					q.Add(reconcile.Request{NamespacedName: key})
				}
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[workv1alpha2.Binding], q queue) {
			r.conflicts.Forget(client.ObjectKeyFromObject(e.Object))
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
			enqueue(q.Add, r.injections.placed(e.Object))
			enqueue(q.Add, requirers(e.Object))
			enqueue(q.Add, r.heirs(ctx, e.Object))
		},
	}
}

// changesDependencies reports whether a change of a binding may change what is attached to it.
func changesDependencies(was, is workv1alpha2.Binding) bool {
	return was.GetGeneration() != is.GetGeneration() ||
		(was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil) ||
		was.GetAnnotations()[workv1alpha2.DependenciesAnnotation] !=
			is.GetAnnotations()[workv1alpha2.DependenciesAnnotation] ||
		!slices.Equal(was.GetFinalizers(), is.GetFinalizers()) ||
		dispatch.Repaced(was, is) && !slices.Equal(dispatch.RevisionsOf(was), dispatch.RevisionsOf(is)) ||
		changesOldPods(was, is)
}

// heirs returns the bindings that depend on the template of a deleted one. They may have waited for this deletion.
func (r *reconciler) heirs(ctx context.Context, gone workv1alpha2.Binding) []types.NamespacedName {
	ref := gone.BindingSpec().Resource
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(ref.APIVersion)
	obj.SetKind(ref.Kind)
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	if gk := obj.GroupVersionKind().GroupKind(); r.Templates.Synced(gk) { // synced, so the cache has it
		if there, found, err := r.Templates.Get(ctx, gk, ref.Namespace, ref.Name); err == nil && found {
			obj = there // the object with its labels
		}
	}
	return r.index.dependents(obj)
}

// concerned reports whether a binding has dependencies, or had some and still has marks of it.
func concerned(b workv1alpha2.Binding) bool {
	return b.BindingSpec().PropagateDeps || b.GetAnnotations()[workv1alpha2.DependenciesAnnotation] != "" ||
		controllerutil.ContainsFinalizer(b, workv1alpha2.DependenciesDistributorFinalizer)
}

// requirers returns the bindings to which b is attached.
func requirers(b workv1alpha2.Binding) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, s := range b.BindingSpec().RequiredBy {
		keys = append(keys, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
	}
	return keys
}

// independents returns the values of the index byIndependent.
func independents(obj client.Object) []string {
	var marks []string
	for label := range obj.GetLabels() {
		if strings.HasPrefix(label, workv1alpha2.DependedByLabelPrefix) {
			marks = append(marks, label)
		}
	}
	for _, key := range requirers(obj.(workv1alpha2.Binding)) {
		marks = append(marks, mark(key))
	}
	slices.Sort(marks)
	return slices.Compact(marks)
}

func mark(key types.NamespacedName) string {
	return names.DependedByLabel(workv1alpha2.DependedByLabelPrefix, key.Namespace, key.Name)
}

func set(b *bool) bool { return b != nil && *b }

// fails records an event on a binding and its template about a failure, once until the message changes.
func (r *reconciler) fails(b workv1alpha2.Binding, tpl *unstructured.Unstructured, reason string, err error) {
	if !r.reported.IsNew(client.ObjectKeyFromObject(b), reason+": "+err.Error()) {
		return
	}
	r.events.Event(b, corev1.EventTypeWarning, reason, err.Error())
	r.events.Event(tpl, corev1.EventTypeWarning, reason, err.Error())
}

// recovers forgets the last failure event.
func (r *reconciler) recovers(key types.NamespacedName) { r.reported.Forget(key) }
