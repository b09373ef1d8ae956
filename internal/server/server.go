// Package server is the hub's process: it turns a Config into a list of components, starts them in order, and stops
// them in reverse. What the hub decides about workloads is in core and controller; what Kubernetes does is in embed.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/console"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/controller/inventory"
	"github.com/argosy-io/argosy/internal/core/admission/convert"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/server/embed/controllermanager"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/embed/heap"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// Parts are the components that the rest of Argosy adds to the hub. Without them, the hub is a plain API server for our
// kinds.
type Parts struct {
	// Admission returns the in-process admission plugins. They are created before the server runs; Client below is usable
	// once it does.
	Admission func(Deps) []apiserver.AdmissionPlugin
	// Handler wraps the API behind authentication and authorization, to serve more than it does.
	Handler func(Deps, http.Handler) http.Handler
	// Restored counts what a restore left: orphans per cluster, and paused Works.
	Restored func() (orphans map[string]int, paused int)
	// Searched returns the memory of the caches of search; nil for none.
	Searched func() search.Usage
	// Join joins clusters for users of the console; nil if they cannot.
	Join console.Join
	// Simulate simulates changes for users of the console; nil if they cannot.
	Simulate console.Simulate
	// OneTimeLink prints a link that logs in to the console as the administrator: only for a terminal, never into a log.
	OneTimeLink bool
	// Controllers run until ctx ends, on one replica at a time, and return when all of them have.
	Controllers func(context.Context, Deps) error
}

// Deps are the dependencies that parts may use.
type Deps struct {
	// Config reaches the hub's API with full rights and no rate limit, inside the process. Complete from
	// the start; requests fail until the server runs.
	Config *rest.Config
	// Done is closed when the hub stops.
	Done <-chan struct{}
	// Replicated is true if other processes may serve the same hub.
	Replicated bool
	// Settings of the hub; Scheduler are those of the scheduler.
	Settings  *Config
	Scheduler schedule.Settings
	// Turn is this run of the loops, for the controllers.
	Turn controller.Turn
	// Inventory is what ClusterProfiles say of the hub, for the controllers.
	Inventory inventory.Options
	// History records releases; nil if the hub keeps no history.
	History *history.Source
	// Console is the part of the console in front of the API server; nil if that component is off.
	Console *console.Layer
	// Join joins clusters, and Simulate simulates changes, for users of the console. URL is the address at which the hub
	// serves.
	Join     console.Join
	Simulate console.Simulate
	URL      string
	// Authorizer is the API server's, nil before it is built. Findings are the hub's own problems.
	Authorizer func() authorizer.Authorizer
	Findings   func() []upkeep.Finding
	// Discovery lists what the hub serves, nil before the API server is built.
	Discovery func() aggregated.ResourceManager
}

// component is one part of the process. start returns, within ctx, when later components can use it. stop ends it and
// waits; it is called in reverse order of starting.
type component struct {
	name  string
	start func(h *Hub, ctx context.Context) (stop func(), err error)
}

// components in the order in which they start:
//
//	etcd → version → upkeep → encryption → history → apiserver → crds → namespaces → roles → flow-control → agents →
//	klusterlets → loops (controller-manager, controllers) → workload-kinds
//
// The loops are a separate list, because only the leader runs them. Workload kinds come last: they are many
// definitions, which would double the time of the first start, and no other component needs them.
var components = []component{
	{name: "etcd", start: (*Hub).startEtcd},
	{name: "version", start: (*Hub).startVersion},
	{name: "upkeep", start: (*Hub).startUpkeep},
	{name: "encryption", start: (*Hub).startEncryption},
	{name: "history", start: (*Hub).startHistory},
	{name: "apiserver", start: (*Hub).startAPIServer},
	{name: "crds", start: (*Hub).startCRDs},
	{name: "namespaces", start: (*Hub).startNamespaces},
	{name: "roles", start: (*Hub).startRoles},
	{name: "flow-control", start: (*Hub).startFlowControl},
	{name: "agents", start: (*Hub).startAgents},
	{name: "klusterlets", start: (*Hub).startKlusterlets},
	{name: "loops", start: (*Hub).startLoops},
	{name: "workload-kinds", start: (*Hub).startWorkloadKinds},
}

