package releasecli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/release"
)

// valueOf returns a value of an object in one line.
func valueOf(v any) string {
	if v == nil {
		return "none"
	}
	if s, ok := v.(string); ok {
		return text.Cut(s, 120)
	}
	return text.Cut(text.JSON(v), 120)
}

func newReleaseStatus(hub *hubcli.HubFlags) *cobra.Command {
	var output string
	cmd := nameOfRelease(&cobra.Command{
		Use:   "status NAME",
		Short: "Show the stages of a release, what it waits for, and the next command",
		Example: `  argosy release status web-x7k2p -n shop
  argosy release status web-x7k2p -n shop -o json`,
		RunE: releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
			rel, err := r.get(ctx, name)
			if err != nil {
				return err
			}
			if output != "" {
				d := release.DemandOf(rel)
				return hubcli.WriteAs(r.out, output, map[string]any{"name": rel.Name, "namespace": rel.Namespace,
					"state":  rel.Spec.State,
					"status": rel.Status, "waitsFor": d.What, "next": d.Next, "actor": d.Actor, "severity": d.Severity})
			}
			return printRelease(r.out, rel, r.now())
		}),
	}, hub)
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml")
	return cmd
}

// phaseText returns the phase and the reason for it, such as "Failed (Rejected)".
func phaseText(rel *releasev1alpha1.Release, reason string) string {
	phase := string(release.PhaseOf(rel))
	if reason != "" {
		phase += " (" + reason + ")"
	}
	return phase
}

// titleOf describes a release in one line.
func titleOf(rel *releasev1alpha1.Release) string {
	s := &rel.Status
	title := fmt.Sprintf("Release %s/%s: %s", rel.Namespace, rel.Name, phaseText(rel, s.Reason))
	switch {
	case s.Progress == "":
	case s.Rollback != nil:
		title += ", " + s.Progress + " pods have the former revision"
	default:
		title += ", " + s.Progress + " pods are new"
	}
	return title
}

// printRelease prints the stages of a release and what it waits for.
func printRelease(out io.Writer, rel *releasev1alpha1.Release, now time.Time) error {
	s := &rel.Status
	fmt.Fprintln(out, titleOf(rel))
	if trigger := rel.Spec.Trigger; trigger != nil && trigger.Type == releasev1alpha1.TriggerTemplate {
		fmt.Fprintln(out, "The hub started it, because the workload has changed.")
	}
	for i, t := range s.Targets {
		ref := rel.Spec.Targets[i].Ref
		fmt.Fprintf(out, "%s %s: %s → %s\n", ref.Kind, ref.Name, hubcli.OrNone(t.From), t.To)
	}
	if len(s.Stages) > 0 {
		fmt.Fprintln(out)
		table := hubcli.TextTable("STAGE", "PHASE", "CLUSTERS", "PODS", "GATES", "REASON")
		for _, stage := range s.Stages {
			c := stage.Counts
			clusters, pods := "<none>", "<none>"
			if c.Clusters > 0 {
				clusters = fmt.Sprintf("%d/%d", c.Reached, c.Clusters)
				pods = fmt.Sprintf("%d/%d", c.New, c.Pods)
			}
			hubcli.AddRow(table, stage.Name, string(stage.Phase), clusters, pods, hubcli.OrNone(gatesText(stage.Gates, now)),
				hubcli.OrNone(release.StageReason(rel, stage)))
		}
		if err := hubcli.PrintTable(out, table, printers.PrintOptions{}); err != nil {
			return err
		}
	}
	if err := printBehind(out, rel); err != nil {
		return err
	}
	what, next := release.Waits(rel)
	fmt.Fprintf(out, "\n%s.\n", strings.ToUpper(what[:1])+what[1:])
	if s.SoakUntil != nil && s.SoakUntil.After(now) {
		fmt.Fprintf(out, "Soaks for another %s.\n", duration.HumanDuration(s.SoakUntil.Sub(now)))
	}
	if next != "" {
		fmt.Fprintf(out, "Next: %s\n", next)
	}
	return nil
}

