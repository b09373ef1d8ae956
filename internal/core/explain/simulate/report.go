package simulate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Report is the result of a simulation. It is sorted: equal fleets and changes give equal reports.
type Report struct {
	// Change describes the simulated change.
	Change  []string `json:"change"`
	Summary Summary  `json:"summary"`
	// Workloads are all templates that a policy has claimed, or should, sorted by namespace, kind and name.
	Workloads []Workload `json:"workloads"`
	// Clusters are the clusters before and after, sorted by name.
	Clusters []Cluster `json:"clusters"`
	Warnings []string  `json:"warnings,omitempty"`
	// Own are the warnings about the objects of the change.
	Own []string `json:"-"`
}

// Narrow keeps what the report says about the objects of the change: the workloads that it changes or cannot place, and
// the warnings about them.
func (r Report) Narrow() Report {
	all := r.Workloads
	r.Workloads, r.Clusters, r.Warnings = []Workload{}, nil, r.Own
	r.Summary.Unplaced, r.Summary.UnplacedReplicas = 0, 0
	for _, w := range all {
		if !w.Changed() && !(w.Own && w.lacks()) {
			continue
		}
		r.Workloads = append(r.Workloads, w)
		if r.Summary.UnplacedReplicas += w.Unplaced; w.lacks() {
			r.Summary.Unplaced++
		}
	}
	return r
}

type Summary struct {
	Workloads int `json:"workloads"`
	// Changed are the workloads that go elsewhere, or in another number, or by another policy, or look different.
	Changed int `json:"changed"`
	// MovedReplicas leave one cluster for another.
	MovedReplicas int64 `json:"movedReplicas"`
	// Unplaced are the workloads that do not fit, or get no binding; UnplacedReplicas what has no place.
	Unplaced         int   `json:"unplaced"`
	UnplacedReplicas int64 `json:"unplacedReplicas"`
	// ShortClusters is the number of clusters that get more than they have capacity for.
	ShortClusters int `json:"shortClusters"`
}

// Fits reports whether everything has a place, and the room that it needs.
func (s Summary) Fits() bool { return s.Unplaced == 0 && s.ShortClusters == 0 }

// Workload is one template before and after.
type Workload struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`

	Before Placed `json:"before"`
	After  Placed `json:"after"`
	// Reason is why it was rescheduled; empty if it was not.
	Reason string `json:"reason,omitempty"`
	// Moved replicas change their cluster; Added and Removed ones change the number of replicas.
	Moved   int64 `json:"moved,omitempty"`
	Added   int64 `json:"added,omitempty"`
	Removed int64 `json:"removed,omitempty"`
	// Unplaced replicas have no cluster. Problem is the reason, as in the condition Scheduled, or why the binding cannot
	// be created. WouldFit are changes that would help, each on its own.
	Unplaced int64    `json:"unplaced,omitempty"`
	Problem  string   `json:"problem,omitempty"`
	WouldFit []string `json:"wouldFit,omitempty"`
	// Stays are the reasons why the workload stays in clusters that it should leave, as "stays in m1: …".
	Stays []string `json:"stays,omitempty"`
	// Undetermined is why the workload may get other clusters on the hub.
	Undetermined string `json:"undetermined,omitempty"`
	// Help is the scheduler's own advice if there is no other.
	Help string `json:"help,omitempty"`
	// Overridden are the manifests that the changed template or overrides make different, and those whose overrides fail.
	Overridden []Overridden `json:"overridden,omitempty"`
	// Own is true if the change contains the template, its policy or an override policy that selects it.
	Own bool `json:"-"`
}

// lacks reports whether the workload does not fit, gets no binding, or cannot be sent to a cluster.
func (w Workload) lacks() bool {
	return w.Problem != "" || slices.ContainsFunc(w.Overridden, func(o Overridden) bool { return o.Problem != "" })
}

// Placed is the placement of a workload, and its policy: "PropagationPolicy shop/web".
type Placed struct {
	Policy   string                       `json:"policy,omitempty"`
	Replicas int32                        `json:"replicas"`
	Clusters []workv1alpha2.TargetCluster `json:"clusters"`
}

// Changed reports whether the workload is any different after.
func (w Workload) Changed() bool {
	return w.Before.Policy != w.After.Policy || w.Before.Replicas != w.After.Replicas ||
		!sameTargets(w.Before.Clusters, w.After.Clusters) || len(w.rollsOut()) > 0
}

func sameTargets(a, b []workv1alpha2.TargetCluster) bool { return equality.Semantic.DeepEqual(a, b) }

// Overridden is a manifest in one cluster: its changes, as "spec.paused: false → true", or why it cannot be sent.
type Overridden struct {
	Cluster string   `json:"cluster"`
	Changes []string `json:"changes,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// Cluster is one cluster before and after.
