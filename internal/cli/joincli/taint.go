package joincli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/cluster/taint"
)

func NewTaint(hub *hubcli.HubFlags) *cobra.Command {
	t, overwrite := &tainting{}, false
	cmd := &cobra.Command{
		Use:   "taint clusters NAME... KEY[=VALUE]:EFFECT... [KEY[:EFFECT]-...]",
		Short: "Set and remove taints of clusters",
		Long: `Sets taints of clusters, and removes those that end with "-".

NoSchedule keeps new workloads out, unless their policy tolerates the taint. NoExecute also moves out what is there: each workload that does
not tolerate it, or no longer, leaves once another cluster has a replacement. tolerationSeconds counts from when the taint was added.`,
		Example: `  argosy taint clusters eu dedicated=gpu:NoSchedule
  argosy taint clusters eu us maintenance:NoExecute
  argosy taint clusters eu dedicated=ai:NoSchedule --overwrite
  argosy taint clusters eu dedicated:NoSchedule-
  argosy taint clusters eu dedicated-`,
		Args: hubcli.SomeArgs("the name of a cluster"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"clusters"}, cobra.ShellCompDirectiveNoFileComp
			}
			return hubcli.CompleteNames(hub, "clusters.cluster.karmada.io")(cmd, args[1:], word)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			names, taints, err := taintArguments(args)
			if err != nil {
				return err
			}
			edit, err := taint.ParseEdit(taints)
			if err != nil {
				return err
			}
			return t.changeAll(cmd, hub, names, func(name string) error {
				_, err := t.edit(cmd.Context(), name, func(taints []corev1.Taint) ([]corev1.Taint, error) {
					return edit.Apply(taints, overwrite)
				})
				if err == nil {
					t.print("cluster/%s %s", name, edit.Verb())
				}
				return err
			})
		},
	}
	t.bind(cmd)
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace the value of a taint that the cluster already has")
	return cmd
}

// taintArguments splits arguments such as "clusters eu us dedicated=gpu:NoSchedule" into names of clusters and taints.
func taintArguments(args []string) (names, taints []string, err error) {
	if kind := args[0]; kind != "clusters" && kind != "cluster" {
		return nil, nil, fmt.Errorf("only clusters can be tainted, not %q: write `argosy taint clusters NAME KEY=VALUE:EFFECT`", kind)
	}
	rest := args[1:]
	first := slices.IndexFunc(rest, func(arg string) bool {
		return strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-")
	})
	if first < 0 {
		first = len(rest)
	}
	if first == 0 {
		return nil, nil, errors.New("name at least one cluster, as in `argosy taint clusters eu dedicated=gpu:NoSchedule`")
	}
	return rest[:first], rest[first:], nil
}

func NewCordon(hub *hubcli.HubFlags) *cobra.Command {
	return cordoning(hub, "cordon", "Keep new workloads out of clusters",
		`Sets the taint cluster.karmada.io/unschedulable:NoSchedule. What is placed in the cluster stays and is kept up to date; "argosy uncordon"
lets new workloads in again.`, taint.Edit{Put: []corev1.Taint{taint.Cordon}})
}

func NewUncordon(hub *hubcli.HubFlags) *cobra.Command {
	return cordoning(hub, "uncordon", "Let new workloads into clusters again",
		`Removes the taint cluster.karmada.io/unschedulable:NoSchedule that "argosy cordon" sets.`,
		taint.Edit{Drop: []corev1.Taint{taint.Cordon}})
}

// cordoning returns the command of that verb, which makes the edit unless it is made already.
func cordoning(hub *hubcli.HubFlags, verb, short, long string, edit taint.Edit) *cobra.Command {
	t := &tainting{}
	cmd := &cobra.Command{
		Use: verb + " NAME...", Short: short, Long: long,
		Example:           "  argosy " + verb + " eu\n  argosy " + verb + " eu us --dry-run",
		Args:              hubcli.SomeArgs("the name of a cluster"),
		ValidArgsFunction: hubcli.CompleteNames(hub, "clusters.cluster.karmada.io"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.changeAll(cmd, hub, args, func(name string) error {
				changed, err := t.edit(cmd.Context(), name, func(taints []corev1.Taint) ([]corev1.Taint, error) {
					has := slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint.Cordon) })
					if has == (len(edit.Put) > 0) {
						return taints, nil
					}
					return edit.Apply(taints, false)
				})
				switch {
				case err != nil:
				case changed:
					t.print("%s cluster %sed", name, verb)
				default:
					t.print("%s cluster already %sed", name, verb)
				}
				return err
			})
		},
	}
	t.bind(cmd)
	return cmd
}

// tainting changes taints of clusters.
type tainting struct {
	dryRun bool
	client client.Client
	out    io.Writer
}

func (t *tainting) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&t.dryRun, "dry-run", false, "have the hub check the change and change nothing")
}

// changeAll changes every cluster that is named, whatever became of the others.
func (t *tainting) changeAll(cmd *cobra.Command, hub *hubcli.HubFlags, names []string,
	change func(name string) error) (err error) {
	t.out = cmd.OutOrStdout()
	if t.client, err = hub.Client(); err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, change(name))
	}
	return errors.Join(errs...)
}

func (t *tainting) print(format string, args ...any) {
	if t.dryRun {
		format += " (dry run)"
	}
	fmt.Fprintf(t.out, format+"\n", args...)
}

// edit changes the taints of a cluster, and retries conflicts.
func (t *tainting) edit(ctx context.Context, name string,
	change func([]corev1.Taint) ([]corev1.Taint, error)) (changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := t.client.Get(ctx, types.NamespacedName{Name: name}, c); apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no cluster %q; `argosy get clusters` lists them", name)
		} else if err != nil {
			return fmt.Errorf("read cluster %q: %w", name, err)
		}
		taints, err := change(c.Spec.Taints)
		if err != nil {
			return fmt.Errorf("cluster %q: %w", name, err)
		}
		if changed = !equality.Semantic.DeepEqual(taints, c.Spec.Taints); !changed {
			return nil
		}
		before := c.DeepCopy()
		c.Spec.Taints = taints
		var options []client.PatchOption
		if t.dryRun {
			options = append(options, client.DryRunAll)
		}
		if err := t.client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
			options...); err != nil {
			return fmt.Errorf("write cluster %q: %w", name, err)
		}
		return nil
	})
	return changed, err
}
