package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
)

// The kinds that are no templates and have their own explanation.
var (
	propagationKinds = map[string]bool{"PropagationPolicy": true, "ClusterPropagationPolicy": true}
	overrideKinds    = map[string]bool{"OverridePolicy": true, "ClusterOverridePolicy": true}
)

// steers explains a policy, a cluster or a ManifestWork; nil for other kinds.
func steers(ctx context.Context, r client.Reader, mapper meta.RESTMapper, kind schema.GroupVersionKind,
	key types.NamespacedName, q Query) (Explained, error) {
	switch {
	case kind.Group == clusterv1alpha1.GroupVersion.Group && kind.Kind == "Cluster":
		return member(ctx, r, key.Name, q)
	case kind.Group == policyv1alpha1.GroupVersion.Group && (propagationKinds[kind.Kind] || overrideKinds[kind.Kind]):
		return policy(ctx, r, mapper, kind.Kind, key, q.Scheduler)
	case kind.Group == ocmv1.GroupVersion.Group && kind.Kind == "ManifestWork":
		return manifestWork(ctx, r, key)
	}
	return nil, nil
}

// policy reads the objects related to a policy.
func policy(ctx context.Context, r client.Reader, mapper meta.RESTMapper, kind string, key types.NamespacedName,
	s Scheduler) (Explained, error) {
	f := why.PolicyFacts{Scheduler: s.Settings, Unknown: map[schema.GroupKind][]schema.GroupVersionKind{},
		Unread: map[schema.GroupKind]bool{}}
	may := &permitted{Reader: r}
	var selectors []policyv1alpha1.ResourceSelector
	var err error
	// A policy of a namespace claims nothing elsewhere.
	its := []client.ListOption{client.InNamespace(key.Namespace)}
	if propagationKinds[kind] {
		if f.Propagation, err = scope.Propagations.Get(ctx, r, key); err != nil {
			return nil, fmt.Errorf("get %s %s: %w", kind, key, err)
		}
		selectors = f.Propagation.PropagationSpec().ResourceSelectors
		label := policyv1alpha1.PropagationPolicyPermanentIDLabel
		if key.Namespace == "" {
			label = policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
		}
		its = append(its, client.MatchingLabels{label: propagate.ID(f.Propagation)})
	} else {
		if f.Override, err = scope.Overrides.Get(ctx, r, key); err != nil {
			return nil, fmt.Errorf("get %s %s: %w", kind, key, err)
		}
		selectors = f.Override.OverrideSpec().ResourceSelectors
	}
	if f.Policies, err = scope.Propagations.Over(ctx, may, key.Namespace); err != nil {
		return nil, fmt.Errorf("list propagation policies: %w", err)
	}
	if f.Bindings, err = scope.Bindings.List(ctx, may, its...); err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	if f.Clusters, err = facts.ClusterList(ctx, may); err != nil {
		return nil, err
	}
	if f.Templates, err = selectable(ctx, may, mapper, selectors, key.Namespace, f); err != nil {
		return nil, err
	}
	f.Missing = may.missing
	for _, alike := range f.Unknown {
		if len(alike) == 0 {
			f.Kinds = kindsServed(ctx, r, mapper)
			break
		}
	}
	return why.ExplainPolicy(f), nil
}

