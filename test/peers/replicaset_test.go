package peers

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

const workGroup = "work.open-cluster-management.io/v1"

// rolledOut is what a controller has done for a ManifestWorkReplicaSet: "CLUSTER:TEMPLATE …", the reasons of the
// conditions and the total.
func (c chooser) rolledOut(t *testing.T, namespace, name string) string {
	t.Helper()
	works := []string{}
	for _, mw := range c.worksOf(t, namespace, name) {
		data := kit.Field(&mw, "spec", "workload", "manifests").([]any)[0].(map[string]any)["data"].(map[string]any)
		works = append(works, fmt.Sprintf("%s:%v", mw.GetNamespace(), data["is"]))
	}
	slices.Sort(works)
	set := c.Find(t, workGroup+"alpha1", "ManifestWorkReplicaSet", namespace, name)
	reasons := map[string]any{}
	conditions, _ := kit.Field(set, "status", "conditions").([]any)
	for _, of := range conditions {
		of := of.(map[string]any)
		reasons[of["type"].(string)] = of["reason"]
	}
	return fmt.Sprintf("%s, %v %v %v, %v", strings.Join(works, " "), reasons["PlacementVerified"],
		reasons["PlacementRolledOut"], reasons["ManifestworkApplied"], kit.Field(set, "status", "summary", "total"))
}

