package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/test/console/browser"
	"github.com/argosy-io/argosy/test/kit"
)

// A release waits for approval. A user without the right sees the missing verb and is refused. Another user approves,
// the release continues, and the time line has the name of that user.
func TestReleaseIsApprovedInABrowser(t *testing.T) {
	long(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(waitingRelease, ns))
	kit.Eventually(t, "the workload runs in both clusters", func() string {
		b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "web-deployment")
		if got := fmt.Sprint(kit.Field(b, "status", "aggregatedStatus")); strings.Count(got, "health:Healthy") != 2 {
			return got
		}
		return ""
	})
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"argosy.io/release-strategy": "careful"})
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "nginx:1.30"
	})
	kit.Eventually(t, "the release is created", func() string {
		out, err := fleet.Argosy(t.Context(), "release", "start", "deployment/web", "-n", ns, "--reason",
			"<img src=x onerror=alert(1)>", "--change-url", "javascript:alert(1)")
		if err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
	name := ""
	kit.Eventually(t, "the release waits for approval", func() string {
		out, err := fleet.Argosy(t.Context(), "get", "releases", "-n", ns, "-o", "json")
		if err != nil {
			return out
		}
		var list unstructured.UnstructuredList
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 {
			return out
		}
		name = list.Items[0].GetName()
		if got := kit.Field(&list.Items[0], "status", "reason"); got != "WaitingForApproval" {
			return fmt.Sprint(kit.Field(&list.Items[0], "status"))
		}
		return ""
	})

	t.Log("a user who may only look is refused")
	viewer := open(t, "status of 403", "status of 401")
	logInByToken(viewer, tokenOf(t, ns, "viewer"))
	viewer.Visit("releases")
	viewer.See("Waiting for a person", name, "it waits for approval")
	viewer.Visit("releases/" + ns + "/" + name)
	viewer.See("0 of 1 approvals", "Missing: approve releases.release.argosy.io in namespace "+ns,
		"<img src=x onerror=alert(1)>", "javascript:alert(1)")
	if n := browser.Run[int](viewer, `document.querySelectorAll(".verbs button:not(:disabled)").length`); n != 0 {
		t.Errorf("%d buttons can be used", n)
	}
	if n := browser.Run[int](viewer, `document.querySelectorAll("main img, a[href^='javascript']").length`); n != 0 {
		t.Errorf("%d elements come from texts of the release", n)
	}
	refused := fmt.Sprintf(`(async () => {
		const headers = {"X-Argosy-Console": "1"};
		const r = await (await fetch("/console/api/release?namespace=%s&name=%s", {headers})).json();
		const codes = [];
		for (const a of r.actions) {
			const w = a.writes[0];
			const body = JSON.stringify(w.body);
			codes.push(a.verb + " " + (await fetch("/console/k8s/" + w.path, {method: w.method, body,
				headers: {...headers, "Content-Type": w.type}})).status);
		}
		return codes.join(", ");
	})()`, ns, name)
	const want = "approve 403, reject 403, pause 403, skip 403, rollback 403, abort 403"
	if got := browser.Run[string](viewer, refused); got != want {
		t.Errorf("the hub answers %s, want %s", got, want)
	}
	viewer.Close()

	t.Log("another user approves")
	lead := open(t, "status of 401")
	logInByToken(lead, tokenOf(t, ns, "lead"))
	lead.Visit("releases")
	lead.See("Waiting for a person", name)
	lead.Perform(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	lead.See("0 of 1 approvals", "waits")
	lead.Perform(chromedp.Click("[data-verb=approve]"))
	lead.See("Approve gate sign of stage rest?", "argosy release approve "+name+" -n "+ns+" --gate sign --yes")
	lead.Fill("#why", "it's fine")
	lead.See(`--comment 'it'\''s fine'`)
	lead.Perform(chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	lead.See("1 of 1 approvals", "system:serviceaccount:"+ns+":lead", "has succeeded")
	lead.Visit("timeline?q=" + name)
	lead.See("by system:serviceaccount:"+ns+":lead", "Gate · rest · Passed")
	lead.Close()

	t.Log("the time line has joins, moves and changes")
	admin := open(t)
	logIn(t, admin)
	admin.Visit("timeline")
	admin.See("joined the fleet", "PropagationPolicy "+ns+"/web", "was placed: member1", name)
	who := browser.Run[string](admin, `(async () => (await (await fetch("/console/api/me",
		{headers: {"X-Argosy-Console": "1"}})).json()).user)()`)
	admin.Visit("timeline?kind=changes&q=web")
	admin.See("PropagationPolicy "+ns+"/web", "was changed", "by "+who)
	admin.Visit("timeline?kind=clusters&cluster=member1")
	admin.See("Cluster member1")
	if text := admin.Text(); strings.Contains(text, name) {
		t.Errorf("the filters do not count:\n%s", text)
	}
}

// logInByToken logs in as the owner of a token.
func logInByToken(b *browser.Tab, token string) {
	b.Visit("")
	b.See("Log in to the fleet")
	b.Fill("#token", token)
	b.Perform(chromedp.Click("button[type=submit]"))
	b.See("Fleet")
}

const waitingRelease = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: viewer, namespace: %[1]s}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: lead, namespace: %[1]s}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewer, namespace: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: viewer, namespace: %[1]s}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: lead, namespace: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: lead, namespace: %[1]s}]}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: %[1]s}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], placement: {clusterAffinity: {clusterNames: [member1, member2]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %[1]s}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.29"}]}}}}
---
{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy, metadata: {name: careful, namespace: %[1]s}, spec: {stages: [{name: first, clusters: {clusterNames: [member1]}}, {name: rest, before: [{name: sign, approval: {count: 1}}]}]}}
`
