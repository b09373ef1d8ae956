// Package service has clusters reach Services of each other: it follows the endpoints of Services that are exported or
// provided, in the members that have them, and writes the Works by which other members learn of these. Who learns what
// is decided by core/service.
package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/failover"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/service"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// Options of the controllers.
type Options struct {
	Members *member.Members
	// Templates are read for the Services of MultiClusterServices.
	Templates *template.Store
	// Place gives a binding that is about to be created its clusters; nil leaves that to the scheduler.
	Place func(b workv1alpha2.Binding) (placed bool)
	// Failover decides which clusters are lost, so that their endpoints are withdrawn.
	Failover failover.Options
	// Settle is how long nothing is withdrawn after the first reconciliation: until the conditions of the clusters are up
	// to date.
	Settle time.Duration
	// Clock dates conditions; default the real one.
	Clock clock.PassiveClock
}

const (
	// firstRetry is the delay of the first attempt after a failure; it grows.
	firstRetry = 100 * time.Millisecond
	// spaceRetry is how soon a Work is tried again whose execution space is not there.
	spaceRetry = time.Second
	// endingRetry is how often it is looked whether the binding of a Service that was is gone: that one of ours is, is an
	// event.
	endingRetry = 2 * time.Second
	// concurrency is the number of Services under way at once.
	concurrency = 4
	// byOwner finds the Works of an exchange, and byKind the bindings of what is exported and imported.
	byOwner = "service.owner"
	byKind  = "service.kind"
)

// exchanges is what the controllers of the kinds that ask for exchanges have in common.
type exchanges struct {
	Options
	client client.Client
	// live reads past the cache, where a verdict on an old state would take something away.
	live    client.Reader
	events  commit.Events
	follows *follows
	// began returns the time of the first reconciliation.
	began func() time.Time
	told  commit.Dedup[subject]
}

// subject is what a warning is about.
type subject struct {
	owner  service.Owner
	reason string
}

// Setup registers the controllers with the manager, and with the members what they want to be told.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, byOwner, func(obj client.Object) []string {
		if owner, ok := service.OwnerOf(obj); ok {
			return []string{owner.String()}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("index works by the service that they are for: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha2.ResourceBinding{}, byKind,
		func(obj client.Object) []string {
			if len(bound(ctx, obj)) > 0 {
				return []string{multiclusterv1alpha1.GroupVersion.Group}
			}
			return nil
		}); err != nil {
		return fmt.Errorf("index the bindings of exports and imports: %w", err)
	}
	x := &exchanges{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), follows: &follows{},
		began: sync.OnceValue(o.Clock.Now)}
	if err := setupImports(mgr, x.recording(commit.Recorder(mgr, "service-import-controller"))); err != nil {
		return fmt.Errorf("imports: %w", err)
	}
	if err := setupCrossCluster(mgr, x.recording(commit.Recorder(mgr, "multiclusterservice-controller"))); err != nil {
		return fmt.Errorf("multi-cluster services: %w", err)
	}
	return nil
}

// recording is x with events of its own.
func (x *exchanges) recording(events commit.Events) *exchanges {
	return &exchanges{Options: x.Options, client: x.client, live: x.live, events: events, follows: x.follows,
		began: x.began}
}

// endpoints wakes the object of a Service's name when endpoints of that Service change in a member, and what follows
// any in a member that answers again: if that had no usable credentials meanwhile, it is another Member, of which
// nobody follows anything yet.
func (x *exchanges) endpoints(kind string) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		x.Members.OnEndpoints(func(_ string, of types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: of}) })
		x.Members.OnAnswer(func(cluster string) {
			for _, of := range x.follows.in(cluster, kind) {
				q.Add(reconcile.Request{NamespacedName: of})
			}
		})
		return nil
	})
}

// follow fills in what is known of the providers' endpoints; those that provided before are followed no more.
func (x *exchanges) follow(ctx context.Context, e *service.Exchange) error {
	of := types.NamespacedName{Namespace: e.Owner.Namespace, Name: e.Owner.Name}
	clusters, members, ready := make([]string, 0, len(e.Providers)), map[string]*member.Member{}, map[string]bool{}
	for cluster := range e.Providers {
		clusters = append(clusters, cluster)
		c := &clusterv1alpha1.Cluster{}
		if err := x.client.Get(ctx, client.ObjectKey{Name: cluster}, c,
			client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get cluster %q: %w", cluster, err)
		}
		ready[cluster] = membership.IsReady(c)
		if m, err := x.Members.Get(cluster); err == nil { // else it has no usable credentials, and is silent
			members[cluster] = m
		}
	}
	x.follows.mu.Lock()
	defer x.follows.mu.Unlock()
	x.stop(of, x.follows.set(of, e.Owner.Kind, clusters))
	for cluster, m := range members {
		all, listed := m.EndpointSlices(of)
		e.Providers[cluster] = service.Known{Slices: all, Listed: listed, Ready: ready[cluster]}
	}
	return nil
}

