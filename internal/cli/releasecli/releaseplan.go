package releasecli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/release"
)

func newReleasePlan(hub *hubcli.HubFlags) *cobra.Command {
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
		Args:              hubcli.OneObject("cloneset web"),
		ValidArgsFunction: hubcli.OneOfHub(hub),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s is not supported: use json, or leave it out for a table", output)
			}
			if err := d.check(); err != nil {
				return err
			}
			kind, name := hubcli.ObjectOf(args)
			return releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
				drafted, err := d.release(ctx, r, kind, name)
				if err != nil {
					return err
				}
				plan, err := r.reader().Plan(ctx, drafted)
				if err != nil {
					return err
				}
				if output == "json" {
					return hubcli.WriteJSON(r.out, plan)
				}
				return printPlan(r.out, plan)
			})(cmd, []string{name})
		},
	}
	d.bind(cmd, hub)
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json, or tables if empty")
	return cmd
}

func printPlan(out io.Writer, p *release.ReleasePlan) error {
	for _, t := range p.Targets {
		fmt.Fprintf(out, "%s %s/%s: %s → %s\n", t.Kind, p.Namespace, t.Workload, hubcli.OrNone(t.From), t.To)
	}
	for _, note := range p.Notes {
		fmt.Fprintln(out, "Warning:", note)
	}
	for i := range p.Stages {
		title := fmt.Sprintf("Stage %d of %d", i+1, len(p.Stages))
		if err := printStage(out, p.Stages[i], title, len(p.Targets) > 1); err != nil {
			return err
		}
	}
	return nil
}

// printStage prints what a stage does, and what it waits for before and after.
func printStage(out io.Writer, s release.PlannedStage, title string, several bool) error {
	title = "\n" + title + ": " + s.Name
	if s.Environment != "" && s.Environment != s.Name {
		title += " (" + s.Environment + ")"
	}
	fmt.Fprintln(out, title)
	if s.Skipped != "" {
		fmt.Fprintf(out, "This stage and its gates are skipped: %s.\n", s.Skipped)
		return nil
	}
	if len(s.Before) > 0 {
		fmt.Fprintln(out, "Before it starts:", strings.Join(s.Before, ", "))
	}
	if s.Waits != "" {
		fmt.Fprintln(out, "It would wait now:", s.Waits)
	}
	table := hubcli.TextTable("CLUSTER", "REPLICAS", "NEW BEFORE", "NEW AFTER")
	if several {
		table = hubcli.TextTable("TARGET", "CLUSTER", "REPLICAS", "NEW BEFORE", "NEW AFTER")
	}
	var added int64
	for _, c := range s.Clusters {
		cells := []any{c.Cluster, c.Replicas, c.Former, c.New}
		if several {
			cells = append([]any{c.Target}, cells...)
		}
		hubcli.AddRow(table, cells...)
		added += c.New - c.Former
	}
	if err := hubcli.PrintTable(out, table, printers.PrintOptions{}); err != nil {
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

func newReleaseDiff(hub *hubcli.HubFlags) *cobra.Command {
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
			all, err := r.reader().Changes(ctx, rel)
			if err != nil {
				return err
			}
			if output == "json" {
				return hubcli.WriteJSON(r.out, map[string]any{"targets": all})
			}
			printDiff(r.out, all)
			return nil
		}),
	}, hub)
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json, or text if empty")
	return cmd
}

func printDiff(out io.Writer, all []release.TargetChanges) {
	for i, t := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s %s: %s → %s\n", t.Kind, t.Workload, hubcli.OrNone(t.From), t.To)
		switch {
		case t.From == "":
			fmt.Fprintln(out, "  the revision before is not known")
		case len(t.Images)+len(t.Changes) == 0:
			fmt.Fprintln(out, "  no differences")
		}
		printChanges(out, t.Images, t.Changes)
	}
}

// printChanges prints images and other fields, old and new.
func printChanges(out io.Writer, images, changes []release.Change) {
	for _, c := range images {
		fmt.Fprintf(out, "  image of %s: %s → %s\n", c.Path, valueOf(c.From), valueOf(c.To))
	}
	for _, c := range changes {
		fmt.Fprintf(out, "  %s: %s → %s\n", c.Path, valueOf(c.From), valueOf(c.To))
	}
}