// loops are the controllers. With several replicas, only the leader runs them.
var loops = []loop{
	{"controller-manager", (*Hub).runControllerManager},
	{"controllers", (*Hub).runControllers},
	{"definitions", (*Hub).runDefinitions},
	{"encryption", (*Hub).runEncryption},
}

type loop struct {
	name string
	run  func(h *Hub, ctx context.Context) error
}

func known() []string {
	names := optional()
	for _, c := range components {
		names = append(names, c.name)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains([]string{"version", "upkeep", "encryption", "history", "roles", "flow-control", "agents",
			"klusterlets", "loops", "workload-kinds"}, name)
	})
}

// optional can be left out: the hub still serves its API, and another replica may do the work. The descheduler is one
// of the controllers, and the console is part of the API server.
func optional() []string {
	return []string{"console", "controller-manager", "controllers", "descheduler"}
}

const (
	// startTimeout bounds the start of one component. Only a store that replays a large log takes that long.
	startTimeout = 2 * time.Minute
	// serviceIP is the first address of the default service range, under which pods know an API server.
	serviceIP = "10.96.0.1"
	// systemNamespace has the hub's own objects, clusterNamespace the credentials for its members.
	systemNamespace  = "karmada-system"
	clusterNamespace = "karmada-cluster"
)

// disabledAdmission are plugins that would change or reject templates by the state of the hub, although templates run
// elsewhere. The value is the reason.
var disabledAdmission = map[string]string{
	"ServiceAccount":               "it requires the service accounts of templates to exist on the hub, and mounts their tokens",
	"StorageObjectInUseProtection": "its finalizers are only removed by volume controllers, which the hub does not run",
	"PodGroupProtection":           "its finalizers are only removed by controllers that the hub does not run",
	"DefaultStorageClass":          "classes on the hub are templates, and not in effect there",
	"DefaultIngressClass":          "classes on the hub are templates, and not in effect there",
	"DefaultTolerationSeconds":     "members add their own",
	"LimitRanger":                  "a LimitRange is a template, enforced in members",
	"ResourceQuota":                "a ResourceQuota that a policy claims is a template, enforced in members, and the hub enforces any other itself",
	"PodSecurity":                  "members enforce theirs",
	"Priority":                     "it resolves PriorityClasses of the hub, which are templates",
	"RuntimeClass":                 "it resolves RuntimeClasses of the hub, which are templates",
	"TaintNodesByCondition":        "the hub has no nodes",
	"PersistentVolumeClaimResize":  "it requires a StorageClass on the hub that allows it",
}

// apiserverFlags save work that a hub does not need done.
var apiserverFlags = []string{
	// Proxying between replicas of different versions, and the lease per replica that it needs, written every ten seconds.
	"--feature-gates=UnknownVersionInteroperabilityProxy=false,APIServerIdentity=false",
	// Long watches must not delay a stop.
	"--shutdown-watch-termination-grace-period=1s",
}

// Hub is a started hub.
type Hub struct {
	config Config
	parts  Parts
	out    io.Writer
	log    io.Writer

	listener   net.Listener
	url        string
	files      pki.Files
	etcd       *etcd.Server // nil with an external etcd
	keeper     *keeper
	history    *history.Source // nil without one
	server     *apiserver.Server
	encryption *encryption
	deps       Deps
	alive      *leaderelection.HealthzAdaptor // nil without election

	ready atomic.Bool
	// announced is true once agents can read whether the store was restored.
	announced atomic.Bool
	// leads is true while this replica runs the controllers.
	leads    atomic.Bool
	stops    []func()
	fatal    chan error // the first failure of something that must not fail
	stopOnce sync.Once
}

// Config returns a privileged client configuration for the hub, inside the process.
func (h *Hub) Config() *rest.Config { return h.server.Loopback }

// URL returns the address of the hub's API server.
func (h *Hub) URL() string { return h.url }

