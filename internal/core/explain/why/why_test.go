package why_test

import (
	"bytes"
	"encoding/json"
	"errors"
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
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// explain completes the facts and explains them.
func explain(f why.Facts) why.Answer {
	if f.OverrideExists == nil {
		f.OverrideExists = func(key types.NamespacedName) bool {
			return slices.ContainsFunc(f.Overrides, func(o policyv1alpha1.Override) bool {
				return o.GetNamespace() == key.Namespace && o.GetName() == key.Name
			})
		}
	}
	if f.Failovers == nil {
		f.Failovers = moves(f, time.Time{})
	}
	return why.Explain(f)
}

// moves returns the moves of the template in the hub's failover plan.
func moves(f why.Facts, now time.Time) []failover.Move {
	if f.Binding == nil || propagate.Belongs(f.Template, f.Binding) != nil || len(f.Clusters) == 0 {
		return nil
	}
	fleet := f.Scheduler.Snapshot(f.Clusters)
	in := failover.Input{Options: failover.Defaults, Registered: map[string]bool{},
		Bindings: []workv1alpha2.Binding{f.Binding}, Fleet: fleet,
		Facts: func(b workv1alpha2.Binding) (failover.Facts, error) {
			return failover.FactsOf(b, f.Template, nil), nil
		},
		HasWork: func(_ workv1alpha2.Binding, cluster string) bool {
			return slices.ContainsFunc(f.Works, func(w workv1alpha1.Work) bool {
				return w.Namespace == names.ExecutionSpace(cluster)
			})
		},
	}
	in.SchedulerName = f.Scheduler.Scheduler()
	for _, c := range f.Clusters {
		in.Registered[c.Name] = true
	}
	return failover.Moves(in.Bindings, failover.Make(in, now), now)
}

// hub is a hub in memory: what its loops do is done by the core, step by step, as far as a story goes.
type hub struct {
	t *testing.T
	why.Facts
	cpu string
}

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: a, labels: {app: web}},
	spec: {replicas: 6, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "example.com/web:1"}]}}}}`

func start(t *testing.T, template string, clusters ...*clusterv1alpha1.Cluster) *hub {
	t.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(template, "\t", " ")))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return &hub{t: t, Facts: why.Facts{Observed: propagate.Observed{Template: u}, Clusters: clusters}, cpu: "1"}
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "\t", " ")), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// policy returns a PropagationPolicy of the namespace shop, or a cluster one; its spec is flow YAML.
func (h *hub) policy(namespace, name, spec string) policyv1alpha1.Propagation {
	h.t.Helper()
	var p policyv1alpha1.Propagation
	if namespace == "" {
		p = &policyv1alpha1.ClusterPropagationPolicy{}
		p.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-" + name})
	} else {
		p = &policyv1alpha1.PropagationPolicy{}
		p.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name})
	}
	p.SetNamespace(namespace)
	p.SetName(name)
	parse(h.t, spec, p.PropagationSpec())
	h.Policies = append(h.Policies, p)
	return p
}

const ofDeployments = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]"

func (h *hub) override(name, spec string) {
	h.t.Helper()
	o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	parse(h.t, spec, &o.Spec)
	h.Overrides = append(h.Overrides, o)
}

// quota adds a FederatedResourceQuota with what its namespace uses.
func (h *hub) quota(name, spec, used string) {
	h.t.Helper()
	q := policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	parse(h.t, spec, &q.Spec)
	parse(h.t, "{"+used+"}", &q.Status.OverallUsed)
	h.Quotas = append(h.Quotas, q)
}

// claim has the policy hold the template, and makes the binding.
func (h *hub) claim(p policyv1alpha1.Propagation) {
	h.t.Helper()
	propagate.Claim(h.Template, p)
	m := propagate.Meaning{ID: "binding-id"}
	if n, found, _ := unstructured.NestedInt64(h.Template.Object, "spec", "replicas"); found {
		m.Replicas = int32(n)
		m.Requirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(h.cpu)}}
	}
	b, err := propagate.Binding(h.Template, p, m, h.Binding)
	if err != nil {
		h.t.Fatal(err)
	}
	b.SetGeneration(1)
	h.Binding = b
}

// schedule places the binding on the fleet as it is.
func (h *hub) schedule() {
	s := h.Scheduler.Snapshot(h.Clusters)
	room := h.Room
	if room == nil {
		room = s.Room(h.Binding)
	}
	result, err := schedule.Schedule(h.Binding, s, room)
	h.Binding.BindingSpec().Clusters = result.Clusters
	notes := h.Binding.GetAnnotations()
	status := h.Binding.BindingStatus()
	if err == nil {
		notes[policyv1alpha1.AppliedPlacementAnnotation] = schedule.AppliedPlacement(h.Binding.BindingSpec().Placement)
		status.LastScheduledTime = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
	}
	h.Binding.SetAnnotations(notes)
	meta.SetStatusCondition(&status.Conditions, schedule.Condition(err))
	status.SchedulerObservedGeneration, status.SchedulerObservedAffinityName = 1, result.AffinityName
}

// send makes the Works that can be made.
func (h *hub) send() {
	in := dispatch.Input{Binding: h.Binding, Template: h.Template, Overrides: h.Overrides,
		Clusters: map[string]*clusterv1alpha1.Cluster{}, NewID: func() string { return "work-id" }}
	for _, c := range h.Clusters {
		in.Clusters[c.Name] = c
	}
	for _, r := range dispatch.Works(h.t.Context(), in, interpret.New(builtin.Tier())) {
		if r.Err == nil {
			r.Work.Generation = 1
			h.Works = append(h.Works, *r.Work)
		}
	}
}

// answers sets the responses of the members in the order of their names; members without one are healthy.
func (h *hub) answers(health workv1alpha1.ResourceHealth, status string, clusters ...string) {
	for i := range h.Works {
		w := &h.Works[i]
		if cluster, _ := names.ClusterOf(w.Namespace); len(clusters) > 0 && !slices.Contains(clusters, cluster) {
			continue
		}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha1.ReasonAppliedSuccessful, Message: workv1alpha1.MessageApplied, ObservedGeneration: 1}}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: health,
			Status: &runtime.RawExtension{Raw: []byte(status)}}}
	}
}

// refuses records that the Work of a cluster is not applied. Without a reason it does so as an earlier version did.
func (h *hub) refuses(cluster, reason, message string) {
	for i := range h.Works {
		if c, _ := names.ClusterOf(h.Works[i].Namespace); c == cluster {
			h.Works[i].Status = workv1alpha1.WorkStatus{Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied,
				Status: metav1.ConditionFalse,
				Reason: workv1alpha1.ReasonAppliedFailed, Message: "Failed to apply all manifests (0/1): " + message}}}
			if reason != "" {
				h.Works[i].Status.Conditions = append(h.Works[i].Status.Conditions,
					metav1.Condition{Type: workv1alpha1.WorkFailure, Status: metav1.ConditionTrue, Reason: reason, Message: message})
			}
		}
	}
}

// components returns a hub with a workload of two components, of which the second has so many pods with one CPU each.
func components(t *testing.T, placement string, workers int32) *hub {
	h := start(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: a}}`, fleet()...)
	h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+placement+"}}"))
	one := &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1")}}
	h.Binding.BindingSpec().Components = []workv1alpha2.Component{{Name: "head", Replicas: 1, ReplicaRequirements: one},
		{Name: "worker", Replicas: workers, ReplicaRequirements: one}}
	h.schedule()
	h.send()
	h.answers(workv1alpha1.ResourceHealthy, `{}`)
	return h
}

// limitedComponents returns a hub with two components that fit in no cluster, each for this reason.
func limitedComponents(t *testing.T, l capacity.Limit) *hub {
	h := components(t, "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}", 11)
	for i := range h.Clusters {
		cpus("99")(h.Clusters[i])
	}
	h.Binding.BindingSpec().Components[1].ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
		NodeClaim: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "ssd"}}}
	h.Room, h.Limits = schedule.Answers(map[string]int32{"m1": 0, "m2": 0, "m3": 0}), limitedBy(l)
	return h
}

// runAll returns the whole way, with all well.
func (h *hub) runAll(p policyv1alpha1.Propagation) *hub {
	h.claim(p)
	h.schedule()
	h.send()
	h.answers(workv1alpha1.ResourceHealthy, `{"replicas": 2, "readyReplicas": 2}`)
	return h
}

type with func(*clusterv1alpha1.Cluster)

