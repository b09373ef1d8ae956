package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/capacity/estimator"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/controller/admission"
	"github.com/argosy-io/argosy/internal/controller/execute"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/search"
)

// Config is everything that can be set about a hub. A file, flags and defaults all end up here.
type Config struct {
	// DataDir is the folder of the hub's store, keys, kubeconfig and log.
	DataDir string `json:"dataDir"`
	// PKIDir is the folder of the hub's keys and certificates. Empty: pki in the data folder. Hubs that share an etcd need
	// the same authorities: give each a copy of one such folder. Otherwise one hub rejects the tokens and client
	// certificates of the other.
	PKIDir string `json:"pkiDir,omitempty"`
	// BindAddress is the IP address to serve on; 0.0.0.0 or :: means every one.
	BindAddress string `json:"bindAddress"`
	// Port to serve on; 0 selects a free port.
	Port int `json:"port"`
	// TLSSANs are further names and IP addresses for the serving certificate, such as those of a load balancer.
	TLSSANs []string `json:"tlsSANs,omitempty"`
	// Etcd is an external etcd cluster; without servers the hub runs its own.
	Etcd EtcdConfig `json:"etcd"`
	// Backup configures the hub's own backups.
	Backup BackupConfig `json:"backup"`
	// KubeAPIServer configures the API server of the hub.
	KubeAPIServer KubeAPIServerConfig `json:"kubeAPIServer"`
	// Encryption configures encryption at rest.
	Encryption EncryptionConfig `json:"encryption"`
	// Components to run: "*" for all, "-NAME" to exclude one.
	Components []string `json:"components"`
	// WorkloadKinds are the families of workload kinds beyond Kubernetes that the hub defines: "*" for all, "-NAME" to
	// exclude one.
	WorkloadKinds []string `json:"workloadKinds"`
	// Members configures the connections to member clusters.
	Members MembersConfig `json:"members"`
	// Scheduler configures the scheduler.
	Scheduler SchedulerConfig `json:"scheduler"`
	// Descheduler configures when replicas that find no node move to other clusters. The component descheduler moves them.
	Descheduler DeschedulerConfig `json:"descheduler"`
	// Taints are the default tolerations of policies, and which taints ClusterTaintPolicies may add.
	Taints TaintsConfig `json:"taints"`
	// Failover configures how workloads leave lost, drained or unhealthy clusters.
	Failover FailoverConfig `json:"failover"`
	// Autoscaling configures FederatedHPAs.
	Autoscaling AutoscalingConfig `json:"autoscaling"`
	// ForbidOverwrite treats Overwrite as Abort, in the annotation work.karmada.io/conflict-resolution of templates and in
	// conflictResolution of PropagationPolicies. The label argosy.io/forbid-overwrite does the same for one namespace.
	ForbidOverwrite bool `json:"forbidOverwrite,omitempty"`
	// EnforceFederatedQuotas refuses placements that exceed a FederatedResourceQuota.
	EnforceFederatedQuotas bool `json:"enforceFederatedQuotas"`
	// SuccessEvents selects the success events that are recorded: default, all or none. Each event is a write.
	SuccessEvents string `json:"successEvents"`
	// KubeconfigOut is an additional file to merge the admin kubeconfig into.
	KubeconfigOut string `json:"kubeconfigOut,omitempty"`
	// History is where the history of releases is kept.
	History HistoryConfig `json:"history"`
	// ReleaseChecks is what ReleaseChecks may call.
	ReleaseChecks ReleaseChecksConfig `json:"releaseChecks"`
	// Inventory is where the hub publishes its clusters for other programs.
	Inventory InventoryConfig `json:"inventory"`
	// MCS decides which ServiceExports connect clusters: MCSByPolicies or MCSAuto.
	MCS string `json:"mcs"`
	// Log is about the hub's log.
	Log LogConfig `json:"log"`
}

// The values of Config.MCS.
const (
	// MCSByPolicies connects the clusters in which policies of the hub place ServiceExports and ServiceImports.
	MCSByPolicies = "policies"
	// MCSAuto also connects each cluster with a ServiceExport to all clusters with its namespace.
	MCSAuto = "auto"
)

// EtcdConfig is about the hub's own etcd, or reaches an external one.
type EtcdConfig struct {
	// Quota bounds the size of the hub's own store on disk.
	Quota    resource.QuantityValue `json:"quota"`
	Servers  []string               `json:"servers,omitempty"`
	CAFile   string                 `json:"caFile,omitempty"`
	CertFile string                 `json:"certFile,omitempty"`
	KeyFile  string                 `json:"keyFile,omitempty"`
}

