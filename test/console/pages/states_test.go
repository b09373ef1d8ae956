package pages

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/argosy-io/argosy/test/console/browser"
)

// everything lets each page of the console show data.
func (h *hub) everything() {
	h.topics["fleet"] = topic{totals: object{"clusters": 2, "notReady": 1, "workloads": 1},
		rows: []any{[]any{"cluster/c00", object{"key": "cluster/c00", "severity": "Problem", "about": "cluster", "rank": 0,
			"cluster": "c00", "what": "not ready: dial tcp 10.0.0.7:6443: i/o timeout", "since": 1_700_000_000}}}}
	h.topics["clusters"] = topic{rows: []any{cluster("c00", "NotReady"), cluster("c01", "Ready")}}
	web := workload(1, "Healthy")
	web[1].(object)["places"] = []object{{"cluster": "c00", "state": "Lost"}, {"cluster": "c01", "state": "Healthy"}}
	h.topics["workloads"] = topic{rows: []any{web}}
	r := waiting()
	stage := r["stages"].([]object)[1]
	stage["clusters"] = []object{{"name": "c00", "target": "web", "phase": "Lost", "message": "not heard since 10:02"}}
	h.topics["releases"] = topic{rows: []any{[]any{"shop/web-1", r}}}
	h.answers["GET api/release"] = answer{200, r}
	h.answers["GET api/why"], h.answers["GET api/actions"] = answer{200, walk(2, "Lost")}, answer{200, []any{scale(nil)}}
	h.answers["GET api/object"] = answer{200, object{"yaml": "kind: Deployment\n"}}
	h.answers["GET api/timeline"] = answer{200, object{"entries": []object{entry("1", "2026-03-01T12:00:01Z"),
		{"id": "n", "at": "2026-03-01T12:00:00Z", "class": "clusters", "type": "NotReady", "kind": "Cluster",
			"name": "c00"}}}}
	h.answers["GET api/pods"] = answer{200, object{"pods": []object{pod("c01", "web-1")}, "errors": []object{{
		"cluster": "c00", "message": "the cluster has not answered yet"}}}}
	h.policies(list(object{"kind": "PropagationPolicy", "name": "web", "namespace": "shop", "selects": []string{}}))
	h.member()
}

func pod(cluster, name string) object {
	return object{"cluster": cluster, "name": name, "containers": []string{"web"}, "phase": "Running",
		"state": "Healthy", "ready": 1,
		"restarts": 0, "since": time.Now().Add(-26 * time.Hour).Unix(), "node": cluster + "-node-1"}
}

const memberPath = "k8s/apis/cluster.karmada.io/v1alpha1/clusters/"

// member lets each cluster serve Deployments, with one object, and Nodes.
func (h *hub) member() {
	h.answers["GET api/kinds"] = answer{200, object{"kinds": []object{
		{"apiVersion": "v1", "resource": "nodes", "kind": "Node"},
		{"apiVersion": "apps/v1", "resource": "deployments", "kind": "Deployment", "namespaced": true}}}}
	h.answers["GET api/objects"] = answer{200, printed("", "web-1")}
}

// printed is a table of Deployments. The hub manages all but api.
func printed(more string, names ...string) object {
	rows := []object{}
	for _, name := range names {
		rows = append(rows, object{"cells": []any{name, "2/2", 2, 2, "5d"}, "name": name, "namespace": "shop",
			"managed": name != "api"})
	}
	return object{"columns": []string{"Name", "Ready", "Up-to-date", "Available", "Age"}, "rows": rows, "continue": more}
}

// shown has each page, and what it shows while everything is there.
var shown = map[string]string{"": "not ready: dial tcp", "clusters": "c01",
	"clusters/c00": "The hub finds nothing wrong",
	"clusters/c00?tab=objects&kind=deployments.apps/v1": "web-1", "workloads": "web-00001",
	path: "it is healthy in all clusters", path + "?tab=pods": "c01-node-1", "policies": "shop",
	"policies/PropagationPolicy/shop/web":          "Nothing is wrong",
	"change?kind=Deployment.apps&ns=shop&name=web": "Result", "releases": "web-1", releasePath: "1 of 2 approvals",
	"timeline": "moved from eu:2 to us", "clusters/import": "Name in the fleet"}

