package operatecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

func NewBrake(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "brake",
		Short: "Stop the hub in clusters, and let it continue",
		Long: `Sets or removes the annotation ` + wellknown.HandsOffAnnotation + ` on the namespace ` +
			execute.BrakeNamespace + ` of clusters, or on another namespace.
While it is set, the hub neither writes nor deletes objects in the cluster, or in that namespace.
Workloads keep running.`,
		Example: `  argosy brake on --cluster eu
  argosy brake on --cluster eu,us -n shop
  argosy brake on --cluster-kubeconfig eu.kubeconfig
  argosy brake off`,
	}
	cmd.AddCommand(newBrakeVerb(hub, true), newBrakeVerb(hub, false))
	return cmd
}

func newBrakeVerb(hub *hubcli.HubFlags, on bool) *cobra.Command {
	b := &braking{on: on}
	where, flags := &membercli.ScopeFlags{}, &hubcli.MemberFlags{}
	cmd := &cobra.Command{
		Use: "on", Short: "Stop the hub in clusters",
		Long: `Stops the hub in the clusters that --cluster names, or in all clusters. With --namespace, it stops the hub only for
objects in that namespace.

You need the right to patch the namespace in each cluster, and the right to use clusters/proxy on the hub.
With --cluster-kubeconfig, the command works without the hub.`,
		Example: `  argosy brake on --cluster eu
  argosy brake on --cluster eu,us -n shop
  argosy brake on --cluster-kubeconfig eu.kubeconfig`,
		Args: cobra.NoArgs,
	}
	if !on {
		cmd.Use, cmd.Short = "off", "Let the hub continue in clusters"
		cmd.Long = `Lets the hub continue in the clusters that --cluster names, or in all clusters. The hub then makes the changes that it
withheld. Annotations on objects and on other namespaces stay.`
		cmd.Example = "  argosy brake off --cluster eu\n  argosy brake off"
	}
	where.Bind(cmd)
	cmd.Flags().StringVar(&flags.Kubeconfig, "cluster-kubeconfig", "",
		"kubeconfig of the member cluster (default: through the hub, which needs the right to use clusters/proxy)")
	cmd.Flags().StringVar(&flags.Context, "cluster-context", "",
		"context of the member cluster in its kubeconfig (default: the current one)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b.namespace = cmp.Or(hub.Namespace, execute.BrakeNamespace)
		targets, err := b.targets(cmd.Context(), hub, where, flags)
		if err != nil {
			return err
		}
		return b.setAll(cmd, targets)
	}
	return cmd
}

// braking sets or removes the annotation hands-off on a namespace of clusters.
type braking struct {
	on        bool
	namespace string
}

// brakeTarget is a cluster and how it is reached.
type brakeTarget struct {
	cluster string
	config  *rest.Config
}

// targets returns the clusters that the flags name. With the kubeconfig of a cluster, the hub is not asked.
func (b *braking) targets(ctx context.Context, hub *hubcli.HubFlags, where *membercli.ScopeFlags,
	flags *hubcli.MemberFlags) ([]brakeTarget, error) {
	if flags.Kubeconfig != "" || flags.Context != "" {
		if len(where.Clusters) > 1 {
			return nil, errors.New("--cluster-kubeconfig is for one cluster: name at most one with --cluster")
		}
		cluster := strings.Join(where.Clusters, "")
		e, err := flags.Endpoint(cluster)
		if err != nil {
			return nil, err
		}
		return []brakeTarget{{cmp.Or(cluster, e.Config.Host), e.Config}}, nil
	}
	if _, err := hub.ToRESTConfig(); err != nil {
		return nil, fmt.Errorf("%w\nWithout the hub: use --cluster-kubeconfig, or kubectl in the cluster: %s", err,
			b.kubectl())
	}
	places, err := where.Places(ctx, hub, true)
	if err != nil {
		return nil, err
	}
	var targets []brakeTarget
	for _, at := range places {
		config, err := at.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		targets = append(targets, brakeTarget{at.Cluster, config})
	}
	return targets, nil
}

// kubectl returns the command that does the same in a member.
func (b *braking) kubectl() string {
	value := "=true --overwrite"
	if !b.on {
		value = "-"
	}
	return "kubectl annotate namespace " + b.namespace + " " + wellknown.HandsOffAnnotation + value
}

// setAll changes all clusters at the same time, so that one that does not respond delays no other.
func (b *braking) setAll(cmd *cobra.Command, targets []brakeTarget) error {
	changed, errs := make([]bool, len(targets)), make([]error, len(targets))
	var changing sync.WaitGroup
	for i, t := range targets {
		changing.Go(func() { changed[i], errs[i] = b.set(cmd.Context(), t) })
	}
	changing.Wait()
	state, already := "on", ""
	if !b.on {
		state = "off"
	}
	if b.namespace != execute.BrakeNamespace {
		state += " for namespace " + b.namespace
	}
	for i, t := range targets {
		if errs[i] != nil {
			continue
		}
		if already = ""; !changed[i] {
			already = "already "
		}
		fmt.Fprintf(cmd.OutOrStdout(), "cluster/%s brake %s%s\n", t.cluster, already, state)
	}
	return errors.Join(errs...)
}

// brakeManager owns the annotation. It is not the hub's field manager, which would remove the annotation from a
// namespace that the hub applies.
const brakeManager = "argosy-brake"

func (b *braking) set(ctx context.Context, t brakeTarget) (changed bool, err error) {
	failed := func(err error) error {
		return fmt.Errorf("annotate namespace %s in cluster %q: %w", b.namespace, t.cluster, err)
	}
	config := rest.CopyConfig(t.config)
	config.Timeout, config.QPS, config.WarningHandler = hubcli.Timeout(config, hubcli.RequestTimeout), -1, hubcli.Warnings
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return false, failed(err)
	}
	ns, err := client.Namespaces().Get(ctx, b.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && hubcli.ClusterErrorDetails(err) == nil {
		return false, fmt.Errorf("there is no namespace %q in cluster %q", b.namespace, t.cluster)
	}
	if err != nil {
		return false, failed(err)
	}
	value, set := ns.Annotations[wellknown.HandsOffAnnotation]
	if b.on && value == "true" || !b.on && !set {
		return false, nil
	}
	var want any // null removes the annotation
	if b.on {
		want = "true"
	}
	patch := []byte(text.JSON(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{wellknown.HandsOffAnnotation: want}}}))
	if _, err := client.Namespaces().Patch(ctx, b.namespace, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: brakeManager}); err != nil {
		return false, failed(err)
	}
	return true, nil
}
