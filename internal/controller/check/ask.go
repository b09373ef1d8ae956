package check

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/release/sample"
)

// The keys of Secrets of checks.
const (
	tokenKey       = "token"
	hmacKey        = "hmac-key"
	authoritiesKey = "ca.crt"
)

// The headers that webhooks get.
const (
	idempotencyHeader = "Idempotency-Key"
	signatureHeader   = "X-Argosy-Signature"
)

// secret returns the data of a Secret in the namespace of a release; nil without a reference.
func (r *reconciler) secret(ctx context.Context, namespace string,
	ref *releasev1alpha1.ReleaseSecretReference) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	var s corev1.Secret
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &s)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Secret %s/%s: create it, or change secretRef", namespace, ref.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", ref.Name, err)
	}
	return s.Data, nil
}

// authorize sets the credentials of a Secret.
func authorize(header http.Header, secret map[string][]byte) {
	switch token := secret[tokenKey]; {
	case len(token) > 0:
		header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	case len(secret[corev1.BasicAuthUsernameKey]) > 0:
		req := http.Request{Header: header}
		req.SetBasicAuth(string(secret[corev1.BasicAuthUsernameKey]), string(secret[corev1.BasicAuthPasswordKey]))
	}
}

// webhook asks a webhook.
func (r *reconciler) webhook(ctx context.Context, rel *releasev1alpha1.Release, call release.CheckCall,
	spec *releasev1alpha1.WebhookCheck) sample.Sample {
	secret, err := r.secret(ctx, rel.Namespace, spec.SecretRef)
	if err != nil {
		return sample.Failure(err.Error())
	}
	body := call.WebhookBody(rel)
	header := http.Header{"Content-Type": {"application/json"}, idempotencyHeader: {call.Status.Key}}
	authorize(header, secret)
	if key := secret[hmacKey]; len(key) > 0 {
		mac := hmac.New(sha256.New, key)
		mac.Write(body) // never fails
		header.Set(signatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	timeout := requestTimeout
	if spec.Timeout != nil {
		timeout = spec.Timeout.Duration
	}
	return sample.OfWebhook(r.http.send(ctx, request{method: http.MethodPost, url: spec.URL, header: header, body: body,
		authorities: secret[authoritiesKey], timeout: timeout}))
}

// prometheus judges the numbers of a Prometheus by a condition.
func (r *reconciler) prometheus(ctx context.Context, rel *releasev1alpha1.Release, call release.CheckCall,
	spec *releasev1alpha1.PrometheusCheck) sample.Sample {
	condition, err := sample.NewCondition(spec.Condition, spec.Control != "")
	if err != nil {
		return sample.Failure("condition: " + err.Error())
	}
	texts := []string{spec.Query, spec.Control}
	if spec.MinSamples != nil {
		texts = append(texts, spec.MinSamples.Query)
	}
	return r.inClusters(ctx, rel, call, &spec.PrometheusServer, texts,
		func(cluster string, variables sample.Variables, query ask) sample.Sample {
			filled := func(text string) sample.Answer { return query.filled(text, variables) }
			if least := spec.MinSamples; least != nil {
				if s := sample.TooFew(filled(least.Query), least.Number); s != nil {
					return *s
				}
			}
			result := filled(spec.Query)
			if spec.Control == "" {
				return sample.OfPrometheus(condition, result, nil, cluster)
			}
			control := filled(spec.Control)
			return sample.OfPrometheus(condition, result, &control, cluster)
		})
}

// slo judges an SLO by the numbers of a Prometheus.
func (r *reconciler) slo(ctx context.Context, rel *releasev1alpha1.Release, call release.CheckCall,
	spec *releasev1alpha1.SLOCheck) sample.Sample {
	return r.inClusters(ctx, rel, call, &spec.PrometheusServer, []string{spec.Good, spec.Total},
		func(_ string, variables sample.Variables, query ask) sample.Sample {
			var window, recent sample.Events
			if sample.ChecksBudget(spec) {
				window = eventsOf(spec, spec.Window, variables, query)
			}
			if spec.MaxBurnRate != "" {
				recent = eventsOf(spec, spec.BurnRateWindow, variables, query)
			}
			return sample.OfSLO(spec, window, recent)
		})
}

// eventsOf asks for the events of an SLO in a window.
func eventsOf(spec *releasev1alpha1.SLOCheck, window string, variables sample.Variables, query ask) sample.Events {
	variables = maps.Clone(variables)
	variables[sample.WindowVariable] = window
	return sample.Events{Good: query.filled(spec.Good, variables), Total: query.filled(spec.Total, variables)}
}

// ask sends a query to the server of a check.
type ask func(query string) sample.Answer

// filled sends a query with the values of its variables.
func (a ask) filled(text string, variables sample.Variables) sample.Answer {
	query, err := variables.Fill(text)
	if err != nil {
		return sample.Answer{Err: err}
	}
	return a(query)
}

// inClusters takes a sample: once, or for each cluster of the stage if the server is in members or a text has
// {{cluster}}.
func (r *reconciler) inClusters(ctx context.Context, rel *releasev1alpha1.Release, call release.CheckCall,
	server *releasev1alpha1.PrometheusServer, texts []string,
	one func(cluster string, variables sample.Variables, query ask) sample.Sample) sample.Sample {
	if name := call.Variables(rel).MissingArgument(texts...); name != "" {
		return sample.Failure(fmt.Sprintf(
			"gate %s sets no argument %s: set it in checkRef.args of the strategy, and start another release", call.Gate, name))
	}
	query, err := r.ofServer(ctx, rel.Namespace, server)
	if err != nil {
		return sample.Failure(err.Error())
	}
	askCluster := func(cluster string) sample.Sample {
		variables := call.Variables(rel)
		variables["cluster"] = cluster
		return one(cluster, variables, func(text string) sample.Answer { return query(ctx, cluster, text) })
	}
	if server.Member == nil && !sample.PerCluster(texts...) {
		return askCluster("")
	}
	samples := make([]sample.Sample, len(call.Clusters))
	var all sync.WaitGroup
	places := make(chan struct{}, clustersAtOnce)
	for i, cluster := range call.Clusters {
		places <- struct{}{}
		all.Go(func() {
			samples[i] = askCluster(cluster)
			<-places
		})
	}
	all.Wait()
	return sample.OfClusters(call.Clusters, samples)
}

// ofServer returns the function that sends queries to the server of a check in a namespace.
func (r *reconciler) ofServer(ctx context.Context, namespace string,
	server *releasev1alpha1.PrometheusServer) (query, error) {
	if server.Member != nil {
		return r.ofMember(server.Member), nil
	}
	secret, err := r.secret(ctx, namespace, server.SecretRef)
	if err != nil {
		return nil, err
	}
	return r.ofURL(server.URL, secret), nil
}

// query sends a query to the Prometheus of a cluster, or to one for all.
type query func(ctx context.Context, cluster, query string) sample.Answer

// queryPath is the path of instant queries in the API of a Prometheus.
const queryPath = "/api/v1/query"

// ofURL sends queries to a URL.
func (r *reconciler) ofURL(address string, secret map[string][]byte) query {
	return func(ctx context.Context, _, text string) sample.Answer {
		header := http.Header{"Accept": {"application/json"}}
		authorize(header, secret)
		return r.http.send(ctx, request{method: http.MethodGet,
			url:    strings.TrimSuffix(address, "/") + queryPath + "?" + url.Values{"query": {text}}.Encode(),
			header: header, authorities: secret[authoritiesKey], timeout: requestTimeout})
	}
}

// ofMember sends queries to a Service in a cluster, through its API server.
func (r *reconciler) ofMember(service *releasev1alpha1.MemberService) query {
	return func(ctx context.Context, cluster, text string) sample.Answer {
		if len(service.Clusters) > 0 && !slices.Contains(service.Clusters, cluster) {
			return sample.Answer{Err: fmt.Errorf(
				"member.clusters of the ReleaseCheck does not list %s: add it there", cluster)}
		}
		m, err := r.Members.Get(cluster)
		if err != nil {
			return sample.Answer{Err: err}
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		resp, err := m.GetThroughService(ctx, service.Namespace, service.Scheme, service.Service, service.Port, queryPath,
			url.Values{"query": {text}})
		if err != nil {
			return sample.Answer{Err: causeOf(err, requestTimeout)}
		}
		return read(resp, requestTimeout)
	}
}