// TestStalePagesKeepTheirData cuts each page off: what it shows stays, with the time, and it writes nothing.
func TestStalePagesKeepTheirData(t *testing.T) {
	h := newHub(t)
	b := browser.Open(t, h.URL, "status of 503")
	for page, text := range shown {
		h.set(func(h *hub) {
			h.refused = answer{}
			h.everything()
			h.answers["GET api/why"] = answer{200, answerForAll()}
		})
		b.Visit(page)
		b.See(text, "live")
		h.set(func(h *hub) { h.refused = failure(503, "the hub restarts") })
		b.See("disconnected since", "the hub restarts", text)
		enabled := browser.Run[int](b, `[...document.querySelectorAll(
			"main button[type=submit], main .actions button, .verbs button")]
			.filter((button) => !button.disabled && !button.closest(".generator")).length`)
		if enabled > 0 {
			t.Errorf("%q has %d buttons that write while the hub is away", page, enabled)
		}
	}
}

// answerForAll answers why for a workload, a cluster and a policy.
func answerForAll() object {
	answer := walk(2)
	answer["summary"] = "it is healthy in all clusters. Nothing is wrong"
	return answer
}

// TestSilentClusterIsShownOnEachPage shows where a cluster does not answer, with what it last reported.
func TestSilentClusterIsShownOnEachPage(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		h.answers["GET api/why"] = answer{200, object{"summary": "it selects 2 clusters", "clusters": []object{
			{"name": "c00", "takes": false, "why": "not ready since 10:02"}, {"name": "c01", "takes": true}}}}
	})
	b := browser.Open(t, h.URL, "status of 503")
	silent := "The cluster does not answer. The numbers are the last that it reported."
	b.Visit("")
	b.See("not ready: dial tcp 10.0.0.7:6443", "1 of 2")
	b.Visit("clusters")
	b.See("c00", "Not ready")
	b.Visit("policies/PropagationPolicy/shop/web")
	b.See("not ready since 10:02")
	b.Visit("workloads")
	b.See("web-00001")
	if got := browser.Run[string](b, `document.querySelector(".place.silent")?.textContent ?? ""`); got != "c00" {
		t.Errorf("the silent place is %q", got)
	}
	b.Accessible("silent place")
	h.set(func(h *hub) { h.answers["GET api/why"] = answer{200, walk(2, "Lost")} })
	for page, text := range map[string]string{path: "Cluster not ready", "clusters/c00": silent,
		releasePath:        "Does not answer",
		path + "?tab=pods": "the cluster has not answered yet", "timeline": "is not ready"} {
		b.Visit(page)
		b.See(text)
	}
	h.set(func(h *hub) {
		h.answers["GET api/objects"] = failure(503, "the cluster does not answer")
	})
	b.Visit("clusters/c00?tab=objects&kind=deployments.apps/v1")
	b.See("The hub could not answer", "the cluster does not answer", "Try again")

	t.Log("the last pods of a cluster stay when it stops answering")
	b.Visit(path + "?tab=pods")
	b.See("c01-node-1")
	h.set(func(h *hub) {
		h.answers["GET api/pods"] = answer{200, object{"pods": []object{}, "errors": []object{{"cluster": "c01",
			"message": "the cluster has not answered yet"}}}}
	})
	b.See("c01 the cluster has not answered yet", "c01-node-1")
}