// MembersConfig configures the connections to member clusters.
type MembersConfig struct {
	// StatusUpdateFrequency is the interval at which the status of each cluster is collected.
	StatusUpdateFrequency metav1.Duration `json:"statusUpdateFrequency"`
	// FailureThreshold and SuccessThreshold are how long a cluster must fail to respond, or respond again, before its
	// condition Ready changes.
	FailureThreshold metav1.Duration `json:"failureThreshold"`
	SuccessThreshold metav1.Duration `json:"successThreshold"`
	// AnswerLimit bounds one response of a member in bytes. MemoryLimit bounds the objects of one member in memory, and
	// separately those in transit. A member that exceeds a limit is not Ready.
	AnswerLimit resource.QuantityValue `json:"answerLimit"`
	MemoryLimit resource.QuantityValue `json:"memoryLimit"`
	// ProxyRequests bounds the concurrent requests of users to members, including watches and other streams. One user, and
	// one member, can have at most half of them; one user in one member a quarter.
	ProxyRequests int `json:"proxyRequests"`
	// SearchMemory bounds the objects of all members in memory that ResourceRegistries select, in bytes. The caches of
	// searches can have a quarter of it in addition.
	SearchMemory resource.QuantityValue `json:"searchMemory"`
	// EmptyWorkloads also sends divided workloads to chosen clusters that get no replica.
	EmptyWorkloads bool `json:"emptyWorkloads,omitempty"`
	// WorkDeletions bounds how many Works anyone but the hub may delete within a minute. Beyond that, nothing is deleted
	// in members, and all of these Works are created again.
	WorkDeletions int `json:"workDeletions"`
	// StaleStatus decides about the last status of a cluster that is not Ready: StaleAsNotReady or StaleAsLastReported.
	StaleStatus string `json:"staleStatus"`
	// Estimator configures the requests to the members' scheduler estimators, which complement what the hub knows of free
	// capacity.
	Estimator EstimatorConfig `json:"estimator"`
}

// The values of MembersConfig.StaleStatus.
const (
	// StaleAsNotReady counts its objects and pods as existing but not ready, as Kubernetes does with the pods of a lost
	// node.
	StaleAsNotReady = "NotReady"
	// StaleAsLastReported counts all as if it were so now, as Karmada does.
	StaleAsLastReported = "LastReported"
)

// limits returns the limits for data from members.
func (c MembersConfig) limits() member.Limits {
	return member.Limits{Answer: c.AnswerLimit.Value(), Memory: c.MemoryLimit.Value()}
}

// EstimatorConfig reaches the scheduler estimators of members, as Karmada runs them.
type EstimatorConfig struct {
	// Enabled turns estimators on.
	Enabled bool `json:"enabled"`
	// SkipPull excludes clusters in Pull mode.
	SkipPull bool `json:"skipPull,omitempty"`
	// Timeout bounds one request to an estimator.
	Timeout metav1.Duration `json:"timeout"`
	// ServicePrefix, ServiceNamespace and Port are the address of their Services in the cluster of the hub.
	ServicePrefix    string `json:"servicePrefix"`
	ServiceNamespace string `json:"serviceNamespace"`
	Port             int    `json:"port"`
	// Addresses are the addresses of estimators as CLUSTER=HOST:PORT; * means every other cluster, and {cluster} is
	// replaced by its name.
	Addresses []string `json:"addresses,omitempty"`
	// CAFile, CertFile and KeyFile are for TLS. InsecureSkipVerify accepts any certificate of an estimator.
	CAFile             string `json:"caFile,omitempty"`
	CertFile           string `json:"certFile,omitempty"`
	KeyFile            string `json:"keyFile,omitempty"`
	InsecureSkipVerify bool   `json:"insecureSkipVerify,omitempty"`
}

// options returns the options of the estimators; nil if they are off.
func (c EstimatorConfig) options() *estimator.Options {
	if !c.Enabled {
		return nil
	}
	return &estimator.Options{Timeout: c.Timeout.Duration, ServicePrefix: c.ServicePrefix,
		ServiceNamespace: c.ServiceNamespace, Port: c.Port,
		Addresses: c.Addresses, SkipPull: c.SkipPull, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		InsecureSkipVerify: c.InsecureSkipVerify}
}

// SchedulerConfig configures the scheduler.
type SchedulerConfig struct {
	// Name of the scheduler. Bindings with another name in spec.schedulerName are left to that scheduler.
	Name string `json:"name"`
	// Plugins are the filter and score plugins of Karmada to run: "*" for all, "-NAME" to exclude one.
	Plugins []string `json:"plugins"`
}

// schedulerSettings returns the settings of the scheduler.
func (c Config) schedulerSettings() (schedule.Settings, error) {
	plugins, err := schedule.ParsePlugins(c.Scheduler.Plugins)
	if err != nil {
		return schedule.Settings{}, fmt.Errorf("scheduler.plugins: %w: correct --plugins", err)
	}
	return schedule.Settings{Name: c.Scheduler.Name, Plugins: plugins, KeepEmpty: c.Members.EmptyWorkloads,
		QuotasOff: !c.EnforceFederatedQuotas}, nil
}

// DeschedulerConfig configures when replicas move after they were placed.
type DeschedulerConfig struct {
	// Interval is the interval of checks for replicas that find no node.
	Interval metav1.Duration `json:"interval"`
	// UnschedulableThreshold is the time for which a replica must be unschedulable before it moves.
	UnschedulableThreshold metav1.Duration `json:"unschedulableThreshold"`
}

// TaintsConfig are the default tolerations of policies, and which taints ClusterTaintPolicies may add.
type TaintsConfig struct {
	// NotReadySeconds and UnreachableSeconds are the default tolerations of policies, in seconds, for a cluster
	// that is not ready, or unreachable.
	NotReadySeconds    int64 `json:"defaultNotReadyTolerationSeconds"`
	UnreachableSeconds int64 `json:"defaultUnreachableTolerationSeconds"`
	// AllowNoExecutePolicy permits ClusterTaintPolicies with NoExecute taints.
	AllowNoExecutePolicy bool `json:"allowNoExecuteTaintPolicy,omitempty"`
}

// tolerations returns the defaults for policies.
func (c TaintsConfig) tolerations() membership.TolerationDefaults {
	return membership.TolerationDefaults{NotReady: c.NotReadySeconds, Unreachable: c.UnreachableSeconds}
}

