package admission

import (
	"github.com/argosy-io/argosy/test/kit/membertest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// guides are public texts about running OpenKruise in a fleet. They are not part of the repository.
const guides = "../../../../shared/guides"

// blocks are objects in the guides, and what they are stored as: spec is a part of it, exact where it says anything.
var blocks = []struct {
	guide string // the number that its file begins with
	kind  string
	name  string
	user  string
	spec  string
	warn  []string
	err   string
}{
	{guide: "000", kind: "ResourceInterpreterCustomization", name: "openkruise-cloneset-interpreter",
		warn: []string{"spec.customizations.replicas: stored as replicaResource",
			"spec.customizations.reviseReplica: stored as replicaRevision"}},
	{guide: "000", kind: "ResourceInterpreterCustomization", name: "openkruise-advancedstatefulset-interpreter",
		warn: []string{"spec.customizations.replicas: stored as replicaResource",
			"spec.customizations.reviseReplica: stored as replicaRevision"}},
	{guide: "000", kind: "ResourceInterpreterCustomization", name: "openkruise-sidecarset-interpreter",
		err: "dependencyInterpretation: line 15: 'end' expected near <eof>"},
	{guide: "000", kind: "ResourceInterpreterCustomization", name: "openkruise-uniteddeployment-interpreter"},
	{guide: "000", kind: "PropagationPolicy", name: "sample-cloneset-propagation",
		spec: `{resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: sample-cloneset, namespace: default}]}`},
	{guide: "000", kind: "PropagationPolicy", name: "sidecarset-propagation", user: "admin",
		spec: `{resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, name: sample-sidecarset}]}`,
		warn: []string{"spec.resourceSelectors[0]: SidecarSet is cluster-scoped; it is treated as if selected by a ClusterPropagationPolicy, which you may create"}},
	{guide: "000", kind: "PropagationPolicy", name: "sidecarset-propagation", user: "developer",
		err: `propagationpolicies.policy.karmada.io "sidecarset-propagation" is forbidden: SidecarSet is cluster-scoped; use ClusterPropagationPolicy`},

	{guide: "001", kind: "ResourceInterpreterCustomization", name: "openkruise-cloneset-interpreter",
		spec: `{customizations: {replicaResource: {jsonPath: .spec.replicas}, replicaRevision: {jsonPath: .spec.replicas}, statusReflection: {jsonPath: .status},
			retention: {jsonPaths: [.spec.updateStrategy, .spec.scaleStrategy]}}}`,
		warn: []string{
			"spec.customizations.replicas: stored as replicaResource", "spec.customizations.scale: stored as replicaRevision",
			"spec.customizations.retention.jsonPaths[0]: .spec.updateStrategy keeps the value of the member until the template changes it",
			"spec.customizations.retention.jsonPaths[1]: .spec.scaleStrategy keeps the value of the member until the template changes it"}},
	{guide: "001", kind: "PropagationPolicy", name: "cloneset-propagation",
		spec: `{placement: {clusterAffinity: {clusterNames: [member1, member2]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}`,
		warn: []string{"spec.resourceSelectors[0]: selects every CloneSet, because it has neither name nor labelSelector"}},
	{guide: "001", kind: "ResourceInterpreterCustomization", name: "openkruise-statefulset-interpreter",
		spec: `{customizations: {replicaResource: {jsonPath: .spec.replicas}, replicaRevision: {jsonPath: .spec.replicas}, statusReflection: {jsonPath: .status},
			retention: {jsonPaths: [.spec.updateStrategy, .spec.podManagementPolicy]}}}`,
		warn: []string{
			"spec.customizations.replicas: stored as replicaResource", "spec.customizations.scale: stored as replicaRevision",
			"spec.customizations.retention.jsonPaths[0]: .spec.updateStrategy keeps the value of the member until the template changes it",
			"spec.customizations.retention.jsonPaths[1]: .spec.podManagementPolicy keeps the value of the member until the template changes it"}},

	{guide: "002", kind: "Cluster", name: "member-cluster-1",
		spec: `{zones: [us-west-2a], provider: AWS, region: us-west-2}`,
		warn: []string{"spec.zone: stored as zones",
			"spec.taints[0]: the hub adds and removes cluster.karmada.io/not-ready according to the cluster's condition"}},
	{guide: "002", kind: "PropagationPolicy", name: "nginx-propagation",
		spec: `{placement: {spreadConstraints: [{spreadByField: region, minGroups: 1, maxGroups: 2}, {spreadByField: cluster, minGroups: 1}]}}`,
		warn: []string{"spec.placement.spreadConstraints: stored as that and {spreadByField: cluster, minGroups: 1}, which a region constraint requires"}},
	{guide: "002", kind: "ClusterPropagationPolicy", name: "cluster-nginx-propagation"},
	{guide: "002", kind: "PropagationPolicy", name: "nginx-dynamic",
		spec: `{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}}`,
		warn: []string{
			"spec.placement.replicaScheduling.dynamicWeight: stored as weightPreference.dynamicWeight",
			"spec.placement.replicaScheduling.replicaDivisionPreference: stored as Weighted with weightPreference.dynamicWeight AvailableReplicas"}},
	{guide: "002", kind: "OverridePolicy", name: "nginx-override",
		spec: `{overrideRules: [
			{targetCluster: {clusterNames: [member-cluster-1]}, overriders: {
				imageOverrider: [{component: Registry, operator: replace, value: registry-1.example.com}, {component: Tag, operator: replace, value: v1.0.0-cluster1}],
				plaintext: [{path: /spec/replicas, operator: replace, value: 3}],
				argsOverrider: [{containerName: nginx, operator: add, value: ["--config=/etc/nginx/cluster1.conf"]}],
				resourcesOverrider: [{containerName: nginx, value: {limits: {cpu: "2", memory: 2Gi}, requests: {cpu: 500m, memory: 512Mi}}}]}},
			{targetCluster: {clusterNames: [member-cluster-2]}, overriders: {
				imageOverrider: [{component: Registry, operator: replace, value: registry-2.example.com}],
				labelsOverrider: [{operator: addIfAbsent, value: {cluster: member-cluster-2}}],
				annotationsOverrider: [{operator: addIfAbsent, value: {monitoring.example.com/enabled: "true"}}]}}]}`,
		warn: []string{"spec.overrideRules[0].overriders.replicasOverrider: stored as plaintext, replacing /spec/replicas"}},
	{guide: "002", kind: "OverridePolicy", name: "nginx-jsonpatch",
		warn: []string{"spec.overrideRules[0].overriders.plaintext[0]: add with a list replaces the whole list if a template has one at /spec/template/spec/containers/0/env; " +
			"to keep its entries, add each of yours at /spec/template/spec/containers/0/env/-"}},
	{guide: "002", kind: "PropagationPolicy", name: "duplicated-policy",
		spec: `{placement: {clusterAffinity: {clusterNames: [cluster-a, cluster-b, cluster-c]}, replicaScheduling: {replicaSchedulingType: Duplicated}}}`},
	{guide: "002", kind: "PropagationPolicy", name: "divided-policy"},
	{guide: "002", kind: "PropagationPolicy", name: "region-spread",
		spec: `{placement: {spreadConstraints: [{spreadByField: region, spreadByLabel: "", minGroups: 2, maxGroups: 3}, {spreadByField: cluster, minGroups: 2}]}}`,
		warn: []string{"spec.placement.spreadConstraints: stored as that and {spreadByField: cluster, minGroups: 2}, which a region constraint requires"}},
	{guide: "002", kind: "PropagationPolicy", name: "custom-spread",
		spec: `{placement: {spreadConstraints: [{spreadByLabel: topology.kubernetes.io/zone, minGroups: 2, maxGroups: 3}]}}`},
	{guide: "002", kind: "PropagationPolicy", name: "failover-policy",
		spec: `{propagateDeps: true,
			placement: {clusterAffinities: [{affinityName: active, clusterNames: [cluster-a]}, {affinityName: standby, clusterNames: [cluster-b]}]},
			failover: {application: {decisionConditions: {tolerationSeconds: 300}, purgeMode: Gracefully, gracePeriodSeconds: 600},
				cluster: {purgeMode: Gracefully}}}`,
		warn: []string{
			"spec.placement.replicaScheduling.weightPreference.staticWeightList: stored as clusterAffinities active and standby, because weight 0 means a standby cluster",
			"spec.failover.applicationMigrationPolicy.purgePolicy: stored as purgeMode",
			"spec.failover.applicationMigrationPolicy: stored as application",
			"spec.propagateDeps: set to true, because application failover requires it",
			"spec.failover.cluster: set to purgeMode Gracefully, because applicationMigrationPolicy is also about lost clusters",
			"spec.placement.clusterTolerations: lost clusters are tolerated for 300 s, as applicationMigrationPolicy says"}},
}

func TestGuideObjectsAreStoredCanonically(t *testing.T) {
	if _, err := os.Stat(guides); err != nil {
		t.Skipf("the guides are not here: %v", err)
	}
	for _, b := range blocks {
		t.Run(strings.Join([]string{b.guide, b.kind, b.name, b.user}, "/"), func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h := newHub(t)
				username := b.user
				if username == "" {
					username = "admin"
				}
				submitted := block(t, b.guide, b.kind, b.name)
				if b.err != "" {
					h.refuses(username, submitted, nil, b.err)
					return
				}
				stored, warnings, err := h.write(username, submitted, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(b.warn, warnings); diff != "" {
					t.Errorf("warnings (-want +got):\n%s", diff)
				}
				if b.spec != "" {
					want := object(t, "kind: x\nspec: "+strings.ReplaceAll(b.spec, "\t", " "))
					partly(t, "spec", want.Object["spec"], stored.Object["spec"], 0)
				}
				for _, path := range []string{"customizations.replicas", "customizations.scale", "customizations.reviseReplica"} {
					fields := append([]string{"spec"}, strings.Split(path, ".")...)
					if v, found, _ := unstructured.NestedFieldNoCopy(stored.Object, fields...); found {
						t.Errorf("%s is stored: %v", path, v)
					}
				}

				// kubectl apply of the same file changes nothing.
				patched := stored.DeepCopy()
				overlay(patched.Object, submitted.Object)
				again, _, err := h.write(username, patched, stored)
				if err != nil {
					t.Fatalf("applied again: %v", err)
				}
				if diff := cmp.Diff(stored, again); diff != "" {
					t.Errorf("applied again (-stored +again):\n%s", diff)
				}
			})
		})
	}
}

