package dispatch_test

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

const enclosing = `
apiVersion: release.argosy.io/v1alpha1
kind: EnclosedManifest
metadata: {name: kruise.deployment.kruise-system.manager, uid: u-9, generation: 3, labels: {argosy.io/addon: kruise}}
spec:
  manifest:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: manager, namespace: kruise-system, uid: rendered, labels: {app: kruise}}
    spec: {replicas: 2, template: {spec: {containers: [{name: main, image: "kruise:1"}]}}}
`

func TestMembersGetTheEnclosedManifest(t *testing.T) {
	in := input(t, enclosing, "clusters: [{name: eu}]")
	template := in.Template
	in.Overrides = []policyv1alpha1.Override{clusterOverride(t, `
resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: kruise-system, name: manager}]
overrideRules: [{overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 3}]}}]`)}
	i := interpret.New(builtin.Tier())
	results := dispatch.Works(t.Context(), in, i)
	if len(results) != 1 || results[0].Err != nil {
		t.Fatalf("%+v", results)
	}
	w := results[0].Work
	if w.Namespace != "karmada-es-eu" || w.Name != names.Work("EnclosedManifest", template.GetName(), "") {
		t.Errorf("the Work is %s/%s", w.Namespace, w.Name)
	}
	m, err := execute.Manifest(w)
	if err != nil {
		t.Fatal(err)
	}
	if m.GetKind() != "Deployment" || m.GetNamespace() != "kruise-system" || m.GetName() != "manager" ||
		m.GetUID() != "" || m.GetLabels()["app"] != "kruise" || m.GetLabels()["argosy.io/addon"] != "" {
		t.Errorf("the manifest is %v", m.Object)
	}
	if got := m.Object["spec"].(map[string]any)["replicas"]; got != int64(3) {
		t.Errorf("overrides that select what is enclosed do not count: %v replicas", got)
	}

	in.Template = object(t, strings.Replace(enclosing, "name: manager, ", "", 1))
	if d := dispatch.Decide(t.Context(), in, i); d.Err == nil || !strings.Contains(d.Err.Error(), "metadata.name") {
		t.Errorf("a manifest without a name: %+v", d)
	}
}
