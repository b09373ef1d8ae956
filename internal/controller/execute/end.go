package execute

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/autoscale"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/service"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/scope"
)

// Deletions is what becomes of Works that others than the hub's own loops delete.
type Deletions struct {
	// Bound is how many of them may go within execute.WaveWindow; of more, none is carried out.
	Bound int
	// Settle is how long one waits to see whether there are more.
	Settle time.Duration
}

// judgeEnd decides what the deletion of a Work means.
func (r *reconciler) judgeEnd(ctx context.Context, cluster string,
	work *workv1alpha1.Work) (execute.EndKind, time.Duration, string, error) {
	e := execute.End{Broken: r.Definitions.Broken(), WorksGo: r.Definitions.Going(definition.Works),
		Bound: r.Deletions.Bound, Settle: r.Deletions.Settle}
	cl := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, cl,
		client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return "", 0, "", err
	} else if err == nil {
		e.Leaving = cl.DeletionTimestamp != nil
	}
	for _, name := range ownersOf(work) {
		went, err := r.Definitions.WentNow(ctx, name, work)
		if err != nil {
			return "", 0, "", err
		}
		if went {
			e.OwnerWent = name
		}
	}
	if execute.Ordered(work) {
		kind, after, reason := execute.JudgeEnd(work, e)
		return kind, after, reason, nil
	}

	// Somebody else has deleted it, which is rare: what would be an order by mistake is looked at past the caches.
	var err error
	if e.SpaceGoes, err = r.spaceGoes(ctx, work.Namespace); err != nil {
		return "", 0, "", err
	}
	if e.WorksGo, err = r.Definitions.GoingNow(ctx, definition.Works); err != nil {
		return "", 0, "", err
	}
	if key, bound := scope.BindingOf(work); bound {
		b, err := scope.Bindings.Get(ctx, r.client, key)
		if client.IgnoreNotFound(err) != nil {
			return "", 0, "", err
		}
		if err == nil && b.GetDeletionTimestamp() == nil {
			unwanted, _ := dispatch.Unwanted(b, []workv1alpha1.Work{*work}, r.Clock.Now())
			e.Unwanted = len(unwanted) > 0
		}
	}
	e.Others, e.Known, e.Unseen = r.others.count(work, r.Clock.Now())
	kind, after, reason := execute.JudgeEnd(work, e)
	return kind, after, reason, nil
}

// ownersOf are the definitions of what a Work is made for that no binding has: with one of them, the loops see their
// objects go.
func ownersOf(work *workv1alpha1.Work) []string {
	if _, bound := scope.BindingOf(work); bound {
		return nil // its binding's end is judged before
	}
	if work.Annotations[ocmv1.ManifestWorkAnnotation] != "" {
		return []string{definition.ManifestWorks}
	}
	if work.Annotations[autoscale.OwnerAnnotation] != "" {
		return []string{definition.FederatedHPAs}
	}
	if _, is := service.OwnerOf(work); is {
		return []string{definition.MultiClusterServices, definition.ServiceExports, definition.ServiceImports}
	}
	return nil
}

// spaceGoes says whether a namespace is being deleted, or is gone.
func (r *reconciler) spaceGoes(ctx context.Context, name string) (bool, error) {
	space := &corev1.Namespace{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, space)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get execution space %s: %w", name, err)
	}
	return space.DeletionTimestamp != nil, nil
}

// others are the Works that others than the hub have deleted, since when that is known here. Of those that were deleted
// before a start it is not known how many there were.
type others struct {
	mu    sync.Mutex
	works map[types.UID]*deleted
}

type deleted struct {
	at   time.Time
	gone bool
	// unseen is one that was already deleted when it was seen first.
	unseen bool
}

// add counts a Work that somebody else has deleted, once.
func (o *others) add(work *workv1alpha1.Work, now time.Time, unseen bool) {
	if work.DeletionTimestamp == nil || execute.Ordered(work) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.works == nil {
		o.works = map[types.UID]*deleted{}
	}
	if o.works[work.UID] == nil {
		o.works[work.UID] = &deleted{at: now, unseen: unseen}
	}
}

// count says how many there were lately, with this one, for how long this one is known, and whether it was seen to be
// deleted.
func (o *others) count(work *workv1alpha1.Work, now time.Time) (n int, known time.Duration, unseen bool) {
	o.add(work, now, false) // its event is on the way: those of the start have come
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid, d := range o.works {
		switch lately := now.Sub(d.at) < execute.WaveWindow; {
		case lately || uid == work.UID:
			n++
		case d.gone:
			delete(o.works, uid)
		}
	}
	this := o.works[work.UID]
	return n, now.Sub(this.at), this.unseen
}

