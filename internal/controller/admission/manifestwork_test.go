package admission

import (
	"github.com/argosy-io/argosy/test/kit/membertest"
	"slices"
	"strings"
	"testing"
)

func TestManifestWorkGetsFinalizerAndIsValidated(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m1}}`))
		work := func(namespace, spec string) string {
			return `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: it, namespace: ` +
				namespace + `}, spec: ` + spec + `}`
		}
		const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`

		stored, warnings, err := h.write("admin", object(t, work("m1", `{workload: {manifests: [`+configMap+`]}}`)), nil)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%v, warnings %q", err, warnings)
		}
		if want := []string{"cluster.open-cluster-management.io/manifest-work-cleanup"}; !slices.Equal(stored.GetFinalizers(),
			want) {
			t.Errorf("its finalizers are %v, want %v", stored.GetFinalizers(), want)
		}

		for spec, words := range map[string][]string{
			`{}`: {"spec.workload.manifests: Required value"},
			`{workload: {manifests: [{apiVersion: v1, kind: ConfigMap}]}}`: {"spec.workload.manifests[0].metadata.name: " +
				"Required value"},
			`{workload: {manifests: [` + configMap + `, ` + configMap +
				`]}}`: {"spec.workload.manifests[1]: Duplicate value"},
			`{workload: {manifests: [{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}]}}`: {"generateName: Forbidden"},
			`{workload: {manifests: [` + configMap +
				`]}, executor: {subject: {type: ServiceAccount}}}`: {"spec.executor: Forbidden: executors are not supported"},
			`{workload: {manifests: [` + configMap +
				`]}, deleteOption: {propagationPolicy: Never}}`: {"spec.deleteOption.propagationPolicy"},
			`{workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "` +
				strings.Repeat("a", 513<<10) + `"}}]}}`: {"spec.workload.manifests: Too long"},
			`{workload: {manifests: [` + configMap + `]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a, namespace: shop},
			updateStrategy: {type: ServerSideApply, serverSideApply: {ignoreFields: [{jqPathExpressions: [".data | keys"]}]}}}]}`: {"ignoreFields[0]", "each must refer to one field"},
			`{workload: {manifests: [` + configMap + `]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a, namespace: shop}, conditionRules: [
			{condition: Is ready, type: CEL, celExpressions: ["true"]}, {condition: Applied, type: CEL, celExpressions: ["true"]}]}]}`: {
				`spec.manifestConfigs[0].conditionRules[0].condition: Invalid value: "Is ready": must be the type of a condition`,
				"Applied is reserved for the hub"},
			`{workload: {manifests: [` + configMap + `]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a, namespace: shop}, conditionRules: [
			{condition: Complete, type: CEL, celExpressions: [` + strings.Repeat(`"true", `, 501) + `]}]}]}`: {"spec.manifestConfigs: Forbidden: have 501 expressions, more than 500"},
			`{workload: {manifests: [` + configMap + `]}, manifestConfigs: [` +
				strings.Repeat(`{resourceIdentifier: {resource: configmaps, name: "*"}}, `, 1001) +
				`]}`: {"spec.manifestConfigs: Too many: 1001: must have at most 1000 items"},
		} {
			h.refuses("admin", object(t, work("m1", spec)), nil, words...)
		}

		warns := func(text string, words ...string) {
			t.Helper()
			_, warnings, err := h.write("admin", object(t, text), nil)
			if err != nil || len(warnings) != len(words) {
				t.Fatalf("%v, warnings %q, want %q", err, warnings, words)
			}
			for i, w := range words {
				if !strings.Contains(warnings[i], w) {
					t.Errorf("warning %q, want %q", warnings[i], w)
				}
			}
		}
		warns(work("m9", `{workload: {manifests: [`+configMap+`]}}`), `metadata.namespace: there is no cluster "m9"`)
		warns(work("m1", `{workload: {manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}, {apiVersion: v1, kind: Namespace, metadata: {name: a}}]}}`),
			"spec.workload.manifests[0].metadata.namespace: a Deployment is namespaced: the cluster rejects one without a namespace")
		warns(work("m1", `{workload: {manifests: [`+configMap+`]}, manifestConfigs: [
		{resourceIdentifier: {resource: configmap, name: a, namespace: shop}, feedbackRules: [{type: WellKnownStatus}]},
		{resourceIdentifier: {resource: configmaps, name: "*", namespace: shop}, feedbackRules: [{type: WellKnownStatus}, {type: JSONPaths, jsonPaths: [{name: a, path: ".data["}]}],
			updateStrategy: {type: ServerSideApply, serverSideApply: {fieldManager: work-agent-2}},
			conditionRules: [{condition: Complete, type: CEL, celExpressions: ["object.data.size("]}, {condition: Progressing, type: CEL, celExpressions: ["'yes'"]}]}]}`),
			"manifestConfigs[0].resourceIdentifier: matches none of the manifests",
			"manifestConfigs[1].updateStrategy.serverSideApply.fieldManager: the hub applies as argosy, not as work-agent-2",
			"manifestConfigs[1].feedbackRules[0]: there are no well-known values for a ConfigMap",
			"manifestConfigs[1].feedbackRules[1].jsonPaths[0].path: parse the path",
			"manifestConfigs[1].conditionRules[0].celExpressions[0]: ERROR",
			"manifestConfigs[1].conditionRules[1].celExpressions[0]: \"'yes'\" returns a string, not a bool",
		)

		// Who owns a namespace that is named like a cluster does not own the cluster.
		h.refuses("user", object(t, work("m1", `{workload: {manifests: [`+configMap+`]}}`)), nil,
			"a ManifestWork in m1 is applied in the cluster of that name, for which you need permission to create works.work.karmada.io in the namespace karmada-es-m1")

		if err := h.delete("user", stored); err == nil ||
			!strings.Contains(err.Error(), "for which you need permission to delete works.work.karmada.io in the namespace karmada-es-m1") {
			t.Errorf("a deletion by the owner of the namespace: %v", err)
		}
		if err := h.delete("admin", stored); err != nil {
			t.Errorf("a deletion by an administrator: %v", err)
		}
		if err := h.delete("user", object(t,
			`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: a, namespace: m1}}`)); err != nil {
			t.Errorf("the deletion of another kind: %v", err)
		}

		// What is not changed is not judged again.
		old := object(t, work("m9", `{}`))
		labelled := old.DeepCopy()
		labelled.SetLabels(map[string]string{"a": "b"})
		if _, warnings, err := h.write("admin", labelled, old); err != nil || len(warnings) > 0 {
			t.Errorf("a label: %v, warnings %q", err, warnings)
		}
	})
}
