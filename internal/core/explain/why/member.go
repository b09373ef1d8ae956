package why

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// MemberFacts are the facts about a member cluster. They are read-only.
type MemberFacts struct {
	Cluster *clusterv1alpha1.Cluster
	// Bindings are the bindings of all templates. Troubled are the workloads with pods that do not run.
	Bindings []workv1alpha2.Binding
	Troubled state.Troubled
	// ManifestWorks are those of Open Cluster Management for the cluster.
	ManifestWorks []ocmv1.ManifestWork
	// Remedies are those of the hub.
	Remedies []remedyv1alpha1.Remedy
	// Orphans are the orphans of this hub in the cluster, such as "Deployment shop/web".
	Orphans []string
	// Scheduler has the settings of the hub's scheduler.
	Scheduler schedule.Settings
	// Missing are rights that the user lacks. What they permit to read is not in these facts.
	Missing []roles.Missing
}

// MemberAnswer explains a member cluster.
type MemberAnswer struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Summary string `json:"summary"`
	// Findings are sorted by severity.
	Findings []Finding `json:"findings,omitempty"`
	// Ready is its condition; nil before its status was collected.
	Ready  *metav1.Condition `json:"ready,omitempty"`
	Taints []string          `json:"taints,omitempty"`
	// Room is by resource, as "cpu: 4 of 10 free". RoomBefore is set while the cluster is not ready: it last reported
	// its room before then.
	Room       []string     `json:"room,omitempty"`
	RoomBefore *metav1.Time `json:"roomReportedBefore,omitempty"`
	// Placed are the templates in the cluster, those with a problem first. Refused counts rejected templates by reason.
	Placed  []PlacedThere `json:"placed,omitempty"`
	Refused []Refusal     `json:"refused,omitempty"`
	// Leaving are the templates that are being evicted gracefully.
	Leaving []LeavingThere `json:"leaving,omitempty"`
	// Missing are the rights that the user lacks: the answer does without what they permit to read.
	Missing []roles.Missing `json:"missing,omitempty"`
}

// PlacedThere is a template in the cluster.
type PlacedThere struct {
	Template string      `json:"template"`
	Replicas int32       `json:"replicas,omitempty"`
	State    state.State `json:"state"`
	// Ready of Wanted pods are ready; see state.Place.
	Ready  int64 `json:"ready,omitempty"`
	Wanted int64 `json:"wanted,omitempty"`
	// Why has the reason of a failure, in the words of the hub or of the cluster, or the pods that do not exist.
	Why string `json:"why,omitempty"`
}

// Refusal counts the templates for which the scheduler rejects the cluster for a reason, and names three of them.
type Refusal struct {
	Reason string   `json:"reason"`
	Times  int      `json:"times"`
	Such   []string `json:"such"`
	Remedy string   `json:"remedy,omitempty"`
	// notable: the rejection is worth a finding. The policy selects the cluster, and the taint is not the hub's own for
	// clusters that are not ready.
	notable bool
}

// LeavingThere is a template that is being evicted from the cluster.
type LeavingThere struct {
	Template string `json:"template"`
	// Why is the reason, and the producer of the eviction.
	Why string `json:"why"`
}

