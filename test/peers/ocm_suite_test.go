package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// suiteHub is what the suite expects of a hub beside its API (CheckHubReady in test/framework/hub.go of its source):
// the objects of an operator, and the Deployments of its controllers, ready as they have no replicas.
const suiteHub = `
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: clustermanagers.operator.open-cluster-management.io},
 spec: {group: operator.open-cluster-management.io, scope: Cluster, names: {kind: ClusterManager, plural: clustermanagers},
  versions: [{name: v1, served: true, storage: true,
   schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
`

const suiteManager = `
{apiVersion: operator.open-cluster-management.io/v1, kind: ClusterManager, metadata: {name: cluster-manager},
 spec: {workConfiguration: {featureGates: [{feature: ManifestWorkReplicaSet, mode: Enable}, {feature: CleanUpCompletedManifestWork, mode: Enable}]},
  registrationConfiguration: {featureGates: [{feature: ClusterImporter, mode: Enable}, {feature: NetworkPolicies, mode: Enable}]}},
 status: {observedGeneration: 1, conditions: [{type: HubRegistrationDegraded, status: "False"},
  {type: HubPlacementDegraded, status: "False"}, {type: Progressing, status: "False"}]}}
`

// suiteMember is the same for the member, whose agents run outside it. A job of the suite lasts 10 seconds, and no time
// on simulated nodes: its pod ends when the suite waits for that.
const suiteMember = `
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: klusterlets.operator.open-cluster-management.io},
 spec: {group: operator.open-cluster-management.io, scope: Cluster, names: {kind: Klusterlet, plural: klusterlets},
  versions: [{name: v1, served: true, storage: true,
   schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: open-cluster-management}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: jobs-last}, spec: {
 matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods/status]}]},
 validations: [{expression: "object.status.phase != 'Succeeded' || !has(object.metadata.labels) || !('job' in object.metadata.labels)"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: jobs-last},
 spec: {policyName: jobs-last, validationActions: [Deny]}}
`

// suiteCluster is the member that each of its specs uses.
const suiteCluster = "e2e-universal-managedcluster"

// suiteFiles are the files of its specs that judge a hub, some together with the agents of a klusterlet, and how many
// specs each has. The others judge its operators (klusterlets, hosted mode), the pods of its example add-on, and what
// the hub does not have (the debugger of placements, other authentications, the gate NilExecutorValidating).
var suiteFiles = map[string]int{"registration_webhook_test.go": 31, "work_webhook_test.go": 5, "placement_test.go": 3,
	"addon_conversion_webhook_test.go": 9, "managed_namespace_test.go": 5, "manifestworkreplicaset_test.go": 3,
	"managedclustersetbinding_test.go": 1, "registration_taint_update_test.go": 1, "work_workload_test.go": 8}

// suiteDiffers has the specs that do not hold, and why that is wanted.
var suiteDiffers = map[string]string{}

func deployment(namespace, name string) string {
	return fmt.Sprintf(`
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {replicas: 0, selector: {matchLabels: {app: a}},
 template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}`, name, namespace)
}

