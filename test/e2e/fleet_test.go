package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
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

func TestPodsThatAreNamedTakeTheReplicasOfTheirOwnMemberWithThem(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "apps.kruise.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 6, "example.com/shop:1", ""))
	status(t, group, "CloneSet", ns, "shop", map[string]any{"replicas": int64(6), "availableReplicas": int64(6)})
	before := map[string][]string{}
	for m := range fleet.Members {
		for _, p := range pods(t, m, ns, "shop") {
			before[m] = append(before[m], p.Name)
		}
		slices.Sort(before[m])
	}
	victims := []any{before["m2"][0], before["m2"][1]}
	fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		spec := kit.Field(u, "spec").(map[string]any)
		spec["replicas"] = int64(4)
		spec["scaleStrategy"] = map[string]any{"podsToDelete": victims}
	})
	others := func() string {
		for _, m := range []string{"m1", "m3"} {
			var now []string
			for _, p := range pods(t, m, ns, "shop") {
				now = append(now, p.Name)
			}
			if slices.Sort(now); !slices.Equal(now, before[m]) {
				return fmt.Sprintf("%s runs %v, and ran %v", m, now, before[m])
			}
		}
		if left := pods(t, "m2", ns, "shop"); len(left) > 0 {
			return fmt.Sprintf("m2 still runs %d", len(left))
		}
		return ""
	}
	kit.Eventually(t, "they alone are gone", others)
	kit.Stays(t, "nothing else moves", 2*time.Second, others)
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

func TestAPodToDeleteIsDeletedInItsOwnMember(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "apps.kruise.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 6, "example.com/shop:1", ""))
	status(t, group, "CloneSet", ns, "shop", map[string]any{"replicas": int64(6), "availableReplicas": int64(6)})
	victim := pods(t, "m2", ns, "shop")[0].Name
	others := map[string]bool{}
	for m := range fleet.Members {
		for _, p := range pods(t, m, ns, "shop") {
			others[p.Name] = p.Name != victim
		}
	}
	fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedSlice(u.Object, []any{victim, "shop-nowhere"}, "spec", "scaleStrategy", "podsToDelete"); err != nil {
			t.Fatal(err)
		}
	})
	kit.Eventually(t, "the pod is replaced, and no other one", func() string {
		left := 0
		for m := range fleet.Members {
			own := pods(t, m, ns, "shop")
			if len(own) != 2 {
				return fmt.Sprintf("%s runs %d", m, len(own))
			}
			for _, p := range own {
				if p.Name == victim {
					return victim + " is there"
				}
				if others[p.Name] {
					left++
				}
			}
		}
		if left != 5 {
			t.Fatalf("%d of the five others are left", left)
		}
		return ""
	})
	kit.Eventually(t, "it is told of the pod that is nowhere", func() string {
		if told := fleet.Hub.Told(t, "CloneSet", ns, "shop", "PodNotFound"); len(told) != 1 || !strings.Contains(told[0], "shop-nowhere in no cluster") {
			return fmt.Sprintf("told is %q, of generation %d", told, fleet.Hub.Find(t, group, "CloneSet", ns, "shop").GetGeneration())
		}
		return ""
	})
	is(t, "nobody refuses it", "m1:Healthy m2:Healthy m3:Healthy", healths(t, ns, "shop-cloneset"))
	bound := func(name string) (b workv1alpha2.ResourceBinding) {
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !meta.IsStatusConditionTrue(bound("shop-cloneset").Status.Conditions, "PodNotFound") {
		t.Errorf("the binding does not say it: %v", bound("shop-cloneset").Status.Conditions)
	}

	// Its containers are recreated where a pod is, and nowhere else.
	const request = "ContainerRecreateRequest"
	fleet.Hub.Apply(t, policy(ns, "r", group, request, "{clusterAffinity: {clusterNames: [m1, m2, m3]}}"))
	recreate := func(name, pod string) {
		fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: %s}, spec: {podName: %s, containers: [{name: main}]}}", group, request, name, ns, pod))
	}
	recreate("there", pods(t, "m3", ns, "shop")[0].Name)
	recreate("nowhere", "shop-nowhere")
	kit.Eventually(t, "it is in m3", func() string {
		if fleet.Members["m3"].Find(t, group, request, ns, "there") == nil {
			return "it is not"
		}
		return ""
	})
	kit.Eventually(t, "all is applied", func() string {
		if c := bound("there-containerrecreaterequest").Status.Conditions; !meta.IsStatusConditionTrue(c, workv1alpha2.FullyApplied) {
			return fmt.Sprint(c)
		}
		return ""
	})
	kit.Eventually(t, "it is told of the one whose pod is nowhere", func() string {
		if c := bound("nowhere-containerrecreaterequest").Status.Conditions; !meta.IsStatusConditionTrue(c, "PodNotFound") {
			return fmt.Sprint(c)
		}
		return ""
	})
	for _, m := range []string{"m1", "m2"} {
		if fleet.Members[m].Find(t, group, request, ns, "there") != nil {
			t.Errorf("%s has it, too", m)
		}
	}
}

func TestHalvesOfAnOddUnitedDeploymentAddUpInEveryMember(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "apps.kruise.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "UnitedDeployment", alike))
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: %s
kind: UnitedDeployment
metadata: {name: ud, namespace: %s}
spec:
  replicas: 9
  selector: {matchLabels: {app: ud}}
  template:
    deploymentTemplate: {metadata: {labels: {app: ud}}, spec: {%s}}
  topology: {subsets: [{name: a, replicas: "50%%"}, {name: b, replicas: "50%%"}]}`, group, ns, podTemplate("ud", "example.com/ud:1")))
	kit.Eventually(t, "the subsets add up", func() string {
		sums := map[any]int64{}
		for m, c := range fleet.Members {
			u := c.Find(t, group, "UnitedDeployment", ns, "ud")
			if u == nil {
				return m + " has none"
			}
			var own int64
			for _, s := range kit.Field(u, "spec", "topology", "subsets").([]any) {
				n, ok := s.(map[string]any)["replicas"].(int64)
				if !ok {
					t.Fatalf("%s says %v", m, s)
				}
				own += n
				sums[s.(map[string]any)["name"]] += n
			}
			if own != 3 || kit.Field(u, "spec", "replicas") != int64(3) {
				t.Fatalf("%s says %v", m, kit.Field(u, "spec"))
			}
		}
		if sums["a"] != 5 || sums["b"] != 4 {
			t.Fatalf("over all there are %v", sums)
		}
		return ""
	})
}
