package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/test/kit"
)

// divided is a replicaScheduling that divides by some preference.
func divided(preference string) string {
	return "replicaScheduling: {replicaSchedulingType: Divided, " + preference + "}"
}

const (
	byStaticWeights = `replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [m1]}, weight: 3}, {targetCluster: {clusterNames: [m2]}, weight: 2}, {targetCluster: {clusterNames: [m3]}, weight: 1}]}`
	// members are named where another story may have a cluster join meanwhile.
	members = "clusterAffinity: {clusterNames: [m1, m2, m3]}"
	byRoom  = "replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}"
)

// room makes, in each member, a node with room for nine replicas of what is hungry in this namespace, and for nothing
// else, and waits until the hub knows all three.
func room(t *testing.T, ns string) {
	t.Helper()
	for name, m := range fleet.Members {
		node(t, m, name+"-"+ns, "cpu: 1, pods: 100, example.com/"+ns+": 9", ns)
	}
	for name := range fleet.Members {
		kit.Eventually(t, "the hub sees the node in "+name, func() string {
			if r := clusterOf(t, name).Status.ResourceSummary; r == nil ||
				r.Allocatable.Name(corev1.ResourceName("example.com/"+ns), resource.DecimalSI).Value() != 9 {
				return fmt.Sprintf("%+v", r)
			}
			return ""
		})
	}
}

