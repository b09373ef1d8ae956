// Package dispatch keeps the Works of each binding: one for every target cluster, and no others. core/dispatch decides
// the content of a Work; the execute controller applies it in the member.
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// Options configure the controller.
type Options struct {
	Templates   *template.Store
	Interpreter interpret.Interpreter
	// Pods finds the pods that templates name for deletion; if nil, none is found.
	Pods Pods
	// Scheduler has the settings of the scheduler whose placements the hub can predict.
	Scheduler schedule.Settings
	// ForbidOverwrite treats users' requests to overwrite objects in members as abort, in every namespace.
	ForbidOverwrite bool
	// Concurrency is the number of bindings that are reconciled at the same time.
	Concurrency int
	// Definitions are the hub's own.
	Definitions *definition.Watch
	// Clock is the time; default the real one.
	Clock clock.PassiveClock
}

const (
	// firstRetry is the first delay after other failures; it grows.
	firstRetry = 100 * time.Millisecond
	// spaceRetry is the delay before a retry in a cluster without an execution space.
	spaceRetry = 2 * time.Second
	// parallel is the number of Works of one binding that are written at once.
	parallel = 16
)

type reconciler struct {
	Options
	client client.Client
	// live reads from the API server where a stale cache could cause a deletion.
	live   client.Reader
	events commit.Events
	// pending are the pending writes of Works by binding: created ones, and changed ones whose pods are counted together.
	pending commit.PendingWrites[*metav1.PartialObjectMetadata]
	// abandoned are the bindings deleted without a deletion request, until another binding adopts their Works.
	abandoned abandoned
	// waiting are the workloads that wait for their sidecars.
	waiting since
	// warned has the current warnings by binding and cluster.
	warned commit.Dedup[subject]
}

// subject identifies a warning: a reason of a binding, in one cluster or in all.
type subject struct {
	binding         types.NamespacedName
	cluster, reason string
}

// Setup registers the controller with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(),
		events: commit.Recorder(mgr, "binding-controller")}
	r.pending.Life, r.pending.Clock = commit.PendingWriteLife, o.Clock
	for _, kind := range scope.Bindings.Kinds() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, byTemplate, templateIndexes); err != nil {
			return fmt.Errorf("index bindings by template: %w", err)
		}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &appsv1.ControllerRevision{}, byRevised, revisedTemplate); err != nil {
		return fmt.Errorf("index revisions by template: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, byPull, pullIndex); err != nil {
		return fmt.Errorf("index the Works of images by binding: %w", err)
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("dispatch").WithOptions(controller.Options{
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             commit.Backoff[reconcile.Request](firstRetry),
	})).Complete(r)
}

// Reconcile brings the Works of one binding to their desired state.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b, err := scope.Bindings.Get(ctx, r.client, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		// Keep Works of a binding that was deleted without a deletion request, for example if its finalizer was removed, or
		// if a backup restores Works first. A new binding adopts them.
		r.pending.Forget(req.NamespacedName)
		r.waiting.forget(req.NamespacedName)
		r.recovered(req.NamespacedName)
		if err := r.stopPulls(ctx, req.NamespacedName, nil); err != nil {
			return ctrl.Result{}, err
		}
		after, err := r.inherit(ctx, req.NamespacedName)
		return ctrl.Result{RequeueAfter: after}, err
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if b.GetDeletionTimestamp() == nil {
		r.abandoned.forget(req.NamespacedName)
	}
	behind, err := r.behind(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if behind {
		return ctrl.Result{RequeueAfter: commit.StaleRetry}, nil
	}
	after, err := r.reconcile(ctx, b)
	if !stale(err) {
		return ctrl.Result{RequeueAfter: after}, err
	}
	return ctrl.Result{RequeueAfter: commit.StaleRetry}, nil
}

// stale reports whether all errors come from stale reads.
func stale(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !stale(err) })
	}
	return commit.Stale(err)
}

// reconcile also returns when to check again; 0 for never.
func (r *reconciler) reconcile(ctx context.Context, b workv1alpha2.Binding) (after time.Duration, err error) {
	works, err := scope.WorksOf(ctx, r.client, client.ObjectKeyFromObject(b))
	if err != nil {
		return 0, err
	}
	if b.GetDeletionTimestamp() != nil {
		switch ordered, known, err := r.ordered(ctx, b); {
		case err != nil:
			return 0, err
		case !known:
			return r.wait(ctx, b, works)
		case !ordered:
			return 0, r.leave(ctx, b)
		}
		return 0, r.finish(ctx, b, works)
	}
	unwanted, again := dispatch.Unwanted(b, works, r.Clock.Now())
	if unwanted, err = r.withoutRequired(ctx, b, unwanted); err != nil {
		return 0, err
	}
	if err := r.remove(ctx, b, unwanted); err != nil {
		return 0, err
	}
	// Works that are deleted directly go first. An event follows when they are gone, or when their cluster stops
	// responding.
	purging := dispatch.Purging(b, works)
	if len(purging) == 0 || dispatch.PurgeIsStuck(purging, func(name string) *clusterv1alpha1.Cluster {
		return r.cluster(ctx, name)
	}) {
		after, err = r.bring(ctx, b, len(purging) > 0)
	}
	return commit.ShorterDelay(after, again), err
}

