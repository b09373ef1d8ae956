package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
)

// ManagedCluster validates a ManagedCluster.
func ManagedCluster(mc *clusterv1.ManagedCluster) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if why := klusterlet.CheckName(mc.Name); why != "" {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), why))
	}
	if d := mc.Spec.LeaseDurationSeconds; d < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), d, "must not be negative"))
	}
	return errs
}

// Origin refuses changes of the annotations by which the hub marks the objects of a cluster that it writes itself. With
// them, a user could make the hub take the rights of a klusterlet away, leave a cluster to one, or take a ManifestWork
// for its own.
func Origin(is, was map[string]string) (errs field.ErrorList) {
	for _, key := range []string{wellknown.DerivedFromAnnotation, wellknown.DerivedAnnotation, wellknown.WorkAnnotation} {
		at := field.NewPath("metadata", "annotations").Key(key)
		now, has := is[key]
		switch value, had := was[key]; {
		case has == had && now == value:
		case had:
			errs = append(errs, field.Forbidden(at, "only the hub writes it: keep its value"))
		default:
			errs = append(errs, field.Forbidden(at, "only the hub writes it: remove it"))
		}
	}
	return errs
}
