package crds

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// served has the names and columns that clients of Karmada find in discovery and in tables.
var served = map[string]struct {
	kind, scope, short, category string
	versions                     []string // the first is stored
	status                       bool
	columns                      string
}{
	"clusters.cluster.karmada.io": {"Cluster", "Cluster", "", "", []string{"v1alpha1"}, true,
		"Version Mode Ready Age Taints Zones Region Provider API-Endpoint Proxy-URL"},
	"propagationpolicies.policy.karmada.io": {"PropagationPolicy", "Namespaced", "pp", "karmada-io", []string{"v1alpha1"},
		false,
		"CONFLICT-RESOLUTION PRIORITY AGE"},
	"clusterpropagationpolicies.policy.karmada.io": {"ClusterPropagationPolicy", "Cluster", "cpp", "karmada-io",
		[]string{"v1alpha1"}, false,
		"CONFLICT-RESOLUTION PRIORITY AGE"},
	"overridepolicies.policy.karmada.io": {"OverridePolicy", "Namespaced", "op", "karmada-io", []string{"v1alpha1"},
		false, ""},
	"clusteroverridepolicies.policy.karmada.io": {"ClusterOverridePolicy", "Cluster", "cop", "karmada-io",
		[]string{"v1alpha1"}, false, ""},
	"clustertaintpolicies.policy.karmada.io": {"ClusterTaintPolicy", "Cluster", "", "karmada-io", []string{"v1alpha1"},
		false, ""},
	"federatedresourcequotas.policy.karmada.io": {"FederatedResourceQuota", "Namespaced", "", "karmada-io",
		[]string{"v1alpha1"}, true, "OVERALL OVERALL_USED"},
	"resourcebindings.work.karmada.io": {"ResourceBinding", "Namespaced", "rb", "karmada-io",
		[]string{"v1alpha2", "v1alpha1"}, true,
		"SCHEDULED FULLYAPPLIED AGE"},
	"clusterresourcebindings.work.karmada.io": {"ClusterResourceBinding", "Cluster", "crb", "karmada-io",
		[]string{"v1alpha2", "v1alpha1"}, true,
		"SCHEDULED FULLYAPPLIED AGE"},
	"works.work.karmada.io": {"Work", "Namespaced", "wk", "karmada-io", []string{"v1alpha1"}, true,
		"WORKLOAD-KIND APPLIED AGE"},
	"workloadrebalancers.apps.karmada.io": {"WorkloadRebalancer", "Cluster", "", "", []string{"v1alpha1"}, true,
		"RESULT ENDED AGE"}, // in Karmada FINISHED AGE, also if it failed
	"resourceregistries.search.karmada.io": {"ResourceRegistry", "Cluster", "", "", []string{"v1alpha1"}, true,
		"READY STATUS AGE"}, // none in Karmada
	"federatedhpas.autoscaling.karmada.io": {"FederatedHPA", "Namespaced", "fhpa", "karmada-io", []string{"v1alpha1"},
		true,
		"REFERENCE-KIND REFERENCE-NAME MINPODS MAXPODS REPLICAS AGE"},
	"cronfederatedhpas.autoscaling.karmada.io": {"CronFederatedHPA", "Namespaced", "cronfhpa", "karmada-io",
		[]string{"v1alpha1"}, true,
		"REFERENCE-KIND REFERENCE-NAME AGE"},
	"resourceinterpretercustomizations.config.karmada.io": {"ResourceInterpreterCustomization", "Cluster", "ric",
		"karmada-io", []string{"v1alpha1"}, false,
		"TARGET-API-VERSION TARGET-KIND AGE"},
	"resourceinterpreterwebhookconfigurations.config.karmada.io": {"ResourceInterpreterWebhookConfiguration", "Cluster",
		"", "karmada-io", []string{"v1alpha1"}, false, ""},
	"manifestworks.work.open-cluster-management.io": {"ManifestWork", "Namespaced", "", "", []string{"v1"},
		true, ""},
	"manifestworkreplicasets.work.open-cluster-management.io": {"ManifestWorkReplicaSet", "Namespaced", "mwrs", "",
		[]string{"v1alpha1"}, true, "Placement Found ManifestWorks Applied"},
	"managedclusters.cluster.open-cluster-management.io": {"ManagedCluster", "Cluster", "mcl mcls", "", []string{"v1"},
		true, "Hub Accepted Managed Cluster URLs Joined Available Age"},
	"managedclustersets.cluster.open-cluster-management.io": {"ManagedClusterSet", "Cluster", "mclset mclsets", "",
		[]string{"v1beta2"}, true, "Empty Age"},
	"managedclustersetbindings.cluster.open-cluster-management.io": {"ManagedClusterSetBinding", "Namespaced",
		"mclsetbinding mclsetbindings", "", []string{"v1beta2"}, true, ""},
	"placements.cluster.open-cluster-management.io": {"Placement", "Namespaced", "", "", []string{"v1beta1"}, true,
		"Succeeded Reason SelectedClusters"},
	"placementdecisions.cluster.open-cluster-management.io": {"PlacementDecision", "Namespaced", "", "",
		[]string{"v1beta1"}, true, ""},
	"addonplacementscores.cluster.open-cluster-management.io": {"AddOnPlacementScore", "Namespaced", "", "",
		[]string{"v1alpha1"}, true, ""},
	"managedclusteraddons.addon.open-cluster-management.io": {"ManagedClusterAddOn", "Namespaced", "mca mcas", "",
		[]string{"v1alpha1", "v1beta1"}, true, "Available Degraded Progressing"},
	"clustermanagementaddons.addon.open-cluster-management.io": {"ClusterManagementAddOn", "Cluster", "cma cmas", "",
		[]string{"v1alpha1", "v1beta1"}, true, "DISPLAY NAME CRD NAME"}, // v1beta1: see columnsOf
	"addondeploymentconfigs.addon.open-cluster-management.io": {"AddOnDeploymentConfig", "Namespaced", "", "",
		[]string{"v1alpha1", "v1beta1"}, false, ""},
	"addontemplates.addon.open-cluster-management.io": {"AddOnTemplate", "Cluster", "", "",
		[]string{"v1alpha1", "v1beta1"}, false, "ADDON NAME"},
	"enclosedmanifests.release.argosy.io": {"EnclosedManifest", "Cluster", "", "", []string{"v1alpha1"}, false,
		"MANIFEST-KIND MANIFEST-NAMESPACE MANIFEST-NAME AGE"},
	"releases.release.argosy.io": {"Release", "Namespaced", "rel", "", []string{"v1alpha1"}, true,
		"PHASE STAGE TARGET PROGRESS REASON AGE"},
	"releasestrategies.release.argosy.io": {"ReleaseStrategy", "Namespaced", "rst", "", []string{"v1alpha1"}, false,
		"FIRST-STAGE ON-FAILURE AGE"},
	"releaseapprovals.release.argosy.io": {"ReleaseApproval", "Namespaced", "rap", "", []string{"v1alpha1"}, false,
		"RELEASE STAGE GATE VERDICT BY AGE"},
	"releaserevisions.release.argosy.io": {"ReleaseRevision", "Namespaced", "rrev", "", []string{"v1alpha1"}, true,
		"KIND TARGET IMAGE BLOCKED AGE"},
	"replicaschedulingpolicies.config.karmada.io": {"ReplicaSchedulingPolicy", "Cluster", "rsp", "karmada-io",
		[]string{"v1alpha1"}, true,
		"CPU MEMORY BALANCED AGE"},
	"serviceexports.multicluster.x-k8s.io": {"ServiceExport", "Namespaced", "svcex", "",
		[]string{"v1alpha1", "v1beta1"}, true, "Age"},
	"serviceimports.multicluster.x-k8s.io": {"ServiceImport", "Namespaced", "svcim", "",
		[]string{"v1alpha1", "v1beta1"}, true, "Type IP Age"},
	"placementdecisions.multicluster.x-k8s.io": {"PlacementDecision", "Namespaced", "", "", []string{"v1alpha1"}, false,
		"Scheduler Clusters Age"},
	"clusterprofiles.multicluster.x-k8s.io": {"ClusterProfile", "Namespaced", "", "", []string{"v1alpha1"}, true,
		"Manager Healthy Version Age"},
	"multiclusterservices.networking.karmada.io": {"MultiClusterService", "Namespaced", "mcs", "karmada-io",
		[]string{"v1alpha1"}, true, ""},
	"remedies.remedy.karmada.io": {"Remedy", "Cluster", "", "karmada-io", []string{"v1alpha1"}, false, ""},
	"multiclusteringresses.networking.karmada.io": {"MultiClusterIngress", "Namespaced", "mci", "karmada-io",
		[]string{"v1alpha1"}, true, ""},
}

