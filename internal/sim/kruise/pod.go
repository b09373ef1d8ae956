package kruise

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// controllerRef makes the object, in the version that it was read in, the controller of another.
func controllerRef(o metav1.Object, t *metav1.TypeMeta) metav1.OwnerReference {
	return *metav1.NewControllerRef(o, t.GroupVersionKind())
}

// fromTemplate returns a pod of a set, not named yet.
func fromTemplate(template *corev1.PodTemplateSpec, set *metav1.ObjectMeta, owner metav1.OwnerReference,
	revision string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       set.Namespace,
			Labels:          merged(template.Labels, map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// newClaim returns the claim of that name from its template, labelled as the set selects.
func newClaim(template corev1.PersistentVolumeClaim, set *metav1.ObjectMeta, selector *metav1.LabelSelector,
	name string) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.TypeMeta = metav1.TypeMeta{}
	claim.Namespace, claim.Name = set.Namespace, name
	claim.Status = corev1.PersistentVolumeClaimStatus{}
	if selector != nil {
		claim.Labels = merged(claim.Labels, selector.MatchLabels)
	}
	return claim
}

// mount makes the volume of that name the claim.
func mount(pod *corev1.Pod, volume, claim string) {
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: volume,
		VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		},
	})
}
