package admission

import (
	"github.com/argosy-io/argosy/test/kit/membertest"
	"strings"
	"testing"
)

func TestRebalancersNeedSchedulableWorkloads(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		rebalancer := func(spec string) string {
			return `{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: r}, spec: ` + spec + `}`
		}
		const cloneSet = `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, namespace: shop, name: web}`
		h.create(rebalancer(`{workloads: [` + cloneSet + `], ttlSecondsAfterFinished: 60}`))

		for spec, words := range map[string][]string{
			`{workloads: []}`: {"spec.workloads", "at least 1 items"},
			`{}`:              {"spec.workloads: Required value"},
			`{workloads: [{apiVersion: v1, kind: Service}]}`: {"spec.workloads[0].name: Required value"},
			`{workloads: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}]}`: {
				`WorkloadRebalancer.apps.karmada.io "r" is invalid: spec.workloads[0].namespace: Required value: a CloneSet is namespaced: specify its namespace`},
			`{workloads: [{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, namespace: shop, name: s}]}`: {"a SidecarSet is cluster-scoped: must not be set"},
		} {
			h.refuses("admin", object(t, rebalancer(spec)), nil, words...)
		}

		_, warnings, err := h.write("admin", object(t, rebalancer(`{workloads: [`+cloneSet+`, {apiVersion: apps/v1, kind: Deploymnt, namespace: shop, name: a},
		{apiVersion: apps/v1, kind: Deploymnt, namespace: shop, name: b}]}`)), nil)
		if err != nil || len(warnings) != 1 ||
			!strings.Contains(warnings[0], "spec.workloads[1]: this hub serves no Deploymnt.apps") {
			t.Errorf("a kind that is not served: warnings %q, error %v; want one warning", warnings, err)
		}

		// What was stored before its rule is not held up when only its metadata changes.
		old := object(t, rebalancer(`{workloads: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}]}`))
		obj := old.DeepCopy()
		obj.SetLabels(map[string]string{"a": "b"})
		if _, warnings, err := h.write("admin", obj, old); err != nil || len(warnings) > 0 {
			t.Errorf("a label: %v, warnings %q", err, warnings)
		}
	})
}
