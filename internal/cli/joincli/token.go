package joincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/agent"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

func NewToken(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage the tokens that register clusters in Pull mode",
		Long: `A bootstrap token lets "argosy register" add a cluster that the hub cannot reach. A token registers one cluster: its first use binds it to
that cluster. Tokens are Secrets in the namespace kube-system of the hub, which deletes expired ones.`,
	}
	cmd.AddCommand(newTokenCreate(hub), newTokenList(hub), newTokenDelete(hub))
	return cmd
}

func newTokenCreate(hub *hubcli.HubFlags) *cobra.Command {
	t := &newTokenOptions{}
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token that registers a cluster in Pull mode",
		Long: `Creates a token and prints it, or, with --print-register-command, the command that uses it.

Until its first use, a token without --cluster-name registers a cluster under any name that no cluster has. Policies may send workloads there,
including Secrets. Give such a token only to somebody who may run them.

--cluster-name limits the token to that cluster from the start. Such a token also registers the cluster again if it is registered already,
which replaces the credentials of its agent: use it after the certificate of an agent expired.`,
		Example: `  argosy token create --print-register-command
  argosy token create --cluster-name eu --ttl 1h --print-register-command`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := hub.ToRESTConfig()
			if err != nil {
				return err
			}
			c, err := hub.Client()
			if err != nil {
				return err
			}
			if err := t.create(cmd.Context(), c, config, cmd.Root().CommandPath(), cmd.OutOrStdout()); err != nil {
				return err
			}
			if t.cluster == "" { // not beside the token, which programs read
				fmt.Fprintln(cmd.ErrOrStderr(), "The token registers one cluster, under any name that no cluster has, and policies may "+
					"send workloads and Secrets there; --cluster-name limits it to one name.")
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&t.ttl, "ttl", 24*time.Hour, "how long the token is valid; 0 for ever")
	fs.StringSliceVar(&t.usages, "usages", bootstrapapi.KnownTokenUsages, "usages of the token")
	fs.StringSliceVar(&t.groups, "groups", []string{pull.TokenGroup}, "groups that the token authenticates as")
	fs.StringVar(&t.description, "description", "", "description of the token")
	fs.StringVar(&t.cluster, "cluster-name", "", "the only cluster that the token registers")
	fs.BoolVar(&t.printCommand, "print-register-command", false, "print the command that registers a cluster")
	return cmd
}

// newTokenOptions are the properties of a new token.
type newTokenOptions struct {
	ttl                  time.Duration
	usages, groups       []string
	description, cluster string
	printCommand         bool
}

func (t *newTokenOptions) validate() error {
	if t.ttl < 0 {
		return fmt.Errorf("--ttl is %s and must not be negative", t.ttl)
	}
	if t.cluster != "" {
		if err := ValidName(t.cluster); err != nil {
			return err
		}
	}
	if err := bootstraputil.ValidateUsages(t.usages); err != nil {
		return fmt.Errorf("--usages: %w", err)
	}
	for _, group := range t.groups {
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return fmt.Errorf("--groups: %w", err)
		}
	}
	return nil
}

func (t *newTokenOptions) create(ctx context.Context, hub client.Client, config *rest.Config, command string,
	out io.Writer) error {
	if err := t.validate(); err != nil {
		return err
	}
	token, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return fmt.Errorf("generate a token: %w", err)
	}
	text := token
	if t.printCommand {
		if text, err = registerCommand(command, config, token, t.cluster); err != nil {
			return err
		}
	}
	if err := hub.Create(ctx, t.secret(token, time.Now())); err != nil {
		return fmt.Errorf("create the token on the hub: %w", err)
	}
	fmt.Fprintln(out, text)
	return nil
}

// secret returns the Secret of a token, in the format of Kubernetes.
func (t *newTokenOptions) secret(token string, now time.Time) *corev1.Secret {
	id, secret, _ := strings.Cut(token, ".")
	data := map[string][]byte{
		bootstrapapi.BootstrapTokenIDKey:          []byte(id),
		bootstrapapi.BootstrapTokenSecretKey:      []byte(secret),
		bootstrapapi.BootstrapTokenExtraGroupsKey: []byte(strings.Join(t.groups, ",")),
	}
	if t.description != "" {
		data[bootstrapapi.BootstrapTokenDescriptionKey] = []byte(t.description)
	}
	if t.ttl > 0 {
		data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(now.Add(t.ttl).UTC().Format(time.RFC3339))
	}
	for _, usage := range t.usages {
		data[bootstrapapi.BootstrapTokenUsagePrefix+usage] = []byte("true")
	}
	s := tokenSecret(id)
	s.Type, s.Data = bootstrapapi.SecretTypeBootstrapToken, data
	if t.cluster != "" {
		s.Annotations = map[string]string{wellknown.TokenClusterAnnotation: t.cluster,
			wellknown.TokenRenewsAnnotation: "true"}
	}
	return s
}