// columnsOf has the columns of a version that differ from those of the stored version.
var columnsOf = map[string]string{"clustermanagementaddons.addon.open-cluster-management.io v1beta1": "DISPLAY NAME"}

func TestDefinitionsAreServedAsKarmadasClientsKnowThem(t *testing.T) {
	all := mustAll(t)
	for name, want := range served {
		i := slices.IndexFunc(all, func(c *apiextensionsv1.CustomResourceDefinition) bool { return c.Name == name })
		if i < 0 {
			t.Errorf("no definition of %s", name)
			continue
		}
		crd := all[i]
		equal := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %s is %q, want %q", name, what, got, want)
			}
		}
		equal("kind", crd.Spec.Names.Kind, want.kind)
		equal("scope", string(crd.Spec.Scope), want.scope)
		equal("short names", strings.Join(crd.Spec.Names.ShortNames, " "), want.short)
		equal("categories", strings.Join(crd.Spec.Names.Categories, " "), want.category)
		ofSIG := strings.HasPrefix(name, "service") && crd.Spec.Group == "multicluster.x-k8s.io" // two versions, one schema
		if Converted(crd) != (len(want.versions) > 1 && !ofSIG) {
			t.Errorf("%s: Converted is %v, versions %v", name, Converted(crd), want.versions)
		}
		var versions []string
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				t.Errorf("%s: %s is not served", name, v.Name)
			}
			if v.Storage != (v.Name == want.versions[0]) {
				t.Errorf("%s: storage of %s is %v", name, v.Name, v.Storage)
			}
			if (v.Subresources != nil && v.Subresources.Status != nil) != want.status {
				t.Errorf("%s: status subresource of %s is %v", name, v.Name, !want.status)
			}
			var columns []string
			for _, c := range v.AdditionalPrinterColumns {
				columns = append(columns, c.Name)
			}
			wanted, differ := columnsOf[name+" "+v.Name]
			if !differ {
				wanted = want.columns
			}
			equal("columns of "+v.Name, strings.Join(columns, " "), wanted)
			versions = append(versions, v.Name)
		}
		slices.Sort(versions)
		equal("versions", strings.Join(versions, " "), strings.Join(slices.Sorted(slices.Values(want.versions)), " "))
	}
}

