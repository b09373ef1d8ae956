package failover

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// copyKey is one copy of a workload.
type copyKey struct{ binding, cluster string }

// copyState is the state of a copy in a cluster: replicas that are there, and those of them that are ready.
type copyState struct {
	replicas, ready int32
	// started is false of a copy that was created paused, done is true of a Job that has finished.
	started, done bool
}

// members are the copies that really run, while clusters come and go.
type members struct {
	*world
	r    *rand.Rand
	runs map[copyKey]*copyState
	// facts are those of each binding.
	facts map[string]*Facts
	// evictions are the times of all evictions.
	evictions []time.Time
}

// TestNothingIsLostInRandomFleets lets fleets live through random events and checks each plan.
func TestNothingIsLostInRandomFleets(t *testing.T) {
	evictions, finishes, partial := 0, 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := randomFleet(t, r)
		for step := range 60 {
			m.happens()
			p := m.plan()
			m.checks(p, fmt.Sprintf("seed %d, step %d: %s", seed, step, planText(p)))
			evictions, finishes = evictions+len(p.Evictions), finishes+len(p.Finishes)
			for _, e := range p.Evictions {
				if stays(e) > 0 {
					partial++
				}
				m.evictions = append(m.evictions, m.now)
			}
			m.execute(p)
			m.dispatch()
		}
	}
	t.Logf("%d evictions, %d of them in part, %d finishes", evictions, partial, finishes)
	if evictions < 700 || finishes < 600 || partial < 4 {
		t.Errorf("the fleets hardly moved: %d evictions, %d of them in part, %d finishes", evictions, partial, finishes)
	}
}

func randomFleet(t *testing.T, r *rand.Rand) *members {
	all := []string{"a", "b", "c", "d", "e", "f"}[:2+r.IntN(5)]
	m := &members{world: newWorld(t, all...), r: r, runs: map[copyKey]*copyState{}, facts: map[string]*Facts{}}
	var failback time.Duration
	if r.IntN(2) == 0 {
		failback = 10 * time.Minute
	}
	m.in.EvictionsPerMinute = 1 + r.IntN(6)
	m.in.AllBindings = r.IntN(2) == 0
	for _, name := range all {
		m.room[name] = int32(r.IntN(12))
	}
	for i := range 1 + r.IntN(6) {
		p := []func() policyv1alpha1.Placement{duplicated, equally, byRoom}[r.IntN(3)]()
		if r.IntN(3) == 0 {
			p = upTo(p, 1+r.IntN(len(all)))
		}
		if cut := r.IntN(2 * len(all)); cut > 0 && cut < len(all) { // a primary and a backup
			p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
				{AffinityName: "primary", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: all[:cut]}},
				{AffinityName: "backup", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: all[cut:]}},
			}
		}
		name := fmt.Sprintf("w%d", i)
		b := m.deployment(name, "", p)
		if b.Spec.Replicas = int32(1 + r.IntN(6)); r.IntN(4) == 0 {
			m.bindings = m.bindings[:len(m.bindings)-1]
			b = m.configMap(name, "", p)
			b.Spec.Replicas = 0
		} else if r.IntN(4) == 0 {
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
		}
		m.facts[name] = &Facts{FailbackAfter: failback, OwnScale: isWorkload(b) && r.IntN(6) == 0}
		result, err := schedule.Schedule(b, m.snapshot(), func(cluster string) (int32, bool) { return m.room[cluster], true })
		if err != nil {
			m.bindings = m.bindings[:len(m.bindings)-1]
			continue
		}
		b.Spec.Clusters, b.Status.SchedulerObservedAffinityName = result.Clusters, result.AffinityName
		for _, c := range result.Clusters {
			m.room[c.Name] -= c.Replicas
		}
		if r.IntN(6) == 0 {
			b.Spec.Failover.Cluster.PurgeMode = policyv1alpha1.PurgeModeDirectly
		}
	}
	m.in.HasWork = func(b workv1alpha2.Binding, cluster string) bool {
		return m.runs[copyKey{b.GetName(), cluster}] != nil
	}
	m.in.Facts = func(b workv1alpha2.Binding) (Facts, error) { return *m.facts[b.GetName()], nil }
	m.confirm()
	m.dispatch()
	return m
}

