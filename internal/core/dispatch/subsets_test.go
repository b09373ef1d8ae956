package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

const nobodyYet = `
resource: {kind: UnitedDeployment, apiVersion: apps.kruise.io/v1beta1}
replicas: 5
replicaRequirements: {}
placement: {clusterAffinity: {clusterNames: [eu, us, ap]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}
`

// home returns a subset that goes to clusters by name, or anywhere without any.
func home(name string, replicas any, clusters ...any) map[string]any {
	s := map[string]any{"name": name}
	if replicas != nil {
		s["replicas"] = replicas
	}
	if len(clusters) > 0 {
		s[fleet.AffinityField] = map[string]any{"clusterNames": clusters}
	}
	return s
}

// united begins with a UnitedDeployment of these subsets, in clusters that serve it.
func beginUnited(t *testing.T, replicas int64, subsets ...map[string]any) *story {
	t.Helper()
	s := begin(t, united, nobodyYet)
	for _, c := range s.in.Clusters {
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps.kruise.io/v1beta1",
			Resources: []clusterv1alpha1.APIResource{{Name: "uniteddeployments", Kind: "UnitedDeployment"}}}}
	}
	s.subsets(replicas, subsets...)
	return s
}

func (s *story) subsets(replicas int64, subsets ...map[string]any) {
	s.t.Helper()
	all := make([]any, len(subsets))
	for i := range subsets {
		all[i] = subsets[i]
	}
	s.edit(all, "spec", "topology", "subsets")
	s.edit(replicas, "spec", "replicas")
}

// place brings the binding up to the template, and has the scheduler place it.
func (s *story) place() error {
	s.t.Helper()
	spec := s.in.Binding.BindingSpec()
	replicas, _, _ := unstructured.NestedInt64(s.in.Template.Object, "spec", "replicas")
	spec.Replicas = int32(replicas)
	schedule.SetParts(s.in.Binding, propagate.Parts(s.in.Template, spec.Replicas))
	var clusters []*clusterv1alpha1.Cluster
	for _, c := range s.in.Clusters {
		clusters = append(clusters, c)
	}
	r, err := schedule.Schedule(s.in.Binding, schedule.NewSnapshot(clusters), nil)
	spec.Clusters = r.Clusters
	return err
}

// send decides and writes; false if nothing is to be written yet.
func (s *story) send() bool {
	s.t.Helper()
	d := dispatch.Decide(context.Background(), s.in, interpret.New(builtin.Tier()))
	if d.Waits {
		return false
	}
	if d.Err != nil {
		s.t.Fatal(d.Err)
	}
	standing := map[string]*workv1alpha1.Work{}
	for _, r := range d.Results {
		if r.Err != nil {
			s.t.Fatal(r.Err)
		}
		standing[r.Cluster] = r.Work
	}
	s.in.Existing = standing
	return true
}

