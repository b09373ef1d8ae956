package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

func TestStagesAreApprovedForOneRevision(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "apps.kruise.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 9, "example.com/shop:1",
		"\n  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 9}"))
	fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["argosy.io/rollout-order"], annotations["argosy.io/rollout-stages"] = "Stages",
			`[{"percent": 10, "pause": true}, {"percent": 100}]`
		u.SetAnnotations(annotations)
	})
	image := func(to string) {
		t.Helper()
		fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
			kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = to
		})
	}
	stage := func(want string) {
		t.Helper()
		kit.Eventually(t, "the status shows "+want, func() string {
			if out, err := command(t, "rollout", "status", "cloneset", "shop", "-n", ns); err != nil ||
				!strings.Contains(out, want) {
				return fmt.Sprintf("%v\n%s", err, out)
			}
			return ""
		})
	}
	are := func(n int, of string) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("%d pods run %s", n, of), func() string {
			if got, ready := running(t, ns, "shop", of); got != n || ready != 9 {
				return fmt.Sprintf("%d pods do, and %d of all are ready", got, ready)
			}
			return ""
		})
	}
	stage("All 2 stages are complete.")
	image("example.com/shop:2")
	are(1, "example.com/shop:2")
	stage("Stage 1 of 2 is complete and waits for an approval")
	if out, err := command(t, "rollout", "approve", "cloneset", "shop", "-n", ns); err != nil ||
		!strings.Contains(out, "stage 1 of 2 is approved") {
		t.Fatalf("%v\n%s", err, out)
	}
	are(9, "example.com/shop:2")
	stage("All 2 stages are complete.")

	image("example.com/shop:3")
	are(1, "example.com/shop:3")
	stage("Stage 1 of 2 is complete and waits for an approval")
	are(1, "example.com/shop:3")
}

func TestHandsOffInMemberStopsTheHub(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "it is sent", func() string { return applied(t, ns, "c-configmap", "m1") })
	brake := func(on bool) {
		t.Helper()
		fleet.Members["m1"].Change(t, "v1", "ConfigMap", ns, "c", func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			delete(annotations, "argosy.io/hands-off")
			if on {
				annotations["argosy.io/hands-off"] = "true"
			}
			u.SetAnnotations(annotations)
		})
	}
	value := func() any { return kit.Field(fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c"), "data", "key") }
	brake(true)
	fleet.Hub.Change(t, "v1", "ConfigMap", ns, "c",
		func(u *unstructured.Unstructured) { kit.Field(u, "data").(map[string]any)["key"] = "2" })
	kit.Eventually(t, "the Work is not applied, because of the annotation", func() string {
		w := work(t, "m1", "ConfigMap", ns, "c")
		if !meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkHandsOff) ||
			!meta.IsStatusConditionFalse(w.Status.Conditions, workv1alpha1.WorkApplied) {
			return fmt.Sprintf("%+v", w.Status.Conditions)
		}
		return ""
	})
	if got := value(); got != "1" {
		t.Errorf("the object has %v, want 1", got)
	}
	brake(false)
	kit.Eventually(t, "it is applied", func() string {
		if got := value(); got != "2" {
			return fmt.Sprint(got)
		}
		return applied(t, ns, "c-configmap", "m1")
	})
}
