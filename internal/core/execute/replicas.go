package execute

import (
	"cmp"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/fields"
)

// Share is retained with the replicas of manifest, where it has those of the member's object though nobody in the
// member has set them: then they are what the hub gave it before, and to keep them would only mean that nobody can
// scale. What an autoscaler or somebody else set there stays, and so it does where the label retain-replicas leaves all
// of it to the member. It says whether it differs from retained, which is not changed. manager is the hub's in managed
// fields.
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

// replicasAlone are fields that are spec.replicas and no other.
const replicasAlone = `{"f:spec":{"f:replicas":{}}}`

// ScaledBy are those of an object's managed fields by which somebody but manager has set spec.replicas, each with that
// field alone.
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

// Target is a workload that an autoscaler scales.
type Target struct {
	schema.GroupKind
	Namespace, Name string
}

// TargetOf is the workload that a HorizontalPodAutoscaler or a ScaledObject of KEDA scales; ok is false if it names
// none.
func TargetOf(scaler *unstructured.Unstructured) (t Target, ok bool) {
	ref := fields.Object(scaler.Object, "spec", "scaleTargetRef")
	apiVersion, kind := fields.Text(ref, "apiVersion"), fields.Text(ref, "kind")
	if scaler.GetKind() == "ScaledObject" {
		apiVersion, kind = cmp.Or(apiVersion, "apps/v1"), cmp.Or(kind, "Deployment")
	}
	t = Target{schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind(), scaler.GetNamespace(), fields.Text(ref, "name")}
	return t, kind != "" && t.Name != ""
}

// Scaled says whether a manifest and the object that a member made of it have replicas, and other ones; then they may
// be an autoscaler's. Where the label leaves them to the member anyway nobody needs to know.
func Scaled(manifest, observed *unstructured.Unstructured) bool {
	given, set := replicas(manifest)
	has, there := replicas(observed)
	return set && there && given != has && manifest.GetLabels()[policyv1alpha1.RetainReplicasLabel] != "true"
}

// KeepsOld says whether the rollout of a manifest keeps a number of pods on the old revision. An autoscaler that adds
// pods then adds some of the new one.
func KeepsOld(manifest *unstructured.Unstructured) bool {
	if _, has := replicas(manifest); !has || manifest.GetLabels()[policyv1alpha1.RetainReplicasLabel] == "true" {
		return false
	}
	return fields.Number(manifest.Object, "spec", "updateStrategy", "rollingUpdate", "partition") > 0 ||
		fields.Number(manifest.Object, "spec", "updateStrategy", "partition") > 0
}

// KeepScaled is retained with the replicas of the member's object, which an autoscaler there sets; retained itself if
// it has these, or none.
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
