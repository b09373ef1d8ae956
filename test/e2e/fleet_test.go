package e2e

import (
	"fmt"
	"maps"
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
	if err := fleet.Members[member].List(t.Context(), &list, client.InNamespace(ns),
		client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// notReady returns the pods of an app in the fleet that are not ready, each with the time since when.
func notReady(t *testing.T, ns, app string) (out []string) {
	t.Helper()
	for m := range fleet.Members {
		for _, p := range pods(t, m, ns, app) {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
					out = append(out, fmt.Sprintf("%s/%s since %s", m, p.Name, c.LastTransitionTime))
				}
			}
		}
	}
	return out
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
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 9, "example.com/shop:1",
		"\n  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 2}"))
	status(t, group, "CloneSet", ns, "shop", map[string]any{"replicas": int64(9), "availableReplicas": int64(9),
		"updatedReplicas": int64(9)})

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
	status(t, group, "CloneSet", ns, "shop",
		map[string]any{"updatedReplicas": int64(1), "expectedUpdatedReplicas": int64(1), "availableReplicas": int64(9)})
	waitFor(t, "a canary is no failure", "m1:Healthy m2:Healthy m3:Healthy", healths(t, ns, "shop-cloneset"))

	// All of it: never are more than two pods down, and it ends.
	change(int64(0), "example.com/shop:2")
	kit.Eventually(t, "all pods are new", func() string {
		// The members are read one after the other. A pod that two such readings find not ready was so at the moment between
		// them.
		before := notReady(t, ns, "shop")
		down := slices.DeleteFunc(notReady(t, ns, "shop"), func(pod string) bool { return !slices.Contains(before, pod) })
		if len(down) > 2 {
			t.Fatalf("more than two pods are not ready: %v", down)
		}
		n, ready := running(t, ns, "shop", "example.com/shop:2")
		if n != 9 || ready != 9 {
			return fmt.Sprintf("%d pods are new, %d of all ready", n, ready)
		}
		return ""
	})
	status(t, group, "CloneSet", ns, "shop",
		map[string]any{"updatedReplicas": int64(9), "updatedAvailableReplicas": int64(9),
			"expectedUpdatedReplicas": int64(9)})
	waitFor(t, "it is healthy", "m1:Healthy m2:Healthy m3:Healthy", healths(t, ns, "shop-cloneset"))
}

