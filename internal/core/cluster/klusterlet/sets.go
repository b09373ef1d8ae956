package klusterlet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
)

// Selector returns a function that reports whether a cluster belongs to a set.
func Selector(set *setv1beta2.ManagedClusterSet) (func(*clusterv1.ManagedCluster) bool, error) {
	switch s := set.Spec.ClusterSelector; s.SelectorType {
	case setv1beta2.ExclusiveClusterSetLabel, "":
		return func(mc *clusterv1.ManagedCluster) bool { return mc.Labels[clusterv1.ClusterSetLabel] == set.Name }, nil
	case setv1beta2.LabelSelector:
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("read the label selector of ManagedClusterSet %q: %w: correct "+
				"spec.clusterSelector.labelSelector", set.Name, err)
		}
		return func(mc *clusterv1.ManagedCluster) bool { return selector.Matches(labels.Set(mc.Labels)) }, nil
	default:
		return nil, fmt.Errorf("ManagedClusterSet %q has the unknown selector type %q: set "+
			"spec.clusterSelector.selectorType to %s or %s", set.Name, s.SelectorType, setv1beta2.ExclusiveClusterSetLabel,
			setv1beta2.LabelSelector)
	}
}

// Selects reports whether a cluster belongs to a set.
func Selects(set *setv1beta2.ManagedClusterSet, mc *clusterv1.ManagedCluster) (bool, error) {
	selects, err := Selector(set)
	return err == nil && selects(mc), err
}

// SetCondition returns the condition ClusterSetEmpty of a set with n clusters.
func SetCondition(n int, now time.Time) metav1.Condition {
	if n == 0 {
		return newCondition(setv1beta2.ClusterSetEmpty, metav1.ConditionTrue, setv1beta2.ReasonNoClusterMatched,
			"No ManagedCluster selected", now)
	}
	return newCondition(setv1beta2.ClusterSetEmpty, metav1.ConditionFalse, setv1beta2.ReasonClustersSelected,
		fmt.Sprintf("%d ManagedClusters selected", n), now)
}

// Bound returns the condition Bound of a ManagedClusterSetBinding whose set exists, or does not.
func Bound(exists bool, now time.Time) metav1.Condition {
	if exists {
		return newCondition(setv1beta2.Bound, metav1.ConditionTrue, setv1beta2.ReasonSetBound,
			"the ManagedClusterSet exists", now)
	}
	return newCondition(setv1beta2.Bound, metav1.ConditionFalse, setv1beta2.ReasonSetNotFound,
		"the ManagedClusterSet does not exist: create it, or delete this ManagedClusterSetBinding", now)
}

// KeptSets returns the sets that the hub keeps: default, of the clusters with its name in their label, and global, of
// all clusters.
func KeptSets() []setv1beta2.ManagedClusterSet {
	set := func(name string, selector setv1beta2.ManagedClusterSelector) setv1beta2.ManagedClusterSet {
		return setv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: setv1beta2.ManagedClusterSetSpec{ClusterSelector: selector}}
	}
	return []setv1beta2.ManagedClusterSet{
		set(clusterv1.DefaultSet, setv1beta2.ManagedClusterSelector{SelectorType: setv1beta2.ExclusiveClusterSetLabel}),
		set(clusterv1.GlobalSet, setv1beta2.ManagedClusterSelector{SelectorType: setv1beta2.LabelSelector,
			LabelSelector: &metav1.LabelSelector{}}),
	}
}

// ManagedNamespaces returns the namespaces that sets require in a cluster, sorted by set and name, with the conditions
// that its klusterlet reported. Sets that are being deleted require none. Those of a set that cannot be read stay.
func ManagedNamespaces(mc *clusterv1.ManagedCluster,
	sets []setv1beta2.ManagedClusterSet) []clusterv1.ClusterSetManagedNamespace {
	var required []clusterv1.ClusterSetManagedNamespace
	for i := range sets {
		set := &sets[i]
		if set.DeletionTimestamp != nil {
			continue
		}
		selected, err := Selects(set, mc)
		for _, namespace := range set.Spec.ManagedNamespaces {
			at := slices.IndexFunc(mc.Status.ManagedNamespaces, func(n clusterv1.ClusterSetManagedNamespace) bool {
				return n.ClusterSet == set.Name && n.Name == namespace.Name
			})
			switch {
			case at >= 0 && (selected || err != nil):
				required = append(required, *mc.Status.ManagedNamespaces[at].DeepCopy())
			case selected:
				required = append(required, clusterv1.ClusterSetManagedNamespace{Name: namespace.Name, ClusterSet: set.Name})
			}
		}
	}
	slices.SortFunc(required, func(a, b clusterv1.ClusterSetManagedNamespace) int {
		return cmp.Or(cmp.Compare(a.ClusterSet, b.ClusterSet), cmp.Compare(a.Name, b.Name))
	})
	return required
}
