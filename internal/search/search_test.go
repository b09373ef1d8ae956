package search_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// fleet is a hub with members in memory, and users with rights.
type fleet struct {
	t       *testing.T
	store   client.Client
	members map[string]*membertest.Server
	engine  *search.Engine
	url     string
	client  *http.Client

	mu sync.Mutex
	// proxies are the rights on the hub, as "alice get eu"; permitted are those in members, as "alice list pods eu", or
	// "alice list pods eu shop" for a namespace.
	proxies, permitted map[string]bool
	// asked are the questions to members, and passed the requests that reach a member as their user.
	asked, passed []string
	// mute are members that do not answer questions about rights.
	mute map[string]bool
}

func newFleet(t *testing.T, memory int64, clusters ...string) *fleet {
	f := &fleet{t: t, members: map[string]*membertest.Server{}, proxies: map[string]bool{}, permitted: map[string]bool{},
		mute: map[string]bool{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1alpha1.AddToScheme,
		searchv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f.store = fake.NewClientBuilder().WithScheme(scheme).Build()
	for _, name := range clusters {
		f.join(name)
	}
	members := member.New(member.Options{Clusters: f.store, Secrets: f.store, Dial: membertest.Dial})
	ctx, stop := context.WithCancel(context.Background())
	hub := membertest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.note("hub " + r.Method + " " + r.URL.Path + " as " + r.Header.Get("Impersonate-User") + " " +
			strings.Join(r.Header["Impersonate-Group"], ","))
	}))
	f.engine = search.New(ctx, search.Options{Hub: f.store, Members: members, Searching: members, Memory: memory,
		Authorizer: func() authorizer.Authorizer { return f }, Permits: f.permits,
		Config:  &rest.Config{Host: hub.URL, Dial: membertest.Dial},
		Cluster: http.HandlerFunc(f.pass)})
	go f.engine.Run()
	go func() { _ = members.Start(ctx) }()
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	handler := f.engine.Handler(http.NotFoundHandler())
	server := membertest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Error(err)
		}
		u := &user.DefaultInfo{Name: r.Header.Get("Test-User"), Groups: []string{"system:authenticated"}}
		handler.ServeHTTP(w, r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info), u)))
	}))
	transport := &http.Transport{DialContext: membertest.Dial}
	f.url, f.client = server.URL, &http.Client{Transport: transport}
	t.Cleanup(func() {
		stop()
		transport.CloseIdleConnections()
		for _, s := range []*httptest.Server{server, hub} {
			s.CloseClientConnections()
			s.Close()
		}
	})
	return f
}

func (f *fleet) join(name string) {
	m := membertest.NewInMemory(f.t)
	f.members[name] = m
	for _, o := range []client.Object{m.Cluster(name), m.Secret(name)} {
		if err := f.store.Create(context.Background(), o); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fleet) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passed = append(f.passed, text)
}

// Authorize implements authorizer.Authorizer for clusters/proxy.
func (f *fleet) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.GetResource() == "clusters" && a.GetSubresource() == "proxy" &&
		f.proxies[a.GetUser().GetName()+" "+a.GetVerb()+" "+a.GetName()] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (f *fleet) permits(_ context.Context, u user.Info, cluster string,
	what authorizationv1.ResourceAttributes) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	right := strings.Join([]string{u.GetName(), what.Verb, what.Resource, cluster}, " ")
	f.asked = append(f.asked, right)
	if f.mute[cluster] {
		return false, fmt.Errorf("no answer")
	}
	return f.permitted[right] || f.permitted[right+" "+what.Namespace] && what.Namespace != "" ||
		f.permitted[right+" "+what.Namespace+"/"+what.Name] && what.Name != "", nil
}

func (f *fleet) pass(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.note(strings.TrimSpace(r.Method + " " + r.URL.Path + " " + string(body)))
	_, _ = io.WriteString(w, "{}")
}

