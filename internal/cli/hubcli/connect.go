// Package hubcli has what the verbs of the command line share: connections to the hub and to members, arguments and
// their completion, tables, colors, questions and errors.
package hubcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/install"
	"github.com/argosy-io/argosy/internal/server"
)

// HubFlags are the flags of the connection to the hub, before or after the verb. It implements
// genericclioptions.RESTClientGetter, so that verbs of kubectl work with the hub.
type HubFlags struct {
	Kubeconfig, Context, Namespace string
	// CalledBy is the name by which the binary was called: argosy, karmadactl or "kubectl karmada".
	CalledBy string
	// Overrides are kubectl's flags of every command: what they set replaces what the kubeconfig has.
	Overrides clientcmd.ConfigOverrides
	// Reached returns the result of the one connection test.
	Reached func() error
}

// IsKarmadactl reports whether the binary was called by a name of Karmada's command line. Scripts then expect its
// output and its defaults.
func (h *HubFlags) IsKarmadactl() bool { return strings.Contains(h.CalledBy, "karmada") }

func (h *HubFlags) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&h.Kubeconfig, "kubeconfig", "",
		"kubeconfig of the hub (default: KUBECONFIG, else the hub that \"argosy up\" started or \"argosy install\" installed here)")
	fs.StringVar(&h.Context, "karmada-context", "", "context of the hub in the kubeconfig (default: the current one)")
	fs.StringVarP(&h.Namespace, "namespace", "n", "", "namespace of the request")
	h.bindOverrides(fs)
}

// bindOverrides adds kubectl's flags of every command, such as --as and --request-timeout. Like kubectl, only `options`
// lists them. --cluster is not among them: it names members.
func (h *HubFlags) bindOverrides(fs *pflag.FlagSet) {
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.ClusterName.LongName, names.ContextOverrideFlags.Namespace.LongName = "", ""
	overrides := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(&h.Overrides, overrides, names)
	overrides.VisitAll(func(f *pflag.Flag) {
		f.Hidden, f.Shorthand = true, "" // a command may have another use for the letter
		fs.AddFlag(f)
	})
}

// ErrNoHub explains what to do if no hub is named and none was started on this machine.
var ErrNoHub = errors.New("no hub found: start one here with `argosy up`, or name its kubeconfig with --kubeconfig or KUBECONFIG")

// ToRawKubeConfigLoader returns the kubeconfig of the hub, not read yet.
func (h *HubFlags) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: h.Kubeconfig}
	overrides := new(h.Overrides)
	overrides.CurrentContext, overrides.Context.Namespace = cmp.Or(h.Context, overrides.CurrentContext), h.Namespace
	switch env := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); {
	case h.Kubeconfig != "":
	case env != "":
		rules = clientcmd.NewDefaultClientConfigLoadingRules()
	default:
		file, own := hubHere()
		if !own {
			config, err := installedAccess(file)
			if err != nil { // locate returns the error
				config = clientcmdapi.NewConfig()
			}
			return clientcmd.NewDefaultClientConfig(*config, overrides)
		}
		if _, err := os.Stat(file); err == nil || overrides.ClusterInfo.Server == "" {
			rules.ExplicitPath = file
		}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// hubHere returns the admin kubeconfig of the hub on this machine: the user's own from `argosy up` if there is one,
// else that of `argosy install`, which only root may read.
func hubHere() (file string, own bool) {
	file, installed := server.DefaultKubeconfig(), server.AdminKubeconfig(install.DataDir)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(installed); err == nil {
			return installed, false
		}
	}
	return file, true
}

// installedAccess returns the hub's access from the admin kubeconfig of an installed hub. The hub's system user writes
// that file and root reads it. So only the hub's address, its authorities and a client certificate are used: nothing in
// it is run, and no other file is read.
func installedAccess(file string) (*clientcmdapi.Config, error) {
	read, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	refused := func(what string) error {
		return fmt.Errorf("%s contains %s, which a hub never writes: if you trust this file, give it with --kubeconfig", file,
			what)
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = read.CurrentContext
	for name, u := range read.AuthInfos {
		switch {
		case u.Exec != nil || u.AuthProvider != nil:
			return nil, refused(fmt.Sprintf("user %q with a command or auth provider", name))
		case u.ClientCertificate != "" || u.ClientKey != "" || u.TokenFile != "":
			return nil, refused(fmt.Sprintf("user %q with references to other files", name))
		}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: u.ClientCertificateData,
			ClientKeyData: u.ClientKeyData}
	}
	for name, c := range read.Clusters {
		if c.CertificateAuthority != "" || c.ProxyURL != "" || c.InsecureSkipTLSVerify {
			return nil, refused(fmt.Sprintf("cluster %q with a certificate authority file, a proxy, or without verification",
				name))
		}
		config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Server, TLSServerName: c.TLSServerName,
			CertificateAuthorityData: c.CertificateAuthorityData}
	}
	for name, c := range read.Contexts {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: c.Cluster, AuthInfo: c.AuthInfo, Namespace: c.Namespace}
	}
	return config, nil
}