// An API server refuses definitions whose rules cost too much, and keys of lists without a default.
func TestAPIServersAcceptTheDefinitionsOfReleasesAndAddons(t *testing.T) {
	for _, crd := range mustAll(t) {
		if crd.Spec.Group != "release.argosy.io" && crd.Spec.Group != "addon.open-cluster-management.io" {
			continue
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		crd.Status.StoredVersions = []string{"v1alpha1"}
		var internal apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd,
			&internal, nil); err != nil {
			t.Fatal(err)
		}
		for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
			t.Errorf("%s: %v", crd.Name, err)
		}
	}
}

// Karmada's clients write conditions without a reason into Clusters, which Karmada serves without a schema. Its other
// kinds have the schema of Kubernetes.
func TestOnlyClustersHaveConditionsWithoutAReason(t *testing.T) {
	for _, crd := range mustAll(t) {
		for _, v := range crd.Spec.Versions {
			conditions, found := v.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
			if !found || conditions.Items == nil {
				continue
			}
			reason, known := conditions.Items.Schema.Properties["reason"]
			if !known || !slices.Contains(conditions.Items.Schema.Required, "reason") {
				continue // not a condition of Kubernetes
			}
			loose := reason.MinLength == nil && reason.Pattern == ""
			if want := crd.Spec.Names.Kind == "Cluster"; loose != want {
				t.Errorf("%s %s: an empty reason is permitted: %v, want %v", crd.Name, v.Name, loose, want)
			}
			if reason.MaxLength == nil {
				t.Errorf("%s %s: a reason has no longest length", crd.Name, v.Name)
			}
		}
	}
}

