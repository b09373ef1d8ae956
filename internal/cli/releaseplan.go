package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/release"
)

// releasePlan is what a release will do if nothing fails.
type releasePlan struct {
	// Release is empty for one that is not created.
	Release   string         `json:"release,omitempty"`
	Namespace string         `json:"namespace"`
	Targets   []plannedRef   `json:"targets"`
	Stages    []plannedStage `json:"stages"`
	// Steps are in the order in which pods are released, and Hash is of them.
	Steps []release.Planned `json:"steps"`
	Hash  string            `json:"hash"`
	// Notes name what the plan leaves out.
	Notes []string `json:"notes,omitempty"`
}

type plannedRef struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Workload string `json:"workload"`
	From     string `json:"from,omitempty"`
	To       string `json:"to"`
}

type plannedStage struct {
	Name        string   `json:"name"`
	Environment string   `json:"environment,omitempty"`
	Before      []string `json:"before,omitempty"`
	Soak        string   `json:"soak,omitempty"`
	After       []string `json:"after,omitempty"`
	// Waits is why ReleaseGuards would not let the stage start now; empty if they would.
	Waits string `json:"waits,omitempty"`
	// Clusters get new pods in the stage; none if the stage has nothing to do.
	Clusters []plannedCluster `json:"clusters"`
}

type plannedCluster struct {
	Target  string `json:"target"`
	Cluster string `json:"cluster"`
	// Replicas of the target in the cluster. New of them may be new after the stage; Former were before it.
	Replicas int64 `json:"replicas"`
	Former   int64 `json:"former"`
	New      int64 `json:"new"`
}

func newReleasePlan(hub *hubFlags) *cobra.Command {
	d := &draft{supersede: string(releasev1alpha1.SupersedeQueue)}
	var output string
	cmd := &cobra.Command{
		Use:   "plan KIND NAME",
		Short: "Show what a release would do in each stage and cluster, without starting it",
		Long: `Shows what each stage of a release will do if nothing fails, cluster by cluster. Nothing is written. The hub
computes the same steps when it runs the release. An error names why the hub would refuse the release.

The plan needs the right to read the workload, its binding, clusters, releases and ReleaseRevisions. Without
the right to list Works and override policies, it says what it leaves out.`,
		Example: `  argosy release plan cloneset/web -n shop --strategy 1-2-7
  argosy release plan cloneset/web -n shop -f strategy.yaml -o json`,
		Args:              oneObject("cloneset web"),
		ValidArgsFunction: oneOfHub(hub),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s is not supported: use json, or leave it out for a table", output)
			}
			if err := d.check(); err != nil {
				return err
			}
			kind, name := objectOf(args)
			return releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
				drafted, err := d.release(ctx, r, kind, name)
				if err != nil {
					return err
				}
				plan, err := r.plan(ctx, drafted)
				if err != nil {
					return err
				}
				if output == "json" {
					return writeJSON(r.out, plan)
				}
				return plan.print(r.out)
			})(cmd, []string{name})
		},
	}
	d.bind(cmd, hub)
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json, or tables if empty")
	return cmd
}

