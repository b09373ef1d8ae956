package joincli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/addon"
	"github.com/argosy-io/argosy/internal/scope"
)

// ofKarmada are the addons of Karmada. Argosy has them built in if the hub serves the group, or does not have them.
var ofKarmada = []struct {
	name string
	// kind is served by a hub that has the addon; empty for what every hub has.
	kind schema.GroupKind
	here string
}{
	{name: "karmada-descheduler", kind: schema.GroupKind{Group: "config.karmada.io", Kind: "ReplicaSchedulingPolicy"},
		here: "in the hub; moves unschedulable replicas to other clusters; `argosy up --components=-descheduler` disables it"},
	{name: "karmada-scheduler-estimator",
		here: "in the hub; estimates capacity from nodes; `argosy up --enable-scheduler-estimator` also queries estimators in clusters"},
	{name: "karmada-search", kind: schema.GroupKind{Group: "search.karmada.io", Kind: "ResourceRegistry"},
		here: "in the hub"},
	{name: "karmada-metrics-adapter", kind: schema.GroupKind{Group: "metrics.k8s.io", Kind: "PodMetrics"},
		here: "in the hub"},
}

func NewAddons(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "addons",
		Short: "Install operators such as OpenKruise in clusters of the fleet",
		Long: `Install operators such as OpenKruise in clusters of the fleet from rendered manifests, and list which addons of
Karmada the hub has.`,
		Args: hubcli.NoArgs,
	}
	cmd.AddCommand(newAddonsList(hub), newAddonsEnable(hub), newAddonsDisable(hub))
	return cmd
}

// addons is the hub as these verbs see it.
type addons struct {
	client client.Client
	mapper meta.RESTMapper
	out    io.Writer
}

func newAddonsOf(cmd *cobra.Command, hub *hubcli.HubFlags) (addons, error) {
	c, mapper, err := hub.ClientOfAll()
	return addons{c, mapper, cmd.OutOrStdout()}, err
}

func newAddonsList(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the addons",
		Args:  hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := newAddonsOf(cmd, hub)
			if err != nil {
				return err
			}
			return a.list(cmd.Context())
		},
	}
	ignoreKarmadas(cmd)
	return cmd
}

// ignoreKarmadas adds the flags of karmadactl addons.
func ignoreKarmadas(cmd *cobra.Command) {
	hubcli.IgnoredFlags(cmd, hubcli.AddonFlags)
	if cmd.Flags().Lookup("clusters") != nil {
		return
	}
	cmd.Flags().StringP("cluster", "C", "", "of Karmada: ignored, every cluster has the addons of the hub")
	_ = cmd.Flags().MarkHidden("cluster") // fails only for an unknown flag
}

// installed reports whether the hub has an addon of Karmada.
func (a addons) installed(kind schema.GroupKind) (bool, error) {
	if kind.Empty() {
		return true, nil
	}
	_, err := a.mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

func (a addons) list(ctx context.Context) error {
	table := hubcli.TextTable("ADDON NAME", "STATUS", "DETAILS")
	for _, k := range ofKarmada {
		there, err := a.installed(k.kind)
		switch {
		case err != nil:
			return err
		case there:
			hubcli.AddRow(table, k.name, "enabled", k.here)
		default:
			hubcli.AddRow(table, k.name, "disabled", "not provided")
		}
	}
	objects, err := a.objects(ctx, "")
	if err != nil {
		return err
	}
	byAddon := map[string][]releasev1alpha1.EnclosedManifest{}
	var found []string
	for _, o := range objects {
		name := o.Labels[wellknown.AddonLabel]
		if byAddon[name] == nil {
			found = append(found, name)
		}
		byAddon[name] = append(byAddon[name], o)
	}
	slices.Sort(found)
	for _, name := range found {
		missing := []string{}
		for _, o := range byAddon[name] {
			if why, _, err := a.applied(ctx, o.Name); err != nil {
				return err
			} else if why != "" {
				missing = append(missing, o.Name)
			}
		}
		details := text.Count(len(byAddon[name]), "object") + ", all applied"
		if len(missing) > 0 {
			details = fmt.Sprintf("%s, %d not applied: `argosy why enclosedmanifest %s`",
				text.Count(len(byAddon[name]), "object"), len(missing), missing[0])
		}
		hubcli.AddRow(table, name, "enabled", details)
	}
	return hubcli.PrintTable(a.out, table, printers.PrintOptions{})
}

// objects returns the templates of an addon, or of all.
func (a addons) objects(ctx context.Context, name string) ([]releasev1alpha1.EnclosedManifest, error) {
	var list releasev1alpha1.EnclosedManifestList
	options := []client.ListOption{client.HasLabels{wellknown.AddonLabel}}
	if name != "" {
		options = []client.ListOption{client.MatchingLabels{wellknown.AddonLabel: name}}
	}
	if err := a.client.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list the manifests of addons: %w", err)
	}
	return list.Items, nil
}