// TestLogsGoOnWhenAClusterIsSilentForAMoment shows that a page does not read logs again when a cluster does not answer
// once: the pods stay the same.
func TestLogsGoOnWhenAClusterIsSilentForAMoment(t *testing.T) {
	h := newHub(t)
	logs := func(h *hub, line string) {
		for _, c := range []string{"c00", "c01"} {
			h.answers["GET "+memberPath+c+"/proxy/api/v1/namespaces/shop/pods/web-1/log"] = answer{200,
				text("2026-01-01T00:00:00Z " + line + " of " + c + "\n")}
		}
	}
	pods := func(h *hub, names ...string) {
		body := object{"pods": []object{}, "errors": []object{}}
		for _, name := range names {
			body["pods"] = append(body["pods"].([]object), pod(name, "web-1"))
		}
		if len(names) == 1 {
			body["errors"] = []object{{"cluster": "c00", "message": "the cluster has not answered yet"}}
		}
		h.answers["GET api/pods"] = answer{200, body}
	}
	h.set(func(h *hub) {
		h.everything()
		logs(h, "first line")
		pods(h, "c00", "c01")
		h.answers["GET api/why"] = answer{200, walk(2)}
	})
	b := browser.Open(t, h.URL)
	b.Visit(path + "?tab=pods")
	b.See("first line of c00", "first line of c01")
	h.set(func(h *hub) {
		logs(h, "other line")
		pods(h, "c01")
	})
	b.See("c00 the cluster has not answered yet", "c00-node-1")
	h.set(func(h *hub) { pods(h, "c00", "c01") })
	b.WaitFor("the pods of all clusters", func() string {
		if strings.Contains(b.Text(), "has not answered yet") {
			return "c00 is still silent"
		}
		return ""
	})
	if text := b.Text(); !strings.Contains(text, "first line of c01") || strings.Contains(text, "other line") {
		t.Errorf("the logs were read again:\n%s", text)
	}
}

// TestPagesWithTooMuchShowAPart has more than a page shows at once.
func TestPagesWithTooMuchShowAPart(t *testing.T) {
	h := newHub(t)
	clusters, releases := make([]any, 1000), make([]any, 130)
	for i := range clusters {
		clusters[i] = cluster(fmt.Sprintf("c%04d", i), "Ready")
	}
	for i := range releases {
		r := summary(fmt.Sprintf("web-%03d", i), "Running", time.Now())
		r["severity"], r["what"] = "Attention", "it waits for approval"
		releases[i] = []any{fmt.Sprint("shop/", r["name"]), r}
	}
	var placed []object
	for i := range 310 {
		placed = append(placed, object{"template": fmt.Sprintf("Deployment.apps shop/web-%03d", i), "state": "Healthy"})
	}
	h.set(func(h *hub) {
		h.everything()
		h.topics["clusters"], h.topics["releases"] = topic{rows: clusters}, topic{rows: releases}
		h.answers["GET api/policies"].body.(object)["more"] = true
		h.answers["GET api/why"] = answer{200, object{"summary": "", "placed": placed}}
		h.answers["GET api/objects"] = answer{200, printed("x", "web-1")}
	})
	b := browser.Open(t, h.URL)
	b.Visit("clusters")
	b.See("1000 of 1000", "c0000")
	if n := browser.Run[int](b, `document.querySelectorAll("[data-row]").length`); n < 20 || n > 150 {
		t.Errorf("%d rows are drawn", n)
	}
	for page, text := range map[string]string{"policies": "Each kind shows its first 500 policies.",
		"clusters/c01": "10 more", "releases": "30 more are not shown.",
		"clusters/c01?tab=objects&kind=deployments.apps/v1": "Show more"} {
		b.Visit(page)
		b.See(text)
	}
	b.Visit("clusters/c01?tab=objects&kind=deployments.apps/v1")
	b.See("1 of 1", "Show more")
	h.set(func(h *hub) {
		h.answers["GET api/objects"] = answer{200, printed("", "web-2")}
	})
	b.Perform(chromedp.Click(".more button"))
	b.See("web-1", "web-2", "2 of 2")
	h.set(func(h *hub) { h.answers["GET api/why"] = answer{200, walk(60)} })
	b.Visit(path + "?tab=pods")
	b.See("The first 8 of 60 clusters are read.")
	h.set(func(h *hub) {
		h.answers["GET api/pods"] = answer{200, object{"pods": []object{pod("c01", "web-1")}, "errors": []object{},
			"more": []string{"c01"}}}
	})
	b.See("c01 has more pods than the first 1.")

	t.Log("the filter finds pods that are not drawn")
	var pods []object
	for i := range 350 {
		pods = append(pods, pod("c01", fmt.Sprintf("web-%03d", i)))
	}
	pods[349]["phase"], pods[349]["node"] = "Pending", "c01-node-9"
	h.set(func(h *hub) {
		h.answers["GET api/pods"] = answer{200, object{"pods": pods, "errors": []object{}}}
	})
	b.See("350 of 350", "The first 300 of 350 matching pods are shown.", "web-299")
	if strings.Contains(b.Text(), "web-349") {
		t.Error("all pods are drawn")
	}
	for _, text := range []string{"WEB-349", "pending", "node-9"} {
		b.Visit(path + "?tab=pods&q=" + text)
		b.See("1 of 350", "web-349")
	}
	b.Visit(path + "?tab=pods&q=web-9")
	b.See("0 of 350", "No row matches the filters.")
}

