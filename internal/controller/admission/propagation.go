package admission

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	kinds "github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/ocm/placement"
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
	before, err := generic(p)
	if err != nil {
		return err
	}
	old := newPropagation(r.GetKind().Kind)
	if r.old == nil || into(r.old, old) != nil {
		old = newPropagation(r.GetKind().Kind)
	}
	if p.GetNamespace() != "" {
		if err := o.authorizeClusterScoped(ctx, r, clusterPropagation, p.PropagationSpec().ResourceSelectors,
			o.sentBefore(p, old)); err != nil {
			return err
		}
	}
	warn(ctx, validate.TolerationAdvice(p.PropagationSpec().Placement.ClusterTolerations),
		validate.TolerationAdvice(old.PropagationSpec().Placement.ClusterTolerations))
	o.defaultPropagation(p, old)
	if err := o.authorizeQuotas(ctx, r, p, old); err != nil {
		return err
	}
	if err := o.authorizeSent(ctx, r, p, old); err != nil {
		return err
	}
	if err := r.setSpec(before, p); err != nil {
		return err
	}
	if r.creating() {
		validate.Identify(p, string(uuid.NewUUID()))
		r.obj.SetLabels(p.GetLabels())
		r.obj.SetFinalizers(p.GetFinalizers())
	}
	return nil
}

// defaultPropagation fills in a policy; old is the stored one, without a name for a new one. A placement that is stored
// without default tolerations stays so until it changes: else each write of an old policy would write all of its
// bindings.
func (o *objects) defaultPropagation(p, old policyv1alpha1.Propagation) {
	validate.DefaultPropagation(p, o.clusterScoped)
	placement := &p.PropagationSpec().Placement
	if o.Tolerations != nil && (old.GetName() == "" || !equality.Semantic.DeepEqual(old.PropagationSpec().Placement,
		*placement)) {
		placement.ClusterTolerations = o.Tolerations.WithDefaults(placement.ClusterTolerations)
	}
}

// validatePropagation judges a policy. One that passes is expected by the claims of templates.
func (o *objects) validatePropagation(ctx context.Context, r request) error {
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
	if overwrites := func(p policyv1alpha1.Propagation) bool {
		return p != nil && p.PropagationSpec().ConflictResolution == policyv1alpha1.ConflictOverwrite
	}; p.GetNamespace() != "" && overwrites(p) && !overwrites(old) {
		if err := o.mayOverwrite(ctx, r, "spec.conflictResolution: Overwrite"); err != nil {
			return err
		}
	}
	if err := o.mayPublish(ctx, r, p, old); err != nil {
		return err
	}
	for _, text := range validate.PropagationAdvice(p) {
		warning.AddWarning(ctx, "", text)
	}
	o.adviseNames(ctx, r, validate.NamesOf(p))
	if !r.IsDryRun() && (old == nil || !equality.Semantic.DeepEqual(old.PropagationSpec(), p.PropagationSpec())) {
		o.index.expected.expect(p)
	}
	return nil
}

// mayPublish refuses a policy that publishes PlacementDecisions under an invalid name, or whose author may not create
// Placements in their namespace: programs deploy to the clusters that decisions in their namespace list. Who changes
// the spec of such a policy changes these clusters.
func (o *objects) mayPublish(ctx context.Context, r request, p, old policyv1alpha1.Propagation) error {
	at, err := placement.PublishedAs(p)
	if err != nil {
		return r.invalid(err)
	}
	const annotation = wellknown.PlacementDecisionAnnotation
	if at.Name == "" || old != nil && equality.Semantic.DeepEqual(old.PropagationSpec(), p.PropagationSpec()) &&
		old.GetAnnotations()[annotation] == p.GetAnnotations()[annotation] {
		return nil
	}
	return o.require(ctx, r, right{verb: "create", resource: placementv1beta1.GroupVersion.WithResource("placements"),
		namespace: at.Namespace}, "user %q may not create Placements in namespace %q: the annotation %s needs that right",
		r.GetUserInfo().GetName(), at.Namespace, annotation)
}

// counterpart is the policy without a namespace that does the same as one in a namespace.
type counterpart struct{ kind, resource string }

var (
	clusterPropagation = counterpart{"ClusterPropagationPolicy", "clusterpropagationpolicies"}
	clusterOverride    = counterpart{"ClusterOverridePolicy", "clusteroverridepolicies"}
)

// sentBefore returns the stored selectors if only selectors changed since. A user who changes the clusters of
// templates, or what happens to objects in members, needs the rights for each cluster-scoped selector.
func (o *objects) sentBefore(p, old policyv1alpha1.Propagation) []policyv1alpha1.ResourceSelector {
	is := p.DeepCopyObject().(policyv1alpha1.Propagation)
	o.defaultPropagation(is, old)
	was := old.PropagationSpec().DeepCopy()
	selectors := was.ResourceSelectors
	was.ResourceSelectors, is.PropagationSpec().ResourceSelectors = nil, nil
	if !equality.Semantic.DeepEqual(was, is.PropagationSpec()) {
		return nil
	}
	return selectors
}

