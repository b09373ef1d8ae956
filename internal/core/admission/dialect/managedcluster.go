package dialect

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
)

// leaseSeconds is the interval of the Lease of a ManagedCluster that sets none.
const leaseSeconds = 60

// DefaultManagedCluster sets the defaults of a ManagedCluster: its ManagedClusterSet, the interval of its Lease, and
// when its taints were added. was is the stored one, nil for a new one. dated has the keys of taints with another time
// than the stored one: only the hub may set it, so that tolerations count from the time of the taint.
func DefaultManagedCluster(mc, was *clusterv1.ManagedCluster, now metav1.Time) (dated []string) {
	if mc.Labels[clusterv1.ClusterSetLabel] == "" {
		metav1.SetMetaDataLabel(&mc.ObjectMeta, clusterv1.ClusterSetLabel, clusterv1.DefaultSet)
	}
	if mc.Spec.LeaseDurationSeconds == 0 {
		mc.Spec.LeaseDurationSeconds = leaseSeconds
	}
	for i := range mc.Spec.Taints {
		t := &mc.Spec.Taints[i]
		stored := storedTaint(was, *t)
		switch {
		case was == nil:
			t.TimeAdded = now
		case !t.TimeAdded.IsZero() && !t.TimeAdded.Equal(&stored.TimeAdded):
			dated = append(dated, t.Key)
		case sameTaint(stored, *t) && !stored.TimeAdded.IsZero():
			t.TimeAdded = stored.TimeAdded
		default:
			t.TimeAdded = now
		}
	}
	return dated
}

// storedTaint returns the stored state of a taint: the one with its key and effect, otherwise with its key; an empty
// one if there is none.
func storedTaint(was *clusterv1.ManagedCluster, of clusterv1.Taint) clusterv1.Taint {
	if was == nil {
		return clusterv1.Taint{}
	}
	for _, same := range []func(clusterv1.Taint) bool{
		func(t clusterv1.Taint) bool { return t.Key == of.Key && t.Effect == of.Effect },
		func(t clusterv1.Taint) bool { return t.Key == of.Key },
	} {
		if i := slices.IndexFunc(was.Spec.Taints, same); i >= 0 {
			return was.Spec.Taints[i]
		}
	}
	return clusterv1.Taint{}
}

func sameTaint(a, b clusterv1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}
