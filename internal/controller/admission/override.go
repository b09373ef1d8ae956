package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/override"
)

func newOverride(kind string) policyv1alpha1.Override {
	if kind == "ClusterOverridePolicy" {
		return &policyv1alpha1.ClusterOverridePolicy{}
	}
	return &policyv1alpha1.OverridePolicy{}
}

func (o *objects) mutateOverride(ctx context.Context, r request) error {
	setsReplicas := dialect.SetsReplicas(r.obj)
	if err := r.normalise(ctx); err != nil {
		return err
	}
	policy := newOverride(r.GetKind().Kind)
	if into(r.obj, policy) != nil {
		return nil
	}
	if setsReplicas && r.obj.GetAnnotations()[wellknown.OverrideReplicasAnnotation] != dialect.OverrideReplicasForce {
		if err := r.refuse(o.divided(policy)); err != nil {
			return err
		}
	}
	if r.obj.GetNamespace() == "" {
		return nil
	}
	for _, s := range policy.OverrideSpec().ResourceSelectors {
		if match.GroupKind(s.APIVersion, s.Kind) == (schema.GroupKind{Kind: "Namespace"}) {
			// The hub sends namespaces to every cluster, and policies of other namespaces do not apply to them.
			return admission.NewForbidden(r, errors.New("a Namespace is cluster-scoped; use ClusterOverridePolicy"))
		}
	}
	if err := o.authorizeClusterScoped(ctx, r, clusterOverride, policy.OverrideSpec().ResourceSelectors,
		approvedBefore(r, policy)); err != nil {
		return err
	}
	// The selectors alone are written back: a JSON value that is not given would come out of the types as null.
	validate.DefaultSelectors(policy.OverrideSpec().ResourceSelectors, r.obj.GetNamespace(), o.clusterScoped)
	spec, _ := r.obj.Object["spec"].(map[string]any)
	selectors, _ := spec["resourceSelectors"].([]any)
	for i := range selectors {
		if s, ok := selectors[i].(map[string]any); ok {
			if namespace := policy.OverrideSpec().ResourceSelectors[i].Namespace; namespace != "" {
				s["namespace"] = namespace
			} else {
				delete(s, "namespace")
			}
		}
	}
	return nil
}

// approvedBefore returns the stored selectors if the policy keeps the stored overriders: these selectors were approved
// with them. A change of the overriders needs approval for all selectors.
func approvedBefore(r request, policy policyv1alpha1.Override) []policyv1alpha1.ResourceSelector {
	old := newOverride(r.GetKind().Kind)
	if r.old == nil || into(r.old, old) != nil {
		return nil
	}
	was, is := *old.OverrideSpec(), *policy.OverrideSpec()
	was.ResourceSelectors, is.ResourceSelectors = nil, nil
	if !equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	return old.OverrideSpec().ResourceSelectors
}

func (o *objects) validateOverride(ctx context.Context, r request) error {
	policy := newOverride(r.GetKind().Kind)
	if err := into(r.obj, policy); err != nil {
		return r.invalid(err)
	}
	if err := r.refuse(validate.Override(policy)); err != nil {
		return err
	}
	var known []string
	before := false
	if old := newOverride(r.GetKind().Kind); r.old != nil && into(r.old, old) == nil {
		known, before = validate.OverrideAdvice(old), override.Overwrites(old)
	}
	if !before && override.Overwrites(policy) {
		if err := o.mayOverwrite(ctx, r, "an overrider that sets "+workv1alpha2.ConflictResolutionAnnotation+
			": overwrite"); err != nil {
			return err
		}
	}
	if err := o.authorizeRights(ctx, r, policy); err != nil {
		return err
	}
	warn(ctx, validate.OverrideAdvice(policy), known)
	o.adviseNames(ctx, r, validate.NamesOfOverride(policy))
	return nil
}

// authorizeRights requires that users who override roles or role bindings have the rights that these grant. An API
// server enforces that for direct writes; the hub's cannot where an override changes the object for a member.
func (o *objects) authorizeRights(ctx context.Context, r request, policy policyv1alpha1.Override) error {
	path := override.Rights(policy)
	if path == "" || r.fromHub() || r.keepsSpec() {
		return nil
	}
	resource, where := clusterRoles, "in the cluster"
	if policy.GetNamespace() != "" {
		resource, where = roles, placeOf(policy.GetNamespace())
	}
	for _, verb := range []string{"escalate", "bind"} {
		if err := o.require(ctx, r, right{verb: verb, resource: resource, namespace: policy.GetNamespace()},
			"an overrider of %q changes permissions in members, for which you need permission to %s %s %s; "+
				"make the change in the template, where your own permissions apply, or exclude that kind from spec.resourceSelectors",
			path, verb, resource.GroupResource(), where); err != nil {
			return err
		}
	}
	return nil
}

// divided rejects a replicasOverrider where the scheduler divides the replicas, according to the current policies.
func (o *objects) divided(policy policyv1alpha1.Override) field.ErrorList {
	var errs field.ErrorList
	for i, s := range policy.OverrideSpec().ResourceSelectors {
		namespace := cmp.Or(policy.GetNamespace(), s.Namespace)
		for _, p := range o.index.selecting(match.GroupKind(s.APIVersion, s.Kind), namespace, s.Name) {
			if !p.PropagationSpec().Placement.DividesReplicas() {
				continue
			}
			name := text.Path(p.GetNamespace(), p.GetName())
			errs = append(errs, field.Forbidden(field.NewPath("spec", "resourceSelectors").Index(i), fmt.Sprintf(
				"replicasOverrider: the replicas of this %s are divided by propagation policy %s; set weights there, or annotate this policy with %s=%s",
				s.Kind, name, wellknown.OverrideReplicasAnnotation, dialect.OverrideReplicasForce)))
		}
	}
	return errs
}
