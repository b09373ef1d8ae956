package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// Item is one thing that needs attention.
type Item struct {
	// Key identifies the item while it lasts.
	Key      string       `json:"key"`
	Severity why.Severity `json:"severity"`
	// About is hub, cluster, release or workload.
	About string `json:"about"`
	// Object is set for workloads and releases, Cluster where one is concerned, Part for the hub.
	Object  *Object `json:"object,omitempty"`
	Cluster string  `json:"cluster,omitempty"`
	Part    string  `json:"part,omitempty"`
	What    string  `json:"what"`
	Next    string  `json:"next,omitempty"`
	// Actor is who must act on a release.
	Actor release.Actor `json:"actor,omitempty"`
	// Since is when it began, in seconds since 1970; 0 if unknown.
	Since int64 `json:"since,omitempty"`
	// workload is set while What and Next are missing. place is the index of its place; -1 for it as a whole.
	workload *WorkloadRow
	place    int
}

// Facts are what needs attention may be found in. They are read-only.
type Facts struct {
	Hub       []upkeep.Finding
	Clusters  []*ClusterRow
	Workloads []*WorkloadRow
	// Troubled are the workloads with pods that do not run.
	Troubled []pods.Workload
	// Others are the items of releases, and of ManifestWorks of Open Cluster Management.
	Others []Item
}

// ItemOfManifestWork returns what needs attention about a ManifestWork; false if nothing does.
func ItemOfManifestWork(mw *ocmv1.ManifestWork) (Item, bool) {
	applied := why.ManifestWorkFault(mw)
	if applied == nil {
		return Item{}, false
	}
	o := Object{Group: ocmv1.GroupVersion.Group, Kind: "ManifestWork", Namespace: mw.Namespace, Name: mw.Name}
	return Item{Key: "workload/" + o.String(), Severity: why.Problem, About: "workload", Object: &o,
		Cluster: mw.Namespace, What: "not applied: " + applied.Message, Next: why.Command(o.Kind, o.Namespace, o.Name),
		Since: seconds(applied.LastTransitionTime)}, true
}

// ItemOfTraffic returns the item for a MultiClusterService or MultiClusterIngress whose clusters stay in traffic
// against a Remedy; false if none do.
func ItemOfTraffic(kind, namespace, name string, conditions []metav1.Condition) (Item, bool) {
	kept := meta.FindStatusCondition(conditions, networkingv1alpha1.TrafficKept)
	if kept == nil || kept.Status != metav1.ConditionTrue {
		return Item{}, false
	}
	o := Object{Group: networkingv1alpha1.GroupVersion.Group, Kind: kind, Namespace: namespace, Name: name}
	return Item{Key: "workload/" + o.String(), Severity: why.Attention, About: "workload", Object: &o,
		What: kept.Message, Next: why.Command(kind, namespace, name), Since: seconds(kept.LastTransitionTime)}, true
}

// FailoverPaused returns the finding that failover is paused for some of the clusters; false if it is for none.
func FailoverPaused(clusters []*ClusterRow) (f upkeep.Finding, paused bool) {
	var names []string
	for _, c := range clusters {
		if c.FailoverPaused != "" {
			if names = append(names, c.Name); f.Message == "" {
				f.Message = c.FailoverPaused
			}
		}
	}
	if len(names) == 0 {
		return f, false
	}
	return upkeep.Finding{Name: "failover", Message: fmt.Sprintf("paused for %s: %s", text.Names(names, 3), f.Message),
		Next: "`argosy get failovers` lists the workloads that stay; `argosy why cluster " + names[0] +
			"` shows why the cluster is lost"}, true
}

// ItemOfRelease returns what needs attention about a release; false if it does not wait for a person.
func ItemOfRelease(r *releasev1alpha1.Release) (Item, bool) {
	d := release.DemandOf(r)
	o := Object{Group: releasev1alpha1.GroupVersion.Group, Kind: "Release", Namespace: r.Namespace, Name: r.Name}
	return Item{Key: "release/" + o.String(), Severity: d.Severity, About: "release", Object: &o, What: d.What,
		Next: d.Next, Actor: d.Actor, Since: seconds(d.Since)}, d.Actor != release.NoActor
}

