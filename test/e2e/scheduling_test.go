package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/why"
	"github.com/argosy-io/argosy/test/kit"
)

// divided is a replicaScheduling that divides by some preference.
func divided(preference string) string {
	return "replicaScheduling: {replicaSchedulingType: Divided, " + preference + "}"
}

const (
	byStaticWeights = `replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [m1]}, weight: 3}, {targetCluster: {clusterNames: [m2]}, weight: 2}, {targetCluster: {clusterNames: [m3]}, weight: 1}]}`
	byRoom = "replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}"
	packed = "replicaDivisionPreference: Aggregated"
)

// room makes, in each member, a node with room for nine replicas of what is hungry in this namespace, and for nothing else, and
// waits until the hub knows all three.
func room(t *testing.T, ns string) {
	t.Helper()
	for name, m := range fleet.Members {
		node(t, m, name+"-"+ns, "cpu: 1, pods: 100, example.com/"+ns+": 9", ns)
	}
	for name := range fleet.Members {
		kit.Eventually(t, "the hub sees the node in "+name, func() string {
			if r := clusterOf(t, name).Status.ResourceSummary; r == nil || r.Allocatable.Name(corev1.ResourceName("example.com/"+ns), resource.DecimalSI).Value() != 9 {
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

// hungry is a Deployment of which a member has room for nine, on the node that is there for its namespace alone (see room). It is paused.
func hungry(ns, name string, replicas int) string {
	own := "example.com/" + ns
	return strings.NewReplacer("{cpu: 10m, memory: 16Mi}", "{"+own+": 1}, limits: {"+own+": 1}", "      containers:",
		"      tolerations: [{key: "+ns+", operator: Exists}]\n      containers:", "spec:\n  replicas", "spec:\n  paused: true\n  replicas").
		Replace(deployment(ns, name, replicas, "example.com/web:1"))
}

func TestReplicasGoWhereTheirPlacementSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, placement string
		replicas        int
		want            string
	}{
		{"duplicated into each cluster", "{clusterAffinity: {clusterNames: [m1, m3]}}", 3, "m1:3 m3:3"},
		{"six over weights 3:2:1", "{" + divided(byStaticWeights) + "}", 6, "m1:3 m2:2 m3:1"},
		{"seven over weights 3:2:1", "{" + divided(byStaticWeights) + "}", 7, "m1:4 m2:2 m3:1"},
		{"eight over weights 3:2:1", "{" + divided(byStaticWeights) + "}", 8, "m1:4 m2:3 m3:1"},
		{"equal weights", "{" + divided("replicaDivisionPreference: Weighted") + "}", 6, "m1:2 m2:2 m3:2"},
		{"dynamic weights where all have the same room", "{" + divided(byRoom) + "}", 6, "m1:2 m2:2 m3:2"},
		{"a spread constraint bounds the clusters", "{clusterAffinity: {clusterNames: [m2, m3]}, spreadConstraints: [{spreadByField: cluster, maxGroups: 1, minGroups: 1}]}", 2, "m2:2"},
		{"two regions of three", "{spreadConstraints: [{spreadByField: region, minGroups: 2, maxGroups: 2}, {spreadByField: cluster, minGroups: 2}]}", 2, "m1:2 m3:2"},
		{"weights in the two heaviest regions", "{spreadConstraints: [{spreadByField: region, minGroups: 2, maxGroups: 2}, {spreadByField: cluster, minGroups: 2}], " + divided(byStaticWeights) + "}", 5, "m1:3 m2:2"},
		{"all but one excluded", "{clusterAffinity: {exclude: [m1, m3]}}", 2, "m2:2"},
		{"by region", "{clusterAffinity: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [us-east, ap-south]}]}}}", 1, "m2:1 m3:1"},
		{"not by region", "{clusterAffinity: {fieldSelector: {matchExpressions: [{key: region, operator: NotIn, values: [us-east]}]}}}", 1, "m1:1 m3:1"},
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
			is(t, "the clusters and replicas", tt.want, func() string { return shares(t, ns, "web-deployment") })
			kit.Eventually(t, "the status says so", func() string {
				b := binding(t, ns, "web-deployment")
				if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled) || b.Status.SchedulerObservedGeneration != b.Generation {
					return fmt.Sprintf("generation %d, status %+v", b.Generation, b.Status)
				}
				return ""
			})
			for _, share := range strings.Fields(tt.want) {
				member, n, _ := strings.Cut(share, ":")
				is(t, member+" gets its share", n, func() string {
					return fmt.Sprint(inMember(t, member, "apps/v1", "Deployment", ns, "web", "spec", "replicas"))
				})
			}
		})
	}
}