// applied returns what is missing until the template is in all its clusters; empty if nothing is. If a cluster reports
// an error, failed is its Work; nil for users who may not read it.
func (a addons) applied(ctx context.Context, template string) (missing string, failed *workv1alpha1.Work, err error) {
	b, _, err := scope.BindingFor(ctx, a.client, releasev1alpha1.EnclosedManifestKind, "", template)
	if err != nil {
		return "", failed, err
	}
	if b == nil {
		return "no policy claims it yet", failed, nil
	}
	status := b.BindingStatus()
	for _, item := range status.AggregatedStatus {
		if !item.Applied && item.AppliedMessage != "" {
			if failed, err = scope.WorkFor(ctx, a.client, b, item.ClusterName); apierrors.IsForbidden(err) {
				err = nil
			}
			return fmt.Sprintf("in cluster %q: %s", item.ClusterName, item.AppliedMessage), failed, err
		}
	}
	if meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.FullyApplied) {
		return "", failed, nil
	}
	if c := meta.FindStatusCondition(status.Conditions, workv1alpha2.Scheduled); c != nil &&
		c.Status == metav1.ConditionFalse {
		return c.Message, failed, nil
	}
	return "being applied", failed, nil
}

func newAddonsEnable(hub *hubcli.HubFlags) *cobra.Command {
	var files []string
	var o addon.Options
	var dryRun bool
	timeout := 2 * time.Minute
	cmd := &cobra.Command{
		Use:   "enable NAME -f MANIFESTS",
		Short: "Install or upgrade an operator in clusters",
		Long: `Installs or upgrades an operator in clusters from its manifests, such as those that "helm template" renders.

The hub stores each manifest as an EnclosedManifest, so that it has no effect on the hub itself: the hub keeps its own definitions of
OpenKruise's kinds and calls none of the operator's webhooks. Two ClusterPropagationPolicies select the manifests. Definitions and
namespaces are applied first, then the operator, then its webhook configurations. The hub does not overwrite what the operator writes in
a cluster, such as the certificates of its webhooks. Helm hooks are not run: the command lists and skips them.

The addons of Karmada need no installation: each is either part of the hub or not provided.`,
		Example: `  helm template kruise openkruise/kruise | argosy addons enable openkruise -f -
  argosy addons enable openkruise -f kruise/ --clusters eu,us`,
		Args:              hubcli.OneArg("the name of the addon"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := newAddonsOf(cmd, hub)
			if err != nil {
				return err
			}
			if isKarmadas(args[0]) {
				return a.karmadas(args[0], true)
			}
			if len(files) == 0 {
				return fmt.Errorf("name the manifests of %s with -f: a file, a folder, or - for standard input, such as what `helm template` renders", args[0])
			}
			read, err := hubcli.ReadObjects(cmd.InOrStdin(), files...)
			if err != nil {
				return err
			}
			manifests := make([]*unstructured.Unstructured, len(read))
			for i := range read {
				manifests[i] = read[i].Unstructured
			}
			all, warnings, err := addon.Enclose(args[0], hub.NamespaceOrDefault(), manifests, a.namespaced)
			if err != nil {
				return err
			}
			for _, w := range warnings {
				text.Fprintf(cmd.ErrOrStderr(), "Warning: %s\n", w)
			}
			if err := a.known(cmd.Context(), o.Clusters); err != nil {
				return err
			}
			if dryRun {
				for _, x := range all {
					fmt.Fprintf(a.out, "%s: %s\n", x.Stage, x.Template.GetName())
				}
				return nil
			}
			return a.enable(cmd.Context(), args[0], all, o, timeout)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&files, "filename", "f", nil, "file or folder with the manifests; - is standard input")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "cluster" {
			name = "clusters"
		}
		return pflag.NormalizedName(name)
	})
	f.StringSliceVarP(&o.Clusters, "clusters", "C", nil,
		"clusters to install it in, separated by commas (default: all, also those that join later)")
	f.BoolVar(&o.Overwrite, "overwrite", false,
		"take over what a cluster already has, such as an operator that was installed by hand")
	f.DurationVar(&timeout, "wait", timeout, "timeout for each stage to be applied in all clusters")
	f.BoolVar(&dryRun, "dry-run", false, "show what would be installed, and write nothing")
	ignoreKarmadas(cmd)
	return cmd
}