func (c chooser) worksOf(t *testing.T, namespace, name string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(workGroup)
	list.SetKind("ManifestWorkList")
	if err := c.List(t.Context(), list, client.MatchingLabels{
		"work.open-cluster-management.io/manifestworkreplicaset": namespace + "." + name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// setStatus merges a status into that of an object.
func (c chooser) setStatus(t *testing.T, find func() *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	kit.Eventually(t, "a status is written in "+c.name, func() string {
		u := find()
		is, _, _ := unstructured.NestedMap(u.Object, "status")
		if is == nil {
			is = map[string]any{}
		}
		for field, value := range status {
			is[field] = value
		}
		u.Object["status"] = is
		if err := c.Status().Update(t.Context(), u); err != nil {
			return err.Error()
		}
		return ""
	})
}

// Open Cluster Management's own controller writes the same ManifestWorks in the same order. The Placements have the
// annotation for another scheduler: the test.
func TestReplicaSetsRollOutAsOpenClusterManagement(t *testing.T) {
	program := kit.Peers(t, "klusterlet-work")[0]
	var definitions []string
	for _, name := range []string{"cluster.open-cluster-management.io_placements",
		"cluster.open-cluster-management.io_placementdecisions", "work.open-cluster-management.io_manifestworks",
		"work.open-cluster-management.io_manifestworkreplicasets"} {
		definitions = append(definitions, filepath.Join("..", "..", "api", "crds", name+".yaml"))
	}
	m, c := bareMember(t, "ocm-sets", definitions...)
	both := []chooser{{fleet.Hub, "the hub"}, {c, "Open Cluster Management"}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	m.Run(t, nil, program, "manager", "--kubeconfig="+m.Kubeconfig, "--disable-leader-election", "--listen="+address,
		"--namespace=default", "--feature-gates=ManifestWorkReplicaSet=true")

	const ns = "sets-of-peers"
	apply := func(to chooser, text string) {
		t.Helper()
		for _, u := range to.Apply(t, text) {
			to.RemoveAtEnd(t, u)
		}
	}
	for _, to := range both {
		apply(to, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}")
	}
	for _, name := range []string{"w1", "w2", "w3", "w4"} { // with klusterlets, which are the test
		apply(both[0], "{apiVersion: "+clusterGroup+", kind: ManagedCluster, metadata: {name: "+name+
			"}, spec: {hubAcceptsClient: true}}")
		apply(both[1], "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
		kit.Eventually(t, name+" is accepted", func() string {
			if conditions := kit.Field(both[0].Find(t, clusterGroup, "ManagedCluster", "", name), "status",
				"conditions"); conditions == nil {
				return "it has no conditions"
			}
			return ""
		})
	}
	set := func(name, strategy, data string) string {
		return `{apiVersion: ` + workGroup + `alpha1, kind: ManifestWorkReplicaSet, metadata: {name: ` + name +
			`, namespace: ` + ns +
			`}, spec: {placementRefs: [{name: ` + name + `, rolloutStrategy: ` + strategy + `}], manifestWorkTemplate: {workload: {manifests: [
			{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, namespace: default}, data: {is: "` + data + `"}}]}}}}`
	}
	choose := func(to chooser, name, clusters string) {
		t.Helper()
		to.Apply(t, `{apiVersion: `+placementGroup+`, kind: Placement, metadata: {name: `+name+`, namespace: `+ns+`, annotations: {
			cluster.open-cluster-management.io/experimental-scheduling-disable: "true"}}, spec: {}}`)
		groups, n := []any{}, int64(0)
		for i, text := range strings.Split(clusters, "|") {
			group, decisions := "", []any{}
			if name, rest, named := strings.Cut(text, ":"); named {
				group, text = strings.TrimSpace(name), rest
			}
			for _, cluster := range strings.Fields(text) {
				decisions = append(decisions, map[string]any{"clusterName": cluster, "reason": ""})
				n++
			}
			d := fmt.Sprintf("%s-decision-%d", name, i+1)
			to.Apply(t, fmt.Sprintf(`{apiVersion: %s, kind: PlacementDecision, metadata: {name: %s, namespace: %s, labels: {
				cluster.open-cluster-management.io/placement: %s, cluster.open-cluster-management.io/decision-group-index: "%d",
				cluster.open-cluster-management.io/decision-group-name: "%s"}}}`, placementGroup, d, ns, name, i, group))
			to.setStatus(t, func() *unstructured.Unstructured { return to.Find(t, placementGroup, "PlacementDecision", ns, d) },
				map[string]any{"decisions": decisions})
			groups = append(groups, map[string]any{"decisionGroupIndex": int64(i), "decisionGroupName": group})
		}
		to.setStatus(t, func() *unstructured.Unstructured { return to.Find(t, placementGroup, "Placement", ns, name) },
			map[string]any{"numberOfSelectedClusters": n, "decisionGroups": groups, "conditions": []any{}})
	}
	// report writes what an agent reports: "CLUSTER STATE/AGO".
	report := func(to chooser, name, text string) {
		t.Helper()
		cluster, state, _ := strings.Cut(text, " ")
		state, ago, _ := strings.Cut(state, "/")
		d, err := time.ParseDuration(ago)
		if err != nil {
			t.Fatal(err)
		}
		find := func() *unstructured.Unstructured {
			for _, mw := range to.worksOf(t, ns, name) {
				if mw.GetNamespace() == cluster {
					return &mw
				}
			}
			t.Fatalf("%s has no ManifestWork of %s for %s", to.name, name, cluster)
			return nil
		}
		conditions := []any{}
		add := func(kind string, is bool) {
			status := "False"
			if is {
				status = "True"
			}
			conditions = append(conditions, map[string]any{"type": kind, "status": status, "reason": "Reported", "message": "",
				"observedGeneration": find().GetGeneration(), "lastTransitionTime": time.Now().Add(-d).UTC().Format(time.RFC3339)})
		}
		add("Applied", true)
		add("Available", true)
		if state != "Silent" {
			add("Progressing", state != "Succeeded")
			add("Degraded", state == "Failed")
		}
		to.setStatus(t, find, map[string]any{"conditions": conditions})
	}
	var rows []string
	for i, row := range []struct {
		strategy, clusters string
		// steps are "create", "template DATA", "choose CLUSTERS" or "CLUSTER STATE/AGO", then " => " and what is expected;
		// after
		// " || " of Open Cluster Management, where docs/ocm.md lists a difference.
		steps []string
	}{
		{"{type: All}", "w1 w2", []string{
			"create => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w1 Silent/0s => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w2 Silent/0s => w1:1 w2:1, AsExpected Progressing AsExpected, 2",
			"w1 Progressing/0s => w1:1 w2:1, AsExpected Progressing Processing, 2",
			"w1 Failed/0s => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w1 Succeeded/0s => w1:1 w2:1, AsExpected Progressing AsExpected, 2",
			"w2 Succeeded/0s => w1:1 w2:1, AsExpected Complete AsExpected, 2",
			"choose w1 w2 w3 => w1:1 w2:1 w3:1, AsExpected Progressing NotAsExpected, 3",
			"choose w3 => w3:1, AsExpected Progressing NotAsExpected, 1",
			"choose => , PlacementDecisionEmpty Complete PlacementDecisionEmpty, 0",
		}},
		{"{type: Progressive, progressive: {maxConcurrency: 1}}", "w3 w1 | w2", []string{
			"create => w1:1, AsExpected Progressing NotAsExpected, 1",
			"w1 Silent/2h => w1:1, AsExpected Progressing AsExpected, 1",
			"w1 Progressing/2h => w1:1, AsExpected Progressing Processing, 1",
			"w1 Succeeded/0s => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w2 Failed/2h => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w2 Succeeded/2h => w1:1 w2:1 w3:1, AsExpected Progressing NotAsExpected, 3",
			"w3 Succeeded/2h => w1:1 w2:1 w3:1, AsExpected Complete AsExpected, 3",
			"template 2 => w1:2 w2:1 w3:1, AsExpected Progressing NotAsExpected, 1 || w1:2 w2:1 w3:1, AsExpected Progressing AsExpected, 1",
			"w1 Succeeded/2h => w1:2 w2:2 w3:1, AsExpected Progressing NotAsExpected, 2 || w1:2 w2:2 w3:1, AsExpected Progressing AsExpected, 2",
		}},
		{"{type: Progressive, progressive: {maxConcurrency: 50%, maxFailures: 1, progressDeadline: 10m, minSuccessTime: 5m}}", "w1 w2 w3 w4", []string{
			"create => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w1 Succeeded/0s => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w1 Succeeded/6m => w1:1 w2:1 w3:1, AsExpected Progressing NotAsExpected, 3",
			"w2 Failed/1m => w1:1 w2:1 w3:1, AsExpected Progressing NotAsExpected, 3",
			"w2 Progressing/11m => w1:1 w2:1 w3:1 w4:1, AsExpected Progressing Processing, 4",
		}},
		{"{type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: 10m}}", "w1 w2", []string{
			"create => w1:1, AsExpected Progressing NotAsExpected, 1",
			"w1 Progressing/11m => w1:1, AsExpected Progressing Processing, 1",
			"w1 Succeeded/0s => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
		}},
		{"{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 50%}}", "w1 w2 | x: w3 | w4", []string{
			"create => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w1 Succeeded/0s => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w2 Failed/0s => w1:1 w2:1 w3:1, AsExpected Progressing NotAsExpected, 3",
			"w3 Progressing/1h => w1:1 w2:1 w3:1, AsExpected Progressing NotAsExpected, 3",
			"w3 Succeeded/0s => w1:1 w2:1 w3:1 w4:1, AsExpected Progressing NotAsExpected, 4",
		}},
		{"{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 3, mandatoryDecisionGroups: [{groupName: x}, {groupIndex: 0}]}}", "w4 | x: w3 | w2 w1", []string{
			"create => w4:1, AsExpected Progressing NotAsExpected, 1",
			"w4 Failed/0s => w4:1, AsExpected Progressing NotAsExpected, 1",
			"w4 Succeeded/0s => w3:1 w4:1, AsExpected Progressing NotAsExpected, 2",
			"w3 Succeeded/0s => w1:1 w3:1 w4:1, AsExpected Progressing NotAsExpected, 3",
			"w1 Succeeded/0s => w1:1 w2:1 w3:1 w4:1, AsExpected Progressing NotAsExpected, 4",
			"w2 Succeeded/0s => w1:1 w2:1 w3:1 w4:1, AsExpected Complete AsExpected, 4",
		}},
		{"{type: ProgressivePerGroup, progressivePerGroup: {minSuccessTime: 2s}}", "w1 | w2", []string{
			"create => w1:1, AsExpected Progressing NotAsExpected, 1",
			"w1 Succeeded/0s => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
		}},
		{"{type: Progressive, progressive: {maxConcurrency: 2, mandatoryDecisionGroups: [{groupIndex: 0}]}}", "w1 | w2 w3 w4", []string{
			"create => w1:1, AsExpected Progressing NotAsExpected, 1",
			"w1 Succeeded/0s => w1:1 w2:1 w3:1, AsExpected Progressing NotAsExpected, 3",
			"w3 Progressing/0s => w1:1 w2:1 w3:1, AsExpected Progressing Processing, 3",
			"w2 Succeeded/0s => w1:1 w2:1 w3:1 w4:1, AsExpected Progressing Processing, 4 || w1:1 w2:1 w3:1, AsExpected Progressing Processing, 3",
		}},
		{"{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 1, progressDeadline: 10m}}", "w1 w2 | w3", []string{
			"create => w1:1 w2:1, AsExpected Progressing NotAsExpected, 2",
			"w1 Progressing/11m => w1:1 w2:1, AsExpected Progressing Processing, 2 || w1:1 w2:1 w3:1, AsExpected Progressing Processing, 3",
			"w2 Progressing/1m => w1:1 w2:1, AsExpected Progressing Processing, 2 || w1:1 w2:1 w3:1, AsExpected Progressing Processing, 3",
		}},
	} {
		name := fmt.Sprintf("row-%d", i)
		rows = append(rows, name)
		for _, step := range row.steps {
			does, want, _ := strings.Cut(step, " => ")
			want, theirs, differs := strings.Cut(want, " || ")
			wants := []string{want, want}
			if differs {
				wants[1] = theirs
			}
			for _, to := range both {
				clusters, chooses := strings.CutPrefix(does, "choose")
				data, changes := strings.CutPrefix(does, "template ")
				switch {
				case does == "create":
					choose(to, name, row.clusters)
					apply(to, set(name, row.strategy, "1"))
				case changes:
					to.Apply(t, set(name, row.strategy, data))
				case chooses:
					choose(to, name, clusters)
				default:
					report(to, name, does)
				}
			}
			for i, by := range both {
				kit.Eventually(t, fmt.Sprintf("%s %s: %s by %s", name, row.strategy, step, by.name), func() string {
					if got := by.rolledOut(t, ns, name); got != wants[i] {
						return got
					}
					return ""
				})
			}
		}
	}
	for _, to := range both { // a set deletes its ManifestWorks
		if err := to.DeleteAllOf(t.Context(), kit.Object(t,
			"{apiVersion: "+workGroup+"alpha1, kind: ManifestWorkReplicaSet}"),
			client.InNamespace(ns), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Error(err)
		}
		for _, name := range rows {
			kit.Eventually(t, "the ManifestWorks of "+name+" go in "+to.name, func() string {
				if n := len(to.worksOf(t, ns, name)); n > 0 {
					return fmt.Sprintf("%d are left", n)
				}
				return ""
			})
		}
		for _, kind := range []string{"PlacementDecision", "Placement"} {
			if err := to.DeleteAllOf(t.Context(), kit.Object(t, "{apiVersion: "+placementGroup+", kind: "+kind+"}"),
				client.InNamespace(ns)); err != nil {
				t.Error(err)
			}
		}
	}
}
