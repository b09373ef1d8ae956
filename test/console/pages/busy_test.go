package pages

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/argosy-io/argosy/test/console/browser"
)

// busy is a fleet of six clusters with a problem of each kind.
func (h *hub) busy() {
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	var clusters []any
	for _, c := range []struct {
		name, state, region string
		ready               time.Duration
		nodes, cpu, memory  int
		placed, bad         int
	}{{"ap-sydney", "Ready", "ap-southeast", 90 * time.Hour, 6, 61, 44, 11, 0},
		{"ap-tokyo", "Ready", "ap-northeast", 200 * time.Hour, 8, 74, 58, 17, 1},
		{"eu-central", "NotReady", "eu-central", 6 * time.Minute, 12, 66, 71, 22, 0},
		{"eu-west", "Ready", "eu-west", 700 * time.Hour, 16, 71, 63, 31, 0},
		{"us-east", "Ready", "us-east", 700 * time.Hour, 16, 94, 88, 34, 1},
		{"us-west", "Ready", "us-west", 48 * time.Hour, 10, 38, 29, 14, 0}} {
		ready := c.nodes
		if c.name == "ap-tokyo" {
			ready--
		}
		cpu, memory := c.nodes*32_000, c.nodes*128<<30
		clusters = append(clusters, []any{c.name, object{"name": c.name, "state": c.state, "since": ago(c.ready),
			"region": c.region, "version": "v1.36.3", "nodes": c.nodes, "readyNodes": ready, "placed": c.placed, "bad": c.bad,
			"cpu":    object{"used": cpu / 100 * c.cpu, "all": cpu},
			"memory": object{"used": memory / 100 * c.memory, "all": memory}}})
	}
	workloads := []struct {
		kind, group, namespace, name, state string
		ready, wanted                       int
		places                              []string
	}{{"Deployment", "apps", "shop", "payments", "Failed", 8, 12, []string{"us-east:Failed", "eu-west:Healthy",
		"ap-tokyo:Healthy"}},
		{"StatefulSet", "apps", "search", "indexer", "Unplaced", 0, 20, nil},
		{"CloneSet", "apps.kruise.io", "media", "transcoder", "Unhealthy", 4, 6, []string{"ap-tokyo:Unhealthy",
			"us-west:Healthy"}},
		{"CloneSet", "apps.kruise.io", "shop", "checkout", "Progressing", 31, 40, []string{"us-east:Progressing",
			"eu-central:Healthy", "eu-west:Healthy", "us-west:Healthy", "ap-sydney:Healthy"}},
		{"Deployment", "apps", "media", "thumbnails", "Healthy", 9, 9, []string{"eu-central:Healthy", "eu-west:Healthy"}},
		{"Workflow", "argoproj.io", "media", "nightly-2291", "Healthy", 0, 0, []string{"us-west:Healthy"}},
		{"DaemonSet", "apps", "platform", "log-shipper", "Healthy", 68, 68, []string{"ap-sydney:Healthy", "ap-tokyo:Healthy",
			"eu-central:Healthy", "eu-west:Healthy", "us-east:Healthy", "us-west:Healthy"}},
		{"ConfigMap", "", "shop", "features", "Healthy", 0, 0, []string{"eu-west:Healthy", "us-east:Healthy"}},
		{"Deployment", "apps", "shop", "frontend", "Healthy", 24, 24, []string{"ap-tokyo:Healthy", "eu-west:Healthy",
			"us-east:Healthy"}},
		{"Service", "", "shop", "frontend", "Healthy", 0, 0, []string{"ap-tokyo:Healthy", "eu-west:Healthy",
			"us-east:Healthy"}}}
	var rows []any
	for _, w := range workloads {
		places := []object{}
		for _, p := range w.places {
			var cluster, state string
			for i := range p {
				if p[i] == ':' {
					cluster, state = p[:i], p[i+1:]
				}
			}
			places = append(places, object{"cluster": cluster, "state": state})
		}
		rows = append(rows, []any{w.kind + w.namespace + w.name, object{"group": w.group, "kind": w.kind,
			"namespace": w.namespace, "name": w.name, "state": w.state, "bad": w.state == "Failed" || w.state == "Unhealthy",
			"ready": w.ready, "wanted": w.wanted,
			"policy": "default", "places": places}})
	}
	const quota = `us-east refuses it: exceeded quota: compute, requested: cpu=2, used: cpu=39, limited: cpu=40`
	const noRoom = `0/6 clusters are available: 5 cluster(s) have too little cpu, 1 cluster(s) are not ready`
	items := []object{
		{"severity": "Problem", "about": "cluster", "cluster": "eu-central", "since": ago(6 * time.Minute),
			"what": "not ready: ClusterNotReachable: dial tcp 10.20.0.7:6443: i/o timeout",
			"next": "`argosy why cluster eu-central`"},
		{"severity": "Problem", "about": "workload", "cluster": "us-east", "since": ago(3 * time.Minute), "what": quota,
			"object": object{"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "payments"},
			"next":   "`argosy why deployment payments -n shop`"},
		{"severity": "Problem", "about": "workload", "cluster": "ap-tokyo", "what": "2 of 3 pods: ImagePullBackOff: " +
			`Back-off pulling image "registry.example.com/transcoder:4.2": not found`,
			"object": object{"group": "apps.kruise.io", "kind": "CloneSet", "namespace": "media", "name": "transcoder"},
			"next":   "`argosy why cloneset transcoder -n media`"},
		{"severity": "Problem", "about": "workload", "since": ago(41 * time.Minute), "what": "not placed: " + noRoom +
			". To fit: 12 of 20 replicas fit in us-west",
			"object": object{"group": "apps", "kind": "StatefulSet", "namespace": "search", "name": "indexer"},
			"next":   "`argosy why statefulset indexer -n search`"},
		{"severity": "Attention", "about": "release", "since": ago(12 * time.Minute),
			"what":   "it waits for approval: gate sign of stage production",
			"object": object{"group": "release.argosy.io", "kind": "Release", "namespace": "shop", "name": "checkout-12"},
			"next":   "`argosy release approve checkout-12 -n shop`"}}
	var sent []any
	for i, item := range items {
		item["key"], item["rank"] = fmt.Sprint("item", i), i
		sent = append(sent, []any{item["key"], item})
	}
	h.topics["fleet"] = topic{rows: sent, totals: object{"clusters": 6, "notReady": 1, "workloads": len(rows), "bad": 2,
		"unplaced": 1, "waiting": 1}}
	h.topics["clusters"], h.topics["workloads"] = topic{rows: clusters}, topic{rows: rows}
	h.topics["releases"] = topic{}
	h.answers["GET api/actions"] = answer{200, []any{
		object{"name": "scale", "path": "k8s/x", "replicas": 12,
			"command": "kubectl scale deployment payments -n shop --replicas={n}"},
		object{"name": "restart", "path": "k8s/x", "patch": object{}, "command": "kubectl rollout restart"},
		object{"name": "pause", "path": "k8s/x", "patch": object{}, "command": "argosy rollout pause"}}}
}

// lane is a cluster in the answer of why.
func lane(name, state string, replicas, ready int, more object) object {
	l := object{"name": name, "state": state, "target": true, "replicas": replicas, "readyPods": ready,
		"wantedPods": replicas, "work": object{"applied": true}}
	for key, value := range more {
		l[key] = value
	}
	return l
}

// TestBusyFleetFitsEachScreen shows a fleet with problems in both widths and themes.
func TestBusyFleetFitsEachScreen(t *testing.T) {
	h := newHub(t)
	h.set(func(h *hub) { h.busy() })
	b := browser.Open(t, h.URL)
	b.Visit("")
	b.See("payments", "exceeded quota", "ImagePullBackOff", "1 release waits for a person")
	b.Shoot("fleet")
	b.Visit("clusters")
	b.See("eu-central", "Not ready", "7/8", "6 of 6")
	b.Shoot("clusters")
	b.Visit("workloads")
	b.See("nightly-2291", "+3", "0/20")
	b.Shoot("workloads")

	t.Log("the walk: one cluster refuses, one is silent, the others are well")
	policy := object{"holder": "ClusterPropagationPolicy default", "candidates": []object{{
		"policy": "ClusterPropagationPolicy default", "priority": 0, "holds": true}}}
	placement := object{"binding": "payments-deployment", "replicas": 12, "scheduled": object{"status": "True"},
		"steps": []string{"6 clusters: 2 filtered out, 4 chosen", "12 replicas by weight 1:1:1:1"}}
	const refused = `exceeded quota: compute, requested: cpu=2, used: cpu=39, limited: cpu=40`
	h.set(func(h *hub) {
		h.answers["GET api/why"] = answer{200, object{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop",
			"name": "payments", "summary": "1 problem, healthy in 2 of 4 clusters", "policy": policy, "placement": placement,
			"findings": []object{{"severity": "Problem", "cluster": "us-east", "what": "the member refuses it: " + refused,
				"next": "raise the quota compute of the namespace shop in us-east, or scale the Deployment"}},
			"clusters": []object{lane("eu-west", "Healthy", 3, 3, nil), lane("ap-tokyo", "Healthy", 3, 3, nil),
				lane("eu-central", "Lost", 3, 0, nil), lane("us-east", "Failed", 3, 0, object{"work": object{
					"applied": false, "message": refused}})}}}
	})
	b.Visit("w/apps/Deployment/shop/payments")
	b.See("the member refuses it", "Cluster not ready", "3 of 3 ready", "Scale")
	b.Shoot("workload")
	h.set(func(h *hub) {
		h.answers["GET api/why"] = answer{200, object{"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "search",
			"name": "indexer", "summary": "1 problem, in no cluster", "policy": policy, "placement": object{
				"binding": "indexer-statefulset", "replicas": 20, "scheduled": object{"status": "False", "message": "no"},
				"steps": []string{"6 clusters", "5 have too little cpu", "1 is not ready"}},
			"findings": []object{{"severity": "Problem", "what": "not scheduled: 0/6 clusters are available: 5 cluster(s) " +
				"have too little cpu, 1 cluster(s) are not ready",
				"next": "12 of 20 replicas fit in us-west: lower the replicas or their requests, or add nodes"}}}}
	})
	b.Visit("w/apps/StatefulSet/search/indexer")
	b.See("Not placed", "12 of 20 replicas fit in us-west")
	b.Shoot("workload-stuck")

	t.Log("pods of all clusters with their logs")
	pods := []object{pod("ap-tokyo", "payments-7d9f8b6c5-2xkqp"), pod("ap-tokyo", "payments-7d9f8b6c5-9wz4m"),
		pod("eu-west", "payments-7d9f8b6c5-hh2lt"), pod("eu-west", "payments-7d9f8b6c5-vb8sd")}
	pods[1]["reason"], pods[1]["ready"], pods[1]["restarts"] = "CrashLoopBackOff", 0, 7
	h.set(func(h *hub) {
		h.answers["GET api/why"] = answer{200, object{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop",
			"name": "payments", "summary": "1 problem, healthy in 2 of 4 clusters", "policy": policy, "placement": placement,
			"clusters": []object{lane("eu-west", "Healthy", 3, 3, nil), lane("ap-tokyo", "Healthy", 3, 3, nil),
				lane("eu-central", "Healthy", 3, 3, nil)}}}
		h.answers["GET api/pods"] = answer{200, object{"pods": pods, "errors": []object{{"cluster": "eu-central",
			"message": "the cluster has not answered yet"}}}}
		for i, p := range pods {
			at := fmt.Sprintf("2026-03-02T10:31:%02d.%d00000000Z", 10+i, i)
			log := at + " POST /charge 200 in 41 ms\n" + at + " POST /charge 200 in 38 ms\n"
			if i == 1 {
				log = at + " connect to the ledger: connection refused\n" + at + " exit status 1\n"
			}
			h.answers[fmt.Sprintf("GET %s%s/proxy/api/v1/namespaces/shop/pods/%s/log", memberPath, p["cluster"],
				p["name"])] = answer{200, text(log)}
		}
	})
	b.Visit("w/apps/Deployment/shop/payments?tab=pods")
	b.See("CrashLoopBackOff", "8 lines", "connect to the ledger", "argosy logs deployment.apps/payments -n shop")
	b.Shoot("pods")
	b.Perform(chromedp.KeyEvent("1"))
	b.See("Placement")
}
