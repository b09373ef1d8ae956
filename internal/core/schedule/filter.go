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
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
)

// FilterReason is why a cluster may not take a binding.
type FilterReason string

// The reasons, as users know them behind "cluster(s) ".
const (
	ReasonAffinity FilterReason = "did not match the placement cluster affinity constraint"
	ReasonEviction FilterReason = "is in the process of eviction"
	ReasonAPI      FilterReason = "did not have the API resource"
	ReasonProvider FilterReason = "did not have provider property"
	ReasonRegion   FilterReason = "did not have region property"
	ReasonZones    FilterReason = "did not have zones property"
	ReasonTogether FilterReason = "did not match the workload affinity constraint"
	ReasonApart    FilterReason = "did not match the workload anti-affinity constraint"
	ReasonVersion  FilterReason = "did not serve a version that has the template's fields"
	ReasonTaint    FilterReason = "had untolerated taint"
	ReasonLabel    FilterReason = "did not have label"
)

// Cause is why a filter rejects a cluster. The zero value accepts it.
type Cause struct {
	Reason FilterReason
	// Detail is the taint of ReasonTaint, and the label's key of ReasonLabel. Otherwise it is empty.
	Detail string
}

// because returns the cause of a reason without details.
func because(r FilterReason) Cause { return Cause{Reason: r} }

// refuses reports whether the cluster may not take the binding.
func (c Cause) refuses() bool { return c.Reason != "" }

// Clause returns the cause as users know it, behind "cluster(s) ".
func (c Cause) Clause() string {
	if c.Detail == "" {
		return string(c.Reason)
	}
	return string(c.Reason) + " " + c.Detail
}

// Text returns the cause as a message, such as "cluster(s) did not have the API resource".
func (c Cause) Text() string { return "cluster(s) " + c.Clause() }

// question has what the filters need to know of a binding, computed once.
type question struct {
	spec *workv1alpha2.ResourceBindingSpec
	kind schema.GroupKind
	// version is the template's version; versions are the versions that can express the template, nil for all.
	version  string
	versions []string
	plugins  Plugins
	// affinity of the term in use; nil allows every cluster.
	affinity *policyv1alpha1.ClusterAffinity
	// overflow are the term's further tiers.
	overflow []policyv1alpha1.OverflowAffinity
	// peers are the other workloads of its groups; only set for a run, not for the change of one cluster.
	peers Peers
	// anew is true if the run may move placed replicas.
	anew bool
	// named and excluded stand for the affinity's lists where these are long.
	named, excluded map[string]bool
	// served is the answer for apis, the kinds of the last cluster; most clusters serve the same.
	apis   *apiSet
	served bool
}

// longList is the length from which a list of names is worth a map.
const longList = 16

// newQuestion returns the question for affinity term t, for a scheduler with these plugins.
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

// filters return why a cluster is not feasible for a binding. The first cause is reported, so the user's choice comes
// first: a cluster that the policy does not select is not reported for its taints. target means that the cluster has
// the template already.
var filters = [...]struct {
	plugin Plugin
	ask    func(q *question, m *member, target bool) Cause
}{
	{ClusterAffinity, clusterAffinity},
	{ClusterEviction, clusterEviction},
	{TaintToleration, taintToleration},
	{APIEnablement, apiEnablement},
	{SpreadConstraint, spreadConstraint},
	{WorkloadAffinity, workloadAffinity},
	{WorkloadAntiAffinity, workloadAntiAffinity},
}

// reject returns the first cause for which the cluster may not take the binding; the zero value if it may.
func (q *question) reject(m *member, target bool) Cause {
	for i := range filters {
		if !q.plugins.Runs(filters[i].plugin) {
			continue
		}
		if cause := filters[i].ask(q, m, target); cause.refuses() {
			return cause
		}
	}
	return Cause{}
}

func clusterAffinity(q *question, m *member, _ bool) Cause {
	if q.tier(m) < 0 {
		return because(ReasonAffinity)
	}
	return Cause{}
}

// rejectByAffinity is reject for the affinity alone.
func (q *question) rejectByAffinity(m *member, target bool) Cause {
	if !q.plugins.Runs(ClusterAffinity) {
		return Cause{}
	}
	return clusterAffinity(q, m, target)
}

// tier is 0 for a cluster that the affinity means, 1 for one of the first overflow, and so on; -1 for any other.
func (q *question) tier(m *member) int {
	if q.affinity == nil {
		return 0
	}
	name := m.cluster.Name
	if !q.excluded[name] && (q.named == nil || q.named[name]) && match.Affinity(q.affinity, m.cluster) {
		return 0
	}
	for i := range q.overflow {
		if match.Affinity(&q.overflow[i].ClusterAffinity, m.cluster) {
			return i + 1
		}
	}
	return -1
}

func clusterEviction(q *question, m *member, _ bool) Cause {
	for i := range q.spec.GracefulEvictionTasks {
		if q.spec.GracefulEvictionTasks[i].FromCluster == m.cluster.Name {
			return because(ReasonEviction)
		}
	}
	return Cause{}
}

// taintToleration rejects a cluster with a taint that the binding does not tolerate. A binding that is already there
// stays, even with a NoExecute taint: failover decides when a whole application leaves. Only a WorkloadRebalancer,
// which requests a new placement, makes it leave a cluster with a NoExecute taint.
func taintToleration(q *question, m *member, target bool) Cause {
	for i := range m.repels {
		r := &m.repels[i]
		if target && (!q.anew || r.taint.Effect == corev1.TaintEffectNoSchedule) {
			continue
		}
		if !capacity.Tolerates(q.spec.Placement.ClusterTolerations, r.taint) {
			return Cause{Reason: ReasonTaint, Detail: r.text}
		}
	}
	return Cause{}
}

