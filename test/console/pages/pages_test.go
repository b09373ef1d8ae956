package pages

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/test/console/browser"
)

var figures = object{"clusters": 1, "notReady": 0, "workloads": 1, "bad": 0, "unplaced": 0}

func workload(i int, state string) []any {
	name := fmt.Sprintf("web-%05d", i)
	return []any{"shop/" + name, object{"group": "apps", "kind": "Deployment", "namespace": "shop", "name": name,
		"state": state, "bad": state == "Unhealthy" || state == "Failed",
		"ready": 1, "wanted": 2, "policy": "shop/web", "places": []object{{"cluster": "eu", "state": state}}}}
}

func cluster(name, state string) []any {
	return []any{name, object{"name": name, "state": state, "since": time.Now().Add(-75 * time.Hour).Unix(), "nodes": 1,
		"readyNodes": 1, "version": "v1.36.0", "placed": 1, "bad": 0}}
}

// walk is the answer of why for a workload in a number of clusters. It is healthy in those without a state.
func walk(clusters int, states ...string) object {
	var lanes []object
	for i := range clusters {
		state, ready := "Healthy", 1
		if i < len(states) {
			state, ready = states[i], 0
		}
		lanes = append(lanes, object{"name": fmt.Sprintf("c%02d", i), "state": state, "target": true, "replicas": 1,
			"readyPods": ready, "wantedPods": 1, "work": object{"applied": true}})
	}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
		"summary": "it is healthy in all clusters", "policy": object{"holder": "PropagationPolicy shop/web"},
		"placement": object{"binding": "web-deployment", "scheduled": object{"status": "True"}, "replicas": 2},
		"clusters":  lanes}
}

const path = "w/apps/Deployment/shop/web"

// policies is what the page Policies reads.
func (h *hub) policies(a answer) { h.answers["GET api/policies"] = a }

// list is an answer with policies.
func list(policies ...object) answer {
	if policies == nil {
		policies = []object{}
	}
	return answer{200, object{"policies": policies}}
}

