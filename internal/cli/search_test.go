package cli

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestSearchAsksTheHubForWhatItsFlagsSelect(t *testing.T) {
	const table = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"x"},
		"columnDefinitions":[{"name":"Name","type":"string"},{"name":"Cluster","type":"string"}],
		"rows":[{"cells":["web-1","eu"],"object":{"metadata":{"name":"web-1","namespace":"bank"}}}]}`
	const list = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"web-1"}}]}`
	const base = "/apis/search.karmada.io/v1alpha1/search/cache/api/v1/"
	for args, c := range map[string]struct{ path, query, want string }{
		"search pods": {path: base + "pods", query: "limit=500",
			want: "NAMESPACE   NAME    CLUSTER\nbank        web-1   eu\n"},
		"search pods --limit 1": {path: base + "pods", query: "limit=1", want: "give a higher --limit, or 0 for all"},
		"search pod -n bank -C eu,us -l app=web --field-selector spec.nodeName=n1 --image nginx:1.28 --not-ready -o name": {
			path: base + "namespaces/bank/pods", want: "pods/web-1\n",
			query: "clusters=eu%2Cus&fieldSelector=spec.nodeName%3Dn1&image=nginx%3A1.28&labelSelector=app%3Dweb&limit=500&ready=false"},
		"search pods --owner pods/web --older-than 2d --newer-than 90h --order-by -age --limit 0 --ready -o json": {
			path: base + "pods", query: "maxAge=90h0m0s&minAge=48h0m0s&orderBy=-age&owner=Pod%2Fweb&ready=true",
			want: `"kind": "PodList"`},
		"search pods --filter object.a==1": {path: base + "pods", query: "filter=object.a%3D%3D1&limit=500", want: "web-1"},
		"search ships.v1.example.com": {path: strings.Replace(base, "api/v1", "apis/example.com/v1", 1) + "ships",
			query: "limit=500", want: "web-1"},
		"search pods --ready --not-ready":    {want: "--ready and --not-ready cannot be used together"},
		"search pods --owner web":            {want: "is not KIND/NAME"},
		"search pods --older-than tomorrow":  {want: "--older-than and --newer-than"},
		"search pods --output wrong":         {want: "--output must be wide, name, json or yaml"},
		"search nothing-of-this-name":        {want: "nothing-of-this-name"},
		"search pods --newer-than yesterday": {want: "--older-than and --newer-than"},
	} {
		t.Run(args, func(t *testing.T) {
			s := clitest.See(t, map[string]*membertest.Server{"eu": membertest.New(t)})
			var path, query string
			s.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/apis/search.karmada.io/v1alpha1/search") {
					return false
				}
				asked := r.URL.Query()
				asked.Del("timeout")
				path, query = r.URL.Path, asked.Encode()
				w.Header().Set("Content-Type", "application/json")
				answer := list
				if strings.Contains(r.Header.Get("Accept"), "as=Table") {
					answer = table
				}
				_, _ = io.WriteString(w, answer)
				return true
			}
			var out bytes.Buffer
			Main(t.Context(), append([]string{"argosy", "--kubeconfig", s.File}, strings.Fields(args)...), &out, &out)
			if path != c.path || query != c.query || !strings.Contains(out.String(), c.want) {
				t.Errorf("it asks for %s?%s, want %s?%s, and prints:\n%s", path, query, c.path, c.query, &out)
			}
		})
	}
}