// apiEnablement rejects a cluster that does not serve the kind in any version; the hub sends the object in a served
// version. While discovery is incomplete, a binding that is already there stays. Two kinds are always accepted:
// EnclosedManifests may define the kinds that they need, and the hub installs the kinds of multi-cluster services
// itself.
func apiEnablement(q *question, m *member, target bool) Cause {
	if q.kind == releasev1alpha1.EnclosedManifestKind || q.kind.Group == multiclusterv1alpha1.GroupVersion.Group ||
		q.serves(m) || target && !m.discovered {
		return Cause{}
	}
	return because(ReasonAPI)
}

// spreadConstraint: a cluster without the property to spread over belongs to no group.
func spreadConstraint(q *question, m *member, _ bool) Cause {
	for i := range q.spec.Placement.SpreadConstraints {
		c := &q.spec.Placement.SpreadConstraints[i]
		if c.SpreadByLabel != "" {
			if _, ok := m.cluster.Labels[c.SpreadByLabel]; !ok {
				return Cause{Reason: ReasonLabel, Detail: c.SpreadByLabel}
			}
			continue
		}
		switch c.SpreadByField {
		case policyv1alpha1.SpreadByFieldProvider:
			if m.cluster.Spec.Provider == "" {
				return because(ReasonProvider)
			}
		case policyv1alpha1.SpreadByFieldRegion:
			if m.cluster.Spec.Region == "" {
				return because(ReasonRegion)
			}
		case policyv1alpha1.SpreadByFieldZone:
			if len(match.Zones(m.cluster)) == 0 {
				return because(ReasonZones)
			}
		}
	}
	return Cause{}
}

// remedy returns a change that makes a rejected cluster feasible; empty if the policy does not select the cluster.
func (q *question) remedy(c Cause) string {
	switch c.Reason {
	case ReasonEviction:
		return "wait for the eviction to complete"
	case ReasonAPI:
		return "install the API that has " + q.kind.String()
	case ReasonVersion:
		return "serve " + q.kind.String() + " in " + strings.Join(q.versions, " or ") +
			" there, or remove the fields that other versions do not have"
	case ReasonTogether:
		return "place the workloads of group " + q.spec.WorkloadAffinityGroups.AffinityGroup + " there too"
	case ReasonApart:
		return "remove the workload of group " + q.spec.WorkloadAffinityGroups.AntiAffinityGroup +
			" from it, or add a cluster"
	case ReasonProvider:
		return "set spec.provider of the cluster"
	case ReasonRegion:
		return "set spec.region of the cluster"
	case ReasonZones:
		return "set spec.zones of the cluster"
	case ReasonLabel:
		return "label the cluster with " + c.Detail
	case ReasonTaint:
		return "tolerate " + c.Detail + " in clusterTolerations, or remove the taint"
	}
	return ""
}

// Candidate is a cluster that may take a binding.
type Candidate struct {
	// Cluster is read-only.
	Cluster *clusterv1alpha1.Cluster
	// Tier is 0, or the number of the overflow affinity that the cluster is in for; earlier ones are filled first.
	Tier int
	// Available is how many more replicas fit, and Known whether that is known; only set if NeedsRoom.
	Available int64
	// Score is the preference for the cluster.
	Score int32
	// Assigned is the current number of replicas there.
	Assigned int32
	Known    bool
	// placed: the binding is there now, maybe without replicas.
	placed bool
}

// feasible runs the filters for affinity term t on every cluster. Candidates and rejections are sorted by name, and the
// caller may change them.
func feasible(b workv1alpha2.Binding, s Snapshot, t int) ([]Candidate, Rejections) {
	q := newQuestion(b.BindingSpec(), t, s.settings.Plugins)
	q.peers, q.anew = s.peers, fresh(b)
	q.version, q.versions = schema.FromAPIVersionAndKind(q.spec.Resource.APIVersion, q.spec.Resource.Kind).Version,
		versions(b)
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
		if cause := q.reject(m, target); cause.refuses() {
			if rejections == nil {
				rejections = make(Rejections, 0, len(s.members)-i)
			}
			r := Rejection{Cluster: m.cluster.Name, Cause: cause, Remedy: q.remedy(cause),
				Pending: cause.Reason == ReasonAPI && !m.discovered}
			if r.Pending {
				r.Unreported = !membership.ReportedAPIs(m.cluster) && !membership.KnownNotReady(m.cluster)
				r.Remedy = "check which of its APIs do not respond"
			}
			if r.Unreported {
				r.Remedy = "wait, the cluster has not reported its APIs yet"
			}
			rejections = append(rejections, r)
			continue
		}
		candidates = append(candidates, Candidate{
			Cluster: m.cluster, Assigned: max(0, has), placed: target,
		})
		if s.settings.Plugins.Runs(ClusterLocality) {
			candidates[len(candidates)-1].Score = clusterLocality(target)
		}
		if len(q.overflow) > 0 {
			candidates[len(candidates)-1].Tier = q.tier(m)
			if candidates[len(candidates)-1].Tier < 0 { // only without the plugin ClusterAffinity
				candidates[len(candidates)-1].Tier = len(q.overflow) + 1
			}
		}
	}
	return q.preferServed(candidates, rejections, s, fresh(b))
}
