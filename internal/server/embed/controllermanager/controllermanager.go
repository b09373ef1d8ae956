// Package controllermanager runs chosen loops of kube-controller-manager inside this process. It takes
// its client as a value and elects no leader: the caller decides when the loops may run.
package controllermanager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/healthz"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/keyutil"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// Hub are the loops for a server whose workloads run elsewhere: those for namespaces, ownership, accounts and
// certificates, and none that acts on a workload.
var Hub = []string{
	names.NamespaceController,
	names.GarbageCollectorController,
	names.ServiceAccountTokenController,
	names.TTLAfterFinishedController,
	names.BootstrapSignerController,
	names.TokenCleanerController,
	names.CertificateSigningRequestApprovingController,
	names.CertificateSigningRequestSigningController,
	names.CertificateSigningRequestCleanerController,
	names.ClusterRoleAggregationController,
	names.RootCACertificatePublisherController,
}

// Member are the loops of a cluster that runs workloads on nodes without volumes, clouds or routes.
var Member = append(slices.Clone(Hub),
	names.ServiceAccountController,
	names.DeploymentController,
	names.ReplicaSetController,
	names.ReplicationControllerController,
	names.StatefulSetController,
	names.DaemonSetController,
	names.JobController,
	names.CronJobController,
	names.EndpointsController,
	names.EndpointSliceController,
	names.HorizontalPodAutoscalerController,
	names.DisruptionController,
	names.NodeLifecycleController,
	names.TaintEvictionController,
	names.PodGarbageCollectorController,
	names.ResourceQuotaController,
)

// Options are one set of loops.
type Options struct {
	// Config reaches the API server with full rights.
	Config *rest.Config
	// Controllers are canonical names (package names of kube-controller-manager), such as Hub or Member.
	Controllers []string
	// ServiceAccountKeyFile signs long-lived service account tokens; RootCAFile is the CA bundle
	// that tokens and the root CA publisher hand out.
	ServiceAccountKeyFile, RootCAFile string
	// ClusterSigningCertFile and ClusterSigningKeyFile sign certificate requests.
	ClusterSigningCertFile, ClusterSigningKeyFile string
	// Unowned are resources whose objects neither own others nor are owned; the garbage collector does not watch them.
	Unowned []schema.GroupResource
	// Quotas, if set, selects the ResourceQuotas whose usage is counted, once there is one; Controllers must not contain
	// that loop.
	Quotas labels.Selector
	// Flags are further kube-controller-manager flags, applied last.
	Flags []string
}

// shutdownTimeout bounds the wait for loops to stop.
const shutdownTimeout = 10 * time.Second

// Run builds the loops and runs them until ctx ends; it returns when all have returned. The API server must be ready.
// It returns an error if a loop cannot be built or does not stop in time.
func Run(ctx context.Context, o Options) error {
	c, err := configure(o)
	if err != nil {
		return err
	}
	descriptors, err := chosen(o.Controllers)
	if err != nil {
		return err
	}
	cc, err := controllerContext(ctx, o, c)
	if err != nil {
		return err
	}
	controllers, err := app.BuildControllers(ctx, cc, descriptors, nil, noHealthChecks{})
	if err != nil {
		return fmt.Errorf("build kube-controller-manager's controllers: %w", err)
	}
	if slices.Contains(o.Controllers, names.ServiceAccountTokenController) {
		tokens, err := tokenController(ctx, cc, o)
		if err != nil {
			return err
		}
		controllers = append(controllers, tokens)
	}

	if o.Quotas != nil {
		quotas, err := selectedQuotas(cc, o)
		if err != nil {
			return err
		}
		controllers = append(controllers, quotas)
	}

	cc.InformerFactory.Start(ctx.Done())
	defer cc.InformerFactory.Shutdown()
	cc.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(cc.InformersStarted)
	const noJitter = 0 // the few loops of one process need no jitter
	if !app.RunControllers(ctx, cc, controllers, noJitter, shutdownTimeout) {
		return errors.New("kube-controller-manager's controllers did not stop in time")
	}
	return nil
}

// configure turns Options into the manager's flags, and those into its configuration.
func configure(o Options) (*config.CompletedConfig, error) {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("create kube-controller-manager's options: %w", err)
	}
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, set := range s.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(),
		app.ControllerAliases()).FlagSets {
		flags.AddFlagSet(set)
	}
	args := []string{
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers=" + strings.Join(o.Controllers, ","),
		"--service-account-private-key-file=" + o.ServiceAccountKeyFile,
		"--root-ca-file=" + o.RootCAFile,
		"--cluster-signing-cert-file=" + o.ClusterSigningCertFile,
		"--cluster-signing-key-file=" + o.ClusterSigningKeyFile,
		"--controller-start-interval=0s",
	}
	if err := flags.Parse(append(args, o.Flags...)); err != nil {
		return nil, fmt.Errorf("set kube-controller-manager's flags: %w", err)
	}
	c := &config.Config{}
	if err := s.ApplyTo(c, app.KnownControllers(), app.ControllersDisabledByDefault(),
		app.ControllerAliases()); err != nil {
		return nil, fmt.Errorf("configure kube-controller-manager: %w", err)
	}
	return c.Complete(), nil
}

