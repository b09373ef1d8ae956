package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/validate"
)

func newPropagation(kind string) policyv1alpha1.Propagation {
	if kind == "ClusterPropagationPolicy" {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}

func (o *objects) mutatePropagation(ctx context.Context, r request) error {
	if err := r.normalise(ctx); err != nil {
		return err
	}
	p := newPropagation(r.GetKind().Kind)
	if into(r.obj, p) != nil {
		return nil
	}
	before := p.DeepCopyObject().(policyv1alpha1.Propagation)
	if p.GetNamespace() != "" {
		if err := o.authorizeClusterScoped(ctx, r, p); err != nil {
			return err
		}
	}
	validate.DefaultPropagation(p, o.clusterScoped)
	if !equality.Semantic.DeepEqual(before.PropagationSpec(), p.PropagationSpec()) {
		if err := r.setSpec(before.PropagationSpec(), p.PropagationSpec()); err != nil {
			return err
		}
	}
	if r.creating() {
		validate.Identify(p, string(uuid.NewUUID()))
		r.obj.SetLabels(p.GetLabels())
		r.obj.SetFinalizers(p.GetFinalizers())
	}
	return nil
}

// validatePropagation judges a policy. One that passes is expected by the claims of templates.
func (o *objects) validatePropagation(_ context.Context, r request) error {
	p := newPropagation(r.GetKind().Kind)
	if err := into(r.obj, p); err != nil {
		return r.invalid(err)
	}
	var old policyv1alpha1.Propagation
	if r.old != nil {
		old = newPropagation(r.GetKind().Kind)
		if err := into(r.old, old); err != nil {
			return r.invalid(err)
		}
	}
	if err := r.refuse(validate.Propagation(p, old)); err != nil {
		return err
	}
	if !r.IsDryRun() && (old == nil || !equality.Semantic.DeepEqual(old.PropagationSpec(), p.PropagationSpec())) {
		o.index.expected.expect(p)
	}
	return nil
}

// authorizeClusterScoped lets a namespaced policy select cluster-scoped templates for those who might as well write a
// ClusterPropagationPolicy, and refuses it to others. Such a selector is stored without a namespace, which no other
// selector of a namespaced policy is: that is how the approval is known later on.
func (o *objects) authorizeClusterScoped(ctx context.Context, r request, p policyv1alpha1.Propagation) error {
	selectors := p.PropagationSpec().ResourceSelectors
	var approved []policyv1alpha1.ResourceSelector
	if r.old != nil {
		old := newPropagation(r.GetKind().Kind)
		if into(r.old, old) == nil {
			approved = old.PropagationSpec().ResourceSelectors
		}
	}
	for i := range selectors {
		s := &selectors[i]
		if !o.clusterScoped(*s) {
			continue
		}
		s.Namespace = ""
		if slices.ContainsFunc(approved, func(a policyv1alpha1.ResourceSelector) bool { return equality.Semantic.DeepEqual(a, *s) }) {
			continue
		}
		decision, _, err := o.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: r.GetUserInfo(), Verb: "create", ResourceRequest: true,
			APIGroup: policyv1alpha1.GroupVersion.Group, APIVersion: policyv1alpha1.GroupVersion.Version, Resource: "clusterpropagationpolicies",
		})
		if decision != authorizer.DecisionAllow {
			return admission.NewForbidden(r, errors.Join(fmt.Errorf("%s is cluster-scoped; use ClusterPropagationPolicy", s.Kind), err))
		}
		warning.AddWarning(ctx, "", fmt.Sprintf(
			"spec.resourceSelectors[%d]: %s is cluster-scoped; selected as by a ClusterPropagationPolicy, which you may create", i, s.Kind))
	}
	return nil
}

// sidecarSet is the cluster-scoped kind that namespaced policies are written for most; it is known even where it is not served yet.
var sidecarSet = schema.GroupKind{Group: "apps.kruise.io", Kind: "SidecarSet"}

// clusterScoped says whether the selector's kind has no namespace. A kind that is not served is taken for a namespaced one.
func (o *objects) clusterScoped(s policyv1alpha1.ResourceSelector) bool {
	gk := propagate.GroupKind(s.APIVersion, s.Kind)
	// Most policies select these, and discovery need not be asked for them.
	if gk.Group == "apps" || gk == (schema.GroupKind{Kind: "ConfigMap"}) || gk == (schema.GroupKind{Kind: "Secret"}) || gk == (schema.GroupKind{Kind: "Service"}) {
		return false
	}
	if gk == sidecarSet {
		return true
	}
	mapping, err := o.mapper.RESTMapping(gk)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}
