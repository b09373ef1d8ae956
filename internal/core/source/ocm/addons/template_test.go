package addons

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web-system, labels: {"{{KEY}}": "{{CLUSTER_NAME}}-{{ NONE }}{{NONE}}"}}
spec:
  replicas: 2
  template:
    spec:
      nodeSelector: {disk: ssd}
      initContainers: [{name: init, image: quay.io/web/init:1}]
      containers: [{name: web, image: "quay.io/web/web:{{TAG}}", env: [{name: A, value: "{{B}}"}]}]`

// rendered renders manifests in YAML, and returns them by kind.
func rendered(t *testing.T, spec addonv1alpha1.AddOnTemplateSpec, s addonv1alpha1.AddOnDeploymentConfigSpec,
	manifests ...string) (map[string]*unstructured.Unstructured, ocmv1.ManifestWorkSpec, string) {
	t.Helper()
	for _, text := range manifests {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		m := ocmv1.Manifest{}
		m.Raw = raw
		spec.AgentSpec.Workload.Manifests = append(spec.AgentSpec.Workload.Manifests, m)
	}
	out, namespace, err := render("web", "eu", spec, s)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, m := range out.Workload.Manifests {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(m.Raw); err != nil {
			t.Fatal(err)
		}
		all[obj.GetKind()] = obj
	}
	return all, out, namespace
}

// path returns the value at a path such as spec.containers.0.image, as YAML.
func path(v any, at string) string {
	for part := range strings.SplitSeq(at, ".") {
		switch of := v.(type) {
		case map[string]any:
			v = of[part]
		case []any:
			n := 0
			if _, err := fmt.Sscan(part, &n); err != nil || n >= len(of) {
				return "none"
			}
			v = of[n]
		default:
			return "none"
		}
	}
	if v == nil {
		return "none"
	}
	data, _ := json.Marshal(v)
	return strings.Trim(string(data), `"`)
}

