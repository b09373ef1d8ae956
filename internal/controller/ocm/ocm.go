// Package ocm implements ManifestWorks of Open Cluster Management. It creates Works for their objects and writes their
// status. core/source/ocm decides both. controller/execute applies the Works.
package ocm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

// Options of the controller.
type Options struct {
	Members *member.Members
	// Concurrency is the number of ManifestWorks that are reconciled at once.
	Concurrency int
	// StatusWindow delays status writes if only feedback values changed. In a burst of changes the delay grows, see
	// commit.Pace.
	StatusWindow time.Duration
	// FirstWindow is the time for which a new generation waits until all objects are applied before the first status
	// write. A failure or the last result ends it.
	FirstWindow time.Duration
	// Look is the interval at which unwatched objects are read. The default is 30s.
	Look time.Duration
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

type reconciler struct {
	Options
	client client.Client
	// live reads from the API server where a stale cache would cause a wrong deletion.
	live client.Reader
	// queue receives changes of objects in members.
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
	// moving are the ManifestWorks with delayed status writes.
	moving commit.Pace[types.NamespacedName]
	// programs are the compiled expressions of condition rules.
	programs ocm.Programs
}

const (
	// firstRetry is the first delay of the backoff after an error.
	firstRetry  = 100 * time.Millisecond
	defaultLook = 30 * time.Second
)

// Reconcile reconciles one ManifestWork.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return commit.Requeue(r.reconcile(ctx, req.NamespacedName))
}

func (r *reconciler) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	if itself, err := r.hasKlusterlet(ctx, key.Namespace); err != nil {
		return 0, err
	} else if itself {
		mw := &ocmv1.ManifestWork{}
		if err := r.client.Get(ctx, key, mw); err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		return r.expire(ctx, mw, 0)
	}
	existing, err := r.worksOf(ctx, key)
	if err != nil {
		return 0, err
	}
	read := &ocmv1.ManifestWork{}
	if err := r.client.Get(ctx, key, read); apierrors.IsNotFound(err) {
		r.moving.Done(key)
		return 0, r.abandoned(ctx, key, existing)
	} else if err != nil {
		return 0, fmt.Errorf("get ManifestWork %s: %w", key, err)
	}
	cluster, err := r.cluster(ctx, key.Namespace)
	if err != nil {
		return 0, err
	}
	in := ocm.Input{ManifestWork: read, Cluster: cluster, Existing: existing, NewID: uuid.NewString,
		Convert: kruise.ForMember}
	if read.DeletionTimestamp != nil {
		return 0, r.remove(ctx, in)
	}
	if cluster == nil {
		return 0, r.wait(ctx, read)
	}
	if open, err := r.open(ctx, cluster); err != nil || !open {
		return 0, err // its creation causes an event
	}
	if len(cluster.Status.APIEnablements) == 0 {
		return 0, nil // options use the plural names of the cluster; the discovery of its kinds causes an event
	}

	// 1. Add the finalizer before there is anything to clean up.
	if !controllerutil.ContainsFinalizer(read, ocmv1.ManifestWorkFinalizer) {
		want := read.DeepCopy()
		controllerutil.AddFinalizer(want, ocmv1.ManifestWorkFinalizer)
		if _, err := commit.Update(ctx, r.client, read, want); err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		read, in.ManifestWork = want, want
	}

	// 2. Write the Works and read the results. An error for one object does not block the others.
	in.Items = ocm.Items(read, cluster)
	want := read.DeepCopy()
	var failed error
	var look time.Duration
	for range 2 {
		decision, err := r.carryOut(ctx, &in)
		if commit.Stale(err) {
			return 0, err
		}
		failed = err
		var seen []ocm.Seen
		seen, look = r.see(ctx, in, decision)
		want.Status = ocm.Status(read, in.Items, seen, &r.programs, r.Clock.Now())
		if !in.Reopened(want) {
			break
		}
		in.ManifestWork = want // an object is no longer complete; write its delayed change now
	}
	after, err := r.report(ctx, read, want)
	if err != nil || failed != nil {
		return 0, errors.Join(client.IgnoreNotFound(err), failed)
	}

	// 3. Delete the ManifestWork after its TTL.
	return r.expire(ctx, want, commit.ShorterDelay(after, look))
}

