package schedule

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/capacity"
)

// The reasons for which a cluster may not take a binding, as users know them.
const (
	reasonAffinity = "cluster(s) did not match the placement cluster affinity constraint"
	reasonEviction = "cluster(s) is in the process of eviction"
	reasonAPI      = "cluster(s) did not have the API resource"
	reasonProvider = "cluster(s) did not have provider property"
	reasonRegion   = "cluster(s) did not have region property"
	reasonZones    = "cluster(s) did not have zones property"
	reasonTogether = "cluster(s) did not match the workload affinity constraint"
	reasonApart    = "cluster(s) did not match the workload anti-affinity constraint"
	reasonVersion  = "cluster(s) did not serve a version that has the template's fields"
	// These are followed by the taint, or the label's key.
	reasonTaint = "cluster(s) had untolerated taint "
	reasonLabel = "cluster(s) did not have label "
)

// question is what a binding asks of each cluster, worked out once.
type question struct {
	spec *workv1alpha2.ResourceBindingSpec
	kind schema.GroupKind
	// version is the template's own, and versions are all that can say it; nil is any.
	version  string
	versions []string
	plugins  Plugins
	// affinity of the term in use; nil allows every cluster.
	affinity *policyv1alpha1.ClusterAffinity
	// overflow are the term's further tiers.
	overflow []policyv1alpha1.OverflowAffinity
	// peers are the other workloads of its groups; only where the fleet is asked, not for one cluster's change.
	peers Peers
	// anew says that a run was asked for that may move what is placed.
	anew bool
	// named and excluded stand for the affinity's lists where these are long.
	named, excluded map[string]bool
	// served is the answer for apis, which the cluster asked last serves, and mostly the next.
	apis   *apiSet
	served bool
}

// longList is the length from which a list of names is worth a map.
const longList = 16

// newQuestion is the question by affinity term t, as a scheduler with these plugins asks it.
func newQuestion(spec *workv1alpha2.ResourceBindingSpec, t int, plugins Plugins) *question {
	term := termOf(spec.Placement, t)
	affinity := term.affinity
	q := &question{
		spec:     spec,
		plugins:  plugins,
		kind:     schema.FromAPIVersionAndKind(spec.Resource.APIVersion, spec.Resource.Kind).GroupKind(),
		affinity: affinity,
		overflow: term.overflow,
	}
	if affinity == nil || len(affinity.ClusterNames) < longList && len(affinity.ExcludeClusters) < longList {
		return q
	}
	rest := *affinity
	q.affinity, rest.ClusterNames, rest.ExcludeClusters = &rest, nil, nil
	q.named, q.excluded = set(affinity.ClusterNames), set(affinity.ExcludeClusters)
	return q
}

func set(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	has := make(map[string]bool, len(names))
	for _, n := range names {
		has[n] = true
	}
	return has
}

// filters each answer with the reason why not, or nothing. The first reason counts, so the user's own choice comes
// first: what a policy never meant is not blamed on taints. target says that the cluster has the template already.
var filters = [...]struct {
	plugin Plugin
	ask    func(q *question, m *member, target bool) string
}{
	{ClusterAffinity, clusterAffinity},
	{ClusterEviction, clusterEviction},
	{TaintToleration, taintToleration},
	{APIEnablement, apiEnablement},
	{SpreadConstraint, spreadConstraint},
	{WorkloadAffinity, workloadAffinity},
	{WorkloadAntiAffinity, workloadAntiAffinity},
}

// reject is the first reason why the cluster may not take the binding; empty if it may.
func (q *question) reject(m *member, target bool) string {
	for i := range filters {
		if !q.plugins.Runs(filters[i].plugin) {
			continue
		}
		if reason := filters[i].ask(q, m, target); reason != "" {
			return reason
		}
	}
	return ""
}

func clusterAffinity(q *question, m *member, _ bool) string {
	if q.tier(m) < 0 {
		return reasonAffinity
	}
	return ""
}

// unmeant is reject for its affinity alone.
func (q *question) unmeant(m *member, target bool) string {
	if !q.plugins.Runs(ClusterAffinity) {
		return ""
	}
	return clusterAffinity(q, m, target)
}

// tier is 0 for a cluster that the affinity means, 1 for one of the first overflow, and so on; -1 for any other.
func (q *question) tier(m *member) int {
	if q.affinity == nil {
		return 0
	}
	name := m.cluster.Name
	if !q.excluded[name] && (q.named == nil || q.named[name]) && allows(q.affinity, m.cluster) {
		return 0
	}
	for i := range q.overflow {
		if allows(&q.overflow[i].ClusterAffinity, m.cluster) {
			return i + 1
		}
	}
	return -1
}

func clusterEviction(q *question, m *member, _ bool) string {
	for i := range q.spec.GracefulEvictionTasks {
		if q.spec.GracefulEvictionTasks[i].FromCluster == m.cluster.Name {
			return reasonEviction
		}
	}
	return ""
}

// taintToleration: a taint does not drive out what is there already, NoExecute no more than NoSchedule: to leave is failover's to decide,
// for all of an application at once, where this would take a Service away from its pods. Only who asks for a new placement by a
// WorkloadRebalancer has things leave a cluster with a NoExecute taint.
func taintToleration(q *question, m *member, target bool) string {
	for i := range m.repels {
		r := &m.repels[i]
		if target && (!q.anew || r.taint.Effect == corev1.TaintEffectNoSchedule) {
			continue
		}
		if !capacity.Tolerates(q.spec.Placement.ClusterTolerations, r.taint) {
			return r.reason
		}
	}
	return ""
}