// leave has a Work that is gone count for as long as others of its time do.
func (o *others) leave(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d := o.works[uid]; d != nil {
		d.gone = true
	}
}

// kept are the clusters in which objects were kept whose Works went by nobody's order, until that is told.
type kept struct {
	mu       sync.Mutex
	clusters map[string]*keeping
}

type keeping struct {
	works  int
	reason string
	last   time.Time
	// before is what the condition said when this hub process began: nobody else takes it back.
	before string
	// told is how many of the works the condition speaks of.
	told int
}

const (
	// keptGather is how long what is kept is gathered before it is told, and told anew.
	keptGather = time.Second
	// eventWorksKept: Works of the cluster were deleted by somebody other than the hub. Nothing is deleted in the cluster.
	//
	//reference:event Warning on Cluster
	eventWorksKept = "WorksKept"
)

func (k *kept) add(cluster, reason string, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.in(cluster)
	c.works, c.reason, c.last = c.works+1, reason, now
}

// in is what was kept in a cluster; its lock is held.
func (k *kept) in(cluster string) *keeping {
	if k.clusters == nil {
		k.clusters = map[string]*keeping{}
	}
	if k.clusters[cluster] == nil {
		k.clusters[cluster] = &keeping{}
	}
	return k.clusters[cluster]
}

// recall takes up what clusters say that was kept before this hub process began.
func (r *reconciler) recall(ctx context.Context) error {
	var clusters clusterv1alpha1.ClusterList
	if err := r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	r.kept.mu.Lock()
	defer r.kept.mu.Unlock()
	for i := range clusters.Items {
		if said := meta.FindStatusCondition(clusters.Items[i].Status.Conditions,
			clusterv1alpha1.ClusterConditionWorksKept); said != nil && said.Status == metav1.ConditionTrue {
			c := r.kept.in(clusters.Items[i].Name)
			c.before, c.last = said.Message, r.Clock.Now()
		}
	}
	return nil
}

// tellKept says on the clusters what was kept there, until ctx ends.
func (r *reconciler) tellKept(ctx context.Context) {
	tick := time.NewTicker(keptGather)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.tellKeptNow(ctx)
	}
}

func (r *reconciler) tellKeptNow(ctx context.Context) {
	r.kept.mu.Lock()
	now, say := r.Clock.Now(), map[string]keeping{}
	for cluster, c := range r.kept.clusters {
		if over := now.Sub(c.last) >= execute.WaveWindow; over || c.told < c.works {
			say[cluster] = *c
		}
	}
	r.kept.mu.Unlock()
	for cluster, c := range say {
		if err := r.tellKeptIn(ctx, cluster, c, now); err != nil {
			if !commit.Stale(err) {
				log.Error(err, "report what was kept", "cluster", cluster)
			}
			continue // it is tried again
		}
		r.kept.mu.Lock()
		if is := r.kept.clusters[cluster]; is != nil && is.works == c.works {
			if is.told = c.works; now.Sub(is.last) >= execute.WaveWindow {
				delete(r.kept.clusters, cluster)
			}
		}
		r.kept.mu.Unlock()
	}
}

func (r *reconciler) tellKeptIn(ctx context.Context, cluster string, c keeping, now time.Time) error {
	read := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, read); err != nil {
		return client.IgnoreNotFound(err)
	}
	want := read.DeepCopy()
	condition := metav1.Condition{Type: clusterv1alpha1.ClusterConditionWorksKept, Status: metav1.ConditionTrue,
		Reason:             clusterv1alpha1.ReasonWorksDeletedByOthers,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		Message:            fmt.Sprintf("%d Works were not deleted by the hub (%s): nothing was deleted in the cluster, and the Works that are still needed are recreated", c.works, c.reason)}
	if now.Sub(c.last) >= execute.WaveWindow {
		since := metav1.NewTime(c.last).UTC().Format(time.RFC3339)
		condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonNoWorksDeletedByOthers
		condition.Message = fmt.Sprintf("no more since %s, when %d Works were not deleted by the hub (%s); nothing was deleted in the cluster", since, c.works, c.reason)
		if c.works == 0 {
			condition.Message = fmt.Sprintf("no more since %s, when the hub started; before that: %s", since, c.before)
		}
	} else if c.told == 0 {
		r.events.Event(read, corev1.EventTypeWarning, eventWorksKept, condition.Message)
	}
	meta.SetStatusCondition(&want.Status.Conditions, condition)
	_, err := commit.Status(ctx, r.client, read, want)
	return client.IgnoreNotFound(err)
}
