package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/argosy-io/argosy/internal/core/simulate"
	"github.com/argosy-io/argosy/test/kit"
)

// argosySimulate runs the verb against the hub, and returns what it printed.
func argosySimulate(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), fleet.Lab.Hub.Binary, append([]string{"--kubeconfig=" + fleet.Lab.Hub.Kubeconfig(), "simulate"}, args...)...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("simulate %v: %v\n%s", args, err, errOut.String())
	}
	return string(out)
}

// ofNamespace are a report's workloads in one namespace: other tests change the rest of the fleet meanwhile.
func ofNamespace(t *testing.T, text, ns string) string {
	t.Helper()
	var r simulate.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var all []simulate.Workload
	for _, w := range r.Workloads {
		if w.Namespace == ns {
			all = append(all, w)
		}
	}
	raw, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestASimulationSaysTheSameFromAFileAsFromTheHubAndWritesNothing(t *testing.T) {
	t.Parallel()
	const password = "aHVudGVyMg=="
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{"+divided("replicaDivisionPreference: Weighted")+"}"))
	fleet.Hub.Apply(t, policy(ns, "s", "v1", "Secret", "{clusterAffinity: {clusterNames: [m1]}}"))
	fleet.Hub.Apply(t, hungry(ns, "web", 6))
	fleet.Hub.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: %s}\ndata: {password: %s}", ns, password))
	is(t, "it is placed", "m1:2 m2:2 m3:2", func() string { return shares(t, ns, "web-deployment") })
	is(t, "the Secret is placed", "m1:0", func() string { return shares(t, ns, "keys-secret") })
	// Until the members have answered, the hub itself writes.
	versions := func() string {
		var all []string
		for _, o := range [][3]string{
			{"apps/v1", "Deployment", "web"}, {"v1", "Secret", "keys"},
			{"policy.karmada.io/v1alpha1", "PropagationPolicy", "p"}, {"policy.karmada.io/v1alpha1", "PropagationPolicy", "s"},
			{"work.karmada.io/v1alpha2", "ResourceBinding", "web-deployment"}, {"work.karmada.io/v1alpha2", "ResourceBinding", "keys-secret"},
		} {
			all = append(all, o[2]+" "+fleet.Hub.Find(t, o[0], o[1], ns, o[2]).GetResourceVersion())
		}
		return strings.Join(all, ", ")
	}
	for _, name := range []string{"web-deployment", "keys-secret"} {
		kit.Eventually(t, name+" is applied in all its members", func() string {
			if b := binding(t, ns, name); len(b.Status.AggregatedStatus) != len(b.Spec.Clusters) {
				return fmt.Sprintf("%d of %d have answered", len(b.Status.AggregatedStatus), len(b.Spec.Clusters))
			}
			return ""
		})
	}
	settled, since := versions(), time.Now()
	kit.Eventually(t, "nobody writes any more", func() string {
		if now := versions(); now != settled {
			settled, since = now, time.Now()
		}
		if time.Since(since) < 3*quiet {
			return "the last versions are " + settled
		}
		return ""
	})

	recorded := argosySimulate(t, "record")
	if strings.Contains(recorded, password) {
		t.Error("the file has the contents of a Secret")
	}
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, []byte(recorded), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][]string{
		nil,
		{"--cluster-down", "m1"},
		{"--taint", "m2=maintenance:NoExecute"},
		{"--scale", ns + "/deployment/web=9", "--cluster-down", "m3"},
	} {
		args := append([]string{"-o", "json"}, change...)
		fromHub := ofNamespace(t, argosySimulate(t, args...), ns)
		fromFile := ofNamespace(t, argosySimulate(t, append(args, "--fleet", file)...), ns)
		if fromHub != fromFile {
			t.Errorf("%v: from the hub\n%s\nfrom the file\n%s", change, fromHub, fromFile)
		}
		var found []simulate.Workload
		if err := json.Unmarshal([]byte(fromHub), &found); err != nil || len(found) != 2 {
			t.Fatalf("%v: %d workloads, %v, want the Deployment and the Secret:\n%s", change, len(found), err, fromHub)
		}
		if changed := found[0].Changed(); changed != (change != nil) {
			t.Errorf("%v: the Deployment changes: %v\n%s", change, changed, fromHub)
		}
	}
	if now := versions(); now != settled {
		t.Errorf("something was written: %s became %s", settled, now)
	}
}
