package peers

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// chooser is a cluster in which a placement controller runs: the hub, or a member with that of Open Cluster Management
// (go build -o ~/.cache/argosy-peers/ocm-placement ./cmd/placement of its source).
type chooser struct {
	kit.Cluster
	name string
}

const placementGroup = "cluster.open-cluster-management.io/v1beta1"

// decided is what a controller decided for a Placement: its decisions, their groups, and the conditions.
func (c chooser) decided(t *testing.T, namespace, name string) (string, bool) {
	t.Helper()
	p := c.Find(t, placementGroup, "Placement", namespace, name)
	conditions, _ := kit.Field(p, "status", "conditions").([]any)
	var lines []string
	for _, of := range conditions {
		of := of.(map[string]any)
		lines = append(lines, fmt.Sprintf("%v %v %v: %v", of["type"], of["status"], of["reason"], of["message"]))
	}
	slices.Sort(lines)
	n := kit.Field(p, "status", "numberOfSelectedClusters")
	if n == nil {
		n = 0 // it is left out there
	}
	lines = append(lines, fmt.Sprintf("%v clusters", n))
	groups, _ := kit.Field(p, "status", "decisionGroups").([]any)
	for _, of := range groups {
		of := of.(map[string]any)
		lines = append(lines, fmt.Sprintf("group %v %v: %v in %v", of["decisionGroupIndex"], of["decisionGroupName"],
			of["clusterCount"], of["decisions"]))
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(placementGroup)
	list.SetKind("PlacementDecisionList")
	if err := c.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{
		"cluster.open-cluster-management.io/placement": name}); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		var clusters []string
		decisions, _ := kit.Field(d, "status", "decisions").([]any)
		for _, of := range decisions {
			clusters = append(clusters, fmt.Sprint(of.(map[string]any)["clusterName"]))
		}
		slices.Sort(clusters) // those of a group without a name have no order there
		labels := d.GetLabels()
		lines = append(lines, fmt.Sprintf("%s [%s %s]: %s", d.GetName(),
			labels["cluster.open-cluster-management.io/decision-group-index"],
			labels["cluster.open-cluster-management.io/decision-group-name"], strings.Join(clusters, " ")))
	}
	return strings.Join(lines, "\n"), len(conditions) == 2
}

