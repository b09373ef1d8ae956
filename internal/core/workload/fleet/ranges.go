package fleet

import (
	"fmt"
	"github.com/argosy-io/argosy/api/wellknown"
	"strings"
)

// ordinalsSince is the first minor release of Kubernetes 1 that uses spec.ordinals.start by default.
const ordinalsSince = 27

// nativeStatefulSet gives Kubernetes' StatefulSets unique ordinals on request: one range from ordinals.start on for
// each cluster, because these StatefulSets cannot skip ordinals. Their partition is an ordinal, so it is not divided.
func (f *fleet) nativeStatefulSet() error {
	if !f.options.uniqueOrdinals || !f.Divided {
		f.result.Record = ""
		return nil
	}
	for _, m := range f.members {
		var major, minor int
		if n, _ := fmt.Sscanf(m.Kubernetes, "v%d.%d", &major, &minor); n == 2 && major == 1 && minor < ordinalsSince {
			return fmt.Errorf("unique ordinals require spec.ordinals.start, which Kubernetes %s in cluster %q does not support; remove the cluster from the placement, use OpenKruise's StatefulSet, or remove the annotation %s",
				m.Kubernetes, m.Cluster, wellknown.UniqueOrdinalsAnnotation)
		}
	}
	return f.assignRanges()
}

// assignRanges decides the range of ordinals of each cluster. An existing range stays. It shrinks at its end; it grows
// at its end, then at its beginning, where no other cluster has or may still run such ordinals. A range that cannot
// grow moves as a whole, unless volumes would be left behind: then a condition reports the replicas that run nowhere.
func (f *fleet) assignRanges() error {
	spec := object(f.Template.Object, "spec")
	first := number(spec, "ordinals", "start")
	had, err := parseRecord(f.Record)
	if err != nil {
		return err
	}
	_, stays := f.volumes()

	// 1. Pods that may run in each cluster, and ordinals that stay with former clusters.
	held, running, err := f.holdings(had, stays)
	if err != nil {
		return err
	}
	gone, leaving, absent := f.ordinalsElsewhere(had, running)
	left := max(0, f.replicas()-int64(len(gone.list())))
	elsewhere := gone.union(leaving)

	// 2. The present ranges.
	assigned := make([]span, len(f.members))
	var taken ordinals
	for i, m := range f.members {
		assigned[i] = span{0, -1}
		if len(held[i].has) == 0 || m.Replicas == 0 {
			continue
		}
		s := held[i].has[0]
		s.last = min(s.last, s.first+m.Replicas-1)
		if (ordinals{s}).common(taken.union(elsewhere)) != nil || s.first < first {
			continue
		}
		assigned[i], taken = s, taken.union(ordinals{s})
		left -= s.len()
	}
	// 3. New ranges.
	var short int64
	for i, m := range f.members {
		blocked := taken.union(elsewhere)
		if first > 0 {
			blocked = blocked.union(ordinals{{0, first - 1}})
		}
		for j := range f.members {
			if j != i {
				blocked = blocked.union(held[j].mayRun)
			}
		}
		s := assigned[i]
		has := s.len()
		want := has + max(0, min(m.Replicas-has, left))
		stood := has > 0
		if stood {
			own := blocked.common(ordinals{s}.rest())
			for s.len() < want && !own.contains(s.last+1) {
				s.last++
			}
			for s.len() < want && s.first > first && !own.contains(s.first-1) {
				s.first--
			}
		}
		if s.len() < want && (!stood || !stays) {
			at := blocked.gap(first)
			for (ordinals{{at, at + want - 1}}).common(blocked) != nil {
				at = blocked.gap(at + 1)
			}
			s = span{at, at + want - 1}
		}
		short += m.Replicas - s.len()
		left -= s.len() - has
		assigned[i] = s
		if s.len() > 0 {
			taken = taken.union(ordinals{s})
		}
	}
	if short > 0 {
		why := "their ranges cannot grow without leaving volumes behind"
		if absent != nil {
			why = fmt.Sprintf("ordinals %s stay with their volumes", strings.Join(absent, ", "))
		}
		f.addCondition(OrdinalsUnassigned, "%d replicas are not running, because %s; use OpenKruise's StatefulSet, which can skip ordinals, or move them with the annotation %s: Always",
			short, why, wellknown.OrdinalMobilityAnnotation)
	}
	// 4. Write the manifests and the record.
	remembered := map[string]ordinals{}
	for i, m := range f.members {
		s := assigned[i]
		var own ordinals
		if m.Replicas = s.len(); m.Replicas > 0 {
			own = ordinals{s}
		}
		remembered[m.Cluster] = own.union(held[i].mayRun)
		if m.Base == nil {
			continue
		}
		f.put(m, m.Replicas, "spec", "replicas")
		if m.Replicas > 0 {
			f.put(m, s.first, "spec", "ordinals", "start")
		}
	}
	f.record(remembered, had, stays)
	return nil
}
