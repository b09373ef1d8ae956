// Package execute applies Works: it brings the member's object to the Work's manifest, and reports the result in the
// Work's status. core/execute decides what to do to an object and what to report, core/workload/interpret what the
// object's status means.
package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/rollout"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

// Options of the controller.
type Options struct {
	Members     *member.Members
	Interpreter interpret.Interpreter
	// Workers is the number of Works that are carried out at once in each cluster.
	Workers int
	// StatusWindow is the longest delay of a write of mere progress: of a status that leaves health and conditions as they
	// are, and of the first status of a new object. In a burst the delay is longer, see commit.Pace.
	StatusWindow time.Duration
	// FirstRetry is the delay before the first retry of a failure. It doubles with each retry. The default is 100 ms.
	FirstRetry time.Duration
	// Definitions watches the definitions of the hub's own kinds: while one is missing, nothing is deleted in a member.
	Definitions *definition.Watch
	// Deletions limits deletions by others. The default is DefaultDeletions without Settle.
	Deletions *Deletions
	// NoBindings is true for an agent, which cannot read bindings.
	NoBindings bool
	// ContentsTimeout is the time for which the contents of a namespace or definition that is to be deleted may be
	// unknown, until it is released instead. Default: 30 s.
	ContentsTimeout time.Duration
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
	// ReadRestore reports whether the hub was restored from a backup and no user has accepted that yet. By default it
	// reads the ConfigMap of the restore.
	ReadRestore func(context.Context) (bool, error)
	// PublishUnchecked gets the number of Works per cluster whose objects were not checked since a restore. By default it
	// annotates the ConfigMap of the restore.
	PublishUnchecked func(context.Context, map[string]int) error
	// RestoreCheck is the time between two calls of ReadRestore while a restore is pending. The default is 5 s.
	RestoreCheck time.Duration
	// Report, when set, gets a function that counts the orphans in each cluster, and the Works paused after a restore.
	Report func(func() (orphans map[string]int, paused int))
}

// DefaultDeletions allows ten deletions by others within a minute.
var DefaultDeletions = Deletions{Bound: 10, Settle: 5 * time.Second}

// reconciler applies Works: it reads a Work and its object, calls the core for the action, and carries it out.
type reconciler struct {
	client      client.Client
	clock       clock.PassiveClock
	members     *member.Members
	interpreter interpret.Interpreter
	lanes       *lanes
	memory      *memory
	reporter    *reporter
	drift       *drift
	deletions   *deletions
	kept        *keptObjects
	restore     *restore
	triggers    *triggers
	klusterlets *klusterlets
}

const (
	// namespaceCheck is the delay before the next attempt while the object's namespace is on its way to the member. The
	// event of the namespace usually comes first.
	namespaceCheck = time.Second
	// deletionCheck is the delay before another look at an object whose deletion the member accepted. Its event usually
	// comes first.
	deletionCheck = 2 * time.Second
	// missingCheck is the delay before another look at an object that runs once and is missing. The event with its last
	// state usually comes first.
	missingCheck = time.Second
	// foreignCheck is the delay before another check of a foreign object that blocks a creation. Such objects
	// have no events.
	foreignCheck = 30 * time.Second
	// maxAttempts bounds the attempts in one pass if the object differs from its state in the cache. Another writer in the
	// member can change it each time.
	maxAttempts = 5
)

