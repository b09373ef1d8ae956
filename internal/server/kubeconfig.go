package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/argosy-io/argosy/internal/server/pki"
)

const (
	contextName = "argosy"
	// karmadaContext is the context that Karmada's own tools look for when told none.
	karmadaContext = "karmada-apiserver"
	adminUser      = "argosy-admin"
)

// writeKubeconfig merges access to the hub at url into file, which may be somebody's with other contexts in it, and
// makes it current. serverName, where there is one, is the name by which the server shows the certificate that this access trusts.
// Nothing is written when nothing changes.
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
	}{{files.Trust, &cluster.CertificateAuthorityData}, {files.Admin, &user.ClientCertificateData}, {files.AdminKey, &user.ClientKeyData}} {
		if *load.to, err = os.ReadFile(load.from); err != nil {
			return fmt.Errorf("read the admin's certificate: %w", err)
		}
	}
	config.Clusters[contextName] = cluster
	config.AuthInfos[adminUser] = user
	for _, name := range []string{contextName, karmadaContext} {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: adminUser}
	}
	config.CurrentContext = contextName
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("kubeconfig %s cannot be written (%w): choose another file with --kubeconfig-out", file, reason(err))
	}
	if err := pki.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("kubeconfig %s cannot be written (%w): choose another file with --kubeconfig-out", file, reason(err))
	}
	return nil
}
