package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// rebalancer names Deployments of a namespace, as a user would write it.
func rebalancer(ns, rest string, deployments ...string) string {
	var all []string
	for _, d := range deployments {
		all = append(all, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, namespace: %s, name: %s}", ns, d))
	}
	return fmt.Sprintf("{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: %s}, spec: {workloads: [%s]%s}}", ns, strings.Join(all, ", "), rest)
}

// rebalanced is what a rebalancer's status says: "web=Successful late=Failed".
func rebalanced(t *testing.T, name string) string {
	t.Helper()
	r := &appsv1alpha1.WorkloadRebalancer{}
	if err := fleet.Hub.Get(t.Context(), types.NamespacedName{Name: name}, r); err != nil {
		return err.Error()
	}
	var out []string
	for _, o := range r.Status.ObservedWorkloads {
		out = append(out, fmt.Sprintf("%s=%s%s", o.Workload.Name, o.Result, o.Reason))
	}
	if r.Status.FinishTime == nil {
		out = append(out, "unfinished")
	}
	out = append(out, string(r.Status.Result))
	return strings.Join(out, " ")
}

func TestARebalancerHasReplicasDividedAnew(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	room(t, ns)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1]}, "+divided(byRoom)+
		"}"))
	fleet.Hub.Apply(t, hungry(ns, "web", 4))
	fleet.Hub.Apply(t, hungry(ns, "other", 2))
	now := func() string { return shares(t, ns, "web-deployment") + ", " + shares(t, ns, "other-deployment") }
	waitFor(t, "all are in the only cluster", "m1:4, m1:2", now)
	changeSpec(t, "PropagationPolicy", ns, "p", []any{"m1", "m2"}, "placement", "clusterAffinity", "clusterNames")
	kit.Eventually(t, "the wider placement is taken in, and moves nothing", func() string {
		for _, name := range []string{"web", "other"} {
			b := binding(t, ns, name+"-deployment")
			if b.Status.LastScheduledTime == nil || b.Status.SchedulerObservedGeneration != b.Generation ||
				len(b.Spec.Placement.ClusterAffinity.ClusterNames) != 2 {
				return fmt.Sprintf("%s: generation %d, status %+v", name, b.Generation, b.Status)
			}
		}
		if got := now(); got != "m1:4, m1:2" {
			return got
		}
		return ""
	})

	fleet.Hub.Apply(t, rebalancer(ns, "", "web", "missing"))
	waitFor(t, "its status says for whom it was asked", "missing=FailedReferencedBindingNotFound web=Successful Failed",
		func() string { return rebalanced(t, ns) })
	if out, err := fleet.Argosy(t.Context(), "get", "workloadrebalancers", ns); err != nil ||
		!strings.Contains(out, "RESULT") || !strings.Contains(out, "Failed") {
		t.Errorf("the table does not show the failure (%v):\n%s", err, out)
	}
	waitFor(t, "what it names is divided anew, and nothing else", "m1:2 m2:2, m1:2", now)
	r := &appsv1alpha1.WorkloadRebalancer{}
	if err := fleet.Hub.Get(t.Context(), types.NamespacedName{Name: ns}, r); err != nil {
		t.Fatal(err)
	}
	if at := binding(t, ns, "web-deployment").Spec.RescheduleTriggeredAt; !at.Equal(
		&metav1.Time{Time: r.CreationTimestamp.Time}) {
		t.Errorf("the binding was asked at %v, want the rebalancer's creation, %v", at, r.CreationTimestamp)
	}
	waitFor(t, "the members follow", "2 2", func() string {
		return fmt.Sprint(inMember(t, "m1", "apps/v1", "Deployment", ns, "web", "spec", "replicas"), " ",
			inMember(t, "m2", "apps/v1", "Deployment", ns, "web", "spec", "replicas"))
	})

	fleet.Hub.Apply(t, hungry(ns, "missing", 1))
	waitFor(t, "what was missing is found when it appears", "missing=Successful web=Successful Successful", func() string {
		return rebalanced(t, ns)
	})
	fleet.Hub.Apply(t, rebalancer(ns, ", ttlSecondsAfterFinished: 1", "web", "missing"))
	kit.Eventually(t, "it goes after its time to live", func() string {
		if got := rebalanced(t, ns); !strings.Contains(got, "not found") {
			return "it says " + got
		}
		return ""
	})
}
