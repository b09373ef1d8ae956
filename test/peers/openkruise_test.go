package peers

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// lowestPort is the first of those that webhooks of programs take theirs from.
const lowestPort = 20000

// kruiseClusters are the members with the manager of OpenKruise.
var kruiseClusters = []string{"k1", "k2"}

// kruise is the manager of OpenKruise in two members of the fleet.
type kruise struct {
	members map[string]kit.Cluster
}

// startKruise starts a member with OpenKruise: its definitions, its webhooks and its manager.
func startKruise(t *testing.T, program, name string) kit.Cluster {
	t.Helper()
	m, c := bareMember(t, name, filepath.Join(kit.PeersFolder(), "kruise.yaml"))
	port, err := sim.FreePort(lowestPort, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func() *kit.Process {
		return m.Run(t, []string{"WEBHOOK_HOST=127.0.0.1", fmt.Sprint("WEBHOOK_PORT=", port),
			"WEBHOOK_CERT_DIR=" + t.TempDir(), "POD_NAMESPACE=kruise-system"}, program, "--kubeconfig="+m.Kubeconfig,
			"--enable-leader-election=false", "--metrics-addr=0", "--health-probe-addr=0", "--enable-pprof=false",
			"--webhook-initialize-timeout=3m")
	}
	manager := run()
	kit.Eventually(t, "the webhooks and conversions of OpenKruise work in "+name, func() string {
		if manager.Ended() {
			manager = run() // as a kubelet does; it panics if the host has no inotify instance left
		}
		err := c.Create(t.Context(), kit.Object(t, cloneSet("v1alpha1", "default", "try", 1, "nginx:1", 0)), client.DryRunAll)
		if err != nil {
			return err.Error()
		}
		return ""
	})
	join(t, m)
	return c
}

// cloneSet is a CloneSet with a partition whose pods are updated in place, in a version of OpenKruise's API.
func cloneSet(version, ns, name string, replicas int, image string, partition any) string {
	strategy := fmt.Sprintf("{type: InPlaceIfPossible, maxUnavailable: 50%%, partition: %v}", partition)
	if version == "v1beta1" {
		strategy = fmt.Sprintf("{type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 50%%, partition: %v}}", partition)
	}
	return fmt.Sprintf(`{apiVersion: apps.kruise.io/%s, kind: CloneSet, metadata: {name: %[3]s, namespace: %[2]s},
 spec: {replicas: %[4]d, selector: {matchLabels: {app: %[3]s}}, updateStrategy: %[6]s,
 template: {metadata: {labels: {app: %[3]s}}, spec: {containers: [{name: main, image: "%[5]s"}]}}}}`,
		version, ns, name, replicas, image, strategy)
}

// weighted is a policy that divides a workload 2 to 1 over the two members.
func weighted(apiVersion, kind, ns, name string) string {
	return fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: %[4]s-%[5]s, namespace: %[3]s},
 spec: {resourceSelectors: [{apiVersion: %[1]s, kind: %[2]s, name: %[4]s}], placement: {clusterAffinity: {clusterNames: [k1, k2]},
 replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [
  {targetCluster: {clusterNames: [k1]}, weight: 2}, {targetCluster: {clusterNames: [k2]}, weight: 1}]}}}}}`,
		apiVersion, kind, ns, name, strings.ToLower(kind))
}

// everywhere is a policy that copies an object to both members.
func everywhere(apiVersion, kind, ns, name string) string {
	scope, space := "Propagation", "namespace: "+ns
	if ns == "" {
		scope, space = "ClusterPropagation", ""
	}
	return fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: %[5]sPolicy, metadata: {name: %[4]s-%[6]s, %[3]s},
 spec: {resourceSelectors: [{apiVersion: %[1]s, kind: %[2]s, name: %[4]s}],
 placement: {clusterAffinity: {clusterNames: [k1, k2]}}}}`, apiVersion, kind, space, name, scope, strings.ToLower(kind))
}

// running is what pods of a workload do: how many there are, how many are ready, and how many run an image.
type running struct{ Pods, Ready, Image int }

// add returns the sum of both.
func (r running) add(o running) running {
	return running{r.Pods + o.Pods, r.Ready + o.Ready, r.Image + o.Image}
}