// may gives a user the right to read pods in clusters, on the hub and there.
func (f *fleet) permit(name string, clusters ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cluster := range clusters {
		f.proxies[name+" get "+cluster] = true
		for _, verb := range []string{"get", "list", "watch"} {
			f.permitted[name+" "+verb+" pods "+cluster] = true
		}
	}
}

// mayNot takes a right away.
func (f *fleet) mayNot(right string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.proxies, right)
	delete(f.permitted, right)
}

// registry caches pods of all clusters.
func (f *fleet) registry(spec searchv1alpha1.ResourceRegistrySpec) {
	f.t.Helper()
	if spec.ResourceSelectors == nil {
		spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}}
	}
	if err := f.store.Create(context.Background(), &searchv1alpha1.ResourceRegistry{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", time.Now().UnixNano())}, Spec: spec}); err != nil {
		f.t.Fatal(err)
	}
	membertest.Advance(5 * time.Second)
}

func pod(namespace, name string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		p.Labels[key] = value
	}
	return p
}

// answer is the answer to a request.
type answer struct {
	code     int
	warnings []string
	header   http.Header
	body     string
	list     *unstructured.UnstructuredList
}

// names are the objects of a list, as "eu:shop/web".
func (a answer) names() []string {
	names := []string{}
	for i := range a.list.Items {
		o := &a.list.Items[i]
		names = append(names, o.GetAnnotations()[searchv1alpha1.CachedFromAnnotation]+":"+o.GetNamespace()+"/"+o.GetName())
	}
	return names
}

func (f *fleet) send(name, method, path, body string) answer {
	f.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Test-User", name)
	r.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	a := answer{code: resp.StatusCode, warnings: resp.Header["Warning"], header: resp.Header, body: string(raw),
		list: &unstructured.UnstructuredList{}}
	_ = a.list.UnmarshalJSON(raw) // other answers are no lists
	return a
}

func (f *fleet) get(name, path string) answer {
	f.t.Helper()
	return f.send(name, http.MethodGet, path, "")
}

// events is an open watch.
type events struct {
	f    *fleet
	body io.Closer
	next chan string
	// version is that of the last event.
	mu      sync.Mutex
	version string
}

// watch opens a watch; its events are "ADDED eu:shop/web".
func (f *fleet) watch(name, path string) *events {
	f.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, f.url+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Test-User", name)
	resp, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	e := &events{f: f, body: resp.Body, next: make(chan string, 1000)}
	f.t.Cleanup(func() { _ = resp.Body.Close() })
	go func() {
		defer close(e.next)
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			var event struct {
				Type   string
				Object map[string]any
			}
			if json.Unmarshal([]byte(line), &event) != nil {
				return
			}
			o := unstructured.Unstructured{Object: event.Object}
			text := event.Type + " " + o.GetAnnotations()[searchv1alpha1.CachedFromAnnotation] + ":" + o.GetNamespace() + "/" +
				o.GetName()
			if event.Type == "ERROR" || event.Object["kind"] == "Status" {
				text = fmt.Sprint("ERROR ", event.Object["code"])
			}
			e.mu.Lock()
			e.version = o.GetResourceVersion()
			e.mu.Unlock()
			e.next <- text
		}
	}()
	return e
}

// take returns the events until now.
func (e *events) take() (all []string) {
	membertest.Advance(100 * time.Millisecond)
	for {
		select {
		case text, open := <-e.next:
			if !open {
				return append(all, "END")
			}
			all = append(all, text)
		default:
			return all
		}
	}
}

func (e *events) wants(t *testing.T, when string, want ...string) {
	t.Helper()
	got := e.take()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s, the events are %q, want %q", when, got, want)
	}
}

const pods = search.ProxyPath + "/api/v1/pods"

