package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	corefailover "github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// runs has a member report that so many pods of the Deployment are ready.
func runs(m *membertest.Server, ready int64) {
	d := m.Object(controllertest.Deployment, "shop", "web")
	d.Object["status"] = map[string]any{"observedGeneration": d.GetGeneration(), "replicas": ready, "readyReplicas": ready,
		"availableReplicas": ready, "updatedReplicas": ready}
	m.Put(d)
}

func TestWorkloadLeavesADrainedClusterStepByStep(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleetWith(t, Options{Failover: &Failover{Options: corefailover.Defaults}},
			controllertest.Deployment)
		p := policy("shop", "apps/v1", "Deployment")
		spec := p.PropagationSpec()
		spec.PropagateDeps = true
		spec.Placement = policyv1alpha1.Placement{
			SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster,
				MinGroups: 1, MaxGroups: 1}},
			ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
				ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated}}
		spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
			PurgeMode: policyv1alpha1.PurgeModeGracefully,
			StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{
				AliasLabelName: "was-ready", JSONPath: "{.readyReplicas}"}}}}}
		h.Make(p)
		h.Make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
		h.Make(claimed(parsed(t, controllertest.Deployment, "web",
			"replicas: 2, template: {spec: {containers: [{name: main, envFrom: [{configMapRef: {name: settings}}]}]}}"), p))
		binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
		healthyIn := func(name string) {
			t.Helper()
			h.Eventually("the workload is in "+name, func() string {
				if members[name].Object(controllertest.Deployment, "shop", "web") == nil {
					return "it is not"
				}
				return ""
			})
			runs(members[name], 2)
			h.Eventually("the binding knows that it is healthy in "+name, func() string {
				if h.HasObject(binding); !slices.ContainsFunc(binding.Status.AggregatedStatus,
					func(i workv1alpha2.AggregatedStatusItem) bool { return i.ClusterName == name && i.Health == "Healthy" }) {
					return fmt.Sprint(binding.Status.AggregatedStatus)
				}
				return ""
			})
		}
		healthyIn("m1")
		h.Quiet()

		// The replacement starts after what it depends on; the old copy stays as it is.
		at := metav1.Now()
		controllertest.Change(h, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}},
			func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoExecute,
					TimeAdded: &at})
			})
		h.Eventually("the replacement is in m2", func() string {
			if members["m2"].Object(controllertest.Deployment, "shop", "web") == nil {
				return "it is not"
			}
			return ""
		})
		var order []string
		for _, w := range members["m2"].Writes() {
			for _, kind := range []string{"configmaps", "deployments"} {
				if strings.Contains(w, " "+kind+" shop/") {
					order = append(order, kind)
				}
			}
		}
		if !slices.Equal(order, []string{"configmaps", "deployments"}) {
			t.Errorf("m2 got %v", order)
		}
		if got := members["m2"].Object(controllertest.Deployment, "shop", "web").GetLabels()["was-ready"]; got != "2" {
			t.Errorf("the replacement has the label %q", got)
		}
		wrote := h.Quiet()
		if n := ofBinding(wrote, "web-deployment"); n > 3 {
			t.Errorf("placing the replacement took %d writes of the binding: %v", n, wrote)
		}
		if old := members["m1"].Object(controllertest.Deployment, "shop", "web"); old == nil ||
			members["m1"].Object(membertest.ConfigMap, "shop", "settings") == nil {
			t.Error("the old copy, or what it depends on, is gone")
		}

		// The old copy goes when the replacement is healthy, and then what it depends on.
		healthyIn("m2")
		h.Eventually("the old copy is gone", func() string {
			if members["m1"].Object(controllertest.Deployment, "shop", "web") != nil ||
				members["m1"].Object(membertest.ConfigMap, "shop", "settings") != nil {
				return "it is there"
			}
			return ""
		})
		wrote = h.Quiet()
		if n := ofBinding(wrote, "web-deployment"); n > 4 {
			t.Errorf("ending the eviction took %d writes of the binding: %v", n, wrote)
		}
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(controllertest.Deployment.GroupVersionKind)
		template.SetNamespace("shop")
		template.SetName("web")
		h.Eventually("the template counts each pod once", func() string {
			h.HasObject(template)
			if ready, _, _ := unstructured.NestedInt64(template.Object, "status", "readyReplicas"); ready != 2 {
				return fmt.Sprint(ready)
			}
			return ""
		})
		if got := members["m2"].Object(controllertest.Deployment, "shop", "web").GetLabels()["was-ready"]; got != "2" {
			t.Errorf("after the eviction, the replacement has the label %q", got)
		}
	})
}