// plan previews a release, one that is not created yet or one of the hub.
func (r *releases) plan(ctx context.Context, rel *releasev1alpha1.Release) (*releasePlan, error) {
	in, notes, err := r.input(ctx, rel)
	if err != nil {
		return nil, err
	}
	plan := &releasePlan{Release: rel.Name, Namespace: r.namespace, Notes: notes}
	if plan.Steps, plan.Hash, err = release.Preview(in); err != nil {
		return nil, fmt.Errorf("the hub would refuse this release: %w", err)
	}
	if kept := release.KeptClusters(rel); len(kept) > 0 {
		plan.Notes = append(plan.Notes, "a user has skipped a stage: the former revision stays in "+text.Names(kept, 3))
	}
	targets, guarded := rel.Status.Targets, []release.GuardedStage(nil)
	if len(targets) == 0 {
		targets, guarded = release.Accept(in).Targets, release.PreviewGuards(in)
	}
	for i, t := range rel.Spec.Targets {
		plan.Targets = append(plan.Targets, plannedRef{t.Name, t.Ref.Kind, t.Ref.Name, targets[i].From, targets[i].To})
	}
	strategy := cmp.Or(rel.Status.Strategy, in.Strategy)
	frozen, err := r.frozen(ctx, rel, strategy)
	if err != nil {
		return nil, err
	}
	plan.Notes = append(plan.Notes, frozen...)
	if strategy.Failover == releasev1alpha1.FailoverSameRevision {
		plan.Notes = append(plan.Notes, "failover: SameRevision: replicas stay in a lost cluster if no cluster with the same "+
			"revision has room")
	}
	type place struct{ target, cluster string }
	reached := map[place]int64{}
	for k, s := range strategy.Stages {
		stage := plannedStage{Name: s.Name, Environment: s.Environment, Before: gateNames(s.Before),
			After: gateNames(s.After), Clusters: []plannedCluster{}}
		if k < len(guarded) {
			if stage.Waits = guarded[k].Waits; guarded[k].Gate != nil {
				stage.Before = append(stage.Before, gateNames([]releasev1alpha1.ReleaseGate{*guarded[k].Gate})...)
			}
		}
		if s.Soak.Duration > 0 {
			stage.Soak = s.Soak.Duration.String()
		}
		for _, step := range plan.Steps {
			if step.Stage != s.Name {
				continue
			}
			at := place{step.Target, step.Cluster}
			i := slices.IndexFunc(stage.Clusters, func(c plannedCluster) bool {
				return c.Target == at.target && c.Cluster == at.cluster
			})
			if i < 0 {
				stage.Clusters = append(stage.Clusters, plannedCluster{Target: step.Target, Cluster: step.Cluster,
					Replicas: replicasIn(in.Targets[step.Target], step.Cluster), Former: reached[at]})
				i = len(stage.Clusters) - 1
			}
			stage.Clusters[i].New, reached[at] = step.Released.Released, step.Released.Released
		}
		plan.Stages = append(plan.Stages, stage)
	}
	return plan, nil
}

// frozen returns a note for each FederatedHPA that does not scale a target during stages.
func (r *releases) frozen(ctx context.Context, rel *releasev1alpha1.Release,
	strategy *releasev1alpha1.ReleaseStrategySpec) (notes []string, err error) {
	if !release.FreezesAutoscaling(strategy) {
		return nil, nil
	}
	var all autoscalingv1alpha1.FederatedHPAList
	err = r.client.List(ctx, &all, client.InNamespace(r.namespace))
	if apierrors.IsForbidden(err) {
		return []string{"you may not list FederatedHPAs: which of them the release freezes is not known"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list FederatedHPAs: %w", err)
	}
	for _, t := range rel.Spec.Targets {
		for _, f := range all.Items {
			ref := f.Spec.ScaleTargetRef
			if ref.Name == t.Ref.Name && match.GroupKind(ref.APIVersion, ref.Kind) ==
				match.GroupKind(t.Ref.APIVersion, t.Ref.Kind) {
				notes = append(notes, fmt.Sprintf("autoscaling: Freeze: FederatedHPA %s does not scale %s %s during a stage",
					f.Name, ref.Kind, ref.Name))
			}
		}
	}
	return notes, nil
}

// replicasIn returns the replicas of a target in a cluster.
func replicasIn(t release.Target, cluster string) int64 {
	for _, p := range t.Progress {
		if p.Cluster == cluster {
			return p.Replicas
		}
	}
	for _, c := range t.Binding.BindingSpec().Clusters {
		if c.Name == cluster {
			return int64(c.Replicas)
		}
	}
	return 0
}

// gateNames returns the gates of a stage for people, such as "sign (2 approvals)".
func gateNames(gates []releasev1alpha1.ReleaseGate) []string {
	var all []string
	for _, g := range gates {
		name := g.Name
		switch {
		case g.CheckRef != nil:
			name += fmt.Sprintf(" (check %s)", g.CheckRef.Name)
		case g.Approval != nil && g.Approval.Count > 1:
			name += fmt.Sprintf(" (%d approvals)", g.Approval.Count)
		}
		if g.Approval != nil && g.Approval.NotAuthor {
			name += " (not by the author, nor by users who may act as the author)"
		}
		all = append(all, name)
	}
	return all
}

func (p *releasePlan) print(out io.Writer) error {
	for _, t := range p.Targets {
		fmt.Fprintf(out, "%s %s/%s: %s → %s\n", t.Kind, p.Namespace, t.Workload, orNone(t.From), t.To)
	}
	for _, note := range p.Notes {
		fmt.Fprintln(out, "Warning:", note)
	}
	for i := range p.Stages {
		if err := p.printStage(out, i); err != nil {
			return err
		}
	}
	return nil
}

// printStage prints what a stage does, and what it waits for before and after.
func (p *releasePlan) printStage(out io.Writer, i int) error {
	s := p.Stages[i]
	title := fmt.Sprintf("\nStage %d of %d: %s", i+1, len(p.Stages), s.Name)
	if s.Environment != "" && s.Environment != s.Name {
		title += " (" + s.Environment + ")"
	}
	fmt.Fprintln(out, title)
	if len(s.Clusters) == 0 {
		fmt.Fprintln(out, "Nothing to do: this stage and its gates are skipped.")
		return nil
	}
	if len(s.Before) > 0 {
		fmt.Fprintln(out, "Before it starts:", strings.Join(s.Before, ", "))
	}
	if s.Waits != "" {
		fmt.Fprintln(out, "It would wait now:", s.Waits)
	}
	table := textTable("CLUSTER", "REPLICAS", "NEW BEFORE", "NEW AFTER")
	if len(p.Targets) > 1 {
		table = textTable("TARGET", "CLUSTER", "REPLICAS", "NEW BEFORE", "NEW AFTER")
	}
	var added int64
	for _, c := range s.Clusters {
		cells := []any{c.Cluster, c.Replicas, c.Former, c.New}
		if len(p.Targets) > 1 {
			cells = append([]any{c.Target}, cells...)
		}
		addRow(table, cells...)
		added += c.New - c.Former
	}
	if err := printTable(out, table, printers.PrintOptions{}); err != nil {
		return err
	}
	then := []string{text.Count(added, "new pod")}
	if s.Soak != "" {
		then = append(then, "which must stay available for "+s.Soak)
	}
	if len(s.After) > 0 {
		then = append(then, "then "+strings.Join(s.After, ", "))
	}
	fmt.Fprintln(out, strings.Join(then, ", "))
	return nil
}

func newReleaseDiff(hub *hubFlags) *cobra.Command {
	var output string
	cmd := nameOfRelease(&cobra.Command{
		Use:   "diff NAME",
		Short: "Show what a release changes: pods and overrides of each target",
		Long: `Shows the differences between the revisions before and after a release, for each target: the fields of the
template that make pods, and the override policies that select it. The content of ConfigMaps and Secrets is not shown.
With config: Versioned, pods refer to another ConfigMap when the content has changed; without it, such a change is not
part of a release.`,
		Example: "  argosy release diff web-x7k2p -n shop",
		RunE: releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s is not supported: use json, or leave it out for text", output)
			}
			rel, err := r.get(ctx, name)
			if err != nil {
				return err
			}
			all, err := r.diff(ctx, rel)
			if err != nil {
				return err
			}
			if output == "json" {
				return writeJSON(r.out, map[string]any{"targets": all})
			}
			printDiff(r.out, all)
			return nil
		}),
	}, hub)
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json, or text if empty")
	return cmd
}

