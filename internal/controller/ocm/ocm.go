// Package ocm carries ManifestWorks of Open Cluster Management out: it makes the Works of their objects, and reports in
// their status what became of these. What the Works are and what the status says is decided by core/ocm; Works are
// carried out by controller/execute.
package ocm

import (
	"context"
	"errors"
	"fmt"
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
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/convert/kruise"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/ocm"
	"github.com/argosy-io/argosy/internal/member"
)

// Options of the controller.
type Options struct {
	Members *member.Members
	// Concurrency is how many ManifestWorks are worked on at once.
	Concurrency int
	// StatusWindow is how long values that move while the conditions stay wait for more of them. In a burst they wait
	// longer, see commit.Pace.
	StatusWindow time.Duration
	// FirstWindow is how long a generation waits for all objects to be applied before it is said of some; a failure, or
	// the last answer, ends it.
	FirstWindow time.Duration
	// Look is how often objects are looked at that nobody tells of; default 30 s.
	Look time.Duration
	// Clock is the time; default the real one.
	Clock clock.PassiveClock
}

type reconciler struct {
	Options
	client client.Client
	// live reads past the cache, where a verdict on an old state would take something away.
	live client.Reader
	// queue is told of what changes in members.
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
	// moving are the ManifestWorks whose values wait to be written.
	moving commit.Pace[types.NamespacedName]
	// programs are the expressions of condition rules.
	programs ocm.Programs
}

const (
	// firstRetry is the delay of the first attempt after a failure; it grows.
	firstRetry  = 100 * time.Millisecond
	defaultLook = 30 * time.Second
)

// Reconcile makes of one ManifestWork what it should be.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return commit.Requeue(r.reconcile(ctx, req.NamespacedName))
}

func (r *reconciler) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
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
		return 0, err // that it opens is an event
	}
	if len(cluster.Status.APIEnablements) == 0 {
		return 0, nil // options name kinds as the cluster does; that it is known which it has is an event
	}

	// 1. Hold the ManifestWork, before there is anything that its deletion has to take back.
	if !controllerutil.ContainsFinalizer(read, ocmv1.ManifestWorkFinalizer) {
		want := read.DeepCopy()
		controllerutil.AddFinalizer(want, ocmv1.ManifestWorkFinalizer)
		if _, err := commit.Update(ctx, r.client, read, want); err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		read, in.ManifestWork = want, want
	}

	// 2. The Works, and what became of them. One that cannot be written holds up no other.
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
		in.ManifestWork = want // what was complete is not any more, and what was held back goes now
	}
	after, err := r.report(ctx, read, want)
	if err != nil || failed != nil {
		return 0, errors.Join(client.IgnoreNotFound(err), failed)
	}
	after = commit.ShorterDelay(after, look)

	// 3. Go when it is time.
	remaining, ends := ocm.Remaining(want, r.Clock.Now())
	if !ends {
		return after, nil
	}
	if remaining <= 0 {
		return 0, commit.Delete(ctx, r.client, want)
	}
	return commit.ShorterDelay(after, remaining), nil
}

// carryOut makes the Works what they should be. Why one cannot be written is in the decision, too; the error is stale
// if nothing failed but for an old cache.
func (r *reconciler) carryOut(ctx context.Context, in *ocm.Input) (ocm.Decision, error) {
	decision := ocm.Decide(*in)
	if len(decision.Withdrawn) > 0 {
		if err := r.others(ctx, in, decision.Withdrawn); err != nil {
			return decision, err
		}
		decision = ocm.Decide(*in)
	}
	ordinals := map[string]int{}
	for i, item := range in.Items {
		if decision.Errs[i] == nil {
			ordinals[item.WorkName(in.ManifestWork.Name)] = i
		}
	}
	var failures []error
	for _, w := range decision.Works {
		var err error
		was := in.Existing[w.Name]
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
				decision.Errs[ordinals[w.Name]] = err
			}
		}
	}
	failures = append(failures, r.withdraw(ctx, in.Existing, decision.Withdrawn))
	if err := errors.Join(failures...); err != nil {
		return decision, behind(failures, err)
	}
	return decision, nil
}

// create makes a Work. One that stands is no news to come if it has lost its mark: the cache will never show it as
// ours.
func (r *reconciler) create(ctx context.Context, w *workv1alpha1.Work) error {
	err := r.client.Create(ctx, w)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	standing := &workv1alpha1.Work{}
	if got := r.live.Get(ctx, client.ObjectKeyFromObject(w), standing); got != nil {
		return errors.Join(client.IgnoreNotFound(got), err)
	}
	if mark, want := standing.Annotations[ocmv1.ManifestWorkAnnotation],
		w.Annotations[ocmv1.ManifestWorkAnnotation]; mark != want {
		return fmt.Errorf("it exists already with %q as its annotation %s, not %q: delete it, or change the annotation", mark,
			ocmv1.ManifestWorkAnnotation, want)
	}
	return err
}

