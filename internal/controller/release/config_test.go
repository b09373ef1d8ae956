package release

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// Otherwise the version would be deleted with the revisions that owned it before, as soon as these are surplus.
func TestARevisionThatExistsOwnsTheVersionsOfAStep(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		r := &reconciler{Options: Options{Templates: template.New(dynamic.NewForConfigOrDie(h.Config),
			discovery.NewDiscoveryClientForConfigOrDie(h.Config))}, client: h.Client, live: h.Client}
		web := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
			"spec": map[string]any{"volumes": []any{map[string]any{"configMap": map[string]any{"name": "settings"}}}}}}}}
		web.SetAPIVersion("apps/v1")
		web.SetKind("Deployment")
		web.SetNamespace("shop")
		web.SetName("web")
		web.SetUID("u-1")
		settings := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "b"}}}
		settings.SetAPIVersion("v1")
		settings.SetKind("ConfigMap")
		settings.SetNamespace("shop")
		settings.SetName("settings")
		configMaps := release.ConfigMaps{"settings": settings}
		revision := release.CurrentRevision(web, nil, configMaps, nil)
		versions, _ := release.VersionsToMake(revision, web, configMaps)
		rel := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r1"}}
		rel.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: revision.Spec.Target}}
		h.Make(rel)
		h.Make(versions[0])
		// An earlier step stored the revision, and the hub ended before it wrote the owner.
		stored := revision.DeepCopy()
		h.Make(stored)
		step := release.Step{Revisions: []*releasev1alpha1.ReleaseRevision{revision}, Status: rel.Status}
		if err := r.write(t.Context(), release.Input{Release: rel}, step); err != nil {
			t.Fatal(err)
		}
		version := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: versions[0].GetName()}}
		if h.HasObject(version); len(version.OwnerReferences) != 1 || version.OwnerReferences[0].UID != stored.UID {
			t.Errorf("the owners of the version are %+v, want ReleaseRevision %s", version.OwnerReferences, stored.UID)
		}
	})
}
