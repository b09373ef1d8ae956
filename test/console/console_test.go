// Package console has the tests of the web console in a real browser, on a real hub with simulated members.
package console

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/member/membertest"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

var fleet *kit.Fleet

// noBrowser is why the tests of this package are skipped; empty if they run.
var noBrowser string

const browserName = "chromium-headless-shell"

func TestMain(m *testing.M) {
	flag.Parse()
	if noBrowser = findBrowser(); noBrowser != "" {
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

// findBrowser returns why there is no browser; empty if there is one. The long suite installs Debian's if it is
// missing. For the gate, .ci/run does.
func findBrowser() string {
	if _, err := exec.LookPath(browserName); err == nil {
		return ""
	}
	if testing.Short() {
		return browserName + " is not installed"
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return browserName + " is not installed"
	}
	install := exec.Command("sh", "-c",
		"apt-get update -qq && apt-get install -y -qq --no-install-recommends "+browserName)
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Sprintf("%s cannot be installed: %v: %.200s", browserName, err, out)
	}
	return ""
}

// tab is a page in a browser with a profile of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
	// wrong is what the browser reported: errors of scripts, violations of the policy, and requests to other hosts.
	mu    sync.Mutex
	wrong []string
	// requests counts what the browser sent: without one, record has seen nothing.
	requests int
	// close ends the browser and reports what is wrong.
	close func()
	// expected are parts of reports that a test provokes.
	expected []string
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

// open opens a tab that is not logged in. At the end of the test, everything that the browser reported is a failure.
func open(t *testing.T, expected ...string) *tab {
	t.Helper()
	needBrowser(t)
	b := &tab{t: t, expected: expected}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(browserName), chromedp.NoSandbox,
		chromedp.Headless, chromedp.IgnoreCertErrors, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("lang", "en-US"), chromedp.WSURLReadTimeout(kit.Timeout))
	ctx, end := chromedp.NewContext(allocator, chromedp.WithListener(b.record))
	ctx, cancel := context.WithTimeout(ctx, 2*kit.Timeout)
	b.ctx = ctx
	b.close = sync.OnceFunc(func() {
		b.mu.Lock()
		for _, w := range b.wrong {
			t.Errorf("the browser reported: %s", w)
		}
		if b.requests == 0 {
			t.Error("the test saw no request of the browser")
		}
		b.mu.Unlock()
		cancel()
		end()
		stop()
	})
	t.Cleanup(b.close)
	b.perform(enableReports(), b.size(1440, 900, ""))
	return b
}

// enableReports turns on what record listens to.
func enableReports() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdpruntime.Enable, cdp.Empty{})
		if err == nil {
			_, err = cdp.Call(ctx, t, cdplog.Enable, cdp.Empty{})
		}
		if err == nil {
			_, err = cdp.Call(ctx, t, network.Enable, network.EnableParams{})
		}
		return err
	})
}

func (b *tab) record(event any) {
	report := ""
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		report = fmt.Sprint("exception ", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.ConsoleAPICalledTypeError {
			report = fmt.Sprint("console.error ", e.Args)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			report = e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.requests++
		b.mu.Unlock()
		if !strings.HasPrefix(e.Request.URL, hub()) && !strings.HasPrefix(e.Request.URL, "data:") {
			report = "request to " + e.Request.URL
		}
	}
	if report == "" {
		return
	}
	for _, part := range b.expected {
		if strings.Contains(report, part) {
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, report)
}

func hub() string { return strings.TrimSuffix(fleet.Hub.Config.Host, "/") }

func (b *tab) perform(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// logIn opens the console by a one-time link, as the user of the hub's kubeconfig.
func (b *tab) logIn() {
	b.t.Helper()
	out, err := fleet.Argosy(b.t.Context(), "console", "--no-browser")
	if err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
	b.perform(chromedp.Navigate(strings.TrimSpace(out)), chromedp.WaitVisible("h1"))
	b.see("Fleet")
}

// visit goes to a page of the console.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.perform(chromedp.Navigate(hub()+"/console/"+path), chromedp.WaitVisible("h1"))
}

// text returns what the page shows.
func (b *tab) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// see waits until the page shows all texts.
func (b *tab) see(texts ...string) {
	b.t.Helper()
	kit.Eventually(b.t, fmt.Sprintf("the page shows %q", texts), func() string {
		shown := b.text()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return fmt.Sprintf("no %q in:\n%s", text, shown)
			}
		}
		return ""
	})
}

// run evaluates a script of the test in the page.
func run[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return v
}

func (b *tab) size(width, height int64, scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.EmulateViewport(width, height), chromedp.Func(
		func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}))
}

// axe is the source of axe-core, which the registry of npm has; empty without npm.
var axe = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "argosy-axe-")
	if err != nil {
		return ""
	}
	defer os.RemoveAll(dir)
	install := exec.Command("npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund",
		"axe-core@4.14.1")
	if install.Run() != nil {
		return ""
	}
	source, _ := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(source)
})

