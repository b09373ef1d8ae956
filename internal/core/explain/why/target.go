package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// there is what is known about the template in one of its clusters.
type there struct {
	cluster *clusterv1alpha1.Cluster // nil if it is not in the fleet
	work    *workv1alpha1.Work       // nil if there is none
	item    workv1alpha2.AggregatedStatusItem
	// manifest is the template with the overrides; failed is why they cannot be applied.
	manifest *unstructured.Unstructured
	failed   error
	pods     pods.Report
	seen     state.Seen
}

// explainTarget fills in how the template is doing in a cluster that it is placed in.
func (e *explanation) explainTarget(row *Cluster, target workv1alpha2.TargetCluster, c *clusterv1alpha1.Cluster,
	w *workv1alpha1.Work, item workv1alpha2.AggregatedStatusItem, reported bool) {
	at := there{cluster: c, work: w, item: item}
	switch {
	case c == nil && hidden(e.Missing, "clusters"):
		at.cluster = unseenCluster(row.Name)
		e.explainOverrides(row, &at, nil)
	case c != nil:
		e.explainOverrides(row, &at, e.Overrides)
	}
	if w != nil {
		row.Work = workOf(w, item)
	}
	var ails bool
	if at.pods, ails = e.ailing(row, membership.OutageOf(c) != nil, item); ails {
		row.Pods = &at.pods
	}
	at.seen = e.see(target, &at, ails)
	if !reported {
		at.seen.Report = nil
	}
	place := at.seen.Place()
	row.State, row.Bad, row.ReadyPods, row.WantedPods = place.State, place.State.Bad(), place.Ready, place.Wanted
	severity, what, next := e.explainState(row, &at, place)
	row.Why = what
	refused := "" // a finding of its own
	if b := e.ownBinding(); b != nil {
		refused = aggregate.Refused(b.BindingStatus().Conditions)
	}
	if severity != "" && (refused == "" || place.What != refused) {
		e.find(severity, row.Name, row.Name+": "+what, next)
	}
	if row.State.Bad() && at.seen.Suspended {
		e.find(Waiting, row.Name, row.Name+": dispatching is suspended", e.resume(row.Name))
	}
	if brake := execute.BrakeOn(c, e.template.Namespace); brake != "" && row.State != state.Failed {
		what, next := brake.Explain(row.Name)
		e.find(Attention, row.Name, what, next)
	}
	if w != nil {
		e.explainConditions(row, w)
	}
}

// explainOverrides applies the overrides to the template, and notes which of them change it.
func (e *explanation) explainOverrides(row *Cluster, at *there, overrides []policyv1alpha1.Override) {
	var applied override.Applied
	at.manifest, applied, at.failed = override.Apply(e.Facts.Template, at.cluster, overrides)
	for _, r := range applied.Rules {
		row.Overrides = append(row.Overrides, OverrideRule{Policy: overridePolicy(r, e.template.Namespace),
			Overriders: text.JSON(r.Overriders)})
	}
	for _, u := range applied.Untouched {
		row.Untouched = append(row.Untouched, u.String())
		e.find(Attention, row.Name, row.Name+": "+u.String(), "fix the overrider, or remove it")
	}
}

// see returns what decides the state: what the hub reads for every reader, and what only Works and overrides tell.
func (e *explanation) see(target workv1alpha2.TargetCluster, at *there, ails bool) state.Seen {
	s := state.Seen{Kind: match.GroupKind(e.template.APIVersion, e.template.Kind), Target: target, Report: &at.item}
	if b := e.ownBinding(); b != nil {
		s = state.See(b, target, &at.item, state.Facts{})
	}
	s.RunEnd = cmp.Or(s.RunEnd, e.over)
	if !hidden(e.Missing, "clusters") {
		s = s.AtCluster(at.cluster)
	}
	// That the member creates no pods is in its status, or in events that other readers do not read.
	s.Troubled = ails && slices.ContainsFunc(at.pods.Troubles, func(g pods.Group) bool {
		return g.Reason != pods.FailedCreate
	})
	if at.failed != nil {
		s.Unsent = "an override fails, so nothing new is sent: " + at.failed.Error()
	}
	if w := at.work; w != nil {
		s.Suspended = s.Suspended || w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching
		s.Outdated = w.DeletionTimestamp != nil || stale(w)
	}
	return s
}

// explainState returns why the template is in its state in a cluster, and what to do about it. Without a severity it
// is not worth a finding.
func (e *explanation) explainState(row *Cluster, at *there, place state.Place) (severity Severity, what, next string) {
	switch place.State {
	case state.Failed:
		what, next = e.explainFailed(at, place)
		return Problem, what, next
	case state.Lost:
		return e.explainLost(row, at)
	case state.Leaving:
		return Waiting, "the cluster is leaving the fleet, so nothing is sent there", ""
	case state.Suspended:
		what = "dispatching is suspended"
		if row.Work != nil {
			what = "dispatching is suspended; the member keeps what it has"
			if row.Work.Status == nil && row.Work.Health == workv1alpha1.ResourceUnknown {
				what = "dispatching is suspended; nothing was sent"
			}
		}
		return Waiting, cmp.Or(e.migrationState(row.Name), what), e.resume(row.Name)
	}
	switch {
	case row.Pods != nil && at.work != nil:
		// The notes repeat the status, and its counters have less detail than the pods.
		lines := at.pods.Lines()
		if at.pods.Troubles[0].Reason != pods.FailedCreate { // it has the same message
			lines = append(lines, strings.Trim(overdue(at.work), ", "))
		}
		lines = append(lines, state.Notes(row.Work.Status)...)
		severity = Attention
		if place.State.Bad() {
			severity = Problem
		}
		return severity, strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "; "),
			e.helpPods(row.Name, at.pods, at.manifest, at.item)
	case place.State == state.Progressing:
		return e.explainProgressing(row, at)
	case place.State == state.Unhealthy:
		return Problem, strings.TrimSuffix("applied, and not healthy: "+
				strings.Trim(overdue(at.work)+", "+state.Brief(row.Work.Status), ", "), ": "),
			fmt.Sprintf("look at the object and its pods in cluster %s; %s shows all that it reported%s", row.Name,
				e.command("argosy why", " --cluster "+row.Name), e.unseenPods())
	}
	if row.Work == nil {
		return "", place.What, ""
	}
	return "", state.Brief(row.Work.Status), ""
}

