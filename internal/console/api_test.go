package console

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// grants are the rights of the one user of a test.
type grants map[string]bool

func (g grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	allowed := g[a.GetVerb()+" "+a.GetPath()]
	if a.IsResourceRequest() {
		name := a.GetResource()
		if a.GetSubresource() != "" {
			name += "/" + a.GetSubresource()
		}
		allowed = g[a.GetVerb()+" "+name+" *"] || a.GetNamespace() != "" && g[a.GetVerb()+" "+name+" "+a.GetNamespace()]
	}
	if allowed {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func binding(kind, namespace, name, clusterName string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" +
		strings.ToLower(kind)}}
	version := "apps/v1"
	if kind == "Secret" {
		version = "v1"
	}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: clusterName}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: clusterName, AppliedMessage: "no"}}
	return b
}

// waitingRelease returns a release that waits for approval.
func waitingRelease(namespace string) *releasev1alpha1.Release {
	return &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-7"},
		Status: releasev1alpha1.ReleaseStatus{Phase: releasev1alpha1.ReleaseRunning, Conditions: []metav1.Condition{{
			Type: releasev1alpha1.ReleaseProgressing, Reason: releasev1alpha1.ReasonWaitingForApproval}}}}
}

// faultyWork returns a ManifestWork that its cluster refuses.
func faultyWork(namespace string) *ocmv1.ManifestWork {
	return &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "base"},
		Status: ocmv1.ManifestWorkStatus{Conditions: []metav1.Condition{{Type: ocmv1.Applied,
			Status: metav1.ConditionFalse, Message: "no"}}}}
}

func newTestAPI(t *testing.T, g grants, objs ...client.Object) *API {
	t.Helper()
	cached := newFakeCache(objs...)
	a := NewAPI(Options{Cached: func() Cache { return cached }, HealthPath: "/argosy/health",
		Authorizer: func() authorizer.Authorizer { return g }, Done: t.Context().Done(),
		Findings: func() []upkeep.Finding { return []upkeep.Finding{{Name: "store", Message: "it is full"}} },
		Troubled: func(context.Context, string, workv1alpha2.Binding) ([]pods.Workload, bool, error) {
			report := pods.Report{Cluster: "c1", Pods: 1, Troubles: []pods.Group{{Pods: 1, Reason: "CrashLoopBackOff"}}}
			return []pods.Workload{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
				Report: report}}, true, nil
		}}, nil)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}, {Version: "v1"},
		{Group: "apps.kruise.io", Version: "v1alpha1"}})
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"},
		meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
	a.kinds = &kinds{known: mapper, now: time.Now, at: time.Now().Add(time.Hour)}
	a.Config = &rest.Config{Host: "https://hub"}
	return a
}

func keys(v view) (all []string) {
	for _, r := range v.rows {
		all = append(all, r.key)
	}
	return all
}

