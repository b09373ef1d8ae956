package pages

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/test/console/browser"
)

const releasePath = "releases/shop/web-1"

// waiting is a release that waits for approval, as its page reads it.
func waiting() object {
	now := time.Now()
	at := func(ago time.Duration) string { return now.Add(-ago).UTC().Format(time.RFC3339) }
	reached := func(name string) object { return object{"name": name, "target": "web", "phase": "Reached"} }
	pending := func(name string) object { return object{"name": name, "target": "web", "phase": "Pending"} }
	r := summary("web-1", "Running", now.Add(-12*time.Minute))
	r["severity"], r["what"] = "Attention", "it waits for approval: gate sign of stage production"
	r["next"], r["progress"] = "`argosy release approve web-1 -n shop`", "14/40"
	r["track"] = []object{{"name": "canary", "phase": "Done"}, {"name": "production", "phase": "Gated"},
		{"name": "rest", "phase": "Pending"}}
	r["targets"] = []object{{"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web",
		"from": "web-6d4cf56db6", "to": "web-7f9c8d5b44"}}
	r["strategy"], r["change"] = "careful", object{"commit": "4f1c2ab", "ticket": "SHOP-812",
		"reason": "New checkout", "url": "https://git.example.com/shop/web/pull/812"}
	r["stages"] = []object{
		{"name": "canary", "phase": "Done", "attempt": 1, "environment": "staging", "share": "10%",
			"counts":   object{"clusters": 1, "reached": 1, "pods": 14, "new": 14},
			"clusters": []object{reached("eu-west")}, "gates": []object{{"name": "errors", "position": "After",
				"phase": "Passed", "checkName": "error-rate", "check": object{"name": "error-rate", "verdict": "Passed",
					"value": "0.002", "control": "0.002", "passed": 5, "sampledAt": at(13 * time.Minute)}}}},
		{"name": "production", "phase": "Gated", "attempt": 1, "environment": "prod", "reason": "WaitingForApproval",
			"counts":   object{"clusters": 2, "pods": 20},
			"clusters": []object{pending("us-east"), pending("us-west")},
			"gates": []object{{"name": "sign", "position": "Before", "phase": "Waiting", "need": 2, "by": []string{"carol"},
				"from": []string{"Group leads"}, "notAuthor": true}}},
		{"name": "rest", "phase": "Pending", "attempt": 1, "environment": "prod", "counts": object{"clusters": 1, "pods": 6},
			"clusters": []object{pending("asia")}}}
	r["journal"] = []object{{"seq": 2, "at": at(12 * time.Minute), "type": "Stage", "stage": "production",
		"reason": "Gated"}, {"seq": 1, "at": at(30 * time.Minute), "type": "Stage", "stage": "canary", "reason": "Updating"}}
	action := func(verb string) object {
		return object{"verb": verb, "textAt": []string{"metadata", "annotations", "reason"}, "writes": []object{{
			"method": "PATCH", "path": "apis/release.argosy.io/v1alpha1/namespaces/shop/releases/web-1",
			"type": "application/merge-patch+json", "body": object{}}}}
	}
	verdict := func(verb, verdict string) object {
		return object{"verb": verb, "gate": "sign", "stage": "production", "textAt": []string{"spec", "comment"},
			"writes": []object{{"method": "POST", "type": "application/json", "body": object{"spec": object{
				"verdict": verdict}}, "path": "apis/release.argosy.io/v1alpha1/namespaces/shop/releaseapprovals"}}}
	}
	r["actions"] = []object{verdict("approve", "Approve"), verdict("reject", "Reject"), action("pause"), action("skip"),
		action("rollback"), action("abort")}
	return r
}

// summary is a release in the list.
func summary(name, phase string, since time.Time) object {
	return object{"namespace": "shop", "name": name, "phase": phase, "workloads": []string{"Deployment web"},
		"refs":   []string{"Deployment.apps web"},
		"author": "wang", "since": since.Unix(), "ended": releasev1alpha1.ReleasePhase(phase).Ended()}
}

// entry is an entry of the time line: a move of the Deployment shop/web.
func entry(id, at string) object {
	return object{"id": id, "at": at, "class": "moves", "type": "Moved", "group": "apps", "kind": "Deployment",
		"namespace": "shop", "name": "web", "from": []object{{"name": "eu", "replicas": 2}}, "to": []object{{"name": "us"}}}
}