// printBehind prints the clusters of the stage under way that are not reached, and those that failed.
func printBehind(out io.Writer, rel *releasev1alpha1.Release) error {
	table := hubcli.TextTable("STAGE", "CLUSTER", "TARGET", "NEW", "AVAILABLE", "PHASE", "MESSAGE")
	for _, stage := range rel.Status.Stages {
		if stage.EndedAt != nil && stage.Phase != releasev1alpha1.StageFailed {
			continue
		}
		for _, c := range stage.Clusters {
			hubcli.AddRow(table, stage.Name, c.Name, c.Workload, fmt.Sprintf("%d/%d", c.New, c.Target), c.Available,
				string(c.Phase),
				c.Message)
		}
	}
	if len(table.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return hubcli.PrintTable(out, table, printers.PrintOptions{})
}

// gatesText describes gates, such as "sign: Passed by ann, check: Waiting for 5m".
func gatesText(gates []releasev1alpha1.ReleaseGateStatus, now time.Time) string {
	var all []string
	for _, g := range gates {
		one := g.Name + ": " + string(g.Phase)
		if len(g.By) > 0 {
			one += " by " + strings.Join(g.By, " and ")
		}
		if len(g.Comments) > 0 {
			one += " (" + strings.Join(g.Comments, "; ") + ")"
		}
		if g.Check != nil {
			if text := release.CheckText(g.Check); text != "" {
				one += " (" + text + ")"
			}
		}
		if g.Phase == releasev1alpha1.GateWaiting && g.Since != nil {
			one += " for " + duration.HumanDuration(now.Sub(g.Since.Time))
		}
		if g.Phase == releasev1alpha1.GateWaiting && g.Until != nil {
			one += ", until " + g.Until.UTC().Format(time.RFC3339)
		}
		all = append(all, one)
	}
	return strings.Join(all, "; ")
}

func newReleaseWatch(hub *hubcli.HubFlags) *cobra.Command {
	var timeout time.Duration
	cmd := nameOfRelease(&cobra.Command{
		Use:   "watch NAME",
		Short: "Show the progress of a release until it has ended",
		Long: `Shows the progress of a release until it has ended: a view that is updated on a terminal, one line for each
thing that happens elsewhere. The exit code is 0 if it has succeeded, 1 if it has failed, was refused, aborted
or replaced, 2 if it was rolled back, and 3 if it has not ended within --timeout.`,
		Example: "  argosy release watch web-x7k2p -n shop",
		RunE: releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
			return r.watch(ctx, name, timeout)
		}),
	}, hub)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 for without end")
	return cmd
}

// The exit codes of a release that has ended, beside 0.
const (
	exitFailed     = 1
	exitRolledBack = 2
	exitTimedOut   = 3
)

// watch shows a release until it has ended, and returns an error with the exit code of its outcome.
func (r *releases) watch(ctx context.Context, name string, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	v := &releaseView{out: r.out, live: r.live, now: r.now}
	rel, err := r.follow(ctx, name, v)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && timeout > 0:
		what := "the hub has not answered"
		if rel != nil {
			what, _ = release.Waits(rel)
		}
		return hubcli.ExitError{Err: fmt.Errorf("release %s has not ended within %s: %s", name, timeout, what),
			Code: exitTimedOut}
	case err != nil:
		return err
	}
	return outcome(rel)
}

// outcome returns the error of a release that has ended; nil if it has succeeded.
func outcome(rel *releasev1alpha1.Release) error {
	what, _ := release.Waits(rel)
	err := fmt.Errorf("release %s: %s", rel.Name, what)
	progressing := meta.FindStatusCondition(rel.Status.Conditions, releasev1alpha1.ReleaseProgressing)
	switch {
	case rel.Status.Phase == releasev1alpha1.ReleaseSucceeded && rel.Spec.State != releasev1alpha1.StateRollback:
		return nil
	case progressing != nil && progressing.Reason == releasev1alpha1.ReasonNotRolledBack:
	case rel.Status.Phase == releasev1alpha1.ReleaseSucceeded:
		err = fmt.Errorf("release %[1]s was not rolled back: `argosy release rollback %[1]s -n %[2]s` names the reason",
			rel.Name, rel.Namespace)
	case rel.Status.Phase == releasev1alpha1.ReleaseRolledBack:
		return hubcli.ExitError{Err: err, Code: exitRolledBack}
	}
	return hubcli.ExitError{Err: err, Code: exitFailed}
}