// cluster serves Deployments, has room for ten CPUs, and answers.
func cluster(name string, changes ...with) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{Region: "r-" + name},
		Status: clusterv1alpha1.ClusterStatus{
			APIEnablements: []clusterv1alpha1.APIEnablement{
				{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
				{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
			},
			Conditions: []metav1.Condition{
				{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue},
				{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady",
					Message: "cluster is healthy and ready to accept workloads"},
			},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10"), corev1.ResourcePods: resource.MustParse("100")}},
		},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

func tainted(key string, effect corev1.TaintEffect) with {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
}

func serves(kinds ...string) with {
	return func(c *clusterv1alpha1.Cluster) {
		c.Status.APIEnablements = nil
		for _, k := range kinds {
			c.Status.APIEnablements = append(c.Status.APIEnablements,
				clusterv1alpha1.APIEnablement{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: k}}})
		}
	}
}

func undiscovered(c *clusterv1alpha1.Cluster) {
	serves("ConfigMap")(c)
	meta.SetStatusCondition(&c.Status.Conditions,
		metav1.Condition{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionFalse,
			Reason: "PartialAPIEnablements", Message: "could not list metrics.k8s.io/v1beta1"})
}

func silent(c *clusterv1alpha1.Cluster) {
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
		Status: metav1.ConditionFalse,
		Reason: "ClusterNotReachable", Message: "dial tcp: connection refused; check that its API server is running",
		LastTransitionTime: metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
}

func cpus(n string) with {
	return func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary.Allocatable[corev1.ResourceCPU] = resource.MustParse(n)
	}
}

func fleet() []*clusterv1alpha1.Cluster {
	return []*clusterv1alpha1.Cluster{cluster("m1"), cluster("m2"), cluster("m3")}
}

// united has a subset in m1, one in m2, and one that is divided.
const united = `{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {name: web, namespace: shop, uid: a},
	spec: {replicas: 7, template: {deploymentTemplate: {spec: {template: {spec: {containers: [{name: c, image: "example.com/web:1"}]}}}}},
	topology: {subsets: [{name: a, replicas: 3, clusterAffinity: {clusterNames: [m1]}}, {name: b, replicas: 2, clusterAffinity: {clusterNames: [m2]}}, {name: c, replicas: 2}]}}}`

const ofUnited = "resourceSelectors: [{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment}]"

func servingUnited() []*clusterv1alpha1.Cluster {
	all := fleet()
	for _, c := range all {
		c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{
			GroupVersion: "apps.kruise.io/v1beta1",
			Resources:    []clusterv1alpha1.APIResource{{Name: "uniteddeployments", Kind: "UnitedDeployment"}}})
	}
	return all
}

const byWeights = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [" +
	"{targetCluster: {clusterNames: [m1]}, weight: 3}, {targetCluster: {clusterNames: [m2]}, weight: 2}, {targetCluster: {clusterNames: [m3]}, weight: 1}]}}"

const byRoom = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}"

const packed = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"

// ailing has pods in trouble in m2, where the health is this.
func ailing(t *testing.T, health workv1alpha1.ResourceHealth, r pods.Report) *hub {
	t.Helper()
	h := start(t, deployment, fleet()...)
	h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
	h.answers(health, `{"replicas": 3, "readyReplicas": 1}`, "m2")
	r.Cluster = "m2"
	h.Pods = why.Pods{In: map[string]pods.Report{"m2": r}}
	return h
}

// leaving returns a hub with a Deployment that was moved from m1 to m2, where 2 of 6 replicas are ready.
func leaving(t *testing.T, task workv1alpha2.GracefulEvictionTask) *hub {
	t.Helper()
	h := start(t, deployment, cluster("m1"), cluster("m2"))
	h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
	h.Binding.BindingSpec().Clusters = h.Binding.BindingSpec().Clusters[1:]
	h.Binding.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{task}
	h.Binding.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m2", Applied: true,
		Health: workv1alpha1.ResourceHealthy,
		Status: &runtime.RawExtension{Raw: []byte(`{"replicas":6,"readyReplicas":2}`)}}}
	return h
}

