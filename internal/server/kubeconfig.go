package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/argosy-io/argosy/internal/server/pki"
)

const (
	contextName = "argosy"
	// karmadaContext is the context that Karmada's own tools look for when told none.
	karmadaContext = "karmada-apiserver"
	adminUser      = "argosy-admin"
)

// writeKubeconfig merges access to the hub at url into file, which may be somebody's with other contexts in it.
// serverName, where there is one, is the name by which the server shows the certificate that this access trusts. What
// users set stays: the namespace of a context, and, once the file has the hub, the current context. Nothing is written
// when nothing changes.
func writeKubeconfig(file, url, serverName string, files pki.Files) error {
	config, err := clientcmd.LoadFromFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		config, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("kubeconfig %s cannot be read (%w): choose another file with --kubeconfig-out", file, reason(err))
	}
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server, cluster.TLSServerName = url, serverName
	for _, load := range []struct {
		from string
		to   *[]byte
	}{{files.Trust, &cluster.CertificateAuthorityData}, {files.Admin, &user.ClientCertificateData},
		{files.AdminKey, &user.ClientKeyData}} {
		if *load.to, err = os.ReadFile(load.from); err != nil {
			return fmt.Errorf("read the admin's certificate: %w", err)
		}
	}
	config.Clusters[contextName] = cluster
	config.AuthInfos[adminUser] = user
	known := config.Contexts[contextName] != nil
	for _, name := range []string{contextName, karmadaContext} {
		if config.Contexts[name] == nil {
			config.Contexts[name] = clientcmdapi.NewContext()
		}
		config.Contexts[name].Cluster, config.Contexts[name].AuthInfo = contextName, adminUser
	}
	if !known || config.Contexts[config.CurrentContext] == nil {
		config.CurrentContext = contextName
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("kubeconfig %s cannot be written (%w): choose another file with --kubeconfig-out", file,
			reason(err))
	}
	if err := pki.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("kubeconfig %s cannot be written (%w): choose another file with --kubeconfig-out", file,
			reason(err))
	}
	return nil
}

// AdminAccess is the administrator's kubeconfig of the configuration's hub, as it is used from elsewhere: with the hub
// at the URL server, or where the hub says it is if that is empty.
func AdminAccess(c Config, server string) ([]byte, error) {
	config, err := clientcmd.LoadFromFile(AdminKubeconfig(c.DataDir))
	if err != nil {
		return nil, fmt.Errorf("read the admin kubeconfig (%w): start the hub once, and name its folder with --data-dir or --config", err)
	}
	if server == "" {
		return clientcmd.Write(*config)
	}
	at, err := url.Parse(server)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("--server %q is not a URL such as https://argosy.example.com:7443", server)
	}
	certs, err := cert.CertsFromFile(pki.In(c.pkiDir()).Serving)
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate: %w", err)
	}
	cluster := config.Clusters[contextName]
	if cluster == nil {
		return nil, fmt.Errorf("%s has no cluster %s: restart the hub, which rewrites it", AdminKubeconfig(c.DataDir),
			contextName)
	}
	cluster.Server = server
	if certs[0].VerifyHostname(at.Hostname()) != nil {
		cluster.TLSServerName = inClusterServerName
	}
	return clientcmd.Write(*config)
}
