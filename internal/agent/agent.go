// Package agent is the agent of a cluster in Pull mode. It runs in the member and acts there for the hub, which cannot
// reach the member: it runs the hub's controllers for Works and for the status of clusters, for this cluster alone.
package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/controller/cluster"
	"github.com/argosy-io/argosy/internal/controller/execute"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/tunnel"
)

// Options of an agent.
type Options struct {
	// Cluster is the name of the cluster on the hub.
	Cluster string
	// Member reaches the API server of the cluster.
	Member *rest.Config
	// Namespace is the namespace of the agent in the member. Secret there has the credentials for the hub.
	Namespace, Secret string
	// StatusFrequency and Thresholds are those of the status controller.
	StatusFrequency time.Duration
	Thresholds      membership.Thresholds
	// Tunnel lets the hub send requests to the cluster through the agent, on behalf of users and for its own reads.
	Tunnel bool
	// Workers is the maximum number of Works that are applied at the same time.
	Workers int
	// WorkDeletions is the maximum number of Works per minute that others than the hub's controllers may delete. If there
	// are more, the objects of these Works stay.
	WorkDeletions int

	// Alone skips the leader election: the cluster has no other agent. It is for tests and measurements.
	Alone bool

	// dial opens the connections to the member in tests.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// run identifies the controllers of all agents of a cluster in its ownership Lease. LeaderLease elects one of them.
	run = "agent"
	// LeaderLease is the Lease in kube-system of the member that elects one of several agents, in any namespaces.
	LeaderLease = "argosy-agent"
	// leaderWait is how long an agent waits for the election before it logs which agent was elected.
	leaderWait = 5 * time.Second
	// statusWindow is the minimum interval between writes of a status that only report progress, as on the hub.
	statusWindow = time.Second
	// hubRetry is the interval of attempts to reach the hub at the start.
	hubRetry = 5 * time.Second
)

var log = ctrl.Log.WithName("agent")

// scheme is shared by clients, to save memory. A manager changes its scheme, so it gets one of its own.
var scheme = sync.OnceValues(controller.Scheme)

