package deschedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

func TestRebalanceMovesReplicasToClustersUnderThreshold(t *testing.T) {
	ready := func(name, at string, cpu int64,
		change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		b := binding(name, at, cpu, dynamic())
		for _, c := range change {
			c(b)
		}
		return b
	}
	for _, tt := range []struct {
		name     string
		clusters string // cpu/allocated/allocating
		bindings []*workv1alpha2.ResourceBinding
		allowed  string
		most     int
		used     map[string]float64
		want     string // the placements after, of those that move
		blocked  string // cluster: why, of those that give nothing
	}{
		{name: "until at the threshold", clusters: "m1=100/90/0 m2=100/0/0",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 3)}, allowed: "100%", want: "web: m1=26 m2=4"},
		{name: "no more than is allowed", clusters: "m1=100/90/0 m2=100/0/0",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 3)}, allowed: "2", want: "web: m1=28 m2=2"},
		{name: "the largest first, and no more than needed", clusters: "m1=100/90/0 m2=100/0/0", allowed: "100%",
			bindings: []*workv1alpha2.ResourceBinding{ready("small", "m1=10", 1), ready("large", "m1=4", 10)},
			want:     "large: m1=3 m2=1"},
		{name: "the next, when that is not enough", clusters: "m1=100/95/0 m2=100/0/0", allowed: "1",
			bindings: []*workv1alpha2.ResourceBinding{ready("small", "m1=10", 6), ready("large", "m1=4", 10)},
			want:     "large: m1=3 m2=1, small: m1=9 m2=1"},
		{name: "of so many workloads at a time", clusters: "m1=100/95/0 m2=100/0/0", allowed: "1", most: 1,
			bindings: []*workv1alpha2.ResourceBinding{ready("small", "m1=10", 6), ready("large", "m1=4", 10)},
			want:     "large: m1=3 m2=1"},
		{name: "no cluster is over", clusters: "m1=100/80/0 m2=100/0/0",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 3)}},
		{name: "who takes stays well under", clusters: "m1=100/90/0 m2=100/70/0 m3=100/60/9",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 3)}, allowed: "100%", want: "web: m1=29 m3=1"},
		{name: "no cluster is well under", clusters: "m1=100/90/0 m2=100/75/0",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 3)},
			blocked:  "m1: no other cluster can run more replicas"},
		{name: "the last that is ready stays", clusters: "m1=100/90/0 m2=100/0/0",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=1", 90)},
			blocked:  "m1: the workloads in it have one replica"},
		{name: "one of two goes", clusters: "m1=100/90/0 m2=100/0/0",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=2", 45)}, want: "web: m1=1 m2=1"},
		{name: "not while some are not ready", clusters: "m1=100/90/0 m2=100/0/0",
			blocked: "m1: the workloads in it have replicas that are not ready",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=29 m2=1", 3,
				func(b *workv1alpha2.ResourceBinding) { report(b, counts("m2=1")) })}},
		{name: "what just came stays", clusters: "m1=100/90/0 m2=100/0/0",
			blocked: "m1: the workloads in it have replicas that are not ready, or that moved",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 3, func(b *workv1alpha2.ResourceBinding) {
				b.Annotations[wellknown.DescheduledAnnotation] = `{"took":{"m1":"2027-01-15T07:55:00Z"}}`
			})}},
		{name: "nothing goes back", clusters: "m1=100/90/0 m2=100/0/0", blocked: "m1: no other cluster can run more replicas",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 3, func(b *workv1alpha2.ResourceBinding) {
				b.Annotations[wellknown.DescheduledAnnotation] = `{"gave":{"m2":"2027-01-15T07:40:00Z"}}`
			})}},
		{name: "what asks for nothing of it would not help", clusters: "m1=100/90/0 m2=100/0/0",
			blocked:  "m1: no replicas that this policy may move request any of its cpu",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 0)}},
		{name: "what is about to go is not given again", clusters: "m1=100/90/0 m2=100/0/0", allowed: "100%",
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=20 m2=10", 3, func(b *workv1alpha2.ResourceBinding) {
				setStatus(b, "m1", `{"replicas":30,"readyReplicas":30}`)
				setStatus(b, "m2", `{"replicas":0}`)
			}), ready("other", "m1=5", 1)}},
		{name: "what is about to come takes its room", clusters: "m1=100/90/0 m2=100/0/0", allowed: "100%",
			blocked: "m1: no other cluster can run more replicas",
			bindings: []*workv1alpha2.ResourceBinding{ready("other", "m2=7", 10,
				func(b *workv1alpha2.ResourceBinding) { setStatus(b, "m2", `{"replicas":0}`) }), ready("web", "m1=30", 3)}},
		{name: "what the pods ask for by now counts", clusters: "m1=100/90/0 m2=100/0/0", used: map[string]float64{"m1": 0.8},
			bindings: []*workv1alpha2.ResourceBinding{ready("web", "m1=30", 3)}},
		{name: "the worst first", clusters: "m1=100/84/0 m2=100/96/0 m3=100/60/0", allowed: "100%", most: 1,
			bindings: []*workv1alpha2.ResourceBinding{ready("a", "m1=10", 8), ready("b", "m2=12", 8)}, want: "b: m2=11 m3=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var joined []*clusterv1alpha1.Cluster
			var names []string
			for _, f := range strings.Fields(tt.clusters) {
				var has, allocated, allocating int64
				name, amounts, _ := strings.Cut(f, "=")
				if _, err := fmt.Sscanf(amounts, "%d/%d/%d", &has, &allocated, &allocating); err != nil {
					t.Fatal(err)
				}
				names, joined = append(names, name), append(joined, cluster(name, has, allocated, allocating))
			}
			var all []workv1alpha2.Binding
			for _, b := range tt.bindings {
				all = append(all, b)
			}
			s := schedule.NewSnapshot(joined)
			load := LoadOf(s, names, func(c string) map[corev1.ResourceName]float64 {
				if share, ok := tt.used[c]; ok {
					return map[corev1.ResourceName]float64{corev1.ResourceCPU: share}
				}
				return nil
			}, all)
			if tt.most == 0 {
				tt.most = 10
			}
			if tt.allowed == "" {
				tt.allowed = quarter
			}
			out := Rebalance(Threshold{corev1.ResourceCPU: 80}, all, load, s, s.Summaries(),
				intstr.Parse(tt.allowed), tt.most, start)
			var got, blocked []string
			for _, d := range out.Decisions {
				got = append(got, d.Binding.GetName()+": "+placed(d.Move.Clusters))
			}
			for c, why := range out.Blocked {
				blocked = append(blocked, c+": "+why.Why)
			}
			mustSucceed(t, strings.Join(got, ", ") == tt.want, "moves %q, want %q; held %q", got, tt.want, blocked)
			mustSucceed(t, strings.HasPrefix(strings.Join(blocked, ", "), tt.blocked) && (tt.blocked != "" || len(blocked) == 0),
				"held %q, want %q", blocked, tt.blocked)
		})
	}
}

