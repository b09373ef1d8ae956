package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

func TestKilledMemberCatchesUp(t *testing.T) {
	kit.Long(t)
	w := newWorld(t)
	healthy := w.witness("f1")
	ns := w.namespace()
	w.work(ns, 20)
	kit.Eventually(t, "everything converges", w.wrong)
	before := w.look("f2")
	member := fleet.Fleet.Members()[1]

	for round := range 2 {
		idle := make(chan struct{})
		go func() { defer close(idle); w.work(ns, 20) }()
		after := w.roll(20)
		w.waitForDeeds(after, idle)
		back := kill(t, member)
		<-idle
		kit.Eventually(t, "the other member has everything", func() string { return w.memberWrong("f1") })
		if round == 1 {
			ready(t, fleet.Hub, "f2", "ClusterNotReachable") // the hub has given up on it
		}
		back()
		kit.Eventually(t, "everything converges", w.wrong)
		t.Logf("kill %d of f2 after %d deeds", round+1, after)
		if wrong := healthy.testimony(w); wrong != "" {
			t.Fatal(wrong)
		}
		now := w.look("f2")
		for key, was := range before {
			if is, there := now[key]; there && is.uid != was.uid {
				t.Errorf("%s was made anew in f2", key)
			}
		}
		before = now
	}
}

func TestStatusOfLostClusterIsNotReportedAsCurrent(t *testing.T) {
	kit.Long(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [f1, f2]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}`, ns))
	messages := func(ready int64) func() string {
		return func() string {
			d := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
			if kit.Field(d, "status", "replicas") != int64(4) || kit.Field(d, "status", "updatedReplicas") != int64(4) ||
				kit.Field(d, "status", "readyReplicas") != ready {
				return fmt.Sprint(kit.Field(d, "status"))
			}
			return ""
		}
	}
	kit.Eventually(t, "all four replicas are ready", messages(4))

	back := kill(t, fleet.Fleet.Members()[1])
	kit.Eventually(t, "two of four replicas are known to be ready", messages(2))
	b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "web-deployment")
	if output := fmt.Sprint(kit.Field(b, "status", "conditions")); !strings.Contains(output,
		`cluster "f2" has not been ready since `) {
		t.Errorf("the binding does not say what is stale: %s", output)
	}
	if d := fleet.Hub.Find(t, "apps/v1", "Deployment", ns,
		"web"); !strings.Contains(fmt.Sprint(kit.Field(d, "status", "conditions")),
		"f2: the cluster has not been ready since ") {
		t.Errorf("the template's conditions do not say where it is not known: %v", kit.Field(d, "status", "conditions"))
	}
	for _, c := range []struct {
		ask     string
		message []string
	}{
		{"why deployment web", []string{"healthy in 1 of 2 clusters", "f2: the cluster has not been ready since ",
			": replicas 2, readyReplicas 2"}},
		{"rollout status deployment web",
			[]string{"f1        Healthy   2          2         2", "f2        Unknown   2          2         <unknown>",
				`cluster "f2" has not been ready since `}},
		{"get deployments", []string{"web    2/4"}},
		{"status", []string{"cluster f2: ", "not ready for "}},
	} {
		out, _ := fleet.Lab.Argosy(t.Context(), append(strings.Fields(c.ask), "-n", ns)...)
		for _, want := range c.message {
			if !strings.Contains(out, want) {
				t.Errorf("argosy %s does not say %q:\n%s", c.ask, want, out)
			}
		}
	}

	back()
	kit.Eventually(t, "all four are ready again", messages(4))
	kit.Eventually(t, "nothing is stale any more", func() string {
		b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "web-deployment")
		if output := fmt.Sprint(kit.Field(b, "status", "conditions")); strings.Contains(output, "StatusCurrent") {
			return output
		}
		return ""
	})
}

// kill ends a member as a power cut would. back brings it back; at the end of a test that did not come so far, it is
// brought back for those after it.
func kill(t *testing.T, member *sim.Running) (back func()) {
	t.Helper()
	member.Kill()
	down := true
	restart := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		err := member.Restart(ctx)
		down = err != nil
		return err
	}
	t.Cleanup(func() {
		if !down {
			return
		}
		if err := restart(); err != nil {
			t.Error(err)
		}
	})
	return func() {
		t.Helper()
		if err := restart(); err != nil {
			t.Fatal(err)
		}
	}
}
