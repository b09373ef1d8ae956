package simulate

import (
	"bytes"
	"encoding/json"
	"flag"
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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

var update = flag.Bool("update", false, "write the golden reports anew")

// objects returns the documents of a text.
func objects(t testing.TB, text string) (out []Object) {
	t.Helper()
	for i, doc := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		raw, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err != nil {
			t.Fatalf("document %d: %v\n%s", i+1, err, doc)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatalf("document %d: %v", i+1, err)
		}
		out = append(out, Object{u, fmt.Sprintf("document %d", i+1)})
	}
	return out
}

func load(t testing.TB, text string) *Fleet {
	t.Helper()
	f, err := Load(objects(t, text), "default")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func roomsOf(t testing.TB, f *Fleet) rooms {
	t.Helper()
	r, err := newRooms(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func run(t testing.TB, f *Fleet, c Change) Report {
	t.Helper()
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	r, err := Run(t.Context(), f, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// cluster has room for some CPUs and ten times as many pods; more is further YAML of its spec.
func cluster(name string, cpu int, more string) string {
	return fmt.Sprintf(`
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: %s, labels: {name: %[1]s}}
spec: {syncMode: Push%s}
status:
  conditions: [{type: CompleteAPIEnablements, status: "True"}, {type: Ready, status: "True"}]
  apiEnablements:
  - {groupVersion: apps/v1, resources: [{name: deployments, kind: Deployment}]}
  - {groupVersion: v1, resources: [{name: configmaps, kind: ConfigMap}, {name: secrets, kind: Secret}]}
  - {groupVersion: apps.kruise.io/v1alpha1, resources: [{name: clonesets, kind: CloneSet}]}
  resourceSummary: {allocatable: {cpu: "%d", memory: %dGi, pods: "%d"}}
---
`, name, more, cpu, cpu*4, cpu*10)
}

// deployment asks for one CPU each.
func deployment(name string, replicas int) string {
	return manifest("apps/v1", "Deployment", name, replicas)
}

func manifest(apiVersion, kind, name string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: %s, namespace: default, labels: {app: %[3]s}}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[3]s}}
  template:
    metadata: {labels: {app: %[3]s}}
    spec: {containers: [{name: c, image: "registry.example.com/web:1", resources: {requests: {cpu: "1", memory: 1Gi}}}]}
---
`, apiVersion, kind, name, replicas)
}

// policy places all Deployments, or what selectors select.
func policy(name, selectors, placement string) string {
	if selectors == "" {
		selectors = "[{apiVersion: apps/v1, kind: Deployment}]"
	}
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s, namespace: default}
spec: {resourceSelectors: %s, placement: %s}
---
`, name, selectors, placement)
}

const (
	byRoom  = "{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}"
	packed  = "{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}"
	equally = "{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}"
)

// teamQuota permits one replica more than the workloads of stories have.
const teamQuota = `
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: team, namespace: default}
spec: {overall: {cpu: "16"}}
---
`

var three = cluster("m1", 10, "") + cluster("m2", 10, "") + cluster("m3", 10, "")

func taint(t testing.TB, text string) Taint {
	t.Helper()
	taint, err := ParseTaint(text)
	if err != nil {
		t.Fatal(err)
	}
	return taint
}

func scale(t testing.TB, text string) Scale {
	t.Helper()
	s, err := ParseScale(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stories are tests with golden reports in testdata/<name>.txt.
func stories(t testing.TB) []struct {
	name, fleet string
	change      Change
} {
	workloads := deployment("web", 9) + deployment("api", 6)
	shop := three + policy("shop", "", byRoom) + workloads
	byPolicy := "apiVersion: simulate.argosy.io/v1alpha1\nkind: Fleet\nscheduler: {failover: {allBindings: false}}\n---\n" + shop
	once := strings.Replace(shop, "spec: {resource", "spec: {failover: {cluster: {purgeMode: Directly}}, resource", 1)
	return []struct {
		name, fleet string
		change      Change
	}{
		{"nothing-changes", shop, Change{}},
		{"a-cluster-is-removed", shop, Change{Removed: []string{"m1"}}},
		{"two-of-three-are-removed-and-not-all-fits", shop, Change{Removed: []string{"m1", "m3"}}},
		{"a-cluster-is-down", byPolicy, Change{Down: []string{"m1"}, Scale: []Scale{scale(t, "deployment/web=12")}}},
		{"a-lost-cluster-keeps-what-never-runs-twice", once, Change{Down: []string{"m1"}}},
		{"a-lost-cluster-is-replaced", shop, Change{Down: []string{"m1"}}},
		{"a-lost-cluster-is-replaced-in-part", shop + deployment("job", 12), Change{Down: []string{"m1"}}},
		{"two-lost-clusters-of-three-move-nothing", shop, Change{Down: []string{"m1", "m2"}}},
		{"a-noexecute-taint-moves-workloads", shop, Change{Taints: []Taint{taint(t, "m2=disk=slow:NoExecute")}}},
		{"a-cluster-is-drained", shop, Change{Drained: []string{"m2"}}},
		{"a-taint-that-keeps-new-ones-away", shop,
			Change{Taints: []Taint{taint(t, "m2=disk:NoSchedule")}, Scale: []Scale{scale(t, "deployment/web=12")}}},
		{"a-scale-beyond-capacity", shop, Change{Scale: []Scale{scale(t, "default/deployments.apps/web=40")}}},
		{"a-quota-that-a-scale-exceeds", shop + teamQuota, Change{Scale: []Scale{scale(t, "deployment/web=11")}}},
		{"a-quota-that-permits-a-scale", shop + teamQuota, Change{Scale: []Scale{scale(t, "deployment/web=10")}}},
		{"a-quota-below-what-runs", shop, Change{Scale: []Scale{scale(t, "deployment/web=10"), scale(t, "deployment/api=5")},
			Objects: objects(t, strings.Replace(teamQuota, "16", "10", 1))}},
		{"a-scale-that-static-weights-do-not-check", three + policy("shop", "", equally) + deployment("web", 3),
			Change{Scale: []Scale{scale(t, "deployment/web=60")}}},
		{"a-policy-that-takes-over", shop,
			Change{Objects: objects(t, strings.Replace(policy("only-m3", "[{apiVersion: apps/v1, kind: Deployment, name: api}]",
				"{clusterAffinity: {clusterNames: [m3]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}"),
				"spec: {", "spec: {priority: 10, preemption: Always, ", 1))}},
		{"spellings-of-guides", three + policy("shop", "", byRoom), Change{Objects: objects(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: clones, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}]
  placement:
    clusterAffinity: {clusterNames: [m1, m2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Dynamic
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: clones, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}]
  overrideRules:
  - targetCluster: {clusterNames: [m2]}
    overriders: {imageOverrider: [{component: Registry, operator: replace, value: registry.m2.example.com}]}
---
`+manifest("apps.kruise.io/v1alpha1", "CloneSet", "shop", 8))}},
		{"nowhere-to-go", cluster("m1", 4, ", taints: [{key: gpu, effect: NoSchedule}]") + cluster("m2", 4, "") +
			policy("p", "", "{clusterAffinity: {clusterNames: [m1]}}") + deployment("web", 2), Change{}},
	}
}

func TestReportsTellStories(t *testing.T) {
	for _, s := range stories(t) {
		t.Run(s.name, func(t *testing.T) {
			var got bytes.Buffer
			if err := run(t, load(t, s.fleet), s.change).Print(&got, false); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", s.name+".txt")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; run this test with -update", err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("the report is another than %s (-want +got); if it is better, run this test with -update:\n%s", file, diff)
			}
		})
	}
}

func TestCapacityOfASilentClusterIsReportedAsOld(t *testing.T) {
	silent := strings.Replace(cluster("m1", 10, ""), `{type: Ready, status: "True"}`,
		`{type: Ready, status: "False", reason: ClusterNotReachable, lastTransitionTime: "2026-01-01T00:00:00Z"}`, 1)
	for name, c := range map[string]struct {
		change Change
		want   []string
	}{
		"nothing changes": {Change{},
			[]string{"m1 has not been ready since 2026-01-01T00:00:00Z (ClusterNotReachable): its free capacity is the last that it reported"}},
		"the cluster leaves":    {Change{Removed: []string{"m1"}}, nil},
		"another is taken down": {Change{Removed: []string{"m1"}, Down: []string{"m2"}}, nil},
	} {
		if r := run(t, load(t, silent+cluster("m2", 10, "")), c.change); !slices.Equal(r.Warnings, c.want) {
			t.Errorf("%s: it warns %q, want %q", name, r.Warnings, c.want)
		}
	}
}

func TestClusterTableHasOneUnitPerColumnAndNoNegativeAmounts(t *testing.T) {
	q := func(text string) *resource.Quantity { return ptr(resource.MustParse(text)) }
	r := Report{Clusters: []Cluster{
		{Name: "m1", Headroom: map[corev1.ResourceName]Headroom{"cpu": {Before: q("10"), After: q("-840900m")},
			"memory": {Before: q("512Gi"), After: q("40Mi")}, "pods": {Before: q("9"), After: q("9")}}},
		{Name: "m2", State: "removed", Headroom: map[corev1.ResourceName]Headroom{"cpu": {Before: q("95700m")},
			"memory": {Before: q("1Gi")}}},
		{Name: "m3", State: "new", Headroom: map[corev1.ResourceName]Headroom{"cpu": {After: q("20m")}}},
	}}
	var got bytes.Buffer
	if err := r.Print(&got, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"m1 ", "10 → over by 840.9 ", "512Gi → <0.1Gi"},
		{"m2 ", "removed", "95.7 → none", "1Gi → none", "unknown"},
		{"m3 ", "new", "none → <0.1"},
	} {
		lines := strings.Split(got.String(), "\n")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  "+want[0]) })
		for _, part := range want[1:] {
			if i < 0 || !strings.Contains(lines[i], part) {
				t.Errorf("the row of %s lacks %q:\n%s", want[0], part, &got)
			}
		}
	}
}

func TestPlacedReplicasAreCountedAndReleased(t *testing.T) {
	f := load(t, cluster("m1", 10, "")+policy("p", "", packed)+deployment("a", 6)+deployment("b", 6))
	r := run(t, f, Change{})
	if r.Summary.Unplaced != 1 {
		t.Fatalf("two of six do not fit into ten, and %d do not", r.Summary.Unplaced)
	}
	r = run(t, f, Change{Scale: []Scale{scale(t, "deployment/a=4")}})
	if r.Summary.Unplaced != 0 || !r.Clusters[0].Headroom["cpu"].After.IsZero() {
		t.Errorf("four and six fit into ten: %+v %+v", r.Summary, r.Clusters)
	}
}

func TestWorkloadsOfAGroupKeepApart(t *testing.T) {
	apart := policy("p", "", "{workloadAffinity: {antiAffinity: {groupByLabelKey: tier}}, spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]}")
	tiered := func(name string) string {
		return strings.Replace(deployment(name, 1), "app: "+name, "tier: x, app: "+name, 1)
	}
	// m1 has the most room whatever goes there
	larger := cluster("m1", 90, "") + cluster("m2", 10, "") + cluster("m3", 10, "")
	r := run(t, load(t, larger+apart+tiered("a")+tiered("b")+tiered("c")), Change{})
	used := map[string]bool{}
	for _, w := range r.Workloads {
		used[shares(w.After)] = true
	}
	if len(used) != 3 || r.Summary.Unplaced != 0 {
		t.Errorf("three that keep apart are in %v, %+v", used, r.Workloads)
	}
}

// A fleet by chance: some of it placed, some of it nowhere.
func anyFleet(r *rand.Rand) string {
	var text strings.Builder
	n := 2 + r.IntN(5)
	for i := range n {
		more := fmt.Sprintf(", region: r%d", r.IntN(3))
		if r.IntN(4) == 0 {
			more += ", taints: [{key: k, effect: NoSchedule}]"
		}
		text.WriteString(cluster(fmt.Sprintf("m%d", i), 1+r.IntN(20), more))
	}
	placements := []string{byRoom, packed, equally, "{}", "{clusterAffinity: {clusterNames: [m0, m1]}}",
		"{clusterTolerations: [{operator: Exists}]}",
		"{spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 3}]}"}
	for i := range 1 + r.IntN(4) {
		text.WriteString(policy(fmt.Sprintf("p%d", i),
			fmt.Sprintf("[{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: d%d}}}, {apiVersion: apps/v1, kind: Deployment, name: d%d}]", i, i+1),
			placements[r.IntN(len(placements))]))
	}
	text.WriteString(policy("rest", "", placements[r.IntN(len(placements))]))
	for i := range 1 + r.IntN(8) {
		text.WriteString(deployment(fmt.Sprintf("d%d", i), r.IntN(15)))
	}
	return text.String()
}

func TestWithoutAChangeNothingMoves(t *testing.T) {
	rounds := uint64(200)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		report := run(t, load(t, anyFleet(rand.New(rand.NewPCG(seed, 1)))), Change{})
		for _, w := range report.Workloads {
			if w.Changed() {
				t.Fatalf("seed %d: %s went from %+v to %+v: %s", seed, w.Name, w.Before, w.After, w.Reason)
			}
		}
		if report.Summary.Changed != 0 || report.Summary.MovedReplicas != 0 {
			t.Fatalf("seed %d: %+v", seed, report.Summary)
		}
	}
}

func TestTheOrderOfObjectsDoesNotMatter(t *testing.T) {
	rounds := uint64(100)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 2))
		all := objects(t, anyFleet(r))
		change := Change{Removed: []string{"m0"}, Taints: []Taint{taint(t, "m1=x:NoExecute")}, Namespace: "default"}
		var want string
		for range 3 {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			f, err := Load(all, "default")
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(run(t, f, change))
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = string(got)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Fatalf("seed %d: in another order (-first +then):\n%s", seed, diff)
			}
		}
	}
}

func TestASimulationChangesNothingInTheFleet(t *testing.T) {
	f := load(t, anyFleet(rand.New(rand.NewPCG(7, 7))))
	first := run(t, f, Change{Removed: []string{"m0"}})
	again := run(t, f, Change{Removed: []string{"m0"}})
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the second run differs:\n%s", diff)
	}
}

func TestReplicasAddUpAndNoRoomIsUsedTwice(t *testing.T) {
	rounds := uint64(200)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		f := load(t, strings.ReplaceAll(strings.ReplaceAll(anyFleet(rand.New(rand.NewPCG(seed, 3))), equally, byRoom),
			"placement: {}", "placement: "+packed))
		r := run(t, f, Change{Removed: []string{"m0"}})
		for _, w := range r.Workloads {
			var sum int64
			for _, c := range w.After.Clusters {
				if c.Name == "m0" {
					t.Errorf("seed %d: %s is in a cluster that is down", seed, w.Name)
				}
				sum += int64(c.Replicas)
			}
			p := f.policies[nameOf(w.After.Policy)]
			if p != nil && p.PropagationSpec().Placement.DividesReplicas() && sum+w.Unplaced != int64(w.After.Replicas) {
				t.Errorf("seed %d: %s has %d replicas placed and %d not, of %d", seed, w.Name, sum, w.Unplaced, w.After.Replicas)
			}
		}
	}
}

// The room that a simulation uses up is, before anything is placed, the room that the scheduler sees.
func TestTheRoomIsTheSchedulers(t *testing.T) {
	rounds := uint64(50)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		f := load(t, anyFleet(rand.New(rand.NewPCG(seed, 4))))
		s := newState(f.clone(), roomsOf(t, f), nil, time.Unix(1, 0))
		b := &workv1alpha2.ResourceBinding{}
		b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{
			ResourceRequest: f.clusters["m0"].Status.ResourceSummary.Allocatable}
		parts := &workv1alpha2.ResourceBinding{}
		for i, cpu := range []string{"1", "500m"} {
			parts.Spec.Components = append(parts.Spec.Components, workv1alpha2.Component{Name: cpu, Replicas: int32(1 + i),
				ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(cpu)}}})
		}
		for _, room := range []workv1alpha2.Binding{b, parts, &workv1alpha2.ResourceBinding{}} {
			ours, theirs := s.rooms.capacityFor(room), s.snapshot.Room(room)
			for name := range f.clusters {
				n, known := ours(name)
				m, also := theirs(name)
				if n != m || known != also {
					t.Errorf("seed %d: in %s there is room for %d (%v), and the scheduler says %d (%v)", seed, name, n, known, m, also)
				}
			}
		}
	}
}

func TestContradictionsAreReported(t *testing.T) {
	fleet := three + policy("shop", "", byRoom) + deployment("web", 3) +
		"\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\n---\n"
	for _, c := range []struct {
		name   string
		change Change
		want   []string
	}{
		{"a cluster that is not there", Change{Removed: []string{"m9"}},
			[]string{`--cluster-removed: there is no cluster "m9"; there are m1, m2, m3`}},
		{"a cluster that is both down and removed", Change{Down: []string{"m1"}, Removed: []string{"m1"}},
			[]string{`--cluster-removed: cluster "m1" is also in --cluster-down`}},
		{"a cluster that is both down and unhealthy", Change{Down: []string{"m1"}, Unhealthy: []string{"m1"}},
			[]string{`--unhealthy: cluster "m1" is also in --cluster-down`}},
		{"a taint on a cluster that is removed", Change{Removed: []string{"m1"}, Taints: []Taint{{Cluster: "m1"}}},
			[]string{`--taint: cluster "m1" is also in --cluster-removed`}},
		{"a scale of what is not there", Change{Scale: []Scale{scale(t, "deployment/none=3")}},
			[]string{"default/deployment/none=3", "no such template"}},
		{"a scale of what has no replicas", Change{Scale: []Scale{scale(t, "configmap/c=3")}},
			[]string{"ConfigMap default/c cannot be scaled", "no number of replicas"}},
		{"two scales of one", Change{Scale: []Scale{scale(t, "deployment/web=3"), scale(t, "default/deployments/web=4")}},
			[]string{"another one gives it 3 replicas"}},
		{"an object twice", Change{Objects: objects(t, deployment("x", 1)+deployment("x", 2))},
			[]string{"document 2: Deployment default/x is in document 1 already"}},
		{"a field that is not there", Change{Objects: objects(t, policy("x", "", "{clusterAfinity: {}}"))},
			[]string{"document 1: PropagationPolicy default/x", "clusterAfinity"}},
		{"min above max", Change{Objects: objects(t,
			policy("x", "", "{spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]}"))},
			[]string{"document 1: PropagationPolicy default/x", "maxGroups"}},
		{"two spellings that contradict each other",
			Change{Objects: objects(t, policy("x", "",
				"{replicaScheduling: {dynamicWeight: AvailableReplicas, weightPreference: {dynamicWeight: Other}}}"))},
			[]string{"document 1: PropagationPolicy default/x", "dynamicWeight"}},
		{"a binding", Change{Objects: objects(t,
			"apiVersion: work.karmada.io/v1alpha2\nkind: ResourceBinding\nmetadata: {name: x}\n")},
			[]string{"the hub makes these itself"}},
		{"all at once", Change{Removed: []string{"m8"}, Scale: []Scale{scale(t, "deployment/none=3")}},
			[]string{`"m8"`, "no such template"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.change.Namespace = "default"
			_, err := Run(t.Context(), load(t, fleet), c.change)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want it to say %q", err, want)
				}
			}
		})
	}
}

func TestFlagsAreReadOrRefusedWithAnExample(t *testing.T) {
	for text, want := range map[string]string{
		"m1=key:NoSchedule": "m1 key:NoSchedule", "m1=a.b/c=v:NoExecute": "m1 a.b/c=v:NoExecute", "m1=k:Never": "",
		"m1=:NoSchedule": "", "key:NoSchedule": "", "m1=k": "", "m1=k=ü:NoSchedule": "",
	} {
		taint, err := ParseTaint(text)
		if got := strings.TrimSpace(taint.Cluster + " " + taint.ToString()); (err != nil) != (want == "") || err == nil &&
			got != want || err != nil && !strings.Contains(err.Error(), "such as m1=disk=slow:NoSchedule") {
			t.Errorf("taint %q is %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"deployment/web=3": "deployment/web=3", "shop/clonesets.apps.kruise.io/web=0": "shop/clonesets.apps.kruise.io/web=0",
		"web=3": "", "deployment/web": "", "deployment/web=-1": "", "a/b/c/d=1": "", "deployment/web=x": "", "/web=1": "",
	} {
		s, err := ParseScale(text)
		if (err != nil) != (want == "") || err == nil && s.String() != want {
			t.Errorf("scale %q is %q, %v, want %q", text, s, err, want)
		}
	}
}

func TestNothingSecretIsRecorded(t *testing.T) {
	const needle = "hunter2"
	for _, o := range objects(t, `
apiVersion: v1
kind: Secret
metadata:
  name: s
  namespace: default
  labels: {app: shop}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":"hunter2"}', other: hunter2, argosy.io/submitted-fields: hunter2}
type: Opaque
data: {password: hunter2}
stringData: {password: hunter2}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: o, namespace: default, annotations: {argosy.io/submitted-fields: hunter2}}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Secret}]
  overrideRules:
  - overriders:
      plaintext: [{path: /data/password, operator: replace, value: hunter2}, {path: /data, operator: replace, value: {a: hunter2}}, {path: /immutable, operator: add, value: true}]
      fieldOverrider: [{fieldPath: /stringData/x, json: [{subPath: /a, operator: add, value: hunter2}]}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: everything, annotations: {argosy.io/changed-by: hunter2}}
spec: {overrideRules: [{overriders: {plaintext: [{path: "", operator: replace, value: {data: hunter2}}, {path: /stringData/password, operator: add, value: hunter2}]}}]}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1}
spec: {syncMode: Push, proxyHeader: {Authorization: hunter2}, proxyURL: "http://u:hunter2@proxy", secretRef: {name: m1, namespace: n}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}
status: {note: hunter2}
`) {
		raw, err := Recorded(o.Unstructured).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), needle) {
			t.Errorf("%s %s is recorded with what nobody may read: %s", o.GetKind(), o.GetName(), raw)
		}
		if o.GetKind() == "Secret" && (!strings.Contains(string(raw), `"app":"shop"`) ||
			!strings.Contains(string(raw), "Opaque")) {
			t.Errorf("the Secret is recorded without what policies select it by: %s", raw)
		}
		if o.GetKind() == "OverridePolicy" && !strings.Contains(string(raw), "/immutable") {
			t.Errorf("the override is recorded without what is not secret: %s", raw)
		}
	}
}

func nameOf(policy string) (key types.NamespacedName) {
	_, name, _ := strings.Cut(policy, " ")
	key.Namespace, key.Name, _ = strings.Cut(name, "/")
	return key
}

// What SidecarSets inject takes room, also of one that is about to be applied; where it counted before and is not
// known, it stays.
func TestSidecarsTakeRoom(t *testing.T) {
	const sidecars = `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: logs}
spec: {selector: {matchLabels: {app: web}}, %scontainers: [{name: logs, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: sidecars}
spec: {resourceSelectors: [{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet}], placement: {}}
---
`
	shop := cluster("m1", 10, "") + policy("shop", "", byRoom) + deployment("web", 6) + deployment("api", 2)
	labelled := fmt.Sprintf(sidecars, "namespaceSelector: {matchLabels: {team: x}}, ")
	const namespace = `
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {team: x}}
---
`
	for _, c := range []struct {
		name, fleet, files string
		fits               bool
		warnings           int
	}{
		{"without them all fits", shop, "", true, 0},
		{"with them it does not", shop + fmt.Sprintf(sidecars, ""), "", false, 0},
		{"when they are applied it will not", shop, fmt.Sprintf(sidecars, "") + deployment("web", 7), false, 0},
		{"which without them it would", shop, deployment("web", 7), true, 0},
		{"for other namespaces they take nothing", shop +
			fmt.Sprintf(sidecars, "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}, "), "", true, 0},
		{"for this one by its labels they do", shop + labelled + namespace, "", false, 0},
		{"without its labels that is said", shop, labelled, true, 1},
	} {
		r := run(t, load(t, c.fleet), Change{Objects: objects(t, c.files)})
		fits := true
		for _, w := range r.Workloads {
			fits = fits && (w.Problem == "" || w.Kind != "Deployment")
		}
		missed := slices.DeleteFunc(r.Warnings, func(w string) bool {
			return !strings.Contains(w, "selects namespaces by label")
		})
		if fits != c.fits || len(missed) != c.warnings {
			t.Errorf("%s: it fits: %v, want %v; %+v, %v", c.name, fits, c.fits, r.Workloads, r.Warnings)
		}
	}
}

func TestDisabledPluginIsSkippedAndReported(t *testing.T) {
	fleet := load(t, three+policy("shop", "", byRoom)+deployment("web", 9))
	change := Change{Namespace: "default", Taints: []Taint{taint(t, "m2=disk:NoSchedule")},
		Objects: objects(t, deployment("api", 6))}
	plugins, err := schedule.ParsePlugins([]string{"*", "-TaintToleration"})
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []bool{false, true} {
		f := fleet
		if off {
			f = fleet.ScheduledBy(schedule.Settings{Plugins: plugins})
		}
		r, err := Run(t.Context(), f, change)
		if err != nil || len(r.Workloads) != 2 || r.Workloads[0].Name != "api" {
			t.Fatalf("%+v, %v", r, err)
		}
		if took := slices.ContainsFunc(r.Workloads[0].After.Clusters, func(c workv1alpha2.TargetCluster) bool {
			return c.Name == "m2"
		}); took != off {
			t.Errorf("TaintToleration off %t: what is new goes to m2: %t", off, took)
		}
		if said := strings.Contains(strings.Join(r.Warnings, "\n"),
			"runs without the plugins [TaintToleration]"); said != off {
			t.Errorf("TaintToleration off %t: warnings %q", off, r.Warnings)
		}
	}
	r, err := Run(t.Context(), fleet.ScheduledBy(schedule.Settings{Name: "another"}), change)
	if err != nil || len(r.Workloads) != 2 || len(r.Workloads[0].After.Clusters) != 0 {
		t.Errorf("what is another scheduler's was placed: %+v, %v", r.Workloads, err)
	}
}

func TestQuotasThatTheHubOnlyCountsRefuseNothing(t *testing.T) {
	fleet := load(t, three+policy("shop", "", byRoom)+deployment("web", 9)+deployment("api", 6)+teamQuota)
	for name, c := range map[string]struct {
		change  Change
		refused int
	}{
		"more replicas":  {Change{Scale: []Scale{scale(t, "default/deployment/web=11")}}, 1},
		"a new workload": {Change{Namespace: "default", Objects: objects(t, deployment("new", 2))}, 1},
		"a new quota":    {Change{Namespace: "default", Objects: objects(t, strings.Replace(teamQuota, "16", "10", 1))}, 0},
	} {
		for _, off := range []bool{false, true} {
			want := c.refused
			if off {
				want = 0
			}
			r, err := Run(t.Context(), fleet.ScheduledBy(schedule.Settings{QuotasOff: off}), c.change)
			if err != nil || r.Summary.Unplaced != want {
				t.Errorf("%s, quotas off %t: %d do not fit, want %d: %+v, %v", name, off, r.Summary.Unplaced,
					want, r.Workloads, err)
			}
		}
	}
}

// A check shows the problems of the objects that it is about, and no problem that other objects have anyway.
func TestNarrowReportIsAboutTheChangedObjects(t *testing.T) {
	silent := strings.Replace(cluster("m9", 4, ""), `{type: Ready, status: "True"}`,
		`{type: Ready, status: "False", reason: ClusterNotReachable, lastTransitionTime: "2026-01-01T00:00:00Z"}`, 1)
	in := "{clusterAffinity: {clusterNames: [m1]}, " + strings.TrimPrefix(packed, "{")
	fleet := nodes(map[string]int{"m1": 4}) + silent +
		policy("shop", "[{apiVersion: apps/v1, kind: Deployment}]", in) +
		policy("large", "[{apiVersion: apps/v1, kind: Deployment, name: large}]", in) + deployment("large", 50) +
		deployment("small", 1)
	for name, c := range map[string]struct {
		files, workloads string
		unplaced         int
	}{
		"a template":                    {deployment("web", 2), "web", 0},
		"a template that does not fit":  {deployment("web", 60), "web", 1},
		"the template with the problem": {deployment("large", 51), "large", 1},
		"its policy, and not another's": {
			policy("large", "[{apiVersion: apps/v1, kind: Deployment, name: large}]", in), "large", 1},
		"an object that changes nothing": {deployment("small", 1), "", 0},
	} {
		r := run(t, load(t, fleet), Change{Objects: objects(t, c.files)})
		if r.Summary.Unplaced == 0 || !strings.Contains(strings.Join(r.Warnings, "\n"), "m9") {
			t.Fatalf("%s: the whole report is %+v", name, r)
		}
		narrow := r.Narrow()
		var names []string
		for _, w := range narrow.Workloads {
			names = append(names, w.Name)
		}
		if got := strings.Join(names, " "); got != c.workloads || narrow.Summary.Unplaced != c.unplaced ||
			len(narrow.Warnings) > 0 {
			t.Errorf("%s: workloads %q, want %q; %+v, warnings %q", name, got, c.workloads, narrow.Summary, narrow.Warnings)
		}
	}
}
