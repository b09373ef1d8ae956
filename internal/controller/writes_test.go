package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	corefailover "github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// fleet returns a hub with all its loops, and three members that serve the kinds.
func fleet(t *testing.T, kinds ...membertest.Kind) (*controllertest.Hub, map[string]*membertest.Server) {
	return fleetWith(t, Options{}, kinds...)
}

// fleetWith returns a fleet whose hub has options. The hub shares the process of its API server, as argosy up does.
func fleetWith(t *testing.T, o Options, kinds ...membertest.Kind) (*controllertest.Hub, map[string]*membertest.Server) {
	h := controllertest.New(t)
	h.Embed()
	members := map[string]*membertest.Server{}
	for _, name := range []string{"m1", "m2", "m3"} {
		members[name] = h.Join(name, append(kinds, controllertest.ClusterRole)...)
	}
	t.Cleanup(startHub(t, h, o))
	h.Eventually("the namespace is in all members", func() string {
		for name, m := range members {
			if m.Object(membertest.Namespace, "", "shop") == nil {
				return name + " lacks it"
			}
		}
		return ""
	})
	h.Quiet()
	return h, members
}

// startHub starts all loops of a hub, and returns what ends them.
func startHub(t *testing.T, h *controllertest.Hub, o Options) (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		o.Config, o.DialMember = h.Config, membertest.Dial
		ended <- Run(ctx, o)
	}()
	return sync.OnceFunc(func() {
		h.Disconnected(func() {
			end()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	})
}

// claimed is a template as admission leaves it when its policy is there first.
func claimed[T client.Object](template T, p policyv1alpha1.Propagation) T {
	propagate.Claim(template, p)
	return template
}

// policy is one for a kind, to all clusters, as admission leaves it.
func policy(namespace, apiVersion, kind string) policyv1alpha1.Propagation {
	p := scope.Propagations.New(namespace)
	p.SetName("everywhere")
	label, finalizer := policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.PropagationPolicyFinalizer
	if namespace == "" {
		label, finalizer = policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
			policyv1alpha1.ClusterPropagationPolicyFinalizer
	}
	p.SetLabels(map[string]string{label: "some-id"})
	p.SetFinalizers([]string{finalizer})
	p.PropagationSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind}}
	return p
}

func TestATemplateOfThreeMembersCostsTenWritesOnTheHub(t *testing.T) {
	for name, c := range map[string]struct {
		policy   policyv1alpha1.Propagation
		template client.Object
		binding  client.ObjectKey
		kind     membertest.Kind
	}{
		"namespaced": {
			policy("shop", "v1", "ConfigMap"),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
				Data: map[string]string{"a": "b"}},
			client.ObjectKey{Namespace: "shop", Name: "settings-configmap"},
			membertest.ConfigMap,
		},
		"cluster-scoped": {
			policy("", "rbac.authorization.k8s.io/v1", "ClusterRole"),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}},
			client.ObjectKey{Name: "reader-clusterrole"},
			controllertest.ClusterRole,
		},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				h, members := fleet(t)
				h.Make(c.policy)
				h.Quiet()

				h.Make(claimed(c.template, c.policy))
				h.Eventually("everything is applied", func() string {
					b, err := scope.Bindings.Get(t.Context(), h, c.binding)
					if err != nil || !meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.FullyApplied) {
						return fmt.Sprintf("%v %+v", err, b)
					}
					return ""
				})
				for name, m := range members {
					if m.Object(c.kind, c.template.GetNamespace(), c.template.GetName()) == nil {
						t.Errorf("%s does not hold it", name)
					}
				}

				resource := c.kind.Plural
				binding := "resourcebindings"
				if c.binding.Namespace == "" {
					binding = "clusterresourcebindings"
				}
				want := map[string]int{"create " + resource: 1, "create " + binding: 1, "update " + binding + "/status": 1,
					"create works": 3, "update works/status": 3}
				if got := count(h.Quiet()); !maps.Equal(got, want) {
					t.Errorf("written: %v, want %v", got, want)
				}
				// The tenth is the event.
				h.Eventually("an event reports that it was scheduled, and no more", func() string {
					if got := h.Events(); len(got) != 1 || !strings.Contains(got[0], workv1alpha2.EventScheduleBindingSucceed) {
						return fmt.Sprintf("reported: %v", got)
					}
					return ""
				})
				for name, m := range members {
					writes := slices.DeleteFunc(m.Writes(), func(w string) bool { return !strings.Contains(w, " "+c.kind.Plural+" ") })
					if len(writes) != 1 {
						t.Errorf("%s was written to: %v, want one creation", name, writes)
					}
				}
			})
		})
	}
}