// happens is a random event in the fleet.
func (m *members) happens() {
	name := m.clusters[m.r.IntN(len(m.clusters))].Name
	switch m.r.IntN(10) {
	case 0:
		if !membership.KnownNotReady(m.cluster(name)) {
			m.lose(name)
		}
	case 1, 2:
		m.back(name)
		m.untaint(name, "maintenance")
	case 3:
		if len(m.cluster(name).Spec.Taints) == 0 {
			m.taint(name, "maintenance")
		}
	case 4:
		m.room[name] += int32(m.r.IntN(10))
	case 5, 6:
		if len(m.bindings) > 0 {
			b := m.bindings[m.r.IntN(len(m.bindings))]
			m.facts[b.Name].Paused = b.Spec.Resource.Kind == "Deployment" && !m.facts[b.Name].Paused
		}
	}
	m.pass(time.Duration(m.r.IntN(400)) * time.Second)
	for _, key := range slices.SortedFunc(maps.Keys(m.runs), func(a, b copyKey) int {
		return cmp.Or(strings.Compare(a.binding, b.binding), strings.Compare(a.cluster, b.cluster))
	}) {
		run := m.runs[key]
		run.started = run.started || !m.facts[key.binding].Paused
		if m.r.IntN(3) > 0 && run.started && !membership.KnownNotReady(m.cluster(key.cluster)) {
			run.done = run.done || run.ready == run.replicas && m.isJob(key.binding) && m.r.IntN(8) == 0
			run.ready = run.replicas
		}
	}
	m.confirm()
	m.dispatch()
}

// report brings what runs in clusters that respond into the statuses.
func (m *members) report() {
	for _, b := range m.bindings {
		b.Status.AggregatedStatus = nil
		for _, c := range m.clusters {
			run := m.runs[copyKey{b.Name, c.Name}]
			if run == nil {
				continue
			}
			health := workv1alpha1.ResourceUnknown
			if (run.ready == run.replicas || !run.started) && !membership.KnownNotReady(c) {
				health = workv1alpha1.ResourceHealthy
			}
			m.reports(b, c.Name, health, run.ready)
			switch item := itemOf(b, c.Name); {
			case run.done:
				item.Status.Raw = []byte(complete)
			case !run.started || b.Spec.Resource.Kind == "Job":
				item.Status.Raw = []byte("{}")
			}
		}
	}
}

// dispatch does in clusters that respond what bindings ask for, as core/dispatch does.
func (m *members) dispatch() {
	for _, b := range m.bindings {
		leaves, direct := map[string]bool{}, map[string]bool{}
		for _, t := range b.Spec.GracefulEvictionTasks {
			leaves[t.FromCluster] = true
			direct[t.FromCluster] = t.PurgeMode == policyv1alpha1.PurgeModeDirectly
		}
		purging := false
		for _, c := range m.clusters {
			key := copyKey{b.Name, c.Name}
			if m.runs[key] == nil || workv1alpha2.HasTarget(b.Spec.Clusters, c.Name) || leaves[c.Name] && !direct[c.Name] {
				continue
			}
			if !membership.KnownNotReady(c) {
				delete(m.runs, key)
			} else if direct[c.Name] {
				purging = true
			}
		}
		if purging {
			continue
		}
		for _, t := range b.Spec.Clusters {
			if key := (copyKey{b.Name, t.Name}); !membership.KnownNotReady(m.cluster(t.Name)) && !leaves[t.Name] {
				run := m.runs[key]
				late := len(leaves) > 0 && (run == nil || m.before(b, t.Name)) && m.r.IntN(2) == 0
				if late || run != nil && run.done {
					continue // the member has not got it yet, or it has finished
				}
				if run == nil {
					m.runs[key] = &copyState{started: !m.facts[b.Name].Paused}
				}
				m.runs[key].replicas, m.runs[key].ready = t.Replicas, min(m.runs[key].ready, t.Replicas)
			}
		}
	}
	m.report()
}

func (m *members) isJob(binding string) bool {
	return slices.ContainsFunc(m.bindings, func(b *workv1alpha2.ResourceBinding) bool {
		return b.Name == binding && b.Spec.Resource.Kind == "Job"
	})
}

// before reports whether a binding had a copy in a cluster before each of its evictions.
func (m *members) before(b *workv1alpha2.ResourceBinding, cluster string) bool {
	tasks := b.Spec.GracefulEvictionTasks
	return len(tasks) > 0 && !slices.ContainsFunc(tasks, func(t workv1alpha2.GracefulEvictionTask) bool {
		return !slices.Contains(t.ClustersBeforeFailover, cluster)
	})
}

