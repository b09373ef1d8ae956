// Package memserver is a member cluster in memory, small enough for unit tests and for a thousand in a measurement. It
// is an HTTP server with objects, watches, discovery and field ownership like an API server, and it can be down, slow,
// or refuse requests. It has no validation, defaults and controllers.
package memserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// Kind is a kind that the server serves.
type Kind struct {
	schema.GroupVersionKind
	Plural     string
	Namespaced bool
}

// Lease is the kind with which real members record their ownership.
var Lease = Kind{schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "leases", true}

// Kinds that every server serves.
var (
	Node      = Kind{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, "nodes", false}
	Pod       = Kind{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", true}
	ConfigMap = Kind{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", true}
	Namespace = Kind{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false}
	Quota     = Kind{schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}, "resourcequotas", true}
)

// Token is the default token that the server accepts.
const Token = "let-me-in"

// Server is the member.
type Server struct {
	URL string

	mu       sync.Mutex
	version  int64
	uids     int
	token    string
	down     bool
	behave   func(http.ResponseWriter, *http.Request) bool
	kinds    []Kind
	objects  map[string]*unstructured.Unstructured // by resource path
	watchers map[*watcher]bool
	history  []happening
	requests []string
	writes   []string
	apart    map[schema.GroupVersionKind]bool // kinds whose status is a subresource
	strict   bool                             // namespaces must exist
	amend    func(context.Context, *unstructured.Unstructured) error
	// Transport reaches the server, for Within.
	Transport http.RoundTripper
	closed    chan struct{} // ends every watch, also those that start while the server closes
}

// happening is a change that a watch may have missed; nil means absent.
type happening struct {
	version int64
	kind    Kind
	was, is *unstructured.Unstructured
}

type watcher struct {
	kind     Kind
	matches  func(*unstructured.Unstructured) bool
	gone     chan struct{}
	goneOnce sync.Once
	// partial watchers get the metadata of objects alone.
	partial bool

	mu      sync.Mutex
	pending []metav1.WatchEvent
	// some is signaled when there are pending events.
	some chan struct{}
}

// New returns a server for the given kinds and the standard ones. It serves HTTP; who serves it sets URL.
func New(kinds ...Kind) *Server {
	return &Server{
		token:    Token,
		version:  1,
		kinds:    append([]Kind{Node, Pod, ConfigMap, Namespace, Quota}, kinds...),
		objects:  map[string]*unstructured.Unstructured{},
		watchers: map[*watcher]bool{},
		apart:    map[schema.GroupVersionKind]bool{},
		closed:   make(chan struct{}),
	}
}

// Close ends all watches.
func (s *Server) Close() { close(s.closed) }

// Cluster and Secret return the objects that joining the server as name creates on the hub.
func (s *Server) Cluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid")},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode:    clusterv1alpha1.Push,
			APIEndpoint: s.URL,
			SecretRef:   &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name},
		},
	}
}

// Secret contains the token that the server accepts.
func (s *Server) Secret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name},
		Data:       map[string][]byte{"token": []byte(s.token), "caBundle": nil},
	}
}

// Down breaks every connection, including existing watches, until it is called with false.
func (s *Server) Down(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.BreakWatches()
	}
}

// Take changes the token that the server accepts.
func (s *Server) Take(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Behave calls f first for each request; f reports whether it has responded. nil removes f.
func (s *Server) Behave(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave = f
}

// Serve adds a kind, as a new CustomResourceDefinition does.
func (s *Server) Serve(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(s.kinds, k)
}

// Unserve removes a kind until it is served again. Its objects stay, like those of an API that is down.
func (s *Server) Unserve(k Kind) {
	s.mu.Lock()
	s.kinds = slices.DeleteFunc(s.kinds, func(served Kind) bool { return served == k })
	s.mu.Unlock()
	s.BreakWatches()
}

// SeparateStatus makes the status of kinds a subresource: a write of one does not change the other.
func (s *Server) SeparateStatus(kinds ...Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range kinds {
		s.apart[k.GroupVersionKind] = true
	}
}

// NeedNamespaces has the server refuse objects of namespaces that are not there, or are being deleted.
func (s *Server) NeedNamespaces() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strict = true
}

