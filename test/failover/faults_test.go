package failover

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// faults are those of one member. Each has a member of its own, and all are at once.
var faults = map[string]func(*testing.T){
	"killed": killed,
	"frozen": frozen,
	"slow":   slow,
	"answers lost": func(t *testing.T) {
		oneDirection(t, "deaf-hub", "the member's answers are lost", network{toHubStopped: true})
	},
	"requests lost": func(t *testing.T) {
		oneDirection(t, "deaf-member", "the hub's requests are lost", network{toMemberStopped: true})
	},
	"clock ahead":        func(t *testing.T) { otherClock(t, "ahead", "clock 1 h ahead, then lost", time.Hour) },
	"clock behind":       func(t *testing.T) { otherClock(t, "behind", "clock 1 h behind, then lost", -time.Hour) },
	"flapping":           flapping,
	"nothing fits":       nothingFits,
	"policies":           policies,
	"other pods":         otherPods,
	"an older backup":    olderBackup,
	"next affinity term": nextTerm,
}

// victim is a member that a fault is about, and the network between it and the hub.
type victim struct {
	*sim.Running
	client kit.Cluster
	link   *link
}

// start runs a member that has not joined.
func start(t *testing.T, name string) *victim {
	t.Helper()
	ctx, cancel := within(startTimeout)
	defer cancel()
	// Its nodes are larger than those of home, so that a workload that is not divided goes there.
	s, err := sim.Start(ctx, sim.Options{Binary: fleet.Lab.Hub.Binary, Dir: filepath.Join(folder, "own"),
		Members: []sim.Member{{Name: name, Nodes: 3, NodeCPU: "64"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	v := &victim{Running: s.Members()[0]}
	config, err := v.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if v.client, err = kit.Connect(name, config); err != nil {
		t.Fatal(err)
	}
	v.link = newLink(t, address(v.Running))
	return v
}

// joined is a member that has joined through its link.
func joined(t *testing.T, name string) *victim {
	t.Helper()
	v := start(t, name)
	join(t, v, nil)
	return v
}

// join adds a member to the fleet. authority is that of the server at the end of its link, if it is not the member's
// own.
func join(t *testing.T, v *victim, authority []byte) {
	t.Helper()
	ctx, cancel := within(startTimeout)
	defer cancel()
	out, err := fleet.Argosy(ctx, "join", v.Name, "--cluster-kubeconfig", v.link.kubeconfig(t, v.Running, authority))
	if err != nil {
		t.Fatalf("join %s: %v\n%s", v.Name, err, out)
	}
	kit.Eventually(t, v.Name+" is Ready", func() string { return status(t, v.Name, metav1.ConditionTrue) })
}

// status returns what is wrong if a cluster's condition Ready has another status.
func status(t *testing.T, name string, want metav1.ConditionStatus) string {
	t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		return err.Error()
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Status != want {
		return fmt.Sprintf("cluster %s: Ready is %+v", name, ready)
	}
	return ""
}

// policy sends a Deployment to clusters, and has it leave lost ones.
func policy(ns, name, placement string) string {
	return fmt.Sprintf(`
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: %[2]s}]
  failover: {cluster: {purgeMode: Gracefully}}
  placement: {%[3]s}`, ns, name, placement)
}

// deployment is a template whose pods request an amount of CPU. Its rollouts make no additional pods, so that more
// ready pods than its replicas are a fault.
func deployment(ns, name string, replicas int32, cpu, more string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: %[3]d
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: c, image: "example.com/app:1", resources: {requests: {cpu: %[4]s}}%[5]s}]}`, ns, name, replicas, cpu, more)
}

const (
	divided    = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}"
	aggregated = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"
)

// inVictimOrHome is a placement in a member and home.
func inVictimOrHome(v *victim, more string) string {
	return fmt.Sprintf("clusterAffinity: {clusterNames: [%s, %s]}, %s", v.Name, home, more)
}

// newWorkloads places two Deployments: half of the replicas of web run in the member, the others at home, and all of
// solo, with the ConfigMap that it needs, in the member.
func newWorkloads(t *testing.T, v *victim, more string) *drill {
	t.Helper()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: %s}\ndata: {a: b}", ns)+
		policy(ns, "web", inVictimOrHome(v, divided+more))+deployment(ns, "web", 4, "100m", "")+
		policy(ns, "solo", inVictimOrHome(v, aggregated+more))+
		deployment(ns, "solo", 2, "1", ", envFrom: [{configMapRef: {name: settings}}]"))
	d := newDrill(t, fleet, ns, []kit.Cluster{v.client, fleet.Members[home]}, []string{v.Name},
		map[string]int32{"web": 4, "solo": 2})
	kit.Eventually(t, "the ConfigMap that solo needs is in the member", func() string {
		if v.client.Find(t, "v1", "ConfigMap", ns, "settings") == nil {
			return "it is not there"
		}
		return ""
	})
	if got, err := d.copies(v.client); err != nil || got["solo"].spec != 2 || got["web"].spec != 2 {
		t.Fatalf("%s has %v (%v), want 2 replicas of each", v.Name, got, err)
	}
	return d
}

// moves expects what a lost member leads to: all its workloads move home, with what they need.
func moves(d *drill) {
	d.t.Helper()
	d.noticed()
	d.replaced()
	if fleet.Members[home].Find(d.t, "v1", "ConfigMap", d.ns, "settings") == nil {
		d.t.Error("the ConfigMap that solo needs is not in its new cluster")
	}
}

func (v *victim) restart(t *testing.T) {
	t.Helper()
	ctx, cancel := within(startTimeout)
	defer cancel()
	if err := v.Restart(ctx); err != nil {
		t.Fatal(err)
	}
}

func (v *victim) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(v.PID(), s); err != nil {
		t.Fatal(err)
	}
}

func killed(t *testing.T) {
	v := joined(t, "killed")
	d := newWorkloads(t, v, "")
	d.breaks(silent, v.Kill)
	moves(d)
	d.mends(func() { v.restart(t) })
	d.back()
	d.ends("API server killed", false)
}

func frozen(t *testing.T) {
	v := joined(t, "frozen")
	d := newWorkloads(t, v, "")
	d.breaks(silent, func() { v.signal(t, syscall.SIGSTOP) })
	moves(d)
	d.mends(func() { v.signal(t, syscall.SIGCONT) })
	d.back()
	d.ends("API server frozen (SIGSTOP)", false)
}

// Workloads leave a lost member by a policy of a guide, and by one that says nothing of failover. What must never run
// twice stays.
func policies(t *testing.T) {
	v := joined(t, "policies")
	ns := fleet.Namespace(t)
	tolerations := ", clusterTolerations: [{key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, " +
		"tolerationSeconds: 10}, {key: cluster.karmada.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 10}]"
	silentOn := func(name, placement string) string {
		return strings.Replace(policy(ns, name, placement), "  failover: {cluster: {purgeMode: Gracefully}}\n", "", 1)
	}
	// As in the guide, with 10 s instead of 300 s, and with the names of these clusters.
	guide := silentOn("nginx", "") + `
  failover:
    applicationMigrationPolicy:
      decisionConditions: {tolerationSeconds: 10}
      purgePolicy: Gracefully`
	guide = strings.Replace(guide, "placement: {}", fmt.Sprintf(`placement:
    clusterAffinity: {clusterNames: [%[1]s, %[2]s]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [%[1]s]}, weight: 10}
        - {targetCluster: {clusterNames: [%[2]s]}, weight: 0}`, v.Name, home), 1)
	fleet.Hub.Apply(t, guide+deployment(ns, "nginx", 6, "100m", "")+
		silentOn("plain", inVictimOrHome(v, aggregated+tolerations))+deployment(ns, "plain", 2, "1", "")+
		strings.Replace(policy(ns, "once", inVictimOrHome(v, aggregated+tolerations)), "Gracefully", "Directly", 1)+
		deployment(ns, "once", 2, "1", ""))
	d := newDrill(t, fleet, ns, []kit.Cluster{v.client, fleet.Members[home]}, []string{v.Name},
		map[string]int32{"nginx": 6, "plain": 2})
	placed := func() string {
		b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "once-deployment")
		return fmt.Sprint(kit.Field(b, "spec", "clusters"))
	}
	inVictim := fmt.Sprint([]any{map[string]any{"name": v.Name, "replicas": int64(2)}})
	kit.Eventually(t, "what must never run twice is in the member", func() string {
		if now := placed(); now != inVictim {
			return "it is in " + now
		}
		return ""
	})
	if got, err := d.copies(v.client); err != nil || got["nginx"].spec != 6 || got["plain"].spec != 2 {
		t.Fatalf("%s has %v (%v), want all replicas", v.Name, got, err)
	}
	d.breaks(silent, v.Kill)
	d.noticed()
	d.replaced()
	if list, err := fleet.Argosy(t.Context(), "get", "failovers", "-n", ns); err != nil ||
		!strings.Contains(list, "OldCopyNotDeleted") || placed() != inVictim {
		t.Errorf("what must never run twice is in %s, was in %s: %v\n%s", placed(), inVictim, err, list)
	}
	d.mends(func() { v.restart(t) })
	d.back()
	d.ends("API server killed, policies without failover.cluster", false)
	if now := placed(); now != inVictim {
		t.Errorf("what must never run twice is in %s, was in %s", now, inVictim)
	}
}

// A member that answers late is used as before. One that answers too late is lost.
func slow(t *testing.T) {
	v := joined(t, "slow")
	d := newWorkloads(t, v, "")
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: late, namespace: %s}
spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: late}], placement: {clusterAffinity: {clusterNames: [slow]}}}`, d.ns))
	d.breaks(late, func() { v.link.set(network{delay: 500 * time.Millisecond}) })
	for value := range 5 {
		fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: %s}, data: {value: \"%d\"}}", d.ns, value))
		kit.Eventually(t, "a change arrives in the slow member", func() string {
			if got := kit.Field(v.client.Find(t, "v1", "ConfigMap", d.ns, "late"), "data", "value"); got != fmt.Sprint(value) {
				return fmt.Sprintf("its value is %v, want %d", got, value)
			}
			return ""
		})
	}
	d.mends(func() {})
	d.back()
	d.ends("1 s of latency", true)

	d.breaks(cutOff, func() { v.link.set(network{delay: 4 * time.Second}) })
	moves(d)
	d.mends(func() { v.link.set(network{}) })
	d.back()
	d.ends("8 s of latency", false)
}

