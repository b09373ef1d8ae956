package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
)

// Every verb reports a wrong address or missing credentials in one sentence of ours. status checks a hub that is
// starting.
func TestEveryVerbExplainsAnUnusableHub(t *testing.T) {
	answer := func(code int, reason metav1.StatusReason, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status: "Failure", Code: int32(code), Reason: reason, Message: message})
		}
	}
	for story, tc := range map[string]struct {
		hub     http.HandlerFunc // nil: nothing listens at the address
		trusted bool
		want    string
	}{
		"nobody listens": {trusted: true,
			want: "is not responding: connection refused; check that it is running"},
		"a plain cluster": {answer(http.StatusNotFound, metav1.StatusReasonNotFound,
			"the server could not find the requested resource"), true,
			"is not an Argosy hub: it does not serve the API group cluster.karmada.io; check --kubeconfig"},
		"its APIs are not installed yet": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/argosy/health" {
				_, _ = io.WriteString(w, `{"store": {}}`)
				return
			}
			answer(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")(w, r)
		}, true, "is still starting: it does not serve the API group cluster.karmada.io yet; try again in some seconds"},
		"no credentials": {answer(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"), true,
			"not authorized at the hub "},
		"no credentials, and anyone": {answer(http.StatusForbidden, metav1.StatusReasonForbidden,
			`forbidden: User "system:anonymous" cannot get path "/apis"`), true, "not authorized at the hub "},
		"it starts": {answer(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"the server is starting"), true, "cannot serve requests now: the server is starting"},
		"a server of something else": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			true, "is not an Argosy hub: it responds, but not as a Kubernetes API server"},
		"HTTPS is spoken there": {answer(http.StatusBadRequest, "", "Client sent an HTTP request to an HTTPS server."),
			true, "is not an Argosy hub: it responds: "},
		"another authority": {answer(http.StatusOK, "", ""), false, "is not trusted: "},
	} {
		t.Run(story, func(t *testing.T) {
			api := httptest.NewUnstartedServer(tc.hub)
			api.Config.ErrorLog = log.New(io.Discard, "", 0)
			api.StartTLS()
			if tc.hub == nil {
				api.Close()
			} else {
				defer api.Close()
			}
			kubeconfig := filepath.Join(t.TempDir(), "hub.kubeconfig")
			cluster := clientcmdapi.Cluster{Server: api.URL, InsecureSkipTLSVerify: tc.trusted}
			data, err := json.Marshal(clientcmdapi.Config{APIVersion: "v1", Kind: "Config", CurrentContext: "c",
				Clusters: []clientcmdapi.NamedCluster{{Name: "c", Cluster: cluster}},
				Contexts: []clientcmdapi.NamedContext{{Name: "c", Context: clientcmdapi.Context{Cluster: "c"}}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(kubeconfig, data, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"status"}, {"get", "clusters"}, {"get", "pods", "-C", "eu"},
				{"why", "deployment/web"}, {"unjoin", "eu"}, {"orphans"},
				{"simulate", "--cluster-down", "eu"}, {"rollout", "status", "cloneset/web"}, {"addons", "list"},
				{"logs", "web", "-C", "eu"}} {
				var out, errOut bytes.Buffer
				if starts := story == "it starts" || story == "its APIs are not installed yet"; starts && args[0] == "status" {
					want := tc.want
					if story == "its APIs are not installed yet" {
						want = "a hub that has just started needs a few seconds"
					}
					code := Main(t.Context(), []string{"argosy", "status", "--kubeconfig", kubeconfig}, &out, &errOut)
					if code != 1 || !strings.Contains(out.String(), "API server: ") || !strings.Contains(out.String(), want) {
						t.Errorf("status ends with %d and does not say %q:\n%s%s", code, want, out.String(), errOut.String())
					}
					continue
				}
				if code := Main(t.Context(), append(append([]string{"argosy"}, args...), "--kubeconfig", kubeconfig), &out,
					&errOut); code != 1 {
					t.Errorf("%v ended with %d", args, code)
				}
				if got := errOut.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, tc.want) ||
					!strings.Contains(got, api.URL) {
					t.Errorf("%v says %q, want one line with %q", args, got, tc.want)
				}
			}
		})
	}
}
