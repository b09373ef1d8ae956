// Package execute carries Works out: it makes the member's object what the Work says, and reports in the Work's status
// what the member answers. What to do to an object is decided by core/execute, what its status means by core/interpret.
package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/ocm"
	"github.com/argosy-io/argosy/internal/core/rollout"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/member"
)

// Options of the controller.
type Options struct {
	Members     *member.Members
	Interpreter interpret.Interpreter
	// Workers is the number of Works under way at once in each cluster.
	Workers int
	// StatusWindow is how long news of progress may wait for more: that an object is there and on its way, and a change
	// that leaves health and conditions as they are. In a burst it waits longer, see commit.Pace.
	StatusWindow time.Duration
	// FirstRetry is how soon a failure is tried again at first, with doubling delays after that; default 100 ms.
	FirstRetry time.Duration
	// Definitions are the hub's own: while one is missing, nothing is deleted in a member.
	Definitions *definition.Watch
	// Deletions is what becomes of Works that others delete; default DefaultDeletions without waiting.
	Deletions *Deletions
	// UnseenSettle is how long what a namespace or a definition would take along, and cannot be seen, is asked for again
	// before it is taken for something that stays; default 30 s.
	UnseenSettle time.Duration
	// Clock is the time; default the real one.
	Clock clock.PassiveClock
	// Restored says whether the hub was restored from a backup, and nobody has accepted yet what follows. By default it
	// asks the hub.
	Restored func(context.Context) (bool, error)
	// TellUnseen is told, while a restore stands, how many Works of each cluster were not looked at since. By default it
	// tells the hub.
	TellUnseen func(context.Context, map[string]int) error
	// RestoreCheck is how often it is looked whether a restore was accepted, as long as it is not; default 5 s.
	RestoreCheck time.Duration
	// Report, when set, is given what counts the orphans in each cluster, and the Works that are held.
	Report func(func() (orphans map[string]int, held int))
}

// DefaultDeletions are the most of Works that others may delete within a minute, and how long one waits to be alone.
var DefaultDeletions = Deletions{Bound: 10, Settle: 5 * time.Second}

// reconciler carries Works out. Its lanes keep clusters from waiting for each other.
type reconciler struct {
	Options
	client client.Client
	// live reads past the cache.
	live   client.Reader
	events commit.Events
	lanes  lanes

	// written are our last writes, until the cache shows them.
	written written
	// progress are the Works whose status waits to be written.
	progress commit.Pace[types.NamespacedName]
	// restless are those whose condition or health turned of late.
	restless restless
	// applied are the Works that were applied and whose status waits to say so.
	applied applied
	// waiting are the Works whose namespace is not in the member.
	waiting waiting
	// told are the warnings that stand.
	told commit.Told[subject]
	// ended are the last states of what ran once, finished, and was gone before that was reported.
	ended ended
	// missed are the Works of what runs once whose object was there and was looked for in vain, once.
	missed sync.Map // of types.NamespacedName
	// waitsSince are the Works of namespaces and definitions that wait for what is in them, by when that began.
	waitsSince sync.Map // of types.NamespacedName and time.Time
	// others are the Works that others than the hub have deleted, kept those whose objects stay.
	others others
	kept   kept
	// restored is what is known since the hub was restored.
	restored restored
	// contests are the objects that somebody in a member changes again and again.
	contests contests
	// reached is the member that a cluster was last reached as.
	reached sync.Map // cluster → *member.Member
}

// subject is what a warning is about.
type subject struct {
	work   types.NamespacedName
	reason string
}

const (
	// namespaceCheck is how soon an object is tried again whose namespace is on its way to the member; its arrival comes
	// first.
	namespaceCheck = time.Second
	// deletionCheck is how soon an object is looked at again whose deletion the member has accepted; its event comes
	// first.
	deletionCheck = 2 * time.Second
	// absenceCheck is how soon what ran once is looked at again that is gone; the event with its last state comes first.
	absenceCheck = time.Second
	// foreignCheck is how soon an object is looked at again that is somebody else's and only made where there is none:
	// nobody tells when it goes.
	foreignCheck = 30 * time.Second
	// looks is how often an object is looked at anew, in one go, that was another than it seemed.
	looks = 5
)

