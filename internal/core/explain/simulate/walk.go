package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/adjust/rebalance"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

// Meaning returns the interpreter with the fleet's customizations and the built-in ones. Webhooks are not called.
func Meaning(f *Fleet) interpret.Interpreter {
	var all []*configv1alpha1.ResourceInterpreterCustomization
	for _, name := range sortedKeys(f.customizations) {
		all = append(all, f.customizations[name])
	}
	return tiers.Offline(all)
}

// state is a fleet on its way to where nothing is left to decide.
type state struct {
	*Fleet
	meaning  interpret.Interpreter
	snapshot schedule.Snapshot
	rooms    rooms
	// balances are the balances of clusters after the fleet was settled.
	balances map[string]balance
	// rebalancing are the WorkloadRebalancers that are created in this step.
	rebalancing []*appsv1alpha1.WorkloadRebalancer
	// touched are the templates that a user writes in this step.
	touched map[ref]bool
	// queue are the bindings in the order in which the hub schedules them.
	queue []types.NamespacedName
	// past: all happened some time ago, so members followed each placement before the next.
	past bool
	// problems are the reasons why templates lack their binding, by template.
	problems map[ref]error
	// failures are the errors of bindings that could not be placed, reasons why bindings were scheduled.
	failures map[types.NamespacedName]error
	reasons  map[types.NamespacedName]schedule.Reason
	// grouped are the bindings to which it matters where others are, in the order in which they are placed.
	grouped []types.NamespacedName
	// sidecars are the containers that SidecarSets inject, computed on first use, after the SidecarSets were claimed.
	sidecars []dependency.Sidecars
	// unlabelled are the namespaces whose unknown labels matter.
	unlabelled map[string]bool
	// policiesOf are the policies by the kind and name that a selector names; an empty name is any.
	policiesOf map[selected][]policyv1alpha1.Propagation
	// now is the time; stays are the workloads that should leave a cluster and cannot, by binding.
	now   time.Time
	stays map[types.NamespacedName][]failover.Waiting
	// unhealthy is since when workloads with application failover are unhealthy, by cluster.
	unhealthy map[string]time.Time
	// undetermined is why bindings may get other clusters on the hub.
	undetermined map[types.NamespacedName]string
	// paused are the lost clusters from which nothing is evicted, with the reason for people.
	paused map[string]string
}

type selected struct {
	schema.GroupKind
	name string
}

func newState(f *Fleet, r rooms, touched map[ref]bool, now time.Time) *state {
	s := &state{
		Fleet: f, meaning: Meaning(f), rooms: r, touched: touched, now: now, unhealthy: map[string]time.Time{},
		stays:    map[types.NamespacedName][]failover.Waiting{},
		problems: map[ref]error{}, failures: map[types.NamespacedName]error{},
		reasons: map[types.NamespacedName]schedule.Reason{}, undetermined: map[types.NamespacedName]string{},
		policiesOf: map[selected][]policyv1alpha1.Propagation{}, unlabelled: map[string]bool{},
	}
	s.snapshot = f.scheduler.Snapshot(f.seenClusters(r))
	for _, p := range f.policies {
		known := map[selected]bool{}
		for _, sel := range p.PropagationSpec().ResourceSelectors {
			at := selected{match.GroupKind(sel.APIVersion, sel.Kind), sel.Name}
			if !known[at] {
				known[at] = true
				s.policiesOf[at] = append(s.policiesOf[at], p)
			}
		}
	}
	return s
}

// passes bounds the passes over the bindings: placing one can free capacity for another.
const passes = 16

// settle decides all, and finishes it.
func (s *state) settle(ctx context.Context) {
	s.decideAll(ctx)
	s.finish()
}

// finish has members follow what was decided, until nothing is left to decide.
func (s *state) finish() {
	s.rest()
	s.failOver()
	s.balances = s.rooms.balances(s.clusters)
}