// Setup registers the controller with the manager, and for the events of members.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.ReadRestore == nil {
		o.ReadRestore = readRestoreMark(mgr.GetAPIReader())
	}
	if o.PublishUnchecked == nil {
		o.PublishUnchecked = annotateRestoreMark(mgr.GetClient())
	}
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), commit.Recorder(mgr, "execution-controller"), o)
	if o.Report != nil {
		o.Report(r.countOrphansAndPaused)
	}
	r.klusterlets = &klusterlets{reconciler: r, mapper: mgr.GetRESTMapper()}
	t := r.triggers
	o.Members.Handle(t.memberEvent)
	o.Members.OnAnswer(t.memberAnswers)
	o.Members.OnScaler(t.scalerChanged)
	o.Members.OnBrake(r.brakeChanged)
	interpreter.OnChange(o.Interpreter, t.kindsChanged)
	err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, byWaitingObject, indexWaitingObject)
	if err != nil {
		return fmt.Errorf("index works by the object that they may wait for: %w", err)
	}
	type watch struct {
		kind    client.Object
		handler cache.ResourceEventHandlerFuncs
	}
	watches := []watch{
		{&workv1alpha1.Work{}, cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { t.workChanged(nil, obj) }, UpdateFunc: t.workChanged, DeleteFunc: t.workGone,
		}},
		{&clusterv1alpha1.Cluster{}, cache.ResourceEventHandlerFuncs{
			AddFunc: t.clusterJoined, UpdateFunc: t.clusterChanged, DeleteFunc: t.clusterGone,
		}},
	}
	if !o.NoBindings {
		watches = append(watches, watch{&ocmv1.ManifestWork{}, cache.ResourceEventHandlerFuncs{
			AddFunc: t.manifestWorkChanged, UpdateFunc: func(_, obj any) { t.manifestWorkChanged(obj) },
			DeleteFunc: t.manifestWorkChanged,
		}})
	}
	for _, watch := range watches {
		informer, err := mgr.GetCache().GetInformer(ctx, watch.kind)
		if err == nil {
			_, err = informer.AddEventHandler(watch.handler)
		}
		if err != nil {
			return fmt.Errorf("watch %T: %w", watch.kind, err)
		}
	}
	return mgr.Add(r)
}

func newReconciler(c client.Client, live client.Reader, events commit.Events, o Options) *reconciler {
	o.ContentsTimeout = cmp.Or(o.ContentsTimeout, 30*time.Second)
	o.FirstRetry = cmp.Or(o.FirstRetry, 100*time.Millisecond)
	o.RestoreCheck = cmp.Or(o.RestoreCheck, 5*time.Second)
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	if o.Deletions == nil {
		o.Deletions = &Deletions{Bound: DefaultDeletions.Bound}
	}
	m := newMemory()
	r := &reconciler{client: c, clock: o.Clock, members: o.Members, interpreter: o.Interpreter, memory: m}
	r.lanes = &lanes{workers: max(o.Workers, 1), reconcile: r.reconcile, stray: r.reconcileStray, clock: o.Clock,
		firstRetry: o.FirstRetry}
	r.drift = &drift{memory: m, clock: o.Clock}
	r.restore = &restore{client: c, members: o.Members, memory: m, read: o.ReadRestore, publish: o.PublishUnchecked,
		interval: o.RestoreCheck}
	r.reporter = &reporter{client: c, events: events, clock: o.Clock, interpreter: o.Interpreter, memory: m,
		drift: r.drift, window: o.StatusWindow}
	r.deletions = &deletions{client: c, live: live, events: events, clock: o.Clock, definitions: o.Definitions,
		limits: *o.Deletions, noBindings: o.NoBindings, contentsTimeout: o.ContentsTimeout, memory: m, restore: r.restore,
		others: deletedByOthers{works: map[types.UID]*deletedWork{}}}
	r.kept = &keptObjects{client: c, members: o.Members, events: events, clock: o.Clock,
		clusters: map[string]*keptInCluster{}}
	r.triggers = &triggers{client: c, clock: o.Clock, members: o.Members, lanes: r.lanes, memory: m,
		noBindings: o.NoBindings, others: &r.deletions.others}
	return r
}

// Start implements manager.Runnable.
func (r *reconciler) Start(ctx context.Context) error {
	// First of all: after a restore, objects may be newer than the store.
	if err := r.restore.follow(ctx); err != nil {
		return err
	}
	if err := r.kept.load(ctx); err != nil {
		return err
	}
	r.lanes.start(ctx)
	var all workv1alpha1.WorkList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list works: %w", err)
	}
	for i := range all.Items {
		r.triggers.workChanged(nil, &all.Items[i])
	}
	r.kept.run(ctx)
	r.lanes.stop()
	return nil
}