func TestReadersSeeOnlyWhatHubAndMemberPermit(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu", "us", "secret")
		for name, m := range f.members {
			m.Put(pod("shop", "web-"+name))
			m.Put(pod("bank", "vault-"+name))
		}
		f.members["eu"].Put(pod("shop", "other-eu"))
		f.registry(searchv1alpha1.ResourceRegistrySpec{})
		f.permit("alice", "eu", "us")
		f.permit("bob", "eu")
		f.mayNot("bob get eu") // permitted in the member alone
		f.permit("carol", "eu")
		for _, verb := range []string{"get", "list", "watch"} { // on the hub, and in one namespace of the member
			f.mayNot("carol " + verb + " pods eu")
			f.permitted["carol "+verb+" pods eu shop"] = true
		}
		f.permitted["carol list namespaces eu shop"] = true
		f.members["eu"].Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "bank"}})
		f.proxies["dave get eu"] = true
		for _, verb := range []string{"list", "watch"} { // one pod by its name
			f.permitted["dave "+verb+" pods eu shop/web-eu"] = true
		}
		cached := search.CachePath + "/api/v1/pods"
		inShop := search.ProxyPath + "/api/v1/namespaces/shop/pods"
		for _, c := range []struct {
			user, path string
			code       int
			names      []string
		}{
			{"alice", pods, 200, []string{"eu:bank/vault-eu", "us:bank/vault-us", "eu:shop/other-eu", "eu:shop/web-eu",
				"us:shop/web-us"}},
			{"alice", cached, 200, []string{"eu:bank/vault-eu", "us:bank/vault-us", "eu:shop/other-eu", "eu:shop/web-eu",
				"us:shop/web-us"}},
			{"alice", inShop, 200, []string{"eu:shop/other-eu", "eu:shop/web-eu", "us:shop/web-us"}},
			{"alice", pods + "?clusters=us,secret", 200, []string{"us:bank/vault-us", "us:shop/web-us"}},
			{"alice", pods + "?clusters=secret", 403, nil},
			{"alice", inShop + "/web-secret", 404, nil},
			{"alice", pods + "?watch=true&clusters=secret", 403, nil},
			{"bob", pods, 403, nil}, {"bob", cached, 403, nil}, {"bob", inShop + "/web-eu", 403, nil},
			{"bob", pods + "?watch=true", 403, nil},
			{"carol", pods, 403, nil}, {"carol", cached, 403, nil}, {"carol", pods + "?watch=true", 403, nil},
			{"carol", inShop, 200, []string{"eu:shop/other-eu", "eu:shop/web-eu"}},
			{"carol", search.ProxyPath + "/api/v1/namespaces/bank/pods", 403, nil},
			{"carol", search.ProxyPath + "/api/v1/namespaces/bank/pods/vault-eu", 403, nil},
			{"eve", pods, 403, nil},
			{"alice", search.CachePath + "/api/v1/namespaces/" + strings.Repeat("n", 254) + "/pods", 400, nil},
			// Paths by which a right to one object, or in one namespace, could show others.
			{"carol", search.CachePath + "/api/v1/namespaces/shop/namespaces", 200, []string{}},
			{"carol", search.CachePath + "/api/v1/namespaces", 403, nil},
			{"carol", cached + "?fieldSelector=metadata.name%3Dweb-eu", 403, nil},
			{"dave", inShop, 403, nil},
			{"dave", inShop + "?fieldSelector=metadata.name%3Dweb-eu", 200, []string{"eu:shop/web-eu"}},
			{"dave", inShop + "?fieldSelector=metadata.name%3Dweb-eu&watch=true&timeoutSeconds=1", 200, nil},
		} {
			a := f.get(c.user, c.path)
			if a.code != c.code || c.names != nil && !slices.Equal(a.names(), c.names) {
				t.Errorf("%s gets %s: %d %q %s", c.user, c.path, a.code, a.names(), a.body)
			}
			if text := fmt.Sprint(a.header, a.body); strings.Contains(strings.ReplaceAll(text, "web-secret", ""), "secret") {
				t.Errorf("%s learns from %s of another cluster: %s", c.user, c.path, text)
			}
			if a.code == 403 && !strings.Contains(a.body,
				"clusters/proxy of the cluster on the hub, and a role in the cluster") {
				t.Errorf("%s is refused without the right: %s", c.user, a.body)
			}
		}
		f.watch("dave", search.ProxyPath+"/api/v1/watch/namespaces/shop/pods/web-eu").wants(t, "of one pod",
			"ADDED eu:shop/web-eu")
		if a := f.get("alice", inShop+"/web-us"); a.code != 200 ||
			!strings.Contains(a.body, `"resource.karmada.io/cached-from-cluster":"us"`) {
			t.Errorf("the object is %d %s", a.code, a.body)
		}
	})
}