// A whole failover of a lost cluster, from its taint to the end of the task. The bench counts the same for 1,000
// bindings.
func TestFailoverCostsFourWritesOfTheBinding(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleetWith(t, Options{Failover: &Failover{Options: corefailover.Defaults},
			ClusterStatusFrequency: 10 * time.Second}, controllertest.Deployment)
		p := policy("shop", "apps/v1", "Deployment")
		spec, seconds := p.PropagationSpec(), int64(60)
		for _, key := range []string{clusterv1alpha1.TaintNotReady, clusterv1alpha1.TaintUnreachable} {
			spec.Placement.ClusterTolerations = append(spec.Placement.ClusterTolerations, corev1.Toleration{Key: key,
				Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
		}
		for _, name := range []string{"m1", "m2"} {
			spec.Placement.ClusterAffinities = append(spec.Placement.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{
				AffinityName: name, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}})
		}
		spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated}
		spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
			PurgeMode: policyv1alpha1.PurgeModeGracefully}}
		h.Make(p)
		h.Make(claimed(parsed(t, controllertest.Deployment, "web",
			"replicas: 1, template: {spec: {containers: [{name: main}]}}"), p))
		binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
		is := func(what string, done func() bool) {
			t.Helper()
			h.Eventually(what, func() string {
				if h.HasObject(binding); !done() {
					return fmt.Sprintf("the binding is %+v, %+v", binding.Spec.Clusters, binding.Status)
				}
				return ""
			})
		}
		runsIn := func(cluster string) {
			t.Helper()
			is("the workload is in "+cluster, func() bool {
				return members[cluster].Object(controllertest.Deployment, "shop", "web") != nil
			})
		}
		healthyIn := func(cluster string) {
			t.Helper()
			runs(members[cluster], 1)
			is("it is healthy in "+cluster, func() bool {
				return slices.ContainsFunc(binding.Status.AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool {
					return i.ClusterName == cluster && i.Health == workv1alpha1.ResourceHealthy
				})
			})
		}
		wrote := func(step string, want map[string]int) {
			t.Helper()
			got := count(slices.DeleteFunc(h.Quiet(), func(w string) bool { return !strings.Contains(w, "/web") }))
			if !maps.Equal(got, want) {
				t.Errorf("%s: written %v, want %v", step, got, want)
			}
		}
		runsIn("m1")
		healthyIn("m1")
		h.Quiet()

		members["m1"].Down(true)
		h.Eventually("the cluster is tainted", func() string {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			if h.HasObject(c); !slices.ContainsFunc(c.Spec.Taints, membership.IsLossTaint) {
				return fmt.Sprint(c.Spec.Taints)
			}
			return ""
		})
		h.Advance(30 * time.Second)
		wrote("the loss", map[string]int{"update resourcebindings/status": 1, "update deployments/status": 1})

		// 1 with the new placement, the task, the confirmation and what the Works mean for it; 1 when it is applied.
		h.Advance(40 * time.Second)
		runsIn("m2")
		is("the placement is confirmed", func() bool {
			return binding.Status.SchedulerObservedGeneration == binding.Generation &&
				binding.Status.SchedulerObservedAffinityName == "m2" && len(binding.Spec.GracefulEvictionTasks) == 1
		})
		wrote("the eviction", map[string]int{"update resourcebindings": 1, "update resourcebindings/status": 1,
			"update deployments/status": 1, "create works": 1, "update works/status": 1})

		// 1 when the replacement is healthy; 1 with the end of the task and what it means.
		healthyIn("m2")
		is("the task has ended", func() bool {
			return len(binding.Spec.GracefulEvictionTasks) == 0 &&
				binding.Status.SchedulerObservedGeneration == binding.Generation
		})
		wrote("the end", map[string]int{"update resourcebindings": 1, "update resourcebindings/status": 1,
			"update deployments/status": 2, "update works/status": 1, "delete works": 1})
		evicted := 0
		for _, e := range h.Events() {
			if strings.Contains(e, workv1alpha2.EventEvictWorkloadFromClusterSucceed) {
				evicted++
			}
		}
		if evicted != 5 {
			t.Errorf("%d events, want 2 each on the binding and the template, and 1 on the cluster: %q", evicted, h.Events())
		}
	})
}

