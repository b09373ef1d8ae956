package joincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/agent"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/version"
)

// imageRepository is the repository of the released image.
const imageRepository = "argosy"

func NewRegister(hub *hubcli.HubFlags) *cobra.Command {
	r, seconds := &register{}, int64(0)
	cmd := &cobra.Command{
		Use:   "register ENDPOINT --token TOKEN --discovery-token-ca-cert-hash HASH --cluster-name NAME",
		Short: "Register a cluster that the hub cannot reach (Pull mode)",
		Long: `Registers the cluster with the hub at ENDPOINT, which is a host and port, and prints the manifests that run its agent; --apply applies
them. Run it where both the hub and the cluster can be reached; "argosy token create --print-register-command" prints the command.

The agent connects to the hub and acts in the cluster: the hub never connects to the cluster. The kubeconfig is that of the cluster, from
--cluster-kubeconfig, --kubeconfig or KUBECONFIG.`,
		Example: `  argosy register hub.example.com:7443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:… --cluster-name eu --apply
  argosy register hub.example.com:7443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:… --cluster-name eu > agent.yaml`,
		Args: hubcli.OneArg("the endpoint of the hub"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Endpoint, r.out, r.errOut = args[0], cmd.OutOrStdout(), cmd.ErrOrStderr()
			if hub.Namespace != "" && !cmd.Flags().Changed("agent-namespace") {
				r.namespace = hub.Namespace
			}
			if cmd.Flags().Changed("cert-expiration-seconds") {
				r.Lifetime = time.Duration(seconds) * time.Second
			}
			if err := r.validate(); err != nil {
				return err
			}
			r.kubeconfig = cmp.Or(r.kubeconfig, hub.Kubeconfig)
			e, err := r.endpoint()
			if err != nil {
				return err
			}
			if r.host = e.Config.Host; r.member == nil {
				if r.member, err = e.Client(); err != nil {
					return Unreachable(r.Cluster, r.host, err)
				}
			}
			return r.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&r.kubeconfig, "cluster-kubeconfig", "",
		"kubeconfig of the cluster (default: --kubeconfig, else KUBECONFIG)")
	fs.StringVar(&r.context, "cluster-context", "", "context of the cluster in its kubeconfig (default: the current one)")
	fs.StringVar(&r.Cluster, "cluster-name", "", "name of the cluster on the hub")
	fs.StringVar(&r.Token, "token", "", "bootstrap token of the hub")
	fs.StringSliceVar(&r.Pins, "discovery-token-ca-cert-hash", nil,
		"hash of the public key of the hub's certificate authority, sha256:HEX")
	fs.BoolVar(&r.Unverified, "discovery-token-unsafe-skip-ca-verification", false,
		"trust the hub by the token alone, without the hash of its certificate authority")
	fs.DurationVar(&r.Timeout, "discovery-timeout", 30*time.Second, "how long to wait for each answer of the hub")
	fs.DurationVar(&r.Lifetime, "cert-lifetime", 365*24*time.Hour,
		"requested lifetime of the agent's certificate, which the agent renews; the hub may limit it")
	fs.StringVar(&r.Spec.Provider, "cluster-provider", "", "provider of the cluster")
	fs.StringVar(&r.Spec.Region, "cluster-region", "", "region of the cluster")
	fs.StringSliceVar(&r.Spec.Zones, "cluster-zones", nil, "zones of the cluster, separated by commas")
	fs.StringVar(&r.image, "agent-image", imageRepository+":"+version.Get().Version, "image of the agent")
	fs.StringVar(&r.namespace, "agent-namespace", agent.DefaultNamespace,
		"namespace of the agent in the cluster, also with -n")
	fs.BoolVar(&r.apply, "apply", hub.IsKarmadactl(),
		"apply the manifests of the agent in the cluster instead of printing them")
	fs.BoolVar(&r.dryRun, "dry-run", false, "check whether the cluster can be registered, and change nothing")
	fs.Int64Var(&seconds, "cert-expiration-seconds", 0, "as --cert-lifetime, in seconds")
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "context" {
			name = "cluster-context"
		}
		return pflag.NormalizedName(name)
	})
	_ = fs.MarkHidden("cert-expiration-seconds") // fails only for an unknown flag
	hubcli.IgnoredFlags(cmd, hubcli.RegisterFlags)
	return cmd
}

