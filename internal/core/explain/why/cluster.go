package why

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/migrate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/core/workload/rollout"
)

// The states of clusters that are no target of the template, in addition to those of package state.
const (
	Refused state.State = "Refused" // a filter rejected the cluster
	Unused  state.State = "Unused"  // the cluster is feasible, but not used
)

// states are all states, the reddest first.
var states = append(slices.Clone(state.All), Refused, Unused)

// Cluster is the result for the template in one cluster.
type Cluster struct {
	Name  string      `json:"name"`
	State state.State `json:"state"`
	// Bad is true for a state that is a problem.
	Bad bool `json:"bad,omitempty"`
	// Why is the reason of the state, if it is not obvious.
	Why string `json:"why,omitempty"`
	// Target: the template should be there, with Replicas if it has any.
	Target   bool  `json:"target,omitempty"`
	Replicas int32 `json:"replicas,omitempty"`
	// ReadyPods of WantedPods are ready; see state.Place.
	ReadyPods  int64 `json:"readyPods,omitempty"`
	WantedPods int64 `json:"wantedPods,omitempty"`
	// Score is the scheduler's score of the cluster, Room the number of additional replicas that fit; nil if the cluster
	// was rejected, or if unknown.
	Score *int32 `json:"score,omitempty"`
	Room  *int64 `json:"room,omitempty"`
	// Overrides are the rules that apply to the manifest here.
	Overrides []OverrideRule `json:"overrides,omitempty"`
	// Untouched are overriders that found nothing to change here.
	Untouched []string `json:"untouched,omitempty"`
	// Work is the state of the Work; nil if there is none.
	Work *Work `json:"work,omitempty"`
	// Pods are the pods in trouble; nil for none or unknown.
	Pods *pods.Report `json:"pods,omitempty"`
	// Taints, Ready and Free describe the cluster: Free has the number of replicas that fit per resource.
	Taints []string          `json:"taints,omitempty"`
	Ready  *metav1.Condition `json:"ready,omitempty"`
	Free   []Free            `json:"free,omitempty"`
}

// OverrideRule is a rule of an override policy.
type OverrideRule struct {
	Policy     string `json:"policy"`
	Overriders string `json:"overriders"`
}

// Work is the state of a Work in a member.
type Work struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Applied: the member accepted the object. Message is the member's error if not.
	Applied bool   `json:"applied"`
	Message string `json:"message,omitempty"`
	// Health that was reported, and the status.
	Health     workv1alpha1.ResourceHealth `json:"health,omitempty"`
	Status     json.RawMessage             `json:"status,omitempty"`
	Conditions []metav1.Condition          `json:"conditions,omitempty"`
}

// Free is the free amount of a resource that a replica requests.
type Free struct {
	Resource string            `json:"resource"`
	Free     resource.Quantity `json:"free"`
	// OverCommitted is by how much more is requested there than the cluster has; nil if something is free.
	OverCommitted *resource.Quantity `json:"overCommitted,omitempty"`
	Request       resource.Quantity  `json:"request"`
}

