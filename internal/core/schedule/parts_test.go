package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
)

// part returns a subset that goes to clusters by name, or to those of an "env=value".
func part(name string, replicas int32, clusters ...string) Part {
	p := Part{Name: name, Replicas: replicas}
	if env, ok := strings.CutPrefix(clusters[0], "env="); ok {
		p.ClusterAffinity.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
		return p
	}
	p.ClusterAffinity.ClusterNames = clusters
	return p
}

// having notes parts on b.
func having(b *workv1alpha2.ResourceBinding, p Parts) *workv1alpha2.ResourceBinding {
	SetParts(b, &p)
	return b
}

// recorded returns the binding after a run.
func recorded(t *testing.T, b *workv1alpha2.ResourceBinding, s Snapshot, room Capacity) Result {
	t.Helper()
	r, err := Schedule(b, s, room)
	if err != nil {
		t.Fatal(err)
	}
	p := PartsOf(b)
	record(b, r, nil, time.Unix(100, 0))
	SetParts(b, p)
	return r
}

// detailed is "a=3(x:1 y:2)".
func detailed(targets []workv1alpha2.TargetCluster) string {
	var out []string
	for _, t := range targets {
		var parts []string
		for _, c := range t.Components {
			parts = append(parts, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
		}
		out = append(out, fmt.Sprintf("%s=%d(%s)", t.Name, t.Replicas, strings.Join(parts, " ")))
	}
	return strings.Join(out, " ")
}

func TestSubsetsUseTheirClustersAndThePolicyDividesTheRest(t *testing.T) {
	s := fleet(cluster("a", labelled("env", "prod")), cluster("b", labelled("env", "prod")), cluster("c"))
	for _, c := range []struct {
		name      string
		replicas  int32
		placement policyv1alpha1.Placement
		parts     Parts
		room      Capacity
		want      string
	}{
		{"each in one", 5, equally(), Parts{Subsets: []Part{part("x", 3, "a"), part("y", 2, "b")}}, nil, "a=3(x:3) b=2(y:2)"},
		{"one by label", 5, equally(), Parts{Subsets: []Part{part("x", 5, "env=prod")}}, nil, "a=3(x:3) b=2(x:2)"},
		{"two in one", 5, equally(), Parts{Subsets: []Part{part("x", 3, "a"), part("y", 2, "a")}}, nil, "a=5(x:3 y:2)"},
		{"with others", 6, equally(), Parts{Subsets: []Part{part("x", 3, "a")}, Rest: true}, nil, "a=4(x:3) b=1() c=1()"},
		{"others by room, which they take too", 6, byAvailability(), Parts{Subsets: []Part{part("x", 3, "a")}, Rest: true},
			room("a=3 b=9 c=0"), "a=3(x:3) b=3()"},
		{"others in few clusters", 6, upTo(equally(), 1, 1), Parts{Subsets: []Part{part("x", 3, "b")}, Rest: true}, nil,
			"a=3() b=3(x:3)"},
		{"by the weights of the policy", 8, byWeight("a=3 b=1"), Parts{Subsets: []Part{part("x", 8, "env=prod")}}, nil,
			"a=6(x:6) b=2(x:2)"},
		{"the policy allows one of two", 5, restrictedTo(equally(), "a"), Parts{Subsets: []Part{part("x", 5, "env=prod")}},
			nil,
			"a=5(x:5)"},
		{"fewer than clusters", 2, equally(), Parts{Subsets: []Part{part("x", 1, "a", "b"), part("y", 1, "b")}}, nil,
			"a=1(x:1) b=1(x:0 y:1)"},
		{"none of one", 2, equally(), Parts{Subsets: []Part{part("x", 0, "nowhere"), part("y", 2, "b")}}, nil, "b=2(y:2)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := having(deployment(c.replicas, c.placement), c.parts)
			r := recorded(t, b, s, c.room)
			if got := detailed(r.Clusters); got != c.want {
				t.Errorf("placed %s, want %s", got, c.want)
			}
			if reason, due := Due(b, s); due {
				t.Errorf("it is due again: %s", reason)
			}
			if again := detailed(recorded(t, b, s, c.room).Clusters); again != c.want {
				t.Errorf("another run says %s", again)
			}
		})
	}
}