func (r *reconciler) reconcile(ctx context.Context, cluster string, key types.NamespacedName) outcome {
	byKlusterlet := false
	if cl, err := readCluster(ctx, r.client, cluster); err == nil && !r.members.Serves(cl) {
		if byKlusterlet = r.triggers.acts(cl); !byKlusterlet {
			return outcome{} // its agent carries out the Work
		}
	}
	work, err := r.newest(ctx, key)
	if apierrors.IsNotFound(err) {
		r.memory.forget(key) // its object stayed in the member, and was deleted there later
		return outcome{}
	}
	if err != nil {
		return outcome{err: err}
	}
	switch {
	case byKlusterlet && work.DeletionTimestamp != nil:
		return r.klusterlets.remove(ctx, cluster, work)
	case byKlusterlet:
		return r.klusterlets.apply(ctx, cluster, work)
	case work.DeletionTimestamp != nil:
		return retryStale(r.remove(ctx, cluster, work))
	}
	report, after, err := r.apply(ctx, cluster, work)
	if report == nil {
		return retryStale(after, err)
	}
	return outcome{report: func() outcome { return retryStale(report()) }}
}

// retryStale retries soon what was decided on a stale state.
func retryStale(after time.Duration, err error) outcome {
	if errors.As(err, new(*staleError)) {
		return outcome{after: commit.StaleRetry}
	}
	return outcome{after: after, err: err}
}

// reconcileStray handles a Work of a cluster that is not registered: nothing is applied, and its deletion succeeds.
func (r *reconciler) reconcileStray(ctx context.Context, cluster string, key types.NamespacedName) outcome {
	if _, err := readCluster(ctx, r.client, cluster); !apierrors.IsNotFound(err) {
		return outcome{err: err} // The cluster has just joined. Its event queues all its Works.
	}
	work := &workv1alpha1.Work{}
	if err := r.client.Get(ctx, key, work); err != nil || work.DeletionTimestamp == nil {
		return outcome{err: client.IgnoreNotFound(err)}
	}
	return outcome{err: r.removeFinalizers(ctx, work)}
}

// apply updates the member's object to the Work's manifest. The caller must pass the result to report if it is not nil.
func (r *reconciler) apply(ctx context.Context, cluster string,
	work *workv1alpha1.Work) (report func() (time.Duration, error), after time.Duration, err error) {
	key := client.ObjectKeyFromObject(work)
	failed := func(gone bool, cause error) (func() (time.Duration, error), time.Duration, error) {
		return nil, 0, r.reporter.failed(ctx, work, gone, cause)
	}

	// 1. Read the member's object.
	m, err := r.member(ctx, cluster)
	switch {
	case errors.Is(err, errClusterGone), errors.Is(err, errNoStatus):
		return nil, 0, nil
	case err != nil:
		return failed(false, err)
	}
	manifest, err := execute.Manifest(work)
	if err != nil {
		return failed(false, err)
	}
	observed, err := observe(ctx, m, manifest)
	if errors.Is(err, member.ErrKindNotServed) {
		r.restore.record(work, restoreChecked) // The object was deleted with its kind.
	}
	if err != nil {
		return failed(false, err)
	}
	o := execute.Outcome{Manifest: manifest}
	reportObject := func(object *unstructured.Unstructured) (func() (time.Duration, error), time.Duration, error) {
		return func() (time.Duration, error) { return r.reporter.report(ctx, m, work, object, o) }, 0, nil
	}

	// 2. Act on it.
	brake, err := m.Brake(ctx, manifest.GetNamespace())
	if err != nil {
		return failed(false, err)
	}
	o.ScaledBy = r.scaledBy(ctx, m, work, manifest, observed)
	action, observed, err := r.act(ctx, m, work, manifest, observed, brake, o.ScaledBy != "")
	if observed != nil {
		r.memory.update(key, func(r *workRecord) { r.missed = false })
	}
	owned := observed != nil && execute.Owns(work, observed)
	switch action.Kind {
	case execute.Finish:
		return reportObject(action.Object)
	case execute.Recheck:
		r.memory.update(key, func(r *workRecord) { r.missed = true })
		return nil, missingCheck, nil
	case execute.Pause:
		o.Restored = action.Reason
		return reportObject(observed)
	case execute.Leave:
		o.HandsOff = action.Reason
		if !owned {
			observed = nil
		}
		return reportObject(observed)
	}
	if err != nil {
		r.restore.record(work, restoreChecked)
		if commit.NamespaceMissing(err) {
			// In this order: the namespace may arrive in between.
			r.memory.waitFor(key, memberNamespace{cluster, manifest.GetNamespace()})
			if apierrors.IsNotFound(err) && r.namespaceFollows(ctx, work, manifest) {
				return nil, namespaceCheck, nil
			}
		}
		return failed(!owned && !member.Unreachable(err), err)
	}
	r.memory.waitFor(key, memberNamespace{})
	r.restore.record(work, restoreSettled)
	if action.Kind == execute.Wait {
		return nil, deletionCheck, nil
	}
	if observed == nil && execute.Over(work) && !execute.Ended(work) {
		r.reporter.warn(work, workv1alpha2.EventReflectStatusFailed,
			fmt.Errorf("%s %s was deleted in cluster %q, which deletes finished objects; its completion was not observed, "+
				"and it is not run again: to run it again, delete and recreate the template", manifest.GetKind(),
				manifest.GetName(), cluster))
	}
	if action.Kind == execute.Create || action.Kind == execute.Apply {
		r.memory.applied.Add(client.ObjectKeyFromObject(work), commit.VersionOf(work))
	}
	var foreign time.Duration
	if !owned && observed != nil && execute.CreateOnly(work) && !execute.Suspended(work) {
		foreign = foreignCheck
	}
	if !owned {
		observed = nil
	}
	if observed != nil && !execute.Suspended(work) {
		// A user's approval on the hub becomes a part of the status in the member. It cannot be applied with the object.
		switch patch := rollout.Grant(cluster, observed); {
		case patch != nil && brake != "":
			o.HandsOff = brake.Reason()
		case patch != nil:
			granted, err := m.PatchStatus(ctx, observed, patch)
			if apierrors.IsConflict(err) {
				return nil, commit.StaleRetry, nil
			}
			if err != nil {
				return failed(false, err)
			}
			log.Info("approved", "cluster", cluster, "rollout", client.ObjectKeyFromObject(observed), "patch", patch["status"])
			observed = granted
		}
	}
	if observed != nil && execute.IsNamespace(manifest) {
		r.triggers.namespaceExists(cluster, manifest.GetName())
	}

	// 3. Report.
	return func() (time.Duration, error) {
		next, err := r.reporter.report(ctx, m, work, observed, o)
		return commit.ShorterDelay(next, foreign), err
	}, 0, nil
}