// explainClusters explains each cluster of the fleet, and what is left of clusters that are gone.
func (e *explanation) explainClusters() {
	works := map[string]*workv1alpha1.Work{}
	for i := range e.Works {
		if cluster, err := names.ClusterOf(e.Works[i].Namespace); err == nil {
			works[cluster] = &e.Works[i]
		}
	}
	byName := map[string]*clusterv1alpha1.Cluster{}
	all := map[string]bool{}
	for _, c := range e.Clusters {
		byName[c.Name], all[c.Name] = c, true
	}
	for name := range works {
		all[name] = true
	}

	targets := map[string]workv1alpha2.TargetCluster{}
	items := map[string]workv1alpha2.AggregatedStatusItem{}
	candidates := map[string]schedule.Candidate{}
	rejections := map[string]schedule.Rejection{}
	if b := e.ownBinding(); b != nil {
		for _, t := range dispatch.Targets(b) {
			targets[t.Name], all[t.Name] = t, true
		}
		outages := aggregate.OutagesOf(b, func(name string) *clusterv1alpha1.Cluster { return byName[name] })
		for _, item := range aggregate.Binding(b, e.Works, outages, metav1.Time{}).AggregatedStatus {
			items[item.ClusterName] = item
		}
		if b.BindingSpec().Placement != nil && e.over == "" && !hidden(e.Missing, "clusters") {
			result, _ := e.run()
			for _, c := range result.Candidates {
				candidates[c.Cluster.Name] = c
			}
			for _, r := range result.Rejections {
				rejections[r.Cluster] = r
			}
		}
	} else if e.sentByItself() {
		for _, c := range e.Clusters {
			if c.DeletionTimestamp == nil {
				targets[c.Name] = workv1alpha2.TargetCluster{Name: c.Name}
			}
		}
	}

	for name := range all {
		row := Cluster{Name: name}
		target, wanted := targets[name]
		row.Target, row.Replicas = wanted, target.Replicas
		e.describeCluster(&row, byName[name])
		if c, ok := candidates[name]; ok {
			row.Score = &c.Score
			if c.Known {
				row.Room = &c.Available
			}
		}
		rejection, refused := rejections[name]
		item, reported := items[name]
		if !reported && works[name] != nil {
			item, reported = itemOf(name, works[name]), true
		}
		switch {
		case wanted:
			e.explainTarget(&row, target, byName[name], works[name], item, reported)
			if why, next := e.rejected(rejection); refused && e.placedByRun(name) {
				e.find(Attention, name, name+" has it, but is no longer eligible: it "+why, next)
			}
			e.explainFailover(name)
		case works[name] != nil && e.ownsWork(works[name]):
			e.explainLeaving(&row, works[name], item)
		case refused:
			row.State = Refused
			var next string
			row.Why, next = e.rejected(rejection)
			// A cluster that the policy does not select is not worth a finding.
			if rejection.Reason != schedule.ReasonAffinity && len(targets) > 0 {
				severity := Attention
				if rejection.Unreported {
					severity = Waiting
				}
				e.find(severity, name, name+" is left out: it "+row.Why, next)
			}
		default:
			row.State = Unused
			row.Why = e.unused(name, byName[name], candidates)
			e.passedOver(&row)
		}
		e.answer.Clusters = append(e.answer.Clusters, row)
	}
	slices.SortFunc(e.answer.Clusters, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State)),
			strings.Compare(a.Name, b.Name))
	})
	if e.answer.Placement == nil && !e.sentByItself() {
		// Nothing was placed: rows that all have the same reason add nothing.
		e.answer.Clusters = slices.DeleteFunc(e.answer.Clusters, func(c Cluster) bool { return c.State == Unused })
	}
}

// ownsWork reports whether a Work is the template's, and not one of another that shares its name.
func (e *explanation) ownsWork(w *workv1alpha1.Work) bool {
	return e.ownBinding() != nil || e.sentByItself() || e.Facts.Template.GetDeletionTimestamp() != nil ||
		w.DeletionTimestamp != nil
}

// placedByRun reports whether the binding was scheduled to the cluster, and not drawn there by what requires it.
func (e *explanation) placedByRun(cluster string) bool {
	return workv1alpha2.HasTarget(e.ownBinding().BindingSpec().Clusters, cluster)
}

// itemOf returns the status of a Work that is in no binding.
func itemOf(cluster string, w *workv1alpha1.Work) workv1alpha2.AggregatedStatusItem {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster}}
	for _, item := range aggregate.Binding(b, []workv1alpha1.Work{*w}, nil, metav1.Time{}).AggregatedStatus {
		return item
	}
	return workv1alpha2.AggregatedStatusItem{ClusterName: cluster}
}

// describeCluster sets the fields that do not depend on the template.
func (e *explanation) describeCluster(row *Cluster, c *clusterv1alpha1.Cluster) {
	if c == nil {
		return
	}
	row.Ready = membership.Readiness(c)
	for i := range c.Spec.Taints {
		row.Taints = append(row.Taints, c.Spec.Taints[i].ToString())
	}
	b := e.ownBinding()
	if b == nil || b.BindingSpec().ReplicaRequirements == nil || c.Status.ResourceSummary == nil {
		return
	}
	summary := c.Status.ResourceSummary
	for name, request := range b.BindingSpec().ReplicaRequirements.ResourceRequest {
		f := Free{Resource: string(name), Request: request}
		var over resource.Quantity
		if f.Free, over = split(leftOf(summary, name)); !over.IsZero() {
			f.OverCommitted = &over
		}
		row.Free = append(row.Free, f)
	}
	slices.SortFunc(row.Free, func(a, b Free) int { return strings.Compare(a.Resource, b.Resource) })
}