// decideAll runs the hub's pipeline before members follow: policies claim templates, bindings follow, and the scheduler
// places what is due. The order is that of the hub's queue: first what the user wrote, in that order, and what policies
// and rebalancers change, and then the rest by schedule.Urgency.
func (s *state) decideAll(ctx context.Context) {
	refs := make([]ref, 0, len(s.templates))
	for r := range s.templates {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, compareRefs)
	var written, changed []types.NamespacedName
	for _, r := range refs {
		was, _, _ := s.bindingFor(r)
		if err := s.propagate(ctx, r); err != nil {
			s.problems[r] = err
		}
		if is, _, key := s.bindingFor(r); !s.past && is != nil &&
			(was == nil || !equality.Semantic.DeepEqual(was.BindingSpec(), is.BindingSpec())) {
			changed = append(changed, key)
		}
	}
	for _, r := range s.added {
		if b, _, key := s.bindingFor(r); b != nil && !s.past {
			written = append(written, key)
		}
	}
	first := slices.Concat(written, changed, s.rebalance())
	for key, b := range s.bindings {
		s.queue = append(s.queue, key)
		if schedule.Grouped(b) {
			s.grouped = append(s.grouped, key)
		}
	}
	slices.SortFunc(s.grouped, compareKeys)
	slices.SortFunc(s.queue, func(a, b types.NamespacedName) int {
		return schedule.Urgency(s.bindings[a], s.bindings[b])
	})
	s.scheduleAll(append(first, s.queue...))
}

// rest has members follow, and the scheduler place what waits for the room that this frees, until nothing changes. Pods
// do not leave all at once: what waits takes room as soon as there is enough, and can take it from each other.
func (s *state) rest() {
	for range passes {
		waiting := maps.Clone(s.failures)
		if s.follow(); !s.scheduleAll(s.queue) {
			return
		}
		for key := range waiting {
			if schedule.NeedsRoom(s.bindings[key]) {
				s.undetermined[key] = "it waits for room that other workloads free, and is placed as soon as enough is free"
			}
		}
	}
}

// scheduleAll places the due bindings in that order, and reports whether that changed anything.
func (s *state) scheduleAll(order []types.NamespacedName) (changed bool) {
	for range passes {
		again := false
		for _, key := range order {
			again = s.schedule(key) || again
		}
		if !again {
			break
		}
		changed = true
	}
	return changed
}

// rebalance applies the WorkloadRebalancers of this step, as controller/rebalance does, and returns the bindings that
// they trigger. One without a creation time is treated as the newest object.
func (s *state) rebalance() (triggered []types.NamespacedName) {
	slices.SortFunc(s.rebalancing, func(a, b *appsv1alpha1.WorkloadRebalancer) int {
		return strings.Compare(a.Name, b.Name)
	})
	var last time.Time
	for _, b := range s.bindings {
		for _, at := range []*metav1.Time{b.BindingStatus().LastScheduledTime, b.BindingSpec().RescheduleTriggeredAt,
			ptr(b.GetCreationTimestamp())} {
			if at != nil && at.After(last) {
				last = at.Time
			}
		}
	}
	for _, r := range s.rebalancing {
		if r.CreationTimestamp.IsZero() {
			r = r.DeepCopy()
			r.CreationTimestamp = metav1.NewTime(last.Add(time.Second))
		}
		for _, w := range rebalance.Pending(r) {
			b, _, _ := s.bindingFor(ref{match.GroupKind(w.APIVersion, w.Kind), w.Namespace, w.Name})
			want, found := rebalance.Trigger(r, w, b)
			if !found {
				s.warn(ref{match.GroupKind(r.APIVersion, "WorkloadRebalancer"), "", r.Name},
					"WorkloadRebalancer %s: %s is not placed by a policy, so it cannot be rescheduled", r.Name,
					ref{match.GroupKind(w.APIVersion, w.Kind), w.Namespace, w.Name})
				continue
			}
			key := types.NamespacedName{Namespace: want.GetNamespace(), Name: want.GetName()}
			s.bindings[key] = want
			triggered = append(triggered, key)
		}
	}
	return triggered
}

