package validate

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
)

// kubernetesSigner matches the names of the signers of Kubernetes.
var kubernetesSigner = regexp.MustCompile(`^([^/]*\.)?kubernetes\.io/`)

// addonNameLimit is the length of the longest name of an add-on: labels of clusters contain it.
const addonNameLimit = 57

// ClusterManagementAddOn validates a ClusterManagementAddOn.
func ClusterManagementAddOn(addon *addonv1beta1.ClusterManagementAddOn) (errs field.ErrorList) {
	for i, p := range addon.Spec.InstallStrategy.Placements {
		if _, err := rollout.Parse(p.RolloutStrategy); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "installStrategy", "placements").Index(i).Child(
				"rolloutStrategy"), "", err.Error()))
		}
	}
	if len(addon.Name) > addonNameLimit {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), "", addonNameLimit))
	}
	return errs
}

// AddOnTemplate validates an AddOnTemplate, and its manifests as those of a ManifestWork. Their size matters when they
// are rendered.
func AddOnTemplate(t *addonv1alpha1.AddOnTemplate) field.ErrorList {
	spec := field.NewPath("spec")
	errs := slices.DeleteFunc(manifestWork(&ocmv1.ManifestWork{Spec: t.Spec.AgentSpec}, spec.Child("agentSpec"),
		"manifests should not be empty"),
		func(err *field.Error) bool { return err.Type == field.ErrorTypeTooLong })
	one := func(at *field.Path, of any, choices map[string]bool) {
		for choice, set := range choices {
			if want := choice == fmt.Sprint(of); want != set {
				errs = append(errs, field.Invalid(at, "", fmt.Sprintf("type %v needs exactly the field of this type", of)))
				return
			}
		}
	}
	for i, r := range t.Spec.Registration {
		at := spec.Child("registration").Index(i)
		if r.Type == addonv1alpha1.RegistrationKubeClient && r.CustomSigner != nil ||
			r.Type == addonv1alpha1.RegistrationCustomSigner && (r.KubeClient != nil || r.CustomSigner == nil) {
			errs = append(errs, field.Invalid(at, "", fmt.Sprintf("type %s needs exactly the field of this type", r.Type)))
		}
		// Kubernetes signs approved requests for its own signers, and trusts these certificates.
		if c := r.CustomSigner; c != nil && kubernetesSigner.MatchString(c.SignerName) {
			errs = append(errs, field.Forbidden(at.Child("customSigner", "signerName"),
				"must not be one of Kubernetes: use type KubeClient for the API of the hub"))
		}
		if r.KubeClient == nil {
			continue
		}
		for j, p := range r.KubeClient.HubPermissions {
			one(at.Child("kubeClient", "hubPermissions").Index(j), p.Type, map[string]bool{
				string(addonv1alpha1.PermissionCurrentCluster):  p.CurrentCluster != nil,
				string(addonv1alpha1.PermissionSingleNamespace): p.SingleNamespace != nil})
		}
	}
	return errs
}