// While one direction does not work, the member goes on with what it has. What was sent to it arrives later, and
// changes nothing.
func oneDirection(t *testing.T, name, fault string, is network) {
	v := joined(t, name)
	d := newWorkloads(t, v, "")
	d.breaks(cutOff, func() { v.link.set(is) })
	moves(d)
	d.mends(func() { v.link.set(network{}) })
	d.back()
	d.ends(fault, false)
}

// The hub counts tolerations by its own clock (see drill.noticed and drill.evicted).
func otherClock(t *testing.T, name, fault string, by time.Duration) {
	v := start(t, name)
	at, authority := wrongClock(t, v.Running, by)
	v.link.to = at
	join(t, v, authority)
	d := newWorkloads(t, v, "")

	// The hub sees other times than the member has.
	path := "api/v1/namespaces/" + d.ns
	made := v.client.Find(t, "v1", "Namespace", "", d.ns).GetCreationTimestamp()
	out, err := fleet.Argosy(t.Context(), "get", "--raw", "/apis/cluster.karmada.io/v1alpha1/clusters/"+name+"/proxy/"+
		path)
	var seen metav1.PartialObjectMetadata
	if err == nil {
		err = json.Unmarshal([]byte(out), &seen)
	}
	if err != nil || seen.CreationTimestamp.Sub(made.Time) != by {
		t.Fatalf("the hub sees a namespace of %v, which is of %v (%v): %s", seen.CreationTimestamp, made, err, out)
	}

	d.breaks(cutOff, func() { v.link.set(network{cut: true}) })
	moves(d)
	d.mends(func() { v.link.set(network{}) })
	d.back()
	d.ends(fault, false)
}