// ExplainMember answers. The same facts give the same answer, in whatever order they come.
func ExplainMember(f MemberFacts) MemberAnswer {
	c := f.Cluster
	a := MemberAnswer{Kind: "Cluster", Name: c.Name, Ready: membership.Readiness(c), Missing: f.Missing}
	find := func(s Severity, what, next string) {
		a.Findings = append(a.Findings, newFinding(s, "", what, next))
	}
	switch {
	case c.DeletionTimestamp != nil:
		find(Waiting, "the cluster is leaving the fleet", "")
	case a.Ready == nil:
		find(Waiting, "the status of the cluster has not been collected yet", "")
	case membership.ManagedByAnother(c):
		find(Problem, "this hub writes nothing into the cluster: "+a.Ready.Message,
			fmt.Sprintf("`argosy join %s --take-over --cluster-kubeconfig FILE`, or `argosy unjoin %s`", c.Name, c.Name))
	case !membership.IsReady(c):
		find(Problem, fmt.Sprintf("the cluster is not ready%s: %s, %s", sinceText(a.Ready), a.Ready.Reason, a.Ready.Message),
			bringBack(c, a.Ready))
	}
	if known := meta.FindStatusCondition(c.Status.Conditions,
		clusterv1alpha1.ClusterConditionCompleteAPIEnablements); known != nil && known.Status != metav1.ConditionTrue {
		find(Attention, "the list of kinds that the cluster serves is incomplete: "+known.Message,
			"check which of the member's APIs do not respond")
	}
	if paused := meta.FindStatusCondition(c.Status.Conditions,
		clusterv1alpha1.ClusterConditionFailoverPaused); paused != nil && paused.Status == metav1.ConditionTrue {
		find(Problem, "failover is paused: "+paused.Message, "")
	}
	for _, namespace := range c.Status.Brakes {
		what, next := execute.Brake(namespace).Explain(c.Name)
		find(Attention, what, next)
	}
	for _, action := range c.Status.RemedyActions {
		by := text.Names(remedy.Giving(remedyv1alpha1.RemedyAction(action), []*clusterv1alpha1.Cluster{c}, f.Remedies), 3)
		find(Attention, fmt.Sprintf("the cluster has the action %s of Remedy %s: MultiClusterServices and "+
			"MultiClusterIngresses take it out of traffic if another cluster can serve", action, cmp.Or(by, "(unknown)")),
			"change or delete the Remedy to end that")
	}
	for _, t := range c.Spec.Taints {
		a.Taints = append(a.Taints, t.ToString())
	}
	a.Room = roomOf(c.Status.ResourceSummary)
	if outage := membership.OutageOf(c); outage != nil && len(a.Room) > 0 && !outage.Since.IsZero() {
		a.RoomBefore = &outage.Since
	}

	fleet := f.Scheduler.Snapshot([]*clusterv1alpha1.Cluster{c})
	refused, grouped := map[string]*Refusal{}, map[string][]workv1alpha2.Binding{}
	for _, b := range f.Bindings {
		if schedule.Grouped(b) { // a group is within one namespace
			grouped[b.GetNamespace()] = append(grouped[b.GetNamespace()], b)
		}
	}
	for _, b := range f.Bindings {
		of := templateName(b)
		for _, t := range b.BindingSpec().GracefulEvictionTasks {
			if t.FromCluster == c.Name {
				a.Leaving = append(a.Leaving, LeavingThere{Template: of,
					Why: fmt.Sprintf("evicted by %s, reason %s", t.Producer, t.Reason)})
			}
		}
		if p, placed := state.PlaceIn(b, c, f.Troubled); placed {
			if ref := b.BindingSpec().Resource; p.State == state.Progressing && p.What != "" {
				p.What += "; " + Command(ref.Kind, ref.Namespace, ref.Name) + " asks the cluster why"
			}
			a.Placed = append(a.Placed, PlacedThere{Template: of, Replicas: p.Replicas, State: p.State, Ready: p.Ready,
				Wanted: p.Wanted, Why: p.What})
			continue
		}
		among := fleet
		if schedule.Grouped(b) {
			among = fleet.Among(schedule.PeersOf(b, grouped[b.GetNamespace()]))
		}
		_, rejections := schedule.Feasible(b, among)
		for _, r := range rejections {
			key := r.Clause() + "\n" + r.Remedy
			if refused[key] == nil {
				taint, repels := fleet.Repels(r)
				ownTaint := repels && strings.HasPrefix(taint.Key, "cluster.karmada.io/") && membership.KnownNotReady(c)
				refused[key] = &Refusal{Reason: r.Clause(), Remedy: r.Remedy,
					notable: r.Reason != schedule.ReasonAffinity && r.Reason != schedule.ReasonEviction && !ownTaint &&
						!r.Unreported}
			}
			refused[key].Times++
			refused[key].Such = append(refused[key].Such, of)
		}
	}
	slices.SortFunc(a.Placed, func(x, y PlacedThere) int {
		return cmp.Or(x.State.Rank()-y.State.Rank(), strings.Compare(x.Template, y.Template))
	})
	slices.SortFunc(a.Leaving, func(x, y LeavingThere) int {
		return cmp.Or(strings.Compare(x.Template, y.Template), strings.Compare(x.Why, y.Why))
	})
	for _, r := range refused {
		slices.Sort(r.Such)
		r.Such = r.Such[:min(3, len(r.Such))]
		a.Refused = append(a.Refused, *r)
	}
	slices.SortFunc(a.Refused, func(x, y Refusal) int {
		return cmp.Or(y.Times-x.Times, strings.Compare(x.Reason, y.Reason), strings.Compare(x.Remedy, y.Remedy))
	})
	for _, r := range a.Refused {
		if r.notable {
			find(Attention, fmt.Sprintf("the scheduler excludes the cluster for %s, such as %s: it %s",
				text.Count(r.Times, "template"), strings.Join(r.Such, ", "), r.Reason), r.Remedy)
		}
	}
	for _, t := range c.Spec.Taints {
		if membership.IsReady(c) && (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) {
			what := "new workloads avoid the cluster"
			if t.Effect == corev1.TaintEffectNoExecute {
				what += ", and those that do not tolerate the taint leave it"
			}
			find(Attention, what+": it has the taint "+t.ToString(),
				"remove the taint to let the cluster take new workloads again")
		}
	}
	var missing, sick []string
	for _, p := range a.Placed {
		switch p.State {
		case state.Failed:
			missing = append(missing, p.Template)
		case state.Unhealthy:
			sick = append(sick, p.Template)
		}
	}
	explain := func(template string) string {
		kind, path, _ := strings.Cut(template, " ")
		namespace, name, namespaced := strings.Cut(path, "/")
		if !namespaced {
			namespace, name = "", path
		}
		return Command(kind, namespace, name) + " shows the member's response to the first; the table below lists all"
	}
	if len(missing) > 0 {
		find(Problem, fmt.Sprintf("%s not applied, such as %s", text.Count(len(missing), "template"), some(missing)),
			explain(missing[0]))
	}
	if len(sick) > 0 {
		find(Problem, fmt.Sprintf("%s not healthy, such as %s", text.Count(len(sick), "template"), some(sick)),
			explain(sick[0]))
	}
	var unapplied []string
	for i := range f.ManifestWorks {
		if mw := &f.ManifestWorks[i]; ManifestWorkFault(mw) != nil {
			unapplied = append(unapplied, mw.Name)
		}
	}
	if slices.Sort(unapplied); len(unapplied) > 0 {
		find(Problem, fmt.Sprintf("%s not applied, such as %s", text.Count(len(unapplied), "ManifestWork"), some(unapplied)),
			fmt.Sprintf("`argosy why manifestwork NAME -n %s` shows the reason for each", c.Name))
	}
	if len(f.Orphans) > 0 {
		objects, such := text.Count(len(f.Orphans), "object"), some(slices.Sorted(slices.Values(f.Orphans)))
		find(Attention, fmt.Sprintf("the cluster has %s of this hub without a Work, such as %s", objects, such),
			fmt.Sprintf("`argosy orphans -C %[1]s` lists them; `argosy adopt KIND NAME -C %[1]s` brings one under the hub's "+
				"management, `argosy orphans delete KIND NAME -C %[1]s` deletes it", c.Name))
	}
	sortFindings(a.Findings)
	placed := text.Count(len(a.Placed), "template") + " placed here"
	if hidden(f.Missing, "resourcebindings", "clusterresourcebindings") {
		placed = "not known which templates are placed here"
	}
	parts := append(tally(a.Findings), placed)
	if len(a.Leaving) > 0 {
		parts = append(parts, fmt.Sprintf("%d leaving", len(a.Leaving)))
	}
	a.Summary = strings.Join(parts, ", ")
	return a
}