// authorizeClusterScoped requires the right to write the cluster-scoped counterpart of a namespaced policy that
// selects cluster-scoped templates. An approved selector is stored without a namespace, unlike all others of a
// namespaced policy, which records the approval. approved are the selectors stored before.
func (o *objects) authorizeClusterScoped(ctx context.Context, r request, instead counterpart, selectors,
	approved []policyv1alpha1.ResourceSelector) error {
	for i := range selectors {
		s := &selectors[i]
		if !o.clusterScoped(*s) {
			continue
		}
		s.Namespace = ""
		if slices.ContainsFunc(approved, func(a policyv1alpha1.ResourceSelector) bool {
			return equality.Semantic.DeepEqual(a, *s)
		}) {
			continue
		}
		create := right{verb: "create", resource: policyv1alpha1.GroupVersion.WithResource(instead.resource)}
		if err := o.require(ctx, r, create, "%s is cluster-scoped; use %s", s.Kind, instead.kind); err != nil {
			return err
		}
		warning.AddWarning(ctx, "", fmt.Sprintf(
			"spec.resourceSelectors[%d]: %s is cluster-scoped; it is treated as if selected by a %s, which you may create", i,
			s.Kind, instead.kind))
	}
	return nil
}

var quotaKind = schema.GroupKind{Kind: "ResourceQuota"}

// authorizeQuotas requires the right to change ResourceQuotas from users who select them: a claimed quota is enforced
// in members and no longer on the hub.
func (o *objects) authorizeQuotas(ctx context.Context, r request, p, old policyv1alpha1.Propagation) error {
	fresh := slices.ContainsFunc(p.PropagationSpec().ResourceSelectors, func(s policyv1alpha1.ResourceSelector) bool {
		return match.GroupKind(s.APIVersion, s.Kind) == quotaKind &&
			!slices.ContainsFunc(old.PropagationSpec().ResourceSelectors,
				func(approved policyv1alpha1.ResourceSelector) bool { return equality.Semantic.DeepEqual(approved, s) })
	})
	if !fresh {
		return nil
	}
	quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	return o.require(ctx, r, right{verb: "update", resource: quotas, namespace: p.GetNamespace()},
		"it selects ResourceQuotas, which are then enforced in members and no longer on the hub: you need permission to update resourcequotas %s to propagate them", placeOf(p.GetNamespace()))
}

var secretKind = schema.GroupKind{Kind: "Secret"}

// withSecrets are the kinds of templates that are or contain Secrets.
var withSecrets = map[schema.GroupKind]schema.GroupVersionResource{
	secretKind: secrets,
	{Group: "release.argosy.io", Kind: "EnclosedManifest"}: {Group: "release.argosy.io", Version: "v1alpha1",
		Resource: "enclosedmanifests"},
	{Group: "apps.kruise.io", Kind: "ResourceDistribution"}: {Group: "apps.kruise.io", Version: "v1alpha1",
		Resource: "resourcedistributions"},
}

// authorizeSent requires the right to read Secrets from users who choose the clusters of Secrets and of objects that
// contain them, because a member has other readers than the hub, and from those who decide whether these stay in
// members after a deletion: an administrator who takes a right back relies on it. Users who may write such templates
// may also let dependencies follow, since they could name any Secret.
func (o *objects) authorizeSent(ctx context.Context, r request, p, old policyv1alpha1.Propagation) error {
	was, is := old.PropagationSpec(), p.PropagationSpec()
	sent := r.old == nil || was.PropagateDeps != is.PropagateDeps ||
		!equality.Semantic.DeepEqual(was.ResourceSelectors, is.ResourceSelectors) ||
		!equality.Semantic.DeepEqual(was.Placement, is.Placement)
	kept := ptr.Deref(was.PreserveResourcesOnDeletion, false) != ptr.Deref(is.PreserveResourcesOnDeletion, false)
	if r.fromHub() || !sent && !kept {
		return nil
	}
	effect := "into the clusters of the placement"
	if !sent {
		effect = "and preserveResourcesOnDeletion decides whether that stays in clusters"
	}
	may := func(verb string, resource schema.GroupVersionResource, namespace, name string) bool {
		allowed, _ := o.authorized(ctx, r, right{verb: verb, resource: resource, namespace: namespace, name: name})
		return allowed
	}
	for i, s := range is.ResourceSelectors {
		namespace, gk := s.Namespace, match.GroupKind(s.APIVersion, s.Kind)
		if p.GetNamespace() != "" {
			namespace = p.GetNamespace()
		}
		if o.clusterScoped(s) {
			namespace = ""
		}
		what, read := "", secrets
		switch resource, holds := withSecrets[gk]; {
		case holds && s.Name != "":
			if read = resource; !may("get", read, namespace, s.Name) {
				what = "it selects " + s.Kind + " " + s.Name
			}
		case holds:
			if read = resource; !may("list", read, namespace, "") {
				what = "it selects " + s.Kind + "s"
			}
		case is.PropagateDeps && !may("list", secrets, namespace, ""):
			if mapping, err := o.mapper.RESTMapping(gk); err != nil || !may("create", mapping.Resource, namespace, "") {
				what = fmt.Sprintf("with propagateDeps, the Secrets that a %s refers to are propagated with it", s.Kind)
			}
		}
		if what != "" {
			return admission.NewForbidden(r,
				fmt.Errorf("spec.resourceSelectors[%d]: %s %s, for which you need permission to read %s %s", i, what, effect,
					read.Resource, placeOf(namespace)))
		}
	}
	return nil
}

// clusterScoped reports whether the selector's kind has no namespace. A kind that is not served is taken for a
// namespaced one.
func (o *objects) clusterScoped(s policyv1alpha1.ResourceSelector) bool {
	gk := match.GroupKind(s.APIVersion, s.Kind)
	// Most policies select these, and discovery need not be asked for them.
	if gk.Group == "apps" || gk == (schema.GroupKind{Kind: "ConfigMap"}) || gk == (schema.GroupKind{Kind: "Secret"}) ||
		gk == (schema.GroupKind{Kind: "Service"}) {
		return false
	}
	if kinds.Lookup(gk).ClusterScoped {
		return true
	}
	mapping, err := o.mapper.RESTMapping(gk)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}
