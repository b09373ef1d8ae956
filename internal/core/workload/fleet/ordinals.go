package fleet

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/kind"
	words "github.com/argosy-io/argosy/internal/core/object/text"
)

var reservedPath = []string{"spec", "reserveOrdinals"}

// mostOrdinals is the maximum size of an enumerated set. Users write numbers and ranges such as 0-2147483647.
const mostOrdinals = 100_000

// span is the range of ordinals from first to last; empty if last is below first.
type span struct{ first, last int64 }

func (s span) len() int64 { return s.last - s.first + 1 }

// ordinals is a set: sorted spans with gaps between them.
type ordinals []span

func ordinalSet(spans ...span) ordinals {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return int(min(max(a.first-b.first, -1), 1)) })
	var out ordinals
	for _, s := range spans {
		if n := len(out); n > 0 && s.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, s.last)
			continue
		}
		out = append(out, s)
	}
	return out
}

func setOf(numbers []int64) ordinals {
	spans := make([]span, len(numbers))
	for i, n := range numbers {
		spans[i] = span{n, n}
	}
	return ordinalSet(spans...)
}

func (o ordinals) union(p ordinals) ordinals { return ordinalSet(append(slices.Clone(o), p...)...) }

// contains reports whether an ordinal is in o.
func (o ordinals) contains(n int64) bool {
	return slices.ContainsFunc(o, func(s span) bool { return s.first <= n && n <= s.last })
}

// gap returns the first ordinal from n on that is not in o.
func (o ordinals) gap(n int64) int64 {
	for _, s := range o {
		if n < s.first {
			return n
		}
		n = max(n, s.last+1)
	}
	return n
}

// list returns at most mostOrdinals of the ordinals.
func (o ordinals) list() []int64 {
	var out []int64
	for _, s := range o {
		for n := s.first; n <= s.last && len(out) < mostOrdinals; n++ {
			out = append(out, n)
		}
	}
	return out
}

// texts returns the spans in OpenKruise's format: numbers, and "a-b".
func (o ordinals) texts() []any {
	out := make([]any, len(o))
	for i, s := range o {
		if out[i] = s.first; s.last > s.first {
			out[i] = fmt.Sprintf("%d-%d", s.first, s.last)
		}
	}
	return out
}

// fewOrdinals is up to how many ordinals are written as numbers.
const fewOrdinals = 256

// reserved returns the ordinals one by one, which every release of OpenKruise reads. Ranges need OpenKruise 1.8, and a
// cluster does not report its release, so ranges are used only for many ordinals.
func (o ordinals) reserved() []any {
	var n int64
	for _, s := range o {
		n += s.len()
	}
	if n > fewOrdinals {
		return o.texts()
	}
	out := make([]any, 0, n)
	for _, v := range o.list() {
		out = append(out, v)
	}
	return out
}

func (o ordinals) String() string {
	texts := make([]string, len(o))
	for i, t := range o.texts() {
		texts[i] = fmt.Sprint(t)
	}
	return strings.Join(texts, ",")
}

// parseOrdinals reads a list of numbers and ranges "a-b".
func parseOrdinals(all []any) (ordinals, error) {
	spans := make([]span, 0, len(all))
	for _, v := range all {
		if n, ok := whole(v); ok && n >= 0 {
			spans = append(spans, span{n, n})
			continue
		}
		text, _ := v.(string)
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseInt(strings.TrimSpace(from), 10, 32)
		last, err2 := strconv.ParseInt(strings.TrimSpace(to), 10, 32)
		if err1 != nil || err2 != nil || first < 0 || last < first {
			return nil, fmt.Errorf("%v is neither an ordinal nor a range such as \"3-5\"", v)
		}
		spans = append(spans, span{first, last})
	}
	return ordinalSet(spans...), nil
}

func tooManyOrdinals(n int64) error {
	return fmt.Errorf("%d replicas are too many for unique ordinals; the maximum is %d", n, mostOrdinals)
}

// FirstOrdinals returns the ordinals that a StatefulSet of n replicas runs with a list of reserveOrdinals.
func FirstOrdinals(n int64, reserved []any) ([]int64, error) {
	set, err := parseOrdinals(reserved)
	if err != nil {
		return nil, fmt.Errorf("reserveOrdinals: %w", err)
	}
	return firstOrdinals(n, set)
}

