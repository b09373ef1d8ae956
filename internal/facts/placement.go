package facts

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
)

// Placement returns a Placement with its PlacementDecisions, from a cache. If it does not exist, the result does not
// either.
func Placement(ctx context.Context, c client.Reader, key types.NamespacedName) (rollout.Placement, error) {
	p := rollout.Placement{Placement: &placementv1beta1.Placement{}}
	err := c.Get(ctx, key, p.Placement, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return rollout.Placement{}, nil
	}
	if err != nil {
		return p, fmt.Errorf("read Placement %s: %w", key, err)
	}
	var list placementv1beta1.PlacementDecisionList
	if err := c.List(ctx, &list, client.InNamespace(key.Namespace),
		client.MatchingLabels{placementv1beta1.PlacementLabel: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return p, fmt.Errorf("list the PlacementDecisions of Placement %s: %w", key, err)
	}
	p.Decisions = list.Items
	return p, nil
}
