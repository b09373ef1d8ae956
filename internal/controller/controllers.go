// Package controller lists the hub's controllers. Each has its own package, named like the package of core that
// decides for it.
package controller

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/capacity/estimator"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/controller/addons"
	"github.com/argosy-io/argosy/internal/controller/agents"
	"github.com/argosy-io/argosy/internal/controller/aggregate"
	"github.com/argosy-io/argosy/internal/controller/autoscale"
	"github.com/argosy-io/argosy/internal/controller/check"
	"github.com/argosy-io/argosy/internal/controller/cluster"
	"github.com/argosy-io/argosy/internal/controller/dependency"
	"github.com/argosy-io/argosy/internal/controller/deschedule"
	"github.com/argosy-io/argosy/internal/controller/dispatch"
	"github.com/argosy-io/argosy/internal/controller/execute"
	"github.com/argosy-io/argosy/internal/controller/failover"
	historyrecorder "github.com/argosy-io/argosy/internal/controller/history"
	"github.com/argosy-io/argosy/internal/controller/inventory"
	"github.com/argosy-io/argosy/internal/controller/klusterlet"
	"github.com/argosy-io/argosy/internal/controller/namespace"
	"github.com/argosy-io/argosy/internal/controller/ocm"
	"github.com/argosy-io/argosy/internal/controller/placement"
	"github.com/argosy-io/argosy/internal/controller/propagate"
	"github.com/argosy-io/argosy/internal/controller/quota"
	"github.com/argosy-io/argosy/internal/controller/rebalance"
	"github.com/argosy-io/argosy/internal/controller/release"
	"github.com/argosy-io/argosy/internal/controller/replicaset"
	"github.com/argosy-io/argosy/internal/controller/schedule"
	"github.com/argosy-io/argosy/internal/controller/search"
	"github.com/argosy-io/argosy/internal/controller/service"
	coreautoscale "github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	corefailover "github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/object/names"
	coreschedule "github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/internal/definition"
	releasehistory "github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// Options of the loops.
type Options struct {
	// Config reaches the hub with full rights and no rate limit.
	Config *rest.Config
	// Concurrency is the number of objects that a controller processes at the same time.
	Concurrency int
	// ClusterStatusFrequency is the interval of status checks of members.
	ClusterStatusFrequency time.Duration
	// ClusterThresholds are the times after which a member that responds, or does not respond, changes its state.
	ClusterThresholds membership.Thresholds
	// DialMember opens the connections to members; default TCP.
	DialMember func(ctx context.Context, network, address string) (net.Conn, error)
	// Tunnels reach clusters in Pull mode for reads; nil for none.
	Tunnels *tunnel.Tunnels
	// MemberLimits bound the memory that a member can use in the hub.
	MemberLimits member.Limits
	// CheckNetworks are the networks that ReleaseChecks may call; none means all but the addresses of the hub's own
	// machine.
	CheckNetworks []netip.Prefix
	// DialCheck opens the connections of ReleaseChecks; default TCP, to permitted addresses.
	DialCheck func(ctx context.Context, network, address string) (net.Conn, error)
	Scheduler coreschedule.Settings
	// WorkDeletions is the number of Works that users may delete within a minute.
	WorkDeletions int
	// NoExecuteTaintPolicies permits ClusterTaintPolicies to add NoExecute taints.
	NoExecuteTaintPolicies bool
	// LastReported counts the last reports of clusters that are not ready as current, as Karmada does.
	LastReported bool
	// Fleet receives the scheduler's snapshot when it starts; may be nil.
	Fleet func(*capacity.Fleet)
	// Cache receives the controllers' cache when it is filled, and nil when the controllers end; may be nil.
	Cache func(ctrlcache.Cache)
	// Restored receives a function that counts, by cluster, the objects without a Work, and the Works that are paused
	// since a restore; may be nil.
	Restored func(func() (orphans map[string]int, paused int))
	// Estimator calls scheduler estimators of members; nil disables it.
	Estimator *estimator.Options
	// Descheduling moves unschedulable replicas to other clusters; nil moves none.
	Descheduling *Descheduling
	// Failover evicts workloads from failed clusters; nil evicts none.
	Failover *Failover
	// Autoscaling configures FederatedHPAs.
	Autoscaling Autoscaling
	// Grants are the users who may act in members as themselves.
	Grants acting.Source
	// ForbidOverwrite treats users' requests to overwrite objects in members as abort.
	ForbidOverwrite bool
	// ClusterSet connects the Services that clusters export themselves.
	ClusterSet bool
	// Turn identifies this run of the controllers to members.
	Turn Turn
	// Inventory configures the ClusterProfiles.
	Inventory inventory.Options
	// Successes selects the successes that events report.
	Successes commit.SuccessEvents
	// History is the database that records releases; nil if the hub keeps no history.
	History *releasehistory.Source
	// Caches are the caches of ResourceRegistries; nil for none.
	Caches search.Caches
}

