package validate

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Named is something that a policy or a Remedy names, and where.
type Named struct {
	Path  *field.Path
	Value string
}

// Names are the names in a policy, apart from templates. A misspelt name selects nothing. It is not an error, because
// the object may be created later.
type Names struct {
	// Kinds has the selectors, each at its path.
	Kinds                []NamedKind
	Clusters, Namespaces []Named
}

// NamedKind is a kind that a selector names, or with an empty path a kind that the hub serves.
type NamedKind struct {
	Path             *field.Path
	APIVersion, Kind string
}

// NamesOf returns the names in a PropagationPolicy or ClusterPropagationPolicy.
func NamesOf(p policyv1alpha1.Propagation) (n Names) {
	spec, path := p.PropagationSpec(), field.NewPath("spec")
	n.selectors(spec.ResourceSelectors, p.GetNamespace(), path)
	placement := path.Child("placement")
	n.affinity(spec.Placement.ClusterAffinity, placement.Child("clusterAffinity"))
	for i := range spec.Placement.ClusterAffinities {
		n.affinity(&spec.Placement.ClusterAffinities[i].ClusterAffinity, placement.Child("clusterAffinities").Index(i))
	}
	if s := spec.Placement.ReplicaScheduling; s != nil && s.WeightPreference != nil {
		for i := range s.WeightPreference.StaticWeightList {
			n.affinity(&s.WeightPreference.StaticWeightList[i].TargetCluster,
				placement.Child("replicaScheduling", "weightPreference", "staticWeightList").Index(i).Child("targetCluster"))
		}
	}
	if s := spec.Suspension; s != nil && s.DispatchingOnClusters != nil {
		n.clusters(s.DispatchingOnClusters.ClusterNames, path.Child("suspension", "dispatchingOnClusters", "clusterNames"))
	}
	return n
}

// NamesOfOverride returns the names in an OverridePolicy or ClusterOverridePolicy.
func NamesOfOverride(o policyv1alpha1.Override) (n Names) {
	spec, path := o.OverrideSpec(), field.NewPath("spec")
	n.selectors(spec.ResourceSelectors, o.GetNamespace(), path)
	n.affinity(spec.TargetCluster, path.Child("targetCluster"))
	for i := range spec.OverrideRules {
		n.affinity(spec.OverrideRules[i].TargetCluster, path.Child("overrideRules").Index(i).Child("targetCluster"))
	}
	return n
}

// NamesOfService returns the names in a MultiClusterService.
func NamesOfService(s *networkingv1alpha1.MultiClusterService) (n Names) {
	path := field.NewPath("spec")
	n.clusters(s.Spec.ServiceProvisionClusters, path.Child("serviceProvisionClusters"))
	n.clusters(s.Spec.ServiceConsumptionClusters, path.Child("serviceConsumptionClusters"))
	for i, c := range s.Spec.ProviderClusters {
		n.Clusters = append(n.Clusters, Named{path.Child("providerClusters").Index(i).Child("name"), c.Name})
	}
	for i, c := range s.Spec.ConsumerClusters {
		n.Clusters = append(n.Clusters, Named{path.Child("consumerClusters").Index(i).Child("name"), c.Name})
	}
	return n
}

func (n *Names) selectors(selectors []policyv1alpha1.ResourceSelector, own string, path *field.Path) {
	for i, s := range selectors {
		at := path.Child("resourceSelectors").Index(i)
		n.Kinds = append(n.Kinds, NamedKind{at, s.APIVersion, s.Kind})
		if s.Namespace != "" && s.Namespace != own {
			n.Namespaces = append(n.Namespaces, Named{at.Child("namespace"), s.Namespace})
		}
	}
}

func (n *Names) affinity(a *policyv1alpha1.ClusterAffinity, path *field.Path) {
	if a != nil {
		n.clusters(a.ClusterNames, path.Child("clusterNames"))
		n.clusters(a.ExcludeClusters, path.Child("exclude"))
	}
}

func (n *Names) clusters(names []string, path *field.Path) {
	for i, name := range names {
		n.Clusters = append(n.Clusters, Named{path.Index(i), name})
	}
}

// MissingCluster returns the warning about a cluster that is not in the fleet; known are the clusters of the fleet.
func MissingCluster(n Named, known []string) string {
	return fmt.Sprintf("%s: no cluster is named %q%s", n.Path, n.Value, meant(n.Value, known))
}

// MissingNamespace returns the warning about a namespace that the hub does not have; known are its namespaces.
func MissingNamespace(n Named, known []string) string {
	return fmt.Sprintf("%s: the hub has no namespace %q%s", n.Path, n.Value, meant(n.Value, known))
}

// MissingKind returns the warning about a kind that the hub does not serve; known are kinds that it serves.
func MissingKind(n NamedKind, known []NamedKind) string {
	return fmt.Sprintf("%s: the hub serves no kind %s in %s%s", n.Path, n.Kind, n.APIVersion, meantKind(n, known))
}

// MeantKind returns the kind that the user probably meant instead of one that the hub does not serve: one of the same
// group, or else of another group, because the group may be misspelt.
func MeantKind(n NamedKind, known []NamedKind) (NamedKind, bool) {
	var same, all []string
	for _, k := range known {
		if group(k) == group(n) {
			same = append(same, k.Kind)
		}
		all = append(all, k.Kind)
	}
	kind := text.Meant(n.Kind, same)
	inGroup := kind != ""
	if !inGroup {
		kind = text.Meant(n.Kind, all)
	}
	var versions []string
	for _, k := range known {
		if k.Kind == kind && (!inGroup || group(k) == group(n)) {
			versions = append(versions, k.APIVersion)
		}
	}
	if kind == "" || len(versions) == 0 {
		return NamedKind{}, false
	}
	return NamedKind{APIVersion: cmp.Or(text.Meant(n.APIVersion, versions), versions[0]), Kind: kind}, true
}

// meantKind suggests the kind that the user probably meant, or explains that the kind may be created later.
func meantKind(n NamedKind, known []NamedKind) string {
	m, ok := MeantKind(n, known)
	switch {
	case !ok:
		return meant(n.Kind, nil)
	case group(m) == group(n):
		return fmt.Sprintf("; did you mean %s?", m.Kind)
	}
	return fmt.Sprintf("; did you mean %s in %s?", m.Kind, m.APIVersion)
}

func group(k NamedKind) string {
	gv, _ := schema.ParseGroupVersion(k.APIVersion) // an invalid version has no group
	return gv.Group
}

// meant suggests the name that the user probably meant, or explains that the object may be created later.
func meant(name string, known []string) string {
	if m := text.MeantObject(name, known); m != "" {
		return fmt.Sprintf("; did you mean %s?", m)
	}
	return "; it has no effect until there is one"
}
