package convert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
)

const (
	alphaAPI = "addon.open-cluster-management.io/v1alpha1"
	betaAPI  = "addon.open-cluster-management.io/v1beta1"
	// metadata and the fields that both versions have in the same form.
	addonMeta = "kind: ManagedClusterAddOn\nmetadata: {name: proxy, namespace: eu, annotations: {a: b}}\n"
	addonSame = `
  conditions: [{type: Available, status: "True", reason: R, message: M, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  relatedObjects: [{group: apps, resource: deployments, namespace: x, name: web}]
  addOnMeta: {displayName: Proxy, description: It connects.}
  supportedConfigs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs}]
  namespace: proxy
  healthCheck: {mode: Customized}
`
	addonConfigs = "configs: [{group: g, resource: r, namespace: ns, name: c}, {group: \"\", resource: configmaps, name: c}]"
)

const alphaExample = "apiVersion: " + alphaAPI + "\n" + addonMeta + "spec: {installNamespace: proxy, " + addonConfigs +
	"}\nstatus:" + addonSame + `
  configReferences:
  - {group: g, resource: r, namespace: ns, name: c, lastObservedGeneration: 9007199254740993, desiredConfig: {namespace: ns, name: c, specHash: h}, lastAppliedConfig: {namespace: ns, name: b, specHash: i}}
  - {group: "", resource: s, name: d, lastObservedGeneration: 0, desiredConfig: {name: d}}
  registrations:
  - {signerName: kubernetes.io/kube-apiserver-client, subject: {user: u, groups: [g, h]}}
  - {signerName: example.com/proxy, subject: {user: v, groups: [i], organizationUnit: [o, p]}}
  - {signerName: example.com/bare}
  kubeClientDriver: token
`

const betaExample = "apiVersion: " + betaAPI + "\n" + addonMeta + "spec: {" + addonConfigs + "}\nstatus:" + addonSame + `
  configReferences:
  - {group: g, resource: r, lastObservedGeneration: 9007199254740993, desiredConfig: {namespace: ns, name: c, specHash: h}, lastAppliedConfig: {namespace: ns, name: b, specHash: i}}
  - {group: "", resource: s, lastObservedGeneration: 0, desiredConfig: {name: d}}
  registrations:
  - {type: kubeClient, kubeClient: {subject: {user: u, groups: [g, h]}, driver: token}}
  - {type: customSigner, customSigner: {signerName: example.com/proxy, subject: {user: v, groups: [i], organizationUnits: [o, p]}}}
  - {type: customSigner, customSigner: {signerName: example.com/bare}}
`

// annotated returns an example with the annotation that v1beta1 has for the namespace.
func annotated(t *testing.T, text, namespace string) *unstructured.Unstructured {
	t.Helper()
	obj := parse(t, text)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["addon.open-cluster-management.io/v1alpha1-install-namespace"] = namespace
	obj.SetAnnotations(annotations)
	return obj
}

