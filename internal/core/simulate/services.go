package simulate

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/service"
)

var (
	serviceKind         = schema.GroupKind{Kind: "Service"}
	multiClusterService = networkingv1alpha1.GroupVersion.WithKind(networkingv1alpha1.MultiClusterServiceKind).GroupKind()
)

// expose places a Service that a MultiClusterService exposes, as controller/service does, and releases one that it no
// longer exposes. A Service stays as it is if the fleet does not show its MultiClusterService.
func (s *state) expose(r ref) (exposed bool, err error) {
	recorded := s.templates[ref{multiClusterService, r.Namespace, r.Name}]
	if r.GroupKind != serviceKind || recorded == nil {
		return false, nil
	}
	owner := &networkingv1alpha1.MultiClusterService{}
	if err := decode(recorded, owner, true); err != nil {
		return false, err
	}
	template := s.templates[r]
	existing, _, key := s.bindingFor(r)
	if !service.Exposes(owner) {
		me := service.Owner{Kind: networkingv1alpha1.MultiClusterServiceKind, Namespace: r.Namespace, Name: r.Name}
		if service.Holds(me, template) {
			s.templates[r] = template.DeepCopy()
			service.Release(s.templates[r])
		}
		if existing != nil && service.Holds(me, existing) {
			b := existing.DeepCopyObject().(workv1alpha2.Binding)
			service.Release(b)
			s.put(key, b)
		}
		return false, nil
	}
	if claimed := service.Claim(template, owner); claimed != nil {
		s.templates[r] = claimed
	}
	b, err := service.Binding(s.templates[r], owner, service.ClustersOf(owner, sortedKeys(s.clusters)), existing, "simulated "+r.String())
	switch {
	case errors.Is(err, propagate.ErrOutlived):
		return true, nil // that binding is deleted first
	case err != nil:
		return true, err
	}
	return true, s.bind(r, b)
}
