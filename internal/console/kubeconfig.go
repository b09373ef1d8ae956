package console

import (
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// memberConfig reads a kubeconfig that a user pasted. The hub acts on it, so it must contain everything in itself:
// nothing in it is run, no file of the hub is read, and the hub verifies the member's certificate.
func memberConfig(text []byte) (*rest.Config, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("paste a kubeconfig")
	}
	if len(text) > maxKubeconfig {
		return nil, fmt.Errorf("the kubeconfig is larger than %d KiB", maxKubeconfig>>10)
	}
	read, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("this is not a kubeconfig: %w", err)
	}
	name := read.CurrentContext
	if name == "" && len(read.Contexts) == 1 {
		for only := range read.Contexts {
			name = only
		}
	}
	at := read.Contexts[name]
	if at == nil {
		return nil, fmt.Errorf("the kubeconfig has no current context: set current-context")
	}
	cluster, user := read.Clusters[at.Cluster], read.AuthInfos[at.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("context %q names a cluster or user that the kubeconfig does not have", name)
	}
	refused := func(entry, why string) error {
		return fmt.Errorf("%s in the kubeconfig is refused: %s", entry, why)
	}
	const inline, runs = "include the data itself, as `kubectl config view --flatten --minify` prints it",
		"the hub runs no programs of a kubeconfig; use a token or a client certificate, or run `argosy join` yourself"
	switch address, err := url.Parse(cluster.Server); {
	case user.Exec != nil:
		return nil, refused("exec of user "+at.AuthInfo, runs)
	case user.AuthProvider != nil:
		return nil, refused("auth-provider of user "+at.AuthInfo, runs)
	case user.ClientCertificate != "" && len(user.ClientCertificateData) == 0:
		return nil, refused("client-certificate of user "+at.AuthInfo, inline)
	case user.ClientKey != "" && len(user.ClientKeyData) == 0:
		return nil, refused("client-key of user "+at.AuthInfo, inline)
	case user.TokenFile != "":
		return nil, refused("tokenFile of user "+at.AuthInfo, inline)
	case user.Username != "" || user.Password != "":
		return nil, refused("username of user "+at.AuthInfo, "use a token or a client certificate")
	case user.Impersonate != "" || len(user.ImpersonateGroups) > 0 || user.ImpersonateUID != "" ||
		len(user.ImpersonateUserExtra) > 0:
		return nil, refused("as of user "+at.AuthInfo, "use the credentials of a user with cluster-admin rights")
	case cluster.CertificateAuthority != "" && len(cluster.CertificateAuthorityData) == 0:
		return nil, refused("certificate-authority of cluster "+at.Cluster, inline)
	case cluster.ProxyURL != "":
		return nil, refused("proxy-url of cluster "+at.Cluster, "join this cluster with `argosy join`")
	case cluster.InsecureSkipTLSVerify:
		return nil, refused("insecure-skip-tls-verify of cluster "+at.Cluster,
			"give certificate-authority-data, so that the hub knows which cluster answers")
	case err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil:
		return nil, refused("server of cluster "+at.Cluster, "it must be an https address")
	case user.Token == "" && (len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0):
		return nil, refused("user "+at.AuthInfo, "it has no token and no client certificate with key")
	}
	// Only what was checked is used.
	return &rest.Config{Host: cluster.Server, BearerToken: user.Token, TLSClientConfig: rest.TLSClientConfig{
		ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
		CertData: user.ClientCertificateData, KeyData: user.ClientKeyData}}, nil
}