// FailoverConfig configures how workloads leave lost, drained or unhealthy clusters.
type FailoverConfig struct {
	// Cluster selects the workloads that leave lost clusters: FailoverByPolicy, FailoverOfAll or FailoverOff.
	Cluster string `json:"cluster"`
	// BrakeShare is the share of the fleet above which nothing is evicted from clusters that were lost within five
	// minutes.
	BrakeShare float64 `json:"brakeShare"`
	// EvictionsPerMinute bounds the evictions of the fleet within a minute.
	EvictionsPerMinute int `json:"evictionsPerMinute"`
}

// Which workloads leave lost clusters.
const (
	// FailoverByPolicy moves only the workloads of policies with spec.failover.cluster.
	FailoverByPolicy = "Policy"
	// FailoverOfAll moves all that the policy, the workload or too many losses at once do not keep; the default.
	FailoverOfAll = "All"
	// FailoverOff moves none, and evicts nothing for another cause either.
	FailoverOff = "Off"
)

// options of the failover. Nothing is evicted after the start until a cluster that has recovered meanwhile can be Ready
// again: the first probe can be one period late, and so can the probe after the success threshold.
func (c FailoverConfig) options(m MembersConfig, t TaintsConfig) *controller.Failover {
	return &controller.Failover{Settle: 2*m.StatusUpdateFrequency.Duration + m.SuccessThreshold.Duration,
		Options: failover.Options{
			Off: c.Cluster == FailoverOff, AllBindings: c.Cluster == FailoverOfAll, BrakeShare: c.BrakeShare,
			EvictionsPerMinute: c.EvictionsPerMinute, Tolerations: t.tolerations()}}
}

func (c FailoverConfig) validate() error {
	switch {
	case !slices.Contains([]string{FailoverByPolicy, FailoverOfAll, FailoverOff}, c.Cluster):
		return fmt.Errorf("failover.cluster %q is not %s, %s or %s: give one with --cluster-failover",
			c.Cluster, FailoverByPolicy, FailoverOfAll, FailoverOff)
	case c.BrakeShare <= 0 || c.BrakeShare > 1:
		return fmt.Errorf("failover.brakeShare %v is not greater than 0 and at most 1: give a value such as 0.5 with --failover-brake-share", c.BrakeShare)
	case c.EvictionsPerMinute < 1:
		return fmt.Errorf("failover.evictionsPerMinute %d is less than 1: give 1 or more with --failover-evictions-per-minute", c.EvictionsPerMinute)
	}
	return nil
}

// AutoscalingConfig configures FederatedHPAs, with the names of Kubernetes' HorizontalPodAutoscaler.
type AutoscalingConfig struct {
	// Interval is the interval at which the load is measured.
	Interval metav1.Duration `json:"interval"`
	// DownscaleStabilization is the default stabilization window for scale-downs: the autoscaler does not scale down below
	// any recommendation that it made during that period.
	DownscaleStabilization metav1.Duration `json:"downscaleStabilization"`
	// Tolerance is the minimum change (from 1.0) in the desired-to-actual metrics ratio for the autoscaler to consider
	// scaling.
	Tolerance float64 `json:"tolerance"`
	// CPUInitializationPeriod is the period after pod start when CPU samples might be skipped. InitialReadinessDelay is
	// the period after pod start during which readiness changes count as initial readiness.
	CPUInitializationPeriod metav1.Duration `json:"cpuInitializationPeriod"`
	InitialReadinessDelay   metav1.Duration `json:"initialReadinessDelay"`
	// FollowMembers lets the replicas of templates follow the autoscalers that policies propagate with them.
	FollowMembers bool `json:"followMembers"`
}

// options of the autoscaling.
func (c AutoscalingConfig) options() controller.Autoscaling {
	return controller.Autoscaling{Interval: c.Interval.Duration, Settings: autoscale.Settings{Tolerance: c.Tolerance,
		DownscaleStabilization: c.DownscaleStabilization.Duration, CPUInitialization: c.CPUInitializationPeriod.Duration,
		InitialReadiness: c.InitialReadinessDelay.Duration}, IgnoreMembers: !c.FollowMembers}
}

// LogConfig configures the file, format and level of the log.
type LogConfig struct {
	// File is a path, or "-" for standard error. Empty: argosy.log in the data folder.
	File string `json:"file,omitempty"`
	// Format is text or json.
	Format string `json:"format"`
	// Level is klog's verbosity: 0 decisions and faults, 2 and up for what led to them.
	Level int `json:"level"`
}

// DefaultPort is not 6443, which clusters on the same machine (kind, k3s, kubeadm) use, and not 5443, which a Karmada
// hub uses. It still suggests HTTPS.
const DefaultPort = 7443

