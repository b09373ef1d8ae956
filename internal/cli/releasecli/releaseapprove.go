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
	"github.com/argosy-io/argosy/internal/core/release"
)

// verdict has the flags of approve and reject.
type verdict struct {
	verdict       releasev1alpha1.ApprovalVerdict
	gate, comment string
	output        string
}

func newReleaseVerdict(hub *hubcli.HubFlags, kind releasev1alpha1.ApprovalVerdict) *cobra.Command {
	v := &verdict{verdict: kind}
	var yes bool
	verb := strings.ToLower(string(kind))
	short := "Approve a gate of a release, after a look at its plan, progress and changes"
	if kind == releasev1alpha1.VerdictReject {
		short = "Reject a release at a gate, which fails the stage"
	}
	cmd := nameOfRelease(&cobra.Command{
		Use: verb + " NAME", Short: short,
		Long: `Shows how far the release is, the images and fields that it changes, the pods that an approval updates in each
cluster until the next gate, and the checks so far. Then it asks, and creates a ReleaseApproval. The verdict counts
for the revision, the stage and the attempt that are shown, and for no other. Without a terminal, --yes is required.

With -o, it only shows this, for programs; with --yes too, it also decides.`,
		Example: strings.ReplaceAll(`  argosy release approve web-x7k2p -n shop
  argosy release approve web-x7k2p -n shop --gate sign --comment "see SHOP-17" --yes`, "approve", verb),
		RunE: releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
			r.yes = yes
			return r.decide(ctx, name, v)
		}),
	}, hub)
	flags := cmd.Flags()
	flags.StringVar(&v.gate, "gate", "", "gate (default: the only one that waits)")
	flags.StringVar(&v.comment, "comment", "", "reason, for people: the release and its history keep it")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	hubcli.OutputFlag(cmd, &v.output, "show what is decided as json or yaml; with --yes, also decide")
	_ = cmd.RegisterFlagCompletionFunc("gate", gatesOf(hub))
	return cmd
}

// choose returns the gate that a verdict is about.
func (v *verdict) choose(rel *releasev1alpha1.Release) (releasev1alpha1.ReleaseGateStatus, error) {
	waiting := release.WaitingGates(rel)
	var names []string
	for _, g := range waiting {
		if g.Name == v.gate {
			return g, nil
		}
		names = append(names, g.Name)
	}
	none := releasev1alpha1.ReleaseGateStatus{}
	switch {
	case len(waiting) == 0:
		what, _ := release.Waits(rel)
		return none, fmt.Errorf("release %s waits at no gate: %s", rel.Name, what)
	case v.gate != "":
		return none, fmt.Errorf("release %s does not wait at gate %q; it waits at %s", rel.Name, v.gate,
			strings.Join(names, ", "))
	case len(waiting) > 1:
		return none, fmt.Errorf("release %s waits at %s: choose one with --gate", rel.Name, strings.Join(names, ", "))
	}
	return waiting[0], nil
}

// decide shows a release and creates the verdict of the user.
func (r *releases) decide(ctx context.Context, name string, v *verdict) error {
	rel, err := r.get(ctx, name)
	if err != nil {
		return err
	}
	gate, err := v.choose(rel)
	if err != nil {
		return err
	}
	stage := release.StageUnderWay(rel)
	evidence, err := r.reader().Evidence(ctx, rel, gate)
	switch {
	case err != nil:
		return err
	case v.output != "":
		if err := hubcli.WriteAs(r.out, v.output, evidence); err != nil || !r.yes {
			return err
		}
		r.out = io.Discard // the output is for a program
	default:
		if err := printRelease(r.out, rel, r.now()); err != nil {
			return err
		}
		if err := printEvidence(r.out, evidence); err != nil {
			return err
		}
	}
	if err := r.confirm(strings.ToLower(string(v.verdict)), fmt.Sprintf(
		"\n%s gate %s of stage %s (attempt %d) for revision %s?", v.verdict, gate.Name, stage.Name, stage.Attempt,
		rel.Status.Revision)); err != nil {
		return err
	}
	a := release.ApprovalFor(rel, gate, v.verdict, v.comment)
	if err := r.client.Create(ctx, a); err != nil {
		return fmt.Errorf("create the ReleaseApproval: %w", err)
	}
	done := map[releasev1alpha1.ApprovalVerdict]string{releasev1alpha1.VerdictApprove: "approved",
		releasev1alpha1.VerdictReject: "rejected"}[v.verdict]
	fmt.Fprintf(r.out, "release %s: gate %s of stage %s is %s by you\n", rel.Name, gate.Name, stage.Name, done)
	return nil
}

// printEvidence prints what a user decides about.
func printEvidence(out io.Writer, e release.Evidence) error {
	fmt.Fprintln(out)
	printDiff(out, e.Targets)
	for _, s := range e.Starts {
		if err := printStage(out, s, "An approval starts stage", len(e.Targets) > 1); err != nil {
			return err
		}
	}
	if len(e.Checks) > 0 {
		fmt.Fprintln(out)
		table := hubcli.TextTable("STAGE", "GATE", "CHECK", "PHASE", "SAMPLES")
		for _, c := range e.Checks {
			hubcli.AddRow(table, c.Stage, c.Gate, c.Check, string(c.Phase), hubcli.OrNone(c.Text))
		}
		if err := hubcli.PrintTable(out, table, printers.PrintOptions{}); err != nil {
			return err
		}
	}
	for _, note := range e.Notes {
		fmt.Fprintln(out, "Warning:", note)
	}
	return nil
}