func TestPodOfACloneSetIsReplacedOrDeletedByAChange(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		h.answers["GET api/object"] = answer{200, object{"yaml": "kind: CloneSet\n# podsToDelete: [web-1]\n"}}
		ours := pod("c01", "web-1")
		ours["owner"] = "CloneSet.apps.kruise.io/web"
		foreign := pod("c01", "web-2")
		foreign["owner"] = "CloneSet.apps.kruise.io/other"
		h.answers["GET api/pods"] = answer{200, object{"pods": []object{ours, foreign}, "errors": []object{}}}
	})
	b := browser.Open(t, h.URL)
	b.Visit(path + "?tab=pods")
	b.See("web-1")
	b.Perform(chromedp.Click(".objects button[aria-pressed]"))
	b.See("Container")
	if n := browser.Run[int](b, `document.querySelectorAll(".tools.logs a.button").length`); n != 0 {
		t.Errorf("the page of a Deployment offers %d changes of a pod", n)
	}
	b.Visit("w/apps.kruise.io/CloneSet/shop/web?tab=pods")
	b.See("web-2")
	b.Perform(chromedp.Click(".objects tbody tr:nth-child(2) button[aria-pressed]"))
	b.See("Container")
	if n := browser.Run[int](b, `document.querySelectorAll(".tools.logs a.button").length`); n != 0 {
		t.Errorf("%d changes of a pod of another CloneSet are offered", n)
	}
	for text, query := range map[string]string{"Replace this pod": "deletePod=web-1",
		"Delete this pod and lower the replicas by one": "deletePod=web-1&fewer=1"} {
		b.Visit("w/apps.kruise.io/CloneSet/shop/web?tab=pods")
		b.See("web-1")
		b.Perform(chromedp.Click(".objects button[aria-pressed]"))
		b.See(text)
		b.Accessible("pods of a CloneSet")
		browser.Run[any](b, fmt.Sprintf(`[...document.querySelectorAll(".tools.logs a.button")].find(
			(a) => a.textContent === %q).click()`, text))
		b.See("The text below deletes pod web-1")
		if !browser.Run[bool](b, fmt.Sprintf(`performance.getEntriesByType("resource").some((e) =>
			e.name.includes("api/object?kind=CloneSet.apps.kruise.io&namespace=shop&name=web") && e.name.endsWith("&%s"))`,
			query)) {
			t.Errorf("%s: the page does not ask for the object with %s", text, query)
		}
	}
}

