package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// selection chooses clusters so that the number of their groups satisfies the constraints:
//
//	of each grouping, one inside the other, the best groups that are allowed → of these groups' clusters the best,
//	one of each group first
//
// If a choice fails, the next best is tried, unless the bounds of the groups show that it fails too.
type selection struct {
	bounds
	// ranked are the candidates, best first; members below are positions in it, ascending.
	ranked []Candidate
	// of are the groups of each candidate, by grouping.
	of []numbering
	// duplicated, wanted and need describe the use of the clusters: each gets all replicas, or together they need capacity
	// for need.
	strategy strategy
	wanted   int64
	need     int64
	// wide: as many groups and clusters are used as the constraints allow.
	wide bool
	// sticky: groups in use are preferred to better ones.
	sticky bool
	// steps is the remaining number of candidates to visit.
	steps int
	tally tally
	// nearest is the failure that came nearest to success, how near that was, and what room it found.
	nearest error
	near    int
	nearly  int64
}

// maxSteps bounds the search where there are many groups and little fits: about a millisecond.
const maxSteps = 50_000

func newSelection(spec *workv1alpha2.ResourceBindingSpec, b bounds, ranked []Candidate, fresh bool) *selection {
	s := &selection{
		bounds: b, ranked: ranked, of: make([]numbering, len(b.groupings)),
		strategy: strategyOf(spec), wanted: int64(spec.Replicas), need: needs(spec), wide: besideReplicas(spec),
		sticky: !fresh, steps: maxSteps,
	}
	for d, g := range b.groupings {
		s.of[d] = g.number(ranked)
	}
	s.tally = newTally(s.of)
	return s
}