// register registers a cluster in Pull mode.
type register struct {
	agent.Registration
	kubeconfig, context string
	image, namespace    string
	apply, dryRun       bool

	member      client.Client
	host        string
	out, errOut io.Writer
}

func (r *register) validate() error {
	switch {
	case r.Cluster == "":
		return errors.New("--cluster-name is missing: give the name of the cluster on the hub")
	case r.Token == "":
		return errors.New("--token is missing: `argosy token create --print-register-command` on the hub prints the command")
	case r.Timeout <= 0:
		return fmt.Errorf("--discovery-timeout is %s and must be positive", r.Timeout)
	case r.Lifetime < 10*time.Minute:
		return fmt.Errorf("--cert-lifetime is %s and must be at least 10m", r.Lifetime)
	}
	return ValidName(r.Cluster)
}

// endpoint returns the member, whose kubeconfig defaults to KUBECONFIG as in kubectl.
func (r *register) endpoint() (hubcli.Endpoint, error) {
	if r.kubeconfig == "" {
		r.kubeconfig = clientcmd.NewDefaultClientConfigLoadingRules().GetDefaultFilename()
	}
	return (&hubcli.MemberFlags{Kubeconfig: r.kubeconfig, Context: r.context}).Endpoint(r.Cluster)
}

func (r *register) run(ctx context.Context) error {
	id, err := member.ClusterID(ctx, r.member)
	if err != nil {
		return Unreachable(r.Cluster, r.host, err)
	}
	r.Spec.ID = id
	if err := r.mayRun(ctx); err != nil {
		return err
	}
	if r.dryRun {
		fmt.Fprintf(r.out, "cluster(%s) can be registered (dry run: nothing was written, and the hub was not asked)\n",
			r.Cluster)
		return nil
	}
	r.Report = func(format string, args ...any) { fmt.Fprintf(r.errOut, format+"\n", args...) }
	kubeconfig, err := r.Register(ctx)
	if err != nil {
		return err
	}
	objects := agent.Deployed{Cluster: r.Cluster, Namespace: r.namespace, Image: r.image,
		Kubeconfig: kubeconfig}.Manifests()
	if !r.apply {
		return printManifests(r.out, objects)
	}
	for _, obj := range objects {
		if err := createOrReplace(ctx, r.member, obj); err != nil {
			return fmt.Errorf("apply %T %s in cluster %q: %w", obj, obj.GetName(), r.Cluster, err)
		}
	}
	fmt.Fprintf(r.out, "cluster(%s) is registered successfully; its agent runs in namespace %s\n", r.Cluster, r.namespace)
	return nil
}

// createOrReplace creates an object, or replaces the existing one. An existing namespace or account stays.
func createOrReplace(ctx context.Context, c client.Client, obj client.Object) error {
	existing := obj.DeepCopyObject().(client.Object)
	err := c.Create(ctx, obj)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	switch obj.(type) {
	case *corev1.Namespace, *corev1.ServiceAccount:
		return nil
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), existing); err != nil {
		return err
	}
	obj.SetResourceVersion(existing.GetResourceVersion())
	return c.Update(ctx, obj)
}

// mayRun returns an error if the member has an agent that registered it under another name. It has the registration
// check whether the member belongs to another hub.
func (r *register) mayRun(ctx context.Context) error {
	lease, err := ownershipLease(ctx, r.member)
	if err != nil {
		return fmt.Errorf("read which hub manages cluster %q: %w", r.Cluster, err)
	}
	r.Verify = func(hub string) error {
		refusal, _ := tenure.Joinable(hub, r.Cluster, tenure.Read(lease), false, time.Now())
		if refusal != "" {
			return errors.New(refusal)
		}
		return nil
	}
	name, err := agentOf(ctx, r.member, r.namespace)
	if err != nil {
		return fmt.Errorf("check whether cluster %q has an agent: %w", r.Cluster, err)
	}
	if name != "" && name != r.Cluster {
		return fmt.Errorf("the cluster has an agent that registered it as %[1]q: remove it with `argosy unregister %[1]s "+
			"--cluster-kubeconfig FILE` on its hub, or use that name", name)
	}
	return nil
}

