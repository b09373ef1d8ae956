package validate

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/lint"
)

// Named is something that a policy names, and where.
type Named struct {
	Path  *field.Path
	Value string
}

// Names are what a policy names beside templates: a misspelt name selects nothing, and nothing is refused for it, since
// what it names may come later.
type Names struct {
	// Kinds has the selectors, each at its path.
	Kinds                []NamedKind
	Clusters, Namespaces []Named
}

// NamedKind is the kind that a selector names, or one that the hub serves, at no path.
type NamedKind struct {
	Path             *field.Path
	APIVersion, Kind string
}

// NamesOf are those of a PropagationPolicy or ClusterPropagationPolicy.
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

// NamesOfOverride are those of an OverridePolicy or ClusterOverridePolicy.
func NamesOfOverride(o policyv1alpha1.Override) (n Names) {
	spec, path := o.OverrideSpec(), field.NewPath("spec")
	n.selectors(spec.ResourceSelectors, o.GetNamespace(), path)
	n.affinity(spec.TargetCluster, path.Child("targetCluster"))
	for i := range spec.OverrideRules {
		n.affinity(spec.OverrideRules[i].TargetCluster, path.Child("overrideRules").Index(i).Child("targetCluster"))
	}
	return n
}

// NamesOfService are those of a MultiClusterService.
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

// MissingCluster is what the author of a policy is told of a cluster that is not in the fleet; known are those that
// are.
func MissingCluster(n Named, known []string) string {
	return fmt.Sprintf("%s: no cluster is named %q%s", n.Path, n.Value, meant(n.Value, known))
}

// MissingNamespace is what the author of a policy is told of a namespace that the hub does not have; known are those
// that it has.
func MissingNamespace(n Named, known []string) string {
	return fmt.Sprintf("%s: the hub has no namespace %q%s", n.Path, n.Value, meant(n.Value, known))
}

// MissingKind is what the author of a policy is told of a kind that the hub does not serve; known are some that it
// does.
func MissingKind(n NamedKind, known []NamedKind) string {
	return fmt.Sprintf("%s: the hub serves no kind %s in %s%s", n.Path, n.Kind, n.APIVersion, meantKind(n, known))
}

// MeantKind returns the kind that was probably meant by one that the hub does not serve: one of the same group, or else
// one of another group, which may be what is misspelt.
func MeantKind(n NamedKind, known []NamedKind) (NamedKind, bool) {
	var same, all []string
	for _, k := range known {
		if group(k) == group(n) {
			same = append(same, k.Kind)
		}
		all = append(all, k.Kind)
	}
	kind := lint.Meant(n.Kind, same)
	inGroup := kind != ""
	if !inGroup {
		kind = lint.Meant(n.Kind, all)
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
	return NamedKind{APIVersion: cmp.Or(lint.Meant(n.APIVersion, versions), versions[0]), Kind: kind}, true
}

// meantKind asks for the kind that was probably meant, or says that the named one may come later.
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
	gv, _ := schema.ParseGroupVersion(k.APIVersion) // of what is no version, the group is empty
	return gv.Group
}

// meant asks for the name that was probably meant, or says that what is named may come later.
func meant(name string, known []string) string {
	if m := lint.Meant(name, known); m != "" {
		return fmt.Sprintf("; did you mean %s?", m)
	}
	return "; it has no effect until there is one"
}
