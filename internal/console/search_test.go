package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/search"
)

const foundDeployments = search.CachePath + "/apis/apps/v1/deployments"

// found is the table of the hub with a Deployment named web in each cluster.
func found(metadata ...string) string {
	var rows []string
	for i, more := range metadata {
		cluster := fmt.Sprintf("m%d", i+1)
		rows = append(rows, fmt.Sprintf(`{"cells": ["web", %[1]q, "1/1", "app=web"], "object": {
			"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "web", "namespace": "shop", "annotations":
			{"resource.karmada.io/cached-from-cluster": %[1]q, "work.karmada.io/namespace": "karmada-es-%[1]s",
			"work.karmada.io/name": "w"%[2]s}, "labels": {"karmada.io/managed": "true"}}}}`, cluster, more))
	}
	return `{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": "more"}, "columnDefinitions": [
		{"name": "Name"}, {"name": "Cluster"}, {"name": "Ready"}, {"name": "Selector", "priority": 1}], "rows": [` +
		strings.Join(rows, ",") + "]}"
}

// finds asks for what follows `argosy search` on a command line.
func (a *API) finds(t *testing.T, line string) (code int, answer string) {
	t.Helper()
	w := a.request(t, alice, "GET", searchPath+"?q="+url.QueryEscape(line), "")
	return w.Code, w.Body.String()
}

func TestSearchAsksAsTheUserWhatTheCommandAsks(t *testing.T) {
	for line, want := range map[string]string{
		"deployments":                         "?limit=500",
		" deployment.apps  --limit=20 ":       "?limit=20",
		"deployments --limit 0":               "?limit=500",
		"deployments --limit 100000":          "?limit=500",
		"deployments -C eu,us --not-ready":    "?clusters=eu%2Cus&limit=500&ready=false",
		"--ready deployments -l 'app in (a)'": "?labelSelector=app+in+%28a%29&limit=500&ready=true",
		`deployments --filter "object.a == 'x'" --image nginx:1.28 --older-than 2d --order-by -age`: "" +
			"?filter=object.a+%3D%3D+%27x%27&image=nginx%3A1.28&limit=500&minAge=48h0m0s&orderBy=-age",
		`deployments --filter "object.a[\"b\"] == 'x\y'" -l a\=b`: "" +
			"?filter=object.a%5B%22b%22%5D+%3D%3D+%27x%5Cy%27&labelSelector=a%3Db&limit=500",
		"deployments --owner=deployment/web --field-selector metadata.name=web": "" +
			"?fieldSelector=metadata.name%3Dweb&limit=500&owner=Deployment%2Fweb",
	} {
		a := newTestAPI(t, grants{})
		asked := playHub(t, a, map[string]hubAnswer{foundDeployments: {body: found("")}})
		code, answer := a.finds(t, line)
		if code != http.StatusOK || !slices.Equal(*asked, []string{"alice " + foundDeployments + want}) {
			t.Errorf("%q asks %q, want %s: %d %s", line, *asked, want, code, answer)
		}
	}
	a := newTestAPI(t, grants{})
	asked := playHub(t, a, nil)
	if _, _ = a.finds(t, "ships.v1.example.com -n shop"); !slices.Equal(*asked,
		[]string{"alice " + search.CachePath + "/apis/example.com/v1/namespaces/shop/ships?limit=500"}) {
		t.Errorf("the hub is asked %q", *asked)
	}
}

