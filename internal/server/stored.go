package server

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/crds"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
)

// stored returns how the kinds that the hub installs are stored. A version other than the stored one is only for old
// manifests, so it needs no cache. Most writes are Works and bindings that the hub writes itself, with their defaults
// set.
func stored() (func(schema.GroupVersionKind) apiserver.Stored, error) {
	ours, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	workloads, err := workloadCRDs(func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	how := map[schema.GroupVersionKind]apiserver.Stored{}
	for _, crd := range append(ours, workloads...) {
		for _, version := range crd.Spec.Versions {
			if !version.Storage {
				how[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name,
					Kind: crd.Spec.Names.Kind}] = apiserver.Stored{Uncached: true}
			}
		}
	}
	for _, ours := range []schema.GroupVersionKind{
		workv1alpha1.GroupVersion.WithKind("Work"), workv1alpha2.GroupVersion.WithKind("ResourceBinding"),
		workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"),
	} {
		how[ours] = apiserver.Stored{Trusted: true, Amend: commit.AddStatus}
	}
	// A program that follows a decision may delete what runs in clusters that are not listed.
	how[placementv1beta1.GroupVersion.WithKind("PlacementDecision")] = apiserver.Stored{Amend: commit.AddStatus}
	return func(kind schema.GroupVersionKind) apiserver.Stored { return how[kind] }, nil
}
