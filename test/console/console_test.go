// Package console has the tests of the web console in a real browser, on a real hub with simulated members.
package console

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/console/browser"
	"github.com/argosy-io/argosy/test/kit"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var fleet *kit.Fleet

// noBrowser is why the tests of this package are skipped; empty if they run.
var noBrowser string

func TestMain(m *testing.M) {
	flag.Parse()
	if noBrowser = browser.Missing(); noBrowser != "" {
		fmt.Println("The tests of the console are skipped:", noBrowser)
		os.Exit(m.Run())
	}
	members := []string{"member1", "member2"}
	if testing.Short() {
		members = nil // the story of the gate imports its own cluster
	}
	kit.Main("console", func(dir string) (f *kit.Fleet, err error) {
		f, err = kit.Start(dir, members...)
		fleet = f
		return f, err
	}, m.Run)
}

func needBrowser(t *testing.T) {
	t.Helper()
	if noBrowser != "" {
		t.Skip(noBrowser)
	}
}

// long skips a test in the gate, and where there is no browser.
func long(t *testing.T) {
	t.Helper()
	kit.Long(t)
	needBrowser(t)
}

// open opens a tab of the fleet's hub.
func open(t *testing.T, expected ...string) *browser.Tab {
	t.Helper()
	needBrowser(t)
	return browser.Open(t, strings.TrimSuffix(fleet.Hub.Config.Host, "/"), expected...)
}

// logIn opens the console by a one-time link, as the user of the hub's kubeconfig.
func logIn(t *testing.T, b *browser.Tab) {
	t.Helper()
	out, err := fleet.Argosy(t.Context(), "console", "--no-browser")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.Perform(chromedp.Navigate(strings.TrimSpace(out)), chromedp.WaitVisible("h1"))
	b.See("Fleet")
}

