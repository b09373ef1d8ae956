package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/validate"
)

func (o *objects) mutateCluster(ctx context.Context, r request) error {
	if err := r.normalise(ctx); err != nil {
		return err
	}
	c := &clusterv1alpha1.Cluster{}
	if into(r.obj, c) != nil {
		return nil
	}
	before := c.DeepCopy()
	if r.old == nil && len(c.Spec.ResourceModels) == 0 {
		c.Spec.ResourceModels = validate.DefaultGrades()
	}
	validate.DefaultCluster(c, metav1.Now())
	if equality.Semantic.DeepEqual(before.Spec, c.Spec) {
		return nil
	}
	return r.setSpec(&before.Spec, &c.Spec)
}

func (o *objects) validateCluster(_ context.Context, r request) error {
	c := &clusterv1alpha1.Cluster{}
	if err := into(r.obj, c); err != nil {
		return r.invalid(err)
	}
	return r.refuse(validate.Cluster(c))
}
