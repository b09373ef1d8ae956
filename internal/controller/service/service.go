// Package service connects Services across clusters. It watches the endpoints of exported or provided Services in the
// members and writes the Works that bring them to other members. core/source/service decides which cluster gets what.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// Options of the controllers.
type Options struct {
	Members *member.Members
	// Templates reads the Services of MultiClusterServices.
	Templates *template.Store
	// Place sets the clusters of a new binding. nil leaves that to the scheduler.
	Place func(b workv1alpha2.Binding) (placed bool)
	// Failover decides which clusters are lost, so that their endpoints are withdrawn.
	Failover failover.Options
	// Settle is the time after the first reconciliation in which nothing is withdrawn, because cluster conditions may be
	// out of date.
	Settle time.Duration
	// ClusterSet also connects the Services that clusters export themselves, without policies.
	ClusterSet bool
	// Clock sets the times of conditions. The default is the real clock.
	Clock clock.PassiveClock
}

const (
	// firstRetry is the first delay of the backoff after an error.
	firstRetry = 100 * time.Millisecond
	// spaceRetry is the delay before a Work is written again if its execution namespace does not exist.
	spaceRetry = time.Second
	// endingRetry is the interval between checks whether the former binding of a Service is gone. Only our own bindings
	// cause events.
	endingRetry = 2 * time.Second
	// concurrency is the number of Services that are reconciled at once.
	concurrency = 4
	// byOwner indexes the Works of an exchange. byKind indexes the bindings of exports and imports.
	byOwner = "service.owner"
	byKind  = "service.kind"
)

// exchanges is the common part of the controllers.
type exchanges struct {
	Options
	client client.Client
	// live reads from the API server where a stale cache would cause a wrong deletion.
	live    client.Reader
	events  commit.Events
	follows *follows
	// began returns the time of the first reconciliation.
	began  func() time.Time
	warned commit.Dedup[subject]
}

// subject identifies a warning.
type subject struct {
	owner  service.Owner
	reason string
}

// Setup registers the controllers and their watches in members.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
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
	if err := setupClusterSets(mgr, x.recording(commit.Events{})); err != nil {
		return fmt.Errorf("services that clusters export: %w", err)
	}
	if err := setupCrossCluster(mgr, x.recording(commit.Recorder(mgr, "multiclusterservice-controller"))); err != nil {
		return fmt.Errorf("multi-cluster services: %w", err)
	}
	if err := setupIngresses(mgr, x.recording(commit.Recorder(mgr, "multiclusteringress-controller"))); err != nil {
		return fmt.Errorf("multi-cluster ingresses: %w", err)
	}
	return nil
}

// recording returns a copy of x with its own event recorder.
func (x *exchanges) recording(events commit.Events) *exchanges {
	return &exchanges{Options: x.Options, client: x.client, live: x.live, events: events, follows: x.follows,
		began: x.began}
}

// endpoints triggers the owner of a Service when the endpoints change in a member, and all owners when a member answers
// again: it may be a new Member without watches.
func (x *exchanges) endpoints(kind string) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		x.Members.OnEndpoints(func(_ string, of types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: of}) })
		x.Members.OnAnswer(func(cluster string) {
			for _, of := range x.follows.servicesIn(cluster, kind) {
				q.Add(reconcile.Request{NamespacedName: of})
			}
		})
		return nil
	})
}

// follow watches the endpoints of the providers and adds the known ones. It stops watching former providers.
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
		e.Providers[cluster] = service.Known{Live: ready[cluster]}
		if m, err := x.Members.Get(cluster); err == nil { // otherwise there are no valid credentials and no data
			members[cluster] = m
		}
	}
	x.follows.mu.Lock()
	defer x.follows.mu.Unlock()
	x.stop(of, x.follows.set(of, e.Owner.Kind, clusters))
	for cluster, m := range members {
		all, listed := m.EndpointSlices(of)
		e.Providers[cluster] = service.Known{Slices: all, Listed: listed, Ready: ready[cluster], Live: ready[cluster]}
	}
	return nil
}

// lost sets the clusters that are lost or undecided, and returns when that changes without an event; zero means never.
func (x *exchanges) lost(ctx context.Context, e *service.Exchange) (next time.Time, err error) {
	clusters, err := x.clusters(ctx)
	if err != nil {
		return next, err
	}
	l := failover.Lost(x.Failover, clusters, x.began().Add(x.Settle), x.Clock.Now())
	e.Lost, e.Undecided = l.Lost, l.Undecided
	return l.Next, nil
}

