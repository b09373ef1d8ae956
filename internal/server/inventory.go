package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/cert"

	"github.com/argosy-io/argosy/internal/controller/inventory"
	core "github.com/argosy-io/argosy/internal/core/cluster/inventory"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

// InventoryConfig is where the hub publishes its clusters for programs that work in several clusters.
type InventoryConfig struct {
	// Namespace of the ClusterProfiles; empty for none.
	Namespace string `json:"namespace"`
	// Server is the URL of the hub for these programs. Empty: the address at which the hub serves.
	Server string `json:"server,omitempty"`
	// CertificateAuthority is a file with the authorities of the certificate at that URL, in PEM. Empty: the hub's own.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
	// Decisions publishes the clusters of each ResourceBinding as PlacementDecisions of SIG Multicluster.
	Decisions bool `json:"decisions"`
}

func (c *InventoryConfig) bindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Namespace, "inventory-namespace", c.Namespace,
		"namespace in which the hub writes a ClusterProfile for each cluster; empty for none")
	fs.StringVar(&c.Server, "inventory-server", c.Server,
		"URL of the hub in ClusterProfiles, such as that of a load balancer (default the address at which the hub serves)")
	fs.StringVar(&c.CertificateAuthority, "inventory-certificate-authority", c.CertificateAuthority,
		"file with the certificate authorities of that URL, in PEM, if a load balancer or --tls-cert-file has a certificate "+
			"of another authority than the hub's own")
	fs.BoolVar(&c.Decisions, "inventory-decisions", c.Decisions,
		"publish the clusters of each ResourceBinding as PlacementDecisions of SIG Multicluster in its namespace")
}

func (c *InventoryConfig) validate() error {
	if wrong := validation.IsDNS1123Label(c.Namespace); c.Namespace != "" && len(wrong) > 0 {
		return fmt.Errorf("inventory.namespace %q is not the name of a namespace (%s): correct --inventory-namespace",
			c.Namespace, strings.Join(wrong, ", "))
	}
	if c.Decisions && c.Namespace == "" {
		return errors.New("inventory.decisions refers to ClusterProfiles, and inventory.namespace is empty: set " +
			"--inventory-namespace, or remove --inventory-decisions")
	}
	if u, err := url.Parse(c.Server); c.Server != "" && (err != nil || u.Scheme != "https" || u.Host == "" ||
		u.RawQuery+u.Fragment != "" || u.User != nil) {
		return errors.New("inventory.server must be a URL such as https://hub.example.com:7443: correct --inventory-server")
	}
	return nil
}

// inventory returns what the ClusterProfiles say of this hub.
func (h *Hub) inventory() (inventory.Options, error) {
	file := cmp.Or(h.config.Inventory.CertificateAuthority, h.files.Trust)
	authorities, err := os.ReadFile(file)
	if err != nil {
		return inventory.Options{}, fmt.Errorf("read the certificate authorities of ClusterProfiles: %w", err)
	}
	if _, err := cert.ParseCertsPEM(authorities); err != nil {
		return inventory.Options{}, fmt.Errorf("read the certificate authorities of ClusterProfiles in %s: %w: correct "+
			"--inventory-certificate-authority", file, err)
	}
	server := h.url
	if h.config.Inventory.Server != "" {
		server = strings.TrimSuffix(h.config.Inventory.Server, "/")
	}
	access := func(cluster string) core.Access {
		return core.Access{Server: server + proxy.Path(cluster), Authorities: authorities}
	}
	return inventory.Options{Namespace: h.config.Inventory.Namespace, Decisions: h.config.Inventory.Decisions,
		Access: access}, nil
}
