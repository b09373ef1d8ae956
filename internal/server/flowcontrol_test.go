package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/test/kit"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestARequestIntoAMemberIsAsLongAsTheSameHere(t *testing.T) {
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	check := longRunning(filters.BasicLongRunningRequestCheck(sets.NewString("watch", "proxy"),
		sets.NewString("attach", "exec", "proxy", "log", "portforward")))
	for path, want := range map[string]bool{
		"/api/v1/pods":                                false,
		"/api/v1/pods?watch=true":                     true,
		"/api/v1/namespaces/a/pods/b":                 false,
		"/api/v1/namespaces/a/pods/b/log?follow=true": true,
		"/api/v1/namespaces/a/pods/b/exec?command=sh": true,
		"/api/v1/watch/pods":                          true,
		"/metrics":                                    false,
		"":                                            false,
		"?path=/api/v1/pods":                          false,
		"?path=api/v1/pods&watch=1":                   true,
		"?path=/api/v1/namespaces/a/pods/b/portforward": true,
	} {
		r, err := http.NewRequest(http.MethodGet, "https://hub"+proxy.Path("m1")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := check(r, info); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, "https://hub"+proxy.Path("m1")+"/api/v1/pods", nil)
	r.Header.Set("Upgrade", "websocket")
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	if !check(r, info) {
		t.Error("an upgraded connection is not long")
	}
	for path, want := range map[string]bool{
		search.ProxyPath + "/api/v1/pods":                                false,
		search.ProxyPath + "/api/v1/pods?watch=true":                     true,
		search.ProxyPath + "/api/v1/namespaces/a/pods/b/log?follow=true": true,
		search.ProxyPath + "/apis":                                       false,
		search.CachePath + "/api/v1/pods":                                false,
	} {
		r, err := http.NewRequest(http.MethodGet, "https://hub"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := check(r, info); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
}

func TestOnlyTheTunnelItselfBypassesFlowControl(t *testing.T) {
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	check := longRunning(filters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString("proxy")))
	for name, c := range map[string]struct {
		method, path, protocol string
		want                   bool
	}{
		"an agent that connects":  {http.MethodPost, tunnel.Path("m1"), tunnel.Protocol, true},
		"a read":                  {http.MethodGet, tunnel.Path("m1"), tunnel.Protocol, false},
		"a deletion":              {http.MethodDelete, tunnel.Path("m1"), tunnel.Protocol, false},
		"a POST without upgrade":  {http.MethodPost, tunnel.Path("m1"), "", false},
		"another protocol":        {http.MethodPost, tunnel.Path("m1"), "websocket", false},
		"a path below the tunnel": {http.MethodPost, tunnel.Path("m1") + "/x", tunnel.Protocol, false},
	} {
		r, err := http.NewRequest(c.method, "https://hub"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.protocol != "" {
			r.Header.Set("Upgrade", c.protocol)
		}
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := check(r, info); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// clientAs returns a client of the hub that acts as a user.
func clientAs(t *testing.T, config *rest.Config, user string) *kubernetes.Clientset {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate.UserName = user
	config.QPS = -1
	return kubernetes.NewForConfigOrDie(config)
}

// requestsOf returns a user's requests into members that the hub queues or serves, by their queue.
func requestsOf(t *testing.T, user string, admin kubernetes.Interface) map[string]int {
	t.Helper()
	dump, err := admin.Discovery().RESTClient().Get().AbsPath("/debug/api_priority_and_fairness/dump_requests").DoRaw(
		t.Context())
	if err != nil {
		t.Fatal(err)
	}
	queues := map[string]int{}
	for line := range strings.Lines(string(dump)) {
		// level, schema, queue, place, user, …
		if f := strings.Split(strings.ReplaceAll(line, " ", ""), ","); len(f) > 4 && f[0] == membersLevel && f[4] == user {
			queues[f[2]]++
		}
	}
	return queues
}

// Alice's requests wait for a member that does not answer, more of them than the hub serves at once.
func TestUsersQueueApartForRequestsIntoMembers(t *testing.T) {
	h := useSharedHub(t)
	const many = 60 // the hub serves 30 at once
	for _, user := range []string{"alice", "bob"} {
		bind(t, h.admin, user, "cluster-admin", "")
	}
	release := make(chan struct{})
	var reached atomic.Int64 // the silent member
	silent, healthy := membertest.New(t), membertest.New(t)
	silent.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
		reached.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return false
	})
	joinMember(t, h.adminConfig, silent, "silent")
	joinMember(t, h.adminConfig, healthy, "healthy")
	get := func(client kubernetes.Interface, path string) error {
		return client.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
	}
	alice, bob := clientAs(t, h.adminConfig, "alice"), clientAs(t, h.adminConfig, "bob")
	for _, client := range []kubernetes.Interface{alice, bob} {
		kit.Eventually(t, "the member is known, and the user may use it", func() string {
			if err := get(client, proxy.Path("healthy")+"/api/v1/nodes"); err != nil {
				return err.Error()
			}
			return ""
		})
	}

	var waiting sync.WaitGroup
	for range many {
		waiting.Go(func() { _ = get(alice, proxy.Path("silent")+"/api/v1/nodes") })
	}
	kit.Eventually(t, "alice's requests wait", func() string {
		n := 0
		for _, inQueue := range requestsOf(t, "alice", h.admin) {
			n += inQueue
		}
		if n < many || reached.Load() == 0 {
			return fmt.Sprintf("%d of %d, of which %d reached the member", n, many, reached.Load())
		}
		return ""
	})
	if n := reached.Load(); n >= many {
		t.Errorf("all %d requests reach the member at once: they are in no queue", n)
	}
	// Requests to the hub itself have places of their own.
	for user, client := range map[string]kubernetes.Interface{"bob": bob, "alice": alice, "the administrator": h.admin,
		"the hub itself": kubernetes.NewForConfigOrDie(h.Config())} {
		if _, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("%s gets %v", user, err)
		}
	}
	// Bob's request into a member is the first of a queue of its own. How long it waits there is decided by Kubernetes.
	served := make(chan error, 1)
	go func() { served <- get(bob, proxy.Path("healthy")+"/api/v1/nodes") }()
	kit.Eventually(t, "bob's request waits in a queue or is served", func() string {
		if len(served) == 0 && len(requestsOf(t, "bob", h.admin)) == 0 {
			return "neither"
		}
		return ""
	})
	alices := requestsOf(t, "alice", h.admin)
	for queue := range requestsOf(t, "bob", h.admin) {
		if alices[queue] > 0 {
			t.Errorf("bob's request is in queue %s, behind %d of alice's", queue, alices[queue])
		}
	}
	close(release)
	waiting.Wait()
	if err := <-served; err != nil {
		t.Errorf("bob gets %v", err)
	}
}

func TestFlowControlOfUsersStaysAsTheyChangedIt(t *testing.T) {
	h := useSharedHub(t)
	levels, schemas := h.admin.FlowcontrolV1().PriorityLevelConfigurations(), h.admin.FlowcontrolV1().FlowSchemas()
	mine, err := levels.Get(t.Context(), agentsLevel, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	*mine.Spec.Limited.NominalConcurrencyShares = 7
	if _, err := levels.Update(t.Context(), mine, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	changed, err := schemas.Get(t.Context(), agentsLevel, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed.Spec.MatchingPrecedence = 5000
	if _, err := schemas.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// One of an older hub, which no user changed.
	older, err := schemas.Get(t.Context(), membersLevel, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	older.Spec.MatchingPrecedence = 601
	older.Annotations[wellknown.SpecGenerationAnnotation] = fmt.Sprint(older.Generation + 1)
	if _, err := schemas.Update(t.Context(), older, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.startFlowControl(t.Context()); err != nil {
		t.Fatal(err)
	}
	if older, err = schemas.Get(t.Context(), membersLevel, metav1.GetOptions{}); err != nil ||
		older.Spec.MatchingPrecedence != 600 {
		t.Errorf("the schema of an older hub has %v, %v", older.Spec, err)
	} else if older.Annotations[wellknown.SpecGenerationAnnotation] != fmt.Sprint(older.Generation) {
		t.Errorf("a schema of generation %d counts as changed by a user: %v", older.Generation, older.Annotations)
	}
	if mine, err = levels.Get(t.Context(), agentsLevel, metav1.GetOptions{}); err != nil ||
		*mine.Spec.Limited.NominalConcurrencyShares != 7 {
		t.Errorf("the level that a user changed has %v, %v", mine.Spec, err)
	}
	if changed, err = schemas.Get(t.Context(), agentsLevel, metav1.GetOptions{}); err != nil ||
		changed.Spec.MatchingPrecedence != 5000 {
		t.Errorf("the schema that a user changed has %v, %v", changed.Spec, err)
	}
	all, err := schemas.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Items {
		for _, c := range s.Status.Conditions {
			if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionTrue {
				t.Errorf("schema %s has no level", s.Name)
			}
		}
	}
}

// proxied serves members.
func proxied(d Deps, next http.Handler) http.Handler {
	hub := reader(d.Config)
	members := proxy.New(proxy.Options{Hub: hub, Grants: acting.Follow(d.Config, d.Done)})
	searches, err := newSearch(d, hub, members, nil)
	if err != nil {
		panic(err) // the configuration is the hub's own
	}
	return members.Handler(searches.Handler(fleetMetrics(d, hub, members, next)))
}

// joinMember has the hub know a member.
func joinMember(t *testing.T, config *rest.Config, member *membertest.Server, name string) {
	t.Helper()
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	cluster := member.Cluster(name)
	cluster.TypeMeta = metav1.TypeMeta{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster"}
	cluster.UID = ""
	cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: clusterNamespace, Name: name +
		"-impersonator"}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters")).Create(t.Context(),
		&unstructured.Unstructured{Object: u}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secrets := d.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(clusterNamespace)
	for _, s := range []*corev1.Secret{member.Secret(name), {ObjectMeta: metav1.ObjectMeta{Name: name + "-impersonator"},
		Data: map[string][]byte{"token": []byte(membertest.Token)}}} {
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := secrets.Create(t.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
