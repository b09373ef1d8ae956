package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// hubAnswer is what the hub's own API answers at a path.
type hubAnswer struct {
	code          int
	body, warning string
}

// playHub lets the hub of a answer at paths. It returns the requests as "USER PATH?QUERY".
func playHub(t *testing.T, a *API, answers map[string]hubAnswer) *[]string {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		query.Del("timeout")
		asked = append(asked, r.Header.Get("Impersonate-User")+" "+r.URL.Path+"?"+query.Encode())
		answer, found := answers[r.URL.Path]
		if !found {
			answer = hubAnswer{code: http.StatusNotFound,
				body: `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}`}
		}
		if answer.warning != "" {
			w.Header().Set("Warning", fmt.Sprintf("299 - %q", answer.warning))
		}
		w.Header().Set("Content-Type", "application/json")
		if answer.code != 0 {
			w.WriteHeader(answer.code)
		}
		fmt.Fprint(w, answer.body)
	}))
	t.Cleanup(server.Close)
	a.Config.Host = server.URL
	return &asked
}

func forbidden(group, resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "", errors.New("no"))
}

// denied is what the hub's RBAC answers.
func denied(group, kind string) hubAnswer {
	return hubAnswer{code: 403, body: forbiddenStatus(group, kind)}
}

const podMetrics = "/apis/metrics.k8s.io/v1beta1/pods"

// used returns an API of a hub with a Deployment that requests a core in each of two clusters. One does not respond.
// The user may not list what is refused.
func used(t *testing.T, refused string) (*API, map[string]hubAnswer) {
	t.Helper()
	web := deployment()
	web.SetLabels(map[string]string{"team": "web"})
	b := binding("Deployment", "shop", "web", "eu")
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 1}, {Name: "us", Replicas: 1}}
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{
		ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	a, hub := changing(t, grants{}, "", web, b, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	a.connect = func(config *rest.Config, _ meta.RESTMapper) (client.Client, error) {
		if config.Impersonate.UserName != "alice" {
			t.Errorf("the API acts as %q", config.Impersonate.UserName)
		}
		return interceptor.NewClient(hub.(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context,
			c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk := list.GetObjectKind().GroupVersionKind()
			if gvk.Kind == "" {
				gvk, _ = c.GroupVersionKindFor(list)
			}
			if resource := strings.ToLower(strings.TrimSuffix(gvk.Kind, "List")) + "s"; resource == refused {
				return forbidden(gvk.Group, resource)
			}
			return c.List(ctx, list, opts...)
		}}), nil
	}
	answers := map[string]hubAnswer{podMetrics: {warning: "left out: clusters us: not responding",
		body: `{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": [{"metadata": {"name": "web-1",
			"namespace": "shop", "labels": {"team": "web"}, "annotations": {"resource.karmada.io/query-from-cluster": "eu"}},
			"containers": [{"name": "c", "usage": {"cpu": "500m"}}]}]}`},
		"/argosy/usage": {body: `[{"namespace": "shop", "cluster": "eu", "cpu": 1000, "memory": 0}]`}}
	answers["/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"] = answers[podMetrics]
	return a, answers
}

func TestUsageIsThatOfTheCommandWithTheRightsOfTheUser(t *testing.T) {
	for query, c := range map[string]struct {
		columns, lines, csv, command string
	}{
		"": {"NAMESPACE RESOURCE REQUESTED LIMITS USED USED% CHANGE", "shop cpu 2 - 500m 25% +1",
			"shop,cpu,2,0,0.5,,1,\n", "argosy usage -A"},
		"by=cluster&since=1d&price=cpu=0.01": {"CLUSTER RESOURCE REQUESTED LIMITS USED USED% CHANGE COST/30D",
			"eu cpu 1 - 500m 50% 0 7.20; eu all - - - - - 7.20; us cpu 1 - - - +1 7.20; us all - - - - - 7.20; " +
				"TOTAL cpu 2 - 500m 25% +1 14.40; TOTAL all - - - - - 14.40", "eu,cpu,1,0,0.5,,0,7.20\nus,cpu,1,0,,,1,7.20\n",
			"argosy usage -A --by cluster --since 1d --price cpu=0.01"},
		"by=label=team&namespace=shop": {"TEAM RESOURCE REQUESTED LIMITS USED USED%", "web cpu 2 - 500m 25%",
			"web,cpu,2,0,0.5,,,\n", "argosy usage -n shop --by label=team"},
	} {
		a, answers := used(t, "")
		asked := playHub(t, a, answers)
		w := a.request(t, alice, "GET", usagePath+"?"+query, "")
		var got usageAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%q gave %d %s", query, w.Code, w.Body)
		}
		var lines []string
		for _, line := range got.Lines {
			for i := range line {
				line[i] = cmp.Or(line[i], "-")
			}
			lines = append(lines, strings.Join(line, " "))
		}
		_, csv, _ := strings.Cut(got.CSV, "\n")
		if strings.Join(got.Columns, " ") != c.columns || strings.Join(lines, "; ") != c.lines || csv != c.csv ||
			got.Command != c.command || len(got.Missing)+len(got.Notes) > 0 {
			t.Errorf("%q gave %+v", query, got)
		}
		if !slices.Equal(got.Warnings, []string{"left out: clusters us: not responding"}) {
			t.Errorf("%q has the warnings %q", query, got.Warnings)
		}
		for _, request := range *asked {
			if !strings.HasPrefix(request, "alice ") {
				t.Errorf("the hub gets %q", request)
			}
		}
	}
}