// Turn is one run of a hub's controllers.
type Turn struct {
	// Address is where the hub serves, and Run the name of the run.
	Address, Run string
	// Ended are earlier runs that are known to have ended.
	Ended []string
}

// Descheduling has the interval of checks for unschedulable replicas, and the time for which a replica must be
// unschedulable before it moves.
type Descheduling struct{ Interval, Unschedulable time.Duration }

// Failover has the options of evictions. Nothing is evicted for the time Settle after a start.
type Failover struct {
	corefailover.Options
	Settle time.Duration
}

// Autoscaling has the interval of autoscaling, and settings as for a HorizontalPodAutoscaler.
type Autoscaling struct {
	Interval time.Duration
	Settings coreautoscale.Settings
	// IgnoreMembers is that of autoscale.Options.
	IgnoreMembers bool
}

// Defaults of Options, and constants that need no option.
const (
	defaultConcurrency = 8
	// gather collects the statuses of several members for one write, for a time that users do not notice.
	gather = 60 * time.Millisecond
	// statusWindow limits how often progress counters are written; readiness and failures are written at once.
	statusWindow = time.Second
	// firstWindow is the longest time that a binding waits for the first statuses of new members. A failure ends it.
	firstWindow = 5 * time.Second
	// nodesWindow is the time for which the nodes of a Workflow are collected: longer than its progress takes through Work
	// and binding, so that both are written together.
	nodesWindow = 3 * time.Second
)

// shutdownTimeout is the longest time that controllers may take to end. Their requests end with their context.
var shutdownTimeout = 10 * time.Second

// Run runs all loops until ctx ends.
func Run(ctx context.Context, o Options) error {
	o.Scheduler.Name = cmp.Or(o.Scheduler.Name, policyv1alpha1.DefaultSchedulerName)
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	mgr, err := manager(o)
	if err != nil {
		return err
	}
	self, err := identity(ctx, mgr.GetAPIReader(), o.Turn)
	if err != nil {
		return err
	}
	if !o.Scheduler.QuotasOff {
		if mgr, err = quota.Enforce(ctx, mgr); err != nil {
			return err
		}
	}
	if err := setup(ctx, commit.WithSuccessEvents(mgr, o.Successes), self, o); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		if ctx.Err() != nil && commit.QueueStuck() {
			return nil
		}
		return err
	}
	return nil
}

// identity returns the hub's identity for members: the UID of its namespace kube-system. A new store has that namespace
// shortly after its start.
func identity(ctx context.Context, hub client.Reader, turn Turn) (tenure.Self, error) {
	hubID := ""
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			hubID, last = member.Identity(ctx, hub)
			return last == nil, nil
		})
	if err != nil {
		return tenure.Self{}, cmp.Or(last, err)
	}
	return tenure.Self{Hub: hubID, Address: turn.Address, Run: turn.Run, Ended: turn.Ended}, nil
}

// Scheme returns the kinds that controllers use.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
		clusterv1alpha1.AddToScheme, ocmv1.AddToScheme, clusterv1.AddToScheme, setv1beta2.AddToScheme,
		scorev1alpha1.AddToScheme, placementv1beta1.AddToScheme, addonv1beta1.AddToScheme, configv1alpha1.AddToScheme,
		addonv1alpha1.AddToScheme, ocmworkv1alpha1.AddToScheme, appsv1alpha1.AddToScheme,
		multiclusterv1alpha1.AddToScheme, networkingv1alpha1.AddToScheme, autoscalingv1alpha1.AddToScheme,
		releasev1alpha1.AddToScheme, remedyv1alpha1.AddToScheme, searchv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return s, nil
}