// Within returns a transport for clients in the server's process: a creation or update keeps its context, and amend can
// change the object before it is stored.
func (s *Server) Within(amend func(context.Context, *unstructured.Unstructured) error) http.RoundTripper {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.amend = amend
	return within{s}
}

type within struct{ s *Server }

// RoundTrip implements http.RoundTripper.
func (t within) RoundTrip(r *http.Request) (_ *http.Response, err error) {
	if r.Method != http.MethodPut && r.Method != http.MethodPost {
		return t.s.Transport.RoundTrip(r)
	}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = io.ErrUnexpectedEOF
		default:
			panic(p)
		}
	}()
	answer := &recorder{header: http.Header{}, code: http.StatusOK}
	t.s.ServeHTTP(answer, r)
	return &http.Response{StatusCode: answer.code, Status: fmt.Sprint(answer.code), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()),
		Request: r}, nil
}

// recorder is an http.ResponseWriter that keeps the response.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) { r.code = code }

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// Writes returns the writes so far: verb, resource and name, such as "create configmaps default/c".
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Requests returns the methods and paths so far; with a prefix, those that have it.
func (s *Server) Requests(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(r string) bool { return !strings.HasPrefix(r, prefix) })
}

// Put creates or changes an object like another client in the member.
func (s *Server) Put(obj runtime.Object) *unstructured.Unstructured {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err)
	}
	u := (&unstructured.Unstructured{Object: raw}).DeepCopy()
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, ok := s.kindOf(u.GroupVersionKind())
	if !ok {
		panic(fmt.Sprintf("%s is not served", u.GroupVersionKind()))
	}
	path := pathOf(kind, u.GetNamespace(), u.GetName())
	return s.store(kind, path, recordOwnership(kind, s.objects[path], u, "somebody")).DeepCopy()
}

// Object returns the stored object; nil if there is none.
func (s *Server) Object(k Kind, namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.objects[pathOf(k, namespace, name)]; u != nil {
		return u.DeepCopy()
	}
	return nil
}

// Remove deletes an object like another client in the member.
func (s *Server) Remove(k Kind, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(k, pathOf(k, namespace, name))
}

func pathOf(k Kind, namespace, name string) string {
	path := "/apis/" + k.Group + "/" + k.Version
	if k.Group == "" {
		path = "/api/" + k.Version
	}
	if k.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + k.Plural
	if name != "" {
		path += "/" + name
	}
	return path
}

func (s *Server) kindOf(gvk schema.GroupVersionKind) (Kind, bool) {
	i := slices.IndexFunc(s.kinds, func(k Kind) bool { return k.GroupVersionKind == gvk })
	if i < 0 {
		return Kind{}, false
	}
	return s.kinds[i], true
}

// store must be called with the lock.
func (s *Server) store(k Kind, path string, u *unstructured.Unstructured) *unstructured.Unstructured {
	s.version++
	old := s.objects[path]
	if old == nil {
		s.uids++
		u.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		u.SetGeneration(1)
		if created := u.GetCreationTimestamp(); created.IsZero() && k.GroupVersionKind.Group == "release.argosy.io" {
			u.SetCreationTimestamp(metav1.Now()) // releases are in the order of their creation
		}
	} else {
		follow(old, u)
	}
	u.SetResourceVersion(strconv.FormatInt(s.version, 10))
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		delete(s.objects, path)
		s.happened(happening{s.version, k, old, nil})
		return u
	}
	s.objects[path] = u
	s.happened(happening{s.version, k, old, u})
	return u
}

// follow sets the metadata of u as the successor of old.
func follow(old, u *unstructured.Unstructured) {
	u.SetUID(old.GetUID())
	u.SetGeneration(old.GetGeneration())
	going := old.GetDeletionTimestamp() == nil && u.GetDeletionTimestamp() != nil
	if going || fmt.Sprint(old.Object["spec"]) != fmt.Sprint(u.Object["spec"]) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
}

