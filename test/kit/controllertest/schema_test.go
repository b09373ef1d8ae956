package controllertest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestWritesOfControllersAreValidated(t *testing.T) {
	Run(t, func(t *testing.T) {
		h := New(t)
		controller, err := client.New(h.Config, client.Options{Scheme: Scheme(), Mapper: mapper()})
		if err != nil {
			t.Fatal(err)
		}
		revision := func(name, path string) *releasev1alpha1.ReleaseRevision {
			r := &releasev1alpha1.ReleaseRevision{Spec: releasev1alpha1.ReleaseRevisionSpec{Hash: "h", PodsHash: "p",
				Target: releasev1alpha1.ReleaseObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				Pods: []releasev1alpha1.RevisionField{{Path: path,
					Value: &runtime.RawExtension{Raw: []byte("{}")}}}}}
			r.Namespace, r.Name = "shop", name
			return r
		}
		create := func(c client.Client, name, path string) {
			t.Helper()
			if err := c.Create(t.Context(), revision(name, path)); err != nil {
				t.Fatal(err)
			}
		}
		create(h.Client, "of-the-test", "")
		create(controller, "valid", "spec.template")
		if len(h.invalid) > 0 {
			t.Errorf("valid writes are %q", h.invalid)
		}
		create(controller, "invalid", "")
		if len(h.invalid) != 1 || !strings.Contains(h.invalid[0], "spec.pods[0].path") {
			t.Errorf("the invalid writes are %q, want that of a path", h.invalid)
		}
		h.invalid = nil
	})
}
