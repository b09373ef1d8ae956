package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/test/kit/membertest"
)

func addonObject(t *testing.T, kind, metadata, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: `+kind+`, metadata: {name:
		web`+metadata+
		`}, spec: `+spec+`}`)
}

// The hub installs an add-on with its own rights in whatever clusters Placements choose.
func TestAddonsNeedRightsInAllClusters(t *testing.T) {
	const create, remove, inCluster = "create works ", "delete works ", "create works karmada-es-eu"
	cma := func(spec string) *unstructured.Unstructured {
		return addonObject(t, "ClusterManagementAddOn", "", spec)
	}
	is := cma(`{installStrategy: {type: Placements, placements: [{namespace: ns, name: p, rolloutStrategy: {type:
		All}}]}}`)
	more := cma(`{installStrategy: {type: Placements, placements: [{namespace: ns, name: p}, {namespace: ns, name: q}]}}`)
	beta := is.DeepCopy()
	beta.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
	self, labelled := is.DeepCopy(), is.DeepCopy()
	self.SetAnnotations(map[string]string{"addon.open-cluster-management.io/lifecycle": "self"})
	labelled.SetLabels(map[string]string{"a": "b"})
	template := addonObject(t, "AddOnTemplate", "", `{addonName: web, agentSpec: {workload: {manifests: [
		{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}}`)
	settings := addonObject(t, "AddOnDeploymentConfig", ", namespace: shop", `{registries: [{mirror: evil.example.com}]}`)
	plain := addonObject(t, "ManagedClusterAddOn", ", namespace: eu", `{}`)
	configured := addonObject(t, "ManagedClusterAddOn", ", namespace: eu",
		`{configs: [{group: g, resource: r, name: none}]}`)
	installed := plain.DeepCopy()
	installed.SetFinalizers([]string{"argosy.io/addon"})
	owned, annotated, hosted, moved := installed.DeepCopy(), plain.DeepCopy(), plain.DeepCopy(), plain.DeepCopy()
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}})
	annotated.SetAnnotations(map[string]string{"addon.open-cluster-management.io/values": "{}"})
	hosted.SetAnnotations(map[string]string{"addon.open-cluster-management.io/hosting-cluster-name": "us"})
	if err := unstructured.SetNestedField(moved.Object, "kube-system", "spec", "installNamespace"); err != nil {
		t.Fatal(err)
	}
	cluster := managedCluster(t, "eu", "default", denied)
	configuring := cluster.DeepCopy()
	configuring.SetAnnotations(annotated.GetAnnotations())
	long := is.DeepCopy()
	long.SetName(strings.Repeat("a", 58))
	const refusal = "you need permission to "
	for story, tc := range map[string]struct {
		rights   []string
		is, was  *unstructured.Unstructured
		deletion bool
		want     string
	}{
		"an add-on":                      {nil, is, nil, false, refusal + "create works.work.karmada.io in all namespaces"},
		"an add-on of v1beta1":           {nil, beta, nil, false, refusal + "create works"},
		"with the right for a cluster":   {[]string{inCluster}, is, nil, false, refusal + "create"},
		"with the right":                 {[]string{create}, is, nil, false, ""},
		"another Placement":              {nil, more, is, false, refusal + "create"},
		"a Placement is taken away":      {[]string{create}, is, more, false, refusal + "delete"},
		"that with both rights":          {[]string{create, remove}, is, more, false, ""},
		"the hub stops managing it":      {nil, self, is, false, refusal + "create"},
		"the hub begins to manage it":    {nil, is, self, false, refusal + "create"},
		"a label":                        {nil, labelled, is, false, ""},
		"a deletion":                     {[]string{create}, nil, is, true, refusal + "delete"},
		"a deletion with the right":      {[]string{remove}, nil, is, true, ""},
		"a template":                     {nil, template, nil, false, refusal + "create"},
		"a template with the right":      {[]string{create}, template, nil, false, ""},
		"settings, which choose images":  {nil, settings, nil, false, refusal + "create"},
		"settings with the right":        {[]string{create}, settings, nil, false, ""},
		"in a cluster, as it is offered": {nil, plain, nil, false, ""},
		"in a cluster, configured": {nil, configured, nil, false, refusal +
			"create works.work.karmada.io in the namespace karmada-es-eu"},
		"configured later":           {nil, configured, plain, false, refusal + "create"},
		"no longer configured":       {nil, plain, configured, false, refusal + "create"},
		"configured, with the right": {[]string{inCluster}, configured, plain, false, ""},
		"the finalizer goes":         {[]string{inCluster}, plain, installed, false, refusal + "delete works"},
		"another owner":              {[]string{inCluster}, owned, installed, false, refusal + "delete works"},
		"settings by annotations":    {nil, annotated, plain, false, refusal + "create works"},
		"no more settings":           {nil, plain, annotated, false, refusal + "create works"},
		"a new one with settings":    {nil, annotated, nil, false, refusal + "create works"},
		"another namespace":          {nil, moved, plain, false, refusal + "create works"},
		"another cluster hosts it":   {[]string{inCluster}, hosted, plain, false, "cluster us hosts"},
		"that with both": {[]string{inCluster, "create works karmada-es-us"}, hosted, plain, false,
			""},
		"settings of new add-ons":                 {nil, configuring, cluster, false, "you need permission to create works"},
		"settings of new add-ons, with the right": {[]string{inCluster}, configuring, cluster, false, ""},
		"a name that labels cannot have":          {[]string{create}, long, nil, false, "metadata.name: Too long"},
		"removed from a cluster":                  {[]string{inCluster}, nil, installed, true, refusal + "delete works"},
		"removed, with the right":                 {[]string{"delete works karmada-es-eu"}, nil, installed, true, ""},
		"removed, the hub did not install it":     {nil, nil, plain, true, ""},
	} {
		t.Run(story, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h := operatorsHub(t, tc.rights)
				var err error
				if tc.deletion {
					err = h.delete("op", tc.was)
				} else {
					_, _, err = h.write("op", tc.is, tc.was)
				}
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		})
	}
}

// The hub binds roles and signs certificates by an AddOnTemplate, with its own rights.
func TestTemplatesGiveOnlyRightsThatTheirAuthorsMayBind(t *testing.T) {
	const works = "create works "
	template := func(registration string) *unstructured.Unstructured {
		return addonObject(t, "AddOnTemplate", "",
			`{addonName: web, registration: [`+registration+`], agentSpec: {workload: {manifests: [
			{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}}`)
	}
	current := template(`{type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster, currentCluster:
		{clusterRoleName: admin}}]}}`)
	single := template(`{type: KubeClient, kubeClient: {hubPermissions: [{type: SingleNamespace, singleNamespace:
		{namespace: shop,
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}}}]}}`)
	signer := template(`{type: CustomSigner, customSigner: {signerName: example.com/x, signingCA: {namespace:
		kube-system, name: ca}}}`)
	for story, tc := range map[string]struct {
		rights []string
		is     *unstructured.Unstructured
		want   string
	}{
		"a role": {[]string{works, "create rolebindings "}, current,
			"to bind this role in all namespaces"},
		"to bind it, but not to create it": {[]string{works, "bind clusterroles /admin"}, current, "to create rolebindings"},
		"with both": {[]string{works, "create rolebindings ", "bind clusterroles /admin"}, current,
			""},
		"another role": {[]string{works, "create rolebindings ", "bind clusterroles /view"}, current,
			"bind"},
		"a role of a namespace": {[]string{works, "create rolebindings shop"}, single,
			`to bind this role in namespace "shop"`},
		"a role of a namespace with the right": {[]string{works, "create rolebindings shop", "bind roles shop/r"}, single,
			""},
		"a signer":                            {[]string{works}, signer, "the Secret kube-system/ca, which you may not read"},
		"a signer without that to approve it": {[]string{works, "get secrets kube-system/ca"}, signer, "to approve it"},
		"a signer with the rights": {[]string{works, "get secrets kube-system/ca", "approve signers /example.com/x"}, signer,
			""},
		"an authority of the hub's namespace": {[]string{works, "get secrets open-cluster-management-hub/ca",
			"approve signers /example.com/x"}, template(`{type: CustomSigner, customSigner: {signerName: example.com/x,
				signingCA: {name: ca}}}`), ""},
	} {
		t.Run(story, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h := operatorsHub(t, tc.rights)
				_, _, err := h.write("op", tc.is, nil)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		})
	}
}

func TestAddonsAreValidated(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.refuses("admin", addonObject(t, "ClusterManagementAddOn", "", `{installStrategy: {type: Placements, placements: [
			{namespace: ns, name: p, rolloutStrategy: {type: Progressive, progressive: {minSuccessTime: soon}}}]}}`), nil,
			`spec.installStrategy.placements[0].rolloutStrategy`)
		const manifests = `agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}`
		for _, tc := range [][2]string{
			{`{addonName: web, agentSpec: {workload: {manifests: []}}}`, "spec.agentSpec.workload.manifests: Required"},
			{`{addonName: web, registration: [{type: CustomSigner, customSigner: {signingCA: {name: a, namespace: b},
				signerName: kubernetes.io/kube-apiserver-client, subject: {user: "system:apiserver"}}}], ` + manifests + `}`,
				"spec.registration[0].customSigner.signerName: Forbidden"},
			{`{addonName: web, registration: [{type: CustomSigner, customSigner: {signingCA: {name: a, namespace: b},
				signerName: legacy.kubernetes.io/unknown}}], ` + manifests + `}`, "customSigner.signerName: Forbidden"},
			{`{addonName: web, registration: [{type: CustomSigner}], ` + manifests + `}`, "spec.registration[0]"},
			{`{addonName: web, registration: [{type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster}]}}], ` +
				manifests + `}`, "spec.registration[0].kubeClient.hubPermissions[0]"},
			{`{addonName: web, registration: [{type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster,
				currentCluster: {clusterRoleName: a}, singleNamespace: {namespace: b, roleRef: {apiGroup: g, kind: Role,
					name: r}}}]}}], ` +
				manifests + `}`, "needs exactly the field of this type"},
		} {
			h.refuses("admin", addonObject(t, "AddOnTemplate", "", tc[0]), nil, tc[1])
		}
	})
}

// A klusterlet may patch the status of its add-ons. What is installed, and which users get rights, follows from it.
func TestKlusterletsWriteTheConditionsOfTheirAddons(t *testing.T) {
	const klusterlet = "system:open-cluster-management:eu:agent"
	beta := func(namespace, status string) *unstructured.Unstructured {
		return object(t, `{apiVersion: addon.open-cluster-management.io/v1beta1, kind: ManagedClusterAddOn, metadata:
			{name: web,
			namespace: `+namespace+`}, spec: {}, status: {`+status+`}}`)
	}
	alpha := func(status string) *unstructured.Unstructured {
		obj := beta("eu", status)
		obj.SetAPIVersion("addon.open-cluster-management.io/v1alpha1")
		return obj
	}
	const own = "system:open-cluster-management:cluster:eu:addon:web"
	as := func(user string) string {
		return `registrations: [{type: kubeClient, kubeClient: {driver: token, subject: {user: "` + user + `"}}}]`
	}
	const only, not = "may change only the conditions", "cannot be"
	was := beta("eu", as(own+":agent:web-agent")+`, configReferences: [{group: "", resource: r, desiredConfig: {name:
		none}}]`)
	with := func(status string) *unstructured.Unstructured {
		return beta("eu", status+`, configReferences: [{group: "", resource: r, desiredConfig: {name: none}}]`)
	}
	for story, tc := range map[string]struct {
		is, was *unstructured.Unstructured
		want    string
	}{
		"a condition": {with(as(own+":agent:web-agent") + `, conditions: [{type: Available, status: "True", reason: A,
			message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`), was, ""},
		"its own user":            {with(as(own + ":agent:x")), was, ""},
		"its service account":     {with(as("system:serviceaccount:eu:web-agent")), was, ""},
		"another service account": {with(as("system:serviceaccount:eu:admin")), was, not},
		"an administrator":        {with(as("system:admin")), was, not},
		"a group of all clusters": {with(`registrations: [{type: kubeClient, kubeClient: {subject: {user: "` + own +
			`:agent:a", groups: ["system:open-cluster-management:addon:web"]}}}]`), was, not},
		"a group of all accounts": {with(`registrations: [{type: kubeClient, kubeClient: {subject: {user: "` + own +
			`:agent:a", groups: ["system:serviceaccounts"]}}}]`), was, not},
		"another cluster": {with(as("system:open-cluster-management:cluster:us:addon:web:agent:web-agent")), was, not},
		"another add-on":  {with(as("system:open-cluster-management:cluster:eu:addon:web2:agent:web-agent")), was, not},
		"a group": {with(`registrations: [{type: kubeClient, kubeClient: {subject: {user: "` + own +
			`:agent:a", groups: ["system:masters"]}}}]`), was, not},
		"another template":           {beta("eu", as(own+":agent:web-agent")), was, only},
		"the namespace":              {with(as(own+":agent:web-agent") + `, namespace: kube-system`), was, only},
		"a new registration":         {with(`registrations: []`), was, only},
		"an add-on elsewhere":        {beta("us", ""), beta("us", ""), only},
		"a condition, v1alpha1":      {alpha(`kubeClientDriver: csr`), alpha(``), ""},
		"another template, v1alpha1": {alpha(`configReferences: [{group: "", resource: r, name: none}]`), alpha(``), only},
		"an administrator, v1alpha1": {alpha(`registrations: [{signerName: "kubernetes.io/kube-apiserver-client",
			subject: {user: root}}]`),
			alpha(`registrations: [{signerName: "kubernetes.io/kube-apiserver-client"}]`), not},
	} {
		t.Run(story, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h := operatorsHub(t, nil)
				h.users = map[string]*user.DefaultInfo{klusterlet: {Name: klusterlet,
					Groups: []string{"system:open-cluster-management:eu"}}}
				_, _, err := h.writeTo("status", klusterlet, tc.is, tc.was)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		})
	}
}
