package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/server/pki"
)

// recheck is the interval of checks of the certificates. A check also writes what "argosy certificates renew" changed
// into kubeconfigs.
const recheck = 30 * time.Second

// keepCertificates creates or renews the certificates that the hub needs now, and then does so periodically. The API
// server and the loops read renewed files by themselves.
func (h *Hub) keepCertificates() error {
	if err := h.ensureCertificates(time.Now()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(recheck); ; {
			select {
			case now := <-tick.C:
				if err := h.ensureCertificates(now); err != nil {
					klog.ErrorS(err, "renew certificates", "retry", recheck)
				}
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	}()
	h.stops = append(h.stops, func() { cancel(); <-ended })
	return nil
}

func (h *Hub) ensureCertificates(now time.Time) error {
	files, changed, err := pki.Ensure(filepath.Dir(h.files.ClusterCA), h.config.hosts(), now)
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		klog.InfoS("made certificates", "files", changed)
	}
	if err := h.writeClientCAs(files); err != nil {
		return err
	}
	serverName := h.config.KubeAPIServer.tlsServerName()
	if err := writeKubeconfig(AdminKubeconfig(h.config.DataDir), h.url, serverName, files); err != nil {
		return err
	}
	if h.config.KubeconfigOut != "" {
		return writeKubeconfig(h.config.KubeconfigOut, h.url, serverName, files)
	}
	return nil
}

// clientCAs returns the file of the authorities that client certificates are verified with: the hub's, and the user's.
func (h *Hub) clientCAs() string { return filepath.Join(h.config.DataDir, "client-ca.crt") }

func (h *Hub) writeClientCAs(files pki.Files) error {
	var all []byte
	for _, file := range []string{files.Trust, h.config.KubeAPIServer.ClientCAFile} {
		if file == "" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the client CAs: %w", err)
		}
		all = append(append(all, data...), '\n')
	}
	return pki.WriteFile(h.clientCAs(), all, 0o644)
}

// hosts returns the names and addresses that the hub's serving certificate has.
func (c *Config) hosts() []string {
	names := hosts(c.BindAddress)
	for _, name := range c.TLSSANs {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// hosts returns the names under which clients may reach a server bound to address.
func hosts(address string) []string {
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
		serviceIP, "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	ip := net.ParseIP(address)
	if !ip.IsUnspecified() {
		return append(names, address)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return names // the addresses of unreadable interfaces are left out
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() && !slices.Contains(names, n.IP.String()) {
			names = append(names, n.IP.String())
		}
	}
	return names
}

// reachable returns an address at which this machine reaches a server bound to address.
func reachable(address string) string {
	switch ip := net.ParseIP(address); {
	case ip.Equal(net.IPv4zero):
		return "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		return "::1"
	default:
		return fmt.Sprint(ip)
	}
}
