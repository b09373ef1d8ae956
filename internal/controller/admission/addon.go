package admission

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/ocm/addons"
)

// signers are the signers of certificates. They exist only in roles.
var signers = certificatesv1.SchemeGroupVersion.WithResource("signers")

// validateClusterAddon validates the changes of a ClusterManagementAddOn. The hub installs it in all clusters that its
// Placements choose, now or later. The fields that it reads are the same in both versions.
func (o *objects) validateClusterAddon(ctx context.Context, r request,
	addon, was *addonv1beta1.ClusterManagementAddOn) error {
	const lifecycle = addonv1alpha1.LifecycleAnnotation
	if r.keepsSpec() && (was == nil || addon.Annotations[lifecycle] == was.Annotations[lifecycle]) {
		return nil
	}
	if err := o.authorizeFleet(ctx, r, "create"); err != nil {
		return err
	}
	if was != nil && slices.ContainsFunc(was.Spec.InstallStrategy.Placements,
		func(p addonv1alpha1.PlacementStrategy) bool {
			return !slices.ContainsFunc(addon.Spec.InstallStrategy.Placements, func(of addonv1alpha1.PlacementStrategy) bool {
				return of.PlacementRef == p.PlacementRef
			})
		}) {
		if err := o.authorizeFleet(ctx, r, "delete"); err != nil {
			return err
		}
	}
	return r.refuse(validate.ClusterManagementAddOn(addon))
}