func convertAddon(t *testing.T, obj *unstructured.Unstructured, to string) *unstructured.Unstructured {
	t.Helper()
	out, err := Addon(obj, to)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAddonsAreConvertedInBothDirections(t *testing.T) {
	alpha, beta := parse(t, alphaExample), annotated(t, betaExample, "proxy")
	for to, pair := range map[string][2]*unstructured.Unstructured{betaAPI: {alpha, beta}, alphaAPI: {beta, alpha}} {
		before := pair[0].DeepCopy()
		got := convertAddon(t, pair[0], to)
		if diff := cmp.Diff(pair[1], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", to, diff)
		}
		if diff := cmp.Diff(before, pair[0]); diff != "" {
			t.Errorf("the object itself changed (-before +after):\n%s", diff)
		}
		if same := convertAddon(t, got, to); same != got {
			t.Errorf("%s: an object that has the version is copied", to)
		}
	}
	// What a type does not know, the schema of its version would drop.
	strict(t, alpha, &addonv1alpha1.ManagedClusterAddOn{})
	strict(t, beta, &addonv1beta1.ManagedClusterAddOn{})
}

func TestAddonsSurviveTheWayThroughTheOtherVersion(t *testing.T) {
	const head = "\nkind: ManagedClusterAddOn\nmetadata: {name: x, namespace: eu}\n"
	for story, text := range map[string]string{
		"v1alpha1":            alphaExample,
		"v1alpha1, bare":      "apiVersion: " + alphaAPI + head + "spec: {}\n",
		"v1alpha1, no spec":   "apiVersion: " + alphaAPI + head,
		"v1alpha1, namespace": "apiVersion: " + alphaAPI + head + "spec: {installNamespace: proxy}\n",
		"v1alpha1, csr": "apiVersion: " + alphaAPI + head + "spec: {}\nstatus: {kubeClientDriver: csr, registrations: " +
			"[{signerName: kubernetes.io/kube-apiserver-client}]}\n",
		"v1alpha1, empty lists": "apiVersion: " + alphaAPI + head + "spec: {}\n" +
			"status: {registrations: [], configReferences: []}\n",
		"v1beta1, bare":          "apiVersion: " + betaAPI + head + "spec: {}\n",
		"v1beta1, empty subject": "apiVersion: " + betaAPI + head + "spec: {}\nstatus: {registrations: [{type: kubeClient, kubeClient: {subject: {user: \"\"}}}]}\n",
		"v1beta1, no desired":    "apiVersion: " + betaAPI + head + "spec: {}\nstatus: {configReferences: [{group: g, resource: r, lastObservedGeneration: 1, desiredConfig: null}]}\n",
		"v1beta1, bad namespace": "apiVersion: " + betaAPI + "\nkind: ManagedClusterAddOn\nmetadata: {name: x, annotations: {addon.open-cluster-management.io/v1alpha1-install-namespace: A.b}}\nspec: {}\n",
	} {
		want := parse(t, text)
		other := alphaAPI
		if want.GetAPIVersion() == alphaAPI {
			other = betaAPI
		}
		got := convertAddon(t, convertAddon(t, want, other), want.GetAPIVersion())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-before +after):\n%s", story, diff)
		}
	}
	beta := annotated(t, betaExample, "proxy")
	if diff := cmp.Diff(beta, convertAddon(t, convertAddon(t, beta, alphaAPI), betaAPI)); diff != "" {
		t.Errorf("v1beta1 (-before +after):\n%s", diff)
	}
}

func TestFieldsThatV1beta1LacksAreLost(t *testing.T) {
	const head = "\n" + addonMeta + "spec: {}\nstatus: "
	for story, tc := range map[string]struct{ alpha, beta, back string }{
		"the former configuration": {"{addOnConfiguration: {crdName: a, crName: b}}", "{}", "{}"},
		"the driver of no credentials": {"{kubeClientDriver: csr, registrations: [{signerName: example.com/a}]}",
			"{registrations: [{type: customSigner, customSigner: {signerName: example.com/a}}]}",
			"{registrations: [{signerName: example.com/a}]}"},
		"organization units of credentials for the hub": {
			"{registrations: [{signerName: kubernetes.io/kube-apiserver-client, subject: {user: u, organizationUnit: [o]}}]}",
			"{registrations: [{type: kubeClient, kubeClient: {subject: {user: u}}}]}",
			"{registrations: [{signerName: kubernetes.io/kube-apiserver-client, subject: {user: u}}]}"},
		"the name of a configuration that is not desired": {
			"{configReferences: [{group: g, resource: r, namespace: ns, name: c}]}",
			"{configReferences: [{group: g, resource: r}]}", `{configReferences: [{group: g, resource: r, name: ""}]}`},
	} {
		beta := convertAddon(t, parse(t, "apiVersion: "+alphaAPI+head+tc.alpha), betaAPI)
		if diff := cmp.Diff(parse(t, "apiVersion: "+betaAPI+head+tc.beta), beta); diff != "" {
			t.Errorf("%s: v1beta1 (-want +got):\n%s", story, diff)
		}
		if diff := cmp.Diff(parse(t, "apiVersion: "+alphaAPI+head+tc.back), convertAddon(t, beta, alphaAPI)); diff != "" {
			t.Errorf("%s: back (-want +got):\n%s", story, diff)
		}
	}
}