// Run runs a hub until ctx ends, which is no error at any time, or until something fails permanently.
func Run(ctx context.Context, c Config, parts Parts, out io.Writer) error {
	systemd := takeNotifier()
	h, err := Start(ctx, c, parts, out)
	switch {
	case err != nil && ctx.Err() != nil: // stopped before it was ready
		fmt.Fprintln(out, "Stopped.")
		return nil
	case err != nil:
		return err
	}
	defer h.Stop()
	systemd.notify(daemon.SdNotifyReady)
	defer systemd.notify(daemon.SdNotifyStopping) // before Stop
	select {
	case <-ctx.Done():
		fmt.Fprintln(out, "Stopping …")
		return nil
	case err := <-h.fatal:
		return err
	}
}

// Start starts all components and returns when the hub serves. If it fails, it stops what it started. ctx ends a start
// in progress; Stop ends a started hub.
func Start(ctx context.Context, c Config, parts Parts, out io.Writer) (*Hub, error) {
	begin := time.Now()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	h := &Hub{config: c, parts: parts, out: out, fatal: make(chan error, 1)}
	if err := h.start(ctx); err != nil {
		h.Stop()
		return nil, err
	}
	took := time.Since(begin)
	klog.InfoS("hub is ready", "url", h.url, "after", took)
	h.greet(took)
	return h, nil
}

func (h *Hub) start(ctx context.Context) error {
	if err := h.prepare(); err != nil {
		return err
	}
	for _, part := range components {
		if err := h.startOne(ctx, part); err != nil {
			return err
		}
	}
	h.ready.Store(true)
	heap.Settle()
	// A start creates much garbage, and a hub may be idle afterwards: return that memory once.
	calm := time.AfterFunc(settle, debug.FreeOSMemory)
	h.stops = append(h.stops, func() { calm.Stop() })
	return nil
}

// unsafeNoFsync makes the hub's own store skip fsync, so that a power loss damages it. No flag or file sets it: tests
// of this package do.
var unsafeNoFsync = false

// settle is how long after a start the caches are filled and one-time work is done.
const settle = 3 * time.Second

// prepare does what can fail by a wrong setting, before anything costly starts: folder, log, port, keys, kubeconfig.
func (h *Hub) prepare() error {
	if err := h.config.KubeAPIServer.checkFiles(time.Now()); err != nil {
		return err
	}
	if err := h.config.Encryption.checkFile(); err != nil {
		return err
	}
	release, err := claim(h.config.DataDir)
	if err != nil {
		return err
	}
	h.stops = append(h.stops, release)
	if err := checkFolder(h.config.DataDir); err != nil {
		return err
	}
	log, closeLog, err := setUpLog(&h.config)
	if err != nil {
		return err
	}
	h.log = log
	h.stops = append(h.stops, closeLog)
	if h.listener, err = listen(&h.config); err != nil {
		return err
	}
	h.stops = append(h.stops, func() { _ = h.listener.Close() }) // closed already when the API server took it over
	h.config.Port = h.listener.Addr().(*net.TCPAddr).Port
	h.url = "https://" + net.JoinHostPort(reachable(h.config.BindAddress), strconv.Itoa(h.config.Port))
	h.files = pki.FilesIn(h.config.pkiDir())
	return h.keepCertificates()
}

func (h *Hub) startOne(ctx context.Context, part component) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	stop, err := part.start(h, ctx)
	if err != nil {
		return err
	}
	if stop != nil {
		h.stops = append(h.stops, func() {
			begin := time.Now()
			stop()
			klog.V(1).InfoS("stopped", "component", part.name, "after", time.Since(begin))
		})
	}
	klog.V(1).InfoS("started", "component", part.name, "after", time.Since(begin))
	return nil
}

// Stop stops everything in reverse order, and returns when all has stopped. A second call does nothing.
func (h *Hub) Stop() {
	h.stopOnce.Do(func() {
		h.ready.Store(false)
		for _, stop := range slices.Backward(h.stops) {
			stop()
		}
	})
}