// withJob returns a hub with a Job in m1 and m2.
func withJob(t *testing.T) *hub {
	t.Helper()
	runs := func(c *clusterv1alpha1.Cluster) {
		c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "batch/v1",
			Resources: []clusterv1alpha1.APIResource{{Name: "jobs", Kind: "Job"}}})
	}
	h := start(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: web, namespace: shop, uid: a}, spec: {template: {spec: {containers: [{name: c, image: "example.com/web:1"}]}}}}`, cluster("m1", runs), cluster("m2", runs))
	return h.runAll(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: batch/v1, kind: Job}], placement: {}}"))
}

// failedJob is the status of a Job whose deadline passed.
const failedJob = `{"failed": 1, "conditions": [
	{"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"},
	{"type": "Failed", "status": "True", "reason": "DeadlineExceeded",
		"message": "Job was active longer than specified deadline"}]}`

// limitedBy has the same limit in each cluster.
func limitedBy(l capacity.Limit) why.Limits {
	return func(string) (capacity.Limit, bool) { return l, true }
}

// stories are problems that users have. want is the finding with the highest severity, and next its advice; empty if
// there is no problem. The whole answer is in testdata, one file per story.
var stories = []struct {
	name  string
	given func(t *testing.T) *hub
	// only narrows the answer to a cluster.
	only       string
	severity   why.Severity
	want, next string
}{
	{name: "all is well", given: func(t *testing.T) *hub {
		h := start(t, deployment, fleet()...)
		return h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byWeights+"}}"))
	}},
	{name: "no policy selects it", severity: why.Problem, want: "no policy selects it",
		next: "create a PropagationPolicy in namespace shop",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.policy("shop", "api", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: api}]}")
			h.policy("shop", "labelled", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {tier: front}}}]}")
			h.policy("shop", "config", "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}")
			return h
		}},
	{name: "a brake is set", severity: why.Attention, want: "brake on m1: the hub writes and deletes nothing",
		next: "`argosy brake off -C m1` lets the hub continue", given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Clusters[0].Status.Brakes = []string{"kube-system"}
			h.Clusters[1].Status.Brakes = []string{"bank", "shop"}
			return h
		}},
	{name: "policies of a lower rank", given: func(t *testing.T) *hub {
		h := start(t, deployment, fleet()...)
		p := h.policy("shop", "web", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], priority: 5, placement: {clusterAffinity: {clusterNames: [m1]}}}")
		h.policy("shop", "aaa", "{"+ofDeployments+"}")
		h.policy("shop", "zzz", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: web}}}], priority: 5}")
		h.policy("shop", "late", "{"+ofDeployments+", priority: 9}")
		h.policy("", "everything", "{"+ofDeployments+", priority: 100}")
		h.policy("", "other", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: bank}]}")
		return h.runAll(p)
	}},
	{name: "the policy is gone", severity: why.Problem, want: "the policy that claimed it, shop/web, was deleted",
		next: "create a PropagationPolicy",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Policies = nil
			return h
		}},
	{name: "a lazy policy waits", severity: why.Waiting, want: "is Lazy", next: "change the template",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			p := h.policy("shop", "web", "{"+ofDeployments+", activationPreference: Lazy}")
			propagate.Claim(h.Template, p)
			propagate.Await(h.Template, p)
			return h
		}},
	{name: "a change of a lazy policy waits, though the placement is the same", severity: why.Waiting, want: "is Lazy",
		next: "change the template", given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			p := h.policy("shop", "web", "{"+ofDeployments+", activationPreference: Lazy}")
			h = h.runAll(p)
			p.PropagationSpec().PropagateDeps = true
			return h
		}},
	{name: "an override that the policy depends on is missing", severity: why.Problem,
		want: "PropagationPolicy shop/web waits for the override policies that it depends on: images",
		next: "create them", given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.policy("shop", "web", "{"+ofDeployments+", dependentOverrides: [images]}")
			return h
		}},
	{name: "a preemption that waits for an override policy", severity: why.Waiting,
		want: "PropagationPolicy shop/urgent waits for the override policies that it depends on: images; " +
			"then it preempts PropagationPolicy shop/web",
		next: "create them", given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			p := h.policy("shop", "web", "{"+ofDeployments+"}")
			h.policy("shop", "urgent", "{"+ofDeployments+", priority: 9, preemption: Always, dependentOverrides: [images]}")
			return h.runAll(p)
		}},
	{name: "the policy has not claimed it yet", severity: why.Waiting, want: "has not claimed it yet",
		next: "check that the controllers of the hub run",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.policy("shop", "web", "{"+ofDeployments+"}")
			return h
		}},
	{name: "replicas that no interpreter can read", severity: why.Problem, want: "script: attempt to index a nil value",
		next: "fix what the message names",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			propagate.Claim(h.Template, h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Warnings = []why.Warning{{Object: "Deployment shop/web", Reason: workv1alpha2.EventGetReplicasFailed,
				Message: "script: attempt to index a nil value", Last: metav1.Unix(1_800_000_000, 0)}}
			return h
		}},
	{name: "components that fit nowhere together", severity: why.Problem, want: "not scheduled",
		next: "free capacity for 1 more",
		given: func(t *testing.T) *hub {
			return components(t, "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}", 11)
		}},
	{name: "components that a quota limits", severity: why.Problem, want: "not scheduled",
		next: "m1, m2, m3: ResourceQuota team of namespace shop limits cpu; for cluster m1 check " +
			"`argosy get resourcequotas team -n shop -C m1`; or select more clusters",
		given: func(t *testing.T) *hub {
			return limitedComponents(t, capacity.Limit{Quota: "team", Resource: "cpu"})
		}},
	{name: "components of which one finds no node", severity: why.Problem, want: "not scheduled",
		next: "m1, m2, m3: component worker: nodes that do not match nodeSelector disk=ssd: 2 of 3; nodes that lack cpu: " +
			"1 of 3; for cluster m1 check `argosy get nodes -l disk=ssd -C m1`; or select more clusters",
		given: func(t *testing.T) *hub {
			return limitedComponents(t, capacity.Limit{Component: "worker", Nodes: 3, Unmatched: 2,
				Lacking: map[string]int{"cpu": 1}})
		}},
	{name: "components in one cluster", severity: "", want: "",
		given: func(t *testing.T) *hub {
			return components(t, "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}", 5)
		}},
	{name: "two kinds of one name", severity: why.Problem, want: "is the binding of another template",
		next: "another name",
		given: func(t *testing.T) *hub {
			other := start(t, strings.ReplaceAll(deployment, "apps/v1", "example.com/v1"), fleet()...)
			other.claim(other.policy("shop", "theirs", "{resourceSelectors: [{apiVersion: example.com/v1, kind: Deployment}]}"))
			h := start(t, deployment, fleet()...)
			propagate.Claim(h.Template, h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Binding = other.Binding
			return h
		}},
	{name: "a cluster is tainted", severity: why.Attention,
		want: "m3 is left out: it has the untolerated taint maintenance:NoSchedule",
		next: "clusterTolerations: [{key: maintenance, operator: Exists}]",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"), cluster("m2"),
				cluster("m3", tainted("maintenance", corev1.TaintEffectNoSchedule)))
			return h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
		}},
	{name: "a taint that would evict", severity: why.Waiting,
		want: "m2: it should leave the cluster (TaintUntolerated): the hub is about to move it",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h = h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			tainted("maintenance", corev1.TaintEffectNoExecute)(h.Clusters[1])
			return h
		}},
	{name: "a taint that would evict, of a cluster that is cordoned too", severity: why.Waiting,
		want: "m2: it should leave the cluster (TaintUntolerated): the hub is about to move it",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h = h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			tainted("cordon", corev1.TaintEffectNoSchedule)(h.Clusters[1])
			tainted("maintenance", corev1.TaintEffectNoExecute)(h.Clusters[1])
			return h
		}},
	{name: "a kind that a member does not know", severity: why.Attention,
		want: "m2 is left out: it does not serve the kind Deployment.apps", next: "CustomResourceDefinition",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"), cluster("m2", serves("ConfigMap")), cluster("m3", undiscovered))
			return h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
		}},
	{name: "it fits nowhere", severity: why.Problem,
		want: "0/3 clusters are available: 1 cluster(s) did not have the API resource, 1 cluster(s) did not match",
		next: "the closest is m2",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"), cluster("m2", tainted("gpu", corev1.TaintEffectNoExecute)),
				cluster("m3", serves("ConfigMap")))
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {clusterAffinity: {exclude: [m1]}}}"))
			h.schedule()
			return h
		}},
	{name: "there is no cluster", severity: why.Problem, want: "0/0 clusters", next: "argosy join",
		given: func(t *testing.T) *hub {
			h := start(t, deployment)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.schedule()
			return h
		}},
	{name: "an affinity that means others", only: "m2", given: func(t *testing.T) *hub {
		h := start(t, deployment, fleet()...)
		return h.runAll(h.policy("shop", "web", "{"+ofDeployments+`, placement: {clusterAffinity: {labelSelector: {matchExpressions: [{key: out, operator: DoesNotExist}]},
			fieldSelector: {matchExpressions: [{key: region, operator: In, values: [r-m1]}]}}}}`))
	}},
	{name: "replicas beyond capacity", severity: why.Problem, want: "Clusters available replicas 30 are not enough",
		next: "lower the replicas from 40 to 30",
		given: func(t *testing.T) *hub {
			h := start(t, strings.Replace(deployment, "replicas: 6", "replicas: 40", 1), fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			h.schedule()
			return h
		}},
	{name: "nodes that no selector matches", severity: why.Problem, want: "Clusters available replicas 0 are not enough",
		next: "m1, m2, m3: nodes that do not match nodeSelector disk=ssd: 3 of 3; for cluster m1 check",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.Room = schedule.Answers(map[string]int32{"m1": 0, "m2": 0, "m3": 0})
			h.Limits = limitedBy(capacity.Limit{Nodes: 3, Unmatched: 3})
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			h.Binding.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{
				NodeClaim: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "ssd"}}}
			return h
		}},
	{name: "a quota that allows few", severity: why.Problem, want: "Clusters available replicas 4 are not enough",
		next: "m1: ResourceQuota team of namespace shop limits limits.cpu; for cluster m1 check " +
			"`argosy get resourcequotas team -n shop -C m1`; or lower the replicas from 6 to 4, or select more clusters",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"))
			h.Room = schedule.Answers(map[string]int32{"m1": 4})
			h.Limits = limitedBy(capacity.Limit{Replicas: 4, Quota: "team", Resource: "limits.cpu"})
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			return h
		}},
	{name: "nodes that are each too small or closed", severity: why.Problem, next: "m1: nodes that lack cpu: 2 of 4; " +
		"nodes with a taint that it does not tolerate: 1 of 4; nodes that are not ready: 1 of 4; for cluster m1 check",
		want: "Clusters available replicas 1 are not enough",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"))
			h.Room = schedule.Answers(map[string]int32{"m1": 1})
			h.Limits = limitedBy(capacity.Limit{Replicas: 1, Nodes: 4, Tainted: 1, NotReady: 1,
				Lacking: map[string]int{"cpu": 2}})
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			return h
		}},
	{name: "an estimator that answers less", severity: why.Problem, want: "Clusters available replicas 1 are not enough",
		next: "m1: its estimator answers that no more fit; for cluster m1 check its estimator",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"))
			h.Room = schedule.Answers(map[string]int32{"m1": 1})
			h.Limits = limitedBy(capacity.Limit{Replicas: 9, Estimator: true, Nodes: 1,
				Lacking: map[string]int{"cpu": 1}})
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			return h
		}},
	{name: "a quota that was counted later than the capacity", severity: why.Problem,
		want: "Clusters available replicas 1 are not enough", next: "m1: ResourceQuota team of namespace shop limits cpu",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"))
			h.Room = schedule.Answers(map[string]int32{"m1": 1})
			h.Limits = limitedBy(capacity.Limit{Replicas: 2, Quota: "team", Resource: "cpu"})
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			return h
		}},
	{name: "a limit that is not known", severity: why.Problem, want: "Clusters available replicas 1 are not enough",
		next: "lower the replicas from 6 to 1, request less per replica, add nodes, or select more clusters",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"))
			h.Room = schedule.Answers(map[string]int32{"m1": 1})
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			return h
		}},
	{name: "nothing is free", severity: why.Problem, want: "Clusters available replicas 0 are not enough",
		next: "request less per replica, add nodes, or select more clusters",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1", func(c *clusterv1alpha1.Cluster) {
				c.Status.ResourceSummary.Allocated = c.Status.ResourceSummary.Allocatable
			}))
			h.Room = schedule.Answers(map[string]int32{"m1": 0})
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			return h
		}},
	{name: "a policy that names a cluster wrong", severity: why.Attention,
		want: `clusterNames[1]: no cluster is named "m-2"; did you mean m2?`, next: "correct the name, or join a cluster",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			return h.runAll(h.policy("shop", "web", "{"+ofDeployments+
				", placement: {clusterAffinity: {clusterNames: [m1, m-2]}}}"))
		}},
	{name: "pods that keep apart", severity: why.Problem, want: "Clusters available replicas 3 are not enough",
		next: "relax the spread (a cluster has capacity for one per node by podAntiAffinity)",
		given: func(t *testing.T) *hub {
			h := start(t, strings.Replace(deployment, "spec: {containers:",
				"spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}, containers:", 1), fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			h.Room = schedule.Answers(map[string]int32{"m1": 1, "m2": 2, "m3": 0})
			h.Limits = limitedBy(capacity.Limit{Spread: true})
			h.schedule()
			return h
		}},
	{name: "few clusters suffice", given: func(t *testing.T) *hub {
		h := start(t, deployment, cluster("m1", cpus("4")), cluster("m2", cpus("0")), cluster("m3"))
		return h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+packed+"}}"))
	}},
	{name: "a cluster that was joined again", severity: why.Attention,
		want: "m2 has none of the replicas, and a fresh scheduling would place 2 replicas there",
		next: "create a WorkloadRebalancer with spec.workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]", given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"))
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			h.Clusters = append(h.Clusters, cluster("m2"))
			return h
		}},
	{name: "a cluster with a static weight that was joined again", severity: why.Attention,
		want: "m2 has none of the replicas, and a fresh scheduling would place 2 replicas there",
		next: "create a WorkloadRebalancer with spec.workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]", given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"))
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byWeights+"}}"))
			h.Clusters = append(h.Clusters, cluster("m2"))
			return h
		}},
	{name: "room that came later", severity: why.Attention,
		want: "m2 has none of the replicas, and a fresh scheduling would place 2 replicas there",
		next: "create a WorkloadRebalancer", given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"), cluster("m2", cpus("0")))
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byRoom+"}}"))
			h.Clusters[1] = cluster("m2")
			return h
		}},
	{name: "too few clusters to spread over", severity: why.Problem, want: "less than spreadConstraint.MinGroups",
		next: "lower minGroups to 3",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+
				", placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 4, maxGroups: 5}]}}"))
			h.schedule()
			return h
		}},
	{name: "spread over one", given: func(t *testing.T) *hub {
		h := start(t, deployment, fleet()...)
		return h.runAll(h.policy("shop", "web", "{"+ofDeployments+
			", placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]}}"))
	}},
	{name: "a copy that needs room", given: func(t *testing.T) *hub {
		h := start(t, deployment, cluster("m1", cpus("0")), cluster("m2", cpus("4")), cluster("m3"))
		return h.runAll(h.policy("shop", "web", "{"+ofDeployments+
			", placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]}}"))
	}},
	{name: "weights beside a spread", given: func(t *testing.T) *hub {
		h := start(t, deployment, fleet()...)
		return h.runAll(h.policy("shop", "web", "{"+ofDeployments+
			", placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}], "+byWeights+"}}"))
	}},
	{name: "subsets that name their clusters", given: func(t *testing.T) *hub {
		h := start(t, united, servingUnited()...)
		return h.runAll(h.policy("shop", "web", "{"+ofUnited+"}"))
	}},
	{name: "a subset that no cluster may take", severity: why.Problem,
		want: `subset "b" is not scheduled to any cluster: none that its clusterAffinity selects fits (m2`,
		next: "let the policy match m2",
		given: func(t *testing.T) *hub {
			h := start(t, united, servingUnited()...)
			h.claim(h.policy("shop", "web", "{"+ofUnited+", placement: {clusterAffinity: {clusterNames: [m1, m3]}}}"))
			h.schedule()
			h.send()
			return h
		}},
	{name: "an image is pulled first", severity: why.Waiting, want: `cluster "m2": it is pulling example.com/web:2`,
		next: "remove the annotation argosy.io/pre-pull",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			meta.SetStatusCondition(&h.Binding.BindingStatus().Conditions,
				metav1.Condition{Type: workv1alpha2.ImagesPulled, Status: metav1.ConditionFalse,
					Reason:  workv1alpha2.ReasonPullingImages,
					Message: `cluster "m2": it is pulling example.com/web:2; new pods are created when 95% of its nodes have it, or at 2027-01-15T08:10:00Z`})
			return h
		}},
	{name: "the second affinity", severity: why.Attention, want: `no cluster is named "m9"`,
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			return h.runAll(h.policy("shop", "web", "{"+ofDeployments+
				", placement: {clusterAffinities: [{affinityName: home, clusterNames: [m9]}, {affinityName: away, clusterNames: [m2]}]}}"))
		}},
	{name: "scheduling is suspended", severity: why.Waiting, want: "scheduling is suspended", next: "set it to false",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Binding.BindingSpec().Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
			return h
		}},
	{name: "dispatching is suspended", severity: why.Waiting, want: "m2: dispatching is suspended; nothing was sent",
		next: "remove spec.suspension from PropagationPolicy shop/web",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", suspension: {dispatchingOnClusters: {clusterNames: [m2]}}}"))
			h.schedule()
			h.send()
			h.answers(workv1alpha1.ResourceHealthy, `{"replicas": 6, "readyReplicas": 6}`, "m1", "m3")
			return h
		}},
	{name: "a migration put a cluster back to Shadow", severity: why.Waiting,
		want: "m2: the migration put it back to Shadow at 2027-01-15T08:00:00Z: a pod restarted",
		next: "continue with `argosy migrate in`",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			p := h.policy("shop", "web", "{"+ofDeployments+", suspension: {dispatchingOnClusters: {clusterNames: [m2]}}}")
			p.SetAnnotations(map[string]string{wellknown.MigrationAnnotation: `{"clusters":{"m1":{"state":"Own"},` +
				`"m2":{"state":"Shadow","since":"2027-01-15T08:00:00Z","reason":"a pod restarted"},"m3":{"state":"Own"}}}`})
			h.claim(p)
			h.schedule()
			h.send()
			h.answers(workv1alpha1.ResourceHealthy, `{"replicas": 6, "readyReplicas": 6}`, "m1", "m3")
			return h
		}},
	{name: "its management is paused", severity: why.Waiting, want: "m1: dispatching is suspended; nothing was sent",
		next: "remove the annotation argosy.io/pause-management",
		given: func(t *testing.T) *hub {
			h := start(t, strings.Replace(deployment, "metadata: {",
				`metadata: {annotations: {argosy.io/pause-management: "true"}, `, 1), fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.schedule()
			h.send()
			return h
		}},
	{name: "its autoscaler does not scale it", severity: why.Attention,
		want: "FederatedHPA by-load does not scale it: no cluster reports this metric",
		next: "see the conditions of the FederatedHPA",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.schedule()
			h.send()
			h.answers(workv1alpha1.ResourceHealthy, `{"replicas": 6, "readyReplicas": 6}`, "m1", "m2", "m3")
			h.Scalers = []autoscalingv1alpha1.FederatedHPA{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-load"},
				Spec: autoscalingv1alpha1.FederatedHPASpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 9},
				Status: autoscalingv1alpha1.FederatedHPAStatus{CurrentReplicas: 6,
					Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
						{Type: autoscalingv2.ScalingActive, Status: "False", Message: "no cluster reports this metric"}}}},
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-another"}}}
			return h
		}},
	{name: "another scheduler", severity: why.Waiting, want: `selects the scheduler "volcano"`,
		next: "check that this scheduler is running",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", schedulerName: volcano}"))
			return h
		}},
	{name: "a quota that a new workload exceeds", severity: why.Problem,
		want: "not scheduled: FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 9, limit 8.",
		next: "the workload needs 6 and the others in namespace shop use 3 of 8: raise overall.cpu of FederatedResourceQuota team to 9",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byWeights+"}}"))
			h.Binding.BindingSpec().SchedulePriority = &workv1alpha2.SchedulePriority{Priority: 100}
			h.quota("large", "{overall: {cpu: 99}}", "cpu: 3")
			h.quota("team", "{overall: {cpu: 8}}", "cpu: 3")
			return h
		}},
	{name: "a quota that more replicas exceed", severity: why.Problem,
		want: "not scheduled: FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 11, limit 8.",
		next: "use 5 of 8",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byWeights+"}}"))
			h.Binding.BindingSpec().Clusters[0].Replicas-- // it was scaled by one
			h.quota("team", "{overall: {cpu: 8}}", "cpu: 10")
			return h
		}},
	{name: "a quota below what runs", given: func(t *testing.T) *hub {
		h := start(t, deployment, fleet()...)
		h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byWeights+"}}"))
		h.quota("team", "{overall: {cpu: 2}}", "cpu: 6")
		return h
	}},
	{name: "a quota that larger requests exceed", severity: why.Problem,
		want: "does not permit the requests of its last change, and clusters keep their pods: apply PropagationPolicy shop/web: update",
		next: "lower the requests, or raise the quota: `kubectl get federatedresourcequotas -n shop`",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byWeights+"}}"))
			h.Template.SetLabels(map[string]string{"some": "change"})
			propagate.Claim(h.Template, h.Policies[0])
			h.Binding.GetAnnotations()[wellknown.QuotaRefusedAnnotation] = propagate.Digest(h.Template)
			h.quota("team", "{overall: {cpu: 8}}", "cpu: 6")
			h.Warnings = []why.Warning{{Object: "Deployment shop/web", Reason: "ApplyPolicyFailed",
				Message: "apply PropagationPolicy shop/web: update ResourceBinding shop/web-deployment: admission webhook \"resourcebinding.karmada.io\" denied the request: FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 9, limit 8."}}
			return h
		}},
	{name: "a scheduler of another name", severity: why.Waiting, want: `selects the scheduler "default-scheduler"`,
		next: "use the hub's: schedulerName: ours",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.claim(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Scheduler.Name = "ours"
			return h
		}},
	{name: "a scheduler without a plugin", given: func(t *testing.T) *hub {
		h := start(t, deployment, cluster("m1"), cluster("m2", tainted("maintenance", corev1.TaintEffectNoSchedule)))
		plugins, err := schedule.ParsePlugins([]string{"*", "-TaintToleration"})
		if err != nil {
			t.Fatal(err)
		}
		h.Scheduler.Plugins = plugins
		return h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
	}},
	{name: "a scheduler that keeps empty workloads", given: func(t *testing.T) *hub {
		h := start(t, strings.Replace(deployment, "replicas: 6", "replicas: 1", 1), fleet()...)
		h.Scheduler.KeepEmpty = true
		return h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {replicaScheduling: {"+
			"replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}"))
	}},
	{name: "an override that fails", severity: why.Problem, want: "m2: an override fails",
		next: "fix that override policy",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.override("eu", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [
				{targetCluster: {clusterNames: [m1]}, overriders: {imageOverrider: [{component: Registry, operator: replace, value: eu.example.com}]}},
				{targetCluster: {clusterNames: [m2]}, overriders: {plaintext: [{path: /spec/nothing/here, operator: replace, value: 1}]}}]}`)
			return h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
		}},
	{name: "an override that changes nothing", severity: why.Attention, want: "changed nothing", next: "fix the overrider",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"))
			h.override("args", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [
				{overriders: {argsOverrider: [{containerName: nobody, operator: add, value: [--fast]}]}}]}`)
			return h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
		}},
	{name: "a member that has an object of that name", severity: why.Problem,
		want: "m1: the hub leaves the member's object alone",
		next: "conflictResolution: Overwrite in PropagationPolicy shop/web",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m1", workv1alpha1.ReasonObjectUnmanaged,
				"resource(kind=Deployment, shop/web) already exists in the cluster m1 and the work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource")
			return h
		}},
	{name: "a Retain that fails", severity: why.Problem,
		want: "m1: nothing new is sent, because Retain could not be interpreted", next: "argosy interpret explain Deployment",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m1", workv1alpha1.ReasonNotSent,
				`retain member values of Deployment shop/web: customization "a", Retain: Retain returned nil`)
			for i := range h.Works {
				if c, _ := names.ClusterOf(h.Works[i].Namespace); c == "m1" {
					interpret.SetFault(&h.Works[i].Status.Conditions, "Retain", errors.New("Retain returned nil"), metav1.Time{})
				}
			}
			return h
		}},
	{name: "a member that refuses it", only: "m2", severity: why.Problem, want: "denied by policy no-latest",
		next: "override for cluster m2",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.override("eu", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [
				{targetCluster: {clusterNames: [m2]}, overriders: {imageOverrider: [{component: Tag, operator: replace, value: latest}]}}]}`)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byWeights+"}}"))
			h.refuses("m2", workv1alpha1.ReasonRejected,
				`admission webhook "policy.example.com" denied the request: denied by policy no-latest`)
			return h
		}},
	{name: "a namespace that a member lacks", severity: why.Problem, want: "m2: the member refused it: create Deployment",
		next: "create it with a kubeconfig of cluster m2: `kubectl create namespace shop --kubeconfig FILE`",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", workv1alpha1.ReasonNamespaceMissing,
				`create Deployment shop/web in cluster "m2": namespaces "shop" not found`)
			return h
		}},
	{name: "a webhook that quotes others", only: "m2", severity: why.Problem,
		want: "m2: the member refused it: create Deployment shop/web in cluster \"m2\": admission webhook",
		next: "change what the member refuses",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", workv1alpha1.ReasonRejected,
				`create Deployment shop/web in cluster "m2": admission webhook "policy.example.com" denied the request: cluster is not reachable: no answer in time; 401 Unauthorized; secrets is forbidden: User "x"; set work.karmada.io/conflict-resolution; cluster "m2": Unauthorized`)
			return h
		}},
	{name: "a member that is slow", severity: why.Problem,
		want: "m2: the cluster did not answer in time, so it is not known whether it has the change",
		next: "running and not overloaded",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", workv1alpha1.ReasonTimeout, "cluster is not reachable: no answer in time")
			return h
		}},
	{name: "a member that nobody reaches", severity: why.Problem,
		want: "m2: the cluster is not reachable: connection refused",
		next: "check that its API server is running and reachable at https://m2",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Clusters[1].Spec.APIEndpoint = "https://m2"
			h.refuses("m2", workv1alpha1.ReasonUnreachable, "cluster is not reachable: connection refused")
			return h
		}},
	{name: "a member whose certificate is another", severity: why.Problem,
		want: "m2: the cluster is not reachable: tls: failed to verify certificate", next: "correct caBundle",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Clusters[1].Spec.APIEndpoint = "https://m2"
			h.refuses("m2", workv1alpha1.ReasonCertificateUntrusted,
				"cluster is not reachable: tls: failed to verify certificate: x509: certificate signed by unknown authority")
			return h
		}},
	{name: "a member that no longer knows the hub", severity: why.Problem, want: "m2: the member refused it: Unauthorized",
		next: "join cluster m2 again",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", workv1alpha1.ReasonUnauthorized, "Unauthorized")
			return h
		}},
	{name: "a member where the hub lacks a right", severity: why.Problem,
		want: "m2: the member refused it: deployments.apps is forbidden",
		next: "the hub may not create deployments.apps in namespace shop of cluster m2: `argosy join m2 --role full",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", workv1alpha1.ReasonForbidden,
				`deployments.apps is forbidden: User "system:serviceaccount:karmada-cluster:karmada-m2" cannot create resource "deployments" in API group "apps" in the namespace "shop"`)
			return h
		}},
	{name: "a failure that an earlier version recorded", severity: why.Problem,
		want: "m2: not applied: Failed to apply all manifests (0/1): Unauthorized", next: "fix what the message names",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", "", "Unauthorized")
			return h
		}},
	{name: "an object that is held after a restore", severity: why.Problem,
		want: "m2: held after a restore of the hub: it does not exist there",
		next: "argosy restore accept deployment web -n shop",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", workv1alpha1.ReasonRestored,
				"it does not exist there, although the hub had dispatched it before the backup")
			return h
		}},
	{name: "an object of another Work", severity: why.Problem,
		want: "m2: the hub leaves the member's object alone: resource(kind=Deployment, shop/web) in the cluster m2 belongs to the work", next: "follow the message",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", workv1alpha1.ReasonObjectOfAnother,
				"resource(kind=Deployment, shop/web) in the cluster m2 belongs to the work karmada-es-m2/other")
			return h
		}},
	{name: "a manifest that cannot be sent", severity: why.Problem, want: "m2: not applied: decode the manifest",
		next: "fix what the message names",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.refuses("m2", workv1alpha1.ReasonNotSent, "decode the manifest: unexpected end of JSON input")
			return h
		}},
	{name: "a cluster that is not ready for its certificate", severity: why.Problem,
		want: "m2: the cluster is not ready: ", next: "correct caBundle",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Clusters[1].Spec.APIEndpoint = "https://m2"
			h.refuses("m2", workv1alpha1.ReasonClusterNotReady, `cluster "m2" is not ready`)
			silent(h.Clusters[1])
			membership.SetUntrusted(&h.Clusters[1].Status.Conditions, true, time.Unix(1_800_000_000, 0))
			return h
		}},
	{name: "not healthy in a member", severity: why.Problem,
		want: "m3: applied, and not healthy: replicas 6, readyReplicas 1", next: "--cluster m3",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.answers(workv1alpha1.ResourceUnhealthy, `{"replicas": 6, "readyReplicas": 1}`, "m3")
			h.answers(workv1alpha1.ResourceUnknown, `{"replicas": 6}`, "m2")
			return h
		}},
	{name: "an image that cannot be pulled", severity: why.Problem,
		want: `m2: 2 of 3 pods: ImagePullBackOff: Back-off pulling image "nope:1" (container web)`, next: "imagePullSecrets",
		given: func(t *testing.T) *hub {
			return ailing(t, workv1alpha1.ResourceUnhealthy, pods.Report{Pods: 3, Troubles: []pods.Group{
				{Pods: 2, Pod: "web-5d4f-a", Reason: "ImagePullBackOff", Message: `Back-off pulling image "nope:1"`,
					Container: "web"}}})
		}},
	{name: "pods that find no node", only: "m2", severity: why.Problem,
		want: "m2: 1 of 3 pods: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.", next: "add nodes to cluster m2",
		given: func(t *testing.T) *hub {
			return ailing(t, workv1alpha1.ResourceUnhealthy, pods.Report{Pods: 3, Troubles: []pods.Group{
				{Pods: 1, Pod: "web-5d4f-a", Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}})
		}},
	{name: "containers that crash", only: "m2", severity: why.Problem,
		want: "m2: 1 of 3 pods: CrashLoopBackOff: 7 restarts, last terminated: Error, exit code 2 (container web)",
		next: "argosy logs web-5d4f-a -n shop -C m2 -c web --previous", given: func(t *testing.T) *hub {
			return ailing(t, workv1alpha1.ResourceUnhealthy, pods.Report{Pods: 3, Others: 1, Troubles: []pods.Group{
				{Pods: 1, Pod: "web-5d4f-a", Reason: "CrashLoopBackOff", Container: "web", Restarts: 7,
					Last: &pods.End{Reason: "Error", ExitCode: 2}},
				{Pods: 1, Pod: "web-5d4f-b", Reason: "CreateContainerConfigError", Message: `secret "db" not found`,
					Container: "web"}}})
		}},
	{name: "containers that take too much memory", severity: why.Problem,
		want: "CrashLoopBackOff: 3 restarts, last terminated: OOMKilled, exit code 137",
		next: "raise the memory limit of container web",
		given: func(t *testing.T) *hub {
			return ailing(t, workv1alpha1.ResourceUnhealthy, pods.Report{Pods: 3, Troubles: []pods.Group{
				{Pods: 3, Pod: "web-5d4f-a", Reason: "CrashLoopBackOff", Container: "web", Restarts: 3,
					Last: &pods.End{Reason: "OOMKilled", ExitCode: 137}}}})
		}},
	{name: "a Secret that is not there", severity: why.Problem,
		want: `m2: 3 of 3 pods: CreateContainerConfigError: secret "db" not found (container web)`, next: "propagateDeps",
		given: func(t *testing.T) *hub {
			return ailing(t, workv1alpha1.ResourceUnknown, pods.Report{Pods: 3, Troubles: []pods.Group{
				{Pods: 3, Pod: "web-5d4f-a", Reason: "CreateContainerConfigError", Message: `secret "db" not found`,
					Container: "web"}}})
		}},
	{name: "a pod too many in trouble", severity: why.Attention,
		want: "m2: 1 of 4 pods: ContainersNotReady: the container is running, and not ready (container web)",
		next: "argosy logs web-5d4f-a -n shop -C m2 -c web",
		given: func(t *testing.T) *hub {
			h := ailing(t, workv1alpha1.ResourceHealthy, pods.Report{Pods: 4, Troubles: []pods.Group{
				{Pods: 1, Pod: "web-5d4f-a", Reason: pods.ContainersNotReady, Message: "the container is running, and not ready",
					Container: "web"}}})
			h.answers(workv1alpha1.ResourceHealthy, `{"replicas": 7, "readyReplicas": 6}`, "m2")
			return h
		}},
	{name: "new pods of a canary that do not run", severity: why.Problem, want: "m2: 2 of 6 pods: ImagePullBackOff",
		next: "imagePullSecrets",
		given: func(t *testing.T) *hub {
			return ailing(t, workv1alpha1.ResourceHealthy,
				pods.Report{Pods: 6, Troubles: []pods.Group{{Pods: 2, Pod: "web-5d4f-a", Reason: "ImagePullBackOff"}}})
		}},
	{name: "a Work that is gone while its pods do not run", severity: why.Waiting,
		want: "m2: its Work is about to be created",
		given: func(t *testing.T) *hub {
			h := ailing(t, workv1alpha1.ResourceUnhealthy,
				pods.Report{Pods: 3, Troubles: []pods.Group{{Pods: 3, Pod: "web-5d4f-a", Reason: "ImagePullBackOff"}}})
			h.Works = slices.DeleteFunc(h.Works, func(w workv1alpha1.Work) bool {
				return w.Namespace == names.ExecutionSpace("m2")
			})
			return h
		}},
	{name: "pods in trouble in very many clusters", severity: why.Problem, want: "m2: 3 of 3 pods: ImagePullBackOff",
		given: func(t *testing.T) *hub {
			h := ailing(t, workv1alpha1.ResourceUnhealthy,
				pods.Report{Pods: 3, Troubles: []pods.Group{{Pods: 3, Pod: "web-5d4f-a", Reason: "ImagePullBackOff"}}})
			h.Pods.More = 3
			return h
		}},
	{name: "pods of a member that does not answer", only: "m2", severity: why.Problem,
		want: "m2: the cluster has not been ready since 2026-01-01T00:00:00Z", next: "bring the cluster back",
		given: func(t *testing.T) *hub {
			h := ailing(t, workv1alpha1.ResourceUnhealthy,
				pods.Report{Pods: 3, Troubles: []pods.Group{{Pods: 3, Pod: "web-5d4f-a", Reason: "ImagePullBackOff"}}})
			silent(h.Clusters[1])
			return h
		}},
	{name: "pods that may not be seen", severity: why.Problem, want: "m3: applied, and not healthy",
		next: "you need permission to get resourcebindings/pods in namespace shop",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.answers(workv1alpha1.ResourceUnhealthy, `{"replicas": 6, "readyReplicas": 1}`, "m3")
			h.answers(workv1alpha1.ResourceUnknown, `{"replicas": 6}`, "m2")
			h.Pods.Unseen = true
			return h
		}},
	{name: "a rollout that stands still", severity: why.Problem,
		want: "m3: applied, and not healthy: its deadline passed without progress at 2026-01-01T00:00:00Z, replicas 6",
		next: "--cluster m3",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.answers(workv1alpha1.ResourceUnhealthy, `{"replicas": 6, "readyReplicas": 1}`, "m3")
			for i := range h.Works {
				if h.Works[i].Namespace == names.ExecutionSpace("m3") {
					h.Works[i].Status.Conditions = append(h.Works[i].Status.Conditions,
						metav1.Condition{Type: workv1alpha1.WorkProgressing, Status: metav1.ConditionFalse,
							Reason:             interpret.ReasonDeadlineExceeded,
							LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))})
				}
			}
			return h
		}},
	{name: "an autoscaler in a member",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.answers(workv1alpha1.ResourceHealthy, `{"replicas": 9, "readyReplicas": 9}`, "m3")
			h.scaledIn("m3")
			return h
		}},
	{name: "autoscalers that a policy propagates",
		given: func(t *testing.T) *hub {
			return scaledBy(t, autoscaler(t, "web", true, ""), autoscaler(t, "other", true, ""), scaledObject(t, "api"))
		}},
	{name: "an autoscaler that no policy propagates", severity: why.Attention,
		want:  "HorizontalPodAutoscaler web does not scale it: no policy propagates it",
		next:  "select it in the policy that selects Deployment web",
		given: func(t *testing.T) *hub { return scaledBy(t, autoscaler(t, "web", false, "")) }},
	{name: "an autoscaler with an invalid annotation", severity: why.Attention,
		want: `HorizontalPodAutoscaler web is not applied as it is now: annotation argosy.io/rollout-scope: "Galaxy" is not ` +
			`one of Fleet, Cluster`,
		next: "correct the annotation of HorizontalPodAutoscaler web",
		given: func(t *testing.T) *hub {
			u := autoscaler(t, "web", true, "")
			annotations := u.GetAnnotations()
			annotations["argosy.io/rollout-scope"] = "Galaxy"
			u.SetAnnotations(annotations)
			return scaledBy(t, u)
		}},
	{name: "an autoscaler and a FederatedHPA", severity: why.Attention,
		want: "FederatedHPA load and HorizontalPodAutoscaler web scale it, and undo each other's replicas",
		next: "delete all but one of them",
		given: func(t *testing.T) *hub {
			h := scaledBy(t, autoscaler(t, "web", true, ""))
			h.Scalers = []autoscalingv1alpha1.FederatedHPA{federated("load")}
			return h
		}},
	{name: "two autoscalers", severity: why.Attention,
		want: "HorizontalPodAutoscaler a and HorizontalPodAutoscaler b scale it, and undo each other's replicas",
		next: "delete all but one of them",
		given: func(t *testing.T) *hub {
			b, a := autoscaler(t, "web", true, ""), autoscaler(t, "web", true, "")
			b.SetName("b")
			a.SetName("a")
			return scaledBy(t, b, a)
		}},
	{name: "an autoscaler beside one that a member has already", severity: why.Attention,
		want: "HorizontalPodAutoscaler web does not scale it: m1: pods by selector app=web are controlled by multiple HPAs",
		next: "see `argosy why horizontalpodautoscaler web -n shop`",
		given: func(t *testing.T) *hub {
			return scaledBy(t, autoscaler(t, "web", true, `{type: ScalingActive, status: "False", reason: AmbiguousSelector, `+
				`message: "m1: pods by selector app=web are controlled by multiple HPAs"}, `+
				`{type: ScalingLimited, status: "False"}`))
		}},
	{name: "a FederatedHPA and an autoscaler of a member", severity: why.Attention,
		want: "m3: HorizontalPodAutoscaler web in the cluster sets its replicas, which are kept, although FederatedHPA load scales the workload",
		next: "delete one of them",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.scaledIn("m3")
			h.Scalers = []autoscalingv1alpha1.FederatedHPA{federated("load")}
			return h
		}},
	{name: "an object that somebody changes again and again", severity: why.Attention,
		want: `m3: field manager "kubectl" repeatedly changes /spec/replicas of Deployment shop/web in cluster "m3"`,
		next: "stop it from doing so",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			for i := range h.Works {
				if h.Works[i].Namespace == names.ExecutionSpace("m3") {
					h.Works[i].Status.Conditions = append(h.Works[i].Status.Conditions,
						metav1.Condition{Type: workv1alpha1.WorkContested, Status: metav1.ConditionTrue,
							Reason: workv1alpha1.ReasonChangedRepeatedly, Message: execute.Contested("m3", h.Template, "/spec/replicas",
								"kubectl")})
				}
			}
			return h
		}},
	{name: "what is noted of a status", severity: why.Waiting,
		want: "m2: applied, and not known to be healthy yet: replicas 6; 1 in subset a",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.answers(workv1alpha1.ResourceHealthy,
				`{"conditions": [{"type": "NoMatchedPods", "status": "True", "message": "it is in no pod"}, {"type": "Other", "status": "True", "message": "not this"}]}`, "m3")
			h.answers(workv1alpha1.ResourceUnknown,
				`{"replicas": 6, "conditions": [{"type": "PodsReserved", "status": "True", "message": "1 in subset a"}]}`, "m2")
			return h
		}},
	{name: "a member that does not answer", severity: why.Problem, want: "m1: the cluster has not been ready since ",
		next: "bring the cluster back",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"), cluster("m2"))
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			silent(h.Clusters[0])
			return h
		}},
	{name: "a Job that has failed", only: "m2", severity: why.Problem,
		want: "m2: applied, and not healthy: failed 1; DeadlineExceeded: Job was active longer than specified deadline",
		next: "look at the object and its pods in cluster m2", given: func(t *testing.T) *hub {
			h := withJob(t)
			h.answers(workv1alpha1.ResourceUnhealthy, failedJob, "m2")
			return h
		}},
	{name: "a Job that has failed and has pods in trouble", only: "m2", severity: why.Problem,
		want: "m2: 1 of 1 pod: ImagePullBackOff; DeadlineExceeded: Job was active", given: func(t *testing.T) *hub {
			h := withJob(t)
			h.answers(workv1alpha1.ResourceUnhealthy, failedJob, "m2")
			h.Pods = why.Pods{In: map[string]pods.Report{"m2": {Cluster: "m2", Pods: 1, Troubles: []pods.Group{
				{Pods: 1, Pod: "web-a", Reason: "ImagePullBackOff"}}}}}
			return h
		}},
	{name: "a Job that has ended in a member that does not answer", only: "m1",
		given: func(t *testing.T) *hub {
			h := withJob(t)
			h.answers(workv1alpha1.ResourceHealthy,
				`{"succeeded": 1, "completionTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Complete", "status": "True"}]}`, "m1", "m2")
			silent(h.Clusters[0])
			return h
		}},
	{name: "a cluster left the fleet", severity: why.Problem, want: "m2: the cluster is not in the fleet",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, cluster("m1"), cluster("m2"))
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Clusters = h.Clusters[:1]
			return h
		}},
	{name: "leaving in good order", severity: why.Waiting,
		want: "m1: the object is kept until its replacements in other clusters are healthy (TaintUntolerated)",
		given: func(t *testing.T) *hub {
			return leaving(t, workv1alpha2.GracefulEvictionTask{FromCluster: "m1", Producer: "TaintManager",
				Reason: "TaintUntolerated"})
		}},
	{name: "a copy that purgeMode Never keeps", severity: why.Waiting,
		want: "m1: it moved to other clusters (ApplicationFailure), and the old copy is kept: set suppressDeletion",
		given: func(t *testing.T) *hub {
			return leaving(t, workv1alpha2.GracefulEvictionTask{FromCluster: "m1", Reason: "ApplicationFailure",
				PurgeMode: policyv1alpha1.PurgeModeNever, SuppressDeletion: new(true)})
		}},
	{name: "a copy that leaves its affinity term", severity: why.Waiting,
		want: "m1: it should leave the cluster (TaintUntolerated): the hub is about to move it",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+`, placement: {clusterAffinities: [
				{affinityName: first, clusterNames: [m1]}, {affinityName: second, clusterNames: [m2]}]}}`))
			tainted("maintenance", corev1.TaintEffectNoExecute)(h.Clusters[0])
			h.Failovers = moves(h.Facts, time.Unix(1_800_000_000, 0))
			return h
		}},
	{name: "leaving a cluster that is lost", severity: why.Waiting,
		want: "m1: the object is kept until its replacements in other clusters are healthy",
		given: func(t *testing.T) *hub {
			h := leaving(t, workv1alpha2.GracefulEvictionTask{FromCluster: "m1", Reason: "TaintUntolerated"})
			h.Clusters[0].Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady,
				Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", Message: "connection refused"}}
			return h
		}},
	{name: "its sidecars are not in force yet", severity: why.Waiting,
		want: `its first Work waits: cluster "m2": SidecarSet logs`, next: "argosy why sidecarset",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", ofDeployments))
			h.Works = slices.DeleteFunc(h.Works, func(w workv1alpha1.Work) bool {
				return w.Namespace == names.ExecutionSpace("m2")
			})
			h.Binding.BindingStatus().Conditions = append(h.Binding.BindingStatus().Conditions,
				metav1.Condition{Type: workv1alpha2.SidecarsInForce, Status: metav1.ConditionFalse,
					Reason: workv1alpha2.ReasonWaitingForSidecars,
					Message: dispatch.Awaited("m2", "SidecarSet logs, which injects into its pods, has not been applied there yet",
						15*time.Second)})
			return h
		}},
	{name: "it follows what requires it", given: func(t *testing.T) *hub {
		h := start(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop, uid: c}, data: {a: b}}",
			fleet()...)
		b, err := propagate.For(h.Template, nil)
		if err != nil {
			t.Fatal(err)
		}
		propagate.Refer(b, h.Template)
		b.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment",
			Clusters: []workv1alpha2.TargetCluster{{Name: "m2"}}}}
		h.Binding = b
		h.send()
		h.answers(workv1alpha1.ResourceHealthy, `{}`)
		return h
	}},
	{name: "it follows what it points at", given: func(t *testing.T) *hub {
		h := start(t, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop, uid: c}, spec: {selector: {matchLabels: {app: web}}}}", fleet()...)
		b, err := propagate.For(h.Template, nil)
		if err != nil {
			t.Fatal(err)
		}
		propagate.Refer(b, h.Template)
		b.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment",
			Clusters: []workv1alpha2.TargetCluster{{Name: "m2"}}}}
		h.Binding = b
		h.send()
		h.answers(workv1alpha1.ResourceHealthy, `{}`)
		return h
	}},
	{name: "nobody takes it along", severity: why.Problem, want: "no policy selects it",
		next: "propagate it with the object that it refers to, CloneSet web: set propagateDeps: true in the policy of that object",
		given: func(t *testing.T) *hub {
			return start(t, "{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread, metadata: {name: web, namespace: shop}, spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}}", fleet()...)
		}},
	{name: "it points at nonsense", severity: why.Problem, want: "no policy selects it",
		next: "fix it: read spec.selector of PodProbeMarker web: ",
		given: func(t *testing.T) *hub {
			return start(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, metadata: {name: web, namespace: shop}, spec: {selector: {matchExpressions: [{key: app, operator: Like}]}}}", fleet()...)
		}},
	{name: "what steers the hub", severity: why.Attention,
		want: "the hub never propagates it: its kind", given: func(t *testing.T) *hub {
			return start(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: shop}}", fleet()...)
		}},
	{name: "what acts on the hub", severity: why.Attention, want: "EndpointSliceDispatched is False: no endpoints in m2",
		given: func(t *testing.T) *hub {
			return start(t, `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: web, namespace: shop}, status: {conditions: [
			{type: ServiceApplied, status: "True"}, {type: EndpointSliceDispatched, status: "False", message: no endpoints in m2}]}}`, fleet()...)
		}},
	{name: "traffic that stays against a Remedy", severity: why.Attention,
		want: "traffic to m1 continues against Remedy upkeep", given: func(t *testing.T) *hub {
			return start(t, `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterIngress, metadata: {name: web, namespace: shop}, status: {conditions: [
			{type: TrafficKept, status: "True", message: "traffic to m1 continues against Remedy upkeep: no other cluster is ready and has ready endpoints; provide endpoints in another cluster, or change the Remedy"}]}}`, fleet()...)
		}},
	{name: "what acts on the hub as it should", given: func(t *testing.T) *hub {
		return start(t, `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {name: web, namespace: shop}, status: {conditions: [
			{type: AbleToScale, status: "True"}, {type: ScalingLimited, status: "False"}]}}`, fleet()...)
	}},
	{name: "its policy was deleted", severity: why.Attention, want: "its objects stay in the clusters unchanged",
		next: "create a PropagationPolicy",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Policies = nil
			for _, marks := range []map[string]string{h.Template.GetLabels(), h.Template.GetAnnotations()} {
				clear(marks)
			}
			h.Template.SetLabels(nil)
			h.Template.SetAnnotations(nil)
			return h
		}},
	{name: "the Service of its pods is not there", severity: why.Attention,
		want: "the hub has no Service db, which spec.serviceName names", next: "propagateDeps",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Service = &why.Service{Name: "db"}
			return h
		}},
	{name: "the Service of its pods goes elsewhere", severity: why.Attention,
		want: "its Service db is not propagated to m2, m3", next: "set propagateDeps: true in PropagationPolicy shop/web",
		given: func(t *testing.T) *hub {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}}}}
			h.Service = &why.Service{Name: "db", There: true, Binding: b}
			return h
		}},
	{name: "a namespace", given: func(t *testing.T) *hub {
		h := start(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", cluster("m1"))
		h.Works = []workv1alpha1.Work{{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("m1"),
			Name: names.Work("Namespace", "shop", ""), Generation: 1}}}
		h.answers(workv1alpha1.ResourceHealthy, `{"phase": "Active"}`)
		return h
	}},
}