func TestSearchFindsTemplatesAndNamesSilentClusters(t *testing.T) {
	a := newTestAPI(t, grants{})
	const bound = `, "resourcebinding.karmada.io/name": "web-deployment"`
	playHub(t, a, map[string]hubAnswer{foundDeployments: {warning: "left out: cluster eu: it does not respond",
		body: found(bound, "", bound+`, "work.karmada.io/namespace": "karmada-es-other"`,
			strings.Replace(bound, "web-deployment", "addon-enclosedmanifest", 1))}})
	code, got := a.finds(t, "deployments")
	want := `{"columns":["Name","Cluster","Ready"],"rows":[` +
		`{"namespace":"shop","name":"web","cluster":"m1","managed":true,"template":true,"cells":["web","m1","1/1"]},` +
		`{"namespace":"shop","name":"web","cluster":"m2","managed":true,"cells":["web","m2","1/1"]},` +
		`{"namespace":"shop","name":"web","cluster":"m3","managed":false,"cells":["web","m3","1/1"]},` +
		`{"namespace":"shop","name":"web","cluster":"m4","managed":true,"cells":["web","m4","1/1"]}],` +
		`"apiVersion":"apps/v1","resource":"deployments","kind":"Deployment","more":true,` +
		`"warnings":["left out: cluster eu: it does not respond"]}`
	if code != http.StatusOK || strings.TrimSpace(got) != want {
		t.Errorf("the answer is %d %s, want %s", code, got, want)
	}
}

func TestSearchExplainsAWrongQuestion(t *testing.T) {
	a := newTestAPI(t, grants{})
	asked := playHub(t, a, map[string]hubAnswer{foundDeployments: {body: found("")}})
	for line, want := range map[string]string{
		"":                                  "name one resource, such as pods, and then filters",
		"--help":                            "name one resource",
		"deployments web":                   "name one resource",
		"deployments --imge x":              "unknown flag: --imge",
		"deployments --limit many":          "--limit",
		"deployments --ready --not-ready":   "--ready and --not-ready cannot be used together",
		"deployments --owner web":           `--owner \"web\" is not KIND/NAME, such as cloneset/web`,
		"deployments --older-than tomorrow": "--older-than and --newer-than: ",
		`deployments --not-ready\`:          "the last character is a backslash",
		"deployments --filter 'a":           "a quotation mark is not closed",
		"deployments -n ../other":           `--namespace \"../other\": `,
		"deployments -n ..":                 `--namespace \"..\": `,
		"things":                            `the hub does not serve \"things\": write RESOURCE.VERSION.GROUP`,
		"a/../b.v1.example.com":             "the hub does not serve",
		"things...v1":                       "the hub does not serve",
	} {
		if code, got := a.finds(t, line); code != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%q gave %d %s, want %s", line, code, got, want)
		}
	}
	if len(*asked) > 0 {
		t.Errorf("the hub is asked %q", *asked)
	}
}

// The hub itself refuses: its RBAC, search, and what search finds wrong in a filter.
func TestSearchShowsWhyTheHubRefuses(t *testing.T) {
	status := func(code int, message string) hubAnswer {
		raw, _ := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
			"message": message})
		return hubAnswer{code: code, body: string(raw)}
	}
	for name, c := range map[string]struct {
		hub  hubAnswer
		code int
		want string
	}{
		"no right to search": {denied("search.karmada.io", "search"), http.StatusForbidden,
			`"missing":{"verb":"get","group":"search.karmada.io","resource":"search/apis","role":"argosy:fleet"}`},
		"no right in a cluster": {status(403, "you may not list deployments.apps in any cluster"), http.StatusForbidden,
			"you may not list deployments.apps in any cluster"},
		"a wrong filter":      {status(400, "filter: ERROR: <input>:1:1"), http.StatusBadRequest, "filter: ERROR"},
		"no cluster responds": {status(503, "no cluster that you may read can be shown"), 503, "can be shown"},
		"too many searches":   {status(429, "too many lists of member clusters at the same time"), 429, "too many lists"},
		"too much": {hubAnswer{body: found(`, "note": "` + strings.Repeat("x", maxSearchBytes) + `"`)},
			http.StatusBadRequest, "have more than 8 MiB: select fewer objects, or give a lower --limit"},
	} {
		a := newTestAPI(t, grants{})
		playHub(t, a, map[string]hubAnswer{foundDeployments: c.hub})
		if code, got := a.finds(t, "deployments"); code != c.code || !strings.Contains(got, c.want) {
			t.Errorf("%s gave %d %.500s, want %d with %s", name, code, got, c.code, c.want)
		}
	}
}
