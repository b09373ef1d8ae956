package schedule

import (
	"fmt"
	"slices"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// ceiling bounds what groups can provide, so that a search can skip sets of groups that cannot satisfy the constraints
// with any choice of clusters.
type ceiling struct {
	s *selection
	d int
	// rooms of each group's clusters, the largest first, by its number; of all of them, where each may be used. Without
	// need they are nil.
	rooms [][]int64
	// inner is the number of inner groups of each group, for each other grouping with a minimum, by grouping and number.
	inner map[int][]int
}

// ceiling returns the bounds of the groups of grouping d, after one choice has failed.
func (s *selection) ceiling(d int, all []group) *ceiling {
	c := &ceiling{s: s, d: d}
	if s.need > 0 {
		c.rooms = make([][]int64, len(s.of[d].names))
		for _, g := range all {
			rooms := make([]int64, len(g.members))
			for i, m := range g.members {
				rooms[i] = s.ranked[m].holds()
			}
			slices.SortFunc(rooms, func(a, b int64) int { return int(min(1, max(-1, b-a))) })
			if most := groups(s.clusters, len(rooms)); most < len(rooms) {
				rooms = rooms[:most]
			}
			c.rooms[g.number] = rooms
		}
	}
	for e := d + 1; e < len(s.groupings); e++ {
		if s.groupings[e].MinGroups <= 1 {
			continue
		}
		counts := make([]int, len(s.of[d].names))
		for _, g := range all {
			s.tally.clear()
			for _, m := range g.members {
				s.tally.add(m)
			}
			counts[g.number] = s.tally.used[e]
		}
		if c.inner == nil {
			c.inner = map[int][]int{}
		}
		c.inner[e] = counts
	}
	return c
}

// allows reports whether these groups may provide enough capacity, clusters and groups; if not, it records what is
// missing.
func (c *ceiling) allows(subset []group) bool {
	s := c.s
	var clusters int
	for i := range subset {
		clusters += subset[i].clusters
	}
	if clusters < s.clusters.MinGroups {
		s.failClusters(clusters)
		return false
	}
	for e, counts := range c.inner {
		var have int
		for i := range subset {
			have += counts[subset[i].number]
		}
		if have < s.groupings[e].MinGroups {
			c.failInner(e, len(subset), have)
			return false
		}
	}
	if s.need == 0 {
		return true
	}
	// Clusters are chosen so that each group of the innermost grouping has one.
	alone := c.d == len(s.groupings)-1 && s.groupings[c.d].SpreadByField != policyv1alpha1.SpreadByFieldZone
	room, n := c.room(subset, alone)
	if room < s.need {
		s.failRoom(n, room)
		return false
	}
	return true
}

// room returns the maximal capacity of as many clusters of the subset as allowed, with one of each group if each is
// true, and the number of these clusters.
func (c *ceiling) room(subset []group, each bool) (room int64, n int) {
	most := c.s.clusters.MaxGroups
	if most == 0 {
		for i := range subset {
			n += len(c.rooms[subset[i].number])
			for _, r := range c.rooms[subset[i].number] {
				room += r
			}
		}
		return room, n
	}
	at := make([]int, len(subset))
	if each && len(subset) <= most {
		for i := range subset {
			at[i], n = 1, n+1
			room += c.rooms[subset[i].number][0]
		}
	}
	for ; n < most; n++ {
		next := -1
		for i := range subset {
			rooms := c.rooms[subset[i].number]
			if at[i] < len(rooms) && (next < 0 || rooms[at[i]] > c.rooms[subset[next].number][at[next]]) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		room += c.rooms[subset[next].number][at[next]]
		at[next]++
	}
	return room, n
}

// hopeless reports whether no n of the groups can satisfy the constraints; it records what is missing.
func (c *ceiling) hopeless(all []group, n int) bool {
	s := c.s
	roomiest := func(of func(g *group) int64) []group {
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, func(a, b group) int { return int(min(1, max(-1, of(&b)-of(&a)))) })
		return sorted[:n]
	}
	var clusters int
	for _, g := range roomiest(func(g *group) int64 { return int64(g.clusters) }) {
		clusters += g.clusters
	}
	if clusters < s.clusters.MinGroups {
		s.failClusters(clusters)
		return true
	}
	for e, counts := range c.inner {
		var have int
		for _, g := range roomiest(func(g *group) int64 { return int64(counts[g.number]) }) {
			have += counts[g.number]
		}
		if have < s.groupings[e].MinGroups {
			c.failInner(e, n, have)
			return true
		}
	}
	if s.need == 0 {
		return false
	}
	// The best clusters of all groups have no less room than those of n.
	if room, used := c.room(all, false); s.clusters.MaxGroups > 0 && room < s.need {
		s.failRoom(used, room)
		return true
	}
	sums := make([]int64, len(s.of[c.d].names))
	for i := range all {
		for _, r := range c.rooms[all[i].number] {
			sums[all[i].number] += r
		}
	}
	var room int64
	var used int
	for _, g := range roomiest(func(g *group) int64 { return sums[g.number] }) {
		room, used = room+sums[g.number], used+len(c.rooms[g.number])
	}
	if room < s.need {
		s.failRoom(used, room)
		return true
	}
	return false
}

// failInner notes that n groups are in too few groups by the grouping e.
func (c *ceiling) failInner(e, n, have int) {
	outer, inner := c.s.groupings[c.d], c.s.groupings[e]
	c.s.fail(choiceMissing, func() error {
		return &SpreadError{
			Text: lacking(inner),
			Hint: fmt.Sprintf("clusters in %s by %s are in at most %d by %s, but %d are required: raise maxGroups by %s, or lower minGroups by %s to %d",
				text.Count(n, "group"), outer.name(), have, inner.name(), inner.MinGroups, outer.name(), inner.name(), have),
		}
	})
}