// lost sets the clusters that are lost or may be, and returns when that changes without an event; zero is never.
func (x *exchanges) lost(ctx context.Context, e *service.Exchange) (next time.Time, err error) {
	var list clusterv1alpha1.ClusterList
	if err := x.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return next, fmt.Errorf("list clusters: %w", err)
	}
	var clusters []*clusterv1alpha1.Cluster
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			clusters = append(clusters, &list.Items[i])
		}
	}
	l := failover.Lost(x.Failover, clusters, x.began().Add(x.Settle), x.Clock.Now())
	e.Lost, e.Undecided = l.Lost, l.Undecided
	return l.Next, nil
}

// unfollow ends what follow began for an owner.
func (x *exchanges) unfollow(owner service.Owner) {
	of := types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
	x.follows.mu.Lock()
	x.stop(of, x.follows.set(of, owner.Kind, nil))
	x.follows.mu.Unlock()
	x.told.ForgetIf(func(s subject) bool { return s.owner == owner })
}

func (x *exchanges) stop(of types.NamespacedName, clusters []string) {
	for _, cluster := range clusters {
		if m := x.Members.Known(cluster); m != nil {
			m.StopEndpointSlices(of)
		}
	}
}

// standing are the Works of an owner, read only.
func (x *exchanges) standing(ctx context.Context, owner service.Owner) ([]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := x.client.List(ctx, &list, client.MatchingFields{byOwner: owner.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list works of %s: %w", owner, err)
	}
	works := make([]*workv1alpha1.Work, len(list.Items))
	for i := range list.Items {
		works[i] = &list.Items[i]
	}
	return works, nil
}

// services are the Works of an exchange's Service in its consumers, those that there are.
func (x *exchanges) services(ctx context.Context, e service.Exchange,
	clusters []string) (map[string]*workv1alpha1.Work, error) {
	out := map[string]*workv1alpha1.Work{}
	for _, cluster := range clusters {
		for _, name := range e.ServiceWorkNames() {
			w := &workv1alpha1.Work{}
			err := x.client.Get(ctx, client.ObjectKey{Namespace: names.ExecutionSpace(cluster), Name: name}, w,
				client.UnsafeDisableDeepCopy)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("get the work of Service %s/%s for cluster %q: %w", e.Owner.Namespace, e.Service, cluster,
					err)
			}
			if err != nil || !e.Brings(w) {
				continue
			}
			// One that belongs to somebody else brings another Service.
			if owner, ours := service.OwnerOf(w); w.DeletionTimestamp == nil && (e.Derived == nil || ours && owner == e.Owner) {
				out[cluster] = w
			}
			break
		}
	}
	return out, nil
}

// write makes the Works what the decision says. One cluster's failure leaves the others' as they should be.
func (x *exchanges) write(ctx context.Context, d service.Decision, standing []*workv1alpha1.Work) error {
	have := map[types.NamespacedName]*workv1alpha1.Work{}
	for _, w := range standing {
		have[client.ObjectKeyFromObject(w)] = w
	}
	var errs []error
	for _, w := range d.Gone {
		errs = append(errs, commit.Delete(ctx, x.client, w))
	}
	for _, w := range d.Works {
		errs = append(errs, x.put(ctx, have[client.ObjectKeyFromObject(w)], w))
	}
	return errors.Join(errs...)
}

// put writes one Work, if it is not as wanted; have is nil if it does not stand. One that is being deleted is made anew
// when it is gone, which is an event.
func (x *exchanges) put(ctx context.Context, have, want *workv1alpha1.Work) error {
	switch {
	case have != nil && (have.DeletionTimestamp != nil || !dispatch.Differs(have, want)):
		return nil
	case have != nil:
		_, err := commit.Update(ctx, x.client, have, dispatch.Onto(have, want))
		return err
	}
	err := x.client.Create(ctx, want)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create %s: %w", commit.Name(want), err)
		}
		return nil
	}
	// Ours, which the cache does not show yet, or somebody else's.
	other := &workv1alpha1.Work{}
	if getErr := x.live.Get(ctx, client.ObjectKeyFromObject(want), other); getErr != nil {
		return err
	}
	if mine, _ := service.OwnerOf(want); mine != (service.Owner{}) {
		if owner, ours := service.OwnerOf(other); !ours || owner != mine {
			return &takenError{commit.Name(other), holder(other)}
		}
	}
	return err
}

// holder is whose a Work is, in words.
func holder(w *workv1alpha1.Work) string {
	if owner, ok := service.OwnerOf(w); ok {
		return owner.String()
	}
	if b, ok := scope.BindingOf(w); ok {
		return "the template of binding " + b.String()
	}
	return "another owner"
}

