package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/member"
)

// Registration adds a cluster in Pull mode to a hub. The protocol is that of Karmada, so the hub may be one of Karmada.
type Registration struct {
	// Endpoint is host and port of the hub.
	Endpoint string
	// Token is a bootstrap token of the hub.
	Token string
	// Pins are hashes of the public keys of the hub's certificate authorities. One must match, unless Unverified is set.
	Pins       []string
	Unverified bool
	// Timeout bounds each wait: for the hub, for its signature, and for a certificate.
	Timeout time.Duration
	// Lifetime is the requested lifetime of the agent's certificate. The hub may limit it.
	Lifetime time.Duration

	// Cluster is the name of the cluster. Spec has its ID and properties.
	Cluster string
	Spec    clusterv1alpha1.ClusterSpec
	// Verify gets the identity of the hub before the Cluster is created. Its error ends the registration.
	Verify func(hub string) error
	// Report gets each step.
	Report func(format string, args ...any)
}

const (
	// pollPeriod is the interval of requests for what the hub is about to write.
	pollPeriod = 500 * time.Millisecond
	// requestTimeout bounds one request to the hub.
	requestTimeout = 10 * time.Second
)

// Register registers the cluster and returns the kubeconfig of its agent.
func (r *Registration) Register(ctx context.Context) ([]byte, error) {
	// 1. Verify the hub.
	r.Endpoint = strings.TrimSuffix(strings.TrimPrefix(r.Endpoint, "https://"), "/")
	if !bootstraputil.IsValidBootstrapToken(r.Token) {
		return nil, errors.New("the token is malformed: it has the form abcdef.0123456789abcdef; " +
			"`argosy token create` on the hub creates one")
	}
	authorities, err := r.discover(ctx)
	if err != nil {
		return nil, err
	}
	r.Report("the hub at %s is verified", r.Endpoint)

	// 2. Grant the agent its permissions.
	token := &rest.Config{Host: "https://" + r.Endpoint, BearerToken: r.Token, Timeout: requestTimeout, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: authorities}}
	registrar, err := r.requestCertificate(ctx, token, pull.Registrar, "agent-rbac-generator-"+r.Cluster)
	if err != nil {
		return nil, fmt.Errorf("get permission to register cluster %q: %w", r.Cluster, err)
	}
	exists, err := r.isRegistered(ctx, registrar.config)
	if err != nil {
		return nil, err
	}
	if !exists {
		if err := r.grant(ctx, registrar.config); err != nil {
			return nil, err
		}
		r.Report("the hub grants permissions to the agent")
	}

	// 3. Get the agent's certificate, and create the Cluster with it.
	agent, err := r.requestCertificate(ctx, token, pull.User(r.Cluster), r.Cluster)
	if err != nil {
		return nil, fmt.Errorf("get a certificate for the agent of cluster %q: %w", r.Cluster, err)
	}
	r.Report("the hub signed the certificate of the agent, which is valid until %s",
		agent.until.UTC().Format(time.RFC3339))
	if !exists {
		if err := r.createCluster(ctx, agent.config); err != nil {
			return nil, err
		}
		r.Report("cluster %q is in the fleet", r.Cluster)
	}
	return agent.kubeconfig()
}

// discover returns the certificate authorities of the hub. It reads the ConfigMap cluster-info without verification,
// checks its signature with the token and its authorities with the pins, and reads it again with these authorities.
func (r *Registration) discover(ctx context.Context) ([]byte, error) {
	insecure := rest.TLSClientConfig{Insecure: true}
	first, err := r.clusterInfo(ctx, insecure)
	if err != nil {
		return nil, err
	}
	info, err := clientcmd.Load([]byte(first))
	if err != nil || len(info.Clusters) != 1 {
		return nil, fmt.Errorf("the ConfigMap %s of the hub contains no kubeconfig with one cluster", pull.ClusterInfo)
	}
	var authorities []byte
	for _, c := range info.Clusters {
		authorities = c.CertificateAuthorityData
	}
	if len(r.Pins) == 0 {
		if !r.Unverified {
			return nil, errors.New("--discovery-token-ca-cert-hash is missing: `argosy token create --print-register-command` " +
				"on the hub prints it; --discovery-token-unsafe-skip-ca-verification trusts the token alone")
		}
		return authorities, nil
	}
	certificates, err := cert.ParseCertsPEM(authorities)
	if err != nil {
		return nil, fmt.Errorf("the ConfigMap %s of the hub contains no certificate authority: %w", pull.ClusterInfo, err)
	}
	if !slices.ContainsFunc(certificates, func(c *x509.Certificate) bool {
		return slices.ContainsFunc(r.Pins, func(pin string) bool { return strings.EqualFold(pin, Pin(c)) })
	}) {
		return nil, fmt.Errorf("the server at %s is not the hub: none of its certificate authorities has the hash in "+
			"--discovery-token-ca-cert-hash; check the endpoint, and create a new command on the hub if its keys were renewed",
			r.Endpoint)
	}
	second, err := r.clusterInfo(ctx, rest.TLSClientConfig{CAData: authorities})
	if err != nil {
		return nil, err
	}
	if first != second {
		return nil, fmt.Errorf("the server at %s is not the hub: it sent another ConfigMap %s over the verified connection",
			r.Endpoint, pull.ClusterInfo)
	}
	return authorities, nil
}

