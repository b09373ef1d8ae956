package admission

import (
	"github.com/argosy-io/argosy/test/kit/membertest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
)

// The hub applies a ManifestWorkReplicaSet with its own rights in whatever clusters the Placements of a namespace
// choose.
func TestReplicaSetsNeedRightsInAllClusters(t *testing.T) {
	set := func(spec string) *unstructured.Unstructured {
		return object(t, `{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet,
			metadata: {name: it, namespace: shop}, spec: `+spec+`}`)
	}
	const template = `manifestWorkTemplate: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]}}`
	is, other := set(`{placementRefs: [{name: p}], `+template+`}`), set(`{placementRefs: [{name: q}], `+template+`}`)
	more, labelled := set(`{placementRefs: [{name: p}, {name: q}], `+template+`}`), is.DeepCopy()
	labelled.SetLabels(map[string]string{"a": "b"})
	const create, remove = "create works ", "delete works "
	const refusal = "ManifestWorkReplicaSet reaches the clusters that Placements choose, for which you need permission to "
	for story, tc := range map[string]struct {
		rights    []string
		is, was   *unstructured.Unstructured
		deletion  bool
		wantWords string
	}{
		"a new one":                    {nil, is, nil, false, refusal + "create works.work.karmada.io in all namespaces"},
		"with the right for a cluster": {[]string{"create works karmada-es-eu"}, is, nil, false, refusal + "create"},
		"with the right":               {[]string{create}, is, nil, false, ""},
		"a change":                     {nil, other, is, false, refusal + "create"},
		"a change with the right":      {[]string{create}, more, is, false, ""},
		"a Placement is taken away": {[]string{create}, other, is, false, refusal +
			"delete works.work.karmada.io in all namespaces"},
		"that with both rights":           {[]string{create, remove}, other, is, false, ""},
		"labels, which ManifestWorks get": {nil, labelled, is, false, refusal + "create"},
		"a deletion":                      {[]string{create}, nil, is, true, refusal + "delete works.work.karmada.io in all namespaces"},
		"a deletion with the right":       {[]string{remove}, nil, is, true, ""},
		"a deletion of another cluster":   {[]string{"delete works karmada-es-eu"}, nil, is, true, refusal + "delete"},
	} {
		t.Run(story, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h := operatorsHub(t, tc.rights)
				var err error
				if tc.deletion {
					err = h.delete("op", tc.was)
				} else {
					var stored *unstructured.Unstructured
					stored, _, err = h.write("op", tc.is, tc.was)
					if want := []string{"work.open-cluster-management.io/manifest-work-cleanup"}; err == nil && tc.was == nil &&
						!slices.Equal(stored.GetFinalizers(), want) {
						t.Errorf("its finalizers are %v, want %v", stored.GetFinalizers(), want)
					}
				}
				if tc.wantWords == "" && err != nil || tc.wantWords != "" && (err == nil || !strings.Contains(err.Error(),
					tc.wantWords)) {
					t.Errorf("got %v, want %q", err, tc.wantWords)
				}
			})
		})
	}
}