// Named reports whether the user named a hub. Otherwise the hub that was started on this machine is used.
func (h *HubFlags) Named() bool {
	return h.Kubeconfig != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != ""
}

// ToRESTConfig returns the configuration of a client of the hub, after a connection test.
func (h *HubFlags) ToRESTConfig() (*rest.Config, error) {
	config, err := h.Locate()
	if err != nil {
		return nil, err
	}
	if h.Reached == nil {
		h.Reached = sync.OnceValue(func() error { return reach(config) })
	}
	if err := h.Reached(); err != nil {
		return nil, err
	}
	return config, nil
}

// Locate returns the configuration of a client of the hub, without a connection test.
func (h *HubFlags) Locate() (*rest.Config, error) {
	if !h.Named() {
		file, own := hubHere()
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && h.Overrides.ClusterInfo.Server == "" {
			return nil, ErrNoHub
		}
		if !own {
			if _, err := installedAccess(file); err != nil {
				return nil, err
			}
		}
	}
	config, err := h.ToRawKubeConfigLoader().ClientConfig()
	if clientcmd.IsEmptyConfig(err) && h.Named() {
		return nil, fmt.Errorf("kubeconfig of the hub %s: it does not exist or contains no cluster; check --kubeconfig and KUBECONFIG", cmp.Or(h.Kubeconfig, os.Getenv(clientcmd.RecommendedConfigPathEnvVar)))
	}
	if clientcmd.IsEmptyConfig(err) {
		return nil, ErrNoHub
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	config.QPS = -1 // commands of users need no rate limit
	config.WarningHandler = Warnings
	markOrigin(config, "")
	return config, nil
}

// ToDiscoveryClient reads the kinds of the hub once.
func (h *HubFlags) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return DiscoverOnce(h.ToRESTConfig())
}

// ToRESTMapper understands plurals, short names and kinds of the hub.
func (h *HubFlags) ToRESTMapper() (meta.RESTMapper, error) { return MapperOf(h.ToDiscoveryClient()) }

// DiscoverOnce reads the kinds of a cluster once.
func DiscoverOnce(config *rest.Config, err error) (discovery.CachedDiscoveryInterface, error) {
	if err != nil {
		return nil, err
	}
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(c), nil
}

func MapperOf(c discovery.CachedDiscoveryInterface, err error) (meta.RESTMapper, error) {
	if err != nil {
		return nil, err
	}
	return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(c), c, nil), nil
}

// Client speaks to the hub in typed objects.
func (h *HubFlags) Client() (client.Client, error) {
	config, err := h.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: Scheme})
}

// ClientOfAll returns a client also for kinds that are not in scheme; the mapper knows them.
func (h *HubFlags) ClientOfAll() (client.WithWatch, meta.RESTMapper, error) {
	config, err := h.ToRESTConfig()
	if err != nil {
		return nil, nil, err
	}
	mapper, err := h.ToRESTMapper()
	if err != nil {
		return nil, nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme, Mapper: mapper})
	return c, mapper, err
}

// GetCluster returns a cluster of the fleet.
func GetCluster(ctx context.Context, hub client.Reader, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := hub.Get(ctx, types.NamespacedName{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, &Sentence{fmt.Sprintf("cluster %q is not joined; `argosy get clusters` lists those that are", name), err}
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", name, err)
	}
	return cluster, nil
}

// Scheme has the kinds that the verbs read and write, in the hub and in members.
var Scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, autoscalingv1alpha1.AddToScheme, clusterv1alpha1.AddToScheme,
		configv1alpha1.AddToScheme, networkingv1alpha1.AddToScheme, ocmv1.AddToScheme, policyv1alpha1.AddToScheme,
		releasev1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two kinds with one name: a mistake in our types
		}
	}
	return s
}()

// DefaultClusterNamespace has the hub's accounts in members, and their secrets on the hub.
const DefaultClusterNamespace = "karmada-cluster"