func TestSubsetWithoutClusterReportsReasonAndMovesNothing(t *testing.T) {
	s := fleet(named("a", "b")...)
	for name, c := range map[string]struct {
		placement  policyv1alpha1.Placement
		parts      Parts
		text, help string
	}{
		"no such cluster": {equally(), Parts{Subsets: []Part{part("x", 2, "z")}},
			`subset "x" is not scheduled to any cluster: its clusterAffinity matches none`,
			"the fleet has no z, which clusterNames lists: correct it to one of a, b, or join a cluster of that name"},
		"no such label": {equally(), Parts{Subsets: []Part{part("x", 2, "env=prod")}},
			`subset "x" is not scheduled to any cluster: its clusterAffinity matches none`, "env"},
		"not the policy's": {restrictedTo(equally(), "a"), Parts{Subsets: []Part{part("x", 2, "b")}},
			`subset "x" is not scheduled to any cluster: none that its clusterAffinity selects fits (b: cluster(s) did not match the placement cluster affinity constraint)`, "let the policy match b; or name other clusters"},
		"subsets that make no sense": {equally(), Parts{Fault: "they add up to 3"}, "they add up to 3",
			"correct the subsets"},
	} {
		b := placed(having(deployment(2, c.placement), c.parts), "a=2")
		SetParts(b, &c.parts)
		r, err := Schedule(b, s, nil)
		var failure *PartError
		if !errors.As(err, &failure) || failure.Text != c.text || !strings.Contains(failure.Hint, c.help) {
			t.Errorf("%s: %v; %s", name, err, Help(err))
		}
		if got := targetList(r.Clusters); got != "a=2" {
			t.Errorf("%s: moved to %s", name, got)
		}
		if condition := Condition(err); condition.Reason != workv1alpha2.ReasonNoClusterFit ||
			!strings.Contains(condition.Message, c.text) {
			t.Errorf("%s: condition %v", name, condition)
		}
	}
}

func TestChangedSubsetsTriggerScheduling(t *testing.T) {
	prod := cluster("b", labelled("env", "prod"))
	s := fleet(cluster("a"), prod)
	b := having(deployment(4, equally()), Parts{Subsets: []Part{part("x", 1, "a"), part("y", 3, "env=prod")}})
	recorded(t, b, s, nil)

	// 1. The template.
	for name, p := range map[string]Parts{
		"others of each":    {Subsets: []Part{part("x", 2, "a"), part("y", 2, "env=prod")}},
		"another cluster":   {Subsets: []Part{part("x", 1, "b"), part("y", 3, "env=prod")}},
		"another name":      {Subsets: []Part{part("z", 1, "a"), part("y", 3, "env=prod")}},
		"one more":          {Subsets: []Part{part("x", 1, "a"), part("y", 3, "env=prod")}, Rest: true},
		"one that is whole": {Subsets: []Part{part("y", 4, "env=prod")}},
	} {
		changed := b.DeepCopy()
		SetParts(changed, &p)
		reason, due := Due(changed, s)
		if want := name != "one more"; due != want || due && reason != SubsetsChanged || Settled(b, &p) {
			t.Errorf("%s: due %v, %s; settled %v", name, due, reason, Settled(b, &p))
		}
		if Settled(changed, &p) == due && name != "another cluster" {
			t.Errorf("%s: settled %v", name, !due)
		}
	}
	if none := b.DeepCopy(); true {
		SetParts(none, nil)
		if reason, due := Due(none, s); !due || reason != SubsetsChanged {
			t.Errorf("subsets that name clusters no more: %v, %s", due, reason)
		}
	}
	// 2. A cluster that is meant no more.
	other := cluster("b")
	if !Affects(b, prod, other, Plugins{}) {
		t.Error("a cluster that a subset means no more affects nothing")
	}
	if reason, due := Due(b, fleet(cluster("a"), other)); !due || reason != SubsetsChanged {
		t.Errorf("due %v, %s", due, reason)
	}
	// 3. One that is meant now, while there was none.
	waits := having(deployment(1, equally()), Parts{Subsets: []Part{part("y", 1, "env=prod")}})
	_, err := Schedule(waits, fleet(cluster("a"), other), nil)
	p := PartsOf(waits)
	record(waits, Result{}, err, time.Unix(100, 0))
	SetParts(waits, p)
	if !Affects(waits, other, prod, Plugins{}) {
		t.Error("the first cluster that a subset means affects nothing")
	}
	if Likeness(b) == Likeness(waits) {
		t.Error("a cluster concerns bindings of other subsets alike")
	}
}

