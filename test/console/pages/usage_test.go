package pages

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/argosy-io/argosy/test/console/browser"
)

// amounts is an answer with the usage of two groups.
func amounts(column, first string) object {
	return object{"columns": []string{column, "RESOURCE", "REQUESTED", "LIMITS", "USED", "USED%", "COST/30D"},
		"lines": [][]string{{first, "cpu", "1500m", "3", "420m", "28%", "32.40"}, {first, "all", "", "", "", "", "32.40"},
			{"bank", "cpu", "2", "", "", "", "43.20"}, {"TOTAL", "cpu", "3500m", "3", "420m", "12%", "75.60"}},
		"csv": "a,b\n1,2\n", "command": "argosy usage -A --by cluster",
		"warnings": []string{"left out: clusters us, asia: not responding"},
		"notes":    []string{"quotas are unknown: no"}}
}

func TestUsageIsGroupedAndSavedAsCSV(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.topics["fleet"] = topic{totals: figures}
		h.answers["GET api/usage"] = answer{200, amounts("NAMESPACE", "shop")}
	})
	b := browser.Open(t, h.URL, "status of 400")
	b.Visit("usage")
	b.See("left out: clusters us, asia: not responding", "quotas are unknown", "Used of requested", "1500m", "28%",
		"Cost in 30 days", "75.60", "All", "argosy usage -A --by cluster")
	b.Shoot("usage")
	links := browser.Run[string](b, `[...document.querySelectorAll("td a")].map((a) => a.href.split("?")[1]).join()`)
	if links != "ns=shop,ns=shop,ns=bank" {
		t.Errorf("the groups link to %s", links)
	}
	browser.Run[any](b, `window.saved = []; window.RealBlob = Blob;
		window.Blob = function (parts, o) { saved.push(o.type, ...parts); return new RealBlob(parts, o); };
		HTMLAnchorElement.prototype.click = function () { saved.push(this.download); }; 0`)
	browser.Run[any](b, `document.querySelector(".buttons button").click()`)
	if got := browser.Run[string](b, `saved.join("|")`); got != "text/csv|a,b\n1,2\n|usage.csv" {
		t.Errorf("it saves %q", got)
	}
	h.set(func(h *hub) { h.answers["GET api/usage"] = answer{200, amounts("CLUSTER", "eu")} })
	choose(b, ".tools select", "cluster")
	b.See("eu")
	h.wantQuery(t, b, "by=cluster&namespace=&price=&since=")
	if link := browser.Run[string](b, `document.querySelector("td a").getAttribute("href")`); link !=
		"/console/clusters/eu" {
		t.Errorf("the cluster links to %s", link)
	}
	choose(b, ".tools select", "label")
	b.See("Name a label of workloads or namespaces")
	h.set(func(h *hub) { h.answers["GET api/usage"] = answer{200, amounts("TEAM", "<img src=x>")} })
	b.Perform(chromedp.SendKeys(".tools input", "team\r"))
	b.See("<img src=x>", "team")
	h.wantQuery(t, b, "by=label%3Dteam&namespace=&price=&since=")
	h.set(func(h *hub) {
		h.answers["GET api/usage"] = answer{200, object{"columns": []string{}, "lines": [][]string{}, "csv": "",
			"command": "argosy usage -n shop", "missing": []object{missing("list", "metrics.k8s.io", "pods")}}}
	})
	b.Visit("usage?ns=shop")
	b.See("No workload here requests or uses anything.", "Not shown, because you lack rights.", "list pods.metrics.k8s.io")
	h.set(func(h *hub) {
		h.answers["GET api/usage"] = failure(400, "price must be such as cpu=0.03,memory=0.004, not x=")
	})
	b.Visit("usage?price=x")
	b.See("price must be such as cpu=0.03,memory=0.004, not x=")
}

// wantQuery waits until the page has asked with a query.
func (h *hub) wantQuery(t *testing.T, b *browser.Tab, want string) {
	t.Helper()
	b.WaitFor("the query is "+want, func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		if got := h.query.Encode(); got != want {
			return got
		}
		return ""
	})
}

// TestSearchShowsWhatMembersSayAsText searches objects whose names and cells are markup.
func TestSearchShowsWhatMembersSayAsText(t *testing.T) {
	h := newHub(t)
	const markup = "<img src=x onerror=alert(1)>"
	h.set(func(h *hub) {
		h.topics["fleet"] = topic{totals: figures}
		h.answers["GET api/search"] = answer{200, object{"columns": []string{"Name", "Cluster", "Ready"},
			"apiVersion": "apps/v1", "resource": "deployments", "kind": "Deployment", "more": true,
			"warnings": []string{"left out: cluster us: it does not respond"},
			"rows": []object{{"namespace": "shop", "name": "web", "cluster": "eu", "template": true,
				"cells": []string{"web", "eu", "1/1"}}, {"namespace": "shop", "name": markup, "cluster": "asia",
				"cells": []string{markup, "asia", markup}}}}}
		h.answers["GET "+memberPath+"asia/proxy/apis/apps/v1/namespaces/shop/deployments/"+markup] = answer{200,
			text("kind: Deployment # " + markup + "\n")}
	})
	b := browser.Open(t, h.URL, "status of 403", "status of 400", "status of 503")
	b.Visit("search")
	b.See("Write a resource, and then filters", "--order-by age")
	b.Shoot("search-empty")
	b.Perform(chromedp.SendKeys("[data-filter]", "deployments --image nginx -n shop\r"))
	b.See("left out: cluster us: it does not respond", "There may be more than these 2 objects", markup, "1/1",
		"argosy search deployments --image nginx -n shop")
	h.wantQuery(t, b, "q=deployments+--image+nginx+-n+shop")
	b.Shoot("search")
	if link := browser.Run[string](b, `document.querySelector("td a[data-row]").getAttribute("href")`); link !=
		"/console/w/apps/Deployment/shop/web" {
		t.Errorf("the template links to %s", link)
	}
	browser.Run[any](b, `document.querySelector("td button").click()`)
	b.See("kind: Deployment # "+markup, "Deployment shop/"+markup)
	if n := browser.Run[int](b, `document.querySelectorAll("main img").length`); n > 0 {
		t.Errorf("%d elements come from the objects", n)
	}
	b.Visit("search?q=" + `pods%20--filter%20'a%20%3E%20$(id)'`)
	b.See("There may be more")
	if text := b.Text(); strings.Contains(text, "argosy search pods --filter 'a > $(id)'") {
		t.Errorf("a command has words that a shell changes:\n%s", text)
	}
	for _, c := range []struct {
		answer answer
		want   string
	}{
		{answer{200, object{"columns": []string{}, "rows": []object{}, "apiVersion": "v1", "resource": "pods"}},
			"No object matches."},
		{failure(400, "name one resource, such as pods, and then filters"), "name one resource"},
		{failure(403, "you may not list pods in any cluster"), "you may not list pods in any cluster"},
		{failure(503, "no cluster that you may read can be shown: left out: cluster us: it does not respond"), "Try again"},
		{answer{403, object{"message": "no", "missing": missing("get", "search.karmada.io", "search/api")}},
			"Missing: get search.search.karmada.io/api"},
	} {
		h.set(func(h *hub) { h.answers["GET api/search"] = c.answer })
		b.Visit("search?q=pods")
		b.See(c.want)
	}
}
