package interpreter

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

const (
	// callTimeout is the default timeout of a webhook call.
	callTimeout = 10 * time.Second
	// answerLimit is the maximum size of a response in bytes. A broken or hostile webhook may send without end. It must
	// fit an object and a patch of all of it.
	answerLimit = 8 << 20
	// headerLimit is the maximum size of the response headers in bytes, for the same reason: net/http allows 10 MiB.
	headerLimit = 1 << 20
	// idleConnections is the number of idle connections kept per webhook.
	idleConnections = 8
)

// caller calls webhooks over HTTPS. It keeps one client per webhook until the configuration changes.
type caller struct {
	// services reads the hub's Services that webhooks refer to.
	services client.Reader

	mu      sync.Mutex
	clients map[string]*webhookClient // by name of the configuration and of the webhook
}

// webhookClient is the HTTP client of one webhook.
type webhookClient struct {
	said   digest
	http   *http.Client
	broken breaker
}

func newCaller(services client.Reader) *caller {
	return &caller{services: services, clients: map[string]*webhookClient{}}
}

// prune drops the clients of webhooks whose configuration changed or was deleted.
func (c *caller) prune(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration) {
	stay := map[string]digest{}
	for _, conf := range configurations {
		for i := range conf.Webhooks {
			h := webhook.Hook{Configuration: conf.Name, ResourceInterpreterWebhook: &conf.Webhooks[i]}
			stay[h.String()] = digestOf(h.ResourceInterpreterWebhook)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, r := range c.clients {
		if stay[name] != r.said {
			r.http.CloseIdleConnections()
			delete(c.clients, name)
		}
	}
}

func (c *caller) close() { c.prune(nil) }

// noAnswerError wraps failures to get a response in time. Only these count for the breaker.
type noAnswerError struct{ error }

func (e noAnswerError) Unwrap() error { return e.error }

// call implements webhook.Call.
func (c *caller) call(ctx context.Context, h webhook.Hook, body []byte) (answer []byte, err error) {
	r, err := c.clientFor(h)
	if err != nil {
		return nil, err
	}
	timeout := callTimeout
	if h.TimeoutSeconds != nil {
		timeout = time.Duration(*h.TimeoutSeconds) * time.Second
	}
	silent := func(err error) bool { return errors.As(err, new(noAnswerError)) && ctx.Err() == nil }
	err = r.broken.call(time.Now, silent, func() (err error) {
		asked, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		answer, err = c.post(asked, r.http, h, body)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = noAnswerError{fmt.Errorf("no answer from %s within %s", address(h), timeout)}
		}
		return err
	})
	return answer, err
}

// clientFor returns the client of a webhook.
func (c *caller) clientFor(h webhook.Hook) (*webhookClient, error) {
	said := digestOf(h.ResourceInterpreterWebhook)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.clients[h.String()]; r != nil && r.said == said {
		return r, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca := h.ClientConfig.CABundle; len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("its clientConfig.caBundle contains no PEM certificate")
		}
	}
	if s := h.ClientConfig.Service; s != nil {
		config.ServerName = s.Name + "." + s.Namespace + ".svc"
	}
	dialer := &net.Dialer{Timeout: callTimeout}
	r := &webhookClient{said: said, broken: breaker{threshold: 1}, http: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: config, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: headerLimit,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if s := h.ClientConfig.Service; s != nil {
					var err error
					if address, err = c.endpoint(ctx, s.Namespace, s.Name, address); err != nil {
						return nil, err
					}
				}
				return dialer.DialContext(ctx, network, address)
			},
		},
		// Do not follow redirects: only the configured address is trusted.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if h.ClientConfig.Service != nil {
		r.http.Transport.(*http.Transport).Proxy = nil
	}
	c.clients[h.String()] = r
	return r, nil
}

// address returns the configured URL of a webhook, for messages.
func address(h webhook.Hook) string {
	s := h.ClientConfig.Service
	if s == nil {
		if h.ClientConfig.URL == nil {
			return ""
		}
		return *h.ClientConfig.URL
	}
	port := int32(443)
	if s.Port != nil {
		port = *s.Port
	}
	path := ""
	if s.Path != nil {
		path = *s.Path
	}
	return (&url.URL{Scheme: "https", Host: net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(port))),
		Path: path}).String()
}

func (c *caller) post(ctx context.Context, to *http.Client, h webhook.Hook, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address(h), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := to.Do(request)
	if err != nil {
		return nil, noAnswerError{fmt.Errorf("%s: %w", address(h), plain(err))}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err == nil {
		err = ctx.Err() // a server that sees the hub give up may end its answer early
	}
	switch {
	case err != nil:
		return nil, noAnswerError{fmt.Errorf("read the answer from %s: %w", address(h), plain(err))}
	case response.StatusCode != http.StatusOK:
		text := strings.TrimSpace(string(bytes.ToValidUTF8(answer[:min(len(answer), 200)], []byte("?"))))
		return nil, fmt.Errorf("%s returned %s: %q", address(h), response.Status, text)
	case len(answer) > answerLimit:
		return nil, fmt.Errorf("%s returned more than %d bytes", address(h), answerLimit)
	}
	return answer, nil
}

// plain removes our own port from a network error. The port differs each time, and equal errors must have equal texts.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}

// endpoint returns host:port of a Service of the hub. The hub runs no pods, so that is its externalName or an address
// from a manual EndpointSlice. Without either it is the DNS name.
func (c *caller) endpoint(ctx context.Context, namespace, name, named string) (string, error) {
	_, port, err := net.SplitHostPort(named)
	if err != nil {
		return "", err
	}
	service := &corev1.Service{}
	err = c.services.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("there is no Service %s/%s on the hub: create it, of type ExternalName or with an EndpointSlice, or give clientConfig.url instead", namespace, name)
	}
	if err != nil {
		return "", fmt.Errorf("get Service %s/%s: %w", namespace, name, err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return net.JoinHostPort(service.Spec.ExternalName, port), nil
	}
	var slices discoveryv1.EndpointSliceList
	if err := c.services.List(ctx, &slices, client.InNamespace(namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: name}); err != nil {
		return "", fmt.Errorf("list the endpoints of Service %s/%s: %w", namespace, name, err)
	}
	for i := range slices.Items {
		for _, e := range slices.Items[i].Endpoints {
			if ready := e.Conditions.Ready; len(e.Addresses) > 0 && (ready == nil || *ready) {
				return net.JoinHostPort(e.Addresses[0], targetPort(service, &slices.Items[i], port)), nil
			}
		}
	}
	return named, nil
}

// targetPort returns the endpoint port for a port of the Service, or the same port if none is set.
func targetPort(service *corev1.Service, slice *discoveryv1.EndpointSlice, port string) string {
	for _, p := range service.Spec.Ports {
		if strconv.Itoa(int(p.Port)) != port {
			continue
		}
		for _, e := range slice.Ports {
			if e.Port != nil && (e.Name == nil && p.Name == "" || e.Name != nil && *e.Name == p.Name) {
				return strconv.Itoa(int(*e.Port))
			}
		}
		if p.TargetPort.Type == intstr.Int && p.TargetPort.IntVal > 0 {
			return strconv.Itoa(int(p.TargetPort.IntVal))
		}
	}
	return port
}