func TestEachPageHasItsStates(t *testing.T) {
	h := newHub(t)
	b := browser.Open(t, h.URL, "status of 403", "status of 500", "status of 503", "ERR_")
	pages := []string{"", "clusters", "clusters/eu", "workloads", path, "policies",
		"policies/PropagationPolicy/shop/web", "change?kind=Deployment.apps&ns=shop&name=web", "releases", releasePath,
		"timeline", "usage", "search?q=pods"}

	t.Log("loading: after three seconds the page names what it waits for")
	for _, page := range pages {
		b.Visit(page)
		b.See("Waiting for the hub at")
	}
	b.Accessible("loading")

	t.Log("error: the sentence of the hub, and a button to try again")
	h.set(func(h *hub) {
		h.refused = failure(503, "the store is away")
		h.answers["GET api/why"] = failure(500, "the store is away")
		h.answers["GET api/object"] = failure(500, "the store is away")
		h.answers["GET api/release"] = failure(500, "the store is away")
		h.answers["GET api/timeline"] = failure(503, "the store is away")
		h.answers["GET api/usage"] = failure(503, "the store is away")
		h.answers["GET api/search"] = failure(503, "the store is away")
		h.policies(failure(500, "the store is away"))
	})
	for _, page := range pages {
		b.Visit(page)
		b.See("The hub could not answer", "the store is away", "Try again")
	}
	b.Accessible("error")

	t.Log("the next try succeeds; nothing is there yet")
	b.Visit("clusters")
	b.See("Try again")
	h.set(func(h *hub) {
		h.refused = answer{}
		h.topics["fleet"] = topic{totals: object{"clusters": 0, "workloads": 0}}
		h.topics["clusters"], h.topics["workloads"], h.topics["releases"] = topic{}, topic{}, topic{}
		h.answers["GET api/timeline"] = answer{200, object{"entries": []object{}}}
		h.policies(list())
	})
	browser.Run[any](b, `document.querySelector(".failed button")?.click()`)
	b.See("No cluster is in the fleet yet.", "argosy join NAME")
	for page, text := range map[string]string{"": "No cluster is in the fleet yet.",
		"workloads": "No workload is in the fleet", "policies": "No policy is on the hub.",
		"releases": "argosy release start", "timeline": "Nothing has been recorded yet.",
		"timeline?q=web": "No entry matches the filters."} {
		b.Visit(page)
		b.See(text)
	}
	b.Accessible("empty")

	t.Log("off: the hub keeps no history, and the page names the flag")
	h.set(func(h *hub) {
		h.answers["GET api/timeline"] = answer{200, object{"entries": []object{}, "off": true}}
	})
	b.Visit("timeline")
	b.See("This hub keeps no history.", "argosy up --history=local", "--history-dsn")
	b.Accessible("off")

	t.Log("forbidden: the verb that is missing, and a Role to ask for")
	h.set(func(h *hub) {
		clusters := missing("list", "cluster.karmada.io", "clusters")
		bindings := missing("list", "work.karmada.io", "resourcebindings")
		h.topics["fleet"] = topic{totals: figures, missing: []object{clusters}}
		h.topics["clusters"] = topic{missing: []object{clusters}}
		h.topics["workloads"] = topic{missing: []object{bindings}}
		no := answer{403, object{"message": "no", "missing": missing("get", "apps", "deployments")}}
		h.answers["GET api/why"], h.answers["GET api/object"] = no, no
		releases := missing("list", "release.argosy.io", "releases")
		h.topics["releases"] = topic{missing: []object{releases}}
		h.answers["GET api/release"] = answer{403, object{"message": "no",
			"missing": missing("get", "release.argosy.io", "releases")}}
		h.answers["GET api/timeline"] = answer{200, object{"entries": []object{}, "missing": []object{releases}}}
		h.policies(answer{200, object{"policies": []object{}, "missing": []object{
			missing("list", "policy.karmada.io", "propagationpolicies")}}})
	})
	for page, right := range map[string]string{"": "list clusters.cluster.karmada.io",
		"clusters": "list clusters.cluster.karmada.io", "workloads": "list resourcebindings.work.karmada.io",
		"clusters/eu": "get deployments.apps", path: "get deployments.apps",
		"policies": "list propagationpolicies.policy.karmada.io", pages[6]: "get deployments.apps",
		pages[7]: "get deployments.apps", "releases": "list releases.release.argosy.io",
		releasePath: "get releases.release.argosy.io", "timeline": "list releases.release.argosy.io"} {
		b.Visit(page)
		b.See("You may not see this", right, "kubectl auth can-i "+right, "verbs:")
	}
	b.Accessible("forbidden")

	t.Log("a silent cluster: its last figures, and since when")
	h.set(func(h *hub) {
		h.topics["fleet"] = topic{totals: figures}
		h.topics["clusters"] = topic{rows: []any{cluster("c00", "NotReady")}}
		h.topics["workloads"] = topic{rows: []any{workload(1, "Healthy")}}
		h.answers["GET api/why"] = answer{200, walk(1, "Lost")}
		h.answers["GET api/actions"] = answer{200, []any{}}
	})
	b.Visit("clusters")
	b.See("Not ready")
	b.Visit("clusters/c00")
	b.See("The cluster does not answer.")
	b.Visit(path)
	b.See("Cluster not ready", "0 of 1 ready")
	b.Accessible("silent")

	t.Log("too many: the first of them, and how many are left")
	h.set(func(h *hub) {
		h.topics["fleet"] = topic{totals: object{"clusters": 1, "notReady": 1, "workloads": 900, "bad": 900, "unplaced": 0,
			"more": 600}, rows: []any{[]any{"a",
			object{"key": "a", "severity": "Problem", "about": "cluster", "rank": 1, "cluster": "c00", "what": "it is away"}}}}
		h.answers["GET api/why"] = answer{200, walk(60)}
		h.answers["GET api/timeline"] = answer{200, object{"older": "2026-03-01T12:00:00Z", "entries": []object{
			entry("1", "2026-03-01T12:00:01Z"), entry("2", "2026-03-01T12:00:00Z")}}}
	})
	b.Visit("")
	b.See("600 more items are not shown.")
	b.Visit(path)
	b.See("36 more")
	b.Visit("timeline")
	b.See("2 entries", "moved from eu:2 to us", "Show older entries")
	h.set(func(h *hub) {
		h.answers["GET api/timeline?before"] = answer{200, object{"entries": []object{entry("2", "2026-03-01T12:00:00Z"),
			entry("3", "2026-02-01T12:00:00Z")}}}
	})
	b.Perform(chromedp.Click(".more button"))
	b.WaitFor("the older entry is shown, and nothing is older", func() string {
		if text := b.Text(); !strings.Contains(text, "3 entries") || strings.Contains(text, "Show older") {
			return text
		}
		return ""
	})
	b.Accessible("too many")

	t.Log("stale: the last data stays, with its time, and nothing can be changed")
	h.set(func(h *hub) {
		h.answers["GET api/actions"] = answer{200, []any{scale(nil)}}
		h.answers["GET api/release"] = answer{200, waiting()}
	})
	b.Visit(path)
	b.See("Scale", "c00")
	h.set(func(h *hub) { h.refused = failure(503, "the hub restarts") })
	b.See("disconnected since", "the hub restarts", "c00", "nothing can be changed now")
	if !browser.Run[bool](b, `document.querySelector("[data-key=s]").disabled`) {
		t.Error("the button is on while the hub is away")
	}
	b.Accessible("stale")
	b.Visit(releasePath)
	b.See("1 of 2 approvals", "nothing can be changed now")
	if !browser.Run[bool](b, `document.querySelector("[data-verb=approve]").disabled`) {
		t.Error("the release can be approved while the hub is away")
	}
	h.set(func(h *hub) { h.refused = answer{} })
	b.WaitFor("the page is live again", func() string {
		if text := b.Text(); strings.Contains(text, "disconnected") {
			return text
		}
		return ""
	})
}