// explainFailed returns why the template is missing or outdated in a cluster, and what to do about it.
func (e *explanation) explainFailed(at *there, place state.Place) (what, next string) {
	switch {
	case at.seen.Missing:
		return place.What, "join it again, or let the policy choose another"
	case at.failed != nil:
		return place.What, "fix that override policy; the hub sends the object as soon as it applies"
	case at.seen.Unsent != "":
		return "nothing new is sent: " + place.What, "change the template or an override: the message has the reason"
	case meta.IsStatusConditionFalse(at.work.Status.Conditions, string(configv1alpha1.InterpreterOperationRetain)):
		return "nothing new is sent, because Retain could not be interpreted: " + place.What,
			"see how it is interpreted: `argosy interpret explain " + e.template.Kind + "`"
	}
	return e.explainFailure(at.cluster, execute.FailureOf(at.work), place.What)
}

// explainLost explains the state in a cluster that is not ready.
func (e *explanation) explainLost(row *Cluster, at *there) (severity Severity, what, next string) {
	outage := membership.OutageOf(at.cluster)
	if outage == nil { // the user may not read clusters, and its binding says so
		return Problem, staleText(at.cluster), "bring the cluster back"
	}
	if !at.item.Applied {
		next = "bring the cluster back; the hub retries by itself"
		if membership.Untrusted(at.cluster) {
			next = trustAgain(at.cluster)
		}
		return Problem, "the cluster is not ready: " + row.Ready.Message, next
	}
	e.find(Problem, row.Name, row.Name+": "+staleText(at.cluster), "bring the cluster back")
	what = "stale since " + outage.Since.UTC().Format(time.RFC3339) + ": " + state.Brief(row.Work.Status)
	return "", strings.TrimSuffix(what, ": "), ""
}

// staleText explains that the status from a cluster that is not ready is stale.
func staleText(c *clusterv1alpha1.Cluster) string {
	if membership.OutageOf(c) == nil {
		return "the cluster is not ready, and its status is stale"
	}
	return fmt.Sprintf("the cluster %s, and its status is stale: %s", membership.OutageOf(c),
		membership.Readiness(c).Message)
}

// explainProgressing returns what the template waits for in a cluster.
func (e *explanation) explainProgressing(row *Cluster, at *there) (severity Severity, what, next string) {
	b := e.ownBinding()
	switch w := at.work; {
	case w == nil && e.Unseen && b == nil:
		return Waiting, "its state there is in its Work, which you may not read",
			"ask a user who may list works.work.karmada.io"
	case w == nil && e.Unseen:
		return Waiting, "the member has not answered yet, according to its binding; you may not read its Work", ""
	case w == nil && b != nil && len(dispatch.Purging(b, e.Works)) > 0:
		return Waiting, "waits until objects in other clusters that must be deleted first are gone", ""
	case w == nil && b != nil && meta.IsStatusConditionFalse(b.BindingStatus().Conditions, workv1alpha2.SidecarsInForce):
		return "", "has no Work yet, which may wait for a SidecarSet", ""
	case w == nil:
		return Waiting, "its Work is about to be created", ""
	case w.DeletionTimestamp != nil:
		return Waiting, "the previous Work is being deleted; a new one follows", ""
	case !at.item.Applied:
		return Waiting, "the member has not answered yet", ""
	case at.seen.Outdated:
		return Waiting, "the latest change is not applied yet", ""
	}
	return Waiting, strings.TrimSuffix("applied, and not known to be healthy yet: "+state.Brief(row.Work.Status), ": "),
		strings.TrimPrefix(e.unseenPods(), "; ")
}

// explainConditions reports conditions of the Work that the state does not show.
func (e *explanation) explainConditions(row *Cluster, w *workv1alpha1.Work) {
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkScaledByMember); c != nil &&
		c.Status == metav1.ConditionTrue {
		row.Why = strings.TrimPrefix(row.Why+"; "+strings.TrimSuffix(c.Message, "."), "; ")
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkContested); c != nil &&
		c.Status == metav1.ConditionTrue {
		e.find(Attention, row.Name, row.Name+": "+c.Message, execute.ContestedAdvice)
	}
	for _, operation := range []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationInterpretHealth,
		configv1alpha1.InterpreterOperationInterpretStatus} {
		if c := meta.FindStatusCondition(w.Status.Conditions, string(operation)); c != nil &&
			c.Status == metav1.ConditionFalse {
			e.find(Attention, row.Name, fmt.Sprintf("%s: %s could not be interpreted: %s", row.Name, operation, c.Message),
				"see how it is interpreted: `argosy interpret explain "+e.template.Kind+"`")
		}
	}
}
