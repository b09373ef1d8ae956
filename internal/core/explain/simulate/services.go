package simulate

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/service"
)

var (
	serviceKind         = schema.GroupKind{Kind: "Service"}
	multiClusterService = networkingv1alpha1.GroupVersion.WithKind(networkingv1alpha1.MultiClusterServiceKind).GroupKind()
)

// expose places a Service that a MultiClusterService exposes, as controller/service does.
func (s *state) expose(r ref) (exposed bool, err error) {
	recorded := s.templates[ref{multiClusterService, r.Namespace, r.Name}]
	if r.GroupKind != serviceKind || recorded == nil {
		return false, nil
	}
	owner := &networkingv1alpha1.MultiClusterService{}
	if err := decode(recorded, owner, true); err != nil || !service.Exposes(owner) {
		return false, err
	}
	if claimed := service.Claim(s.templates[r], owner); claimed != nil {
		s.templates[r] = claimed
	}
	existing, _, _ := s.bindingFor(r)
	clusters := service.ClustersOf(owner, sortedKeys(s.clusters))
	b, err := service.Binding(s.templates[r], owner, clusters, existing, "simulated "+r.String())
	switch {
	case errors.Is(err, propagate.ErrOutlived):
		return true, nil // that binding is deleted first
	case err != nil:
		return true, err
	}
	return true, s.bind(r, b)
}
