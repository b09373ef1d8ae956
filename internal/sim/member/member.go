// Package member is the child process that serves one simulated member cluster: etcd, kube-apiserver, the loops of
// kube-controller-manager, the scheduler, fake nodes, and the simulations of OpenKruise and Argo Workflows. Package
// sim starts, configures and stops it.
package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/api/argo"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/server/embed/controllermanager"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/embed/heap"
	"github.com/argosy-io/argosy/internal/server/pki"
	"github.com/argosy-io/argosy/internal/sim"
	simkruise "github.com/argosy-io/argosy/internal/sim/kruise"
)

// startTimeout is more than a member needs on a machine that is busy starting others.
const startTimeout = 3 * time.Minute

// schemasTake is how long after a start an API server is busy with the schemas of all definitions.
const schemasTake = 5 * time.Second

// Main serves the member in dir until it is signalled or its parent is gone, and reports to the parent.
func Main(dir string) error {
	report := os.NewFile(sim.ReportFD, "report")
	lifeline := os.NewFile(sim.LifelineFD, "lifeline")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, lifeline)
		stop()
	}()
	err := serve(ctx, dir, func() {
		fmt.Fprintln(report, sim.ReportReady)
		report.Close()
	})
	if err != nil {
		fmt.Fprintln(report, err)
	}
	return err
}

// member is what the parts of one cluster share.
type member struct {
	config sim.Config
	dir    string
	files  pki.Files
	begin  time.Time
	// injector puts sidecars into pods, from when the controllers' caches are filled.
	injector *simkruise.Injector
	// kubelet is where the kubelet's API of all nodes is served.
	kubelet net.Listener
	// usage is what pods and nodes use.
	usage usage
}