// expire deletes a ManifestWork after its TTL. It returns when to look again: after a delay or the rest of the TTL.
func (r *reconciler) expire(ctx context.Context, mw *ocmv1.ManifestWork, after time.Duration) (time.Duration, error) {
	remaining, ends := ocm.Remaining(mw, r.Clock.Now())
	if !ends {
		return after, nil
	}
	if remaining <= 0 {
		return 0, commit.Delete(ctx, r.client, mw)
	}
	return commit.ShorterDelay(after, remaining), nil
}

// carryOut writes the Works. The decision contains the errors per object too. The error is a conflict if the only
// problem was a stale cache.
func (r *reconciler) carryOut(ctx context.Context, in *ocm.Input) (ocm.Decision, error) {
	decision := ocm.Decide(*in)
	if len(decision.Withdrawn) > 0 {
		if err := r.readOthers(ctx, in, decision.Withdrawn); err != nil {
			return decision, err
		}
		decision = ocm.Decide(*in)
	}
	ordinals := map[string]int{}
	for i, item := range in.Items {
		if decision.Errs[i] == nil {
			ordinals[item.WorkName(in.ManifestWork.Name, in.Existing)] = i
		}
	}
	var failures []error
	for _, w := range decision.Works {
		var err error
		was, ordinal := in.Existing[w.Name], ordinals[w.Name]
		switch {
		case was == nil:
			err = r.create(ctx, w)
		case was.DeletionTimestamp != nil || !dispatch.Differs(was, w):
			continue
		default:
			w = dispatch.Onto(was, w)
			if _, err = commit.Update(ctx, r.client, was, w); err == nil {
				in.Existing[w.Name] = w
			}
		}
		if err != nil {
			err = fmt.Errorf("write the work %s: %w", w.Name, err)
			failures = append(failures, err)
			if !commit.Stale(err) {
				decision.Errs[ordinal] = err
			}
		}
	}
	failures = append(failures, r.withdraw(ctx, in.Existing, decision.Withdrawn))
	if err := errors.Join(failures...); err != nil {
		return decision, behind(failures, err)
	}
	return decision, nil
}

// create creates a Work under a name that no other object's Work has. A Work of the object that exists without its
// annotation is an error, because the cache will never show it as ours.
func (r *reconciler) create(ctx context.Context, w *workv1alpha1.Work) error {
	of := execute.ObjectOf(w)
	err := scope.CreateWork(ctx, r.client, r.live, w, of)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	standing := &workv1alpha1.Work{}
	if got := r.live.Get(ctx, client.ObjectKeyFromObject(w), standing); got != nil || !execute.IsOf(standing, of) {
		return errors.Join(client.IgnoreNotFound(got), err)
	}
	if mark, want := standing.Annotations[wellknown.ManifestWorkAnnotation],
		w.Annotations[wellknown.ManifestWorkAnnotation]; mark != want {
		return fmt.Errorf("it exists already with %q as its annotation %s, not %q: delete it, or change the annotation", mark,
			wellknown.ManifestWorkAnnotation, want)
	}
	return err
}

// behind returns err, or a conflict if the only problem was a stale cache.
func behind(failures []error, err error) error {
	for _, f := range failures {
		if f != nil && !commit.Stale(f) {
			return err
		}
	}
	return apierrors.NewConflict(workv1alpha1.Resource("works"), "", errors.New("the cache is behind"))
}

// wait reports in the status that the cluster has not joined.
func (r *reconciler) wait(ctx context.Context, read *ocmv1.ManifestWork) error {
	want := read.DeepCopy()
	want.Status = ocm.Waits(read, r.Clock.Now())
	_, err := commit.Status(ctx, r.client, read, want)
	return client.IgnoreNotFound(err)
}

