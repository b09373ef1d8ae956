package execute

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

// Deletions limits the deletions of Works by others than the hub's own controllers.
type Deletions struct {
	// Bound is the number of such Works that may be deleted within execute.WaveWindow. If there are more, the objects of
	// all stay.
	Bound int
	// Settle is the time for which the hub waits for more such deletions before it carries one out.
	Settle time.Duration
	// All counts deletions by others as the hub's own. It is for the agent of a Karmada hub, which does not mark the
	// deletions that it requests.
	All bool
}

// deletions decides what the deletion of a Work means for the member's object.
type deletions struct {
	client client.Client
	// live reads past the cache.
	live        client.Reader
	events      commit.Events
	clock       clock.PassiveClock
	definitions *definition.Watch
	limits      Deletions
	noBindings  bool
	// contentsTimeout is Options.ContentsTimeout.
	contentsTimeout time.Duration
	memory          *memory
	restore         *restore
	others          deletedByOthers
}

// judge returns what the deletion of a Work means, and the delay after which to ask again.
func (d *deletions) judge(ctx context.Context, cluster string,
	work *workv1alpha1.Work) (execute.EndKind, time.Duration, string, error) {
	e := execute.End{Broken: d.definitions.Broken(), WorksGo: d.definitions.Going(definition.Works),
		Bound: d.limits.Bound, Settle: d.limits.Settle}
	cl, err := readCluster(ctx, d.client, cluster)
	if client.IgnoreNotFound(err) != nil {
		return "", 0, "", err
	}
	e.Leaving = err == nil && cl.DeletionTimestamp != nil
	for _, name := range ownerDefinitions(work) {
		went, err := d.definitions.WentNow(ctx, name, work)
		if err != nil {
			return "", 0, "", err
		}
		if went {
			e.OwnerWent = name
		}
	}
	if execute.Ordered(work) && !d.limits.All {
		kind, after, reason := execute.JudgeEnd(work, e)
		return kind, after, reason, nil
	}

	// Somebody else deleted the Work. This is rare, so read past the caches.
	if e.SpaceGoes, err = d.isNamespaceDeleted(ctx, work.Namespace); err != nil {
		return "", 0, "", err
	}
	if e.WorksGo, err = d.definitions.GoingNow(ctx, definition.Works); err != nil {
		return "", 0, "", err
	}
	if key, bound := scope.BindingOf(work); bound && !d.noBindings {
		b, err := scope.Bindings.Get(ctx, d.client, key)
		if client.IgnoreNotFound(err) != nil {
			return "", 0, "", err
		}
		if err == nil && b.GetDeletionTimestamp() == nil {
			unwanted, _ := dispatch.Unwanted(b, []workv1alpha1.Work{*work}, d.clock.Now())
			e.Unwanted = len(unwanted) > 0
		}
	}
	if !execute.Leaves(work) {
		e.Others, e.Known, e.AtStart = d.others.count(work, d.clock.Now())
	}
	e.Unwanted = e.Unwanted || d.limits.All
	kind, after, reason := execute.JudgeEnd(work, e)
	return kind, after, reason, nil
}

// ownerDefinitions returns the definitions of the kinds that own a Work without a binding. If one of them is deleted,
// the owners of Works disappear although no user deleted them.
func ownerDefinitions(work *workv1alpha1.Work) []string {
	if _, bound := scope.BindingOf(work); bound {
		return nil
	}
	if work.Annotations[wellknown.ManifestWorkAnnotation] != "" {
		return []string{definition.ManifestWorks}
	}
	if work.Annotations[wellknown.AutoscalerOfAnnotation] != "" {
		return []string{definition.FederatedHPAs}
	}
	if _, is := service.OwnerOf(work); is {
		return []string{definition.MultiClusterServices, definition.ServiceExports, definition.ServiceImports}
	}
	return nil
}