// From any initial load rebalancing ends. Only clusters over the threshold give, and none that takes ever gives. Time
// passes between rounds, so that no cool-down hides a move back.
func TestRebalancingEndsAndNothingMovesBack(t *testing.T) {
	moves := 0
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 2))
		percent := 40 + dice.IntN(56)
		allowed := []intstr.IntOrString{intstr.FromString("25%"), intstr.FromString("100%"),
			intstr.FromInt32(1)}[dice.IntN(3)]
		var names []string
		caps := map[string]int64{}
		for i := range 2 + dice.IntN(4) {
			names = append(names, fmt.Sprint("m", i))
			caps[names[i]] = 20 + int64(dice.IntN(100))
		}
		var all []workv1alpha2.Binding
		for i := range 1 + dice.IntN(8) {
			at := ""
			for _, name := range names {
				if n := dice.IntN(9); n > 4 {
					at += fmt.Sprintf(" %s=%d", name, n)
				}
			}
			if at != "" {
				all = append(all, binding(fmt.Sprint("b", i), at, int64(dice.IntN(6)), dynamic()))
			}
		}
		used := func(name string) (n int64) {
			for _, b := range all {
				n += int64(workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, name)) * request(b, "cpu") / 1000
			}
			return n
		}
		over := func(name string) bool { return used(name)*100 > caps[name]*int64(percent) }
		took := map[string]bool{}
		for now := start; ; now = now.Add(2 * memory) {
			mustSucceed(t, now.Sub(start) < 500*memory, "seed %d: it never comes to rest", seed)
			var joined []*clusterv1alpha1.Cluster
			for _, name := range names {
				joined = append(joined, cluster(name, caps[name], used(name), 0))
			}
			s := schedule.NewSnapshot(joined)
			was := map[string]bool{}
			for _, name := range names {
				was[name] = over(name)
			}
			out := Rebalance(Threshold{corev1.ResourceCPU: int32(percent)}, all, LoadOf(s, names, unknown, all), s,
				s.Summaries(), allowed, 100, now)
			for _, d := range out.Decisions {
				moves++
				mustSucceed(t, was[d.From] && !took[d.From], "seed %d: %s gives, over %v, took %v", seed, d.From, was[d.From],
					took[d.From])
				mustSucceed(t, sum(d.Move.Left) <= Allowance(allowed, d.Binding.BindingSpec().Replicas), "seed %d: %v leave", seed,
					d.Move.Left)
				mustSucceed(t, sum(d.Move.Left) == sum(d.Move.Took) &&
					schedule.Placed(d.Binding.BindingSpec()) == d.Binding.BindingSpec().Replicas, "seed %d: replicas are lost: %+v",
					seed, d.Move)
				d.Move.Apply(d.Binding, now)
				for name := range d.Move.Took {
					took[name] = true
					mustSucceed(t, used(name)*100*10 <= caps[name]*int64(percent)*ceiling, "seed %d: %s takes %d of %d CPUs", seed,
						name,
						used(name), caps[name])
				}
				report(d.Binding.(*workv1alpha2.ResourceBinding), nil)
			}
			if len(out.Decisions) > 0 {
				continue
			}
			// The twin: whoever is over has nothing that anybody could take.
			for _, from := range names {
				mustSucceed(t, over(from) == (out.Blocked[from].Why != ""), "seed %d: %s over %v, held %+v", seed, from, over(from),
					out.Blocked[from])
				for _, b := range all {
					one := request(b, "cpu") / 1000
					if !over(from) || workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, from) == 0 ||
						b.BindingSpec().Replicas < 2 || one == 0 {
						continue
					}
					if i := slices.IndexFunc(names, func(to string) bool {
						return !over(to) && (used(to)+one)*100*10 <= caps[to]*int64(percent)*ceiling
					}); i >= 0 {
						t.Fatalf("seed %d: %s is over, and %s could take a replica of %s", seed, from, names[i], b.GetName())
					}
				}
			}
			break
		}
	}
	if moves < 200 {
		t.Errorf("%d moves in all seeds: the fleets are too tame to show anything", moves)
	}
}

func TestRecordExpires(t *testing.T) {
	b := binding("web", "m1=4", 1, dynamic())
	Move{Clusters: b.Spec.Clusters, Left: counts("m1=1"), Took: counts("m2=1")}.Apply(b, start)
	r := RecordOf(b)
	mustSucceed(t, r.shut("m1", start.Add(memory-1)) && !r.shut("m1", start.Add(memory)) && !r.shut("m2", start), "%+v", r)
	mustSucceed(t, r.settling("m2", start.Add(CoolDown-1)) && !r.settling("m2", start.Add(CoolDown)) &&
		!r.settling("m1", start),
		"%+v", r)
	Move{Clusters: b.Spec.Clusters, Left: counts("m3=1"), Took: counts("m4=1")}.Apply(b, start.Add(2*memory))
	if r := RecordOf(b); len(r.Gave) != 1 || len(r.Took) != 1 {
		t.Errorf("%+v, want the last move alone", r)
	}
	b.Annotations[wellknown.DescheduledAnnotation] = "by hand"
	if r := RecordOf(b); r.Gave != nil || r.Took != nil {
		t.Errorf("%+v of what cannot be read", r)
	}
}