// fail ends Run. Only the first failure is returned, because the others usually follow from it.
func (h *Hub) fail(err error) {
	select {
	case h.fatal <- err:
	default:
	}
}

func listen(c *Config) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(c.BindAddress, strconv.Itoa(c.Port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d on %s is in use: choose another with --port", c.Port, c.BindAddress)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("address %s is not an address of this machine: choose another with --bind-address",
			c.BindAddress)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("this user may not listen on port %d: choose one above 1023 with --port", c.Port)
	case err != nil:
		return nil, fmt.Errorf("listen on %s port %d: %w", c.BindAddress, c.Port, err)
	}
	return l, nil
}

func (h *Hub) startEtcd(ctx context.Context) (func(), error) {
	if e := h.config.Etcd; len(e.Servers) > 0 {
		return nil, etcd.Check(ctx, e.Servers, e.CAFile, e.CertFile, e.KeyFile)
	}
	err := storeThere(h.config.DataDir)
	if err == nil {
		h.etcd, err = etcd.Start(ctx, etcd.Options{Dir: filepath.Join(h.config.DataDir, "etcd"), Log: h.log,
			Quota: h.config.Etcd.Quota.Value(), Fatal: h.storeEnds, UnsafeNoFsync: unsafeNoFsync})
	}
	if err == nil {
		err = markStore(h.config.DataDir)
	}
	if err != nil {
		return nil, h.broken(err)
	}
	stopped := make(chan struct{})
	go func() {
		select {
		case err := <-h.etcd.Err():
			h.fail(fmt.Errorf("etcd stopped: %w", err))
		case <-stopped:
		}
	}()
	return func() { close(stopped); h.etcd.Stop() }, nil
}

// storeEnds reports why the process is about to end.
func (h *Hub) storeEnds(why string) {
	fmt.Fprintf(h.out, "The hub is stopping: etcd cannot continue: %v\nAll acknowledged writes are on disk.\n",
		h.broken(errors.New(why)))
}

