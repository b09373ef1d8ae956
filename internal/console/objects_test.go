package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/member/proxy"
)

// playMember lets the hub of a serve the API of the member eu at paths below its proxy.
func playMember(t *testing.T, a *API, answers map[string]string) *[]string {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, proxy.Path("eu"))
		asked = append(asked, r.Header.Get("Impersonate-User")+" "+path)
		body, found := answers[path]
		w.Header().Set("Content-Type", "application/json")
		if !found {
			body = `{"kind": "Status", "apiVersion": "v1", "code": 404, "reason": "NotFound"}`
			w.WriteHeader(http.StatusNotFound)
		} else if strings.Contains(body, `"Forbidden"`) {
			w.WriteHeader(http.StatusForbidden)
		} else if strings.Contains(body, `"Failure"`) {
			w.WriteHeader(http.StatusInternalServerError) // the code in the Status is another one
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	a.Config.Host = server.URL
	return &asked
}

func forbiddenStatus(group, kind string) string {
	return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
		"message": "no", "details": {"group": %q, "kind": %q}}`, group, kind)
}

func TestKindsOfAMemberAreThoseThatCanBeListed(t *testing.T) {
	a := newTestAPI(t, grants{})
	kind := func(name, kind, verbs string) string {
		return fmt.Sprintf(`{"name": %q, "kind": %q, "namespaced": %t, "verbs": [%s]}`, name, kind, kind != "Node", verbs)
	}
	list := func(version string, kinds ...string) string {
		return fmt.Sprintf(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": %q, "resources": [%s]}`, version,
			strings.Join(kinds, ","))
	}
	asked := playMember(t, a, map[string]string{
		"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "authentication.k8s.io", "versions":
			[{"groupVersion": "authentication.k8s.io/v1", "version": "v1"}], "preferredVersion": {"version": "v1"}},
			{"name": "gone.example.com", "versions": [{"groupVersion": "gone.example.com/v1", "version": "v1"}]}]}`,
		"/api/v1": list("v1", kind("pods", "Pod", `"get","list"`), kind("pods/log", "Pod", `"get","list"`),
			kind("nodes", "Node", `"list"`), kind("bindings", "Binding", `"create"`), kind("../../nodes", "Node", `"list"`)),
		"/apis/authentication.k8s.io/v1": list("authentication.k8s.io/v1",
			kind("tokenreviews", "TokenReview", `"create"`), kind("selfsubjectreviews", "SelfSubjectReview", `"create"`)),
	})
	w := a.request(t, alice, "GET", kindsPath+"?cluster=eu", "")
	if got := strings.TrimSpace(w.Body.String()); got !=
		`{"kinds":[{"apiVersion":"v1","resource":"nodes","kind":"Node","namespaced":false},`+
			`{"apiVersion":"v1","resource":"pods","kind":"Pod","namespaced":true}]}` {
		t.Errorf("the kinds are %d %s", w.Code, got)
	}
	if len(*asked) == 0 || !strings.HasPrefix((*asked)[0], "alice ") {
		t.Errorf("the member was asked %q", *asked)
	}
	for _, k := range [][2]string{{"v1", ".."}, {"../../v1", "nodes"}, {"a..b/v1", "nodes"}, {"v1?watch=true", "nodes"},
		{"%2e%2e/v1", "nodes"}, {"", "nodes"}, {"v1", "pods/log"}} {
		if (memberKind{APIVersion: k[0], Resource: k[1]}).valid() {
			t.Errorf("%+v leads out of the member", k)
		}
	}
	if w := a.request(t, alice, "GET", kindsPath+"?cluster=eu/../us", ""); w.Code != http.StatusBadRequest {
		t.Errorf("a cluster that is no name gave %d", w.Code)
	}
}

func TestKindsOfAMemberNeedTheRightToReachIt(t *testing.T) {
	a := newTestAPI(t, grants{})
	playMember(t, a, map[string]string{"/api": forbiddenStatus("cluster.karmada.io", "clusters")})
	w := a.request(t, alice, "GET", kindsPath+"?cluster=eu", "")
	if want := `"missing":{"verb":"get","group":"cluster.karmada.io","resource":"clusters/proxy"}`; w.Code !=
		http.StatusForbidden || !strings.Contains(w.Body.String(), want) {
		t.Errorf("the answer is %d %s, want %s", w.Code, w.Body, want)
	}
}

// A member chooses no status that means something else to the page.
func TestErrorsOfAMemberAreThoseOfAGateway(t *testing.T) {
	for code, want := range map[int]int{1: 502, 200: 502, 204: 502, 302: 502, 400: 502, 401: 502, 403: 403, 404: 404,
		409: 502, 429: 502, 500: 502, 503: 503, 504: 504, 700: 502} {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code), Message: "no"}}
		w := httptest.NewRecorder()
		refuseError(w, memberError(err, "eu", "list", ""))
		if w.Code != want {
			t.Errorf("code %d of a member gave %d, want %d", code, w.Code, want)
		}
		if w = httptest.NewRecorder(); code < 400 || code > 599 {
			if refuseError(w, err); w.Code != http.StatusInternalServerError {
				t.Errorf("code %d of the hub's API gave %d", code, w.Code)
			}
		}
	}
	a := newTestAPI(t, grants{})
	for _, code := range []int{1, 200, 401} {
		status := fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "message": "no"}`, code)
		playMember(t, a, map[string]string{"/api": status, "/api/v1/pods": "!" + status})
		for _, path := range []string{kindsPath + "?cluster=eu", objectsPath + "?cluster=eu&apiVersion=v1&resource=pods"} {
			if w := a.request(t, alice, "GET", path, ""); w.Code != http.StatusBadGateway {
				t.Errorf("%s with code %d gave %d %s", path, code, w.Code, w.Body)
			}
		}
	}
}

