package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// PublishedAs returns the namespace and the name under which the clusters of a policy are published as
// PlacementDecisions; empty if they are not.
func PublishedAs(p policyv1alpha1.Propagation) (types.NamespacedName, error) {
	value, ok := p.GetAnnotations()[wellknown.PlacementDecisionAnnotation]
	if !ok {
		return types.NamespacedName{}, nil
	}
	at, shape := types.NamespacedName{Namespace: p.GetNamespace(), Name: value}, "NAME"
	if p.GetNamespace() == "" {
		at.Namespace, at.Name, _ = strings.Cut(value, "/")
		shape = "NAMESPACE/NAME"
	}
	if len(validation.IsDNS1123Label(at.Namespace)) > 0 || len(validation.IsDNS1123Label(at.Name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("the annotation %s=%q is not %s: each consists of at most 63 lower-case "+
			"letters, digits and hyphens", wellknown.PlacementDecisionAnnotation, value, shape)
	}
	return at, nil
}

// Published returns those of the clusters of bindings that are in sets, sorted.
func Published(bindings []workv1alpha2.Binding, sets []setv1beta2.ManagedClusterSet,
	clusters []clusterv1.ManagedCluster) ([]string, error) {
	_, bound, err := candidates(Input{Placement: &placementv1beta1.Placement{}, Sets: sets, Clusters: clusters})
	return slices.DeleteFunc(ClustersOf(bindings), func(name string) bool {
		return !slices.ContainsFunc(bound, func(mc *clusterv1.ManagedCluster) bool { return mc.Name == name })
	}), err
}

// ClustersOf returns the clusters of bindings, sorted: those that they are placed in, and those that they leave when
// their replacements are healthy.
func ClustersOf(bindings []workv1alpha2.Binding) []string {
	all := map[string]bool{}
	for _, b := range bindings {
		for _, c := range b.BindingSpec().Clusters {
			all[c.Name] = true
		}
		for _, task := range b.BindingSpec().GracefulEvictionTasks {
			all[task.FromCluster] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