func tokenSecret(id string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem,
		Name: bootstraputil.BootstrapTokenSecretName(id)}}
}

// registerCommand returns the command that registers a cluster with the hub.
func registerCommand(command string, config *rest.Config, token, cluster string) (string, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return "", fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	authorities, err := cert.ParseCertsPEM(config.CAData)
	if err != nil {
		return "", errors.New("the kubeconfig of the hub contains no certificate authority, " +
			"so that the command cannot verify the hub: use the kubeconfig of `argosy kubeconfig`")
	}
	var pins []string
	for _, authority := range authorities {
		pins = append(pins, agent.Pin(authority))
	}
	host := strings.TrimPrefix(strings.TrimSuffix(config.Host, "/"), "https://")
	text := fmt.Sprintf("%s register %s --token %s --discovery-token-ca-cert-hash %s", command, host, token,
		strings.Join(pins, ","))
	if cluster != "" {
		text += " --cluster-name " + cluster
	}
	return text, nil
}

func newTokenList(hub *hubcli.HubFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens that register clusters",
		Args:  hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := hub.Client()
			if err != nil {
				return err
			}
			var secrets corev1.SecretList
			if err := c.List(cmd.Context(), &secrets, client.InNamespace(metav1.NamespaceSystem),
				client.MatchingFields{"type": string(bootstrapapi.SecretTypeBootstrapToken)}); err != nil {
				return fmt.Errorf("list the tokens of the hub: %w", err)
			}
			return printTokens(cmd.OutOrStdout(), secrets.Items, time.Now())
		},
	}
}

func printTokens(out io.Writer, secrets []corev1.Secret, now time.Time) error {
	table := hubcli.TextTable("Token", "TTL", "Expires", "Usages", "Description", "Extra Groups", "Cluster")
	for i := range secrets {
		s := &secrets[i]
		value := func(key string) string { return string(s.Data[key]) }
		ttl, expires := "<forever>", "<never>"
		if text := value(bootstrapapi.BootstrapTokenExpirationKey); text != "" {
			ttl, expires = "<invalid>", text
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				if ttl = duration.HumanDuration(at.Sub(now)); at.Before(now) {
					ttl = "<expired>"
				}
			}
		}
		var usages []string
		for _, usage := range bootstrapapi.KnownTokenUsages {
			if value(bootstrapapi.BootstrapTokenUsagePrefix+usage) == "true" {
				usages = append(usages, usage)
			}
		}
		slices.Sort(usages)
		hubcli.AddRow(table, value(bootstrapapi.BootstrapTokenIDKey)+"."+value(bootstrapapi.BootstrapTokenSecretKey),
			ttl, expires,
			cmp.Or(strings.Join(usages, ","), "<none>"), cmp.Or(value(bootstrapapi.BootstrapTokenDescriptionKey), "<none>"),
			cmp.Or(value(bootstrapapi.BootstrapTokenExtraGroupsKey), "<none>"),
			cmp.Or(s.Annotations[wellknown.TokenClusterAnnotation], "<any>"))
	}
	return hubcli.PrintTable(out, table, printers.PrintOptions{})
}

func newTokenDelete(hub *hubcli.HubFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "delete TOKEN...",
		Short: "Delete tokens that register clusters",
		Long: `Deletes tokens by their ID, the part before the dot, or by the whole token. Registered clusters are not affected: their agents have
certificates.`,
		Example: "  argosy token delete abcdef",
		Args:    hubcli.SomeArgs("the token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := hub.Client()
			if err != nil {
				return err
			}
			return deleteTokens(cmd.Context(), c, args, cmd.OutOrStdout())
		},
	}
}

func deleteTokens(ctx context.Context, hub client.Client, tokens []string, out io.Writer) error {
	ids := make([]string, len(tokens))
	for i, token := range tokens {
		if ids[i], _, _ = strings.Cut(token, "."); !bootstraputil.IsValidBootstrapTokenID(ids[i]) {
			return fmt.Errorf("%q is neither a token nor the ID of one, which has six lowercase letters and digits", token)
		}
	}
	for _, id := range ids {
		switch err := hub.Delete(ctx, tokenSecret(id)); {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the hub has no token %s; `argosy token list` lists its tokens", id)
		case err != nil:
			return fmt.Errorf("delete token %s: %w", id, err)
		}
		fmt.Fprintf(out, "bootstrap token %q deleted\n", id)
	}
	return nil
}
