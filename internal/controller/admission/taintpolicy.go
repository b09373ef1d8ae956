package admission

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/scope"
)

func (o *objects) validateClusterTaintPolicy(ctx context.Context, r request,
	p, _ *policyv1alpha1.ClusterTaintPolicy) error {
	if err := r.refuse(validate.ClusterTaintPolicy(p, o.NoExecuteTaintPolicies)); err != nil {
		return err
	}
	if r.keepsSpec() {
		return nil
	}
	var fleet clusterv1alpha1.ClusterList
	if list(ctx, o.client.Resource(clusters), metav1.ListOptions{ResourceVersion: "0"}, &fleet) == nil {
		warn(ctx, validate.ClusterTaintPolicyAdvice(p, scope.Pointers(fleet.Items)), nil)
	}
	return nil
}