// clusters returns the clusters that are not being deleted. They are read-only.
func (x *exchanges) clusters(ctx context.Context) (all []*clusterv1alpha1.Cluster, err error) {
	all, err = facts.ClusterList(ctx, x.client)
	return slices.DeleteFunc(all, func(c *clusterv1alpha1.Cluster) bool { return c.DeletionTimestamp != nil }), err
}

// unfollow stops all watches of an owner.
func (x *exchanges) unfollow(owner service.Owner) {
	of := types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
	x.follows.mu.Lock()
	x.stop(of, x.follows.set(of, owner.Kind, nil))
	x.follows.mu.Unlock()
	x.warned.ForgetIf(func(s subject) bool { return s.owner == owner })
}

func (x *exchanges) stop(of types.NamespacedName, clusters []string) {
	for _, cluster := range clusters {
		if m := x.Members.Known(cluster); m != nil {
			m.StopEndpointSlices(of)
		}
	}
}

// worksOf returns the Works of an owner. They are read-only.
func (x *exchanges) worksOf(ctx context.Context, owner service.Owner) ([]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := x.client.List(ctx, &list, client.MatchingFields{byOwner: owner.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list works of %s: %w", owner, err)
	}
	return scope.Pointers(list.Items), nil
}

// services returns the existing Works with the exchange's Service, by consumer.
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
			// A Work of another owner contains a different Service.
			if owner, ours := service.OwnerOf(w); w.DeletionTimestamp == nil && (e.Derived == nil || ours && owner == e.Owner) {
				out[cluster] = w
			}
			break
		}
	}
	return out, nil
}

type exchanged struct {
	service.Decision
	// standing are the Works of the owner as they were, services the Works with the Service, by cluster.
	standing []*workv1alpha1.Work
	services map[string]*workv1alpha1.Work
	// next is when the exchange must run again without an event; zero means never.
	next time.Time
	// failed joins the errors of writes.
	failed error
}

// exchangeEndpoints decides about the Works of e and writes them. clusters may have the Service.
func (x *exchanges) exchangeEndpoints(ctx context.Context, e service.Exchange,
	clusters []string) (r exchanged, err error) {
	if err := x.follow(ctx, &e); err != nil {
		return r, err
	}
	if r.next, err = x.lost(ctx, &e); err != nil {
		return r, err
	}
	if r.standing, err = x.worksOf(ctx, e.Owner); err != nil {
		return r, err
	}
	if r.services, err = x.services(ctx, e, clusters); err != nil {
		return r, err
	}
	if r.Decision, err = service.Decide(e, r.standing, r.services, newID); err != nil {
		return r, err
	}
	r.failed = x.write(ctx, r.Decision, r.standing)
	return r, nil
}

// write applies the decision. An error in one cluster does not block the others.
func (x *exchanges) write(ctx context.Context, d service.Decision, standing []*workv1alpha1.Work) error {
	have := map[types.NamespacedName]*workv1alpha1.Work{}
	for _, w := range standing {
		have[client.ObjectKeyFromObject(w)] = w
	}
	errs := []error{commit.DeleteEach(ctx, x.client, d.Gone)}
	for _, w := range d.Works {
		errs = append(errs, x.put(ctx, have[client.ObjectKeyFromObject(w)], w))
	}
	return errors.Join(errs...)
}

// put writes one Work if it differs. have is nil if there is none. A Work that is being deleted is recreated after the
// deletion event.
func (x *exchanges) put(ctx context.Context, have, want *workv1alpha1.Work) error {
	switch {
	case have != nil && (have.DeletionTimestamp != nil || !dispatch.Differs(have, want)):
		return nil
	case have != nil:
		_, err := commit.Update(ctx, x.client, have, dispatch.Onto(have, want))
		return err
	}
	err := scope.CreateWork(ctx, x.client, x.live, want, execute.ObjectOf(want))
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create %s: %w", commit.Name(want), err)
		}
		return nil
	}
	// The Work exists: it is ours and missing in the cache, or it belongs to another owner.
	other := &workv1alpha1.Work{}
	if getErr := x.live.Get(ctx, client.ObjectKeyFromObject(want), other); getErr != nil {
		return err
	}
	if mine, _ := service.OwnerOf(want); mine != (service.Owner{}) {
		if owner, ours := service.OwnerOf(other); !ours || owner != mine {
			return &takenError{commit.Name(other), ownerOf(other)}
		}
	}
	return err
}

// ownerOf describes the owner of a Work, for messages.
func ownerOf(w *workv1alpha1.Work) string {
	if owner, ok := service.OwnerOf(w); ok {
		return owner.String()
	}
	if b, ok := scope.BindingOf(w); ok {
		return "the template of binding " + b.String()
	}
	return "another owner"
}

