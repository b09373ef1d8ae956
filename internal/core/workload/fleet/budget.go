package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// shareBudget divides a disruption budget by the protected pods of each cluster. The shares add up to the budget. A
// share of zero is valid: no pod of that cluster may be disrupted.
//
// A cluster that has not reported its pods gets a safe share: all of minAvailable; of maxUnavailable an equal part of a
// number, and zero for a percentage. It gets nothing that other clusters already have.
func (f *fleet) shareBudget(b kind.Counters) error {
	matched, known := f.counted(b.All)
	total := sum(matched)
	for _, name := range []string{"minAvailable", "maxUnavailable"} {
		v := field(f.Template.Object, "spec", name)
		if v == nil {
			continue
		}
		least := name == "minAvailable"
		if !least && f.granted() {
			if err := f.rotateBudget(v, b, matched, known); err != nil {
				return err
			}
			continue
		}
		if !known {
			n, isNumber := whole(v)
			if _, err := Resolve(v, 0, Up); err != nil {
				return fmt.Errorf("spec.%s: %w", name, err)
			}
			equal := make([]Seat, len(f.members))
			for i := range equal {
				equal[i] = Seat{Weight: 1, Cap: n}
			}
			for i, n := range Split(n, equal) {
				switch {
				case least: // as it is
					f.put(f.members[i], v, "spec", name)
				case isNumber:
					f.put(f.members[i], n, "spec", name)
				default:
					f.put(f.members[i], int64(0), "spec", name)
				}
			}
			continue
		}
		n, err := Resolve(v, total, Up)
		if err != nil {
			return fmt.Errorf("spec.%s: %w", name, err)
		}
		shares := f.steady(n, matched, name)
		if !least {
			shares = proportional(n, matched)
		} else {
			f.guard(shares, min(n, total))
		}
		for i, share := range shares {
			f.put(f.members[i], share, "spec", name)
		}
		f.reportExcess(name, n, total)
		if least {
			var blocked []string
			for i, share := range shares {
				if matched[i] > 0 && share == matched[i] {
					blocked = append(blocked, f.members[i].Cluster)
				}
			}
			if len(blocked) > 0 {
				f.addCondition(BudgetBlocksEviction, "spec.minAvailable allows no disruptions in %s, so nodes there cannot be drained; lower it, or add replicas", strings.Join(unique(blocked), ", "))
			}
		}
	}
	return nil
}

// guard keeps n pods protected at any time: it lowers minAvailable in a cluster only as far as the sum confirmed by
// fresh reports exceeds n.
func (f *fleet) guard(shares []int64, n int64) {
	surplus := -n
	for _, m := range f.members {
		if m.before != nil && m.fresh {
			surplus += number(m.before.Object, "spec", "minAvailable")
		}
	}
	for i, m := range f.members {
		if m.before == nil {
			continue
		}
		before, set := whole(field(m.before.Object, "spec", "minAvailable"))
		if less := before - shares[i]; set && less > 0 {
			allowed := min(less, max(surplus, 0))
			surplus -= allowed
			shares[i] = before - allowed
		}
	}
}

// granted reports whether any cluster has a part of maxUnavailable. It must be returned before another cluster gets it.
func (f *fleet) granted() bool {
	return slices.ContainsFunc(f.members, func(m *member) bool {
		if m.before == nil {
			return false
		}
		_, ok := whole(field(m.before.Object, "spec", "maxUnavailable"))
		return ok
	})
}

