package deschedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

const quarter = "25%"

func TestUnschedulableReplicasMoveToRoom(t *testing.T) {
	for _, tt := range []struct {
		name, at, stuck, room string
		placement             policyv1alpha1.Placement
		// change makes the binding special.
		change  func(*workv1alpha2.ResourceBinding)
		allowed string
		want    string // the placement after; empty if nothing is to be done
		err     string // message for the user
	}{
		{name: "to the cluster that has room", at: "m1=4", stuck: "m1=1", room: "m1=9 m2=9", want: "m1=3 m2=1"},
		{name: "a quarter at a time", at: "m1=8", stuck: "m1=8", room: "m2=9", want: "m1=6 m2=2"},
		{name: "a quarter is rounded up, and one at least", at: "m1=1", stuck: "m1=1", room: "m2=9", want: "m2=1"},
		{name: "a number at a time", at: "m1=8", stuck: "m1=8", room: "m2=9", allowed: "3", want: "m1=5 m2=3"},
		{name: "aggregated replicas, too", at: "m1=4", stuck: "m1=1", room: "m2=1 m3=5", placement: aggregated(),
			want: "m1=3 m3=1"},
		{name: "over several clusters by their room", at: "m1=8", stuck: "m1=8", room: "m2=2 m3=1", allowed: "100%",
			want: "m1=5 m2=2 m3=1"},
		{name: "out of several clusters", at: "m1=2 m2=2", stuck: "m1=1 m2=1", room: "m1=9 m2=9 m3=9", allowed: "2",
			want: "m1=1 m2=1 m3=2"},
		{name: "as many as there is room for", at: "m1=8", stuck: "m1=6", room: "m2=1", allowed: "100%", want: "m1=7 m2=1"},
		{name: "not below what is ready", at: "m1=4", stuck: "m1=3", room: "m2=9", allowed: "100%", want: "m1=3 m2=1",
			change: func(b *workv1alpha2.ResourceBinding) { setStatus(b, "m1", `{"replicas":4,"readyReplicas":3}`) }},
		{name: "a pod that stands in for another in a rollout is none too many", at: "m1=4", stuck: "m1=1", room: "m2=9",
			change: func(b *workv1alpha2.ResourceBinding) { setStatus(b, "m1", `{"replicas":5,"readyReplicas":4}`) }},
		{name: "pods that are going already are not moved twice", at: "m1=2 m2=2", stuck: "m1=2", room: "m2=9",
			change: func(b *workv1alpha2.ResourceBinding) { setStatus(b, "m1", `{"replicas":4}`) }},
		{name: "a member that has not answered", at: "m1=4", stuck: "m1=2", room: "m2=9",
			change: func(b *workv1alpha2.ResourceBinding) { setStatus(b, "m1", "") }},
		{name: "a kind that does not tell what is ready", at: "m1=4", stuck: "m1=2", room: "m2=9",
			change: func(b *workv1alpha2.ResourceBinding) { setStatus(b, "m1", `{"active":4}`) }},
		{name: "no other room", at: "m1=4", stuck: "m1=2", room: "m1=9 m2=0",
			err: "replicas are unschedulable (m1: 2) and are not moved, because no other cluster has capacity: Clusters available replicas 0 are not enough to schedule."},
		{name: "unknown room is none", at: "m1=4", stuck: "m1=2", room: "", err: "no other cluster has capacity"},
		{name: "not to a cluster where others find no node", at: "m1=4 m2=2", stuck: "m1=2 m2=1", room: "m1=9 m2=9",
			err: "no other cluster has capacity",
			change: func(b *workv1alpha2.ResourceBinding) {
				setStatus(b, "m1", `{"replicas":4,"readyReplicas":2}`)
				setStatus(b, "m2", `{"replicas":2,"readyReplicas":2}`)
			}},
		{name: "not beyond the affinity", at: "m1=4", stuck: "m1=2", room: "m1=9 m2=9 m3=9", want: "m1=3 m3=1",
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m3"}}
			}},
		{name: "not to another term of the affinity, which would take all along", at: "m1=4", stuck: "m1=2",
			room: "m1=9 m2=9", err: "no other cluster has capacity",
			change: func(b *workv1alpha2.ResourceBinding) {
				only := func(name, cluster string) policyv1alpha1.ClusterAffinityTerm {
					return policyv1alpha1.ClusterAffinityTerm{AffinityName: name,
						ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}}
				}
				b.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{only("here", "m1"), only("there", "m2")}
				b.Status.SchedulerObservedAffinityName = "here"
			}},
		{name: "not beyond the number of clusters asked for", at: "m1=3 m2=1", stuck: "m1=1", room: "m1=9 m3=9",
			err: "no other cluster has capacity",
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{
					SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 2}}
			}},
		{name: "of a group that keeps apart, only to where it is", at: "m1=3 m2=1", stuck: "m1=1", room: "m1=9 m2=1 m3=9",
			want: "m1=2 m2=2",
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "a=b"}
			}},
		{name: "what just came stays", at: "m1=3 m2=1", stuck: "m2=1", room: "m3=9",
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Annotations[wellknown.DescheduledAnnotation] = `{"gave":{"m1":"2027-01-15T07:55:00Z"},` +
					`"took":{"m2":"2027-01-15T07:55:00Z"}}`
			}},
		{name: "what came a while ago goes on, and not back", at: "m1=3 m2=1", stuck: "m2=1", room: "m1=9 m3=9",
			want: "m1=3 m3=1", change: func(b *workv1alpha2.ResourceBinding) {
				b.Annotations[wellknown.DescheduledAnnotation] = `{"gave":{"m1":"2027-01-15T07:40:00Z"},` +
					`"took":{"m2":"2027-01-15T07:40:00Z"}}`
			}},
		{name: "and rather stays than goes back", at: "m1=3 m2=1", stuck: "m2=1", room: "m1=9",
			err: "no other cluster has capacity", change: func(b *workv1alpha2.ResourceBinding) {
				b.Annotations[wellknown.DescheduledAnnotation] = `{"gave":{"m1":"2027-01-15T07:40:00Z"}}`
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.placement
			if p.ReplicaScheduling == nil {
				p = dynamic()
			}
			b := binding("web", tt.at, 1, p)
			report(b, counts(tt.stuck))
			if tt.change != nil {
				tt.change(b)
				b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = schedule.AppliedPlacement(b.Spec.Placement)
			}
			free := room(schedule.Answers(counts(tt.room)))
			s := schedule.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("m1", 10, 0, 0), cluster("m2", 10, 0, 0),
				cluster("m3", 10, 0, 0)})
			mustSucceed(t, Rests(b, s, policyv1alpha1.DefaultSchedulerName), "the binding is not at rest")
			before := b.DeepCopy()
			allowed := tt.allowed
			if allowed == "" {
				allowed = quarter
			}
			m, ok, err := Relieve(b, counts(tt.stuck), s, free, intstr.Parse(allowed), start)
			switch {
			case tt.err != "":
				mustSucceed(t, err != nil && strings.Contains(err.Error(), tt.err), "error %v, want %q; moved %+v", err, tt.err, m)
				return
			case tt.want == "":
				mustSucceed(t, err == nil && !ok, "%+v, %v; want nothing done", m, err)
				return
			}
			mustSucceed(t, err == nil && ok && placed(m.Clusters) == tt.want, "%q, %v, %v; want %q", placed(m.Clusters), ok, err,
				tt.want)
			mustSucceed(t, placed(before.Spec.Clusters) == placed(b.Spec.Clusters), "the binding was changed")
			m.Apply(b, start)
			if reason, due := schedule.Due(b, s); due {
				t.Errorf("after the move the scheduler would run, as %s", reason)
			}
			if _, again, _ := Relieve(b, m.Took, s, free, intstr.Parse(allowed), start.Add(time.Minute)); again {
				t.Error("what was moved moves again within the cool-down")
			}
		})
	}
}

