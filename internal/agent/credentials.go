package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/client-go/util/retry"
)

// CredentialsKey is the key of the kubeconfig in the Secret of an agent.
const CredentialsKey = "karmada-kubeconfig"

// credentials are those of the agent for the hub: a kubeconfig in a Secret of the member. They are the store of the
// certificate manager.
type credentials struct {
	member          kubernetes.Interface
	namespace, name string
	server          string
	authorities     *x509.CertPool
	dialer          *connrotation.Dialer
	// shared is the transport of all clients but the tunnel, so that an agent costs the hub one connection.
	shared *http.Transport

	mu      sync.Mutex
	current *tls.Certificate
}

// loadCredentials reads the credentials.
func loadCredentials(ctx context.Context, member kubernetes.Interface, namespace, name string) (*credentials, error) {
	secret, err := member.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster has no Secret %s/%s with the agent's credentials: register the cluster "+
			"with `argosy register`", namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the agent's credentials: %w", err)
	}
	at := fmt.Sprintf("Secret %s/%s", namespace, name)
	cluster, user, err := readKubeconfig(secret)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	c := &credentials{member: member, namespace: namespace, name: name, server: cluster.Server,
		authorities: x509.NewCertPool(),
		dialer:      connrotation.NewDialer((&net.Dialer{Timeout: requestTimeout, KeepAlive: 30 * time.Second}).DialContext)}
	if !c.authorities.AppendCertsFromPEM(cluster.CertificateAuthorityData) {
		return nil, fmt.Errorf("%s contains no certificate authority of the hub", at)
	}
	if c.current, err = parseKeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	c.shared = utilnet.SetTransportDefaults(c.transport())
	return c, nil
}

// readKubeconfig returns the current cluster and user of the kubeconfig in the Secret.
func readKubeconfig(secret *corev1.Secret) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	config, err := clientcmd.Load(secret.Data[CredentialsKey])
	if err != nil {
		return nil, nil, fmt.Errorf("key %s: %w", CredentialsKey, err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		return nil, nil, fmt.Errorf("key %s contains no kubeconfig with a current context", CredentialsKey)
	}
	return config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo], nil
}

func parseKeyPair(certificate, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
	}
	return &pair, nil
}

// config returns a client configuration of the hub, which always uses the current certificate.
func (c *credentials) config() *rest.Config {
	return &rest.Config{Host: c.server, UserAgent: "argosy-agent", QPS: -1, WarningHandler: rest.NoWarnings{},
		Transport: c.shared}
}

// close ends the connections to the hub.
func (c *credentials) close() { c.dialer.CloseAll() }

// transport returns a transport to the hub without HTTP/2, whose connections end when the certificate is replaced.
func (c *credentials) transport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         c.dialer.DialContext,
		TLSHandshakeTimeout: requestTimeout,
		MaxIdleConnsPerHost: 25,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.authorities,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.Current() }},
	}
}

// Current implements certificate.Store.
func (c *credentials) Current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, nil
}

// Update implements certificate.Store: it stores a new certificate in the Secret, and closes the connections with the
// old one.
func (c *credentials) Update(certificate, key []byte) (*tls.Certificate, error) {
	pair, err := parseKeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	secrets := c.member.CoreV1().Secrets(c.namespace)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		secret, err := secrets.Get(ctx, c.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		config, err := clientcmd.Load(secret.Data[CredentialsKey])
		if err != nil {
			return err
		}
		_, user, err := readKubeconfig(secret)
		if err != nil {
			return err
		}
		user = user.DeepCopy()
		user.ClientCertificateData, user.ClientKeyData = certificate, key
		config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo] = user
		if secret.Data[CredentialsKey], err = clientcmd.Write(*config); err != nil {
			return err
		}
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store the new certificate in Secret %s/%s: %w", c.namespace, c.name, err)
	}
	c.mu.Lock()
	c.current = pair
	c.mu.Unlock()
	c.dialer.CloseAll()
	return pair, nil
}

// errExpired means that the agent's certificate expired. The agent cannot get another one by itself.
var errExpired = errors.New("the certificate of the agent has expired")

// expired returns an error with what to do if the current certificate has expired.
func (c *credentials) expired(cluster string, now time.Time) error {
	current, _ := c.Current() // never fails
	if now.Before(current.Leaf.NotAfter) {
		return nil
	}
	return fmt.Errorf("%w on %s, and the clock of the agent shows %s: run `argosy token create --cluster-name %s "+
		"--print-register-command` on the hub, and the command that it prints, with --apply, in this cluster", errExpired,
		current.Leaf.NotAfter.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), cluster)
}