// TestPagesWaitForTheUser shows that the console itself, pods and objects of a member have the states of a page.
func TestPagesWaitForTheUser(t *testing.T) {
	h := newHub(t)
	b := browser.Open(t, h.URL, "status of 403", "status of 500")
	user := h.answers["GET api/me"]
	h.set(func(h *hub) { delete(h.answers, "GET api/me") })
	b.Perform(chromedp.Navigate(h.URL + "/console/"))
	b.See("Waiting for the hub at")
	b.Accessible("waiting for the user")
	objects := "clusters/c01?tab=objects&kind=deployments.apps/v1"
	h.set(func(h *hub) {
		h.everything()
		h.answers["GET api/me"] = user
		delete(h.answers, "GET api/pods")
		delete(h.answers, "GET api/objects")
	})
	for _, page := range []string{path + "?tab=pods", objects} {
		b.Visit(page)
		b.See("Waiting for the hub at")
	}

	t.Log("error")
	h.set(func(h *hub) {
		h.answers["GET api/pods"] = failure(500, "the store is away")
		h.answers["GET api/objects"] = failure(500, "the store is away")
	})
	for _, page := range []string{path + "?tab=pods", objects} {
		b.Visit(page)
		b.See("The hub could not answer", "the store is away", "Try again")
	}

	t.Log("empty")
	h.set(func(h *hub) {
		h.answers["GET api/pods"] = answer{200, object{"pods": []object{}, "errors": []object{}}}
		h.answers["GET api/objects"] = answer{200, printed("")}
	})
	b.Visit(path + "?tab=pods")
	b.See("No cluster has a pod of this workload.")
	b.Visit(objects)
	b.See("The cluster has no Deployment.")
	b.Visit(objects + "&ns=shop")
	b.See("Namespace shop of the cluster has no Deployment.", "argosy get deployments -n shop -C c01")
	b.Visit("clusters/c01?tab=objects&kind=tokenreviews.authentication.k8s.io/v1")
	b.See("The cluster does not serve tokenreviews.authentication.k8s.io/v1 now, or its objects cannot be listed")

	t.Log("forbidden: on the hub, or in the member")
	forbidden := func(right object, cluster string) answer {
		right["cluster"] = cluster
		return answer{403, object{"kind": "Status", "code": 403, "message": "no", "missing": right}}
	}
	h.set(func(h *hub) {
		h.answers["GET api/pods"] = answer{200, object{"pods": []object{}, "errors": []object{{"cluster": "c01",
			"message": "no", "missing": object{"verb": "list", "resource": "pods", "namespace": "shop"}}}}}
		h.answers["GET api/objects"] = forbidden(missing("list", "apps", "deployments"), "c01")
	})
	b.Visit(path + "?tab=pods")
	b.See("Missing: list pods in namespace shop")
	b.Visit(objects)
	b.See("You may not see this", "In cluster c01:", "kubectl auth can-i list deployments.apps")
	b.Accessible("forbidden in a member")
	h.set(func(h *hub) {
		h.answers["GET api/objects"] = forbidden(missing("get", "cluster.karmada.io", "clusters/proxy"), "")
	})
	b.Visit(objects)
	b.See("Missing: get clusters.cluster.karmada.io/proxy")
	if text := b.Text(); strings.Contains(text, "In cluster c01:") {
		t.Errorf("a right on the hub is asked for in the member:\n%s", text)
	}
}

// TestObjectsOfAMemberAreShownAsText looks at an object without any policy, whose texts are markup.
func TestObjectsOfAMemberAreShownAsText(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.busy()
		h.member()
		h.answers["GET api/why"] = answer{200, object{}}
		h.answers["GET api/objects"] = answer{200, printed("", "api", "payments", "web")}
		h.answers["GET "+memberPath+"eu-west/proxy/apis/apps/v1/namespaces/shop/deployments/web"] = answer{200,
			text("kind: Deployment # <img src=x onerror=alert(1)>\nimage: \u202eweb:1\n")}
	})
	b := browser.Open(t, h.URL)
	b.Visit("clusters/eu-west")
	b.See("Objects")
	b.Perform(chromedp.KeyEvent("2"))
	b.See("Any kind that the cluster serves")
	choose(b, ".tools select", "deployments.apps/v1")
	b.See("api", "2/2", "5d", "Managed by the hub",
		"argosy get deployments -A -C eu-west", "3 of 3")
	b.Shoot("objects")
	b.Perform(chromedp.SendKeys("[data-filter]", "shop/web"))
	b.See("1 of 3")
	b.Perform(chromedp.Click(".objects button"))
	b.See("Deployment shop/web", "<img src=x onerror=alert(1)>", "image: ‹U+202E›web:1",
		"argosy get deployments web -n shop -C eu-west -o yaml")
	b.Accessible("manifest")
	if n := browser.Run[int](b, `document.querySelectorAll("main img").length`); n > 0 {
		t.Errorf("%d elements come from the object", n)
	}
}