func placedInAny(b workv1alpha2.Binding, clusters []string) bool {
	return slices.ContainsFunc(clusters, func(cluster string) bool {
		return workv1alpha2.HasTarget(b.BindingSpec().Clusters, cluster)
	})
}

// drain returns a WorkloadRebalancer of all that is placed in one of the clusters; nil if nothing is.
func (s *state) drain(clusters []string) *appsv1alpha1.WorkloadRebalancer {
	r := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: "drain"}}
	for _, b := range s.bindings {
		if !placedInAny(b, clusters) || b.BindingSpec().Placement == nil {
			continue
		}
		of := b.BindingSpec().Resource
		r.Spec.Workloads = append(r.Spec.Workloads, appsv1alpha1.ObjectReference{APIVersion: of.APIVersion, Kind: of.Kind,
			Namespace: of.Namespace, Name: of.Name})
	}
	if len(r.Spec.Workloads) == 0 {
		return nil
	}
	slices.SortFunc(r.Spec.Workloads, func(a, b appsv1alpha1.ObjectReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.APIVersion, b.APIVersion))
	})
	return r
}

func ptr[T any](v T) *T { return &v }

// room returns the capacity for a binding, as on the hub: that of a cluster that does not respond is unknown, and one
// in Pull mode has what it reports.
func (s *state) room(b workv1alpha2.Binding) schedule.Capacity {
	of, reported := s.rooms.capacityFor(b), s.snapshot.Room(b)
	return func(cluster string) (int32, bool) {
		switch {
		case membership.KnownNotReady(s.snapshot.Cluster(cluster)):
			return 0, false
		case s.rooms.pulls[cluster] && !s.past:
			return reported(cluster)
		}
		return of(cluster)
	}
}

// follow has members do what was decided.
func (s *state) follow() {
	for _, m := range s.rooms.members {
		m.Follow()
	}
	if len(s.rooms.pulls) > 0 && !s.past {
		s.snapshot = s.snapshot.Next(s.seenClusters(s.rooms))
	}
}

// propagate decides the claim and the binding of one template, as controller/propagate does.
func (s *state) propagate(ctx context.Context, r ref) error {
	exposed, err := s.expose(r)
	if err != nil {
		return err
	}
	template := s.templates[r]
	existing, _, key := s.bindingFor(r)
	d := propagate.Decide(propagate.Observed{
		Template: template, Binding: existing, Policies: s.selecting(match.TemplateOf(template)), Exposed: exposed,
		Creating: s.touched[r] && s.invented[r], Unchanged: !s.touched[r],
		OverrideExists: func(key types.NamespacedName) bool { return s.overrides[key] != nil },
	})
	for _, changed := range []*unstructured.Unstructured{d.Claimed, d.Released} {
		if changed != nil {
			template, s.templates[r] = changed, changed
		}
	}
	switch d.Action {
	case propagate.DeleteBinding:
		gone := existing.DeepCopyObject().(workv1alpha2.Binding)
		gone.BindingSpec().Clusters = nil
		s.put(key, gone)
		delete(s.bindings, key)
		return s.propagate(ctx, r)
	case propagate.UpdateBinding:
		s.put(key, d.Binding)
	case propagate.MakeBinding:
		m, err := s.meaningOf(ctx, r, template, d.Policy, existing)
		if err != nil {
			return err
		}
		b, err := propagate.Binding(template, d.Policy, m, existing)
		if err != nil {
			return err
		}
		if existing != nil {
			if err := s.pin(r, existing, b); err != nil {
				return err
			}
		}
		if err := s.bind(r, b); err != nil {
			return err
		}
	}
	switch {
	case len(d.MissingOverrides) > 0:
		return fmt.Errorf("%s waits for the override policies that it depends on: %s",
			propagate.ClaimOf(d.Pending), strings.Join(d.MissingOverrides, ", "))
	case d.Pending != nil && existing == nil:
		return fmt.Errorf("its policy %s is Lazy and has no effect until the template is changed",
			propagate.ClaimOf(d.Pending))
	}
	return nil
}