func TestOnlyBindingsAtRestMove(t *testing.T) {
	s := schedule.NewSnapshot(nil)
	s = s.Next(fleetOf("m1", "m2"))
	for name, change := range map[string]func(*workv1alpha2.ResourceBinding){
		"static weights": func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling.WeightPreference = nil },
		"duplicated":     func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling = nil },
		"several components": func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Components = []workv1alpha2.Component{{
				Name: "a"}}
		},
		"another scheduler's": func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "mine" },
		"being evicted": func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks = make([]workv1alpha2.GracefulEvictionTask, 1)
		},
		"to be scheduled": func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas++ },
		"scheduling suspended": func(b *workv1alpha2.ResourceBinding) {
			yes := true
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: &yes}
		},
		"dispatching suspended": func(b *workv1alpha2.ResourceBinding) {
			yes := true
			b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: &yes}}
		},
		"no placement of its own": func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil },
	} {
		b := binding("web", "m1=2", 1, dynamic())
		mustSucceed(t, Rests(b, s, policyv1alpha1.DefaultSchedulerName), "the binding is not at rest")
		if change(b); b.Spec.Placement != nil {
			b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = schedule.AppliedPlacement(b.Spec.Placement)
		}
		if Rests(b, s, policyv1alpha1.DefaultSchedulerName) {
			t.Errorf("%s: it may be moved", name)
		}
	}
}

