package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// alike divides replicas among all members by equal weights.
const alike = "{clusterAffinity: {clusterNames: [m1, m2, m3]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}"

// pods are the pods of an app in a member.
func pods(t *testing.T, member, ns, app string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := fleet.Members[member].List(t.Context(), &list, client.InNamespace(ns), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// running is how many pods of an app run an image in the fleet, and how many are ready.
func running(t *testing.T, ns, app, image string) (of, ready int) {
	t.Helper()
	for m := range fleet.Members {
		for _, p := range pods(t, m, ns, app) {
			if p.Spec.Containers[0].Image == image {
				of++
			}
			if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
	}
	return of, ready
}

func TestACanaryOfTenPercentOverThreeMembersIsOnePod(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "apps.kruise.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 9, "example.com/shop:1", "\n  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 2}"))
	status(t, group, "CloneSet", ns, "shop", map[string]any{"replicas": int64(9), "availableReplicas": int64(9), "updatedReplicas": int64(9)})

	change := func(partition any, image string) {
		fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
			kit.Field(u, "spec", "updateStrategy").(map[string]any)["partition"] = partition
			kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = image
		})
	}
	change("90%", "example.com/shop:2")
	canaries := func() string {
		if n, ready := running(t, ns, "shop", "example.com/shop:2"); n != 1 || ready != 9 {
			return fmt.Sprintf("%d pods are new, %d of all ready", n, ready)
		}
		return ""
	}
	kit.Eventually(t, "one pod is new", canaries)
	kit.Stays(t, "it is one pod", 3*time.Second, canaries)
	status(t, group, "CloneSet", ns, "shop", map[string]any{"updatedReplicas": int64(1), "expectedUpdatedReplicas": int64(1), "availableReplicas": int64(9)})
	is(t, "a canary is no failure", "m1:Healthy m2:Healthy m3:Healthy", healths(t, ns, "shop-cloneset"))

	// All of it: never are more than two pods down, and it ends.
	change(int64(0), "example.com/shop:2")
	kit.Eventually(t, "all pods are new", func() string {
		n, ready := running(t, ns, "shop", "example.com/shop:2")
		if ready < 7 {
			t.Errorf("only %d pods are ready", ready)
		}
		if n != 9 || ready != 9 {
			return fmt.Sprintf("%d pods are new, %d of all ready", n, ready)
		}
		return ""
	})
	status(t, group, "CloneSet", ns, "shop", map[string]any{"updatedReplicas": int64(9), "updatedAvailableReplicas": int64(9), "expectedUpdatedReplicas": int64(9)})
	is(t, "it is healthy", "m1:Healthy m2:Healthy m3:Healthy", healths(t, ns, "shop-cloneset"))
}

func TestPodsOfAStatefulSetHaveNamesThatNoOtherMemberHas(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "apps.kruise.io/v1beta1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "StatefulSet", alike))
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: %s
kind: StatefulSet
metadata: {name: db, namespace: %s, annotations: {argosy.io/unique-ordinals: "true"}}
spec: {replicas: 6, serviceName: db, podManagementPolicy: Parallel, %s}`, group, ns, podTemplate("db", "example.com/db:1")))
	kit.Eventually(t, "six pods run, each of a name of its own", func() string {
		var names []string
		for m := range fleet.Members {
			own := pods(t, m, ns, "db")
			if len(own) != 2 {
				return fmt.Sprintf("%s runs %d", m, len(own))
			}
			for _, p := range own {
				names = append(names, p.Name)
			}
		}
		slices.Sort(names)
		if got := fmt.Sprint(names); got != "[db-0 db-1 db-2 db-3 db-4 db-5]" {
			t.Fatalf("there are %s", got)
		}
		return ""
	})
}