func TestUsageNamesTheRightsThatTheUserLacks(t *testing.T) {
	for name, c := range map[string]struct {
		refused string
		metrics hubAnswer
		code    int
		want    string
	}{
		"bindings": {"resourcebindings", hubAnswer{}, http.StatusForbidden,
			`"missing":{"verb":"list","group":"work.karmada.io","resource":"resourcebindings","everywhere":true,"role":"argosy:view"}`},
		"labels": {"deployments", hubAnswer{}, http.StatusForbidden,
			`"missing":{"verb":"list","group":"apps","resource":"deployments","everywhere":true,"role":"view"}`},
		"metrics": {"", denied("metrics.k8s.io", "pods"), http.StatusOK,
			`"missing":[{"verb":"list","group":"metrics.k8s.io","resource":"pods","everywhere":true`},
		"no cluster answers": {"", hubAnswer{code: 503, body: `{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"code": 503, "message": "no cluster has metrics: clusters eu, us: not responding"}`}, http.StatusOK,
			`"notes":["the amounts used are unknown: no cluster has metrics: clusters eu, us: not responding"]`},
	} {
		a, answers := used(t, c.refused)
		if c.metrics.code != 0 {
			answers[podMetrics] = c.metrics
		}
		playHub(t, a, answers)
		w := a.request(t, alice, "GET", usagePath+"?by=label%3Dteam", "")
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %d with %s", name, w.Code, w.Body, c.code, c.want)
		}
		if c.code == http.StatusForbidden && strings.Contains(w.Body.String(), "shop") {
			t.Errorf("%s: the answer shows the namespace: %s", name, w.Body)
		}
	}
}

func TestUsageExplainsAWrongQuestion(t *testing.T) {
	a, answers := used(t, "")
	playHub(t, a, answers)
	for query, want := range map[string]string{
		"by=team":            `by: \"team\" must be namespace, cluster, or label=KEY`,
		"by=label=a b":       "must be namespace, cluster, or label=KEY",
		"by=label=a;id":      "must be namespace, cluster, or label=KEY",
		"since=tomorrow":     `since must be a duration such as 12h or 7d, not \"tomorrow\"`,
		"price=cpu":          "price must be such as cpu=0.03,memory=0.004, not cpu=",
		"price=cpu=1,":       "price must be such as",
		"price=cpu=$(id)":    "price must be such as",
		"price=a b=1":        "price must be such as",
		"namespace=x;id":     "give no more than one namespace",
		"namespace=../other": "may not contain '/'",
	} {
		name, value, _ := strings.Cut(query, "=")
		w := a.request(t, alice, "GET", usagePath+"?"+name+"="+url.QueryEscape(value), "")
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q gave %d %s, want %s", query, w.Code, w.Body, want)
		}
	}
}

func TestUsagesAndSearchesAreBounded(t *testing.T) {
	a, answers := used(t, "")
	answers[foundDeployments] = hubAnswer{body: found("")}
	playHub(t, a, answers)
	ask := func(want int) {
		t.Helper()
		for _, path := range []string{usagePath, searchPath + "?q=deployments"} {
			w := a.request(t, alice, "GET", path, "")
			if w.Code != want || want != http.StatusOK && !strings.Contains(w.Body.String(), "try again in a minute") {
				t.Errorf("%s gave %d %s, want %d", path, w.Code, w.Body, want)
			}
		}
	}
	take := func(users ...string) (end func()) {
		var all []func()
		for _, name := range users {
			one, err := a.countReading(&user.DefaultInfo{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		return func() {
			for _, one := range all {
				one()
			}
		}
	}
	end := take("alice", "alice")
	ask(http.StatusTooManyRequests)
	end()
	end = take("b", "b", "c", "c", "d", "d", "e")
	ask(http.StatusOK)
	last := take("e")
	ask(http.StatusTooManyRequests)
	end()
	last()
	ask(http.StatusOK)
	if len(a.readings) > 0 {
		t.Errorf("%v are counted after all have ended", a.readings)
	}
}