// DefaultConfig returns the one set of defaults.
func DefaultConfig() Config {
	return Config{
		DataDir:       defaultDataDir(),
		BindAddress:   "127.0.0.1",
		Port:          DefaultPort,
		Etcd:          EtcdConfig{Quota: defaultQuota()},
		Backup:        defaultBackup(),
		KubeAPIServer: KubeAPIServerConfig{PriorityAndFairness: true},
		Encryption:    EncryptionConfig{Enabled: true},
		Components:    []string{"*"},
		WorkloadKinds: []string{"*"},
		Inventory:     InventoryConfig{Namespace: "argosy-inventory"},
		MCS:           MCSByPolicies,
		Members: MembersConfig{
			StatusUpdateFrequency: metav1.Duration{Duration: 10 * time.Second},
			FailureThreshold:      metav1.Duration{Duration: 30 * time.Second},
			SuccessThreshold:      metav1.Duration{Duration: 30 * time.Second},
			AnswerLimit: resource.QuantityValue{Quantity: *resource.NewQuantity(member.DefaultAnswerLimit,
				resource.BinarySI)},
			MemoryLimit: resource.QuantityValue{Quantity: *resource.NewQuantity(member.DefaultMemoryLimit,
				resource.BinarySI)},
			ProxyRequests: proxy.DefaultRequests,
			SearchMemory: resource.QuantityValue{Quantity: *resource.NewQuantity(search.DefaultMemoryLimit,
				resource.BinarySI)},
			WorkDeletions: execute.DefaultDeletions.Bound,
			StaleStatus:   StaleAsNotReady,
			Estimator: EstimatorConfig{Timeout: metav1.Duration{Duration: 3 * time.Second}, Port: 10352,
				ServicePrefix: "karmada-scheduler-estimator", ServiceNamespace: names.System},
		},
		Scheduler: SchedulerConfig{Name: policyv1alpha1.DefaultSchedulerName, Plugins: []string{"*"}},
		Descheduler: DeschedulerConfig{
			Interval:               metav1.Duration{Duration: 2 * time.Minute},
			UnschedulableThreshold: metav1.Duration{Duration: 5 * time.Minute},
		},
		Taints: TaintsConfig{NotReadySeconds: membership.DefaultTolerations.NotReady,
			UnreachableSeconds: membership.DefaultTolerations.Unreachable},
		Failover: FailoverConfig{Cluster: FailoverOfAll, BrakeShare: failover.Defaults.BrakeShare,
			EvictionsPerMinute: failover.Defaults.EvictionsPerMinute},
		Autoscaling: AutoscalingConfig{
			Interval:                metav1.Duration{Duration: 15 * time.Second},
			DownscaleStabilization:  metav1.Duration{Duration: 5 * time.Minute},
			Tolerance:               0.1,
			CPUInitializationPeriod: metav1.Duration{Duration: 5 * time.Minute},
			InitialReadinessDelay:   metav1.Duration{Duration: 30 * time.Second},
			FollowMembers:           true,
		},
		SuccessEvents: string(commit.SuccessEventsDefault), EnforceFederatedQuotas: true,
		History: HistoryConfig{Mode: HistoryAuto},
		Log:     LogConfig{Format: "text"},
	}
}

func defaultDataDir() string {
	base := os.Getenv("XDG_DATA_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = os.TempDir() // a process without a home, such as a container's
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "argosy")
}

// AdminKubeconfig returns the file in a data folder with which one administrates its hub.
func AdminKubeconfig(dataDir string) string { return filepath.Join(dataDir, "admin.kubeconfig") }

// DefaultKubeconfig returns the admin kubeconfig of a hub that `argosy up` started here with the default data folder.
func DefaultKubeconfig() string { return AdminKubeconfig(defaultDataDir()) }