// isNamespaceDeleted reports whether an execution space is being deleted, or was deleted.
func (d *deletions) isNamespaceDeleted(ctx context.Context, name string) (bool, error) {
	namespace := &corev1.Namespace{}
	err := d.live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get execution space %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// keepsObject reports whether the member's object is released instead of deleted although the Work does not ask for
// it. A positive after is the delay after which to ask again. kind is the decision of core/execute.
func (d *deletions) keepsObject(ctx context.Context, m *member.Member, work *workv1alpha1.Work, manifest,
	observed *unstructured.Unstructured, kind execute.Kind) (keeps bool, after time.Duration, err error) {
	cl, err := readCluster(ctx, d.client, m.Name)
	if err != nil {
		return false, 0, err
	}
	leaves := cl.DeletionTimestamp != nil
	if leaves && membership.KeepsWorkloads(cl) {
		return true, 0, nil
	}
	if awaited, err := d.isAwaited(ctx, work); err != nil || awaited && !leaves {
		return awaited, 0, err
	}
	if !execute.TakesAlong(manifest.GroupVersionKind().GroupKind()) || execute.Preserved(work) ||
		!execute.Owns(work, observed) || execute.Anothers(work, observed) || observed.GetDeletionTimestamp() != nil {
		return false, 0, nil
	}
	if kind == execute.Pause {
		return false, 0, nil // The contents may wait for paused objects.
	}
	d.restore.record(work, restoreSettled)
	return d.keepsContents(ctx, m, cl, work, observed)
}

// byWaitingObject is an index of the Works of ManifestWorks by their object. Only such a Work may wait until another
// Work gives up the object.
const byWaitingObject = "execute.waitingObject"

func indexWaitingObject(obj client.Object) []string {
	if obj.GetAnnotations()[wellknown.ManifestWorkAnnotation] == "" {
		return nil
	}
	return objectIndex(obj.(*workv1alpha1.Work))
}

// objectIndex returns the object of a Work as a value of the index.
func objectIndex(work *workv1alpha1.Work) []string {
	m, err := execute.Manifest(work)
	if err != nil {
		return nil
	}
	return []string{work.Namespace + " " + m.GroupVersionKind().GroupKind().String() + " " + m.GetNamespace() + "/" +
		m.GetName()}
}

// isAwaited reports whether the Work of a ManifestWork waits for the object of work.
func (d *deletions) isAwaited(ctx context.Context, work *workv1alpha1.Work) (bool, error) {
	object := objectIndex(work)
	if len(object) == 0 {
		return false, nil
	}
	var same workv1alpha1.WorkList
	if err := d.client.List(ctx, &same, client.InNamespace(work.Namespace),
		client.MatchingFields{byWaitingObject: object[0]}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the works of the same object: %w", err)
	}
	return slices.ContainsFunc(same.Items, func(w workv1alpha1.Work) bool {
		return w.Name != work.Name && w.DeletionTimestamp == nil && slices.Equal(indexWaitingObject(&w), object)
	}), nil
}

// deletedByOthers are the Works that others than the hub deleted, and when this process saw that. It is unknown how
// many Works were deleted before the start.
type deletedByOthers struct {
	mu    sync.Mutex
	works map[types.UID]*deletedWork
}

type deletedWork struct {
	at   time.Time
	gone bool
	// atStart is true if the Work was already deleted when this process saw it first.
	atStart bool
}

// add counts a Work once if the hub did not delete it.
func (o *deletedByOthers) add(work *workv1alpha1.Work, now time.Time, atStart bool) {
	if work.DeletionTimestamp == nil || execute.Ordered(work) || execute.Leaves(work) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.works[work.UID] == nil {
		o.works[work.UID] = &deletedWork{at: now, atStart: atStart}
	}
}

// count returns how many Works were deleted lately, this one included, how long the deletion of this one is known, and
// whether it was deleted at the start.
func (o *deletedByOthers) count(work *workv1alpha1.Work, now time.Time) (n int, known time.Duration, atStart bool) {
	o.add(work, now, false) // The event may be late, but not that of a Work that was deleted before the start.
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
	return n, now.Sub(this.at), this.atStart
}

// gone counts a deleted Work until the window is over.
func (o *deletedByOthers) gone(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d := o.works[uid]; d != nil {
		d.gone = true
	}
}