// scaledBy returns the message of the condition ScaledByMember; empty if no autoscaler in the member sets the replicas
// of the manifest's object. It asks the member only if the replicas there are not the hub's, the condition is set, or a
// rollout keeps pods of the old revision: scaling would then create pods of the new one. While the member's autoscalers
// are unknown, the condition stays.
func (r *reconciler) scaledBy(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	manifest, observed *unstructured.Unstructured) string {
	before := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkScaledByMember)
	if observed == nil || before == nil && !execute.Scaled(manifest, observed) && !execute.KeepsOld(manifest) {
		return ""
	}
	scaler, known := m.Scaler(ctx, execute.Target{GroupKind: manifest.GroupVersionKind().GroupKind(),
		Namespace: manifest.GetNamespace(), Name: manifest.GetName()})
	switch {
	case !known && before != nil:
		return before.Message
	case scaler == "":
		return ""
	}
	return scaler + " in the cluster sets its replicas, which are kept."
}

// remove deletes or releases the member's object, and releases the Work when that is done.
func (r *reconciler) remove(ctx context.Context, cluster string, work *workv1alpha1.Work) (time.Duration, error) {
	// 1. Decide whether the deletion concerns the object at all.
	if !controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionFinalizer) {
		return 0, r.removeFinalizers(ctx, work)
	}
	manifest, err := execute.Manifest(work)
	if err != nil {
		return 0, r.removeFinalizers(ctx, work) // A manifest that cannot be read was never applied.
	}
	switch kind, after, why, err := r.deletions.judge(ctx, cluster, work); {
	case err != nil:
		return r.reporter.stuck(work, err)
	case kind == execute.EndWaits:
		return after, nil
	case kind == execute.EndKept:
		log.Info("kept the object of a Work that others deleted", "cluster", cluster, "work", work.Name, "why",
			why)
		err := r.removeFinalizers(ctx, work)
		if err == nil {
			r.kept.add(cluster, why)
		}
		return 0, err
	}

	// 2. Read the member's object.
	m, err := r.member(ctx, cluster)
	if errors.Is(err, errClusterGone) {
		return 0, r.removeFinalizers(ctx, work)
	}
	if err != nil {
		return r.reporter.stuck(work, err)
	}
	observed, err := observe(ctx, m, manifest)
	if errors.Is(err, member.ErrKindNotServed) && isUnserved(ctx, m, manifest) {
		return 0, r.removeFinalizers(ctx, work) // The objects were deleted with their kind.
	}
	if err == nil && (observed == nil || execute.Anothers(work, observed)) {
		// The cache may not show yet what we created or adopted.
		observed, err = m.Get(ctx, manifest.GroupVersionKind(), manifest.GetNamespace(), manifest.GetName())
	}
	if err != nil {
		return r.reporter.stuck(work, err)
	}

	// 3. Keep, release or delete it.
	brake, err := m.Brake(ctx, manifest.GetNamespace())
	if err != nil {
		return r.reporter.stuck(work, err)
	}
	leaves := work
	if observed != nil {
		decision := r.members.Hub().Decide(work, nil, observed, r.situation(work, manifest, brake))
		if decision.Kind == execute.Leave {
			cl, err := readCluster(ctx, r.client, cluster)
			if err != nil {
				return 0, err
			}
			if cl.DeletionTimestamp != nil {
				return 0, r.removeFinalizers(ctx, work) // The object stays in the cluster that leaves.
			}
			return 0, r.reporter.reportBlocked(ctx, work, execute.Outcome{HandsOff: decision.Reason})
		}
		keeps, after, err := r.deletions.keepsObject(ctx, m, work, manifest, observed, decision.Kind)
		switch {
		case err != nil:
			return r.reporter.stuck(work, err)
		case after > 0:
			return after, nil
		case keeps:
			leaves = work.DeepCopy()
			leaves.Spec.PreserveResourcesOnDeletion = new(true)
		case decision.Kind == execute.Pause:
			// A user may accept the restore from now on; the contents of the object are not checked.
			return 0, r.reporter.reportBlocked(ctx, work, execute.Outcome{Manifest: manifest, Restored: decision.Reason})
		}
	}
	action, _, err := r.act(ctx, m, leaves, manifest, observed, brake, false)
	switch {
	case action.Kind == execute.Pause:
		return 0, r.reporter.reportBlocked(ctx, work, execute.Outcome{Manifest: manifest, Restored: action.Reason})
	case err != nil:
		r.restore.record(work, restoreChecked)
		return r.reporter.stuck(work, err)
	}
	if action.Kind == execute.Leave {
		return commit.StaleRetry, nil // A user set the annotation in between.
	}
	r.restore.record(work, restoreSettled)
	if action.Kind == execute.Delete || action.Kind == execute.Wait {
		return deletionCheck, nil
	}
	return 0, r.removeFinalizers(ctx, work)
}

