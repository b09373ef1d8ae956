// Package fleetmetrics serves metrics.k8s.io and custom.metrics.k8s.io on the hub from the members, for
// kubectl top and other clients of these APIs.
//
// Each member is asked as the user of the request, through the hub's proxy: the user needs get of clusters/proxy on the
// hub, and the member's RBAC decides what the user may read there. Nothing runs between requests.
package fleetmetrics

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

const (
	// maxRequests bounds the requests that are answered at once, and maxMembers the members that each of them asks at
	// once.
	maxRequests, maxMembers = 8, 16
	// memberTimeout bounds the wait for one member, requestTimeout that for all of them.
	memberTimeout, requestTimeout = 5 * time.Second, 15 * time.Second
	// retryAfter is the Retry-After in seconds of a request that found no place.
	retryAfter = 5
)

// Options of the handler.
type Options struct {
	// Hub reads Clusters; Members sends requests of users to them.
	Hub     proxy.HubReader
	Members *proxy.Proxy
	// Authorizer is the hub's; nil before it is built.
	Authorizer func() authorizer.Authorizer
	// Config reaches the hub's API.
	Config *rest.Config
	// Discovery lists what is served; nil before the server is built.
	Discovery func() aggregated.ResourceManager
	// Limits bound the response of a member, and the responses of all members that are in memory.
	Limits member.Limits
	// MemberTimeout replaces memberTimeout, in tests.
	MemberTimeout time.Duration
}

// Handler answers requests for metrics, and leaves all else to next: also metrics for which the hub has an APIService.
// It expects the info, the user and the recorder of warnings in the request's context, and that the user is authorized.
func Handler(o Options, next http.Handler) http.Handler {
	o.MemberTimeout, o.Limits = cmp.Or(o.MemberTimeout, memberTimeout), o.Limits.WithDefaults()
	s := &server{Options: o, places: make(chan struct{}, maxRequests),
		registered: registered{hub: o.Config, discovery: o.Discovery}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		group, version, ours := groupOf(r.URL.Path)
		info, known := request.RequestInfoFrom(r.Context())
		if !known || !ours && strings.Trim(r.URL.Path, "/") != "apis" {
			next.ServeHTTP(w, r)
			return
		}
		theirs, err := s.registered.update(r.Context())
		switch {
		case ours && err != nil:
			apistatus.Write(w, apierrors.NewServiceUnavailable(fmt.Sprintf("read the APIServices of the hub: %v", err)))
		case !ours || theirs[group.Name]:
			next.ServeHTTP(w, r)
		case !info.IsResourceRequest:
			writeDiscovery(w, group, version)
		default:
			if err := s.answer(w, r, info); err != nil {
				apistatus.Write(w, err)
			}
		}
	})
}

type server struct {
	Options
	registered registered
	// places holds one element for each request that is answered.
	places chan struct{}
	// pending are the bytes of members in memory.
	pending atomic.Int64
}

// asking is a request for metrics.
type asking struct {
	*server
	info *request.RequestInfo
	user authorizer.AttributesRecord
	// clusters are the names of all clusters, sorted; silent are those that are not ready.
	clusters []string
	silent   map[string]bool
	// read are the bytes of this request in pending.
	read atomic.Int64
}

// answer writes the metrics that a request asks for. The error is an API error.
func (s *server) answer(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) error {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	if info.Verb != "get" && info.Verb != "list" {
		return apierrors.NewMethodNotSupported(resource, info.Verb)
	}
	caller, ok := request.UserFrom(r.Context())
	if !ok || caller.GetName() == "" {
		return apierrors.NewInternalError(errors.New("the request has no user"))
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return apierrors.NewTooManyRequests("too many requests for metrics of members are in flight", retryAfter)
	}
	a := &asking{server: s, info: info, user: authorizer.AttributesRecord{User: caller, Verb: "get", APIVersion: "*",
		APIGroup: clusterv1alpha1.GroupVersion.Group, Resource: "clusters", Subresource: "proxy", ResourceRequest: true}}
	defer func() { s.pending.Add(-a.read.Load()) }()
	if err := a.listClusters(ctx); err != nil {
		return err
	}
	query := url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector", "metricLabelSelector"} {
		if v := r.URL.Query().Get(name); v != "" {
			query.Set(name, v)
		}
	}
	at := &url.URL{Path: r.URL.Path, RawPath: r.URL.EscapedPath(), RawQuery: query.Encode()}
	switch {
	case info.APIGroup != groups[0].Name:
		return a.custom(ctx, w, at)
	case info.Subresource != "" || info.Resource != "pods" && info.Resource != "nodes":
		return apierrors.NewNotFound(resource, info.Name)
	}
	return a.usage(ctx, w, at)
}

// listClusters reads the names of the clusters.
func (a *asking) listClusters(ctx context.Context) error {
	hub, err := a.Hub()
	var list clusterv1alpha1.ClusterList
	if err == nil {
		err = hub.List(ctx, &list)
	}
	if err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("list the clusters: %v", err))
	}
	a.silent = map[string]bool{}
	for i := range list.Items {
		c := &list.Items[i]
		a.clusters = append(a.clusters, c.Name)
		a.silent[c.Name] = membership.KnownNotReady(c)
	}
	slices.Sort(a.clusters)
	return nil
}

// The reasons why a cluster is left out.
var (
	errNoRight = &deniedError{
		"you may not get clusters/proxy there: grant it cluster by cluster (docs/access.md#access-to-a-cluster)"}
	errAbsent = errors.New("not found")
	errSilent = errors.New("not responding")
	errTooBig = errors.New("the metrics are over the limits of the hub: select fewer, or raise --member-answer-limit " +
		"and --member-memory-limit")
)