// Whatever rights a user has, each row that the user sees is of a kind and namespace that the user may list.
func TestRowsAreOnlyWhatTheUserMayList(t *testing.T) {
	kinds, namespaces := map[string]string{"Deployment": "deployments", "Secret": "secrets"}, []string{"shop", "bank"}
	objs := []client.Object{&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}}
	for kind := range kinds {
		for _, ns := range namespaces {
			objs = append(objs, binding(kind, ns, "web", "c1"))
		}
	}
	objs = append(objs, waitingRelease("shop"), waitingRelease("bank"), faultyWork("shop"), faultyWork("bank"))
	all := []string{"list clusters *", "get /argosy/health", "get /argosy/pods"}
	for _, resource := range []string{"deployments", "secrets", "releases", "resourcebindings", "resourcebindings/pods",
		"manifestworks"} {
		for _, ns := range append([]string{"*"}, namespaces...) {
			verb := "list "
			if strings.Contains(resource, "/") {
				verb = "get "
			}
			all = append(all, verb+resource+" "+ns)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	u := &user.DefaultInfo{Name: "alice"}
	seen, works := map[string]int{}, 0
	g := grants{}
	a := newTestAPI(t, g, objs...)
	s, err := a.rows.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for round := range 1000 {
		clear(g)
		a.rights.known.RemoveAll(func(any) bool { return true })
		for _, right := range all {
			if random.IntN(3) == 0 {
				g[right] = true
			}
		}
		may := func(verb, resource, ns string) bool { return g[verb+" "+resource+" *"] || g[verb+" "+resource+" "+ns] }
		for topic, of := range topics {
			for _, r := range of(a, t.Context(), u, s).rows {
				seen[topic]++
				var row struct {
					Key    string           `json:"key"`
					About  string           `json:"about"`
					Object *overview.Object `json:"object"`
				}
				if err := json.Unmarshal(r.json, &row); err != nil {
					t.Fatal(err)
				}
				o := row.Object
				if topic == "workloads" || topic == "releases" {
					o = &overview.Object{}
					_ = json.Unmarshal(r.json, o)
				}
				allowed := false
				switch {
				case topic == "clusters" || row.About == "cluster":
					allowed = g["list clusters *"]
				case row.About == "release" || topic == "releases":
					allowed = may("list", "releases", o.Namespace)
				case row.About == "hub":
					allowed = g["get /argosy/health"]
				case o.Kind == "ManifestWork":
					works++
					allowed = may("list", "manifestworks", o.Namespace)
				case strings.HasPrefix(row.Key, "pods/"):
					allowed = may("list", kinds[o.Kind], o.Namespace) && may("list", "resourcebindings", o.Namespace) &&
						(g["get /argosy/pods"] || may("get", "resourcebindings/pods", o.Namespace))
				default:
					allowed = may("list", kinds[o.Kind], o.Namespace) && may("list", "resourcebindings", o.Namespace)
				}
				if !allowed {
					t.Fatalf("round %d: %s has %s with the rights %v", round, topic, r.json, g)
				}
			}
		}
	}
	for topic := range topics {
		if seen[topic] == 0 {
			t.Errorf("no row of %s was seen", topic)
		}
	}
	if works == 0 {
		t.Error("no ManifestWork was seen")
	}
}

func TestUserWithAllRightsSeesTheFleet(t *testing.T) {
	g := grants{"list clusters *": true, "list deployments *": true, "list releases *": true, "list secrets *": true,
		"list resourcebindings *": true, "get /argosy/health": true, "get /argosy/pods": true, "list manifestworks *": true}
	a := newTestAPI(t, g, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}, faultyWork("c1"),
		binding("Deployment", "shop", "web", "c1"), binding("Secret", "bank", "key", "c1"), waitingRelease("shop"))
	s, err := a.rows.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := a.fleet(t.Context(), &user.DefaultInfo{Name: "root"}, s)
	want := []string{"hub/store", "pods/Deployment.apps shop/web/c1", "workload/Deployment.apps shop/web",
		"workload/ManifestWork.work.open-cluster-management.io c1/base", "workload/Secret bank/key",
		"release/Release.release.argosy.io shop/web-7", "cluster/c1"}
	if got := keys(v); !slices.Equal(got, want) {
		t.Errorf("the items are %q, want %q", got, want)
	}
	if want := (totals{Clusters: 1, Workloads: 2, Bad: 2, Waiting: 1}); !reflect.DeepEqual(v.totals, want) ||
		len(v.missing) > 0 {
		t.Errorf("totals %+v, missing %v", v.totals, v.missing)
	}
	c := topics["clusters"](a, t.Context(), alice, s).rows[0]
	const figures = `{"name":"c1","state":"NotSeenYet","what":"its status has not been collected yet",` +
		"\"next\":\"`argosy why cluster c1`\"," + `"nodes":0,"readyNodes":0,"placed":2,"bad":2}`
	if string(c.json) != figures {
		t.Errorf("the row of the cluster is %s, want %s", c.json, figures)
	}
}