// TestKindWithoutNamespacesIgnoresTheNamespace keeps the namespace of the address for the kinds that have one.
func TestKindWithoutNamespacesIgnoresTheNamespace(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		h.answers["GET api/objects"] = answer{200, object{"columns": []string{"Name"}, "rows": []object{
			{"name": "node-1", "cells": []any{"node-1"}}}}}
	})
	b := browser.Open(t, h.URL)
	for kind, want := range map[string]struct{ namespace, command string }{
		"nodes.v1":            {"", "argosy get nodes -C c01"},
		"deployments.apps/v1": {"shop", "argosy get deployments -n shop -C c01"},
	} {
		b.Visit("clusters/c01?tab=objects&ns=shop&kind=" + kind)
		b.See("node-1", want.command)
		h.mu.Lock()
		if got := h.query.Get("namespace"); got != want.namespace {
			t.Errorf("%s was asked for in namespace %q, want %q", kind, got, want.namespace)
		}
		h.mu.Unlock()
		if n := browser.Run[int](b, `document.querySelectorAll(".tools .choice input").length`); (n == 1) !=
			(want.namespace != "") {
			t.Errorf("%s has %d fields for a namespace", kind, n)
		}
	}
}

// TestObjectThatIsGoneIsSaidToBeGone opens the address of an object that was deleted.
func TestObjectThatIsGoneIsSaidToBeGone(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		gone := failure(404, "there is no such object")
		for _, path := range []string{"api/why", "api/release", "api/object", "api/kinds"} {
			h.answers["GET "+path] = gone
		}
	})
	b := browser.Open(t, h.URL, "status of 404")
	for _, page := range []string{path, "clusters/c09", "clusters/c00?tab=objects", "policies/PropagationPolicy/shop/web",
		releasePath, "change?kind=Deployment.apps&ns=shop&name=web"} {
		b.Visit(page)
		b.See("It does not exist (any more)", "there is no such object")
	}
}

// TestFleetTranslatesWhatNeedsAttention shows the sentences of the hub in Chinese, and leaves what it does not know.
func TestFleetTranslatesWhatNeedsAttention(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		item := func(rank int, what string, more object) []any {
			key := fmt.Sprint(rank)
			more["key"], more["rank"], more["severity"], more["what"] = key, rank, "Problem", what
			return []any{key, more}
		}
		h.topics["fleet"] = topic{totals: figures, rows: []any{
			item(0, "paused for c00, c01: 2 of 3 clusters were lost within 5m0s, so the network of the hub may be the cause: "+
				"nothing is evicted from them. Check that the hub reaches its clusters. If they are really lost, add another "+
				"NoExecute taint to the clusters that should be evicted.", object{"about": "hub", "part": "failover",
				"next": "`argosy get failovers` lists the workloads that stay; `argosy why cluster c00` shows why"}),
			item(1, "not applied: a; word: of its own", object{"about": "workload", "cluster": "c00", "object": object{
				"group": "work.open-cluster-management.io", "kind": "ManifestWork", "namespace": "c00", "name": "base"}}),
		}}
		h.answers["GET api/why"] = answer{200, walk(1)}
	})
	b := browser.Open(t, h.URL)
	b.Visit("")
	b.See("paused for c00, c01", "argosy why cluster c00")
	browser.Run[any](b, `localStorage.setItem("argosy-language", "zh")`)
	b.Visit("clusters")
	b.Perform(chromedp.Navigate(h.URL + "/console/"))
	b.See("对 c00, c01 暂停：3 个集群中有 2 个在 5m0s 内失联", "请检查控制面能否访问其集群", "列出留下的工作负载；", "argosy why cluster c00",
		"未应用：a；word: of its own")
	browser.Run[any](b, `localStorage.removeItem("argosy-language")`)
}

// TestManifestWorkHasAPage opens what Fleet lists. Its answer has no policy and no placement.
func TestManifestWorkHasAPage(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		h.answers["GET api/why"] = answer{200, object{"kind": "ManifestWork", "namespace": "c00", "name": "base",
			"summary": "1 problem, 0 of 1 object applied", "findings": []object{{"severity": "Problem",
				"what": "ConfigMap shop/a is not applied: no"}},
			"objects": []object{{"object": "ConfigMap shop/a", "applied": "False", "why": "no"}}}}
	})
	b := browser.Open(t, h.URL)
	b.Visit("w/work.open-cluster-management.io/ManifestWork/c00/base")
	b.See("0 of 1 object applied", "ConfigMap shop/a is not applied: no", "argosy why manifestwork")
	b.Accessible("a ManifestWork")
}

