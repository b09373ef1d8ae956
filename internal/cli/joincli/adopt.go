package joincli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/migration"
)

func NewAdopt(hub *hubcli.HubFlags) *cobra.Command {
	a := &adoption{}
	return a.command(hub, &cobra.Command{
		Use:   "adopt KIND NAME --cluster CLUSTER",
		Short: "Bring an object that runs in a cluster under the hub's management, without restarting a pod",
		Long: `Brings an object that runs in a member cluster under the hub's management: creates a template of it on the hub, and a policy that sends the
template to that cluster and takes over what is there.

Before anything is written, a dry run goes through the admission of the hub and of the member, with the overrides that
apply. If pods would be restarted, replaced or removed, the adoption is refused, and the command lists the fields. If the hub
already has a template of that name, it is compared and not changed. KIND is a kind, plural or short name, with
".group" if it is ambiguous.`,
		Example: `  argosy adopt cloneset web -n shop --cluster eu --dry-run
  argosy adopt cloneset web -n shop --cluster eu
  argosy adopt cloneset web -n shop --cluster eu --dependencies`,
	}, "output format: json or yaml, with the changes and the objects written")
}

// NewPromote is NewAdopt under the name that karmadactl gives it. As there, --output prints manifests and writes
// nothing, and the policy preserves the object.
func NewPromote(hub *hubcli.HubFlags) *cobra.Command {
	a := &adoption{onlyPrint: true}
	a.Preserve = true
	return a.command(hub, &cobra.Command{
		Use:   "promote KIND NAME -C CLUSTER",
		Short: "Adopt an object of a cluster, with the command line of karmadactl",
		Long: `Does the same as "argosy adopt", with the command line of karmadactl. There are two differences: --output prints the manifests of the
template and its policy, and writes nothing. And the policy has preserveResourcesOnDeletion, so that the object stays in the cluster if
the template is deleted.`,
		Example: `  argosy promote deployment web -n shop -C eu
  argosy promote deployment web -n shop -C eu -o yaml
  argosy promote deployment web -n shop -C eu -d --cluster-kubeconfig eu.kubeconfig`,
	}, "output format: json or yaml; prints the template and its policy, and writes nothing")
}

// command adds the arguments, the flags and the action to a command.
func (a *adoption) command(hub *hubcli.HubFlags, cmd *cobra.Command, output string) *cobra.Command {
	cluster, flags := "", &hubcli.MemberFlags{}
	cmd.Args, cmd.ValidArgsFunction = hubcli.OneObject("cloneset web"), hubcli.OneOfHub(hub)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if a.migrator, err = newMigrator(cmd, hub, flags); err != nil {
			return err
		}
		w, err := a.resolve(args)
		if err != nil {
			return err
		}
		w.Clusters, a.NoPolicy, a.Force = []string{cluster}, !a.createPolicy, a.force
		return a.run(cmd.Context(), w)
	}
	f := cmd.Flags()
	f.StringVarP(&cluster, "cluster", "C", "", "cluster that the object lives in")
	_ = cmd.MarkFlagRequired("cluster") // fails only for an unknown flag
	f.StringVar(&flags.Kubeconfig, "cluster-kubeconfig", "",
		"kubeconfig of the member cluster (default: through the hub, which needs the right to use clusters/proxy)")
	f.StringVar(&flags.Context, "cluster-context", "",
		"context of the member cluster in its kubeconfig (default: the current one)")
	f.BoolVar(&a.createPolicy, "auto-create-policy", true,
		"create a policy that propagates the template to the cluster; if false, an annotation on the template allows it to take over the object")
	f.StringVar(&a.Policy, "policy-name", "", "name of that policy (default: the name of the object and a hash)")
	f.BoolVarP(&a.Dependencies, "dependencies", "d", false,
		"also adopt what the object refers to by name, such as ConfigMaps and Secrets; the policy propagates it")
	f.BoolVar(&a.dryRun, "dry-run", false, "show what would change, and write nothing")
	f.BoolVar(&a.force, "force", false, "adopt even if that restarts, replaces or removes pods")
	hubcli.OutputFlag(cmd, &a.output, output)
	return cmd
}

// adoption brings an object of a member under the hub's management.
type adoption struct {
	*migrator
	migration.Adoption
	createPolicy, dryRun, force bool
	output                      string
	// onlyPrint: with an output format, manifests are printed and nothing is written.
	onlyPrint bool
}

// newAPI connects to the hub or a member.
func newAPI(config *rest.Config) (migration.API, error) {
	mapper, err := hubcli.MapperOf(hubcli.DiscoverOnce(config, nil))
	if err != nil {
		return migration.API{}, err
	}
	c, err := dynamic.NewForConfig(config)
	return migration.API{Dynamic: c, Mapper: mapper}, err
}