func TestStories(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			answer := explain(s.given(t).Facts)
			if s.only != "" {
				var ok bool
				if answer, ok = answer.ForCluster(s.only); !ok {
					t.Fatalf("there is no cluster %s in the answer", s.only)
				}
			}
			switch {
			case s.severity == "" && len(answer.Findings) > 0:
				t.Errorf("all is well, and it finds %+v", answer.Findings)
			case s.severity != "" && len(answer.Findings) == 0:
				t.Errorf("it finds nothing, want %s: %s", s.severity, s.want)
			case s.severity != "":
				if f := answer.Findings[0]; f.Severity != s.severity || !strings.Contains(f.What, s.want) ||
					!strings.Contains(f.Next, s.next) {
					t.Errorf("first is\n%s: %s\n→ %s\nwant\n%s: %s\n→ %s", f.Severity, f.What, f.Next, s.severity, s.want, s.next)
				}
			}
			for _, f := range answer.Findings {
				checkNext(t, f.Next)
			}
			var text bytes.Buffer
			if err := answer.Write(&text); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", strings.ReplaceAll(s.name, " ", "-")+".txt"), text.String())
		})
	}
}

// golden compares with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-file +answer; -update writes it):\n%s", file, diff)
	}
}

func TestTheGoldenFilesAreThoseOfTheStories(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		if !slices.ContainsFunc(stories, func(s struct {
			name       string
			given      func(t *testing.T) *hub
			only       string
			severity   why.Severity
			want, next string
		}) bool {
			return strings.ReplaceAll(s.name, " ", "-")+".txt" == f.Name()
		}) {
			t.Errorf("testdata/%s is of no story: remove it", f.Name())
		}
	}
}

