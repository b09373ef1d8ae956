// Package apiserver runs a full kube-apiserver inside this process, for the hub and for simulated members. It turns
// Options into the server's own flags, so that the code reads like a manifest of a kube-apiserver.
//
// One process should run one API server at a time: feature gates, metrics and logging are global to it.
package apiserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"

	_ "github.com/argosy-io/argosy/internal/server/embed/quiet" // see there
	argosy "github.com/argosy-io/argosy/internal/version"
)

// Options are one server. File paths, not contents: the server watches the files and reloads them.
type Options struct {
	// EtcdServers are client URLs; unix:// ones need no TLS files.
	EtcdServers                           []string
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string

	// Listener, if set, is what the server listens on and closes; BindAddress and Port then only describe it. A caller
	// that binds the port itself can report at once that it is in use.
	Listener    net.Listener
	BindAddress string
	Port        int

	// ServingCertFile and ServingKeyFile are the server's identity.
	ServingCertFile, ServingKeyFile string
	// ClientCAFile signs client certificates that the server accepts.
	ClientCAFile string
	// ServiceAccountKeyFile signs and verifies service account tokens; ServiceAccountIssuer names their issuer.
	ServiceAccountKeyFile string
	ServiceAccountIssuer  string
	// The front proxy: the CA that aggregated servers verify us with, and our certificate for it.
	RequestHeaderCAFile                     string
	ProxyClientCertFile, ProxyClientKeyFile string

	// DisabledAdmission names stock admission plugins to turn off.
	DisabledAdmission []string
	// Admission are our own plugins. They run in this order, just before admission webhooks.
	Admission []AdmissionPlugin
	// Quotas, if set, selects the ResourceQuotas that apply here. It replaces the stock plugin, which must be in
	// DisabledAdmission.
	Quotas labels.Selector
	// PriorityAndFairness turns on API priority and fairness, which queues per flow. Without it the
	// server only bounds requests in flight, and privileged clients pass that bound.
	PriorityAndFairness bool

	// LongRunning, if set, decides which requests are streams; next is the server's own decision.
	LongRunning func(next request.LongRunningRequestCheck) request.LongRunningRequestCheck

	// Outermost, if set, wraps the whole chain of the network's requests: it sees a request before any filter does, and
	// may change it.
	Outermost func(next http.Handler) http.Handler
	// Authenticate, if set, is the first authenticator of network requests. It uses only values that Outermost put into
	// the request's context, nothing that the client sent.
	Authenticate authenticator.RequestFunc
	// Reviewer, if set, is called once with the server's authorizer.
	Reviewer func(authorizer.Authorizer)
	// Authorized, if set, wraps the handlers behind authentication and authorization; it can serve paths itself.
	Authorized func(next http.Handler) http.Handler
	// Discovered are groups that Authorized serves, and discovery lists.
	Discovered []apidiscoveryv2.APIGroupDiscovery
	// Discovery, if set, is called once with what lists the groups, for those that Authorized serves at times.
	Discovery func(aggregated.ResourceManager)
	// HealthChecks join /livez, /readyz and /healthz. ReadyChecks join /readyz alone.
	HealthChecks, ReadyChecks []healthz.HealthChecker

	// Loopback, if set, is connected to this server; otherwise Start creates one.
	Loopback *Loopback
	// Etcd, if set, returns a client of the etcd at EtcdServers in this process, for all stored kinds.
	Etcd func() *clientv3.Client
	// Encrypt, if set, returns the transformer of a resource, which replaces own. It is called at the start for the custom
	// resources in Encrypted, and for all other resources when they are first served.
	Encrypt   func(resource schema.GroupResource, own value.Transformer) value.Transformer
	Encrypted []schema.GroupResource
	// Stored, if set, returns how a custom kind is stored, if that differs from Kubernetes' way.
	Stored func(schema.GroupVersionKind) Stored
	// AuthorizationConfigFile is an AuthorizationConfiguration, instead of Node and RBAC.
	AuthorizationConfigFile string
	// Flags are further kube-apiserver flags, applied last.
	Flags []string
}