func (a *adoption) run(ctx context.Context, w migration.Workload) error {
	result, err := a.PlanAdoption(ctx, w, a.Adoption)
	if err != nil {
		return err
	}
	var refused error
	if len(result.Disturbs) > 0 && !a.force {
		refused = fmt.Errorf("%s in cluster %q is not adopted, because its pods would not stay unchanged:\n  %s\nNothing was written. "+
			"Fix the template or the hub's overrides, or adopt it with --force", w, result.Cluster,
			strings.Join(result.Disturbs, "\n  "))
	}
	if a.onlyPrint && a.output != "" {
		return errors.Join(refused, a.printManifests(result))
	}
	if refused == nil && !a.dryRun && !result.Managed {
		if err := a.Adopt(ctx, result); err != nil {
			return err
		}
	}
	if a.output != "" {
		err = hubcli.WriteAs(a.out, a.output, result)
	} else {
		a.print(w, result)
	}
	if err != nil || refused != nil {
		return errors.Join(refused, err)
	}
	if result.Adopted && a.createPolicy { // otherwise the user must create what sends it
		return a.AwaitAdopted(ctx, result)
	}
	return nil
}

// memberConfig returns the configuration of a client of a member: from its kubeconfig if given, otherwise through the
// hub, as the hub's user.
func memberConfig(ctx context.Context, hub client.Client, hubConfig *rest.Config, name string,
	flags *hubcli.MemberFlags) (*rest.Config, error) {
	if _, err := hubcli.GetCluster(ctx, hub, name); err != nil {
		return nil, err
	}
	var config *rest.Config
	if flags.Kubeconfig != "" {
		e, err := flags.Endpoint(name)
		if err != nil {
			return nil, err
		}
		config = rest.CopyConfig(e.Config)
	} else {
		if err := hubcli.Answers(ctx, hubConfig, name); err != nil {
			return nil, err
		}
		config = proxy.Config(hubConfig, name)
	}
	config.Timeout, config.QPS = hubcli.Timeout(hubConfig, hubcli.RequestTimeout), -1
	return config, nil
}

// printManifests prints the objects that an adoption writes: YAML documents, or JSON objects one after the other.
func (a *adoption) printManifests(result *migration.Adopted) error {
	var objects []any
	for _, r := range append(result.Dependencies, result) {
		if r.Policy != nil {
			objects = append(objects, r.Policy)
		}
		if r.Template != nil {
			objects = append(objects, r.Template)
		}
	}
	for i, o := range objects {
		if i > 0 && a.output == "yaml" {
			fmt.Fprintln(a.out, "---")
		}
		if err := hubcli.WriteAs(a.out, a.output, o); err != nil {
			return err
		}
	}
	return nil
}

func (a *adoption) print(what migration.Workload, result *migration.Adopted) {
	if result.Managed {
		fmt.Fprintf(a.out, "%s in cluster %q is adopted already\n", what, result.Cluster)
		return
	}
	switch {
	case result.There != nil:
		fmt.Fprintf(a.out, "The hub already has a template of that name; it is not changed.\n")
	case len(result.Differences) == 0:
		fmt.Fprintf(a.out, "The template is a copy of the object.\n")
	}
	if !result.Asked {
		fmt.Fprintf(a.out, "Cluster %q does not support a dry run for it, so only the applied fields are compared.\n",
			result.Cluster)
	}
	if len(result.Differences) == 0 {
		fmt.Fprintf(a.out, "Only the labels and annotations of the hub change in %s.\n", what)
	}
	for _, d := range result.Differences {
		fmt.Fprintf(a.out, "  %s: %s → %s\n", d.Path, migration.Shown(d.Have), migration.Shown(d.Want))
	}
	for _, d := range result.Dependencies {
		fmt.Fprintf(a.out, "Its dependency %s is adopted with it.\n", d)
	}
	for _, d := range result.LeftOut {
		text.Fprintf(a.out, "Not adopted with it is %s\n", d)
	}
	switch {
	case len(result.Disturbs) > 0 && !a.force:
	case a.dryRun:
		fmt.Fprintf(a.out, "%s in cluster %q can be adopted (dry run: nothing was written)\n", what, result.Cluster)
	default:
		fmt.Fprintf(a.out, "%s in cluster %q is adopted\n", what, result.Cluster)
		if !a.createPolicy {
			fmt.Fprintln(a.out, "No policy was created: the template is propagated when a policy selects it.")
		}
	}
}