// Pin returns the hash of the public key of a certificate, as kubeadm writes it.
func Pin(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// clusterInfo returns the kubeconfig in the ConfigMap cluster-info, after a check of its signature. It waits for the
// signature of a new token.
func (r *Registration) clusterInfo(ctx context.Context, tls rest.TLSClientConfig) (string, error) {
	c, err := kubernetes.NewForConfig(&rest.Config{Host: "https://" + r.Endpoint, TLSClientConfig: tls,
		Timeout: requestTimeout, QPS: -1})
	if err != nil {
		return "", fmt.Errorf("endpoint %q: %w", r.Endpoint, err)
	}
	id, secret, _ := strings.Cut(r.Token, ".")
	var info *corev1.ConfigMap // the last that was read
	var last error
	err = wait.PollUntilContextTimeout(ctx, pollPeriod, r.Timeout, true, func(ctx context.Context) (bool, error) {
		var read *corev1.ConfigMap
		read, last = c.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, pull.ClusterInfo, metav1.GetOptions{})
		if last != nil {
			return false, nil
		}
		info = read
		return info.Data[bootstrapapi.JWSSignatureKeyPrefix+id] != "", nil
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case info == nil:
		return "", fmt.Errorf("read the ConfigMap %s of the hub at %s: %w; check the endpoint, and that the hub permits "+
			"anonymous requests", pull.ClusterInfo, r.Endpoint, last)
	case err != nil:
		return "", fmt.Errorf("the hub does not know token %s: it has expired, was deleted, or is for another hub; "+
			"create a new one with `argosy token create` on the hub", id)
	}
	text := info.Data[bootstrapapi.KubeConfigKey]
	if !jws.DetachedTokenIsValid(info.Data[bootstrapapi.JWSSignatureKeyPrefix+id], text, id, secret) {
		return "", fmt.Errorf("token %s does not match the signature of the hub: its second part is wrong, or the server "+
			"at %s is not the hub", id, r.Endpoint)
	}
	return text, nil
}

// identity is a user of the hub with a client certificate.
type identity struct {
	config *rest.Config
	until  time.Time
}

// requestCertificate requests a client certificate as the token, and returns its user.
func (r *Registration) requestCertificate(ctx context.Context, token *rest.Config, user,
	name string) (identity, error) {
	c, err := kubernetes.NewForConfig(token)
	if err != nil {
		return identity{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("generate a key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return identity{}, fmt.Errorf("encode a key: %w", err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, certificateSubject(user), key)
	if err != nil {
		return identity{}, fmt.Errorf("create a certificate request: %w", err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + utilrand.String(5),
			Labels: map[string]string{workv1alpha2.SystemLabel: "true"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: cert.CertificateRequestBlockType, Bytes: request}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		}}
	if r.Lifetime > 0 {
		csr.Spec.ExpirationSeconds = new(int32(r.Lifetime / time.Second))
	}
	requests := c.CertificatesV1().CertificateSigningRequests()
	if _, err := requests.Create(ctx, csr, metav1.CreateOptions{}); err != nil {
		if apierrors.IsUnauthorized(err) {
			return identity{}, errors.New("the hub rejects the token: it has expired, was deleted, or cannot authenticate; " +
				"create a new one with `argosy token create` on the hub")
		}
		return identity{}, fmt.Errorf("request a certificate of %s: %w", user, err)
	}
	var signed []byte
	err = wait.PollUntilContextTimeout(ctx, pollPeriod, r.Timeout, true, func(ctx context.Context) (bool, error) {
		is, err := requests.Get(ctx, csr.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range is.Status.Conditions {
			if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
				return false, fmt.Errorf("the hub refuses it: %s", condition.Message)
			}
		}
		signed = is.Status.Certificate
		return len(signed) > 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return identity{}, fmt.Errorf("the hub has not signed the request %s after %s: check that its controllers run, "+
			"or run `kubectl certificate approve %s` on a hub that approves by hand", csr.Name, r.Timeout, csr.Name)
	}
	if err != nil {
		return identity{}, err
	}
	chain, err := cert.ParseCertsPEM(signed)
	if err != nil {
		return identity{}, fmt.Errorf("read the certificate of %s: %w", user, err)
	}
	return identity{until: chain[0].NotAfter, config: &rest.Config{Host: token.Host, Timeout: requestTimeout, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: token.CAData, CertData: signed, KeyData: keyPEM}}}, nil
}

// certificateSubject returns the template of a certificate request of a user.
func certificateSubject(user string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{pull.Group}}}
}

// kubeconfig returns the kubeconfig of the identity.
func (i identity) kubeconfig() ([]byte, error) {
	const name = "hub"
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: i.config.Host,
			CertificateAuthorityData: i.config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: i.config.CertData,
			ClientKeyData: i.config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig of the agent: %w", err)
	}
	return bytes.TrimSpace(data), nil
}

// isRegistered reports whether the hub has the Cluster. If so, a hub of Argosy judges the certificate request, because
// a token may replace the credentials of the agent. A hub of Karmada does not: that is an error.
func (r *Registration) isRegistered(ctx context.Context, config *rest.Config) (exists bool, err error) {
	c, err := typed(config)
	if err != nil {
		return false, err
	}
	cluster := &clusterv1alpha1.Cluster{}
	switch err := c.Get(ctx, client.ObjectKey{Name: r.Cluster}, cluster); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("check whether the hub has cluster %q: %w", r.Cluster, err)
	}
	argosy, err := isArgosy(config)
	switch {
	case err != nil:
		return false, err
	case !argosy:
		return false, fmt.Errorf("cluster %q is registered already: choose another name, or unregister it first", r.Cluster)
	case cluster.Spec.ID != "" && cluster.Spec.ID != r.Spec.ID:
		return false, fmt.Errorf("the name %q belongs to another cluster (id %s; this one has id %s): choose another name",
			r.Cluster, cluster.Spec.ID, r.Spec.ID)
	}
	return true, nil
}