// bringBack returns what to do about a cluster that is not ready. If the cluster responds, the message of its condition
// has the cause.
func bringBack(c *clusterv1alpha1.Cluster, ready *metav1.Condition) string {
	if membership.Untrusted(c) {
		return trustAgain(c)
	}
	switch ready.Reason {
	case clusterv1alpha1.ReasonClusterNotReady, clusterv1alpha1.ReasonStatusCollectionFailed:
		return "fix what the message names; the hub retries by itself"
	}
	return strings.TrimSuffix("check that its API server is running, not overloaded, and reachable at "+c.Spec.APIEndpoint,
		" at ")
}

// templateName returns a binding's template as people name it.
func templateName(b workv1alpha2.Binding) string {
	ref := b.BindingSpec().Resource
	return text.Object(match.GroupKind(ref.APIVersion, ref.Kind).String(), ref.Namespace, ref.Name)
}

// roomOf returns the free amount of each resource, sorted.
func roomOf(s *clusterv1alpha1.ResourceSummary) (lines []string) {
	if s == nil {
		return nil
	}
	for name, all := range s.Allocatable {
		lines = append(lines, roomLine(name, leftOf(s, name), all))
	}
	slices.Sort(lines)
	return lines
}

// sinceText returns " since 2026-01-02T15:04:05Z" for a condition; empty if the time is unknown.
func sinceText(c *metav1.Condition) string {
	if c.LastTransitionTime.IsZero() {
		return ""
	}
	return " since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
}

// Write prints the answer for people: problems first, then the templates in the cluster and those that are rejected.
func (a MemberAnswer) Write(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Cluster %s: %s\n", a.Name, a.Summary)
	writeFindings(&b, a.Findings)
	fmt.Fprintln(&b)
	if c := a.Ready; c != nil {
		fmt.Fprintf(&b, "Ready: %s%s (%s) %s\n", c.Status, sinceText(c), c.Reason, text.Printable(c.Message))
	}
	if len(a.Taints) > 0 {
		fmt.Fprintf(&b, "Taints: %s\n", strings.Join(a.Taints, ", "))
	}
	if len(a.Room) > 0 {
		stale := ""
		if a.RoomBefore != nil {
			stale = fmt.Sprintf(" (last reported before %s)", a.RoomBefore.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(&b, "Capacity%s: %s\n", stale, strings.Join(a.Room, "; "))
	}
	table(&b, "\nPlaced here\n", a.Placed, []string{"TEMPLATE", "STATE", "READY", "WHY"}, func(p PlacedThere) []string {
		ready := ""
		if p.Wanted > 0 {
			ready = fmt.Sprintf("%d/%d", p.Ready, p.Wanted)
		}
		return []string{p.Template, string(p.State), ready, short(p.Why)}
	})
	table(&b, "\nLeaving\n", a.Leaving, []string{"TEMPLATE", "WHY"}, func(l LeavingThere) []string {
		return []string{l.Template, l.Why}
	})
	table(&b, "\nRejected by the scheduler\n", a.Refused, []string{"TIMES", "REASON", "SUCH AS", "REMEDY"},
		func(r Refusal) []string {
			return []string{fmt.Sprint(r.Times), r.Reason, strings.Join(r.Such, ", "), r.Remedy}
		})
	writeMissing(&b, a.Missing)
	return writePrintable(out, b.Bytes())
}
