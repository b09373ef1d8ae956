package why

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// The hub decides by the same revision whether the release can be rolled back.
func TestTargetsOfAReleaseWithVersionsReadVersions(t *testing.T) {
	web := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: objectMeta("shop", "web")}
	web.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
	r, _ := hub(web, &corev1.ConfigMap{ObjectMeta: objectMeta("shop", "settings"), Data: map[string]string{"a": "b"}},
		&workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", names.Binding("Deployment", "web")),
			Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1",
				Kind: "Deployment", Namespace: "shop", Name: "web"}}})
	for config, want := range map[releasev1alpha1.ConfigMode]int{releasev1alpha1.ConfigVersioned: 1,
		releasev1alpha1.ConfigAtOnce: 0} {
		rel := &releasev1alpha1.Release{ObjectMeta: objectMeta("shop", "r1")}
		rel.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}}
		rel.Status.Strategy = &releasev1alpha1.ReleaseStrategySpec{Config: config}
		targets, err := ReleaseTargets(t.Context(), r, rel)
		if err != nil {
			t.Fatal(err)
		}
		if current := targets["web"].Current; current == nil || len(current.Spec.Config) != want {
			t.Errorf("with config: %s, the revision is %+v, want %d ConfigMaps", config, current, want)
		}
	}
}
