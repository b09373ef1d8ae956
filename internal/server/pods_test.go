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

func TestRequestsThatCannotWorkOnTheHubNameTheCommandThatDoes(t *testing.T) {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	const pod = "/api/v1/namespaces/shop/pods/web"
	const pods = "/api/v1/namespaces/shop/pods"
	const works = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-eu/works/"
	for _, c := range []struct {
		method, path, agent string
		// refused is the HTTP status of the response; 0 if the request passes.
		refused int
		// answer is part of the response, and warning of the warnings; there is no warning if it is empty.
		answer, warning string
	}{
		// Pods run in members.
		{"GET", pod + "/log", "kubectl/v1", 400, "argosy logs web -n shop --all-clusters", ""},
		{"GET", pod + "/log?follow=true", "", 400, "argosy logs web -n shop --all-clusters", ""},
		{"POST", pod + "/exec?command=sh", "kubectl/v1", 400, "argosy exec web -n shop -C CLUSTER", ""},
		{"POST", pod + "/attach", "", 400, "argosy attach web -n shop -C CLUSTER", ""},
		{"POST", pod + "/portforward", "", 400, "kubectl port-forward pod/web -n shop", ""},
		{"GET", pods + "?labelSelector=app%3Dweb", "kubectl/v1", 0, "", "argosy logs"},
		{"GET", pods + "?labelSelector=app%3Dweb", "helm/v3", 0, "", ""},
		{"GET", pods, "kubectl/v1", 0, "", ""},
		{"GET", pod, "kubectl/v1", 0, "", ""},
		{"GET", pod + "/status", "kubectl/v1", 0, "", ""},
		{"GET", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy" + pod + "/log", "kubectl/v1", 0, "", ""},

		// "karmadactl unregister" would delete the Works of a cluster first.
		{"DELETE", works + "web", "karmadactl/v1.15", 403, "", "argosy unregister eu"},
		{"DELETE", works + "web", "kubectl-karmada/v1.15", 403, "", "argosy unregister eu"},
		{"DELETE", works + "web", "kubectl/v1", 0, "", ""},
		{"DELETE", works + "web", "", 0, "", ""},
		{"GET", works + "web", "karmadactl/v1.15", 0, "", ""},
		{"DELETE", "/apis/work.karmada.io/v1alpha1/namespaces/shop/works/web", "karmadactl/v1.15", 0, "", ""},
		{"DELETE", "/apis/work.karmada.io/v1alpha2/namespaces/karmada-es-eu/resourcebindings/web", "karmadactl/v1.15", 0, "",
			""},
		{"DELETE", "/apis/cluster.karmada.io/v1alpha1/clusters/eu", "karmadactl/v1.15", 0, "", ""},
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
		podRequests(unregistering(next)).ServeHTTP(w, r.WithContext(ctx))
		if passed != (c.refused == 0) || !passed && w.Code != c.refused || !strings.Contains(w.Body.String(), c.answer) {
			t.Errorf("%s %s of %q: passed %t, answered %d %s", c.method, c.path, c.agent, passed, w.Code, w.Body)
		}
		if !strings.Contains(warned.text, c.warning) || c.warning == "" && warned.text != "" {
			t.Errorf("%s %s of %q: warned %q, want %q", c.method, c.path, c.agent, warned.text, c.warning)
		}
	}
}