// Each outage is shorter than the toleration, and all together are longer: the hub also takes a few seconds to see that
// the cluster is back.
func flapping(t *testing.T) {
	const outages, outage, tolerates = 4, 15 * time.Second, 60 * time.Second
	v := joined(t, "flapping")
	d := newWorkloads(t, v, fmt.Sprintf(
		", clusterTolerations: [{key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, "+
			"tolerationSeconds: %[1]d}, {key: cluster.karmada.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: %[1]d}]", int(tolerates.Seconds())))
	cut := func() { v.link.set(network{cut: true}) }
	for i := range outages {
		if i == 0 {
			d.breaks(cutOff, cut)
		} else {
			d.breaksAgain(cutOff, cut)
		}
		d.noticed()
		kit.Eventually(t, "the outage lasts", func() string {
			c, err := d.cluster(v.Name)
			if err != nil {
				return err.Error()
			}
			taint := lossTaint(c)
			if taint == nil {
				return "it has not begun"
			}
			if since := taint.TimeAdded.Time; time.Since(since) < outage {
				return "it is of " + since.String()
			}
			return ""
		})
		d.mends(func() { v.link.set(network{}) })
		kit.Eventually(t, "the cluster is back", d.stillLost)
	}
	d.back()
	d.ends("flapping, 20 s at a time", true)
}

