package override_test

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/override"
)

// A pod starts only if all of its images can be pulled.
func TestRegistryIsChangedInAllImagesOfAPod(t *testing.T) {
	const pod = `{spec: {initContainers: [{name: a, image: "old.io/init:1"}], containers: [{name: b, image: "old.io/app@sha256:0"}], volumes: [{name: v, image: {reference: "old.io/data:1"}}, {name: w, emptyDir: {}}]}}`
	at := func(path string) string { return strings.ReplaceAll(path, "POD", pod) }
	for _, tt := range []struct {
		apiVersion, kind, body string
		want                   []string
	}{
		{"v1", "Pod", pod[1 : len(pod)-1], []string{"init:1", "app@sha256:0", "data:1"}},
		{"apps/v1", "Deployment", at("spec: {template: POD}"), []string{"init:1", "app@sha256:0", "data:1"}},
		{"batch/v1", "CronJob", at("spec: {jobTemplate: {spec: {template: POD}}}"),
			[]string{"init:1", "app@sha256:0", "data:1"}},
		{"apps.kruise.io/v1beta1", "CloneSet", at("spec: {template: POD}"), []string{"init:1", "app@sha256:0", "data:1"}},
		{"apps.kruise.io/v1alpha1", "UnitedDeployment", at("spec: {template: {cloneSetTemplate: {spec: {template: POD}}}}"),
			[]string{"init:1", "app@sha256:0", "data:1"}},
		{"apps.kruise.io/v1alpha1", "SidecarSet", pod[1 : len(pod)-1], []string{"init:1", "app@sha256:0", "data:1"}},
		{"apps.kruise.io/v1alpha1", "EphemeralJob",
			`spec: {template: {ephemeralContainers: [{name: a, image: "old.io/debug:1"}]}}`, []string{"debug:1"}},
		{"argoproj.io/v1alpha1", "Workflow",
			`spec: {templates: [{container: {image: "old.io/app:1"}, initContainers: [{name: i, image: "old.io/init:1"}]}]}`,
			[]string{"app:1", "init:1"}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			m := object(t, "apiVersion: "+tt.apiVersion+"\nkind: "+tt.kind+"\nmetadata: {name: x, namespace: shop}\n"+tt.body)
			got, _, err := override.Apply(m, cluster("eu"),
				[]policyv1alpha1.Override{op(t, "shop", "p",
					rule("imageOverrider: [{component: Registry, operator: replace, value: 'mirror.example.net:8443'}]"))})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := got.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, image := range tt.want {
				if !strings.Contains(string(raw), `"mirror.example.net:8443/`+image+`"`) ||
					strings.Contains(string(raw), "old.io") {
					t.Errorf("%s is not from the mirror: %s", image, raw)
				}
			}
		})
	}
}
