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
	"github.com/argosy-io/argosy/internal/core/interpret/webhook"
)

const (
	// callTimeout is how long a webhook may take that does not say.
	callTimeout = 10 * time.Second
	// answerLimit is how long an answer may be, in bytes: an object, and a patch of all of it.
	answerLimit = 8 << 20
	// headerLimit is how long its headers may be, in bytes.
	headerLimit = 1 << 20
	// idleConnections of one webhook are kept open.
	idleConnections = 8
)

// caller reaches webhooks over HTTPS. A webhook keeps its connections as long as its configuration stays.
type caller struct {
	// services reads the Services of the hub that webhooks are behind.
	services client.Reader

	mu      sync.Mutex
	clients map[string]*reached // by name of the configuration and of the webhook
}

// reached is how one webhook is called.
type reached struct {
	said   digest
	http   *http.Client
	broken breaker
}

func newCaller(services client.Reader) *caller {
	return &caller{services: services, clients: map[string]*reached{}}
}

// keep drops the connections of webhooks that are not as configured any more.
func (c *caller) keep(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration) {
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

func (c *caller) close() { c.keep(nil) }

// noAnswerError marks failures to get any answer in time.
type noAnswerError struct{ error }

func (e noAnswerError) Unwrap() error { return e.error }

// call implements webhook.Call.
func (c *caller) call(ctx context.Context, h webhook.Hook, body []byte) (answer []byte, err error) {
	r, err := c.reach(h)
	if err != nil {
		return nil, err
	}
	timeout := callTimeout
	if h.TimeoutSeconds != nil {
		timeout = time.Duration(*h.TimeoutSeconds) * time.Second
	}
	silent := func(err error) bool { return errors.As(err, new(noAnswerError)) && ctx.Err() == nil }
	err = r.broken.ask(time.Now, silent, func() (err error) {
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

// reach is the client of a webhook.
func (c *caller) reach(h webhook.Hook) (*reached, error) {
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
	r := &reached{said: said, broken: breaker{patience: 1}, http: &http.Client{
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
		// An answer from elsewhere is none: the configuration says where the webhook is.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if h.ClientConfig.Service != nil {
		r.http.Transport.(*http.Transport).Proxy = nil
	}
	c.clients[h.String()] = r
	return r, nil
}

// address is where a webhook is said to be.
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

// plain is an error of the network without our own port, which is another one each time: what is told twice in the same
// words is told once.
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

// endpoint is where a Service of the hub leads, as host:port; as the hub runs no pods, that is another name, or an
// address that somebody wrote into an EndpointSlice. Without either it is its name in DNS.
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

// targetPort is the port of endpoints that stands for a port of the Service; the same where nothing says otherwise.
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
