package admission

import (
	"context"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
)

func (o *objects) mutateReplicaScheduling(ctx context.Context, r request) error {
	if err := r.normalise(ctx); err != nil {
		return err
	}
	p := &configv1alpha1.ReplicaSchedulingPolicy{}
	if err := into(r.obj, p); err != nil {
		return nil // the schema has the better error
	}
	before := p.DeepCopy()
	validate.DefaultReplicaScheduling(p)
	return r.setSpec(before.Spec, p.Spec)
}
