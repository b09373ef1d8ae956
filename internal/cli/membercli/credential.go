package membercli

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/auth/exec"
	"k8s.io/client-go/util/cert"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/cluster/inventory"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

// leastLifetime is the shortest lifetime of a token that a Kubernetes API server issues.
const leastLifetime = 10 * time.Minute

func NewCredential(hub *hubcli.HubFlags) *cobra.Command {
	o := &credential{now: time.Now}
	cmd := &cobra.Command{
		Use:   "credential",
		Short: "Print a credential of the hub for the clusters of ClusterProfiles (for other programs)",
		Long: `Prints the credential of a user of the hub as an ExecCredential. Programs that work in several clusters, such as Kueue and controllers on
multicluster-runtime, run it to reach the clusters of ClusterProfiles through the hub. Set provideClusterInfo to true where you name it
as the plugin of the access provider "argosy".

The credential is that of the kubeconfig, or with --service-account a new token of a service account of the hub. It is printed only
for the proxies of this hub: the address and the certificate authorities must be those of the kubeconfig.`,
		Example: `  argosy credential --kubeconfig hub.kubeconfig
  argosy credential --kubeconfig hub.kubeconfig --service-account kueue-system/kueue --lifetime 15m`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := hub.Locate()
			if err != nil {
				return err
			}
			obj, cluster, err := exec.LoadExecCredentialFromEnv()
			if err != nil {
				return fmt.Errorf("a program that connects to the cluster of a ClusterProfile runs this command, with "+
					"provideClusterInfo set to true: %w", err)
			}
			answer, err := o.answer(cmd.Context(), config, obj, cluster)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(answer)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.account, "service-account", "",
		"service account of the hub to create a token for, NAMESPACE/NAME (default: the user of the kubeconfig)")
	fs.DurationVar(&o.lifetime, "lifetime", 15*time.Minute,
		"how long the credential is used before a new one is requested; at least 10m")
	return cmd
}

// credential answers a program that connects to the cluster of a ClusterProfile.
type credential struct {
	account  string
	lifetime time.Duration
	now      func() time.Time
}

// answer returns the ExecCredential for a request. cluster is where the program connects to.
func (o *credential) answer(ctx context.Context, hub *rest.Config, request any, cluster *rest.Config) (any, error) {
	if o.lifetime < leastLifetime {
		return nil, fmt.Errorf("--lifetime is %s and must be at least %s", o.lifetime, leastLifetime)
	}
	version, config := clientauthv1.SchemeGroupVersion, []byte(nil)
	switch r := request.(type) {
	case *clientauthv1.ExecCredential:
		config = r.Spec.Cluster.Config.Raw
	case *clientauthv1beta1.ExecCredential:
		version, config = clientauthv1beta1.SchemeGroupVersion, r.Spec.Cluster.Config.Raw
	}
	if err := checkDestination(hub, cluster, config); err != nil {
		return nil, err
	}
	status, err := o.credential(ctx, hub)
	if err != nil {
		return nil, err
	}
	if latest := o.now().Add(o.lifetime); status.ExpirationTimestamp == nil || status.ExpirationTimestamp.After(latest) {
		status.ExpirationTimestamp = &metav1.Time{Time: latest}
	}
	return &clientauthv1.ExecCredential{TypeMeta: metav1.TypeMeta{APIVersion: version.String(), Kind: "ExecCredential"},
		Status: status}, nil
}