// bindingFor returns the binding of a template, nil if there is none, with the name that a new one is to have, and the
// key capacityFor either.
func (s *state) bindingFor(r ref) (existing workv1alpha2.Binding, free string, key types.NamespacedName) {
	existing, free, _ = propagate.Find(r.GroupKind, r.Namespace, r.Name,
		func(key types.NamespacedName) (workv1alpha2.Binding, error) {
			return s.bindings[key], nil
		})
	key = types.NamespacedName{Namespace: r.Namespace, Name: free}
	if existing != nil {
		key.Name = existing.GetName()
	}
	return existing, free, key
}

// bind stores the binding of a template, a new one under a free name.
func (s *state) bind(r ref, b workv1alpha2.Binding) error {
	existing, free, key := s.bindingFor(r)
	switch {
	case existing == nil && free == "":
		return propagate.TakenError(r.GroupKind, r.Name)
	case existing == nil:
		b.SetName(free)
		if !s.past {
			b.SetCreationTimestamp(metav1.NewTime(s.now.Add(time.Duration(1+slices.Index(s.added, r)) * time.Second)))
		}
	}
	if err := s.overQuota(key, b); err != nil {
		return err // the binding stays as it was
	}
	s.put(key, b)
	return nil
}

// pin records which clusters lose replicas. The pods' clusters are unknown.
func (s *state) pin(r ref, existing, want workv1alpha2.Binding) error {
	template, spec := s.templates[r], want.BindingSpec()
	fewer := spec.Replicas < existing.BindingSpec().Replicas && spec.Placement.DividesReplicas()
	if fewer && (fleet.LeavesByOrdinal(template) || fleet.PodsToDelete(template) != nil) {
		s.warn(r, "%s: the template determines the pods that leave, "+
			"and a simulation does not know their clusters: the placement can differ", r)
	}
	_, err := propagate.Pin(template, existing, want, nil, func(string) ([]string, bool) { return nil, true })
	return err
}

// selecting returns the policies that may select t, each once.
func (s *state) selecting(t match.Template) []policyv1alpha1.Propagation {
	gk := t.GroupKind()
	all := slices.Concat(s.policiesOf[selected{gk, t.Name}], s.policiesOf[selected{gk, ""}])
	return slices.DeleteFunc(all, func(p policyv1alpha1.Propagation) bool {
		return p.GetNamespace() != "" && t.Namespace != "" && p.GetNamespace() != t.Namespace
	})
}

// meaningOf returns the meaning of a template under its policy. What only a webhook knows is read from the binding.
func (s *state) meaningOf(ctx context.Context, r ref, template *unstructured.Unstructured, p policyv1alpha1.Propagation,
	existing workv1alpha2.Binding) (propagate.Meaning, error) {
	m := propagate.Meaning{ID: "simulated " + r.String()}
	if class := p.PropagationSpec().SchedulePriority; class != nil {
		value, ok := s.priorities[class.PriorityClassName]
		if !ok {
			return m, fmt.Errorf("schedulePriority of %s: there is no PriorityClass %q: create it, or put it into the files",
				propagate.ClaimOf(p), class.PriorityClassName)
		}
		m.SchedulePriority = &value
	}
	if hook := s.hooked(r.GroupKind); hook != "" {
		if existing != nil && !s.touched[r] {
			spec := existing.BindingSpec()
			m.Replicas, m.Requirements, m.Components, m.SidecarsUnread = spec.Replicas, spec.ReplicaRequirements,
				spec.Components, true
			return m, nil
		}
		s.warn(r, "%s: %s may compute what it needs, and webhooks are not called: the built-in interpretation of the kind is used", r, hook)
	}
	if err := m.Interpret(ctx, s.meaning, template); err != nil || m.Replicas == 0 && m.Requirements == nil {
		return m, err
	}
	return m, s.count(r, template, &m)
}