// removeFinalizers removes our finalizers from a Work that is being deleted.
func (r *reconciler) removeFinalizers(ctx context.Context, work *workv1alpha1.Work) error {
	return markStale(commit.RemoveFinalizer(ctx, r.client, work, workv1alpha2.ExecutionFinalizer,
		execute.OrderedFinalizer))
}

// isUnserved reports whether the member certainly does not serve the kind. An aggregated API that is down is missing
// from the list of kinds as well.
func isUnserved(ctx context.Context, m *member.Member, manifest *unstructured.Unstructured) bool {
	apis, err := m.Discover(ctx)
	if err != nil {
		return false
	}
	for failed := range apis.Failed {
		if gv, err := schema.ParseGroupVersion(failed); err != nil || gv.Group == manifest.GroupVersionKind().Group {
			return false
		}
	}
	_, err = m.Mapping(ctx, manifest.GroupVersionKind())
	return errors.Is(err, member.ErrKindNotServed)
}

var (
	// errClusterGone means that a cluster has left, or leaves and cannot be reached.
	errClusterGone = errors.New("the cluster no longer exists")
	// errNoStatus means that a cluster has just joined. Its condition Ready is an event.
	errNoStatus = errors.New("the status of the cluster has not been collected yet")
)

// awayError means that a cluster is known not to answer, and was not asked. Its recovery is an event.
type awayError struct {
	cluster, why string
	// otherHub is the message about the hub that manages the member instead of this one; empty for none.
	otherHub string
}

