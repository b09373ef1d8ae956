package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/member"
)

const (
	// probeTimeout is the timeout of a probe.
	probeTimeout = 5 * time.Second
	// failingFrequency is the interval between probes of an unhealthy member, to notice recovery soon.
	failingFrequency = 2 * time.Second
	// retryPeriod is the delay after a status conflict.
	retryPeriod = 100 * time.Millisecond
	// firstLoad is the time for which the first status waits for nodes and pods, to save a second write.
	firstLoad = time.Second
)

// collector probes each member in its own goroutine, so that a slow member delays only itself.
type collector struct {
	Options
	client client.Client
	events commit.Events
	auth   commit.Events // only for impersonation, with the source name that Karmada uses
	// started is closed when ctx is set. ctx ends all probes.
	started chan struct{}
	ctx     context.Context

	mu    sync.Mutex
	looks map[string]look
	// impersonators are the checks of permissions, see letImpersonate, and tokens those of tokens, see rotateTokens.
	impersonators, tokens checks
	// following signals changes of the admitted users.
	following <-chan struct{}

	reported commit.Dedup[string] // the last reported problem of a cluster's impersonator
}

// checks has the last check of each member: what was checked, and when to check it again.
type checks struct{ sync.Map }

type check struct {
	of   any
	next time.Time
}

// holds reports whether the last check was of the same, and is not due again. interval is the longest time
// between two checks.
func (c *checks) holds(cluster string, of any, now time.Time, interval time.Duration) bool {
	last, known := c.Load(cluster)
	return known && last.(check).of == of && now.Before(last.(check).next) &&
		now.After(last.(check).next.Add(-2*interval))
}

func (c *checks) set(cluster string, of any, next time.Time) { c.Store(cluster, check{of, next}) }

// look is the loop that probes one member.
type look struct {
	again chan struct{}
	stop  context.CancelFunc
}

func newCollector(c client.Client, events, auth commit.Events, o Options) *collector {
	return &collector{Options: o, client: c, events: events, auth: auth, started: make(chan struct{}),
		looks: map[string]look{}}
}

func (c *collector) Start(ctx context.Context) error {
	c.ctx = ctx
	close(c.started)
	<-ctx.Done()
	return nil
}

// Reconcile starts the loop of a new member, triggers a probe after a change, and ends the loop of a removed one.
func (c *collector) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	select {
	case <-c.started:
	case <-ctx.Done():
		return reconcile.Result{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	err := c.client.Get(ctx, req.NamespacedName, cluster)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || !c.Members.Serves(cluster) {
		c.leave(req.Name)
		if err == nil && c.Members.Known(req.Name) != nil {
			// After a change of the mode, the connection and its watches end. A cluster without a tunnel yet is no error here.
			_, _ = c.Members.Refresh(ctx, req.Name)
		}
		return reconcile.Result{}, nil
	}
	c.enter(req.Name)
	return reconcile.Result{}, nil
}

func (c *collector) enter(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.looks[name]; ok {
		known.trigger()
		return
	}
	ctx, stop := context.WithCancel(c.ctx)
	fresh := look{again: make(chan struct{}, 1), stop: stop}
	c.looks[name] = fresh
	go c.keepLooking(ctx, name, fresh.again)
}

func (c *collector) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.looks[name]; ok {
		known.stop()
		delete(c.looks, name)
		c.impersonators.Delete(name)
		c.tokens.Delete(name)
		c.reported.Forget(name)
		forgetMetrics(name)
	}
}

// kick triggers a probe of a member.
func (c *collector) kick(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.looks[name]; ok {
		known.trigger()
	}
}

func (l look) trigger() {
	select {
	case l.again <- struct{}{}:
	default: // already triggered
	}
}

