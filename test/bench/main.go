package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if err := newBench().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func newBench() *cobra.Command {
	o := Options{}
	var output, format string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure time, writes, CPU and memory against their targets",
		Long: `Runs a hub and three simulated members on this machine and measures what propagation costs. Times are multiples of a
floor measured in the same run: a plain client that writes the same objects straight into the members.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true, // an error is one sentence, without the usage
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Dir, err = os.MkdirTemp("", "argosy-bench-"); err != nil {
				return err
			}
			defer os.RemoveAll(o.Dir)
			began := time.Now()
			o.Say = func(format string, args ...any) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%5.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
			}
			rows, err := Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			raw, err := json.MarshalIndent(rows, "", "  ")
			if err != nil {
				return err
			}
			if output != "" {
				if err := os.WriteFile(output, append(raw, '\n'), 0o644); err != nil {
					return err
				}
			}
			if format == "json" {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), string(raw))
				return err
			}
			return benchTable(cmd.OutOrStdout(), rows)
		},
	}
	cmd.Flags().StringVar(&o.Binary, "binary", "bin/argosy", "the argosy executable to measure")
	cmd.Flags().IntVar(&o.ConfigMaps, "configmaps", 300, "number of ConfigMaps to propagate")
	cmd.Flags().IntVar(&o.Deployments, "deployments", 200, "number of Deployments to propagate")
	cmd.Flags().IntVar(&o.Bindings, "bindings", 10_000,
		"number of bindings to schedule and reschedule in a hub without members; 0 skips the measurement")
	cmd.Flags().IntVar(&o.Failovers, "failovers", 1000,
		"number of Deployments to fail over from a lost member; 0 skips the measurement, which takes five to ten minutes")
	cmd.Flags().BoolVar(&o.FailoverOnly, "failover-only", false, "measure only the failover")
	cmd.Flags().IntVar(&o.Releases, "releases", 100,
		"number of releases to run at once; 0 skips the measurement, which takes about five minutes")
	cmd.Flags().BoolVar(&o.ReleasesOnly, "releases-only", false, "measure only the releases")
	cmd.Flags().BoolVar(&o.ConsoleOnly, "console", false,
		"measure only the pages of the console, with 1,000 clusters and 10,000 templates; needs chromium-headless-shell")
	cmd.Flags().IntVar(&o.Agents, "agents", 1000,
		"number of simulated agents of clusters in Pull mode, with --full or --pull-only; 0 skips the measurement")
	cmd.Flags().BoolVar(&o.PullOnly, "pull-only", false, "measure only clusters in Pull mode")
	cmd.Flags().IntVar(&o.Klusterlets, "klusterlets", 0,
		"measure only a hub with this number of simulated klusterlets, such as 1000")
	cmd.Flags().IntVar(&o.Searched, "searched", 100_000,
		"number of objects to search, with --full or --search-only; 0 skips the measurement")
	cmd.Flags().BoolVar(&o.SearchOnly, "search-only", false, "measure only searches over the objects of members")
	cmd.Flags().BoolVar(&o.Full, "full", false,
		"also measure scheduling with 10 to 1,000 clusters and 1,000 to 10,000 bindings, clusters in Pull mode and searches, which takes about 30 minutes")
	cmd.Flags().IntVar(&o.Workers, "workers", 16, "objects created at once")
	cmd.Flags().StringArrayVar(&o.HubArgs, "hub-arg", nil,
		"argument of \"argosy up\" for the hubs that are measured, repeatable: --hub-arg=--encrypt-secrets=false shows what encryption costs")
	cmd.Flags().StringVar(&output, "output", "", "also write the rows as JSON to this file")
	cmd.Flags().StringVarP(&format, "format", "o", "", "output format: json, or a table if empty")
	return cmd
}

func benchTable(out io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORK\tMEASURED\tMUST\tAIM\tREACHED\tKARMADA")
	for _, r := range rows {
		measured := figure(r.Value, r.Unit)
		if r.Floor > 0 {
			measured = fmt.Sprintf("%.2f s = %s of %.2f s", r.Value*r.Floor, measured, r.Floor)
			if r.Rest > 1.1*r.Floor {
				measured += fmt.Sprintf(" (plain client: ready after %.2f s)", r.Rest)
			}
		}
		bound := "≤ "
		if r.AtLeast {
			bound = "≥ "
		}
		aim := ""
		if r.Aim > 0 {
			aim = bound + figure(r.Aim, r.Unit)
		}
		must, reached := "", ""
		if r.Must > 0 {
			must, reached = bound+figure(r.Must, r.Unit), "yes"
		}
		if !r.Reached() {
			reached = "NO"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Work, measured, must, aim, reached, r.Karmada)
	}
	return w.Flush()
}

// figure formats a number with its unit and a suitable number of digits.
func figure(v float64, unit string) string {
	switch {
	case unit == "x":
		return fmt.Sprintf("%.1f ×", v)
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	default:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
}