// behind is err, or a conflict if nothing failed but for an old cache.
func behind(failures []error, err error) error {
	for _, f := range failures {
		if f != nil && !commit.Stale(f) {
			return err
		}
	}
	return apierrors.NewConflict(workv1alpha1.Resource("works"), "", errors.New("the cache is behind"))
}

// wait says of a ManifestWork that no cluster of that name has joined.
func (r *reconciler) wait(ctx context.Context, read *ocmv1.ManifestWork) error {
	want := read.DeepCopy()
	want.Status = ocm.Waits(read, r.Clock.Now())
	_, err := commit.Status(ctx, r.client, read, want)
	return client.IgnoreNotFound(err)
}

// remove takes back what was made of a ManifestWork that is being deleted, and lets it go when that is done.
func (r *reconciler) remove(ctx context.Context, in ocm.Input) error {
	read := in.ManifestWork
	if !controllerutil.ContainsFinalizer(read, ocmv1.ManifestWorkFinalizer) {
		return nil
	}
	if len(in.Existing) == 0 {
		// The cache may not show yet what was just made.
		for _, item := range ocm.Items(read, in.Cluster) {
			w := &workv1alpha1.Work{}
			key := client.ObjectKey{Namespace: names.ExecutionSpace(read.Namespace), Name: item.WorkName(read.Name)}
			if err := r.live.Get(ctx, key, w); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("get the work %s: %w", key, err)
			} else if err == nil && w.Annotations[ocmv1.ManifestWorkAnnotation] == read.Name {
				in.Existing[w.Name] = w
			}
		}
	}
	if len(in.Existing) == 0 {
		r.moving.Done(client.ObjectKeyFromObject(read))
		return commit.RemoveFinalizer(ctx, r.client, read, ocmv1.ManifestWorkFinalizer)
	}
	if withdrawn := ocm.Decide(in).Withdrawn; len(withdrawn) > 0 {
		if err := r.others(ctx, &in, withdrawn); err != nil {
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

// abandoned has the Works go of a ManifestWork that is gone, though its finalizer should have held it.
func (r *reconciler) abandoned(ctx context.Context, key types.NamespacedName,
	existing map[string]*workv1alpha1.Work) error {
	if len(existing) == 0 {
		return nil
	}
	if err := r.live.Get(ctx, key, &ocmv1.ManifestWork{}); !commit.Absent(err) {
		return err // it is there, made anew: the cache shows it soon, which is an event; or the kind is not served
	}
	var failures []error
	for _, w := range existing {
		failures = append(failures, commit.Delete(ctx, r.client, w))
	}
	return errors.Join(failures...)
}

// withdraw deletes Works, after they say what is to become of their objects.
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

// see looks at the objects of a ManifestWork. It says when to look again at those that nobody tells of; 0 for never.
func (r *reconciler) see(ctx context.Context, in ocm.Input,
	decision ocm.Decision) (seen []ocm.Seen, look time.Duration) {
	away := unready(in.Cluster)
	seen = make([]ocm.Seen, len(in.Items))
	for i, item := range in.Items {
		s := &seen[i]
		s.Work, s.Err = in.Existing[item.WorkName(in.ManifestWork.Name)], decision.Errs[i]
		if item.Object == nil || s.Err == nil && item.Writes() &&
			(s.Work == nil || meta.FindStatusCondition(s.Work.Status.Conditions, workv1alpha1.WorkApplied) == nil) {
			continue // there is nothing to look at, or nobody has answered
		}
		if s.Unread = away; away != nil {
			continue // that it answers again is an event
		}
		s.Object, s.Unread = r.look(ctx, in.Cluster.Name, item.Object)
		if s.Unread != nil || s.Foreign() || !item.Writes() {
			look = r.Look
		}
	}
	return seen, look
}

// look is an object as a member has it, from memory if it is watched; nil if it is absent.
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
	// It may be somebody else's, which is not watched, or the watch may not have shown yet what was made.
	return m.Get(ctx, manifest.GroupVersionKind(), namespace, manifest.GetName())
}

// report writes the status of a ManifestWork, unless it waits: for objects that have not answered, and when nothing but
// values has changed. Then it says how long.
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

// verdicts are what of a status does not wait: how its conditions stand, but for their words.
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

// cluster is the one of that name; nil if it has not joined, or leaves.
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

// unready is why a cluster is not asked; nil if it is, and for one that is gone.
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

// open says whether a cluster can have Works: its execution space is there, and is not going.
func (r *reconciler) open(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	space := &corev1.Namespace{}
	err := r.client.Get(ctx, client.ObjectKey{Name: names.ExecutionSpace(cluster.Name)}, space,
		client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get the execution space of cluster %q: %w", cluster.Name, err)
	}
	return err == nil && space.DeletionTimestamp == nil, nil
}

// others are the other ManifestWorks of the namespace, and the Works of policies and of the hub, which may have an
// object, too, that this one lets go.
func (r *reconciler) others(ctx context.Context, in *ocm.Input, withdrawn []*workv1alpha1.Work) error {
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

// worksOf are the Works of a ManifestWork by name. They are the cache's own: not to be changed.
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
