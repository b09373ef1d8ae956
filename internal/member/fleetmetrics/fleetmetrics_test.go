package fleetmetrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	customv1beta1 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	customv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/fleetmetrics"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

const (
	podsPath   = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
	nodesPath  = "/apis/metrics.k8s.io/v1beta1/nodes"
	customPath = "/apis/custom.metrics.k8s.io/"
)

// The users of the tests: alice and root may send requests to all clusters, eve to eu alone, nora to none.
var (
	alice = &user.DefaultInfo{Name: "alice", Groups: []string{"system:authenticated"}}
	eve   = &user.DefaultInfo{Name: "eve", Groups: []string{"system:authenticated"}}
	nora  = &user.DefaultInfo{Name: "nora", Groups: []string{"system:authenticated"}}
	robot = &user.DefaultInfo{Name: "system:serviceaccount:shop:robot", Groups: []string{"system:authenticated"}}
	root  = &user.DefaultInfo{Name: "admin", Groups: []string{"system:masters"}}
)

var apiService = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{
	Group: "apiregistration.k8s.io", Version: "v1",
	Kind: "APIService"}, Plural: "apiservices"}

// fleet is a hub with members.
type fleet struct {
	*testing.T
	members   map[string]*fakeMember
	api       *membertest.Server
	store     client.Client
	discovery aggregated.ResourceManager
	handler   http.Handler
}

// fakeMember answers paths with JSON, or with a status code.
type fakeMember struct {
	*membertest.Server
	mu      sync.Mutex
	answers map[string]any
	// hangs until the request ends.
	hangs bool
	// asked are the requests for metrics: the user and the path with its query.
	asked []string
}

func (m *fakeMember) serve(w http.ResponseWriter, r *http.Request) bool {
	if !strings.Contains(r.URL.Path, "metrics.k8s.io") {
		return false
	}
	m.mu.Lock()
	answer, known := m.answers[r.URL.Path]
	hangs := m.hangs
	m.asked = append(m.asked, r.Header.Get("Impersonate-User")+" "+r.URL.RequestURI())
	m.mu.Unlock()
	if hangs {
		<-r.Context().Done()
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	switch a := answer.(type) {
	case int:
		w.WriteHeader(a)
	case string:
		fmt.Fprint(w, a)
	default:
		if !known {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		_ = json.NewEncoder(w).Encode(a)
	}
	return true
}

func (m *fakeMember) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

type authorize func(authorizer.Attributes) bool

func (f authorize) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if f(a) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func newFleet(t *testing.T, limits member.Limits, answers map[string]map[string]any) *fleet {
	t.Helper()
	f := &fleet{T: t, members: map[string]*fakeMember{}, api: membertest.New(t, apiService),
		discovery: aggregated.NewResourceManager("apis")}
	var objects []client.Object
	for name, a := range answers {
		m := &fakeMember{Server: membertest.New(t), answers: a}
		m.Behave(m.serve)
		f.members[name] = m
		c := m.Cluster(name)
		c.Spec.ImpersonatorSecretRef = c.Spec.SecretRef
		objects = append(objects, c, m.Secret(name))
	}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	f.store = fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	hub := func() (client.Reader, error) { return f.store, nil }
	grants := access.Derive([]rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "see"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"cluster.karmada.io"},
			Resources: []string{"clusters/proxy"}}}}},
		[]rbacv1.ClusterRoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "see"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}, {Kind: "User", Name: "eve"},
				{Kind: "ServiceAccount", Namespace: "shop", Name: "robot"}}}})
	rights := authorize(func(a authorizer.Attributes) bool {
		if a.GetVerb() != "get" || a.GetAPIGroup() != "cluster.karmada.io" || a.GetResource() != "clusters" ||
			a.GetSubresource() != "proxy" || a.GetName() == "" || !a.IsResourceRequest() {
			t.Errorf("the hub asks for %v", a)
		}
		return a.GetUser().GetName() != nora.Name && (a.GetUser().GetName() != eve.Name || a.GetName() == "eu")
	})
	f.handler = fleetmetrics.Handler(fleetmetrics.Options{Hub: hub,
		Members:    proxy.New(proxy.Options{Hub: hub, Grants: acting.Fixed(grants)}),
		Authorizer: func() authorizer.Authorizer { return rights },
		Config:     &rest.Config{Host: f.api.URL, BearerToken: membertest.Token},
		Discovery:  func() aggregated.ResourceManager { return f.discovery }, Limits: limits,
		MemberTimeout: time.Second,
	}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	return f
}