// cluster reads a cluster from the cache; nil if there is none, or it cannot be read.
func (r *reconciler) cluster(ctx context.Context, name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, c, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return c
}

// bring writes the Works of a binding; purging is Input.Purging. It also returns when to reconcile again; 0 is never.
func (r *reconciler) bring(ctx context.Context, b workv1alpha2.Binding, purging bool) (after time.Duration, err error) {
	template, found, err := r.Templates.ForBinding(ctx, b)
	if errors.Is(err, propagate.ErrReference) {
		r.warn(b, nil, "", workv1alpha2.EventSyncWorkFailed, err)
		return 0, r.report(ctx, b, dispatch.Decision{Err: err}, nil, err) // existing Works stay until the binding is deleted
	}
	if err != nil {
		return 0, err
	}
	if !found {
		// It is being deleted or was created again, and the binding follows soon. Or its kind is not served now; an event
		// follows when it is.
		return 0, nil
	}
	input, err := r.input(ctx, b, template)
	if err != nil {
		return 0, err
	}
	input.Purging = purging
	if after, err = r.write(ctx, b, input); err != nil {
		return after, err
	}
	return after, r.forgetPods(ctx, input)
}

// input reads the input of the decision.
func (r *reconciler) input(ctx context.Context, b workv1alpha2.Binding,
	tmpl *unstructured.Unstructured) (dispatch.Input, error) {
	in := dispatch.Input{Binding: b, Template: tmpl, Existing: map[string]*workv1alpha1.Work{},
		Now: r.Clock.Now(), NewID: uuid.NewString, Convert: kruise.ForMember}
	var err error
	if in.Clusters, err = facts.Clusters(ctx, r.client); err != nil {
		return in, err
	}
	for _, target := range dispatch.Targets(b) {
		// Find the Work by its name: if its labels were removed, they are added again, and no second Work is created.
		work, err := scope.WorkOf(ctx, r.client, target.Name, dispatch.WorkName(b, tmpl), identity.FromManifest(tmpl),
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return in, err
		}
		if work != nil {
			in.Existing[target.Name] = work
		}
	}
	if !r.Scheduler.QuotasOff && b.GetNamespace() != "" {
		var quotas policyv1alpha1.FederatedResourceQuotaList
		if err := r.client.List(ctx, &quotas, client.InNamespace(b.GetNamespace()),
			client.UnsafeDisableDeepCopy); err != nil {
			return in, fmt.Errorf("list FederatedResourceQuotas of namespace %q: %w", b.GetNamespace(), err)
		}
		in.Limited = len(quotas.Items) > 0
	}
	if in.Pods, err = r.pods(ctx, in); err != nil {
		return in, err
	}
	if in.Target, err = r.target(ctx, tmpl); err != nil {
		return in, err
	}
	if in.Pulls, err = r.pulls(ctx, client.ObjectKeyFromObject(b)); err != nil {
		return in, err
	}
	if err := r.storeRevision(ctx, tmpl); err != nil {
		return in, err
	}
	if in.ForbidOverwrite, err = r.forbidsOverwrite(ctx, tmpl); err != nil {
		return in, err
	}
	if in.Revisions, err = r.revisions(ctx, b); err != nil {
		return in, err
	}
	if in.ConfigMaps, err = r.configMaps(ctx, in); err != nil {
		return in, err
	}
	if in.Overrides, err = scope.Overrides.Over(ctx, r.client, tmpl.GetNamespace(),
		client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list override policies: %w", err)
	}
	return in, nil
}