func TestAggregatedReplicasUseAsFewClustersAsHaveRoom(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	room(t, ns)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{"+divided(packed)+"}"))
	clusters := func(name string) func() int {
		return func() int {
			b := binding(t, ns, name+"-deployment")
			if b == nil {
				return 0
			}
			return len(b.Spec.Clusters)
		}
	}
	fleet.Hub.Apply(t, hungry(ns, "small", 6))
	is(t, "one cluster has room for six", 1, clusters("small"))
	first := shares(t, ns, "small-deployment")
	scale(t, ns, "small", 8)
	is(t, "two more go to the same", strings.Replace(first, ":6", ":8", 1), func() string { return shares(t, ns, "small-deployment") })
	fleet.Hub.Apply(t, hungry(ns, "web", 11))
	is(t, "eleven need two", 2, clusters("web"))
	scale(t, ns, "web", 1000)
	kit.Eventually(t, "a thousand fit nowhere, and it says so", func() string { return unscheduled(t, ns, "web", "Unschedulable", "are not enough to schedule") })
	if got := clusters("web")(); got != 2 {
		t.Errorf("what runs is in %d clusters, want it to stay", got)
	}
	scale(t, ns, "web", 5)
	kit.Eventually(t, "five fit again", func() string {
		b := binding(t, ns, "web-deployment")
		sum := int32(0)
		for _, c := range b.Spec.Clusters {
			sum += c.Replicas
		}
		if sum != 5 || !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled) {
			return fmt.Sprintf("%s, conditions %+v", shares(t, ns, "web-deployment"), b.Status.Conditions)
		}
		return ""
	})
}

// unscheduled says what is wrong unless the binding's condition says that it was not scheduled, with a reason and text.
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

func TestScalingMovesNothingUnlessAFreshScheduleIsAskedFor(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	room(t, ns)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1]}, "+divided(byRoom)+"}"))
	fleet.Hub.Apply(t, hungry(ns, "web", 4))
	now := func() string { return shares(t, ns, "web-deployment") }
	is(t, "all are in the only cluster", "m1:4", now)
	changeSpec(t, "PropagationPolicy", ns, "p", []any{"m1", "m2"}, "placement", "clusterAffinity", "clusterNames")
	kit.Stays(t, "another cluster takes nothing", quiet, func() string {
		if got := now(); got != "m1:4" {
			return got
		}
		return ""
	})
	scale(t, ns, "web", 5)
	kit.Eventually(t, "a fifth replica goes somewhere, the four stay", func() string {
		if got := now(); got != "m1:4 m2:1" && got != "m1:5" {
			return "it is " + got
		}
		return ""
	})
	scale(t, ns, "web", 2)
	kit.Eventually(t, "what is taken away is not moved", func() string {
		if got := now(); got != "m1:2" && got != "m1:1 m2:1" {
			return "it is " + got
		}
		return ""
	})
	scale(t, ns, "web", 6)
	kit.Eventually(t, "six are placed", func() string {
		b := binding(t, ns, "web-deployment")
		if c := b.Spec.Clusters; len(c) != 2 || c[0].Replicas+c[1].Replicas != 6 || b.Status.LastScheduledTime == nil {
			return "they are " + now()
		}
		return ""
	})
	// The time has seconds, and must be later than the last schedule.
	time.Sleep(1100 * time.Millisecond)
	fleet.Hub.Change(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "web-deployment", func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["rescheduleTriggeredAt"] = time.Now().UTC().Format(time.RFC3339)
	})
	is(t, "a fresh schedule evens out", "m1:3 m2:3", now)
}