func nothingFits(t *testing.T) {
	v := joined(t, "full")
	ns := fleet.Namespace(t)
	// A node of home has 32 CPUs.
	fleet.Hub.Apply(t, policy(ns, "huge", inVictimOrHome(v, aggregated))+deployment(ns, "huge", 3, "40", ""))
	d := newDrill(t, fleet, ns, []kit.Cluster{v.client, fleet.Members[home]}, []string{v.Name},
		map[string]int32{"huge": 3})
	d.breaks(silent, func() { v.signal(t, syscall.SIGSTOP) })
	d.noticed()
	for kind, name := range map[string]string{"ResourceBinding": "huge-deployment", "Deployment": "huge"} {
		kit.Eventually(t, "an event of the "+kind+" gives the reason", func() string {
			messages := fleet.Hub.Messages(t, kind, ns, name, "EvictWorkloadFromClusterFailed")
			if !strings.Contains(strings.Join(messages, "\n"), "no other cluster takes it") {
				return fmt.Sprint("its events are ", messages)
			}
			return ""
		})
	}
	for _, ask := range [][]string{{"get", "failovers", "-n", ns}, {"why", "deployment", "huge", "-n", ns}} {
		if out, _ := fleet.Argosy(t.Context(), ask...); !strings.Contains(out, "NothingFits") &&
			!strings.Contains(out, "no other cluster takes it") {
			t.Errorf("argosy %v does not give the reason:\n%s", ask, out)
		}
	}
	d.mends(func() { v.signal(t, syscall.SIGCONT) })
	d.back()
	d.ends("nothing fits", true)
}

// While its cluster is cut off, somebody there scales a workload, deletes another, and starts one of their own.
func otherPods(t *testing.T) {
	v := joined(t, "changed")
	d := newWorkloads(t, v, "")
	d.breaks(cutOff, func() { v.link.set(network{cut: true}) })
	moves(d)
	v.client.Change(t, "apps/v1", "Deployment", d.ns, "web", func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["replicas"] = int64(5)
	})
	v.client.Remove(t, "v1", "ConfigMap", d.ns, "settings")
	v.client.Apply(t, deployment(d.ns, "theirs", 2, "100m", ""))
	ready := func(name string, want int64) func() string {
		return func() string {
			if got := kit.Field(v.client.Find(t, "apps/v1", "Deployment", d.ns, name), "status", "readyReplicas"); got != want {
				return fmt.Sprintf("%v replicas of %s are ready, want %d", got, name, want)
			}
			return ""
		}
	}
	kit.Eventually(t, "the other pods run", ready("web", 5))
	kit.Eventually(t, "their own pods run", ready("theirs", 2))
	d.mends(func() { v.link.set(network{}) })
	d.back()
	if wrong := ready("theirs", 2)(); wrong != "" {
		t.Error("what is not the hub's was changed: ", wrong)
	}
	d.ends("returns with other pods", false)
}

// The member returns as it was before its workloads were changed and another one was deleted.
func olderBackup(t *testing.T) {
	v := joined(t, "restored")
	d := newWorkloads(t, v, "")
	fleet.Hub.Apply(t, policy(d.ns, "old", "clusterAffinity: {clusterNames: [restored]}")+
		deployment(d.ns, "old", 1, "100m", ""))
	kit.Eventually(t, "old is in the member", func() string {
		if v.client.Find(t, "apps/v1", "Deployment", d.ns, "old") == nil {
			return "it is not"
		}
		return ""
	})

	// 1. The backup.
	store, backup := filepath.Join(v.Dir, "etcd", "data"), filepath.Join(v.Dir, "backup")
	v.Kill()
	if err := os.CopyFS(backup, os.DirFS(store)); err != nil {
		t.Fatal(err)
	}
	v.restart(t)
	d.back()

	// 2. What happens after it.
	for name := range d.replicas {
		fleet.Hub.Change(t, "apps/v1", "Deployment", d.ns, name, func(u *unstructured.Unstructured) {
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)["image"] = "example.com/app:2"
			if err := unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				t.Error(err)
			}
		})
	}
	fleet.Hub.Remove(t, "apps/v1", "Deployment", d.ns, "old")
	kit.Eventually(t, "the changes are in the member", func() string {
		for name := range d.replicas {
			if u := v.client.Find(t, "apps/v1", "Deployment", d.ns, name); !strings.Contains(fmt.Sprint(kit.Field(u, "spec")),
				"app:2") {
				return name + " has the old image"
			}
		}
		if v.client.Find(t, "apps/v1", "Deployment", d.ns, "old") != nil {
			return "old is there"
		}
		return d.unsettled()
	})

	// 3. The member is lost, and is restored.
	d.breaks(silent, v.Kill)
	moves(d)
	d.mends(func() {
		if err := os.RemoveAll(store); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(backup, store); err != nil {
			t.Fatal(err)
		}
		v.restart(t)
	})
	d.back()
	kit.Eventually(t, "what the hub had deleted is reported", func() string {
		out, err := fleet.Argosy(t.Context(), "get", "orphans", "-C", v.Name)
		if err != nil || !strings.Contains(out, "old") {
			return fmt.Sprintf("get orphans lists (%v):\n%s", err, out)
		}
		return ""
	})
	d.ends("returns from an older backup", false)
}