// partly compares the top two levels by the keys that want has, and all below exactly.
func partly(t *testing.T, path string, want, got any, depth int) {
	t.Helper()
	w, isObject := want.(map[string]any)
	g, ok := got.(map[string]any)
	if !isObject || !ok || depth == 2 {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		return
	}
	for key, value := range w {
		partly(t, path+"."+key, value, g[key], depth+1)
	}
}

// block finds the object in the guide's YAML blocks.
func block(t *testing.T, guide, kind, name string) *unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(guides, guide+"_*.txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("guide %s: %v, %v", guide, files, err)
	}
	parts := strings.Split(readFile(t, files[0]), "```")
	for i := 1; i < len(parts); i += 2 {
		body, isYAML := strings.CutPrefix(parts[i], "yaml\n")
		if !isYAML {
			continue
		}
		for _, document := range strings.Split(body, "\n---\n") {
			if strings.Contains(document, "kind: "+kind+"\n") && strings.Contains(document, "name: "+name+"\n") {
				obj := object(t, document)
				if obj.GetKind() == kind && obj.GetName() == name {
					if obj.GetNamespace() == "" && strings.HasPrefix(kind, "PropagationPolicy") || kind == "OverridePolicy" {
						obj.SetNamespace("default") // as kubectl does
					}
					return obj
				}
			}
		}
	}
	t.Fatalf("guide %s has no %s %s", guide, kind, name)
	return nil
}

// overlay merges as a JSON merge patch does: objects by key, the rest replaced.
func overlay(target, patch map[string]any) {
	for key, value := range patch {
		inside, isObject := value.(map[string]any)
		if present, ok := target[key].(map[string]any); ok && isObject {
			overlay(present, inside)
			continue
		}
		target[key] = value
	}
}