// AdmissionPlugin is an admission plugin with its name. New is called several times: a kube-apiserver consists of
// servers for built-in kinds, for custom kinds and for aggregation, each with its own chain.
type AdmissionPlugin struct {
	Name string
	New  func() (admission.Interface, error)
}

// Server is a started API server.
type Server struct {
	// Loopback is a privileged client configuration over the in-memory transport. It has no rate limit.
	Loopback *rest.Config
	// LoopbackTLS is the same identity over TLS on the server's own port, for clients that upgrade connections.
	LoopbackTLS *rest.Config

	stop context.CancelFunc
	done chan struct{}
	// notOurs are query parameters that ask for readiness without the caller's checks.
	notOurs  []string
	wasReady atomic.Bool
	err      error // valid when done is closed
}

// hooksTimeout bounds how long a stopped server may take to finish its start.
const hooksTimeout = 15 * time.Second

// Start builds the server and begins to serve; WaitReady returns when it is ready. ctx, like Stop, ends the server.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := runOptions(o)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	server, err := start(ctx, o, s)
	if err != nil {
		stop()
		return nil, err
	}
	server.stop = stop
	return server, nil
}

func start(ctx context.Context, o Options, s *options.ServerRunOptions) (_ *Server, err error) {
	closed, closeMemory := context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			closeMemory()
		}
	}()
	completed, err := s.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("complete the API server's options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("validate the API server's options: %w", errs[0])
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("configure the API server: %w", err)
	}

	// 1. The outermost server, the aggregator, owns the chain that every request passes first.
	outer := &config.Aggregator.GenericConfig.Config
	build := outer.BuildHandlerChainFunc
	if o.LongRunning != nil {
		outer.LongRunningFunc = o.LongRunning(outer.LongRunningFunc)
	}
	ours := &target{closed: closed}
	outer.BuildHandlerChainFunc = func(inner http.Handler, c *genericapiserver.Config) http.Handler {
		if o.Authorized != nil {
			inner = o.Authorized(inner)
		}
		ours.handler = build(inner, lean(c))
		ours.timeout = c.RequestTimeout
		ours.longRunning = func(r *http.Request) bool {
			info, err := c.RequestInfoResolver.NewRequestInfo(r)
			return err != nil || c.LongRunningFunc(r, info)
		}
		if o.Reviewer != nil {
			o.Reviewer(c.Authorization.Authorizer)
		}
		network := *c
		if o.Authenticate != nil {
			network.Authentication.Authenticator = union.New(o.Authenticate, c.Authentication.Authenticator)
		}
		handler := build(inner, &network)
		if o.Outermost != nil {
			handler = o.Outermost(handler)
		}
		return handler
	}
	outer.AddHealthChecks(o.HealthChecks...)
	outer.AddReadyzChecks(o.ReadyChecks...)

	if !o.PriorityAndFairness {
		// It would continuously write the defaults of a configuration that is not used.
		config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Insert(flowcontrolrest.PostStartHookName)
	}
	outer.EffectiveVersion = released{outer.EffectiveVersion}

	uncached := generic.UndecoratedStorage
	getters := []*generic.RESTOptionsGetter{&config.KubeAPIs.ControlPlane.Generic.RESTOptionsGetter,
		&config.ApiExtensions.GenericConfig.RESTOptionsGetter,
		&config.ApiExtensions.ExtraConfig.CRDRESTOptionsGetter, &config.Aggregator.GenericConfig.RESTOptionsGetter}
	if o.Encrypt != nil {
		for _, getter := range getters {
			*getter = encrypted{*getter, o.Encrypt}
		}
		for _, custom := range o.Encrypted {
			if _, err := config.ApiExtensions.ExtraConfig.CRDRESTOptionsGetter.GetRESTOptions(custom, nil); err != nil {
				return nil, fmt.Errorf("read the storage configuration of %s: %w", custom, err)
			}
		}
	}
	if o.Etcd != nil {
		shared := &directEtcd{client: o.Etcd}
		for _, getter := range getters {
			*getter = direct{*getter, shared}
		}
		uncached = shared.uncached
	}
	if o.Stored != nil {
		extra := &config.ApiExtensions.ExtraConfig
		extra.CRDRESTOptionsGetter = restOptions{extra.CRDRESTOptionsGetter, o.Stored, uncached}
	}

	// 2. What is built from here on shares one loopback configuration by pointer. Move it off the network by
	// changing it in place: the resolver of webhooks that address this server has the pointer already.
	if o.Loopback == nil {
		o.Loopback = NewLoopback()
	}
	shared := outer.LoopbackClientConfig
	over := rest.CopyConfig(shared)
	shared.Transport = o.Loopback
	shared.TLSClientConfig = rest.TLSClientConfig{} // client-go rejects TLS options together with a transport

	// 3. Build the chain, then serve.
	complete, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("complete the API server's configuration: %w", err)
	}
	chain, err := app.CreateServerChain(complete)
	if err != nil {
		return nil, fmt.Errorf("build the API server: %w", err)
	}
	if o.Discovery != nil {
		o.Discovery(chain.GenericAPIServer.AggregatedDiscoveryGroupManager)
	}
	for _, group := range o.Discovered {
		for _, version := range group.Versions {
			chain.GenericAPIServer.AggregatedDiscoveryGroupManager.AddGroupVersion(group.Name, version)
		}
	}
	server := &Server{Loopback: o.Loopback.Config(), LoopbackTLS: over, done: make(chan struct{})}
	for _, check := range o.ReadyChecks {
		server.notOurs = append(server.notOurs, "exclude="+url.QueryEscape(check.Name()))
	}
	ours.token = over.BearerToken
	o.Loopback.target.Store(ours)
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("prepare the API server: %w", err)
	}
	go func() {
		defer close(server.done)
		defer closeMemory()
		server.err = prepared.Run(ctx)
	}()
	return server, nil
}