func TestMissingRightIsNamed(t *testing.T) {
	a := newTestAPI(t, grants{}, binding("Deployment", "shop", "web", "c1"))
	s, err := a.rows.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := a.fleet(t.Context(), alice, s)
	if len(v.rows) > 0 || len(v.missing) != 2 || v.missing[0].Resource != "clusters" ||
		v.missing[1].Error() != "you may not list resourcebindings.work.karmada.io in all namespaces" {
		t.Errorf("rows %v, missing %v", keys(v), v.missing)
	}
}

func TestLostRightEndsWithinItsAge(t *testing.T) {
	g := grants{"list clusters *": true}
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := &rights{authorizer: func() authorizer.Authorizer { return g }, known: cache.NewLRUExpireCacheWithClock(1, now)}
	if !r.allows(t.Context(), alice, listClusters) {
		t.Fatal("the right is not seen")
	}
	if r.allows(t.Context(), &user.DefaultInfo{Name: "alice"}, right{verb: "delete", group: listClusters.group,
		resource: "clusters"}) {
		t.Error("another verb is allowed")
	}
	delete(g, "list clusters *")
	now.SetTime(now.Now().Add(rightsAge + 1))
	if r.allows(t.Context(), alice, listClusters) {
		t.Error("the lost right still counts")
	}
	r.authorizer = func() authorizer.Authorizer { return nil }
	now.SetTime(now.Now().Add(rightsAge + 1))
	if r.allows(t.Context(), alice, listClusters) {
		t.Error("without an authorizer everything is allowed")
	}
}

func (a *API) request(t *testing.T, u user.Info, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if u != nil {
		r = r.WithContext(request.WithUser(r.Context(), u))
	}
	w := httptest.NewRecorder()
	a.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
	return w
}

func TestStrangersAreRefused(t *testing.T) {
	a := newTestAPI(t, grants{})
	anonymous := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	for _, path := range Paths {
		method := "GET"
		if slices.Contains(posts, path) {
			method = "POST"
		}
		for _, u := range []user.Info{nil, anonymous} {
			if w := a.request(t, u, method, path, "{}"); w.Code != http.StatusUnauthorized {
				t.Errorf("%s gave %d to %v", path, w.Code, u)
			}
		}
		if w := a.request(t, alice, "DELETE", path, ""); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("DELETE %s gave %d", path, w.Code)
		}
	}
}

const goodKubeconfig = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://10.1.1.1:6443", certificate-authority-data: Q0E=}}], users: [{name: u, user: {token: secret}}]}`

func TestImportNeedsTheRightToCreateClusters(t *testing.T) {
	g := grants{}
	a := newTestAPI(t, g)
	joined := 0
	a.Join = func(_ context.Context, hub *rest.Config, r JoinRequest, progress func(step, detail string)) error {
		joined++
		if hub.Impersonate.UserName != "alice" || hub.Impersonate.Groups[0] != "shop" {
			t.Errorf("it joins as %v", hub.Impersonate)
		}
		if r.Member.Host != "https://10.1.1.1:6443" || r.Member.BearerToken != "secret" {
			t.Errorf("it joins %v", r.Member)
		}
		progress("reached", "")
		return nil
	}
	a.Config = &rest.Config{Host: "https://hub"}
	body, _ := json.Marshal(JoinRequest{Name: "eu", Kubeconfig: goodKubeconfig})
	w := a.request(t, alice, "POST", importPath, string(body))
	if w.Code != http.StatusForbidden || joined > 0 || !strings.Contains(w.Body.String(), `"verb":"create"`) {
		t.Errorf("a user without the right got %d %s", w.Code, w.Body)
	}
	a = newTestAPI(t, grants{"create clusters *": true})
	a.Config = &rest.Config{Host: "https://hub"}
	a.Join = func(_ context.Context, hub *rest.Config, r JoinRequest, progress func(step, detail string)) error {
		joined++
		progress("reached", "")
		return fmt.Errorf("the cluster is tired")
	}
	w = a.request(t, alice, "POST", importPath, string(body))
	want := `{"detail":"","step":"reached"}` + "\n" + `{"error":"the cluster is tired"}` + "\n"
	if joined != 1 || w.Body.String() != want {
		t.Errorf("joined %d times, got %s", joined, w.Body)
	}
}