// firstOrdinals returns the first n ordinals that are not reserved. OpenKruise runs these.
func firstOrdinals(n int64, reserved ordinals) ([]int64, error) {
	if n > mostOrdinals {
		return nil, tooManyOrdinals(n)
	}
	out := make([]int64, 0, max(n, 0))
	for next := reserved.gap(0); int64(len(out)) < n; next = reserved.gap(next + 1) {
		out = append(out, next)
	}
	return out, nil
}

// owner is a cluster's part in the assignment of ordinals.
type owner struct {
	replicas int64
	has      []int64 // that it runs now, sorted
}

// assign gives each owner as many ordinals as it has replicas, without duplicates and without those in taken. An owner
// keeps its ordinals; if it has too many, it loses the highest. New ones are the lowest free ordinals. If a pod may
// still run under a new ordinal (busy), its owner waits with one replica less. limit bounds the number of assigned
// ordinals; short is how many are missing because of it.
func assign(owners []owner, taken, busy ordinals, limit int64) (assigned [][]int64, short int64) {
	assigned = make([][]int64, len(owners))
	used := map[int64]bool{}
	for i, o := range owners {
		for _, n := range o.has {
			if !used[n] && !taken.contains(n) {
				assigned[i] = append(assigned[i], n)
				used[n] = true
			}
		}
		for int64(len(assigned[i])) > o.replicas {
			last := len(assigned[i]) - 1
			delete(used, assigned[i][last])
			assigned[i] = assigned[i][:last]
		}
	}
	next, all := int64(0), int64(len(used))
	for i, o := range owners {
		for missing := o.replicas - int64(len(assigned[i])); missing > 0; missing-- {
			if all >= limit {
				short += missing
				break
			}
			for used[next] || taken.contains(next) {
				next = max(next+1, taken.gap(next))
			}
			if !busy.contains(next) {
				assigned[i] = append(assigned[i], next)
			}
			used[next] = true
			all++
		}
		slices.Sort(assigned[i])
	}
	return assigned, short
}

// statefulSet divides an Advanced StatefulSet: its ordinals if they must be unique, then its rollout.
func (f *fleet) statefulSet() error {
	w := workload{kind.Facts(f.Template)}
	roll := func(byOrdinal func(kept int64) []int64) error { return f.rollOutAndScale(w, byOrdinal) }
	if !f.options.uniqueOrdinals {
		f.result.Record = ""
		if !f.options.leavesToMember(len(f.members)) {
			if err := roll(nil); err != nil {
				return err
			}
		}
		f.keepReserved()
		return nil
	}
	if strings.HasSuffix(f.Template.GetAPIVersion(), "/v1alpha1") {
		return fmt.Errorf("unique ordinals require spec.reserveOrdinals, which v1alpha1 StatefulSets do not have; use v1beta1, or remove the annotation %s", wellknown.UniqueOrdinalsAnnotation)
	}
	owned, err := f.assignOrdinals()
	if err != nil {
		return err
	}
	// The lowest ordinals of the fleet are the last to be new, as in one cluster.
	return roll(func(kept int64) []int64 {
		var all []int64
		for _, numbers := range owned {
			all = append(all, numbers...)
		}
		slices.Sort(all)
		border := int64(0)
		if kept > 0 {
			border = all[min(kept, int64(len(all)))-1] + 1
		}
		targets := make([]int64, len(owned))
		for i, numbers := range owned {
			for _, n := range numbers {
				if n >= border {
					targets[i]++
				}
			}
		}
		return targets
	})
}

// keepReserved keeps the reserved ordinals of each cluster until the scheduler has taken back the replicas that go with
// new ones. Sent before, they would have the member's controller make pods of higher ordinals, only to delete them
// again.
func (f *fleet) keepReserved() {
	if !f.placedTooMany() {
		return
	}
	for _, m := range f.members {
		if m.before == nil || m.Base == nil ||
			reflect.DeepEqual(field(m.before.Object, reservedPath...), field(m.Base.Object, reservedPath...)) {
			continue
		}
		if before := list(m.before.Object, reservedPath...); len(before) > 0 {
			f.put(m, before, reservedPath...)
			continue
		}
		f.put(m, []any{}, reservedPath...)
	}
}