// node makes a fake node that has what is given, for those alone that tolerate the taint.
func node(t *testing.T, m kit.Cluster, name, has, taint string) {
	t.Helper()
	m.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, annotations: {kwok.x-k8s.io/node: fake}, labels: {type: kwok}},
		spec: {taints: [{key: %s, effect: NoSchedule}]}, status: {phase: Running, capacity: {%[3]s}, allocatable: {%[3]s},
		conditions: [{type: Ready, status: "True", reason: KubeletReady, message: fake}]}}`, name, taint, has))
}

// hungry is a Deployment of which a member has room for nine, on the node that is there for its namespace alone (see
// room). It is paused.
func hungry(ns, name string, replicas int) string {
	own := "example.com/" + ns
	return strings.NewReplacer("{cpu: 10m, memory: 16Mi}", "{"+own+": 1}, limits: {"+own+": 1}", "      containers:",
		"      tolerations: [{key: "+ns+", operator: Exists}]\n      containers:", "spec:\n  replicas",
		"spec:\n  paused: true\n  replicas").
		Replace(deployment(ns, name, replicas, "example.com/web:1"))
}

func TestReplicasFollowPlacement(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, placement string
		replicas        int
		want            string
	}{
		{"six over weights 3:2:1", "{" + members + ", " + divided(byStaticWeights) + "}", 6, "m1:3 m2:2 m3:1"},
		{"dynamic weights where all have the same room", "{" + members + ", " + divided(byRoom) + "}", 6, "m1:2 m2:2 m3:2"},
		{"two regions of three", "{" + members +
			", spreadConstraints: [{spreadByField: region, minGroups: 2, maxGroups: 2}, {spreadByField: cluster, minGroups: 2}]}", 2, "m1:2 m3:2"},
		{"not by region", "{clusterAffinity: {clusterNames: [m1, m2, m3], fieldSelector: {matchExpressions: [{key: region, operator: NotIn, values: [us-east]}]}}}", 1, "m1:1 m3:1"},
		{"the first affinity that fits", "{clusterAffinities: [{affinityName: none, clusterNames: [m9]}, {affinityName: some, clusterNames: [m3]}]}", 1, "m3:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := fleet.Namespace(t)
			if strings.Contains(tt.placement, "spread") || strings.Contains(tt.placement, byRoom) {
				room(t, ns)
			}
			fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", tt.placement))
			fleet.Hub.Apply(t, hungry(ns, "web", tt.replicas))
			waitFor(t, "the clusters and replicas", tt.want, func() string { return shares(t, ns, "web-deployment") })
			kit.Eventually(t, "the status says so", func() string {
				b := binding(t, ns, "web-deployment")
				if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled) ||
					b.Status.SchedulerObservedGeneration != b.Generation {
					return fmt.Sprintf("generation %d, status %+v", b.Generation, b.Status)
				}
				return ""
			})
			for _, share := range strings.Fields(tt.want) {
				member, n, _ := strings.Cut(share, ":")
				waitFor(t, member+" gets its share", n, func() string {
					return fmt.Sprint(inMember(t, member, "apps/v1", "Deployment", ns, "web", "spec", "replicas"))
				})
			}
		})
	}
}

// unscheduled returns what is wrong unless the binding's condition Scheduled is False with this reason and text.
func unscheduled(t *testing.T, ns, deployment, reason, text string) string {
	t.Helper()
	b := binding(t, ns, deployment+"-deployment")
	if b == nil {
		return "there is no binding"
	}
	c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
	if c == nil || c.Status != "False" || c.Reason != reason || !strings.Contains(c.Message, text) {
		return fmt.Sprintf("the condition is %+v", c)
	}
	return ""
}

func TestUnschedulableReportsReasonUntilClusterFits(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {labelSelector: {matchLabels: {"+ns+
		": here}}}}"))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	const why = "cluster(s) did not match the placement cluster affinity constraint."
	kit.Eventually(t, "the binding says why", func() string { return unscheduled(t, ns, "web", "NoClusterFit", why) })
	kit.Eventually(t, "so does the template, to its users", func() string {
		if messages := fleet.Hub.Messages(t, "Deployment", ns, "web",
			workv1alpha2.EventScheduleBindingFailed); len(messages) == 0 ||
			!strings.Contains(messages[0], why+" To fit: ") {
			return fmt.Sprintf("it says %q", messages)
		}
		return ""
	})
	label(t, "m2", ns, "here")
	waitFor(t, "it goes to the cluster that gets the label", "m2:1",
		func() string { return shares(t, ns, "web-deployment") })
	label(t, "m3", ns, "here")
	waitFor(t, "and to the next", "m2:1 m3:1", func() string { return shares(t, ns, "web-deployment") })
	label(t, "m2", ns, "")
	waitFor(t, "and leaves the one that loses it", "m3:1", func() string { return shares(t, ns, "web-deployment") })
	kit.Eventually(t, "its member has it no more", func() string {
		return lacks(t, "apps/v1", "Deployment", ns, "web", "m3")
	})
}

func TestAWorkloadMayBeScaledToNothingAndBack(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1, m2]}, "+
		divided("replicaDivisionPreference: Weighted")+"}"))
	fleet.Hub.Apply(t, deployment(ns, "web", 2, "example.com/web:1"))
	replicas := func() string {
		return fmt.Sprint(inMember(t, "m1", "apps/v1", "Deployment", ns, "web", "spec", "replicas"), " ",
			inMember(t, "m2", "apps/v1", "Deployment", ns, "web", "spec", "replicas"))
	}
	waitFor(t, "each has one", "1 1", replicas)
	scale(t, ns, "web", 0)
	kit.Eventually(t, "no replica is left anywhere", func() string {
		if got := replicas(); strings.Contains(got, "1") {
			return got
		}
		for _, m := range []string{"m1", "m2"} {
			if n := kit.Field(fleet.Members[m].Find(t, "apps/v1", "Deployment", ns, "web"), "status", "replicas"); n != nil &&
				n != int64(0) {
				return fmt.Sprintf("%s has %v pods", m, n)
			}
		}
		return ""
	})
	output := func(name string) func() string {
		return func() string {
			u := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, name)
			if n := kit.Field(u, "status", "readyReplicas"); n != nil && n != int64(0) || !argoHealthy(u) {
				return fmt.Sprintf("generation %d, status %v", u.GetGeneration(), kit.Field(u, "status"))
			}
			return ""
		}
	}
	kit.Eventually(t, "the template says so", output("web"))
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/web:2"
	})
	kit.Eventually(t, "also of a change meanwhile", output("web"))
	fleet.Hub.Apply(t, deployment(ns, "none", 0, "example.com/web:1"))
	kit.Eventually(t, "and of one that begins with nothing", output("none"))
	scale(t, ns, "web", 4)
	waitFor(t, "each has two", "2 2", replicas)
	kit.Eventually(t, "all are ready", func() string {
		if n := kit.Field(fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web"), "status", "readyReplicas"); n != int64(4) {
			return fmt.Sprint(n)
		}
		return ""
	})
}

// Two nodes have a slot left each: together they would do for a pod that takes two, and none does alone.
func TestReplicaNeedsRoomOnOneNode(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	own, m1 := "example.com/"+ns, fleet.Members["m1"]
	kit.Eventually(t, "the namespace is there and takes pods", func() string {
		if m1.Find(t, "v1", "ServiceAccount", ns, "default") == nil {
			return "it has no service account"
		}
		return ""
	})
	for _, n := range []string{"a", "b"} {
		node(t, m1, ns+"-"+n, "cpu: 1, pods: 100, "+own+": 3", ns)
		m1.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %[2]s, namespace: %[1]s}, spec: {nodeName: %[1]s-%[2]s, terminationGracePeriodSeconds: 0,
			tolerations: [{operator: Exists}], containers: [{name: c, image: "example.com/x:1", resources: {requests: {%[3]s: 2}, limits: {%[3]s: 2}}}]}}`, ns, n, own))
	}
	kit.Eventually(t, "the hub sees two slots that are free", func() string {
		s, name := clusterOf(t, "m1").Status.ResourceSummary, corev1.ResourceName(own)
		if s == nil || s.Allocatable.Name(name, resource.DecimalSI).Value() != 6 ||
			s.Allocated.Name(name, resource.DecimalSI).Value() != 4 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1]}, "+divided(byRoom)+
		"}"))
	two := strings.NewReplacer("  paused: true\n", "", "/"+ns+": 1}", "/"+ns+": 2}")
	fleet.Hub.Apply(t, two.Replace(hungry(ns, "web", 1)))
	kit.Eventually(t, "it is not sent where it fits no node", func() string {
		return unscheduled(t, ns, "web", "Unschedulable", "Clusters available replicas 0 are not enough to schedule.")
	})

	// Who is asked why knows the nodes, too.
	out, complaint := explain(t, "deploy", "web", "-n", ns, "-o", "json")
	var answer why.Answer
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Placement == nil ||
		!strings.Contains(answer.Placement.Failure, "available replicas 0 are not enough") {
		t.Errorf("why says %s%s", out, complaint)
	}

	m1.Remove(t, "v1", "Pod", ns, "b")
	waitFor(t, "it goes when a node has room", "m1:1", func() string { return shares(t, ns, "web-deployment") })
	kit.Eventually(t, "and runs", func() string {
		if n := kit.Field(fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web"), "status", "readyReplicas"); n != int64(1) {
			return fmt.Sprint(n)
		}
		return ""
	})
	fleet.Hub.Apply(t, two.Replace(hungry(ns, "late", 1)))
	kit.Eventually(t, "the next finds that room taken", func() string {
		return unscheduled(t, ns, "late", "Unschedulable", "are not enough to schedule")
	})
	fleet.Hub.Remove(t, "apps/v1", "Deployment", ns, "web")
	waitFor(t, "and gets it when the first is gone", "m1:1", func() string { return shares(t, ns, "late-deployment") })
}