// seconds returns a time in seconds since 1970; 0 if it is unknown.
func seconds(t metav1.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// Attention returns what needs attention: problems first, the hub before clusters before releases before
// workloads, then the oldest. It returns at most limit items, and how many more there are.
func Attention(f Facts, limit int) (first []Item, more int) {
	var items []Item
	hub := f.Hub
	if paused, is := FailoverPaused(f.Clusters); is {
		hub = append(slices.Clone(hub), paused)
	}
	for _, h := range hub {
		items = append(items, Item{Key: "hub/" + h.Name, Severity: why.Problem, About: "hub", Part: h.Name, What: h.Message,
			Next: h.Next})
	}
	for _, c := range f.Clusters {
		// One item, so that a member cannot hide those of others. The row of the cluster has all brakes.
		for _, namespace := range c.Brakes[:min(1, len(c.Brakes))] {
			what, next := execute.Brake(namespace).Explain(c.Name)
			items = append(items, Item{Key: "brake/" + c.Name + "/" + namespace, Severity: why.Attention, About: "cluster",
				Cluster: c.Name, What: what, Next: next})
		}
		item := Item{Key: "cluster/" + c.Name, About: "cluster", Cluster: c.Name, What: c.What, Next: c.Next, Since: c.Since}
		switch {
		case c.State == NotReady:
			item.Severity, item.What = why.Problem, "not ready: "+c.What
		case c.State == WorksKept:
			item.Severity = why.Problem
		case c.State != Ready:
			item.Severity = why.Waiting
		case len(c.Taints) > 0:
			item.Severity, item.Since = why.Attention, 0
			item.What = "not used for new workloads, because it has the taint " + strings.Join(c.Taints, ", ")
			item.Next = "remove the taint to allow new workloads again"
		default:
			continue
		}
		items = append(items, item)
	}

	// The reasons of pods say more than the health of the object that they belong to.
	type place struct {
		object  Object
		cluster string
	}
	explained := map[place]bool{}
	for _, w := range f.Troubled {
		lines := w.Lines()
		if len(lines) == 0 {
			continue
		}
		o := Object{Group: match.GroupKind(w.APIVersion, w.Kind).Group, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		explained[place{o, w.Cluster}] = true
		items = append(items, Item{Key: "pods/" + o.String() + "/" + w.Cluster, Severity: why.Problem, About: "workload",
			Object: &o, Cluster: w.Cluster, What: strings.Join(lines, "; "), Next: why.Command(o.Kind, o.Namespace, o.Name)})
	}
	for _, w := range f.Workloads {
		if !w.Bad {
			continue
		}
		item := Item{Key: "workload/" + w.String(), Severity: why.Problem, About: "workload", Object: &w.Object,
			Since: w.Since, workload: w, place: -1}
		if w.State != Unplaced {
			// A lost cluster is an item of its own.
			item.place = slices.IndexFunc(w.Places, func(p state.Place) bool {
				return p.State == state.Failed || p.State == state.Unhealthy && !explained[place{w.Object, p.Cluster}]
			})
		}
		switch {
		case item.place >= 0:
			item.Cluster, item.Since = w.Places[item.place].Cluster, w.Places[item.place].Since
		case w.State == state.Lost, w.State == state.Unhealthy && len(w.Places) > 0 && w.Places[0].State == w.State:
			continue // the cluster or the pods are items of their own
		}
		items = append(items, item)
	}
	items = append(items, f.Others...)
	// In an outage there are as many items as workloads: ranks are computed once, and only the first items get texts.
	severities := []why.Severity{why.Problem, why.Attention, why.Waiting}
	abouts := []string{"hub", "cluster", "release", "workload"}
	type ranked struct {
		rank int
		*Item
	}
	order := make([]ranked, len(items))
	for i := range items {
		order[i] = ranked{slices.Index(severities, items[i].Severity)*len(abouts) + slices.Index(abouts, items[i].About),
			&items[i]}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		return cmp.Or(a.rank-b.rank, cmp.Compare(a.Since, b.Since), strings.Compare(a.Key, b.Key))
	})
	for _, r := range order[:min(limit, len(order))] {
		if w := r.workload; w != nil {
			r.What, r.Next, r.workload = w.Sentence(r.place), why.Command(w.Kind, w.Namespace, w.Name), nil
		}
		first = append(first, *r.Item)
	}
	return first, len(order) - len(first)
}
