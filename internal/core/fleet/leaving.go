package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// Leaving says where replicas go first when the template asks for so many fewer, by cluster; where the others go is the
// scheduler's to divide. A CloneSet's podsToDelete go in their own clusters, in the order in which they are named, as far as
// they are found: clustersOf are the clusters that have such a pod. The highest of unique ordinals go, wherever they are, if
// ScaleDownAnnotation says so; existing are the Works that stand, by cluster.
func Leaving(template *unstructured.Unstructured, fewer int64, existing map[string]*workv1alpha1.Work, clustersOf func(pod string) []string) (map[string]int32, error) {
	if fewer <= 0 {
		return nil, nil
	}
	switch template.GroupVersionKind().GroupKind() {
	case cloneSetKind:
		return leavingByName(template, fewer, clustersOf), nil
	case statefulSetKind, nativeStatefulSetKind:
		return leavingByOrdinal(template, fewer, existing)
	}
	return nil, nil
}

// LeavesByOrdinal says whether Leaving needs the Works: the highest ordinals shall go.
func LeavesByOrdinal(template *unstructured.Unstructured) bool {
	// What is wrong with annotations is said where Works are made.
	o, err := optionsOf(template.GetAnnotations())
	return err == nil && o.uniqueOrdinals && o.highestFirst
}

func leavingByName(template *unstructured.Unstructured, fewer int64, clustersOf func(pod string) []string) map[string]int32 {
	leaving := map[string]int32{}
	seen := map[string]bool{}
	for _, name := range texts(list(template.Object, podsToDeletePath...)) {
		if fewer == 0 {
			break
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		// One that is nowhere is gone already; one that is in two clusters is sent to neither.
		if in := clustersOf(name); len(in) == 1 {
			leaving[in[0]]++
			fewer--
		}
	}
	return leaving
}

func leavingByOrdinal(template *unstructured.Unstructured, fewer int64, existing map[string]*workv1alpha1.Work) (map[string]int32, error) {
	if !LeavesByOrdinal(template) {
		return nil, nil
	}
	type pod struct {
		ordinal int64
		cluster string
	}
	var pods []pod
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
			pods = append(pods, pod{n, cluster})
		}
	}
	slices.SortFunc(pods, func(a, b pod) int { return int(b.ordinal - a.ordinal) })
	leaving := map[string]int32{}
	for _, p := range pods[:min(fewer, int64(len(pods)))] {
		leaving[p.cluster]++
	}
	return leaving, nil
}

// runs are the ordinals that a StatefulSet of this manifest runs: those from ordinals.start on that are not reserved. A list
// that cannot be read, as one of an override, reserves nothing.
func runs(manifest map[string]any) ([]int64, error) {
	var reserved ordinals
	if all, err := parseOrdinals(list(manifest, "spec", "reserveOrdinals")); err == nil {
		reserved = all
	}
	if start := number(manifest, "spec", "ordinals", "start"); start > 0 {
		reserved = reserved.union(ordinals{{0, start - 1}})
	}
	return firstOrdinals(number(manifest, "spec", "replicas"), reserved)
}