func TestWhatFitsNoClusterSaysWhyAndGoesWhenOneFits(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {labelSelector: {matchLabels: {"+ns+": here}}}}"))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	const why = "0/3 clusters are available: 3 cluster(s) did not match the placement cluster affinity constraint."
	kit.Eventually(t, "the binding says why", func() string { return unscheduled(t, ns, "web", "NoClusterFit", why) })
	kit.Eventually(t, "so does the template, to its users", func() string {
		if told := fleet.Hub.Told(t, "Deployment", ns, "web", workv1alpha2.EventScheduleBindingFailed); len(told) != 1 || !strings.HasPrefix(told[0], why+" To fit: ") {
			return fmt.Sprintf("it says %q", told)
		}
		return ""
	})
	label(t, "m2", ns, "here")
	is(t, "it goes to the cluster that gets the label", "m2:1", func() string { return shares(t, ns, "web-deployment") })
	label(t, "m3", ns, "here")
	is(t, "and to the next", "m2:1 m3:1", func() string { return shares(t, ns, "web-deployment") })
	label(t, "m2", ns, "")
	is(t, "and leaves the one that loses it", "m3:1", func() string { return shares(t, ns, "web-deployment") })
	kit.Eventually(t, "its member has it no more", func() string { return holds(t, "apps/v1", "Deployment", ns, "web", "m3") })
}

func TestTooFewClustersForASpreadConstraint(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{spreadConstraints: [{spreadByField: cluster, minGroups: 4, maxGroups: 5}]}"))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	kit.Eventually(t, "the binding says so", func() string {
		return unscheduled(t, ns, "web", "SchedulerError", "the number of feasible clusters is less than spreadConstraint.MinGroups")
	})
}

