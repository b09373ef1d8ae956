package simulate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// made is a fleet made up of nodes.
const made = `
apiVersion: simulate.argosy.io/v1alpha1
kind: Fleet
clusters:
- name: m1
  region: eu
  nodes: [{name: big, count: 4, allocatable: {cpu: 4, memory: 16Gi}}]
- name: m2
  nodes:
  - {name: small, count: 10, allocatable: {cpu: 1500m, memory: 8Gi}, requested: {cpu: 1, pods: 4}}
  - {name: gpu, allocatable: {cpu: 64, memory: 64Gi}, taints: [{key: gpu, effect: NoSchedule}]}
---
`

// placedOn returns where a workload is after.
func placedOn(r Report, name string) string {
	for _, w := range r.Workloads {
		if w.Name == name {
			return shares(w.After)
		}
	}
	return "not there"
}

func TestAFleetOfNodesIsCountedNodeByNode(t *testing.T) {
	shop := made + policy("shop", "", byRoom) + deployment("web", 12)
	r := run(t, load(t, shop), Change{})
	// Ten nodes of m2 have half a CPU each, which is five together and none for a replica.
	if got := placedOn(r, "web"); got != "m1:12" {
		t.Errorf("web is in %s, want m1:12", got)
	}
	r = run(t, load(t, shop), Change{Scale: []Scale{scale(t, "deployment/web=17")}})
	if r.Summary.UnplacedReplicas != 5 ||
		r.Workloads[0].WouldFit[0] != "room for 1 more replicas (cpu 1, memory 1Gi) in m1, m2; m1: nodes that "+
			"lack cpu: 4 of 4; m2: nodes that lack cpu: 10 of 11; nodes with a taint that it does not tolerate: 1 of 11" {
		t.Errorf("%+v", r.Workloads[0])
	}
	r = run(t, load(t, shop), Change{Scale: []Scale{scale(t, "deployment/web=17")}, Objects: objects(t, `
apiVersion: simulate.argosy.io/v1alpha1
kind: Fleet
clusters:
- {name: m2, nodes: [{name: new, count: 2, allocatable: {cpu: 3, memory: 8Gi}}]}
- {name: m3, nodes: [{name: new, allocatable: {cpu: 3, memory: 8Gi}}]}
`)})
	if got := placedOn(r, "web"); !r.Summary.Fits() || got != "m1:14 m2:2 m3:1" {
		t.Errorf("with more nodes web is in %s: %+v", got, r.Summary)
	}
	r = run(t, load(t, three+policy("shop", "", equally)+
		strings.Replace(made[:strings.Index(made, "- name: m2")], "  region: eu\n", "", 1)+"---\n"+deployment("web", 3)),
		Change{Scale: []Scale{scale(t, "deployment/web=60")}})
	if c := r.Clusters[0]; r.Summary.ShortClusters != 3 || !slices.Contains(c.Short, "nodes with room for 4 replicas") {
		t.Errorf("20 were given to 16 CPUs: %+v", c)
	}
}

func TestPodAntiAffinityLimitsReplicas(t *testing.T) {
	apart := strings.Replace(deployment("web", 9), "spec: {containers",
		"spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}, containers", 1)
	nodes := strings.ReplaceAll(made, "{name: big, count: 4,",
		"{name: big-1, labels: {kubernetes.io/hostname: a}, allocatable: {cpu: 9, memory: 16Gi}}, {name: big-2, labels: {kubernetes.io/hostname: b},")
	r := run(t, load(t, nodes+policy("shop", "", byRoom)+apart), Change{})
	if r.Summary.UnplacedReplicas == 0 {
		t.Errorf("nine that keep apart fit on two nodes: %+v", r.Workloads)
	}
	r = run(t, load(t, nodes+policy("shop", "", byRoom)+strings.Replace(apart, "replicas: 9", "replicas: 2", 1)),
		Change{Scale: []Scale{scale(t, "deployment/web=1")}})
	if r.Summary.Unplaced != 0 {
		t.Errorf("two do not: %+v", r.Workloads)
	}
}

func TestTheFleetOfTheDocumentsIsOne(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "simulate.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")
	fleet, _, _ := strings.Cut(blocks[1], "```")
	more, _, _ := strings.Cut(blocks[2], "```")
	down := run(t, load(t, fleet), Change{Removed: []string{"us-1"}})
	if got := placedOn(down, "web"); got != "eu-1:60" || down.Summary.MovedReplicas == 0 {
		t.Errorf("web is in %s, %+v", got, down.Summary)
	}
	r := run(t, load(t, fleet), Change{Objects: objects(t, more)})
	if cpu := r.Clusters[1].Headroom["cpu"].Allocatable; r.Summary.Changed != 0 || cpu.String() != "240" {
		t.Errorf("nodes that are added move something, or are not there: %+v", r.Clusters[1])
	}
}

