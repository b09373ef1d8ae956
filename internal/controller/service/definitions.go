package service

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/crds"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/scope"
)

// definitions are the CRDs of the kinds that a member may lack.
var definitions = sync.OnceValues(func() (map[schema.GroupKind]*unstructured.Unstructured, error) {
	all, err := crds.Definitions()
	of := map[schema.GroupKind]*unstructured.Unstructured{}
	for _, crd := range all {
		if crd.Spec.Group != multiclusterv1alpha1.GroupVersion.Group {
			continue
		}
		for i := range crd.Spec.Versions { // members store the newest version, as with the definitions of SIG Multicluster
			crd.Spec.Versions[i].Storage = i == len(crd.Spec.Versions)-1
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return nil, fmt.Errorf("write definition %s: %w", crd.Name, err)
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetAPIVersion("apiextensions.k8s.io/v1")
		u.SetKind("CustomResourceDefinition")
		of[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = u
	}
	return of, err
})

// define sends the CRD of a kind to a cluster that does not serve it. It never changes an existing CRD and never
// deletes one, because other objects of the kind may exist by then.
func (x *exchanges) define(ctx context.Context, kind schema.GroupKind, cluster string) error {
	c := &clusterv1alpha1.Cluster{}
	if err := x.client.Get(ctx, client.ObjectKey{Name: cluster}, c, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	all, err := definitions()
	if err != nil {
		return err
	}
	crd := all[kind]
	standing, err := scope.WorkOf(ctx, x.client, cluster, names.Work(crd.GetKind(), crd.GetName(), ""),
		identity.FromManifest(crd), client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	if standing != nil {
		if _, bound := scope.BindingOf(standing); bound {
			return nil // a policy propagates the CRD there
		}
	} else if len(c.Status.APIEnablements) == 0 || slices.ContainsFunc(importVersions,
		func(version string) bool { return c.Status.Serves(version, kind.Kind) }) {
		return nil // the cluster serves the kind, or its API list is not known yet, which causes an event later
	}
	want, err := service.Definition(cluster, crd, standing, newID)
	if err != nil {
		return err
	}
	return x.put(ctx, standing, want)
}
