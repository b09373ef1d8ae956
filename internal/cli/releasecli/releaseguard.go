package releasecli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/release"
)

func newReleaseBreakGlass(hub *hubcli.HubFlags) *cobra.Command {
	var reason string
	cmd := nameOfRelease(&cobra.Command{
		Use:   "break-glass NAME",
		Short: "Start a stage that waits for ReleaseGuards, in an emergency",
		Long: `Starts the stage that waits, or the release with its first stage, though windows of ReleaseGuards are closed or their
limits are reached. Gates still need their approvals, and later stages wait again. The user and the reason are
recorded in the release, in an event and in the release history.`,
		Example: `  argosy release break-glass web-x7k2p -n shop --reason "checkout is down, INC-42"`,
		RunE: releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
			return r.breakGlass(ctx, name, reason)
		}),
	}, hub)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for people; required")
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

// breakGlass starts the stage with which a release waits for guards.
func (r *releases) breakGlass(ctx context.Context, name, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return errors.New("--reason is empty: name the reason")
	}
	rel, err := r.get(ctx, name)
	if err != nil {
		return err
	}
	value, ok := release.BreakGlassValue(rel.Status)
	if !ok {
		what, _ := release.Waits(rel)
		return fmt.Errorf("release %s does not wait for a ReleaseGuard: %s", name, what)
	}
	if err := r.patch(ctx, rel, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		releasev1alpha1.BreakGlassAnnotation: value, releasev1alpha1.ReleaseReasonAnnotation: reason}}}); err != nil {
		return err
	}
	stage, attempt, _ := strings.Cut(value, "@")
	fmt.Fprintf(r.out, "release %s: stage %s (attempt %s) will start in spite of ReleaseGuard %s\n", name, stage, attempt,
		rel.Status.Guard.Name)
	return nil
}