// accessible fails if axe-core finds a violation of WCAG 2.2 AA in the page as it is.
func (b *tab) accessible(where string) {
	b.t.Helper()
	source := axe()
	if source == "" {
		b.t.Log("axe-core cannot be had: the check of accessibility is skipped")
		return
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](source+";0")); err != nil {
		b.t.Fatalf("load axe-core: %v", err)
	}
	found := run[string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(
		r => JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " +
		n.any.concat(n.all).map(c => c.message).join("; ").slice(0, 200)).join(" | "))))`)
	var violations []string
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: %s", where, v)
	}
}

// shoot checks the page in both widths and themes. With ARGOSY_SCREENSHOTS it writes a picture of each to that folder.
func (b *tab) shoot(name string) {
	b.t.Helper()
	for _, view := range []struct {
		width, height int64
		scheme        string
	}{{1440, 900, "light"}, {1440, 900, "dark"}, {390, 844, "light"}, {390, 844, "dark"}} {
		where := fmt.Sprintf("%s-%s-%d", name, view.scheme, view.width)
		b.perform(b.size(view.width, view.height, view.scheme))
		b.accessible(where)
		if wide := run[int64](b, "document.documentElement.scrollWidth"); wide > view.width {
			b.t.Errorf("%s scrolls sideways: %d px", where, wide)
		}
		if dir := os.Getenv("ARGOSY_SCREENSHOTS"); dir != "" {
			picture, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
				Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(80))})
			if err != nil {
				b.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "console-"+where+".webp"), picture.Data, 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.perform(b.size(1440, 900, ""))
}

// TestUserImportsAClusterAndSeesAWorkloadReady is the story of the gate.
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
	b.logIn()
	b.visit("clusters/import")
	b.see("Import a cluster")
	b.perform(chromedp.SendKeys("#name", "gate"))
	b.fill("#kubeconfig", string(kubeconfig))
	b.perform(chromedp.Click("button[type=submit]"))
	b.see("Open the cluster")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		if out, err := fleet.Argosy(ctx, "unjoin", "gate", "--yes", "--force", "--wait", "20s"); err != nil {
			t.Errorf("unjoin: %v\n%s", err, out)
		}
	})
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(gate, ns))
	b.visit("w/apps/Deployment/" + ns + "/gate")
	b.see("PropagationPolicy "+ns+"/gate", "healthy in 1 of 1 cluster", "2 of 2 ready")
	b.close() // the page would report that the workload is gone
}

// TestAFleetIsLookedAtInABrowser is the story of a first look: log in, import a cluster, see a workload and a problem.
func TestAFleetIsLookedAtInABrowser(t *testing.T) {
	long(t)
	b := open(t, "status of 422", "status of 401", "status of 50") // the nodes of simulated members have no logs
	b.logIn()
	if got := run[string](b, "location.hash + document.cookie"); got != "" {
		t.Errorf("scripts can read the login: %q", got)
	}
	b.see("Nothing needs attention.", "live")
	b.shoot("fleet-calm")

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
	b.visit("clusters/import")
	b.see("Import a cluster")
	b.shoot("import")
	b.perform(chromedp.SendKeys("#name", "member2"), chromedp.SendKeys("#region", "us-east"))
	b.fill("#kubeconfig", strings.Replace(string(kubeconfig), "certificate-authority-data",
		"insecure-skip-tls-verify: true\n    x", 1))
	b.perform(chromedp.Click("button[type=submit]"))
	b.see("insecure-skip-tls-verify")
	b.fill("#kubeconfig", string(kubeconfig))
	b.perform(chromedp.Click("button[type=submit]"))
	b.see("Open the cluster")
	kit.Eventually(t, "each step ticks off", func() string {
		if n := run[int](b, `document.querySelectorAll(".steps li.done").length`); n != 7 {
			return fmt.Sprintf("%d of 7 are done", n)
		}
		return ""
	})
	b.perform(chromedp.Click(".steps a.button"))
	b.see("member2", "us-east", "The hub finds nothing wrong with this cluster.")
	b.shoot("cluster")
	b.visit("clusters")
	b.see("member1", "member2", "2 of 2")
	b.shoot("clusters")

	t.Log("see a workload, and one that no cluster takes")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(workloads, ns))
	b.visit("workloads")
	b.see("web", "nowhere", "Not placed")
	b.shoot("workloads")
	b.perform(chromedp.SendKeys("[data-filter]", "nowh"))
	b.see("1 of ")
	if got := run[string](b, "location.search"); got != "?q=nowh" {
		t.Errorf("the filter is not in the address: %q", got)
	}
	b.visit("")
	b.see("Workloads without a cluster", "nowhere", "not placed", "Next")
	b.shoot("fleet")

	t.Log("by keys: the first row, its page, and back")
	b.perform(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.see("How the scheduler came to this", "PropagationPolicy "+ns+"/nowhere")
	b.shoot("workload-stuck")
	b.visit("w/apps/Deployment/" + ns + "/web")
	b.see("PropagationPolicy "+ns+"/web", "member1", "Healthy")
	b.shoot("workload")
	b.visit("w/apps/Deployment/" + ns + "/web?tab=pods")
	b.see("Restarts", "Running", "member2")
	b.shoot("pods")

	t.Log("log out: the page is closed and the cookie ends")
	run[any](b, `document.querySelector(".who").click()`)
	run[any](b, `document.querySelector("#account button").click()`)
	b.see("Log in to the fleet")
	b.shoot("login")
}

// fill sets the value of a field as pasting does.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	quoted, _ := json.Marshal(value)
	run[any](b, fmt.Sprintf(`{ const f = document.querySelector(%q); f.value = %s; f.dispatchEvent(new Event("input", {bubbles: true})); 0 }`,
		selector, quoted))
}

// TestHostileNamesAreTextInABrowser shows a fleet whose texts are markup: nothing runs, and the policy is not violated.
func TestHostileNamesAreTextInABrowser(t *testing.T) {
	long(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(hostile, ns))
	b := open(t, "status of 404")
	b.logIn()
	b.visit("w/apps/Deployment/" + ns + "/hostile")
	b.see("javascript:alert(1)")
	if n := run[int](b, `document.querySelectorAll("img:not([src^='/console/']), a[href^='javascript'], script:not([src])").length`); n > 0 {
		t.Errorf("%d elements come from texts of objects", n)
	}
	b.visit(`clusters/%3Cimg%20src=x%20onerror=alert(1)%3E`)
	b.see("<img src=x onerror=alert(1)>")
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
	b.logIn()
	b.visit("w/apps/Deployment/" + ns + "/talker?tab=pods")
	b.see("talker-1", "1 lines", "red <b>bold</b> ␛]0;title� ‹U+202E›evil")
}

// TestUserWithoutRightsSeesMissingRight logs in by a token without rights.
func TestUserWithoutRightsSeesMissingRight(t *testing.T) {
	long(t)
	b := open(t, "status of 401", "status of 403")
	b.visit("")
	b.see("Log in to the fleet")
	b.fill("#token", "nonsense")
	b.perform(chromedp.Click("button[type=submit]"))
	b.see("does not accept this token")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: jane, namespace: %s}}", ns))
	b.fill("#token", tokenOf(t, ns, "jane"))
	b.perform(chromedp.Click("button[type=submit]"))
	b.see("You may not see this", "list clusters.cluster.karmada.io",
		"kubectl auth can-i list clusters.cluster.karmada.io")
	b.shoot("forbidden")
	b.visit("clusters/import")
	b.see("create clusters.cluster.karmada.io")
	b.visit("clusters/member1")
	b.see("get clusters.cluster.karmada.io")
}

// TestTextStaysWhenALoginEnds ends the login while a user types.
func TestTextStaysWhenALoginEnds(t *testing.T) {
	long(t)
	b := open(t, "status of 401")
	b.logIn()
	b.visit("clusters/import")
	b.see("Name in the fleet")
	b.fill("#kubeconfig", "half of a kubeconfig")
	run[any](b, `fetch("/console/session", {method: "DELETE", headers: {"X-Argosy-Console": "1"}}).then(r => r.status)`)
	b.see("Your login has ended.")
	b.accessible("login again")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: john, namespace: %s}}\n---\n"+
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: console-john}, roleRef: "+
		"{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, "+
		"name: john, namespace: %[1]s}]}", ns))
	b.fill("dialog #token", tokenOf(t, ns, "john"))
	b.perform(chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	if got := run[string](b, `document.querySelector("#kubeconfig").value`); got != "half of a kubeconfig" {
		t.Errorf("the text is %q", got)
	}
}

// TestPageKeepsItsDataWhileTheHubIsDown stops the hub under an open page. It is the last test, because it restarts the
// hub of all.
func TestPageKeepsItsDataWhileTheHubIsDown(t *testing.T) {
	long(t)
	b := open(t, "ERR_", "status of 5", "status of 401", "Failed to load resource")
	b.logIn()
	b.visit("clusters")
	b.see("member1", "live")
	fleet.Lab.Hub.Kill()
	b.see("disconnected since", "member1")
	b.accessible("disconnected")
	if err := fleet.Lab.Hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.see("live", "member1")
	kit.Eventually(t, "the notice goes", func() string {
		if text := b.text(); strings.Contains(text, "disconnected") {
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
`

const gate = `
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: gate, namespace: %[1]s}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: gate}], placement: {clusterAffinity: {clusterNames: [gate]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: gate, namespace: %[1]s}, spec: {replicas: 2, selector: {matchLabels: {app: gate}}, template: {metadata: {labels: {app: gate}}, spec: {containers: [{name: web, image: "nginx:1.29"}]}}}}
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