// write creates and updates the Works that differ. One cluster's failure leaves the others' Works as they should be. It
// writes the binding at most once before the Works, and at most once after them.
func (r *reconciler) write(ctx context.Context, b workv1alpha2.Binding,
	in dispatch.Input) (after time.Duration, err error) {
	d := dispatch.Decide(ctx, in, r.Interpreter)
	for _, w := range dispatch.Suspensions(in, d) {
		if err := r.client.Update(ctx, w); err != nil {
			return 0, fmt.Errorf("suspend or resume %s: %w", commit.Name(w), err)
		}
	}
	if d.Waits {
		return d.RecheckAfter, nil // the controller reconciles when the binding is placed
	}
	refused := template.CreateVersions(ctx, r.client, d.ConfigMaps)
	if commit.Transient(refused) {
		return 0, refused
	} else if refused != nil {
		d = d.WithoutVersions(refused)
	}
	r.warn(b, in.Template, "", workv1alpha2.EventSyncWorkFailed, d.Err)
	if d.Err != nil {
		// Write no Work. A change of the template causes the next reconcile, or RecheckAfter.
		return d.RecheckAfter, errors.Join(refused, r.report(ctx, b, d, nil, d.Err))
	}

	// 1. Write what must precede the Works: image pulls, and the binding's annotations.
	r.warnFleet(b, in.Template, d.Conditions)
	if err := r.startPulls(ctx, in, d); err != nil {
		return 0, err
	}
	results, waiting, again, err := r.awaitNeeds(ctx, b, in, d.Results)
	if err != nil {
		return 0, err
	}
	after = commit.ShorterDelay(d.RecheckAfter, again)
	if err := r.storeBaseline(ctx, d.Baseline); err != nil {
		return 0, err
	}
	if b, err = r.annotate(ctx, b, d); err != nil {
		return 0, err
	}

	// 2. Write the Works.
	errs := r.writeWorks(ctx, b, in, results)
	for i, err := range errs {
		if errors.Is(err, errNoSpace) {
			errs[i], after = nil, commit.ShorterDelay(after, spaceRetry)
		}
	}

	// 3. Report the results.
	reported := r.report(ctx, b, d, waiting, errs...)
	return after, errors.Join(append(errs, reported, r.stopPulls(ctx, client.ObjectKeyFromObject(b), d.Pulls))...)
}

// writeWorks writes the Works that differ, several at once. It returns an error or nil for each result.
func (r *reconciler) writeWorks(ctx context.Context, b workv1alpha2.Binding, in dispatch.Input,
	results []dispatch.Result) []error {
	errs := make([]error, len(results))
	var writes errgroup.Group
	writes.SetLimit(parallel)
	for i, res := range results {
		if res.Err == nil && !needed(in.Existing[res.Cluster], res.Work) {
			continue
		}
		writes.Go(func() error {
			errs[i] = r.writeOne(ctx, b, in, res)
			return nil
		})
	}
	_ = writes.Wait() // errs has the errors
	r.emitWritten(b, in, results, errs)
	return errs
}

// needed reports whether to write a Work. One that is being deleted is created again when it is gone, which is an
// event.
func needed(existing, wanted *workv1alpha1.Work) bool {
	return existing == nil || execute.Recallable(existing) ||
		existing.DeletionTimestamp == nil && dispatch.Differs(existing, wanted)
}

func (r *reconciler) writeOne(ctx context.Context, b workv1alpha2.Binding, in dispatch.Input,
	res dispatch.Result) error {
	err := res.Err
	if err == nil {
		err = r.put(ctx, b, in, res)
	}
	if commit.Stale(err) || errors.Is(err, errNoSpace) {
		return err
	}
	if dispatch.FieldsNotServed(err) {
		r.warn(b, in.Template, res.Cluster, workv1alpha2.EventSyncWorkFailed, err)
		return nil
	}
	err = explainSize(err, res.Work)
	r.warn(b, in.Template, res.Cluster, workv1alpha2.EventSyncWorkFailed, err)
	if failed := (*dispatch.OverrideError)(nil); errors.As(err, &failed) {
		r.warn(b, in.Template, res.Cluster, workv1alpha2.EventApplyOverridePolicyFailed, err)
	} else if err == nil {
		r.warn(b, in.Template, res.Cluster, workv1alpha2.EventApplyOverridePolicyFailed, untouched(res))
	}
	if err != nil && res.Err == nil { // the other errors name the cluster
		err = fmt.Errorf("cluster %q: %w", res.Cluster, err)
	}
	return err
}

// untouched returns an error that lists overriders without effect, which are probably mistakes; nil if there are none.
func untouched(res dispatch.Result) error {
	if len(res.Applied.Untouched) == 0 {
		return nil
	}
	texts := make([]string, len(res.Applied.Untouched))
	for i, u := range res.Applied.Untouched {
		texts[i] = u.String()
	}
	return fmt.Errorf("cluster %q: %s", res.Cluster, strings.Join(texts, "; "))
}

