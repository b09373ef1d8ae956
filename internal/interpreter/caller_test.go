package interpreter

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	stdlog "log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

// serving starts a TLS webhook for the names and returns its CA in the form of caBundle.
func serving(t *testing.T, names []string, answer http.HandlerFunc) (server *httptest.Server, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server = httptest.NewUnstartedServer(answer)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// healthy answers each call with "healthy".
func healthy(w http.ResponseWriter, r *http.Request) {
	var c configv1alpha1.ResourceInterpreterContext
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || r.Method != http.MethodPost ||
		r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "what is this?", http.StatusBadRequest)
		return
	}
	yes := true
	c.Response = &configv1alpha1.ResourceInterpreterResponse{UID: c.Request.UID, Successful: true, Healthy: &yes}
	c.Request = nil
	_ = json.NewEncoder(w).Encode(c)
}

func services(objs ...client.Object) client.Reader {
	return fake.NewClientBuilder().WithObjects(objs...).Build()
}

// asking returns an interpreter with one webhook that is called this way.
func asking(t *testing.T, c *caller, config admissionregistrationv1.WebhookClientConfig,
	timeout int32) interpret.Interpreter {
	t.Helper()
	conf := &configv1alpha1.ResourceInterpreterWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "conf"},
		Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{Name: "a.b.c", ClientConfig: config, TimeoutSeconds: &timeout,
			Rules: []configv1alpha1.RuleWithOperations{{
				Operations: []configv1alpha1.InterpreterOperation{"*"},
				Rule:       configv1alpha1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Kinds: []string{"*"}}}}}}}
	t.Cleanup(c.close)
	return interpret.New(webhook.New([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{conf},
		webhook.Options{Call: c.call, NewID: func() types.UID { return "1" }}))
}

var pod = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
	"metadata": map[string]any{"name": "p", "namespace": "shop"}}}

func TestWebhookIsCalledOverTLS(t *testing.T) {
	server, ca := serving(t, nil, healthy)
	url := server.URL + "/path"
	h, err := asking(t, newCaller(services()), admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
		10).Health(t.Context(), pod)
	if err != nil || h != interpret.Healthy {
		t.Errorf("%s, %v", h, err)
	}
}

func TestWebhookBehindServiceIsResolvedAndVerified(t *testing.T) {
	server, ca := serving(t, []string{"hooks.team.svc"}, healthy)
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	port, service := int32(n), int32(8443)
	meta := metav1.ObjectMeta{Namespace: "team", Name: "hooks",
		Labels: map[string]string{discoveryv1.LabelServiceName: "hooks"}}
	for name, c := range map[string]struct {
		port  *int32
		hub   []client.Object
		error string
	}{
		"another name": {port: &port, hub: []client.Object{&corev1.Service{ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}}},
		"an address": {port: &service, hub: []client.Object{
			&corev1.Service{ObjectMeta: meta,
				Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 8443}}}},
			&discoveryv1.EndpointSlice{ObjectMeta: meta, Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: &port}},
				Endpoints: []discoveryv1.Endpoint{
					{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
					{Addresses: []string{"127.0.0.1"}}}}}},
		"no Service": {error: "there is no Service team/hooks on the hub: create it, of type ExternalName or with an EndpointSlice, or give clientConfig.url instead"},
	} {
		i := asking(t, newCaller(services(c.hub...)), admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "team", Name: "hooks", Port: c.port}, CABundle: ca},
			10)
		h, err := i.Health(t.Context(), pod)
		if c.error == "" && (err != nil || h != interpret.Healthy) || c.error != "" &&
			(err == nil || !strings.Contains(err.Error(), c.error)) {
			t.Errorf("%s: %s, %v; want %q", name, h, err, c.error)
		}
	}
}