func TestWatchContinuesFromAListAndFromItsEvents(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu", "us")
		f.permit("alice", "eu", "us", "new")
		eu := f.members["eu"]
		for _, name := range []string{"a", "b", "c"} {
			eu.Put(pod("shop", name, "app=web"))
		}
		f.members["us"].Put(pod("shop", "b"))
		f.registry(searchv1alpha1.ResourceRegistrySpec{})

		// 1. Pages, with a change in between that the watch reports.
		first := f.get("alice", pods+"?limit=2")
		eu.Put(pod("shop", "a0"))
		membertest.Advance(time.Second)
		second := f.get("alice", pods+"?limit=2&continue="+first.list.GetContinue())
		if got := append(first.names(), second.names()...); !slices.Equal(got,
			[]string{"eu:shop/a", "eu:shop/b", "us:shop/b", "eu:shop/c"}) || second.list.GetContinue() != "" {
			t.Errorf("the pages have %q, and continue %q", got, second.list.GetContinue())
		}
		version := second.list.GetResourceVersion()
		if version != first.list.GetResourceVersion() {
			t.Errorf("the pages have the versions %s and %s", first.list.GetResourceVersion(), version)
		}
		w := f.watch("alice", pods+"?watch=true&resourceVersion="+version)
		w.wants(t, "after the list", "ADDED eu:shop/a0")

		// 2. Selectors: an object that does not match any more is deleted for the watch.
		web := f.watch("alice", pods+"?watch=true&labelSelector=app%3Dweb&resourceVersion="+version)
		eu.Put(pod("shop", "a", "app=other"))
		eu.Put(pod("shop", "b", "app=web", "new=label"))
		eu.Remove(membertest.Pod, "shop", "c")
		web.wants(t, "with a selector", "DELETED eu:shop/a", "MODIFIED eu:shop/b", "DELETED eu:shop/c")
		w.wants(t, "without one", "MODIFIED eu:shop/a", "MODIFIED eu:shop/b", "DELETED eu:shop/c")

		// 3. Resume from an event, over deletions that a broken watch of the member missed.
		_ = w.body.Close()
		eu.Down(true)
		eu.Remove(membertest.Pod, "shop", "b")
		membertest.Advance(time.Second)
		eu.Down(false)
		membertest.Advance(20 * time.Second)
		again := f.watch("alice", pods+"?watch=true&resourceVersion="+w.version)
		again.wants(t, "after a resume", "DELETED eu:shop/b")

		// 4. A new cluster: open watches get its objects, and older versions are expired, once.
		old := f.get("alice", pods).list.GetResourceVersion()
		page := f.get("alice", pods+"?limit=1").list.GetContinue()
		f.join("new")
		f.members["new"].Put(pod("shop", "n"))
		membertest.Advance(30 * time.Second)
		again.wants(t, "after a cluster joined", "ADDED new:shop/n")
		for _, path := range []string{pods + "?watch=true&resourceVersion=" + old, pods + "?limit=1&continue=" + page,
			pods + "?watch=true&resourceVersion=1234"} {
			if a := f.get("alice", path); a.code != http.StatusGone {
				t.Errorf("an old version is answered with %d %s", a.code, a.body)
			}
		}
		now := f.get("alice", pods).list.GetResourceVersion()
		f.watch("alice", pods+"?watch=true&resourceVersion="+now).wants(t, "after the next list")
		f.watch("alice", pods+"?watch=true").wants(t, "without a version", "ADDED new:shop/n", "ADDED eu:shop/a",
			"ADDED eu:shop/a0", "ADDED us:shop/b")
	})
}