// Setup registers the controller with the manager; with the members it is told of their objects.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Restored == nil {
		o.Restored = restoreMark(mgr.GetAPIReader())
	}
	if o.TellUnseen == nil {
		o.TellUnseen = markUnseen(mgr.GetClient())
	}
	r := newReconciler(mgr.GetClient(), commit.Recorder(mgr, "execution-controller"), o)
	r.live = mgr.GetAPIReader()
	if o.Report != nil {
		o.Report(r.counted)
	}
	o.Members.Handle(r.memberEvent)
	o.Members.OnAnswer(r.memberAnswers)
	o.Members.OnScaler(r.scalerChanged)
	interpreter.OnChange(o.Interpreter, r.kindsChanged)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, byWaitingObject, waitsForObject); err != nil {
		return fmt.Errorf("index works by the object that they may wait for: %w", err)
	}
	for _, watch := range []struct {
		kind    client.Object
		handler cache.ResourceEventHandlerFuncs
	}{
		{&workv1alpha1.Work{}, cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { r.workChanged(nil, obj) }, UpdateFunc: r.workChanged, DeleteFunc: r.workGone,
		}},
		{&clusterv1alpha1.Cluster{}, cache.ResourceEventHandlerFuncs{
			AddFunc: r.clusterJoined, UpdateFunc: r.clusterChanged, DeleteFunc: r.clusterGone,
		}},
	} {
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

func newReconciler(c client.Client, events commit.Events, o Options) *reconciler {
	if o.UnseenSettle == 0 {
		o.UnseenSettle = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.FirstRetry == 0 {
		o.FirstRetry = 100 * time.Millisecond
	}
	if o.Deletions == nil {
		o.Deletions = &Deletions{Bound: DefaultDeletions.Bound}
	}
	if o.RestoreCheck == 0 {
		o.RestoreCheck = 5 * time.Second
	}
	o.Workers = max(o.Workers, 1)
	r := &reconciler{Options: o, client: c, live: c, events: events}
	r.lanes = lanes{workers: o.Workers, reconcile: r.reconcile, stray: r.stray, clock: o.Clock, firstRetry: o.FirstRetry}
	return r
}

// Start implements manager.Runnable.
func (r *reconciler) Start(ctx context.Context) error {
	// Before anything is looked at: what differs may be newer than the store.
	if err := r.followRestore(ctx); err != nil {
		return err
	}
	if err := r.recall(ctx); err != nil {
		return err
	}
	r.lanes.start(ctx)
	var all workv1alpha1.WorkList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list works: %w", err)
	}
	for i := range all.Items {
		r.workChanged(nil, &all.Items[i])
	}
	r.tellKept(ctx)
	r.lanes.stop()
	return nil
}

// reconcile looks at a Work and its object, has the core decide, acts, and leaves a report to make.
func (r *reconciler) reconcile(ctx context.Context, cluster string, key types.NamespacedName) outcome {
	work, err := r.newest(ctx, key)
	if err != nil {
		return outcome{err: client.IgnoreNotFound(err)}
	}
	if work.DeletionTimestamp != nil {
		return unlessStale(r.remove(ctx, cluster, work))
	}
	report, after, err := r.apply(ctx, cluster, work)
	if report == nil {
		return unlessStale(after, err)
	}
	return outcome{report: func() outcome { return unlessStale(report()) }}
}

// unlessStale decides again soon what was decided on old state.
func unlessStale(after time.Duration, err error) outcome {
	if errors.As(err, new(*staleError)) {
		return outcome{after: commit.StaleRetry}
	}
	return outcome{after: after, err: err}
}

// stray looks at a Work of a cluster that is not registered: nothing can be applied, and nothing holds back its end.
func (r *reconciler) stray(ctx context.Context, cluster string, key types.NamespacedName) outcome {
	err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{}, client.UnsafeDisableDeepCopy)
	if !apierrors.IsNotFound(err) {
		return outcome{err: err} // it has just joined: that is an event, and all its Works are looked at
	}
	work := &workv1alpha1.Work{}
	if err := r.client.Get(ctx, key, work); err != nil || work.DeletionTimestamp == nil {
		return outcome{err: client.IgnoreNotFound(err)}
	}
	return outcome{err: r.letGo(ctx, work)}
}