// assignOrdinals decides which cluster runs which ordinals and writes them to the manifests; members get the replicas
// that have one. What a cluster runs is read from the manifest of its Work; the record remembers what clusters had, for
// their volumes.
func (f *fleet) assignOrdinals() ([][]int64, error) {
	spec := object(f.Template.Object, "spec")
	reserved, err := parseOrdinals(list(spec, "reserveOrdinals"))
	if err != nil {
		return nil, fmt.Errorf("spec.reserveOrdinals: %w", err)
	}
	if start := number(spec, "ordinals", "start"); start > 0 {
		reserved = reserved.union(ordinals{{0, start - 1}})
	}
	had, err := parseRecord(f.Record)
	if err != nil {
		return nil, err
	}
	volumes, stays := f.volumes()

	// 1. Who has what, and who had.
	held, running, err := f.holdings(had, stays)
	if err != nil {
		return nil, err
	}
	owners := make([]owner, len(f.members))
	var busy ordinals
	for i, m := range f.members {
		owners[i] = owner{replicas: m.Replicas, has: held[i].has.list()}
		busy = busy.union(held[i].mayRun)
	}
	if f.placedTooMany() {
		// An ordinal leaves in one write with its replica, which the scheduler has yet to take back.
		reserved = reserved.common(running.rest())
	}
	// 2. Former clusters keep their ordinals, and the total does not exceed the template's replicas.
	total := f.replicas()
	gone, leaving, absent := f.ordinalsElsewhere(had, running)
	limit := int64(mostOrdinals)
	if gone != nil {
		limit = max(0, total-int64(len(inFirst(gone, total, reserved))))
	}
	assigned, short := assign(owners, reserved.union(gone).union(leaving), busy, limit)
	if short > 0 {
		f.addCondition(OrdinalsUnassigned, "%d replicas are not running, because ordinals %s stay with their volumes; if these clusters do not recover, move the ordinals with the annotation %s: Always",
			short, strings.Join(absent, ", "), wellknown.OrdinalMobilityAnnotation)
	}
	// 3. Into the manifests.
	now := map[string]ordinals{}
	for i, m := range f.members {
		now[m.Cluster] = setOf(assigned[i])
		m.Replicas = int64(len(assigned[i]))
		if m.Base == nil {
			continue
		}
		f.put(m, m.Replicas, "spec", "replicas")
		f.put(m, now[m.Cluster].complement().reserved(), "spec", "reserveOrdinals")
		delete(object(f.result.Manifests[m.Cluster].Object, "spec"), "ordinals")
	}
	// 4. What to remember: where pods may still be, and where volumes are.
	kept := volumes && text(spec, "persistentVolumeClaimRetentionPolicy", "whenScaled") != "Delete"
	var stale []string
	for _, cluster := range slices.Sorted(maps.Keys(had)) {
		for _, m := range f.members {
			if both := had[cluster].common(now[m.Cluster]); m.Cluster != cluster && both != nil && kept {
				stale = append(stale, fmt.Sprintf("%s runs in %s and ran in %s before", both, m.Cluster, cluster))
			}
		}
	}
	remembered := maps.Clone(now)
	for i, m := range f.members {
		if kept || !held[i].settled {
			remembered[m.Cluster] = remembered[m.Cluster].union(had[m.Cluster])
		}
		remembered[m.Cluster] = remembered[m.Cluster].union(held[i].has)
	}
	if len(stale) > 0 {
		f.addCondition(StaleVolume, "ordinals were moved and may have left volumes behind, which are never deleted: %s",
			strings.Join(stale, "; "))
	}
	f.record(remembered, had, stays || kept)
	return assigned, nil
}

// holding is what a member has of unique ordinals.
type holding struct {
	// has are those that it runs or, if it comes back to volumes, those that it ran.
	has ordinals
	// mayRun are those of which pods may still run there. settled is true if these are those that it has.
	mayRun  ordinals
	settled bool
}