func TestWatchEndsWithTheRightWithin30Seconds(t *testing.T) {
	for _, right := range []string{"alice get us", "alice watch pods us"} {
		membertest.Run(t, func(t *testing.T) {
			f := newFleet(t, 0, "eu", "us")
			f.permit("alice", "eu", "us")
			f.members["us"].Put(pod("shop", "web"))
			f.registry(searchv1alpha1.ResourceRegistrySpec{})
			w := f.watch("alice", pods+"?watch=true")
			w.wants(t, "at first", "ADDED us:shop/web")
			f.mayNot(right)
			membertest.Advance(29 * time.Second)
			w.wants(t, "without "+right, "DELETED us:shop/web")
			f.members["us"].Put(pod("shop", "hidden"))
			f.members["eu"].Put(pod("shop", "seen"))
			w.wants(t, "later", "ADDED eu:shop/seen")
		})
	}
}

func TestClustersThatDoNotRespondAreNamed(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu", "us")
		f.permit("alice", "eu", "us")
		f.permit("bob", "eu")
		f.members["us"].Put(pod("shop", "web"))
		f.registry(searchv1alpha1.ResourceRegistrySpec{})
		w := f.watch("alice", pods+"?watch=true")
		w.wants(t, "at first", "ADDED us:shop/web")
		f.mu.Lock()
		f.mute["us"] = true
		f.mu.Unlock()
		f.members["us"].Down(true)
		membertest.Advance(40 * time.Second)
		a := f.get("alice", pods)
		if a.code != 200 || len(a.names()) != 0 || !strings.Contains(strings.Join(a.warnings, ""),
			"left out: cluster us: it does not respond") {
			t.Errorf("alice gets %d %q, warnings %q", a.code, a.names(), a.warnings)
		}
		if a := f.get("bob", pods); a.code != 200 || len(a.warnings) > 0 {
			t.Errorf("bob gets %d, warnings %q", a.code, a.warnings)
		}
		if a := f.get("alice", pods+"?clusters=us"); a.code != http.StatusServiceUnavailable ||
			!strings.Contains(a.body, "us") {
			t.Errorf("alice gets %d %s", a.code, a.body)
		}
		w.wants(t, "while the cluster is silent") // its objects may exist
		f.mu.Lock()
		delete(f.mute, "us")
		f.mu.Unlock()
		f.members["us"].Remove(membertest.Pod, "shop", "web")
		f.members["us"].Down(false)
		membertest.Advance(time.Minute)
		if got := w.take(); !slices.Equal(got, []string{"DELETED us:shop/web"}) &&
			!slices.Equal(got, []string{"ERROR 410", "END"}) {
			t.Errorf("after the cluster is back, the events are %q", got)
		}
		if a := f.get("alice", pods); len(a.warnings) > 0 || len(a.names()) > 0 {
			t.Errorf("alice gets %q, warnings %q", a.names(), a.warnings)
		}
	})
}