// Each kubeconfig that would run a program, read a file of the hub, or leave a cluster unverified is refused by name.
func TestHostileKubeconfigIsRefused(t *testing.T) {
	if c, err := memberConfig([]byte(goodKubeconfig)); err != nil || c.Host != "https://10.1.1.1:6443" ||
		string(c.CAData) != "CA" || c.Proxy != nil {
		t.Fatalf("the good one gives %v, %v", c, err)
	}
	const token, authority, server = "token: secret", "certificate-authority-data: Q0E=", "https://10.1.1.1:6443"
	for _, c := range []struct{ replace, with, says string }{
		{token, "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, interactiveMode: Never}",
			"exec of user u"},
		{token, "auth-provider: {name: gcp}", "auth-provider of user u"},
		{token, "tokenFile: /etc/passwd", "tokenFile of user u"},
		{token, "token: secret, tokenFile: /etc/passwd", "tokenFile of user u"},
		{token, "client-certificate: /etc/passwd, client-key-data: S0VZ", "client-certificate of user u"},
		{token, "client-certificate-data: Q0VSVA==, client-key: /etc/passwd", "client-key of user u"},
		{token, "username: a, password: b", "username of user u"},
		{token, "token: secret, as: root", "as of user u"},
		{authority, "certificate-authority: /etc/passwd", "certificate-authority of cluster c"},
		{authority, "proxy-url: http://evil.example", "proxy-url of cluster c"},
		{authority, "insecure-skip-tls-verify: true", "insecure-skip-tls-verify of cluster c"},
		{server, "http://10.1.1.1", "server of cluster c"},
		{server, "file:///etc/passwd", "server of cluster c"},
		{server, "https://a:b@10.1.1.1", "server of cluster c"},
		{token, "", "no token"},
		{"current-context: a", "current-context: b", "no current context"},
		{"cluster: c,", "cluster: d,", "does not have"},
		{goodKubeconfig, "[1, 2]", "not a kubeconfig"},
		{goodKubeconfig, "", "paste a kubeconfig"},
		{token, "token: " + strings.Repeat("x", maxKubeconfig), "larger than"},
	} {
		text := strings.Replace(goodKubeconfig, c.replace, c.with, 1)
		got, err := memberConfig([]byte(text))
		if err == nil || got != nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("with %.80q: %v, %v", c.with, got, err)
		}
	}
}

func TestStreamSendsASnapshotAndThenChanges(t *testing.T) {
	a := newTestAPI(t, grants{"list clusters *": true},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}})
	s, err := a.rows.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]sentView{}
	push := func(v view) string {
		w := httptest.NewRecorder()
		a.push(&events{w: w, control: http.NewResponseController(w)}, "clusters", v, sent, s.at)
		return w.Body.String()
	}
	v := topics["clusters"](a, t.Context(), alice, s)
	if got := push(v); !strings.HasPrefix(got, "event: snapshot\ndata: {") ||
		!strings.Contains(got, `[["c1",{"name":"c1"`) {
		t.Errorf("first: %s", got)
	}
	if got := push(v); got != "" {
		t.Errorf("nothing changed: %s", got)
	}
	v.rows = append(v.rows, newRow("c2", map[string]string{"name": "c2"}))
	if got := push(v); !strings.HasPrefix(got, "event: patch\n") || strings.Contains(got, `"c1"`) ||
		!strings.Contains(got, `"c2"`) {
		t.Errorf("one more: %s", got)
	}
	v.rows = v.rows[1:]
	if got := push(v); !strings.Contains(got, `"gone":["c1"]`) {
		t.Errorf("one less: %s", got)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	a := newTestAPI(t, grants{})
	for range maxStreamsOfUser {
		if !a.enter("alice") {
			t.Fatal("refused too early")
		}
	}
	if a.enter("alice") || !a.enter("bob") {
		t.Error("the bound is not per user")
	}
	if w := a.request(t, alice, "GET", streamPath+"?topics=everything", ""); w.Code != http.StatusBadRequest {
		t.Errorf("an unknown topic gave %d", w.Code)
	}
}
