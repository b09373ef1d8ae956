package kruise

import (
	"fmt"
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/admission/dialect"
)

// Defaulter fills the parts that Kubernetes itself has defaults for.
type Defaulter struct {
	Template func(*corev1.PodTemplateSpec)
	Claim    func(*corev1.PersistentVolumeClaim)
}

// Default writes into u what the webhook of the real manager writes: the defaults of the kind, which the hub knows for
// CloneSets and StatefulSets, and the full defaults of the pod template and the claim templates. Kinds that are not
// simulated are left alone.
func (d Defaulter) Default(u *unstructured.Unstructured) error {
	gk := u.GroupVersionKind().GroupKind()
	spec, _ := u.Object["spec"].(map[string]any)
	if !simulated[gk] || spec == nil {
		return nil
	}
	dialect.Default(u)
	switch gk {
	case SidecarSetKind:
		return d.sidecarSet(u, spec)
	case UnitedDeploymentKind:
		return d.unitedDeployment(spec)
	case BroadcastJobKind:
		setDefault(spec, int64(math.MaxInt32), "parallelism")
		setDefault(spec, "Always", "completionPolicy", "type")
		setDefault(spec, "FailFast", "failurePolicy", "type")
	case StatefulSetKind.GroupKind():
		if u.GroupVersionKind().Version != "v1alpha1" {
			setDefault(spec, "Retain", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
			setDefault(spec, "Retain", "persistentVolumeClaimRetentionPolicy", "whenScaled")
		}
	}
	if template, ok := spec["template"].(map[string]any); ok {
		var err error
		if spec["template"], err = refill(template, d.Template); err != nil {
			return fmt.Errorf("spec.template: %w", err)
		}
	}
	claims, _ := spec["volumeClaimTemplates"].([]any)
	for i := range claims {
		claim, _ := claims[i].(map[string]any)
		filled, err := refill(claim, d.Claim)
		if err != nil {
			return fmt.Errorf("spec.volumeClaimTemplates[%d]: %w", i, err)
		}
		claims[i] = filled
	}
	return nil
}

func setDefault(spec map[string]any, v any, path ...string) {
	if have, found, err := unstructured.NestedFieldNoCopy(spec, path...); err == nil && (!found || have == nil) {
		_ = unstructured.SetNestedField(spec, v, path...)
	}
}

// refill sends an object through its type and back, with defaults; what the type does not know is lost on the way.
func refill[T any](object map[string]any, fill func(*T)) (map[string]any, error) {
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &typed); err != nil {
		return nil, err
	}
	fill(&typed)
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
}

func (d Defaulter) sidecarSet(u *unstructured.Unstructured, spec map[string]any) error {
	setDefault(spec, int64(10), "revisionHistoryLimit")
	setDefault(spec, rollingUpdate, "updateStrategy", "type")
	if t, _, _ := unstructured.NestedString(spec, "updateStrategy", "type"); t == rollingUpdate {
		setDefault(spec, int64(0), "updateStrategy", "partition")
		setDefault(spec, int64(1), "updateStrategy", "maxUnavailable")
	}
	if _, found, _ := unstructured.NestedMap(spec, "injectionStrategy", "revision"); found {
		setDefault(spec, "Always", "injectionStrategy", "revision", "policy")
	}
	for _, name := range []string{"containers", "initContainers"} {
		list, _ := spec[name].([]any)
		for i := range list {
			c, _ := list[i].(map[string]any)
			filled, err := refill(c, func(c *corev1.Container) {
				t := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{*c}}}
				d.Template(t)
				*c = t.Spec.Containers[0]
			})
			if err != nil || c == nil {
				return fmt.Errorf("spec.%s[%d] is not a container: %w", name, i, err)
			}
			maps.Copy(c, filled) // what is a sidecar's own stays
			if name == "containers" {
				setDefault(c, "BeforeAppContainer", "podInjectPolicy")
			}
			setDefault(c, "ColdUpgrade", "upgradeStrategy", "upgradeType")
			setDefault(c, "disabled", "shareVolumePolicy", "type")
		}
	}
	set, err := read[SidecarSet](u)
	if err != nil {
		return err
	}
	full, withoutImage := set.Spec.hashes()
	u.SetAnnotations(labels.Merge(u.GetAnnotations(), map[string]string{sidecarHashAnnotation: full,
		sidecarHashNoImageAnnotation: withoutImage}))
	return nil
}

func (d Defaulter) unitedDeployment(spec map[string]any) error {
	setDefault(spec, int64(10), "revisionHistoryLimit")
	setDefault(spec, "Manual", "updateStrategy", "type")
	setDefault(spec, map[string]any{}, "updateStrategy", "manualUpdate")
	setDefault(spec, "Fixed", "topology", "scheduleStrategy", "type")
	for name := range childTemplates {
		path := []string{"template", name, "spec", "template"}
		template, found, err := unstructured.NestedMap(spec, path...)
		if err != nil || !found {
			continue
		}
		filled, err := refill(template, d.Template)
		if err != nil {
			return fmt.Errorf("spec.template.%s.spec.template: %w", name, err)
		}
		if err := unstructured.SetNestedMap(spec, filled, path...); err != nil {
			return err
		}
	}
	return nil
}
