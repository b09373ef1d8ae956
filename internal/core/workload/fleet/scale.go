package fleet

import "fmt"

// scaleLimit divides scaleStrategy.maxUnavailable, the number of missing or unready pods up to which new pods are
// created. If it is enough for one per cluster, each gets its share. Otherwise clusters that lack pods take turns, in
// order. Other clusters keep their share, at least one, so that a lost pod is replaced at once. With atLeastOne,
// members treat zero as one, and there are no turns.
func (f *fleet) scaleLimit(r Rounding, atLeastOne bool) error {
	path := []string{"spec", "scaleStrategy", "maxUnavailable"}
	v := field(f.Template.Object, path...)
	if v == nil {
		return nil
	}
	weights := make([]int64, len(f.members))
	for i, m := range f.members {
		weights[i] = m.Replicas
	}
	limit, err := Resolve(v, sum(weights), r)
	if err != nil {
		return fmt.Errorf("scaleStrategy.maxUnavailable: %w", err)
	}
	shares := proportional(limit, weights)
	turns := false
	for i, w := range weights {
		turns = turns || w > 0 && shares[i] == 0
		if atLeastOne {
			shares[i] = max(shares[i], 1)
		}
	}
	if limit > 0 && turns && !atLeastOne {
		left := limit
		for i, m := range f.members {
			short := m.Replicas - number(m.status, "readyReplicas")
			before, had := int64(0), false
			if m.before != nil {
				before, had = whole(field(m.before.Object, path...))
			}
			switch {
			case short <= 0:
				shares[i] = max(before, 1)
			case had && before > 0 && !(m.fresh && left == 0):
				// It is the cluster's turn.
				shares[i] = min(before, max(left, 1))
				left -= shares[i]
			default:
				shares[i] = max(0, min(short, left))
				left -= shares[i]
			}
		}
	}
	for i, m := range f.members {
		f.put(m, shares[i], path...)
	}
	return nil
}