func (s *Server) remove(k Kind, path string) {
	old := s.objects[path]
	if old == nil {
		return
	}
	s.version++
	delete(s.objects, path)
	s.happened(happening{s.version, k, old, nil})
}

// happened sends an event to the watches, and stores it for watches that resume.
func (s *Server) happened(h happening) {
	s.history = append(s.history, h)
	for w := range s.watchers {
		w.notify(h)
	}
}

func (w *watcher) notify(h happening) {
	if w.kind.GroupVersionKind != h.kind.GroupVersionKind {
		return
	}
	was, is := h.was != nil && w.matches(h.was), h.is != nil && w.matches(h.is)
	switch {
	case was && is:
		w.send("MODIFIED", h.is)
	case is:
		w.send("ADDED", h.is)
	case was:
		gone := h.was.DeepCopy()
		gone.SetResourceVersion(strconv.FormatInt(h.version, 10))
		w.send("DELETED", gone)
	}
}

func (w *watcher) send(event string, u *unstructured.Unstructured) {
	if w.partial {
		u = metadataOf(u)
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	w.pending = append(w.pending, metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: raw}})
	w.mu.Unlock()
	select {
	case w.some <- struct{}{}:
	default: // it is signaled already
	}
}

// take returns the pending events.
func (w *watcher) take() []metav1.WatchEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.pending
	w.pending = nil
	return all
}

func (w *watcher) end() { w.goneOnce.Do(func() { close(w.gone) }) }

// BreakWatches ends the watches that are open.
func (s *Server) BreakWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		w.end()
		delete(s.watchers, w) // later events go only to new watches
	}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	down, behave, token := s.down, s.behave, s.token
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	if behave != nil && behave(w, r) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+token {
		fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	switch r.URL.Path {
	case "/readyz", "/healthz":
		fmt.Fprint(w, "ok")
	case "/version":
		answer(w, http.StatusOK, map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	case "/api", "/apis":
		s.discovery(w, r)
	default:
		if group, is := strings.CutPrefix(r.URL.Path, "/apis/"); is && !strings.Contains(group, "/") {
			s.group(w, group)
			return
		}
		s.resource(w, r)
	}
}

// group answers whether a group is served.
func (s *Server) group(w http.ResponseWriter, name string) {
	s.mu.Lock()
	served := slices.ContainsFunc(s.kinds, func(k Kind) bool { return k.Group == name })
	s.mu.Unlock()
	if !served {
		fail(w, apierrors.NewNotFound(schema.GroupResource{}, name))
		return
	}
	answer(w, http.StatusOK, metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: name})
}

func (s *Server) discovery(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	kinds := slices.Clone(s.kinds)
	s.mu.Unlock()
	groups := map[string]*apidiscoveryv2.APIGroupDiscovery{}
	for _, k := range kinds {
		if (k.Group == "") != (r.URL.Path == "/api") {
			continue
		}
		group := groups[k.Group]
		if group == nil {
			group = &apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: k.Group}}
			groups[k.Group] = group
		}
		i := slices.IndexFunc(group.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool {
			return v.Version == k.Version
		})
		if i < 0 {
			i = len(group.Versions)
			group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{Version: k.Version})
		}
		scope := apidiscoveryv2.ScopeCluster
		if k.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		group.Versions[i].Resources = append(group.Versions[i].Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: k.Plural, Scope: scope, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			ResponseKind: &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
			Subresources: []apidiscoveryv2.APISubresourceDiscovery{{Subresource: "status",
				ResponseKind: &metav1.GroupVersionKind{Kind: k.Kind}}},
		})
	}
	list := apidiscoveryv2.APIGroupDiscoveryList{}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		list.Items = append(list.Items, *groups[name])
	}
	tag := fmt.Sprintf("%q", strconv.Itoa(len(kinds)))
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	w.Header().Set("Etag", tag)
	_ = json.NewEncoder(w).Encode(list)
}

