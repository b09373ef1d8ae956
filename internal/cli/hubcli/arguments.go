package hubcli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/argosy-io/argosy/internal/member/proxy"
)

// CompletionTimeout bounds each request of a completion: a shell that waits longer seems to hang.
const CompletionTimeout = time.Second

// Quick is the hub, or a member through it, for completions: requests have a short timeout, and errors are not printed.
type Quick struct {
	*HubFlags
	// cluster is empty for the hub.
	cluster string
}

// ToRESTConfig returns the configuration of a client of the place.
func (q Quick) ToRESTConfig() (*rest.Config, error) {
	config, err := q.Locate()
	if err != nil {
		return nil, err
	}
	config.Timeout = CompletionTimeout
	config.WarningHandler = rest.NoWarnings{}
	if q.cluster != "" {
		config = proxy.Config(config, q.cluster)
	}
	return config, nil
}

// Answers reports whether the place responds in time.
func (q Quick) Answers() bool {
	d, err := q.ToDiscoveryClient()
	return err == nil && d.RESTClient().Get().AbsPath("/version").Do(context.Background()).Error() == nil
}

// ToDiscoveryClient reads the kinds of the place once.
func (q Quick) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return DiscoverOnce(q.ToRESTConfig())
}

// ToRESTMapper understands plurals, short names and kinds of the place.
func (q Quick) ToRESTMapper() (meta.RESTMapper, error) { return MapperOf(q.ToDiscoveryClient()) }

// KubectlCompletion runs a completion of kubectl's, which may end the process when something fails.
func KubectlCompletion(hub *HubFlags, of func(cmdutil.Factory) cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) (found []string, directive cobra.ShellCompDirective) {
		q := Quick{hub, completedIn(cmd)}
		directive = cobra.ShellCompDirectiveNoFileComp
		if q.Answers() {
			_ = Fatal(func() { found, directive = of(cmdutil.NewFactory(q))(cmd, args, word) })
		}
		return found, directive
	}
}

// completedIn returns the member that completions are read from; empty for the hub. For several members the hub is a
// good guess.
func completedIn(cmd *cobra.Command) string {
	if clusters, err := cmd.Flags().GetStringSlice("cluster"); err == nil && len(clusters) == 1 {
		return clusters[0]
	}
	if cmd.Name() == "adopt" || cmd.Name() == "promote" {
		cluster, _ := cmd.Flags().GetString("cluster")
		return cluster
	}
	return ""
}

// OneOfHub completes KIND NAME and KIND/NAME, once.
func OneOfHub(hub *HubFlags) cobra.CompletionFunc {
	return KubectlCompletion(hub, func(f cmdutil.Factory) cobra.CompletionFunc {
		return completion.SpecifiedResourceTypeAndNameNoRepeatCompletionFunc(f, nil)
	})
}

// CompleteNames completes names of one kind, several separated by commas.
func CompleteNames(hub *HubFlags, kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		before, last := "", word
		if i := strings.LastIndex(word, ","); i >= 0 {
			before, last = word[:i+1], word[i+1:]
		}
		given := strings.Split(before, ",")
		onHub := &cobra.Command{} // ignores --cluster
		all, directive := KubectlCompletion(hub, func(f cmdutil.Factory) cobra.CompletionFunc {
			return completion.ResourceNameCompletionFunc(f, kind)
		})(onHub, nil, last)
		var found []string
		for _, name := range all {
			if !slices.Contains(given, name) {
				found = append(found, before+name)
			}
		}
		return found, directive
	}
}

// FirstArgument completes the first argument only.
func FirstArgument(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

// Contexts completes the contexts of the kubeconfig that a flag names, or of the hub's.
func Contexts(hub *HubFlags, flag string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) (found []string, _ cobra.ShellCompDirective) {
		loader := hub.ToRawKubeConfigLoader()
		if file, err := cmd.Flags().GetString(flag); err == nil && file != "" {
			loader = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
				&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, nil)
		}
		raw, err := loader.RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for name := range raw.Contexts {
			found = append(found, name)
		}
		slices.Sort(found)
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
