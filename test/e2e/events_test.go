package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// The tools of Karmada's users wait for these events, and not for conditions.
func TestAllSuccessEventsOnRequest(t *testing.T) {
	kit.Long(t)
	f, err := kit.StartWith(lab.Options{Dir: t.TempDir(), HubArgs: []string{"--success-events"},
		Members: []sim.Member{{Name: "m1", Nodes: 1}, {Name: "m2", Nodes: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the last of all: what was applied is removed before
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	f.Hub.Apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Service, name: web}]
  placement: {clusterAffinity: {clusterNames: [m1]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: export, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport}]
  placement: {clusterAffinity: {clusterNames: [m1]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: import, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport}]
  placement: {clusterAffinity: {clusterNames: [m2]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: labelled, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: nginx, ports: [{name: http, containerPort: 80}]}]
      volumes: [{name: v, configMap: {name: settings}}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceExport
metadata: {name: web, namespace: shop}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: web, namespace: shop}
spec: {type: ClusterSetIP, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: both, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {name: both, namespace: shop}
spec: {types: [CrossCluster], providerClusters: [{name: m1}], consumerClusters: [{name: m2}]}
`)
	for _, want := range []string{
		"Cluster m1 CreateExecutionSpaceSucceed",
		"Cluster m1 SyncImpersonationConfigSucceed",
		"Deployment web ApplyPolicySucceed",
		"Deployment web GetReplicasSucceed",
		"Deployment web GetDependenciesSucceed",
		"Deployment web ApplyOverridePolicySucceed",
		"Deployment web ScheduleBindingSucceed",
		"Deployment web SyncWorkSucceed",
		"Deployment web AggregateStatusSucceed",
		"ResourceBinding web-deployment ScheduleBindingSucceed",
		"ResourceBinding web-deployment SyncScheduleResultToDependenciesSucceed",
		"ResourceBinding web-deployment SyncWorkSucceed",
		"ResourceBinding web-deployment AggregateStatusSucceed",
		"Work * WorkDispatching",
		"Work * SyncSucceed",
		"Work * ReflectStatusSucceed",
		"Work * InterpretHealthSucceed",
		"ServiceImport web SyncDerivedServiceSucceed",
		"MultiClusterService both SyncServiceSucceed",
		"MultiClusterService both DispatchEndpointSliceSucceed",
	} {
		kit.Eventually(t, want+" is told", func() string {
			var all corev1.EventList
			if err := f.Hub.List(t.Context(), &all); err != nil {
				return err.Error()
			}
			words := strings.Fields(want)
			var others []string
			for _, e := range all.Items {
				if e.InvolvedObject.Kind != words[0] || words[1] != "*" && e.InvolvedObject.Name != words[1] {
					continue
				}
				if e.Reason == words[2] && e.Type == corev1.EventTypeNormal && e.Message != "" {
					return ""
				}
				others = append(others, e.Reason)
			}
			return fmt.Sprintf("only %v are", others)
		})
	}
}

// kubectl describe shows the events of a policy.
func TestPolicySaysWhatItClaimedAndWhatFailed(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	for _, name := range []string{"a", "b"} {
		fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}", name, ns))
	}
	for name, rest := range map[string]string{"a": "", "b": ", dependentOverrides: [missing]"} {
		fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, "+
			"metadata: {name: %[1]s, namespace: %[2]s}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, "+
			"name: %[1]s}]%[3]s}}", name, ns, rest))
	}
	for _, want := range []struct{ policy, reason, message string }{
		{"a", "ApplyPolicySucceed", "Claimed ConfigMap " + ns + "/a"},
		{"b", "ApplyPolicyFailed", "ConfigMap " + ns + "/b: policy(" + ns + "/b) waits for the override policies that it " +
			"depends on: missing"},
	} {
		kit.Eventually(t, "policy "+want.policy+" has its event", func() string {
			got := fleet.Hub.Messages(t, "PropagationPolicy", ns, want.policy, want.reason)
			if len(got) != 1 || got[0] != want.message {
				return fmt.Sprintf("it has %q, want %q", got, want.message)
			}
			return ""
		})
	}
}