// serve runs the cluster until ctx ends. ready is called once pods run.
func serve(ctx context.Context, dir string, ready func()) error {
	config, err := sim.ReadConfig(dir)
	if err != nil {
		return err
	}
	heap.Pace(ctx, heap.Thrifty)
	m := &member{config: config, dir: dir, begin: time.Now(), injector: simkruise.NewInjector()}

	// The port first: whether it is free, the caller wants to know at once.
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(config.Port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer listener.Close() // the API server closes it as well
	if m.files, _, err = pki.Ensure(filepath.Join(dir, "pki"), []string{"127.0.0.1", "localhost"},
		time.Now()); err != nil {
		return err
	}
	if err := m.writeKubeconfig(); err != nil {
		return err
	}
	m.log("certificates")

	store, err := etcd.Start(ctx, etcd.Options{Dir: filepath.Join(dir, "etcd"), UnsafeNoFsync: true, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer store.Stop()
	m.log("etcd")

	if m.kubelet, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listen for the kubelet's API: %w", err)
	}
	defer m.kubelet.Close()

	// The API server outlives the loops, so that they can finish what they are at.
	server, err := apiserver.Start(context.WithoutCancel(ctx), m.apiserverOptions(store, listener))
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := m.usage.use(server.Loopback); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := server.WaitReady(starting); err != nil {
		return err
	}
	m.log("API server")

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var loops sync.WaitGroup
	defer loops.Wait()
	run := func(name string, f func(context.Context) error) {
		loops.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				stop(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	if err := m.startUp(ctx, starting, server.Loopback, run); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		stop(err)
		return err
	}
	m.log("all")
	ready()
	debug.FreeOSMemory() // most of what starting took is garbage now
	// The server works out the schemas of definitions some time after it serves them.
	later := time.AfterFunc(schemasTake, debug.FreeOSMemory)
	defer later.Stop()

	select {
	case <-ctx.Done():
	case <-server.Done():
		stop(fmt.Errorf("the API server ended: %w", server.Err()))
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// startUp starts all that needs an API server, side by side, and returns when pods can run. What it
// starts lives as long as ctx; starting bounds the waiting.
func (m *member) startUp(ctx, starting context.Context, config *rest.Config,
	run func(string, func(context.Context) error)) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	run("serve the kubelet's API", func(ctx context.Context) error {
		return serveKubelet(ctx, m.kubelet, m.files, client)
	})
	parts := map[string]func() error{
		"furnish the cluster": func() error {
			port := m.kubelet.Addr().(*net.TCPAddr).Port
			return furnish(starting, client, m.config.Member, int32(port))
		},
		"start the scheduler":     func() error { return startScheduler(ctx, config) },
		"start the fake kubelets": func() error { return startKubelets(ctx, config) },
		"start the controllers": func() error {
			// The garbage collector looks for new kinds only twice a minute, so they come before it.
			var versions simkruise.Versions
			if !m.config.Bare {
				var err error
				versions, err = installCRDs(starting, config, m.config.OpenKruise, m.config.StoredVersionsOnly)
				if err != nil {
					return err
				}
				m.log("definitions")
			}
			run("run the controller manager", func(ctx context.Context) error {
				return controllermanager.Run(ctx, m.controllerManagerOptions(config))
			})
			mgr, err := newManager(config, versions)
			if err != nil {
				return err
			}
			run("run OpenKruise and Argo", mgr.Start)
			if !mgr.GetCache().WaitForCacheSync(starting) {
				return errors.New("its caches did not fill in time")
			}
			if !m.config.Bare {
				m.injector.Serve(mgr, versions)
			}
			return nil
		},
		// Pods are refused in a namespace whose service account is missing.
		"wait for the default service account": func() error {
			return wait.PollUntilContextCancel(starting, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
				return err == nil, nil
			})
		},
	}
	errs := make(chan error, len(parts))
	for what, part := range parts {
		go func() {
			err := part()
			if err != nil {
				err = fmt.Errorf("%s: %w", what, err)
			}
			m.log(what)
			errs <- err
		}()
	}
	var all []error
	for range parts {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (m *member) log(what string) {
	klog.InfoS("Started", "part", what, "after", time.Since(m.begin).Round(time.Millisecond))
}

func (m *member) apiserverOptions(store *etcd.Server, listener net.Listener) apiserver.Options {
	var plugins []apiserver.AdmissionPlugin
	if !m.config.Bare {
		plugins = append(plugins, m.kruiseAdmission(m.injector))
	}
	return apiserver.Options{
		EtcdServers:     []string{store.Endpoint},
		Etcd:            store.Client,
		Listener:        listener,
		BindAddress:     "127.0.0.1",
		Port:            m.config.Port,
		ServingCertFile: m.files.Serving, ServingKeyFile: m.files.ServingKey,
		ClientCAFile:          m.files.ClusterCA,
		ServiceAccountKeyFile: m.files.ServiceAccountKey, ServiceAccountIssuer: "https://kubernetes.default.svc",
		RequestHeaderCAFile: m.files.FrontProxyCA, ProxyClientCertFile: m.files.FrontProxy,
		ProxyClientKeyFile: m.files.FrontProxyKey,
		// Its finalizer is for volumes that hold something.
		DisabledAdmission: []string{"StorageObjectInUseProtection"},
		Admission:         plugins,
		Authorized:        func(next http.Handler) http.Handler { return converting(m.usage.serve(next)) },
		Discovered:        []apidiscoveryv2.APIGroupDiscovery{metricsGroup},
		Flags: []string{
			// As long as a stopped member keeps its parent waiting.
			"--shutdown-delay-duration=0s",
			// How it reaches the kubelet's API: with the certificate of the front proxy, which no user has.
			"--kubelet-certificate-authority=" + m.files.ClusterCA,
			"--kubelet-client-certificate=" + m.files.FrontProxy,
			"--kubelet-client-key=" + m.files.FrontProxyKey,
		},
	}
}

func (m *member) controllerManagerOptions(config *rest.Config) controllermanager.Options {
	return controllermanager.Options{
		Config:                config,
		Controllers:           controllermanager.Member,
		ServiceAccountKeyFile: m.files.ServiceAccountKey, RootCAFile: m.files.ClusterCA,
		ClusterSigningCertFile: m.files.ClusterCA, ClusterSigningKeyFile: m.files.ClusterCAKey,
		Flags: []string{
			// On a busy machine heartbeats starve, and a pod that turned unready would not recover.
			"--node-monitor-grace-period=30m",
			// Who looks on does not like to wait.
			"--horizontal-pod-autoscaler-sync-period=5s",
		},
	}
}

// writeKubeconfig writes the administrator's kubeconfig, everything inside it, under the member's name.
func (m *member) writeKubeconfig() error {
	read := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			panic(err) // Ensure has just written it
		}
		return data
	}
	name := m.config.Name
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(m.config.Port)),
		CertificateAuthorityData: read(m.files.ClusterCA),
	}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: read(m.files.Admin),
		ClientKeyData: read(m.files.AdminKey)}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	data, err := clientcmd.Write(*c)
	if err != nil {
		return err
	}
	return pki.WriteFile(sim.KubeconfigFile(m.dir), data, 0o600)
}