// explainLeaving reports what blocks a deletion in a cluster.
func (e *explanation) explainLeaving(row *Cluster, w *workv1alpha1.Work, item workv1alpha2.AggregatedStatusItem) {
	row.State, row.Work = state.Leaving, workOf(w, item)
	row.Why = "it is being removed"
	if execute.Recallable(w) {
		row.Why += "; a namespace waits until the objects that the hub placed in it have left"
	}
	for _, m := range e.answer.Failovers {
		switch {
		case m.From != row.Name || m.Ended != nil:
		case m.WaitingFor == failover.KeptByPolicy:
			row.Why = fmt.Sprintf("it moved to other clusters (%s), and %s", m.Reason, m.Message)
		default:
			row.Why = fmt.Sprintf("the object is kept until its replacements in other clusters are healthy (%s): %s", m.Reason,
				m.Message)
		}
	}
	next := ""
	if row.Ready != nil && row.Ready.Status != metav1.ConditionTrue {
		next = "the cluster is not ready: " + row.Ready.Message
		row.Work.Health = workv1alpha1.ResourceUnknown // its last report is stale
	}
	e.find(Waiting, row.Name, row.Name+": "+row.Why, next)
}

// passedOver reports that a fresh scheduling would place replicas in a cluster that has none, for example after it was
// joined again. Placed replicas do not move by themselves, neither those by capacity nor those by static weights.
func (e *explanation) passedOver(row *Cluster) {
	if e.answer.Placement == nil || e.answer.Placement.Due != "" {
		return // a due run may use the cluster
	}
	i := slices.IndexFunc(e.answer.Placement.Fresh, func(t workv1alpha2.TargetCluster) bool { return t.Name == row.Name })
	if i < 0 {
		return
	}
	replicas := text.Count(e.answer.Placement.Fresh[i].Replicas, "replica")
	row.Why = "placed replicas do not move; a WorkloadRebalancer would place " + replicas + " here"
	t := e.template
	namespace := ""
	if t.Namespace != "" {
		namespace = ", namespace: " + t.Namespace
	}
	e.find(Attention, row.Name, fmt.Sprintf(
		"%s has none of the replicas, and a fresh scheduling would place %s there: replicas that are placed do not move by themselves", row.Name, replicas),
		fmt.Sprintf("to distribute them again, create a WorkloadRebalancer with spec.workloads: [{apiVersion: %s, kind: %s%s, name: %s}]", t.APIVersion, t.Kind, namespace, t.Name))
}

// unused returns why a cluster that may take the template does not get it.
func (e *explanation) unused(name string, c *clusterv1alpha1.Cluster, candidates map[string]schedule.Candidate) string {
	b := e.ownBinding()
	switch {
	case c != nil && c.DeletionTimestamp != nil:
		return "the cluster is leaving the fleet"
	case e.over != "":
		return e.over.Message()
	case b == nil || b.BindingSpec().Placement == nil:
		return "nothing places it there"
	case e.answer.Placement.Failure != "":
		what, _ := e.limitIn(candidates[name])
		switch {
		case what != "" && len(b.BindingSpec().Components) > 0:
			return "has no capacity for all components: " + what
		case what != "":
			return fmt.Sprintf("has capacity for %d of %s: %s", candidates[name].Available,
				text.Count(int(b.BindingSpec().Replicas), "replica"), what)
		}
		return "eligible; see above why nothing is placed"
	case workv1alpha2.HasTarget(e.answer.Placement.Run, name):
		return "eligible, not rescheduled yet"
	}
	if parts := schedule.PartsOf(b); parts != nil && !parts.Rest {
		return "no subset that has replicas names it"
	}
	candidate := candidates[name]
	switch method := schedule.MethodOf(b); {
	case method == schedule.StaticWeights && e.unweighted(b, candidates, name):
		return "no static weight matches it, and other clusters have one"
	case method == schedule.StaticWeights && len(b.BindingSpec().Placement.SpreadConstraints) > 0:
		return "its share rounds to zero replicas, or spreadConstraints take others"
	case method == schedule.StaticWeights:
		return "its share rounds to zero replicas"
	case candidate.Known && candidate.Available == 0:
		if what, _ := e.limitIn(candidate); what != "" {
			return "has no capacity: " + what
		}
		return "has no capacity"
	case lacksRoom(b, candidate):
		return fmt.Sprintf("has capacity for %d of %d replicas: clusters with capacity for all rank higher",
			candidate.Available, b.BindingSpec().Replicas)
	case len(b.BindingSpec().Components) > 0 && len(b.BindingSpec().Placement.SpreadConstraints) == 0:
		return "its components stay together in another cluster"
	case method == schedule.Aggregated:
		return "not needed: clusters that rank higher have enough capacity"
	case method == schedule.ByRoom:
		return "its share of the capacity rounds to zero replicas, or what is placed elsewhere stays there"
	case len(b.BindingSpec().Placement.SpreadConstraints) > 0:
		return "other clusters rank higher by score, capacity and name, and spreadConstraints allow no more"
	}
	return ""
}

