package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

var start = time.Unix(1_800_000_000, 0).UTC()

// world is a fleet and its bindings at one time.
type world struct {
	t   *testing.T
	now time.Time
	// settled is when the conditions of the clusters are up to date.
	settled  time.Time
	clusters []*clusterv1alpha1.Cluster
	bindings []*workv1alpha2.ResourceBinding
	// room is the room of each cluster; one that is missing has no limit.
	room map[string]int32
	in   Input
}

func newWorld(t *testing.T, clusters ...string) *world {
	w := &world{t: t, now: start, room: map[string]int32{}, in: Input{Options: Defaults}}
	w.in.SchedulerName = policyv1alpha1.DefaultSchedulerName
	for _, name := range clusters {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1alpha1.ClusterStatus{
			APIEnablements: []clusterv1alpha1.APIEnablement{
				{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
				{GroupVersion: "batch/v1", Resources: []clusterv1alpha1.APIResource{{Name: "jobs", Kind: "Job"}}},
				{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"},
					{Name: "secrets", Kind: "Secret"}, {Name: "services", Kind: "Service"}}},
			},
			Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
				Status: metav1.ConditionTrue}},
		}}
		w.clusters = append(w.clusters, c)
		w.ready(name, true)
	}
	return w
}

func (w *world) cluster(name string) *clusterv1alpha1.Cluster {
	for _, c := range w.clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (w *world) ready(name string, ready bool) {
	status := metav1.ConditionTrue
	if !ready {
		status = metav1.ConditionFalse
	}
	c := w.cluster(name)
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
		Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(w.now)})
}

// lose has clusters cease to respond now.
func (w *world) lose(names ...string) {
	for _, name := range names {
		w.ready(name, false)
		c := w.cluster(name)
		c.Spec.Taints, _ = membership.Taints(slices.Clone(c.Spec.Taints), membership.Readiness(c), w.now)
	}
}

// back has clusters respond again.
func (w *world) back(names ...string) {
	for _, name := range names {
		w.ready(name, true)
		w.untaint(name, clusterv1alpha1.TaintNotReady)
	}
}

func (w *world) taint(name, key string) {
	at := metav1.NewTime(w.now)
	c := w.cluster(name)
	c.Spec.Taints = append(slices.Clone(c.Spec.Taints),
		corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at})
}

func (w *world) untaint(name, key string) {
	c := w.cluster(name)
	c.Spec.Taints = slices.DeleteFunc(slices.Clone(c.Spec.Taints), func(t corev1.Taint) bool { return t.Key == key })
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// placements
func duplicated() policyv1alpha1.Placement { return policyv1alpha1.Placement{} }

func equally() policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}}
}

func byRoom() policyv1alpha1.Placement {
	p := equally()
	p.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{
		DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}
	return p
}

func upTo(p policyv1alpha1.Placement, n int) policyv1alpha1.Placement {
	p.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster,
		MinGroups: 1, MaxGroups: n}}
	return p
}

// deployment is placed as "a=2 b=1", confirmed and healthy, with cluster failover.
func (w *world) deployment(name, at string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1,
			Labels:      map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
			Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: schedule.AppliedPlacement(&p)}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name,
				UID: "u"},
			Placement: &p, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{}, Clusters: targets(at),
			Failover: &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
				PurgeMode: policyv1alpha1.PurgeModeGracefully}},
		},
		Status: workv1alpha2.ResourceBindingStatus{SchedulerObservedGeneration: 1,
			LastScheduledTime: &metav1.Time{Time: w.now.Add(-time.Hour)},
			Conditions: []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue,
				Reason: "Success"}}},
	}
	for _, t := range b.Spec.Clusters {
		if b.Spec.Replicas = max(b.Spec.Replicas, t.Replicas); p.DividesReplicas() {
			b.Spec.Replicas = 0
			for _, t := range b.Spec.Clusters {
				b.Spec.Replicas += t.Replicas
			}
		}
		w.reports(b, t.Name, workv1alpha1.ResourceHealthy, t.Replicas)
	}
	w.bindings = append(w.bindings, b)
	return b
}

// configMap returns the same of a ConfigMap.
func (w *world) configMap(name, at string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	b := w.deployment(name, at, p)
	b.Spec.Resource.APIVersion, b.Spec.Resource.Kind, b.Spec.ReplicaRequirements = "v1", "ConfigMap", nil
	return b
}

// job returns the same of a Job.
func (w *world) job(name, at string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	b := w.deployment(name, at, p)
	b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
	for _, t := range b.Spec.Clusters {
		w.reportsStatus(b, t.Name, `{"active":1}`)
	}
	return b
}

// reportsStatus has a cluster report that a binding is healthy, with a status.
func (w *world) reportsStatus(b *workv1alpha2.ResourceBinding, cluster, status string) {
	w.reports(b, cluster, workv1alpha1.ResourceHealthy, 0)
	itemOf(b, cluster).Status = &runtime.RawExtension{Raw: []byte(status)}
}

// complete is the status of a Job that is over.
const complete = `{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}`