// follow shows a release each time that it changes, until it has ended. It returns the last one that it saw.
func (r *releases) follow(ctx context.Context, name string, v *releaseView) (*releasev1alpha1.Release, error) {
	var last *releasev1alpha1.Release
	for {
		ended, err := r.followOnce(ctx, name, v, &last)
		if ended || err != nil {
			return last, err
		}
		// The watch has ended, as it does from time to time.
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// followOnce shows a release while one watch of it lasts.
func (r *releases) followOnce(ctx context.Context, name string, v *releaseView,
	last **releasev1alpha1.Release) (ended bool, err error) {
	// The watch begins before the release is read, so that no change is missed.
	w, err := r.client.Watch(ctx, &releasev1alpha1.ReleaseList{}, client.InNamespace(r.namespace),
		client.MatchingFields{"metadata.name": name})
	if err != nil {
		return false, fmt.Errorf("watch release %q: %w", name, err)
	}
	defer w.Stop()
	rel, err := r.get(ctx, name)
	if err != nil {
		return false, err
	}
	show := func(rel *releasev1alpha1.Release) (bool, error) {
		*last = rel
		return rel.Status.Phase.Ended() && rel.Status.ObservedGeneration >= rel.Generation, v.show(rel)
	}
	if ended, err := show(rel); ended || err != nil {
		return ended, err
	}
	var tick <-chan time.Time
	if v.live {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick:
			if err := v.show(*last); err != nil {
				return false, err
			}
		case event, open := <-w.ResultChan():
			if !open {
				return false, nil
			}
			rel, ok := event.Object.(*releasev1alpha1.Release)
			if !ok || rel.Name != name {
				continue
			}
			if event.Type == "DELETED" {
				return false, fmt.Errorf("release %s was deleted", name)
			}
			if ended, err := show(rel); ended || err != nil {
				return ended, err
			}
		}
	}
}

// releaseView shows a release as it changes: on a terminal in place of what was shown, elsewhere by lines.
type releaseView struct {
	out  io.Writer
	live bool
	now  func() time.Time

	lines int    // that the last view had
	seq   int64  // of the last entry of the journal that was shown
	waits string // that was shown last
}

func (v *releaseView) show(rel *releasev1alpha1.Release) error {
	if v.live {
		var view bytes.Buffer
		if err := printRelease(&view, rel, v.now()); err != nil {
			return err
		}
		if v.lines > 0 {
			fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.lines)
		}
		v.lines = bytes.Count(view.Bytes(), []byte("\n"))
		_, err := v.out.Write(view.Bytes())
		return err
	}
	last := -1
	for i, e := range rel.Status.Journal {
		if e.Type == releasev1alpha1.JournalPhase {
			last = i
		}
	}
	for i, e := range rel.Status.Journal {
		if e.Seq <= v.seq {
			continue
		}
		v.seq = e.Seq
		if e.Type == releasev1alpha1.JournalPhase && i == last && rel.Status.Phase.Ended() {
			e.Reason = phaseText(rel, e.Reason)
		}
		line := []string{e.At.UTC().Format(time.RFC3339), string(e.Type)}
		for _, part := range []string{e.Stage, e.Cluster, e.Reason, e.Message} {
			if part != "" {
				line = append(line, part)
			}
		}
		if e.Actor != "" {
			line = append(line, "by "+e.Actor)
		}
		if _, err := fmt.Fprintln(v.out, strings.Join(line, " ")); err != nil {
			return err
		}
	}
	what, next := release.Waits(rel)
	if what == v.waits {
		return nil
	}
	v.waits = what
	if next != "" {
		what += "; next: " + next
	}
	_, err := fmt.Fprintln(v.out, what)
	return err
}
