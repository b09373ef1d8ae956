package admission

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
)

func (o *objects) validateClusterTaintPolicy(ctx context.Context, r request) error {
	p := &policyv1alpha1.ClusterTaintPolicy{}
	if err := into(r.obj, p); err != nil {
		return r.invalid(err)
	}
	if err := r.refuse(validate.ClusterTaintPolicy(p, o.NoExecuteTaintPolicies)); err != nil {
		return err
	}
	if r.keepsSpec() {
		return nil
	}
	list, err := o.client.Resource(clusters).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil // what the fleet is like is only for the advice
	}
	var clusters []*clusterv1alpha1.Cluster
	for i := range list.Items {
		if c := (&clusterv1alpha1.Cluster{}); into(&list.Items[i], c) == nil {
			clusters = append(clusters, c)
		}
	}
	warn(ctx, validate.ClusterTaintPolicyAdvice(p, clusters), nil)
	return nil
}