func (h *Hub) startAPIServer(ctx context.Context) (func(), error) {
	e := h.config.Etcd
	if h.etcd != nil {
		e.Servers = []string{h.etcd.Endpoint}
	}
	scheduler, err := h.config.schedulerSettings()
	if err != nil {
		return nil, err
	}
	profiles, err := h.inventory()
	if err != nil {
		return nil, err
	}
	loopback := apiserver.NewLoopback(commit.StatusContextKey)
	done := make(chan struct{})
	h.deps = Deps{Config: loopback.Config(), Done: done, Replicated: h.elects(), Settings: &h.config,
		Inventory: profiles,
		Scheduler: scheduler, History: h.history, Join: h.parts.Join, Simulate: h.parts.Simulate, URL: h.url,
		Findings: func() []upkeep.Finding { return h.health().Problems() }}
	var reviewer atomic.Pointer[authorizer.Authorizer]
	h.deps.Authorizer = func() authorizer.Authorizer {
		if a := reviewer.Load(); a != nil {
			return *a
		}
		return nil
	}
	var lists atomic.Pointer[aggregated.ResourceManager]
	h.deps.Discovery = func() aggregated.ResourceManager {
		if m := lists.Load(); m != nil {
			return *m
		}
		return nil
	}
	if h.config.runs("console") {
		// All hubs of one etcd have this key, so that each can read the sessions of the others.
		key, err := os.ReadFile(h.files.ServiceAccountKey)
		if err == nil {
			o := h.config.KubeAPIServer.OIDC
			h.deps.Console, err = console.NewLayer(h.deps.Config, key, h.config.Port,
				console.OIDC{IssuerURL: o.IssuerURL, ClientID: o.ClientID, CAFile: o.CAFile})
		}
		if err != nil {
			return nil, fmt.Errorf("start the console: %w", err)
		}
	}
	kept, err := stored()
	if err != nil {
		return nil, err
	}
	servingCert, servingKey := h.config.KubeAPIServer.servingFiles(h.files)
	flags, err := h.config.KubeAPIServer.flags(h.config.DataDir, h.files, h.config.hosts())
	if err != nil {
		return nil, err
	}
	if file := h.config.Encryption.ProviderConfig; file != "" {
		flags = append(flags, "--encryption-provider-config="+file, "--encryption-provider-config-automatic-reload=true")
	}
	if _, err := os.Stat(h.files.OldServiceAccountKeys); err == nil {
		flags = append(flags, "--service-account-key-file="+h.files.OldServiceAccountKeys)
	}
	options := apiserver.Options{
		EtcdServers: e.Servers, EtcdCAFile: e.CAFile, EtcdCertFile: e.CertFile, EtcdKeyFile: e.KeyFile,
		Listener: h.listener, BindAddress: h.config.BindAddress, Port: h.config.Port,
		ServingCertFile: servingCert, ServingKeyFile: servingKey,
		ClientCAFile:          h.clientCAs(),
		ServiceAccountKeyFile: h.files.ServiceAccountKey,
		ServiceAccountIssuer:  "https://kubernetes.default.svc.cluster.local",
		RequestHeaderCAFile:   h.files.FrontProxyCA, ProxyClientCertFile: h.files.FrontProxy,
		ProxyClientKeyFile:  h.files.FrontProxyKey,
		DisabledAdmission:   slices.Sorted(maps.Keys(disabledAdmission)),
		Quotas:              hubQuotas(),
		Authorized:          h.handler,
		Reviewer:            func(a authorizer.Authorizer) { reviewer.Store(&a) },
		Discovery:           func(m aggregated.ResourceManager) { lists.Store(&m) },
		Outermost:           h.limitAgents,
		PriorityAndFairness: h.config.KubeAPIServer.PriorityAndFairness,
		LongRunning:         longRunning,
		ReadyChecks: []healthz.HealthChecker{healthz.NamedCheck("argosy", h.checkReady),
			healthz.NamedCheck("store", h.keeper.check)},
		Loopback:                loopback,
		Stored:                  kept,
		Encrypt:                 h.encryption.transform,
		Encrypted:               secretKinds(),
		AuthorizationConfigFile: h.config.KubeAPIServer.AuthorizationConfig,
		Flags:                   append(slices.Clone(apiserverFlags), flags...),
	}
	if h.etcd != nil {
		options.Etcd = h.etcd.Client
	}
	if layer := h.deps.Console; layer != nil {
		options.Outermost = func(next http.Handler) http.Handler { return layer.Wrap(h.limitAgents(next)) }
		options.Authenticate = console.Authenticate
	}
	if h.parts.Admission != nil {
		options.Admission = h.parts.Admission(h.deps)
	}
	if h.elects() {
		h.alive = newAlive()
		options.HealthChecks = append(options.HealthChecks, h.alive)
	}
	server, err := apiserver.Start(context.Background(), options) // ends by Stop, after those who use it
	if err != nil {
		return nil, err
	}
	if err := server.WaitReady(ctx); err != nil {
		server.Stop()
		notReady := &apiserver.NotReadyError{}
		noKMS := errors.As(err, &notReady) && slices.Contains(notReady.Checks, "kms-providers")
		if file := h.config.Encryption.ProviderConfig; file != "" && noKMS {
			return nil, fmt.Errorf("the key management service configured in %s is not responding, so no Secret can be read: start it, or correct --encryption-provider-config (%w)", file, err)
		}
		return nil, err
	}
	h.server = server
	var stopping atomic.Bool
	go func() {
		<-server.Done()
		if !stopping.Load() {
			h.fail(fmt.Errorf("the API server stopped: %w", server.Err()))
		}
	}()
	return func() { stopping.Store(true); close(done); server.Stop() }, nil
}