type MemberFlags struct {
	Kubeconfig, Context, Namespace string
}

func (m *MemberFlags) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&m.Kubeconfig, "cluster-kubeconfig", "", "kubeconfig of the member cluster")
	fs.StringVar(&m.Context, "cluster-context", "",
		"context of the member cluster in its kubeconfig (default: the current one)")
	fs.StringVar(&m.Namespace, "cluster-namespace", DefaultClusterNamespace,
		"namespace for the hub's service accounts in the member, and for their secrets on the hub")
}

// String returns the flags as a user writes them.
func (m *MemberFlags) String() string {
	out := "--cluster-kubeconfig " + m.Kubeconfig
	if m.Context != "" {
		out += " --cluster-context " + m.Context
	}
	if m.Namespace != DefaultClusterNamespace {
		out += " --cluster-namespace " + m.Namespace
	}
	return out
}

// Endpoint is a member as its kubeconfig describes it.
type Endpoint struct {
	Config *rest.Config
	// Proxy is the URL of the proxy to the member; empty for none.
	Proxy string
}

// Endpoint reads the kubeconfig of a cluster. Errors of its clients name what the cluster denies as denied there.
func (m *MemberFlags) Endpoint(cluster string) (Endpoint, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: m.Kubeconfig}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: m.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return Endpoint{}, m.unreadable(err)
	}
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return Endpoint{}, fmt.Errorf("--cluster-kubeconfig %q contains no cluster; give the kubeconfig of the member",
			m.Kubeconfig)
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("--cluster-kubeconfig %s: %w", m.Kubeconfig, err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return Endpoint{}, fmt.Errorf("--cluster-kubeconfig %s: %w", m.Kubeconfig, err)
	}
	markOrigin(config, cmp.Or(cluster, config.Host))
	e := Endpoint{Config: config}
	if c := raw.Contexts[cmp.Or(m.Context, raw.CurrentContext)]; c != nil && raw.Clusters[c.Cluster] != nil {
		e.Proxy = raw.Clusters[c.Cluster].ProxyURL
	}
	return e, nil
}

// unreadable explains an error of reading the kubeconfig.
func (m *MemberFlags) unreadable(err error) error {
	what := "is not a kubeconfig: its content is not valid"
	switch info, failed := os.Stat(m.Kubeconfig); {
	case errors.Is(failed, fs.ErrNotExist):
		what = "does not exist"
	case failed != nil:
		what = "cannot be read"
	case info.IsDir():
		what = "is a directory"
	case info.Mode().IsRegular(): // client-go does not wrap the error of reading the file
		if opened, failed := os.Open(m.Kubeconfig); failed != nil {
			what = "cannot be read by this user"
		} else {
			_ = opened.Close()
		}
	}
	return &Sentence{fmt.Sprintf("--cluster-kubeconfig %s %s; give the kubeconfig file of the member", m.Kubeconfig, what),
		err}
}

// Client returns a typed client of the member, with a short timeout for interactive commands.
func (e Endpoint) Client() (client.Client, error) {
	config := rest.CopyConfig(e.Config)
	config.Timeout = Timeout(config, RequestTimeout)
	config.QPS = -1
	config.WarningHandler = Warnings
	return client.New(config, client.Options{Scheme: Scheme})
}

func Clusters(ctx context.Context, c client.Client, names []string,
	selector string) ([]clusterv1alpha1.Cluster, error) {
	if len(names) > 0 {
		list := make([]clusterv1alpha1.Cluster, len(names))
		for i, name := range names {
			if err := c.Get(ctx, types.NamespacedName{Name: name}, &list[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	matching, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	var list clusterv1alpha1.ClusterList
	if err := c.List(ctx, &list, client.MatchingLabelsSelector{Selector: matching}); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Kubernetes speaks to the hub in Kubernetes' own kinds, and by path.
func (h *HubFlags) Kubernetes() (*kubernetes.Clientset, error) {
	config, err := h.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// NamespaceOrDefault returns the namespace of the flag, else of the hub's context, else "default".
func (h *HubFlags) NamespaceOrDefault() string {
	if h.Namespace != "" {
		return h.Namespace
	}
	if !h.Named() {
		if _, err := os.Stat(h.ToRawKubeConfigLoader().ConfigAccess().GetExplicitFile()); err != nil {
			return "default"
		}
	}
	namespace, _, err := h.ToRawKubeConfigLoader().Namespace()
	if err != nil || namespace == "" {
		return "default"
	}
	return namespace
}
