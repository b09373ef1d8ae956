package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/warning"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/match"
)

// validateRebalancer validates the changes of a WorkloadRebalancer, and warns of kinds that the hub does not serve:
// they may be misspelt.
func (o *objects) validateRebalancer(ctx context.Context, r request,
	rebalancer, _ *appsv1alpha1.WorkloadRebalancer) error {
	scoped := o.scoped()
	if err := r.refuse(validate.Rebalancer(rebalancer, scoped)); err != nil {
		return err
	}
	warned := map[schema.GroupKind]bool{}
	for i, w := range rebalancer.Spec.Workloads {
		gk := match.GroupKind(w.APIVersion, w.Kind)
		if _, known := scoped(gk); !known && !warned[gk] {
			warned[gk] = true
			warning.AddWarning(ctx, "", fmt.Sprintf(
				"spec.workloads[%d]: this hub serves no %s: the result is ReferencedBindingNotFound until it does and a policy propagates the workload", i, gk))
		}
	}
	return nil
}

// scoped reports whether objects of a kind are in namespaces, as far as the hub serves it; each kind is looked up once.
func (o *objects) scoped() func(schema.GroupKind) (namespaced, known bool) {
	scopes := map[schema.GroupKind]meta.RESTScopeName{}
	return func(gk schema.GroupKind) (namespaced, known bool) {
		scope, asked := scopes[gk]
		if !asked {
			if mapping, err := o.mapper.RESTMapping(gk); err == nil {
				scope = mapping.Scope.Name()
			}
			scopes[gk] = scope
		}
		return scope == meta.RESTScopeNameNamespace, scope != ""
	}
}
