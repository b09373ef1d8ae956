package estimator

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/utils/clock"
)

// Options configures the estimators.
type Options struct {
	// Timeout limits one call.
	Timeout time.Duration
	// ServicePrefix, ServiceNamespace and Port form the address of a cluster's estimator, which is a Service in the hub's
	// cluster: PREFIX-CLUSTER.NAMESPACE.svc.cluster.local:PORT.
	ServicePrefix    string
	ServiceNamespace string
	Port             int
	// Addresses are the addresses of other estimators as CLUSTER=HOST:PORT. The cluster * means all others, and {cluster}
	// in the address is replaced by the name.
	Addresses []string
	// SkipPull skips clusters in pull mode, whose networks are often unreachable from the hub.
	SkipPull bool
	// CAFile has the CA certificates of the estimators. Without it connections are not encrypted, unless
	// InsecureSkipVerify is set: then they are encrypted but not verified.
	CAFile             string
	InsecureSkipVerify bool
	// CertFile and KeyFile are the client certificate. They are read for each connection.
	CertFile, KeyFile string
	// Clock is used for the backoff. The default is the real clock.
	Clock clock.PassiveClock
}

const (
	everyOther  = "*"
	clusterName = "{cluster}"
)

// Validate returns the first error, with the names of the flags.
func (o Options) Validate() error {
	switch {
	case o.Timeout <= 0:
		return fmt.Errorf("--scheduler-estimator-timeout %v: give more than 0, such as 3s", o.Timeout)
	case o.Port < 1 || o.Port > 65535:
		return fmt.Errorf("--scheduler-estimator-port %d is not between 1 and 65535", o.Port)
	case o.ServicePrefix == "" || o.ServiceNamespace == "":
		return errors.New("--scheduler-estimator-service-prefix and --scheduler-estimator-service-namespace must not be empty")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("--scheduler-estimator-cert-file and --scheduler-estimator-key-file belong together: give both or none")
	case o.CertFile != "" && o.CAFile == "" && !o.InsecureSkipVerify:
		return errors.New("--scheduler-estimator-cert-file without --scheduler-estimator-ca-file: give the authority of the estimators' certificates, or --insecure-skip-estimator-verify")
	}
	_, err := o.addresses()
	return err
}

// addresses parses Addresses, by cluster.
func (o Options) addresses() (map[string]string, error) {
	all := map[string]string{}
	for _, text := range o.Addresses {
		cluster, address, ok := strings.Cut(text, "=")
		host, port, err := net.SplitHostPort(address)
		switch {
		case !ok || cluster == "" || err != nil || host == "":
			return nil, fmt.Errorf("--scheduler-estimator-address %q is not CLUSTER=HOST:PORT, such as berlin=10.0.0.1:10352 or *=estimator.{cluster}.example.com:10352", text)
		case cluster == everyOther && !strings.Contains(host, clusterName):
			return nil, fmt.Errorf("--scheduler-estimator-address %q is the same for every cluster, and each has an estimator of its own: put {cluster} into the host", text)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("--scheduler-estimator-address %q: port %q is not between 1 and 65535", text, port)
		}
		if other, twice := all[cluster]; twice && other != address {
			return nil, fmt.Errorf("--scheduler-estimator-address gives cluster %q two addresses, %s and %s", cluster, other,
				address)
		}
		all[cluster] = address
	}
	return all, nil
}

// address returns HOST:PORT of a cluster's estimator.
func (o Options) address(known map[string]string, cluster string) string {
	if address, ok := known[cluster]; ok {
		return address
	}
	if address, ok := known[everyOther]; ok {
		return strings.ReplaceAll(address, clusterName, cluster)
	}
	return net.JoinHostPort(fmt.Sprintf("%s-%s.%s.svc.cluster.local", o.ServicePrefix, cluster, o.ServiceNamespace),
		strconv.Itoa(o.Port))
}

// credentials returns the transport credentials. It reads the files once now to report errors early.
func (o Options) credentials() (credentials.TransportCredentials, error) {
	if o.CAFile == "" && !o.InsecureSkipVerify {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.InsecureSkipVerify}
	if o.CAFile != "" {
		data, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the authority of estimators: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("read the authority of estimators: %s has no PEM certificate", o.CAFile)
		}
	}
	if o.CertFile != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("read the client certificate for estimators: %w", err)
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return credentials.NewTLS(config), nil
}