// agentOf returns the cluster as which the agent in a namespace of a member registered; empty if there is none.
func agentOf(ctx context.Context, member client.Reader, namespace string) (string, error) {
	existing := &appsv1.Deployment{}
	if err := member.Get(ctx, client.ObjectKey{Namespace: namespace, Name: agent.Name}, existing); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	for _, c := range existing.Spec.Template.Spec.Containers {
		for _, arg := range append(c.Command, c.Args...) {
			if name, is := strings.CutPrefix(arg, "--cluster-name="); is {
				return name, nil
			}
		}
	}
	return "", nil
}

// printManifests prints objects as one YAML stream.
func printManifests(out io.Writer, objects []client.Object) error {
	for _, obj := range objects {
		data, err := yaml.Marshal(obj)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}

// localMember returns the configuration of a client of the member in which this process runs, or of the member of a
// kubeconfig.
func localMember(flags *hubcli.MemberFlags) (*rest.Config, error) {
	if flags.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("this is not a pod of a cluster (%w): give --cluster-kubeconfig", err)
		}
		return config, nil
	}
	e, err := flags.Endpoint("")
	return e.Config, err
}

func NewAgent() *cobra.Command {
	o := &agent.Options{}
	flags := &hubcli.MemberFlags{}
	secret := ""
	cmd := &cobra.Command{
		Use:   "agent --cluster-name NAME",
		Short: "Run the agent of a cluster in Pull mode",
		Long: `Runs in a cluster that the hub cannot reach, and acts there for the hub: it applies what the hub sends to the cluster, and reports the
state of it. "argosy register" deploys it. Several agents of one cluster elect one that acts.

It never deletes an object because something is missing on the hub. It ends when its certificate has expired.`,
		Example:     "  argosy agent --cluster-name eu\n  argosy agent --cluster-name eu --cluster-kubeconfig eu.kubeconfig",
		Args:        hubcli.NoArgs,
		Annotations: map[string]string{hubcli.ServesAnnotation: "true"},
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			hubcli.WarnOfForeign(cmd, hubcli.AgentFlags)
			if o.Namespace, o.Secret, err = agent.ParseSecret(secret); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			if o.Member, err = localMember(flags); err != nil {
				return err
			}
			controllerruntime.SetLogger(klog.Background())
			return agent.Run(cmd.Context(), *o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Cluster, "cluster-name", "", "name of the cluster on the hub")
	fs.StringVar(&flags.Kubeconfig, "cluster-kubeconfig", "",
		"kubeconfig of the cluster (default: the service account of the pod)")
	fs.StringVar(&flags.Context, "cluster-context", "",
		"context of the cluster in its kubeconfig (default: the current one)")
	fs.StringVar(&secret, "credentials-secret", agent.DefaultNamespace+"/"+agent.SecretName,
		"Secret in the cluster with the credentials for the hub, NAMESPACE/NAME")
	fs.DurationVar(&o.StatusFrequency, "cluster-status-update-frequency", 10*time.Second,
		"interval of status updates of the cluster")
	fs.DurationVar(&o.Thresholds.Failure, "cluster-failure-threshold", 30*time.Second,
		"how long the cluster must be unhealthy before it is reported as not ready")
	fs.DurationVar(&o.Thresholds.Success, "cluster-success-threshold", 30*time.Second,
		"how long the cluster must be healthy before it is reported as ready again")
	fs.BoolVar(&o.Tunnel, "tunnel", true,
		"let the hub send requests to the cluster through this agent, such as logs, exec and metrics")
	fs.IntVar(&o.Workers, "concurrent-work-syncs", 5, "how many objects are applied at once")
	fs.IntVar(&o.WorkDeletions, "work-deletions", 10,
		"how many Works others than the hub may delete within a minute; if there are more, their objects stay")
	hubcli.ForeignFlags(fs, hubcli.AgentFlags)
	return cmd
}