func TestWebhookFailureHasClearMessage(t *testing.T) {
	over := make(chan struct{})
	good, ca := serving(t, nil, healthy)
	_, otherCA := serving(t, nil, healthy)
	gone, goneCA := serving(t, nil, healthy)
	gone.Close()
	plain := httptest.NewServer(http.HandlerFunc(healthy))
	t.Cleanup(plain.Close)
	t.Cleanup(func() { close(over) })
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		url    string
		ca     []byte
		want   string
	}{
		"down": {url: gone.URL, ca: goneCA, want: "connection refused"},
		"500": {answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of beer", 500) },
			want: `returned 500 Internal Server Error: "out of beer"`},
		"elsewhere": {answer: func(w http.ResponseWriter,
			r *http.Request) {
			http.Redirect(w, r, good.URL, http.StatusFound)
		}, want: "returned 302 Found"},
		"by drops": {answer: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-over:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}, want: "within 1s"},
		"endless headers": {answer: func(w http.ResponseWriter, _ *http.Request) {
			for i := range 32 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 64<<10))
			}
		}, want: "header"},
		"slow": {answer: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}, want: "within 1s"},
		"nonsense": {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
			want: `is not a ResourceInterpreterContext in JSON`},
		"endless": {answer: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, answerLimit+1))
		}, want: "returned more than 8388608 bytes"},
		"not its certificate":  {url: good.URL, ca: otherCA, want: "certificate signed by unknown authority"},
		"no certificate known": {url: good.URL, want: "certificate signed by unknown authority"},
		"a caBundle of noise": {url: good.URL, ca: []byte("noise"),
			want: "its clientConfig.caBundle contains no PEM certificate"},
		"no TLS": {url: strings.Replace(plain.URL, "http:", "https:", 1), ca: ca,
			want: "server gave HTTP response to HTTPS client"},
		"breaks off": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}, want: "read the answer from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, bundle, patience := c.url, c.ca, int32(30)
			if name == "slow" || name == "by drops" {
				patience = 1
			}
			if c.answer != nil {
				server, own := serving(t, nil, c.answer)
				url, bundle = server.URL, own
			}
			h, err := asking(t, newCaller(services()), admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle},
				patience).Health(t.Context(), pod)
			if err == nil || h != interpret.Unknown || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "interpret health of Pod shop/p: interpreter webhook conf/a.b.c") {
				t.Errorf("%s, %v; want the error %q", h, err, c.want)
			}
		})
	}
}

// late is an answer that ends well once the hub has given up.
type late struct{ request *http.Request }

func (e late) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(late{r})}, nil
}

func (e late) Read([]byte) (int, error) {
	<-e.request.Context().Done()
	return 0, io.EOF
}

func TestAnswerThatEndsAfterItsDeadlineCountsAsNone(t *testing.T) {
	url := "https://webhook"
	h := webhook.Hook{Configuration: "conf", ResourceInterpreterWebhook: &configv1alpha1.ResourceInterpreterWebhook{
		Name: "a.b.c", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	answer, err := newCaller(services()).post(ctx, &http.Client{Transport: late{}}, h, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, new(noAnswerError)) {
		t.Errorf("the answer is %q, with error %v; want that there is none", answer, err)
	}
}

func TestUnresponsiveWebhookOpensBreaker(t *testing.T) {
	var silent atomic.Bool
	var asked atomic.Int32
	server, ca := serving(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if silent.Load() {
			asked.Add(1)
			panic(http.ErrAbortHandler) // the connection breaks off
		}
		healthy(w, r)
	})
	url := server.URL
	c := newCaller(services())
	i := asking(t, c, admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}, 10)
	if _, err := i.Health(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	for range 5 {
		if _, err := i.Health(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "EOF") {
			t.Errorf("error %v, want the last failure", err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	r, err := c.clientFor(webhook.Hook{Configuration: "conf",
		ResourceInterpreterWebhook: &configv1alpha1.ResourceInterpreterWebhook{Name: "other"}})
	if err != nil || r.broken.failed != 0 {
		t.Errorf("another webhook is affected: %d failures, %v", r.broken.failed, err)
	}
}

func TestOpenBreakerProbesWithBackoff(t *testing.T) {
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	slow := errors.New("slow")
	b := breaker{threshold: 2}
	asked := 0
	ask := func(answer error) error {
		return b.call(clock, func(err error) bool { return errors.Is(err, slow) }, func() error { asked++; return answer })
	}
	expect := func(what string, err, want error, n int) {
		t.Helper()
		if !errors.Is(err, want) || asked != n {
			t.Errorf("%s: %v after %d questions, want %v after %d", what, err, asked, want, n)
		}
	}
	quick := errors.New("quick")
	expect("a quick failure is none", ask(quick), quick, 1)
	expect("one slow failure is none", ask(slow), slow, 2)
	expect("an answer between makes it forget", ask(nil), nil, 3)
	expect("the first of two", ask(slow), slow, 4)
	expect("the second opens it", ask(slow), slow, 5)
	expect("then nobody asks", ask(nil), slow, 5)
	now = now.Add(firstPause)
	expect("until the pause is over", ask(slow), slow, 6)
	now = now.Add(firstPause)
	expect("the next pause is longer", ask(nil), slow, 6)
	now = now.Add(firstPause)
	_ = b.call(clock, func(error) bool { return true }, func() error {
		expect("while one asks, others do not", ask(nil), slow, 6)
		return nil
	})
	expect("an answer closes it", ask(nil), nil, 7)

	b = breaker{threshold: 1}
	_ = b.call(clock, func(error) bool { return true }, func() error { return slow })
	now = now.Add(lastPause)
	func() {
		defer func() { _ = recover() }()
		_ = b.call(clock, func(error) bool { return true }, func() error { panic("broken") })
	}()
	expect("a panic ends the probe", ask(nil), nil, 8)
}