// By these labels, the hub changes and deletes a ManifestWork.
func TestLabelsOfReplicaSetsNeedRights(t *testing.T) {
	const klusterlet = "system:open-cluster-management:eu:agent"
	was := object(t, `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: it, namespace: eu},
		spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]}}}`)
	for story, tc := range map[string]struct {
		rights []string
		by     string
		label  string
		want   string
	}{
		"the set": {nil, "op", "work.open-cluster-management.io/manifestworkreplicaset",
			"permission to create works"},
		"the Placement": {nil, "op", "work.open-cluster-management.io/placementname",
			"permission to create works"},
		"the add-on":                 {nil, "op", "open-cluster-management.io/addon-name", "permission to create works"},
		"the cluster of an add-on":   {nil, "op", "open-cluster-management.io/addon-namespace", "permission to create works"},
		"the add-on by a klusterlet": {nil, klusterlet, "open-cluster-management.io/addon-name", "may not change the labels"},
		"without one right": {[]string{"create works karmada-es-eu"}, "op",
			"work.open-cluster-management.io/placementname", "permission to delete works"},
		"with both": {[]string{"create works karmada-es-eu", "delete works karmada-es-eu"}, "op",
			"work.open-cluster-management.io/placementname", ""},
		"another label":           {nil, "op", "a", ""},
		"by a klusterlet":         {nil, klusterlet, "work.open-cluster-management.io/placementname", "may not change the labels"},
		"another by a klusterlet": {nil, klusterlet, "a", ""},
	} {
		t.Run(story, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h := operatorsHub(t, tc.rights)
				h.users = map[string]*user.DefaultInfo{}
				h.users[klusterlet] = &user.DefaultInfo{Name: klusterlet, Groups: []string{"system:open-cluster-management:eu"}}
				is := was.DeepCopy()
				is.SetLabels(map[string]string{tc.label: "x"})
				if tc.want != "" {
					h.refuses(tc.by, is, was, tc.want)
				} else if _, _, err := h.write(tc.by, is, was); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestReplicaSetsAreValidated(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		const manifests = `workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]}`
		set := func(name, refs, template string) *unstructured.Unstructured {
			return object(t, `{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet,
				metadata: {name: `+name+`, namespace: shop}, spec: {placementRefs: [`+refs+`], manifestWorkTemplate: {`+template+`}}}`)
		}
		for _, tc := range [][3]string{
			{"", manifests, "spec.placementRefs"},
			{"{name: p}, {name: p}", manifests, "spec.placementRefs[1].name: Duplicate value: \"p\""},
			{"{name: ''}", manifests, "spec.placementRefs[0].name"},
			{"{name: p, rolloutStrategy: {type: Some}}", manifests, "spec.placementRefs[0].rolloutStrategy.type"},
			{"{name: p, rolloutStrategy: {type: Progressive, progressive: {progressDeadline: 5mfoo}}}", manifests,
				`spec.placementRefs[0].rolloutStrategy: Invalid value: "": progressive.progressDeadline: "5mfoo" is not a duration`},
			{"{name: p, rolloutStrategy: {type: Progressive, progressive: {minSuccessTime: soon}}}", manifests,
				`progressive.minSuccessTime: "soon" is not a duration`},
			{"{name: p, rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 200%}}}", manifests,
				"progressive.maxConcurrency"},
			{"{name: p}", "", "spec.manifestWorkTemplate.workload.manifests: Required value: Workload manifests should not be empty"},
			{"{name: p}", "workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {}}]}",
				"spec.manifestWorkTemplate.workload.manifests[0].metadata.name: Required value"},
			{"{name: p}", manifests + ", executor: {subject: {type: ServiceAccount}}",
				"spec.manifestWorkTemplate.executor: Forbidden: executors are not supported"},
		} {
			h.refuses("admin", set("it", tc[0], tc[1]), nil, tc[2])
		}
		_, warnings, err := h.write("admin", set(strings.Repeat("a", 60), "{name: p}", manifests), nil)
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "is not a valid label value") {
			t.Errorf("a long name: %v, %q", err, warnings)
		}
	})
}

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
			`{}`: {"spec.workload.manifests: Required value: manifests should not be empty"},
			`{workload: {manifests: [{apiVersion: v1, kind: ConfigMap}]}}`: {"spec.workload.manifests[0].metadata.name: " +
				"Required value: name must be set in manifest"},
			`{workload: {manifests: [` + configMap + `, ` + configMap +
				`]}}`: {"spec.workload.manifests[1]: Forbidden: duplicate manifest for " +
				"resource shop/a with resource type v1.ConfigMap"},
			`{workload: {manifests: [{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}]}}`: {"generateName: " +
				"Forbidden: generateName must not be set in manifest"},
			`{workload: {manifests: [` + configMap +
				`]}, executor: {subject: {type: ServiceAccount}}}`: {"spec.executor: Forbidden: executors are not supported"},
			`{workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "` +
				strings.Repeat("a", 513<<10) + `"}}]}}`: {"spec.workload.manifests: Too long: the size of manifests is 525",
				"bytes which exceeds the 512000 limit"},
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
			h.refusesAsWebhook("admin", object(t, work("m1", spec)), words...)
		}

		h.refuses("admin", object(t, work("m1", `{workload: {manifests: [`+configMap+
			`]}, deleteOption: {propagationPolicy: Never}}`)), nil, "spec.deleteOption.propagationPolicy")

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
