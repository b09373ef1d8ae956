package interpret

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// PodTemplate returns the pod template at a path from PodTemplates. It shares no memory with obj.
func PodTemplate(obj *unstructured.Unstructured, path []string) (*corev1.PodTemplateSpec, error) {
	raw := fields.Object(obj.Object, path...)
	if raw == nil {
		return nil, fmt.Errorf("%s is not an object", strings.Join(path, "."))
	}
	t := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, t); err != nil {
		return nil, fmt.Errorf("decode the pod template at %q: %w", strings.Join(path, "."), err)
	}
	return t, nil
}

// PodSpec returns the pod spec at a path from PodSpecs as a template. It shares no memory with obj.
func PodSpec(obj *unstructured.Unstructured, path []string) (*corev1.PodTemplateSpec, error) {
	raw := fields.Object(obj.Object, path...)
	if raw == nil {
		return nil, fmt.Errorf("%s is not an object", strings.Join(path, "."))
	}
	// Omit fields that have the same name but another meaning than in pods.
	spec := map[string]any{}
	for _, key := range []string{"containers", "initContainers", "ephemeralContainers", "volumes", "imagePullSecrets"} {
		if v := raw[key]; v != nil {
			spec[key] = v
		}
	}
	t := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": spec}, t); err != nil {
		return nil, fmt.Errorf("decode the containers and volumes at %q: %w", strings.Join(path, "."), err)
	}
	return t, nil
}

// PodRequirements returns the requirements of one pod of the template, computed as by the scheduler. It is never nil,
// because requirements mark a workload.
func PodRequirements(t *corev1.PodTemplateSpec, namespace string) *workv1alpha2.ReplicaRequirements {
	req := &workv1alpha2.ReplicaRequirements{
		Namespace:         namespace,
		PriorityClassName: t.Spec.PriorityClassName,
	}
	pod := corev1.Pod{Spec: t.Spec}
	pod.Spec.Containers = requestLimits(t.Spec.Containers)
	pod.Spec.InitContainers = requestLimits(t.Spec.InitContainers)
	if requests := resource.PodRequests(&pod, resource.PodResourcesOptions{}); len(requests) > 0 {
		req.ResourceRequest = requests
	}

	claim := workv1alpha2.NodeClaim{NodeSelector: t.Spec.NodeSelector, Tolerations: t.Spec.Tolerations}
	if a := t.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		claim.HardNodeAffinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if claim.HardNodeAffinity != nil || len(claim.NodeSelector) > 0 || len(claim.Tolerations) > 0 {
		req.NodeClaim = claim.DeepCopy()
	}
	return req
}

// requestLimits sets missing requests to the limits, as the API server does for pods, but not for templates.
func requestLimits(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		r := &out[i].Resources
		requests := corev1.ResourceList{}
		maps.Copy(requests, r.Limits)
		maps.Copy(requests, r.Requests)
		r.Requests = requests
	}
	return out
}

// PodDependencies returns the objects that a pod of the template needs to start, sorted and unique. It omits the
// default ServiceAccount, which every namespace has.
func PodDependencies(t *corev1.PodTemplateSpec, namespace string) []configv1alpha1.DependentObjectReference {
	var deps []configv1alpha1.DependentObjectReference
	need := func(kind, name string) {
		if name != "" {
			deps = append(deps, configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: kind, Namespace: namespace,
				Name: name})
		}
	}
	secret := func(ref *corev1.LocalObjectReference) {
		if ref != nil {
			need("Secret", ref.Name)
		}
	}

	environment := func(env []corev1.EnvVar, from []corev1.EnvFromSource) {
		for _, e := range env {
			if e.ValueFrom == nil {
				continue
			}
			if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
				need("ConfigMap", r.Name)
			}
			if r := e.ValueFrom.SecretKeyRef; r != nil {
				need("Secret", r.Name)
			}
		}
		for _, f := range from {
			if r := f.ConfigMapRef; r != nil {
				need("ConfigMap", r.Name)
			}
			if r := f.SecretRef; r != nil {
				need("Secret", r.Name)
			}
		}
	}
	for _, c := range t.Spec.InitContainers {
		environment(c.Env, c.EnvFrom)
	}
	for _, c := range t.Spec.Containers {
		environment(c.Env, c.EnvFrom)
	}
	for _, c := range t.Spec.EphemeralContainers {
		environment(c.Env, c.EnvFrom)
	}

	for _, v := range t.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			need("ConfigMap", v.ConfigMap.Name)
		case v.Secret != nil:
			need("Secret", v.Secret.SecretName)
		case v.PersistentVolumeClaim != nil:
			need("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					need("ConfigMap", s.ConfigMap.Name)
				}
				if s.Secret != nil {
					need("Secret", s.Secret.Name)
				}
			}
		case v.CSI != nil:
			secret(v.CSI.NodePublishSecretRef)
		case v.CephFS != nil:
			secret(v.CephFS.SecretRef)
		case v.RBD != nil:
			secret(v.RBD.SecretRef)
		case v.ISCSI != nil:
			secret(v.ISCSI.SecretRef)
		case v.FlexVolume != nil:
			secret(v.FlexVolume.SecretRef)
		case v.ScaleIO != nil:
			secret(v.ScaleIO.SecretRef)
		case v.StorageOS != nil:
			secret(v.StorageOS.SecretRef)
		case v.AzureFile != nil:
			need("Secret", v.AzureFile.SecretName)
		}
	}

	for _, s := range t.Spec.ImagePullSecrets {
		need("Secret", s.Name)
	}
	account := cmp.Or(t.Spec.ServiceAccountName, t.Spec.DeprecatedServiceAccount)
	if account != "default" {
		need("ServiceAccount", account)
	}
	return SortDependencies(deps)
}

// SortDependencies sorts deps in place and removes duplicates.
func SortDependencies(deps []configv1alpha1.DependentObjectReference) []configv1alpha1.DependentObjectReference {
	compare := func(a, b configv1alpha1.DependentObjectReference) int {
		return cmp.Or(
			cmp.Compare(a.APIVersion, b.APIVersion),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(selector(a.LabelSelector), selector(b.LabelSelector)),
		)
	}
	slices.SortFunc(deps, compare)
	return slices.CompactFunc(deps, func(a, b configv1alpha1.DependentObjectReference) bool { return compare(a, b) == 0 })
}

// selector returns a text that is unique per selector. Unlike FormatLabelSelector it is empty for nil.
func selector(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	return metav1.FormatLabelSelector(s)
}