type Cluster struct {
	Name string `json:"name"`
	// State is the simulated state of the cluster: "down", "drained", "unhealthy", "removed" or "new"; else empty.
	State string `json:"state,omitempty"`
	// Replicas of the workloads of the report.
	Before int64 `json:"replicasBefore"`
	After  int64 `json:"replicasAfter"`
	// Headroom is the free capacity per resource; nil if the cluster never reported its capacity.
	Headroom map[corev1.ResourceName]Headroom `json:"headroom,omitempty"`
	// Short are the resources that are exceeded, and by how much, as "cpu 4".
	Short []string `json:"short,omitempty"`
}

// Headroom is the capacity for one resource. The free amount is negative if more was placed than fits, and absent if
// the cluster does not exist.
type Headroom struct {
	Allocatable resource.Quantity  `json:"allocatable"`
	Before      *resource.Quantity `json:"freeBefore,omitempty"`
	After       *resource.Quantity `json:"freeAfter,omitempty"`
}

func report(ctx context.Context, c Change, before, after *state) Report {
	r := Report{Change: describeChange(c), Workloads: []Workload{}, Clusters: []Cluster{}, Warnings: after.Warnings()}
	ours, used := c.refs(), map[string]bool{}
	warnOwn := func(text string) { r.Warnings, r.Own = append(r.Warnings, text), append(r.Own, text) }
	for _, n := range after.warnings {
		if ours[n.about] {
			r.Own = append(r.Own, n.text)
		}
	}
	if off := after.scheduler.Plugins.Off(); len(off) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"the scheduler runs without the plugins %v, and does not ask what they would", off))
	}
	for _, name := range sortedKeys(after.paused) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("failover of cluster %s is paused: %s", name, after.paused[name]))
	}
	changedOverrides := changedOverrides(before, after)

	// 1. The workloads: each binding that is placed, and each template that should have one.
	seen := map[ref]bool{}
	var refs []ref
	add := func(k ref) {
		if !seen[k] {
			seen[k] = true
			refs = append(refs, k)
		}
	}
	keys := map[ref]types.NamespacedName{}
	for _, s := range []*state{before, after} {
		for key, b := range s.bindings {
			if b.BindingSpec().Placement == nil {
				continue // it follows others
			}
			k := templateOf(b)
			keys[k] = key
			add(k)
		}
		for k := range s.problems {
			add(k)
		}
	}
	slices.SortFunc(refs, compareRefs)
	replicas := map[string]*[2]int64{}
	withoutFailover := 0
	for _, k := range refs {
		w := workload(k, keys[k], before, after)
		var edited bool
		w.Overridden, edited = after.overridden(ctx, k, keys[k], before, changedOverrides, warnOwn)
		w.Own = ours[k] || edited || c.contains(w.Before.Policy) || c.contains(w.After.Policy)
		for i, p := range []Placed{w.Before, w.After} {
			for _, t := range p.Clusters {
				if replicas[t.Name] == nil {
					replicas[t.Name] = &[2]int64{}
				}
				replicas[t.Name][i] += int64(t.Replicas)
				used[t.Name] = used[t.Name] || w.Own
			}
		}
		r.Summary.Workloads++
		r.Summary.MovedReplicas += w.Moved
		r.Summary.UnplacedReplicas += w.Unplaced
		if w.Changed() {
			r.Summary.Changed++
		}
		if w.lacks() {
			r.Summary.Unplaced++
		}
		if after.hasNoFailover(keys[k], c.Down) {
			withoutFailover++
		}
		r.Workloads = append(r.Workloads, w)
	}
	if withoutFailover > 0 {
		hint := "the hub runs with --cluster-failover=Policy; set spec.failover.cluster in the policies to move them"
		if after.failover.Off {
			hint = "the hub runs with --cluster-failover=Off"
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s would not be moved out of the clusters that are down: %s",
			text.Count(withoutFailover, "workload"), hint))
	}
	for k := range after.touched {
		if t := after.templates[k]; t != nil && !seen[k] && after.staysInHub(ctx, k, t) {
			warnOwn(k.String() + ": no policy selects it: it would stay in the hub")
		}
	}

	// 2. The clusters.
	names := maps.Clone(before.clusters)
	maps.Copy(names, after.clusters)
	for _, name := range sortedKeys(names) {
		cluster := Cluster{Name: name}
		if n := replicas[name]; n != nil {
			cluster.Before, cluster.After = n[0], n[1]
		}
		switch {
		case slices.Contains(c.Down, name):
			cluster.State = "down"
		case slices.Contains(c.Drained, name):
			cluster.State = "drained"
		case slices.Contains(c.Unhealthy, name):
			cluster.State = "unhealthy"
		case after.clusters[name] == nil:
			cluster.State = "removed"
		case before.clusters[name] == nil:
			cluster.State = "new"
		}
		if outage := membership.OutageOf(before.clusters[name]); outage != nil && after.clusters[name] != nil {
			text := fmt.Sprintf("%s %s: its free capacity is the last that it reported", name, outage)
			if r.Warnings = append(r.Warnings, text); used[name] {
				r.Own = append(r.Own, text)
			}
		}
		cluster.headroom(name, before, after)
		if len(cluster.Short) > 0 {
			r.Summary.ShortClusters++
		}
		r.Clusters = append(r.Clusters, cluster)
	}
	for _, texts := range []*[]string{&r.Warnings, &r.Own} {
		slices.Sort(*texts)
		*texts = slices.Compact(*texts)
	}
	return r
}

