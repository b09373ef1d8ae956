package schedule

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// selection chooses clusters so that the groups they are in are as many as the constraints want:
//
//	of each grouping, one inside the other, the best groups that are allowed → of these groups' clusters the best,
//	one of each group first
//
// If some choice leads nowhere, the next best is tried.
type selection struct {
	bounds
	// ranked are the candidates, best first; members below are positions in it, ascending.
	ranked []Candidate
	// of are the groups of each candidate, by grouping and position, as positions in names.
	of    [][][]int
	names [][]string
	// duplicated, wanted and need say what the clusters are for: each takes all, or they have room for need together.
	strategy strategy
	wanted   int64
	need     int64
	// sticky says that groups in use are preferred to better ones.
	sticky bool
	// attempts are the sets of clusters that may still be looked at.
	attempts int
	// nearest is the failure that came nearest to success, and how near that was.
	nearest error
	near    int
}

// maxAttempts bounds the search where there are many groups and little fits.
const maxAttempts = 500

func newSelection(spec *workv1alpha2.ResourceBindingSpec, b bounds, ranked []Candidate, fresh bool) *selection {
	s := &selection{
		bounds: b, ranked: ranked, of: make([][][]int, len(b.groupings)), names: make([][]string, len(b.groupings)),
		strategy: strategyOf(spec), wanted: int64(spec.Replicas), need: needs(spec), sticky: !fresh, attempts: maxAttempts,
	}
	for d, g := range b.groupings {
		s.of[d] = make([][]int, len(ranked))
		number := map[string]int{}
		numbers := make([]int, 0, 2*len(ranked))
		for i := range ranked {
			first := len(numbers)
			for name := range g.of(ranked[i].Cluster) {
				n, ok := number[name]
				if !ok {
					n = len(number)
					number[name] = n
					s.names[d] = append(s.names[d], name)
				}
				numbers = append(numbers, n)
			}
			s.of[d][i] = numbers[first:len(numbers):len(numbers)]
		}
	}
	return s
}

// choose is the choice, best cluster first.
func (s *selection) choose() ([]Candidate, error) {
	all := make([]int, len(s.ranked))
	for i := range all {
		all[i] = i
	}
	members := s.keep()
	if members == nil {
		members = s.narrow(0, all)
	}
	if members == nil {
		members = s.exhaust()
	}
	if members == nil {
		return nil, s.nearest
	}
	members = s.extend(members)
	chosen := make([]Candidate, len(members))
	for i, m := range members {
		chosen[i] = s.ranked[m]
	}
	return chosen, nil
}

// keep is what is used now, if that satisfies the constraints, with what may join it; else nil.
func (s *selection) keep() []int {
	var used []int
	for i := range s.ranked {
		if s.sticky && s.ranked[i].Score == maxScore {
			used = append(used, i)
		}
	}
	if len(used) == 0 || s.clusters.MaxGroups > 0 && len(used) > s.clusters.MaxGroups {
		return nil
	}
	if used = s.extend(used); !s.holds(used) {
		return nil
	}
	return used
}

// extend adds the clusters that open no group of a grouping that has a maximum, the best first.
func (s *selection) extend(members []int) []int {
	most := groups(s.clusters, len(s.ranked))
	if len(members) >= most {
		return members
	}
	seen := s.seen(members)
	in := make([]bool, len(s.ranked))
	for _, m := range members {
		in[m] = true
	}
	members = slices.Clone(members)
	for i := 0; i < len(s.ranked) && len(members) < most; i++ {
		if in[i] {
			continue
		}
		opens := false
		for d, g := range s.groupings {
			opens = opens || g.MaxGroups > 0 && slices.ContainsFunc(s.of[d][i], func(n int) bool { return !seen[d][n] })
		}
		if !opens {
			members = append(members, i)
		}
	}
	slices.Sort(members)
	return members
}

// fail notes a failure; the one nearest to success is told.
func (s *selection) fail(near int, err func() error) {
	if s.nearest == nil || near > s.near {
		s.nearest, s.near = err(), near
	}
}

// group is clusters that have a value in common.
type group struct {
	// number is its position among the names of its grouping.
	number int
	name   string
	merit
}

