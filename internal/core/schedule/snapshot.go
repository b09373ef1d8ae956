package schedule

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// Snapshot is the fleet at one moment, with data derived for the filters. It is immutable and may be shared; the
// clusters in it are read-only. It does not contain clusters that are being deleted.
type Snapshot struct {
	// members are sorted by name.
	members []member
	// index is the position of each name in members.
	index map[string]int
	// peers are set for one binding's run.
	peers    Peers
	settings Settings
}

// member is a cluster with derived data that is used often.
type member struct {
	cluster *clusterv1alpha1.Cluster
	// repels are the taints that keep templates away.
	repels []repulsion
	// discovered: the listed kinds are complete.
	discovered bool
	// apis are the kinds that the cluster serves, shared with other clusters that serve the same; nil if not computed.
	apis *apiSet
	// free is what is neither allocated nor being allocated; nil if the cluster does not report it.
	free resources
}

// repulsion is a taint, and its text in a Cause.
type repulsion struct {
	taint corev1.Taint
	text  string
}

// Settings are the settings of the hub's scheduler. The zero value is the default.
type Settings struct {
	// Name is the scheduler whose bindings are placed, those that name another in spec.schedulerName are left alone. The
	// default is default-scheduler.
	Name    string
	Plugins Plugins
	// KeepEmpty is Karmada's enable-empty-workload-propagation: a workload with divided replicas also goes to chosen
	// clusters that get no replica, so it still exists there when it is scaled to zero.
	KeepEmpty bool
	// QuotasOff counts FederatedResourceQuotas and refuses nothing.
	QuotasOff bool
}

// Scheduler returns the name of the scheduler.
func (s Settings) Scheduler() string { return cmp.Or(s.Name, policyv1alpha1.DefaultSchedulerName) }

// Snapshot works out the fleet for the scheduler. The clusters must not be changed afterwards.
func (s Settings) Snapshot(clusters []*clusterv1alpha1.Cluster) Snapshot {
	return Snapshot{settings: s}.Next(clusters)
}

// NewSnapshot works out the fleet for a scheduler with default settings.
func NewSnapshot(clusters []*clusterv1alpha1.Cluster) Snapshot { return Settings{}.Snapshot(clusters) }

// Next returns the snapshot of these clusters. It reuses the data of clusters that have not changed, so that the change
// of one cluster costs the work for one cluster.
func (s Snapshot) Next(clusters []*clusterv1alpha1.Cluster) Snapshot {
	next := Snapshot{
		members:  make([]member, 0, len(clusters)),
		index:    make(map[string]int, len(clusters)),
		settings: s.settings,
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
		m := briefMember(c)
		m.apis, m.free = sets.setOf(c.Status.APIEnablements), freeOf(c.Status.ResourceSummary)
		next.members = append(next.members, m)
	}
	slices.SortStableFunc(next.members, func(a, b member) int { return strings.Compare(a.cluster.Name, b.cluster.Name) })
	next.members = slices.CompactFunc(next.members, func(a, b member) bool { return a.cluster.Name == b.cluster.Name })
	for i := range next.members {
		next.index[next.members[i].cluster.Name] = i
	}
	return next
}

// Settings returns the settings of the scheduler. Snapshots that Next makes have them, too.
func (s Snapshot) Settings() Settings { return s.settings }

// unchanged reports whether both are the same version of the same object.
func unchanged(a, b *clusterv1alpha1.Cluster) bool {
	return a == b || a.UID == b.UID && a.ResourceVersion == b.ResourceVersion && a.ResourceVersion != ""
}

// Len returns the number of clusters.
func (s Snapshot) Len() int { return len(s.members) }

// Names returns the names of the clusters, sorted.
func (s Snapshot) Names() []string {
	names := make([]string, len(s.members))
	for i := range s.members {
		names[i] = s.members[i].cluster.Name
	}
	return names
}

// Cluster returns the cluster of that name; nil if it is not in the fleet or is leaving.
func (s Snapshot) Cluster(name string) *clusterv1alpha1.Cluster {
	if m := s.member(name); m != nil {
		return m.cluster
	}
	return nil
}

// Versions returns the versions in which the cluster serves a kind, in the order of its discovery; none if it does not
// serve the kind.
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

// present returns the targets that are in the fleet.
func (s Snapshot) present(targets []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	var here []workv1alpha2.TargetCluster
	for _, t := range targets {
		if s.member(t.Name) != nil {
			here = append(here, t)
		}
	}
	return here
}

// notTarget represents the replicas of a cluster that is not a target.
const notTarget = -1

// assigned returns the replicas that each member has been given, by position; notTarget where it is no target. Nil is
// no targets.
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

// briefMember returns a member with the fields that a single question needs.
func briefMember(c *clusterv1alpha1.Cluster) member {
	m := member{
		cluster:    c,
		discovered: meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements),
	}
	for i := range c.Spec.Taints {
		t := &c.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectNoExecute && membership.IsReadinessTaint(*t) {
			continue // the NoSchedule taint beside it keeps new placements out; failover decides about evictions
		}
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			m.repels = append(m.repels, repulsion{taint: *t, text: "{" + t.ToString() + "}"})
		}
	}
	return m
}