// apply makes the member's object what the Work says, and leaves the report of that to make; without one it is over.
func (r *reconciler) apply(ctx context.Context, cluster string,
	work *workv1alpha1.Work) (report func() (time.Duration, error), after time.Duration, err error) {
	failed := func(gone bool, cause error) (func() (time.Duration, error), time.Duration, error) {
		after, err := r.failed(ctx, work, gone, cause)
		return nil, after, err
	}
	m, err := r.member(ctx, cluster)
	switch {
	case errors.Is(err, errGone), errors.Is(err, errNotYet):
		return nil, 0, nil
	case err != nil:
		return failed(false, err)
	}
	manifest, err := execute.Manifest(work)
	if err != nil {
		return failed(false, err)
	}
	if superseded, err := r.superseded(ctx, work, manifest); superseded || err != nil {
		return nil, 0, err
	}
	observed, err := observe(ctx, m, manifest)
	if errors.Is(err, member.ErrKindNotServed) {
		r.restored.see(client.ObjectKeyFromObject(work)) // it went with its kind
	}
	if err != nil {
		return failed(false, err)
	}
	if last := r.ended.of(work, manifest); observed == nil && last != nil && !execute.Suspended(work) {
		return func() (time.Duration, error) {
			return r.report(ctx, m, work, last, execute.Outcome{Manifest: manifest})
		}, 0, nil
	}
	if observed == nil && r.justMissed(work, manifest) {
		return nil, absenceCheck, nil
	}
	scaledBy := r.scaledBy(ctx, m, work, manifest, observed)
	kind, observed, err := r.act(ctx, m, work, manifest, observed, scaledBy != "")
	if observed != nil {
		r.missed.Delete(client.ObjectKeyFromObject(work))
	}
	if held := new(heldError); errors.As(err, &held) {
		return func() (time.Duration, error) {
			return r.report(ctx, m, work, observed, execute.Outcome{Manifest: manifest, ScaledBy: scaledBy, Restored: held.why})
		}, 0, nil
	}
	if kind == execute.Leave {
		o := execute.Outcome{Manifest: manifest, ScaledBy: scaledBy, HandsOff: execute.HandsOff(work, observed)}
		if observed != nil && !execute.Owns(work, observed) {
			observed = nil // its status is not ours to report
		}
		return func() (time.Duration, error) { return r.report(ctx, m, work, observed, o) }, 0, nil
	}
	if err != nil {
		r.restored.see(client.ObjectKeyFromObject(work))
		if commit.NamespaceMissing(err) {
			// In this order: the namespace may arrive in between.
			r.waiting.add(space{cluster, manifest.GetNamespace()}, client.ObjectKeyFromObject(work))
			if apierrors.IsNotFound(err) && r.namespaceFollows(ctx, work, manifest) {
				return nil, namespaceCheck, nil
			}
		}
		gone := !member.Unreachable(err) && !(observed != nil && execute.Owns(work, observed))
		return failed(gone, err)
	}
	r.waiting.remove(space{cluster, manifest.GetNamespace()}, client.ObjectKeyFromObject(work))
	r.restored.settle(client.ObjectKeyFromObject(work))
	if kind == execute.Wait {
		return nil, deletionCheck, nil
	}
	if observed == nil && execute.Over(work) && !execute.Ended(work) {
		r.warn(work, workv1alpha2.EventReflectStatusFailed,
			fmt.Errorf("%s %s was deleted in cluster %q, which deletes finished objects; its completion was not observed, "+
				"and it is not run again: to run it again, delete and recreate the template", manifest.GetKind(),
				manifest.GetName(),
				cluster))
	}
	if kind == execute.Create || kind == execute.Apply {
		r.applied.put(work)
	}
	var look time.Duration
	if observed != nil && !execute.Owns(work, observed) {
		if execute.CreateOnly(work) && !execute.Suspended(work) {
			look = foreignCheck
		}
		observed = nil // suspended or only to be created, it may be somebody else's
	}
	if observed != nil && !execute.Suspended(work) {
		// What a user approves on the hub is a word in the member's status, and no field that could be applied.
		if patch := rollout.Grant(cluster, observed); patch != nil {
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
	if observed != nil && manifest.GroupVersionKind().GroupKind() == namespaceKind {
		r.namespaceIsThere(cluster, manifest.GetName())
	}
	return func() (time.Duration, error) {
		after, err := r.report(ctx, m, work, observed, execute.Outcome{Manifest: manifest, ScaledBy: scaledBy})
		if after == 0 || look > 0 && look < after {
			after = look
		}
		return after, err
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

// remove deletes or releases the member's object, and lets the Work go when that is done.
func (r *reconciler) remove(ctx context.Context, cluster string, work *workv1alpha1.Work) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionFinalizer) {
		return 0, r.letGo(ctx, work)
	}
	manifest, err := execute.Manifest(work)
	if err != nil {
		return 0, r.letGo(ctx, work) // what cannot be read was never applied
	}
	switch superseded, err := r.superseded(ctx, work, manifest); {
	case err != nil:
		return r.stuck(work, err)
	case superseded:
		return 0, r.letGo(ctx, work)
	}
	switch kind, after, why, err := r.judgeEnd(ctx, cluster, work); {
	case err != nil:
		return r.stuck(work, err)
	case kind == execute.EndWaits:
		return after, nil
	case kind == execute.EndKept:
		log.Info("kept the object of a Work that was not deleted by the hub", "cluster", cluster, "work", work.Name, "why",
			why)
		err := r.letGo(ctx, work)
		if err == nil {
			r.kept.add(cluster, why, r.Clock.Now())
		}
		return 0, err
	}
	m, err := r.member(ctx, cluster)
	if errors.Is(err, errGone) {
		return 0, r.letGo(ctx, work)
	}
	if err != nil {
		return r.stuck(work, err)
	}
	observed, err := observe(ctx, m, manifest)
	if errors.Is(err, member.ErrKindNotServed) && r.unserved(ctx, m, manifest) {
		return 0, r.letGo(ctx, work) // its objects went with the kind
	}
	if err == nil && (observed == nil || execute.Anothers(work, observed)) {
		// The watch may not have shown yet what we created, or took over.
		observed, err = m.Get(ctx, manifest.GroupVersionKind(), manifest.GetNamespace(), manifest.GetName())
	}
	if err != nil {
		return r.stuck(work, err)
	}
	leaves := work
	if why := execute.HandsOff(work, observed); why != "" && observed != nil && execute.Owns(work, observed) &&
		!execute.Anothers(work, observed) {
		cl := &clusterv1alpha1.Cluster{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, cl, client.UnsafeDisableDeepCopy); err != nil {
			return 0, err
		}
		if cl.DeletionTimestamp != nil {
			return 0, r.letGo(ctx, work) // The object stays in the cluster that leaves.
		}
		return 0, r.reportBlocked(ctx, work, execute.Outcome{HandsOff: why})
	}
	if observed != nil {
		stays, after, err := r.stays(ctx, m, cluster, work, manifest, observed)
		if held := new(heldError); errors.As(err, &held) {
			return 0, r.reportBlocked(ctx, work, execute.Outcome{Manifest: manifest, Restored: held.why})
		}
		if err != nil {
			return r.stuck(work, err)
		}
		if after > 0 {
			return after, nil
		}
		if stays {
			leaves = work.DeepCopy()
			leaves.Spec.PreserveResourcesOnDeletion = new(true)
		}
	}
	kind, _, err := r.act(ctx, m, leaves, manifest, observed, false)
	held := new(heldError)
	switch {
	case errors.As(err, &held):
		return 0, r.reportBlocked(ctx, work, execute.Outcome{Manifest: manifest, Restored: held.why}) // that it is accepted, or changes, is an event
	case err != nil:
		r.restored.see(client.ObjectKeyFromObject(work))
		return r.stuck(work, err)
	}
	r.restored.settle(client.ObjectKeyFromObject(work))
	switch {
	case kind == execute.Delete || kind == execute.Wait:
		return deletionCheck, nil
	}
	return 0, r.letGo(ctx, work)
}

// stays says whether the object of a Work that goes is released instead of deleted, for another reason than the Work
// itself has; or when to ask again.
func (r *reconciler) stays(ctx context.Context, m *member.Member, cluster string, work *workv1alpha1.Work, manifest,
	observed *unstructured.Unstructured) (bool, time.Duration, error) {
	cl := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, cl, client.UnsafeDisableDeepCopy); err != nil {
		return false, 0, err
	}
	if cl.DeletionTimestamp != nil && membership.KeepsWorkloads(cl) {
		return true, 0, nil
	}
	if awaited, err := r.awaited(ctx, cluster, work); awaited || err != nil {
		return awaited, 0, err
	}
	switch {
	case !execute.Owns(work, observed), execute.Anothers(work, observed), execute.Preserved(work),
		observed.GetDeletionTimestamp() != nil:
	case execute.IsNamespace(manifest), execute.IsDefinition(manifest):
		// Before a look at what would go along, which may wait for others that are held.
		if why := r.held(work, execute.Action{Kind: execute.Delete}, nil, observed); why != "" {
			return false, 0, &heldError{why}
		}
		r.restored.settle(client.ObjectKeyFromObject(work))
		if execute.IsNamespace(manifest) {
			return r.endNamespace(ctx, m, cl, work, observed)
		}
		return r.endDefinition(ctx, m, cl, work, observed)
	}
	return false, 0, nil
}

// byWaitingObject finds the Works of ManifestWorks by their object: those alone may have one that another Work keeps,
// and wait for it.
const byWaitingObject = "execute.waitingObject"

func waitsForObject(obj client.Object) []string {
	if obj.GetAnnotations()[ocmv1.ManifestWorkAnnotation] == "" {
		return nil
	}
	return objectOf(obj.(*workv1alpha1.Work))
}

// objectOf is the object of a Work as an index has it.
func objectOf(work *workv1alpha1.Work) []string {
	m, err := execute.Manifest(work)
	if err != nil {
		return nil
	}
	return []string{work.Namespace + " " + m.GroupVersionKind().GroupKind().String() + " " + m.GetNamespace() + "/" +
		m.GetName()}
}

// awaited says whether the Work of a ManifestWork waits for the object of one that is being deleted: then it is left to
// that. When the cluster leaves, nothing is.
func (r *reconciler) awaited(ctx context.Context, cluster string, work *workv1alpha1.Work) (bool, error) {
	object := objectOf(work)
	if len(object) == 0 {
		return false, nil
	}
	var others workv1alpha1.WorkList
	if err := r.client.List(ctx, &others, client.InNamespace(work.Namespace),
		client.MatchingFields{byWaitingObject: object[0]}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the works of the same object: %w", err)
	}
	for i := range others.Items {
		if other := &others.Items[i]; other.Name != work.Name && other.DeletionTimestamp == nil &&
			slices.Equal(waitsForObject(other), object) {
			cl := &clusterv1alpha1.Cluster{}
			err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, cl, client.UnsafeDisableDeepCopy)
			return err == nil && cl.DeletionTimestamp == nil, client.IgnoreNotFound(err)
		}
	}
	return false, nil
}