func (c *collector) keepLooking(ctx context.Context, name string, again <-chan struct{}) {
	log := ctrl.Log.WithName("cluster-status").WithValues("cluster", name)
	var streak membership.Streak
	for ctx.Err() == nil {
		wait, more, err := c.lookAt(ctx, name, &streak)
		if err != nil && ctx.Err() == nil {
			wait = retryPeriod
			if !commit.Stale(err) {
				wait = failingFrequency
				log.Error(err, "collect status")
			}
		}
		timer := c.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-again:
		case <-more:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// lookAt probes the member once and writes the result. It returns when to probe again: after wait, or when more is
// closed.
func (c *collector) lookAt(ctx context.Context, name string,
	streak *membership.Streak) (wait time.Duration, more <-chan struct{}, err error) {
	began := c.Clock.Now()
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.client.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return c.StatusUpdateFrequency, nil, client.IgnoreNotFound(err)
	}
	want := cluster.DeepCopy()
	seen, err := c.collect(ctx, cluster, &want.Status)
	if err != nil {
		return 0, nil, err
	}
	now := c.Clock.Now()
	*streak = streak.Next(seen.ready.Status, now)
	current := membership.Readiness(cluster)
	ready, recheck := membership.Ready(current, seen.ready, *streak, c.Thresholds, now)
	set(&want.Status, ready)
	if recheck == 0 { // otherwise Ready and the fields that belong to it stay
		membership.SetUntrusted(&want.Status.Conditions, seen.untrusted, now)
	}
	observe(name, &want.Status, now.Sub(began))

	wrote, err := commit.Status(ctx, c.client, cluster, want)
	if err != nil {
		return 0, nil, err
	}
	if wrote {
		c.emitOwner(cluster, current, ready)
	}
	if wrote && (current == nil || current.Status != ready.Status) {
		ctrl.Log.WithName("cluster-status").Info("cluster changed", "cluster", name, "ready", ready.Status, "reason",
			ready.Reason, "message", ready.Message)
	}

	wait = c.StatusUpdateFrequency
	if seen.ready.Status != metav1.ConditionTrue {
		wait = min(wait, failingFrequency)
	}
	if recheck > 0 {
		wait = min(wait, recheck)
	}
	return wait, seen.more, nil
}

// sight is the result of one probe, in addition to the status.
type sight struct {
	// ready is the condition Ready from this probe alone.
	ready metav1.Condition
	// untrusted is true if the hub does not trust the member's certificate.
	untrusted bool
	// more is closed when the member has more to report; nil for never.
	more <-chan struct{}
}

// collect probes health and resources of the member and updates the status. Fields without an answer stay. It returns
// the condition Ready without setting it. Its errors come from the hub, not from the member.
func (c *collector) collect(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	status *clusterv1alpha1.ClusterStatus) (sight, error) {
	m, err := c.Members.Refresh(ctx, cluster.Name)
	switch {
	case errors.Is(err, member.ErrCredentials), apierrors.IsNotFound(err):
		why := fmt.Sprintf("cannot create a client: %v; join the cluster again, "+
			"or set token and caBundle in the secret of spec.secretRef", err)
		return sight{ready: membership.Uncollected(why)}, nil
	case err != nil:
		return sight{}, err
	}

	probing, done := context.WithTimeout(ctx, probeTimeout)
	defer done()
	probe := m.Probe(probing)
	seen := membership.Seen(probe)
	if seen.Status != metav1.ConditionTrue {
		if ended := m.TokenEnded(c.Clock.Now()); ended != "" && seen.Reason == clusterv1alpha1.ReasonClusterNotReady {
			seen.Message += "; " + ended
		}
		return sight{ready: seen, untrusted: probe.Untrusted}, nil
	}
	if status.KubernetesVersion, err = m.Version(ctx); err != nil {
		return sight{ready: membership.Uncollected(err.Error())}, nil
	}
	owner, err := m.EnsureOwnership(ctx)
	switch {
	case err != nil:
		return sight{ready: membership.Uncollected(err.Error())}, nil
	case owner.Verdict == tenure.Yield:
		seen = membership.NotOwner(owner.Message) // the rest only reads
	default:
		c.letImpersonate(ctx, m, cluster)
		c.rotateTokens(ctx, m, cluster)
	}
	if brakes, known := m.Brakes(); known { // the first list, and each change, triggers a probe
		status.Brakes = brakes
	}
	current := meta.FindStatusCondition(status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements)
	if apis, err := m.Discover(ctx); err != nil {
		// Keep the known kinds: without them running workloads would be unscheduled.
		set(status, membership.CompleteAPIEnablements(current, status.APIEnablements,
			map[string]string{"all groups": err.Error()}, c.Clock.Now()))
	} else {
		status.APIEnablements = membership.APIEnablements(apis.Lists)
		set(status, membership.CompleteAPIEnablements(current, status.APIEnablements, apis.Failed, c.Clock.Now()))
		c.compareVersions(status)
	}
	more, why := c.collectLoad(ctx, m, cluster.Spec.ResourceModels, status)
	if err := m.Excess(); err != nil {
		why = err.Error()
	}
	if why != "" {
		return sight{ready: membership.Uncollected(why), more: more}, nil
	}
	return sight{ready: seen, more: more}, nil
}

// eventHeld: this hub manages the cluster again.
//
//reference:event Normal on Cluster
const eventHeld = "Held"

// emitOwner records an event when another hub takes over a cluster, and when this hub manages it again.
func (c *collector) emitOwner(cluster *clusterv1alpha1.Cluster, was *metav1.Condition, is metav1.Condition) {
	const reason = clusterv1alpha1.ReasonHeldByAnotherHub
	before, after := was != nil && was.Reason == reason, is.Reason == reason
	switch {
	case after && (!before || was.Message != is.Message):
		c.events.Event(cluster, corev1.EventTypeWarning, reason, is.Message)
	case before && is.Status == metav1.ConditionTrue:
		c.events.Event(cluster, corev1.EventTypeNormal, eventHeld, "this hub manages the cluster")
	}
}

// compareVersions sets the condition for OpenKruise versions, or removes it if the cluster has no OpenKruise.
func (c *collector) compareVersions(status *clusterv1alpha1.ClusterStatus) {
	current := meta.FindStatusCondition(status.Conditions, clusterv1alpha1.ClusterConditionCurrentOpenKruise)
	if condition := membership.CurrentOpenKruise(current, membership.OpenKruise(status.APIEnablements),
		c.Clock.Now()); condition != nil {
		set(status, *condition)
		return
	}
	meta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ClusterConditionCurrentOpenKruise)
}

// collectLoad sums up nodes and pods. Until they are listed it keeps the old sums and returns a channel that signals
// the list. It also keeps them, with a reason, if the new sums are too large for a status.
func (c *collector) collectLoad(ctx context.Context, m *member.Member, models []clusterv1alpha1.ResourceModel,
	status *clusterv1alpha1.ClusterStatus) (more <-chan struct{}, why string) {
	listed := m.Load()
	select {
	case <-listed:
	case <-c.Clock.After(firstLoad):
		return listed, ""
	case <-ctx.Done():
		return nil, ""
	}
	var summary *clusterv1alpha1.ResourceSummary
	m.Capacity(func(m *capacity.ClusterState) { status.NodeSummary, summary = membership.Resources(m, models) })
	if why = membership.Crowded(summary); why == "" {
		status.ResourceSummary = summary
	}
	return nil, why
}

// set replaces the condition of its type. It keeps the transition time of the argument.
func set(status *clusterv1alpha1.ClusterStatus, condition metav1.Condition) {
	if known := meta.FindStatusCondition(status.Conditions, condition.Type); known != nil {
		*known = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}