func TestRegistrationsWithoutASignerHaveNoV1alpha1(t *testing.T) {
	for _, registration := range []string{"{type: customSigner}",
		"{type: customSigner, customSigner: {subject: {user: u}}}", "{type: other, other: {}}",
		"{kubeClient: {driver: csr}}", "text"} {
		text := "apiVersion: %s\n" + addonMeta + "spec: {}\nstatus: {registrations: [%s]}\n"
		got := convertAddon(t, parse(t, fmt.Sprintf(text, betaAPI, registration)), alphaAPI)
		if diff := cmp.Diff(parse(t, fmt.Sprintf(text, alphaAPI, "")), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", registration, diff)
		}
	}
}

const (
	managementHead = "\nkind: ClusterManagementAddOn\nmetadata: {name: proxy, annotations: {a: b}}\n"
	// the fields that both versions have in the same form.
	managementSpec = `
  addOnMeta: {displayName: Proxy, description: It connects.}
  installStrategy:
    type: Placements
    placements:
    - {namespace: ns, name: all, configs: [{group: g, resource: r, namespace: ns, name: c}], rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 25%}}}
`
	managementStatus = `
  installProgressions:
  - namespace: ns
    name: all
    configReferences: [{group: g, resource: r, desiredConfig: {namespace: ns, name: c, specHash: h}, lastKnownGoodConfig: null, lastAppliedConfig: {name: b}}]
    conditions: [{type: Progressing, status: "False", reason: Completed, message: M, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`
	defaultReferences = "[{group: g, resource: r, desiredConfig: {namespace: ns, name: c, specHash: h}}, {group: \"\", resource: s, desiredConfig: null}]"

	alphaManagementExample = "apiVersion: " + alphaAPI + managementHead + "spec:" + managementSpec + `
  supportedConfigs:
  - {group: g, resource: r, defaultConfig: {namespace: ns, name: c}}
  - {group: g, resource: q}
  - {group: "", resource: s, defaultConfig: {name: d}}
status:` + managementStatus + "  defaultconfigReferences: " + defaultReferences + "\n"
	betaManagementExample = "apiVersion: " + betaAPI + managementHead + "spec:" + managementSpec + `
  defaultConfigs:
  - {group: g, resource: r, namespace: ns, name: c}
  - {group: g, resource: q, name: __reserved_no_default__}
  - {group: "", resource: s, name: d}
status:` + managementStatus + "  defaultConfigReferences: " + defaultReferences + "\n"
)

func TestClusterManagementAddOnsAreConvertedInBothDirections(t *testing.T) {
	alpha, beta := parse(t, alphaManagementExample), parse(t, betaManagementExample)
	for to, pair := range map[string][2]*unstructured.Unstructured{betaAPI: {alpha, beta}, alphaAPI: {beta, alpha}} {
		before := pair[0].DeepCopy()
		if diff := cmp.Diff(pair[1], convertAddon(t, pair[0], to)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", to, diff)
		}
		if diff := cmp.Diff(before, pair[0]); diff != "" {
			t.Errorf("the object itself changed (-before +after):\n%s", diff)
		}
	}
	strict(t, alpha, &addonv1alpha1.ClusterManagementAddOn{})
	strict(t, beta, &addonv1beta1.ClusterManagementAddOn{})
}

