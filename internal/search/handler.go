package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

const (
	base = "/apis/search.karmada.io/v1alpha1/"
	// CachePath is the path of lists of cached objects: an API path of a member follows.
	CachePath = base + "search/cache"
	// ProxyPath is the path of the global proxy: an API path of a member follows.
	ProxyPath = base + "proxying/karmada/proxy"
)

var infos = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// Inner returns a request to search or to the global proxy as a member would get it; nil for other requests. prefix is
// what its path has in front, and global is true for the global proxy.
func Inner(r *http.Request, info *request.RequestInfo) (in *http.Request, prefix string, global bool) {
	if !info.IsResourceRequest || info.APIGroup != searchv1alpha1.GroupVersion.Group ||
		info.APIVersion != searchv1alpha1.GroupVersion.Version {
		return nil, "", false
	}
	switch {
	case info.Resource == "search" && info.Name == "cache":
		prefix = CachePath
	case info.Resource == "proxying" && info.Subresource == "proxy":
		prefix, global = base+"proxying/"+info.Name+"/proxy", true
	default:
		return nil, "", false
	}
	// Serve exactly the path that was authorized: a path with a namespace, for example, is a different one.
	plain, ok := strings.CutPrefix(r.URL.Path, prefix)
	escaped, same := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !ok || !same || plain != "" && plain[0] != '/' {
		return nil, "", false
	}
	return &http.Request{Method: r.Method, Header: r.Header,
		URL: &url.URL{Path: plain, RawPath: escaped, RawQuery: r.URL.RawQuery}}, prefix, global
}

// Handler answers requests to search and to the global proxy, and leaves all else to next. It expects the request's
// info and user in its context, and that they are authorized.
func (e *Engine) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		in, _, global := Inner(r, info)
		if in == nil {
			if info.APIGroup == searchv1alpha1.GroupVersion.Group && info.Resource == "search" {
				apistatus.Write(w, apierrors.NewBadRequest("this hub searches its own caches alone, at "+CachePath))
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		q := &query{engine: e, w: w, r: r, in: in, global: global}
		if err := q.serve(); err != nil {
			apistatus.Write(w, err)
		}
	})
}

// query is a request with its user.
type query struct {
	engine *Engine
	w      http.ResponseWriter
	r, in  *http.Request
	global bool

	user user.Info
	info *request.RequestInfo
	gvr  schema.GroupVersionResource
	// namespace is empty for cluster-scoped objects, also for a Namespace.
	namespace string
	store     *store
}

func (q *query) serve() error {
	caller, ok := request.UserFrom(q.r.Context())
	if !ok || caller.GetName() == "" {
		return apierrors.NewInternalError(errors.New("the request has no user"))
	}
	info, err := infos.NewRequestInfo(q.in)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	for _, part := range []string{info.Namespace, info.Name, info.Resource, info.APIGroup, info.APIVersion} {
		if len(part) > 253 {
			return apierrors.NewBadRequest("a part of the path is longer than 253 characters")
		}
	}
	q.user, q.info, q.namespace = caller, info, info.Namespace
	q.gvr = schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	if info.Resource == "namespaces" && info.APIGroup == "" && info.Namespace == info.Name {
		q.namespace = "" // other paths name an object in a namespace, and Namespaces are in none
	}
	reads := info.IsResourceRequest && info.Subresource == "" &&
		(info.Verb == "get" || info.Verb == "list" || info.Verb == "watch")
	if !q.global {
		if !reads || info.Verb == "watch" {
			return apistatus.Error(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
				"search/cache serves GET of objects and lists: use proxying/karmada/proxy for watches and subresources")
		}
		return q.read()
	}
	if info.IsResourceRequest {
		q.store = q.engine.registeredStore(q.gvr)
	}
	switch {
	case q.store == nil:
		return q.toHub()
	case reads:
		return q.read()
	case info.Name == "":
		return apistatus.Error(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, fmt.Sprintf(
			"the global proxy cannot %s %s: it does not know in which cluster; use clusters/NAME/proxy of the cluster, or "+
				"create a template and a policy on the hub", info.Verb, q.gvr.GroupResource()))
	}
	return q.toOwner()
}

// attributes are the right that the request needs in a member.
func (q *query) attributes(verb string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: verb, Group: q.gvr.Group, Version: q.gvr.Version,
		Resource: q.gvr.Resource, Namespace: q.info.Namespace, Name: q.info.Name}
}

// filter returns the filter of a list or watch. The rights of one that names its object are about that object alone.
func (q *query) filter(values url.Values) (*filter, error) {
	f, err := newFilter(values, time.Now())
	if err == nil && q.info.Name != "" {
		f.fields = append(f.fields, fields.Requirement{Field: "metadata.name", Operator: selection.Equals,
			Value: q.info.Name})
	}
	return f, err
}

// read answers a get, list or watch.
func (q *query) read() error {
	ctx := q.r.Context()
	v, err := q.look(ctx, q.info.Verb)
	if err != nil {
		return err
	}
	// All tokens of a user count together.
	leave, err := q.engine.places.take(q.user.GetName(), q.info.Verb == "watch")
	if err != nil {
		return err
	}
	defer leave()
	q.warn(v)
	switch q.info.Verb {
	case "watch":
		return q.watch(v)
	case "list":
		return q.list(v)
	}
	e, err := q.find(v)
	if err != nil {
		return err
	}
	return q.write(e)
}

