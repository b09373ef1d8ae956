package releasecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/rollout"
	"github.com/argosy-io/argosy/internal/scope"
)

func NewRollout(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show, pause, resume and undo a rollout, and approve its stages or steps",
		Args:  hubcli.NoArgs,
	}
	verb := func(use, short, long string, run func(context.Context, *rolling) error) *cobra.Command {
		r := &rolling{}
		sub := &cobra.Command{
			Use: use + " KIND NAME", Short: short, Long: long,
			Args:              hubcli.OneObject("rollout web"),
			ValidArgsFunction: hubcli.OneOfHub(hub),
			RunE: rollingRun(hub, func(ctx context.Context, found *rolling) error {
				found.clusters = r.clusters
				return run(ctx, found)
			}),
		}
		if use == "approve" {
			sub.Flags().StringSliceVar(&r.clusters, "clusters", nil,
				"approve the step of a Kruise Rollout only in these clusters, separated by commas (default: all clusters that wait)")
		}
		return sub
	}
	cmd.AddCommand(
		verb("status", "Show progress per cluster, and the stage", "", func(ctx context.Context, r *rolling) error {
			return r.status(ctx)
		}),
		verb("approve", "Approve the current stage, or the current step of a Kruise Rollout", `Approves the stage at which a rollout in stages waits now. The approval is written on the template, with the stage and the revision of the
template. It covers neither later stages nor the next revision.

Of a Kruise Rollout, it approves the step at which it waits now, in every cluster where it waits, or in those named. The approval is
written on the Rollout of the hub, with the step and the revision that each cluster reported, and the hub carries it out in the members. It
covers neither later steps nor the next rollout. Run it again for clusters that reach the step later.`, func(ctx context.Context, r *rolling) error { return r.approve(ctx) }),
		verb("pause", "Pause the rollout in all clusters", "", func(ctx context.Context, r *rolling) error {
			return r.pause(ctx, true)
		}),
		verb("resume", "Resume the rollout in all clusters",
			`Resumes a paused rollout in all clusters. A rollout in stages that is not paused, but waits after a stage, is approved.`,
			func(ctx context.Context, r *rolling) error { return r.resume(ctx) }),
		newRolloutHistory(hub), newRolloutUndo(hub),
	)
	return cmd
}

// rolling is a template on the hub with a rollout.
type rolling struct {
	clusters []string
	out      io.Writer

	client   client.Client
	template *unstructured.Unstructured
	// conditions are the conditions of the binding, as read by readClusters.
	conditions []metav1.Condition
}