// rotateBudget moves shares of maxUnavailable between clusters, see tokens. Nothing moves until every cluster has
// reported its pods.
func (f *fleet) rotateBudget(v any, b kind.Counters, matched []int64, known bool) error {
	n, err := Resolve(v, sum(matched), Up)
	if err != nil {
		return fmt.Errorf("spec.maxUnavailable: %w", err)
	}
	holders := make([]holder, len(f.members))
	for i, m := range f.members {
		h := &holders[i]
		h.matched, h.still = matched[i], m.Suspended || m.Base == nil || !m.Reachable
		if m.before != nil {
			h.before = number(m.before.Object, "spec", "maxUnavailable")
		}
		h.using = h.before
		if m.note != nil {
			h.turn, _ = time.Parse(time.RFC3339, m.note.Turn) // an invalid time counts as long ago
			if !m.fresh {
				h.using = max(h.using, m.note.Pending)
			}
		}
		available, known := whole(m.status[b.Available])
		switch {
		case m.Reachable && known:
			h.down = max(0, matched[i]-available)
		case m.Reachable:
		case f.options.ignoreLost:
			h.matched, h.using = 0, 0
		default:
			h.down = matched[i]
		}
	}
	if _, isNumber := whole(v); !known {
		// Until then, each keeps its share, or its part of a lowered number.
		had := make([]int64, len(holders))
		for i, h := range holders {
			had[i] = h.before
		}
		if !isNumber {
			n = sum(had)
		}
		for i, share := range proportional(n, had) {
			f.grant(i, holders[i], share)
		}
		return nil
	}
	shares, after := tokens(n, holders, f.Now)
	for i, share := range shares {
		f.grant(i, holders[i], share)
	}
	f.result.RecheckAfter = after
	f.reportExcess("maxUnavailable", n, sum(matched))
	return nil
}

// reportExcess reports a budget that is larger than the number of pods that it protects.
func (f *fleet) reportExcess(name string, n, total int64) {
	if n > total && total > 0 {
		f.addCondition(BudgetExceedsPods, "spec.%s is %d pods, but it protects only %d pods in all clusters together",
			name, n, total)
	}
}

// grant writes a part of maxUnavailable, and notes larger grants that may still be in use, and the time.
func (f *fleet) grant(i int, h holder, n int64) {
	m := f.members[i]
	if m.Base == nil {
		return
	}
	f.put(m, n, "spec", "maxUnavailable")
	note := parseNote(f.result.Notes[m.Cluster])
	if m.note != nil {
		note.Turn = m.note.Turn
	}
	if h.using > n {
		note.Pending = h.using
	}
	if ((n > 0) != (h.before > 0) || n > 0 && note.Turn == "") && !f.Now.IsZero() {
		note.Turn = f.Now.UTC().Format(time.RFC3339)
	}
	f.result.Notes[m.Cluster] = note.String()
}

// counted returns a counter of each member's status. all is true if all members have reported it.
func (f *fleet) counted(counter string) (numbers []int64, all bool) {
	numbers, all = make([]int64, len(f.members)), true
	for i, m := range f.members {
		n, ok := whole(m.status[counter])
		numbers[i] = n
		// A zero may be omitted.
		all = all && (ok || m.status != nil && m.fresh)
	}
	return numbers, all
}

// steady divides n by weight, each share at most its weight. The present shares are kept if they have the same sum,
// fit, and the number of shares that equal their weight does not grow: so small changes of pods move nothing. A share
// that equals its weight allows no disruption: after a move, the cluster of the replacement takes a part of it.
func (f *fleet) steady(n int64, weights []int64, path ...string) []int64 {
	shares := proportional(n, weights)
	before := make([]int64, len(f.members))
	for i, m := range f.members {
		if m.before == nil {
			return shares
		}
		v, ok := whole(field(object(m.before.Object, "spec"), path...))
		if !ok || v > weights[i] {
			return shares
		}
		before[i] = v
	}
	if sum(before) != sum(shares) || whollyKept(before, weights) > whollyKept(shares, weights) {
		return shares
	}
	return before
}

// whollyKept returns the number of shares that equal their weight.
func whollyKept(shares, weights []int64) int {
	n := 0
	for i, share := range shares {
		if weights[i] > 0 && share == weights[i] {
			n++
		}
	}
	return n
}