// checks holds a plan to the rules.
func (m *members) checks(p Plan, about string) {
	m.t.Helper()
	fail := func(format string, args ...any) {
		m.t.Helper()
		m.t.Fatalf(about+"\n"+format, args...)
	}
	// Determinism: the order of the bindings does not matter.
	shuffled := slices.Clone(m.bindings)
	m.r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	kept := m.bindings
	m.bindings = shuffled
	again := m.plan()
	m.bindings = kept
	if planText(again) != planText(p) || !reflect.DeepEqual(again.Paused, p.Paused) || !again.Next.Equal(p.Next) {
		fail("with the bindings in another order: %s", planText(again))
	}
	// Budget: over any minute.
	recent := len(p.Evictions)
	for _, at := range m.evictions {
		if m.now.Sub(at) < time.Minute {
			recent++
		}
	}
	m.in.Recent = nil
	for _, at := range append(m.evictions, slices.Repeat([]time.Time{m.now}, len(p.Evictions))...) {
		if m.now.Sub(at) < time.Minute {
			m.in.Recent = append(m.in.Recent, at)
		}
	}
	if recent > m.in.EvictionsPerMinute {
		fail("%d evictions within a minute, the limit is %d", recent, m.in.EvictionsPerMinute)
	}
	for _, e := range p.Evictions {
		b := e.Binding.(*workv1alpha2.ResourceBinding)
		if why, paused := p.Paused[e.From]; paused &&
			!slices.ContainsFunc(m.cluster(e.From).Spec.Taints, func(t corev1.Taint) bool { return t.Key == "maintenance" }) {
			fail("%s leaves %s though %s", b.Name, e.From, why)
		}
		if m.facts[b.Name].Paused {
			fail("%s leaves %s though it is paused", b.Name, e.From)
		}
		for _, task := range e.Tasks {
			if run := m.runs[copyKey{b.Name, task.FromCluster}]; run != nil && run.done {
				fail("%s leaves %s, where it has finished", b.Name, task.FromCluster)
			}
		}
		divided := schedule.Divided(&b.Spec)
		var was, is int32
		for _, t := range b.Spec.Clusters {
			was += t.Replicas
			if left := slices.ContainsFunc(e.Tasks, func(task workv1alpha2.GracefulEvictionTask) bool {
				return task.FromCluster == t.Name
			}); !left && (workv1alpha2.ReplicasIn(e.Placement, t.Name) < t.Replicas ||
				!workv1alpha2.HasTarget(e.Placement, t.Name)) {
				fail("%s loses replicas in %s: %s becomes %s", b.Name, t.Name, targetsText(b.Spec.Clusters),
					targetsText(e.Placement))
			}
		}
		for _, t := range e.Placement {
			is += t.Replicas
			if more := !workv1alpha2.HasTarget(b.Spec.Clusters, t.Name) ||
				divided && t.Replicas > workv1alpha2.ReplicasIn(b.Spec.Clusters, t.Name); more &&
				!accepts(b.Spec.Placement, m.cluster(t.Name)) {
				fail("%s goes to %s, which is lost or tainted", b.Name, t.Name)
			}
		}
		if divided && (was != is || is != b.Spec.Replicas) {
			fail("%s has %d replicas: %s", b.Name, is, targetsText(e.Placement))
		}
		// One cluster that responds at a time.
		if e.Reason() != ReasonFailback && !membership.KnownNotReady(m.cluster(e.From)) &&
			len(b.Spec.GracefulEvictionTasks) > 0 {
			fail("%s leaves %s while it is leaving %s", b.Name, e.From, b.Spec.GracefulEvictionTasks[0].FromCluster)
		}
	}
	for _, f := range p.Finishes {
		b := f.Binding.(*workv1alpha2.ResourceBinding)
		for _, end := range f.Tasks {
			if end.Task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
				continue
			}
			m.replaced(b, end.Task, fail)
		}
	}
}

// replaced checks that the other copies run as many replicas as the binding asks for, before a copy is let go.
func (m *members) replaced(b *workv1alpha2.ResourceBinding, task workv1alpha2.GracefulEvictionTask,
	fail func(string, ...any)) {
	m.t.Helper()
	ownScale := m.facts[b.Name].OwnScale
	if ownScale && m.now.Sub(task.CreationTimestamp.Time) < defaultGracePeriod {
		fail("%s lets the copy in %s go before the others could scale up", b.Name, task.FromCluster)
	}
	healthy := 0
	for _, t := range b.Spec.Clusters {
		if slices.ContainsFunc(b.Spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool {
			return task.FromCluster == t.Name
		}) {
			continue
		}
		run := m.runs[copyKey{b.Name, t.Name}]
		ok := run != nil && (run.done || run.ready >= t.Replicas || ownScale && run.ready == run.replicas) &&
			!membership.KnownNotReady(m.cluster(t.Name))
		if ok {
			healthy++
		}
		if !ok && (schedule.Divided(&b.Spec) || !slices.Contains(task.ClustersBeforeFailover, t.Name)) {
			fail("%s lets the copy in %s go, but %s has %+v of %d", b.Name, task.FromCluster, t.Name, run, t.Replicas)
		}
	}
	if healthy == 0 {
		fail("%s lets the copy in %s go, and no other is healthy", b.Name, task.FromCluster)
	}
}