func (e *awayError) Error() string {
	return fmt.Sprintf("cluster %q is not ready (%s); the hub retries when it is", e.cluster, e.why)
}

// readCluster returns a cluster from the cache. The caller must not change it.
func readCluster(ctx context.Context, c client.Reader, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	return cluster, c.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy)
}

// member returns the member of a cluster, or errClusterGone, errNoStatus or an awayError.
func (r *reconciler) member(ctx context.Context, cluster string) (*member.Member, error) {
	cl, err := readCluster(ctx, r.client, cluster)
	if apierrors.IsNotFound(err) {
		return nil, errClusterGone
	}
	if err != nil {
		return nil, err
	}
	switch ready := membership.Readiness(cl); {
	case membership.IsReady(cl):
	case cl.DeletionTimestamp != nil:
		return nil, errClusterGone
	case !hasStatus(cl):
		return nil, errNoStatus
	default:
		away := &awayError{cluster: cluster, why: ready.Reason + ": " + ready.Message}
		if membership.ManagedByAnother(cl) {
			away.otherHub = ready.Message
		}
		return nil, away
	}
	m, err := r.members.Get(cluster)
	if err != nil {
		return nil, &hubError{err}
	}
	r.triggers.memberUsed(cluster, m)
	return m, nil
}

// observe returns the manifest's object in the member; nil for none. It reads the cache once the kind is watched.
func observe(ctx context.Context, m *member.Member,
	manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
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

// situation returns what the hub knows of a Work's object besides the object.
func (r *reconciler) situation(work *workv1alpha1.Work, manifest *unstructured.Unstructured,
	brake execute.Brake) execute.Situation {
	return execute.Situation{Finished: r.memory.finishedObject(work, manifest),
		Missed: r.memory.factsOf(client.ObjectKeyFromObject(work)).missed, Brake: brake,
		Unsettled: r.restore.unsettled(work), RepairAfter: r.drift.pause(work)}
}

// act carries out the core's decision, and tries again if the object differs from its state in the cache. It returns
// the object after the action, or before it in case of an error. scaled means that an autoscaler in the member sets the
// replicas.
func (r *reconciler) act(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	manifest, observed *unstructured.Unstructured, brake execute.Brake,
	scaled bool) (execute.Action, *unstructured.Unstructured, error) {
	for attempt := 1; ; attempt++ {
		action, after, err := r.actOnce(ctx, m, work, manifest, observed, brake, scaled)
		if attempt == maxAttempts || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) ||
			member.FieldConflict(err) {
			return action, after, err
		}
		if observed, err = m.Get(ctx, manifest.GroupVersionKind(), manifest.GetNamespace(), manifest.GetName()); err != nil {
			return action, nil, err
		}
	}
}

func (r *reconciler) actOnce(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	manifest, observed *unstructured.Unstructured, brake execute.Brake,
	scaled bool) (execute.Action, *unstructured.Unstructured, error) {
	var desired *unstructured.Unstructured
	if work.DeletionTimestamp == nil {
		var err error
		desired, err = execute.Desired(work, observed,
			func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				retained, err := r.interpreter.Retain(ctx, desired, observed)
				if err != nil {
					return nil, err
				}
				if scaled {
					return ocm.Leave(work, execute.KeepScaled(retained, observed), observed)
				}
				retained, overruled := execute.Share(desired, retained, observed, member.Manager)
				if overruled {
					r.reporter.warnOverruled(work, desired)
				}
				return ocm.Leave(work, retained, observed)
			})
		if err != nil {
			return execute.Action{}, observed, err
		}
	}
	action := r.members.Hub().Decide(r.memory.withApplied(work), desired, observed,
		r.situation(work, manifest, brake))
	after, err := write(ctx, m, action, observed)
	if member.NodePortRefused(err) {
		if without, ok := interpret.WithoutAllocatedNodePorts(action.Object); ok {
			action.Object = without
			after, err = write(ctx, m, action, observed)
		}
	}
	switch action.Kind {
	case execute.Delete:
		err = m.Delete(ctx, observed)
	case execute.Release:
		after, err = nil, m.Release(ctx, observed)
	case execute.Conflict:
		err = &conflictError{action}
	}
	switch {
	case action.Kind == execute.Nothing:
		r.drift.settled(work, observed)
	case err == nil && (action.Kind == execute.Create || action.Kind == execute.Apply):
		r.drift.wrote(work, action, observed, after)
	}
	if action.Kind != execute.Nothing {
		log.V(1).Info("acted", "cluster", m.Name, "work", work.Name, "action", action.Kind, "reason", action.Reason, "error",
			err)
	}
	if err != nil {
		after = observed
	}
	return action, after, err
}