// Run runs the agent until ctx ends.
func Run(ctx context.Context, o Options) error {
	inside, err := kubernetes.NewForConfig(o.Member)
	if err != nil {
		return fmt.Errorf("create a client of the cluster: %w", err)
	}
	creds, err := loadCredentials(ctx, inside, o.Namespace, o.Secret)
	if err != nil {
		return err
	}
	defer creds.close()
	if err := creds.expired(o.Cluster, time.Now()); err != nil {
		return err
	}
	hub, err := newHubReader(creds.config())
	if err != nil {
		return err
	}
	self, beside, err := waitForHub(ctx, hub, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	self.Address, self.Run = creds.server, run
	guard, config := newRestoreGuard(pendingRestore(hub)), creds.config()
	config.Wrap(guard.wrap)
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	for _, r := range []manager.Runnable{guard, &standby{cluster: o.Cluster, member: inside, elected: mgr.Elected()}} {
		if err := mgr.Add(r); err != nil {
			return err
		}
	}
	if err := setup(ctx, mgr, self, o, creds, beside); err != nil {
		return err
	}
	log.Info("the agent is connected to the hub", "cluster", o.Cluster, "hub", creds.server)
	if beside {
		log.Info("a klusterlet acts in this cluster: the agent only connects it for requests of the hub, such as logs")
	}
	if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func newManager(hub *rest.Config, o Options) (ctrl.Manager, error) {
	s, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	again, timeout := true, requestTimeout
	space := names.ExecutionSpace(o.Cluster)
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme:                        s,
		Controller:                    ctrlconfig.Controller{SkipNameValidation: &again},
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                !o.Alone,
		LeaderElectionConfig:          o.Member,
		LeaderElectionID:              LeaderLease,
		LeaderElectionNamespace:       metav1.NamespaceSystem,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &timeout,
		Cache: ctrlcache.Options{
			DefaultTransform: ctrlcache.TransformStripManagedFields(),
			ByObject: map[client.Object]ctrlcache.ByObject{
				&clusterv1alpha1.Cluster{}: {Field: fields.OneTermEqualSelector("metadata.name", o.Cluster)},
				&workv1alpha1.Work{}:       {Namespaces: map[string]ctrlcache.Config{space: {}}},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{},
			&corev1.ConfigMap{}, &corev1.Namespace{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("create the controller manager: %w", err)
	}
	return ownEvents{mgr, space}, nil
}

// newHubReader returns a reader of the hub without discovery, whose errors could hide that of the request.
func newHubReader(hub *rest.Config) (client.Reader, error) {
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return client.New(hub, client.Options{Scheme: s, Mapper: mapper})
}

// waitForHub waits until the hub responds, and returns an error if the hub does not have this cluster. An agent never
// creates its Cluster. beside is true if a klusterlet acts in the cluster.
func waitForHub(ctx context.Context, hub client.Reader, o Options) (self tenure.Self, beside bool, err error) {
	last := ""
	inside, err := typed(o.Member)
	if err != nil {
		return self, false, err
	}
	id, err := member.ClusterID(ctx, inside)
	if err != nil {
		return self, false, fmt.Errorf("read the ID of the cluster: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, hubRetry, true, func(ctx context.Context) (bool, error) {
		registered := &clusterv1alpha1.Cluster{}
		err := hub.Get(ctx, types.NamespacedName{Name: o.Cluster}, registered)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return false, fmt.Errorf("cluster %q is not registered on the hub: register it with `argosy register` (%w)",
				o.Cluster, err)
		case apierrors.IsUnauthorized(err):
			return false, fmt.Errorf("the hub rejects the certificate of the agent: it is for another hub, or the hub's keys "+
				"were replaced; register the cluster again with `argosy register` (%w)", err)
		case err == nil && !membership.Pulls(registered):
			return false, fmt.Errorf("cluster %q is in %s mode on the hub: an agent acts only in Pull mode", o.Cluster,
				registered.Spec.SyncMode)
		case err == nil && registered.Spec.ID != "" && registered.Spec.ID != id:
			return false, fmt.Errorf("cluster %q on the hub is another cluster (id %s; this one has id %s): register this one "+
				"under another name", o.Cluster, registered.Spec.ID, id)
		case err == nil:
			beside = klusterlet.Manages(registered)
			if self.Hub, err = member.Identity(ctx, hub); err == nil {
				return true, nil
			}
		}
		if text := err.Error(); text != last {
			last = text
			log.Info("the hub does not respond; the agent retries", "error", text)
		}
		return false, nil
	})
	return self, beside, err
}

// setup registers the controllers, the Lease on the hub, the renewal of the certificate, and the tunnel. The agent
// beside a klusterlet has only the last two.
func setup(ctx context.Context, mgr ctrl.Manager, self tenure.Self, o Options, creds *credentials, beside bool) error {
	hub, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create a client of the hub: %w", err)
	}
	argosy, err := isArgosy(creds.config())
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of the host: %w", err)
	}
	if err := mgr.Add(&rotation{cluster: o.Cluster, credentials: creds, hub: hub}); err != nil {
		return err
	}
	if o.Tunnel && argosy {
		toHub := creds.transport()
		toHub.ResponseHeaderTimeout = requestTimeout
		if err := mgr.Add(&tunnel.Agent{Cluster: o.Cluster, Hub: creds.server, Transport: toHub, Member: o.Member,
			Log: log}); err != nil {
			return err
		}
	}
	if beside {
		return nil
	}
	heartbeat := lease.NewController(clock.RealClock{}, hub, host, int32(membership.AgentLeaseDuration/time.Second), nil,
		membership.AgentRenewPeriod, o.Cluster, names.Clusters, nil)
	renew := func(ctx context.Context) error { heartbeat.Run(ctx); return nil }
	if err := mgr.Add(manager.RunnableFunc(renew)); err != nil {
		return err
	}
	return compose(ctx, mgr, self, o, argosy)
}

// compose registers the hub's controllers for one member. argosy is false for a hub of Karmada.
func compose(ctx context.Context, mgr ctrl.Manager, self tenure.Self, o Options, argosy bool) error {
	interpret, err := newInterpreter(ctx, mgr, o.Member)
	if err != nil {
		return err
	}
	members := member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Self: self, Dial: o.dial,
		Own: &member.Own{Cluster: o.Cluster, Config: o.Member}})
	for _, r := range []interface{ Start(context.Context) error }{interpret, members} {
		if err := mgr.Add(r); err != nil {
			return err
		}
	}
	if err := cluster.SetupStatus(mgr, cluster.Options{Members: members, Thresholds: o.Thresholds,
		StatusUpdateFrequency: o.StatusFrequency}); err != nil {
		return err
	}
	return execute.Setup(ctx, mgr, execute.Options{
		Members: members, Interpreter: interpret, Workers: o.Workers, StatusWindow: statusWindow, NoBindings: true,
		Definitions: definition.Live(mgr.GetAPIReader()),
		Deletions: &execute.Deletions{Bound: o.WorkDeletions, Settle: execute.DefaultDeletions.Settle,
			All: !argosy},
		ReadRestore: restored(mgr.GetAPIReader()),
		// The hub counts the Works that it carries out itself.
		PublishUnchecked: func(context.Context, map[string]int) error { return nil },
	})
}