// deniedError means that the hub or the member denies the user something, or that the user cannot act in the member.
type deniedError struct{ text string }

func (e *deniedError) Error() string { return e.text }

// requestAll sends the request to every cluster, to several at once, and calls read with each response that succeeds.
// Where the first path is not found, it tries the next. It returns why clusters are left out, in their order.
func (a *asking) requestAll(ctx context.Context, at []*url.URL, read func(i int, body *bounded) error) []error {
	why, next, done := make([]error, len(a.clusters)), atomic.Int64{}, make(chan struct{})
	workers := min(maxMembers, len(a.clusters))
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := int(next.Add(1)) - 1; i < len(a.clusters); i = int(next.Add(1)) - 1 {
				why[i] = errAbsent
				for n := 0; n < len(at) && errors.Is(why[i], errAbsent); n++ {
					why[i] = a.request(ctx, a.clusters[i], at[n], func(body *bounded) error { return read(i, body) })
				}
			}
		}()
	}
	for range workers {
		<-done
	}
	return why
}

// request sends the request to one cluster, as the user.
func (a *asking) request(ctx context.Context, cluster string, at *url.URL, read func(*bounded) error) error {
	rights, asked := a.Authorizer(), a.user
	asked.Name = cluster
	if rights == nil {
		return errNoRight
	}
	if decision, _, err := rights.Authorize(ctx, asked); err != nil || decision != authorizer.DecisionAllow {
		return errNoRight
	}
	if a.silent[cluster] {
		return errSilent
	}
	ctx, cancel := context.WithTimeout(ctx, a.MemberTimeout)
	defer cancel()
	err := a.Members.Get(ctx, a.user.User, cluster, at, func(resp *http.Response) error {
		switch resp.StatusCode {
		case http.StatusOK:
			return read(&bounded{Reader: resp.Body, of: a, left: a.Limits.Answer})
		case http.StatusNotFound:
			return errAbsent
		case http.StatusForbidden:
			return &deniedError{fmt.Sprintf("you may not %s there: grant it in the cluster", a.right())}
		}
		return fmt.Errorf("%s is not available there: status %d", a.info.APIGroup, resp.StatusCode)
	})
	switch {
	case ctx.Err() != nil, err != nil && proxy.Silent(err):
		return errSilent
	case apierrors.IsForbidden(err):
		return &deniedError{"the hub cannot act as you there: " + err.Error()}
	}
	return err
}

// right names what the user asks for.
func (a *asking) right() string {
	resource := a.info.Resource + "." + a.info.APIGroup
	if a.info.Subresource != "" {
		resource += "/" + a.info.Subresource
	}
	if a.info.Namespace != "" {
		return a.info.Verb + " " + resource + " in namespace " + a.info.Namespace
	}
	return a.info.Verb + " " + resource
}

// maxNamed bounds the clusters that one sentence names, and maxReasons the sentences.
const maxNamed, maxReasons = 8, 5

// leftOut returns sentences about the clusters that are left out, by reason. Clusters into which the user has no right
// are counted and not named, because the user may not know them.
func (a *asking) leftOut(why []error) (sentences []string) {
	byReason := map[string][]string{}
	var reasons []string
	for i, err := range why {
		if err == nil {
			continue
		}
		text := err.Error()
		if len(text) > 500 {
			text = strings.ToValidUTF8(text[:500], "") + "…"
		}
		if byReason[text] == nil {
			reasons = append(reasons, text)
		}
		byReason[text] = append(byReason[text], a.clusters[i])
	}
	for i, text := range reasons {
		names := byReason[text]
		who := "clusters " + strings.Join(names, ", ")
		switch {
		case i == maxReasons:
			return append(sentences, "and more")
		case text == errNoRight.text:
			who = fmt.Sprintf("clusters (%d)", len(names))
		case len(names) > maxNamed:
			who = fmt.Sprintf("clusters %s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
		}
		sentences = append(sentences, who+": "+text)
	}
	return sentences
}

// outcome returns nil if a cluster answered, or if there is none, after it warned about those that are left out. An
// absent object, if allowed, is an answer.
func (a *asking) outcome(ctx context.Context, why []error, absentIsAnswer bool) error {
	answered, denied := len(why) == 0, true
	left := slices.Clone(why)
	for i, err := range why {
		if absentIsAnswer && errors.Is(err, errAbsent) {
			left[i] = nil
		} else if errors.Is(err, errAbsent) {
			left[i] = fmt.Errorf("%s: %w: install metrics-server there", a.info.APIGroup, member.ErrNoMetrics)
		}
		answered = answered || left[i] == nil
		refused := (*deniedError)(nil)
		denied = denied && errors.As(err, &refused)
	}
	sentences := a.leftOut(left)
	switch {
	case answered:
		for _, text := range sentences {
			warning.AddWarning(ctx, "", "left out: "+text)
		}
		return nil
	case denied:
		err := apierrors.NewForbidden(schema.GroupResource{Group: a.info.APIGroup, Resource: a.info.Resource}, a.info.Name,
			errors.New(strings.Join(sentences, "; ")))
		for _, text := range sentences { // they distinguish it from a denial of the hub's own RBAC
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: text})
		}
		return err
	}
	return apierrors.NewServiceUnavailable("no cluster has metrics: " + strings.Join(sentences, "; "))
}

func writeJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client is gone
}
