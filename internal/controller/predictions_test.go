package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	corefailover "github.com/argosy-io/argosy/internal/core/adjust/failover"
	corecapacity "github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/explain/simulate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/coretest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// workloadNames are the Deployments that a world may have, in its one namespace.
var workloadNames = []string{"a", "b", "c", "d", "e"}

// world is a hub whose members have nodes and run the pods of Deployments.
type world struct {
	*history
	members    map[string]*running
	room       *capacity.Fleet
	options    corefailover.Options
	rebalanced int
}

// running is a member with one node, and what runs in it.
type running struct {
	*membertest.Server
	cpu  map[string]int64 // of its nodes
	pods map[string][]runningPod
	made int
	// down: it does not respond. unhealthy: its pods are never ready.
	down, unhealthy bool
}

type runningPod struct {
	name, node string
	cpu        int64
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{members: map[string]*running{}, options: corefailover.Defaults}
	random := rand.New(rand.NewPCG(seed, 28))
	h, servers := fleetWith(t, Options{Concurrency: 1, Fleet: func(f *capacity.Fleet) { w.room = f },
		Failover: &Failover{Options: w.options}},
		controllertest.Deployment, controllertest.Service, controllertest.EndpointSlice, controllertest.Definition)
	w.history = &history{Hub: h, t: t, random: random}
	// The order of waiting bindings, and rebalancers, depend on times that API servers set.
	h.Server.Within(func(ctx context.Context, u *unstructured.Unstructured) error {
		if created := u.GetCreationTimestamp(); created.IsZero() {
			u.SetCreationTimestamp(metav1.Now())
		}
		return commit.AddStatus(ctx, u)
	})
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		w.members[name] = &running{Server: servers[name], cpu: map[string]int64{}, pods: map[string][]runningPod{}}
		w.addNode(name, "n0", int64(4+random.IntN(12)))
	}
	w.settle()
	return w
}

// addNode gives a member a node.
func (w *world) addNode(member, name string, cpu int64) {
	n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI),
		corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.members[member].cpu[name] = cpu
	w.members[member].Put(n)
}

// settle has the hub and its members act until nothing changes.
func (w *world) settle() {
	for range 60 {
		w.Quiet()
		w.Advance(25 * time.Second) // longer than the interval of status checks, and of failover plans
		changed := false
		for _, name := range slices.Sorted(maps.Keys(w.members)) {
			changed = w.members[name].follow() || changed
		}
		w.Quiet()
		for _, name := range slices.Sorted(maps.Keys(w.members)) {
			changed = w.members[name].report() || changed
		}
		if !changed && len(w.Quiet()) == 0 {
			return
		}
	}
	w.t.Fatal("the hub and its members never settle")
}

// pass lets minutes go by, in which members follow the hub. The hub keeps room for five minutes for pods that a member
// has not created yet.
func (w *world) pass(minutes int) {
	for range minutes {
		w.Advance(time.Minute)
		w.Quiet()
		for _, name := range slices.Sorted(maps.Keys(w.members)) {
			w.members[name].follow()
		}
	}
}

// follow has the member run what its Deployments want: it deletes pods, those of the last nodes first, and creates the
// missing ones on the first node that they fit on.
func (m *running) follow() (changed bool) {
	if m.down {
		return false
	}
	replicas, cpu := map[string]int64{}, map[string]int64{}
	for _, name := range workloadNames {
		if d := m.Object(controllertest.Deployment, "shop", name); d != nil {
			replicas[name], _, _ = unstructured.NestedInt64(d.Object, "spec", "replicas")
			cpu[name] = cpuOf(d)
		}
		pods := m.pods[name]
		slices.SortStableFunc(pods, func(a, b runningPod) int { return strings.Compare(b.node, a.node) })
		slices.Reverse(pods)
		for int64(len(pods)) > replicas[name] {
			last := pods[len(pods)-1]
			m.Remove(membertest.Pod, "shop", last.name)
			pods, changed = pods[:len(pods)-1], true
		}
		m.pods[name] = pods
	}
	free := maps.Clone(m.cpu)
	for _, pods := range m.pods {
		for _, p := range pods {
			if p.node != "" {
				free[p.node] -= p.cpu
			}
		}
	}
	fits := func(cpu int64) string {
		for _, node := range slices.Sorted(maps.Keys(free)) {
			if free[node] >= cpu {
				free[node] -= cpu
				return node
			}
		}
		return ""
	}
	for _, name := range workloadNames {
		pods := m.pods[name]
		for i := range pods {
			was := pods[i]
			if was.node != "" && was.cpu != cpu[name] { // it is replaced
				free[was.node] += was.cpu
				pods[i].node = ""
			}
			if pods[i].cpu = cpu[name]; pods[i].node == "" {
				pods[i].node = fits(cpu[name])
			}
			if pods[i] != was {
				m.put(name, pods[i])
				changed = true
			}
		}
		for int64(len(pods)) < replicas[name] {
			m.made++
			p := runningPod{name: fmt.Sprintf("%s-%d", name, m.made), node: fits(cpu[name]), cpu: cpu[name]}
			m.put(name, p)
			pods, changed = append(pods, p), true
		}
		m.pods[name] = pods
	}
	return changed
}