// Open Cluster Management's own placement controller decides the same for the same objects.
func TestPlacementsChooseAsOpenClusterManagement(t *testing.T) {
	program := kit.Peers(t, "ocm-placement")[0]
	var definitions []string
	for _, name := range []string{"managedclusters", "managedclustersets", "managedclustersetbindings", "placements",
		"placementdecisions", "addonplacementscores"} {
		definitions = append(definitions, filepath.Join("..", "..", "api", "crds",
			"cluster.open-cluster-management.io_"+name+".yaml"))
	}
	m, c := bareMember(t, "ocm", definitions...)
	both := []chooser{{fleet.Hub, "the hub"}, {c, "Open Cluster Management"}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	m.Run(t, nil, program, "controller", "--kubeconfig="+m.Kubeconfig, "--disable-leader-election", "--listen="+address,
		"--namespace=default")

	ns := "placements-of-peers"
	apply := func(text string) {
		t.Helper()
		for _, to := range both {
			for _, u := range to.Apply(t, text) {
				to.RemoveAtEnd(t, u)
			}
		}
	}
	status := func(apiVersion, kind, namespace, name, text string) {
		t.Helper()
		want := kit.Object(t, "{apiVersion: v1, kind: Status, "+text+"}")
		for _, to := range both {
			kit.Eventually(t, "the status of "+name+" is written in "+to.name, func() string {
				u := to.Find(t, apiVersion, kind, namespace, name)
				is, _, _ := unstructured.NestedMap(u.Object, "status")
				if is == nil {
					is = map[string]any{}
				}
				for field, value := range want.Object["status"].(map[string]any) {
					is[field] = value
				}
				u.Object["status"] = is
				if err := to.Status().Update(t.Context(), u); err != nil {
					return err.Error()
				}
				return ""
			})
		}
	}
	apply("{apiVersion: v1, kind: Namespace, metadata: {name: " + ns + "}}")
	for name, of := range map[string][3]string{
		"p1": {"env: a", "{cpu: '4', memory: 8Gi}", "[{name: region, value: eu}]"},
		"p2": {"env: a", "{cpu: '8', memory: 4Gi}", "[{name: region, value: us}]"},
		"p3": {"env: b", "{cpu: '16', memory: 64Gi}", "[]"},
		"p4": {"env: b", "{cpu: 5500m, memory: 16Gi}", "[{name: region, value: eu}]"},
		"p5": {"env: c", "{cpu: '2', memory: 1Gi}", "[{name: region, value: ap}]"},
	} {
		apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}
---
{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: ` + name + `, labels: {` + of[0] +
			`, cluster.open-cluster-management.io/clusterset: peers}}, spec: {hubAcceptsClient: false}}`)
		status(clusterGroup, "ManagedCluster", "", name, `status: {conditions: [], version: {kubernetes: v1.34.0},
			allocatable: `+of[1]+`, capacity: `+of[1]+`, clusterClaims: `+of[2]+`}`)
	}
	for name, value := range map[string]string{"p1": "20", "p2": "-5", "p4": "90"} {
		apply(`{apiVersion: cluster.open-cluster-management.io/v1alpha1, kind: AddOnPlacementScore,
			metadata: {name: usage, namespace: ` + name + `}}`)
		status("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore", name, "usage",
			`status: {conditions: [], scores: [{name: gpu, value: `+value+`}]}`)
	}
	apply(`{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, metadata: {name: peers}}
---
{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, metadata: {name: peers-b},
 spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {env: b}}}}}`)

	// One after the other, because each balances those before it. The hub's clusters may have taints of its own.
	for i, spec := range []string{
		`{}`, // no set is bound yet
		`{numberOfClusters: 2}`,
		`{numberOfClusters: 2}`,
		`{numberOfClusters: 1}`,
		`{numberOfClusters: 9}`,
		`{numberOfClusters: 0}`,
		`{clusterSets: [peers-b]}`,
		`{clusterSets: [absent]}`,
		`{predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {env: a}}}}]}`,
		`{predicates: [{requiredClusterSelector: {claimSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}}},
			{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: env, operator: NotIn, values: [a, b]}]}}}]}`,
		`{predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {env: z}}}}]}`,
		`{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"managedCluster.status.clusterClaims.exists(c, c.name == 'region' && c.value == 'eu')"]}}}]}`,
		`{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"managedCluster.scores('usage').filter(s, s.name == 'gpu').all(s, s.value > 0)"]}}}]}`,
		`{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver('1.30.0'))"]}}}]}`, // a mistake
		`{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"semver(managedCluster.status.version.kubernetes.replace('v', '')).isGreaterThan(semver('1.30.0'))",
			"quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity('5'))"]}}}]}`,
		`{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"[managedCluster.metadata.name.reverse(), 1].size() == 2", "'{\"a\": [1]}'.parseJSON().a[0] == 1.0"]}}}]}`,
		`{numberOfClusters: 3, prioritizerPolicy: {mode: Exact, configurations: [
			{scoreCoordinate: {type: BuiltIn, builtIn: ResourceAllocatableCPU}, weight: 1}]}}`,
		`{numberOfClusters: 3, prioritizerPolicy: {mode: Exact, configurations: [
			{scoreCoordinate: {type: BuiltIn, builtIn: ResourceAllocatableMemory}, weight: -1}]}}`,
		`{numberOfClusters: 2, prioritizerPolicy: {configurations: [
			{scoreCoordinate: {type: BuiltIn, builtIn: ResourceAllocatableMemory}, weight: 2},
			{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: gpu}}, weight: 3}]}}`,
		`{numberOfClusters: 1, prioritizerPolicy: {mode: Exact, configurations: [
			{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: gpu}}, weight: -2},
			{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: gpu}}, weight: 3}]}}`,
		`{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 2}}}`,
		`{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 30%, decisionGroups: [
			{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {env: b}}}},
			{groupName: eu, groupClusterSelector: {claimSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}}}]}}}`,
		`{predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: env, operator: Near}]}}}]}`,
		`{prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: Spread}, weight: 1}]}}`,
		`{prioritizerPolicy: {mode: Some}}`,
		`{prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn}, weight: 1}]}}`,
		`{tolerations: [{operator: Equal}]}`,
		`{tolerations: [{key: k, operator: Exists, value: v}]}`,
	} {
		name := fmt.Sprintf("row-%02d", i)
		u := kit.Object(t, "{apiVersion: "+placementGroup+", kind: Placement, metadata: {name: "+name+", namespace: "+ns+
			"}, spec: "+spec+"}")
		if tolerations, found, _ := unstructured.NestedSlice(u.Object, "spec", "tolerations"); !found {
			if err := unstructured.SetNestedSlice(u.Object, append(tolerations, map[string]any{"operator": "Exists"}), "spec",
				"tolerations"); err != nil {
				t.Fatal(err)
			}
		}
		for _, to := range both {
			if err := to.Create(t.Context(), u.DeepCopy()); err != nil {
				t.Fatalf("%s in %s: %v", name, to.name, err)
			}
		}
		kit.Eventually(t, name+" "+spec+" is decided alike by both", func() string {
			var got [2]string
			for i, by := range both {
				done := false
				if got[i], done = by.decided(t, ns, name); !done {
					return by.name + " has not: " + got[i]
				}
			}
			if got[0] != got[1] {
				return fmt.Sprintf("the hub decides\n%s\nand Open Cluster Management\n%s", got[0], got[1])
			}
			return ""
		})
		if i == 0 {
			apply(`{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding,
				metadata: {name: peers, namespace: ` + ns + `}, spec: {clusterSet: peers}}
---
{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding,
 metadata: {name: peers-b, namespace: ` + ns + `}, spec: {clusterSet: peers-b}}`)
			for _, to := range both {
				kit.Eventually(t, "the first Placement follows the bindings in "+to.name, func() string {
					got, _ := to.decided(t, ns, name)
					if !strings.Contains(got, "5 clusters") {
						return got
					}
					return ""
				})
			}
		}
	}
	for _, to := range both { // they would keep the namespace of the hub busy
		if err := to.DeleteAllOf(t.Context(), kit.Object(t, "{apiVersion: "+placementGroup+", kind: Placement}"),
			client.InNamespace(ns), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Error(err)
		}
	}
}