func TestTheOrderOfFactsDoesNotMatterAndTheyAreNotChanged(t *testing.T) {
	for _, s := range stories {
		h := s.given(t)
		before := fmt.Sprintf("%+v", asJSON(t, h.Facts))
		want := asJSON(t, explain(h.Facts))
		dice := rand.New(rand.NewPCG(1, 2))
		for range 5 {
			f := h.Facts
			f.Policies, f.Clusters, f.Works, f.Overrides, f.Warnings = shuffled(dice, f.Policies), shuffled(dice, f.Clusters),
				shuffled(dice, f.Works), shuffled(dice, f.Overrides), shuffled(dice, f.Warnings)
			if diff := cmp.Diff(want, asJSON(t, explain(f))); diff != "" {
				t.Fatalf("%s: in another order it says (-first +then):\n%s", s.name, diff)
			}
		}
		if after := asJSON(t, h.Facts); before != after {
			t.Errorf("%s: the facts were changed", s.name)
		}
	}
}

func TestProblemsComeFirst(t *testing.T) {
	rank := map[why.Severity]int{why.Problem: 0, why.Attention: 1, why.Waiting: 2}
	for _, s := range stories {
		answer := explain(s.given(t).Facts)
		if !slices.IsSortedFunc(answer.Findings, func(a, b why.Finding) int { return rank[a.Severity] - rank[b.Severity] }) {
			t.Errorf("%s: the findings are %+v", s.name, answer.Findings)
		}
		red := false
		for _, c := range slices.Backward(answer.Clusters) {
			bad := c.State.Bad()
			if red && !bad {
				t.Errorf("%s: %s comes before a cluster that fails", s.name, c.Name)
			}
			red = red || bad
		}
	}
}