// report has the member report the pods of its Deployments. Nothing else writes meanwhile, so that no write is lost.
func (m *running) report() (changed bool) {
	for _, name := range workloadNames {
		membertest.Advance(time.Millisecond)
		d, ready := m.Object(controllertest.Deployment, "shop", name), int64(0)
		if d == nil || m.down {
			continue
		}
		replicas, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
		for _, p := range m.pods[name] {
			if p.node != "" && !m.unhealthy {
				ready++
			}
		}
		status := map[string]any{"observedGeneration": d.GetGeneration(), "replicas": replicas,
			"updatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready}
		if ready < replicas && m.unhealthy {
			status["conditions"] = []any{map[string]any{"type": "Progressing", "status": "False",
				"reason": "ProgressDeadlineExceeded"}}
		}
		if diff := cmp.Diff(d.Object["status"], any(status)); diff != "" {
			d.Object["status"] = status
			m.Put(d)
			changed = true
		}
	}
	return changed
}

// put creates or updates a pod of a Deployment.
func (m *running) put(deployment string, p runningPod) {
	yes := true
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: p.name, Labels: map[string]string{"pod-template-hash": "x"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-x",
			Controller: &yes}}}}
	pod.Spec.NodeName = p.node
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(p.cpu, resource.DecimalSI)}}}}
	if p.node == "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
	}
	m.Put(pod)
}

func cpuOf(d *unstructured.Unstructured) int64 {
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	text, _, _ := unstructured.NestedString(containers[0].(map[string]any), "resources", "requests", "cpu")
	q := resource.MustParse(text)
	return q.Value()
}

// record returns the fleet as argosy simulate reads it.
func (w *world) record() *simulate.Fleet {
	w.t.Helper()
	all := w.recorded(nil)
	var creators []corecapacity.Workload
	for _, name := range workloadNames {
		creators = append(creators, corecapacity.Workload{Namespace: "shop", Kind: "Deployment", Name: name})
	}
	add := func(s *simulate.Scheduler, members ...simulate.DocumentCluster) {
		u, err := simulate.DocumentOf(s, members...)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, simulate.Object{Unstructured: u, Source: "hub"})
	}
	add(&simulate.Scheduler{Failover: &w.options})
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		if r, known := w.room.Record(name); known {
			add(nil, simulate.DocumentCluster{Name: name, Record: r.Summed(corecapacity.PodsOf(creators))})
		}
	}
	f, err := simulate.Load(all, "shop")
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// turn is a change: as argosy simulate gets it, and as it is made.
type turn struct {
	what   string
	change simulate.Change
	act    func()
}