func TestTemplatesAreRendered(t *testing.T) {
	const pod = "spec.template.spec."
	kube := addonv1alpha1.RegistrationSpec{Type: addonv1alpha1.RegistrationKubeClient}
	custom := addonv1alpha1.RegistrationSpec{Type: addonv1alpha1.RegistrationCustomSigner,
		CustomSigner: &addonv1alpha1.CustomSignerRegistration{SignerName: "example.com/signer"}}
	for story, tc := range map[string]struct {
		registration []addonv1alpha1.RegistrationSpec
		settings     addonv1alpha1.AddOnDeploymentConfigSpec
		manifest     string // empty: deployment
		// want are values of the Deployment by their paths.
		want map[string]string
	}{
		"variables": {settings: addonv1alpha1.AddOnDeploymentConfigSpec{
			CustomizedVariables: []addonv1alpha1.CustomizedVariable{
				{Name: "TAG", Value: "1"}, {Name: "KEY", Value: "app"}, {Name: "B", Value: `x","y":"{{TAG}}`},
				{Name: "TAG", Value: "2"}, {Name: "CLUSTER_NAME", Value: "forged"}}},
			want: map[string]string{pod + "containers.0.image": "quay.io/web/web:2", "metadata.labels.app": "eu-",
				pod + "containers.0.env.0.value": `x\",\"y\":\"{{TAG}}`, pod + "containers.0.env.1.value": "eu",
				pod + "containers.0.env.1.name": "CLUSTER_NAME", pod + "containers.0.env.2.value": "web-system",
				"spec.replicas": "2", pod + "volumes": "none", "status": "none",
				"spec.template.metadata.creationTimestamp": "none"}},
		"credentials for the hub": {registration: []addonv1alpha1.RegistrationSpec{kube},
			want: map[string]string{pod + "volumes": `[{"name":"hub-kubeconfig","secret":{"secretName":"web-hub-kubeconfig"}}]`,
				pod + "containers.0.volumeMounts": `[{"mountPath":"/managed/hub-kubeconfig","name":"hub-kubeconfig"}]`,
				pod + "containers.0.env.2.value":  "/managed/hub-kubeconfig/kubeconfig", pod +
					"containers.0.env.2.name": "HUB_KUBECONFIG"}},
		"a signer": {registration: []addonv1alpha1.RegistrationSpec{custom}, want: map[string]string{
			pod + "volumes.0.name":                        "cert-example-com-signer",
			pod + "volumes.0.secret.secretName":           "web-example.com-signer-client-cert",
			pod + "containers.0.volumeMounts.0.mountPath": "/managed/example.com-signer"}},
		"nodes": {settings: addonv1alpha1.AddOnDeploymentConfigSpec{NodePlacement: &addonv1alpha1.NodePlacement{
			Tolerations: []corev1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists}}}},
			want: map[string]string{pod + "tolerations": `[{"key":"edge","operator":"Exists"}]`,
				pod + "nodeSelector.disk": "ssd"}},
		"other nodes": {settings: addonv1alpha1.AddOnDeploymentConfigSpec{NodePlacement: &addonv1alpha1.NodePlacement{
			NodeSelector: map[string]string{"gpu": "yes"}}}, want: map[string]string{pod + "nodeSelector": `{"gpu":"yes"}`}},
		"a mirror": {settings: addonv1alpha1.AddOnDeploymentConfigSpec{Registries: []addonv1alpha1.ImageMirror{
			{Source: "quay.io/web/", Mirror: "local/mirror/"}, {Source: "docker.io", Mirror: "other"}}},
			want: map[string]string{pod + "containers.0.image": "local/mirror/web:", pod +
				"initContainers.0.image": "local/mirror/init:1"}},
		"a mirror of all": {settings: addonv1alpha1.AddOnDeploymentConfigSpec{Registries: []addonv1alpha1.ImageMirror{
			{Mirror: "local"}}}, want: map[string]string{pod + "initContainers.0.image": "local/init:1"}},
		"resources": {settings: addonv1alpha1.AddOnDeploymentConfigSpec{
			ResourceRequirements: []addonv1alpha1.ContainerResourceRequirements{
				{ContainerID: "*:*:*", Resources: limits("1")}, {ContainerID: "deployments:web:web", Resources: limits("2")},
				{ContainerID: "daemonsets:web:web", Resources: limits("3")}}},
			want: map[string]string{pod + "containers.0.resources.limits.cpu": "2",
				pod + "initContainers.0.resources.limits.cpu": "1"}},
		"a proxy": {settings: addonv1alpha1.AddOnDeploymentConfigSpec{ProxyConfig: addonv1alpha1.ProxyConfig{
			HTTPSProxy: "https://p", CABundle: []byte("ca")}},
			want: map[string]string{pod + "volumes.0.configMap.name": "web-proxy-ca",
				pod + "containers.0.env.1.name": "CA_BUNDLE_FILE_PATH", pod + "containers.0.env.3.name": "HTTPS_PROXY",
				pod + "containers.0.env.5.name": "https_proxy"}},
		"a namespace by a variable": {manifest: strings.Replace(deployment, "web-system", "'{{NS}}'", 1),
			settings: addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{
				{Name: "NS", Value: "edge"}}},
			want: map[string]string{"metadata.namespace": "edge", pod + "containers.0.env.2.value": "edge"}},
		"the namespace by default": {manifest: strings.Replace(deployment, "web-system", "'{{INSTALL_NAMESPACE}}'", 1),
			want: map[string]string{"metadata.namespace": "open-cluster-management-agent-addon"}},
		"a namespace": {settings: addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: "edge"},
			want: map[string]string{"metadata.namespace": "edge", pod + "containers.0.env.2.value": "edge"}},
	} {
		t.Run(story, func(t *testing.T) {
			objects, spec, _ := rendered(t, addonv1alpha1.AddOnTemplateSpec{Registration: tc.registration}, tc.settings,
				cmp.Or(tc.manifest, deployment))
			for at, want := range tc.want {
				if got := path(objects["Deployment"].Object, at); got != want {
					t.Errorf("%s is %s, want %s", at, got, want)
				}
			}
			if c := spec.ManifestConfigs; len(c) != 1 || c[0].ResourceIdentifier.Resource != "deployments" ||
				c[0].FeedbackRules[0].Type != ocmv1.FeedbackWellKnownStatus {
				t.Errorf("feedback rules are %+v", c)
			}
		})
	}
}

