package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/cli/explaincli"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/explain/simulate"
)

const smallFleet = `
# two clusters, made up
apiVersion: v1
kind: List
items:
- apiVersion: cluster.karmada.io/v1alpha1
  kind: Cluster
  metadata: {name: m1}
  spec: {syncMode: Push}
  status: &status
    conditions: [{type: CompleteAPIEnablements, status: "True"}]
    apiEnablements: [{groupVersion: apps/v1, resources: [{name: deployments, kind: Deployment}]}]
    resourceSummary: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}
- apiVersion: cluster.karmada.io/v1alpha1
  kind: Cluster
  metadata: {name: m2}
  spec: {syncMode: Push}
  status: *status
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Dynamic}}
---
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "annotations": {"note": "a\u001b[2J\u202e\u009bb"}}, "spec": {"replicas": 6, "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}}}
`

// simulated runs simulate on a file, and returns its exit code and output.
func simulated(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, []byte(smallFleet), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = Main(context.Background(), append([]string{"argosy", "simulate", "--fleet", file}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestSimulateReadsAFleetFromAFile(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	code, out, errOut := simulated(t, "--all")
	if code != 0 || !strings.Contains(out, "m1:3 m2:3") || !strings.Contains(errOut, "stored as Weighted") {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
	code, out, _ = simulated(t, "-o", "json", "-n", "default", "--scale", "deployment/web=8")
	var r simulate.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r.Workloads) != 1 ||
		r.Workloads[0].After.Replicas != 8 || r.Workloads[0].Added != 2 {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
}

func TestUnplacedReplicasAreAnErrorOnlyOnRequest(t *testing.T) {
	if code, out, _ := simulated(t, "--cluster-removed", "m1"); code != 0 ||
		!strings.Contains(out, "would fit with 4 replicas instead of 6") {
		t.Errorf("%d\n%s", code, out)
	}
	if code, out, errOut := simulated(t, "--cluster-removed", "m1", "--fail-on-unplaced"); code != 1 ||
		!strings.Contains(out, "Does not fit") ||
		!strings.Contains(errOut, "workloads that do not fit: 1, clusters that lack room: 0") {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
	if code, _, errOut := simulated(t, "--fail-on-unplaced"); code != 0 {
		t.Errorf("all fits, and it ended with %d: %s", code, errOut)
	}
}

func TestSimulateRefusesInvalidInput(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"-o yaml is not supported":                  {"-o", "yaml"},
		"such as m1=disk=slow":                      {"--taint", "m1"},
		"document 1: it is not a Kubernetes object": {"-f", bad},
		"no such file":                              {"-f", bad + "x"},
		`there is no cluster "m7"`:                  {"--cluster-down", "m7"},
		`no scheduler plugin "Taints"`:              {"--plugins", "*,-Taints"},
		"write KIND/NAME=N or NAMESPACE":            {"--scale", "web=3", "--taint", "m1=x:NoSchedule"},
	} {
		if code, out, errOut := simulated(t, args...); code != 1 || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%v ended with %d, saying %q %q, want %q", args, code, out, errOut, want)
		}
	}
}

// Errors name what members, tenants and arguments contain.
func TestErrorsDoNotControlATerminal(t *testing.T) {
	for name, args := range map[string][]string{
		"a flag":       {"simulate", "--scale", "a\x1b[2Jb\u202e"},
		"an argument":  {"why", "a\x1b[2Jb\u202e", "--kubeconfig", "none"},
		"a subcommand": {"rollout", "a\x1b[2Jb\u202e"},
		"a file":       {"simulate", "--fleet", "a\x1b[2Jb\u202e"},
	} {
		var out, errOut bytes.Buffer
		if code := Main(t.Context(), append([]string{"argosy"}, args...), &out, &errOut); code == 0 ||
			!strings.HasPrefix(errOut.String(), "argosy: ") ||
			strings.ContainsAny(errOut.String(), "\x1b\u202e") {
			t.Errorf("%s: %d, %q", name, code, &errOut)
		}
	}
}

func TestAFleetIsWrittenAsItIsRead(t *testing.T) {
	first, err := hubcli.ReadDocuments("fleet", strings.NewReader(smallFleet))
	if err != nil || len(first) != 4 {
		t.Fatalf("%d objects, %v", len(first), err)
	}
	for _, asJSON := range []bool{false, true} {
		var text bytes.Buffer
		if err := explaincli.WriteObjects(&text, first, asJSON); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(text.String(), "\x1b\u202e\u009b") {
			t.Errorf("json %v: it controls the terminal: %q", asJSON, &text)
		}
		again, err := hubcli.ReadDocuments("fleet", &text)
		if err != nil || len(again) != len(first) {
			t.Fatalf("json %v: %d objects, %v", asJSON, len(again), err)
		}
		for i := range again {
			was, _ := first[i].MarshalJSON()
			is, _ := again[i].MarshalJSON()
			if !bytes.Equal(was, is) {
				t.Errorf("json %v: %s\nbecame %s", asJSON, was, is)
			}
		}
	}
}
