// Package facts reads what the decisions of the core follow from. The controllers read from their caches; why, the
// console and the command line read with the rights of a user. So each of them decides from the same state.
package facts

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/scope"
)

// Clusters lists the registered clusters by name. They are not copies: only read them.
func Clusters(ctx context.Context, r client.Reader) (map[string]*clusterv1alpha1.Cluster, error) {
	list, err := ClusterList(ctx, r)
	all := map[string]*clusterv1alpha1.Cluster{}
	for _, c := range list {
		all[c.Name] = c
	}
	return all, err
}

// ClusterList lists the registered clusters. They are not copies: only read them.
func ClusterList(ctx context.Context, r client.Reader) ([]*clusterv1alpha1.Cluster, error) {
	var list clusterv1alpha1.ClusterList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	all := make([]*clusterv1alpha1.Cluster, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// Observed reads the state on which the claim of a template depends. policies are any policies, binding is the
// template's, nil for none. An override policy that the user may not read counts as there, a MultiClusterService as
// missing.
func Observed(ctx context.Context, r client.Reader, template *unstructured.Unstructured, binding workv1alpha2.Binding,
	policies []policyv1alpha1.Propagation) (o propagate.Observed, err error) {
	overrides, t := map[types.NamespacedName]bool{}, match.TemplateOf(template)
	claim, _ := propagate.Claimed(template)
	for _, p := range policies {
		if propagate.Selected(p, t) == match.None && propagate.ClaimOf(p) != claim {
			continue // it claims nothing here, so what it depends on does not matter
		}
		for _, name := range p.PropagationSpec().DependentOverrides {
			key := types.NamespacedName{Namespace: p.GetNamespace(), Name: name}
			if _, known := overrides[key]; known {
				continue
			}
			_, err := scope.Overrides.Get(ctx, r, key)
			if overrides[key] = err == nil || apierrors.IsForbidden(err); !overrides[key] && !apierrors.IsNotFound(err) {
				return o, fmt.Errorf("get override policy %s: %w", key, err)
			}
		}
	}
	o = propagate.Observed{Template: template, Binding: binding, Policies: policies,
		OverrideExists: func(key types.NamespacedName) bool { return overrides[key] }}
	o.Exposed, err = exposed(ctx, r, template)
	return o, err
}

// exposed reports whether a MultiClusterService places the template, a Service. It does not rely on the mark on the
// Service: a new Service has none yet, and a user may have written the Service without it. A policy that claimed the
// Service then would move it.
func exposed(ctx context.Context, r client.Reader, template *unstructured.Unstructured) (bool, error) {
	if template.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Service"}) {
		return false, nil
	}
	s, key := &networkingv1alpha1.MultiClusterService{}, client.ObjectKeyFromObject(template)
	err := r.Get(ctx, key, s, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get MultiClusterService %s: %w", key, err)
	}
	return service.Exposes(s), nil
}

// Template reads the template of a binding.
type Template func(ctx context.Context, b workv1alpha2.Binding) (*unstructured.Unstructured, error)

// Templates reads templates with r.
func Templates(r client.Reader) Template {
	return func(ctx context.Context, b workv1alpha2.Binding) (*unstructured.Unstructured, error) {
		of, template := b.BindingSpec().Resource, &unstructured.Unstructured{}
		template.SetAPIVersion(of.APIVersion)
		template.SetKind(of.Kind)
		if err := r.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, template); err != nil {
			return nil, fmt.Errorf("get the template %s %s: %w", of.Kind, of.Name, err)
		}
		return template, nil
	}
}

// FailoverInput reads what a failover plan for the bindings follows from. clusters are all Clusters, also those that
// are being deleted. recent are the times of the evictions of the last minute that the bindings do not record any more;
// only the hub itself knows them.
func FailoverInput(ctx context.Context, r client.Reader, template Template, o failover.Options,
	fleet schedule.Snapshot, room schedule.Room, clusters []*clusterv1alpha1.Cluster, bindings []workv1alpha2.Binding,
	recent []time.Time) failover.Input {
	policies := map[propagate.PolicyClaim]map[string]string{}
	in := failover.Input{Options: o, Fleet: fleet, Room: room, Registered: map[string]bool{}, Bindings: bindings,
		Recent: recent, Facts: func(b workv1alpha2.Binding) (failover.Facts, error) {
			of, err := template(ctx, b)
			if err != nil {
				return failover.Facts{}, err
			}
			claim, claimed := propagate.Claimed(b)
			annotations, read := policies[claim]
			if claimed && !read {
				if annotations, err = annotationsOf(ctx, r, claim); err != nil {
					return failover.Facts{}, err
				}
				policies[claim] = annotations
			}
			return failover.FactsOf(b, of, annotations), nil
		},
		// A Work that cannot be read may exist.
		HasWork: func(b workv1alpha2.Binding, cluster string) bool {
			work, err := scope.WorkFor(ctx, r, b, cluster, client.UnsafeDisableDeepCopy)
			return work != nil || err != nil
		},
	}
	for _, c := range clusters {
		in.Registered[c.Name] = true
	}
	return in
}

// annotationsOf returns the annotations of the policy of a claim; none if there is no such policy, or if the user may
// not read it.
func annotationsOf(ctx context.Context, r client.Reader, claim propagate.PolicyClaim) (map[string]string, error) {
	policy, err := scope.Propagations.Get(ctx, r, claim.NamespacedName)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", claim.NamespacedName, err)
	}
	return policy.GetAnnotations(), nil
}
