package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// foreign are flags of karmada-scheduler that mean nothing here: manifests that set them go on working, with a warning.
// docs/scheduler.md has the table; those that are honoured are the hub's own.
var foreign = []struct {
	names []string
	// bare: the flag may have no value.
	bare bool
	why  string
}{
	{names: []string{"leader-elect"}, bare: true, why: "hubs that share an etcd always elect a leader"},
	{names: []string{"leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
		"leader-elect-resource-lock",
		"leader-elect-resource-name", "leader-elect-resource-namespace"},
		why: "hubs that share an etcd always elect a leader, with Kubernetes' own timings"},
	{names: []string{"kube-api-qps", "kube-api-burst"},
		why: "the scheduler runs in the API server's process, and its requests are not rate-limited"},
	{names: []string{"rate-limiter-base-delay", "rate-limiter-max-delay", "rate-limiter-qps", "rate-limiter-bucket-size"},
		why: "unschedulable bindings are retried when the cluster state changes, not after a delay"},
	{names: []string{"metrics-bind-address", "health-probe-bind-address", "secure-port"},
		why: "metrics and health are at the hub's own address, /metrics and /readyz"},
	{names: []string{"enable-pprof"}, bare: true, why: "profiles are at the hub's own address, /debug/pprof"},
	{names: []string{"profiling-bind-address"}, why: "profiles are at the hub's own address, /debug/pprof"},
	{names: []string{"feature-gates"}, why: "the hub has no feature gates: every feature is enabled"},
	{names: []string{"logging-format"}, why: "the log's format is --log-format"},
}

// foreignFlag is a flag that accepts any value and has no effect.
type foreignFlag struct{ text string }

func (f *foreignFlag) String() string     { return f.text }
func (f *foreignFlag) Set(s string) error { f.text = s; return nil }
func (f *foreignFlag) Type() string       { return "string" }

// foreignFlags adds the flags of foreign, and --v for -v.
func foreignFlags(fs *pflag.FlagSet) {
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "v" {
			name = "log-level"
		}
		return pflag.NormalizedName(name)
	})
	for _, f := range foreign {
		for _, name := range f.names {
			fs.Var(&foreignFlag{}, name, "of karmada-scheduler: ignored, "+f.why)
			flag := fs.Lookup(name)
			if flag.Hidden = true; f.bare {
				flag.NoOptDefVal = "true"
			}
		}
	}
}

// warnOfForeign prints which flags have no effect.
func warnOfForeign(cmd *cobra.Command) {
	for _, f := range foreign {
		for _, name := range f.names {
			if cmd.Flags().Changed(name) {
				fmt.Fprintf(cmd.ErrOrStderr(), "Warning: --%s is ignored: %s\n", name, f.why)
			}
		}
	}
	if cmd.Flags().Changed("kubeconfig") {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: --kubeconfig is ignored: the scheduler runs in the hub and uses the hub's API server; the hub's kubeconfig is written to --kubeconfig-out")
	}
}
