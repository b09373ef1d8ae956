package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ordinalsSince is the minor release of Kubernetes 1 from which on spec.ordinals.start counts unless it is turned off.
const ordinalsSince = 27

// nativeStatefulSet gives Kubernetes' StatefulSets unique ordinals if they are asked for: a range for each cluster,
// from ordinals.start on, since they cannot leave ordinals out. Their partition is an ordinal, and so means the fleet
// as it is.
func (f *fleet) nativeStatefulSet() error {
	if !f.options.uniqueOrdinals || !f.Divided {
		f.result.Record = ""
		return nil
	}
	for _, m := range f.members {
		var major, minor int
		if n, _ := fmt.Sscanf(m.Kubernetes, "v%d.%d", &major, &minor); n == 2 && major == 1 && minor < ordinalsSince {
			return fmt.Errorf("unique ordinals require spec.ordinals.start, which Kubernetes %s in cluster %q does not support; remove the cluster from the placement, use OpenKruise's StatefulSet, or remove the annotation %s",
				m.Kubernetes, m.Cluster, UniqueOrdinalsAnnotation)
		}
	}
	return f.assignRanges()
}

// assignRanges decides which range each cluster runs. A range that stands stays, shrinks at its end, and grows at its
// end and then at its beginning, where nobody has, or may still run, such ordinals. One that cannot grow moves as a
// whole, unless volumes would be left behind: then some replicas run nowhere, which is told.
func (f *fleet) assignRanges() error {
	spec := object(f.Template.Object, "spec")
	first := number(spec, "ordinals", "start")
	had, err := parseRecord(f.Record)
	if err != nil {
		return err
	}
	stays := f.options.mobility == "Never" || f.options.mobility != "Always" && len(list(spec, "volumeClaimTemplates")) > 0

	// 1. What may run where, and what stays with clusters that are gone.
	n := len(f.members)
	runsNow, mayRun := make([]ordinals, n), make([]ordinals, n)
	present := map[string]bool{}
	var total int64
	var running ordinals
	for i, m := range f.members {
		present[m.Cluster] = true
		if total += m.Replicas; total > mostOrdinals {
			return fmt.Errorf("%d replicas are too many for unique ordinals; the maximum is %d", total, mostOrdinals)
		}
		if m.before == nil {
			if stays {
				runsNow[i] = had[m.Cluster]
			}
			continue
		}
		numbers, err := runs(m.before.Object)
		if err != nil {
			return err
		}
		runsNow[i] = setOf(numbers)
		running = running.union(runsNow[i])
		if mayRun[i] = runsNow[i]; !m.fresh || number(m.status, "replicas") > int64(len(numbers)) {
			mayRun[i] = mayRun[i].union(had[m.Cluster])
		}
	}
	var gone ordinals
	var absent []string
	for _, cluster := range slices.Sorted(maps.Keys(had)) {
		if its := had[cluster].common(running.rest()); stays && !present[cluster] && its != nil &&
			!slices.Contains(f.Leaving, cluster) {
			gone = gone.union(its)
			absent = append(absent, fmt.Sprintf("%s of %s", its, cluster))
		}
	}
	left := max(0, total-int64(len(gone.each())))
	// What a cluster that is being left may run is nobody else's until its copy is gone: its replacement gets other
	// ordinals.
	for _, cluster := range f.Leaving {
		gone = gone.union(had[cluster].common(running.rest()))
	}

	// 2. What stands.
	assigned := make([]span, n) // empty where last < first
	var taken ordinals
	for i, m := range f.members {
		assigned[i] = span{0, -1}
		if len(runsNow[i]) == 0 || m.Replicas == 0 {
			continue
		}
		s := runsNow[i][0]
		s.last = min(s.last, s.first+m.Replicas-1)
		if (ordinals{s}).common(taken.union(gone)) != nil || s.first < first {
			continue
		}
		assigned[i], taken = s, taken.union(ordinals{s})
		left -= s.last - s.first + 1
	}
	// 3. What is new.
	var short int64
	for i, m := range f.members {
		blocked := taken.union(gone)
		if first > 0 {
			blocked = blocked.union(ordinals{{0, first - 1}})
		}
		for j := range f.members {
			if j != i {
				blocked = blocked.union(mayRun[j])
			}
		}
		s := assigned[i]
		has := s.last - s.first + 1
		want := has + max(0, min(m.Replicas-has, left))
		stood := has > 0
		if stood {
			own := blocked.common(ordinals{s}.rest())
			for s.last-s.first+1 < want && !own.has(s.last+1) {
				s.last++
			}
			for s.last-s.first+1 < want && s.first > first && !own.has(s.first-1) {
				s.first--
			}
		}
		if s.last-s.first+1 < want && (!stood || !stays) {
			at := blocked.gap(first)
			for (ordinals{{at, at + want - 1}}).common(blocked) != nil {
				at = blocked.gap(at + 1)
			}
			s = span{at, at + want - 1}
		}
		short += m.Replicas - (s.last - s.first + 1)
		left -= s.last - s.first + 1 - has
		assigned[i] = s
		if s.last >= s.first {
			taken = taken.union(ordinals{s})
		}
	}
	if short > 0 {
		why := "their ranges cannot grow without leaving volumes behind"
		if absent != nil {
			why = fmt.Sprintf("ordinals %s stay with their volumes", strings.Join(absent, ", "))
		}
		f.tell(OrdinalsUnassigned, "%d replicas are not running, because %s; use OpenKruise's StatefulSet, which can skip ordinals, or move them with the annotation %s: Always",
			short, why, OrdinalMobilityAnnotation)
	}
	// 4. Into the manifests and the record.
	remembered := map[string]ordinals{}
	for i, m := range f.members {
		s := assigned[i]
		var own ordinals
		if m.Replicas = s.last - s.first + 1; m.Replicas > 0 {
			own = ordinals{s}
		}
		remembered[m.Cluster] = own.union(mayRun[i])
		if m.Base == nil {
			continue
		}
		f.put(m, m.Replicas, "spec", "replicas")
		if m.Replicas > 0 {
			f.put(m, s.first, "spec", "ordinals", "start")
		}
	}
	for cluster, its := range had {
		if !present[cluster] && (stays || slices.Contains(f.Leaving, cluster)) {
			remembered[cluster] = its
		}
	}
	f.result.Record = writeRecord(remembered)
	return nil
}