// targetDiff is what a release changes in a target.
type targetDiff struct {
	plannedRef
	Changes []release.Change `json:"changes"`
}

// diff reads the revisions of a release and compares them.
func (r *releases) diff(ctx context.Context, rel *releasev1alpha1.Release) ([]targetDiff, error) {
	if len(rel.Status.Targets) == 0 {
		what, _ := release.Waits(rel)
		return nil, fmt.Errorf("release %s has no revisions to compare: %s", rel.Name, what)
	}
	var all []targetDiff
	for i, t := range rel.Status.Targets {
		ref := rel.Spec.Targets[i].Ref
		d := targetDiff{plannedRef{t.Name, ref.Kind, ref.Name, t.From, t.To}, []release.Change{}}
		var from *releasev1alpha1.ReleaseRevision
		to, err := r.revision(ctx, t.To)
		if err == nil && t.From != "" {
			from, err = r.revision(ctx, t.From)
		}
		if err != nil {
			return nil, err
		}
		changes, err := release.Changes(from, to)
		if err != nil {
			return nil, err
		}
		d.Changes = append(d.Changes, changes...)
		all = append(all, d)
	}
	return all, nil
}

func (r *releases) revision(ctx context.Context, name string) (*releasev1alpha1.ReleaseRevision, error) {
	revision := &releasev1alpha1.ReleaseRevision{}
	if err := r.client.Get(ctx, keyIn(r.namespace, name), revision); err != nil {
		return nil, fmt.Errorf("read ReleaseRevision %q: %w", name, err)
	}
	return revision, nil
}

func printDiff(out io.Writer, all []targetDiff) {
	for i, t := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s %s: %s → %s\n", t.Kind, t.Workload, orNone(t.From), t.To)
		switch {
		case t.From == "":
			fmt.Fprintln(out, "  the revision before is not known")
		case len(t.Changes) == 0:
			fmt.Fprintln(out, "  no differences")
		}
		for _, c := range t.Changes {
			fmt.Fprintf(out, "  %s: %s → %s\n", c.Path, valueOf(c.From), valueOf(c.To))
		}
	}
}