// find reads the template. The kind rollout means that of Kruise, if others have the same name.
func (r *rolling) find(ctx context.Context, hub *hubcli.HubFlags, kind, name string) error {
	var mapper meta.RESTMapper
	var err error
	if r.client, mapper, err = hub.ClientOfAll(); err != nil {
		return err
	}
	var gvk schema.GroupVersionKind
	if slices.Contains([]string{"rollout", "rollouts"}, strings.ToLower(kind)) {
		mapping, err := mapper.RESTMapping(rollout.Kind)
		if err != nil {
			return err
		}
		gvk = mapping.GroupVersionKind
	} else if gvk, err = mapper.KindFor(schema.ParseGroupResource(kind).WithVersion("")); err != nil {
		return fmt.Errorf("resolve %q: %w", kind, err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	r.template = &unstructured.Unstructured{}
	r.template.SetGroupVersionKind(gvk)
	key := types.NamespacedName{Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = hub.NamespaceOrDefault()
	}
	if err := r.client.Get(ctx, key, r.template); err != nil {
		return fmt.Errorf("read %s %s on the hub: %w", gvk.Kind, key.Name, err)
	}
	return nil
}

// clusterState is the last reported status of the object in a cluster.
type clusterState struct {
	cluster string
	health  string
	status  map[string]any
	// outage is set while the cluster is not ready, so that the status is stale.
	outage *membership.Outage
}

// replicaCells returns the row of a workload in a cluster: its health, and how many pods exist, are those of the
// template and are ready.
func (t clusterState) replicaCells(template *unstructured.Unstructured) []any {
	pods, _ := interpret.PodsOf(template.GroupVersionKind().GroupKind(), t.status)
	if !interpret.CountsUpdated(t.status, template.GetGeneration()) {
		pods.Updated = 0
	}
	cells := []any{t.cluster, hubcli.OrNone(t.health), pods.All, pods.Updated, pods.Ready}
	if t.outage != nil && t.health == string(workv1alpha1.ResourceUnknown) {
		cells[4] = "<unknown>"
	}
	return cells
}

// readClusters returns the clusters that have the template, or will have it, by name. stale is what the binding reports
// about outdated statuses.
func (r *rolling) readClusters(ctx context.Context) (all []clusterState, stale string, err error) {
	b, _, err := scope.BindingFor(ctx, r.client, r.template.GroupVersionKind().GroupKind(), r.template.GetNamespace(),
		r.template.GetName())
	if err != nil {
		return nil, "", err
	}
	if b == nil {
		return nil, "", fmt.Errorf("%s is not in any cluster: no policy propagates it", hubcli.ObjectName(r.template))
	}
	r.conditions = b.BindingStatus().Conditions
	var outages aggregate.Outages
	if c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.StatusCurrent); c != nil &&
		c.Status == metav1.ConditionFalse {
		stale = c.Message
		// Users who may not list clusters see only what is in the binding.
		if known, err := hubcli.Clusters(ctx, r.client, nil, ""); err == nil {
			outages = aggregate.OutagesOf(b, func(name string) *clusterv1alpha1.Cluster {
				if i := slices.IndexFunc(known, func(c clusterv1alpha1.Cluster) bool { return c.Name == name }); i >= 0 {
					return &known[i]
				}
				return nil
			})
		}
	}
	seen := map[string]bool{}
	for _, item := range b.BindingStatus().AggregatedStatus {
		t := clusterState{cluster: item.ClusterName, health: string(item.Health),
			outage: outages[item.ClusterName]}
		if item.Status != nil {
			if err := json.Unmarshal(item.Status.Raw, &t.status); err != nil {
				return nil, "", fmt.Errorf("read the status from cluster %q: %w", item.ClusterName, err)
			}
		}
		seen[t.cluster] = true
		all = append(all, t)
	}
	for _, target := range dispatch.Targets(b) {
		if !seen[target.Name] {
			all = append(all, clusterState{cluster: target.Name})
		}
	}
	slices.SortFunc(all, func(a, b clusterState) int { return strings.Compare(a.cluster, b.cluster) })
	return all, stale, nil
}

func (r *rolling) status(ctx context.Context) error {
	all, stale, err := r.readClusters(ctx)
	if err != nil {
		return err
	}
	table := hubcli.TextTable("CLUSTER", "HEALTH", "REPLICAS", "UPDATED", "READY")
	kruise := r.template.GroupVersionKind().GroupKind() == rollout.Kind
	if kruise {
		table = hubcli.TextTable("CLUSTER", "PHASE", "STEP", "STATE", "REVISION", "MESSAGE")
	}
	for _, t := range all {
		if !kruise {
			hubcli.AddRow(table, t.replicaCells(r.template)...)
			continue
		}
		p := rollout.ProgressOf(t.status)
		step := ""
		if p.Step > 0 {
			step = fmt.Sprint(p.Step)
		}
		hubcli.AddRow(table, t.cluster, hubcli.OrNone(p.Phase), hubcli.OrNone(step), hubcli.OrNone(p.State),
			hubcli.OrNone(p.Revision), p.Message)
	}
	if err := hubcli.PrintTable(r.out, table, printers.PrintOptions{}); err != nil {
		return err
	}
	generation := r.template.GetGeneration()
	if _, reported := fleet.ReportedStage(r.conditions, generation); reported || fleet.InStages(r.template) {
		if _, err := fmt.Fprintf(r.out, "\n%s\n", stageLine(r.conditions, generation)); err != nil {
			return err
		}
	}
	if stale == "" {
		return nil
	}
	_, err = fmt.Fprintf(r.out, "\n%s\n", stale)
	return err
}

// stageLine returns the line about the stage of a rollout.
func stageLine(conditions []metav1.Condition, generation int64) string {
	if _, ok := fleet.ReportedStage(conditions, generation); !ok {
		return "The hub has not reported the stage of the current template yet."
	}
	message := meta.FindStatusCondition(conditions, fleet.StagesCompleted).Message
	return strings.ToUpper(message[:1]) + message[1:] + "."
}

// resume ends a pause: that of the template, or else that of the stage at which the rollout waits.
func (r *rolling) resume(ctx context.Context) error {
	path := rollout.PausePath(r.template)
	if !fleet.InStages(r.template) || path != nil && fields.Yes(r.template.Object, path...) {
		return r.pause(ctx, false)
	}
	if _, _, err := r.readClusters(ctx); err != nil {
		return err
	}
	if stage, ok := fleet.ReportedStage(r.conditions, r.template.GetGeneration()); ok &&
		stage.State != fleet.StageWaiting {
		fmt.Fprintf(r.out, "%s is already resumed: %s\n", hubcli.ObjectName(r.template), stage)
		return nil
	}
	return r.approveStage(ctx)
}

// approveStage approves the stage at which the rollout waits, for the revision that the template has now.
func (r *rolling) approveStage(ctx context.Context) error {
	if len(r.clusters) > 0 {
		return fmt.Errorf("%s is rolled out in stages of the fleet: omit --clusters, which is for the steps of a Kruise Rollout", hubcli.ObjectName(r.template))
	}
	if _, _, err := r.readClusters(ctx); err != nil {
		return err
	}
	generation := r.template.GetGeneration()
	stage, ok := fleet.ReportedStage(r.conditions, generation)
	if !ok {
		return fmt.Errorf("the hub has not reported the stage of the current template of %s yet: run this again in a few seconds", hubcli.ObjectName(r.template))
	}
	if stage.State != fleet.StageWaiting {
		return fmt.Errorf("%s is not waiting for an approval: %s", hubcli.ObjectName(r.template), stage)
	}
	revision := fleet.RevisionOf(r.template)
	// The hub also writes this object. A retry approves the stage and the revision that were shown, and no others.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := r.patch(ctx, map[string]any{"metadata": map[string]any{"resourceVersion": r.template.GetResourceVersion(),
			"annotations": map[string]any{wellknown.RolloutStageAnnotation: fleet.Approval{Stage: int64(stage.Number),
				Revision: revision}.String()}}})
		if !apierrors.IsConflict(err) {
			return err
		}
		return errors.Join(err, r.client.Get(ctx, client.ObjectKeyFromObject(r.template), r.template))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s: stage %d of %d is approved for revision %s\n", hubcli.ObjectName(r.template),
		stage.Number, stage.Of,
		revision)
	return nil
}