// handler serves the hub's own URL paths to authorized users.
func (h *Hub) handler(next http.Handler) http.Handler {
	metrics, reviews := metricsHandler(h.keeper.metrics), apiserver.Converting(convert.Review)
	if h.parts.Handler != nil {
		next = h.parts.Handler(h.deps, next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			metrics.ServeHTTP(w, r)
		case "/readyz":
			h.readyz(next, w, r)
		case HealthPath:
			h.serveHealth(w, r)
		case convertPath:
			reviews.ServeHTTP(w, r)
		case EncryptionPath:
			h.serveEncryption(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// checkReady fails until our kinds are served and the loops run, here or in another replica.
func (h *Hub) checkReady(*http.Request) error {
	if !h.ready.Load() {
		return errors.New("the hub is starting or stopping")
	}
	return nil
}

func (h *Hub) startCRDs(ctx context.Context) (func(), error) {
	return nil, installCRDs(ctx, h.Config())
}

// startWorkloadKinds returns at once: a new hub may define workload kinds for some seconds after it is ready. A hub
// that was started before has them from the start.
func (h *Hub) startWorkloadKinds(context.Context) (func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		begin := time.Now()
		err := wait.PollUntilContextCancel(ctx, retryPeriod, true, func(ctx context.Context) (bool, error) {
			err := installWorkloadCRDs(ctx, h.Config(), h.config.defines)
			if err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "cannot create the definitions of workload kinds; retrying", "in", retryPeriod)
			}
			return err == nil, nil
		})
		if err == nil {
			klog.V(1).InfoS("created the definitions of workload kinds", "after", time.Since(begin))
		}
	}()
	return func() { cancel(); <-ended }, nil
}

func (h *Hub) startNamespaces(ctx context.Context) (func(), error) {
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return nil, fmt.Errorf("create a client for namespaces: %w", err)
	}
	for _, name := range []string{systemNamespace, clusterNamespace} {
		if err := keepNamespace(ctx, client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{workv1alpha2.SystemLabel: "true"}}}); err != nil {
			return nil, err
		}
	}
	if err := h.announceRestore(ctx, client); err != nil {
		return nil, err
	}
	h.announced.Store(true)
	return nil, nil
}

func (h *Hub) runControllerManager(ctx context.Context) error {
	return controllermanager.Run(ctx, controllermanager.Options{
		Config:      h.Config(),
		Controllers: controllermanager.Hub,
		Quotas:      hubQuotas(),
		// Works are as many as templates times clusters, and our own controllers delete them.
		Unowned:               []schema.GroupResource{workv1alpha1.Resource("works")},
		ServiceAccountKeyFile: h.files.ServiceAccountKey, RootCAFile: h.files.Trust,
		ClusterSigningCertFile: h.files.ClusterCA, ClusterSigningKeyFile: h.files.ClusterCAKey,
	})
}

func (h *Hub) runControllers(ctx context.Context) error {
	if h.parts.Controllers == nil {
		<-ctx.Done()
		return nil
	}
	deps := h.deps
	var err error
	if deps.Turn, err = h.turn(ctx); err != nil {
		return err
	}
	return h.parts.Controllers(ctx, deps)
}

func (h *Hub) greet(took time.Duration) {
	store := "etcd inside"
	if h.etcd == nil {
		store = fmt.Sprintf("etcd at %v", h.config.Etcd.Servers)
	}
	kubeconfig := h.config.KubeconfigOut
	if kubeconfig == "" {
		kubeconfig = AdminKubeconfig(h.config.DataDir)
	}
	fmt.Fprintf(h.out, `The hub is ready after %.1f s.
  API         %s
  data        %s (%s)
  kubeconfig  %s
  log         %s
  console     %s

Next, in another terminal:
  export KUBECONFIG=%s
  argosy join NAME --cluster-kubeconfig FILE
  kubectl get clusters
Ctrl-C stops the hub; its data is kept.
`, took.Seconds(), h.url, h.config.DataDir, store, kubeconfig, h.config.logFile(), h.consoleHint(), kubeconfig)
}

// consoleHint returns where the console is and how to log in.
func (h *Hub) consoleHint() string {
	switch {
	case h.deps.Console == nil:
		return "off (--components)"
	case h.parts.OneTimeLink:
		if link, err := h.deps.Console.AdminLink(h.files.Admin, h.url); err == nil {
			return link + "\n              (logs in once, as the administrator, within 10 minutes; later: argosy console)"
		}
	}
	return h.url + console.Path + " (argosy console logs in)"
}