func limits(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

func TestOtherManifestsOfTemplates(t *testing.T) {
	settings := addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: "edge",
		ProxyConfig: addonv1alpha1.ProxyConfig{CABundle: []byte("ca")}}
	objects, spec, namespace := rendered(t, addonv1alpha1.AddOnTemplateSpec{}, settings,
		`{apiVersion: v1, kind: Namespace, metadata: {name: web-system}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: web},
		  subjects: [{kind: ServiceAccount, name: web, namespace: web-system}]}`,
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: web-system}, spec: {template: {spec: {}}}}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x, annotations: {
		  addon.open-cluster-management.io/deletion-orphan: ""}}, spec: {description: long, properties: {
		  description: {type: string, description: long}}}}`)
	for at, want := range map[string]string{
		"Namespace metadata.name": "edge", "ClusterRoleBinding subjects.0.namespace": "edge",
		"DaemonSet metadata.namespace": "edge", "ConfigMap metadata.namespace": "edge",
		"ConfigMap data":                         `{"ca-bundle.crt":"ca"}`,
		"CustomResourceDefinition metadata.name": "x",
		"CustomResourceDefinition spec":          `{"properties":{"description":{"type":"string"}}}`,
	} {
		kind, path2, _ := strings.Cut(at, " ")
		if got := path(objects[kind].Object, path2); got != want {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
	}
	if namespace != "edge" {
		t.Errorf("the namespace is %q", namespace)
	}
	if o := spec.DeleteOption; o == nil || o.PropagationPolicy != ocmv1.DeleteSelectivelyOrphan ||
		len(o.SelectivelyOrphan.OrphaningRules) != 1 ||
		o.SelectivelyOrphan.OrphaningRules[0].Resource != "customresourcedefinitions" {
		t.Errorf("the delete option is %+v", o)
	}
}

func TestAnObjectThatStaysKeepsTheRestAsItIs(t *testing.T) {
	const kept = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: y, annotations: {
		addon.open-cluster-management.io/deletion-orphan: ""}}}`
	for _, tc := range []struct {
		is   *ocmv1.DeleteOption
		want string
	}{
		{nil, "SelectivelyOrphan 1"},
		{&ocmv1.DeleteOption{PropagationPolicy: ocmv1.DeleteOrphan}, "Orphan 0"},
		{&ocmv1.DeleteOption{PropagationPolicy: ocmv1.DeleteForeground}, "SelectivelyOrphan 1"},
		{&ocmv1.DeleteOption{PropagationPolicy: ocmv1.DeleteSelectivelyOrphan, SelectivelyOrphan: &ocmv1.SelectivelyOrphan{
			OrphaningRules: []ocmv1.OrphaningRule{{Name: "z"}}}}, "SelectivelyOrphan 2"},
	} {
		spec := addonv1alpha1.AddOnTemplateSpec{}
		spec.AgentSpec.DeleteOption = tc.is
		_, out, _ := rendered(t, spec, addonv1alpha1.AddOnDeploymentConfigSpec{}, kept)
		n := 0
		if s := out.DeleteOption.SelectivelyOrphan; s != nil {
			n = len(s.OrphaningRules)
		}
		if got := fmt.Sprintf("%s %d", out.DeleteOption.PropagationPolicy, n); got != tc.want {
			t.Errorf("%+v becomes %s, want %s", tc.is, got, tc.want)
		}
	}
}

