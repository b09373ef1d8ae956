package releasecli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/why"
)

func newRolloutHistory(hub *hubcli.HubFlags) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "history KIND NAME",
		Short: "Show the revisions of a workload that the hub has stored",
		Long: `Shows the revisions of a workload, the newest first, with their images. The hub stores a revision when the pods of
the template change, up to revisionHistoryLimit of the workload (10). Releases have a history of their own:
argosy release history.`,
		Example:           "  argosy rollout history cloneset/web -n shop",
		Args:              hubcli.OneObject("cloneset web"),
		ValidArgsFunction: hubcli.OneOfHub(hub),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rollingRun(hub, func(ctx context.Context, r *rolling) error { return r.history(ctx, output) })(cmd, args)
		},
	}
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml")
	return cmd
}

// undo has the flags of rollout undo.
type undo struct {
	to          int64
	dryRun, yes bool
	// answers is the terminal of the user; nil if there is none.
	answers io.Reader
}

func newRolloutUndo(hub *hubcli.HubFlags) *cobra.Command {
	u := &undo{}
	cmd := &cobra.Command{
		Use:   "undo KIND NAME",
		Short: "Go back to a former revision of a workload, without a release",
		Long: `Shows what changes, asks, and writes the pods of a former revision into the template on the hub. The number of
replicas, the partition and all other fields stay as they are. Without a terminal, --yes is required.

It refuses a workload whose changes wait for releases, and names the command. If a tool applies the template,
such as from Git, revert it there too: the tool would apply the change again.`,
		Example: `  argosy rollout undo cloneset/web -n shop
  argosy rollout undo cloneset/web -n shop --to-revision 3 --dry-run
  argosy rollout undo cloneset/web -n shop --yes`,
		Args:              hubcli.OneObject("cloneset web"),
		ValidArgsFunction: hubcli.OneOfHub(hub),
		RunE: func(cmd *cobra.Command, args []string) error {
			u.answers = hubcli.ConfirmationInput(cmd)
			return rollingRun(hub, func(ctx context.Context, r *rolling) error { return r.undo(ctx, u) })(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&u.to, "to-revision", 0, "number of the revision in argosy rollout history (default: the one before)")
	flags.BoolVar(&u.dryRun, "dry-run", false, "show what changes, and let the hub check it, without a change")
	flags.BoolVar(&u.yes, "yes", false, "do not ask")
	return cmd
}

// rollingRun returns the RunE of a command about a workload of the hub.
func rollingRun(hub *hubcli.HubFlags, run func(context.Context, *rolling) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		r := &rolling{}
		kind, name := hubcli.ObjectOf(args)
		out, flush := hubcli.ColoredOutput(cmd)
		defer flush()
		r.out = out
		if err := r.find(cmd.Context(), hub, kind, name); err != nil {
			return err
		}
		return run(cmd.Context(), r)
	}
}

// history shows the stored revisions of the workload.
func (r *rolling) history(ctx context.Context, output string) error {
	in, err := why.Undo(ctx, r.client, r.template)
	if err != nil {
		return err
	}
	past, err := in.Past()
	switch {
	case err != nil:
		return err
	case output != "":
		return hubcli.WriteAs(r.out, output, past)
	case len(past) == 0:
		_, err := fmt.Fprintf(r.out, "the hub has stored no revision of %s; those of a workload whose changes wait for releases "+
			"are listed by `argosy get releaserevisions -n %s`\n", hubcli.ObjectName(r.template), r.template.GetNamespace())
		return err
	}
	table := hubcli.TextTable("REVISION", "CREATED", "IMAGES", "CURRENT")
	for _, p := range past {
		current := ""
		if p.Current {
			current = "yes"
		}
		hubcli.AddRow(table, p.Revision, p.CreatedAt.UTC().Format(time.RFC3339), strings.Join(p.Images, ","), current)
	}
	return hubcli.PrintTable(r.out, table, printers.PrintOptions{})
}

// undo goes back to a stored revision.
func (r *rolling) undo(ctx context.Context, u *undo) error {
	in, err := why.Undo(ctx, r.client, r.template)
	if err != nil {
		return err
	}
	back, err := in.UndoTo(u.to)
	if err != nil {
		return err
	}
	raw := []byte(text.JSON(back.Patch))
	write := func(options ...client.PatchOption) error {
		err := r.client.Patch(ctx, r.template.DeepCopy(), client.RawPatch(types.JSONPatchType, raw), options...)
		now := r.template.DeepCopy()
		if apierrors.IsInvalid(err) && r.client.Get(ctx, client.ObjectKeyFromObject(now), now) == nil &&
			now.GetGeneration() != r.template.GetGeneration() {
			return fmt.Errorf("%s has changed since it was read: run this again", hubcli.ObjectName(r.template))
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", hubcli.ObjectName(r.template), err)
		}
		return nil
	}
	from := "an unknown revision"
	if back.From > 0 {
		from = fmt.Sprintf("revision %d", back.From)
	}
	fmt.Fprintf(r.out, "%s: %s → revision %d\n", hubcli.ObjectName(r.template), from, back.To)
	printChanges(r.out, back.Images, back.Changes)
	if u.dryRun {
		if err := write(client.DryRunAll); err != nil {
			return err
		}
		_, err := fmt.Fprintln(r.out, "The hub accepts it. Nothing was changed.")
		return err
	}
	if !u.yes {
		if err := hubcli.ConfirmOrYes(r.out, u.answers, "undo", "Go back?"); err != nil {
			return err
		}
	}
	if err := write(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.out, "%s has the pods of revision %d again; `argosy rollout status` shows the progress\n",
		hubcli.ObjectName(r.template), back.To)
	return err
}