func scale(right object) object {
	a := object{"name": "scale", "path": "k8s/apis/apps/v1/namespaces/shop/deployments/web/scale", "replicas": 2,
		"command": "kubectl scale deployment web -n shop --replicas={n}"}
	if right != nil {
		a["missing"] = right
	}
	return a
}

func TestWorkloadsHasTenThousandRows(t *testing.T) {
	h := newHub(t)
	rows := make([]any, 10_000)
	for i := range rows {
		state := "Healthy"
		if i == 7777 {
			state = "Unhealthy"
		}
		rows[i] = workload(i, state)
	}
	h.set(func(h *hub) {
		h.topics["fleet"], h.topics["workloads"] = topic{totals: figures}, topic{rows: rows}
		h.answers["GET api/why"], h.answers["GET api/actions"] = answer{200, walk(1)}, answer{200, []any{}}
	})
	b := browser.Open(t, h.URL)
	b.Visit("workloads")
	b.See("10000 of 10000", "web-07777") // the worst is first
	drawn := func() int { return browser.Run[int](b, `document.querySelectorAll("[data-row]").length`) }
	if n := drawn(); n < 20 || n > 150 {
		t.Errorf("%d rows are drawn", n)
	}
	browser.Run[any](b, `scrollTo(0, document.body.scrollHeight)`)
	b.See("web-09999")
	if n := drawn(); n > 150 {
		t.Errorf("%d rows are drawn at the end", n)
	}
	browser.Run[any](b, `scrollTo(0, 0)`)
	b.See("web-07777")

	t.Log("by keys: filter, rows, problems, open, back")
	b.Perform(chromedp.KeyEvent("/"), chromedp.KeyEvent("web-0999"))
	b.See("10 of 10000", "web-09990")
	b.Perform(chromedp.KeyEvent("\x1b"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"),
		chromedp.KeyEvent("k"), chromedp.KeyEvent("\r"))
	b.See("it is healthy in all clusters")
	if at := browser.Run[string](b, "location.pathname"); at != "/console/w/apps/Deployment/shop/web-09991" {
		t.Errorf("the keys lead to %s", at)
	}
	b.Perform(chromedp.KeyEvent("\x1b"))
	b.See("10 of 10000")
	// The second key counts for a moment only. On a slow machine it can come too late, and the user types both again.
	press := func(key, text string) {
		t.Helper()
		b.WaitFor("the keys g "+key+" lead to "+text, func() string {
			b.Perform(chromedp.KeyEvent("g"), chromedp.KeyEvent(key))
			got := browser.Run[string](b, `document.querySelector("h1").innerText + " " +
				(document.querySelector(".count")?.innerText ?? "")`)
			if !strings.HasPrefix(got, text) {
				return got
			}
			return ""
		})
	}
	press("w", "Workloads 10000 of 10000")
	b.Perform(chromedp.KeyEvent("]"))
	if name := browser.Run[string](b, "document.activeElement.innerText"); !strings.Contains(name, "web-07777") {
		t.Errorf("the first row with a problem is %q", name)
	}
	for key, heading := range map[string]string{"p": "Policies", "c": "Clusters", "r": "Releases",
		"t": "Time line", "u": "Usage", "s": "Search", "f": "Fleet"} {
		press(key, heading)
	}
}

func TestWorkloadsWithoutAPolicyAreFoundOnRequest(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.topics["fleet"], h.topics["workloads"] = topic{totals: figures}, topic{rows: []any{workload(1, "Healthy")}}
		h.answers["GET api/unclaimed"] = answer{200, object{"more": true, "command": "kubectl get deployments.apps -A",
			"objects": []object{{"name": "<img src=x>", "namespace": "shop"}}}}
	})
	b := browser.Open(t, h.URL, "status of 403", "status of 500")
	const details = "main details"
	for _, page := range []string{"workloads", "workloads?q=web"} {
		b.Visit(page)
		b.See("Workloads without a policy")
	}
	browser.Run[any](b, `document.querySelector("main details summary").click()`)
	b.See("stays on the hub")
	choose(b, details+" select", "Deployment")
	b.See("shop/<img src=x>", "No policy has claimed it", "Only the first 1 are shown.",
		"kubectl get deployments.apps -A")
	b.Accessible("workloads without a policy")
	h.set(func(h *hub) {
		right := missing("list", "apps", "statefulsets")
		right["role"] = "view"
		h.answers["GET api/unclaimed"] = answer{403, object{"message": "no", "missing": right}}
	})
	choose(b, details+" select", "StatefulSet")
	b.See("Missing: list statefulsets.apps", "The ClusterRole view permits it.")
	h.set(func(h *hub) { h.answers["GET api/unclaimed"] = failure(500, "the store is away") })
	choose(b, details+" select", "DaemonSet")
	b.See("the store is away", "Try again")
	h.set(func(h *hub) { h.answers["GET api/unclaimed"] = answer{200, object{"objects": []object{}}} })
	b.Perform(chromedp.Click(details + " .failed button"))
	b.See("A policy has claimed each DaemonSet that you may list.")
}

