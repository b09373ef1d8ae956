package schedule

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// Snapshot is the fleet at one moment, with what filters ask of it worked out. It never changes and may be shared by
// any number of readers; the clusters in it are read-only. Clusters that are being deleted are not part of it.
type Snapshot struct {
	// members are sorted by name.
	members []member
	// index is the position of each name in members.
	index map[string]int
	// peers are set for one binding's run.
	peers Peers
	// keepEmpty has divided workloads go to clusters that get no replica, too.
	keepEmpty bool
	// plugins are those that run.
	plugins Plugins
}

// member is a cluster and what is asked of it often.
type member struct {
	cluster *clusterv1alpha1.Cluster
	// repels are the taints that keep templates away.
	repels []repulsion
	// discovered says that the kinds listed are all there are.
	discovered bool
	// apis are what the cluster serves, shared with others that serve the same; nil if not worked out.
	apis *apiSet
	// free is what is neither allocated nor being allocated; nil if the cluster did not say.
	free resources
}

// repulsion is a taint, and its text in a Cause.
type repulsion struct {
	taint corev1.Taint
	text  string
}

// NewSnapshot works out the fleet. The clusters must not be changed afterwards.
func NewSnapshot(clusters []*clusterv1alpha1.Cluster) Snapshot { return Snapshot{}.Next(clusters) }

// Next is the snapshot of these clusters. What s knows of those that have not changed since is shared, so that one
// cluster's change costs one cluster's work.
func (s Snapshot) Next(clusters []*clusterv1alpha1.Cluster) Snapshot {
	next := Snapshot{
		members:   make([]member, 0, len(clusters)),
		index:     make(map[string]int, len(clusters)),
		keepEmpty: s.keepEmpty,
		plugins:   s.plugins,
	}
	var sets apiSets
	for _, c := range clusters {
		if c == nil || c.DeletionTimestamp != nil {
			continue
		}
		if known := s.member(c.Name); known != nil && unchanged(known.cluster, c) {
			next.members = append(next.members, *known)
			continue
		}
		if sets == nil {
			sets = s.apiSets()
		}
		m := glance(c)
		m.apis, m.free = sets.of(c.Status.APIEnablements), freeOf(c.Status.ResourceSummary)
		next.members = append(next.members, m)
	}
	slices.SortStableFunc(next.members, func(a, b member) int { return strings.Compare(a.cluster.Name, b.cluster.Name) })
	next.members = slices.CompactFunc(next.members, func(a, b member) bool { return a.cluster.Name == b.cluster.Name })
	for i := range next.members {
		next.index[next.members[i].cluster.Name] = i
	}
	return next
}

// KeepingEmpty is the same fleet, and what Next makes of it, where a workload that divides its replicas goes also to
// the chosen clusters that get none of them: scaled to zero it is still there. It is Karmada's
// enable-empty-workload-propagation.
func (s Snapshot) KeepingEmpty() Snapshot {
	s.keepEmpty = true
	return s
}

// unchanged says whether both are the same version of the same object.
func unchanged(a, b *clusterv1alpha1.Cluster) bool {
	return a == b || a.UID == b.UID && a.ResourceVersion == b.ResourceVersion && a.ResourceVersion != ""
}

// Len is the number of clusters.
func (s Snapshot) Len() int { return len(s.members) }

// Names are those of the clusters, sorted.
func (s Snapshot) Names() []string {
	names := make([]string, len(s.members))
	for i := range s.members {
		names[i] = s.members[i].cluster.Name
	}
	return names
}

// Cluster is the cluster of that name; nil if it is not in the fleet or is leaving.
func (s Snapshot) Cluster(name string) *clusterv1alpha1.Cluster {
	if m := s.member(name); m != nil {
		return m.cluster
	}
	return nil
}

// Versions are those in which the cluster serves a kind, as its discovery ordered them; none if it does not serve it.
func (s Snapshot) Versions(cluster string, kind schema.GroupKind) []string {
	if m := s.member(cluster); m != nil {
		return m.apis.versions[kind]
	}
	return nil
}

func (s Snapshot) member(name string) *member {
	if i, ok := s.index[name]; ok {
		return &s.members[i]
	}
	return nil
}

// present are the targets that are in the fleet.
func (s Snapshot) present(targets []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	var here []workv1alpha2.TargetCluster
	for _, t := range targets {
		if s.member(t.Name) != nil {
			here = append(here, t)
		}
	}
	return here
}

// notTarget stands for the replicas of a cluster that is no target.
const notTarget = -1

// assigned are the replicas that each member has been given, by position; notTarget where it is no target. Nil is no
// targets.
func (s Snapshot) assigned(targets []workv1alpha2.TargetCluster) []int32 {
	if len(targets) == 0 {
		return nil
	}
	replicas := make([]int32, len(s.members))
	for i := range replicas {
		replicas[i] = notTarget
	}
	for i := range targets {
		if at, ok := s.index[targets[i].Name]; ok {
			replicas[at] = targets[i].Replicas
		}
	}
	return replicas
}

// glance works out what a single question needs.
func glance(c *clusterv1alpha1.Cluster) member {
	m := member{
		cluster:    c,
		discovered: meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements),
	}
	for i := range c.Spec.Taints {
		t := &c.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectNoExecute && membership.IsReadinessTaint(*t) {
			continue // the NoSchedule taint beside it keeps new placements out; what leaves is for failover to decide
		}
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			m.repels = append(m.repels, repulsion{taint: *t, text: "{" + t.ToString() + "}"})
		}
	}
	return m
}