func (w *world) deployment(name string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: %s, labels: {app: %s}}, spec: {replicas: %d, selector: {}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "web:%d", resources: {requests: {cpu: "%d"}}}]}}}}`,
		name, w.pick("x", "y"), 1+w.random.IntN(9), w.random.IntN(3), 1+w.random.IntN(2))
}

func (w *world) policy() string {
	divided := "replicaSchedulingType: Divided, replicaDivisionPreference: "
	scheduling := w.pick("", ", replicaScheduling: {"+divided+"Weighted}", ", replicaScheduling: {"+divided+"Aggregated}",
		", replicaScheduling: {"+divided+"Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}",
		", replicaScheduling: {"+divided+"Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}",
		", replicaScheduling: {"+divided+"Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}")
	return fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: %s}, "+
		"spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment%s}], priority: %d, placement: {clusterAffinity: {%s}%s}%s}}",
		w.pick("p", "q"), w.pick("", "", ", labelSelector: {matchLabels: {app: x}}"), w.random.IntN(3),
		w.pick("clusterNames: [m1, m2, m3]", "clusterNames: [m1, m2, m3]", "clusterNames: [m1, m2]",
			"clusterNames: [m2, m3]", "labelSelector: {matchLabels: {tier: x}}"), scheduling,
		w.pick("", "", ", failover: {cluster: {purgeMode: Directly}}",
			", propagateDeps: true, failover: {application: {decisionConditions: {}}}"))
}

// applied is a turn in which a user applies objects, one after another, faster than pods come and go.
func (w *world) applied(texts ...string) turn {
	t := turn{what: strings.Join(texts, "\n")}
	for i, text := range texts {
		t.change.Objects = append(t.change.Objects, simulate.Object{Unstructured: coretest.Object(w.t, text),
			Source: fmt.Sprint("document ", i)})
	}
	t.act = func() {
		for _, o := range t.change.Objects {
			w.steps++
			w.write(o.DeepCopy())
			w.Quiet()
			w.Advance(time.Second)
		}
	}
	return t
}

// named returns a Deployment to read into.
func (w *world) named(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(controllertest.Deployment.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName(name)
	return u
}

// existing returns the names of the Deployments that exist.
func (w *world) existing() (names []string) {
	for _, name := range workloadNames {
		if w.HasObject(w.named(name)) {
			names = append(names, name)
		}
	}
	return names
}

// some returns up to n of the names, in any order.
func (w *world) some(of []string, n int) []string {
	of = slices.Clone(of)
	w.random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return of[:min(n, len(of))]
}

func (w *world) anyMember() string { return w.pick(slices.Sorted(maps.Keys(w.members))...) }

// cluster reads a cluster.
func (w *world) cluster(name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.HasObject(c)
	return c
}

// taint puts a taint on a cluster.
func (w *world) taint(cluster string, t corev1.Taint) {
	if now := metav1.Now(); t.Effect == corev1.TaintEffectNoExecute {
		t.TimeAdded = &now
	}
	controllertest.Change(w.Hub, w.cluster(cluster), func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(slices.DeleteFunc(c.Spec.Taints, func(has corev1.Taint) bool { return has.MatchTaint(&t) }), t)
	})
}

func (w *world) rebalancer(names []string) string {
	w.rebalanced++
	r := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("again-", w.rebalanced)}}
	for _, name := range names {
		r.Spec.Workloads = append(r.Spec.Workloads, appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
			Namespace: "shop", Name: name})
	}
	r.SetGroupVersionKind(appsv1alpha1.GroupVersion.WithKind("WorkloadRebalancer"))
	raw, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

// ails reports whether the workloads in a member are unhealthy.
func (w *world) ails() bool {
	for _, m := range w.members {
		if m.unhealthy {
			return true
		}
	}
	return false
}

// heal ends what earlier turns did to clusters.
func (w *world) heal() {
	for name, m := range w.members {
		if m.down {
			m.Down(false)
			w.Eventually(name+" is back", func() string {
				if !membership.IsReady(w.cluster(name)) {
					return "it is not"
				}
				return ""
			})
		}
		m.down, m.unhealthy = false, false
		ofUsers := func(t corev1.Taint) bool { return !membership.IsReadinessTaint(t) }
		if c := w.cluster(name); slices.ContainsFunc(c.Spec.Taints, ofUsers) {
			controllertest.Change(w.Hub, c, func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, ofUsers)
			})
		}
	}
	w.settle()
}

// changes are all kinds of changes that argosy simulate accepts, except for those of kinds without a place in a world:
// PriorityClasses and webhooks, which the hub in memory does not serve, and quotas, which its members do not know.
var changes = map[string]func(w *world) turn{
	"workloads": func(w *world) turn {
		var texts []string
		for _, name := range w.some(workloadNames, 1+w.random.IntN(3)) {
			texts = append(texts, w.deployment(name))
		}
		return w.applied(texts...)
	},
	"a policy": func(w *world) turn { return w.applied(w.policy()) },
	"an override": func(w *world) turn {
		scope, namespace := "Cluster", ""
		if w.random.IntN(2) == 0 {
			scope, namespace = "", "namespace: shop, "
		}
		return w.applied(fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: %sOverridePolicy, metadata: {%sname: o}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: %s}], overrideRules: [{targetCluster: {clusterNames: [%s]}, overriders: {imageOverrider: [{component: Tag, operator: replace, value: %q}]}}]}}",
			scope, namespace, w.pick(workloadNames...), w.pick("m1", "m2", "m3"), fmt.Sprint(w.random.IntN(3))))
	},
	"a policy and workloads": func(w *world) turn {
		texts := []string{w.policy()}
		for _, name := range w.some(workloadNames, 1+w.random.IntN(2)) {
			texts = append(texts, w.deployment(name))
		}
		return w.applied(w.some(texts, len(texts))...)
	},
	"a scaling": func(w *world) turn {
		t := turn{}
		for _, name := range w.some(w.existing(), 1+w.random.IntN(2)) {
			t.change.Scale = append(t.change.Scale,
				simulate.Scale{Namespace: "shop", Kind: "deployment", Name: name, Replicas: int32(w.random.IntN(12))})
		}
		t.what = fmt.Sprint(t.change.Scale)
		t.act = func() {
			for _, s := range t.change.Scale {
				controllertest.Change(w.Hub, w.named(s.Name), func(u *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(u.Object, int64(s.Replicas), "spec", "replicas")
				})
				w.Quiet()
			}
		}
		return t
	},
	"a rebalancer": func(w *world) turn { return w.applied(w.rebalancer(w.some(w.existing(), 1+w.random.IntN(3)))) },
	"a taint": func(w *world) turn {
		effect := corev1.TaintEffect(w.pick("NoSchedule", "PreferNoSchedule", "NoExecute"))
		t := simulate.Taint{Cluster: w.anyMember(), Taint: corev1.Taint{Key: w.pick("x", "y"), Effect: effect}}
		return turn{fmt.Sprint(t), simulate.Change{Taints: []simulate.Taint{t}}, func() { w.taint(t.Cluster, t.Taint) }}
	},
	"a drain": func(w *world) turn {
		name := w.anyMember()
		return turn{name, simulate.Change{Drained: []string{name}}, func() {
			var there []string
			bindings, err := scope.Bindings.List(w.t.Context(), w)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, b := range bindings {
				if workv1alpha2.HasTarget(b.BindingSpec().Clusters, name) {
					there = append(there, b.BindingSpec().Resource.Name)
				}
			}
			w.taint(name, simulate.Drained)
			w.Quiet()
			if len(there) > 0 {
				w.write(coretest.Object(w.t, w.rebalancer(there)))
			}
		}}
	},
	"a cluster down": func(w *world) turn {
		name := w.anyMember()
		return turn{name, simulate.Change{Down: []string{name}}, func() {
			w.members[name].down = true
			w.members[name].Down(true)
			w.Advance(time.Minute)
			w.settle()
			w.pass(10)
		}}
	},
	"a cluster with unhealthy workloads": func(w *world) turn {
		name := w.anyMember()
		return turn{name, simulate.Change{Unhealthy: []string{name}}, func() {
			w.members[name].unhealthy = true
			w.settle()
			w.pass(10)
		}}
	},
	"a cluster removed": func(w *world) turn {
		if len(w.members) < 3 {
			return w.applied(w.policy())
		}
		name := w.anyMember()
		return turn{name, simulate.Change{Removed: []string{name}}, func() {
			w.Gone(w.cluster(name))
			w.Quiet()
			delete(w.members, name)
		}}
	},
	"a cluster relabelled": func(w *world) turn {
		name := w.anyMember()
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("Cluster"))
		u.SetName(name)
		w.HasObject(u)
		u.SetLabels(map[string]string{"tier": w.pick("x", "y")})
		objects := []simulate.Object{{Unstructured: simulate.Recorded(u), Source: "user"}}
		return turn{name + fmt.Sprint(u.GetLabels()), simulate.Change{Objects: objects}, func() {
			controllertest.Change(w.Hub, w.cluster(name), func(c *clusterv1alpha1.Cluster) { c.Labels = u.GetLabels() })
		}}
	},
	"more nodes": func(w *world) turn {
		name := w.anyMember()
		w.steps++
		node, cpu := fmt.Sprint("n", w.steps), int64(1+w.random.IntN(6))
		t := w.applied(fmt.Sprintf("{apiVersion: simulate.argosy.io/v1alpha1, kind: Fleet, clusters: [{name: %s, nodes: [{name: %s, allocatable: {cpu: %d}}]}]}",
			name, node, cpu))
		t.act = func() { w.addNode(name, node, cpu) }
		return t
	},
	"a customization": func(w *world) turn {
		return w.applied(fmt.Sprintf(`{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: c}, spec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: {replicaResource: {luaScript: "function GetReplicas(obj) return obj.spec.replicas, {resourceRequest = {cpu = obj.spec.template.spec.containers[1].resources.requests.cpu}%s} end"}}}}`,
			w.pick("", ", nodeClaim = {nodeSelector = {disk = 'ssd'}}")))
	},
	"a namespace": func(w *world) turn {
		return w.applied("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: " + w.pick("x", "y") +
			"}}}")
	},
}

// nextTurn returns a change by chance.
func (w *world) nextTurn() turn {
	kind := w.pick(slices.Sorted(maps.Keys(changes))...)
	if len(w.existing()) == 0 || w.random.IntN(3) == 0 {
		kind = w.pick("workloads", "a policy", "a scaling", "a rebalancer", "a policy and workloads")
	}
	if len(w.existing()) == 0 {
		kind = w.pick("workloads", "a policy")
	}
	t := changes[kind](w)
	t.what = kind + ": " + t.what
	return t
}

// podTemplates returns the pod templates of the Deployments in each member.
func (w *world) podTemplates() map[string]string {
	out := map[string]string{}
	for member, m := range w.members {
		for _, name := range workloadNames {
			if d := m.Object(controllertest.Deployment, "shop", name); d != nil {
				template, _, _ := unstructured.NestedMap(d.Object, "spec", "template")
				out[name+" in "+member] = fmt.Sprint(template, d.GetLabels()["app"])
			}
		}
	}
	return out
}

// evicts reports whether a failover is in progress. A simulation assumes that it ends well.
func (w *world) evicts() bool {
	bindings, err := scope.Bindings.List(w.t.Context(), w)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.ContainsFunc(bindings, corefailover.InProgress)
}

// disagreements returns how the hub differs from what a simulation said, for what the simulation determines.
func (w *world) disagreements(report simulate.Report, before map[string]string) (out []string) {
	after, placed, seen := w.podTemplates(), w.placed(), map[string]bool{}
	for _, o := range report.Workloads {
		key := o.Kind + " " + o.Namespace + "/" + o.Name
		seen[key] = true
		want, got := fmt.Sprintf("%s to %v", o.After.Policy, o.After.Clusters), placed[key]
		if none := len(o.After.Clusters) == 0 && (got == "" || strings.HasSuffix(got, " to []")); o.Undetermined == "" &&
			got != want && !none {
			out = append(out, fmt.Sprintf("%s was at %v; predicted %q, the hub has %q", key, o.Before.Clusters, want, got))
		}
		for member, m := range w.members {
			at := o.Name + " in " + member
			predicted := slices.ContainsFunc(o.Overridden, func(c simulate.Overridden) bool { return c.Cluster == member })
			// What no policy claims gets changes of its template by chance.
			if was, is := before[at], after[at]; was != "" && is != "" && predicted != (was != is) && !m.down &&
				o.After.Policy != "" {
				out = append(out, fmt.Sprintf("%s: predicted that it rolls out: %t; %s → %s", at, predicted, was, is))
			}
		}
	}
	for key, at := range placed {
		if !seen[key] {
			out = append(out, fmt.Sprintf("%s is at %s, and the simulation does not know it", key, at))
		}
	}
	return out
}

func TestASimulationFindsTheRoomThatTheHubFinds(t *testing.T) {
	seeds := uint64(3)
	// With the race detector, several workloads that one write affects wait for the scheduler at the same time, and it
	// takes the most urgent one first. Without it, each is placed when it comes, as a simulation does.
	if !testing.Short() && !raced {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, seed)
				var story []string
				for range 12 {
					// A simulation does not know of workloads that stay unhealthy.
					if w.random.IntN(2) == 0 || w.ails() {
						w.heal()
						story = append(story, "all clusters are well again")
					}
					next := w.nextTurn()
					story = append(story, next.what)
					recorded, templates, evicts := w.record(), w.podTemplates(), w.evicts()
					next.act()
					w.settle()
					if wrong := w.readersDisagree(); len(wrong) > 0 {
						t.Fatalf("readers differ:\n%s\nafter:\n%s", strings.Join(wrong, "\n"), strings.Join(story, "\n"))
					}
					// UIDs decide between equal clusters.
					for _, o := range next.change.Objects {
						if live := o.DeepCopy(); live.GetKind() == "Deployment" && w.HasObject(live) {
							o.SetUID(live.GetUID())
						}
					}
					report, err := simulate.Run(t.Context(), recorded, next.change)
					if err != nil {
						t.Fatalf("%v\nafter:\n%s", err, strings.Join(story, "\n"))
					}
					if wrong := w.disagreements(report, templates); len(wrong) > 0 && !evicts {
						t.Fatalf("the hub differs:\n%s\nafter:\n%s", strings.Join(wrong, "\n"), strings.Join(story, "\n"))
					}
				}
			})
		})
	}
}