// shown returns the numbers in each cluster's manifest: "eu 5: a=3 b=2".
func (s *story) shown() string {
	s.t.Helper()
	var out []string
	for _, cluster := range []string{"eu", "us", "ap"} {
		w := s.in.Existing[cluster]
		if w == nil {
			continue
		}
		m := manifest(s.t, w)
		subsets, _, err := unstructured.NestedSlice(m.Object, "spec", "topology", "subsets")
		if err != nil {
			s.t.Fatal(err)
		}
		line := fmt.Sprintf("%s %d:", cluster, number(s.t, m, "spec", "replicas"))
		for _, v := range subsets {
			n, set := v.(map[string]any)["replicas"]
			if !set {
				n = "-"
			}
			line += fmt.Sprintf(" %v=%v", v.(map[string]any)["name"], n)
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func TestSubsetRunsOnlyInItsClusters(t *testing.T) {
	for _, c := range []struct {
		name     string
		replicas int64
		subsets  []map[string]any
		want     string
	}{
		{"each in its own", 5, []map[string]any{home("a", int64(3), "eu"), home("b", int64(2), "us")},
			"eu 3: a=3; us 2: b=2"},
		{"by percent of an odd number", 5, []map[string]any{home("a", "50%", "eu"), home("b", "50%", "us")},
			"eu 3: a=3; us 2: b=2"},
		{"without numbers, evenly", 5, []map[string]any{home("a", nil, "eu"), home("b", nil, "us")}, "eu 3: a=3; us 2: b=2"},
		{"one over two clusters", 5, []map[string]any{home("a", int64(5), "eu", "us")}, "eu 3: a=3; us 2: a=2"},
		{"beside others that are divided", 9, []map[string]any{home("a", int64(3), "eu"), home("b", int64(3)),
			home("c", int64(3))}, "eu 5: a=3 b=1 c=1; us 2: b=1 c=1; ap 2: b=1 c=1"},
		{"beside one that takes the rest", 9, []map[string]any{home("a", int64(3), "eu"), home("b", nil)},
			"eu 5: a=3 b=-; us 2: b=-; ap 2: b=-"},
		{"one that takes the rest", 9, []map[string]any{home("a", nil, "eu"), home("b", int64(6))},
			"eu 5: a=3 b=2; us 2: b=2; ap 2: b=2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := beginUnited(t, c.replicas, c.subsets...)
			if s.send() {
				t.Error("it is sent before it is placed")
			}
			if err := s.place(); err != nil {
				t.Fatal(err)
			}
			if !s.send() || s.shown() != c.want {
				t.Errorf("it is %s, want %s", s.shown(), c.want)
			}
			for cluster, w := range s.in.Existing {
				if strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), fleet.AffinityField) {
					t.Errorf("%s gets %s", cluster, w.Spec.Workload.Manifests[0].Raw)
				}
			}
		})
	}
}

// A subset that changes its clusters leaves no cluster before the scheduler has said where it goes: its pods would be
// gone meanwhile.
func TestSubsetKeepsPodsUntilPlacedAgain(t *testing.T) {
	s := beginUnited(t, 6, home("a", int64(3), "eu"), home("b", int64(3)))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.place())
	s.send()
	before := s.shown()
	for name, subsets := range map[string][]map[string]any{
		"b names its cluster now": {home("a", int64(3), "eu"), home("b", int64(3), "us")},
		"a names none now":        {home("a", int64(3)), home("b", int64(3))},
		"other numbers":           {home("a", int64(2), "eu"), home("b", int64(4))},
	} {
		s := *s
		s.subsets(6, subsets...)
		if s.send() || s.shown() != before {
			t.Errorf("%s: sent %s", name, s.shown())
		}
	}
	// Where the scheduler cannot place it, all stays.
	s.subsets(6, home("a", int64(3), "nowhere"), home("b", int64(3)))
	if err := s.place(); err == nil || !strings.Contains(err.Error(), `subset "a" is not scheduled to any cluster`) {
		t.Errorf("placed with %v", err)
	}
	s.subsets(7, home("a", int64(4), "nowhere"), home("b", int64(3)))
	if err := s.place(); err == nil || s.send() || s.shown() != before {
		t.Errorf("sent %s, %v", s.shown(), err)
	}
	s.subsets(7, home("a", int64(4), "us"), home("b", int64(3)))
	must(s.place())
	if !s.send() || s.shown() != "eu 1: b=1; us 5: a=4 b=1; ap 1: b=1" {
		t.Errorf("sent %s", s.shown())
	}
}

// A subset whose cluster is lost blocks no change of the others.
func TestOthersGoOnWhileASubsetHasNoCluster(t *testing.T) {
	s := beginUnited(t, 9, home("a", int64(3), "eu"), home("b", int64(2), "us"), home("c", int64(4)))
	if err := s.place(); err != nil {
		t.Fatal(err)
	}
	s.send()
	if s.shown() != "eu 5: a=3 c=2; us 3: b=2 c=1; ap 1: c=1" && s.shown() != "eu 4: a=3 c=1; us 4: b=2 c=2; ap 1: c=1" &&
		s.shown() != "eu 4: a=3 c=1; us 3: b=2 c=1; ap 2: c=2" {
		t.Fatalf("sent %s", s.shown())
	}
	// eu is evicted, and the scheduler has no other place for its subset.
	spec, status := s.in.Binding.BindingSpec(), s.in.Binding.BindingStatus()
	spec.Clusters = slices.DeleteFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == "eu" })
	delete(s.in.Existing, "eu")
	s.edit(int64(3), "spec", "revisionHistoryLimit")
	if s.send() {
		t.Error("it is sent before the scheduler has said anything")
	}
	status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse}}
	status.SchedulerObservedGeneration = s.in.Binding.GetGeneration()
	before := s.shown()
	if !s.send() || s.shown() != before ||
		number(t, manifest(t, s.in.Existing["us"]), "spec", "revisionHistoryLimit") != 3 {
		t.Errorf("sent %s, want %s with the change", s.shown(), before)
	}
}