// isArgosy reports whether a hub is one of Argosy.
func isArgosy(config *rest.Config) (bool, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, err
	}
	groups, err := d.ServerGroups()
	if err != nil {
		return false, fmt.Errorf("list the API groups of the hub: %w", err)
	}
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == releasev1alpha1.GroupVersion.Group
	}), nil
}

// grant creates the permissions of the agent. A hub of Argosy replaces them with its own, which are the same.
func (r *Registration) grant(ctx context.Context, config *rest.Config) error {
	c, err := typed(config)
	if err != nil {
		return err
	}
	grants := pull.GrantsOf(r.Cluster)
	objects := []client.Object{&grants.ClusterRole, &grants.ClusterRoleBinding}
	for i := range grants.Roles {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: grants.Roles[i].Namespace,
			Labels: map[string]string{workv1alpha2.SystemLabel: "true"}}}, &grants.Roles[i], &grants.RoleBindings[i])
	}
	for _, obj := range objects {
		if err := c.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("grant permissions to the agent of cluster %q: create %T %s: %w", r.Cluster, obj, obj.GetName(),
				err)
		}
	}
	return nil
}

// createCluster creates the Cluster as its agent, after the hub was verified. The permissions are new, so the hub may
// not know them at once.
func (r *Registration) createCluster(ctx context.Context, config *rest.Config) error {
	c, err := typed(config)
	if err != nil {
		return err
	}
	identity := ""
	if err := retryForbidden(ctx, func() (err error) {
		identity, err = member.Identity(ctx, c)
		return err
	}); err != nil {
		return err
	}
	if r.Verify != nil {
		if err := r.Verify(identity); err != nil {
			return err
		}
	}
	r.Spec.SyncMode = clusterv1alpha1.Pull
	if err := retryForbidden(ctx, func() error {
		return c.Create(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: r.Cluster}, Spec: r.Spec})
	}); err != nil {
		return fmt.Errorf("create cluster %q on the hub: %w", r.Cluster, err)
	}
	return nil
}

// retryForbidden calls a request until it is not forbidden any more, for a limited time.
func retryForbidden(ctx context.Context, request func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, requestTimeout, true, func(context.Context) (bool, error) {
		last = request()
		return !apierrors.IsForbidden(last), nil
	})
	if last != nil {
		return last
	}
	return err
}

// typed returns a client of the kinds of Argosy.
func typed(config *rest.Config) (client.Client, error) {
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: s})
}