// count adds what SidecarSets inject into the pods of a workload. SidecarSets have no namespace, so they come first in
// the order of templates and are claimed already.
func (s *state) count(r ref, workload *unstructured.Unstructured, m *propagate.Meaning) error {
	if r.Namespace == "" {
		return nil
	}
	if s.sidecars == nil {
		s.sidecars = []dependency.Sidecars{}
		for other, obj := range s.templates {
			if other.GroupKind != dependency.SidecarSetKind {
				continue
			}
			read, counts, err := dependency.SidecarsOf(obj)
			if err != nil {
				s.problems[other] = err
			} else if counts {
				s.sidecars = append(s.sidecars, read)
			}
		}
		slices.SortFunc(s.sidecars, func(a, b dependency.Sidecars) int { return strings.Compare(a.Name, b.Name) })
	}
	var of map[string]string
	if namespace := s.templates[ref{schema.GroupKind{Kind: "Namespace"}, "", r.Namespace}]; namespace != nil {
		of = namespace.GetLabels()
	} else {
		for _, set := range s.sidecars {
			if set.ByLabel() && set.Selects(workload) {
				m.SidecarsUnread = true // the values in the binding are better than a guess
				if !s.unlabelled[r.Namespace] {
					s.unlabelled[r.Namespace] = true
					s.warn(r, "SidecarSet %s selects namespaces by label, and Namespace %s is not in the fleet: put it into the files if pods there are injected into", set.Name, r.Namespace)
				}
			}
		}
	}
	return dependency.Count(m, workload, dependency.Injecting(s.sidecars, workload, of))
}

// hooked returns the webhook configuration that concerns a kind, the first by name; empty for none.
func (f *Fleet) hooked(gk schema.GroupKind) string {
	for _, name := range sortedKeys(f.webhooks) {
		if webhook.Concerns(f.webhooks[name], gk) {
			return "ResourceInterpreterWebhookConfiguration " + name
		}
	}
	return ""
}

// schedule places one binding if it is due, as controller/schedule does. It reports whether that changed where it is.
func (s *state) schedule(key types.NamespacedName) bool {
	was := s.bindings[key]
	if !schedule.PlacedBy(was, s.scheduler.Scheduler()) {
		return false
	}
	fleet := s.seenBy(was)
	reason, due := schedule.Due(was, fleet)
	if !due {
		delete(s.failures, key)
		return false
	}
	result, failure := schedule.Schedule(was, fleet, s.room(was))
	s.checkTies(key, was, fleet, result)
	is := was.DeepCopyObject().(workv1alpha2.Binding)
	is.BindingStatus().SchedulerObservedAffinityName = result.AffinityName
	result.Apply(is, failure)
	if refused := s.overQuota(key, is); refused != nil {
		is, failure = was.DeepCopyObject().(workv1alpha2.Binding), &schedule.QuotaError{Err: refused}
	}
	spec, status := is.BindingSpec(), is.BindingStatus()
	if failure == nil {
		if asked := spec.RescheduleTriggeredAt; asked != nil {
			status.LastScheduledTime = asked // the request is done
		}
	}
	failure = dispatch.PlacementFailure(is, s.templates[templateOf(is)], failure)
	meta.SetStatusCondition(&status.Conditions, schedule.Condition(failure))
	if schedule.RunEnded(failure) {
		failure = nil
	}
	_, known := s.reasons[key]
	if !known && (reason != schedule.NotYetSuccessful || failure == nil) {
		s.reasons[key] = reason
	}
	changed := !equality.Semantic.DeepEqual(was.BindingSpec().Clusters, spec.Clusters)
	s.put(key, is)
	if before := s.failures[key]; failure == nil {
		delete(s.failures, key)
		changed = changed || before != nil
	} else {
		s.failures[key] = failure
	}
	return changed
}