// count counts writes by what they are of.
func count(writes []string) map[string]int {
	out := map[string]int{}
	for _, w := range writes {
		words := strings.Fields(w)
		out[words[0]+" "+words[1]]++
	}
	return out
}

// workflows are Argo's, which have no status subresource.
var workflows = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1",
	Kind: "Workflow"}, Plural: "workflows", Namespaced: true}

// A Workflow writes its own object at each step. The hub says how far it is at a rate of its own, and at once that it
// has ended, with all of its nodes.
func TestAWorkflowOfManyStepsCostsABoundedRateOfWritesOnTheHub(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleet(t, workflows)
		h.Server.Serve(workflows)
		p := policy("shop", "argoproj.io/v1alpha1", "Workflow")
		h.Make(p)
		w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"entrypoint": "main"}}}
		w.SetGroupVersionKind(workflows.GroupVersionKind)
		w.SetNamespace("shop")
		w.SetName("w")
		h.Server.Put(claimed(w, p))
		var m *membertest.Server
		h.Eventually("one member runs it", func() string {
			for _, s := range members {
				if s.Object(workflows, "shop", "w") != nil {
					m = s
					return ""
				}
			}
			return "none has it"
		})
		h.Quiet()

		const steps = 100
		nodes := map[string]any{}
		goes := func(phase string, done int) {
			run := m.Object(workflows, "shop", "w")
			status := map[string]any{"phase": phase, "startedAt": "2026-01-01T09:00:00Z",
				"progress": fmt.Sprintf("%d/%d", done, steps), "nodes": nodes}
			run.Object["status"] = status
			m.Put(run)
		}
		began := time.Now()
		for i := range steps {
			id := fmt.Sprintf("w-%d", i)
			for done, phase := range []string{"Pending", "Running", "Succeeded"} {
				nodes[id] = map[string]any{"id": id, "type": "Pod", "phase": phase}
				goes("Running", i+done/2)
			}
		}
		goes("Succeeded", steps)
		h.Eventually("the template has all of its steps", func() string {
			got := h.Server.Object(workflows, "shop", "w")
			phase, _, _ := unstructured.NestedString(got.Object, "status", "phase")
			shown, _, _ := unstructured.NestedMap(got.Object, "status", "nodes")
			if phase != "Succeeded" || !maps.EqualFunc(shown, nodes, func(a, b any) bool {
				return equality.Semantic.DeepEqual(a, b)
			}) {
				return fmt.Sprintf("%s with %d nodes", phase, len(shown))
			}
			return ""
		})
		wrote := count(h.Quiet())
		// Its beginning, its end, and what passes in between once in a window.
		most := 3 + int(time.Since(began)/nodesWindow)
		if got := wrote["patch workflows"]; got > most {
			t.Errorf("the template was written %d times, want %d at most: %v", got, most, wrote)
		}
		b, err := scope.Bindings.Get(t.Context(), h, client.ObjectKey{Namespace: "shop", Name: "w-workflow"})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range b.BindingStatus().AggregatedStatus {
			if item.Status != nil && strings.Contains(string(item.Status.Raw), "nodes") {
				t.Errorf("the binding has nodes: %.200s", item.Status.Raw)
			}
		}
		t.Logf("%d steps in %v: %v", steps, time.Since(began).Round(time.Millisecond), wrote)
	})
}