func TestMistakesOfTemplatesAreErrors(t *testing.T) {
	for want, manifest := range map[string]string{
		"before an add-on is deleted are not supported": `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j",` +
			`"annotations":{"addon.open-cluster-management.io/addon-pre-delete":""}}}`,
		"manifests[0]":  `{"kind":"ConfigMap"`,
		"spec.template": `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":"x"}}}}`,
	} {
		m := ocmv1.Manifest{}
		m.Raw = []byte(manifest)
		spec := addonv1alpha1.AddOnTemplateSpec{}
		spec.AgentSpec.Workload.Manifests = []ocmv1.Manifest{m}
		if _, _, err := render("web", "eu", spec, addonv1alpha1.AddOnDeploymentConfigSpec{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestSettingsReplaceThoseBefore(t *testing.T) {
	f := newFleet("a", "p: a")
	for name, s := range map[string]addonv1alpha1.AddOnDeploymentConfigSpec{
		"one": {AgentInstallNamespace: "one", Registries: []addonv1alpha1.ImageMirror{{Mirror: "m"}},
			ProxyConfig: addonv1alpha1.ProxyConfig{NoProxy: "x"}},
		"two": {AgentInstallNamespace: "two", NodePlacement: &addonv1alpha1.NodePlacement{}},
	} {
		f.Settings[addonv1alpha1.ConfigReferent{Namespace: "ns", Name: name}] = &addonv1alpha1.AddOnDeploymentConfig{Spec: s}
		f.Addon.Spec.DefaultConfigs = append(f.Addon.Spec.DefaultConfigs, addonv1alpha1.AddOnConfig{
			ConfigGroupResource: settings, Namespace: "ns", Name: name})
	}
	slices.SortFunc(f.Addon.Spec.DefaultConfigs, func(a, b addonv1alpha1.AddOnConfig) int {
		return strings.Compare(a.Name,
			b.Name)
	})
	f.run(t)
	_, got, err := f.configured(f.Installed[0].Status.ConfigReferences)
	if err != nil || got.AgentInstallNamespace != "two" || len(got.Registries) != 1 || got.NodePlacement == nil ||
		got.ProxyConfig.NoProxy != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
	delete(f.Settings, addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "one"})
	if _, _, err := f.configured(f.Installed[0].Status.ConfigReferences); err == nil ||
		err.Error() != "AddOnDeploymentConfig ns/one does not exist" {
		t.Errorf("got %v", err)
	}
}

func TestAgentsGetTheRightsOfTheirTemplate(t *testing.T) {
	f := newFleet("a b", "p: a b")
	f.Templates["v1"].Spec.Registration = []addonv1alpha1.RegistrationSpec{
		{Type: addonv1alpha1.RegistrationKubeClient, KubeClient: &addonv1alpha1.KubeClientRegistration{
			HubPermissions: []addonv1alpha1.HubPermission{
				{Type: addonv1alpha1.PermissionCurrentCluster,
					CurrentCluster: &addonv1alpha1.CurrentClusterPermission{ClusterRoleName: "reader"}},
				{Type: addonv1alpha1.PermissionSingleNamespace, SingleNamespace: &addonv1alpha1.SingleNamespacePermission{
					Namespace: "shared", RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "writer"}}}}}},
		{Type: addonv1alpha1.RegistrationCustomSigner,
			CustomSigner: &addonv1alpha1.CustomSignerRegistration{SignerName: "example.com/x"}}}
	d := f.run(t)
	var got []string
	for _, b := range d.Bindings {
		if b.Labels[clusterv1.ClusterNameLabel] == "" {
			t.Errorf("%s lacks the label without which the hub's cache does not have it", b.Name)
		}
		got = append(got, fmt.Sprintf("%s/%s %s %s: %s", b.Namespace, b.Name, b.RoleRef.Kind, b.RoleRef.Name,
			b.Subjects[0].Name))
	}
	want := []string{}
	for _, c := range []string{"a", "b"} {
		user := ": system:open-cluster-management:cluster:" + c + ":addon:web:agent:web-agent"
		want = append(want, c+"/open-cluster-management:web:clusterrole:agent:reader:"+c+" ClusterRole reader"+user,
			"shared/open-cluster-management:web:role:agent:writer:"+c+" Role writer"+user)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r := f.Installed[0].Status.Registrations
	if len(r) != 2 || r[0].Type != addonv1beta1.KubeClient || !slices.Contains(r[0].KubeClient.Subject.Groups,
		"system:open-cluster-management:cluster:a:addon:web") || r[1].CustomSigner.SignerName != "example.com/x" ||
		r[1].CustomSigner.Subject.Name == "" {
		t.Errorf("the registrations are %+v", r)
	}
	// The klusterlet sets the driver, which stays.
	f.Installed[0].Status.Registrations[0].KubeClient.Driver = "csr"
	f.run(t)
	if f.Installed[0].Status.Registrations[0].KubeClient.Driver != "csr" {
		t.Error("the driver is gone")
	}
	// One that uses tokens sets the user as well, which stays.
	f.Installed[0].Status.Registrations[0].KubeClient.Driver = "token"
	f.Installed[0].Status.Registrations[0].KubeClient.Subject = addonv1alpha1.User{
		Name: "system:serviceaccount:a:web-agent"}
	f.run(t)
	if got := f.Installed[0].Status.Registrations[0].KubeClient.Subject.Name; got != "system:serviceaccount:a:web-agent" ||
		!slices.ContainsFunc(f.Installed[0].Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == addonv1alpha1.RegistrationApplied && strings.Contains(c.Message, "requests tokens")
		}) {
		t.Errorf("the user is %s, the conditions are %+v", got, f.Installed[0].Status.Conditions)
	}
	f.Installed[0].Status.Registrations[0].KubeClient.Driver = "csr"
	// A mistake keeps the rights.
	f.Templates["v1"].Spec.AddonName = "other"
	if d := f.run(t); len(d.Bindings) != 0 || !slices.Equal(d.Kept, []string{"a", "b"}) {
		t.Errorf("bindings %v, kept %v", d.Bindings, d.Kept)
	}
	// A cluster without a klusterlet cannot request credentials.
	f.Templates["v1"].Spec.AddonName = "web"
	f.Clusters["a"].Annotations = map[string]string{"argosy.io/derived-from": "Cluster"}
	f.run(t)
	c := f.Installed[0].Status.Conditions
	if i := slices.IndexFunc(c, func(c metav1.Condition) bool { return c.Type == addonv1alpha1.ManifestApplied }); i < 0 ||
		!strings.Contains(c[i].Message, "needs a klusterlet") {
		t.Errorf("conditions are %+v", c)
	}
}

func TestHealthOfAnAddon(t *testing.T) {
	value := func(name string, n int64) ocmv1.FeedbackValue {
		return ocmv1.FeedbackValue{Name: name, Value: ocmv1.FieldValue{Type: ocmv1.ValueInteger, Integer: ptr.To(n)}}
	}
	for story, tc := range map[string]struct {
		resource  string
		available metav1.ConditionStatus // of the ManifestWork; empty for none
		none      bool                   // there is no ManifestWork
		values    []ocmv1.FeedbackValue
		silent    bool
		want      string
	}{
		"no ManifestWork": {none: true, want: "Unknown WorkNotFound"},
		"not applied yet": {want: "Unknown WorkNotApplied"},
		"not available":   {available: "False", want: "False WorkNotApplied"},
		"no answer":       {available: "True", want: "Unknown NoProbeResult"},
		"a ready pod": {available: "True", values: []ocmv1.FeedbackValue{value("ReadyReplicas", 1), value("Replicas", 3)},
			want: "True ProbeAvailable"},
		"no pod wanted": {available: "True", values: []ocmv1.FeedbackValue{value("Replicas", 0)},
			want: "True ProbeAvailable"},
		"no ready pod": {available: "True", values: []ocmv1.FeedbackValue{value("Replicas", 3)},
			want: "False ProbeUnavailable"},
		"no number wanted": {available: "True", values: []ocmv1.FeedbackValue{value("ReadyReplicas", 3)},
			want: "False ProbeUnavailable"},
		"a node is missing": {resource: "daemonsets", available: "True", values: []ocmv1.FeedbackValue{
			value("NumberReady", 2), value("DesiredNumberScheduled", 3)}, want: "False ProbeUnavailable"},
		"all nodes": {resource: "daemonsets", available: "True", values: []ocmv1.FeedbackValue{
			value("NumberReady", 3), value("DesiredNumberScheduled", 3)}, want: "True ProbeAvailable"},
		"the cluster is silent": {available: "True", silent: true, want: ""},
		"other objects alone":   {resource: "configmaps", available: "True", want: "True ProbeAvailable"},
	} {
		t.Run(story, func(t *testing.T) {
			if tc.resource == "" {
				tc.resource = "deployments"
			}
			id := ocmv1.ResourceIdentifier{Group: "apps", Resource: tc.resource, Namespace: "ns", Name: "web"}
			mc, mw := &clusterv1.ManagedCluster{}, &ocmv1.ManifestWork{}
			if tc.silent {
				mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterAvailable, Status: "Unknown"}}
			}
			if tc.available != "" {
				mw.Status.Conditions = []metav1.Condition{{Type: ocmv1.Available, Status: tc.available}}
			}
			mw.Status.ResourceStatus.Manifests = []ocmv1.ManifestCondition{{ResourceMeta: ocmv1.ManifestResourceMeta{
				Group: id.Group, Resource: id.Resource, Namespace: id.Namespace, Name: id.Name},
				StatusFeedbacks: ocmv1.StatusFeedbackResult{Values: tc.values}}}
			if tc.none {
				mw = nil
			}
			got := ""
			available("web", mc, mw, ocmv1.ManifestWorkSpec{ManifestConfigs: []ocmv1.ManifestConfigOption{
				{ResourceIdentifier: id}}}, func(kind string, status metav1.ConditionStatus, reason, _ string) {
				got = fmt.Sprintf("%s %s", status, reason)
			})
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestClustersHaveLabelsOfTheirAddons(t *testing.T) {
	var all []addonv1beta1.ManagedClusterAddOn
	for _, status := range []metav1.ConditionStatus{"True", "False", "Unknown", ""} {
		addon := addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "x" + strings.ToLower(string(status))}}
		if status != "" {
			addon.Status.Conditions = []metav1.Condition{{Type: addonv1alpha1.Available, Status: status}}
		}
		all = append(all, addon)
	}
	all = append(all, addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "going",
		DeletionTimestamp: &metav1.Time{}}})
	const want = "map[feature.open-cluster-management.io/addon-x:unreachable " +
		"feature.open-cluster-management.io/addon-xfalse:unhealthy " +
		"feature.open-cluster-management.io/addon-xtrue:available " +
		"feature.open-cluster-management.io/addon-xunknown:unreachable]"
	if got := fmt.Sprint(FeatureLabels(all)); got != want {
		t.Errorf("got %s", got)
	}
}
