package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAgentsWaitUntilTheyCanReadWhetherTheStoreWasRestored(t *testing.T) {
	h, served := &Hub{}, ""
	handler := h.limitAgents(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served = r.RequestURI }))
	send := func(user string, groups ...string) (code int, uri string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/services", http.NoBody)
		r.TLS = &tls.ConnectionState{}
		if user != "" {
			r.TLS.PeerCertificates = []*x509.Certificate{{Subject: pkix.Name{CommonName: user, Organization: groups}}}
		}
		w := httptest.NewRecorder()
		served = ""
		handler.ServeHTTP(w, r)
		return w.Code, served
	}
	const eu, agents = "system:karmada:agent:eu", "system:karmada:agents"
	if code, uri := send(eu, agents); code != http.StatusServiceUnavailable || uri != "" {
		t.Errorf("an agent gets %d, and %q is served", code, uri)
	}
	others := func(when string) {
		t.Helper()
		for _, who := range [][]string{{""}, {"admin", "system:masters"}, {eu}, {"eu", agents}} {
			if code, uri := send(who[0], who[1:]...); code != http.StatusOK || uri != "/api/v1/services" {
				t.Errorf("%s, %q gets %d, and %q is served", when, who, code, uri)
			}
		}
	}
	others("at the start")
	h.announced.Store(true)
	others("afterwards")
	if code, uri := send(eu, agents); code != http.StatusOK || uri != "/api/v1/namespaces/karmada-es-eu/services" {
		t.Errorf("an agent gets %d, and %q is served", code, uri)
	}
}