// lacksRoom reports whether a cluster is known to have no room for a copy of b with all replicas.
func lacksRoom(b workv1alpha2.Binding, c schedule.Candidate) bool {
	return schedule.MethodOf(b) == schedule.Duplicated && c.Known &&
		c.Available+int64(c.Assigned) < int64(b.BindingSpec().Replicas)
}

// unweighted reports whether the cluster has no weight where others have.
func (e *explanation) unweighted(b workv1alpha2.Binding, candidates map[string]schedule.Candidate, name string) bool {
	all := slices.Collect(maps.Values(candidates))
	return slices.ContainsFunc(schedule.Weights(b, all), func(s schedule.Share) bool {
		return s.Name == name && s.Weight == 0
	})
}

// migrationOf returns the state of a cluster in the migration of the template; the zero value for none.
func (e *explanation) migrationOf(cluster string) (of migrate.Cluster, changing bool) {
	if e.claiming == nil {
		return migrate.Cluster{}, false
	}
	r, err := migrate.RecordOf(e.claiming)
	if r == nil || err != nil {
		return migrate.Cluster{}, false
	}
	return r.Clusters[cluster], r.Changing
}

// migrationState describes the migration by which a cluster is suspended; empty for none.
func (e *explanation) migrationState(cluster string) string {
	c, changing := e.migrationOf(cluster)
	switch {
	case c.State == migrate.Shadow && c.Reason != "":
		return "the migration put it back to Shadow at " + c.Since + ": " + c.Reason
	case c.State == migrate.Shadow:
		return "in Shadow since " + c.Since + ": the hub applies nothing"
	case c.State == migrate.Leaving:
		return "it leaves the migration; the member keeps what it has"
	case c.State != "" && changing:
		return "the hub applies nothing until other clusters have joined or left the migration"
	}
	return ""
}

// resume returns how to resume what is suspended in a cluster.
func (e *explanation) resume(cluster string) string {
	if propagate.Paused(e.Facts.Template) {
		return "remove the annotation " + wellknown.PauseManagementAnnotation
	}
	switch c, changing := e.migrationOf(cluster); {
	case c.State == migrate.Shadow && !changing:
		return "continue with `argosy migrate in`, or end it with `argosy migrate out`"
	case c.State != "":
		return "run the command again that `argosy migrate status` shows as unfinished"
	}
	return "remove spec.suspension from " + e.holderName()
}