func TestClusterManagementAddOnsKeepWhatBothVersionsHave(t *testing.T) {
	for story, tc := range map[string]struct{ from, before, after string }{
		"v1alpha1, bare":    {alphaAPI, "spec: {}", "spec: {}"},
		"v1alpha1, no spec": {alphaAPI, "", ""},
		"v1alpha1, empty lists": {alphaAPI, "spec: {supportedConfigs: []}\nstatus: {defaultconfigReferences: []}",
			"spec: {supportedConfigs: []}\nstatus: {defaultconfigReferences: []}"},
		"v1alpha1, the former configuration": {alphaAPI,
			"spec: {addOnConfiguration: {crdName: a, crName: b}, addOnMeta: {displayName: d}}",
			"spec: {addOnMeta: {displayName: d}}"},
		"v1alpha1, no default": {alphaAPI, "spec: {supportedConfigs: [{group: g, resource: r, defaultConfig: null}]}",
			"spec: {supportedConfigs: [{group: g, resource: r}]}"},
		"v1alpha1, the reserved name": {alphaAPI,
			"spec: {supportedConfigs: [{group: g, resource: r, defaultConfig: {name: __reserved_no_default__}}]}",
			"spec: {supportedConfigs: [{group: g, resource: r}]}"},
		"v1beta1, bare": {betaAPI, "spec: {}", "spec: {}"},
		"v1beta1, a namespace without a default": {betaAPI,
			"spec: {defaultConfigs: [{group: g, resource: r, namespace: ns, name: __reserved_no_default__}]}",
			"spec: {defaultConfigs: [{group: g, resource: r, name: __reserved_no_default__}]}"},
		"v1beta1, an empty name": {betaAPI, `spec: {defaultConfigs: [{group: g, resource: r, name: ""}]}`,
			"spec: {defaultConfigs: [{group: g, resource: r, name: __reserved_no_default__}]}"},
	} {
		object := func(content string) *unstructured.Unstructured {
			return parse(t, "apiVersion: "+tc.from+managementHead+content+"\n")
		}
		other := alphaAPI
		if tc.from == alphaAPI {
			other = betaAPI
		}
		got := convertAddon(t, convertAddon(t, object(tc.before), other), tc.from)
		if diff := cmp.Diff(object(tc.after), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", story, diff)
		}
	}
}

func TestKindsThatAreEqualInBothVersionsOnlyChangeTheirVersion(t *testing.T) {
	for kind, spec := range map[string]string{
		"AddOnDeploymentConfig": `{customizedVariables: [{name: A, value: ""}], nodePlacement: {nodeSelector: {a: b}, ` +
			`tolerations: [{operator: Exists}]}, registries: [{mirror: m, source: ""}], proxyConfig: {httpProxy: "http://p", ` +
			`httpsProxy: "https://p", caBundle: YQ==, noProxy: a.b}, agentInstallNamespace: "", resourceRequirements: ` +
			`[{containerID: "*:*:*", resources: {limits: {cpu: "1"}}}]}`,
		"AddOnTemplate": `{addonName: proxy, agentSpec: {workload: {manifests: [{apiVersion: v1, kind: Namespace, metadata: ` +
			`{name: ns}}]}}, registration: [{type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster, ` +
			`currentCluster: {clusterRoleName: r}}, {type: SingleNamespace, singleNamespace: {namespace: ns, roleRef: ` +
			`{apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}}}]}}, {type: CustomSigner, customSigner: {signerName: ` +
			`example.com/a, subject: {user: u, groups: [g], organizationUnit: [o]}, signingCA: {namespace: ns, name: ca}}}]}`,
	} {
		object := func(version string) *unstructured.Unstructured {
			return parse(t, "apiVersion: "+version+"\nkind: "+kind+"\nmetadata: {name: x}\nspec: "+spec+"\n")
		}
		for from, to := range map[string]string{alphaAPI: betaAPI, betaAPI: alphaAPI} {
			if diff := cmp.Diff(object(to), convertAddon(t, object(from), to)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", kind, to, diff)
			}
		}
		if kind == "AddOnTemplate" {
			strict(t, object(alphaAPI), &addonv1alpha1.AddOnTemplate{})
			strict(t, object(betaAPI), &addonv1beta1.AddOnTemplate{})
		} else {
			strict(t, object(alphaAPI), &addonv1alpha1.AddOnDeploymentConfig{})
			strict(t, object(betaAPI), &addonv1beta1.AddOnDeploymentConfig{})
		}
	}
}

func TestReviewsConvertAddons(t *testing.T) {
	data, err := parse(t, alphaExample).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	answer := Review(&apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		DesiredAPIVersion: betaAPI, Objects: []runtime.RawExtension{{Raw: data}}}}).Response
	if answer.Result.Status != metav1.StatusSuccess || !strings.Contains(string(answer.ConvertedObjects[0].Raw), betaAPI) {
		t.Errorf("the answer is %+v", answer)
	}
	for want, text := range map[string]string{
		"AddOnSite has only one version":     "apiVersion: " + alphaAPI + "\nkind: AddOnSite\nmetadata: {name: x}\n",
		"cannot convert ManagedClusterAddOn": "apiVersion: addon.open-cluster-management.io/v2\n" + addonMeta,
	} {
		if _, err := Addon(parse(t, text), betaAPI); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
