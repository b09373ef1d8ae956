package hubcli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/server"
)

// reach reads the API group that every hub serves, so that a wrong address or missing credentials are reported in one
// sentence first.
func reach(config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = Timeout(config, RequestTimeout)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig of the hub: %w", err)
	}
	answer := d.RESTClient().Get().AbsPath("/apis/" + clusterv1alpha1.GroupVersion.Group).Do(context.Background())
	body, _ := answer.Raw()
	if err = answer.Error(); err == nil && bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		return notHub(config.Host, "it responds, but not as a Kubernetes API server", nil)
	}
	return unusable(config, err)
}

// ErrNotServing is in the error for a hub that answers, but cannot serve requests yet. `argosy status` shows why.
var ErrNotServing = errors.New("a hub that is not serving")

// ErrPlainCluster is wrapped by the error for a Kubernetes API that is no hub. Verbs of kubectl work with it anyway.
var ErrPlainCluster = errors.New("a plain cluster")

func notHub(host, why string, err error) error {
	return &Sentence{fmt.Sprintf("%s is not an Argosy hub: %s; check --kubeconfig and --karmada-context", host, why), err}
}

// NotServed returns the error for a server that does not serve what every hub does: a hub that is still starting, or no
// hub. A hub serves its health before it installs its APIs.
func NotServed(config *rest.Config, what string, err error) error {
	config = rest.CopyConfig(config)
	config.Timeout = Timeout(config, RequestTimeout)
	if d, wrong := discovery.NewDiscoveryClientForConfig(config); wrong == nil {
		var health server.Health
		raw, wrong := d.RESTClient().Get().AbsPath(server.HealthPath).DoRaw(context.Background())
		if wrong == nil && json.Unmarshal(raw, &health) == nil {
			return &Sentence{fmt.Sprintf("the hub at %s is still starting: it does not serve %s yet; try again in some seconds: `argosy status` shows whether it is ready", config.Host, what), errors.Join(ErrNotServing, err)}
		}
	}
	return notHub(config.Host, "it does not serve "+what, errors.Join(ErrPlainCluster, err))
}

// unusable returns why the server of a client configuration cannot be used as a hub, by the error of a request; nil if
// it can.
func unusable(config *rest.Config, err error) error {
	host := config.Host
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err) && anonymous(config):
		return &Sentence{fmt.Sprintf("not authorized at the hub %s: the kubeconfig has no valid credentials for it; use the one that `argosy up` wrote, or ask an administrator of the hub for one", host), err}
	case apierrors.IsNotFound(err):
		return NotServed(config, "the API group "+clusterv1alpha1.GroupVersion.Group, err)
	case apierrors.IsForbidden(err):
		return nil // it responds like an API server; later requests report more
	case errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500 &&
		!apierrors.IsTooManyRequests(err):
		return notHub(host, "it responds: "+err.Error(), err) // as an HTTPS server answers an HTTP request
	case errors.As(err, &status):
		return &Sentence{fmt.Sprintf("the hub at %s cannot serve requests now: %s; try again when it is ready: `argosy status` shows the reason", host, err), errors.Join(ErrNotServing, err)}
	case member.Untrusted(err):
		return &Sentence{fmt.Sprintf("the certificate of the hub %s is not trusted: %s; "+
			"check certificate-authority-data and tls-server-name in the kubeconfig",
			host, NoResponseCause(err, Timeout(config, RequestTimeout))), err}
	}
	return &Sentence{fmt.Sprintf("the hub at %s is not responding: %s; check that it is running and reachable "+
		"from this machine, and --kubeconfig", host, NoResponseCause(err, Timeout(config, RequestTimeout))), err}
}

// anonymous reports whether a client configuration has no credentials.
func anonymous(c *rest.Config) bool {
	return len(c.CertData) == 0 && c.CertFile == "" && c.BearerToken == "" && c.BearerTokenFile == "" &&
		c.Username == "" && c.ExecProvider == nil && c.AuthProvider == nil
}

// Sentence is an error with our own message, which wraps another error.
type Sentence struct {
	Text string
	Err  error
}

func (s *Sentence) Error() string { return s.Text }
func (s *Sentence) Unwrap() error { return s.Err }

// NameRights adds to an error which rights the user lacks, and which roles have them. The command also needs some.
func NameRights(err error, needs ...roles.Missing) error {
	if named := roles.Denied(err.Error(), needs...); named != "" {
		return fmt.Errorf("%s: %w", named, err)
	}
	return err
}

// NoResponseCause returns in a few words why a request got no response: the innermost error, without the request and
// the addresses, which the caller prints. timeout is how long the request waited.
func NoResponseCause(err error, timeout time.Duration) string {
	var request *url.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case TimedOut(err):
		return fmt.Sprintf("no answer within %s", timeout)
	case dns != nil:
		return fmt.Sprintf("the name %s cannot be resolved: %s", dns.Name, dns.Err)
	case errors.As(err, &request):
		return request.Err.Error()
	}
	return err.Error()
}

func TimedOut(err error) bool {
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &netErr) &&
		netErr.Timeout()
}

const (
	// RequestTimeout bounds one request to a member.
	RequestTimeout = 10 * time.Second
	Impersonator   = "karmada-impersonator"
)

// AskTimeout bounds the check of one part.
const AskTimeout = 5 * time.Second

// Timeout returns how long a request of a client may take: what --request-timeout says, or else the limit.
func Timeout(config *rest.Config, limit time.Duration) time.Duration {
	return cmp.Or(config.Timeout, limit)
}

// AskVersion reads the version of a member through the hub.
func AskVersion(ctx context.Context, d *discovery.DiscoveryClient, cluster string) error {
	return d.RESTClient().Get().AbsPath(proxy.Path(cluster) + "/version").Do(ctx).Error()
}

// Answers returns why all requests to a member through the hub would fail: the hub cannot reach it, or this user lacks
// the right. Discovery of kinds does not report the reason.
func Answers(ctx context.Context, config *rest.Config, cluster string) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	err = AskVersion(ctx, d, cluster)
	if apierrors.IsServiceUnavailable(err) || apierrors.IsForbidden(err) && ClusterErrorDetails(err) != nil {
		return err
	}
	return nil
}

// ClusterErrorDetails returns the details of an API error from the hub about a Cluster; nil if the error is from the
// member about its objects.
func ClusterErrorDetails(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	clusters := clusterv1alpha1.Resource("clusters")
	if d := status.Status().Details; d != nil && d.Group == clusters.Group && d.Kind == clusters.Resource {
		return d
	}
	return nil
}

// Responds returns why a member does not respond to the hub; nil if it responds, or if that is unknown: the user lacks
// the right, or the hub has no token.
func Responds(ctx context.Context, config *rest.Config, cluster string) error {
	config = rest.CopyConfig(config)
	config.Timeout = Timeout(config, AskTimeout)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	err = AskVersion(ctx, d, cluster)
	if apierrors.HasStatusCause(err, clusterv1alpha1.ReasonClusterNotReachable) || TimedOut(err) {
		return err
	}
	return nil
}