func TestReleaseIsConfirmedWithItsCommand(t *testing.T) {
	h := newHub(t)
	const approvals = "POST k8s/apis/release.argosy.io/v1alpha1/namespaces/shop/releaseapprovals"
	moving := summary("api-4", "Running", time.Now().Add(-2*time.Minute))
	moving["workloads"], moving["progress"], moving["what"] = []string{"CloneSet api"}, "3/12", "it updates stage canary"
	moving["track"] = []object{{"name": "canary", "phase": "Updating"}, {"name": "rest", "phase": "Pending"}}
	row := func(r object) []any { return []any{"shop/" + fmt.Sprint(r["name"]), r} }
	h.set(func(h *hub) {
		h.topics["fleet"] = topic{totals: object{"clusters": 4, "workloads": 2, "waiting": 1}}
		h.topics["releases"] = topic{rows: []any{row(waiting()), row(moving),
			row(summary("web-0", "Succeeded", time.Now().Add(-26*time.Hour))),
			row(summary("api-3", "RolledBack", time.Now().Add(-50*time.Hour)))}}
		h.answers["GET api/release"] = answer{200, waiting()}
		h.answers[approvals] = failure(403, "carol approved it already")
	})
	b := browser.Open(t, h.URL, "status of 403")
	b.Visit("releases")
	b.See("Waiting for a person", "Under way", "Ended", "4 of 4")
	b.Shoot("releases")
	b.Perform(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.See("Approve sign", "1 of 2 approvals")
	b.Shoot("release")
	b.Perform(chromedp.Click("[data-verb=approve]"))
	b.See("Approve gate sign of stage production?", "argosy release approve web-1 -n shop --gate sign --yes")
	b.Shoot("release-approve")
	b.Fill("#why", "it's fine")
	b.See(`--comment 'it'\''s fine'`)
	b.Perform(chromedp.Click("dialog button[type=submit]"))
	b.See("carol approved it already")
	if kept := browser.Run[string](b, `document.querySelector("#why").value`); kept != "it's fine" {
		t.Errorf("after the error the comment is %q", kept)
	}
	h.set(func(h *hub) { h.answers[approvals] = answer{201, object{}} })
	b.Perform(chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	want := approvals + ` {"spec":{"verdict":"Approve","comment":"it's fine"}}`
	if sent := h.writes(); len(sent) != 2 || sent[1] != want {
		t.Errorf("the page sent %q, want %q at the end", sent, want)
	}
}

// New entries move the newest page on, and a page may have none that the user sees.
func TestTimeLineKeepsOlderPages(t *testing.T) {
	h := newHub(t)
	minute := func(n int) string { return fmt.Sprintf("2026-03-02T10:%02d:00Z", n) }
	page := func(older string, minutes ...int) answer {
		entries := []object{}
		for _, n := range minutes {
			e := entry(fmt.Sprint(n), minute(n))
			e["name"] = fmt.Sprintf("web-%02d", n)
			entries = append(entries, e)
		}
		return answer{200, object{"entries": entries, "older": older, "version": older}}
	}
	set := func(newest, older answer) {
		h.set(func(h *hub) { h.answers["GET api/timeline"], h.answers["GET api/timeline?before"] = newest, older })
	}
	h.set(func(h *hub) { h.topics["fleet"], h.topics["clusters"] = topic{totals: figures}, topic{} })
	b := browser.Open(t, h.URL)

	t.Log("an older page without entries is not the end")
	set(page(minute(30)), page(minute(20)))
	b.Visit("timeline")
	b.See("None of the newest entries matches.", "Show older entries")
	b.Perform(chromedp.Click(".more button"))
	set(page(minute(30)), page("", 10))
	b.WaitFor("the entry of the last page is shown", func() string {
		text := browser.Run[string](b, `document.querySelector(".more button")?.click(); document.body.innerText`)
		if !strings.Contains(text, "web-10") || strings.Contains(text, "Show older entries") {
			return text
		}
		return ""
	})

	t.Log("entries between the newest page and the older ones stay")
	set(page(minute(40), 42, 41, 40), page("", 40, 39))
	b.Visit("timeline?q=web")
	b.See("3 entries")
	b.Perform(chromedp.Click(".more button"))
	b.See("4 entries")
	set(page(minute(41), 44, 43, 42, 41), answer{})
	b.See("web-44", "6 entries", "web-40", "web-39")

	t.Log("after a gap, or when entries are gone, the newest page replaces the older ones")
	set(page(minute(50), 51), answer{})
	b.See("1 entry", "web-51", "Show older entries")
}

func TestTimeLineShowsEachClassOfEntries(t *testing.T) {
	h := newHub(t)
	moved := entry("m", "2026-03-02T10:20:00Z")
	failover := entry("f", "2026-03-02T09:58:00Z")
	failover["class"], failover["type"], failover["reason"] = "failovers", "FailedOver", "TaintUntolerated"
	h.set(func(h *hub) {
		h.topics["fleet"] = topic{totals: figures}
		h.topics["clusters"] = topic{rows: []any{cluster("eu", "NotReady"), cluster("us", "Healthy")}}
		h.answers["GET api/timeline"] = answer{200, object{"entries": []object{
			{"id": "r", "at": "2026-03-02T10:31:00Z", "class": "releases", "type": "Gate", "stage": "production",
				"kind": "Release", "namespace": "shop", "name": "web-1", "user": "carol", "reason": "Passed",
				"message": "2 of 2 approvals"}, moved,
			{"id": "p", "at": "2026-03-02T10:19:00Z", "class": "changes", "type": "Changed", "kind": "PropagationPolicy",
				"namespace": "shop", "name": "web", "user": "ann", "manager": "kubectl-client-side-apply"}, failover,
			{"id": "n", "at": "2026-03-02T09:57:00Z", "class": "clusters", "type": "NotReady", "kind": "Cluster",
				"name": "eu", "reason": "ClusterNotReachable", "message": "dial tcp 10.0.0.7:6443: i/o timeout"},
			{"id": "o", "at": "2026-03-01T17:00:00Z", "class": "changes", "type": "Changed", "kind": "ClusterOverridePolicy",
				"name": "limits", "manager": "helm"},
			{"id": "j", "at": "2026-03-01T16:00:00Z", "class": "clusters", "type": "Joined", "kind": "Cluster", "name": "us"},
		}}}
	})
	b := browser.Open(t, h.URL)
	b.Visit("timeline")
	b.See("Gate · production · Passed", "by carol", "moved from eu:2 to us", "was changed",
		"by ann", "with helm", "failed over from eu:2 to us · TaintUntolerated",
		"is not ready · ClusterNotReachable", "joined the fleet")
	b.Shoot("timeline")
	choose(b, ".tools select", "failovers")
	b.WaitFor("the filter is in the address", func() string {
		if at := browser.Run[string](b, "location.search"); at != "?kind=failovers" {
			return at
		}
		return ""
	})
}

// The filters of the time line are in the address of the page, and the hub decides what they mean.
func TestTimeLineIsFilteredByItsAddress(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) { h.everything() })
	b := browser.Open(t, h.URL)
	asks := func(want ...string) {
		t.Helper()
		b.WaitFor(fmt.Sprint("the page asks for ", want), func() string {
			h.mu.Lock()
			defer h.mu.Unlock()
			for i, name := range []string{"by", "range", "from", "to"} {
				if got := h.query.Get(name); got != want[i] {
					return fmt.Sprintf("%s is %q", name, got)
				}
			}
			return ""
		})
	}
	choose := func(n int, value string) {
		browser.Run[int](b, fmt.Sprintf(`(() => { const s = document.querySelectorAll(".tools select")[%d]; s.value = %q;
			s.dispatchEvent(new Event("change", {bubbles: true})); return 0; })()`, n, value))
	}
	b.Visit("timeline")
	b.See("moved from eu:2 to us")
	asks("", "", "", "")
	choose(2, "people")
	asks("people", "", "", "")
	choose(3, "week")
	asks("people", "week", "", "")
	b.Visit("timeline?by=hub&range=between&from=2026-01-03T12:00:00Z&to=2026-01-05T12:00:00Z")
	b.See("Done by", "From", "To", "moved from eu:2 to us")
	asks("hub", "between", "2026-01-03T12:00:00Z", "2026-01-05T12:00:00Z")
	browser.Run[int](b, `(() => { const f = document.querySelector('.tools input[type="datetime-local"]');
		f.value = "2026-01-04T12:00"; f.dispatchEvent(new Event("change", {bubbles: true})); return 0; })()`)
	b.WaitFor("the range is in the address", func() string {
		if at := browser.Run[string](b, "location.search"); !strings.Contains(at, "from=2026-01-04T") {
			return at
		}
		return ""
	})
	b.Accessible("the filters of the time line")
}
