package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

func newReleaseBreakGlass(hub *hubFlags) *cobra.Command {
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

// readGuards reads the guards that may select a release, and the releases that count for their limits. Limits of pods
// are not checked: few users may read all bindings. notes name what the user may not read.
func (r *releases) readGuards(ctx context.Context, in *release.Input) (notes []string, err error) {
	var guards releasev1alpha1.ReleaseGuardList
	err = r.client.List(ctx, &guards)
	if apierrors.IsForbidden(err) {
		return []string{"you may not list ReleaseGuards: their windows, limits and approvals are not in the plan"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ReleaseGuards: %w", err)
	}
	limits := false
	for i := range guards.Items {
		if g := &guards.Items[i]; release.GuardsNamespace(g, r.namespace) {
			in.Guards = append(in.Guards, release.Guard{ReleaseGuard: g, Budget: g.Status.ErrorBudget})
			limits = limits || g.Spec.Limits != nil
		}
	}
	if !limits {
		return nil, nil
	}
	var all releasev1alpha1.ReleaseList
	err = r.client.List(ctx, &all)
	if apierrors.IsForbidden(err) {
		in.Peers = in.Others
		return []string{"you may not list releases of all namespaces: what they use of the limits of ReleaseGuards is " +
			"not known"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list releases of all namespaces: %w", err)
	}
	in.Peers = all.Items
	return nil, nil
}