// write creates or applies the object of an action. It returns observed for other actions.
func write(ctx context.Context, m *member.Member, action execute.Action,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch {
	case action.Kind == execute.Create:
		return m.Create(ctx, action.Object)
	case action.Kind == execute.Apply && action.Yields:
		return m.ApplyYielding(ctx, action.Object, observed)
	case action.Kind == execute.Apply:
		return m.Apply(ctx, action.Object, observed)
	}
	return observed, nil
}

// namespaceFollows reports whether the namespace of the manifest is on its way to the same member, or has just arrived.
// A missing namespace is no failure then.
func (r *reconciler) namespaceFollows(ctx context.Context, work *workv1alpha1.Work,
	manifest *unstructured.Unstructured) bool {
	of := identity.Object{Kind: "Namespace", Name: manifest.GetNamespace()}
	either := names.Either(names.Work(of.Kind, of.Name, ""), of.GroupKind(), of.Name, "")
	ns, err := r.newest(ctx, types.NamespacedName{Namespace: work.Namespace, Name: either[0]})
	if err != nil || !execute.IsOf(ns, of) {
		ns, err = r.newest(ctx, types.NamespacedName{Namespace: work.Namespace, Name: either[1]})
	}
	if err != nil || ns.DeletionTimestamp != nil {
		return false
	}
	applied := meta.FindStatusCondition(ns.Status.Conditions, workv1alpha1.WorkApplied)
	return applied == nil || applied.Status == metav1.ConditionTrue &&
		r.clock.Since(applied.LastTransitionTime.Time) < 2*namespaceCheck
}

// countOrphansAndPaused returns the number of objects in members that are marked as this hub's but have no Work, by
// cluster, and the number of Works paused after a restore. It reads caches only, so kinds that are not watched are
// missing.
func (r *reconciler) countOrphansAndPaused() (orphans map[string]int, paused int) {
	if !r.lanes.running() {
		return nil, 0
	}
	ctx := context.Background()
	var clusters clusterv1alpha1.ClusterList
	if err := r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		log.Error(err, "list clusters")
		return nil, 0
	}
	orphans = map[string]int{}
	for i := range clusters.Items {
		m := r.members.Known(clusters.Items[i].Name)
		if m == nil || clusters.Items[i].DeletionTimestamp != nil {
			continue
		}
		n := 0
		m.EachManaged(func(u *unstructured.Unstructured) {
			key, ok := execute.WorkOf(u, m.Name)
			if !ok || !apierrors.IsNotFound(r.client.Get(ctx, key, &workv1alpha1.Work{}, client.UnsafeDisableDeepCopy)) {
				return
			}
			gk := u.GroupVersionKind().GroupKind()
			if interpret.RunsOnce(gk) {
				b, _, err := scope.BindingFor(ctx, r.client, gk, u.GetNamespace(), u.GetName(), client.UnsafeDisableDeepCopy)
				if err == nil && dispatch.EndedThere(b, u) {
					return
				}
			}
			n++
		})
		if n > 0 {
			orphans[m.Name] = n
		}
	}
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.UnsafeDisableDeepCopy); err != nil {
		log.Error(err, "list works")
		return orphans, 0
	}
	for i := range works.Items {
		if meta.IsStatusConditionTrue(works.Items[i].Status.Conditions, workv1alpha1.WorkHeldAfterRestore) {
			paused++
		}
	}
	return orphans, paused
}

var log = ctrl.Log.WithName("execute")

// staleError means that a write to the hub failed because the state it was based on is old. Conflicts in a member are
// none.
type staleError struct{ error }

func (e *staleError) Unwrap() error { return e.error }

// markStale marks the errors of writes to the hub, and drops the error if the object is gone.
func markStale(err error) error {
	if commit.Stale(err) {
		return &staleError{err}
	}
	return client.IgnoreNotFound(err)
}