// lean simplifies c for requests of this process. They have their own deadlines, are few enough not to be counted, and
// are traced by the caller. So filters that start a goroutine and a span per request are left out. Authentication,
// authorization and admission stay.
func lean(c *genericapiserver.Config) *genericapiserver.Config {
	l := *c
	// exempt from deadline, timeout and count
	l.LongRunningFunc = func(*http.Request, *request.RequestInfo) bool { return true }
	// API Priority and Fairness queues no requests of this process
	l.FlowControl, l.MaxRequestsInFlight, l.MaxMutatingRequestsInFlight = nil, 0, 0
	l.FeatureGate = untraced{c.FeatureGate}
	return &l
}

type untraced struct{ featuregate.FeatureGate }

func (u untraced) Enabled(f featuregate.Feature) bool {
	return f != features.APIServerTracing && u.FeatureGate.Enabled(f)
}

// released is a version that clients can parse: that of the Kubernetes module, unless the linker set another.
type released struct{ compatibility.EffectiveVersion }

func (r released) Info() *version.Info {
	info := r.EffectiveVersion.Info()
	if info == nil || !strings.HasPrefix(info.GitVersion, "v0.0.0") {
		return info
	}
	info.GitVersion = "v" + r.BinaryVersion().String()
	if built := argosy.Kubernetes(); !strings.HasPrefix(built, "v0.0.0") { // a test binary does not record its modules
		info.GitVersion = built
	}
	ours := argosy.Get()
	info.GitCommit, info.GitTreeState, info.BuildDate = ours.Commit, ours.TreeState, ours.Date
	return info
}

// NotReadyError means that the server did not become ready.
type NotReadyError struct {
	// Checks are the names of the readiness checks that failed last, such as "kms-providers".
	Checks []string
	// Response is the server's last response, in one line.
	Response string
	Err      error
}

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("wait for the API server: %v (last response: %s)", e.Err, e.Response)
}