// remove deletes the Works of a ManifestWork that is being deleted, and then removes the finalizer.
func (r *reconciler) remove(ctx context.Context, in ocm.Input) error {
	read := in.ManifestWork
	if !controllerutil.ContainsFinalizer(read, ocmv1.ManifestWorkFinalizer) {
		return nil
	}
	if len(in.Existing) == 0 {
		// The cache may not contain the newest Works yet.
		for _, item := range ocm.Items(read, in.Cluster) {
			for _, name := range item.WorkNames(read.Name) {
				w := &workv1alpha1.Work{}
				key := client.ObjectKey{Namespace: names.ExecutionSpace(read.Namespace), Name: name}
				if err := r.live.Get(ctx, key, w); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("get the work %s: %w", key, err)
				} else if err == nil && w.Annotations[wellknown.ManifestWorkAnnotation] == read.Name {
					in.Existing[w.Name] = w
				}
			}
		}
	}
	if len(in.Existing) == 0 {
		r.moving.Done(client.ObjectKeyFromObject(read))
		return commit.RemoveFinalizer(ctx, r.client, read, ocmv1.ManifestWorkFinalizer)
	}
	if withdrawn := ocm.Decide(in).Withdrawn; len(withdrawn) > 0 {
		if err := r.readOthers(ctx, &in, withdrawn); err != nil {
			return err
		}
		if err := r.withdraw(ctx, in.Existing, ocm.Decide(in).Withdrawn); err != nil {
			return err
		}
	}
	why := ""
	if err := unready(in.Cluster); err != nil {
		why = err.Error()
	}
	want := read.DeepCopy()
	want.Status = ocm.Leaves(read, why, r.Clock.Now())
	_, err := commit.Status(ctx, r.client, read, want)
	return client.IgnoreNotFound(err)
}

// abandoned deletes the Works of a ManifestWork that was deleted although it had a finalizer.
func (r *reconciler) abandoned(ctx context.Context, key types.NamespacedName,
	existing map[string]*workv1alpha1.Work) error {
	if len(existing) == 0 {
		return nil
	}
	if err := r.live.Get(ctx, key, &ocmv1.ManifestWork{}); !commit.Absent(err) {
		return err // it was recreated, which causes an event soon, or the kind is not served
	}
	return commit.DeleteEach(ctx, r.client, slices.Collect(maps.Values(existing)))
}

// withdraw deletes Works. First it writes on them what to do with their objects.
func (r *reconciler) withdraw(ctx context.Context, existing map[string]*workv1alpha1.Work,
	withdrawn []*workv1alpha1.Work) error {
	var failures []error
	for _, w := range withdrawn {
		var err error
		if was := existing[w.Name]; was != w {
			_, err = commit.Update(ctx, r.client, was, w)
		}
		if err == nil {
			err = commit.Delete(ctx, r.client, w)
		}
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}

// see reads the objects of a ManifestWork in the member. It returns the delay until unwatched ones must be read again;
// 0 means never.
func (r *reconciler) see(ctx context.Context, in ocm.Input,
	decision ocm.Decision) (seen []ocm.Seen, look time.Duration) {
	away := unready(in.Cluster)
	seen = make([]ocm.Seen, len(in.Items))
	for i, item := range in.Items {
		s := &seen[i]
		s.Work, s.Err = in.Existing[item.WorkName(in.ManifestWork.Name, in.Existing)], decision.Errs[i]
		if item.Object == nil || s.Err == nil && item.Writes() &&
			(s.Work == nil || meta.FindStatusCondition(s.Work.Status.Conditions, workv1alpha1.WorkApplied) == nil) {
			continue // there is no object, or the member has not answered
		}
		if s.Unread = away; away != nil {
			continue // a recovered cluster causes an event
		}
		s.Object, s.Unread = r.look(ctx, in.Cluster.Name, item.Object)
		if s.Unread != nil || s.Foreign() || !item.Writes() {
			look = r.Look
		}
	}
	return seen, look
}

// look returns an object from the member, from the cache if it is watched; nil if it does not exist.
func (r *reconciler) look(ctx context.Context, cluster string,
	manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m, err := r.Members.Get(cluster)
	if err != nil {
		return nil, err
	}
	mapping, err := m.Mapping(ctx, manifest.GroupVersionKind())
	if errors.Is(err, member.ErrKindNotServed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	namespace := manifest.GetNamespace()
	if !mapping.Namespaced {
		namespace = ""
	}
	if object, _ := m.Cached(mapping.Resource, namespace, manifest.GetName()); object != nil {
		return object, nil
	}
	// It may belong to someone else and be unwatched, or the watch may be behind.
	return m.Get(ctx, manifest.GroupVersionKind(), namespace, manifest.GetName())
}

// report writes the status of a ManifestWork, unless it delays the write: for objects without a result, and if only
// values changed. Then it returns the delay.
func (r *reconciler) report(ctx context.Context, read, want *ocmv1.ManifestWork) (time.Duration, error) {
	key := client.ObjectKeyFromObject(read)
	var window time.Duration
	switch {
	case equality.Semantic.DeepEqual(read.Status, want.Status):
	case ocm.Unanswered(want):
		window = r.FirstWindow
	case equality.Semantic.DeepEqual(verdicts(read), verdicts(want)):
		window = r.StatusWindow
	}
	if window > 0 {
		if wait := r.moving.Wait(key, window, r.Clock.Now()); wait > 0 {
			want.Status = read.Status
			return wait, nil
		}
	}
	r.moving.Done(key)
	_, err := commit.Status(ctx, r.client, read, want)
	return 0, err
}

// verdicts returns the part of a status that is written without delay: the conditions without messages.
func verdicts(mw *ocmv1.ManifestWork) (all []metav1.Condition) {
	add := func(conditions []metav1.Condition) {
		for _, c := range conditions {
			all = append(all, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason,
				ObservedGeneration: c.ObservedGeneration})
		}
	}
	add(mw.Status.Conditions)
	for _, m := range mw.Status.ResourceStatus.Manifests {
		all = append(all, metav1.Condition{Message: fmt.Sprint(m.ResourceMeta)})
		add(m.Conditions)
	}
	return all
}

// cluster returns the cluster with this name; nil if it has not joined or is leaving.
func (r *reconciler) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	c := &clusterv1alpha1.Cluster{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, c, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && c.DeletionTimestamp != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get cluster %q: %w", name, err)
	}
	return c, nil
}