func TestErrorsInAFleetHaveAPosition(t *testing.T) {
	fleet := func(clusters string) string {
		return "apiVersion: simulate.argosy.io/v1alpha1\nkind: Fleet\nclusters: " + clusters
	}
	for want, text := range map[string]string{
		`document 1: clusters[1].nodes[0].allocatable.memory: "64 GB" is no amount: write such as 500m, 16 or 64Gi`: fleet(
			"[{name: a}, {name: b, nodes: [{name: n1, allocatable: {memory: 64 GB}}]}]"),
		`document 1: clusters[0] (b): unknown field "node"`: fleet(
			"[{name: b, node: []}]"),
		"aa…): name: Invalid value: \"aaa": fleet(
			"[{name: " + strings.Repeat("a", 300_000) + "}]"),
		"metadata.name: Invalid value: \"b.c\"": strings.Replace(cluster("m1", 1, ""), "name: m1", "name: b.c", 1),
		"clusters[0] (): set the name": fleet(
			"[{region: eu}]"),
		`cluster "a" is in document 1 already: keep one of the two`: fleet(
			"[{name: a}]") + "\n---\n" + fleet("[{name: a}]"),
		`clusters[0] (a): apis: "Deployment": write it as apps/v1/Deployment`: fleet(
			"[{name: a, apis: [Deployment]}]"),
		`clusters[0] (a): nodes[1]: there is already a node "n1"`: fleet(
			"[{name: a, nodes: [{name: n1}, {name: n1}]}]"),
		"and this version of Argosy reads simulate.argosy.io/v1alpha1, kind Fleet: use the version that wrote it": strings.Replace(fleet("[]"), "v1alpha1", "v2", 1),
		`document 2: cluster "m1": there is a Cluster of that name`: cluster(
			"m1", 1, "") + fleet("[{name: m1, region: eu}]"),
		`scheduler: there is no scheduler plugin "Taint"`: fleet(
			"[]\nscheduler: {plugins: Taint}"),
	} {
		if _, err := Load(objects(t, text), "default"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says\n%v, want\n%s", err, want)
		}
	}
}

func TestAWorkloadRebalancerHasItsWorkloadsScheduledAnew(t *testing.T) {
	all := three + policy("shop", "", byRoom)
	f, err := Load(settled(t, all+deployment("web", 9)), "default")
	if err != nil {
		t.Fatal(err)
	}
	const more = `
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}, {apiVersion: apps/v1, kind: Deployment, name: none, namespace: default}]}
---
`
	big := cluster("m4", 200, "")
	if r := run(t, f, Change{Objects: objects(t, big)}); r.Summary.Changed != 0 {
		t.Errorf("a cluster that joins moves %+v", r.Workloads)
	}
	r := run(t, f, Change{Objects: objects(t, big+more)})
	w := r.Workloads[0]
	if w.Moved == 0 || w.Reason != string(schedule.RescheduleAsked) {
		t.Errorf("the rebalancer has %+v", w)
	}
	if want := "WorkloadRebalancer again: Deployment default/none is not placed by a policy, so it cannot be rescheduled"; !slices.Contains(r.Warnings, want) {
		t.Errorf("it is said %v, want %s", r.Warnings, want)
	}
}

func TestSchedulerIsConfiguredByTheFile(t *testing.T) {
	const set = "apiVersion: simulate.argosy.io/v1alpha1\nkind: Fleet\nscheduler: {name: other, plugins: \"*,-TaintToleration\", keepEmpty: true, quotasOff: true}\n---\n"
	f := load(t, three+set)
	if s := f.Scheduler(); s.Name != "other" || s.Plugins.Runs(schedule.TaintToleration) ||
		!s.Plugins.Runs(schedule.ClusterAffinity) || !s.KeepEmpty || !s.QuotasOff {
		t.Errorf("it is %+v", s)
	}
	if name := load(t, three).Scheduler().Scheduler(); name != policyv1alpha1.DefaultSchedulerName {
		t.Errorf("unless said otherwise it is %s", name)
	}
}

// A hub in short: bindings are scheduled one after another with the room that there is, and then their pods follow onto
// some node that they fit on.
type hub struct {
	t        *testing.T
	fleet    *Fleet
	snapshot schedule.Snapshot
	members  map[string]*capacity.Rehearsal
	bindings []workv1alpha2.Binding
}