func (r *rolling) approve(ctx context.Context) error {
	if fleet.InStages(r.template) && r.template.GroupVersionKind().GroupKind() != rollout.Kind {
		return r.approveStage(ctx)
	}
	if r.template.GroupVersionKind().GroupKind() != rollout.Kind {
		return fmt.Errorf("%s has nothing to approve: only Kruise Rollouts have steps, and it is not rolled out in stages (annotation %s: Stages)",
			hubcli.ObjectName(r.template), wellknown.RolloutOrderAnnotation)
	}
	all, _, err := r.readClusters(ctx)
	if err != nil {
		return err
	}
	seen := map[string]rollout.Progress{}
	for _, t := range all {
		seen[t.cluster] = rollout.ProgressOf(t.status)
	}
	var approved []string
	// The hub also writes this object. A retry reads only the annotation again: it approves the steps that were shown, and
	// no later ones.
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		value, clusters, err := rollout.Approve(r.template.GetAnnotations()[wellknown.ApprovedStepsAnnotation], seen,
			r.clusters)
		if err != nil {
			return fmt.Errorf("%s: %w; `%s` shows its progress", hubcli.ObjectName(r.template), err, "argosy rollout status")
		}
		approved = clusters
		err = r.patch(ctx, map[string]any{"metadata": map[string]any{
			"resourceVersion": r.template.GetResourceVersion(),
			"annotations":     map[string]any{wellknown.ApprovedStepsAnnotation: value}}})
		if !apierrors.IsConflict(err) {
			return err
		}
		return errors.Join(err, r.client.Get(ctx, client.ObjectKeyFromObject(r.template), r.template))
	})
	if err != nil {
		return err
	}
	for _, cluster := range approved {
		fmt.Fprintf(r.out, "%s: step %d is approved in cluster %s\n", hubcli.ObjectName(r.template),
			seen[cluster].Step, cluster)
	}
	for _, t := range all {
		if p := seen[t.cluster]; !slices.Contains(approved, t.cluster) && len(r.clusters) == 0 {
			fmt.Fprintf(r.out, "%s: not waiting for an approval in cluster %s (%s)\n", hubcli.ObjectName(r.template), t.cluster,
				hubcli.OrNone(p.State))
		}
	}
	return nil
}

func (r *rolling) pause(ctx context.Context, paused bool) error {
	word := "resumed"
	if paused {
		word = "paused"
	}
	path := rollout.PausePath(r.template)
	if path == nil {
		return fmt.Errorf("%s cannot be paused: its kind has no field for that", hubcli.ObjectName(r.template))
	}
	if fields.Yes(r.template.Object, path...) == paused {
		fmt.Fprintf(r.out, "%s is already %s\n", hubcli.ObjectName(r.template), word)
		return nil
	}
	patch := map[string]any{}
	if err := unstructured.SetNestedField(patch, paused, path...); err != nil {
		return err
	}
	if err := r.patch(ctx, patch); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s is %s\n", hubcli.ObjectName(r.template), word)
	return nil
}

// patch merges a patch into the template.
func (r *rolling) patch(ctx context.Context, patch map[string]any) error {
	return mergePatch(ctx, r.client, r.template.DeepCopy(), hubcli.ObjectName(r.template), patch)
}
