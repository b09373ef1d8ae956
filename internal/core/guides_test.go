package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// Policies of public guides that say that workloads move.
const (
	guidePolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx, namespace: default, labels: {propagationpolicy.karmada.io/permanent-id: p-1}}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
`
	// "Primary" and "normally not scheduled".
	guideStandby = guidePolicy + `
  placement:
    clusterAffinity: {clusterNames: [a, b]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [a]}, weight: 10}
        - {targetCluster: {clusterNames: [b]}, weight: 0}
`
	// "Migrate automatically when the cluster is unavailable", "tolerate 5 minutes".
	guideFailover = guideStandby + `
  failover:
    applicationMigrationPolicy: {decisionConditions: {tolerationSeconds: 300}, purgePolicy: Gracefully}
`
	guideStatic = guidePolicy + `
  placement:
    clusterAffinity: {clusterNames: [a, b, c]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [a]}, weight: 3}
        - {targetCluster: {clusterNames: [b]}, weight: 2}
        - {targetCluster: {clusterNames: [c]}, weight: 1}
`
	guideDynamic = guidePolicy + `
  placement:
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Dynamic, dynamicWeight: AvailableReplicas}
`
	guideRegions = guidePolicy + `
  placement:
    spreadConstraints: [{maxGroups: 3, minGroups: 2, spreadByField: region, spreadByLabel: ""}]
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
`
	// "When the resources of a cluster are insufficient, reschedule."
	guideRescheduling = `
apiVersion: config.karmada.io/v1alpha1
kind: ReplicaSchedulingPolicy
metadata: {name: replica-reschedule}
spec: {reschedulePolicy: {enabled: true, interval: 60s, threshold: {cpuUtilization: 80%, memoryUtilization: 80}}}
`
)

// guideStory is a Deployment of a guide, in clusters a, b and c.
type guideStory struct {
	t        *testing.T
	now      time.Time
	options  failover.Options
	clusters []*clusterv1alpha1.Cluster
	binding  *workv1alpha2.ResourceBinding
}

// begin admits the policy and places a Deployment of six replicas by it.
func begin(t *testing.T, policy string) *guideStory {
	s := &guideStory{t: t, now: time.Unix(1_800_000_000, 0), options: failover.Defaults}
	for i, name := range []string{"a", "b", "c"} {
		c := coretest.Cluster(name, coretest.Located("", []string{"us-west", "us-east", "eu-west"}[i]))
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourcePods: resource.MustParse("100")}}
		s.clusters = append(s.clusters, c)
		s.ready(name, metav1.ConditionTrue)
	}
	p := &policyv1alpha1.PropagationPolicy{}
	mustSucceed(runtime.DefaultUnstructuredConverter.FromUnstructured(admitted(policy), p))
	validate.DefaultPropagation(p, func(policyv1alpha1.ResourceSelector) bool { return false })
	template := parse[unstructured.Unstructured](`{apiVersion: apps/v1, kind: Deployment, metadata: {name: nginx, namespace: default, uid: u}}`)
	requirements := &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1")}}
	b, err := propagate.Binding(template, p, propagate.Meaning{Replicas: 6, ID: "b-1", Requirements: requirements}, nil)
	mustSucceed(err)
	s.binding = b.(*workv1alpha2.ResourceBinding)
	fleet := schedule.NewSnapshot(s.clusters)
	placed, err := schedule.Schedule(b, fleet, fleet.Room(b))
	mustSucceed(err)
	s.binding.Spec.Clusters = placed.Clusters
	metav1.SetMetaDataAnnotation(&s.binding.ObjectMeta, policyv1alpha1.AppliedPlacementAnnotation,
		schedule.AppliedPlacement(s.binding.Spec.Placement))
	schedule.Confirm(b, schedule.Confirmation{Affinity: placed.AffinityName, Ran: true}, metav1.NewTime(s.now))
	for _, target := range placed.Clusters {
		s.reports(target.Name, workv1alpha1.ResourceHealthy, target.Replicas)
	}
	return s
}

// admitted returns what the hub stores of an object.
func admitted(text string) map[string]any {
	u := parse[unstructured.Unstructured](text)
	_, _, err := dialect.Normalise(u)
	mustSucceed(err)
	return u.Object
}

func (s *guideStory) reports(cluster string, health workv1alpha1.ResourceHealth, ready int32) {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: health,
		Status: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"replicas":%d,"readyReplicas":%[1]d}`, ready)}}
	if health == workv1alpha1.ResourceUnhealthy {
		item.UnhealthySince = new(metav1.NewTime(s.now))
	}
	for i, known := range s.binding.Status.AggregatedStatus {
		if known.ClusterName == cluster {
			s.binding.Status.AggregatedStatus[i] = item
			return
		}
	}
	s.binding.Status.AggregatedStatus = append(s.binding.Status.AggregatedStatus, item)
}

func (s *guideStory) cluster(name string) *clusterv1alpha1.Cluster {
	return s.clusters[strings.Index("abc", name)]
}

