package fleet

import (
	"cmp"
	"fmt"
	"math/big"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var unitedDeploymentKind = schema.GroupKind{Group: kruise, Kind: "UnitedDeployment"}

// Matrix gives whole numbers with these row and column sums, which have to add up to the same, each cell the
// proportional row·column/total rounded down or up. Of the ways to do that it keeps to before, which may be nil, as far
// as it finds.
func Matrix(rows, columns []int64, before [][]int64) [][]int64 {
	total := sum(rows)
	cells := make([][]int64, len(rows))
	upper := make([][]bool, len(rows)) // may be one more
	type fraction struct {
		rest int64
		c, k int
	}
	var fractions []fraction
	needRow, needColumn := make([]int64, len(rows)), append([]int64(nil), columns...)
	for c, r := range rows {
		cells[c], upper[c], needRow[c] = make([]int64, len(columns)), make([]bool, len(columns)), r
		for k, s := range columns {
			if total == 0 {
				continue
			}
			rest := r * s % total // replicas are of 31 bits
			cells[c][k], upper[c][k] = r*s/total, rest > 0
			fractions = append(fractions, fraction{rest, c, k})
			needRow[c] -= cells[c][k]
			needColumn[k] -= cells[c][k]
		}
	}
	// 1. The cells that were rounded up before stay so, as far as both sums allow.
	up := make([][]bool, len(rows))
	give := func(c, k int) {
		up[c][k] = true
		needRow[c]--
		needColumn[k]--
	}
	for c := range rows {
		up[c] = make([]bool, len(columns))
		for k := range columns {
			if before != nil && before[c] != nil && upper[c][k] && before[c][k] > cells[c][k] && needRow[c] > 0 &&
				needColumn[k] > 0 {
				give(c, k)
			}
		}
	}
	// 2. Then those with the largest fractions.
	slices.SortStableFunc(fractions, func(a, b fraction) int { return cmp.Compare(b.rest, a.rest) })
	for _, v := range fractions {
		if upper[v.c][v.k] && !up[v.c][v.k] && needRow[v.c] > 0 && needColumn[v.k] > 0 {
			give(v.c, v.k)
		}
	}
	// 3. The rest by augmenting paths: the fractions are a flow that fills both sums, so a whole one exists.
	var place func(c int, seen []bool) bool
	place = func(c int, seen []bool) bool {
		for k := range columns {
			if !upper[c][k] || up[c][k] || seen[k] {
				continue
			}
			seen[k] = true
			if needColumn[k] > 0 {
				up[c][k] = true
				needColumn[k]--
				return true
			}
			for other := range rows {
				if other != c && up[other][k] && place(other, seen) {
					up[other][k] = false
					up[c][k] = true
					return true
				}
			}
		}
		return false
	}
	for c := range rows {
		for needRow[c] > 0 && place(c, make([]bool, len(columns))) {
			needRow[c]--
		}
	}
	for c := range rows {
		for k := range columns {
			if up[c][k] {
				cells[c][k]++
			}
		}
	}
	return cells
}

// unitedDeployment divides the subsets among the clusters, so that in each they add up to its replicas and over all to
// what the template says. Numbers are written where it has percentages: two halves of three are refused by members.
//
// Subsets that name their clusters are in these alone, with what the placement gives them there; the others share what
// is left of each cluster's replicas.
func (f *fleet) unitedDeployment() error {
	subsets := subsetsOf(f.Template)
	named := make([]bool, len(subsets))
	for k, s := range subsets {
		named[k] = namesClusters(s)
	}
	if len(subsets) == 0 || len(f.members) < 2 && !slices.Contains(named, true) {
		return nil // one cluster does the arithmetic itself
	}
	rows, given := make([]int64, len(f.members)), make([]int64, len(subsets))
	for c, m := range f.members {
		rows[c] = m.Replicas
		for k, s := range subsets {
			if named[k] {
				rows[c] -= m.Subsets[text(s, "name")]
				given[k] += m.Subsets[text(s, "name")]
			}
		}
		if rows[c] < 0 {
			return fmt.Errorf("cluster %q is assigned %d replicas, but its subsets add up to %d more", m.Cluster, m.Replicas,
				-rows[c])
		}
	}
	left := sum(rows)
	total := left + sum(given)

	// 1. Replicas.
	of := total
	if asked := number(f.Template.Object, "spec", "replicas"); asked > 0 && slices.Contains(named, true) {
		of = asked // one that names a cluster that is not there may be missing
	}
	wanted, set, err := subsetReplicas(f.Template, subsets, of)
	if err != nil {
		return err
	}
	open := false
	for k := range subsets {
		if named[k] {
			wanted[k] = 0
		}
		open = open || !named[k] && !set[k]
	}
	if n := sum(wanted); n > left || n > 0 && n < left && !open {
		seats := make([]Seat, len(wanted))
		for k, n := range wanted {
			seats[k] = Seat{Weight: n}
			if n > 0 {
				seats[k].Cap = left
			}
		}
		wanted = Split(left, seats)
	}
	columns, before := append(wanted, left-sum(wanted)), f.subsetsBefore(subsets, "replicas")
	cells := Matrix(rows, columns, before)
	for k, s := range subsets {
		if named[k] {
			set[k] = true
			for c, m := range f.members {
				cells[c][k] = m.Subsets[text(s, "name")]
			}
		}
	}

	// 2. The least and the most, of those without replicas. The least together are no more than the cluster has.
	least, most := make([]int64, len(subsets)+1), make([]int64, len(subsets))
	hasLeast, hasMost := make([]bool, len(subsets)), make([]bool, len(subsets))
	least[len(subsets)] = left
	for k, s := range subsets {
		if named[k] {
			continue
		}
		for _, v := range []struct {
			name string
			to   *int64
			has  *bool
		}{{"minReplicas", &least[k], &hasLeast[k]}, {"maxReplicas", &most[k], &hasMost[k]}} {
			if s[v.name] == nil {
				continue
			}
			if *v.to, err = Resolve(s[v.name], total, HalfUp); err != nil {
				return fmt.Errorf("subset %q: %s: %w", text(s, "name"), v.name, err)
			}
			*v.has = true
		}
		least[len(subsets)] -= least[k]
	}
	if least[len(subsets)] < 0 {
		return fmt.Errorf("the minReplicas of all subsets add up to %d more than the %d replicas", -least[len(subsets)], left)
	}
	leastCells := Matrix(rows, least, f.subsetsBefore(subsets, "minReplicas"))
	mostCells := make([][]int64, len(subsets))
	for k := range subsets {
		mostCells[k] = proportional(most[k], rows)
	}

	// 3. What a manual update keeps old in each subset.
	partitions := object(f.Template.Object, "spec", "updateStrategy", "manualUpdate", "partitions")
	old := make([]map[string]any, len(f.members))
	for k, s := range subsets {
		name := text(s, "name")
		if partitions[name] == nil {
			continue
		}
		kept, err := KeptOld(partitions[name], 1<<31-1, Up)
		if err != nil {
			return fmt.Errorf("the partition of subset %q: %w", name, err)
		}
		seats := make([]Seat, len(f.members))
		for c, m := range f.members {
			pods := cells[c][k]
			if !set[k] {
				pods = f.unsetReplicas(m, name, cells[c][len(subsets)], set, k)
			}
			seats[c] = Seat{Weight: pods, Cap: pods, Floor: subsetFloor(m, name, pods)}
		}
		all := int64(0)
		for _, s := range seats {
			all += s.Cap
		}
		for c, released := range Split(max(0, all-kept), seats) {
			if old[c] == nil {
				old[c] = map[string]any{}
			}
			old[c][name] = seats[c].Cap - released
		}
	}

	// 4. Into the manifests.
	for c, m := range f.members {
		if m.Base == nil {
			continue
		}
		manifest := m.Base.DeepCopy()
		if err := setField(manifest, m.Replicas, "spec", "replicas"); err != nil {
			return err
		}
		var written []any
		for k, s := range subsetsOf(manifest) {
			name := text(s, "name")
			if _, here := m.Subsets[name]; named[k] && !here {
				unstructured.RemoveNestedField(manifest.Object, "spec", "updateStrategy", "manualUpdate", "partitions", name)
				delete(old[c], name)
				continue
			}
			if set[k] {
				s["replicas"] = cells[c][k]
			}
			if named[k] {
				delete(s, "minReplicas")
				delete(s, "maxReplicas")
			}
			if hasLeast[k] {
				s["minReplicas"] = leastCells[c][k]
			}
			if hasMost[k] {
				s["maxReplicas"] = max(mostCells[k][c], leastCells[c][k])
			}
			written = append(written, s)
		}
		if err := setField(manifest, written, "spec", "topology", "subsets"); err != nil {
			return err
		}
		for name, n := range old[c] {
			if err := setPartition(manifest, n, name); err != nil {
				return err
			}
		}
		f.result.Manifests[m.Cluster] = manifest
	}
	return nil
}

func setPartition(manifest *unstructured.Unstructured, n any, subset string) error {
	return setField(manifest, n, "spec", "updateStrategy", "manualUpdate", "partitions", subset)
}

// subsetReplicas are the replicas of each subset over all clusters, 0 where it is not set.
func subsetReplicas(template *unstructured.Unstructured, subsets []map[string]any,
	total int64) (wanted []int64, set []bool, err error) {
	wanted, set = make([]int64, len(subsets)), make([]bool, len(subsets))
	whole, percent, all := true, make([]Seat, len(subsets)), true
	var numbers int64
	for k, s := range subsets {
		v := s["replicas"]
		if v == nil {
			all = false
			continue
		}
		set[k] = true
		if wanted[k], err = Resolve(v, total, HalfUp); err != nil {
			return nil, nil, fmt.Errorf("subset %q: replicas: %w", text(s, "name"), err)
		}
		if p, err := percentOf(v); err == nil {
			// Up to a millionth of a percent counts.
			percent[k] = Seat{Weight: floor(p.Mul(p, big.NewRat(1_000_000, 1))), Cap: total}
			whole = false
		} else {
			numbers += wanted[k]
		}
	}
	asked := number(template.Object, "spec", "replicas")
	switch n := sum(wanted); {
	case n == total, n < total && !all:
		return wanted, set, nil
	case whole && n != asked && (all || n > asked):
		return nil, nil, fmt.Errorf("the replicas of the subsets add up to %d, and spec.replicas is %d", n, asked)
	case numbers > total || whole:
		// Fewer could be placed than were asked for: each subset has its part of them.
		seats := make([]Seat, len(subsets))
		for k := range wanted {
			seats[k] = Seat{Weight: wanted[k], Cap: wanted[k]}
		}
		return Split(total, seats), set, nil
	default:
		// Halves that were both rounded up, and the like: what the numbers leave goes by percent.
		for k, share := range Split(total-numbers, percent) {
			if percent[k].Cap > 0 {
				wanted[k] = share
			}
		}
		return wanted, set, nil
	}
}

// subsetsBefore is a number of each subset, in the order of subsets, as the Works say; nil for a cluster without a
// Work.
func (f *fleet) subsetsBefore(subsets []map[string]any, name string) [][]int64 {
	out := make([][]int64, len(f.members))
	for c, m := range f.members {
		if m.before == nil {
			continue
		}
		out[c] = make([]int64, len(subsets)+1)
		for k, s := range subsets {
			out[c][k] = number(subsetOf(m.before, text(s, "name")), name)
		}
	}
	return out
}

func subsetsOf(u *unstructured.Unstructured) (subsets []map[string]any) {
	for _, s := range list(u.Object, "spec", "topology", "subsets") {
		if s, ok := s.(map[string]any); ok {
			subsets = append(subsets, s)
		}
	}
	return subsets
}

func subsetOf(u *unstructured.Unstructured, name string) map[string]any {
	for _, s := range subsetsOf(u) {
		if text(s, "name") == name {
			return s
		}
	}
	return nil
}

// unsetReplicas is how many of the pods that no subset asks for the subset of index k has in a cluster: as reported, or
// evenly.
func (f *fleet) unsetReplicas(m *member, name string, rest int64, set []bool, k int) int64 {
	for _, s := range list(m.status, "subsetStatuses") {
		if s, ok := s.(map[string]any); ok && text(s, "name") == name && m.fresh {
			return min(number(s, "replicas"), rest)
		}
	}
	var of, before int64
	for i, is := range set {
		if !is {
			of++
			if i < k {
				before++
			}
		}
	}
	return rest/of + int64(b2i(before < rest%of))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// subsetFloor are the pods of a subset that were let be new already, of the same template.
func subsetFloor(m *member, name string, pods int64) int64 {
	if m.before == nil || m.Local == nil || !reflect.DeepEqual(field(m.Local.Object, "spec", "template"),
		field(m.before.Object, "spec", "template")) {
		return 0
	}
	had, ok := whole(subsetOf(m.before, name)["replicas"])
	if !ok {
		return 0
	}
	kept := number(m.before.Object, "spec", "updateStrategy", "manualUpdate", "partitions", name)
	return max(0, min(had-kept, pods))
}