// checkDestination returns an error unless a program connects to the proxy of this hub: it sends the credential there,
// and whoever writes a ClusterProfile decides where that is. config is the extension of the ClusterProfile.
func checkDestination(hub, cluster *rest.Config, config []byte) error {
	plugin := inventory.Plugin{}
	if err := json.Unmarshal(config, &plugin); err != nil || len(validation.IsDNS1123Label(plugin.Cluster)) > 0 {
		return fmt.Errorf("the ClusterProfile for %s is not of a hub of Argosy: its access provider %q names no cluster",
			cluster.Host, inventory.Manager)
	}
	if err := rest.LoadTLSFiles(hub); err != nil {
		return fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	want := proxy.Config(hub, plugin.Cluster).Host
	known, err := cert.ParseCertsPEM(hub.CAData)
	switch {
	case cluster.Host != want:
		return fmt.Errorf("the credential is not for %s: the hub of the kubeconfig serves cluster %q at %s. Use the address "+
			"of the ClusterProfile in the kubeconfig, or set inventory.server in the hub's configuration", cluster.Host,
			plugin.Cluster, want)
	case cluster.ServerName != "" && cluster.ServerName != hub.ServerName:
		return fmt.Errorf("the credential is not for a server with the name %q in its certificate", cluster.ServerName)
	case cluster.Insecure:
		return errors.New("the credential is not for a connection that does not verify the certificate of the hub")
	case err != nil:
		return fmt.Errorf("the kubeconfig of the hub has no certificate authorities to compare those of the ClusterProfile "+
			"with: %w", err)
	}
	given, err := cert.ParseCertsPEM(cluster.CAData)
	if err != nil {
		return fmt.Errorf("read the certificate authorities of the ClusterProfile: %w", err)
	}
	if slices.ContainsFunc(given, func(g *x509.Certificate) bool {
		return !slices.ContainsFunc(known, g.Equal)
	}) {
		return fmt.Errorf("the ClusterProfile of cluster %q has a certificate authority that the kubeconfig of the hub does "+
			"not have: check who wrote it, and renew the kubeconfig if the hub's keys were replaced", plugin.Cluster)
	}
	return nil
}

// credential returns a credential of the hub, with its end if it is known.
func (o *credential) credential(ctx context.Context, hub *rest.Config) (*clientauthv1.ExecCredentialStatus, error) {
	if o.account != "" {
		return o.token(ctx, hub)
	}
	if hub.Impersonate.UserName != "" {
		return nil, errors.New("the kubeconfig impersonates a user, which the credential cannot: use --service-account")
	}
	if len(hub.CertData) > 0 {
		chain, err := cert.ParseCertsPEM(hub.CertData)
		if err != nil {
			return nil, fmt.Errorf("client certificate in the kubeconfig of the hub: %w", err)
		}
		return &clientauthv1.ExecCredentialStatus{ClientCertificateData: string(hub.CertData),
			ClientKeyData: string(hub.KeyData), ExpirationTimestamp: &metav1.Time{Time: chain[0].NotAfter}}, nil
	}
	token, err := bearer(ctx, hub)
	if err != nil {
		return nil, err
	}
	status := &clientauthv1.ExecCredentialStatus{Token: token}
	claims := jwt.RegisteredClaims{}
	// A token that is no JWT has no known end.
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err == nil && claims.ExpiresAt != nil {
		status.ExpirationTimestamp = &metav1.Time{Time: claims.ExpiresAt.Time}
	}
	return status, nil
}

// token creates a token of the service account.
func (o *credential) token(ctx context.Context, hub *rest.Config) (*clientauthv1.ExecCredentialStatus, error) {
	namespace, name, ok := strings.Cut(o.account, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("--service-account is %q and must be NAMESPACE/NAME", o.account)
	}
	client, err := kubernetes.NewForConfig(hub)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	created, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(o.lifetime / time.Second))}},
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create a token of service account %s on the hub: %w", o.account, err)
	}
	return &clientauthv1.ExecCredentialStatus{Token: created.Status.Token,
		ExpirationTimestamp: new(created.Status.ExpirationTimestamp)}, nil
}

// bearer returns the token with which a client of the configuration authenticates: its own, that of a file, or that of
// a command.
func bearer(ctx context.Context, config *rest.Config) (token string, err error) {
	authorization := ""
	wrapped, err := rest.HTTPWrappersForConfig(config, roundTripper(func(r *http.Request) (*http.Response, error) {
		authorization = r.Header.Get("Authorization")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}))
	if err != nil {
		return "", fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	response, err := wrapped.RoundTrip(r)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	_ = response.Body.Close()
	token, is := strings.CutPrefix(authorization, "Bearer ")
	if !is {
		return "", errors.New("the user of the kubeconfig has neither a token nor a client certificate in it: use one that " +
			"has, or --service-account")
	}
	return token, nil
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
