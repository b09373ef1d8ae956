// Package why explains the state of a template: which policy has claimed it, where it was placed and why, and its
// status in each member. It also explains which templates a policy or a cluster has, and why it lacks others. It runs
// the hub's decisions again on objects that its callers have read.
package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/finding"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Facts are the objects that concern a template. They are read-only.
type Facts struct {
	// Observed is what its claim depends on. Binding is the binding with the name of the template's binding, even if it
	// belongs to another template.
	propagate.Observed
	// Clusters are the whole fleet.
	Clusters []*clusterv1alpha1.Cluster
	// Overrides that may select it.
	Overrides []policyv1alpha1.Override
	// Works are the Works in the execution spaces with the name of the template's Works.
	Works []workv1alpha1.Work
	// Unseen is true if the user may not read Works. Works are then those of WorksInStatus.
	Unseen bool
	// Missing are other rights that the user lacks. What they permit to read is not in these facts.
	Missing []roles.Missing
	// Service is the Service that the template names for its pods; nil if it names none.
	Service *Service
	// Scalers are the FederatedHPAs of its namespace, Autoscalers the objects there of kinds that scale in members.
	Scalers     []autoscalingv1alpha1.FederatedHPA
	Autoscalers []*unstructured.Unstructured
	// Quotas are the FederatedResourceQuotas of its namespace that the hub enforces.
	Quotas []policyv1alpha1.FederatedResourceQuota
	// Releases in its namespace.
	Releases []releasev1alpha1.Release
	// Warnings are recent events of these objects.
	Warnings []Warning
	// Scheduler has the settings of the hub's scheduler.
	Scheduler schedule.Settings
	// Failovers are the moves of the template in the hub's failover plan. Peers are the bindings of its affinity groups.
	Failovers []failover.Move
	Peers     []workv1alpha2.Binding
	// Pods are the facts about its pods.
	Pods Pods
	// Room has the capacity for the binding by the scheduler's estimators; if nil, by the clusters' summaries.
	Room schedule.Capacity
	// Limits has what limits it in a cluster, where that is known; nil without Room.
	Limits Limits
}

// Limits returns what keeps more replicas from fitting in a cluster.
type Limits func(cluster string) (limit capacity.Limit, known bool)

// Service are the facts about the Service of a StatefulSet.
type Service struct {
	Name string
	// There is true if it is on the hub. Binding is the binding of its name; nil for none.
	There   bool
	Binding workv1alpha2.Binding
}