// pods returns the pods of an app in a member that are not being deleted, by name.
func pods(t *testing.T, c kit.Cluster, ns, app string) map[string]*corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace(ns), client.MatchingLabels{"app": app}); err != nil {
		t.Fatalf("list the pods in %s: %v", c.Name, err)
	}
	all := map[string]*corev1.Pod{}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil {
			all[p.Name] = p
		}
	}
	return all
}

// isReady reports whether a pod is ready.
func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// runsImage reports whether a container of a pod runs an image, as its node reports.
func runsImage(p *corev1.Pod, image string) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Image == image })
}

// counts returns what the pods of an app do, by member.
func (k *kruise) counts(t *testing.T, ns, app, image string) map[string]running {
	t.Helper()
	all := map[string]running{}
	for name, c := range k.members {
		var n running
		for _, p := range pods(t, c, ns, app) {
			n.Pods++
			if isReady(p) {
				n.Ready++
			}
			if runsImage(p, image) {
				n.Image++
			}
		}
		all[name] = n
	}
	return all
}

// uids returns the pods of an app in all members by cluster and name.
func (k *kruise) uids(t *testing.T, ns, app string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, c := range k.members {
		for _, p := range pods(t, c, ns, app) {
			all[name+"/"+p.Name] = string(p.UID)
		}
	}
	return all
}

// workload is a template on the hub, and the fields of its status that count pods, those that are ready, and those of
// the current revision.
type workload struct {
	apiVersion, kind, ns, name string
	pods, ready, updated       string
}

// replicated is a workload whose status has the fields of a CloneSet.
func replicated(apiVersion, kind, ns, name string) workload {
	return workload{apiVersion, kind, ns, name, "replicas", "readyReplicas", "updatedReplicas"}
}

// number returns a field of a status; 0 if there is none.
func number(status map[string]any, field string) int {
	switch n := status[field].(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

// shown returns what the hub shows of a workload: in the status of the template, and by cluster in the binding. health
// is what the binding says of clusters.
func (w workload) shown(t *testing.T) (template running, byCluster map[string]running, health map[string]string) {
	t.Helper()
	read := func(status map[string]any) running {
		return running{number(status, w.pods), number(status, w.ready), number(status, w.updated)}
	}
	status, _ := kit.Field(fleet.Hub.Find(t, w.apiVersion, w.kind, w.ns, w.name), "status").(map[string]any)
	byCluster, health = map[string]running{}, map[string]string{}
	for _, item := range items(t, w.ns, w.name+"-"+strings.ToLower(w.kind)) {
		var raw map[string]any
		if item.Status != nil {
			if err := json.Unmarshal(item.Status.Raw, &raw); err != nil {
				t.Fatal(err)
			}
		}
		byCluster[item.ClusterName], health[item.ClusterName] = read(raw), string(item.Health)
	}
	return read(status), byCluster, health
}

// items returns what a binding reports by cluster, of a ClusterResourceBinding without a namespace.
func items(t *testing.T, ns, name string) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	b, cb := &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}
	var err error
	if ns == "" {
		err = fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, cb)
		b.Status = cb.Status
	} else {
		err = fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, b)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return b.Status.AggregatedStatus
}

// settles waits until the pods in the members are as wanted, and the hub shows exactly that.
func (k *kruise) settles(t *testing.T, what string, w workload, image string, want map[string]running) {
	t.Helper()
	kit.Eventually(t, what, func() string {
		if is := k.counts(t, w.ns, w.name, image); !maps.Equal(is, want) {
			return fmt.Sprintf("the pods are %v, want %v", is, want)
		}
		var sum running
		for _, n := range want {
			sum = sum.add(n)
		}
		template, byCluster, health := w.shown(t)
		if template != sum || !maps.Equal(byCluster, want) {
			return fmt.Sprintf("the pods are %v, the hub shows %v and in the template %v", want, byCluster, template)
		}
		for _, name := range kruiseClusters {
			if health[name] != "Healthy" {
				return fmt.Sprintf("the health is %v", health)
			}
		}
		return ""
	})
}

