package server

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/core/hub/roles"
)

// startRoles creates the hub's roles and adds missing rules, as the API server does with Kubernetes' own roles. Rules,
// labels and annotations that users added stay. With the annotation rbac.authorization.kubernetes.io/autoupdate
// "false", nothing changes. A hub whose store is full, or whose webhooks do not respond, starts without them, so that
// it can be repaired.
func (h *Hub) startRoles(ctx context.Context) (func(), error) {
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return nil, fmt.Errorf("create a client for roles: %w", err)
	}
	authenticated, binding := roles.ForAuthenticated()
	for _, role := range append(roles.ClusterRoles(), authenticated) {
		keep := reconciliation.ReconcileRoleOptions{
			Role:    reconciliation.ClusterRoleRuleOwner{ClusterRole: &role},
			Client:  reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()},
			Confirm: true,
		}
		var result *reconciliation.ReconcileClusterRoleResult
		err := retry.OnError(retry.DefaultBackoff, func(err error) bool {
			return ctx.Err() == nil && apierrors.IsConflict(err)
		}, func() (err error) {
			result, err = keep.Run()
			return err
		})
		switch {
		case err != nil:
			klog.ErrorS(err, "the role was not created or updated; the next start retries", "clusterrole", role.Name)
		case result.Protected && len(result.MissingRules) > 0:
			klog.InfoS("some rules are missing from the role and are not added, because of its annotation rbac.authorization.kubernetes.io/autoupdate",
				"clusterrole", role.Name, "missing", result.MissingRules)
		case result.Operation == reconciliation.ReconcileUpdate:
			klog.InfoS("updated a role", "clusterrole", role.Name, "added", result.MissingRules)
		}
	}
	bind := reconciliation.ReconcileRoleBindingOptions{
		RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding},
		Client:      reconciliation.ClusterRoleBindingClientAdapter{Client: client.RbacV1().ClusterRoleBindings()},
		Confirm:     true,
	}
	if _, err := bind.Run(); err != nil {
		klog.ErrorS(err, "the binding was not created or updated; the next start retries", "clusterrolebinding", binding.Name)
	}
	return nil, nil
}