func TestActionIsConfirmedWithItsCommand(t *testing.T) {
	h := newHub(t)
	restart := object{"name": "restart", "path": "k8s/apis/apps/v1/namespaces/shop/deployments/web",
		"command": "kubectl rollout restart deployment web -n shop", "patch": object{"spec": object{"x": "now"}},
		"missing": object{"verb": "patch", "group": "apps", "resource": "deployments", "namespace": "shop",
			"role": "edit"}}
	h.set(func(h *hub) {
		h.topics["fleet"], h.topics["clusters"], h.topics["workloads"] = topic{totals: figures}, topic{}, topic{}
		h.answers["GET api/why"] = answer{200, walk(2)}
		h.answers["GET api/actions"] = answer{200, []any{scale(nil), restart}}
		h.answers["PATCH k8s/apis/apps/v1/namespaces/shop/deployments/web/scale"] = failure(403, "a quota refuses it")
	})
	b := browser.Open(t, h.URL, "status of 403")
	b.Visit(path)
	b.See("Scale", "Restart", "Missing: patch deployments.apps in namespace shop. The ClusterRole edit permits it.")
	b.Perform(chromedp.KeyEvent("r")) // the right is missing: the key does nothing
	if browser.Run[bool](b, `document.querySelector("dialog") !== null`) {
		t.Error("a button without its right opens a dialog")
	}
	b.Check("actions")
	b.Perform(chromedp.KeyEvent("s"))
	b.See("Replicas, now 2", "kubectl scale deployment web -n shop --replicas=2")
	b.Fill("#replicas", "5")
	b.See("--replicas=5")
	b.Check("confirm")
	b.Perform(chromedp.Click(".confirm button[type=submit]"))
	b.See("a quota refuses it")
	if n := browser.Run[string](b, `document.querySelector("#replicas").value`); n != "5" {
		t.Errorf("after the error the number is %s", n)
	}
	h.set(func(h *hub) {
		h.answers["PATCH k8s/apis/apps/v1/namespaces/shop/deployments/web/scale"] = answer{200, object{}}
	})
	b.Perform(chromedp.Click(".confirm button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	want := `PATCH k8s/apis/apps/v1/namespaces/shop/deployments/web/scale {"spec":{"replicas":5}}`
	if sent := h.writes(); len(sent) != 2 || sent[1] != want {
		t.Errorf("the page sent %q, want %q at the end", sent, want)
	}
}

func TestChangeKeepsWhatWasTyped(t *testing.T) {
	h := newHub(t)
	refused := object{"applied": false, "command": "kubectl create -f FILE", "objects": []object{{"kind": "Deployment",
		"group": "apps", "namespace": "shop", "name": "web", "error": "spec.replicas: <img src=x onerror=alert(1)>"}}}
	h.set(func(h *hub) {
		h.topics["fleet"], h.topics["workloads"] = topic{totals: figures}, topic{}
		h.answers["POST api/change"] = answer{200, refused}
		h.answers["GET api/why"], h.answers["GET api/actions"] = answer{200, walk(1)}, answer{200, []any{}}
	})
	b := browser.Open(t, h.URL, "status of 401", "status of 422")
	b.Visit("change")
	b.See("Start with a form")
	for field, value := range map[string]string{"name": "web", "namespace": "shop", "image": `nginx:1.29" #`, "port": "80",
		"clusters": "eu, us"} {
		b.Fill("#f-"+field, value)
	}
	choose(b, "#f-service", "LoadBalancer")
	b.Perform(chromedp.Click(".generator button"))
	text := func() string { return browser.Run[string](b, `document.querySelector("#yaml").value`) }
	for _, part := range []string{`image: "nginx:1.29\" #"`, "type: LoadBalancer", `clusterNames: ["eu", "us"]`} {
		b.WaitFor("the form writes "+part, func() string {
			if got := text(); !strings.Contains(got, part) {
				return got
			}
			return ""
		})
	}
	typed := text() + "# typed by hand\n"
	b.Fill("#yaml", typed)
	b.Perform(chromedp.Click("#yaml ~ .buttons button[type=submit]"))
	b.See("The hub does not accept it. Your text is kept.", "<img src=x onerror=alert(1)>")
	b.Check("change-refused")
	if text() != typed {
		t.Errorf("after the refusal the text is %q", text())
	}
	t.Log("a text that is not YAML: the sentence of the hub with the line")
	h.set(func(h *hub) {
		h.answers["POST api/change"] = failure(422, "line 2 is not valid YAML: no")
	})
	b.Perform(chromedp.Click("#yaml ~ .buttons button[type=submit]"))
	b.See("The hub does not accept it. Your text is kept.", "line 2 is not valid YAML")
	if text() != typed {
		t.Errorf("after the refusal the text is %q", text())
	}
	h.set(func(h *hub) { h.answers["POST api/change"] = answer{200, refused} })
	b.Visit("workloads")
	b.Visit("change")
	b.See("This is your text from before.")
	if text() != typed {
		t.Errorf("after leaving the page the text is %q", text())
	}

	t.Log("the login ends: log in over the page")
	h.set(func(h *hub) {
		h.answers["POST api/change"] = failure(401, "the session has ended: log in again")
		h.answers["GET session"], h.answers["POST session"] = answer{200, object{"oidc": false}}, answer{200, object{}}
	})
	b.Perform(chromedp.Click("#yaml ~ .buttons button[type=submit]"))
	b.See("Your login has ended.")
	b.Fill("dialog #token", "another")
	b.Perform(chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	if text() != typed {
		t.Errorf("after the login the text is %q", text())
	}

	t.Log("check, what if, and apply by keys")
	checked := object{"applied": false, "command": "kubectl create -f FILE", "objects": []object{{"kind": "Deployment",
		"group": "apps", "namespace": "shop", "name": "web", "result": "created"}}, "whatIf": object{"summary": object{
		"workloads": 3, "changed": 1, "movedReplicas": 0, "unplaced": 0}, "workloads": []object{{"kind": "Deployment",
		"namespace": "shop", "name": "web", "before": object{}, "after": object{"clusters": []object{{"name": "eu",
			"replicas": 2}}}}}}}
	h.set(func(h *hub) { h.answers["POST api/change"] = answer{200, checked} })
	browser.Run[any](b, `document.querySelector("#yaml").focus()`)
	press := `document.querySelector("#yaml").dispatchEvent(new KeyboardEvent("keydown",
		{key: "Enter", ctrlKey: true, bubbles: true}))`
	browser.Run[any](b, press)
	b.See("The hub accepts it. Nothing is written yet.", "1 of 3 workloads change", "eu:2")
	b.Shoot("change")
	applied := object{"applied": true, "command": "kubectl create -f FILE", "objects": checked["objects"]}
	h.set(func(h *hub) { h.answers["POST api/change"] = answer{200, applied} })
	browser.Run[any](b, press)
	b.See("Applied.", "Open Deployment web")
	if sent := h.writes(); len(sent) != 6 || !strings.Contains(sent[4], `"apply":false`) ||
		!strings.Contains(sent[5], `"apply":true`) {
		t.Errorf("the page sent %.300q", sent)
	}
}

func TestFormWritesACloneSetAServiceOrAPolicyAlone(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.topics["fleet"], h.topics["workloads"] = topic{totals: figures}, topic{}
		h.policies(list())
	})
	b := browser.Open(t, h.URL)
	unfold := func() { browser.Run[any](b, `document.querySelector(".generator").open = true`) }
	fill := func(fields map[string]string) string {
		for field, value := range fields {
			b.Fill("#f-"+field, value)
		}
		unfold()
		b.Perform(chromedp.Click(".generator button"))
		return browser.Run[string](b, `new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(
			() => r(document.querySelector("#yaml").value))))`)
	}
	check := func(text string, with []string, without string) {
		t.Helper()
		for _, part := range with {
			if !strings.Contains(text, part) {
				t.Errorf("the YAML lacks %s:\n%s", part, text)
			}
		}
		if strings.Contains(text, without) {
			t.Errorf("the YAML has %s:\n%s", without, text)
		}
	}
	b.Visit("change")
	b.See("Start with a form")
	choose(b, "#f-kind", "CloneSet")
	text := fill(map[string]string{"name": "web", "namespace": "shop", "image": "nginx:1.29"})
	check(text, []string{"apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet", `image: "nginx:1.29"`,
		`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: "web"}`}, "Deployment")

	t.Log("a Service needs a port: the form says so, and writes nothing without it")
	unfold() // it folds when there is a text
	choose(b, "#f-service", "ClusterIP")
	b.See("Port of the Service")
	if again := fill(nil); again != text {
		t.Errorf("without a port, the form writes:\n%s", again)
	}
	if !browser.Run[bool](b, `document.querySelector("#f-port").validity.valueMissing`) {
		t.Error("the form does not ask for the port")
	}
	text = fill(map[string]string{"port": "80"})
	check(text, []string{"kind: Service", "port: 80"}, "kind: Deployment")

	empty := func() {
		browser.Run[any](b, `{ const y = document.querySelector("#yaml"); y.value = "";
			y.dispatchEvent(new Event("input", {bubbles: true})); 0 }`)
	}
	t.Log("a Service alone has the policy that places it; a policy of the workload has another name")
	empty()
	choose(b, "#f-kind", "Service")
	b.See("Labels of the pods")
	text = fill(map[string]string{"name": "web", "ports": "80:8080, 443", "selector": "app=web tier=front",
		"clusters": "eu"})
	check(text, []string{"apiVersion: v1\nkind: Service\n", "type: ClusterIP",
		`selector: {"app":"web","tier":"front"}`, `clusterNames: ["eu"]`,
		"- {name: port-80, port: 80, targetPort: 8080}\n  - {name: port-443, port: 443, targetPort: 443}\n",
		`name: "web-service"`, `- {apiVersion: v1, kind: Service, name: "web"}`}, "kind: Deployment")
	var objects []object
	for _, one := range strings.Split(text, "---\n") {
		var o object
		if err := yaml.UnmarshalStrict([]byte(one), &o); err != nil {
			t.Fatalf("%v in\n%s", err, one)
		}
		objects = append(objects, o)
	}
	if got, want := objects[0]["spec"].(object)["selector"], (object{"app": "web", "tier": "front"}); len(objects) != 2 ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("the selector of %d objects is %v, want %v", len(objects), got, want)
	}
	for _, kind := range []string{"NodePort", "LoadBalancer"} {
		unfold()
		choose(b, "#f-service", kind)
		check(fill(nil), []string{"type: " + kind}, "ClusterIP")
	}
	unfold()
	if again := fill(map[string]string{"selector": "app: web"}); !strings.Contains(again, `"tier"`) {
		t.Errorf("with labels that are none, the form writes:\n%s", again)
	}

	t.Log("on the page of policies, the form begins with a policy alone")
	empty()
	b.Visit("policies")
	b.See("Create")
	b.Perform(chromedp.KeyEvent("n"))
	b.See("Kind of the workload")
	empty()
	choose(b, "#f-selected", "StatefulSet")
	choose(b, "#f-division", "Aggregated")
	text = fill(map[string]string{"name": "all", "namespace": "shop", "clusters": "eu us"})
	check(text, []string{"kind: PropagationPolicy", "- {apiVersion: apps/v1, kind: StatefulSet}\n",
		`clusterNames: ["eu", "us"]`, "replicaDivisionPreference: Aggregated"}, "image:")
	b.Shoot("form-policy")
}