// merit is what groups are preferred by, alone or together: those in use, those of the first affinity tiers,
// the score, and then the larger.
type merit struct {
	used, tier int
	score      int64
	clusters   int
}

func (m merit) plus(n merit) merit {
	return merit{m.used + n.used, m.tier + n.tier, m.score + n.score, m.clusters + n.clusters}
}

func prefers(a, b merit) int {
	return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.tier, b.tier), cmp.Compare(b.score, a.score), cmp.Compare(b.clusters, a.clusters))
}

// groups are those of the members by grouping d, best first.
func (s *selection) groups(d int, members []int) []group {
	lists := make([][]int, len(s.names[d]))
	for _, m := range members {
		for _, n := range s.of[d][m] {
			lists[n] = append(lists[n], m)
		}
	}
	var all []group
	for n, list := range lists {
		if len(list) == 0 {
			continue
		}
		g := group{number: n, name: s.names[d][n], merit: merit{tier: s.ranked[list[0]].Tier, score: s.score(d, list), clusters: len(list)}}
		if s.sticky && slices.ContainsFunc(list, func(m int) bool { return s.ranked[m].Score == maxScore }) {
			g.used = 1
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b group) int { return cmp.Or(prefers(a.merit, b.merit), strings.Compare(a.name, b.name)) })
	return all
}

// unit is what a cluster or a replica of room is worth to a group, against the mean score of its clusters.
const unit = 1000

// score of a group. Where each cluster takes all replicas: the clusters that have room for them count. Where clusters share:
// the room counts, up to a fair share of what is wanted.
func (s *selection) score(d int, members []int) int64 {
	var sum, scores int64
	if !s.strategy.divided() {
		var valid int64
		for _, m := range members {
			if c := &s.ranked[m]; c.holds() >= s.wanted || s.strategy == everywhere {
				valid, scores = valid+1, scores+int64(c.Score)
			}
		}
		if valid == 0 {
			return 0
		}
		return valid*unit + scores/valid
	}
	least := max(1, s.groupings[d].MinGroups)
	fair := (s.wanted + int64(least) - 1) / int64(least)
	enough := max(s.clusters.MinGroups, least)
	for i, m := range members {
		c := &s.ranked[m]
		sum, scores = sum+c.holds(), scores+int64(c.Score)
		if s.strategy.byRoom() && i+1 >= enough && sum >= fair {
			return fair*unit + scores/int64(i+1)
		}
	}
	return sum*unit + scores/int64(len(members))
}

// narrow chooses groups of grouping d and those inside, and the clusters of these; nil if there is no choice.
// Of the groups that there may be it takes the best together; then, where their number has a maximum, as few of them as do.
func (s *selection) narrow(d int, members []int) []int {
	if d == len(s.groupings) {
		return s.seat(members)
	}
	g := s.groupings[d]
	all := s.groups(d, members)
	if len(all) < g.MinGroups {
		s.fail(0, func() error { return tooFew(g, all) })
		return nil
	}
	most := groups(g.SpreadConstraint, len(all))
	if s.clusters.MaxGroups > 0 && g.SpreadByField != policyv1alpha1.SpreadByFieldZone {
		most = min(most, s.clusters.MaxGroups)
	}
	least := max(1, g.MinGroups)
	// Fewer groups leave more of a bounded number of clusters to those with room.
	for n := most; n >= min(least, most); n-- {
		for subset := range subsets(all, n) {
			chosen := s.narrow(d+1, s.within(d, members, subset))
			if chosen != nil {
				return s.reduce(d, members, subset, least, chosen)
			}
			if s.attempts <= 0 {
				return nil
			}
		}
		if s.clusters.MaxGroups == 0 {
			break
		}
	}
	return nil
}

// reduce drops the last of the groups, of which chosen was chosen, as long as the rest does: where their number has a
// maximum, no more are used than it takes. Groups in use, which come first, stay.
func (s *selection) reduce(d int, members []int, subset []group, least int, chosen []int) []int {
	if s.groupings[d].MaxGroups == 0 {
		return chosen
	}
	for i := range subset {
		if subset[i].used > 0 {
			least = max(least, i+1)
		}
	}
	for n := least; n < len(subset); n++ {
		if fewer := s.narrow(d+1, s.within(d, members, subset[:n])); fewer != nil {
			return fewer
		}
	}
	return chosen
}