// BindFlags lets flags set c.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.DataDir, "data-dir", c.DataDir, "folder for the hub's store, keys and log")
	fs.StringVar(&c.PKIDir, "pki-dir", c.PKIDir,
		"folder of the hub's keys and certificates; hubs that share an etcd each have a copy of one (default pki in the data folder)")
	fs.StringVar(&c.BindAddress, "bind-address", c.BindAddress, "IP address to serve on")
	fs.IntVar(&c.Port, "port", c.Port, "port to serve on; 0 selects a free port")
	fs.StringSliceVar(&c.TLSSANs, "tls-san", c.TLSSANs,
		"additional DNS names and IP addresses for the hub's serving certificate, such as those of a load balancer")
	fs.StringSliceVar(&c.Etcd.Servers, "etcd-servers", c.Etcd.Servers,
		"URLs of an external etcd, instead of the hub's own; several hubs may share it")
	fs.StringVar(&c.Etcd.CAFile, "etcd-cafile", c.Etcd.CAFile, "CA of the external etcd's certificates")
	fs.StringVar(&c.Etcd.CertFile, "etcd-certfile", c.Etcd.CertFile, "client certificate for the external etcd")
	fs.StringVar(&c.Etcd.KeyFile, "etcd-keyfile", c.Etcd.KeyFile, "private key for that certificate")
	c.bindUpkeepFlags(fs)
	c.KubeAPIServer.bindFlags(fs)
	c.Encryption.bindFlags(fs)
	fs.StringSliceVar(&c.Components, "components", c.Components,
		fmt.Sprintf("components to run: * enables all, -NAME disables one of %s", strings.Join(optional(), ", ")))
	fs.StringSliceVar(&c.WorkloadKinds, "workload-kinds", c.WorkloadKinds,
		fmt.Sprintf("kinds to define in addition to Kubernetes' own: * enables all, -NAME disables one of %s",
			strings.Join(families(), ", ")))
	fs.DurationVar(&c.Members.StatusUpdateFrequency.Duration, "cluster-status-update-frequency",
		c.Members.StatusUpdateFrequency.Duration, "how often the status of each member cluster is collected")
	fs.DurationVar(&c.Members.FailureThreshold.Duration, "cluster-failure-threshold", c.Members.FailureThreshold.Duration,
		"how long a member cluster must fail to respond before it is marked not Ready")
	fs.DurationVar(&c.Members.SuccessThreshold.Duration, "cluster-success-threshold", c.Members.SuccessThreshold.Duration,
		"how long a member cluster must respond again before it is marked Ready")
	fs.Var(&c.Members.AnswerLimit, "member-answer-limit",
		"the maximum size of one response from a member cluster, such as 64Mi; a cluster that sends more is not Ready")
	fs.Var(&c.Members.MemoryLimit, "member-memory-limit",
		"the approximate maximum of memory for one member cluster's cached objects, and the same again for its responses in flight; a cluster that needs more is not Ready")
	fs.IntVar(&c.Members.ProxyRequests, "member-proxy-requests", c.Members.ProxyRequests,
		"the maximum number of concurrent user requests to member clusters, including watches and other streams; one user or one cluster may use half of them, and one user in one cluster a quarter")
	fs.Var(&c.Members.SearchMemory, "search-memory-limit",
		"the approximate maximum of memory for the objects of all member clusters that ResourceRegistries select; the "+
			"caches of searches may have a quarter of it in addition")
	fs.IntVar(&c.Members.WorkDeletions, "work-deletions-per-minute", c.Members.WorkDeletions,
		"the maximum number of Works that anyone but the hub may delete within a minute; if there are more, none of the deletions is carried out in a member, and the Works are recreated")
	fs.StringVar(&c.Members.StaleStatus, "stale-status", c.Members.StaleStatus,
		"how the last reported status of a cluster that is not Ready is aggregated: NotReady (its pods exist, and none counts as ready) or LastReported (all counts as reported, as in Karmada)")
	fs.BoolVar(&c.Members.EmptyWorkloads, "enable-empty-workload-propagation", c.Members.EmptyWorkloads,
		"also send workloads with divided replicas to selected clusters that get no replicas, and keep them there when they are scaled to zero")
	fs.StringVar(&c.Scheduler.Name, "scheduler-name", c.Scheduler.Name,
		"name of the hub's scheduler; policies whose schedulerName is another are left to that scheduler")
	fs.StringSliceVar(&c.Scheduler.Plugins, "plugins", c.Scheduler.Plugins,
		fmt.Sprintf("scheduler plugins to run: * enables all, -NAME disables one of %s",
			strings.Join(schedule.PluginNames(), ", ")))
	fs.DurationVar(&c.Descheduler.Interval.Duration, "descheduling-interval", c.Descheduler.Interval.Duration,
		"how often to look for replicas that are unschedulable in their cluster")
	fs.DurationVar(&c.Descheduler.UnschedulableThreshold.Duration, "unschedulable-threshold",
		c.Descheduler.UnschedulableThreshold.Duration,
		"time a replica may be unschedulable before it is moved to another cluster")
	fs.Int64Var(&c.Taints.NotReadySeconds, "default-not-ready-toleration-seconds", c.Taints.NotReadySeconds,
		"tolerationSeconds of the toleration for cluster.karmada.io/not-ready:NoExecute that is added to every policy that does not already have such a toleration")
	fs.Int64Var(&c.Taints.UnreachableSeconds, "default-unreachable-toleration-seconds", c.Taints.UnreachableSeconds,
		"tolerationSeconds of the toleration for cluster.karmada.io/unreachable:NoExecute that is added to every policy that does not already have such a toleration")
	fs.BoolVar(&c.Taints.AllowNoExecutePolicy, "allow-no-execute-taint-policy", c.Taints.AllowNoExecutePolicy,
		"permit ClusterTaintPolicies with NoExecute taints, which move workloads out of the clusters that match")
	fs.StringVar(&c.Failover.Cluster, "cluster-failover", c.Failover.Cluster,
		"which workloads leave lost clusters: All, Policy (only those whose policy has spec.failover.cluster), or Off (nothing is evicted, whatever the cause)")
	fs.Float64Var(&c.Failover.BrakeShare, "failover-brake-share", c.Failover.BrakeShare,
		"if more than this share of all clusters, and at least two, are lost within five minutes, nothing is evicted from them")
	fs.IntVar(&c.Failover.EvictionsPerMinute, "failover-evictions-per-minute", c.Failover.EvictionsPerMinute,
		"the maximum number of evictions of workloads from clusters within a minute")
	a := &c.Autoscaling
	fs.DurationVar(&a.Interval.Duration, "horizontal-pod-autoscaler-sync-period", a.Interval.Duration,
		"the period for syncing the number of replicas of FederatedHPAs")
	fs.DurationVar(&a.DownscaleStabilization.Duration, "horizontal-pod-autoscaler-downscale-stabilization",
		a.DownscaleStabilization.Duration,
		"the period for which the autoscaler looks back and does not scale down below any recommendation it made during that period, where a FederatedHPA does not set its own")
	fs.Float64Var(&a.Tolerance, "horizontal-pod-autoscaler-tolerance", a.Tolerance,
		"the minimum change (from 1.0) in the desired-to-actual metrics ratio for the autoscaler to consider scaling")
	fs.DurationVar(&a.CPUInitializationPeriod.Duration, "horizontal-pod-autoscaler-cpu-initialization-period",
		a.CPUInitializationPeriod.Duration, "the period after pod start when CPU samples might be skipped")
	fs.DurationVar(&a.InitialReadinessDelay.Duration, "horizontal-pod-autoscaler-initial-readiness-delay",
		a.InitialReadinessDelay.Duration,
		"the period after pod start during which readiness changes are treated as initial readiness")
	fs.BoolVar(&a.FollowMembers, "follow-member-autoscalers", a.FollowMembers,
		"let the replicas of a template follow the HorizontalPodAutoscalers and ScaledObjects that policies propagate for it, and label it so that the clusters keep theirs")
	fs.StringVar(&c.SuccessEvents, "success-events", c.SuccessEvents,
		"which successes are recorded as events, each of which is a write: default (rare ones), all (each step of each object, as Karmada does), none; without a value, all")
	fs.Lookup("success-events").NoOptDefVal = string(commit.SuccessEventsAll)
	e := &c.Members.Estimator
	fs.BoolVar(&e.Enabled, "enable-scheduler-estimator", e.Enabled,
		"also query the members' scheduler estimators for available replicas; the lowest estimate is used")
	fs.DurationVar(&e.Timeout.Duration, "scheduler-estimator-timeout", e.Timeout.Duration,
		"timeout of a request to an estimator")
	fs.BoolVar(&e.SkipPull, "disable-scheduler-estimator-in-pull-mode", e.SkipPull,
		"do not query the estimators of clusters in Pull mode")
	fs.StringVar(&e.ServicePrefix, "scheduler-estimator-service-prefix", e.ServicePrefix,
		"prefix of the names of the estimators' Services, followed by -CLUSTER")
	fs.StringVar(&e.ServiceNamespace, "scheduler-estimator-service-namespace", e.ServiceNamespace,
		"namespace of those Services, in the cluster that the hub runs in")
	fs.IntVar(&e.Port, "scheduler-estimator-port", e.Port, "port of those Services")
	fs.StringSliceVar(&e.Addresses, "scheduler-estimator-address", e.Addresses,
		"CLUSTER=HOST:PORT of an estimator elsewhere; * matches every other cluster, and {cluster} is replaced with the name of the cluster")
	fs.StringVar(&e.CAFile, "scheduler-estimator-ca-file", e.CAFile,
		"CA of the estimators' certificates; without it, connections are not encrypted")
	fs.StringVar(&e.CertFile, "scheduler-estimator-cert-file", e.CertFile, "client certificate for the estimators")
	fs.StringVar(&e.KeyFile, "scheduler-estimator-key-file", e.KeyFile, "private key for that certificate")
	fs.BoolVar(&e.InsecureSkipVerify, "insecure-skip-estimator-verify", e.InsecureSkipVerify,
		"encrypt connections to estimators without verifying their certificates")
	fs.BoolVar(&c.EnforceFederatedQuotas, "enforce-federated-quotas", c.EnforceFederatedQuotas,
		"refuse placements of workloads that exceed a FederatedResourceQuota of their namespace; false only counts")
	fs.BoolVar(&c.ForbidOverwrite, "forbid-overwrite", c.ForbidOverwrite,
		"do not let users take over objects in members that the hub does not manage: only ClusterPropagationPolicies may set Overwrite; in templates and PropagationPolicies it is treated as Abort")
	c.History.bindFlags(fs)
	c.ReleaseChecks.bindFlags(fs)
	c.Inventory.bindFlags(fs)
	fs.StringVar(&c.MCS, "mcs", c.MCS, "which ServiceExports connect clusters: policies (those that policies of the hub "+
		"place), auto (also those that users create in clusters, for all clusters with their namespace)")
	fs.StringVar(&c.KubeconfigOut, "kubeconfig-out", c.KubeconfigOut,
		"an additional file to merge the admin kubeconfig into")
	fs.StringVar(&c.Log.File, "log-file", c.Log.File,
		"log file, - for standard error (default argosy.log in the data folder)")
	fs.StringVar(&c.Log.Format, "log-format", c.Log.Format, "text or json")
	fs.IntVarP(&c.Log.Level, "log-level", "v", c.Log.Level,
		"log verbosity: 0 logs decisions and errors, 2 and higher log more")
}

