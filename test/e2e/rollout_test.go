package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// Kruise's controllers of Rollouts are not simulated: the test is them, and writes how far a member's Rollout is.
func TestHubApprovesRolloutStepInWaitingMembers(t *testing.T) {
	t.Parallel()
	const group = "rollouts.kruise.io/v1beta1"
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", group, "Rollout", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: %s, kind: Rollout, metadata: {name: shop, namespace: %s}, spec: {workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop},
		strategy: {canary: {steps: [{replicas: 10%%, pause: {}}, {replicas: 50%%, pause: {}}, {replicas: 100%%}]}}}}`, group, ns))
	kit.Eventually(t, "members hold it", func() string { return lacks(t, group, "Rollout", ns, "shop", "m1", "m2") })

	reaches := func(member string, step int, state, revision string) {
		t.Helper()
		u := fleet.Members[member].Find(t, group, "Rollout", ns, "shop")
		patch := fmt.Sprintf(`{"status":{"phase":"Progressing","currentStepState":%[2]q,"canaryStatus":{"currentStepIndex":%[1]d,"currentStepState":%[2]q,"canaryRevision":%[3]q}}}`, step, state, revision)
		if err := fleet.Members[member].Status().Patch(t.Context(), u,
			client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	state := func(member string) string {
		t.Helper()
		u := fleet.Members[member].Find(t, group, "Rollout", ns, "shop")
		return fmt.Sprintf("%v %v %v", kit.Field(u, "status", "canaryStatus", "currentStepIndex"),
			kit.Field(u, "status", "canaryStatus", "currentStepState"), kit.Field(u, "status", "currentStepState"))
	}
	messages := func(what string, lines ...string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			out, err := command(t, "rollout", "status", "rollout", "shop", "-n", ns)
			for _, line := range lines {
				if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), line) {
					return fmt.Sprintf("%v\n%s", err, out)
				}
			}
			return ""
		})
	}
	if out, err := command(t, "rollout", "approve", "rollout", "shop", "-n", ns); err == nil ||
		!strings.Contains(out, "not waiting in any cluster") {
		t.Errorf("nothing waits: %v\n%s", err, out)
	}
	reaches("m1", 1, "StepPaused", "new-1")
	reaches("m2", 1, "StepUpgrade", "new-2")
	messages("the hub has heard it", "m1 Progressing 1 StepPaused new-1", "m2 Progressing 1 StepUpgrade new-2")
	if out, err := command(t, "rollout", "approve", "rollout", "shop", "-n", ns); err != nil ||
		!strings.Contains(out, "step 1 is approved in cluster m1") ||
		!strings.Contains(out, "not waiting for an approval in cluster m2") {
		t.Fatalf("%v\n%s", err, out)
	}
	waitFor(t, "m1 goes on", "1 StepReady StepReady", func() string { return state("m1") })

	// What was approved once is no later step, and no other rollout.
	reaches("m1", 2, "StepPaused", "new-1")
	reaches("m2", 1, "StepPaused", "new-2")
	messages("the hub has heard it", "m1 Progressing 2 StepPaused", "m2 Progressing 1 StepPaused")
	kit.Stays(t, "both wait for a user", time.Second, func() string {
		if m1, m2 := state("m1"), state("m2"); m1 != "2 StepPaused StepPaused" || m2 != "1 StepPaused StepPaused" {
			return m1 + ", " + m2
		}
		return ""
	})
	if out, err := command(t, "rollout", "approve", "rollout", "shop", "-n", ns, "--clusters", "m2"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	waitFor(t, "m2 goes on alone", "1 StepReady StepReady, 2 StepPaused StepPaused", func() string {
		return state("m2") + ", " + state("m1")
	})

	if out, err := command(t, "rollout", "pause", "rollout", "shop", "-n", ns); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	waitFor(t, "members are paused", true, func() bool {
		p, _ := inMember(t, "m2", group, "Rollout", ns, "shop", "spec", "strategy", "paused").(bool)
		return p
	})
	if out, err := command(t, "rollout", "resume", "rollout", "shop", "-n", ns); err != nil ||
		kit.Field(fleet.Hub.Find(t, group, "Rollout", ns, "shop"), "spec", "strategy", "paused") == true {
		t.Errorf("%v\n%s", err, out)
	}
}