// holdings returns what each member has, and what runs in all. had is the record, and stays whether ordinals stay in a
// cluster for their volumes.
func (f *fleet) holdings(had map[string]ordinals, stays bool) (all []holding, running ordinals, err error) {
	if total := f.replicas(); total > mostOrdinals {
		return nil, nil, tooManyOrdinals(total)
	}
	all = make([]holding, len(f.members))
	for i, m := range f.members {
		h := &all[i]
		if m.before == nil {
			if stays {
				h.has = had[m.Cluster]
			}
			continue
		}
		numbers, err := runs(m.before.Object)
		if err != nil {
			return nil, nil, err
		}
		h.has = setOf(numbers)
		running = running.union(h.has)
		h.settled = m.fresh && number(m.status, "replicas") <= int64(len(numbers))
		if h.mayRun = h.has; !h.settled {
			h.mayRun = h.has.union(had[m.Cluster])
		}
	}
	return all, running, nil
}

// volumes reports whether the pods of a StatefulSet have volumes, and whether their ordinals stay in a cluster for
// them.
func (f *fleet) volumes() (has, stay bool) {
	has = len(list(f.Template.Object, "spec", "volumeClaimTemplates")) > 0
	return has, f.options.mobility == "Never" || f.options.mobility != "Always" && has
}

// ordinalsElsewhere returns the ordinals that no member gets: gone stay with former clusters and are described in
// absent; leaving may still run in clusters that are being left. had is the record.
func (f *fleet) ordinalsElsewhere(had map[string]ordinals, running ordinals) (gone, leaving ordinals,
	absent []string) {
	_, stay := f.volumes()
	for _, cluster := range slices.Sorted(maps.Keys(had)) {
		// What runs elsewhere by now has left it before.
		its := had[cluster].common(running.rest())
		switch {
		case slices.Contains(f.Leaving, cluster):
			leaving = leaving.union(its)
		case stay && !f.hasMember(cluster) && its != nil:
			gone = gone.union(its)
			absent = append(absent, fmt.Sprintf("%s of %s", its, cluster))
		}
	}
	return gone, leaving, absent
}

// inFirst returns the ordinals of o that are among the first n unreserved ordinals.
func inFirst(o ordinals, n int64, reserved ordinals) []int64 {
	first, err := firstOrdinals(n, reserved)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(first, func(v int64) bool { return !o.contains(v) })
}

// complement returns the ordinals below the highest of o that are not in o.
func (o ordinals) complement() ordinals {
	var out ordinals
	next := int64(0)
	for _, s := range o {
		if s.first > next {
			out = append(out, span{next, s.first - 1})
		}
		next = s.last + 1
	}
	return out
}

// rest returns every ordinal that is not in o.
func (o ordinals) rest() ordinals {
	above := int64(0)
	if n := len(o); n > 0 {
		above = o[n-1].last + 1
	}
	return append(o.complement(), span{above, math.MaxInt32})
}

func (o ordinals) common(p ordinals) ordinals {
	var out []span
	for _, a := range o {
		for _, b := range p {
			if first, last := max(a.first, b.first), min(a.last, b.last); first <= last {
				out = append(out, span{first, last})
			}
		}
	}
	return ordinalSet(out...)
}

// parseRecord reads wellknown.OrdinalsAnnotation: {"eu": [0, "3-5"]}.
func parseRecord(text string) (map[string]ordinals, error) {
	if text == "" {
		return nil, nil
	}
	var raw map[string][]any
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, recordError(err)
	}
	had := make(map[string]ordinals, len(raw))
	for cluster, all := range raw {
		set, err := parseOrdinals(all)
		if err != nil {
			return nil, recordError(err)
		}
		if had[cluster] = set; len(set) > 0 && set[len(set)-1].last > 1<<31 {
			return nil, recordError(errors.New("an ordinal is too large"))
		}
	}
	return had, nil
}

func recordError(err error) error {
	return fmt.Errorf("annotation %s of the binding was changed by someone else: %w; correct it, or delete it if no volumes depend on it", wellknown.OrdinalsAnnotation, err)
}

// record writes the ordinals that members hold into the annotation. Those of a former cluster are kept while volumes
// stay there, or while the workload still leaves it.
func (f *fleet) record(members, had map[string]ordinals, stays bool) {
	raw := map[string][]any{}
	for cluster, set := range had {
		if len(set) > 0 && !f.hasMember(cluster) && (stays || slices.Contains(f.Leaving, cluster)) {
			raw[cluster] = set.texts()
		}
	}
	for cluster, set := range members {
		if len(set) > 0 {
			raw[cluster] = set.texts()
		}
	}
	if f.result.Record = ""; len(raw) > 0 {
		f.result.Record = words.JSON(raw)
	}
}
