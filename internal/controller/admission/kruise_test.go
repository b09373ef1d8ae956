package admission

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// Templates that are written get the defaults of OpenKruise without a warning. A write that keeps the spec, such as of
// a label, adds none to a template from before.
func TestWorkloadsOfOpenKruiseGetDefaults(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		const pods = "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}"
		for kind, want := range map[string]struct {
			path  []string
			value any
		}{
			"apps.kruise.io/v1alpha1, kind: CloneSet":   {[]string{"maxUnavailable"}, "20%"},
			"apps.kruise.io/v1beta1, kind: CloneSet":    {[]string{"rollingUpdate", "maxUnavailable"}, "20%"},
			"apps.kruise.io/v1beta1, kind: StatefulSet": {[]string{"rollingUpdate", "maxUnavailable"}, int64(1)},
			"apps.kruise.io/v1beta1, kind: DaemonSet":   {[]string{"rollingUpdate", "maxUnavailable"}, int64(1)},
		} {
			former := object(t, "{apiVersion: "+kind+", metadata: {name: web, namespace: shop}, "+pods+"}}")
			path := append([]string{"spec", "updateStrategy"}, want.path...)
			stored, warnings, err := h.write("admin", former, nil)
			if err != nil || len(warnings) > 0 || fields.Value(stored.Object, path...) != want.value {
				t.Errorf("%s is stored as %v, with %q, %v", kind, stored, warnings, err)
			}
			labelled := former.DeepCopy()
			labelled.SetLabels(map[string]string{"team": "shop"})
			stored, _, err = h.write("admin", labelled, former)
			if err != nil || fields.Value(stored.Object, "spec", "updateStrategy") != nil {
				t.Errorf("%s gets with a label %v, %v", kind, fields.Value(stored.Object, "spec"), err)
			}
		}
	})
}