func TestWritesGoAsTheUserToTheOneClusterThatHasTheObject(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu", "us")
		f.permit("alice", "eu", "us")
		f.permit("bob", "eu")
		f.members["eu"].Put(pod("shop", "web"))
		for _, m := range f.members {
			m.Put(pod("shop", "both"))
		}
		f.registry(searchv1alpha1.ResourceRegistrySpec{})
		for _, verb := range []string{"update", "delete"} {
			f.proxies["alice "+verb+" eu"] = true
		}
		w := f.watch("alice", pods+"?watch=true&fieldSelector=metadata.name%3Dweb")
		w.wants(t, "at first", "ADDED eu:shop/web")
		f.members["eu"].Put(pod("shop", "web", "new=label"))
		w.wants(t, "after a change", "MODIFIED eu:shop/web")
		theirs := f.members["eu"].Object(membertest.Pod, "shop", "web").GetResourceVersion()
		at := search.ProxyPath + "/api/v1/namespaces/shop/pods"
		for _, c := range []struct {
			user, method, path, body string
			code                     int
			passed, text             string
		}{
			{"alice", "PUT", at + "/web", `{"metadata":{"resourceVersion":"` + w.version + `"}}`, 200,
				`PUT /apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/api/v1/namespaces/shop/pods/web {"metadata":{"resourceVersion":"` + theirs + `"}}`, ""},
			{"alice", "GET", at + "/web/log", "", 200,
				"GET /apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/api/v1/namespaces/shop/pods/web/log", ""},
			{"alice", "DELETE", at + "/both", "", 409, "", "it exists in several clusters (eu, us)"},
			{"alice", "GET", at + "/both", "", 409, "", "it exists in several clusters (eu, us)"},
			{"alice", "PATCH", at + "/web", "{}", 403, "", "the right to patch clusters/proxy of this cluster"},
			{"bob", "DELETE", at + "/web", "", 403, "", "the right to delete clusters/proxy of this cluster"},
			{"eve", "DELETE", at + "/web", "", 403, "", "you may not get pods"},
			{"alice", "DELETE", at + "/none", "", 404, "", ""},
			{"alice", "POST", at, "{}", 405, "", "the global proxy cannot create pods"},
			{"alice", "DELETE", at, "", 405, "", "the global proxy cannot deletecollection pods"},
			{"alice", "POST", search.CachePath + "/api/v1/namespaces/shop/pods", "{}", 405, "", ""},
		} {
			f.passed = nil
			a := f.send(c.user, c.method, c.path, c.body)
			passed := strings.Join(f.passed, "")
			if a.code != c.code || passed != c.passed || !strings.Contains(a.body, c.text) {
				t.Errorf("%s of %s to %s: %d %s, passed on: %s", c.method, c.user, c.path, a.code, a.body, passed)
			}
		}
		for name, m := range f.members {
			if writes := m.Writes(); len(writes) > 0 {
				t.Errorf("the hub itself wrote in %s: %q", name, writes)
			}
		}

		// A cluster that does not respond may have the object too.
		f.members["us"].Put(pod("shop", "web"))
		membertest.Advance(time.Second)
		f.mu.Lock()
		f.mute["us"] = true
		f.mu.Unlock()
		membertest.Advance(time.Minute)
		if a := f.send("alice", "DELETE", at+"/web", ""); a.code != http.StatusServiceUnavailable ||
			!strings.Contains(a.body, `cluster \"us\" may have pods \"web\" too`) {
			t.Errorf("the deletion gives %d %s", a.code, a.body)
		}
	})
}

func TestWhatIsNotCachedIsAnsweredByTheHubAsTheUser(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu")
		for _, path := range []string{"/api", "/apis/apps/v1", "/version", "/api/v1/pods", "/openapi/v3"} {
			f.passed = nil
			if a := f.get("alice", search.ProxyPath+path); a.code != 200 ||
				!slices.Equal(f.passed, []string{"hub GET " + path + " as alice system:authenticated"}) {
				t.Errorf("%s: %d %s, passed on: %q", path, a.code, a.body, f.passed)
			}
		}
		if a := f.get("alice", search.ProxyPath+search.ProxyPath+"/api"); a.code != http.StatusBadRequest {
			t.Errorf("the proxy of the proxy answers %d %s", a.code, a.body)
		}
	})
}