// Load returns the configuration of a file, empty for none, overridden by the flags that were given. given must contain
// the flags that BindFlags bound to c.
func (c *Config) Load(file string, given *pflag.FlagSet) error {
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	loaded := DefaultConfig()
	if err := yaml.UnmarshalStrict(data, &loaded); err != nil {
		return fmt.Errorf("configuration %s: %s", file, plain(err))
	}

	// The variables of the flags are fields of c: save the given values, read the file, and set the values again.
	type value struct {
		flag  *pflag.Flag
		text  string
		slice []string
	}
	var values []value
	given.Visit(func(f *pflag.Flag) {
		v := value{flag: f, text: f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			v.slice = s.GetSlice()
		}
		values = append(values, v)
	})
	*c = loaded
	for _, v := range values {
		if s, ok := v.flag.Value.(pflag.SliceValue); ok {
			err = s.Replace(v.slice)
		} else {
			err = v.flag.Value.Set(v.text)
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", v.flag.Name, err)
		}
	}
	return nil
}

// plain keeps the part of a YAML error that is about the file.
func plain(err error) string {
	text := err.Error()
	for _, noise := range []string{"error unmarshaling JSON: ", "error converting YAML to JSON: ", "while decoding JSON: ",
		"json: ", "Go struct field Config."} {
		text = strings.ReplaceAll(text, noise, "")
	}
	return text
}