// find returns the kind, namespace and name of a URL path.
func (s *Server) find(path string) (k Kind, namespace, name string, ok bool) {
	parts := strings.Split(strings.Trim(strings.TrimSuffix(path, "/status"), "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		gv.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		gv.Group, gv.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return k, "", "", false
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	i := slices.IndexFunc(s.kinds, func(k Kind) bool { return k.GroupVersion() == gv && k.Plural == parts[0] })
	if i < 0 || len(parts) > 2 {
		return k, "", "", false
	}
	if len(parts) == 2 {
		name = parts[1]
	}
	return s.kinds[i], namespace, name, true
}

func (s *Server) resource(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.down { // since the request was taken
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	kind, namespace, name, ok := s.find(r.URL.Path)
	if !ok {
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	gr := schema.GroupResource{Group: kind.Group, Resource: kind.Plural}
	if name == "" && r.Method == http.MethodGet {
		s.list(w, r, kind, namespace)
		return
	}
	defer s.mu.Unlock()
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
	}
	path := pathOf(kind, namespace, name)
	live := s.objects[path]
	apart, status := s.apart[kind.GroupVersionKind], strings.HasSuffix(r.URL.Path, "/status")
	if status && !apart {
		http.NotFound(w, r)
		return
	}
	wrote := func(verb, name string) {
		resource := kind.Plural
		if status {
			resource += "/status"
		}
		if namespace != "" {
			name = namespace + "/" + name
		}
		s.writes = append(s.writes, verb+" "+resource+" "+name)
	}
	manager, dryRun := r.URL.Query().Get("fieldManager"), r.URL.Query().Get("dryRun") == metav1.DryRunAll
	if live == nil && name != "" && r.Header.Get("Content-Type") != string(types.ApplyPatchType) {
		fail(w, apierrors.NewNotFound(gr, name))
		return
	}
	switch r.Method {
	case http.MethodGet:
		answer(w, http.StatusOK, live)
	case http.MethodPost:
		obj, err := decode(sent)
		if err != nil {
			fail(w, apierrors.NewBadRequest(err.Error()))
			return
		}
		path = pathOf(kind, namespace, obj.GetName())
		if s.objects[path] != nil && kind.Kind == "Event" {
			// Clients name events by the time, which does not move on a fake clock.
			obj.SetName(fmt.Sprintf("%s.%d", obj.GetName(), s.version))
			path = pathOf(kind, namespace, obj.GetName())
		}
		if s.objects[path] != nil {
			fail(w, apierrors.NewAlreadyExists(gr, obj.GetName()))
			return
		}
		if s.strict && namespace != "" {
			space := s.objects[pathOf(Namespace, "", namespace)]
			if space == nil {
				fail(w, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace))
				return
			}
			if space.GetDeletionTimestamp() != nil {
				refused := apierrors.NewForbidden(gr, obj.GetName(),
					fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
				refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes,
					metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
				fail(w, refused)
				return
			}
		}
		if apart {
			delete(obj.Object, "status")
		}
		obj = recordOwnership(kind, nil, obj, manager)
		if s.amend != nil {
			if err := s.amend(r.Context(), obj); err != nil {
				fail(w, apierrors.NewInternalError(err))
				return
			}
		}
		if dryRun {
			answer(w, http.StatusCreated, obj)
			return
		}
		wrote("create", obj.GetName())
		answer(w, http.StatusCreated, s.store(kind, path, obj))
	case http.MethodPut:
		obj, err := decode(sent)
		if err != nil {
			fail(w, apierrors.NewBadRequest(err.Error()))
			return
		}
		if v := obj.GetResourceVersion(); v != "" && v != live.GetResourceVersion() {
			fail(w, apierrors.NewConflict(gr, name, fmt.Errorf("the object has been modified")))
			return
		}
		from, to := live, obj
		if status {
			from, to = obj, live.DeepCopy()
		}
		if apart {
			delete(to.Object, "status")
			if value, ok := from.Object["status"]; ok {
				to.Object["status"] = value
			}
		}
		to.SetDeletionTimestamp(live.GetDeletionTimestamp())
		to = recordOwnership(kind, live, to, manager)
		if s.amend != nil {
			follow(live, to)
			if err := s.amend(r.Context(), to); err != nil {
				fail(w, apierrors.NewInternalError(err))
				return
			}
		}
		if dryRun {
			answer(w, http.StatusOK, to)
			return
		}
		wrote("update", name)
		answer(w, http.StatusOK, s.store(kind, path, to))
	case http.MethodPatch:
		patched, err := patch(kind, live, r.Header.Get("Content-Type"), sent, manager)
		switch {
		case err != nil:
			fail(w, apierrors.NewConflict(gr, name, err))
		case live != nil && patched.GetUID() != live.GetUID(), live == nil && patched.GetUID() != "":
			fail(w, apierrors.NewConflict(gr, name, fmt.Errorf("uid mismatch: the provided object specified uid %s",
				patched.GetUID())))
		case dryRun:
			answer(w, http.StatusOK, patched)
		case live != nil && sameContent(live, patched):
			answer(w, http.StatusOK, live)
		default:
			wrote("patch", name)
			answer(w, http.StatusOK, s.store(kind, path, patched))
		}
	case http.MethodDelete:
		var o metav1.DeleteOptions
		_ = json.Unmarshal(sent, &o)
		if p := o.Preconditions; p != nil && p.UID != nil && *p.UID != live.GetUID() {
			fail(w, apierrors.NewConflict(gr, name, fmt.Errorf("precondition failed: UID")))
			return
		}
		if p := o.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
			fail(w, apierrors.NewConflict(gr, name, fmt.Errorf("precondition failed: resourceVersion")))
			return
		}
		// Like Kubernetes: the propagation policy decides whether dependents are deleted first, which a finalizer records.
		finalizers := live.GetFinalizers()
		if o.PropagationPolicy != nil {
			finalizers = slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
				return f == metav1.FinalizerDeleteDependents
			})
			if *o.PropagationPolicy == metav1.DeletePropagationForeground && kind.Group == workv1alpha1.GroupVersion.Group {
				finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
			}
		}
		if len(finalizers) > 0 && live.GetDeletionTimestamp() != nil && slices.Equal(finalizers, live.GetFinalizers()) {
			answer(w, http.StatusOK, live)
			return
		}
		wrote("delete", name)
		if len(finalizers) > 0 {
			going := live.DeepCopy()
			going.SetFinalizers(finalizers)
			now := metav1.Now()
			if at := live.GetDeletionTimestamp(); at != nil {
				now = *at
			}
			going.SetDeletionTimestamp(&now)
			answer(w, http.StatusOK, s.store(kind, path, going))
			return
		}
		s.remove(kind, path)
		answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusSuccess})
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// list must be called with the lock, and releases it.
func (s *Server) list(w http.ResponseWriter, r *http.Request, kind Kind, namespace string) {
	q := r.URL.Query()
	if q.Get("sendInitialEvents") == "true" {
		s.mu.Unlock()
		fail(w, apierrors.NewBadRequest("streamed lists are not served"))
		return
	}
	byLabel, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		s.mu.Unlock()
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	byField, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		s.mu.Unlock()
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	matches := func(u *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		kind, _, _ := unstructured.NestedString(u.Object, "type") // of an event
		reason, _, _ := unstructured.NestedString(u.Object, "reason")
		return (namespace == "" || u.GetNamespace() == namespace) && byLabel.Matches(labels.Set(u.GetLabels())) &&
			byField.Matches(fields.Set{"metadata.name": u.GetName(), "status.phase": phase, "type": kind,
				"reason": reason})
	}
	if q.Get("watch") == "true" || q.Get("watch") == "1" {
		s.watch(w, r, kind, matches)
		return
	}
	defer s.mu.Unlock()
	items := []any{}
	apiVersion, list := kind.GroupVersion().String(), kind.Kind+"List"
	if partial(r) {
		apiVersion, list = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		if u := s.objects[path]; u.GroupVersionKind() == kind.GroupVersionKind && matches(u) {
			if partial(r) {
				u = metadataOf(u)
			}
			items = append(items, u.Object)
		}
	}
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": apiVersion, "kind": list,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10)}, "items": items,
	})
}