// explainFailure returns why the template is not applied in a cluster, and what to do about it. failure is nil if a hub
// of an earlier version wrote the Work's status, or the user may not read the Work; then only the message is known, and
// is for people.
func (e *explanation) explainFailure(c *clusterv1alpha1.Cluster, failure *metav1.Condition,
	message string) (what, next string) {
	const retries = "; the hub retries by itself"
	unknown := cmp.Or(e.installKind(c.Name), "fix what the message names"+retries)
	if failure == nil {
		return "not applied: " + message, unknown
	}
	refused := "the member refused it: " + failure.Message
	untouched := "the hub leaves the member's object alone: " + failure.Message
	switch failure.Reason {
	case workv1alpha1.ReasonTimeout:
		return "the cluster did not answer in time, so it is not known whether it has the change",
			"check that the API server of cluster " + c.Name + " is running and not overloaded" + retries
	case workv1alpha1.ReasonUnreachable:
		return "the " + failure.Message,
			"check that its API server is running and reachable at " + c.Spec.APIEndpoint + retries
	case workv1alpha1.ReasonCertificateUntrusted:
		return "the " + failure.Message, trustAgain(c)
	case workv1alpha1.ReasonUnauthorized:
		return refused, "the credentials of the hub are not valid there: join cluster " + c.Name + " again, which renews them"
	case workv1alpha1.ReasonForbidden:
		return refused, cmp.Or(roles.HubLacks(c.Name, failure.Message), "change what admission there denies") + retries
	case workv1alpha1.ReasonNamespaceMissing:
		return refused, createNamespace(e.template.Namespace, c.Name) + ", or propagate the namespace to this cluster, too" +
			afterDeletion + retries
	case workv1alpha1.ReasonRejected:
		return refused, cmp.Or(e.installKind(c.Name),
			fmt.Sprintf("change what the member refuses, in the template or by an override for cluster %s", c.Name)+retries)
	case workv1alpha1.ReasonServerError:
		return "the member could not carry it out: " + failure.Message,
			"check the API server of cluster " + c.Name + " and the webhook that the message names" + retries
	case workv1alpha1.ReasonObjectUnmanaged:
		return untouched, fmt.Sprintf("to take the member's object over, set conflictResolution: Overwrite in %s "+
			"or annotate the template %s: %s; else delete or rename the object in cluster %s",
			e.holderName(), workv1alpha2.ConflictResolutionAnnotation, workv1alpha2.ConflictResolutionOverwrite, c.Name)
	case workv1alpha1.ReasonObjectOfAnother:
		return untouched, "follow the message" + retries
	case workv1alpha1.ReasonHandsOff:
		next = "remove the annotation " + wellknown.HandsOffAnnotation + " when the hub may change the object again"
		if brake := execute.BrakeOn(c, e.template.Namespace); brake != "" {
			_, next = brake.Explain(c.Name)
		}
		return untouched, next
	case workv1alpha1.ReasonRestored:
		return "held after a restore of the hub: " + failure.Message, e.acceptRestored()
	}
	return "not applied: " + failure.Message, unknown
}

// afterDeletion is for a namespace that exists, but takes no objects any more.
const afterDeletion = "; if it is being deleted there, wait until it is gone"

// createNamespace returns how to create a namespace that a member lacks.
func createNamespace(namespace, cluster string) string {
	return fmt.Sprintf("create it with a kubeconfig of cluster %s: `kubectl create namespace %s --kubeconfig FILE`", cluster,
		namespace)
}

// installKind returns the advice for a cluster that does not serve the template's kind; empty if it serves it, and
// for an object that is not the hub's template.
func (e *explanation) installKind(cluster string) string {
	gk := e.template.GroupKind()
	if gk.Kind == "" || len(e.fleet.Versions(cluster, gk)) > 0 {
		return ""
	}
	return fmt.Sprintf("install the CustomResourceDefinition or API of %s in cluster %s, "+
		"or exclude that cluster from the policy", gk, cluster)
}

// command returns a command about the template, in backquotes.
func (e *explanation) command(verb, flags string) string {
	return "`" + rollout.CommandFor(e.Facts.Template, verb) + flags + "`"
}

// acceptRestored returns the command that applies the hub's state to objects that are paused after a restore.
func (e *explanation) acceptRestored() string {
	return "to apply the hub's state: " + e.command("argosy restore accept", "") +
		"; to keep it as it is in the cluster, change the template to match it first"
}

// trustAgain returns the advice for a cluster whose certificate the hub does not trust.
func trustAgain(c *clusterv1alpha1.Cluster) string {
	return fmt.Sprintf("the certificate at %s is not the one that the hub trusts: join the cluster again, "+
		"or correct caBundle in the secret that spec.secretRef of the Cluster names", c.Spec.APIEndpoint)
}

// stale reports whether what was applied is of an older generation of the Work.
func stale(w *workv1alpha1.Work) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration > 0 && c.ObservedGeneration < w.Generation
}

// overdue returns since when a rollout makes no progress, or the error of its controller; empty if neither is the
// cause.
func overdue(w *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkProgressing)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	if c.Reason != interpret.ReasonDeadlineExceeded {
		return c.Message
	}
	return "its deadline passed without progress at " + c.LastTransitionTime.UTC().Format(time.RFC3339)
}

func workOf(w *workv1alpha1.Work, item workv1alpha2.AggregatedStatusItem) *Work {
	out := &Work{Namespace: w.Namespace, Name: w.Name, Applied: item.Applied, Message: item.AppliedMessage,
		Health: item.Health, Conditions: w.Status.Conditions}
	if item.Status != nil {
		out.Status = item.Status.Raw
	}
	return out
}

func overridePolicy(r override.Rule, namespace string) string {
	if r.Namespaced {
		return "OverridePolicy " + namespace + "/" + r.Policy
	}
	return "ClusterOverridePolicy " + r.Policy
}
