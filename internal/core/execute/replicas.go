package execute

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Share returns retained with the replicas of manifest, where Retain kept the member's replicas although only the hub
// had set them: otherwise the template could never be scaled. Replicas that an autoscaler or a user set in the member
// stay, and so do all with the label retain-replicas. The second value is true if the result differs from retained.
// manager is the hub's name in managed fields.
func Share(manifest, retained, observed *unstructured.Unstructured, manager string) (*unstructured.Unstructured, bool) {
	if retained == manifest || manifest.GetLabels()[policyv1alpha1.RetainReplicasLabel] == "true" {
		return retained, false
	}
	given, set := replicas(manifest)
	kept, keeps := replicas(retained)
	if has, there := replicas(observed); !set || !keeps || !there || kept != has || kept == given ||
		len(ScaledBy(observed.GetManagedFields(), manager)) > 0 {
		return retained, false
	}
	out := retained.DeepCopy()
	if unstructured.SetNestedField(out.Object, given, "spec", "replicas") != nil {
		return retained, false
	}
	return out, true
}

func replicas(obj *unstructured.Unstructured) (int64, bool) {
	v, _, err := unstructured.NestedFieldNoCopy(obj.Object, "spec", "replicas")
	switch n := v.(type) {
	case int64:
		return n, err == nil
	case float64:
		return int64(n), err == nil && n == float64(int64(n))
	}
	return 0, false
}

// replicasAlone is a field set with spec.replicas only.
const replicasAlone = `{"f:spec":{"f:replicas":{}}}`

// ScaledBy returns the managed fields by which others than manager set spec.replicas, reduced to that field.
func ScaledBy(managed []metav1.ManagedFieldsEntry, manager string) (entries []metav1.ManagedFieldsEntry) {
	for _, e := range managed {
		if e.Manager == manager || e.Subresource == "status" || e.FieldsV1 == nil ||
			!strings.Contains(e.FieldsV1.GetRawString(), `"f:replicas"`) {
			continue
		}
		var fields struct {
			Spec struct {
				Replicas *struct{} `json:"f:replicas"`
			} `json:"f:spec"`
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) == nil && fields.Spec.Replicas != nil {
			e.Time, e.FieldsV1 = nil, metav1.NewFieldsV1(replicasAlone)
			entries = append(entries, e)
		}
	}
	return entries
}

// Target is the workload that an autoscaler scales.
type Target struct {
	schema.GroupKind
	Namespace, Name string
}

// String identifies the workload among all.
func (t Target) String() string { return t.GroupKind.String() + " " + t.Namespace + "/" + t.Name }

// TargetOf returns the workload that an autoscaler scales; ok is false for other objects, and if it names none.
func TargetOf(scaler *unstructured.Unstructured) (t Target, ok bool) {
	k := kind.Facts(scaler)
	if k.Scaler == nil {
		return t, false
	}
	gk, name, ok := k.Target(scaler.Object)
	return Target{gk, scaler.GetNamespace(), name}, ok
}

// Scaled reports whether an object's replicas differ from the manifest's, so that they may be an autoscaler's. With the
// label retain-replicas they always belong to the member, and Scaled returns false.
func Scaled(manifest, observed *unstructured.Unstructured) bool {
	given, set := replicas(manifest)
	has, there := replicas(observed)
	return set && there && given != has && manifest.GetLabels()[policyv1alpha1.RetainReplicasLabel] != "true"
}

// KeepsOld reports whether the rollout of a manifest keeps pods of the old revision. An autoscaler then adds pods of
// the new one.
func KeepsOld(manifest *unstructured.Unstructured) bool {
	if _, has := replicas(manifest); !has || manifest.GetLabels()[policyv1alpha1.RetainReplicasLabel] == "true" {
		return false
	}
	return fields.Number(manifest.Object, "spec", "updateStrategy", "rollingUpdate", "partition") > 0 ||
		fields.Number(manifest.Object, "spec", "updateStrategy", "partition") > 0
}

// KeepScaled returns retained with the replicas of the member's object, which an autoscaler there sets.
func KeepScaled(retained, observed *unstructured.Unstructured) *unstructured.Unstructured {
	if !Scaled(retained, observed) {
		return retained
	}
	has, _ := replicas(observed)
	out := retained.DeepCopy()
	if unstructured.SetNestedField(out.Object, has, "spec", "replicas") != nil {
		return retained
	}
	return out
}