// within are the members that are in no other groups than these.
func (s *selection) within(d int, members []int, allowed []group) []int {
	in := make([]bool, len(s.names[d]))
	for i := range allowed {
		in[allowed[i].number] = true
	}
	kept := make([]int, 0, len(members))
	for _, m := range members {
		if !slices.ContainsFunc(s.of[d][m], func(n int) bool { return !in[n] }) {
			kept = append(kept, m)
		}
	}
	return kept
}

// seat takes the best members, one of each group first. If they have not room enough, the last make way for those with
// the most, as long as each group keeps one.
func (s *selection) seat(members []int) []int {
	s.attempts--
	chosen := s.fill(members)
	if s.need > 0 && s.room(chosen) < s.need {
		chosen = s.makeWay(chosen, members)
	}
	if s.need > 0 && s.room(chosen) < s.need {
		roomy := slices.Clone(members)
		slices.SortStableFunc(roomy, func(a, b int) int { return cmp.Compare(s.ranked[b].holds(), s.ranked[a].holds()) })
		chosen = s.fill(roomy)
	}
	slices.Sort(chosen)
	if !s.holds(chosen) {
		return nil
	}
	return chosen
}

// fill takes from members in their order: first each that is in a group not seen yet, then others.
func (s *selection) fill(members []int) []int {
	most := groups(s.clusters, len(members))
	chosen := make([]int, 0, most)
	seen := s.seen(nil)
	var rest []int
	for _, m := range members {
		var news bool
		for d := range seen {
			for _, n := range s.of[d][m] {
				news = news || !seen[d][n]
			}
		}
		if !news || len(chosen) == most {
			rest = append(rest, m)
			continue
		}
		for d := range seen {
			for _, n := range s.of[d][m] {
				seen[d][n] = true
			}
		}
		chosen = append(chosen, m)
	}
	return append(chosen, rest[:most-len(chosen)]...)
}

// makeWay exchanges the last of chosen for members with more room that keep its groups.
func (s *selection) makeWay(chosen, members []int) []int {
	chosen = slices.Clone(chosen)
	slices.Sort(chosen)
	for last := len(chosen) - 1; last >= 0 && s.room(chosen) < s.need; last-- {
		most := -1
		for _, m := range members {
			if s.ranked[m].holds() > s.ranked[chosen[last]].holds() && !slices.Contains(chosen, m) && s.sameGroups(m, chosen[last]) &&
				(most < 0 || s.ranked[m].holds() > s.ranked[most].holds()) {
				most = m
			}
		}
		if most >= 0 {
			chosen[last] = most
		}
	}
	return chosen
}

func (s *selection) sameGroups(a, b int) bool {
	for d := range s.of {
		if !slices.Equal(s.of[d][a], s.of[d][b]) {
			return false
		}
	}
	return true
}

func (s *selection) room(members []int) (sum int64) {
	for _, m := range members {
		sum += s.ranked[m].holds()
	}
	return sum
}

// holds says whether these clusters satisfy all constraints, and notes why not.
func (s *selection) holds(members []int) bool {
	seen := s.seen(members)
	for d, g := range s.groupings {
		n := 0
		for _, used := range seen[d] {
			if used {
				n++
			}
		}
		if n < g.MinGroups || g.MaxGroups > 0 && n > g.MaxGroups {
			s.fail(1, func() error {
				return &SpreadError{Text: lacking(g), Hint: fmt.Sprintf("no choice of clusters satisfies the spread constraint by %s together with the others: allow more clusters, or lower its minGroups", g.name())}
			})
			return false
		}
	}
	if len(members) < s.clusters.MinGroups {
		s.fail(2, func() error {
			return &SpreadError{
				Text: "the number of clusters is less than the cluster spreadConstraint.MinGroups",
				Hint: fmt.Sprintf("the groups that may be used have %d clusters, at least %d are wanted: lower minGroups of the cluster spread constraint, or raise maxGroups by %s", len(members), s.clusters.MinGroups, s.groupings[0].name()),
			}
		})
		return false
	}
	if room := s.room(members); room < s.need {
		s.fail(3, func() error { return noRoom(len(members), room, s.need, len(members) < len(s.ranked)) })
		return false
	}
	return true
}