// warnings are recorded.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) AddWarning(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// get returns status, body and warnings.
func (f *fleet) get(as user.Info, path string) (int, string, string) {
	f.Helper()
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	r := httptest.NewRequestWithContext(f.Context(), http.MethodGet, path, nil)
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		f.Fatal(err)
	}
	said := &warnings{}
	ctx := warning.WithWarningRecorder(request.WithUser(request.WithRequestInfo(r.Context(), info), as), said)
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r.WithContext(ctx))
	return w.Code, w.Body.String(), strings.Join(said.all, "\n")
}

// pods is a list of metrics of pods with these names.
func pods(names ...string) any {
	list := metricsv1beta1.PodMetricsList{Items: []metricsv1beta1.PodMetrics{}}
	for _, name := range names {
		list.Items = append(list.Items, pod(name))
	}
	return list
}

func pod(name string) metricsv1beta1.PodMetrics {
	return metricsv1beta1.PodMetrics{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Annotations: map[string]string{"resource.karmada.io/query-from-cluster": "another"}},
		Containers: []metricsv1beta1.ContainerMetrics{{Name: "c"}}}
}

// shown returns cluster/name of each item.
func shown(t *testing.T, body string) string {
	t.Helper()
	var list metricsv1beta1.PodMetricsList
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var out []string
	for _, item := range list.Items {
		out = append(out, item.Annotations["resource.karmada.io/query-from-cluster"]+"/"+item.Name)
		if item.Kind != "PodMetrics" && item.Kind != "NodeMetrics" || item.APIVersion != "metrics.k8s.io/v1beta1" {
			t.Errorf("an item is of kind %s %s", item.APIVersion, item.Kind)
		}
	}
	return strings.Join(out, " ")
}

func TestListsHaveTheItemsOfAllMembersWithTheirCluster(t *testing.T) {
	f := newFleet(t, member.Limits{}, map[string]map[string]any{
		"us": {podsPath: pods("web-2", "web-0"),
			nodesPath: `{"items":[{"metadata":{"name":"n1"},"usage":{"cpu":"1"}}],"kind":"x"}`},
		"eu": {podsPath: pods("web-0"), nodesPath: `{"metadata":{},"items":null}`},
		"ap": {podsPath: pods(), nodesPath: `{}`},
	})
	code, body, said := f.get(alice, podsPath+"?labelSelector=app%3Dweb&fieldSelector=metadata.name%3Dx&watch=0&limit=5")
	if got, want := shown(t, body), "eu/web-0 us/web-2 us/web-0"; code != 200 || got != want || said != "" {
		t.Errorf("%d %s, want %s; warnings %q", code, got, want, said)
	}
	if !strings.HasPrefix(body, `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1",`) {
		t.Error(body)
	}
	want := []string{"alice " + podsPath + "?fieldSelector=metadata.name%3Dx&labelSelector=app%3Dweb"}
	if got := f.members["us"].requests(); !slices.Equal(got, want) {
		t.Errorf("the member gets %v, want %v", got, want)
	}
	if _, body, _ = f.get(alice, nodesPath); shown(t, body) != "us/n1" {
		t.Error(body)
	}
	if code, _, _ := f.get(root, nodesPath); code != 200 || f.members["us"].requests()[2] != " "+nodesPath {
		t.Errorf("%d; an administrator of the hub acts as the hub, not as %s", code, f.members["us"].requests()[2])
	}
}

