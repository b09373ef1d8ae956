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
	// karmadaContext is the default context of Karmada's own tools, guideContext the one that guides pass to them.
	karmadaContext = "karmada-apiserver"
	guideContext   = "karmada"
	adminUser      = "argosy-admin"
)

// writeKubeconfig merges access to the hub at url into file, which may be a user's file with other contexts.
// serverName, if set, is the server name (SNI) that selects the certificate that this access trusts. It keeps the
// namespace of a context, and the current context once the file has the hub. It writes nothing if nothing changed.
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
	for _, name := range []string{contextName, karmadaContext, guideContext} {
		if c := config.Contexts[name]; name == guideContext && c != nil && c.Cluster != contextName {
			continue // it is the user's
		}
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

// AdminAccess returns the administrator's kubeconfig of the hub for use elsewhere. server is the URL of the hub; if it
// is empty, the hub's own URL is used.
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
	certs, err := cert.CertsFromFile(pki.FilesIn(c.pkiDir()).Serving)
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