// watch must be called with the lock, and releases it.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, kind Kind,
	matches func(*unstructured.Unstructured) bool) {
	since, err := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil || since > s.version {
		s.mu.Unlock()
		fail(w, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	watcher := &watcher{kind: kind, matches: matches, some: make(chan struct{}, 1), gone: make(chan struct{}),
		partial: partial(r)}
	for _, h := range s.history {
		if h.version > since {
			watcher.notify(h)
		}
	}
	s.watchers[watcher] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, watcher)
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-watcher.gone:
			panic(http.ErrAbortHandler)
		case <-s.closed:
			panic(http.ErrAbortHandler)
		case <-watcher.some:
			for _, e := range watcher.take() {
				if err := json.NewEncoder(w).Encode(e); err != nil {
					return
				}
			}
			w.(http.Flusher).Flush()
		}
	}
}

// Conflicts returns why a manager cannot apply an object without force; nil if it can. Nothing is stored.
func (s *Server) Conflicts(k Kind, obj *unstructured.Unstructured, manager string) error {
	live := s.Object(k, obj.GetNamespace(), obj.GetName())
	_, err := fieldManager(k).Apply(live, obj, manager, false)
	return err
}

// recordOwnership records, as an API server does, that the manager wrote what differs.
func recordOwnership(k Kind, live, obj *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	if live == nil {
		live = blank(k)
	}
	u, err := fieldManager(k).Update(live, obj, manager)
	if err != nil {
		panic(err)
	}
	return u.(*unstructured.Unstructured)
}

