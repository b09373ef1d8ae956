package operatecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/cli/explaincli"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/joincli"
	"github.com/argosy-io/argosy/internal/console"
	"github.com/argosy-io/argosy/internal/core/explain/simulate"
)

func NewConsole(hub *hubcli.HubFlags) *cobra.Command {
	noBrowser := false
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Open the web console as the user of the kubeconfig",
		Long: `Opens the web console of the hub in a browser, logged in as the user of the kubeconfig. The link works once, within 10 minutes.
A login by client certificate lasts up to 8 hours, and one by token up to 12 hours; either ends after one hour without use.`,
		Example: "  argosy console\n  argosy console --no-browser",
		Args:    hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := hub.ToRESTConfig()
			if err != nil {
				return err
			}
			link, err := consoleLink(cmd.Context(), config)
			if err != nil {
				return err
			}
			if !noBrowser {
				if err := openBrowser(cmd.Context(), link); err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "Opened %s%s in the browser.\n", strings.TrimSuffix(config.Host, "/"), console.Path)
					return nil
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "No browser can be opened here. Open this link:")
			}
			fmt.Fprintln(cmd.OutOrStdout(), link)
			return nil
		},
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "print the link instead of opening a browser")
	return cmd
}

// consoleLink asks the hub for a one-time link for the user of a client configuration.
func consoleLink(ctx context.Context, config *rest.Config) (string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	raw, err := d.RESTClient().Post().AbsPath(console.LinkPath).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("the hub at %s serves no console: start it without --components=-console, or update it",
			config.Host)
	case err != nil:
		return "", fmt.Errorf("ask the hub for a link: %w", err)
	}
	var link console.Link
	if err := json.Unmarshal(raw, &link); err != nil || link.Code == "" {
		return "", errors.Join(errors.New("the hub's answer contains no link"), err)
	}
	return console.LinkURL(strings.TrimSuffix(config.Host, "/"), link.Code), nil
}

// openBrowser opens a link with the program of the desktop. The link is an argument of a short-lived process of the
// same user, and it works once.
func openBrowser(ctx context.Context, link string) error {
	program := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		program = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" && os.Getenv("BROWSER") == "":
		return errors.New("no desktop")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, program, link).Run()
}

// joinByConsole joins a cluster for a user of the console, like `argosy join`.
func joinByConsole(ctx context.Context, hub *rest.Config, r console.JoinRequest,
	progress func(step, detail string)) error {
	if err := joincli.ValidName(r.Name); err != nil {
		return err
	}
	j := &joincli.Join{Name: r.Name, Namespace: hubcli.DefaultClusterNamespace, Provider: r.Provider,
		Region: r.Region, Zones: r.Zones,
		TakeOver: r.TakeOver, Out: io.Discard, Progress: progress, Endpoint: hubcli.Endpoint{Config: r.Member}}
	j.HubAddress, j.Flags = r.Hub, "--cluster-kubeconfig FILE"
	var err error
	if j.Member, err = j.Endpoint.Client(); err != nil {
		return joincli.Unreachable(r.Name, r.Member.Host, err)
	}
	if j.Hub, err = client.New(hub, client.Options{Scheme: hubcli.Scheme}); err != nil {
		return err
	}
	return j.Run(ctx)
}

// simulateByConsole simulates objects for a user of the console, like `argosy simulate -f`.
func simulateByConsole(ctx context.Context, hub *rest.Config, objects []*unstructured.Unstructured) (
	report simulate.Report, err error) {
	r, err := explaincli.FleetReaderFor(hub)
	if err != nil {
		return report, err
	}
	change := simulate.Change{Namespace: metav1.NamespaceDefault}
	for _, obj := range objects {
		change.Objects = append(change.Objects, simulate.Object{Unstructured: obj, Source: "the change"})
	}
	all, err := r.Read(ctx, simulate.Kinds(change.Objects))
	if err != nil {
		return report, err
	}
	fleet, err := simulate.Load(all, change.Namespace)
	if err != nil {
		return report, err
	}
	report, err = simulate.Run(ctx, fleet.WithoutNamespace(r.ClusterScoped...), change)
	report.Warnings = append(report.Warnings, r.Warnings...)
	return report, err
}
