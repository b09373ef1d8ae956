package member

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// The keys of a member's secret. Without a token, a kubeconfig is taken.
const (
	TokenKey      = "token"
	CABundleKey   = "caBundle"
	KubeconfigKey = "kubeconfig"
)

// ErrCredentials means that the credentials of a member are unusable; the wrapping error names what is missing.
var ErrCredentials = errors.New("unusable credentials")

// Config returns the client configuration for a member, from its Cluster and the secret in spec.secretRef. The caller
// sets rate limits, timeouts, and Dial, which is required: it gives each client its own transport, with bounded
// response headers. Credentials that would run a program or read a file on this machine are rejected.
func Config(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) (*rest.Config, error) {
	config, err := credentials(secret)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	config.Wrap(fewHeaders)
	if cluster.Spec.APIEndpoint != "" {
		config.Host = cluster.Spec.APIEndpoint
	}
	if config.Host == "" {
		return nil, fmt.Errorf("spec.apiEndpoint is empty: %w", ErrCredentials)
	}
	if cluster.Spec.InsecureSkipTLSVerification {
		config.Insecure, config.CAData = true, nil
	}
	if cluster.Spec.ProxyURL != "" {
		proxy, err := url.Parse(cluster.Spec.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("spec.proxyURL: %w: %w", err, ErrCredentials)
		}
		config.Proxy = http.ProxyURL(proxy)
		if len(cluster.Spec.ProxyHeader) > 0 {
			config.Wrap(withProxyHeader(cluster.Spec.ProxyHeader))
		}
	}
	return config, nil
}

func credentials(secret *corev1.Secret) (*rest.Config, error) {
	if token := secret.Data[TokenKey]; len(token) > 0 {
		return &rest.Config{
			BearerToken:     string(token),
			TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data[CABundleKey]},
		}, nil
	}
	raw, ok := secret.Data[KubeconfigKey]
	if !ok {
		return nil, fmt.Errorf("missing key %s (or %s): %w", TokenKey, KubeconfigKey, ErrCredentials)
	}
	kubeconfig, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w: %w", KubeconfigKey, err, ErrCredentials)
	}
	if why := refused(kubeconfig); why != "" {
		return nil, fmt.Errorf("key %s: %s: %w", KubeconfigKey, why, ErrCredentials)
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("key %s: %w: %w", KubeconfigKey, err, ErrCredentials)
	}
	return config, nil
}

// refused returns which setting in a kubeconfig from a secret is forbidden. Users who may write the secret must not
// control this machine.
func refused(kubeconfig *clientcmdapi.Config) string {
	for name, user := range kubeconfig.AuthInfos {
		switch {
		case user.Exec != nil:
			return fmt.Sprintf("user %q runs a program (exec); use a token or client certificate", name)
		case user.AuthProvider != nil:
			return fmt.Sprintf("user %q needs an auth provider; use a token or client certificate", name)
		case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 ||
			len(user.ImpersonateUserExtra) > 0:
			return fmt.Sprintf("user %q uses impersonation; give the user's own credentials", name)
		case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
			return fmt.Sprintf("user %q refers to files; put their content in the kubeconfig (kubectl config view --raw --flatten)", name)
		}
	}
	for name, cluster := range kubeconfig.Clusters {
		if cluster.CertificateAuthority != "" {
			return fmt.Sprintf("cluster %q refers to a file; put its content in the kubeconfig (kubectl config view --raw --flatten)", name)
		}
	}
	return ""
}

// withProxyHeader sends headers to the proxy that opens the tunnel to the member.
func withProxyHeader(headers map[string]string) func(http.RoundTripper) http.RoundTripper {
	connect := http.Header{}
	for name, values := range headers {
		for value := range strings.SplitSeq(values, ",") {
			connect.Add(name, strings.TrimSpace(value))
		}
	}
	return func(rt http.RoundTripper) http.RoundTripper {
		// A transport for a proxy is never shared, so it may be changed.
		if t, ok := rt.(*http.Transport); ok {
			t.ProxyConnectHeader = connect
		}
		return rt
	}
}