func TestEditorListsFieldsAtTheCursor(t *testing.T) {
	h := newHub(t)
	ref := func(name string) object { return object{"allOf": []object{{"$ref": "#/components/schemas/" + name}}} }
	text := func(kind, description string) object { return object{"type": kind, "description": description} }
	h.set(func(h *hub) {
		h.topics["fleet"], h.topics["workloads"] = topic{totals: figures}, topic{}
		h.answers["GET k8s/openapi/v3/apis/apps/v1"] = answer{200, object{"components": object{"schemas": object{
			"Deployment": object{"x-kubernetes-group-version-kind": []object{{"group": "apps", "version": "v1",
				"kind": "Deployment"}}, "properties": object{"metadata": ref("Meta"), "spec": ref("Spec")}},
			"Spec": object{"required": []string{"replicas"}, "properties": object{
				"replicas": text("integer", "Number of <b>pods</b>."), "paused": text("boolean", "Stops updates."),
				"containers": object{"type": "array", "items": ref("Container")}}},
			"Container": object{"properties": object{"image": text("string", "Name of the image."),
				"imagePullPolicy": object{"type": "string", "enum": []string{"Always", "Never"}}}},
			"Meta": object{"properties": object{"labels": object{"additionalProperties": text("string", "")}}}}}}}
	})
	b := browser.Open(t, h.URL)
	b.Visit("change")
	b.See("the fields at the cursor are listed here")
	const head = "apiVersion: apps/v1\nkind: Deployment\n"
	b.Fill("#yaml", head+"spec:\n  ")
	b.See("Fields of Deployment.spec (3)", "Number of <b>pods</b>.", "integer · required", "paused", "containers")
	b.Fill("#yaml", head+"spec:\n  containers:\n  - name: web\n    ima")
	b.See("Fields of Deployment.spec.containers (2)", "Name of the image.", "Always, Never")
	b.Check("fields")
	browser.Run[any](b, `document.querySelector(".fields button").click()`)
	want := head + "spec:\n  containers:\n  - name: web\n    image: "
	if got := browser.Run[string](b, `document.querySelector("#yaml").value`); got != want {
		t.Errorf("the completed text is %q", got)
	}
	b.See("Fields of Deployment.spec.containers (1)")

	t.Log("a key under the cursor keeps its value, and the start of another key moves to the next line")
	for before, want := range map[string]string{
		head + "spec:\n  containers:\n  - name: web\n    ima|ge: nginx\n": head +
			"spec:\n  containers:\n  - name: web\n    image: nginx\n",
		head + "spec:\n  pau|s\n  replicas: 2\n":        head + "spec:\n  paused: \n  replicas: 2\n",
		head + "spec:\n  containers:\n  - |name: web\n": head + "spec:\n  containers:\n  - image: \n    name: web\n",
		head + "spec:\n  |replicas: 2\n":                head + "spec:\n  containers:\n  replicas: 2\n",
	} {
		text, after, _ := strings.Cut(before, "|")
		b.Fill("#yaml", text+after)
		got := browser.Run[string](b, fmt.Sprintf(`new Promise((done) => {
			const y = document.querySelector("#yaml"), drawn = (f) => requestAnimationFrame(() => requestAnimationFrame(f));
			y.setSelectionRange(%[1]d, %[1]d);
			y.dispatchEvent(new MouseEvent("click", {bubbles: true}));
			drawn(() => { document.querySelector(".fields button").click(); drawn(() => done(y.value)); });
		})`, len(text)))
		if got != want {
			t.Errorf("the first field, at the bar of\n%s\ngives\n%s\nwant\n%s", before, got, want)
		}
	}
	b.Fill("#yaml", head+"metadata:\n  labels:\n    ")
	b.See("No fields are known at the cursor.")
	b.Fill("#yaml", "apiVersion: ../../x\nkind: Deployment\n")
	b.See("the fields at the cursor are listed here")
}