// Warning is an event of type Warning.
type Warning struct {
	// Object is the kind and name that it is about.
	Object  string      `json:"object"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Last    metav1.Time `json:"last"`
}

// Severity is the importance of a finding.
type Severity = finding.Severity

// The severities, the reddest first.
const (
	Problem   = finding.Problem
	Attention = finding.Attention
	Waiting   = finding.Waiting
)

var severities = []Severity{Problem, Attention, Waiting}

// Finding is one thing to know, and what to do about it.
type Finding struct {
	Severity Severity `json:"severity"`
	// Cluster that it is about; empty for the template as a whole.
	Cluster string `json:"cluster,omitempty"`
	What    string `json:"what"`
	// Next is the next thing to do, with commands in backquotes; empty if there is nothing to do but wait.
	Next string `json:"next,omitempty"`
}

// Answer explains a template.
type Answer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Summary is one line.
	Summary string `json:"summary"`
	// Findings are sorted by severity, then by cluster.
	Findings []Finding `json:"findings,omitempty"`
	Policy   Policy    `json:"policy"`
	// Scaling lists the FederatedHPAs and the autoscalers in members that scale it.
	Scaling []string `json:"scaling,omitempty"`
	// Placement is nil while there is no binding.
	Placement *Placement `json:"placement,omitempty"`
	// Clusters are the clusters of the fleet: first those with a problem, last those without a relation to the template.
	Clusters []Cluster `json:"clusters,omitempty"`
	// Failovers are the clusters that the template should leave, is leaving, or has left recently.
	Failovers []failover.Move `json:"failovers,omitempty"`
	Warnings  []Warning       `json:"warnings,omitempty"`
	// Missing are the rights that the user lacks: the answer does without what they permit to read.
	Missing []roles.Missing `json:"missing,omitempty"`
	// Only is the cluster that the answer was narrowed to.
	Only string `json:"only,omitempty"`
}

// explanation is an Answer in the making.
type explanation struct {
	Facts
	answer   Answer
	template match.Template
	fleet    schedule.Snapshot
	// claiming is the policy that has claimed the template; nil for none. decision is the next action of the hub for the
	// claim.
	claiming policyv1alpha1.Propagation
	decision propagate.Decision
	// over is how a template that runs once has ended, if it needs no cluster because of that.
	over dispatch.RunEnd
	// acts is the template's role if the hub acts on its kind; empty for other kinds.
	acts string
}

// Explain answers. The same facts give the same answer, in whatever order they come.
func Explain(f Facts) Answer {
	e := &explanation{Facts: f, template: match.TemplateOf(f.Template),
		fleet: f.Scheduler.Snapshot(f.Clusters)}
	e.answer = Answer{APIVersion: e.template.APIVersion, Kind: e.template.Kind, Namespace: e.template.Namespace,
		Name: e.template.Name, Missing: f.Missing}
	if own := e.ownBinding(); own != nil {
		e.fleet = e.fleet.Among(schedule.PeersOf(own, f.Peers))
		e.over = dispatch.RunEndOf(own, f.Template)
	}
	e.decision = propagate.Decide(f.Observed)
	if f.Template.GetDeletionTimestamp() != nil {
		e.find(Waiting, "", "the template is being deleted, together with its objects in the members", "")
	}
	if e.actsOnHub() {
		e.acts = e.explainOwn()
	}
	e.explainPolicy()
	e.explainBinding()
	e.explainReleases()
	e.explainPlacement()
	e.answer.Failovers = f.Failovers
	e.explainClusters()
	e.explainOtherPods()
	e.explainService()
	e.explainScaling()
	e.explainWarnings()
	sortFindings(e.answer.Findings)
	e.answer.Summary = e.summary()
	return e.answer
}

// ForCluster narrows the answer to one cluster. It returns false if the cluster is unknown and has no object of the
// template.
func (a Answer) ForCluster(cluster string) (Answer, bool) {
	i := slices.IndexFunc(a.Clusters, func(c Cluster) bool { return c.Name == cluster })
	if i < 0 {
		return a, false
	}
	a.Only, a.Clusters = cluster, a.Clusters[i:i+1:i+1]
	a.Findings = slices.DeleteFunc(slices.Clone(a.Findings), func(f Finding) bool {
		return f.Cluster != "" && f.Cluster != cluster
	})
	return a, true
}

// sortFindings sorts by severity, then by cluster; findings of a cluster keep their order.
func sortFindings(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
			strings.Compare(a.Cluster, b.Cluster))
	})
}

// find adds a finding.
func (e *explanation) find(severity Severity, cluster, what, next string) {
	e.answer.Findings = append(e.answer.Findings, newFinding(severity, cluster, what, next))
}

// newFinding returns a finding of two lines. Messages of members and events of users are in them, and must not look
// like other findings.
func newFinding(severity Severity, cluster, what, next string) Finding {
	return Finding{Severity: severity, Cluster: cluster, What: text.Printable(what), Next: text.Printable(next)}
}

// found reports whether there is a finding of the severity.
func (e *explanation) found(severity Severity) bool {
	return slices.ContainsFunc(e.answer.Findings, func(f Finding) bool { return f.Severity == severity })
}

// explainWarnings keeps the newest event per reason, at most five. Events about a failover that waits for a user are
// out of date when no failover does.
func (e *explanation) explainWarnings() {
	waits := slices.ContainsFunc(e.answer.Failovers, func(m failover.Move) bool { return m.WaitingFor.NeedsUser() })
	all := slices.DeleteFunc(slices.Clone(e.Warnings), func(w Warning) bool {
		return w.Reason == workv1alpha2.EventEvictWorkloadFromClusterFailed && !waits
	})
	slices.SortStableFunc(all, func(a, b Warning) int {
		return cmp.Or(b.Last.Compare(a.Last.Time), strings.Compare(a.Object, b.Object), strings.Compare(a.Message, b.Message))
	})
	for _, w := range all {
		w.Object, w.Reason = text.Plain(w.Object, shownOfWarning), text.Plain(w.Reason, shownOfWarning)
		w.Message = text.Plain(w.Message, shownOfWarning)
		same := func(o Warning) bool { return o.Object == w.Object && o.Reason == w.Reason && o.Message == w.Message }
		if len(e.answer.Warnings) < shownWarnings && !slices.ContainsFunc(e.answer.Warnings, same) {
			e.answer.Warnings = append(e.answer.Warnings, w)
		}
	}
}

// shownWarnings is the number of warnings that an answer has, and shownOfWarning the bytes of each of its texts: any
// user who may create events in a namespace writes them.
const shownWarnings, shownOfWarning = 5, 1000

// summary counts.
func (e *explanation) summary() string {
	parts := tally(e.answer.Findings)
	var healthy, targets int
	for _, c := range e.answer.Clusters {
		if c.Target && c.State != state.Ended {
			targets++
			if c.State == state.Healthy {
				healthy++
			}
		}
	}
	switch {
	case e.acts != "" && targets == 0:
		parts = append(parts, e.acts)
	case e.over == workv1alpha2.ReasonRunFailed && targets == 0:
		parts = append(parts, "the run has failed")
	case e.over != "" && targets == 0:
		parts = append(parts, "the run has finished")
	case targets > 0:
		parts = append(parts, fmt.Sprintf("healthy in %d of %s", healthy, text.Count(targets, "cluster")))
	default:
		parts = append(parts, "in no cluster")
	}
	return strings.Join(parts, ", ")
}

// tally counts findings by severity: "1 problem", "2 warnings".
func tally(findings []Finding) (parts []string) {
	for _, s := range severities {
		n := 0
		for _, f := range findings {
			if f.Severity == s {
				n++
			}
		}
		switch {
		case n == 0:
		case s == Problem:
			parts = append(parts, text.Count(n, "problem"))
		case s == Attention:
			parts = append(parts, text.Count(n, "warning"))
		default:
			parts = append(parts, fmt.Sprintf("%d waiting", n))
		}
	}
	return parts
}

// reference returns an object as people name it: "Deployment shop/web".
func reference(kind string, obj metav1.Object) string {
	return text.Object(kind, obj.GetNamespace(), obj.GetName())
}

// describe returns a policy as people name it.
func describe(p policyv1alpha1.Propagation) string { return propagate.ClaimOf(p).String() }

func describeBinding(b workv1alpha2.Binding) string {
	if b.GetNamespace() == "" {
		return reference("ClusterResourceBinding", b)
	}
	return reference("ResourceBinding", b)
}
