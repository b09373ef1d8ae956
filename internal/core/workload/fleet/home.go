package fleet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/kind"
)

// AffinityField is the field of a UnitedDeployment's subset with the affinity of its clusters: a ClusterAffinity, as in
// policies. Only the hub has this field; members do not get it.
const AffinityField = "clusterAffinity"

// Home is a subset that names its clusters.
type Home struct {
	Subset string
	// Replicas in all its clusters.
	Replicas int64
	Affinity policyv1alpha1.ClusterAffinity
}

func namesClusters(subset map[string]any) bool { return subset[AffinityField] != nil }

// NamesClusters reports whether a template has a subset that names its clusters.
func NamesClusters(template *unstructured.Unstructured) bool {
	if !kind.Facts(template).Pods.Subsets {
		return false
	}
	for _, s := range subsetsOf(template) {
		if namesClusters(s) {
			return true
		}
	}
	return false
}

// HasSubset reports whether a UnitedDeployment has a subset of that name.
func HasSubset(u *unstructured.Unstructured, name string) bool { return subsetOf(u, name) != nil }

// Homes returns the subsets of a template that name their clusters, with the replicas of each: the requested number,
// or else OpenKruise's default. rest is true if some subsets name no cluster. The error describes invalid subsets.
func Homes(template *unstructured.Unstructured, replicas int64) (homes []Home, rest bool, err error) {
	if !NamesClusters(template) {
		return nil, true, nil
	}
	subsets := subsetsOf(template)
	shares, set, err := subsetReplicas(template, subsets, replicas)
	if err != nil {
		return nil, false, err
	}
	if err := Fill(subsets, shares, set, replicas-sum(shares)); err != nil {
		return nil, false, err
	}
	seen := map[string]bool{}
	for k, s := range subsets {
		name := text(s, "name")
		if seen[name] {
			return nil, false, fmt.Errorf("two subsets have the name %q", name)
		}
		seen[name] = true
		if !namesClusters(s) {
			rest = true
			continue
		}
		h := Home{Subset: name, Replicas: shares[k]}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object(s, AffinityField), &h.Affinity); err != nil {
			return nil, false, fmt.Errorf("read the %s of subset %q: %w", AffinityField, name, err)
		}
		homes = append(homes, h)
	}
	return homes, rest, nil
}

// Fill divides the remaining replicas among the subsets without replicas, as OpenKruise does: first minReplicas, in
// order, then up to maxReplicas, in order. Subsets without maxReplicas share the rest equally.
func Fill(subsets []map[string]any, shares []int64, set []bool, left int64) error {
	total := left + sum(shares)
	take := func(k int, n int64) {
		n = min(max(n, 0), left)
		shares[k], left = shares[k]+n, left-n
	}
	for k := range subsets {
		n, asked, err := subsetBound(subsets[k], "minReplicas", total)
		if err != nil {
			return err
		}
		if asked && !set[k] {
			take(k, n)
		}
	}
	var open []int
	for k := range subsets {
		n, limited, err := subsetBound(subsets[k], "maxReplicas", total)
		switch {
		case err != nil:
			return err
		case set[k]:
		case limited:
			take(k, n-shares[k])
		default:
			open = append(open, k)
		}
	}
	for i, k := range open {
		rest := int64(len(open) - i)
		take(k, (left+rest-1)/rest)
	}
	return nil
}

// Bare removes, in place, fields that only the hub reads, and the record of sent pods, which only the hub writes.
func Bare(manifest *unstructured.Unstructured) {
	for _, key := range append(HubAnnotations(), wellknown.SentPodsToDeleteAnnotation) {
		unstructured.RemoveNestedField(manifest.Object, "metadata", "annotations", key)
	}
	if kind.Facts(manifest).Pods.Subsets {
		for _, s := range subsetsOf(manifest) {
			delete(s, AffinityField)
		}
	}
}