// TestUserImportsAClusterAndSeesAWorkloadReady is the story of the gate: import a cluster, create a Deployment through
// the form, see it ready, scale it.
func TestUserImportsAClusterAndSeesAWorkloadReady(t *testing.T) {
	needBrowser(t)
	members, err := sim.Start(t.Context(), sim.Options{Binary: fleet.Lab.Hub.Binary, Dir: t.TempDir(),
		Members: []sim.Member{{Name: "gate", Nodes: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := members.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := os.ReadFile(members.Members()[0].Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	logIn(t, b)
	b.Visit("clusters/import")
	b.See("Import a cluster")
	b.Perform(chromedp.SendKeys("#name", "gate"))
	b.Fill("#kubeconfig", string(kubeconfig))
	b.Perform(chromedp.Click("button[type=submit]"))
	b.See("Open the cluster")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		if out, err := fleet.Argosy(ctx, "unjoin", "gate", "--yes", "--force", "--wait", "20s"); err != nil {
			t.Errorf("unjoin: %v\n%s", err, out)
		}
	})
	kit.Eventually(t, "the hub knows the kinds that the cluster serves", func() string {
		c := fleet.Hub.Find(t, "cluster.karmada.io/v1alpha1", "Cluster", "", "gate")
		if got := fmt.Sprint(kit.Field(c, "status", "apiEnablements")); !strings.Contains(got, "Deployment") {
			return got
		}
		return ""
	})
	ns := fleet.Namespace(t)
	b.Visit("change")
	b.See("Start with a form")
	t.Log("the editor reads the OpenAPI of the hub: of a built-in kind, with references, and of a custom one, without")
	for _, c := range []struct{ text, path, field, description string }{
		{"apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - imageP",
			"Deployment.spec.template.spec.containers", "imagePullPolicy", "Image pull policy."},
		{"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nspec:\n  placement:\n    clusterAffinity:\n      cl",
			"PropagationPolicy.spec.placement.clusterAffinity", "clusterNames", "are the names of the clusters to select"},
	} {
		b.Fill("#yaml", c.text)
		b.See("Fields of "+c.path+" (", c.field, c.description)
	}
	b.Fill("#yaml", "")
	for field, value := range map[string]string{"name": "gate", "namespace": ns, "image": "nginx:1.29",
		"clusters": "gate"} {
		b.Fill("#f-"+field, value)
	}
	b.Perform(chromedp.Click(".generator button"), chromedp.Click("#yaml ~ .buttons button[type=submit]"))
	b.See("The hub accepts it. Nothing is written yet.", "What it does to the fleet", "gate:2")
	b.Perform(chromedp.Click("#yaml ~ .buttons button[type=button]"))
	b.See("Applied.", "Open Deployment gate")
	b.Visit("w/apps/Deployment/" + ns + "/gate")
	b.See("PropagationPolicy "+ns+"/gate", "healthy in 1 of 1 cluster", "2 of 2 ready", "Scale")
	b.Perform(chromedp.KeyEvent("s"))
	b.See("kubectl scale deployment gate -n " + ns + " --replicas=2")
	b.Fill("#replicas", "3")
	b.Perform(chromedp.Click(".confirm button[type=submit]"))
	b.See("3 of 3 ready")

	t.Log("a Service of its own for the pods, through the form")
	b.Visit("change?form=Service")
	b.See("Labels of the pods")
	for field, value := range map[string]string{"name": "gate", "namespace": ns, "ports": "80:8080",
		"selector": "app=gate", "clusters": "gate"} {
		b.Fill("#f-"+field, value)
	}
	b.Perform(chromedp.Click(".generator button"), chromedp.Click("#yaml ~ .buttons button[type=submit]"))
	b.See("The hub accepts it. Nothing is written yet.", "What it does to the fleet", "kubectl create -f FILE")
	b.Perform(chromedp.Click("#yaml ~ .buttons button[type=button]"))
	b.See("Applied.", "Open Service gate")
	b.Visit("w/core/Service/" + ns + "/gate")
	b.See("PropagationPolicy "+ns+"/gate-service", "healthy in 1 of 1 cluster")
	b.Close() // the page would report that the workload is gone
}

// TestAFleetIsLookedAtInABrowser is the story of a first look: log in, import a cluster, see a workload and a problem.
func TestAFleetIsLookedAtInABrowser(t *testing.T) {
	long(t)
	b := open(t, "status of 422", "status of 401", "status of 50") // the nodes of simulated members have no logs
	logIn(t, b)
	if got := browser.Run[string](b, "location.hash + document.cookie"); got != "" {
		t.Errorf("scripts can read the login: %q", got)
	}
	b.See("Nothing needs attention.", "live")
	b.Check("fleet-calm")

	t.Log("import a cluster")
	if out, err := fleet.Argosy(t.Context(), "unjoin", "member2", "--yes"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var kubeconfig []byte
	for _, m := range fleet.Fleet.Members() {
		if m.Name == "member2" {
			var err error
			if kubeconfig, err = os.ReadFile(m.Kubeconfig); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Visit("clusters/import")
	b.See("Import a cluster")
	b.Shoot("import")
	b.Perform(chromedp.SendKeys("#name", "member2"), chromedp.SendKeys("#region", "us-east"))
	b.Fill("#kubeconfig", strings.Replace(string(kubeconfig), "certificate-authority-data",
		"insecure-skip-tls-verify: true\n    x", 1))
	b.Perform(chromedp.Click("button[type=submit]"))
	b.See("insecure-skip-tls-verify")
	b.Fill("#kubeconfig", string(kubeconfig))
	b.Perform(chromedp.Click("button[type=submit]"))
	b.See("Open the cluster")
	kit.Eventually(t, "each step ticks off", func() string {
		if n := browser.Run[int](b, `document.querySelectorAll(".steps li.done").length`); n != 7 {
			return fmt.Sprintf("%d of 7 are done", n)
		}
		return ""
	})
	b.Perform(chromedp.Click(".steps a.button"))
	b.See("member2", "us-east", "The hub finds nothing wrong with this cluster.")
	b.Shoot("cluster")
	b.Visit("clusters")
	b.See("member1", "member2", "2 of 2")
	b.Check("clusters")

	t.Log("look at an object of a member that has no policy")
	b.Visit("clusters/member1?tab=objects&kind=nodes.v1")
	b.See("member1-node-0", "Ready", "argosy get nodes -C member1")
	b.Perform(chromedp.Click(".objects button"))
	b.See("kind: Node", "nodeInfo:")
	b.Perform(chromedp.Click("dialog button.primary"), chromedp.WaitNotPresent("dialog"))

	t.Log("see a workload, and one that no cluster takes")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(workloads, ns))
	b.Visit("workloads")
	b.See("web", "nowhere", "Not placed")
	b.Check("workloads")
	b.Perform(chromedp.SendKeys("[data-filter]", "nowh"))
	b.See("1 of ")
	if got := browser.Run[string](b, "location.search"); got != "?q=nowh" {
		t.Errorf("the filter is not in the address: %q", got)
	}
	t.Log("find a workload that no policy selects, and why")
	browser.Run[any](b, `document.querySelector("main details summary").click()`)
	b.See("stays on the hub")
	browser.Run[any](b, `{ const s = document.querySelector("main details select"); s.value = "Deployment";
		s.dispatchEvent(new Event("change", {bubbles: true})); 0 }`)
	b.See("Deployment "+ns+"/alone", "No policy has claimed it")
	if text := browser.Run[string](b, `document.querySelector("main details").textContent`); strings.Contains(text,
		ns+"/nowhere") {
		t.Errorf("a workload with a policy is among them:\n%s", text)
	}
	b.Visit("w/apps/Deployment/" + ns + "/alone")
	b.See("no policy selects it, so it stays on the hub", "create a PropagationPolicy in namespace "+ns)
	b.Visit("")
	b.See("Workloads without a cluster", "nowhere", "not placed", "Next")
	b.Check("fleet")

	t.Log("by keys: the first row, its page, and back")
	b.Perform(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.See("How the scheduler came to this", "PropagationPolicy "+ns+"/nowhere")
	b.Check("workload-stuck")
	b.Visit("w/apps/Deployment/" + ns + "/web")
	b.See("PropagationPolicy "+ns+"/web", "member1", "Healthy")
	b.Check("workload")
	b.Visit("w/apps/Deployment/" + ns + "/web?tab=pods")
	b.See("Restarts", "Running", "member2")
	b.Check("pods")

	t.Log("log out: the page is closed and the cookie ends")
	browser.Run[any](b, `document.querySelector(".who").click()`)
	browser.Run[any](b, `document.querySelector("#account button").click()`)
	b.See("Log in to the fleet")
	b.Shoot("login")
}

// TestHostileNamesAreTextInABrowser shows a fleet whose texts are markup: nothing runs, and the policy is not violated.
func TestHostileNamesAreTextInABrowser(t *testing.T) {
	long(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(hostile, ns))
	b := open(t, "status of 404")
	logIn(t, b)
	b.Visit("w/apps/Deployment/" + ns + "/hostile")
	b.See("javascript:alert(1)")
	if n := browser.Run[int](b, `document.querySelectorAll("img:not([src^='/console/']), a[href^='javascript'], script:not([src])").length`); n > 0 {
		t.Errorf("%d elements come from texts of objects", n)
	}
	b.Visit(`clusters/%3Cimg%20src=x%20onerror=alert(1)%3E`)
	b.See("<img src=x onerror=alert(1)>")
}

// TestLogsOfMembersAreText follows a pod whose lines are markup, escapes and characters that reverse the text.
func TestLogsOfMembersAreText(t *testing.T) {
	long(t)
	ns := fleet.Namespace(t)
	m := membertest.New(t, membertest.Kind{Plural: "deployments", Namespaced: true,
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}})
	m.Behave((&membertest.Kubelet{Log: map[string]string{ns + "/talker-1": "2026-01-01T12:00:00.000000000Z " +
		"\x1b[31mred\x1b[0m <b>bold</b> \x1b]0;title\a \u202eevil\n"}}).Serve)
	m.Put(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "talker-1", Labels: map[string]string{"app": "talker"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning}})
	c, secret := m.Cluster("talker"), m.Secret("talker")
	c.UID, c.Spec.ImpersonatorSecretRef = "", c.Spec.SecretRef
	for _, obj := range []client.Object{secret, c} {
		if err := fleet.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		if out, err := fleet.Argosy(ctx, "unjoin", "talker", "--yes", "--force", "--wait", "20s"); err != nil {
			t.Errorf("unjoin: %v\n%s", err, out)
		}
	})
	fleet.Hub.Apply(t, fmt.Sprintf(talker, ns))
	b := open(t)
	logIn(t, b)
	b.Visit("w/apps/Deployment/" + ns + "/talker?tab=pods")
	b.See("talker-1", "1 line", "red <b>bold</b> ␛]0;title� ‹U+202E›evil")
}

// TestForeignPageReachesNothing opens a page of another origin in the browser of a user who is logged in. Ports of one
// host are one site, so that the browser sends the cookie.
func TestForeignPageReachesNothing(t *testing.T) {
	long(t)
	b := open(t, "status of 4", "blocked by CORS", "foreign", "ERR_", "frame", "127.0.0.1", "localhost")
	logIn(t, b)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<h1>foreign</h1><iframe src="%s/console/"></iframe>`, fleet.Hub.Config.Host)
	}))
	t.Cleanup(foreign.Close)
	hub, err := url.Parse(fleet.Hub.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	b.Perform(chromedp.Navigate(strings.Replace(foreign.URL, "127.0.0.1", hub.Hostname(), 1)))
	b.See("foreign")
	const attack = `(async () => {
		const seen = [], hub = %q;
		const body = JSON.stringify({yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}", apply: true});
		const tries = {read: ["GET", "api/me"], api: ["GET", "k8s/api/v1/secrets"], write: ["POST", "api/change"],
			logOut: ["DELETE", "session"], link: ["POST", "api/link"], stream: ["GET", "api/stream?topics=fleet"]};
		for (const [name, [method, path]] of Object.entries(tries)) for (const mode of ["cors", "no-cors"]) {
			if (mode === "no-cors" && method === "DELETE") continue;
			try {
				const r = await fetch(hub + "/console/" + path, {method, mode, credentials: "include",
					body: method === "POST" ? body : undefined});
				if (r.type !== "opaque") seen.push(name + " " + r.status);
			} catch { /* it is refused */ }
		}
		return seen.join(", ");
	})()`
	if got := browser.Run[string](b, fmt.Sprintf(attack, fleet.Hub.Config.Host)); got != "" {
		t.Errorf("the foreign page reads %s", got)
	}
	var configs corev1.ConfigMapList
	if err := fleet.Hub.List(t.Context(), &configs); err != nil {
		t.Fatal(err)
	}
	for i := range configs.Items {
		if configs.Items[i].Name == "foreign" {
			t.Error("the foreign page wrote an object")
		}
	}
	b.Visit("clusters")
	b.See("member1", "live") // the user is still logged in
}

// TestUserWithoutRightsSeesMissingRight logs in by a token without rights.
func TestUserWithoutRightsSeesMissingRight(t *testing.T) {
	long(t)
	b := open(t, "status of 401", "status of 403")
	b.Visit("")
	b.See("Log in to the fleet")
	b.Fill("#token", "nonsense")
	b.Perform(chromedp.Click("button[type=submit]"))
	b.See("does not accept this token")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: jane, namespace: %s}}", ns))
	b.Fill("#token", tokenOf(t, ns, "jane"))
	b.Perform(chromedp.Click("button[type=submit]"))
	b.See("You may not see this", "list clusters.cluster.karmada.io",
		"kubectl auth can-i list clusters.cluster.karmada.io")
	b.Shoot("forbidden")
	b.Visit("clusters/import")
	b.See("create clusters.cluster.karmada.io")
	b.Visit("clusters/member1")
	b.See("get clusters.cluster.karmada.io")
}

// TestTextStaysWhenALoginEnds ends the login while a user types.
func TestTextStaysWhenALoginEnds(t *testing.T) {
	long(t)
	b := open(t, "status of 401")
	ns := fleet.Namespace(t)
	for _, name := range []string{"john", "joan"} {
		fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: %[2]s, namespace: %[1]s}}\n---\n"+
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: console-%[2]s}, roleRef: "+
			"{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, "+
			"name: %[2]s, namespace: %[1]s}]}", ns, name))
	}
	logInByToken(b, tokenOf(t, ns, "john"))
	b.Visit("clusters/import")
	b.See("Name in the fleet")
	b.Fill("#kubeconfig", "half of a kubeconfig")
	// Who logs in next sees nothing of what the last user typed.
	for _, next := range []struct{ name, text string }{{"john", "half of a kubeconfig"}, {"joan", ""}} {
		browser.Run[any](b, `fetch("/console/session", {method: "DELETE", headers: {"X-Argosy-Console": "1"}}).then(r => r.status)`)
		b.See("Your login has ended.")
		b.Accessible("login again")
		b.Fill("dialog #token", tokenOf(t, ns, next.name))
		b.Perform(chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
		if got := browser.Run[string](b, `document.querySelector("#kubeconfig").value`); got != next.text {
			t.Errorf("after the login of %s the text is %q", next.name, got)
		}
	}
}

// TestPageKeepsItsDataWhileTheHubIsDown stops the hub under an open page. It is the last test, because it restarts the
// hub of all.
func TestPageKeepsItsDataWhileTheHubIsDown(t *testing.T) {
	long(t)
	b := open(t, "ERR_", "status of 5", "status of 401", "Failed to load resource")
	logIn(t, b)
	b.Visit("clusters")
	b.See("member1", "live")
	fleet.Lab.Hub.Kill()
	b.See("disconnected since", "member1")
	b.Accessible("disconnected")
	if err := fleet.Lab.Hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.See("live", "member1")
	kit.Eventually(t, "the notice goes", func() string {
		if text := b.Text(); strings.Contains(text, "disconnected") {
			return text
		}
		return ""
	})
}

// tokenOf returns a token of a service account.
func tokenOf(t *testing.T, namespace, name string) string {
	t.Helper()
	accounts := kubernetes.NewForConfigOrDie(fleet.Hub.Config).CoreV1().ServiceAccounts(namespace)
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

const workloads = `
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: %[1]s}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], placement: {clusterAffinity: {clusterNames: [member1, member2]}}}}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: nowhere, namespace: %[1]s}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nowhere}], placement: {clusterAffinity: {clusterNames: [member9]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %[1]s}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.29"}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: nowhere, namespace: %[1]s}, spec: {replicas: 2, selector: {matchLabels: {app: nowhere}}, template: {metadata: {labels: {app: nowhere}}, spec: {containers: [{name: web, image: "nginx:1.29"}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: alone, namespace: %[1]s}, spec: {replicas: 2, selector: {matchLabels: {app: alone}}, template: {metadata: {labels: {app: alone}}, spec: {containers: [{name: web, image: "nginx:1.29"}]}}}}
`

const talker = `
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: talker, namespace: %[1]s}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: talker}], placement: {clusterAffinity: {clusterNames: [talker]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: talker, namespace: %[1]s}, spec: {replicas: 1, selector: {matchLabels: {app: talker}}, template: {metadata: {labels: {app: talker}}, spec: {containers: [{name: app, image: "nginx:1.29"}]}}}}
`

const hostile = `
{apiVersion: v1, kind: Event, metadata: {name: hostile, namespace: %[1]s}, involvedObject: {kind: Deployment, name: hostile, namespace: %[1]s}, type: Warning, reason: "<img src=x onerror=alert(1)>", message: "<script>alert(1)</script> javascript:alert(1)"}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: hostile, namespace: %[1]s, annotations: {link.argocd.argoproj.io/x: "javascript:alert(1)"}}, spec: {replicas: 1, selector: {matchLabels: {app: hostile}}, template: {metadata: {labels: {app: hostile}}, spec: {containers: [{name: web, image: "nginx:1.29"}]}}}}
`