// selectable returns the objects of the kinds in selectors, in all namespaces, or in that of the policy if the user may
// not list all. It adds to f.Unknown the kinds that the hub does not serve, each with the kinds of its name in other
// groups, and to f.Unread those that the user may not list.
func selectable(ctx context.Context, may *permitted, mapper meta.RESTMapper,
	selectors []policyv1alpha1.ResourceSelector, namespace string, f why.PolicyFacts) ([]why.Selectable, error) {
	var all []why.Selectable
	seen := map[schema.GroupKind]bool{}
	for _, s := range selectors {
		gk := match.GroupKind(s.APIVersion, s.Kind)
		if seen[gk] {
			continue
		}
		seen[gk] = true
		m, err := mapper.RESTMapping(gk)
		if meta.IsNoMatchError(err) {
			f.Unknown[gk] = nil
			plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion(""))
			alike, _ := mapper.KindsFor(schema.GroupVersionResource{Resource: plural.Resource}) // no match is none
			groups := map[string]bool{}
			for _, k := range alike {
				if !groups[k.Group] {
					groups[k.Group], f.Unknown[gk] = true, append(f.Unknown[gk], k)
				}
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask the hub for the kind %s: %w", gk, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(m.GroupVersionKind)
		err = may.Reader.List(ctx, list)
		if apierrors.IsForbidden(err) {
			lacked := len(may.missing)
			err = may.List(ctx, list, client.InNamespace(namespace))
			if len(may.missing) > lacked {
				f.Unread[gk] = true
			}
		}
		if apierrors.IsNotFound(err) {
			continue // its definition went meanwhile
		} else if err != nil {
			return nil, fmt.Errorf("list %s: %w", m.Resource.GroupResource(), err)
		}
		for i := range list.Items {
			all = append(all, why.Selectable{GroupVersionKind: m.GroupVersionKind, Object: &list.Items[i]})
		}
	}
	return all, nil
}

// kindsServed returns the kinds that a policy may name, sorted: those of Kubernetes, and those that are defined on the
// hub if the user may list the definitions.
func kindsServed(ctx context.Context, r client.Reader, mapper meta.RESTMapper) []validate.NamedKind {
	var kinds []validate.NamedKind
	add := func(gvk schema.GroupVersionKind) {
		version, kind := gvk.ToAPIVersionAndKind()
		kinds = append(kinds, validate.NamedKind{APIVersion: version, Kind: kind})
	}
	for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
		m, err := mapper.RESTMapping(gvk.GroupKind())
		if err == nil && m.GroupVersionKind == gvk && propagate.Propagable(gvk.GroupKind()) {
			add(gvk)
		}
	}
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(definition.GVK.GroupVersion().WithKind(definition.GVK.Kind + "List"))
	if err := r.List(ctx, definitions); err == nil {
		for i := range definitions.Items {
			resource := schema.ParseGroupResource(definitions.Items[i].Name)
			if gvk, err := mapper.KindFor(resource.WithVersion("")); err == nil {
				add(gvk)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b validate.NamedKind) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.APIVersion, b.APIVersion))
	})
	return kinds
}

// member reads the objects related to a cluster.
func member(ctx context.Context, r client.Reader, name string, q Query) (Explained, error) {
	f := why.MemberFacts{Cluster: &clusterv1alpha1.Cluster{}, Scheduler: q.Scheduler.Settings}
	if err := r.Get(ctx, types.NamespacedName{Name: name}, f.Cluster); err != nil {
		return nil, fmt.Errorf("get cluster %s: %w", name, err)
	}
	may := &permitted{Reader: r}
	var err error
	if f.Bindings, err = scope.Bindings.List(ctx, may); err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	if q.Troubled != nil {
		f.Troubled = state.TroubledOf(q.Troubled(ctx))
	}
	var works ocmv1.ManifestWorkList
	if err := may.List(ctx, &works, client.InNamespace(name)); err != nil {
		return nil, fmt.Errorf("list the ManifestWorks of cluster %q: %w", name, err)
	}
	var remedies remedyv1alpha1.RemedyList
	if len(f.Cluster.Status.RemedyActions) > 0 {
		if err := may.List(ctx, &remedies); err != nil {
			return nil, fmt.Errorf("list Remedies: %w", err)
		}
	}
	f.ManifestWorks, f.Remedies, f.Missing = works.Items, remedies.Items, may.missing
	if q.Orphans != nil && membership.IsReady(f.Cluster) {
		f.Orphans = q.Orphans(ctx, name)
	}
	return why.ExplainMember(f), nil
}

// manifestWork reads the objects related to a ManifestWork.
func manifestWork(ctx context.Context, r client.Reader, key types.NamespacedName) (Explained, error) {
	f := why.ManifestWorkFacts{ManifestWork: &ocmv1.ManifestWork{}}
	if err := r.Get(ctx, key, f.ManifestWork); err != nil {
		return nil, fmt.Errorf("get ManifestWork %s: %w", key, err)
	}
	var works workv1alpha1.WorkList
	if err := r.List(ctx, &works, client.InNamespace(names.ExecutionSpace(key.Namespace))); err != nil {
		return nil, fmt.Errorf("list the works of cluster %q: %w", key.Namespace, err)
	}
	f.Works = works.Items
	var err error
	if f.Clusters, err = facts.ClusterList(ctx, r); err != nil {
		return nil, err
	}
	return why.ExplainManifestWork(f), nil
}
