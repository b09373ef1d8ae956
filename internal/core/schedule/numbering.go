package schedule

import (
	"slices"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// numbering assigns the candidates to numbered groups, by one grouping.
type numbering struct {
	// names are the names of the groups, by number.
	names []string
	// numbers of candidate i are from starts[i] to starts[i+1].
	numbers, starts []int32
}

// groups returns the groups of candidate i; one, except by zone.
func (n *numbering) groups(i int) []int32 { return n.numbers[n.starts[i]:n.starts[i+1]] }

// fewNames is the number of names up to which looking through them is faster than a map.
const fewNames = 8

// number returns the groups of candidates. By cluster, each candidate is a group of its own without a name.
func (g grouping) number(candidates []Candidate) numbering {
	n := numbering{numbers: make([]int32, 0, len(candidates)), starts: make([]int32, 1, len(candidates)+1)}
	var index map[string]int32
	add := func(name string) {
		if index == nil {
			for i := range n.names {
				if n.names[i] == name {
					n.numbers = append(n.numbers, int32(i))
					return
				}
			}
		} else if i, ok := index[name]; ok {
			n.numbers = append(n.numbers, i)
			return
		}
		next := int32(len(n.names))
		n.names = append(n.names, name)
		n.numbers = append(n.numbers, next)
		switch {
		case index != nil:
			index[name] = next
		case len(n.names) > fewNames:
			index = make(map[string]int32, 4*fewNames)
			for i := range n.names {
				index[n.names[i]] = int32(i)
			}
		}
	}
	for i := range candidates {
		c := candidates[i].Cluster
		switch {
		case g.byCluster():
			n.numbers = append(n.numbers, int32(i))
		case g.SpreadByField == policyv1alpha1.SpreadByFieldZone:
			for j, zone := range match.Zones(c) {
				if !slices.Contains(match.Zones(c)[:j], zone) {
					add(zone)
				}
			}
		default:
			if name, ok := g.groupOf(c); ok {
				add(name)
			}
		}
		n.starts = append(n.starts, int32(len(n.numbers)))
	}
	return n
}

// tally counts the groups that clusters are in, by grouping.
type tally struct {
	of []numbering
	// marks are the round in which each group was seen last, by grouping and number.
	marks [][]int32
	round int32
	// used are the groups seen in this round, by grouping.
	used []int
}

func newTally(of []numbering) tally {
	t := tally{of: of, marks: make([][]int32, len(of)), used: make([]int, len(of)), round: 1}
	for d := range of {
		t.marks[d] = make([]int32, len(of[d].names))
	}
	return t
}

// clear resets the counts.
func (t *tally) clear() {
	t.round++
	clear(t.used)
}

// add counts candidate i, and reports whether it is in a group that was not counted yet.
func (t *tally) add(i int) (opened bool) {
	for d := range t.of {
		for _, n := range t.of[d].groups(i) {
			if t.marks[d][n] != t.round {
				t.marks[d][n] = t.round
				t.used[d]++
				opened = true
			}
		}
	}
	return opened
}

// opens returns how many groups of grouping d that were not seen candidate i is in.
func (t *tally) opens(d, i int) (opened int) {
	for _, n := range t.of[d].groups(i) {
		if t.marks[d][n] != t.round {
			opened++
		}
	}
	return opened
}