// ready sets the condition Ready of a cluster, with the taints that follow.
func (s *guideStory) ready(name string, status metav1.ConditionStatus) {
	c := s.cluster(name)
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
		Status: status, LastTransitionTime: metav1.NewTime(s.now)})
	c.Spec.Taints, _ = membership.Taints(c.Spec.Taints, membership.Readiness(c), s.now)
}

// decide returns the placement that the hub decides on.
func (s *guideStory) decide(after time.Duration) string {
	fleet := schedule.NewSnapshot(s.clusters)
	plan := failover.Make(failover.Input{Options: s.options, Bindings: []workv1alpha2.Binding{s.binding},
		Fleet: fleet}, s.now.Add(after))
	if len(plan.Evictions) == 0 {
		return coretest.TargetsText(s.binding.Spec.Clusters)
	}
	return coretest.TargetsText(plan.Evictions[0].Placement)
}

// first is the cluster that the event is about.
func (s *guideStory) first() string { return s.binding.Spec.Clusters[0].Name }

// Each event is what the guide names, or what it means by fault tolerance.
var guideEvents = map[string]func(*guideStory) (before, after string){
	"the cluster is unavailable": func(s *guideStory) (string, string) {
		s.ready(s.first(), metav1.ConditionFalse)
		return s.decide(299 * time.Second), s.decide(300 * time.Second)
	},
	"the cluster is unreachable": func(s *guideStory) (string, string) {
		s.ready(s.first(), metav1.ConditionUnknown)
		return s.decide(299 * time.Second), s.decide(300 * time.Second)
	},
	"the application is unhealthy": func(s *guideStory) (string, string) {
		s.reports(s.first(), workv1alpha1.ResourceUnhealthy, 0)
		return s.decide(299 * time.Second), s.decide(300 * time.Second)
	},
	"the cluster is too full": func(s *guideStory) (string, string) {
		policy := &configv1alpha1.ReplicaSchedulingPolicy{}
		mustSucceed(runtime.DefaultUnstructuredConverter.FromUnstructured(admitted(guideRescheduling), policy))
		used := map[string]float64{s.first(): 0.81}
		fleet := schedule.NewSnapshot(s.clusters)
		load := deschedule.LoadOf(fleet, fleet.Names(), func(c string) map[corev1.ResourceName]float64 {
			return map[corev1.ResourceName]float64{corev1.ResourceCPU: used[c]}
		}, []workv1alpha2.Binding{s.binding})
		out := deschedule.Rebalance(
			deschedule.Threshold{corev1.ResourceCPU: *policy.Spec.ReschedulePolicy.Threshold.CPUUtilization},
			[]workv1alpha2.Binding{s.binding}, load, fleet, fleet.Summaries(), intstr.FromString("25%"), 10, s.now)
		if len(out.Decisions) == 0 {
			return coretest.TargetsText(s.binding.Spec.Clusters), ""
		}
		return coretest.TargetsText(s.binding.Spec.Clusters), coretest.TargetsText(out.Decisions[0].Move.Clusters)
	},
}

func TestPoliciesOfGuidesMoveAsTheyPromise(t *testing.T) {
	byPolicy := failover.Defaults
	byPolicy.AllBindings = false
	for _, c := range []struct {
		name, policy, event string
		options             failover.Options
		before, after       string
	}{
		{"002 failover", guideFailover, "the cluster is unavailable", failover.Defaults, "a=6", "b=6"},
		{"002 failover", guideFailover, "the cluster is unreachable", failover.Defaults, "a=6", "b=6"},
		{"002 failover", guideFailover, "the application is unhealthy", failover.Defaults, "a=6", "b=6"},
		{"002 failover, where policies decide", guideFailover, "the cluster is unavailable", byPolicy, "a=6", "b=6"},
		{"002 failover, where policies decide", guideFailover, "the cluster is unreachable", byPolicy, "a=6", "b=6"},
		{"002 standby cluster", guideStandby, "the cluster is unavailable", failover.Defaults, "a=6", "b=6"},
		{"002 static weights, 004", guideStatic, "the cluster is unavailable", failover.Defaults, "a=3 b=2 c=1", "b=4 c=2"},
		{"002 dynamic weights, 004", guideDynamic, "the cluster is unavailable", failover.Defaults, "a=2 b=2 c=2", "b=3 c=3"},
		{"002 regions", guideRegions, "the cluster is unavailable", failover.Defaults, "b=5 c=1", "a=1 c=5"},
		{"002 rescheduling", guideDynamic, "the cluster is too full", failover.Defaults, "a=2 b=2 c=2", "a=1 b=3 c=2"},
	} {
		t.Run(c.name+"/"+c.event, func(t *testing.T) {
			s := begin(t, c.policy)
			s.options = c.options
			s.options.SchedulerName = policyv1alpha1.DefaultSchedulerName
			before, after := guideEvents[c.event](s)
			if before != c.before || after != c.after {
				t.Errorf("at %s, then at %s; want %s, then %s", before, after, c.before, c.after)
			}
		})
	}
}