// Validate returns the first error in the configuration, with what to change.
func (c *Config) Validate() error {
	switch {
	case c.DataDir == "":
		return errors.New("dataDir is empty: give a folder with --data-dir")
	case net.ParseIP(c.BindAddress) == nil:
		return fmt.Errorf("bindAddress %q is not an IP address: give one with --bind-address", c.BindAddress)
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("port %d is not between 0 and 65535: give one with --port", c.Port)
	case c.Log.Format != "text" && c.Log.Format != "json":
		return fmt.Errorf("log.format %q is neither text nor json: give one with --log-format", c.Log.Format)
	case c.Members.WorkDeletions < 0:
		return fmt.Errorf("members.workDeletions %d is negative: give 0 or more with --work-deletions-per-minute",
			c.Members.WorkDeletions)
	case c.MCS != MCSByPolicies && c.MCS != MCSAuto:
		return fmt.Errorf("mcs %q is neither %s nor %s: give one with --mcs", c.MCS, MCSByPolicies, MCSAuto)
	case c.Members.StaleStatus != StaleAsNotReady && c.Members.StaleStatus != StaleAsLastReported:
		return fmt.Errorf("members.staleStatus %q is neither %s nor %s: give one with --stale-status", c.Members.StaleStatus,
			StaleAsNotReady, StaleAsLastReported)
	case c.Taints.NotReadySeconds < 0:
		return fmt.Errorf("taints.defaultNotReadyTolerationSeconds %d is negative: give 0 or more with --default-not-ready-toleration-seconds", c.Taints.NotReadySeconds)
	case c.Taints.UnreachableSeconds < 0:
		return fmt.Errorf("taints.defaultUnreachableTolerationSeconds %d is negative: give 0 or more with --default-unreachable-toleration-seconds", c.Taints.UnreachableSeconds)
	case c.Log.Level < 0:
		return fmt.Errorf("log.level %d is negative: give 0 or more with --log-level", c.Log.Level)
	case (c.Etcd.CertFile == "") != (c.Etcd.KeyFile == ""):
		return errors.New("etcd.certFile and etcd.keyFile belong together: give both --etcd-certfile and --etcd-keyfile, or none")
	case len(c.Etcd.Servers) == 0 && c.Etcd.CAFile+c.Etcd.CertFile != "":
		return errors.New("etcd has TLS files but no servers: give --etcd-servers")
	}
	for _, name := range c.TLSSANs {
		if wrong := validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*.")); net.ParseIP(name) == nil &&
			len(wrong) > 0 {
			return fmt.Errorf("tlsSANs has %q, which is neither a DNS name nor an IP address: correct --tls-san", name)
		}
	}
	if c.Scheduler.Name == "" {
		return errors.New("scheduler.name is empty, so nothing would be placed: give one with --scheduler-name")
	}
	if _, err := c.schedulerSettings(); err != nil {
		return err
	}
	for flag, duration := range map[string]metav1.Duration{
		"cluster-status-update-frequency":                     c.Members.StatusUpdateFrequency,
		"cluster-failure-threshold":                           c.Members.FailureThreshold,
		"cluster-success-threshold":                           c.Members.SuccessThreshold,
		"descheduling-interval":                               c.Descheduler.Interval,
		"unschedulable-threshold":                             c.Descheduler.UnschedulableThreshold,
		"horizontal-pod-autoscaler-sync-period":               c.Autoscaling.Interval,
		"horizontal-pod-autoscaler-downscale-stabilization":   c.Autoscaling.DownscaleStabilization,
		"horizontal-pod-autoscaler-cpu-initialization-period": c.Autoscaling.CPUInitializationPeriod,
		"horizontal-pod-autoscaler-initial-readiness-delay":   c.Autoscaling.InitialReadinessDelay} {
		if duration.Duration < time.Second {
			return fmt.Errorf("%v is too short: give a second or more with --%s", duration.Duration, flag)
		}
	}
	if err := c.Failover.validate(); err != nil {
		return err
	}
	if err := c.Inventory.validate(); err != nil {
		return err
	}
	if _, err := commit.ParseSuccessEvents(c.SuccessEvents); err != nil {
		return fmt.Errorf("successEvents %w: correct --success-events", err)
	}
	if least := int64(1 << 20); c.Members.AnswerLimit.Value() < least {
		return fmt.Errorf("members.answerLimit %s is too small: give 1Mi or more with --member-answer-limit",
			c.Members.AnswerLimit.String())
	}
	if c.Members.MemoryLimit.Cmp(c.Members.AnswerLimit.Quantity) < 0 {
		return fmt.Errorf("members.memoryLimit %s is less than members.answerLimit (%s): give more with --member-memory-limit", c.Members.MemoryLimit.String(), c.Members.AnswerLimit.String())
	}
	if least := int64(16 << 20); c.Members.SearchMemory.Value() < least {
		return fmt.Errorf("members.searchMemory %s is too small: give 16Mi or more with --search-memory-limit",
			c.Members.SearchMemory.String())
	}
	if least := 100; c.Members.ProxyRequests < least {
		return fmt.Errorf("members.proxyRequests %d is too low for several users: give %d or more with --member-proxy-requests", c.Members.ProxyRequests, least)
	}
	if c.Autoscaling.Tolerance <= 0 || c.Autoscaling.Tolerance >= 1 {
		return fmt.Errorf("autoscaling.tolerance %v is not between 0 and 1: give a value such as 0.1 with --horizontal-pod-autoscaler-tolerance", c.Autoscaling.Tolerance)
	}
	if o := c.Members.Estimator.options(); o != nil {
		if err := o.Validate(); err != nil {
			return err
		}
	} else if len(c.Members.Estimator.Addresses) > 0 {
		return errors.New("scheduler estimator addresses are given, but the estimator is not enabled: give --enable-scheduler-estimator, or remove --scheduler-estimator-address")
	}
	for _, server := range c.Etcd.Servers {
		if u, err := url.Parse(server); err != nil || !slices.Contains([]string{"http", "https", "unix"}, u.Scheme) || u.Host+
			u.Path == "" {
			return fmt.Errorf("etcd server %q is not a URL such as https://10.0.0.1:2379: correct --etcd-servers", server)
		}
	}
	for _, name := range c.Components {
		bare := strings.TrimPrefix(name, "-")
		switch {
		case bare != "*" && !slices.Contains(known(), bare):
			return fmt.Errorf("components contains %q, which is not one of %s: correct --components", bare,
				strings.Join(known(), ", "))
		case bare != name && !slices.Contains(optional(), bare):
			return fmt.Errorf("components leaves out %q, which the hub requires; components that can be left out: %s", bare,
				strings.Join(optional(), ", "))
		}
	}
	for _, name := range c.WorkloadKinds {
		if bare := strings.TrimPrefix(name, "-"); bare != "*" && !slices.Contains(families(), bare) {
			return fmt.Errorf("workloadKinds contains %q, which is not one of %s: correct --workload-kinds", bare,
				strings.Join(families(), ", "))
		}
	}
	if err := c.validateUpkeep(); err != nil {
		return err
	}
	if _, err := c.ReleaseChecks.networks(); err != nil {
		return err
	}
	if err := c.History.validate(); err != nil {
		return err
	}
	if err := c.KubeAPIServer.validate(admission.Names()); err != nil {
		return err
	}
	for _, path := range append(c.KubeAPIServer.paths(), &c.Encryption.ProviderConfig, &c.DataDir, &c.PKIDir,
		&c.Backup.Dir, &c.KubeconfigOut, &c.History.PasswordFile, &c.Etcd.CAFile, &c.Etcd.CertFile, &c.Etcd.KeyFile,
		&c.Members.Estimator.CAFile, &c.Members.Estimator.CertFile, &c.Members.Estimator.KeyFile) {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("find %s: %w", *path, err)
		}
		*path = absolute
	}
	return nil
}