// TestRevisionsOfAWorkloadUnderARelease offers no way back that the release refuses, and leads to the release.
func TestRevisionsOfAWorkloadUnderARelease(t *testing.T) {
	h := newHub(t)
	revisions := object{"path": "x", "release": "web-1",
		"refused": "release web-1 updates it: `argosy release rollback web-1 -n shop`",
		"revisions": []object{{"revision": 2, "createdAt": "2026-03-01T12:00:00Z", "images": []string{"web:2"},
			"current": true}, {"revision": 1, "createdAt": "2026-02-01T12:00:00Z", "images": []string{"web:1"}}}}
	h.set(func(h *hub) {
		h.everything()
		h.answers["GET api/why"], h.answers["GET api/revisions"] = answer{200, walk(1)}, answer{200, revisions}
	})
	b := browser.Open(t, h.URL)
	b.Visit("w/apps.example.com/Deployment/shop/web")
	b.See("Revisions")
	if strings.Contains(b.Text(), "1 of 2 approvals") ||
		browser.Run[bool](b, `document.querySelector(".release") !== null`) {
		t.Error("a workload of another group has the release")
	}
	b.Visit(path)
	b.See("Revisions")
	browser.Run[any](b, `[...document.querySelectorAll("main details summary")].find(
		(s) => s.textContent === "Revisions").click()`)
	b.See("You cannot go back here: release web-1 updates it:", "argosy release rollback web-1 -n shop", "web:1")
	b.Accessible("revisions under a release")
	if n := browser.Run[int](b, `[...document.querySelectorAll("main details button")].filter(
		(b) => b.textContent === "Go back").length`); n > 0 {
		t.Errorf("%d buttons go back", n)
	}
	if !browser.Run[bool](b, `document.querySelector("main details a[href$='/releases/shop/web-1']") !== null`) {
		t.Error("no link leads to the release")
	}
}

// TestWalkApprovesWhatWaits approves the gate of a release, and a stage of the hub's own rollout, from the walk.
func TestWalkApprovesWhatWaits(t *testing.T) {
	h := newHub(t)
	const target = "k8s/apis/apps/v1/namespaces/shop/deployments/web"
	const approvals = "POST k8s/apis/release.argosy.io/v1alpha1/namespaces/shop/releaseapprovals"
	h.set(func(h *hub) {
		h.everything()
		h.answers["GET api/actions"] = answer{200, []any{object{"name": "approve", "path": target,
			"about": "stage 1 of 3 is complete and waits for an approval", "patch": object{"metadata": object{"x": "y"}},
			"command": "argosy rollout approve deployment web -n shop"}}}
		h.answers["PATCH "+target], h.answers[approvals] = answer{200, object{}}, answer{201, object{}}
	})
	b := browser.Open(t, h.URL)
	b.Visit(path)
	b.See("Release web-1", "gate sign of stage production", "Approve sign")
	if text := b.Text(); strings.Contains(text, "Roll back") {
		t.Errorf("the walk has all buttons of the release:\n%s", text)
	}
	b.Shoot("walk-release")
	b.Perform(chromedp.Click("[data-verb=approve]"))
	b.See("argosy release approve web-1 -n shop --gate sign --yes")
	b.Perform(chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	b.Perform(chromedp.KeyEvent("a"))
	b.See("stage 1 of 3 is complete", "argosy rollout approve deployment web -n shop")
	b.Perform(chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	want := []string{approvals + ` {"spec":{"verdict":"Approve"}}`, "PATCH " + target + ` {"metadata":{"x":"y"}}`}
	if sent := h.writes(); len(sent) != 2 || sent[0] != want[0] || sent[1] != want[1] {
		t.Errorf("the page sent %q, want %q", sent, want)
	}
}

// A login is prolonged by each page that is loaded and by what the user does, also in the first minutes of a page, but
// not more often than every five minutes.
func TestUseOfThePagesProlongsTheLogin(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) { h.everything() })
	b := browser.Open(t, h.URL)
	prolonged := func(what string, want int) {
		t.Helper()
		b.WaitFor(what, func() string {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.prolonged != want {
				return fmt.Sprintf("the login was prolonged %d times, want %d", h.prolonged, want)
			}
			return ""
		})
	}
	press := func(after int) {
		browser.Run[int](b, fmt.Sprintf(`(() => { const now = Date.now; Date.now = () => now() + %d * 60_000;
			document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "Shift", bubbles: true})); return 0; })()`, after))
	}
	b.Visit("workloads")
	prolonged("the load of a page", 1)
	press(6)
	prolonged("a key six minutes later", 2)
	press(1)
	b.Visit("clusters")
	prolonged("the load of the next page, and no key a minute after the last", 3)
	b.Visit("workloads")
	press(0)
	prolonged("one more page", 4)
}

