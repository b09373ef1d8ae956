package admission

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/test/kit/membertest"
)

func guardOf(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseGuard, metadata: {name: prod}, spec: `+spec+`}`)
}

func TestAReleaseGuardIsValidated(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		for spec, words := range map[string][]string{
			`{windows: [{kind: Deny, schedule: 0 25 * * *, duration: 1h}]}`: {
				`ReleaseGuard.release.argosy.io "prod" is invalid: spec.windows[0].schedule`, "five fields"},
			`{windows: [{kind: Never, from: "2026-01-01T00:00:00Z"}]}`:      {"spec.windows[0].kind", `"Allow", "Deny"`},
			`{limits: {minErrorBudget: {percent: 1, checkRef: {name: a}}}}`: {"spec.limits.minErrorBudget.checkRef.namespace"},
			`{limits: {releases: 0}}`:                                       {"spec.limits.releases"},
			`{limits: {podsPercent: 101}}`:                                  {"spec.limits.podsPercent"},
			`{require: Sometimes}`:                                          {"spec.require", `"Off", "Record", "Enforce"`},
		} {
			h.refuses("admin", guardOf(t, spec), nil, words...)
		}
		stored, _, err := h.write("admin", guardOf(t, `{selector: {namespaces: [shop]}, require: Enforce, approvals: {},
			windows: [{kind: Allow, schedule: 0 9 * * 1-5, duration: 8h, timeZone: Europe/Berlin, reason: office hours}],
			limits: {releases: 2, clusters: 3, podsPercent: 10, unavailablePercent: 5, per: topology.kubernetes.io/region}}`),
			nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := unstructured.NestedInt64(stored.Object, "spec", "approvals", "count"); n != 1 {
			t.Errorf("approvals need %d users, want 1", n)
		}
	})
}

func TestEnforcingGuardRefusesDirectChanges(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		web := func(annotations, image, more string) *unstructured.Unstructured {
			return object(t, `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, namespace: shop,
				annotations: {`+annotations+`}}, spec: {replicas: 3, selector: {matchLabels: {app: web}},
				template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "`+image+`"}]}}`+more+`}}`)
		}
		const bound = "argosy.io/release-strategy: gray"
		h := newHub(t, guardOf(t, `{selector: {namespaces: [shop]}, require: Enforce}`))
		old := web("", "web:1", "")
		const refusal = `ReleaseGuard prod requires releases in namespace "shop", and this change of the pods of CloneSet web ` +
			`would be sent to clusters at once: name a ReleaseStrategy in the annotation argosy.io/release-strategy of the ` +
			"template, then release the change with `argosy release start`"
		h.refuses("admin", web("", "web:2", ""), old, refusal)
		if _, _, err := h.write("admin", web("", "web:2", ""), old); !apierrors.IsForbidden(err) {
			t.Errorf("a direct change: %v, want Forbidden", err)
		}
		// Neither at the same time as the end of releases.
		h.refuses("admin", web("", "web:2", ""), web(bound, "web:1", ""), refusal)

		other := web("", "web:2", "")
		other.SetNamespace("bank")
		was := web("", "web:1", "")
		was.SetNamespace("bank")
		for name, w := range map[string]struct {
			who      string
			obj, old *unstructured.Unstructured
		}{
			"a new workload":              {"admin", web("", "web:2", ""), nil},
			"a change that waits":         {"admin", web(bound, "web:2", ""), old},
			"a change that makes no pods": {"admin", web("", "web:1", ", minReadySeconds: 5"), old},
			"a change of another":         {"admin", other, was},
			"a change by the hub":         {user.APIServerUser, web("", "web:2", ""), old},
			"the end of releases":         {"admin", old, web(bound, "web:1", "")},
		} {
			if _, _, err := h.write(w.who, w.obj, w.old); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		h = newHub(t, guardOf(t, `{selector: {namespaces: [shop]}}`))
		if _, _, err := h.write("admin", web("", "web:2", ""), old); err != nil {
			t.Errorf("a direct change under a guard that requires none: %v", err)
		}
	})
}

func TestRecordingGuardRefusesNothing(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, guardOf(t, `{selector: {namespaces: [shop]}, require: Record}`))
		web := func(image string) *unstructured.Unstructured {
			return object(t, `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, namespace: shop},
				spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
				spec: {containers: [{name: main, image: "`+image+`"}]}}}}`)
		}
		if _, _, err := h.write("admin", web("web:2"), web("web:1")); err != nil {
			t.Errorf("a direct change: %v", err)
		}
	})
}