// apiEnablement asks for the kind in any version: the object is sent in one that the member serves.
// While discovery is incomplete, a kind that is not listed does not drive out what is there already. What is enclosed may define
// the kinds that go with it, and the kinds of multi-cluster services are brought by the hub to whom they are placed in.
func apiEnablement(q *question, m *member, target bool) string {
	if q.kind == releasev1alpha1.EnclosedManifestKind || q.kind.Group == multiclusterv1alpha1.GroupVersion.Group || q.serves(m) || target && !m.discovered {
		return ""
	}
	return reasonAPI
}

// spreadConstraint: a cluster without the property to spread over belongs to no group.
func spreadConstraint(q *question, m *member, _ bool) string {
	for i := range q.spec.Placement.SpreadConstraints {
		c := &q.spec.Placement.SpreadConstraints[i]
		if c.SpreadByLabel != "" {
			if _, ok := m.cluster.Labels[c.SpreadByLabel]; !ok {
				return reasonLabel + c.SpreadByLabel
			}
			continue
		}
		switch c.SpreadByField {
		case policyv1alpha1.SpreadByFieldProvider:
			if m.cluster.Spec.Provider == "" {
				return reasonProvider
			}
		case policyv1alpha1.SpreadByFieldRegion:
			if m.cluster.Spec.Region == "" {
				return reasonRegion
			}
		case policyv1alpha1.SpreadByFieldZone:
			if len(zones(m.cluster)) == 0 {
				return reasonZones
			}
		}
	}
	return ""
}

// remedy is what lets a cluster pass that was rejected for the reason; empty for those that the policy does not mean.
func (q *question) remedy(reason string) string {
	switch reason {
	case reasonAffinity:
		return ""
	case reasonEviction:
		return "wait for the eviction to complete"
	case reasonAPI:
		return "install the API that has " + q.kind.String()
	case reasonVersion:
		return "serve " + q.kind.String() + " in " + strings.Join(q.versions, " or ") + " there, or remove the fields that other versions do not have"
	case reasonTogether:
		return "place the workloads of group " + q.spec.WorkloadAffinityGroups.AffinityGroup + " there too"
	case reasonApart:
		return "remove the workload of group " + q.spec.WorkloadAffinityGroups.AntiAffinityGroup + " from it, or add a cluster"
	case reasonProvider, reasonRegion, reasonZones:
		return "set spec." + strings.Fields(reason)[3] + " of the cluster"
	}
	if label, ok := strings.CutPrefix(reason, reasonLabel); ok {
		return "label the cluster with " + label
	}
	if taint, ok := strings.CutPrefix(reason, reasonTaint); ok {
		return "tolerate " + taint + " in clusterTolerations, or remove the taint"
	}
	return ""
}

// Candidate is a cluster that may take a binding.
type Candidate struct {
	// Cluster is read-only.
	Cluster *clusterv1alpha1.Cluster
	// Tier is 0, or the number of the overflow affinity that the cluster is in for; earlier ones are filled first.
	Tier int
	// Available is the room for more replicas, and Known whether anybody could say; only where NeedsRoom.
	Available int64
	// Score is how much the cluster is preferred.
	Score int32
	// Assigned is what the binding has there now.
	Assigned int32
	Known    bool
	// placed says that the binding is there now, be it with no replicas.
	placed bool
}

// feasible asks every cluster about affinity term t. Candidates and rejections are sorted by name and nobody else's.
func feasible(b workv1alpha2.Binding, s Snapshot, t int) ([]Candidate, Rejections) {
	q := newQuestion(b.BindingSpec(), t, s.plugins)
	q.peers, q.anew = s.peers, fresh(b)
	q.version, q.versions = schema.FromAPIVersionAndKind(q.spec.Resource.APIVersion, q.spec.Resource.Kind).Version, versions(b)
	assigned := s.assigned(q.spec.Clusters)
	candidates := make([]Candidate, 0, len(s.members))
	var rejections Rejections
	for i := range s.members {
		m := &s.members[i]
		var has int32 = notTarget
		if assigned != nil {
			has = assigned[i]
		}
		target := has != notTarget
		if reason := q.reject(m, target); reason != "" {
			if rejections == nil {
				rejections = make(Rejections, 0, len(s.members)-i)
			}
			rejections = append(rejections, Rejection{
				Cluster: m.cluster.Name, Reason: reason, Remedy: q.remedy(reason),
				Pending: reason == reasonAPI && !m.discovered,
			})
			continue
		}
		candidates = append(candidates, Candidate{
			Cluster: m.cluster, Assigned: max(0, has), placed: target,
		})
		if s.plugins.Runs(ClusterLocality) {
			candidates[len(candidates)-1].Score = clusterLocality(target)
		}
		if len(q.overflow) > 0 {
			candidates[len(candidates)-1].Tier = q.tier(m)
			if candidates[len(candidates)-1].Tier < 0 { // nobody asked whether it is meant
				candidates[len(candidates)-1].Tier = len(q.overflow) + 1
			}
		}
	}
	return q.preferServed(candidates, rejections, s, fresh(b))
}
