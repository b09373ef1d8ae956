package membership

import (
	"slices"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Targets reports whether a binding still sends its template, or a dependency, to the cluster. Then the cluster cannot
// leave yet.
func Targets(b workv1alpha2.Binding, cluster string) bool {
	spec := b.BindingSpec()
	names := func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster }
	return slices.ContainsFunc(spec.Clusters, names) ||
		slices.ContainsFunc(spec.RequiredBy, func(by workv1alpha2.BindingSnapshot) bool {
			return slices.ContainsFunc(by.Clusters, names)
		})
}
