package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
)

type warnings struct{ text string }

func (w *warnings) AddWarning(_, text string) { w.text += text }

func TestRequestsForPodsOnTheHubNameTheCommandThatWorks(t *testing.T) {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	const pod = "/api/v1/namespaces/shop/pods/web"
	for _, c := range []struct{ method, path, agent, answer, warning string }{
		{"GET", pod + "/log", "kubectl/v1", "argosy logs web -n shop --all-clusters", ""},
		{"GET", pod + "/log?follow=true", "", "argosy logs web -n shop --all-clusters", ""},
		{"POST", pod + "/exec?command=sh", "kubectl/v1", "argosy exec web -n shop -C CLUSTER", ""},
		{"POST", pod + "/attach", "", "argosy attach web -n shop -C CLUSTER", ""},
		{"POST", pod + "/portforward", "", "kubectl port-forward pod/web -n shop", ""},
		{"GET", "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb", "kubectl/v1", "", "argosy logs"},
		{"GET", "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb", "helm/v3", "", ""},
		{"GET", "/api/v1/namespaces/shop/pods", "kubectl/v1", "", ""},
		{"GET", pod, "kubectl/v1", "", ""},
		{"GET", pod + "/status", "kubectl/v1", "", ""},
		{"GET", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy" + pod + "/log", "kubectl/v1", "", ""},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("User-Agent", c.agent)
		info, err := resolver.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		warned := &warnings{}
		ctx := warning.WithWarningRecorder(request.WithRequestInfo(r.Context(), info), warned)
		w, passed := httptest.NewRecorder(), false
		next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true })
		podRequests(next).ServeHTTP(w, r.WithContext(ctx))
		refused := w.Code == http.StatusBadRequest && strings.Contains(w.Body.String(), c.answer)
		if passed != (c.answer == "") || !passed && !refused {
			t.Errorf("%s %s: passed %t, answered %d %s", c.method, c.path, passed, w.Code, w.Body)
		}
		if !strings.Contains(warned.text, c.warning) || c.warning == "" && warned.text != "" {
			t.Errorf("%s %s of %q: warned %q", c.method, c.path, c.agent, warned.text)
		}
	}
}

func TestKarmadactlUnregisterIsRefusedBeforeItDeletes(t *testing.T) {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	const works = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-eu/works/"
	for _, c := range []struct {
		method, path, agent string
		refused             bool
	}{
		{"DELETE", works + "web", "karmadactl/v1.15", true},
		{"DELETE", works + "web", "kubectl-karmada/v1.15", true},
		{"DELETE", works + "web", "kubectl/v1", false},
		{"DELETE", works + "web", "", false},
		{"GET", works + "web", "karmadactl/v1.15", false},
		{"DELETE", "/apis/work.karmada.io/v1alpha1/namespaces/shop/works/web", "karmadactl/v1.15", false},
		{"DELETE", "/apis/work.karmada.io/v1alpha2/namespaces/karmada-es-eu/resourcebindings/web", "karmadactl/v1.15", false},
		{"DELETE", "/apis/cluster.karmada.io/v1alpha1/clusters/eu", "karmadactl/v1.15", false},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("User-Agent", c.agent)
		info, err := resolver.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		warned := &warnings{}
		ctx := warning.WithWarningRecorder(request.WithRequestInfo(r.Context(), info), warned)
		w, passed := httptest.NewRecorder(), false
		next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true })
		unregistering(next).ServeHTTP(w, r.WithContext(ctx))
		advised := strings.Contains(warned.text, "argosy unregister eu") && w.Code == http.StatusForbidden
		if passed == c.refused || advised != c.refused {
			t.Errorf("%s %s of %q: passed %t, answered %d, warned %q", c.method, c.path, c.agent, passed, w.Code, warned.text)
		}
	}
}
