package server

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

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
}

func (c *InventoryConfig) bindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Namespace, "inventory-namespace", c.Namespace,
		"namespace in which the hub writes a ClusterProfile for each cluster; empty for none")
	fs.StringVar(&c.Server, "inventory-server", c.Server,
		"URL of the hub in ClusterProfiles, such as that of a load balancer (default the address at which the hub serves)")
}

func (c *InventoryConfig) validate() error {
	if wrong := validation.IsDNS1123Label(c.Namespace); c.Namespace != "" && len(wrong) > 0 {
		return fmt.Errorf("inventory.namespace %q is not the name of a namespace (%s): correct --inventory-namespace",
			c.Namespace, strings.Join(wrong, ", "))
	}
	if u, err := url.Parse(c.Server); c.Server != "" && (err != nil || u.Scheme != "https" || u.Host == "" ||
		u.RawQuery+u.Fragment != "" || u.User != nil) {
		return errors.New("inventory.server must be a URL such as https://hub.example.com:7443: correct --inventory-server")
	}
	return nil
}

// inventory returns what the ClusterProfiles say of this hub.
func (h *Hub) inventory() (inventory.Options, error) {
	authorities, err := os.ReadFile(h.files.Trust)
	if err != nil {
		return inventory.Options{}, fmt.Errorf("read the hub's certificate authorities: %w", err)
	}
	server := h.url
	if h.config.Inventory.Server != "" {
		server = strings.TrimSuffix(h.config.Inventory.Server, "/")
	}
	return inventory.Options{Namespace: h.config.Inventory.Namespace, Access: func(cluster string) core.Access {
		return core.Access{Server: server + proxy.Path(cluster), Authorities: authorities}
	}}, nil
}
