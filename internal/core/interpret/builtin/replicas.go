package builtin

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// replicas reads spec.replicas, one when unset, and what a pod of the template needs.
func replicas(_ context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	n, err := specNumber(obj, 1, "replicas")
	if err != nil {
		return 0, nil, err
	}
	req, err := requirements(obj)
	return int32(n), req, err
}

// requirements are those of the object's only pod template; nil without one.
func requirements(obj *unstructured.Unstructured) (*workv1alpha2.ReplicaRequirements, error) {
	paths := interpret.PodTemplates(obj)
	if len(paths) == 0 {
		return nil, nil
	}
	t, err := interpret.PodTemplate(obj, paths[0])
	if err != nil {
		return nil, err
	}
	return interpret.PodRequirements(t, obj.GetNamespace()), nil
}

// revise sets spec.replicas.
func revise(_ context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error) {
	revised := obj.DeepCopy()
	return revised, unstructured.SetNestedField(revised.Object, int64(replicas), "spec", "replicas")
}

// retainReplicas leaves spec.replicas to the member, an autoscaler there perhaps, when the template's label asks for it.
func retainReplicas(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if desired.GetLabels()[policyv1alpha1.RetainReplicasLabel] != "true" {
		return desired, nil
	}
	n, ok := whole(field(observed.Object, "spec", "replicas"))
	if !ok {
		return desired, nil
	}
	return revise(ctx, desired, int32(n))
}

// podDependencies are what the pods of all templates of obj need. Claims made from claim templates are not among them:
// each member's controller makes its own.
func podDependencies(_ context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	var deps []configv1alpha1.DependentObjectReference
	for _, path := range interpret.PodTemplates(obj) {
		t, err := interpret.PodTemplate(obj, path)
		if err != nil {
			return nil, err
		}
		if len(path) > 0 {
			beside := append(path[:len(path)-1:len(path)-1], "volumeClaimTemplates")
			made := madeFrom(objects(obj.Object, beside...), obj.GetName())
			t.Spec.Volumes = slices.DeleteFunc(t.Spec.Volumes, made)
		}
		deps = append(deps, interpret.PodDependencies(t, obj.GetNamespace())...)
	}
	return interpret.SortDependencies(deps), nil
}

// madeFrom says whether a volume is, or stands for, a claim made from one of the claim templates for the set: by the
// volume's name, which the controller fills in, by the template's name, or by a pod's claim <template>-<set>-<pod>.
func madeFrom(templates []map[string]any, set string) func(corev1.Volume) bool {
	return func(v corev1.Volume) bool {
		for _, t := range templates {
			name := text(t, "metadata", "name")
			if name == "" {
				continue
			}
			if v.Name == name {
				return true
			}
			if c := v.PersistentVolumeClaim; c != nil && (c.ClaimName == name || strings.HasPrefix(c.ClaimName, name+"-"+set+"-")) {
				return true
			}
		}
		return false
	}
}