// installCRDs returns when the kinds of OpenKruise, in the versions of a release, and of Argo are served, and says
// which versions those are.
func installCRDs(ctx context.Context, config *rest.Config, release string,
	storedOnly bool) (simkruise.Versions, error) {
	client, err := apiextensions.NewForConfig(protobuf(config))
	if err != nil {
		return nil, err
	}
	crds, err := kruiseDefinitions(release, storedOnly)
	if err != nil {
		return nil, err
	}
	ofArgo, err := argo.CRDs()
	if err != nil {
		return nil, err
	}
	versions := simkruise.Versions{}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	var installed errgroup.Group // at once: most of the time is the store's
	for _, crd := range append(crds, ofArgo...) {
		versions[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = storedVersion(crd)
		installed.Go(func() error {
			if err := install(ctx, definitions, crd, release); err != nil {
				return fmt.Errorf("make %s: %w", crd.Name, err)
			}
			return establish(ctx, definitions, crd.Name)
		})
	}
	return versions, installed.Wait()
}

func storedVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// install makes a definition. One that is there from an earlier run stays, if it is of the same release.
func install(ctx context.Context, definitions apiextensionsclient.CustomResourceDefinitionInterface,
	crd *apiextensionsv1.CustomResourceDefinition, release string) error {
	_, err := definitions.Create(ctx, crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := definitions.Get(ctx, crd.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if was, want := storedVersion(have), storedVersion(crd); was != want {
		return fmt.Errorf("the member's folder stores %s, but OpenKruise %s stores %s: give it the release that it had, or a new folder", was, release, want)
	}
	return nil
}

// establish returns when the kind is served, and makes it look as if it had been for long: for two seconds after the
// time in the condition a server holds every create back, for the sake of others, and there are none.
func establish(ctx context.Context, definitions apiextensionsclient.CustomResourceDefinitionInterface,
	name string) error {
	crd, err := apiserver.AwaitEstablished(ctx, definitions, name)
	for err == nil && backdate(crd) {
		if _, err = definitions.UpdateStatus(ctx, crd, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			break
		}
		crd, err = definitions.Get(ctx, name, metav1.GetOptions{}) // what is established stays so
	}
	if err != nil {
		return fmt.Errorf("have %s served: %w", name, err)
	}
	return nil
}

// backdate reports whether it had to change anything.
func backdate(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for i := range crd.Status.Conditions {
		c := &crd.Status.Conditions[i]
		if c.Type == apiextensionsv1.Established && time.Since(c.LastTransitionTime.Time) < time.Minute {
			c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.Add(-2 * time.Minute))
			return true
		}
	}
	return false
}

// protobuf is config for clients of built-in kinds.
func protobuf(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return c
}