// takenError says that a Work's name is another's.
type takenError struct{ work, holder string }

func (e *takenError) Error() string {
	return fmt.Sprintf("%s belongs to %s, which dispatches an object of that name to the cluster; delete or rename it there", e.work, e.holder)
}

// withdraw has the Works of an owner go that asks for none any more.
func (x *exchanges) withdraw(ctx context.Context, owner service.Owner) error {
	x.unfollow(owner)
	standing, err := x.standing(ctx, owner)
	if err != nil {
		return err
	}
	return x.write(ctx, service.Decision{Gone: standing}, nil)
}

// warn puts an event on the object unless the same was said before; an empty message ends the warning.
func (x *exchanges) warn(owner service.Owner, obj client.Object, reason, message string) {
	about := subject{owner, reason}
	if message == "" {
		x.told.Forget(about)
	} else if x.told.IsNew(about, message) {
		x.events.Event(obj, corev1.EventTypeWarning, reason, message)
	}
}

// targets are the clusters that a binding places its template in, of those that are in the fleet to stay; none without
// a binding.
func (x *exchanges) targets(ctx context.Context, b workv1alpha2.Binding) ([]string, error) {
	if b.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	var out []string
	for _, t := range dispatch.Targets(b) {
		stays, err := x.stays(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		if stays {
			out = append(out, t.Name)
		}
	}
	return out, nil
}

// stays says whether a cluster is in the fleet, and not about to leave.
func (x *exchanges) stays(ctx context.Context, cluster string) (bool, error) {
	c := &clusterv1alpha1.Cluster{}
	err := x.client.Get(ctx, client.ObjectKey{Name: cluster}, c, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get cluster %q: %w", cluster, err)
	}
	return err == nil && c.DeletionTimestamp == nil, nil
}

// result is the outcome of a reconciliation that is due again at a time; zero is never.
func (x *exchanges) result(next time.Time, err error) (reconcile.Result, error) {
	result, err := outcome(err)
	if err != nil || next.IsZero() {
		return result, err
	}
	if after := max(next.Sub(x.Clock.Now()), commit.StaleRetry); result.RequeueAfter == 0 || after < result.RequeueAfter {
		result.RequeueAfter = after
	}
	return result, nil
}

// outcome is what a look at an object comes to.
func outcome(err error) (reconcile.Result, error) {
	var taken *takenError
	switch {
	case err == nil:
		return reconcile.Result{}, nil
	case commit.Stale(err):
		return reconcile.Result{RequeueAfter: commit.StaleRetry}, nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reconcile.Result{RequeueAfter: spaceRetry}, nil // a cluster has just joined, or leaves
	case errors.Is(err, propagate.ErrTerminating), errors.Is(err, propagate.ErrOutlived):
		return reconcile.Result{RequeueAfter: endingRetry}, nil
	case errors.As(err, &taken):
		return reconcile.Result{RequeueAfter: takenRetry}, nil // it was told
	}
	return reconcile.Result{}, err
}

// obstacle is what is told of what went wrong with Works; empty for what another look mends.
func obstacle(err error) string {
	var taken *takenError
	if errors.As(err, &taken) {
		return taken.Error()
	}
	if _, err = outcome(err); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}

// takenRetry is how often a Work's name that is another's is tried again: that it is free is nobody's event.
const takenRetry = time.Minute

func newID() string { return uuid.NewString() }

// follows are the clusters in which somebody follows a Service, by its name and by who it is: a ServiceImport and a
// MultiClusterService may share one.
type follows struct {
	mu sync.Mutex // held until what is decided by it is done
	by map[types.NamespacedName]map[string]map[string]bool
}

// set has who follow the Service in these clusters and no others, and returns those where now nobody does who did. It
// is called with the lock held.
func (f *follows) set(of types.NamespacedName, who string, clusters []string) (ended []string) {
	if f.by == nil {
		f.by = map[types.NamespacedName]map[string]map[string]bool{}
	}
	if f.by[of] == nil {
		f.by[of] = map[string]map[string]bool{}
	}
	was := f.by[of][who]
	f.by[of][who] = map[string]bool{}
	for _, c := range clusters {
		f.by[of][who][c] = true
	}
	for c := range was {
		still := false
		for _, followed := range f.by[of] {
			still = still || followed[c]
		}
		if !still {
			ended = append(ended, c)
		}
	}
	if len(clusters) == 0 {
		delete(f.by[of], who)
	}
	if len(f.by[of]) == 0 {
		delete(f.by, of)
	}
	return ended
}

// in are the Services that who of a kind follow in a cluster.
func (f *follows) in(cluster, who string) (of []types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, by := range f.by {
		if by[who][cluster] {
			of = append(of, name)
		}
	}
	return of
}