func (c Change) refs() map[ref]bool {
	all := map[ref]bool{}
	for _, o := range c.Objects {
		r := refOf(o.Unstructured)
		all[r], r.Namespace = true, cmp.Or(r.Namespace, c.Namespace)
		all[r] = true
	}
	return all
}

// contains reports whether the change contains the policy with a text such as "PropagationPolicy shop/web".
func (c Change) contains(policy string) bool {
	return slices.ContainsFunc(c.Objects, func(o Object) bool {
		return policy != "" && policy == text.Object(o.GetKind(), o.GetNamespace(), o.GetName())
	})
}

func describeChange(c Change) []string {
	out := []string{}
	for _, f := range []struct {
		clusters []string
		what     string
	}{{c.Down, "is down"}, {c.Drained, "is drained"}, {c.Removed, "is removed"},
		{c.Unhealthy, "has unhealthy applications"}} {
		for _, name := range slices.Sorted(slices.Values(f.clusters)) {
			out = append(out, name+" "+f.what)
		}
	}
	for _, t := range c.Taints {
		out = append(out, fmt.Sprintf("%s is tainted %s", t.Cluster, t.ToString()))
	}
	for _, s := range c.Scale {
		out = append(out, "scale "+s.String())
	}
	applied := map[string]int{}
	for _, o := range c.Objects {
		applied[o.GetKind()]++
	}
	for _, kind := range sortedKeys(applied) {
		out = append(out, fmt.Sprintf("apply %d %s", applied[kind], kind))
	}
	return slices.Compact(out)
}