func TestSearchCachesOnDemandAndEndsWhenIdle(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu", "us", "secret")
		f.permit("alice", "eu", "us")
		f.members["us"].Put(pod("shop", "web"))
		membertest.Advance(time.Minute)
		path := search.CachePath + "/api/v1/pods"
		if a := f.get("eve", path); a.code != 403 {
			t.Errorf("eve gets %d %s", a.code, a.body)
		}
		for name, m := range f.members {
			if requests := m.Requests(""); len(requests) > 0 {
				t.Errorf("%s got requests before a search: %q", name, requests)
			}
		}
		if a := f.get("alice", path); a.code != 200 || !slices.Equal(a.names(), []string{"us:shop/web"}) ||
			len(a.warnings) > 0 {
			t.Errorf("the first search gives %d %q %q", a.code, a.body, a.warnings)
		}
		if requests := f.members["secret"].Requests(""); len(requests) > 0 {
			t.Errorf("a cluster that alice may not read got %q", requests)
		}
		if used := f.engine.Usage(); used.Searches == 0 || used.Registries != 0 {
			t.Errorf("the caches use %+v", used)
		}
		membertest.Advance(search.DefaultIdle + 10*time.Second)
		if used := f.engine.Usage(); used.Searches != 0 || len(used.Objects) != 0 {
			t.Errorf("idle caches use %+v", used)
		}
		if a := f.get("alice", search.CachePath+"/apis/example.com/v1/things"); a.code != 403 && a.code != 404 {
			t.Errorf("an unknown resource gives %d %s", a.code, a.body)
		}
	})
}

// What a registry selects stays when a search of the same resource ends, or asks for more clusters.
func TestRegistriesOutliveSearches(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu", "us")
		f.permit("alice", "eu", "us")
		for name, m := range f.members {
			m.Put(pod("shop", "web-"+name))
		}
		spec := searchv1alpha1.ResourceRegistrySpec{}
		spec.TargetCluster.ClusterNames = []string{"eu"}
		f.registry(spec)
		w := f.watch("alice", pods+"?watch=true")
		w.wants(t, "at first", "ADDED eu:shop/web-eu")
		if a := f.get("alice", search.CachePath+"/api/v1/pods"); !slices.Equal(a.names(),
			[]string{"eu:shop/web-eu", "us:shop/web-us"}) {
			t.Errorf("the search gives %q", a.names())
		}
		if a := f.get("alice", pods); !slices.Equal(a.names(), []string{"eu:shop/web-eu"}) {
			t.Errorf("the global proxy has %q", a.names())
		}
		membertest.Advance(search.DefaultIdle + time.Minute)
		if used := f.engine.Usage(); used.Searches != 0 || used.Registries == 0 {
			t.Errorf("the caches use %+v", used)
		}
		f.members["eu"].Put(pod("shop", "later"))
		w.wants(t, "after the search ended", "ADDED eu:shop/later")
	})
}

func TestARegistryOfAKindThatNoMemberServesSaysSo(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu")
		f.permit("alice", "eu")
		f.registry(searchv1alpha1.ResourceRegistrySpec{ResourceSelectors: []searchv1alpha1.ResourceSelector{
			{APIVersion: "example.com/v1", Kind: "Ship"}, {APIVersion: "v1", Kind: "Pod"}}})
		registries, clusters := &searchv1alpha1.ResourceRegistryList{}, &clusterv1alpha1.ClusterList{}
		for _, list := range []client.ObjectList{registries, clusters} {
			if err := f.store.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		report := f.engine.Report(&registries.Items[0], clusters.Items)
		if !slices.Equal(report.Problems, []string{"no selected cluster that responds serves Ship of example.com/v1"}) ||
			report.Resources != 1 {
			t.Errorf("the report is %+v", report)
		}
	})
}

