package klusterlet

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
)

// agentPrefix is the prefix of the annotations that a klusterlet sets on its ManagedCluster.
const agentPrefix = "agent.open-cluster-management.io/"

// Registers reports whether a user is one of those that register klusterlets, with a bootstrap token or the bootstrap
// account.
func Registers(user string, groups []string) bool {
	return slices.Contains(groups, TokenGroup) || user == "system:serviceaccount:"+Agents+":"+BootstrapAccount
}

// CheckChange returns why a klusterlet must not write its ManagedCluster like this; empty if it may. was is nil for new
// ones. It may set its addresses and its own annotations. Policies and rights follow from labels and taints, so these
// are for administrators.
func CheckChange(is, was *clusterv1.ManagedCluster) string {
	if was == nil {
		was = &clusterv1.ManagedCluster{}
		was.Labels = map[string]string{clusterv1.ClusterSetLabel: clusterv1.DefaultSet}
		was.Spec.LeaseDurationSeconds = is.Spec.LeaseDurationSeconds
	}
	spec := is.Spec.DeepCopy()
	spec.ManagedClusterClientConfigs = was.Spec.ManagedClusterClientConfigs
	if equality.Semantic.DeepEqual(*spec, was.Spec) && equality.Semantic.DeepEqual(is.Labels, was.Labels) &&
		equality.Semantic.DeepEqual(foreign(is.Annotations), foreign(was.Annotations)) &&
		equality.Semantic.DeepEqual(is.Finalizers, was.Finalizers) &&
		equality.Semantic.DeepEqual(is.OwnerReferences, was.OwnerReferences) {
		return ""
	}
	return "a klusterlet may set only spec.managedClusterClientConfigs and annotations with the prefix " + agentPrefix +
		" of its ManagedCluster: an administrator sets the rest"
}

// foreign returns the annotations that are not a klusterlet's.
func foreign(annotations map[string]string) map[string]string {
	others := maps.Clone(annotations)
	maps.DeleteFunc(others, func(key, _ string) bool { return strings.HasPrefix(key, agentPrefix) })
	return others
}