func TestPartitionsFollowSubsets(t *testing.T) {
	s := beginUnited(t, 7, home("a", int64(4), "eu", "us"), home("b", int64(3), "ap"))
	s.edit(map[string]any{"a": int64(2), "b": int64(1)}, "spec", "updateStrategy", "manualUpdate", "partitions")
	if err := s.place(); err != nil {
		t.Fatal(err)
	}
	s.send()
	var got []string
	for _, cluster := range []string{"eu", "us", "ap"} {
		partitions, _, err := unstructured.NestedMap(manifest(t, s.in.Existing[cluster]).Object, "spec", "updateStrategy",
			"manualUpdate", "partitions")
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(partitions)
		got = append(got, string(raw))
	}
	if want := `{"a":1} {"a":1} {"b":1}`; strings.Join(got, " ") != want {
		t.Errorf("partitions are %s, want %s", strings.Join(got, " "), want)
	}
}

// Whatever subsets there are: in each cluster they add up to what it has, as members want it, and over all to what the
// template says.
func TestSubsetsAddUpWhereverTheyGo(t *testing.T) {
	seeds := 1000
	if testing.Short() {
		seeds = 100
	}
	clusters := []any{"eu", "us", "ap"}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := beginUnited(t, 1, home("a", nil))
		for round := range 3 {
			var subsets []map[string]any
			total, open := int64(0), false
			for k := range 1 + r.IntN(4) {
				var named []any
				if r.IntN(3) > 0 {
					for _, i := range r.Perm(3)[:1+r.IntN(2)] {
						named = append(named, clusters[i])
					}
				}
				n := int64(r.IntN(7))
				subset := home(fmt.Sprintf("s%d", k), n, named...)
				if total += n; r.IntN(4) == 0 {
					delete(subset, "replicas")
					open = true
				}
				subsets = append(subsets, subset)
			}
			if total == 0 {
				continue
			}
			if open {
				total += int64(r.IntN(5))
			}
			s.subsets(total, subsets...)
			if err := s.place(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !s.send() {
				t.Fatalf("seed %d: it waits though it is placed", seed)
			}
			all, sums := int64(0), map[string]int64{}
			for cluster, w := range s.in.Existing {
				m := manifest(t, w)
				has := number(t, m, "spec", "replicas")
				all += has
				list, _, _ := unstructured.NestedSlice(m.Object, "spec", "topology", "subsets")
				whole, sum := true, int64(0)
				for _, v := range list {
					name := v.(map[string]any)["name"].(string)
					at := slices.IndexFunc(subsets, func(x map[string]any) bool { return x["name"] == name })
					if a, ok := subsets[at][fleet.AffinityField].(map[string]any); ok &&
						!slices.Contains(a["clusterNames"].([]any), any(cluster)) {
						t.Fatalf("seed %d: %s has subset %s", seed, cluster, name)
					}
					n, set := v.(map[string]any)["replicas"].(int64)
					whole = whole && set
					sum += n
					sums[name] += n
				}
				if sum > has || whole && sum != has {
					t.Fatalf("seed %d, round %d: in %s subsets of %d replicas add up to %d: %s", seed, round, cluster, has, sum,
						s.shown())
				}
			}
			if all != total {
				t.Fatalf("seed %d: %d of %d replicas: %s", seed, all, total, s.shown())
			}
			for _, subset := range subsets {
				if n, set := subset["replicas"]; set && sums[subset["name"].(string)] != n {
					t.Fatalf("seed %d: subset %v has %d: %s", seed, subset, sums[subset["name"].(string)], s.shown())
				}
			}
		}
	}
}
