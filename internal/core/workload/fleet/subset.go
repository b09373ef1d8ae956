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

// subsetShare is what each cluster gets of a subset. Numbers by cluster are in the order of the members.
type subsetShare struct {
	name string
	// named is true if the subset names its clusters; set if replicas is written.
	named, set bool
	// replicas, least and most are the written replicas, minReplicas and maxReplicas. kept is how many pods a manual
	// update keeps old. The last three are nil if the template does not set them.
	replicas, least, most, kept []int64
}

// unitedDeployment divides the subsets among the clusters: per cluster they add up to its replicas, in all to the
// template's. It writes numbers instead of percentages, because members reject a rounded half of three.
//
// Subsets that name their clusters are in these alone, with what the placement gives them there; the others share what
// is left of each cluster's replicas.
func (f *fleet) unitedDeployment() error {
	subsets := subsetsOf(f.Template)
	if len(subsets) == 0 || len(f.members) < 2 && !NamesClusters(f.Template) {
		return nil // one cluster does the arithmetic itself
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

// divideSubsets divides the replicas of the subsets that name no clusters, and what a manual update keeps old of each.
func (f *fleet) divideSubsets(subsets []map[string]any, shares []subsetShare, left []int64) error {
	total := f.replicas()
	if asked := number(f.Template.Object, "spec", "replicas"); asked > 0 && NamesClusters(f.Template) {
		total = asked // one that names a cluster that is not there may be missing
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

// boundSubsets divides the minReplicas and maxReplicas of the subsets that name no clusters. The minReplicas in a
// cluster are together no more than what it has left.
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

// keepOldPods divides what a manual update keeps old in each subset. rest are the pods of each cluster that no subset
// asks for.
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

// withSubsets returns the manifest of m, which is the member of index c, with its part of the subsets.
func withSubsets(m *member, shares []subsetShare, c int) (*unstructured.Unstructured, error) {
	manifest := m.Base.DeepCopy()
	if err := setField(manifest, m.Replicas, "spec", "replicas"); err != nil {
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
			if err := setField(manifest, share.kept[c], partition...); err != nil {
				return nil, err
			}
		}
		written = append(written, s)
	}
	return manifest, setField(manifest, written, "spec", "topology", "subsets")
}

// replicas of all members.
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

// subsetBound resolves the minReplicas or maxReplicas of a subset; not set if the subset has none.
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

// subsetReplicas returns the replicas of each subset over all clusters, 0 where it is not set.
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

// subsetsBefore returns a number of each subset from the Works, in the order of subsets; nil for a cluster without a
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

// unsetReplicas is how many of the pods that no subset asks for the subset of index k has in a cluster: as reported, or
// evenly.
func unsetReplicas(m *member, shares []subsetShare, k int, rest int64) int64 {
	for _, s := range objects(m.status, "subsetStatuses") {
		if m.fresh && text(s, "name") == shares[k].name {
			return min(number(s, "replicas"), rest)
		}
	}
	var of, before int64
	for i := range shares {
		if !shares[i].set {
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

// subsetFloor returns the pods of a subset that were let be new already, of the same template.
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
