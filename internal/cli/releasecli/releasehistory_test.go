package releasecli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/history"
)

// historyQueryOf returns a question with the flags of a command line.
func historyQueryOf(t *testing.T, line string) *historyQuery {
	t.Helper()
	q, cmd := &historyQuery{}, &cobra.Command{Use: "x"}
	q.bind(cmd, &hubcli.HubFlags{}, "author", "cluster", "outcome", "trigger", "workload", "since", "until", "at", "image",
		"environment", "limit")
	q.now = func() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }
	if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestFlagsOfHistoryAreParametersOfTheHub(t *testing.T) {
	for line, want := range map[string]string{
		"":                                    "limit=200&namespace=shop",
		"-A":                                  "limit=200",
		"--workload cloneset/web --author li": "author=li&kind=cloneset&limit=200&name=web&namespace=shop",
		"--workload web --limit 3":            "limit=3&name=web&namespace=shop",
		"--since 24h --until 2026-03-02T09:00:00+08:00": "limit=200&namespace=shop&since=2026-03-01T12%3A00%3A00Z&" +
			"until=2026-03-02T01%3A00%3A00Z",
		"--at 2026-03-01T14:05:00Z --cluster m3": "at=2026-03-01T14%3A05%3A00Z&cluster=m3&limit=200&namespace=shop",
		"--trigger Rollback":                     "limit=200&namespace=shop&trigger=Rollback",
		"--image a/b:1 --outcome RolledBack":     "image=a%2Fb%3A1&limit=200&namespace=shop&outcome=RolledBack",
	} {
		got, err := historyQueryOf(t, line).params("shop")
		if err != nil || got.Encode() != want {
			t.Errorf("%q asks for %s, %v; want %s", line, got.Encode(), err, want)
		}
	}
	for _, line := range []string{"--since yesterday", "--at -2h"} {
		if _, err := historyQueryOf(t, line).params("shop"); err == nil ||
			!strings.Contains(err.Error(), "2026-03-01T12:00:00Z or a duration such as 24h") {
			t.Errorf("%q returns %v", line, err)
		}
	}
}

// historyHub answers like a hub.
func historyHub(t *testing.T, answers map[string]any) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		query.Del("timeout") // client-go's
		answer, ok := answers[r.URL.Path+"?"+query.Encode()]
		if !ok {
			http.Error(w, "no answer to "+r.URL.String(), http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

func TestHistoryIsPrintedAsTableCSVAndJSON(t *testing.T) {
	found := []history.Release{{Namespace: "shop", Name: "web-1", Phase: "Succeeded", Trigger: "User",
		Author:    "li",
		CreatedAt: "2026-03-01T12:00:00Z", Reason: `"fast", and more`,
		Targets: []history.Target{{Kind: "CloneSet", Name: "web"}, {Kind: "CloneSet", Name: "api"}}}}
	for output, want := range map[string]string{
		"":     "shop        web-1   CloneSet/web,CloneSet/api   Succeeded   User      li       2026-03-01T12:00:00Z   <none>",
		"csv":  `shop,web-1,"CloneSet/web,CloneSet/api",Succeeded,User,li,2026-03-01T12:00:00Z,,,"""fast"", and more"`,
		"json": `"name": "web-1"`,
		"yaml": "name: web-1",
	} {
		var out bytes.Buffer
		q := &historyQuery{output: output}
		if err := q.write(&out, found, releaseLines(found), "none"); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("-o %q prints %v\n%s", output, err, out.String())
		}
	}
	var out bytes.Buffer
	if err := (&historyQuery{}).write(&out, nil, releaseLines(nil), "none"); err != nil || out.String() != "none\n" {
		t.Errorf("nothing is printed as %q, %v", out.String(), err)
	}
}

func TestHistoryNamesTheMissingRight(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		apistatus.Write(w, apierrors.NewForbidden(history.Resource, "", errors.New("no")))
	}))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL}
	var into []history.Release
	for namespace, where := range map[string]string{
		"shop": "in namespace shop; a RoleBinding to the ClusterRole view permits it",
		"":     "in all namespaces; a ClusterRoleBinding to the ClusterRole argosy:view permits it",
	} {
		params := url.Values{}
		if namespace != "" {
			params.Set("namespace", namespace)
		}
		for _, path := range history.Paths {
			err := (&historyQuery{}).readAnswer(t.Context(), config, path, params, &into)
			if err == nil || !strings.Contains(err.Error(), "you may not list releases.release.argosy.io "+where) ||
				strings.Contains(err.Error(), "unknown") {
				t.Errorf("%s in %q: %v", path, namespace, err)
			}
		}
	}
}

func TestHistoryOfAReleaseShowsItsEntries(t *testing.T) {
	config := historyHub(t, map[string]any{
		history.ReleasesPath + "?limit=1&namespace=shop&release=web-1": []history.Release{{Name: "web-1", UID: "u1"}},
		history.ReleasesPath + "?limit=1&namespace=shop&release=web-2": []history.Release{},
		history.EventsPath + "?namespace=shop&uid=u1": []history.Event{{Seq: 7, At: "2026-03-01T12:00:00Z", Type: "Gate",
			Stage: "prod", Actor: "wang", Reason: "Passed"}},
	})
	var out bytes.Buffer
	q := &historyQuery{}
	if err := q.events(t.Context(), config, url.Values{"namespace": {"shop"}}, "web-1", &out); err != nil ||
		!strings.Contains(out.String(), "wang") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := q.events(t.Context(), config, url.Values{"namespace": {"shop"}}, "web-2", &out); err == nil ||
		!strings.Contains(err.Error(), "`argosy release history -n shop` lists all") {
		t.Errorf("a release that is not there: %v", err)
	}
}

func TestEmptyHistoryNamesTheNamespace(t *testing.T) {
	for namespace, want := range map[string]string{
		"shop": "no release of namespace shop is in the history that matches; -A shows all namespaces",
		"":     "no release is in the history that matches",
	} {
		if got := noRelease(namespace); got != want {
			t.Errorf("of %q: %s", namespace, got)
		}
	}
}