func TestAllGivesEachCallerItsOwnCopy(t *testing.T) {
	mustAll(t)[0].Spec.Group = "changed"
	if got := mustAll(t)[0].Spec.Group; got == "changed" {
		t.Error("a caller's change reached the next caller")
	}
}

func TestSchemasHaveTheReferencesDefaultsAndBounds(t *testing.T) {
	type check struct{ crd, path, what, want string }
	for _, c := range []check{
		{"propagationpolicies.policy.karmada.io", "spec.priority", "default", "0"},
		{"propagationpolicies.policy.karmada.io", "spec.preemption", "default", `"Never"`},
		{"propagationpolicies.policy.karmada.io", "spec.preemption", "enum", `"Always" "Never"`},
		{"propagationpolicies.policy.karmada.io", "spec.conflictResolution", "default", `"Abort"`},
		{"propagationpolicies.policy.karmada.io", "spec.conflictResolution", "enum", `"Abort" "Overwrite"`},
		{"propagationpolicies.policy.karmada.io", "spec.schedulerName", "default", `"default-scheduler"`},
		{"propagationpolicies.policy.karmada.io", "spec.activationPreference", "enum", `"Lazy"`},
		{"propagationpolicies.policy.karmada.io", "spec.schedulePriority.priorityClassSource", "enum", `"KubePriorityClass"`},
		{"propagationpolicies.policy.karmada.io", "spec", "required", "resourceSelectors"},
		{"propagationpolicies.policy.karmada.io", "spec.failover.application", "required", "decisionConditions"},
		{"propagationpolicies.policy.karmada.io", "spec.failover.application.purgeMode", "default", `"Gracefully"`},
		{"propagationpolicies.policy.karmada.io", "spec.failover.application.purgeMode", "enum",
			`"Directly" "Gracefully" "Never"`},
		{"propagationpolicies.policy.karmada.io", "spec.failover.application.decisionConditions.tolerationSeconds", "default",
			"300"},
		{"propagationpolicies.policy.karmada.io", "spec.failover.applicationMigrationPolicy.purgeMode", "default", ""},
		{"propagationpolicies.policy.karmada.io", "spec.failover.cluster.purgeMode", "default", `"Gracefully"`},
		{"propagationpolicies.policy.karmada.io", "spec.failover.cluster.purgeMode", "enum", `"Directly" "Gracefully"`},
		{"propagationpolicies.policy.karmada.io", "spec.placement.replicaScheduling.replicaSchedulingType", "default",
			`"Divided"`},
		{"propagationpolicies.policy.karmada.io", "spec.placement.replicaScheduling.replicaDivisionPreference", "enum",
			`"Aggregated" "Weighted"`},
		{"propagationpolicies.policy.karmada.io", "spec.placement.replicaScheduling.weightPreference.dynamicWeight", "enum",
			`"AvailableReplicas"`},
		{"propagationpolicies.policy.karmada.io", "spec.placement.clusterAffinities[].affinityName", "length", "1..32"},
		{"propagationpolicies.policy.karmada.io", "spec.placement.clusterAffinities[].overflowAffinities[].affinityName",
			"length", "1..32"},
		{"propagationpolicies.policy.karmada.io", "spec.placement.spreadConstraints[].spreadByField", "enum",
			`"cluster" "region" "zone" "provider"`},
		{"overridepolicies.policy.karmada.io", "spec.overrideRules[]", "required", "overriders"},
		{"overridepolicies.policy.karmada.io", "spec.overrideRules[].overriders.imageOverrider[].component", "enum",
			`"Registry" "Repository" "Tag"`},
		{"overridepolicies.policy.karmada.io", "spec.overrideRules[].overriders.argsOverrider[].operator", "enum",
			`"add" "remove"`},
		{"overridepolicies.policy.karmada.io", "spec.overrideRules[].overriders.labelsOverrider[].operator", "enum",
			`"add" "remove" "replace" "addIfAbsent"`},
		{"overridepolicies.policy.karmada.io", "spec.overrideRules[].overriders.labelsOverrider[]", "required",
			"operator value"},
		{"clusters.cluster.karmada.io", "spec", "required", "syncMode"},
		{"clusters.cluster.karmada.io", "spec.syncMode", "enum", `"Push" "Pull"`},
		{"clusters.cluster.karmada.io", "spec.resourceModels[].ranges[]", "required", "max min name"},
		{"resourcebindings.work.karmada.io", "spec.conflictResolution", "default", `"Abort"`},
		{"resourcebindings.work.karmada.io", "spec.components[].name", "length", "..32"},
		{"resourcebindings.work.karmada.io", "spec.gracefulEvictionTasks[].reason", "length", "1..32"},
		{"resourcebindings.work.karmada.io", "spec.gracefulEvictionTasks[]", "required", "fromCluster producer reason"},
		{"works.work.karmada.io", "status.manifestStatuses[].identifier", "required", "kind name ordinal resource version"},
		{"works.work.karmada.io", "status.manifestStatuses[].health", "enum", `"Healthy" "Unhealthy" "Unknown"`},
		{"resourceinterpretercustomizations.config.karmada.io", "spec", "required", "customizations target"},
		{"workloadrebalancers.apps.karmada.io", "spec", "required", "workloads"},
		{"workloadrebalancers.apps.karmada.io", "spec.workloads[]", "required", "apiVersion kind name"},
		{"resourceinterpreterwebhookconfigurations.config.karmada.io", "webhooks[]", "required",
			"clientConfig interpreterContextVersions name"},
		{"clustermanagementaddons.addon.open-cluster-management.io", "spec.installStrategy", "default", `{"type":"Manual"}`},
		{"clustermanagementaddons.addon.open-cluster-management.io", "spec.installStrategy.type", "enum",
			`"Manual" "Placements"`},
		{"clustermanagementaddons.addon.open-cluster-management.io", "spec.installStrategy.placements[].rolloutStrategy",
			"default", `{"type":"All"}`},
		{"clustermanagementaddons.addon.open-cluster-management.io", "spec.supportedConfigs[].defaultConfig.name", "length",
			"1.."},
		{"clustermanagementaddons.addon.open-cluster-management.io", "status.defaultconfigReferences[].desiredConfig",
			"required", "name"},
		{"addondeploymentconfigs.addon.open-cluster-management.io", "spec.agentInstallNamespace", "default",
			`"open-cluster-management-agent-addon"`},
		{"addondeploymentconfigs.addon.open-cluster-management.io", "spec.customizedVariables[]", "required", "name"},
		{"addontemplates.addon.open-cluster-management.io", "spec", "required", "addonName agentSpec"},
		{"addontemplates.addon.open-cluster-management.io", "spec.registration[].type", "enum",
			`"KubeClient" "CustomSigner"`},
		{"addontemplates.addon.open-cluster-management.io", "spec.registration[].kubeClient.hubPermissions[].type", "enum",
			`"CurrentCluster" "SingleNamespace"`},
		{"addontemplates.addon.open-cluster-management.io", "spec.registration[].customSigner.signerName", "length",
			"5..571"},
	} {
		s := schemaAt(t, c.crd, c.path)
		var got string
		switch c.what {
		case "default":
			if s.Default != nil {
				got = string(s.Default.Raw)
			}
		case "enum":
			var values []string
			for _, e := range s.Enum {
				values = append(values, string(e.Raw))
			}
			got = strings.Join(values, " ")
		case "required":
			got = strings.Join(s.Required, " ")
		case "length":
			got = bound(s.MinLength) + ".." + bound(s.MaxLength)
		}
		if got != c.want {
			t.Errorf("%s: %s of %s is %s, want %s", c.crd, c.what, c.path, got, c.want)
		}
	}
}

func mustAll(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// schemaAt finds the schema of a dotted path, a[] being the items of a, in the stored version.
func schemaAt(t *testing.T, name, path string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	for _, crd := range mustAll(t) {
		if crd.Name != name {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if !v.Storage {
				continue
			}
			s := *v.Schema.OpenAPIV3Schema
			for _, part := range strings.Split(path, ".") {
				field, list := strings.CutSuffix(part, "[]")
				next, ok := s.Properties[field]
				if !ok {
					t.Fatalf("%s: no %s in %s", name, field, path)
				}
				if s = next; list {
					s = *s.Items.Schema
				}
			}
			return s
		}
	}
	t.Fatalf("no definition of %s", name)
	return apiextensionsv1.JSONSchemaProps{}
}

func bound(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}
