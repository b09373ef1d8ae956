package dispatch

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// sometimes are the annotations and labels that only some Works have: those that are no longer wanted are removed.
// Other unwanted keys belong to others and stay.
var sometimes = []string{
	policyv1alpha1.AppliedOverridesAnnotation,
	policyv1alpha1.AppliedClusterOverridesAnnotation,
	workv1alpha2.ConflictResolutionAnnotation,
	workv1alpha2.ResourceBindingPermanentIDLabel,
	workv1alpha2.ResourceBindingNamespaceAnnotation,
	workv1alpha2.ResourceBindingNameAnnotation,
	workv1alpha2.ClusterResourceBindingPermanentIDLabel,
	workv1alpha2.ClusterResourceBindingNameAnnotation,
	wellknown.FleetAnnotation,
	fleet.EffectiveRevisionAnnotation,
	wellknown.UpdateStrategyAnnotation,
	wellknown.IgnoredFieldsAnnotation,
	wellknown.LeavingAnnotation,
}

// Differs reports whether existing must be written to become wanted. Status, server-set fields, and labels,
// annotations and finalizers of others do not count.
func Differs(existing, wanted *workv1alpha1.Work) bool {
	return keysDiffer(existing.Labels, wanted.Labels) ||
		keysDiffer(existing.Annotations, wanted.Annotations) ||
		slices.ContainsFunc(wanted.Finalizers, func(f string) bool { return !slices.Contains(existing.Finalizers, f) }) ||
		isTrue(existing.Spec.SuspendDispatching) != isTrue(wanted.Spec.SuspendDispatching) ||
		isTrue(existing.Spec.PreserveResourcesOnDeletion) != isTrue(wanted.Spec.PreserveResourcesOnDeletion) ||
		manifestsDiffer(existing.Spec.Workload.Manifests, wanted.Spec.Workload.Manifests)
}

// Onto returns existing changed to wanted, to be written when it Differs. Fields of others stay.
func Onto(existing, wanted *workv1alpha1.Work) *workv1alpha1.Work {
	out := existing.DeepCopy()
	out.Labels = keysOnto(out.Labels, wanted.Labels)
	out.Annotations = keysOnto(out.Annotations, wanted.Annotations)
	for _, f := range wanted.Finalizers {
		if !slices.Contains(out.Finalizers, f) {
			out.Finalizers = append(out.Finalizers, f)
		}
	}
	out.Spec = *wanted.Spec.DeepCopy()
	return out
}

func keysDiffer(existing, wanted map[string]string) bool {
	for key, value := range wanted {
		if v, ok := existing[key]; !ok || v != value {
			return true
		}
	}
	for _, key := range sometimes {
		if _, ok := existing[key]; ok {
			if _, ok := wanted[key]; !ok {
				return true
			}
		}
	}
	return false
}

func keysOnto(existing, wanted map[string]string) map[string]string {
	for _, key := range sometimes {
		delete(existing, key)
	}
	if existing == nil {
		existing = make(map[string]string, len(wanted))
	}
	for key, value := range wanted {
		existing[key] = value
	}
	return existing
}

func isTrue(b *bool) bool { return b != nil && *b }

// manifestsDiffer compares the bytes first: an API server returns what it received.
func manifestsDiffer(existing, wanted []workv1alpha1.Manifest) bool {
	if len(existing) != len(wanted) {
		return true
	}
	for i := range wanted {
		if bytes.Equal(existing[i].Raw, wanted[i].Raw) {
			continue
		}
		var x, y any
		if json.Unmarshal(existing[i].Raw, &x) != nil || json.Unmarshal(wanted[i].Raw, &y) != nil ||
			!reflect.DeepEqual(x, y) {
			return true
		}
	}
	return false
}
