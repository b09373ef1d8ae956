package autoscale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Holding has the replicas of a workload that a cluster has, and its room for more.
type Holding struct {
	Replicas int32
	// Room is the number of replicas that can run there: those that run, and those that fit in addition. It is negative
	// if unknown.
	Room int32
	// Lost is true if the cluster does not respond.
	Lost bool
}

// HoldingOf returns what a cluster has of a workload, and what it can run, from its unschedulable pods of the workload
// and its free room. With such pods, or with a taint that the placement does not tolerate, it has no room for more.
func HoldingOf(b workv1alpha2.Binding, c *clusterv1alpha1.Cluster, replicas int32, unschedulable int,
	room schedule.Capacity) Holding {
	if membership.KnownNotReady(c) {
		return Holding{Replicas: replicas, Room: -1, Lost: true}
	}
	runs := replicas
	free, known := room(c.Name)
	if unschedulable > 0 {
		free, known, runs = 0, true, max(replicas-int32(unschedulable), 0)
		ready, reported := deschedule.ReadyIn(b, c.Name)
		of := b.BindingSpec().Resource
		if reported && kind.Lookup(match.GroupKind(of.APIVersion, of.Kind)).Pods.InTurn {
			runs = ready // A StatefulSet has not created the pods after a pending one.
		}
	}
	if slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule &&
			!capacity.Tolerates(b.BindingSpec().Placement.ClusterTolerations, t)
	}) {
		free, known = 0, true
	}
	if !known {
		return Holding{Replicas: replicas, Room: -1}
	}
	return Holding{Replicas: replicas, Room: clamp(int64(runs) + int64(free))}
}

// Window decides when a changed division is used.
type Window struct {
	// Since is when the clusters began to need another division; zero if they do not. Shares returns the next value.
	Since, Now time.Time
	Settings   Settings
	// Frozen keeps the division while bounds and clusters stay.
	Frozen bool
}

// Shares returns the share of each cluster, and the next Window.Since. With other bounds or clusters, the bounds are
// divided at once in proportion to the replicas. Otherwise the shares of the existing Works stay until the division by
// the current room differs for the whole downscale stabilization window, and by more than the tolerance or because a
// cluster cannot run its part. On error, which is for the user, each cluster gets one replica, the closest to the
// bounds.
func Shares(spec *autoscalingv1alpha1.FederatedHPASpec, in map[string]Holding,
	standing map[string]*workv1alpha1.Work, w Window) (shares map[string]Share, since time.Time, err error) {
	of := Bounds{Min: ptr.Deref(spec.MinReplicas, 1), Max: spec.MaxReplicas}
	clusters := slices.Sorted(maps.Keys(in))
	if int(of.Max) < len(clusters) {
		shares = map[string]Share{}
		for _, name := range clusters {
			shares[name] = Share{Bounds: Bounds{Min: 1, Max: 1}, Of: of, Clusters: clusters}
		}
		return shares, since, fmt.Errorf("maxReplicas is %d, but the workload is in %d clusters, each of which needs at least one: increase maxReplicas, or select fewer clusters in the policy", of.Max, len(clusters))
	}

	present := map[string]Share{}
	stay, same, limited := true, true, false // the clusters stay, the bounds too, and the room of a cluster limits it
	for _, name := range clusters {
		s, ok := Share{}, false
		if standing[name] != nil {
			s, ok = ShareOf(standing[name])
		}
		if ok {
			present[name] = s
		}
		stay, limited = stay && ok && slices.Equal(s.Clusters, clusters), limited || s.Room != nil
		same = same && stay && s.Of == of
	}
	if same && w.Frozen {
		return present, since, nil
	}
	weights := map[string]int32{}
	for _, name := range clusters {
		weights[name] = in[name].Replicas
		if same || stay && limited { // a limited cluster has fewer replicas than it should have
			weights[name] = cmp.Or(present[name].Weights[name], present[name].Max) // older Works have no weights
		}
	}
	next := divide(of, weights, in, present)
	if !same {
		return next, since, nil
	}
	settings := w.Settings.WithDefaults()
	if !deviates(present, next, settings.Tolerance) {
		return present, since, nil
	}
	since = w.Since
	if since.IsZero() {
		since = w.Now
	}
	if w.Now.Sub(since) < settings.DownscaleStabilization {
		return present, since, nil
	}
	return next, time.Time{}, nil
}

// deviates reports whether next limits other clusters than present, or differs by more than the tolerance. Without a
// limited cluster both are the same, except for the rounding of older Works.
func deviates(present, next map[string]Share, tolerance float64) bool {
	beyond := func(is, wanted int32) bool {
		return float64(max(is-wanted, wanted-is)) > tolerance*float64(is)
	}
	limited, differs := false, false
	for name, n := range next {
		p := present[name]
		if (p.Room == nil) != (n.Room == nil) {
			return true
		}
		limited, differs = limited || n.Room != nil, differs || beyond(p.Min, n.Min) || beyond(p.Max, n.Max)
	}
	return limited && differs
}

// divide divides the bounds in proportion to weights. A cluster that has no room for its minimum, or for the replicas
// that it has within its bounds, is limited to its room, until it has room for all that it would get otherwise. A lost
// cluster keeps its present bounds.
func divide(of Bounds, weights map[string]int32, in map[string]Holding, present map[string]Share) map[string]Share {
	clusters := slices.Sorted(maps.Keys(in))
	limits, kept := map[string]int32{}, map[string]Bounds{}
	for name, p := range present {
		switch h, there := in[name]; {
		case there && (h.Lost || h.Room < 0 && p.Room != nil):
			kept[name] = p.Bounds
		case there && p.Room != nil:
			limits[name] = h.Room
		}
	}
	for _, name := range clusters {
		others := maps.Clone(limits)
		delete(others, name)
		if limit, limited := limits[name]; limited && limit >= fleet.SplitBounds(of, weights, others, kept)[name].Max {
			limits = others
		}
	}
	split := fleet.SplitBounds(of, weights, limits, kept)
	for limited := -1; limited < len(limits); split = fleet.SplitBounds(of, weights, limits, kept) {
		limited = len(limits)
		for name, h := range in {
			if _, keeps := kept[name]; !keeps && !h.Lost && h.Room >= 0 &&
				h.Room < max(split[name].Min, min(h.Replicas, split[name].Max)) {
				limits[name] = h.Room
			}
		}
	}
	out := map[string]Share{}
	for name, b := range split {
		s := Share{Bounds: b, Of: of, Clusters: clusters, Weights: weights}
		if room, limited := limits[name]; limited {
			s.Room = &room
		} else if _, keeps := kept[name]; keeps {
			s.Room = present[name].Room
		}
		out[name] = s
	}
	return out
}

// Reasons returns why the shares are not in proportion to the replicas, and when they will be divided again, to follow
// a list of the bounds. deviates is the result of Shares.
func Reasons(shares map[string]Share, deviates time.Time, settings Settings) (reasons string) {
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if room := shares[name].Room; room != nil {
			reasons += fmt.Sprintf("; cluster %s has room for %s, so it gets less and others get more", name,
				text.Count(int(*room), "replica"))
		}
	}
	if !deviates.IsZero() {
		reasons += fmt.Sprintf("; the room of the clusters has changed: the bounds are divided again at %s, unless it changes back",
			deviates.Add(settings.WithDefaults().DownscaleStabilization).UTC().Format(time.RFC3339))
	}
	return reasons
}
