package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
)

// Leaving returns the clusters that lose replicas first when the template asks for fewer of them, with the number for
// each cluster. The scheduler divides the rest.
//
// - A CloneSet's podsToDelete are removed from their own clusters, in the order of the list. clustersOf returns the
// clusters that have such a pod; known is false if a cluster that may have it did not respond. unknown are the names
// that block the decision: then no cluster should lose replicas.
// - Unique ordinals that the template newly reserves are removed from the clusters that run them. The highest of all
// ordinals follow if wellknown.OrdinalScaleDownAnnotation requests it.
//
// existing are the Works by cluster.
func Leaving(template *unstructured.Unstructured, fewer int64, existing map[string]*workv1alpha1.Work,
	clustersOf func(pod string) (clusters []string, known bool)) (leaving map[string]int32, unknown []string, err error) {
	if fewer <= 0 {
		return nil, nil, nil
	}
	switch kind.Facts(template).Divides {
	case kind.DividesRolloutAndPods:
		leaving, unknown = leavingByName(template, fewer, clustersOf)
	case kind.DividesRolloutAndOrdinals, kind.DividesOrdinals:
		leaving, err = leavingByOrdinal(template, fewer, existing)
	}
	return leaving, unknown, err
}

// LeavesByOrdinal reports whether Leaving needs the Works: ordinals are unique.
func LeavesByOrdinal(template *unstructured.Unstructured) bool {
	// A wrong annotation is reported where Works are made.
	o, err := optionsOf(template.GetAnnotations())
	return err == nil && o.uniqueOrdinals
}

func leavingByName(template *unstructured.Unstructured, fewer int64,
	clustersOf func(pod string) ([]string, bool)) (leaving map[string]int32, unknown []string) {
	leaving = map[string]int32{}
	for _, name := range withoutRepeats(podsNamed(template)) {
		if fewer == 0 {
			break
		}
		in, known := clustersOf(name)
		switch {
		case len(in) == 1:
			leaving[in[0]]++
			fewer--
		case len(in) == 0 && !known:
			unknown = append(unknown, name)
		}
		// A pod that is nowhere is gone already; a name that two clusters have is sent to neither.
	}
	return leaving, unknown
}

// withoutRepeats returns names without repetitions, each where it comes first.
func withoutRepeats(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func leavingByOrdinal(template *unstructured.Unstructured, fewer int64,
	existing map[string]*workv1alpha1.Work) (map[string]int32, error) {
	o, err := optionsOf(template.GetAnnotations())
	if err != nil || !o.uniqueOrdinals {
		return nil, nil //nolint:nilerr // a wrong annotation is reported where Works are made
	}
	type pod struct {
		ordinal  int64
		reserved bool
		cluster  string
	}
	var pods []pod
	reserved := reservedOrdinals(template.Object)
	for cluster, w := range existing {
		m, err := observe(Member{Cluster: cluster, Work: w})
		if err != nil {
			return nil, err
		}
		if m.before == nil {
			continue
		}
		numbers, err := runs(m.before.Object)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			if reserved.contains(n) || o.highestFirst {
				pods = append(pods, pod{n, reserved.contains(n), cluster})
			}
		}
	}
	slices.SortFunc(pods, func(a, b pod) int {
		if a.reserved != b.reserved {
			if a.reserved {
				return -1
			}
			return 1
		}
		return int(b.ordinal - a.ordinal)
	})
	leaving := map[string]int32{}
	for _, p := range pods[:min(fewer, int64(len(pods)))] {
		leaving[p.cluster]++
	}
	return leaving, nil
}

// runs returns the ordinals that a StatefulSet of this manifest runs: those from ordinals.start on that are not
// reserved.
func runs(manifest map[string]any) ([]int64, error) {
	return firstOrdinals(number(manifest, "spec", "replicas"), reservedOrdinals(manifest))
}

// reservedOrdinals returns the ordinals that a StatefulSet of this manifest does not run. A list that cannot be read,
// such as one of an override, reserves nothing.
func reservedOrdinals(manifest map[string]any) ordinals {
	var reserved ordinals
	if all, err := parseOrdinals(list(manifest, "spec", "reserveOrdinals")); err == nil {
		reserved = all
	}
	if start := number(manifest, "spec", "ordinals", "start"); start > 0 {
		reserved = reserved.union(ordinals{{0, start - 1}})
	}
	return reserved
}