// newInterpreter returns the interpreter of the hub's configuration. The definitions of kinds are those of the member:
// the hub's are not for agents.
func newInterpreter(ctx context.Context, mgr ctrl.Manager, config *rest.Config) (*interpreter.Interpreter, error) {
	definitions, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client of the cluster: %w", err)
	}
	mapper, err := newMapper(config)
	if err != nil {
		return nil, err
	}
	return interpreter.New(ctx, interpreter.Options{Informers: mgr.GetCache(), Cached: mgr.GetClient(),
		Live: mgr.GetAPIReader(), Definitions: definitions, Mapper: mapper, Schema: tiers.Schema, Convert: tiers.Convert})
}

func newMapper(config *rest.Config) (meta.RESTMapper, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create a client of the cluster: %w", err)
	}
	return apiutil.NewDynamicRESTMapper(config, c)
}

// standby is a manager.Runnable that logs which agent acts while this one waits.
type standby struct {
	cluster string
	member  kubernetes.Interface
	elected <-chan struct{}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *standby) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *standby) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.elected:
		return nil
	case <-time.After(leaderWait):
	}
	acting := ""
	held, err := s.member.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, LeaderLease, metav1.GetOptions{})
	if err == nil && held.Spec.HolderIdentity != nil {
		acting = *held.Spec.HolderIdentity
	}
	log.Info("another agent acts for this cluster; this one waits until that one ends", "cluster", s.cluster, "acting",
		acting)
	return nil
}

// ownEvents is a manager whose controllers record only events of objects in the execution space: an agent may not write
// events of others, such as templates.
type ownEvents struct {
	ctrl.Manager
	space string
}

// GetEventRecorderFor implements manager.Manager.
func (m ownEvents) GetEventRecorderFor(name string) record.EventRecorder {
	//lint:ignore SA1019 the recorder that replaces it writes events of another group
	return spaceRecorder{m.Manager.GetEventRecorderFor(name), m.space}
}

type spaceRecorder struct {
	record.EventRecorder
	space string
}

func (r spaceRecorder) inSpace(obj runtime.Object) bool {
	accessor, err := meta.Accessor(obj)
	return err == nil && accessor.GetNamespace() == r.space
}

// Event implements record.EventRecorder.
func (r spaceRecorder) Event(obj runtime.Object, kind, reason, message string) {
	if r.inSpace(obj) {
		r.EventRecorder.Event(obj, kind, reason, message)
	}
}

// Eventf implements record.EventRecorder.
func (r spaceRecorder) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	if r.inSpace(obj) {
		r.EventRecorder.Eventf(obj, kind, reason, format, args...)
	}
}

// Validate checks the options.
func (o Options) Validate() error {
	switch {
	case o.Cluster == "":
		return errors.New("--cluster-name is missing: give the name under which the cluster is registered")
	case o.Namespace == "" || o.Secret == "":
		return errors.New("--credentials-secret is missing: give NAMESPACE/NAME of the Secret that `argosy register` created")
	case o.StatusFrequency <= 0 || o.Thresholds.Failure < 0 || o.Thresholds.Success < 0:
		return errors.New("durations must be positive")
	}
	return nil
}