// seen are the groups that members are in, by grouping and number.
func (s *selection) seen(members []int) [][]bool {
	seen := make([][]bool, len(s.groupings))
	for d := range seen {
		seen[d] = make([]bool, len(s.names[d]))
		for _, m := range members {
			for _, n := range s.of[d][m] {
				seen[d][n] = true
			}
		}
	}
	return seen
}

// tooFew says that there are fewer groups than wanted, and which.
func tooFew(g grouping, all []group) error {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	slices.Sort(names)
	have := "no cluster that fits has one"
	if len(names) > 0 {
		have = fmt.Sprintf("clusters fit in %d (%s)", len(names), listed(names))
	}
	return &SpreadError{
		Text: lacking(g),
		Hint: fmt.Sprintf("%d by %s are wanted, %s: add clusters in %d more, or lower minGroups to %d", g.MinGroups, g.name(), have, g.MinGroups-len(names), len(names)),
	}
}

// maxExhaust is the number of candidates up to which every choice is tried: groups that overlap or cross each other may
// have a choice that going from group to group does not find.
const maxExhaust = 12

// exhaust tries every choice of few clusters; nil if there is none, or if going from group to group has missed none.
func (s *selection) exhaust() []int {
	if len(s.ranked) > maxExhaust || len(s.groupings) == 1 && s.groupings[0].SpreadByField != policyv1alpha1.SpreadByFieldZone {
		return nil
	}
	var chosen []int
	var try func(i int) bool
	try = func(i int) bool {
		if i == len(s.ranked) {
			return len(chosen) > 0 && s.holds(chosen)
		}
		if s.clusters.MaxGroups == 0 || len(chosen) < s.clusters.MaxGroups {
			chosen = append(chosen, i)
			if try(i + 1) {
				return true
			}
			chosen = chosen[:len(chosen)-1]
		}
		return try(i + 1)
	}
	if !try(0) {
		return nil
	}
	return chosen
}

// subsets are those of n of the groups, the best together first; of many only the first. Groups come best first, and so they are in each subset.
func subsets(all []group, n int) func(yield func([]group) bool) {
	return func(yield func([]group) bool) {
		if n == len(all) {
			yield(all)
			return
		}
		first := make([]int, n)
		for i := range first {
			first[i] = i
		}
		q := &subsetQueue{}
		seen := map[string]bool{}
		push := func(at []int) {
			key := fmt.Sprint(at)
			if seen[key] || len(seen) >= 4*maxAttempts {
				return
			}
			seen[key] = true
			var together merit
			for _, i := range at {
				together = together.plus(all[i].merit)
			}
			heap.Push(q, subset{at: at, merit: together})
		}
		heap.Push(q, subset{at: first})
		for q.Len() > 0 {
			best := heap.Pop(q).(subset)
			groups := make([]group, n)
			for i, at := range best.at {
				groups[i] = all[at]
			}
			if !yield(groups) {
				return
			}
			for i := range best.at {
				next := best.at[i] + 1
				if next == len(all) || i+1 < n && next == best.at[i+1] {
					continue
				}
				at := slices.Clone(best.at)
				at[i] = next
				push(at)
			}
		}
	}
}

// subset is positions of groups, ascending, and what they are worth together.
type subset struct {
	at []int
	merit
}

// subsetQueue is a heap, the best on top.
type subsetQueue []subset

func (q subsetQueue) Len() int { return len(q) }
func (q subsetQueue) Less(i, j int) bool {
	return cmp.Or(prefers(q[i].merit, q[j].merit), slices.Compare(q[i].at, q[j].at)) < 0
}
func (q subsetQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *subsetQueue) Push(x any)   { *q = append(*q, x.(subset)) }
func (q *subsetQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