func (h *hub) room(b workv1alpha2.Binding) schedule.Capacity {
	parts, sets := capacity.Parts(b)
	return func(cluster string) (int32, bool) { return h.members[cluster].Room(parts, sets, ""), true }
}

func (h *hub) schedule(i int) {
	b := h.bindings[i]
	if _, due := schedule.Due(b, h.snapshot); !due {
		return
	}
	had := b.BindingSpec().Clusters
	result, failure := schedule.Schedule(b, h.snapshot, h.room(b))
	b.BindingSpec().Clusters = result.Clusters
	meta.SetStatusCondition(&b.BindingStatus().Conditions, schedule.Condition(failure))
	if failure == nil {
		b.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: schedule.AppliedPlacement(
			b.BindingSpec().Placement)})
		b.BindingStatus().LastScheduledTime = &metav1.Time{Time: metav1.Unix(100, 0).Time}
	}
	for name, m := range h.members {
		if a := capacity.AssumptionOf(b, capacity.PartsOf(b), name, had, result.Clusters); a.Before != a.Replicas {
			m.Expect(a, false)
		}
	}
}

// anyNodes returns a fleet of nodes, and workloads for it, by chance.
func anyNodes(t *testing.T, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 21))
	clusters := 2 + r.IntN(3)
	doc := "apiVersion: simulate.argosy.io/v1alpha1\nkind: Fleet\nclusters:\n"
	var records []DocumentCluster
	for i := range clusters {
		m := DocumentCluster{Name: fmt.Sprintf("m%d", i), Record: capacity.Record{Pods: []capacity.PodsRecord{}}}
		for n := range 1 + r.IntN(4) {
			node := capacity.NodeRecord{Name: fmt.Sprintf("n%d", n), Labels: map[string]string{"disk": fmt.Sprint(r.IntN(2))}}
			node.Allocatable = list(fmt.Sprintf("cpu=%dm,memory=%dGi,pods=%d", 500*(1+r.IntN(10)), 1+r.IntN(12), 2+r.IntN(9)))
			if r.IntN(5) == 0 {
				node.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
			}
			if r.IntN(3) == 0 {
				node.Requested = list("cpu=250m,pods=1")
			}
			m.Nodes = append(m.Nodes, node)
		}
		if r.IntN(3) == 0 {
			m.Quotas = []capacity.QuotaRecord{{Namespace: "default", Name: "q", Left: list(fmt.Sprintf("cpu=%d", 1+r.IntN(9)))}}
		}
		records = append(records, m)
	}
	raw, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	text := doc[:len(doc)-1] + " " + string(raw) + "\n---\n"
	placements := []string{byRoom, packed, equally, "{}",
		"{spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 2}]}"}
	for i := range 2 + r.IntN(6) {
		name := fmt.Sprintf("d%d", i)
		text += policy("p-"+name, "[{apiVersion: apps/v1, kind: Deployment, name: "+name+"}]",
			placements[r.IntN(len(placements))])
		d := strings.Replace(deployment(name, 1+r.IntN(8)), `cpu: "1", memory: 1Gi`,
			fmt.Sprintf("cpu: %dm, memory: %dMi", 250*(1+r.IntN(5)), 256*(1+r.IntN(5))), 1)
		if r.IntN(4) == 0 {
			d = strings.Replace(d, "spec: {containers", "spec: {nodeSelector: {disk: \"1\"}, containers", 1)
		}
		text += d
	}
	return text
}