func TestClustersWithoutAnAnswerAreLeftOutAndNamed(t *testing.T) {
	big := pods(slices.Repeat([]string{"a-pod-with-a-long-name"}, 200)...)
	for name, c := range map[string]struct {
		answer any
		change func(*fleet)
		says   string
		// alone is the status if no other cluster answers.
		alone int
	}{
		"hangs":   {change: func(f *fleet) { f.members["us"].hangs = true }, says: "not responding", alone: 503},
		"is down": {change: func(f *fleet) { f.members["us"].Down(true) }, says: "not responding", alone: 503},
		"no metrics API": {says: "metrics.k8s.io: the API is not served: install metrics-server there",
			answer: 404, alone: 503},
		"API is down": {says: "metrics.k8s.io is not available there: status 503", answer: 503, alone: 503},
		"denies": {says: "you may not list pods.metrics.k8s.io in namespace shop there: grant it in the cluster",
			answer: 403, alone: 403},
		"rejects the token": {says: "rejects", answer: 401, alone: 503},
		"redirects":         {says: "redirect", answer: 302, alone: 503},
		"too big":           {says: "over the limits of the hub", answer: big, alone: 503},
		"many items": {says: "over the limits of the hub", alone: 503,
			answer: `{"items":[` + strings.Repeat("{},", 100) + `{}]}`},
		"no JSON":    {says: "not readable", answer: "<html>", alone: 503},
		"half":       {says: "not readable", answer: `{"items":[{"metadata":{"name":"a"}},`, alone: 503},
		"no list":    {says: "not readable", answer: `{"items":{}}`, alone: 503},
		"wrong type": {says: "not readable", answer: `{"items":[{"containers":[{"usage":{"cpu":"much"}}]}]}`, alone: 503},
		"not ready": {says: "not responding", answer: pods("web-9"), alone: 503, change: func(f *fleet) {
			var c clusterv1alpha1.Cluster
			if err := f.store.Get(f.Context(), client.ObjectKey{Name: "us"}, &c); err != nil {
				f.Fatal(err)
			}
			c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "Unknown"}}
			if err := f.store.Update(f.Context(), &c); err != nil {
				f.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, alone := range []bool{false, true} {
				answers := map[string]map[string]any{"us": {podsPath: c.answer}}
				if !alone {
					answers["eu"] = map[string]any{podsPath: pods("web-0")}
				}
				f := newFleet(t, member.Limits{Answer: 16 << 10}, answers)
				if c.change != nil {
					c.change(f)
				}
				code, body, said := f.get(alice, podsPath)
				switch {
				case alone && (code != c.alone || !strings.Contains(body, c.says) || said != ""):
					t.Errorf("alone it gives %d %s, warnings %q", code, body, said)
				case !alone && (code != 200 || shown(t, body) != "eu/web-0"):
					t.Errorf("%d %s", code, body)
				case !alone && (!strings.HasPrefix(said, "left out: clusters us: ") || !strings.Contains(said, c.says)):
					t.Errorf("the warning is %q", said)
				case name == "not ready" && len(f.members["us"].requests()) > 0:
					t.Error("the member is asked")
				}
			}
		})
	}
}

// A right to metrics of the hub gives nothing in a member.
func TestUsersReadOnlyWhatTheyMayInEachMember(t *testing.T) {
	answers := map[string]any{podsPath: pods("web-0"), podsPath + "/web-0": pod("web-0"), nodesPath: `{"items":[]}`,
		customPath + "v1beta2/namespaces/shop/pods/*/hits": `{"items":[]}`}
	f := newFleet(t, member.Limits{}, map[string]map[string]any{"eu": answers, "us": answers})
	for _, path := range []string{podsPath, podsPath + "/web-0", nodesPath,
		customPath + "v1beta2/namespaces/shop/pods/*/hits"} {
		code, body, _ := f.get(nora, path)
		if code != 403 || !strings.Contains(body, "clusters (2): you may not get clusters/proxy there") ||
			!strings.Contains(body, `"causes"`) {
			t.Errorf("%s gives %d %s", path, code, body)
		}
		if code, body, _ = f.get(robot, path); code != 403 || !strings.Contains(body, "impersonate-system-names") {
			t.Errorf("%s gives a service account %d %s", path, code, body)
		}
	}
	if asked := slices.Concat(f.members["eu"].requests(), f.members["us"].requests()); len(asked) > 0 {
		t.Errorf("members are asked %v", asked)
	}
	code, body, said := f.get(eve, podsPath)
	if code != 200 || shown(t, body) != "eu/web-0" || !strings.HasPrefix(said, "left out: clusters (1): you may not get") {
		t.Errorf("%d %s, warnings %q", code, body, said)
	}
	if asked := f.members["us"].requests(); len(asked) > 0 {
		t.Errorf("us is asked %v", asked)
	}
}