// ofBinding counts the writes of a binding and of its status.
func ofBinding(writes []string, name string) (n int) {
	for _, w := range writes {
		if strings.Contains(w, "resourcebindings") && strings.HasSuffix(w, "shop/"+name) {
			n++
		}
	}
	return n
}

// The pods of the workload get a sidecar that reads a Secret. The sidecar reaches a cluster before the workload, and
// both leave it after the workload.
func TestInjectedSidecarsComeBeforeTheirWorkloadAndLeaveAfterIt(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleetWith(t, Options{Failover: &Failover{Options: corefailover.Defaults}},
			controllertest.Deployment, controllertest.SidecarSet, controllertest.Secret)
		p := policy("", "apps/v1", "Deployment")
		spec := p.PropagationSpec()
		spec.ResourceSelectors = append(spec.ResourceSelectors, policyv1alpha1.ResourceSelector{
			APIVersion: controllertest.SidecarSet.GroupVersion().String(), Kind: "SidecarSet"})
		spec.PropagateDeps = true
		spec.Placement = policyv1alpha1.Placement{
			SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster,
				MinGroups: 1, MaxGroups: 1}},
			ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
				ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated}}
		spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
			PurgeMode: policyv1alpha1.PurgeModeGracefully}}
		h.Make(p)
		h.Make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tokens"}})
		set := parsed(t, controllertest.SidecarSet, "logs", "selector: {matchLabels: {app: web}}, "+
			"containers: [{name: logs, envFrom: [{secretRef: {name: tokens}}]}]")
		set.SetNamespace("")
		h.Make(claimed(set, p))
		h.Make(claimed(parsed(t, controllertest.Deployment, "web", "replicas: 2, "+pods("web")), p))
		binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}

		// has returns which of the three objects a member has. OpenKruise observes each SidecarSet at once.
		has := func(member string) (out []string) {
			m := members[member]
			if set := m.Object(controllertest.SidecarSet, "", "logs"); set != nil {
				if observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration"); observed == 0 {
					set.Object["status"] = map[string]any{"observedGeneration": max(set.GetGeneration(), 1)}
					m.Put(set)
				}
				out = append(out, "SidecarSet")
			}
			if m.Object(controllertest.Secret, "shop", "tokens") != nil {
				out = append(out, "Secret")
			}
			if m.Object(controllertest.Deployment, "shop", "web") != nil {
				out = append(out, "Deployment")
			}
			return out
		}
		all := []string{"SidecarSet", "Secret", "Deployment"}
		becomes := func(member string, want ...string) {
			t.Helper()
			h.Eventually(fmt.Sprintf("%s has %v", member, want), func() string {
				if got := has(member); !slices.Equal(got, want) {
					return fmt.Sprintf("it has %v; %v", got, h.Events())
				}
				return ""
			})
		}
		healthyIn := func(member string) {
			t.Helper()
			runs(members[member], 2)
			h.Eventually("the binding knows that it is healthy in "+member, func() string {
				if h.HasObject(binding); !slices.ContainsFunc(binding.Status.AggregatedStatus,
					func(i workv1alpha2.AggregatedStatusItem) bool {
						return i.ClusterName == member && i.Health == "Healthy"
					}) {
					return fmt.Sprint(binding.Status.AggregatedStatus)
				}
				return ""
			})
		}
		// written returns the order of the first writes with a verb of the objects in a member.
		written := func(member, verb string) (order []string) {
			for _, w := range members[member].Writes() {
				for plural, kind := range map[string]string{" sidecarsets ": "SidecarSet", " secrets shop/": "Secret",
					" deployments ": "Deployment"} {
					if strings.HasPrefix(w, verb) && strings.Contains(w, plural) && !strings.Contains(w, "/status") &&
						!slices.Contains(order, kind) {
						order = append(order, kind)
					}
				}
			}
			return order
		}
		becomes("m1", all...)
		healthyIn("m1")
		h.Quiet()

		at := metav1.Now()
		controllertest.Change(h, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}},
			func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoExecute,
					TimeAdded: &at})
			})
		becomes("m2", all...)
		h.Quiet()
		if order := written("m2", ""); slices.Index(order, "SidecarSet") > slices.Index(order, "Deployment") {
			t.Errorf("m2 got %v in this order: %v", order, members["m2"].Writes())
		}
		if got := has("m1"); !slices.Equal(got, all) {
			t.Errorf("before the replacement is healthy, m1 has %v", got)
		}
		healthyIn("m2")
		becomes("m1")
		if order := written("m1", "delete"); len(order) != 3 || order[0] != "Deployment" {
			t.Errorf("m1 lost %v in this order: %v", order, members["m1"].Writes())
		}
	})
}