// put creates or updates the Work of one cluster.
func (r *reconciler) put(ctx context.Context, b workv1alpha2.Binding, in dispatch.Input, res dispatch.Result) error {
	existing := in.Existing[res.Cluster]
	if existing == nil {
		return r.create(ctx, b, res.Work, identity.FromManifest(in.Template))
	}
	if key, ok := scope.BindingOf(existing); ok && key != client.ObjectKeyFromObject(b) {
		_, err := scope.Bindings.Get(ctx, r.client, key)
		if err == nil {
			return fmt.Errorf("the Work %s/%s belongs to another template of the same kind name; rename one of the two",
				existing.Namespace, existing.Name)
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	if owner, ok := service.OwnerOf(existing); ok {
		return fmt.Errorf("the Work %s/%s belongs to %s, which dispatches an object of that name to the cluster; rename the template, or delete the other object", existing.Namespace, existing.Name, owner)
	}
	if execute.Recallable(existing) {
		return commit.Recall(ctx, r.client, existing)
	}
	wanted := dispatch.Onto(existing, res.Work)
	wrote, err := commit.Update(ctx, r.client, existing, wanted)
	if wrote && dispatch.Follows(wanted) {
		r.pending.Add(client.ObjectKeyFromObject(b), commit.VersionOf(wanted))
	}
	return err
}

// errNoSpace reports that the execution space of a cluster is missing: the cluster just joined, or is leaving. Its
// creation is an event, but the API server's own cache of namespaces may lag behind.
var errNoSpace = errors.New("the cluster has no execution space")

// create creates a Work and records it as a pending write.
func (r *reconciler) create(ctx context.Context, b workv1alpha2.Binding, work *workv1alpha1.Work,
	of identity.Object) error {
	err := scope.CreateWork(ctx, r.client, r.live, work, of)
	switch {
	case err == nil:
		r.pending.Add(client.ObjectKeyFromObject(b), commit.VersionOf(work))
		return nil
	case commit.NamespaceMissing(err):
		return errNoSpace
	}
	return fmt.Errorf("create %s: %w", commit.Name(work), err)
}

// roomForManifest is etcd's default limit of a request, 1.5 MiB, less the rest of a Work.
const roomForManifest = 3<<19 - 16<<10

// explainSize adds the cause to errors about the size of a Work, which etcd and API servers do not explain to users.
func explainSize(err error, work *workv1alpha1.Work) error {
	if err == nil || work == nil {
		return err
	}
	size := 0
	for _, m := range work.Spec.Workload.Manifests {
		size += len(m.Raw)
	}
	if size <= roomForManifest {
		return err
	}
	return fmt.Errorf("its manifest is too large: %d bytes as JSON, but the hub's etcd stores at most about %d; split the object: %w", size, roomForManifest, err)
}

// finish deletes the Works of a binding that is being deleted, and removes the finalizer when they are gone.
func (r *reconciler) finish(ctx context.Context, b workv1alpha2.Binding, works []workv1alpha1.Work) error {
	if err := r.stopPulls(ctx, client.ObjectKeyFromObject(b), nil); err != nil {
		return err
	}
	if len(works) > 0 && !r.isReplaced(ctx, b, works) {
		return r.remove(ctx, b, works)
	}
	return r.letGo(ctx, b)
}

// letGo removes the finalizer of a binding that is being deleted.
func (r *reconciler) letGo(ctx context.Context, b workv1alpha2.Binding) error {
	r.recovered(client.ObjectKeyFromObject(b))
	finalizer := workv1alpha2.BindingFinalizer
	if b.GetNamespace() == "" {
		finalizer = workv1alpha2.ClusterBindingFinalizer
	}
	return commit.RemoveFinalizer(ctx, r.client, b, finalizer)
}

func (r *reconciler) remove(ctx context.Context, b workv1alpha2.Binding, works []workv1alpha1.Work) error {
	err := commit.DeleteEach(ctx, r.client, scope.Pointers(works))
	r.warn(b, nil, "", workv1alpha2.EventCleanupWorkFailed, err)
	return err
}

// warn records a warning event on the binding and its template, unless it was recorded already. A nil error ends the
// warning.
func (r *reconciler) warn(b workv1alpha2.Binding, tmpl *unstructured.Unstructured, cluster, reason string, err error) {
	about := subject{client.ObjectKeyFromObject(b), cluster, reason}
	if err == nil {
		r.warned.Forget(about)
		return
	}
	if !r.warned.IsNew(about, err.Error()) {
		return
	}
	r.events.Event(b, corev1.EventTypeWarning, reason, err.Error())
	if tmpl != nil {
		r.events.Event(tmpl, corev1.EventTypeWarning, reason, err.Error())
	}
}

// recovered forgets the warnings of a binding that was deleted.
func (r *reconciler) recovered(binding types.NamespacedName) {
	r.warned.ForgetIf(func(s subject) bool { return s.binding == binding })
}