// overQuota returns why the quotas of a namespace refuse a new state of a binding; nil if they do not.
func (s *state) overQuota(key types.NamespacedName, is workv1alpha2.Binding) error {
	var quotas []policyv1alpha1.FederatedResourceQuota
	for name, q := range s.federatedQuotas {
		if name.Namespace == key.Namespace {
			quotas = append(quotas, q)
		}
	}
	if len(quotas) == 0 || s.scheduler.QuotasOff {
		return nil
	}
	slices.SortFunc(quotas, func(a, b policyv1alpha1.FederatedResourceQuota) int {
		return strings.Compare(a.Name, b.Name)
	})
	others := map[types.NamespacedName]*workv1alpha2.ResourceBinding{}
	for name, b := range s.bindings {
		if b, ok := b.(*workv1alpha2.ResourceBinding); ok && name.Namespace == key.Namespace && name != key {
			others[name] = b
		}
	}
	var was *workv1alpha2.ResourceBindingSpec
	if b := s.bindings[key]; b != nil {
		was = b.BindingSpec()
	}
	return quota.Check(quotas, propagate.Sum(others), was, is.BindingSpec())
}

// checkTies notes that the UID of a template that does not exist yet decides between equal clusters.
func (s *state) checkTies(key types.NamespacedName, b workv1alpha2.Binding, fleet schedule.Snapshot,
	result schedule.Result) {
	of := b.BindingSpec().Resource
	if s.past || !s.invented[templateOf(b)] || !strings.HasPrefix(string(of.UID), simulatedUID) {
		return
	}
	other := b.DeepCopyObject().(workv1alpha2.Binding)
	other.BindingSpec().Resource.UID = schedule.OtherTies(of.UID)
	if r, _ := schedule.Schedule(other, fleet, s.room(other)); !sameTargets(r.Clusters, result.Clusters) {
		s.undetermined[key] = "some clusters are equally good, and its UID decides between them"
	}
}

// seenBy returns the fleet as a binding sees it: among the others of its affinity groups.
func (s *state) seenBy(b workv1alpha2.Binding) schedule.Snapshot {
	if !schedule.Grouped(b) {
		return s.snapshot
	}
	others := make([]workv1alpha2.Binding, len(s.grouped))
	for i, key := range s.grouped {
		others[i] = s.bindings[key]
	}
	return s.snapshot.Among(schedule.PeersOf(b, others))
}

// put stores b as the binding with that key, and takes the room that it needs.
func (s *state) put(key types.NamespacedName, b workv1alpha2.Binding) {
	s.rooms.move(s.bindings[key], b, s.touched[templateOf(b)])
	if s.bindings[key] = b; s.past {
		s.follow()
	}
}

// revise returns a template with another number of replicas.
func revise(ctx context.Context, meaning interpret.Interpreter, f *Fleet, r ref,
	s Scale) (*unstructured.Unstructured, error) {
	template := f.templates[r]
	before, _, workload, err := meaning.Replicas(ctx, template)
	if err != nil {
		return template, fmt.Errorf("scale %s: %w", s, err)
	}
	if !workload {
		why := "its kind has no number of replicas"
		if hook := f.hooked(r.GroupKind); hook != "" {
			why += " that Argosy knows of; " + hook + " may, and is not asked"
		}
		return template, fmt.Errorf("scale %s: %s cannot be scaled: %s", s, r, why)
	}
	out, err := meaning.Revise(ctx, template, s.Replicas)
	if err != nil {
		return template, fmt.Errorf("scale %s: %w", s, err)
	}
	if out == template {
		out = template.DeepCopy()
	}
	if after, _, _, err := meaning.Replicas(ctx, out); err != nil || after != s.Replicas {
		return template, errors.Join(fmt.Errorf("scale %s: %s cannot be scaled: it has %d replicas whatever it is given", s,
			r, before), err)
	}
	return out, nil
}