// Not side by side with others: a tainted cluster concerns them all.
func TestATaintedClusterTakesOnlyWhatToleratesItAndKeepsWhatItHas(t *testing.T) {
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m3")))
	fleet.Hub.Apply(t, configMap(ns, "before", "1"))
	kit.Eventually(t, "it is there", func() string { return applied(t, ns, "before-configmap", "m3") })

	taints := func(all ...any) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["taints"] = all }
	}
	changeCluster(t, "m3", taints(map[string]any{"key": "maintenance", "value": "soon", "effect": "NoSchedule"}), taints())
	fleet.Hub.Apply(t, policy(ns, "d", "apps/v1", "Deployment", "{}"))
	fleet.Hub.Apply(t, propagation(ns, "tolerant", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: tough}],
		placement: {clusterTolerations: [{key: maintenance, operator: Exists}]}}`))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	fleet.Hub.Apply(t, deployment(ns, "tough", 1, "example.com/web:1"))
	fleet.Hub.Apply(t, configMap(ns, "after", "1"))
	is(t, "who does not tolerate it stays away", "m1:1 m2:1", func() string { return shares(t, ns, "web-deployment") })
	is(t, "who tolerates it goes there", "m1:1 m2:1 m3:1", func() string { return shares(t, ns, "tough-deployment") })
	kit.Eventually(t, "who can go nowhere else says why", func() string {
		b := binding(t, ns, "after-configmap")
		if b == nil {
			return "there is no binding"
		}
		c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
		if c == nil || c.Reason != "NoClusterFit" || !strings.Contains(c.Message, "1 cluster(s) had untolerated taint {maintenance=soon:NoSchedule}") {
			return fmt.Sprintf("the condition is %+v", c)
		}
		return ""
	})
	setData(t, ns, "before", "2")
	is[any](t, "what was there stays, and is kept up to date", "2", func() any {
		return inMember(t, "m3", "v1", "ConfigMap", ns, "before", "data", "key")
	})
	fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", "m3", taints())
	is(t, "without the taint it takes all", "m1:1 m2:1 m3:1", func() string { return shares(t, ns, "web-deployment") })
	kit.Eventually(t, "also what waited", func() string { return applied(t, ns, "after-configmap", "m3") })
}

func TestAWorkloadMayBeScaledToNothingAndBack(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1, m2]}, "+divided("replicaDivisionPreference: Weighted")+"}"))
	fleet.Hub.Apply(t, deployment(ns, "web", 2, "example.com/web:1"))
	replicas := func() string {
		return fmt.Sprint(inMember(t, "m1", "apps/v1", "Deployment", ns, "web", "spec", "replicas"), " ",
			inMember(t, "m2", "apps/v1", "Deployment", ns, "web", "spec", "replicas"))
	}
	is(t, "each has one", "1 1", replicas)
	scale(t, ns, "web", 0)
	kit.Eventually(t, "no replica is left anywhere", func() string {
		if got := replicas(); strings.Contains(got, "1") {
			return got
		}
		for _, m := range []string{"m1", "m2"} {
			if n := kit.Field(fleet.Members[m].Find(t, "apps/v1", "Deployment", ns, "web"), "status", "replicas"); n != nil && n != int64(0) {
				return fmt.Sprintf("%s has %v pods", m, n)
			}
		}
		return ""
	})
	said := func(name string) func() string {
		return func() string {
			u := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, name)
			if n := kit.Field(u, "status", "readyReplicas"); n != nil && n != int64(0) || !argoHealthy(u) {
				return fmt.Sprintf("generation %d, status %v", u.GetGeneration(), kit.Field(u, "status"))
			}
			return ""
		}
	}
	kit.Eventually(t, "the template says so", said("web"))
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/web:2"
	})
	kit.Eventually(t, "also of a change meanwhile", said("web"))
	fleet.Hub.Apply(t, deployment(ns, "none", 0, "example.com/web:1"))
	kit.Eventually(t, "and of one that begins with nothing", said("none"))
	scale(t, ns, "web", 4)
	is(t, "each has two", "2 2", replicas)
	kit.Eventually(t, "all are ready", func() string {
		if n := kit.Field(fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web"), "status", "readyReplicas"); n != int64(4) {
			return fmt.Sprint(n)
		}
		return ""
	})
}

// A member's own autoscaler scales what has the label, and only that.
func TestReplicasAreLeftToTheMemberWhereTheTemplateSaysSo(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", to("m1")))
	fleet.Hub.Apply(t, strings.Replace(deployment(ns, "free", 1, "example.com/web:1"), "labels: {app: free}}\nspec", "labels: {app: free, resourcetemplate.karmada.io/retain-replicas: \"true\"}}\nspec", 1))
	fleet.Hub.Apply(t, deployment(ns, "bound", 1, "example.com/web:1"))
	for _, name := range []string{"free", "bound"} {
		kit.Eventually(t, name+" is sent", func() string { return applied(t, ns, name+"-deployment", "m1") })
		fleet.Members["m1"].Change(t, "apps/v1", "Deployment", ns, name, func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["replicas"] = int64(3)
		})
	}
	replicas := func(name string) func() any {
		return func() any { return inMember(t, "m1", "apps/v1", "Deployment", ns, name, "spec", "replicas") }
	}
	is[any](t, "the bound one the hub corrects it", int64(1), replicas("bound"))
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "free", func(u *unstructured.Unstructured) {
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/web:2"
	})
	is[any](t, "the free one follows in all else", "example.com/web:2", func() any { return container(t, "m1", "apps/v1", "Deployment", ns, "free", "image") })
	kit.Stays(t, "and keeps its replicas", quiet, func() string {
		if got := replicas("free")(); got != int64(3) {
			return fmt.Sprintf("it has %v", got)
		}
		return ""
	})
}

func TestADividedJobSharesItsCompletions(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "batch/v1", "Job", "{clusterAffinity: {clusterNames: [m1, m2]}, "+divided("replicaDivisionPreference: Weighted")+"}"))
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: %s}, spec: {completions: 6, parallelism: 4,
		template: {spec: {restartPolicy: Never, containers: [{name: c, image: "example.com/x:1", resources: {requests: {cpu: 10m}}}]}}}}`, ns))
	kit.Eventually(t, "it is done, six times in all", func() string {
		u := fleet.Hub.Find(t, "batch/v1", "Job", ns, "x")
		if kit.Field(u, "status", "succeeded") != int64(6) {
			return fmt.Sprint(kit.Field(u, "status"))
		}
		return ""
	})
	for _, m := range []string{"m1", "m2"} {
		if p, c := inMember(t, m, "batch/v1", "Job", ns, "x", "spec", "parallelism"), inMember(t, m, "batch/v1", "Job", ns, "x", "spec", "completions"); p != int64(2) || c != int64(3) {
			t.Errorf("%s has parallelism %v and completions %v, want 2 and 3", m, p, c)
		}
	}
}