// hasKlusterlet reports whether a klusterlet applies the ManifestWorks of a cluster and writes their status.
func (r *reconciler) hasKlusterlet(ctx context.Context, name string) (bool, error) {
	c, mc := &clusterv1alpha1.Cluster{}, &clusterv1.ManagedCluster{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, c, client.UnsafeDisableDeepCopy)
	if err == nil {
		return klusterlet.AppliesWorks(c, nil), nil
	}
	if apierrors.IsNotFound(err) {
		err = r.client.Get(ctx, client.ObjectKey{Name: name}, mc, client.UnsafeDisableDeepCopy)
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("find out who acts in cluster %q: %w", name, err)
	}
	return err == nil && klusterlet.AppliesWorks(nil, mc), nil
}

// unready returns why a cluster cannot be read; nil if it can, and for a missing cluster.
func unready(c *clusterv1alpha1.Cluster) error {
	if c == nil || membership.IsReady(c) {
		return nil
	}
	why := "it has not reported a status yet"
	if ready := membership.Readiness(c); ready != nil {
		why = ready.Reason + ": " + ready.Message
	}
	return fmt.Errorf("cluster %q is not ready (%s)", c.Name, why)
}

// open reports whether the execution namespace of a cluster exists and is not being deleted.
func (r *reconciler) open(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	space := &corev1.Namespace{}
	err := r.client.Get(ctx, client.ObjectKey{Name: names.ExecutionSpace(cluster.Name)}, space,
		client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get the execution space of cluster %q: %w", cluster.Name, err)
	}
	return err == nil && space.DeletionTimestamp == nil, nil
}

// readOthers reads the other ManifestWorks of the namespace and the ordinary Works that may contain the withdrawn
// objects too.
func (r *reconciler) readOthers(ctx context.Context, in *ocm.Input, withdrawn []*workv1alpha1.Work) error {
	var list ocmv1.ManifestWorkList
	if err := r.client.List(ctx, &list, client.InNamespace(in.ManifestWork.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the manifest works of cluster %q: %w", in.ManifestWork.Namespace, err)
	}
	in.Others, in.Standing = list.Items, map[string]*workv1alpha1.Work{}
	for _, w := range withdrawn {
		for _, name := range ocm.Ordinary(w) {
			standing := &workv1alpha1.Work{}
			if err := r.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, standing,
				client.UnsafeDisableDeepCopy); err == nil {
				in.Standing[name] = standing
			} else if !apierrors.IsNotFound(err) {
				return fmt.Errorf("get the work %s/%s: %w", w.Namespace, name, err)
			}
		}
	}
	return nil
}

// worksOf returns the Works of a ManifestWork by name. They are read-only.
func (r *reconciler) worksOf(ctx context.Context, key types.NamespacedName) (map[string]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := r.client.List(ctx, &list, client.MatchingFields{byManifestWork: key.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the works of ManifestWork %s: %w", key, err)
	}
	works := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		works[list.Items[i].Name] = &list.Items[i]
	}
	return works, nil
}