// The specs of Open Cluster Management's own suite that judge a hub hold here, with its agents in the member.
func TestSuiteOfOpenClusterManagement(t *testing.T) {
	program := kit.Peers(t, "ocm-e2e.test", "klusterlet-registration", "klusterlet-work")[0]
	k := newKlusterlet(t, suiteCluster)
	bootstrap, err := os.ReadFile(k.bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
		"name": "bootstrap-hub-kubeconfig", "namespace": "open-cluster-management-agent"},
		"stringData": map[string]string{"kubeconfig": string(bootstrap)}})
	if err != nil {
		t.Fatal(err)
	}
	k.Apply(t, suiteMember+deployment("open-cluster-management", "klusterlet"))
	k.Apply(t, string(secret))
	fleet.Hub.Apply(t, suiteHub)
	controllers := "{apiVersion: v1, kind: Namespace, metadata: {name: open-cluster-management-hub}}"
	for _, name := range []string{"registration-controller", "registration-webhook", "work-webhook", "work-controller",
		"placement-controller", "addon-manager-controller"} {
		controllers += deployment("open-cluster-management-hub", "cluster-manager-"+name)
	}
	fleet.Hub.Apply(t, controllers)
	fleet.Hub.Apply(t, suiteManager)
	k.register(t)

	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"-hub-kubeconfig", fleet.Lab.Hub.Kubeconfig(), "-managed-kubeconfig", k.Kubeconfig,
		"-ginkgo.no-color", "-ginkgo.v", "-ginkgo.json-report", report}
	for file := range suiteFiles {
		args = append(args, "-ginkgo.focus-file", "/"+file)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	suite := k.Run(t, nil, program, args...)
	kit.Eventually(t, "the suite accepts the klusterlet, which stores its kubeconfig", func() string {
		if _, err := os.Stat(filepath.Join(k.dir, "kubeconfig")); err != nil {
			return err.Error()
		}
		return ""
	})
	k.apply(t)
	k.during(ctx, t, suite)
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("the suite wrote no report: %v\n%s", err, suite.Output())
	}
	var suites []struct {
		SpecReports []struct {
			LeafNodeType, LeafNodeText, State string
			ContainerHierarchyTexts           []string
			LeafNodeLocation                  struct{ FileName string }
			RunTime                           time.Duration
			Failure                           struct {
				Message  string
				Location struct{ LineNumber int }
			}
		}
	}
	if err := json.Unmarshal(data, &suites); err != nil {
		t.Fatal(err)
	}
	total, hold := 0, 0
	for _, s := range suites[0].SpecReports {
		file := filepath.Base(s.LeafNodeLocation.FileName)
		name := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), ": ")
		if s.LeafNodeType != "It" && s.State != "passed" {
			t.Errorf("%s: %s at line %d: %s\n%s", s.LeafNodeType, s.State, s.Failure.Location.LineNumber, s.Failure.Message,
				suite.Output())
		}
		if s.LeafNodeType != "It" || s.State == "skipped" {
			continue
		}
		total++
		suiteFiles[file]--
		reason, differs := suiteDiffers[name]
		switch {
		case s.State == "passed" && !differs:
			hold++
		case s.State == "passed":
			t.Errorf("%s holds, but is listed as one that does not (%s)", name, reason)
		case !differs:
			t.Errorf("%s: %s\n%s, line %d, after %s: %s", name, s.State, file, s.Failure.Location.LineNumber, s.RunTime,
				s.Failure.Message)
		}
	}
	for file, rest := range suiteFiles {
		if rest != 0 {
			t.Errorf("%d specs more or less of %s ran", rest, file)
		}
	}
	t.Logf("%d of %d specs of Open Cluster Management hold", hold, total)
}

// during does what the suite expects of a cluster beside the klusterlet, until it ends.
func (k *klusterlet) during(ctx context.Context, t *testing.T, suite *kit.Process) {
	// step reports whether the suite began a step now.
	steps := map[string]bool{}
	step := func(name string) bool {
		is := !steps[name] && strings.Contains(suite.Output(), name)
		steps[name] = steps[name] || is
		return is
	}
	for !suite.Ended() && ctx.Err() == nil {
		switch {
		case step("Wait for job to complete and manifestwork to be marked complete"):
			k.Remove(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "jobs-last")
			time.Sleep(5 * time.Second) // until it is not enforced; then the node looks at the pod again
			var pods corev1.PodList
			if err := k.List(t.Context(), &pods, client.InNamespace("default"), client.HasLabels{"job"}); err != nil {
				t.Error(err)
			}
			for _, p := range pods.Items {
				k.Change(t, "v1", "Pod", p.Namespace, p.Name, func(u *unstructured.Unstructured) {
					u.SetAnnotations(map[string]string{"test": "again"})
				})
			}
		// At its end, the suite waits until the cluster has no ManifestWorks, then deletes it. The hub's own go with it.
		case step("[AfterSuite]"):
			fleet.Hub.Remove(t, clusterGroup, "ManagedCluster", "", suiteCluster)
		default:
			time.Sleep(200 * time.Millisecond)
		}
	}
}