func TestOneObjectIsFoundInItsCluster(t *testing.T) {
	f := newFleet(t, member.Limits{}, map[string]map[string]any{
		"us": {podsPath + "/web-1": pod("web-1"), podsPath + "/both": pod("both")},
		"eu": {podsPath + "/both": pod("both")}})
	for name, want := range map[string]struct {
		code int
		says string
	}{
		"web-1": {200, `"resource.karmada.io/query-from-cluster":"us"`},
		"both":  {409, "it is in more than one cluster: eu and us"},
		"none":  {404, `pods.metrics.k8s.io \"none\" not found`},
	} {
		if code, body, said := f.get(alice, podsPath+"/"+name); code != want.code ||
			!strings.Contains(body, want.says) || said != "" {
			t.Errorf("%s gives %d %s %s", name, code, body, said)
		}
	}
	f.members["eu"].Down(true)
	if code, body, _ := f.get(alice, podsPath+"/none"); code != 503 {
		t.Errorf("an object that may be in a silent cluster gives %d %s", code, body)
	}
	if code, body, said := f.get(alice, podsPath+"/web-1"); code != 200 ||
		!strings.Contains(said, "clusters eu: not responding") {
		t.Errorf("%d %s %s", code, body, said)
	}
}

func TestCustomMetricsOfTheSameObjectAreAdded(t *testing.T) {
	const at = "namespaces/shop/pods/*/hits"
	newer := `{"items":[{"describedObject":{"kind":"Pod","namespace":"shop","name":"b"},"metric":{"name":"hits"},"timestamp":"2027-01-11T08:00:00Z","windowSeconds":60,"value":"2"},` +
		`{"describedObject":{"kind":"Pod","namespace":"shop","name":"a"},"metric":{"name":"hits"},"timestamp":"2027-01-11T08:00:00Z","value":"500m"}]}`
	older := `{"items":[{"describedObject":{"kind":"Pod","namespace":"shop","name":"b"},"metricName":"hits","timestamp":"2027-01-11T07:00:00Z","window":60,"value":"3"}]}`
	f := newFleet(t, member.Limits{}, map[string]map[string]any{
		"us": {customPath + "v1beta2/" + at: newer}, "eu": {customPath + "v1beta1/" + at: older}, "ap": {}})
	code, body, said := f.get(alice, customPath+"v1beta2/"+at+"?metricLabelSelector=a%3Db")
	var list customv1beta2.MetricValueList
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != 200 || said != "" || len(list.Items) != 2 {
		t.Fatalf("%v %d %s %q", err, code, body, said)
	}
	a, b := list.Items[0], list.Items[1]
	if a.DescribedObject.Name != "a" || a.Value.MilliValue() != 500 || b.Value.Value() != 5 || b.Metric.Name != "hits" ||
		*b.WindowSeconds != 60 || b.Timestamp.UTC().Hour() != 7 {
		t.Errorf("%+v", list.Items)
	}
	if got := f.members["eu"].requests(); !slices.Contains(got,
		"alice "+customPath+"v1beta1/"+at+"?metricLabelSelector=a%3Db") {
		t.Error(got)
	}
	_, body, _ = f.get(alice, customPath+"v1beta1/"+at)
	var first customv1beta1.MetricValueList
	if err := json.Unmarshal([]byte(body), &first); err != nil || len(first.Items) != 2 ||
		first.Items[1].MetricName != "hits" ||
		first.Items[1].Value.Value() != 5 || *first.Items[1].WindowSeconds != 60 ||
		first.APIVersion != "custom.metrics.k8s.io/v1beta1" {
		t.Errorf("%v %s", err, body)
	}
	if code, body, _ := f.get(alice, customPath+"v1beta2/namespaces/shop/pods/*/other"); code != 404 {
		t.Errorf("a metric that no cluster has gives %d %s", code, body)
	}
}

