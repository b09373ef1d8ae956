package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/test/kit"
)

func TestReleaseByWeightsStopsAtItsGates(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	const group, own = "apps.kruise.io/v1alpha1", "release.argosy.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 10, "example.com/shop:1",
		"\n  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 10}"))
	are := func(n int, image string) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("%d pods run %s", n, image), func() string {
			if got, ready := running(t, ns, "shop", image); got != n || ready != 10 {
				return fmt.Sprintf("%d pods do, and %d of all are ready; the release is %v", got, ready,
					kit.Field(fleet.Hub.Find(t, own, "Release", ns, "gray"), "status"))
			}
			return ""
		})
	}
	are(10, "example.com/shop:1")
	fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["argosy.io/release-strategy"] = "gray"
		u.SetAnnotations(annotations)
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/shop:2"
	})
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: release.argosy.io/v1alpha1
kind: Release
metadata: {name: gray, namespace: %[1]s}
spec:
  targets: [{name: shop, ref: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop}}]
  strategyRef: {name: gray}
---
apiVersion: release.argosy.io/v1alpha1
kind: ReleaseStrategy
metadata: {name: gray, namespace: %[1]s}
spec:
  stages:
  - {name: one, to: {weight: 1}}
  - {name: two, to: {weight: 2}, before: [{name: sign}]}
  - {name: seven, to: {weight: 7}, before: [{name: sign}]}
`, ns))
	phase := func(want, reason string) *unstructured.Unstructured {
		t.Helper()
		var r *unstructured.Unstructured
		kit.Eventually(t, "the release is "+want, func() string {
			r = fleet.Hub.Find(t, own, "Release", ns, "gray")
			if got := kit.Field(r, "status", "phase"); got != want || kit.Field(r, "status", "reason") != reason {
				return fmt.Sprint(kit.Field(r, "status"))
			}
			return ""
		})
		return r
	}
	stages := []string{"two", "seven"}
	for i, n := range []int{1, 3} {
		are(n, "example.com/shop:2")
		r := phase("Running", "WaitingForApproval")
		are(n, "example.com/shop:2")
		fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: release.argosy.io/v1alpha1
kind: ReleaseApproval
metadata: {name: gray-%[2]s, namespace: %[1]s}
spec: {release: gray, releaseUID: %[3]s, revision: "%[4]s", stage: %[2]s, gate: sign, verdict: Approve, by: {user: ann}}
`, ns, stages[i], r.GetUID(), kit.Field(r, "status", "revision")))
	}
	are(10, "example.com/shop:2")
	phase("Succeeded", "Completed")
}