// find returns the one object with the name of the request.
func (q *query) find(v *view) (*entry, error) {
	var found []*entry
	var clusters []string
	q.store.state().visit(q.namespace, &entry{namespace: q.namespace, name: q.info.Name}, func(e *entry) bool {
		if e.name != q.info.Name {
			return false
		}
		if _, readable := v.set[e.cluster]; readable {
			found, clusters = append(found, e), append(clusters, e.cluster)
		}
		return true
	})
	switch len(found) {
	case 0:
		return nil, apierrors.NewNotFound(q.gvr.GroupResource(), q.info.Name)
	case 1:
		return found[0], nil
	}
	err := apierrors.NewConflict(q.gvr.GroupResource(), q.info.Name, fmt.Errorf("it exists in several clusters (%s): "+
		"use clusters/NAME/proxy of one of them, or `argosy -C NAME`", text.Names(clusters, fewNames)))
	err.ErrStatus.Details.RetryAfterSeconds = 0
	return nil, err
}

// methodVerbs are the verbs on clusters/proxy of the methods.
var methodVerbs = map[string]string{http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create",
	http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}

// toOwner passes a write, or a request to a subresource, to the one cluster that has the object, as the user.
func (q *query) toOwner() error {
	ctx := q.r.Context()
	v, err := q.look(ctx, "get")
	if err != nil {
		return err
	}
	owner, err := q.find(v)
	if err != nil {
		return err
	}
	// A cluster whose objects are not known now may have one of that name too. Not everyone may know whether it had.
	if len(v.left) > 0 && q.r.Method != http.MethodGet {
		cluster := slices.Min(slices.Collect(maps.Keys(v.left)))
		return apistatus.Error(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, fmt.Sprintf(
			"cluster %q may have %s %q too, and %s: use clusters/%s/proxy", cluster, q.gvr.Resource, q.info.Name,
			v.left[cluster], owner.cluster))
	}
	verb, known := methodVerbs[q.r.Method]
	if !known || !q.engine.rights.mayProxy(ctx, q.user, verb, owner.cluster) {
		return apierrors.NewForbidden(clusterv1alpha1.Resource("clusters/proxy"), owner.cluster,
			fmt.Errorf("this needs the right to %s clusters/proxy of this cluster on the hub", verb))
	}
	out := q.r.Clone(ctx)
	out.URL.Path = proxy.Path(owner.cluster) + q.in.URL.Path
	out.URL.RawPath = proxy.Path(owner.cluster) + q.in.URL.RawPath
	if err := q.memberVersions(out); err != nil {
		return err
	}
	info, err := infos.NewRequestInfo(out)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	q.engine.Cluster.ServeHTTP(q.w, out.WithContext(request.WithRequestInfo(ctx, info)))
	return nil
}

// maxBody bounds the body of a write, as that of an API server.
const maxBody = 3 << 20

// memberVersions replaces the versions of watch events in the body of a write with those of the member.
func (q *query) memberVersions(out *http.Request) error {
	if out.Body == nil || out.Header.Get("Upgrade") != "" || !strings.Contains(out.Header.Get("Content-Type"), "json") {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(out.Body, maxBody+1))
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if len(body) > maxBody {
		return apierrors.NewRequestEntityTooLargeError("limit is " + strconv.Itoa(maxBody))
	}
	ours := regexp.MustCompile(`"` + q.store.epoch + `\.[0-9]+\.[0-9a-f]+\.([^"\\]*)"`)
	body = ours.ReplaceAll(body, []byte(`"$1"`))
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// toHub passes a request for which there are no caches to the hub's own API, as the user: discovery, the hub's kinds,
// and templates.
func (q *query) toHub() error {
	toMember := q.info.APIGroup == clusterv1alpha1.GroupVersion.Group && q.info.Subresource == "proxy"
	if strings.HasPrefix(q.in.URL.Path, base) || toMember || q.r.Header.Get("Upgrade") != "" {
		return apierrors.NewBadRequest("the global proxy cannot serve this: send the request to the hub itself")
	}
	hub, err := q.engine.hub()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	at, _, err := rest.DefaultServerUrlFor(q.engine.Config)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	as := transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{UserName: q.user.GetName(),
		UID: q.user.GetUID(), Groups: q.user.GetGroups(), Extra: q.user.GetExtra()}, hub)
	(&httputil.ReverseProxy{
		Transport:     as,
		FlushInterval: -1,                         // watches
		ErrorLog:      log.New(io.Discard, "", 0), // the caller gets the error, or is gone
		Rewrite: func(pr *httputil.ProxyRequest) {
			proxy.Anonymize(pr.Out.Header)
			pr.Out.Host, pr.Out.Trailer = "", nil
			pr.Out.URL.Scheme, pr.Out.URL.Host = at.Scheme, at.Host
			pr.Out.URL.Path, pr.Out.URL.RawPath = q.in.URL.Path, q.in.URL.RawPath
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			apistatus.Write(w, apierrors.NewServiceUnavailable(fmt.Sprintf("reach the hub's API: %v", err)))
		},
	}).ServeHTTP(q.w, q.r)
	return nil
}

// hub returns a transport with the hub's own rights.
func (e *Engine) hub() (http.RoundTripper, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.transport == nil {
		t, err := rest.TransportFor(e.Config)
		if err != nil {
			return nil, err
		}
		e.transport = t
	}
	return e.transport, nil
}

// Kick makes Run look at the registries and clusters now.
func (e *Engine) Kick() {
	select {
	case e.kick <- struct{}{}:
	default: // it looks soon
	}
}

// wait returns after the caches of clusters are listed, or at a timeout.
func (q *query) wait(ctx context.Context, clusters []string) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	for {
		states, changed := q.store.states()
		pending := false
		for _, cluster := range clusters {
			pending = pending || errors.Is(states[cluster].err, errNotListed)
		}
		if !pending {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