// letGo ends our part in a Work that is being deleted.
func (r *reconciler) letGo(ctx context.Context, work *workv1alpha1.Work) error {
	return fromOld(commit.RemoveFinalizer(ctx, r.client, work, workv1alpha2.ExecutionFinalizer, execute.OrderedFinalizer))
}

// unserved says whether the member surely does not serve the kind: an API that is down is not listed either.
func (r *reconciler) unserved(ctx context.Context, m *member.Member, manifest *unstructured.Unstructured) bool {
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
	// errGone says that a cluster has left, or leaves and cannot be reached.
	errGone = errors.New("the cluster no longer exists")
	// errNotYet says that nothing is known of a cluster that has just joined; its condition Ready is an event.
	errNotYet = errors.New("the status of the cluster has not been collected yet")
)

// awayError says that a cluster is known not to answer, so that it was not asked. That it is back is an event.
type awayError struct {
	cluster, why string
	// otherHub is the message about the hub that manages the member instead of this one; empty for none.
	otherHub string
}

func (e *awayError) Error() string {
	return fmt.Sprintf("cluster %q is not ready (%s); the hub retries when it is", e.cluster, e.why)
}

// member is the cluster of a Work; errGone, errNotYet or an awayError when it is not asked.
func (r *reconciler) member(ctx context.Context, cluster string) (*member.Member, error) {
	cl := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, cl, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, errGone
		}
		return nil, err
	}
	switch ready := membership.Readiness(cl); {
	case membership.IsReady(cl):
	case cl.DeletionTimestamp != nil:
		return nil, errGone
	case !looked(cl):
		return nil, errNotYet
	default:
		away := &awayError{cluster: cluster, why: ready.Reason + ": " + ready.Message}
		if membership.HeldByAnother(cl) {
			away.otherHub = ready.Message
		}
		return nil, away
	}
	m, err := r.Members.Get(cluster)
	if err != nil {
		return nil, &hubError{err}
	}
	if before, known := r.reached.Swap(cluster, m); known && before != m {
		// The member was let go and made anew, and follows nothing yet: each Work has it follow its kind.
		r.wakeAll(cluster)
	}
	return m, nil
}

