package fleet

import (
	"cmp"
	"fmt"
	"math/big"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Matrix returns whole numbers with the given sums of rows and columns. The rows and the columns must have the same
// total. Each cell is row·column/total, rounded down or up. Cells that were rounded up in before are rounded up again
// where the sums allow it; before and its rows may be nil.
func Matrix(rows, columns []int64, before [][]int64) [][]int64 {
	total := sum(rows)
	cells := make([][]int64, len(rows))
	inexact := make([][]bool, len(rows)) // cells that may be rounded up
	type fraction struct {
		rest int64
		c, k int
	}
	var fractions []fraction
	needRow, needColumn := make([]int64, len(rows)), append([]int64(nil), columns...)
	for c, r := range rows {
		cells[c], inexact[c], needRow[c] = make([]int64, len(columns)), make([]bool, len(columns)), r
		for k, s := range columns {
			if total == 0 {
				continue
			}
			rest := r * s % total // no overflow: replicas have 31 bits
			cells[c][k], inexact[c][k] = r*s/total, rest > 0
			fractions = append(fractions, fraction{rest, c, k})
			needRow[c] -= cells[c][k]
			needColumn[k] -= cells[c][k]
		}
	}
	// 1. Round up the cells that were rounded up before, where both sums allow it.
	up := make([][]bool, len(rows))
	roundUp := func(c, k int) {
		up[c][k] = true
		needRow[c]--
		needColumn[k]--
	}
	for c := range rows {
		up[c] = make([]bool, len(columns))
		for k := range columns {
			if before != nil && before[c] != nil && inexact[c][k] && before[c][k] > cells[c][k] && needRow[c] > 0 &&
				needColumn[k] > 0 {
				roundUp(c, k)
			}
		}
	}
	// 2. Round up the cells with the largest fractions.
	slices.SortStableFunc(fractions, func(a, b fraction) int { return cmp.Compare(b.rest, a.rest) })
	for _, v := range fractions {
		if inexact[v.c][v.k] && !up[v.c][v.k] && needRow[v.c] > 0 && needColumn[v.k] > 0 {
			roundUp(v.c, v.k)
		}
	}
	// 3. Round up the rest along augmenting paths. The fractions are a flow that fills all sums, so a flow of whole
	//    numbers exists.
	var augment func(c int, seen []bool) bool
	augment = func(c int, seen []bool) bool {
		for k := range columns {
			if !inexact[c][k] || up[c][k] || seen[k] {
				continue
			}
			seen[k] = true
			if needColumn[k] > 0 {
				up[c][k] = true
				needColumn[k]--
				return true
			}
			for other := range rows {
				if other != c && up[other][k] && augment(other, seen) {
					up[other][k] = false
					up[c][k] = true
					return true
				}
			}
		}
		return false
	}
	for c := range rows {
		for needRow[c] > 0 && augment(c, make([]bool, len(columns))) {
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

// subsetShare is the part of each cluster in one subset. Its slices are in the order of the members.
type subsetShare struct {
	name string
	// named is true if the subset names its clusters.
	named bool
	// set is true if the manifests set replicas.
	set bool
	// replicas, least and most are written as replicas, minReplicas and maxReplicas. kept is how many pods a manual update
	// keeps old. least, most and kept are nil if the template does not set the field.
	replicas, least, most, kept []int64
}

// unitedDeployment divides the subsets among the clusters. The subsets of a cluster add up to its replicas, those of
// all clusters to the template's. It writes numbers instead of percentages, because members reject half of three.
//
// A subset that names its clusters is only in these, with the replicas that the placement gives it there. The other
// subsets share the rest of each cluster's replicas.
func (f *fleet) unitedDeployment() error {
	subsets := subsetsOf(f.Template)
	if len(subsets) == 0 || len(f.members) < 2 && !NamesClusters(f.Template) {
		return nil // the controller in the only cluster divides the replicas
	}
	shares, left, err := f.placedSubsets(subsets)
	if err == nil {
		err = f.divideSubsets(subsets, shares, left)
	}
	if err == nil {
		err = f.boundSubsets(subsets, shares, left)
	}
	if err != nil {
		return err
	}
	for c, m := range f.members {
		if m.Base == nil {
			continue
		}
		if f.result.Manifests[m.Cluster], err = withSubsets(m, shares, c); err != nil {
			return err
		}
	}
	return nil
}

// placedSubsets places the subsets that name their clusters. left is the rest of each cluster's replicas.
func (f *fleet) placedSubsets(subsets []map[string]any) (shares []subsetShare, left []int64, err error) {
	shares, left = make([]subsetShare, len(subsets)), make([]int64, len(f.members))
	for c, m := range f.members {
		left[c] = m.Replicas
	}
	for k, s := range subsets {
		share := subsetShare{name: text(s, "name"), named: namesClusters(s), set: namesClusters(s),
			replicas: make([]int64, len(f.members))}
		for c, m := range f.members {
			if share.named {
				share.replicas[c] = m.Subsets[share.name]
				left[c] -= share.replicas[c]
			}
		}
		shares[k] = share
	}
	for c, m := range f.members {
		if left[c] < 0 {
			return nil, nil, fmt.Errorf("cluster %q is assigned %d replicas, but its subsets add up to %d more", m.Cluster,
				m.Replicas, -left[c])
		}
	}
	return shares, left, nil
}

// divideSubsets divides the replicas of the subsets that name no clusters, and the pods of each that a manual update
// keeps old.
func (f *fleet) divideSubsets(subsets []map[string]any, shares []subsetShare, left []int64) error {
	total := f.replicas()
	if asked := number(f.Template.Object, "spec", "replicas"); asked > 0 && NamesClusters(f.Template) {
		total = asked // subsets of clusters that do not exist have no replicas here
	}
	wanted, set, err := subsetReplicas(f.Template, subsets, total)
	if err != nil {
		return err
	}
	open := false
	for k := range shares {
		if shares[k].named {
			wanted[k] = 0
			continue
		}
		shares[k].set = set[k]
		open = open || !set[k]
	}
	free := sum(left)
	if n := sum(wanted); n > free || n > 0 && n < free && !open {
		seats := make([]Seat, len(wanted))
		for k, n := range wanted {
			seats[k] = Seat{Weight: n}
			if n > 0 {
				seats[k].Cap = free
			}
		}
		wanted = Split(free, seats)
	}
	cells := Matrix(left, append(wanted, free-sum(wanted)), f.subsetsBefore(subsets, "replicas"))
	for k := range shares {
		if !shares[k].named {
			shares[k].replicas = column(cells, k)
		}
	}
	return f.keepOldPods(shares, column(cells, len(shares)))
}

// boundSubsets divides the minReplicas and maxReplicas of the subsets that name no clusters. The minReplicas of a
// cluster add up to at most its part of left.
func (f *fleet) boundSubsets(subsets []map[string]any, shares []subsetShare, left []int64) error {
	total, free := f.replicas(), sum(left)
	least := make([]int64, len(subsets), len(subsets)+1)
	for k, s := range subsets {
		if shares[k].named {
			continue
		}
		var err error
		if least[k], _, err = subsetBound(s, "minReplicas", total); err != nil {
			return err
		}
		most, limited, err := subsetBound(s, "maxReplicas", total)
		if err != nil {
			return err
		}
		if limited {
			shares[k].most = proportional(most, left)
		}
	}
	rest := free - sum(least)
	if rest < 0 {
		return fmt.Errorf("the minReplicas of all subsets add up to %d more than the %d replicas", -rest, free)
	}
	cells := Matrix(left, append(least, rest), f.subsetsBefore(subsets, "minReplicas"))
	for k, s := range subsets {
		share := &shares[k]
		if !share.named && s["minReplicas"] != nil {
			share.least = column(cells, k)
		}
		for c := range share.most {
			share.most[c] = max(share.most[c], cells[c][k])
		}
	}
	return nil
}

// keepOldPods divides the pods of each subset that a manual update keeps old. rest are the replicas of each cluster
// that belong to subsets without replicas.
func (f *fleet) keepOldPods(shares []subsetShare, rest []int64) error {
	partitions := object(f.Template.Object, "spec", "updateStrategy", "manualUpdate", "partitions")
	for k := range shares {
		share := &shares[k]
		if partitions[share.name] == nil {
			continue
		}
		kept, err := KeptOld(partitions[share.name], 1<<31-1, Up)
		if err != nil {
			return fmt.Errorf("the partition of subset %q: %w", share.name, err)
		}
		seats, all := make([]Seat, len(f.members)), int64(0)
		for c, m := range f.members {
			pods := share.replicas[c]
			if !share.set {
				pods = unsetReplicas(m, shares, k, rest[c])
			}
			seats[c] = Seat{Weight: pods, Cap: pods, Floor: subsetFloor(m, share.name, pods)}
			all += pods
		}
		share.kept = make([]int64, len(f.members))
		for c, released := range Split(max(0, all-kept), seats) {
			share.kept[c] = seats[c].Cap - released
		}
	}
	return nil
}

// withSubsets returns the manifest of m with its part of the subsets. c is the index of m in the shares.
func withSubsets(m *member, shares []subsetShare, c int) (*unstructured.Unstructured, error) {
	manifest := m.Base.DeepCopy()
	if err := unstructured.SetNestedField(manifest.Object, m.Replicas, "spec", "replicas"); err != nil {
		return nil, err
	}
	var written []any
	for k, s := range subsetsOf(manifest) {
		share := shares[k]
		partition := []string{"spec", "updateStrategy", "manualUpdate", "partitions", share.name}
		if _, here := m.Subsets[share.name]; share.named && !here {
			unstructured.RemoveNestedField(manifest.Object, partition...)
			continue
		}
		if share.set {
			s["replicas"] = share.replicas[c]
		}
		if share.named {
			delete(s, "minReplicas")
			delete(s, "maxReplicas")
		}
		if share.least != nil {
			s["minReplicas"] = share.least[c]
		}
		if share.most != nil {
			s["maxReplicas"] = share.most[c]
		}
		if share.kept != nil {
			if err := unstructured.SetNestedField(manifest.Object, share.kept[c], partition...); err != nil {
				return nil, err
			}
		}
		written = append(written, s)
	}
	return manifest, unstructured.SetNestedField(manifest.Object, written, "spec", "topology", "subsets")
}

func (f *fleet) replicas() (total int64) {
	for _, m := range f.members {
		total += m.Replicas
	}
	return total
}

func column(cells [][]int64, k int) []int64 {
	out := make([]int64, len(cells))
	for c := range cells {
		out[c] = cells[c][k]
	}
	return out
}

// subsetBound resolves minReplicas or maxReplicas of a subset. set is false if the subset does not have the field.
func subsetBound(subset map[string]any, name string, total int64) (n int64, set bool, err error) {
	v := subset[name]
	if v == nil {
		return 0, false, nil
	}
	if n, err = Resolve(v, total, HalfUp); err != nil {
		return 0, false, fmt.Errorf("%s of subset %q: %w", name, text(subset, "name"), err)
	}
	return n, true, nil
}

// subsetReplicas returns the replicas of each subset in all clusters, 0 if they are not set.
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
			// Weights are whole numbers: keep six decimals of the percentage.
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
		// The clusters have fewer replicas than the template. Each subset gets its part of them.
		return proportional(total, wanted), set, nil
	default:
		// The rounded percentages do not add up to the total: divide what the numbers leave by percentage.
		for k, share := range Split(total-numbers, percent) {
			if percent[k].Cap > 0 {
				wanted[k] = share
			}
		}
		return wanted, set, nil
	}
}

// subsetsBefore returns the field name of each subset in the Works, by member and subset. A member without a Work has a
// nil row.
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

func subsetsOf(u *unstructured.Unstructured) []map[string]any {
	return objects(u.Object, "spec", "topology", "subsets")
}

func subsetOf(u *unstructured.Unstructured, name string) map[string]any {
	for _, s := range subsetsOf(u) {
		if text(s, "name") == name {
			return s
		}
	}
	return nil
}

// unsetReplicas returns how many replicas a subset without replicas has in a cluster: as many as reported, or an equal
// part of rest. k is the index of the subset.
func unsetReplicas(m *member, shares []subsetShare, k int, rest int64) int64 {
	for _, s := range objects(m.status, "subsetStatuses") {
		if m.fresh && text(s, "name") == shares[k].name {
			return min(number(s, "replicas"), rest)
		}
	}
	var sharing, before int64
	for i := range shares {
		if !shares[i].set {
			sharing++
			if i < k {
				before++
			}
		}
	}
	return rest/sharing + int64(b2i(before < rest%sharing))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// subsetFloor returns how many pods of a subset the Work already lets be new. It is 0 if the pod template has changed.
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