func list(text string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for entry := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(entry, "=")
		l[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return l
}

// live returns a hub in which the bindings of a made-up fleet were made.
func live(t *testing.T, text string) *hub {
	t.Helper()
	f := load(t, text)
	s := newState(f.clone(), roomsOf(t, load(t, policy("none", "", "{}"))), f.invented, time.Unix(1, 0))
	for r := range s.templates {
		if err := s.propagate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	h := &hub{t: t, fleet: s.Fleet, snapshot: s.snapshot, members: map[string]*capacity.Rehearsal{}}
	for name, m := range f.members {
		re, err := capacity.Rehearse(m.Record)
		if err != nil {
			t.Fatal(err)
		}
		h.members[name] = re
	}
	for _, b := range s.bindings {
		b.SetCreationTimestamp(metav1.Unix(50, 0))
		h.bindings = append(h.bindings, b)
	}
	slices.SortFunc(h.bindings, func(a, b workv1alpha2.Binding) int { return strings.Compare(a.GetName(), b.GetName()) })
	return h
}

// record returns the hub as a file has it.
func (h *hub) record() []Object {
	h.t.Helper()
	var all []Object
	add := func(u *unstructured.Unstructured) { all = append(all, Object{Recorded(u), "hub"}) }
	anything := func(apiVersion, kind string, obj any) {
		raw, err := json.Marshal(obj)
		if err != nil {
			h.t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &u.Object); err != nil {
			h.t.Fatal(err)
		}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		raw, _ = u.MarshalJSON()
		if err := u.UnmarshalJSON(raw); err != nil { // numbers as an API server has them
			h.t.Fatal(err)
		}
		add(u)
	}
	var makers []capacity.Workload
	for _, b := range h.bindings {
		anything("work.karmada.io/v1alpha2", "ResourceBinding", b)
		makers = append(makers, capacity.WorkloadOf(b))
	}
	for _, u := range h.fleet.templates {
		add(u)
	}
	for _, p := range h.fleet.policies {
		anything("policy.karmada.io/v1alpha1", "PropagationPolicy", p)
	}
	for _, name := range sortedKeys(h.members) {
		u, err := DocumentOf(nil, DocumentCluster{Name: name,
			Record: h.members[name].Record().Summed(capacity.PodsOf(makers))})
		if err != nil {
			h.t.Fatal(err)
		}
		add(u)
	}
	return all
}

// placement returns where all is, in one line each.
func (h *hub) placement() string {
	var lines []string
	for _, b := range h.bindings {
		p := Placed{Clusters: slices.Clone(b.BindingSpec().Clusters)}
		slices.SortFunc(p.Clusters, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
		lines = append(lines, b.BindingSpec().Resource.Name+" "+shares(p))
	}
	return strings.Join(lines, "\n")
}

func placements(r Report) string {
	var lines []string
	for _, w := range r.Workloads {
		lines = append(lines, w.Name+" "+shares(w.After))
	}
	return strings.Join(lines, "\n")
}

// What a hub placed on nodes stays where it is when nothing changes, and goes where the hub would put it when something
// does.
func TestSimulationOfNodesEqualsTheHub(t *testing.T) {
	rounds, waiting, moved := uint64(150), 0, 0
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		text := anyNodes(t, seed)
		h := live(t, text)
		r := rand.New(rand.NewPCG(seed, 22))
		all := func() {
			for range 3 {
				for i := range h.bindings {
					h.schedule(i)
				}
				for _, m := range h.members {
					m.Follow()
				}
			}
		}
		all()
		for range r.IntN(4) { // its history
			b := h.bindings[r.IntN(len(h.bindings))]
			h.rescale(b, int32(r.IntN(10)))
			all()
		}
		f, err := Load(h.record(), "default")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		now := run(t, f, Change{})
		if diff := cmp.Diff(h.placement(), placements(now)); diff != "" || now.Summary.Changed > 0 {
			t.Fatalf("seed %d: nothing changed, and it moves (-hub +simulated), %d changed:\n%s\n%s", seed, now.Summary.Changed,
				diff, text)
		}
		waiting += now.Summary.Unplaced

		b := h.bindings[r.IntN(len(h.bindings))]
		replicas := int32(r.IntN(12))
		c := Change{Scale: []Scale{{Namespace: "default", Kind: "Deployment", Name: b.BindingSpec().Resource.Name,
			Replicas: replicas}}}
		then := run(t, f, c)
		h.rescale(b, replicas)
		all()
		if diff := cmp.Diff(h.placement(), placements(then)); diff != "" {
			t.Fatalf("seed %d: %v: the hub does otherwise (-hub +simulated):\n%s\n%s", seed, then.Change, diff, text)
		}
		if placements(now) != placements(then) {
			moved++
		}
	}
	if waiting < int(rounds)/4 || moved < int(rounds)/4 {
		t.Errorf("%d workloads found no room, and %d changes moved something: this shows little", waiting, moved)
	}
}

// rescale is a user's change of a template, which its binding follows.
func (h *hub) rescale(b workv1alpha2.Binding, replicas int32) {
	b.BindingSpec().Replicas = replicas
	of := b.BindingSpec().Resource
	r := ref{match.GroupKind(of.APIVersion, of.Kind), of.Namespace, of.Name}
	template := h.fleet.templates[r].DeepCopy()
	if err := unstructured.SetNestedField(template.Object, int64(replicas), "spec", "replicas"); err != nil {
		h.t.Fatal(err)
	}
	h.fleet.templates[r] = template
}