func TestMemoryOfCachesIsBounded(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		const memory = 256 << 10
		f := newFleet(t, memory, "eu", "us")
		f.permit("alice", "eu", "us")
		f.members["eu"].Put(pod("shop", "small"))
		big := pod("shop", "big")
		big.Annotations = map[string]string{"text": strings.Repeat("x", memory/8)}
		f.members["us"].Put(big)
		f.registry(searchv1alpha1.ResourceRegistrySpec{})
		membertest.Advance(time.Minute)
		for i := range 20 { // watch events count as well as lists
			more := big.DeepCopy()
			more.Name = fmt.Sprint("big-", i)
			f.members["us"].Put(more)
			membertest.Advance(time.Second)
		}
		a := f.get("alice", pods)
		if !slices.Equal(a.names(), []string{"eu:shop/small"}) || !strings.Contains(strings.Join(a.warnings, ""),
			"left out: cluster us: pods in cluster us would need more than the 256Ki that the hub may cache") {
			t.Errorf("the list has %q, warnings %q", a.names(), a.warnings)
		}
		if used := f.engine.Usage(); used.Registries > memory {
			t.Errorf("the caches use %d bytes of %d", used.Registries, memory)
		}
		if a := f.get("alice", pods+"?clusters=us"); a.code != http.StatusServiceUnavailable ||
			!strings.Contains(a.body, "would need more than the 256Ki") {
			t.Errorf("a list of what cannot be cached gives %d %s", a.code, a.body)
		}
		// A search does not take memory from registries.
		f.permitted["alice list nodes eu"] = true
		if a := f.get("alice", search.CachePath+"/api/v1/nodes"); a.code != 200 {
			t.Errorf("a search gives %d %s", a.code, a.body)
		}
		if a := f.get("alice", pods); !slices.Equal(a.names(), []string{"eu:shop/small"}) {
			t.Errorf("after a search, the list has %q", a.names())
		}
	})
}

func TestRegistryLimitsNamespacesAndClusters(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu", "us")
		f.permit("alice", "eu", "us")
		for _, m := range f.members {
			for _, namespace := range []string{"shop", "bank", "zoo"} {
				m.Put(pod(namespace, "web"))
			}
		}
		spec := searchv1alpha1.ResourceRegistrySpec{ResourceSelectors: []searchv1alpha1.ResourceSelector{
			{APIVersion: "v1", Kind: "Pod", Namespace: "shop"}, {APIVersion: "v1", Kind: "Pod", Namespace: "zoo"}}}
		spec.TargetCluster.ClusterNames = []string{"eu"}
		f.registry(spec)
		if a := f.get("alice", pods); !slices.Equal(a.names(), []string{"eu:shop/web", "eu:zoo/web"}) {
			t.Errorf("the list has %q", a.names())
		}
		a := f.get("alice", search.ProxyPath+"/api/v1/namespaces/bank/pods")
		if len(a.names()) > 0 || !strings.Contains(strings.Join(a.warnings, ""),
			"no ResourceRegistry selects namespace bank") {
			t.Errorf("another namespace has %q, warnings %q", a.names(), a.warnings)
		}
	})
}

func TestTablesHaveTheCluster(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu")
		f.permit("alice", "eu")
		f.members["eu"].Put(pod("shop", "web"))
		f.registry(searchv1alpha1.ResourceRegistrySpec{})
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, f.url+pods, nil)
		r.Header.Set("Test-User", "alice")
		r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
		resp, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var table metav1.Table
		if err := json.NewDecoder(resp.Body).Decode(&table); err != nil || len(table.Rows) != 1 ||
			table.ColumnDefinitions[1].Name != "Cluster" || fmt.Sprint(table.Rows[0].Cells[:2]) != "[web eu]" ||
			!strings.Contains(string(table.Rows[0].Object.Raw), `"namespace":"shop"`) || table.ResourceVersion == "" {
			t.Errorf("the table is %+v: %v", table, err)
		}
	})
}

func TestWatchesOfOneUserAreBounded(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu")
		f.permit("alice", "eu")
		f.permit("bob", "eu")
		f.registry(searchv1alpha1.ResourceRegistrySpec{})
		for range 200 {
			f.watch("alice", pods+"?watch=true")
		}
		if a := f.get("alice", pods+"?watch=true"); a.code != http.StatusTooManyRequests {
			t.Errorf("one watch too many gives %d %s", a.code, a.body)
		}
		f.watch("bob", pods+"?watch=true").wants(t, "of another user")
		if a := f.get("alice", pods); a.code != 200 {
			t.Errorf("a list gives %d %s", a.code, a.body)
		}
	})
}