// isKarmadas reports whether a name is one that Karmada gives to addons of its own, or to all of them.
func isKarmadas(name string) bool { return strings.HasPrefix(name, "karmada-") || name == "all" }

// karmadas handles the addons of Karmada: there is nothing to enable or to disable.
func (a addons) karmadas(name string, enable bool) error {
	var errs []error
	found := false
	for _, k := range ofKarmada {
		if name != k.name && name != "all" {
			continue
		}
		found = true
		there, err := a.installed(k.kind)
		switch {
		case err != nil:
			errs = append(errs, err)
		case there && enable:
			fmt.Fprintf(a.out, "%s is enabled: it is %s\n", k.name, k.here)
		case there:
			errs = append(errs, fmt.Errorf("%s is %s; this command cannot disable it", k.name, k.here))
		case enable:
			errs = append(errs, fmt.Errorf("%s is not provided and cannot be installed", k.name))
		default:
			fmt.Fprintf(a.out, "%s is disabled: not provided\n", k.name)
		}
	}
	if !found {
		return fmt.Errorf("there is no addon %q: `argosy addons list` shows all addons", name)
	}
	return errors.Join(errs...)
}

// namespaced reports whether objects of a kind of the hub are in namespaces.
func (a addons) namespaced(gvk schema.GroupVersionKind) (is, known bool) {
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind())
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// known returns an error that names the clusters that are not in the fleet.
func (a addons) known(ctx context.Context, clusters []string) error {
	for _, name := range clusters {
		if _, err := hubcli.GetCluster(ctx, a.client, name); err != nil {
			return err
		}
	}
	return nil
}

// enable writes the policies, then the templates stage by stage, and deletes what only an earlier version of the addon
// had.
func (a addons) enable(ctx context.Context, name string, all []addon.Object, o addon.Options,
	timeout time.Duration) error {
	for _, want := range addon.Policies(name, all, o) {
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: want.Name}}
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil && p.Labels[wellknown.AddonLabel] != name {
			return fmt.Errorf("the ClusterPropagationPolicy %s exists and does not belong to an addon: choose another name for the addon", p.Name)
		}
		err := createOrUpdate(ctx, a.client, p, func() {
			metav1.SetMetaDataLabel(&p.ObjectMeta, wellknown.AddonLabel, name)
			p.Spec.ResourceSelectors, p.Spec.Placement.ClusterAffinity = want.Spec.ResourceSelectors,
				want.Spec.Placement.ClusterAffinity
			p.Spec.ConflictResolution, p.Spec.PreserveResourcesOnDeletion = want.Spec.ConflictResolution,
				want.Spec.PreserveResourcesOnDeletion
		})
		if err != nil {
			return fmt.Errorf("write the policy %s: %w", want.Name, err)
		}
	}
	wanted := map[string]bool{}
	for stage := range addon.Stages {
		var written []string
		for _, x := range all {
			if x.Stage != stage {
				continue
			}
			if err := a.write(ctx, x.Template); err != nil {
				return err
			}
			wanted[x.Template.GetName()] = true
			written = append(written, x.Template.GetName())
		}
		if err := a.await(ctx, written, timeout); err != nil {
			return fmt.Errorf("%s of %s: %w", stage, name, err)
		}
		fmt.Fprintf(a.out, "%s: %s of %s\n", name, text.Count(len(written), "object"), stage)
	}
	have, err := a.objects(ctx, name)
	if err != nil {
		return err
	}
	for i := range have {
		if !wanted[have[i].Name] {
			if err := a.client.Delete(ctx, &have[i]); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %s, which is no longer part of the addon: %w", have[i].Name, err)
			}
		}
	}
	fmt.Fprintf(a.out, "addon %s is enabled\n", name)
	return nil
}