// Whatever the subsets and the fleet are, each has its replicas, in clusters that it names and the policy allows, and
// the sums are right.
func TestEverySubsetIsPlacedExactly(t *testing.T) {
	seeds := 2000
	if testing.Short() {
		seeds = 200
	}
	for seed := range uint64(seeds) {
		r := rng(seed)
		var clusters []*clusterv1alpha1.Cluster
		for i := range 1 + r.IntN(6) {
			clusters = append(clusters, cluster(fmt.Sprintf("c%d", i), labelled("env", fmt.Sprint(r.IntN(3)))))
		}
		s := fleet(clusters...)
		placement := []policyv1alpha1.Placement{equally(), byAvailability(), together(), byWeight("c0=3 c1=1"),
			upTo(equally(), 1, 2)}[r.IntN(5)]
		if r.IntN(3) == 0 {
			placement = restrictedTo(placement, "c0", "c1", "c2")
		}
		parts, total := Parts{Rest: r.IntN(2) == 0}, int32(0)
		for k := range 1 + r.IntN(4) {
			p := part(fmt.Sprintf("s%d", k), int32(r.IntN(9)), fmt.Sprintf("c%d", r.IntN(6)), fmt.Sprintf("c%d", r.IntN(6)))
			if r.IntN(2) == 0 {
				p = part(p.Name, p.Replicas, fmt.Sprintf("env=%d", r.IntN(3)))
			}
			parts.Subsets = append(parts.Subsets, p)
			total += p.Replicas
		}
		if parts.Rest {
			total += int32(r.IntN(9))
		}
		b := having(deployment(total, placement), parts)
		result, err := Schedule(b, s, nil)
		if err != nil {
			var failure *PartError
			if allowed := func(p Part) bool {
				return slices.ContainsFunc(result.Candidates, func(c Candidate) bool {
					return match.Affinity(&p.ClusterAffinity, c.Cluster)
				})
			}; errors.As(err, &failure) && !slices.ContainsFunc(parts.Subsets, func(p Part) bool {
				return p.Replicas > 0 && !allowed(p)
			}) {
				t.Fatalf("seed %d: %v, though each has a cluster", seed, err)
			}
			continue
		}
		var sum int32
		got := map[string]int32{}
		for _, target := range result.Clusters {
			own := int32(0)
			sum += target.Replicas
			for _, c := range target.Components {
				own += c.Replicas
				got[c.Name] += c.Replicas
				at := slices.IndexFunc(parts.Subsets, func(p Part) bool { return p.Name == c.Name })
				if !match.Affinity(&parts.Subsets[at].ClusterAffinity, s.Cluster(target.Name)) ||
					placement.ClusterAffinity != nil &&
						!match.Affinity(placement.ClusterAffinity, s.Cluster(target.Name)) {
					t.Fatalf("seed %d: %s is in %s", seed, c.Name, target.Name)
				}
			}
			if own > target.Replicas || !parts.Rest && own != target.Replicas {
				t.Fatalf("seed %d: %s has %d replicas, of subsets %d", seed, target.Name, target.Replicas, own)
			}
		}
		for _, p := range parts.Subsets {
			if got[p.Name] != p.Replicas {
				t.Fatalf("seed %d: %s has %d of %d replicas in %s", seed, p.Name, got[p.Name], p.Replicas,
					detailed(result.Clusters))
			}
		}
		if sum != total {
			t.Fatalf("seed %d: %d replicas of %d are placed", seed, sum, total)
		}
		record(b, result, nil, time.Unix(100, 0))
		SetParts(b, &parts)
		if reason, due := Due(b, s); due {
			t.Fatalf("seed %d: due again: %s", seed, reason)
		}
	}
}