// sets changes fields of a template, each a path with dots and a value.
func sets(t *testing.T, w workload, fields map[string]any) {
	t.Helper()
	fleet.Hub.Change(t, w.apiVersion, w.kind, w.ns, w.name, func(u *unstructured.Unstructured) {
		for path, value := range fields {
			if err := unstructured.SetNestedField(u.Object, value, strings.Split(path, ".")...); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// setsImage changes the image of the first container of the pods that a field holds.
func setsImage(t *testing.T, w workload, image string, path ...string) {
	t.Helper()
	fleet.Hub.Change(t, w.apiVersion, w.kind, w.ns, w.name, func(u *unstructured.Unstructured) {
		kit.Field(u, path...).([]any)[0].(map[string]any)["image"] = image
	})
}

// podContainers is where a workload has the containers of its pods.
var podContainers = []string{"spec", "template", "spec", "containers"}

func TestOpenKruise(t *testing.T) {
	program := kit.Peers(t, "kruise-manager")[0]
	k := &kruise{members: map[string]kit.Cluster{}}
	for _, name := range kruiseClusters {
		k.members[name] = startKruise(t, program, name)
	}
	for name, story := range map[string]func(*testing.T){
		"a CloneSet in v1alpha1":  func(t *testing.T) { k.scalesAndUpdates(t, "v1alpha1") },
		"a CloneSet in v1beta1":   func(t *testing.T) { k.scalesAndUpdates(t, "v1beta1") },
		"a SidecarSet":            k.injectsAndUpdates,
		"an Advanced StatefulSet": k.keepsOrdinals,
		"a UnitedDeployment":      k.dividesSubsets,
		"an Advanced DaemonSet":   k.runsOnAllNodes,
		"a BroadcastJob":          k.completesOnAllNodes,
		"a release":               k.releasesInStages,
	} {
		t.Run(name, story)
	}
}

// scalesAndUpdates is the story of a CloneSet: divided, scaled, updated in place in part and in whole, and deleted.
func (k *kruise) scalesAndUpdates(t *testing.T, version string) {
	ns, partition := fleet.Namespace(t), "spec.updateStrategy.partition"
	if version == "v1beta1" {
		partition = "spec.updateStrategy.rollingUpdate.partition"
	}
	w := replicated("apps.kruise.io/"+version, "CloneSet", ns, "web")
	fleet.Hub.Apply(t, weighted(w.apiVersion, w.kind, ns, w.name)+"\n---\n"+cloneSet(version, ns, w.name, 6, "nginx:1", 0))
	k.settles(t, "6 pods are divided 2 to 1", w, "nginx:1", map[string]running{"k1": {4, 4, 4}, "k2": {2, 2, 2}})

	sets(t, w, map[string]any{"spec.replicas": int64(9)})
	k.settles(t, "9 pods are divided 2 to 1", w, "nginx:1", map[string]running{"k1": {6, 6, 6}, "k2": {3, 3, 3}})
	before := k.uids(t, ns, w.name)

	// The partition is one of the fleet: 3 of 9 pods become new.
	sets(t, w, map[string]any{partition: int64(6)})
	setsImage(t, w, "nginx:2", podContainers...)
	k.settles(t, "a canary of 3 pods is updated", w, "nginx:2", map[string]running{"k1": {6, 6, 2}, "k2": {3, 3, 1}})
	sets(t, w, map[string]any{partition: int64(0)})
	k.settles(t, "all pods are updated", w, "nginx:2", map[string]running{"k1": {6, 6, 6}, "k2": {3, 3, 3}})
	if is := k.uids(t, ns, w.name); !reflect.DeepEqual(is, before) {
		t.Errorf("the pods were %v and are %v: they were not updated in place", before, is)
	}
	for name, c := range k.members {
		for _, p := range pods(t, c, ns, w.name) {
			if n := p.Status.ContainerStatuses[0].RestartCount; n != 1 {
				t.Errorf("pod %s in %s was restarted %d times, want once", p.Name, name, n)
			}
		}
	}

	sets(t, w, map[string]any{"spec.replicas": int64(3)})
	k.settles(t, "3 pods are left", w, "nginx:2", map[string]running{"k1": {2, 2, 2}, "k2": {1, 1, 1}})
	fleet.Hub.Remove(t, w.apiVersion, w.kind, ns, w.name)
	kit.Eventually(t, "no pods are left", func() string {
		if is := k.counts(t, ns, w.name, ""); is["k1"].Pods+is["k2"].Pods > 0 {
			return fmt.Sprintf("there are %v", is)
		}
		return ""
	})
}