// choose chooses an option as a user does.
func choose(b *browser.Tab, selector, value string) {
	browser.Run[any](b, fmt.Sprintf(`{ const s = document.querySelector(%q); s.value = %q;
		s.dispatchEvent(new Event("change", {bubbles: true})); 0 }`, selector, value))
}

func TestPolicyShowsWhatItLoses(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) {
		h.topics["fleet"], h.topics["workloads"] = topic{totals: figures}, topic{rows: []any{workload(1, "Healthy")}}
		policy := func(kind, namespace, name, selects string) object {
			return object{"kind": kind, "namespace": namespace, "name": name, "selects": []string{selects}}
		}
		web, workers := policy("PropagationPolicy", "shop", "web", "Deployment"), policy("PropagationPolicy", "shop",
			"workers", "CloneSet")
		web["clusters"], workers["byLabel"], workers["except"] = []string{"eu"}, true, []string{"asia"}
		all := list(web, workers, policy("ClusterPropagationPolicy", "", "base", "Namespace"),
			policy("OverridePolicy", "shop", "registry", "Deployment"))
		all.body.(object)["missing"] = []object{missing("list", "policy.karmada.io", "clusteroverridepolicies")}
		h.policies(all)
		h.answers["GET api/why"] = answer{200, object{"summary": "it selects 2 templates and has claimed 1",
			"selectors": []object{{"selects": "Deployment.apps", "matches": 2}}, "templates": []object{
				{"template": "Deployment.apps shop/other", "by": "all", "held": false,
					"why": "PropagationPolicy shop/first has it"},
				{"template": "Deployment.apps shop/web-00001", "by": "all", "held": true, "placed": "eu:2"}},
			"clusters": []object{{"name": "eu", "takes": true}}}}
	})
	b := browser.Open(t, h.URL)
	b.Visit("policies")
	b.See("web", "Deployment", "eu", "by label except asia", "all clusters", "4 of 4",
		"Not shown, because you lack rights.", "list clusteroverridepolicies.policy.karmada.io")
	b.Shoot("policies")
	b.Visit("policies/PropagationPolicy/shop/web")
	b.See("it selects 2 templates and has claimed 1", "PropagationPolicy shop/first has it")
	b.Shoot("policy")
}