// takenError reports that a Work with this name belongs to another owner.
type takenError struct{ work, owner string }

func (e *takenError) Error() string {
	return fmt.Sprintf("%s belongs to %s, which dispatches an object of that name to the cluster; delete or rename it there", e.work, e.owner)
}

// gone ends the exchange of a deleted owner. If the owner has Works, or has claimed something, it asks the API server
// first: a stale cache may not show that the object was recreated.
func (x *exchanges) gone(ctx context.Context, me service.Owner, obj client.Object, claimed bool,
	end func(context.Context, service.Owner) error) error {
	standing, err := x.worksOf(ctx, me)
	if err != nil {
		return err
	}
	if len(standing) > 0 || claimed {
		err := x.live.Get(ctx, client.ObjectKey{Namespace: me.Namespace, Name: me.Name}, obj)
		if !commit.Absent(err) {
			return err
		}
	}
	return end(ctx, me)
}

// withdraw deletes all Works of an owner.
func (x *exchanges) withdraw(ctx context.Context, owner service.Owner) error {
	x.unfollow(owner)
	standing, err := x.worksOf(ctx, owner)
	if err != nil {
		return err
	}
	return x.write(ctx, service.Decision{Gone: standing}, nil)
}

// warn records a warning event once per message. An empty message ends the warning.
func (x *exchanges) warn(owner service.Owner, obj client.Object, reason, message string) {
	about := subject{owner, reason}
	if message == "" {
		x.warned.Forget(about)
	} else if x.warned.IsNew(about, message) {
		x.events.Event(obj, corev1.EventTypeWarning, reason, message)
	}
}

// targets returns the clusters of a binding that are not being deleted; none without a binding.
func (x *exchanges) targets(ctx context.Context, b workv1alpha2.Binding) ([]string, error) {
	if b.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	clusters, err := x.clusters(ctx)
	if err != nil {
		return nil, err
	}
	known := sets.New[string]()
	for _, c := range clusters {
		known.Insert(c.Name)
	}
	var out []string
	for _, t := range dispatch.Targets(b) {
		if known.Has(t.Name) {
			out = append(out, t.Name)
		}
	}
	return out, nil
}

// result requeues at the time next; zero means never.
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

// outcome chooses the delay before the next reconciliation by the kind of error.
func outcome(err error) (reconcile.Result, error) {
	var taken *takenError
	switch {
	case err == nil:
		return reconcile.Result{}, nil
	case commit.Stale(err):
		return reconcile.Result{RequeueAfter: commit.StaleRetry}, nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reconcile.Result{RequeueAfter: spaceRetry}, nil // a cluster has just joined or is leaving
	case errors.Is(err, propagate.ErrTerminating), errors.Is(err, propagate.ErrOutlived):
		return reconcile.Result{RequeueAfter: endingRetry}, nil
	case errors.As(err, &taken):
		return reconcile.Result{RequeueAfter: takenRetry}, nil // the user was informed
	}
	return reconcile.Result{}, err
}

// obstacle returns the message for the user about failed writes. It is empty if a retry will fix the problem.
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

// takenRetry is the retry interval while another owner has the Work's name. The release of a name causes no event.
const takenRetry = time.Minute

func newID() string { return uuid.NewString() }

// follows records the clusters in which each owner watches a Service. A ServiceImport and a MultiClusterService may
// have the same name.
type follows struct {
	mu sync.Mutex // locked until the action that depends on it is done
	by map[types.NamespacedName]map[string]map[string]bool
}

// set sets the clusters in which an owner watches the Service, and returns those that no owner watches anymore. The
// caller must lock mu.
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

// ingresses returns the MultiClusterIngresses that watch one of the Services in a cluster, or any Service if none is
// given.
func (f *follows) ingresses(cluster string, services ...types.NamespacedName) (all []types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(services) == 0 {
		services = slices.Collect(maps.Keys(f.by))
	}
	for _, of := range services {
		for who, clusters := range f.by[of] {
			if name, is := strings.CutPrefix(who, service.IngressPrefix); is && clusters[cluster] {
				all = append(all, types.NamespacedName{Namespace: of.Namespace, Name: name})
			}
		}
	}
	return all
}

// servicesIn returns the Services that owners of a kind watch in a cluster, or in any if it is empty.
func (f *follows) servicesIn(cluster, who string) (of []types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, by := range f.by {
		if by[who][cluster] || cluster == "" && by[who] != nil {
			of = append(of, name)
		}
	}
	return of
}