// observe is the manifest's object in the member, nil if there is none of ours: from memory once the kind is watched.
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

// act does what the core plans, and looks at the member itself when its object was another than it seemed. The object
// is as it is afterwards; with an error, as it was. scaled says that an autoscaler in the member sets its replicas.
func (r *reconciler) act(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	manifest, observed *unstructured.Unstructured, scaled bool) (execute.Kind, *unstructured.Unstructured, error) {
	for look := 1; ; look++ {
		kind, after, err := r.actOn(ctx, m, work, observed, scaled)
		if look == looks || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) || member.FieldConflict(err) {
			return kind, after, err
		}
		if observed, err = m.Get(ctx, manifest.GroupVersionKind(), manifest.GetNamespace(), manifest.GetName()); err != nil {
			return kind, nil, err
		}
	}
}

func (r *reconciler) actOn(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	observed *unstructured.Unstructured, scaled bool) (execute.Kind, *unstructured.Unstructured, error) {
	var desired *unstructured.Unstructured
	if work.DeletionTimestamp == nil {
		var err error
		desired, err = execute.Desired(work, observed,
			func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				retained, err := r.Interpreter.Retain(ctx, desired, observed)
				if err != nil {
					return nil, err
				}
				if scaled {
					return ocm.Leave(work, execute.KeepScaled(retained, observed), observed)
				}
				retained, overruled := execute.Share(desired, retained, observed, member.Manager)
				r.tellOverruled(work, desired, overruled)
				return ocm.Leave(work, retained, observed)
			})
		if err != nil {
			return "", observed, err
		}
	}
	action := r.Members.Hub().Plan(r.applied.told(work), desired, observed)
	if why := r.held(work, action, desired, observed); why != "" {
		return action.Kind, observed, &heldError{why}
	}
	if action.Repairs && r.contests.of(client.ObjectKeyFromObject(work), r.Clock.Now()).Pause(r.Clock.Now()) > 0 {
		return execute.Nothing, observed, nil // it is looked at again when the pause is over
	}
	after, err := observed, error(nil)
	switch action.Kind {
	case execute.Create:
		after, err = m.Create(ctx, action.Object)
	case execute.Apply:
		apply := m.Apply
		if action.Yields {
			apply = m.ApplyYielding
		}
		after, err = apply(ctx, action.Object, observed)
	case execute.Delete:
		err = m.Delete(ctx, observed)
	case execute.Release:
		after, err = nil, m.Release(ctx, observed)
	case execute.Conflict:
		err = &conflictError{action}
	}
	switch key := client.ObjectKeyFromObject(work); {
	case action.Kind == execute.Nothing:
		r.contests.settled(key, observed)
	case err == nil && (action.Kind == execute.Create || action.Kind == execute.Apply):
		r.contests.wrote(key, action, observed, after, r.Clock.Now())
	}
	if action.Kind != execute.Nothing {
		log.V(1).Info("acted", "cluster", m.Name, "work", work.Name, "action", action.Kind, "reason", action.Reason, "error",
			err)
	}
	if err != nil {
		after = observed
	}
	return action.Kind, after, err
}

var log = ctrl.Log.WithName("execute")

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// staleError says that a write to the hub failed for having read an old state. Conflicts in a member are none.
type staleError struct{ error }

func (e *staleError) Unwrap() error { return e.error }

// fromOld marks the errors of writes to the hub; what is gone needs none.
func fromOld(err error) error {
	if commit.Stale(err) {
		return &staleError{err}
	}
	return client.IgnoreNotFound(err)
}
