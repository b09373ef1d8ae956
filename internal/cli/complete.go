package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/argosy-io/argosy/internal/member/proxy"
)

// completionTimeout bounds each request of a completion: a shell that waits longer seems to hang.
const completionTimeout = time.Second

// quick is a place for completions: requests have a short timeout, and errors are not printed.
type quick struct{ *place }

// ToRESTConfig returns the configuration of a client of the place.
func (q quick) ToRESTConfig() (*rest.Config, error) {
	config, err := q.locate()
	if err != nil {
		return nil, err
	}
	config.Timeout = completionTimeout
	config.WarningHandler = rest.NoWarnings{}
	if q.cluster != "" {
		config = proxy.Config(config, q.cluster)
	}
	return config, nil
}

// answers reports whether the place responds in time.
func (q quick) answers() bool {
	d, err := q.ToDiscoveryClient()
	return err == nil && d.RESTClient().Get().AbsPath("/version").Do(context.Background()).Error() == nil
}

// ToDiscoveryClient reads the kinds of the place once.
func (q quick) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return discoverOnce(q.ToRESTConfig())
}

// ToRESTMapper understands plurals, short names and kinds of the place.
func (q quick) ToRESTMapper() (meta.RESTMapper, error) { return mapperOf(q.ToDiscoveryClient()) }

// silent runs a completion of kubectl's, which may end the process when something fails.
func silent(hub *hubFlags, of func(cmdutil.Factory) cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) (found []string, directive cobra.ShellCompDirective) {
		q := quick{&place{hubFlags: hub, cluster: completedIn(cmd)}}
		directive = cobra.ShellCompDirectiveNoFileComp
		if q.answers() {
			_ = fatal(func() { found, directive = of(cmdutil.NewFactory(q))(cmd, args, word) })
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
	if cmd.Name() == "adopt" {
		cluster, _ := cmd.Flags().GetString("cluster")
		return cluster
	}
	return ""
}

// oneOfHub completes KIND NAME and KIND/NAME, once.
func oneOfHub(hub *hubFlags) cobra.CompletionFunc {
	return silent(hub, func(f cmdutil.Factory) cobra.CompletionFunc {
		return completion.SpecifiedResourceTypeAndNameNoRepeatCompletionFunc(f, nil)
	})
}

// named completes names of one kind, several separated by commas.
func named(hub *hubFlags, kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		before, last := "", word
		if i := strings.LastIndex(word, ","); i >= 0 {
			before, last = word[:i+1], word[i+1:]
		}
		given := strings.Split(before, ",")
		onHub := &cobra.Command{} // ignores --cluster
		all, directive := silent(hub, func(f cmdutil.Factory) cobra.CompletionFunc {
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

// firstArgument completes the first argument only.
func firstArgument(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

// contexts completes the contexts of the kubeconfig that a flag names, or of the hub's.
func contexts(hub *hubFlags, flag string) cobra.CompletionFunc {
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

// completeAsPlugin makes "completion" fail in a kubectl plugin: its scripts would be scripts for "kubectl" and replace
// those of kubectl itself.
func completeAsPlugin(root *cobra.Command) {
	plugin, isPlugin := strings.CutPrefix(root.CommandPath(), "kubectl ")
	if !isPlugin {
		return
	}
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Long = fmt.Sprintf("kubectl completes the commands of a plugin by an executable named kubectl_complete-%s in PATH, which may be a link to this binary.", plugin)
		for _, shell := range cmd.Commands() {
			shell.Long = cmd.Long
			shell.RunE = func(*cobra.Command, []string) error {
				return fmt.Errorf(`kubectl's own completion covers its plugins; link this binary beside it: ln -s "$(command -v kubectl-%s)" /usr/local/bin/kubectl_complete-%s`, plugin, plugin)
			}
		}
	}
}

// clustersFlags are the flags that name clusters of the fleet.
var clustersFlags = []string{"cluster", "clusters", "cluster-down", "cluster-drained", "cluster-removed", "unhealthy"}

// completeFlags adds completion functions to the flags of root and of all commands below it.
func completeFlags(root *cobra.Command, hub *hubFlags) {
	of := func(cmd *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
		switch {
		case slices.Contains(clustersFlags, f.Name):
			return named(hub, "clusters.cluster.karmada.io")
		case f.Name == "namespace":
			return named(hub, "namespaces")
		case f.Name == "karmada-context":
			return contexts(hub, "kubeconfig")
		case f.Name == "cluster-context":
			return contexts(hub, "cluster-kubeconfig")
		case f.Name == "operation-scope":
			return cobra.FixedCompletions([]string{scopeHub, scopeMembers, scopeAll}, cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "color":
			return cobra.FixedCompletions(colorModes, cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "output" && strings.Contains(f.Usage, "yaml"):
			return cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "output" && strings.Contains(f.Usage, "json"):
			return cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp)
		}
		return nil
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, has := cmd.GetFlagCompletionFunc(f.Name); has {
				return
			}
			if complete := of(cmd, f); complete != nil {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // it fails for flags that are completed already
			}
		})
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
}
