package admission

import (
	"github.com/argosy-io/argosy/test/kit/membertest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
)

func TestMultiClusterServiceGetsIDAndCanonicalSpelling(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		const head = `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {namespace: default, name: nginx-mcs}, spec: `
		obj := object(t, head+`{types: [CrossCluster], ports: [{name: http, port: 80, targetPort: 8080}]}}`)
		stored, warnings, err := h.write("admin", obj, nil)
		if err != nil {
			t.Fatal(err)
		}
		id := stored.GetLabels()[networkingv1alpha1.MultiClusterServicePermanentIDLabel]
		if id == "" {
			t.Error("it has no permanent id")
		}
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "spec.ports[0].targetPort: stored as nothing") {
			t.Errorf("warnings: %q", warnings)
		}
		if text := mustYAML(t, stored.Object["spec"]); strings.Contains(text, "targetPort") {
			t.Errorf("it is stored with %s", text)
		}

		// Applied again as it was written, it keeps its id.
		again, _, err := h.write("admin", obj, stored)
		if err != nil || again.GetLabels()[networkingv1alpha1.MultiClusterServicePermanentIDLabel] != id {
			t.Errorf("applied again: %v, labels %v", err, again.GetLabels())
		}
		other := stored.DeepCopy()
		other.SetLabels(map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "mine"})
		h.refuses("admin", other, stored, "is given by the hub and cannot be changed")
		h.refuses("admin", object(t, head+`{types: [LoadBalancer]}}`), stored, "MultiClusterService types are immutable")
		h.refuses("admin", object(t, head+`{types: [CrossCluster], ports: [{port: 80}, {port: 70000}]}}`), nil,
			"spec.ports[1].port")

		_, warnings, err = h.write("admin", object(t, head+`{types: [LoadBalancer]}}`), nil)
		if err != nil || len(warnings) != 1 ||
			!strings.Contains(warnings[0], "LoadBalancer is left to a load balancer provider") {
			t.Errorf("a load balancer: %v, warnings %q", err, warnings)
		}
	})
}

func TestMultiClusterIngressesAreStoredAsAnIngress(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		const head = `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterIngress, metadata: {namespace: default, name: nginx-mci}, spec: `
		stored, warnings, err := h.write("admin", object(t, head+`{template: {spec: {rules: [{host: a.example.com, http: {paths: [
		{path: /, pathType: Prefix, backend: {service: {name: nginx-mcs, port: {number: 80}}}}]}}]}}}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(warnings) != 1 || warnings[0] != "spec.template.spec.rules: stored as spec.rules" {
			t.Errorf("warnings: %q", warnings)
		}
		if text := mustYAML(t, stored.Object["spec"]); strings.Contains(text, "template") ||
			!strings.Contains(text, "host: a.example.com") {
			t.Errorf("it is stored with %s", text)
		}
		h.refuses("admin", object(t, head+`{rules: [{host: "10.0.0.1"}]}}`), nil, "must be a DNS name, not an IP address")
	})
}

func TestServiceImportWithLongNameIsRejected(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		named := func(name string) *unstructured.Unstructured {
			return object(t, `{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {namespace: default, name: `+name+`}, spec: {type: ClusterSetIP, ports: [{port: 80}]}}`)
		}
		for name, refusal := range map[string]string{
			strings.Repeat("a", 63): "",
			strings.Repeat("a", 64): "may not be more than 63",
			"web.shop":              "clusters reach it as Service derived-web.shop: a DNS-1035 label must consist of",
			"2nd":                   "",
		} {
			if refusal != "" {
				h.refuses("admin", named(name), nil, refusal)
				if _, _, err := h.write("admin", named(name), named(name)); err != nil {
					t.Errorf("%s, which is there already, cannot be changed: %v", name, err)
				}
			} else if _, _, err := h.write("admin", named(name), nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func mustYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRemediesWithMistakesAreRefusedOrWarnedOf(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: member1}}`))
		remedy := func(spec string) *unstructured.Unstructured {
			return object(t, `{apiVersion: remedy.karmada.io/v1alpha1, kind: Remedy, metadata: {name: r}, spec: `+spec+`}`)
		}
		const match = `decisionMatches: [{clusterConditionMatch: {conditionType: Ready, operator: %, conditionStatus: "True"}}]`
		good := remedy(`{clusterAffinity: {clusterNames: [member1]}, ` + strings.Replace(match, "%", "NotEqual", 1) +
			`, actions: [TrafficControl]}`)
		if _, warnings, err := h.write("admin", good, nil); err != nil || len(warnings) > 0 {
			t.Errorf("a good Remedy: %v, warnings %q", err, warnings)
		}
		h.refuses("admin", remedy(`{actions: [Restart]}`), nil,
			`Remedy.remedy.karmada.io "r" is invalid: spec.actions[0]: Unsupported value: "Restart"`)
		h.refuses("admin", remedy(`{`+strings.Replace(match, "%", "In", 1)+`}`), nil, "operator: Unsupported value")
		h.refuses("admin", remedy(`{clusterAffinity: {clusterNames: [member1, member1]}}`), good, "Duplicate value")

		_, warnings, err := h.write("admin", remedy(`{clusterAffinity: {clusterNames: [member1, membr1]},
			actions: [TrafficControl]}`), nil)
		if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0],
			`spec.clusterAffinity.clusterNames[1]: no cluster is named "membr1"`) {
			t.Errorf("a cluster that does not exist: %v, warnings %q", err, warnings)
		}
	})
}