func patch(k Kind, live *unstructured.Unstructured, how string, sent []byte,
	manager string) (*unstructured.Unstructured, error) {
	if types.PatchType(how) == types.ApplyPatchType {
		applied, err := decode(sent)
		if err != nil {
			return nil, err
		}
		base := live
		if base == nil {
			base = blank(k)
		}
		if v := applied.GetResourceVersion(); v != "" && v != base.GetResourceVersion() {
			return nil, fmt.Errorf("the object has been modified")
		}
		u, err := fieldManager(k).Apply(base, applied, manager, true)
		if err != nil {
			return nil, err
		}
		patched := u.(*unstructured.Unstructured)
		if uid := applied.GetUID(); uid != "" {
			patched.SetUID(uid)
		}
		return patched, nil
	}
	before, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var after []byte
	switch types.PatchType(how) {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, sent)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(sent); err == nil {
			after, err = p.Apply(before)
		}
	default:
		err = fmt.Errorf("unknown patch %q", how)
	}
	if err != nil {
		return nil, err
	}
	obj, err := decode(after)
	if err != nil {
		return nil, err
	}
	if v := obj.GetResourceVersion(); v != live.GetResourceVersion() {
		return nil, fmt.Errorf("the object has been modified")
	}
	return recordOwnership(k, live, obj, manager), nil
}

// sameContent reports whether a patch changed nothing that is stored; the time of an ownership is not.
func sameContent(a, b *unstructured.Unstructured) bool {
	timeless := func(u *unstructured.Unstructured) string {
		u = u.DeepCopy()
		entries := u.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}
		u.SetManagedFields(entries)
		raw, _ := u.MarshalJSON()
		return string(raw)
	}
	return timeless(a) == timeless(b)
}

func blank(k Kind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	return u
}

func fieldManager(k Kind) *managedfields.FieldManager {
	m, err := managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), schemaless{}, schemaless{},
		schemaless{},
		k.GroupVersionKind, k.GroupVersion(), "", nil)
	if err != nil {
		panic(err)
	}
	return m
}

// schemaless converts between versions of a kind that has one, and knows no defaults.
type schemaless struct{}

func (schemaless) Default(runtime.Object) {}
func (schemaless) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return blank(Kind{GroupVersionKind: gvk}), nil
}
func (schemaless) Convert(any, any, any) error { return fmt.Errorf("there is nothing to convert") }
func (schemaless) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (schemaless) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func decode(raw []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(raw)
}

// partial reports whether a request wants only metadata.
func partial(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func metadataOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "meta.k8s.io/v1",
		"kind": "PartialObjectMetadata", "metadata": u.Object["metadata"]}}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	answer(w, int(status.Code), status)
}