func TestAnAPIServiceOfTheHubTakesPrecedence(t *testing.T) {
	listed := func(f *fleet) (names []string) {
		f.get(alice, "/apis")
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/apis", nil)
		r.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		f.discovery.ServeHTTP(w, r)
		for _, name := range fleetmetrics.Groups() {
			if strings.Contains(w.Body.String(), `"name":"`+name+`"`) {
				names = append(names, name)
			}
		}
		return names
	}
	f := newFleet(t, member.Limits{}, map[string]map[string]any{"eu": {podsPath: pods("web-0")}})
	if got := listed(f); !slices.Equal(got, fleetmetrics.Groups()) {
		t.Errorf("discovery lists %v", got)
	}
	if code, body, _ := f.get(nora, "/apis/metrics.k8s.io/v1beta1"); code != 200 ||
		!strings.Contains(body, `"kind":"NodeMetrics"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body, _ := f.get(nora, "/apis/custom.metrics.k8s.io"); code != 200 ||
		!strings.Contains(body, `"preferredVersion":{"groupVersion":"custom.metrics.k8s.io/v1beta2"`) {
		t.Errorf("%d %s", code, body)
	}

	f = newFleet(t, member.Limits{}, map[string]map[string]any{"eu": {podsPath: pods("web-0")}})
	// The hub listed them before, as a hub that runs on does.
	f.discovery.AddGroupVersion("custom.metrics.k8s.io", apidiscoveryv2.APIVersionDiscovery{Version: "v1beta2"})
	theirs := &unstructured.Unstructured{}
	theirs.SetGroupVersionKind(apiService.GroupVersionKind)
	theirs.SetName("v1beta1.custom.metrics.k8s.io")
	f.api.Put(theirs)
	if got := listed(f); !slices.Equal(got, []string{"metrics.k8s.io"}) {
		t.Errorf("discovery lists %v", got)
	}
	for path, want := range map[string]int{podsPath: 200, customPath + "v1beta2/namespaces/shop/pods/*/hits": 418,
		customPath + "v1beta1": 418, "/apis": 418, "/api/v1/pods": 418, "/apis/apps/v1": 418} {
		if code, body, _ := f.get(alice, path); code != want {
			t.Errorf("%s gives %d %s, want %d", path, code, body, want)
		}
	}
}

func TestRequestsForOtherThanMetricsAreRefused(t *testing.T) {
	f := newFleet(t, member.Limits{}, map[string]map[string]any{"eu": {podsPath: pods("web-0")}})
	for path, want := range map[string]int{podsPath + "?watch=true": 405, podsPath + "/web-0/log": 404,
		"/apis/metrics.k8s.io/v1beta1/namespaces/shop/secrets": 404, "/apis/metrics.k8s.io/v1/nodes": 418} {
		if code, body, _ := f.get(alice, path); code != want {
			t.Errorf("%s gives %d %s, want %d", path, code, body, want)
		}
	}
	if asked := f.members["eu"].requests(); len(asked) > 0 {
		t.Errorf("the member is asked %v", asked)
	}
}

// What one request reads is free again for the next, and many at once are all answered.
func TestMemoryOfResponsesIsFreedAfterEachRequest(t *testing.T) {
	many := slices.Repeat([]string{"a-pod-with-a-long-name"}, 100)
	f := newFleet(t, member.Limits{Memory: 128 << 10}, map[string]map[string]any{"eu": {podsPath: pods(many...)}})
	for range 10 {
		if code, body, said := f.get(alice, podsPath); code != 200 || said != "" {
			t.Fatalf("%d %.300s %s", code, body, said)
		}
	}
	small := newFleet(t, member.Limits{}, map[string]map[string]any{
		"eu": {podsPath: pods("web-0")}, "us": {podsPath: pods("web-0")}})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if code, body, said := small.get(alice, podsPath); code != 200 || said != "" {
				t.Errorf("%d %.300s %s", code, body, said)
			}
		})
	}
	all.Wait()
}