func manager(o Options) (ctrl.Manager, error) {
	s, err := Scheme()
	if err != nil {
		return nil, err
	}
	ofCluster, err := labels.Parse(clusterv1.ClusterNameLabel)
	if err != nil {
		return nil, fmt.Errorf("select the rights of klusterlets: %w", err)
	}
	again := true // a hub may be started more than once in one process, as in tests
	mgr, err := ctrl.NewManager(o.Config, ctrl.Options{
		Scheme:     s,
		Controller: config.Controller{SkipNameValidation: &again},
		Metrics:    metricsserver.Options{BindAddress: "0"}, // the API server shows them
		// Who leads is decided outside.
		LeaderElection:          false,
		GracefulShutdownTimeout: &shutdownTimeout,
		Cache: ctrlcache.Options{
			DefaultTransform: ctrlcache.TransformStripManagedFields(),
			ByObject: map[client.Object]ctrlcache.ByObject{
				// The Leases of agents, and of klusterlets in the namespaces of their clusters.
				&coordinationv1.Lease{}: {Namespaces: map[string]ctrlcache.Config{names.Clusters: {}, ctrlcache.AllNamespaces: {
					FieldSelector: fields.OneTermEqualSelector("metadata.name", clusterv1.LeaseName)}}},
				// Those that belong to a cluster of Open Cluster Management.
				&rbacv1.ClusterRole{}:        {Label: ofCluster},
				&rbacv1.ClusterRoleBinding{}: {Label: ofCluster},
				&rbacv1.RoleBinding{}:        {Label: ofCluster},
				&appsv1.ControllerRevision{}: {Transform: withoutPods},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{},
			&corev1.ConfigMap{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("create the controller manager: %w", err)
	}
	return mgr, nil
}

// withoutPods is a cached ControllerRevision without its pods, which only users read. The hub reads those of
// SidecarSets.
func withoutPods(obj any) (any, error) {
	if r, ok := obj.(*appsv1.ControllerRevision); ok {
		r.ManagedFields = nil
		if r.Namespace != names.System {
			r.Data.Raw = nil
		}
	}
	return obj, nil
}

// setup registers the loops, in the order of an object's way through them.
func setup(ctx context.Context, mgr ctrl.Manager, self tenure.Self, o Options) error {
	dyn, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(o.Config)
	if err != nil {
		return err
	}
	interpreter, err := interpreter.New(ctx, interpreter.Options{Informers: mgr.GetCache(), Cached: mgr.GetClient(),
		Live:        mgr.GetAPIReader(),
		Definitions: dyn, Mapper: mgr.GetRESTMapper(), Schema: tiers.Schema, Convert: tiers.Convert,
		Events: commit.Recorder(mgr, "interpreter")})
	if err != nil {
		return err
	}
	own, err := definition.Names()
	if err != nil {
		return err
	}
	definitions, err := definition.New(ctx, mgr.GetCache(), mgr.GetAPIReader(), own)
	if err != nil {
		return err
	}
	templates := template.New(dyn, disco)
	members := member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Limits: o.MemberLimits,
		Self: self, Dial: o.DialMember, Tunnels: o.Tunnels})
	fleet, err := capacity.NewFleet(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	fleet.Use(o.Scheduler)
	if err := fleet.Measure(ctx, mgr.GetCache(), members); err != nil {
		return err
	}
	if o.Estimator != nil {
		estimators, err := estimator.New(*o.Estimator)
		if err != nil {
			return err
		}
		estimators.Join(ctx, fleet)
	}
	if o.Fleet != nil {
		o.Fleet(fleet)
	}
	if o.Cache != nil {
		// A runnable starts when the cache is filled.
		if err := mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
			o.Cache(mgr.GetCache())
			<-ctx.Done()
			o.Cache(nil)
			return nil
		})); err != nil {
			return err
		}
	}
	for _, r := range []interface{ Start(context.Context) error }{interpreter, templates, members} {
		if err := mgr.Add(r); err != nil {
			return err
		}
	}
	if err := scope.IndexWorks(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := template.IndexRevisions(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	recorded, checked := &historyrecorder.Progress{}, &check.Results{}
	for _, loop := range []struct {
		name  string
		setup func() error
	}{
		{"cluster", func() error {
			return cluster.Setup(mgr, cluster.Options{Members: members, Definitions: definitions, Grants: o.Grants,
				StatusUpdateFrequency: o.ClusterStatusFrequency,
				Thresholds:            o.ClusterThresholds, NoExecuteTaintPolicies: o.NoExecuteTaintPolicies})
		}},
		{"agents", func() error { return agents.Setup(mgr) }},
		{"klusterlet", func() error { return klusterlet.Setup(mgr, klusterlet.Options{Definitions: definitions}) }},
		{"inventory", func() error { return inventory.Setup(ctx, mgr, o.Inventory) }},
		{"placement", func() error { return placement.Setup(mgr, placement.Options{Gather: statusWindow}) }},
		{"manifestworkreplicaset", func() error {
			return replicaset.Setup(ctx, mgr, replicaset.Options{Definitions: definitions, Gather: statusWindow})
		}},
		{"addons", func() error {
			return addons.Setup(ctx, mgr, addons.Options{Definitions: definitions, Gather: statusWindow})
		}},
		{"namespace", func() error { return namespace.Setup(mgr, namespace.Options{ForbidOverwrite: o.ForbidOverwrite}) }},
		{"propagate", func() error {
			return propagate.Setup(ctx, mgr, propagate.Options{Templates: templates, Interpreter: interpreter,
				Place: schedule.Placer(fleet, o.Scheduler.Name), Pods: dispatch.PodsOf(members), Concurrency: o.Concurrency})
		}},
		{"dependency", func() error {
			return dependency.Setup(ctx, mgr, dependency.Options{Templates: templates, Interpreter: interpreter,
				Concurrency: o.Concurrency})
		}},
		{"schedule", func() error {
			return schedule.Setup(mgr, schedule.Options{Fleet: fleet, Templates: templates, Name: o.Scheduler.Name,
				Concurrency: o.Concurrency, LastReported: o.LastReported})
		}},
		{"quota", func() error { return quota.Setup(ctx, mgr) }},
		{"rebalance", func() error { return rebalance.Setup(ctx, mgr, rebalance.Options{}) }},
		{"search", func() error {
			if o.Caches == nil {
				return nil
			}
			return search.Setup(mgr, o.Caches)
		}},
		{"deschedule", func() error {
			if o.Descheduling == nil {
				return nil
			}
			return deschedule.Setup(mgr, deschedule.Options{Fleet: fleet, Templates: templates, SchedulerName: o.Scheduler.Name,
				Interval: o.Descheduling.Interval, Unschedulable: o.Descheduling.Unschedulable})
		}},
		{"failover", func() error {
			if o.Failover == nil {
				return nil
			}
			settings := o.Failover.Options
			settings.SchedulerName = o.Scheduler.Name
			return failover.Setup(mgr, failover.Options{Options: settings, Fleet: fleet, Templates: templates,
				Settle: o.Failover.Settle, Gather: gather, LastReported: o.LastReported})
		}},
		{"service", func() error {
			lost := Failover{Options: corefailover.Options{Off: true}}
			if o.Failover != nil {
				lost = *o.Failover
			}
			return service.Setup(ctx, mgr, service.Options{Members: members, Templates: templates,
				Place: schedule.Placer(fleet, o.Scheduler.Name), Failover: lost.Options, Settle: lost.Settle,
				ClusterSet: o.ClusterSet})
		}},
		{"dispatch", func() error {
			return dispatch.Setup(ctx, mgr, dispatch.Options{Templates: templates, Interpreter: interpreter,
				Pods:      dispatch.PodsOf(members),
				Scheduler: o.Scheduler, ForbidOverwrite: o.ForbidOverwrite,
				Concurrency: o.Concurrency, Definitions: definitions})
		}},
		{"release-history", func() error {
			return historyrecorder.Setup(mgr, historyrecorder.Options{Source: o.History, Progress: recorded})
		}},
		{"release", func() error {
			return release.Setup(ctx, mgr, release.Options{Templates: templates, Checks: checked,
				Recorded: recorded.HistoryOf})
		}},
		{"release-check", func() error {
			return check.Setup(ctx, mgr, check.Options{Members: members, Results: checked, Networks: o.CheckNetworks,
				Dial: o.DialCheck, Concurrency: o.Concurrency})
		}},
		{"execute", func() error {
			return execute.Setup(ctx, mgr, execute.Options{Members: members, Interpreter: interpreter, Workers: o.Concurrency,
				StatusWindow: statusWindow,
				Definitions:  definitions, Deletions: &execute.Deletions{Bound: o.WorkDeletions,
					Settle: execute.DefaultDeletions.Settle},
				Report: o.Restored})
		}},
		{"manifestwork", func() error {
			return ocm.Setup(ctx, mgr, ocm.Options{Members: members, Concurrency: o.Concurrency, StatusWindow: statusWindow,
				FirstWindow: firstWindow})
		}},
		{"aggregate", func() error {
			return aggregate.Setup(mgr, aggregate.Options{Templates: templates, Interpreter: interpreter,
				Concurrency: o.Concurrency,
				Gather:      gather, StatusWindow: statusWindow, FirstWindow: firstWindow, LastReported: o.LastReported,
				Members: members, NodesWindow: nodesWindow})
		}},
		{"autoscale", func() error {
			return autoscale.Setup(ctx, mgr, autoscale.Options{Members: members, Fleet: fleet, Templates: templates,
				Interpreter: interpreter, Interval: o.Autoscaling.Interval, Settings: o.Autoscaling.Settings,
				IgnoreMembers: o.Autoscaling.IgnoreMembers,
				Concurrency:   o.Concurrency})
		}},
	} {
		if err := loop.setup(); err != nil {
			return fmt.Errorf("set up the %s controller: %w", loop.name, err)
		}
	}
	return nil
}