// put sets a field of the manifest of m, and marks its status as watched.
func (f *fleet) put(m *member, value any, path ...string) {
	if m.Base == nil {
		return
	}
	u := f.manifest(m)
	if u == m.Base {
		u = u.DeepCopy()
		f.result.Manifests[m.Cluster] = u
		f.result.Notes[m.Cluster] = Note{}.String()
	}
	last := len(path) - 1
	fields.Ensure(u.Object, path[:last]...)[path[last]] = value
}

// refersToNumber reports whether the division of a kind needs the replicas of the workload that it refers to.
func refersToNumber(k *kind.Kind) bool {
	return k.Divides == kind.DividesSubsetLimits || k.Divides == kind.DividesSteps || k.Divides == kind.DividesBounds
}

// KindsWithTarget returns the kinds that TargetOf knows.
func KindsWithTarget() []schema.GroupKind { return kind.Select(refersToNumber) }

// TargetOf returns the workload that a WorkloadSpread, a Kruise Rollout or an autoscaler refers to, in the same
// namespace. ok is false for other templates.
func TargetOf(template *unstructured.Unstructured) (target schema.GroupKind, name string, ok bool) {
	k := kind.Facts(template)
	if !refersToNumber(k) || template.GetAnnotations()[wellknown.RolloutScopeAnnotation] != "Fleet" {
		return target, "", false
	}
	return k.Target(template.Object)
}

// workloadSpread divides the numeric maxReplicas of subsets by the replicas of the workload in each cluster. If those
// are unknown, it uses the pods in the status of the spread, and equal parts until they are reported. Percentages are
// copied. The types must not be mixed.
func (f *fleet) workloadSpread() error {
	weights := make([]int64, len(f.members))
	for i, m := range f.members {
		if f.Target != nil {
			weights[i] = f.Target[m.Cluster]
			continue
		}
		for _, s := range objects(m.status, "subsetStatuses") {
			weights[i] += number(s, "replicas")
		}
	}
	if sum(weights) == 0 {
		for i := range weights {
			weights[i] = 1
		}
	}
	subsets := list(f.Template.Object, "spec", "subsets")
	written, divided := f.copies("spec", "subsets"), false
	for k, s := range subsets {
		s, _ := s.(map[string]any)
		n, ok := whole(s["maxReplicas"])
		if !ok {
			continue
		}
		divided = true
		seats := make([]Seat, len(weights))
		for i, w := range weights {
			seats[i] = Seat{Weight: w, Cap: n}
		}
		shares := Split(n, seats)
		if before, ok := f.spreadBefore(k, n); ok && f.Target == nil && near(before, shares) {
			shares = before
		}
		for i := range f.members {
			if k < len(written[i]) {
				if s, ok := written[i][k].(map[string]any); ok {
					s["maxReplicas"] = shares[i]
				}
			}
		}
	}
	for i, m := range f.members {
		if divided && m.Base != nil {
			f.put(m, written[i], "spec", "subsets")
		}
	}
	return nil
}

// copies returns a copy of a list in the manifest of each member; nil for a member without one.
func (f *fleet) copies(path ...string) [][]any {
	all := make([][]any, len(f.members))
	for i, m := range f.members {
		if m.Base != nil {
			all[i] = list(m.Base.DeepCopy().Object, path...)
		}
	}
	return all
}

// spreadBefore returns the present shares of the subset at index k. ok is true if they add up to n.
func (f *fleet) spreadBefore(k int, n int64) ([]int64, bool) {
	before := make([]int64, len(f.members))
	for i, m := range f.members {
		if m.before == nil {
			return nil, false
		}
		subsets := list(m.before.Object, "spec", "subsets")
		if k >= len(subsets) {
			return nil, false
		}
		s, _ := subsets[k].(map[string]any)
		v, ok := whole(s["maxReplicas"])
		if !ok {
			return nil, false
		}
		before[i] = v
	}
	return before, sum(before) == n
}

// near reports whether no share differs by more than one.
func near(a, b []int64) bool {
	for i := range a {
		if d := a[i] - b[i]; d > 1 || d < -1 {
			return false
		}
	}
	return true
}