// chosen returns the descriptors of the named loops, without the token controller, which its own
// constructor refuses to build outside of kube-controller-manager's Run.
func chosen(controllers []string) (map[string]*app.ControllerDescriptor, error) {
	all := app.NewControllerDescriptors()
	descriptors := map[string]*app.ControllerDescriptor{}
	for _, name := range controllers {
		d, known := all[name]
		if !known {
			return nil, fmt.Errorf("kube-controller-manager has no controller %q", name)
		}
		if !d.RequiresSpecialHandling() {
			descriptors[name] = d
		}
	}
	return descriptors, nil
}

// controllerContext returns the context that kube-controller-manager builds for its loops, with our client. It omits
// the process-wide informer name, which would not allow a second set of loops in one process.
func controllerContext(ctx context.Context, o Options, c *config.CompletedConfig) (app.ControllerContext, error) {
	o.Config = rest.CopyConfig(o.Config)
	o.Config.ContentType = "application/vnd.kubernetes.protobuf" // no loop writes a custom kind
	o.Config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	clients := clientbuilder.SimpleControllerClientBuilder{ClientConfig: o.Config}
	client, err := clients.Client("shared-informers")
	if err != nil {
		return app.ControllerContext{}, fmt.Errorf("create kube-controller-manager's client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(rest.AddUserAgent(rest.CopyConfig(o.Config), "metadata-informers"))
	if err != nil {
		return app.ControllerContext{}, fmt.Errorf("create kube-controller-manager's metadata client: %w", err)
	}
	discovery, err := clients.DiscoveryClient("controller-discovery")
	if err != nil {
		return app.ControllerContext{}, fmt.Errorf("create kube-controller-manager's discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(discovery))
	go wait.Until(mapper.Reset, 30*time.Second, ctx.Done())

	resync := app.ResyncPeriod(c)
	shared := informers.NewSharedInformerFactoryWithOptions(client, resync(), informers.WithTransform(dropManagedFields))
	metadataShared := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync(),
		metadatainformer.WithTransform(dropManagedFields))
	cc := app.ControllerContext{
		ClientBuilder:                   clients,
		InformerFactory:                 shared,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(shared, metadataShared),
		ComponentConfig:                 c.ComponentConfig,
		RESTMapper:                      mapper,
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    resync,
		ControllerManagerMetrics:        controllersmetrics.NewControllerManagerMetrics("kube-controller-manager"),
	}
	if slices.Contains(o.Controllers, names.GarbageCollectorController) {
		ignored := map[schema.GroupResource]struct{}{}
		for _, r := range c.ComponentConfig.GarbageCollectorController.GCIgnoredResources {
			ignored[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = struct{}{}
		}
		for _, r := range o.Unowned {
			ignored[r] = struct{}{}
		}
		cc.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(ctx, metadataClient, mapper, ignored,
			cc.ObjectOrMetadataInformerFactory, cc.InformersStarted)
	}
	return cc, nil
}

// dropManagedFields keeps out of memory what no loop reads.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// loop is an app.Controller.
type loop struct {
	name string
	run  func(context.Context)
}

func (l loop) Name() string            { return l.name }
func (l loop) Run(ctx context.Context) { l.run(ctx) }

func tokenController(ctx context.Context, cc app.ControllerContext, o Options) (app.Controller, error) {
	key, err := keyutil.PrivateKeyFromFile(o.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the service account key: %w", err)
	}
	ca, err := os.ReadFile(o.RootCAFile)
	if err != nil {
		return nil, fmt.Errorf("read the root CA: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, fmt.Errorf("create the service account token generator: %w", err)
	}
	client, err := cc.NewClient("tokens-controller")
	if err != nil {
		return nil, err
	}
	tokens, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx),
		cc.InformerFactory.Core().V1().ServiceAccounts(), cc.InformerFactory.Core().V1().Secrets(), client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: ca})
	if err != nil {
		return nil, fmt.Errorf("create the service account token controller: %w", err)
	}
	workers := int(cc.ComponentConfig.SAController.ConcurrentSATokenSyncs)
	return loop{names.ServiceAccountTokenController, func(ctx context.Context) { tokens.Run(ctx, workers) }}, nil
}

// noHealthChecks: the health checks report whether the loops' goroutines run, and those end only with the process.
type noHealthChecks struct{}

func (noHealthChecks) AddHealthChecker(...healthz.HealthChecker) {}
