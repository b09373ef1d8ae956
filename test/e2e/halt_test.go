package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

const cloneSets = "apps.kruise.io/v1alpha1"

// inPlace is the rest of a CloneSet's spec, up to its maxUnavailable.
const inPlace = "\n  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: "

// isUpdated waits until the hub reports that all pods of the CloneSet shop are updated and available.
func isUpdated(t *testing.T, ns string) {
	t.Helper()
	status(t, cloneSets, "CloneSet", ns, "shop", map[string]any{
		"availableReplicas": int64(9), "updatedReplicas": int64(9), "updatedAvailableReplicas": int64(9),
	})
}

// setImage starts a rollout of the CloneSet shop.
func setImage(t *testing.T, ns, image string) {
	t.Helper()
	fleet.Hub.Change(t, cloneSets, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = image
	})
}

// failedUpdates counts the statuses with a condition FailedUpdate that are written for CloneSets in a member.
func failedUpdates(t *testing.T, member, ns string) *atomic.Int32 {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "clonesets"}
	all := dynamic.NewForConfigOrDie(fleet.Members[member].Config).Resource(resource).Namespace(ns)
	w, err := all.Watch(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count, done := &atomic.Int32{}, make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if ok && strings.Contains(fmt.Sprint(kit.Field(u, "status", "conditions")), "FailedUpdate") {
				count.Add(1)
			}
		}
	}()
	t.Cleanup(func() {
		w.Stop()
		<-done
	})
	return count
}

// OpenKruise reports a conflict as a failed update, though it retries at once.
func TestConflictsInMembersHaltNoRollout(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	rollouts := 20
	if testing.Short() {
		rollouts = 2
	}
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", cloneSets, "CloneSet", alike))
	text := cloneSet(ns, "shop", 9, "example.com/shop:0", inPlace+"50%}")
	fleet.Hub.Apply(t, strings.Replace(text, "metadata: {", `metadata: {annotations: {sim.argosy.io/conflicts: "true"}, `,
		1))
	isUpdated(t, ns)
	failed := map[string]*atomic.Int32{}
	for m := range fleet.Members {
		failed[m] = failedUpdates(t, m, ns)
	}
	for i := range rollouts {
		image := fmt.Sprintf("example.com/shop:%d", i+1)
		setImage(t, ns, image)
		kit.Eventually(t, "all pods run "+image, func() string {
			if n, ready := running(t, ns, "shop", image); n != 9 || ready != 9 {
				return fmt.Sprintf("%d pods are new, %d of all are ready", n, ready)
			}
			return ""
		})
		isUpdated(t, ns)
		waitFor(t, "it is healthy", "m1:Healthy m2:Healthy m3:Healthy", healths(t, ns, "shop-cloneset"))
	}
	if halted := fleet.Hub.Messages(t, "CloneSet", ns, "shop", "FleetHalted"); len(halted) > 0 {
		t.Errorf("conflicts halted a rollout: %q", halted)
	}
	for m, n := range failed {
		if n.Load() == 0 {
			t.Errorf("%s reported no conflict, so this test shows nothing", m)
		}
	}
}

// In m1, new pods do not become ready and the update of one pod is refused, which OpenKruise reports as FailedUpdate
// until it succeeds.
func TestPersistentFailureHaltsTheRollout(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	m1 := fleet.Members["m1"]
	fleet.Hub.Apply(t, policy(ns, "p", cloneSets, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 9, "example.com/shop:1", inPlace+"100%}"))
	isUpdated(t, ns)
	m1.Apply(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]
  validations:
  - expression: "!('refuse' in object.metadata.labels) || object.spec.containers[0].image == oldObject.spec.containers[0].image"
    message: denied by a test
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}`, ns))
	victim := &pods(t, "m1", ns, "shop")[0]
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"refuse":"true"}}}`))
	if err := m1.Patch(t.Context(), victim, label); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "m1 refuses the update of a pod", func() string {
		probe := victim.DeepCopy()
		probe.Spec.Containers[0].Image = "example.com/probe"
		err := m1.Patch(t.Context(), probe, client.StrategicMergeFrom(victim), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "denied by a test") {
			return fmt.Sprint(err)
		}
		return ""
	})

	setImage(t, ns, "example.com/shop:bad")
	kit.Eventually(t, "the rollout is halted", func() string {
		conditions := binding(t, ns, "shop-cloneset").Status.Conditions
		if !meta.IsStatusConditionTrue(conditions, "FleetHalted") {
			return fmt.Sprint(conditions)
		}
		return ""
	})
	waitFor[any](t, "the old pod in m1 is kept", int64(1), func() any {
		return inMember(t, "m1", cloneSets, "CloneSet", ns, "shop", "spec", "updateStrategy", "partition")
	})
	kit.Eventually(t, "the event names the cluster", func() string {
		messages := fleet.Hub.Messages(t, "CloneSet", ns, "shop", "FleetHalted")
		if len(messages) == 0 || !strings.Contains(messages[0], "the new revision is unhealthy in m1") {
			return fmt.Sprintf("%q", messages)
		}
		return ""
	})

	// The template is fixed, and m1 lets it through.
	m1.Remove(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", ns)
	setImage(t, ns, "example.com/shop:2")
	kit.Eventually(t, "all pods are new", func() string {
		if n, ready := running(t, ns, "shop", "example.com/shop:2"); n != 9 || ready != 9 {
			return fmt.Sprintf("%d pods are new, %d of all are ready", n, ready)
		}
		return ""
	})
	waitFor(t, "it is healthy", "m1:Healthy m2:Healthy m3:Healthy", healths(t, ns, "shop-cloneset"))
}