// Unwrap returns why the wait ended.
func (e *NotReadyError) Unwrap() error { return e.Err }

// WaitReady returns nil once every readiness check of the server itself passes: storage, CRD discovery, RBAC's
// bootstrap. It ignores Options.ReadyChecks, which may wait for what the caller does next. It returns a *NotReadyError
// when ctx ends, or when the server ends.
func (s *Server) WaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.Loopback)
	if err != nil {
		return fmt.Errorf("create a client for readiness: %w", err)
	}
	const none = "no response yet"
	last := &NotReadyError{Response: none}
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		notReady := s.notReady(ctx, client)
		if notReady == nil {
			tick.Stop()
			s.wasReady.Store(true)
			return nil
		}
		if notReady.Response != "" && ctx.Err() == nil { // the response of a request that ctx ended is unknown
			last = notReady
		}
		select {
		case <-tick.C:
			continue
		case <-s.done:
			last.Err = s.err
		case <-ctx.Done():
			if last.Response == none {
				// A check can take longer than the wait lasted, such as that of a key service that does not respond.
				final, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRequestTimeout)
				if notReady := s.notReady(final, client); notReady != nil && final.Err() == nil {
					last = notReady
				}
				cancel()
			}
			last.Err = ctx.Err()
		}
		tick.Stop()
		return last
	}
}

// lastRequestTimeout bounds the one request for the cause after a wait that ended without a response.
const lastRequestTimeout = 5 * time.Second

// notReady returns why the server is not ready; nil if it is.
func (s *Server) notReady(ctx context.Context, client *http.Client) *NotReadyError {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Loopback.Host+"/readyz?"+strings.Join(s.notOurs, "&"),
		nil)
	if err != nil {
		return &NotReadyError{Response: err.Error()}
	}
	resp, err := client.Do(req)
	if err != nil {
		return &NotReadyError{Response: err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return &NotReadyError{Response: err.Error()}
	}
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return failedChecks(string(body))
}

// failedChecks reads the failed checks from the body of a health endpoint, which has lines such as "[-]etcd failed:
// reason withheld".
func failedChecks(body string) *NotReadyError {
	var failed NotReadyError
	var lines []string
	for line := range strings.Lines(body) {
		check, found := strings.CutPrefix(strings.TrimSpace(line), "[-]")
		if !found {
			continue
		}
		lines = append(lines, strings.TrimSuffix(check, ": reason withheld"))
		name, _, _ := strings.Cut(check, " ")
		failed.Checks = append(failed.Checks, name)
	}
	failed.Response = strings.Join(lines, ", ")
	if len(lines) == 0 {
		failed.Response = strings.Join(strings.Fields(body), " ")
	}
	return &failed
}

// Done is closed when the server has ended; Err then returns the reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns the error that ended the server; nil after Stop. Call it after Done.
func (s *Server) Err() error { return s.err }

// Stop ends the server and waits until requests are answered and storage is closed. It waits for the post-start hooks
// of a starting server, because an interrupted hook ends the whole process.
func (s *Server) Stop() {
	if !s.wasReady.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), hooksTimeout)
		_ = s.WaitReady(ctx) // a server that does not become ready is stopped too
		cancel()
	}
	s.stop()
	<-s.done
}

// globals guards what kube-apiserver keeps per process.
var globals sync.Mutex