func TestNamedPodsReduceTheReplicasOfTheirMember(t *testing.T) {
	kit.Long(t)
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

func TestPodNamesOfAStatefulSetAreUniqueAcrossMembers(t *testing.T) {
	kit.Long(t)
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
	kit.Long(t)
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
		if err := unstructured.SetNestedSlice(u.Object, []any{victim, "shop-nowhere"}, "spec", "scaleStrategy",
			"podsToDelete"); err != nil {
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
	kit.Eventually(t, "an event reports the pod that is nowhere", func() string {
		if messages := fleet.Hub.Messages(t, "CloneSet", ns, "shop", "PodNotFound"); len(messages) != 1 ||
			!strings.Contains(messages[0], "shop-nowhere not found in any") {
			return fmt.Sprintf("reported: %q, of generation %d", messages,
				fleet.Hub.Find(t, group, "CloneSet", ns, "shop").GetGeneration())
		}
		return ""
	})
	waitFor(t, "nobody refuses it", "m1:Healthy m2:Healthy m3:Healthy", healths(t, ns, "shop-cloneset"))
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
		if c := bound("there-containerrecreaterequest").Status.Conditions; !meta.IsStatusConditionTrue(c,
			workv1alpha2.FullyApplied) {
			return fmt.Sprint(c)
		}
		return ""
	})
	kit.Eventually(t, "an event reports the one whose pod is nowhere", func() string {
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
	kit.Long(t)
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

// A subset goes to the cluster that it names and to no other, its replicas are there, and the template shows it by
// name.
func TestSubsetsOfAUnitedDeploymentGoToTheirClusters(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "apps.kruise.io/v1beta1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "UnitedDeployment", "{clusterAffinity: {clusterNames: [m1, m2, m3]}}"))
	united := func(subsets string) string {
		return fmt.Sprintf(`
apiVersion: %s
kind: UnitedDeployment
metadata: {name: ud, namespace: %s}
spec:
  replicas: 8
  selector: {matchLabels: {app: ud}}
  template:
    deploymentTemplate: {metadata: {labels: {app: ud}}, spec: {%s}}
  topology: {subsets: [%s]}`, group, ns, podTemplate("ud", "example.com/ud:1"), subsets)
	}
	// in returns what each member has: "m1 4: a=3 c=1".
	in := func(want string) func() string {
		return func() string {
			var got []string
			for _, m := range slices.Sorted(maps.Keys(fleet.Members)) {
				u := fleet.Members[m].Find(t, "apps.kruise.io/v1alpha1", "UnitedDeployment", ns, "ud")
				if u == nil {
					continue
				}
				line := fmt.Sprintf("%s %v:", m, kit.Field(u, "spec", "replicas"))
				for _, s := range kit.Field(u, "spec", "topology", "subsets").([]any) {
					line += fmt.Sprintf(" %v=%v", s.(map[string]any)["name"], s.(map[string]any)["replicas"])
				}
				got = append(got, line)
			}
			if all := strings.Join(got, "; "); all != want {
				return all
			}
			return ""
		}
	}
	fleet.Hub.Apply(t, united("{name: a, replicas: 3, clusterAffinity: {clusterNames: [m1]}}, {name: b, replicas: 2, clusterAffinity: {clusterNames: [m2]}}, {name: c, replicas: 3}"))
	kit.Eventually(t, "each subset is where it belongs", in("m1 4: a=3 c=1; m2 3: b=2 c=1; m3 1: c=1"))
	kit.Eventually(t, "the template shows each subset", func() string {
		u := fleet.Hub.Find(t, group, "UnitedDeployment", ns, "ud")
		var got []string
		statuses, _ := kit.Field(u, "status", "subsetStatuses").([]any)
		for _, s := range statuses {
			got = append(got, fmt.Sprintf("%v=%v", s.(map[string]any)["name"], s.(map[string]any)["readyReplicas"]))
		}
		if all := strings.Join(got, " "); all != "a=3 b=2 c=3" || kit.Field(u, "status", "readyReplicas") != int64(8) {
			return fmt.Sprint(kit.Field(u, "status"))
		}
		return ""
	})
	// It moves, and where it cannot go nothing moves.
	fleet.Hub.Apply(t, united("{name: a, replicas: 3, clusterAffinity: {clusterNames: [m2]}}, {name: b, replicas: 2, clusterAffinity: {clusterNames: [m2]}}, {name: c, replicas: 3}"))
	kit.Eventually(t, "the subset has moved", in("m1 1: c=1; m2 6: a=3 b=2 c=1; m3 1: c=1"))
	fleet.Hub.Apply(t, united("{name: a, replicas: 3, clusterAffinity: {clusterNames: [m7]}}, {name: b, replicas: 2, clusterAffinity: {clusterNames: [m2]}}, {name: c, replicas: 3}"))
	kit.Eventually(t, "it says why it goes nowhere", func() string {
		b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "ud-uniteddeployment")
		for _, c := range kit.Field(b, "status", "conditions").([]any) {
			c := c.(map[string]any)
			if c["type"] == "Scheduled" && c["status"] == "False" &&
				strings.Contains(c["message"].(string), `subset "a" is not scheduled to any cluster`) {
				return ""
			}
		}
		return fmt.Sprint(kit.Field(b, "status", "conditions"))
	})
	if left := in("m1 1: c=1; m2 6: a=3 b=2 c=1; m3 1: c=1")(); left != "" {
		t.Errorf("it became %s", left)
	}
	refused := kit.Object(t, united("{name: a, replicas: 3, clusterAffinity: {clusterNames: [m1]}}, {name: b, replicas: 2}"))
	refused.SetName("refused")
	if err := fleet.Hub.Create(t.Context(), refused); err == nil ||
		!strings.Contains(err.Error(), "add up to 5, and spec.replicas is 8") {
		t.Errorf("sums that cannot be: %v", err)
	}
}

// Members pull a new image before their pods are made of it, each goes on when it has it, and the pulls are cleaned up.
func TestImagesArePulledBeforeARollout(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "apps.kruise.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 6, "example.com/shop:1", ""))
	status(t, group, "CloneSet", ns, "shop", map[string]any{"replicas": int64(6), "availableReplicas": int64(6)})

	fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		annotate(u, map[string]string{"argosy.io/pre-pull": "50%", "argosy.io/pre-pull-timeout": "1h"})
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/shop:2"
	})
	// in returns which image each member's CloneSet has, and which one it pulls.
	in := func(want string) func() string {
		return func() string {
			var got []string
			for _, m := range slices.Sorted(maps.Keys(fleet.Members)) {
				u := fleet.Members[m].Find(t, group, "CloneSet", ns, "shop")
				image := kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"].(string)
				got = append(got, strings.TrimPrefix(image, "example.com/shop:"))
				for _, job := range pullJobs(t, m, ns) {
					got = append(got, "pulls "+strings.TrimPrefix(kit.Field(&job, "spec", "image").(string), "example.com/shop:"))
				}
			}
			if all := strings.Join(got, " "); all != want {
				return all
			}
			return ""
		}
	}
	pulled := func(m string, desired, succeeded int64) {
		t.Helper()
		for _, job := range pullJobs(t, m, ns) {
			job.Object["status"] = map[string]any{"desired": desired, "succeeded": succeeded, "active": desired - succeeded}
			if err := fleet.Members[m].Status().Update(t.Context(), &job); err != nil {
				t.Fatal(err)
			}
		}
	}
	kit.Eventually(t, "each member pulls", in("1 pulls 2 1 pulls 2 1 pulls 2"))
	kit.Eventually(t, "the binding says what is awaited", func() string {
		b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "shop-cloneset")
		for _, c := range kit.Field(b, "status", "conditions").([]any) {
			c := c.(map[string]any)
			if c["type"] == "ImagesPulled" && c["status"] == "False" &&
				strings.Contains(c["message"].(string),
					`cluster "m3": it is pulling example.com/shop:2; new pods are created when 50% of its nodes have it`) {
				return ""
			}
		}
		return fmt.Sprint(kit.Field(b, "status", "conditions"))
	})
	pulled("m1", 4, 1)
	pulled("m2", 4, 2)
	kit.Eventually(t, "the one goes on that has it on half of its nodes", in("1 pulls 2 2 1 pulls 2"))
	fleet.Hub.Change(t, group, "CloneSet", ns, "shop",
		func(u *unstructured.Unstructured) { annotate(u, map[string]string{"argosy.io/pre-pull": ""}) })
	kit.Eventually(t, "nobody waits when that is not asked for, and nothing is left", in("2 2 2"))
	status(t, group, "CloneSet", ns, "shop", map[string]any{"replicas": int64(6), "updatedReplicas": int64(6),
		"availableReplicas": int64(6)})

	fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		annotate(u, map[string]string{"argosy.io/pre-pull": "true"})
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/shop:3"
	})
	kit.Eventually(t, "each member pulls again", in("2 pulls 3 2 pulls 3 2 pulls 3"))
	fleet.Hub.Remove(t, group, "CloneSet", ns, "shop")
	kit.Eventually(t, "nothing is left of a template that is gone", func() string {
		for m := range fleet.Members {
			if len(pullJobs(t, m, ns)) > 0 {
				return m + " pulls"
			}
		}
		return ""
	})
}

// annotate sets annotations, and takes off those that are empty.
func annotate(u *unstructured.Unstructured, annotations map[string]string) {
	all := u.GetAnnotations()
	for key, value := range annotations {
		if all[key] = value; value == "" {
			delete(all, key)
		}
	}
	u.SetAnnotations(all)
}

func pullJobs(t *testing.T, member, ns string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps.kruise.io/v1alpha1")
	list.SetKind("ImagePullJobList")
	if err := fleet.Members[member].List(t.Context(), list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