func workload(k ref, key types.NamespacedName, before, after *state) Workload {
	w := Workload{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
	if t := after.templates[k]; t != nil {
		w.APIVersion = t.GetAPIVersion()
	} else if b := after.bindings[key]; b != nil {
		w.APIVersion = b.BindingSpec().Resource.APIVersion
	}
	w.Before, w.After = before.placed(k, key), after.placed(k, key)

	was, more, less := map[string]int64{}, int64(0), int64(0)
	for _, t := range w.Before.Clusters {
		was[t.Name] = int64(t.Replicas)
	}
	for _, t := range w.After.Clusters {
		if grown := int64(t.Replicas) - was[t.Name]; grown > 0 {
			more += grown
		} else {
			less -= grown
		}
		delete(was, t.Name)
	}
	for _, n := range was {
		less += n
	}
	w.Moved = min(more, less)
	w.Added, w.Removed = more-w.Moved, less-w.Moved

	b, failure := after.bindings[key], after.failures[key]
	switch {
	case after.problems[k] != nil:
		w.Problem = after.problems[k].Error()
	case failure != nil:
		w.Problem = failure.Error()
		if w.WouldFit = after.roomLacking(b, failure); len(w.WouldFit) == 0 {
			w.Help = schedule.Help(failure)
		}
	}
	if failure != nil {
		w.Unplaced = unplaced(b.BindingSpec())
	}
	var noReplacement string
	if w.Stays, noReplacement = after.staying(key); w.Problem == "" {
		w.Problem = noReplacement
	}
	if !sameTargets(w.Before.Clusters, w.After.Clusters) || failure != nil {
		w.Reason, w.Undetermined = string(after.reasons[key]), after.undetermined[key]
	}
	return w
}

// unplaced returns the replicas that have no place.
func unplaced(spec *workv1alpha2.ResourceBindingSpec) int64 {
	if !spec.Placement.DividesReplicas() {
		if len(spec.Clusters) > 0 {
			return 0
		}
		return int64(spec.Replicas)
	}
	n := int64(spec.Replicas)
	for _, t := range spec.Clusters {
		n -= int64(t.Replicas)
	}
	return max(0, n)
}

func (s *state) placed(k ref, key types.NamespacedName) Placed {
	p := Placed{Clusters: []workv1alpha2.TargetCluster{}} // programs need a list, even if it is empty
	var owner metav1.Object
	b := s.bindings[key]
	if b != nil {
		p.Replicas, p.Clusters, owner = b.BindingSpec().Replicas, append(p.Clusters, b.BindingSpec().Clusters...), b
	} else if t := s.templates[k]; t != nil {
		owner = t
	}
	// A binding that came from elsewhere may list them in another order.
	slices.SortFunc(p.Clusters, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
	if owner == nil {
		return p
	}
	if claim, ok := propagate.Claimed(owner); ok {
		p.Policy = claim.String()
	}
	return p
}

func (c *Cluster) headroom(name string, before, after *state) {
	was, had := before.balances[name]
	is, has := after.balances[name]
	allocatable := is.allocatable
	if after.clusters[name] == nil {
		allocatable = was.allocatable
	}
	if !had && !has || len(allocatable) == 0 {
		return
	}
	c.Headroom = map[corev1.ResourceName]Headroom{}
	for name, n := range allocatable {
		h := Headroom{Allocatable: capacity.Quantity(name, n)}
		was, counted := was.free[name]
		if counted {
			h.Before = new(capacity.Quantity(name, was))
		}
		if is, still := is.free[name]; still {
			h.After = new(capacity.Quantity(name, is))
			if is < 0 && (!counted || is < was) {
				c.Short = append(c.Short, amount(name, capacity.Quantity(name, -is)))
			}
		}
		c.Headroom[name] = h
	}
	if more := is.homeless - was.homeless; more > 0 {
		c.Short = append(c.Short, fmt.Sprintf("nodes with room for %d replicas", more))
	}
	slices.Sort(c.Short)
}

// changedOverrides returns the override policies, before or after, that are not the same in both.
func changedOverrides(before, after *state) (out []policyv1alpha1.Override) {
	for key, o := range after.overrides {
		if was := before.overrides[key]; was != o {
			out = append(out, o)
			if was != nil {
				out = append(out, was)
			}
		}
	}
	return out
}

// shown is the number of changes of one manifest that are printed.
const shown = 8

// overridden returns the manifests of a template that its change, or changed overrides, make different in the clusters
// that it is sent to, and those that cannot be sent. edited reports whether one of the changed overrides selects it.
func (s *state) overridden(ctx context.Context, k ref, key types.NamespacedName, before *state,
	changed []policyv1alpha1.Override, warn func(text string)) (out []Overridden, edited bool) {
	template, b, had := s.templates[k], s.bindings[key], before.bindings[key]
	if template == nil || b == nil {
		return nil, false
	}
	old := template
	// What no policy claims any more stays as it is in the members.
	if _, claimed := propagate.Claimed(b); s.touched[k] && before.templates[k] != nil && (claimed ||
		b.GetLabels()[workv1alpha2.BindingManagedByLabel] != "") {
		old = before.templates[k]
	}
	edited = len(override.Selecting(template, changed)) > 0
	is := slices.Collect(maps.Values(s.overrides))
	rewritten := edited || old != template
	if !rewritten && len(override.Selecting(template, is)) == 0 {
		return nil, false
	}
	was, replicas := slices.Collect(maps.Values(before.overrides)), b.BindingSpec().Replicas
	old, template = s.bare(ctx, old, replicas), s.bare(ctx, template, replicas)
	template.Object = laid(old.Object, template.Object).(map[string]any)
	for _, target := range b.BindingSpec().Clusters {
		cluster := s.snapshot.Cluster(target.Name)
		if cluster == nil || dispatch.Suspended(b, target.Name) {
			continue
		}
		o := Overridden{Cluster: target.Name}
		manifest, applied, err := override.Apply(template, cluster, is)
		if err != nil {
			o.Problem = err.Error()
			out = append(out, o)
			continue
		}
		there := had != nil && workv1alpha2.HasTarget(had.BindingSpec().Clusters, target.Name)
		if !rewritten || !edited && !there {
			continue
		}
		for _, u := range applied.Untouched {
			warn(fmt.Sprintf("%s in %s: %s", k, target.Name, u))
		}
		sent, _, _ := override.Apply(old, cluster, was)
		if sent == nil {
			sent = old
		}
		o.Changes = Differences(sent.Object, manifest.Object, k.Kind != "Secret")
		if more := len(o.Changes) - shown; more > 0 {
			o.Changes = append(o.Changes[:shown], fmt.Sprintf("and %d more", more))
		}
		if len(o.Changes) > 0 {
			out = append(out, o)
		}
	}
	return out, edited
}

// bare returns a template without what the hub adds, with that many replicas.
func (s *state) bare(ctx context.Context, template *unstructured.Unstructured,
	replicas int32) *unstructured.Unstructured {
	out := template.DeepCopy()
	interpret.Prune(out)
	propagate.Unclaim(out)
	for _, made := range ServerAnnotations() {
		fields.PutAnnotation(out, made, "")
	}
	if revised, err := s.meaning.Revise(ctx, out, replicas); err == nil {
		return revised
	}
	return out
}

// laid returns a recorded value with an applied one over it. What is not applied stays, since it can be a default.
func laid(recorded, applied any) any {
	switch a := applied.(type) {
	case map[string]any:
		if r, ok := recorded.(map[string]any); ok {
			all := maps.Clone(r)
			for k, v := range a {
				all[k] = laid(r[k], v)
			}
			return all
		}
	case []any:
		if r, ok := recorded.([]any); ok && len(r) == len(a) {
			all := slices.Clone(a)
			for i := range a {
				all[i] = laid(r[i], a[i])
			}
			return all
		}
	}
	return applied
}

// staysInHub reports whether a template that no policy selects reaches no member, although it could.
func (s *state) staysInHub(ctx context.Context, k ref, template *unstructured.Unstructured) bool {
	switch {
	case k.Group == releasev1alpha1.GroupVersion.Group, k.GroupKind == multiClusterService:
		return false // they are meant for the hub
	case k.GroupKind == schema.GroupKind{Kind: "Namespace"} && dispatch.AutoPropagated(template):
		return false
	}
	if follows, _, _ := s.bindingFor(k); follows != nil {
		return false
	}
	for _, b := range s.bindings {
		if !dependency.Distributes(b) {
			continue
		}
		leader := s.templates[templateOf(b)]
		if leader == nil {
			continue
		}
		needs, _ := s.meaning.Dependencies(ctx, leader)
		if slices.ContainsFunc(needs, func(n configv1alpha1.DependentObjectReference) bool {
			selects, _ := dependency.Selects(n, template)
			return selects && dependency.MayFollow(leader.GetNamespace(), template)
		}) {
			return false
		}
	}
	return true
}

// Differences returns the paths at which a and b differ, sorted, with the values if they may be shown.
func Differences(a, b map[string]any, values bool) (all []string) {
	for _, c := range fields.Changes(a, b) {
		if values {
			c.Path += fmt.Sprintf(": %s → %s", brief(c.From), brief(c.To))
		}
		all = append(all, c.Path)
	}
	return all
}

func brief(v any) string {
	if v == nil {
		return "none"
	}
	return text.Cut(fmt.Sprint(v), 60)
}
