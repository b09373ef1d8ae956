package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/server"
)

// hubFlags say which hub a verb speaks to. They are given before or after the verb.
// It is kubectl's genericclioptions.RESTClientGetter, so that kubectl's verbs can be had for the hub.
type hubFlags struct {
	kubeconfig, context, namespace string
}

func (h *hubFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&h.kubeconfig, "kubeconfig", "", "kubeconfig of the hub (default: KUBECONFIG, else the hub that \"argosy up\" started here)")
	fs.StringVar(&h.context, "karmada-context", "", "context of the hub in the kubeconfig (default: the current one)")
	fs.StringVarP(&h.namespace, "namespace", "n", "", "namespace of the request")
}

// errNoHub says what to do when no hub is named and none was started here.
var errNoHub = errors.New("no hub found: start one here with `argosy up`, or name its kubeconfig with --kubeconfig or KUBECONFIG")

// ToRawKubeConfigLoader is the kubeconfig of the hub, not read yet.
func (h *hubFlags) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: h.kubeconfig}
	switch env := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); {
	case h.kubeconfig != "":
	case env != "":
		rules = clientcmd.NewDefaultClientConfigLoadingRules()
	default:
		rules.ExplicitPath = server.DefaultKubeconfig()
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: h.context, Context: clientcmdapi.Context{Namespace: h.namespace}}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// Named says whether a hub is named; without, it is the one that was started here, if one was.
func (h *hubFlags) Named() bool {
	return h.kubeconfig != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != ""
}

// ToRESTConfig is how the hub is reached.
func (h *hubFlags) ToRESTConfig() (*rest.Config, error) {
	if !h.Named() {
		if _, err := os.Stat(server.DefaultKubeconfig()); errors.Is(err, fs.ErrNotExist) {
			return nil, errNoHub
		}
	}
	config, err := h.ToRawKubeConfigLoader().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoHub
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	config.QPS = -1 // a person's command need not be slowed down
	return config, nil
}

// ToDiscoveryClient asks the hub for its kinds once.
func (h *hubFlags) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return discoverOnce(h.ToRESTConfig())
}

// ToRESTMapper understands plurals, short names and kinds of the hub.
func (h *hubFlags) ToRESTMapper() (meta.RESTMapper, error) { return mapperOf(h.ToDiscoveryClient()) }

// discoverOnce asks a cluster for its kinds once.
func discoverOnce(config *rest.Config, err error) (discovery.CachedDiscoveryInterface, error) {
	if err != nil {
		return nil, err
	}
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(c), nil
}

func mapperOf(c discovery.CachedDiscoveryInterface, err error) (meta.RESTMapper, error) {
	if err != nil {
		return nil, err
	}
	return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(c), c, nil), nil
}

// client speaks to the hub in typed objects.
func (h *hubFlags) client() (client.Client, error) {
	config, err := h.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// clientOfAll reads and writes also kinds that scheme does not hold; the mapper knows them.
func (h *hubFlags) clientOfAll() (client.Client, meta.RESTMapper, error) {
	config, err := h.ToRESTConfig()
	if err != nil {
		return nil, nil, err
	}
	mapper, err := h.ToRESTMapper()
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	return c, mapper, err
}

// joined is a cluster of the fleet.
func joined(ctx context.Context, hub client.Reader, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := hub.Get(ctx, types.NamespacedName{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q is not joined; `argosy get clusters` lists those that are", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", name, err)
	}
	return cluster, nil
}

// scheme holds the kinds that the verbs read and write, in the hub and in members.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, configv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, releasev1alpha1.AddToScheme,
		workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in our types
		}
	}
	return s
}()

// memberFlags say which cluster a verb means as a member.
type memberFlags struct {
	kubeconfig, context, namespace string
}

func (m *memberFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&m.kubeconfig, "cluster-kubeconfig", "", "kubeconfig of the member cluster")
	fs.StringVar(&m.context, "cluster-context", "", "context of the member cluster in its kubeconfig (default: the current one)")
	fs.StringVar(&m.namespace, "cluster-namespace", "karmada-cluster", "namespace of the member's accounts, in the member, and of their secrets, in the hub")
}

// endpoint is a member as its kubeconfig describes it.
type endpoint struct {
	config *rest.Config
	// proxy is the URL of the proxy to the member; empty for none.
	proxy string
}

func (m *memberFlags) endpoint() (endpoint, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: m.kubeconfig}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: m.context})
	config, err := loader.ClientConfig()
	if err != nil {
		return endpoint{}, fmt.Errorf("--cluster-kubeconfig %s: %w", m.kubeconfig, err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return endpoint{}, fmt.Errorf("--cluster-kubeconfig %s: %w", m.kubeconfig, err)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return endpoint{}, fmt.Errorf("--cluster-kubeconfig %s: %w", m.kubeconfig, err)
	}
	e := endpoint{config: config}
	current := raw.CurrentContext
	if m.context != "" {
		current = m.context
	}
	if c := raw.Contexts[current]; c != nil && raw.Clusters[c.Cluster] != nil {
		e.proxy = raw.Clusters[c.Cluster].ProxyURL
	}
	return e, nil
}

// client speaks to the member in typed objects; it waits for an answer only so long as a person would.
func (e endpoint) client() (client.Client, error) {
	config := rest.CopyConfig(e.config)
	config.Timeout = requestTimeout
	config.QPS = -1
	return client.New(config, client.Options{Scheme: scheme})
}