// The kinds of a slow member are read as long as the page asks, and for one time-out in all.
func TestKindsOfASlowMemberEndWithTheRequest(t *testing.T) {
	a := newTestAPI(t, grants{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
			return
		}
		cancel() // discovery has begun
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	a.Config.Host = server.URL
	start := time.Now()
	_, err := a.memberKinds(httptest.NewRequest("GET", kindsPath+"?cluster=eu", nil).WithContext(ctx), alice)
	if took := time.Since(start); codeOf(err) < 500 || took >= memberTimeout {
		t.Errorf("after %v and %d requests, the answer is %v", took, requests.Load(), err)
	}
}

func TestObjectsOfAMemberAreATable(t *testing.T) {
	a := newTestAPI(t, grants{})
	row := func(name, metadata string) string {
		return fmt.Sprintf(`{"cells": [%[1]q, 1, "wide"], "object": {"kind": "PartialObjectMetadata",
			"apiVersion": "meta.k8s.io/v1", "metadata": {"name": %[1]q, "namespace": "shop"%[2]s}}}`, name, metadata)
	}
	const label, work = `, "labels": {"karmada.io/managed": "true"}`,
		`, "annotations": {"work.karmada.io/namespace": "karmada-es-eu", "work.karmada.io/name": "w"}`
	table := `{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": "more"}, "columnDefinitions":
		[{"name": "Name"}, {"name": "Ports"}, {"name": "Wide", "priority": 1}], "rows": [` + strings.Join([]string{
		row("web", label+work), row("web-x7k2p", label), row("copied", label+work+
			`, "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "u", "controller": true}]`),
	}, ",") + "]}"
	playMember(t, a, map[string]string{
		"/apis/discovery.k8s.io/v1/endpointslices":                 table,
		"/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices": `{"kind": "Table", "rows": []}`,
		"/api/v1/things": `{"kind": "ThingList", "apiVersion": "v1", "items": [{"kind": "Thing", "apiVersion": "v1",
			"metadata": {"name": "one"}}]}`,
		"/api/v1/pods":  forbiddenStatus("", "pods"),
		"/api/v1/nodes": forbiddenStatus("cluster.karmada.io", "clusters"),
	})
	for query, want := range map[string]string{
		"apiVersion=discovery.k8s.io/v1&resource=endpointslices": `{"columns":["Name","Ports"],"rows":[` +
			`{"namespace":"shop","name":"web","managed":true,"cells":["web",1]},` +
			`{"namespace":"shop","name":"web-x7k2p","managed":false,"cells":["web-x7k2p",1]},` +
			`{"namespace":"shop","name":"copied","managed":false,"cells":["copied",1]}],"continue":"more"}`,
		"apiVersion=discovery.k8s.io/v1&resource=endpointslices&namespace=shop": `{"columns":[],"rows":[]}`,
		"apiVersion=v1&resource=things":                                         `{"columns":["Name"],"rows":[{"name":"one","managed":false,"cells":["one"]}]}`,
		"apiVersion=v1&resource=pods":                                           `"missing":{"verb":"list","resource":"pods","everywhere":true,"cluster":"eu"}`,
		"apiVersion=v1&resource=nodes":                                          `"missing":{"verb":"get","group":"cluster.karmada.io","resource":"clusters/proxy"}`,
		"apiVersion=v1&resource=../../nodes":                                    "give a kind",
		"apiVersion=../v1&resource=pods":                                        "give a kind",
		"apiVersion=v1&resource=pods&namespace=a/b":                             "may not contain '/'",
	} {
		w := a.request(t, alice, "GET", objectsPath+"?cluster=eu&"+query, "")
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s gave %d %s, want %s", query, w.Code, w.Body, want)
		}
	}
	var answer memberObjects
	w := a.request(t, alice, "GET", objectsPath+"?cluster=eu&apiVersion=v1&resource=gone", "")
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusNotFound {
		t.Errorf("a kind that is gone gave %d %s", w.Code, w.Body)
	}
}