// validateAddonTemplate validates the changes of an AddOnTemplate. Its author needs what the hub does by it: to bind
// the roles of the agents, and to read the authority that signs their certificates.
func (o *objects) validateAddonTemplate(ctx context.Context, r request, t, _ *addonv1alpha1.AddOnTemplate) error {
	if err := cmp.Or(o.authorizeFleet(ctx, r, "create"), r.refuse(validate.AddOnTemplate(t))); err != nil {
		return err
	}
	for _, registration := range t.Spec.Registration {
		if signer := registration.CustomSigner; signer != nil {
			key := addons.Authority(signer)
			if err := cmp.Or(o.require(ctx, r, right{verb: "get", resource: secrets, namespace: key.Namespace, name: key.Name},
				"the hub signs certificates with the Secret %s, which you may not read", key),
				o.require(ctx, r, right{verb: "approve", resource: signers, name: signer.SignerName},
					"the hub approves requests for signer %s, for which you need permission to approve it",
					signer.SignerName)); err != nil {
				return err
			}
		}
		if registration.KubeClient == nil {
			continue
		}
		for _, permission := range registration.KubeClient.HubPermissions {
			namespace, role := "", rbacv1.RoleRef{Kind: "ClusterRole"}
			if of := permission.CurrentCluster; of != nil {
				role.Name = of.ClusterRoleName
			} else if of := permission.SingleNamespace; of != nil {
				namespace, role = of.Namespace, of.RoleRef
			}
			resource := rbacv1.SchemeGroupVersion.WithResource(strings.ToLower(role.Kind) + "s")
			for _, of := range []right{{verb: "create", resource: rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
				namespace: namespace}, {verb: "bind", resource: resource, namespace: namespace, name: role.Name}} {
				if err := o.require(ctx, r, of, "the hub binds %s %s to the agents of the add-on, for which you need permission "+
					"to create rolebindings and to bind this role %s", role.Kind, role.Name, placeOf(namespace)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// validateAddonSettings requires the right to write Works in all clusters: the settings of an add-on choose its images.
func (o *objects) validateAddonSettings(ctx context.Context, r request) error {
	return o.authorizeFleet(ctx, r, "create")
}

// validateAddon requires the right to write the Works of a cluster from users who change the configuration of an add-on
// there, and to delete them from those who take an add-on from the hub that it installed. A ManagedClusterAddOn itself
// only installs what a ClusterManagementAddOn offers.
func (o *objects) validateAddon(ctx context.Context, r request, addon, was *addonv1beta1.ManagedClusterAddOn) error {
	if was == nil {
		was = &addonv1beta1.ManagedClusterAddOn{}
	}
	if slices.Contains(was.Finalizers, wellknown.AddonFinalizer) && (!slices.Contains(addon.Finalizers,
		wellknown.AddonFinalizer) || !equality.Semantic.DeepEqual(addon.OwnerReferences, was.OwnerReferences)) {
		if err := o.authorizeWorks(ctx, r, "delete"); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(addon.Spec.Configs, was.Spec.Configs) && maps.Equal(settingsOf(r.obj),
		settingsOf(r.old)) {
		return nil
	}
	if host := addon.Annotations[addonv1alpha1.HostingClusterAnnotation]; host != "" {
		space := names.ExecutionSpace(host)
		if err := o.require(ctx, r, right{verb: "create", resource: works, namespace: space},
			"cluster %s hosts the agent of the add-on, for which you need permission to create "+
				"works.work.karmada.io in the namespace %s", host, space); err != nil {
			return err
		}
	}
	return o.authorizeWorks(ctx, r, "create")
}

// settingsOf returns the configuration of an add-on that is not in spec.configs: the annotations with the prefix of the
// group, and the namespace, which v1alpha1 has in the spec.
func settingsOf(obj *unstructured.Unstructured) map[string]string {
	if obj == nil {
		return nil
	}
	settings := maps.Clone(obj.GetAnnotations())
	maps.DeleteFunc(settings, func(key, _ string) bool {
		return !strings.HasPrefix(key, addonv1alpha1.GroupVersion.Group+"/")
	})
	namespace := fields.Text(obj.Object, "spec", "installNamespace")
	if namespace != "" && namespace != addonv1alpha1.DefaultInstallNamespace {
		if settings == nil {
			settings = map[string]string{}
		}
		settings[addonv1alpha1.InstallNamespaceAnnotation] = namespace
	}
	return settings
}

// refuseAddonDeletion requires the right to delete the Works of a cluster from users who delete an add-on that the hub
// installed there.
func (o *objects) refuseAddonDeletion(ctx context.Context, a admission.Attributes) error {
	old, ok := a.GetOldObject().(*unstructured.Unstructured)
	if !ok || !slices.Contains(old.GetFinalizers(), wellknown.AddonFinalizer) {
		return nil
	}
	return o.authorizeWorks(ctx, a, "delete")
}

// guardAddonStatus limits what a klusterlet writes into the status of an add-on: conditions, and how the agent of the
// add-on identifies itself on the hub, which must be a user of its own cluster. The rest decides what is installed.
func (o *objects) guardAddonStatus(a admission.Attributes) error {
	cluster, is := klusterletOf(a)
	if !is || a.GetResource().GroupResource() != addonv1beta1.Resource("managedclusteraddons") {
		return nil
	}
	obj, ok := a.GetObject().(*unstructured.Unstructured)
	old, had := a.GetOldObject().(*unstructured.Unstructured)
	if !ok || !had {
		return nil // it has no permission to create or delete any
	}
	now, subjects := registered(obj)
	before, known := registered(old)
	if a.GetNamespace() != cluster || !equality.Semantic.DeepEqual(now, before) {
		return admission.NewForbidden(a, fmt.Errorf("the klusterlet of cluster %q may change only the conditions and the "+
			"subjects and drivers of registrations of its ManagedClusterAddOns", cluster))
	}
	allowed := []string{"system:authenticated", "system:serviceaccount:" + cluster + ":" + a.GetName() + "-agent"}
	for _, subject := range subjects {
		own := klusterlet.GroupOf("cluster:" + cluster + ":addon:" + a.GetName())
		if subject != own && !strings.HasPrefix(subject, own+":") && !slices.Contains(allowed, subject) &&
			!slices.Contains(known, subject) {
			return admission.NewForbidden(a, fmt.Errorf("the agent of add-on %s in cluster %q cannot be %q", a.GetName(),
				cluster, subject))
		}
	}
	return nil
}

// registered returns the status of an add-on of any version without what a klusterlet writes, and the users and groups
// in it.
func registered(obj *unstructured.Unstructured) (rest map[string]any, subjects []string) {
	rest = runtime.DeepCopyJSON(fields.Object(obj.Object, "status"))
	if rest == nil {
		rest = map[string]any{}
	}
	delete(rest, "conditions")
	delete(rest, "kubeClientDriver")
	for _, r := range fields.Objects(rest, "registrations") {
		for _, of := range []map[string]any{r, fields.Object(r, "kubeClient")} { // v1alpha1 and v1beta1
			subject := fields.Object(of, "subject")
			subjects = append(append(subjects, fields.Text(subject, "user")), fields.Texts(subject, "groups")...)
			delete(of, "subject")
			delete(of, "driver")
		}
	}
	return rest, slices.DeleteFunc(subjects, func(s string) bool { return s == "" })
}