func TestADivisionMayBecomeADuplicationAndBack(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{"+divided(byStaticWeights)+"}"))
	fleet.Hub.Apply(t, hungry(ns, "web", 6))
	now := func() string { return shares(t, ns, "web-deployment") }
	is(t, "it is divided", "m1:3 m2:2 m3:1", now)
	changeSpec(t, "PropagationPolicy", ns, "p", map[string]any{"replicaSchedulingType": "Duplicated"}, "placement", "replicaScheduling")
	is(t, "it is duplicated", "m1:6 m2:6 m3:6", now)
	changeSpec(t, "PropagationPolicy", ns, "p", map[string]any{"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}, "placement", "replicaScheduling")
	is(t, "it is divided otherwise", "m1:2 m2:2 m3:2", now)
}

// Two nodes have a slot left each: together they would do for a pod that takes two, and none does alone.
func TestAReplicaGoesOnlyWhereANodeHasRoomForIt(t *testing.T) {
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
		if s == nil || s.Allocatable.Name(name, resource.DecimalSI).Value() != 6 || s.Allocated.Name(name, resource.DecimalSI).Value() != 4 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1]}, "+divided(byRoom)+"}"))
	two := strings.NewReplacer("  paused: true\n", "", "/"+ns+": 1}", "/"+ns+": 2}")
	fleet.Hub.Apply(t, two.Replace(hungry(ns, "web", 1)))
	kit.Eventually(t, "it is not sent where it fits no node", func() string {
		return unscheduled(t, ns, "web", "Unschedulable", "Clusters available replicas 0 are not enough to schedule.")
	})

	// Who is asked why knows the nodes, too.
	out, complaint := explain(t, "deploy", "web", "-n", ns, "-o", "json")
	var answer why.Answer
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Placement == nil || !strings.Contains(answer.Placement.Failure, "available replicas 0 are not enough") {
		t.Errorf("why says %s%s", out, complaint)
	}

	m1.Remove(t, "v1", "Pod", ns, "b")
	is(t, "it goes when a node has room", "m1:1", func() string { return shares(t, ns, "web-deployment") })
	kit.Eventually(t, "and runs", func() string {
		if n := kit.Field(fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web"), "status", "readyReplicas"); n != int64(1) {
			return fmt.Sprint(n)
		}
		return ""
	})
	fleet.Hub.Apply(t, two.Replace(hungry(ns, "late", 1)))
	kit.Eventually(t, "the next finds that room taken", func() string { return unscheduled(t, ns, "late", "Unschedulable", "are not enough to schedule") })
	fleet.Hub.Remove(t, "apps/v1", "Deployment", ns, "web")
	is(t, "and gets it when the first is gone", "m1:1", func() string { return shares(t, ns, "late-deployment") })
}
