package kruise

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
			Labels:          labels.Merge(template.Labels, map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// newClaims returns the claims of a new pod from their templates, labelled as the set selects, and mounts them.
func newClaims(templates []corev1.PersistentVolumeClaim, selector *metav1.LabelSelector,
	pod *corev1.Pod) (claims []*corev1.PersistentVolumeClaim) {
	for _, template := range templates {
		claim := template.DeepCopy()
		claim.TypeMeta = metav1.TypeMeta{}
		claim.Namespace, claim.Name = pod.Namespace, template.Name+"-"+pod.Name
		claim.Status = corev1.PersistentVolumeClaimStatus{}
		if selector != nil {
			claim.Labels = labels.Merge(claim.Labels, selector.MatchLabels)
		}
		claims = append(claims, claim)
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == template.Name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
	}
	return claims
}