// reports has a cluster report the health and the ready replicas of a binding, as aggregate writes it.
func (w *world) reports(b *workv1alpha2.ResourceBinding, cluster string, health workv1alpha1.ResourceHealth,
	ready int32) {
	var since *metav1.Time
	if health == workv1alpha1.ResourceUnhealthy {
		since = new(metav1.NewTime(w.now))
		if was := itemOf(b, cluster); was != nil && was.UnhealthySince != nil {
			since = was.UnhealthySince
		}
	}
	items := slices.DeleteFunc(slices.Clone(b.Status.AggregatedStatus), func(i workv1alpha2.AggregatedStatusItem) bool {
		return i.ClusterName == cluster
	})
	b.Status.AggregatedStatus = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true,
		Health: health, UnhealthySince: since,
		Status: &runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"replicas":%d,"readyReplicas":%d,"checkpoint":"s3-7"}`, ready,
			ready))}})
}

// healthy has all targets report that they are healthy.
func (w *world) healthy(b *workv1alpha2.ResourceBinding) {
	for _, t := range b.Spec.Clusters {
		w.reports(b, t.Name, workv1alpha1.ResourceHealthy, t.Replicas)
	}
}

func (w *world) snapshot() schedule.Snapshot {
	clusters := make([]*clusterv1alpha1.Cluster, len(w.clusters))
	for i, c := range w.clusters {
		clusters[i] = c.DeepCopy()
	}
	return schedule.NewSnapshot(clusters)
}

// roomOf is the free room by cluster, in replicas of any binding.
type roomOf map[string]int32

func (r roomOf) Free(workv1alpha2.Binding) schedule.Capacity { return schedule.Answers(r) }
func (r roomOf) Take(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster) {
	for _, t := range clusters {
		if _, known := r[t.Name]; known {
			r[t.Name] -= t.Replicas - workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, t.Name)
		}
	}
}

func (w *world) plan() Plan {
	in := w.in
	in.Fleet, in.Room = w.snapshot(), roomOf(maps.Clone(w.room))
	for _, b := range w.bindings {
		in.Bindings = append(in.Bindings, b)
	}
	return Make(in, w.now)
}

// execute applies a plan, and has the scheduler confirm what it finds.
func (w *world) execute(p Plan) {
	w.t.Helper()
	for _, e := range p.Evictions {
		b := e.Binding.(*workv1alpha2.ResourceBinding)
		roomOf(w.room).Take(b, e.Placement)
		e.Apply(b)
		b.Generation++
	}
	for _, f := range p.Finishes {
		f.Apply(f.Binding)
		f.Binding.(*workv1alpha2.ResourceBinding).Generation++
	}
	w.pause(p)
	w.confirm(p.Evictions...)
}

// pause sets the condition FailoverPaused on the clusters in paused, and removes it from others.
func (w *world) pause(p Plan) {
	for _, c := range w.clusters {
		meta.RemoveStatusCondition(&c.Status.Conditions, clusterv1alpha1.ClusterConditionFailoverPaused)
		if p.Paused[c.Name] != "" {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
				Type: clusterv1alpha1.ClusterConditionFailoverPaused, Status: metav1.ConditionTrue, Reason: "Test"})
		}
	}
}

// confirm has the scheduler look at the bindings. It is an error if it moves what was just evicted.
func (w *world) confirm(evictions ...Eviction) {
	w.t.Helper()
	s := w.snapshot()
	for _, b := range w.bindings {
		if reason, due := schedule.Due(b, s); due {
			r, err := schedule.Schedule(b, s, func(cluster string) (int32, bool) {
				n, known := w.room[cluster]
				return n,
					known
			})
			if moved := targetsText(r.Clusters) != targetsText(b.Spec.Clusters); err == nil && moved &&
				!slices.ContainsFunc(evictions, func(e Eviction) bool { return e.Binding.GetName() == b.Name }) {
				b.Spec.Clusters = r.Clusters
				b.Generation++
			} else if err == nil && moved {
				w.t.Fatalf("%s: the scheduler moves %s to %s, because %s", b.Name, targetsText(b.Spec.Clusters),
					targetsText(r.Clusters), reason)
			}
			if err == nil {
				b.Status.SchedulerObservedAffinityName, b.Status.LastScheduledTime = r.AffinityName, &metav1.Time{Time: w.now}
				if asked := b.Spec.RescheduleTriggeredAt; asked != nil && asked.After(w.now) {
					b.Status.LastScheduledTime = asked
				}
			}
		}
		b.Status.SchedulerObservedGeneration = b.Generation
	}
}

var (
	targets     = coretest.Targets
	targetsText = coretest.TargetsText
)

// planText returns a plan in short: "web -a: b=2 c=1; idle ~a; app !a NothingFits".
func planText(p Plan) string {
	var out []string
	for _, e := range p.Evictions {
		var from []string
		for _, t := range e.Tasks {
			from = append(from, t.FromCluster)
		}
		out = append(out, fmt.Sprintf("%s -%s: %s", e.Binding.GetName(), strings.Join(from, ","), targetsText(e.Placement)))
	}
	for _, f := range p.Finishes {
		for _, t := range f.Tasks {
			out = append(out, fmt.Sprintf("%s ~%s", f.Binding.GetName(), t.Task.FromCluster))
		}
		if len(f.Tasks) == 0 {
			out = append(out, f.Binding.GetName()+" forgets")
		}
	}
	for _, w := range p.Waiting {
		out = append(out, fmt.Sprintf("%s !%s %s", w.Binding.Name, w.From, w.Code))
	}
	return strings.Join(out, "; ")
}

// plans fails the test if the plan is another one; it returns the plan.
func (w *world) plans(want string) Plan {
	w.t.Helper()
	p := w.plan()
	if got := planText(p); got != want {
		w.t.Fatalf("planned %q, want %q", got, want)
	}
	return p
}