// write creates or updates a template; it writes nothing if the template is up to date.
func (a addons) write(ctx context.Context, want *unstructured.Unstructured) error {
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(want.GroupVersionKind())
	have.SetName(want.GetName())
	err := createOrUpdate(ctx, a.client, have, func() {
		for key, value := range want.GetLabels() {
			fields.SetLabel(have, key, value)
		}
		if !equality.Semantic.DeepEqual(have.Object["spec"], want.Object["spec"]) {
			have.Object["spec"] = want.Object["spec"]
		}
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", want.GetName(), err)
	}
	return nil
}

// await waits until the templates are in all their clusters.
func (a addons) await(ctx context.Context, templates []string, timeout time.Duration) error {
	waits := ""
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true,
		func(ctx context.Context) (bool, error) {
			for _, name := range templates {
				why, failed, err := a.applied(ctx, name)
				if err != nil {
					return false, err
				}
				if why != "" {
					before := waits
					waits = fmt.Sprintf("%s: %s", name, why)
					if failed != nil && waits != before {
						if f := execute.FailureOf(failed); f != nil && f.Reason == workv1alpha1.ReasonObjectUnmanaged {
							return false, fmt.Errorf("%s. If it belongs to the same operator, use --overwrite to take it over", waits)
						}
					}
					return false, nil
				}
			}
			return true, nil
		})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("not in all clusters after %s: %s. Run the command again to continue", timeout, waits)
	}
	return err
}

func newAddonsDisable(hub *hubcli.HubFlags) *cobra.Command {
	timeout := 2 * time.Minute
	cmd := &cobra.Command{
		Use:   "disable NAME",
		Short: "Uninstall an operator from the clusters",
		Long: `Uninstalls an operator that "addons enable" installed: first its webhooks, then its workloads.
Its definitions and namespaces stay in the clusters, and the hub no longer manages them: deleting a definition would also delete all
objects of its kind.`,
		Args:              hubcli.OneArg("the name of the addon"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := newAddonsOf(cmd, hub)
			if err != nil {
				return err
			}
			if isKarmadas(args[0]) {
				return a.karmadas(args[0], false)
			}
			return a.disable(cmd.Context(), args[0], timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "wait", timeout, "timeout for each stage to be deleted from all clusters")
	cmd.Flags().BoolP("force", "f", false, "of Karmada: ignored, its addons are part of the hub")
	_ = cmd.Flags().MarkHidden("force") // fails only for an unknown flag
	ignoreKarmadas(cmd)
	return cmd
}

func (a addons) disable(ctx context.Context, name string, timeout time.Duration) error {
	have, err := a.objects(ctx, name)
	if err != nil {
		return err
	}
	if len(have) == 0 {
		return fmt.Errorf("there is no addon %q: `argosy addons list` shows all addons", name)
	}
	for stage := addon.Stages - 1; stage >= 0; stage-- {
		var gone []string
		for i := range have {
			of, err := addon.StageOf(&have[i])
			if err != nil {
				return err
			}
			if of != stage {
				continue
			}
			if err := a.client.Delete(ctx, &have[i]); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %s: %w", have[i].Name, err)
			}
			gone = append(gone, have[i].Name)
		}
		err := a.gone(ctx, gone, timeout)
		if err != nil {
			return fmt.Errorf("%s of %s: wait until it is gone from all clusters: %w", stage, name, err)
		}
	}
	if err := a.client.DeleteAllOf(ctx, &policyv1alpha1.ClusterPropagationPolicy{},
		client.MatchingLabels{wellknown.AddonLabel: name}); err != nil {
		return fmt.Errorf("delete the policies of %s: %w", name, err)
	}
	fmt.Fprintf(a.out, "addon %s is disabled; its definitions and namespaces stay in the clusters\n", name)
	return nil
}

// gone waits until no cluster has what the templates enclosed, which were deleted.
func (a addons) gone(ctx context.Context, templates []string, timeout time.Duration) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true,
		func(ctx context.Context) (bool, error) {
			for _, template := range templates {
				if b, _, err := scope.BindingFor(ctx, a.client, releasev1alpha1.EnclosedManifestKind, "", template); b != nil ||
					err != nil {
					return false, err
				}
			}
			return true, nil
		})
}