func TestUnrelatedClusterIsOmitted(t *testing.T) {
	h := start(t, deployment, fleet()...)
	if _, ok := explain(h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}")).Facts).ForCluster("m9"); ok {
		t.Error("it speaks of a cluster that is not in the fleet")
	}
}

func shuffled[T any](dice *rand.Rand, all []T) []T {
	out := slices.Clone(all)
	dice.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	if f, ok := v.(why.Facts); ok {
		f.Room = nil
		v = struct{ Template, Policies, Binding, Clusters, Overrides, Works, Warnings any }{f.Template, f.Policies, f.Binding,
			f.Clusters, f.Overrides, f.Works, f.Warnings}
	}
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// scaledIn gives a cluster an autoscaler of its own.
func (h *hub) scaledIn(cluster string) {
	for i := range h.Works {
		if h.Works[i].Namespace == names.ExecutionSpace(cluster) {
			h.Works[i].Status.Conditions = append(h.Works[i].Status.Conditions,
				metav1.Condition{Type: workv1alpha1.WorkScaledByMember, Status: metav1.ConditionTrue,
					Reason:  workv1alpha1.ReasonAutoscaled,
					Message: "HorizontalPodAutoscaler web in the cluster sets its replicas, which are kept."})
		}
	}
}

// scaledBy is a hub with a Deployment in three clusters, and autoscalers in its namespace.
func scaledBy(t *testing.T, autoscalers ...*unstructured.Unstructured) *hub {
	h := start(t, deployment, fleet()...)
	h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
	h.Autoscalers = autoscalers
	return h
}

// autoscaler scales a Deployment of the name; conditions are those of its status.
func autoscaler(t *testing.T, name string, claimed bool, conditions string) *unstructured.Unstructured {
	metadata := ""
	if claimed {
		metadata = ", labels: {propagationpolicy.karmada.io/permanent-id: id}, annotations: {" +
			"propagationpolicy.karmada.io/namespace: shop, propagationpolicy.karmada.io/name: web}"
	}
	return coretest.Object(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: `+name+
		`, namespace: shop`+metadata+`}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: `+name+
		`}, minReplicas: 2, maxReplicas: 9}, status: {conditions: [`+conditions+`]}}`)
}

// scaledObject scales a Deployment of KEDA's default kind.
func scaledObject(t *testing.T, name string) *unstructured.Unstructured {
	return coretest.Object(t, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web, namespace: shop}, `+
		`spec: {scaleTargetRef: {name: `+name+`}}}`)
}

func federated(name string) autoscalingv1alpha1.FederatedHPA {
	f := autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	f.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
		Name: "web"}
	f.Spec.MaxReplicas = 9
	return f
}