// runs reports whether the configuration wants a component.
func (c *Config) runs(name string) bool {
	return !slices.Contains(optional(), name) || chosen(c.Components, name)
}

// defines reports whether the configuration wants a family of workload kinds.
func (c *Config) defines(family string) bool { return chosen(c.WorkloadKinds, family) }

// chosen reports whether a list of names selects a name. "*" selects all, and "-NAME" excludes one. A list with only
// exclusions selects all other names.
func chosen(list []string, name string) bool {
	if slices.Contains(list, "-"+name) {
		return false
	}
	takes := func(name string) bool { return name == "-*" || !strings.HasPrefix(name, "-") }
	return slices.Contains(list, "*") || slices.Contains(list, name) || len(list) > 0 && !slices.ContainsFunc(list, takes)
}

// families returns the names of workload kinds.
func families() []string {
	names := make([]string, len(workloadKinds))
	for i := range workloadKinds {
		names[i] = workloadKinds[i].name
	}
	return names
}

func (c *Config) logFile() string {
	if c.Log.File == "" {
		return filepath.Join(c.DataDir, "argosy.log")
	}
	return c.Log.File
}

// Changes returns c as a file with only the settings that differ from the defaults, and the location of the hub. A
// later version then applies its own defaults to the others.
func (c *Config) Changes() (string, error) {
	var all [2]map[string]any
	defaults := DefaultConfig()
	for i, config := range []*Config{c, &defaults} {
		text, err := config.YAML()
		if err != nil {
			return "", err
		}
		if err := yaml.Unmarshal([]byte(text), &all[i]); err != nil {
			return "", fmt.Errorf("read the configuration: %w", err)
		}
	}
	changed := difference(all[0], all[1])
	for _, key := range []string{"dataDir", "bindAddress", "port"} {
		changed[key] = all[0][key]
	}
	data, err := yaml.Marshal(changed)
	if err != nil {
		return "", fmt.Errorf("write the configuration as YAML: %w", err)
	}
	return string(data), nil
}

// difference returns the values of have that differ from base.
func difference(have, base map[string]any) map[string]any {
	changed := map[string]any{}
	for key, value := range have {
		inner, isMap := value.(map[string]any)
		was, wasMap := base[key].(map[string]any)
		switch {
		case isMap && wasMap:
			if deeper := difference(inner, was); len(deeper) > 0 {
				changed[key] = deeper
			}
		case !reflect.DeepEqual(value, base[key]):
			changed[key] = value
		}
	}
	return changed
}

// Folders returns the folders outside of the data folder that a hub with c writes to. own are used only by the hub;
// others may contain more.
func (c *Config) Folders() (own, others []string) {
	inside := func(path string) bool {
		rel, err := filepath.Rel(c.DataDir, path)
		return err == nil && filepath.IsLocal(rel)
	}
	for _, dir := range []string{c.PKIDir, c.Backup.Dir} {
		if dir != "" && !inside(dir) && !slices.Contains(own, dir) {
			own = append(own, dir)
		}
	}
	for _, file := range []string{c.Log.File, c.KubeAPIServer.Audit.LogFile, c.KubeconfigOut} {
		if dir := filepath.Dir(file); file != "" && file != "-" && !inside(file) && !slices.Contains(own, dir) &&
			!slices.Contains(others, dir) {
			others = append(others, dir)
		}
	}
	return own, others
}

// YAML returns c as a configuration file.
func (c *Config) YAML() (string, error) {
	data, err := yaml.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write the configuration as YAML: %w", err)
	}
	return string(data), nil
}