func TestStuckCountsPodsOfTheTemplate(t *testing.T) {
	const selector = "spec: {selector: {matchLabels: {app: web}}}"
	old, young := start.Add(-time.Hour), start.Add(-time.Minute)
	pod := func(owner string, change ...func(*capacity.UnschedulablePod)) capacity.UnschedulablePod {
		kind, name, _ := strings.Cut(owner, "/")
		p := capacity.UnschedulablePod{Namespace: "shop", Name: "p", OwnerKind: kind, OwnerName: name,
			Labels: map[string]string{"app": "web", "pod-template-hash": "5d4f"}, Since: old}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	named := func(name string) func(*capacity.UnschedulablePod) {
		return func(p *capacity.UnschedulablePod) { p.Name = name }
	}
	for _, tt := range []struct {
		name, template string
		pods           []capacity.UnschedulablePod
		want           int32
	}{
		{"through a ReplicaSet", "kind: Deployment\n" + selector,
			[]capacity.UnschedulablePod{pod("ReplicaSet/web-5d4f"), pod("ReplicaSet/web-5d4f")}, 2},
		{"not of another Deployment of the same labels", "kind: Deployment\n" + selector,
			[]capacity.UnschedulablePod{pod("ReplicaSet/web-api-5d4f")}, 0},
		{"not of other labels", "kind: Deployment\n" + selector,
			[]capacity.UnschedulablePod{pod("ReplicaSet/web-5d4f",
				func(p *capacity.UnschedulablePod) { p.Labels["app"] = "api" })}, 0},
		{"not of another namespace", "kind: Deployment\n" + selector,
			[]capacity.UnschedulablePod{pod("ReplicaSet/web-5d4f", func(p *capacity.UnschedulablePod) { p.Namespace = "x" })},
			0},
		{"not young", "kind: Deployment\n" + selector,
			[]capacity.UnschedulablePod{pod("ReplicaSet/web-5d4f", func(p *capacity.UnschedulablePod) { p.Since = young })}, 0},
		{"of an owner itself", "kind: CloneSet\n" + selector,
			[]capacity.UnschedulablePod{pod("CloneSet/web"), pod("CloneSet/web-2")},
			1},
		{"of a kind without a selector", "kind: Flock", []capacity.UnschedulablePod{pod("Flock/web"),
			pod("ReplicaSet/web-5d4f")}, 1},
		{"through a controller of another kind", "kind: Flock\n" + selector,
			[]capacity.UnschedulablePod{pod("Herd/web-a", func(p *capacity.UnschedulablePod) {
				delete(p.Labels,
					"pod-template-hash")
			})}, 1},
		{"where members scale", "kind: Deployment\nmetadata: {labels: {resourcetemplate.karmada.io/retain-replicas: \"true\"}}\n" + selector, []capacity.UnschedulablePod{pod("ReplicaSet/web-5d4f")}, 0},
		{"where shrinking may hit another subset", "kind: UnitedDeployment\n" + selector,
			[]capacity.UnschedulablePod{pod("CloneSet/web-a-x")}, 0},
		{"one after the other, the one is the last", "apiVersion: apps/v1\nkind: StatefulSet\n" + selector,
			[]capacity.UnschedulablePod{pod("StatefulSet/web", named("web-1"))}, 1},
		{"in parallel, those at the end", "apiVersion: apps/v1\nkind: StatefulSet\nspec: {podManagementPolicy: Parallel, ordinals: {start: 1}}",
			[]capacity.UnschedulablePod{pod("StatefulSet/web", named("web-5")), pod("StatefulSet/web", named("web-4")),
				pod("StatefulSet/web", named("web-2"))}, 2},
		{"in parallel, none at the end", "apiVersion: apps/v1\nkind: StatefulSet\nspec: {podManagementPolicy: Parallel}",
			[]capacity.UnschedulablePod{pod("StatefulSet/web", named("web-1"))}, 0},
		{"in parallel, with ordinals of the member's own",
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {annotations: {argosy.io/unique-ordinals: \"true\"}}\nspec: {podManagementPolicy: Parallel}",
			[]capacity.UnschedulablePod{pod("StatefulSet/web", named("web-4"))}, 0},
	} {
		template := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON([]byte(tt.template))
		if err == nil {
			err = template.UnmarshalJSON(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		template.SetNamespace("shop")
		template.SetName("web")
		if got := Stuck(template, 5, tt.pods, start.Add(-5*time.Minute)); got != tt.want {
			t.Errorf("%s: %d stuck, want %d", tt.name, got, tt.want)
		}
	}
}

// With exact estimates, from any initial placement, in the end all replicas run or no cluster has room.
func TestReplicasComeToRestAndRunningOnesNeverMove(t *testing.T) {
	for seed := range uint64(150) {
		dice := rand.New(rand.NewPCG(seed, 1))
		number := 2 + dice.IntN(4)
		caps := map[string]int64{}
		for i := range number {
			caps[fmt.Sprint("m", i)] = int64(dice.IntN(20))
		}
		var all []*workv1alpha2.ResourceBinding
		for i := range 1 + dice.IntN(5) {
			at := ""
			for c := range number {
				if n := dice.IntN(6); n > 0 {
					at += fmt.Sprintf(" m%d=%d", c, n)
				}
			}
			if at != "" {
				all = append(all, binding(fmt.Sprint("b", i), at, 1+int64(dice.IntN(3)),
					[]policyv1alpha1.Placement{dynamic(), aggregated()}[dice.IntN(2)]))
			}
		}
		running := map[string]map[string]int32{} // binding, cluster
		for now, quiet := start, 0; quiet < 2; now = now.Add(2 * memory) {
			mustSucceed(t, now.Sub(start) < 1000*memory, "seed %d: it never comes to rest", seed)
			// What runs stays, and what fits beside it starts.
			var members []string
			used, waits := map[string]int64{}, map[string]int64{}
			for _, b := range all {
				for _, c := range b.Spec.Clusters {
					used[c.Name] += int64(min(c.Replicas, running[b.Name][c.Name])) * request(b, "cpu")
				}
			}
			stuck := map[string]map[string]int32{}
			for _, b := range all {
				runs := map[string]int32{}
				stuck[b.Name] = map[string]int32{}
				for _, c := range b.Spec.Clusters {
					n := min(c.Replicas, running[b.Name][c.Name])
					for one := request(b, "cpu"); n < c.Replicas && used[c.Name]+one <= caps[c.Name]*1000; used[c.Name] += one {
						n++
					}
					runs[c.Name] = n
					if wait := c.Replicas - n; wait > 0 {
						stuck[b.Name][c.Name] = wait
						waits[c.Name] += int64(wait) * request(b, "cpu")
					}
				}
				running[b.Name] = runs
				report(b, stuck[b.Name])
			}
			quiet++
			for _, b := range all {
				var joined = fleetOf()
				members = members[:0]
				for name, n := range caps {
					members = append(members, name)
					joined = append(joined, cluster(name, n, used[name]/1000, waits[name]/1000))
				}
				s := schedule.NewSnapshot(joined)
				m, ok, err := Relieve(b, stuck[b.Name], s, s.Summaries(), intstr.FromString(quarter), now)
				if !ok {
					if len(stuck[b.Name]) > 0 {
						// The twin: is there really no other cluster with room for one?
						for _, name := range members {
							free := caps[name]*1000 - used[name] - waits[name]
							mustSucceed(t, stuck[b.Name][name] > 0 || free < request(b, "cpu"),
								"seed %d: %s stays (%v) although %s has %dm free",
								seed, b.Name, err, name, free)
						}
					}
					continue
				}
				quiet = 0
				mustSucceed(t, sum(m.Left) <= Allowance(intstr.FromString(quarter), b.Spec.Replicas), "seed %d: %v leave of %d",
					seed,
					m.Left, b.Spec.Replicas)
				var total int32
				for _, c := range m.Clusters {
					total += c.Replicas
					mustSucceed(t, c.Replicas >= running[b.Name][c.Name], "seed %d: %s has %d, and %d run there", seed, c.Name,
						c.Replicas,
						running[b.Name][c.Name])
				}
				mustSucceed(t, total == b.Spec.Replicas, "seed %d: %d replicas became %d", seed, b.Spec.Replicas, total)
				for name, n := range m.Left {
					waits[name] -= int64(n) * request(b, "cpu")
				}
				for name, n := range m.Took {
					mustSucceed(t, m.Left[name] == 0, "seed %d: %s both gives and takes", seed, name)
					waits[name] += int64(n) * request(b, "cpu")
					mustSucceed(t, used[name]+waits[name] <= caps[name]*1000, "seed %d: %s takes %d and has no room", seed, name, n)
				}
				m.Apply(b, now)
			}
		}
	}
}

func TestClusterWithoutReplicasKeepsEmptyWorkload(t *testing.T) {
	b := binding("web", "m1=1 m2=0 m3=0", 1, dynamic())
	report(b, counts("m1=1"))
	s := schedule.Settings{KeepEmpty: true}.Snapshot(fleetOf("m1", "m2", "m3"))
	m, ok, err := Relieve(b, counts("m1=1"), s, room(schedule.Answers(counts("m1=9 m2=9 m3=0"))),
		intstr.FromString(quarter), start)
	mustSucceed(t, ok && err == nil && placed(m.Clusters) == "m1=0 m2=1 m3=0", "%q, %v, %v", placed(m.Clusters), ok, err)
}
