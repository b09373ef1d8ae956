package hubcli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// foreign are flags of a program of Karmada that have no effect here. Manifests that set them work, with a warning.
type foreign struct {
	names []string
	// bare: the flag may have no value.
	bare bool
	why  string
}

// SchedulerFlags are those of karmada-scheduler. docs/scheduler.md has the table; the hub's own flags have an effect.
var SchedulerFlags = []foreign{
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

// AgentFlags are those of karmada-agent. docs/pull.md has the table.
var AgentFlags = []foreign{
	{names: []string{"karmada-kubeconfig", "karmada-context", "karmada-kubeconfig-namespace"},
		why: "the credentials for the hub are in the Secret of --credentials-secret, which argosy register creates"},
	{names: []string{"cluster-provider", "cluster-region", "cluster-zones"},
		why: "set it with argosy register, or in the spec of the Cluster on the hub"},
	{names: []string{"cluster-api-endpoint", "proxy-server-address", "report-secrets", "cluster-namespace"},
		why: "the hub reaches the cluster through the agent, and needs no address or credentials of it"},
	{names: []string{"leader-elect"}, bare: true, why: "agents of a cluster always elect a leader"},
	{names: []string{"leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
		"leader-elect-resource-namespace"},
		why: "agents of a cluster always elect a leader, by a Lease in kube-system of the cluster"},
	{names: []string{"controllers", "feature-gates", "enable-cluster-resource-modeling"},
		why: "the agent has no optional controllers; it renews its certificate by itself"},
	{names: []string{"cert-rotation-checking-interval", "cert-rotation-remaining-time-threshold"},
		why: "the agent renews its certificate by itself"},
	{names: []string{"cluster-lease-duration", "cluster-lease-renew-interval-fraction"},
		why: "the hub sets how long it waits for the agent"},
	{names: []string{"cluster-api-qps", "cluster-api-burst", "kube-api-qps", "kube-api-burst", "rate-limiter-base-delay",
		"rate-limiter-max-delay", "rate-limiter-qps", "rate-limiter-bucket-size"},
		why: "requests of the agent are not rate-limited; --concurrent-work-syncs limits how many objects are applied at once"},
	{names: []string{"cluster-cache-sync-timeout", "resync-period", "concurrent-cluster-syncs"},
		why: "the agent watches one cluster, and waits for it"},
	{names: []string{"metrics-bind-address", "health-probe-bind-address"},
		why: "the agent listens at no port; it ends if it cannot go on, and the Cluster on the hub shows its health"},
	{names: []string{"enable-pprof"}, bare: true, why: "the agent listens at no port"},
	{names: []string{"profiling-bind-address"}, why: "the agent listens at no port"},
	{names: []string{"v"}, why: "the agent has one log level"},
}

// RegisterFlags and UnregisterFlags are those of commands of karmadactl.
var (
	RegisterFlags = []foreign{
		{names: []string{"karmada-agent-image"}, why: "the agent is that of Argosy; --agent-image names its image"},
		{names: []string{"karmada-agent-replicas"},
			why: "one agent is deployed; scale its Deployment, and the agents elect a leader"},
		{names: []string{"cluster-namespace", "proxy-server-address"},
			why: "the hub reaches the cluster through the agent, and needs no address or credentials of it"},
		{names: []string{"enable-cert-rotation"}, bare: true, why: "the agent always renews its certificate"},
	}
	UnregisterFlags = []foreign{{names: []string{"agent-name"}, why: "the agent has one name"}}
)

// AddonFlags are those of karmadactl addons.
var AddonFlags = []foreign{
	{names: []string{"karmada-kubeconfig"},
		why: "the addons of Karmada are part of the hub; --kubeconfig and --karmada-context name the hub"},
	{names: []string{"member-kubeconfig", "member-context", "private-image-registry", "pod-timeout", "apiservice-timeout",
		"host-cluster-domain", "karmada-descheduler-image", "karmada-descheduler-replicas", "karmada-metrics-adapter-image",
		"karmada-metrics-adapter-replicas", "karmada-scheduler-estimator-image", "karmada-estimator-replicas",
		"karmada-search-image", "karmada-search-replicas", "descheduler-priority-class", "estimator-priority-class",
		"metrics-adapter-priority-class", "search-priority-class"},
		why: "the addons of Karmada are part of the hub, and nothing is deployed"},
}

// foreignFlag is a flag that accepts any value and has no effect.
type foreignFlag struct{ text string }

func (f *foreignFlag) String() string     { return f.text }
func (f *foreignFlag) Set(s string) error { f.text = s; return nil }
func (f *foreignFlag) Type() string       { return "string" }

// ForeignFlags adds flags of a program of Karmada, and --v for -v.
func ForeignFlags(fs *pflag.FlagSet, flags []foreign) {
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "v" {
			name = "log-level"
		}
		return pflag.NormalizedName(name)
	})
	addForeign(fs, flags)
}

func addForeign(fs *pflag.FlagSet, flags []foreign) {
	for _, f := range flags {
		for _, name := range f.names {
			fs.Var(&foreignFlag{}, name, "of Karmada: ignored, "+f.why)
			flag := fs.Lookup(name)
			if flag.Hidden = true; f.bare {
				flag.NoOptDefVal = "true"
			}
		}
	}
}

// IgnoredFlags adds flags of a command of Karmada, and warns of those that are given.
func IgnoredFlags(cmd *cobra.Command, flags []foreign) {
	addForeign(cmd.Flags(), flags)
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { WarnOfForeign(cmd, flags) }
}

// WarnOfForeign prints which flags have no effect.
func WarnOfForeign(cmd *cobra.Command, flags []foreign) {
	for _, f := range flags {
		for _, name := range f.names {
			if cmd.Flags().Changed(name) {
				fmt.Fprintf(cmd.ErrOrStderr(), "Warning: --%s is ignored: %s\n", name, f.why)
			}
		}
	}
}

// WarnOfSchedulerFlags prints which flags of karmada-scheduler have no effect.
func WarnOfSchedulerFlags(cmd *cobra.Command) {
	WarnOfForeign(cmd, SchedulerFlags)
	if cmd.Flags().Changed("kubeconfig") {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: --kubeconfig is ignored: the scheduler runs in the hub and uses the hub's API server; the hub's kubeconfig is written to --kubeconfig-out")
	}
}