// The check shows the warnings of the API server with their object, and sentences of the hub in the language of the
// page.
func TestCheckShowsWarningsInTheLanguageOfThePage(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		h.answers["POST api/change"] = answer{200, object{"applied": false, "command": "argosy", "objects": []object{
			{"kind": "CloneSet", "namespace": "shop", "name": "web", "result": "created", "warnings": []string{
				"apps.kruise.io/v1alpha1 CloneSet is deprecated", "spec.replica: stored as 3"}},
			{"kind": "Secret", "namespace": "shop", "name": "key",
				"error": "an object of this name exists: open that object to edit it"}}}}
	})
	b := browser.Open(t, h.URL)
	check := func(language string, texts ...string) {
		t.Helper()
		b.Visit("workloads")
		browser.Run[int](b, `(() => { localStorage.setItem("argosy-language", "`+language+`"); return 0; })()`)
		b.Visit("change?x=" + language)
		b.Perform(chromedp.WaitVisible("#yaml"))
		b.Fill("#yaml", "kind: CloneSet")
		b.Perform(chromedp.Click(`form button[type="submit"].primary`))
		b.See(texts...)
	}
	check("en", "Warnings", "apps.kruise.io/v1alpha1 CloneSet is deprecated", "spec.replica: stored as 3",
		"an object of this name exists")
	check("zh", "警告", "apps.kruise.io/v1alpha1 CloneSet is deprecated", "spec.replica：已保存为 3", "同名对象已存在")
}

// An answer without what the user may not read names all missing rights in one place, with the role that has them.
func TestMissingRightsAreNamedTogetherOnThePage(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		web := walk(2)
		web["missing"] = []object{
			{"verb": "list", "group": "cluster.karmada.io", "resource": "clusters", "role": "argosy:fleet"},
			{"verb": "list", "group": "policy.karmada.io", "resource": "clusteroverridepolicies", "role": "argosy:fleet"}}
		h.answers["GET api/why"] = answer{200, web}
	})
	b := browser.Open(t, h.URL)
	b.Visit(path)
	b.See("it is healthy in all clusters", "Not shown, because you lack rights. Missing: list clusters.cluster.karmada.io · "+
		"Missing: list clusteroverridepolicies.policy.karmada.io. The ClusterRole argosy:fleet permits it.")
}

// TestPagesOfWorkloadsNameTheirCommands reads the commands that show the same in a terminal. A name of the address that
// a shell does not take for one word has none.
func TestPagesOfWorkloadsNameTheirCommands(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.everything()
		h.answers["GET api/why"] = answer{200, walk(1)}
	})
	b := browser.Open(t, h.URL)
	for page, want := range map[string]string{
		"w/apps/Deployment/shop/web":             "argosy why deployment.apps web -n shop",
		"w/apps.kruise.io/CloneSet/shop/web":     "argosy why cloneset.apps.kruise.io web -n shop",
		"w/rbac.authorization.k8s.io/Role/-/web": "argosy why role.rbac.authorization.k8s.io web",
		"w/apps/Deployment/shop/web%3Breboot":    "",
	} {
		b.Visit(page)
		b.See("it is healthy in all clusters")
		if got := browser.Run[string](b, `document.querySelector(".same code")?.innerText ?? ""`); got != want {
			t.Errorf("%s names the command %q, want %q", page, got, want)
		}
	}
}
