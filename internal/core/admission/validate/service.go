package validate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// MultiClusterService validates a MultiClusterService; old is nil for a new one. It uses the messages of Karmada.
func MultiClusterService(s, old *networkingv1alpha1.MultiClusterService) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	errs = append(errs, valid(field.NewPath("metadata", "name"), s.Name, validation.IsDNS1035Label)...)
	if old != nil && !slices.Equal(old.Spec.Types, s.Spec.Types) {
		errs = append(errs, field.Invalid(spec.Child("types"), s.Spec.Types, "MultiClusterService types are immutable"))
	}

	named := map[string]bool{}
	for i, port := range s.Spec.Ports {
		path := spec.Child("ports").Index(i)
		if port.Name != "" {
			errs = append(errs, valid(path.Child("name"), port.Name, validation.IsDNS1123Label)...)
			if named[port.Name] {
				errs = append(errs, field.Duplicate(path.Child("name"), port.Name))
			}
			named[port.Name] = true
		}
		errs = append(errs, valid(path.Child("port"), int(port.Port), validation.IsValidPortNum)...)
	}

	types := map[networkingv1alpha1.ExposureType]bool{}
	for i, t := range s.Spec.Types {
		types[t] = true
		if t != networkingv1alpha1.ExposureTypeCrossCluster && t != networkingv1alpha1.ExposureTypeLoadBalancer {
			errs = append(errs, field.Invalid(spec.Child("types").Index(i), t, fmt.Sprintf("ExposureType Error: give %s or %s",
				networkingv1alpha1.ExposureTypeCrossCluster, networkingv1alpha1.ExposureTypeLoadBalancer)))
		}
	}
	if len(types) > 1 {
		errs = append(errs, field.Invalid(spec.Child("types"), s.Spec.Types,
			"MultiClusterService types should not contain more than one type"))
	}

	for _, of := range []struct {
		field    string
		clusters []networkingv1alpha1.ClusterSelector
	}{{"providerClusters", s.Spec.ProviderClusters}, {"consumerClusters", s.Spec.ConsumerClusters}} {
		for i, c := range of.clusters {
			errs = append(errs, ClusterName(c.Name, spec.Child(of.field).Index(i).Child("name"))...)
		}
	}
	return errs
}

// MultiClusterServiceAdvice warns about valid settings of a MultiClusterService that have less effect than they
// suggest.
func MultiClusterServiceAdvice(s *networkingv1alpha1.MultiClusterService) (advice []string) {
	if len(s.Spec.Types) == 0 {
		advice = append(advice, "spec.types: without a type the object has no effect; CrossCluster lets clusters reach each other's Service")
	}
	if slices.Contains(s.Spec.Types, networkingv1alpha1.ExposureTypeLoadBalancer) {
		advice = append(advice, "spec.types: LoadBalancer is left to a load balancer provider outside of the hub, as in Karmada: "+
			"without a provider it has no effect; CrossCluster is implemented by the hub itself")
	}
	if len(s.Spec.Range.ClusterNames) > 0 {
		advice = append(advice, "spec.range: deprecated, and has no effect; use spec.providerClusters and spec.consumerClusters")
	}
	for _, old := range []struct {
		was, is  string
		clusters []string
		hidden   bool
	}{
		{"serviceProvisionClusters", "providerClusters", s.Spec.ServiceProvisionClusters, len(s.Spec.ProviderClusters) > 0},
		{"serviceConsumptionClusters", "consumerClusters", s.Spec.ServiceConsumptionClusters,
			len(s.Spec.ConsumerClusters) > 0},
	} {
		if len(old.clusters) > 0 && old.hidden {
			advice = append(advice, fmt.Sprintf("spec.%s: has no effect when spec.%s is set", old.was, old.is))
		}
	}
	return advice
}

// ServiceImport validates a new ServiceImport. It has the name of the Service that it imports, and clusters get a
// derived Service.
func ServiceImport(i *multiclusterv1alpha1.ServiceImport) field.ErrorList {
	var errs field.ErrorList
	derived := names.DerivedService(i.Name)
	for _, msg := range validation.IsDNS1035Label(derived) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), i.Name,
			fmt.Sprintf("clusters reach it as Service %s: %s", derived, msg)))
	}
	if most := validation.DNS1035LabelMaxLength; len(i.Name) > most {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), "", most))
	}
	return errs
}

// serviceName returns a name that a Service may have.
func serviceName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name the Service")}
	}
	return valid(path, name, validation.IsDNS1035Label)
}