func runOptions(o Options) (*options.ServerRunOptions, error) {
	globals.Lock()
	defer globals.Unlock()
	s := options.NewServerRunOptions()
	for _, p := range o.Admission {
		s.Admission.GenericAdmission.Plugins.Register(p.Name, func(io.Reader) (admission.Interface, error) { return p.New() })
	}
	if o.Quotas != nil {
		s.Admission.GenericAdmission.Plugins.Register(QuotaPlugin, newQuotas(o.Quotas))
		// The last of all: what another plugin refuses is not counted.
		s.Admission.GenericAdmission.RecommendedPluginOrder = append(s.Admission.GenericAdmission.RecommendedPluginOrder,
			QuotaPlugin)
	}
	s.Admission.GenericAdmission.RecommendedPluginOrder = admissionOrder(
		s.Admission.GenericAdmission.RecommendedPluginOrder, o.Admission)
	s.SecureServing.Listener = o.Listener

	if err := flagSet(s).Parse(append(o.flags(), o.Flags...)); err != nil {
		return nil, fmt.Errorf("set the API server's flags: %w", err)
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set feature gates: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // loopback clients need no warnings about deprecations
	return s, nil
}

func flagSet(s *options.ServerRunOptions) *pflag.FlagSet {
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error has the message
	for _, set := range s.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	return flags
}

// CheckFlags returns an error if kube-apiserver does not have one of the flags, or cannot parse its value.
func CheckFlags(flags []string) error {
	globals.Lock()
	defer globals.Unlock()
	return flagSet(options.NewServerRunOptions()).Parse(flags)
}

// CheckAuthenticationConfig returns why the API server could not start with the AuthenticationConfiguration in file.
func CheckAuthenticationConfig(file string) error {
	o := kubeoptions.NewBuiltInAuthenticationOptions().WithAnonymous().WithOIDC()
	o.AuthenticationConfigFile = file
	_, err := o.ToAuthenticationConfig()
	return err
}

// CheckAuditPolicy returns why the API server could not start with the audit policy in file.
func CheckAuditPolicy(file string) error {
	_, err := policy.LoadPolicyFromFile(file)
	return err
}

// admissionOrder inserts our plugins before the webhook plugins, which are at the end.
func admissionOrder(stock []string, ours []AdmissionPlugin) []string {
	at := slices.Index(stock, "MutatingAdmissionPolicy")
	if at < 0 {
		at = len(stock)
	}
	order := slices.Clone(stock[:at])
	for _, p := range ours {
		order = append(order, p.Name)
	}
	return append(order, stock[at:]...)
}

func (o Options) flags() []string {
	set := map[string]string{
		"etcd-servers":                       strings.Join(o.EtcdServers, ","),
		"etcd-cafile":                        o.EtcdCAFile,
		"etcd-certfile":                      o.EtcdCertFile,
		"etcd-keyfile":                       o.EtcdKeyFile,
		"bind-address":                       o.BindAddress,
		"advertise-address":                  o.BindAddress,
		"secure-port":                        strconv.Itoa(o.Port),
		"tls-cert-file":                      o.ServingCertFile,
		"tls-private-key-file":               o.ServingKeyFile,
		"client-ca-file":                     o.ClientCAFile,
		"service-account-key-file":           o.ServiceAccountKeyFile,
		"service-account-signing-key-file":   o.ServiceAccountKeyFile,
		"service-account-issuer":             o.ServiceAccountIssuer,
		"requestheader-client-ca-file":       o.RequestHeaderCAFile,
		"proxy-client-cert-file":             o.ProxyClientCertFile,
		"proxy-client-key-file":              o.ProxyClientKeyFile,
		"disable-admission-plugins":          strings.Join(o.DisabledAdmission, ","),
		"requestheader-allowed-names":        "front-proxy-client",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-username-headers":     "X-Remote-User",
		// Anonymous requests are authenticated as such, and RBAC allows them to read health and version. A cluster-info
		// ConfigMap for bootstrap must be readable without credentials.
		"authorization-config":         o.AuthorizationConfigFile,
		"allow-privileged":             "true",
		"enable-bootstrap-token-auth":  "true",
		"enable-priority-and-fairness": strconv.FormatBool(o.PriorityAndFairness),
		// The reconcilers write this server's address for pods to find. Nothing here runs pods.
		"endpoint-reconciler-type": "none",
	}
	if o.AuthorizationConfigFile == "" {
		set["authorization-mode"] = "Node,RBAC"
	}
	var flags []string
	for name, value := range set {
		if value != "" {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	slices.Sort(flags)
	return flags
}