// choose returns the choice, best cluster first.
func (s *selection) choose() ([]Candidate, error) {
	var members []int
	if s.strategy != static { // weights are applied again in each run
		members = s.keep()
	}
	if members == nil || s.wide {
		weighted := func(c *Candidate) bool { return c.Tier != unweighted }
		more := s.search(s.those(weighted))
		if members == nil || containsAll(more, s.those(func(c *Candidate) bool { return weighted(c) && s.inUse(c) })) {
			members = more
		}
		if members == nil && !weighted(&s.ranked[len(s.ranked)-1]) {
			members = s.search(s.those(func(*Candidate) bool { return true }))
		}
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

// search returns the best choice of these candidates; nil if there is none.
func (s *selection) search(candidates []int) []int {
	s.nearest, s.near = nil, 0
	members := s.narrow(0, candidates)
	if members == nil && s.near != fleetLacks {
		members = s.exhaust(candidates)
	}
	return members
}

// those returns the candidates that satisfy a condition.
func (s *selection) those(condition func(*Candidate) bool) (some []int) {
	for i := range s.ranked {
		if condition(&s.ranked[i]) {
			some = append(some, i)
		}
	}
	return some
}

// inUse reports whether the cluster is a current one, unless the run is fresh.
func (s *selection) inUse(c *Candidate) bool { return s.sticky && c.Score == maxScore }

// containsAll reports whether all, sorted, contains some.
func containsAll(all, some []int) bool {
	return !slices.ContainsFunc(some, func(m int) bool {
		_, found := slices.BinarySearch(all, m)
		return !found
	})
}

// keep returns the current clusters, with those that may join them, if that satisfies the constraints; else nil.
func (s *selection) keep() []int {
	used := s.those(s.inUse)
	if len(used) == 0 || s.clusters.MaxGroups > 0 && len(used) > s.clusters.MaxGroups {
		return nil
	}
	if used = s.extend(used); !s.holds(used) {
		s.nearest, s.near = nil, 0 // report what is missing for the other choices
		return nil
	}
	return used
}

// extend adds the clusters that open no group of a grouping that has a maximum, the best first. A wide choice opens
// groups up to the maximum.
func (s *selection) extend(members []int) []int {
	most := groups(s.clusters, len(s.ranked))
	if len(members) >= most {
		return members
	}
	in := make([]bool, len(s.ranked))
	s.tally.clear()
	for _, m := range members {
		in[m] = true
		s.tally.add(m)
	}
	members = slices.Clone(members)
	for i := 0; i < len(s.ranked) && len(members) < most; i++ {
		if in[i] {
			continue
		}
		refused := false
		for d, g := range s.groupings {
			opened := s.tally.opens(d, i)
			refused = refused || g.MaxGroups > 0 && opened > 0 && (!s.wide || s.tally.used[d]+opened > g.MaxGroups)
		}
		if !refused {
			s.tally.add(i)
			members = append(members, i)
		}
	}
	slices.Sort(members)
	return members
}

// How near to success a failure is.
const (
	groupsMissing = iota
	choiceMissing
	clustersMissing
	roomMissing
	// fleetLacks groups altogether, so that nothing else matters.
	fleetLacks
)

// fail records a failure; the one that is closest to success is reported.
func (s *selection) fail(near int, err func() error) {
	if s.nearest == nil || near > s.near {
		s.nearest, s.near = err(), near
	}
}

// failRoom records that the clusters have not enough capacity; the largest capacity is reported.
func (s *selection) failRoom(clusters int, room int64) {
	if s.near == roomMissing && room <= s.nearly {
		return
	}
	s.nearest, s.near, s.nearly = noRoom(clusters, room, s.need, clusters < len(s.ranked)), roomMissing, room
}

// group is a set of clusters with a common value.
type group struct {
	// number is its position among the names of its grouping.
	number int
	name   string
	// members are its clusters, among the members that it was created from.
	members []int
	merit
}

// merit is what groups are ranked by, alone or together: groups in use first, then the affinity tiers, the score, and
// the size.
type merit struct {
	used, tier int
	score      int64
	clusters   int
}

func (m merit) plus(n merit) merit {
	return merit{m.used + n.used, m.tier + n.tier, m.score + n.score, m.clusters + n.clusters}
}

func (m merit) minus(n merit) merit {
	return merit{m.used - n.used, m.tier - n.tier, m.score - n.score, m.clusters - n.clusters}
}

func prefers(a, b merit) int {
	switch {
	case a.used != b.used:
		return cmp.Compare(b.used, a.used)
	case a.tier != b.tier:
		return cmp.Compare(a.tier, b.tier)
	case a.score != b.score:
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Compare(b.clusters, a.clusters)
}

// groups returns the groups of the members by grouping d, best first.
func (s *selection) groups(d int, members []int) []group {
	s.steps -= len(members)
	of := &s.of[d]
	ends := make([]int, len(of.names)+1)
	var total int
	for _, m := range members {
		for _, n := range of.groups(m) {
			ends[n+1]++
			total++
		}
	}
	var count int
	for n := range of.names {
		if ends[n+1] > 0 {
			count++
		}
		ends[n+1] += ends[n]
	}
	// After the loop, lists has the members of group n from ends[n-1] to ends[n].
	lists := make([]int, total)
	for _, m := range members {
		for _, n := range of.groups(m) {
			lists[ends[n]] = m
			ends[n]++
		}
	}
	all := make([]group, 0, count)
	start := 0
	for n := range of.names {
		list := lists[start:ends[n]:ends[n]]
		start = ends[n]
		if len(list) == 0 {
			continue
		}
		g := group{number: n, name: of.names[n], members: list,
			merit: merit{tier: s.ranked[list[0]].Tier, score: s.score(d, list), clusters: len(list)}}
		if s.sticky && slices.ContainsFunc(list, func(m int) bool { return s.ranked[m].Score == maxScore }) {
			g.used = 1
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(prefers(a.merit, b.merit), strings.Compare(a.name, b.name))
	})
	return all
}

// unit is the value of a cluster, or of capacity for a replica, relative to the mean score of a group's clusters.
const unit = 1000

// score returns the score of a group. If each cluster gets all replicas, it counts the clusters with enough capacity.
// If clusters share the replicas, it counts the capacity, up to a fair share.
func (s *selection) score(d int, members []int) int64 {
	var sum, scores int64
	if !s.strategy.divided() && !s.wide {
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

// narrow chooses groups of grouping d and of the groupings inside it, and their clusters; nil if there is no choice. It
// uses the best allowed set of groups and then, if their number has a maximum, as few of them as suffice.
func (s *selection) narrow(d int, members []int) []int {
	if d == len(s.groupings) {
		return s.seat(members)
	}
	g := s.groupings[d]
	all := s.groups(d, members)
	if len(all) < g.MinGroups {
		near := groupsMissing
		if d == 0 {
			near = fleetLacks
		}
		s.fail(near, func() error { return tooFew(g, all) })
		return nil
	}
	most := groups(g.SpreadConstraint, len(all))
	if s.clusters.MaxGroups > 0 && g.SpreadByField != policyv1alpha1.SpreadByFieldZone {
		most = min(most, s.clusters.MaxGroups)
	}
	least := max(1, g.MinGroups)
	// The bounds of the groups are computed only after the best set has failed.
	var limit *ceiling
	// Fewer groups leave more of a bounded number of clusters to those with room.
	for n := most; n >= min(least, most); n-- {
		for subset := range subsets(all, n) {
			if limit != nil && !limit.allows(subset) {
				continue
			}
			chosen := s.narrow(d+1, s.within(d, members, subset))
			if chosen != nil {
				return s.reduce(d, members, subset, least, chosen)
			}
			if s.steps <= 0 {
				return nil
			}
			if limit == nil {
				if limit = s.ceiling(d, all); limit.hopeless(all, most) {
					return nil
				}
			}
		}
		if s.clusters.MaxGroups == 0 {
			break
		}
	}
	return nil
}

// reduce drops the last groups of those that chosen was chosen from, as long as the rest satisfies the constraints: a
// constraint with a maximum uses no more groups than needed. If each cluster gets all replicas, groups with room stay
// as long as clusters without room would take their place. Groups in use come first and stay. Static weights and a
// wide choice need all their clusters, so none is dropped.
func (s *selection) reduce(d int, members []int, subset []group, least int, chosen []int) []int {
	if s.groupings[d].MaxGroups == 0 || s.strategy == static || s.wide {
		return chosen
	}
	for i := range subset {
		if subset[i].used > 0 {
			least = max(least, i+1)
		}
	}
	var best []int
	for n := min(least, len(subset)); n <= len(subset); n++ {
		next := chosen
		if n < len(subset) {
			next = s.narrow(d+1, s.within(d, members, subset[:n]))
		}
		switch roomy := s.roomy(next); {
		case next == nil:
		case roomy == len(next):
			return next
		case best == nil || roomy > s.roomy(best):
			best = next
		}
	}
	return best
}

// roomy returns how many of the members have room for what they would get.
func (s *selection) roomy(members []int) (n int) {
	for _, m := range members {
		if s.strategy != duplicated || s.ranked[m].holds() >= s.wanted {
			n++
		}
	}
	return n
}

// within returns the members that are in no other groups than these.
func (s *selection) within(d int, members []int, allowed []group) []int {
	var some int
	for i := range allowed {
		some += len(allowed[i].members)
	}
	if s.groupings[d].SpreadByField != policyv1alpha1.SpreadByFieldZone {
		// Each is in one group.
		switch {
		case some == len(members):
			return members
		case some < len(members)/8:
			kept := make([]int, 0, some)
			for i := range allowed {
				kept = append(kept, allowed[i].members...)
			}
			slices.Sort(kept)
			return kept
		}
	}
	s.steps -= len(members)
	of := &s.of[d]
	in := make([]bool, len(of.names))
	for i := range allowed {
		in[allowed[i].number] = true
	}
	kept := make([]int, 0, min(some, len(members)))
	for _, m := range members {
		if !slices.ContainsFunc(of.groups(m), func(n int32) bool { return !in[n] }) {
			kept = append(kept, m)
		}
	}
	return kept
}

// seat selects the best members, one of each group first. If their capacity is too small, it replaces the last ones by
// those with the most capacity, and keeps one of each group.
func (s *selection) seat(members []int) []int {
	s.steps -= len(members)
	if groups(s.clusters, len(members)) == len(members) {
		if !s.holds(members) {
			return nil
		}
		return members
	}
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

// fill selects from members in order: first those in groups that have none yet, then others.
func (s *selection) fill(members []int) []int {
	most := groups(s.clusters, len(members))
	chosen := make([]int, 0, most)
	s.tally.clear()
	var rest []int
	for _, m := range members {
		if len(chosen) == most {
			break
		}
		if s.tally.add(m) {
			chosen = append(chosen, m)
		} else if len(rest) < most {
			rest = append(rest, m)
		}
	}
	return append(chosen, rest[:most-len(chosen)]...)
}

// makeWay exchanges the last of chosen for members with more room that keep its groups.
func (s *selection) makeWay(chosen, members []int) []int {
	chosen = slices.Clone(chosen)
	slices.Sort(chosen)
	in := make([]bool, len(s.ranked))
	for _, m := range chosen {
		in[m] = true
	}
	room := s.room(chosen)
	for last := len(chosen) - 1; last >= 0 && room < s.need; last-- {
		s.steps -= len(members)
		is, most := chosen[last], -1
		for _, m := range members {
			if holds := s.ranked[m].holds(); holds > s.ranked[is].holds() && (most < 0 || holds > s.ranked[most].holds()) &&
				!in[m] && s.sameGroups(m, is) {
				most = m
			}
		}
		if most >= 0 {
			in[is], in[most] = false, true
			room += s.ranked[most].holds() - s.ranked[is].holds()
			chosen[last] = most
		}
	}
	return chosen
}

func (s *selection) sameGroups(a, b int) bool {
	for d := range s.of {
		if !slices.Equal(s.of[d].groups(a), s.of[d].groups(b)) {
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

// holds reports whether these clusters satisfy all constraints, and records why not.
func (s *selection) holds(members []int) bool {
	s.tally.clear()
	for _, m := range members {
		s.tally.add(m)
	}
	for d, g := range s.groupings {
		if n := s.tally.used[d]; n < g.MinGroups || g.MaxGroups > 0 && n > g.MaxGroups {
			s.fail(choiceMissing, func() error { return s.conflicting(d, n) })
			return false
		}
	}
	if len(members) < s.clusters.MinGroups {
		s.failClusters(len(members))
		return false
	}
	if room := s.room(members); room < s.need {
		s.failRoom(len(members), room)
		return false
	}
	return true
}

// conflicting returns an error: the clusters that the other constraints allow are in too few or too many groups by
// grouping d, n.
func (s *selection) conflicting(d, n int) error {
	g := s.groupings[d]
	var others []string
	for e, other := range s.bounds.constraints() {
		if e != d+1 && other.MaxGroups > 0 { // clusters come first
			others = append(others, other.name())
		}
	}
	if n > g.MinGroups || len(others) == 0 {
		return &SpreadError{Text: lacking(g),
			Hint: fmt.Sprintf("no choice of clusters satisfies the spread constraint by %s together with the others: select more clusters in the policy, or raise its maxGroups", g.name())}
	}
	return &SpreadError{
		Text: lacking(g),
		Hint: fmt.Sprintf("clusters that maxGroups by %s allows are in %d by %s, but %d are required: raise maxGroups by %[1]s, or lower minGroups by %[3]s to %[2]d",
			strings.Join(others, " and "), n, g.name(), g.MinGroups),
	}
}

// failClusters records that the allowed groups have too few clusters.
func (s *selection) failClusters(have int) {
	s.fail(clustersMissing, func() error {
		return &SpreadError{
			Text: "the number of clusters is less than the cluster spreadConstraint.MinGroups",
			Hint: fmt.Sprintf("the groups that may be used have %s, but at least %d are required: lower minGroups of the cluster spread constraint, or raise maxGroups by %s", text.Count(have, "cluster"), s.clusters.MinGroups, s.groupings[0].name()),
		}
	})
}

// tooFew returns an error: there are fewer groups than wanted. It names them.
func tooFew(g grouping, all []group) error {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	slices.Sort(names)
	have := "but no cluster that fits has one"
	if len(names) > 0 {
		have = fmt.Sprintf("but clusters fit in only %d (%s)", len(names), listed(names))
	}
	return &SpreadError{
		Text: lacking(g),
		Hint: fmt.Sprintf("%d by %s are required, %s: add clusters in %d more, or lower minGroups to %d", g.MinGroups,
			g.name(), have, g.MinGroups-len(names), len(names)),
	}
}

// maxExhaust is the number of candidates up to which all choices are tried: if groups overlap, the search by groups may
// miss a choice.
const maxExhaust = 12

// exhaust tries all choices of few clusters; nil if there is none, or if the search by groups cannot have missed one.
func (s *selection) exhaust(candidates []int) []int {
	if len(candidates) > maxExhaust || len(s.groupings) == 1 &&
		s.groupings[0].SpreadByField != policyv1alpha1.SpreadByFieldZone {
		return nil
	}
	var chosen []int
	var try func(i int) bool
	try = func(i int) bool {
		if i == len(candidates) {
			return len(chosen) > 0 && s.holds(chosen)
		}
		if s.clusters.MaxGroups == 0 || len(chosen) < s.clusters.MaxGroups {
			chosen = append(chosen, candidates[i])
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
