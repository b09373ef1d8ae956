package convert

import (
	"cmp"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// addonKinds have the changes of the content of each kind for the other version.
var addonKinds = map[string]struct {
	beta, alpha func(out *unstructured.Unstructured)
}{
	"ManagedClusterAddOn":    {betaAddon, alphaAddon},
	"ClusterManagementAddOn": {betaManagement, alphaManagement},
	"AddOnDeploymentConfig":  {unchanged, unchanged},
	"AddOnTemplate":          {unchanged, unchanged},
}

func unchanged(*unstructured.Unstructured) {}

// Addon returns an object of the add-on API in apiVersion, v1alpha1 or v1beta1. obj is not changed; it is the result if
// it already has that version. As in Open Cluster Management, v1beta1 lacks addOnConfiguration, the driver of an add-on
// without credentials for the hub, the organization units of these, and names of configurations that are not desired.
func Addon(obj *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
	alpha, beta := addonv1alpha1.GroupVersion.String(), addonv1beta1.GroupVersion.String()
	kind, known := addonKinds[obj.GetKind()]
	change := kind.beta
	switch from := obj.GetAPIVersion(); {
	case !known:
		return nil, fmt.Errorf("%s has only one version", obj.GetKind())
	case from == apiVersion:
		return obj, nil
	case from == beta && apiVersion == alpha:
		change = kind.alpha
	case from != alpha || apiVersion != beta:
		return nil, fmt.Errorf("cannot convert %s from %q to %q", obj.GetKind(), from, apiVersion)
	}
	out := obj.DeepCopy()
	out.SetAPIVersion(apiVersion)
	change(out)
	return out, nil
}

// betaManagement changes the content of a ClusterManagementAddOn of v1alpha1.
func betaManagement(out *unstructured.Unstructured) {
	spec := fields.Object(out.Object, "spec")
	delete(spec, "addOnConfiguration")
	rename(spec, "supportedConfigs", "defaultConfigs")
	for _, config := range fields.Objects(spec, "defaultConfigs") {
		referent := fields.Object(config, "defaultConfig")
		delete(config, "defaultConfig")
		config["name"] = cmp.Or(fields.Text(referent, "name"), addonv1alpha1.NoDefaultConfig)
		take(referent, config, "namespace")
	}
	rename(fields.Object(out.Object, "status"), "defaultconfigReferences", "defaultConfigReferences")
}

// alphaManagement changes the content of a ClusterManagementAddOn of v1beta1.
func alphaManagement(out *unstructured.Unstructured) {
	spec := fields.Object(out.Object, "spec")
	rename(spec, "defaultConfigs", "supportedConfigs")
	for _, config := range fields.Objects(spec, "supportedConfigs") {
		referent := map[string]any{}
		take(config, referent, "name", "namespace")
		// The schema of v1alpha1 accepts no empty name.
		if name := fields.Text(referent, "name"); name != "" && name != addonv1alpha1.NoDefaultConfig {
			config["defaultConfig"] = referent
		}
	}
	rename(fields.Object(out.Object, "status"), "defaultConfigReferences", "defaultconfigReferences")
}

// betaAddon changes the content of a ManagedClusterAddOn of v1alpha1.
func betaAddon(out *unstructured.Unstructured) {
	if namespace := fields.Text(out.Object, "spec", "installNamespace"); namespace != "" {
		fields.SetAnnotation(out, addonv1alpha1.InstallNamespaceAnnotation, namespace)
	}
	unstructured.RemoveNestedField(out.Object, "spec", "installNamespace")
	status := fields.Object(out.Object, "status")
	driver := fields.Text(status, "kubeClientDriver")
	delete(status, "kubeClientDriver")
	delete(status, "addOnConfiguration")
	for _, reference := range fields.Objects(status, "configReferences") {
		delete(reference, "name")
		delete(reference, "namespace")
	}
	for _, registration := range fields.Objects(status, "registrations") {
		signer, config := fields.Text(registration, "signerName"), map[string]any{}
		take(registration, config, "subject")
		subject, kind := fields.Object(config, "subject"), addonv1beta1.CustomSigner
		if signer == certificatesv1.KubeAPIServerClientSignerName {
			kind = addonv1beta1.KubeClient
			delete(subject, "organizationUnit")
			if driver != "" {
				config["driver"] = driver
			}
		} else {
			config["signerName"] = signer
			rename(subject, "organizationUnit", "organizationUnits")
		}
		clear(registration)
		registration["type"], registration[string(kind)] = string(kind), config
	}
}

// alphaAddon changes the content of a ManagedClusterAddOn of v1beta1.
func alphaAddon(out *unstructured.Unstructured) {
	// The schema of v1alpha1 accepts no other namespace: then the annotation stays.
	namespace := out.GetAnnotations()[addonv1alpha1.InstallNamespaceAnnotation]
	if len(validation.IsDNS1123Label(namespace)) == 0 {
		fields.Ensure(out.Object, "spec")["installNamespace"] = namespace
		fields.PutAnnotation(out, addonv1alpha1.InstallNamespaceAnnotation, "")
	}
	status := fields.Object(out.Object, "status")
	for _, reference := range fields.Objects(status, "configReferences") {
		desired := fields.Object(reference, "desiredConfig")
		reference["name"] = fields.Text(desired, "name") // v1alpha1 requires it
		if namespace := fields.Text(desired, "namespace"); namespace != "" {
			reference["namespace"] = namespace
		}
	}
	if fields.List(status, "registrations") == nil {
		return
	}
	registrations := []any{}
	for _, registration := range fields.Objects(status, "registrations") {
		kind := addonv1beta1.RegistrationType(fields.Text(registration, "type"))
		config := fields.Object(registration, string(kind)) // a type is also the name of the field with its settings
		signer := fields.Text(config, "signerName")
		if kind == addonv1beta1.KubeClient {
			signer = certificatesv1.KubeAPIServerClientSignerName
			if driver := fields.Text(config, "driver"); driver != "" {
				status["kubeClientDriver"] = driver
			}
		}
		if signer == "" {
			continue // v1alpha1 has no such registration, and no klusterlet can request a certificate for it
		}
		converted := map[string]any{"signerName": signer}
		take(config, converted, "subject")
		rename(fields.Object(converted, "subject"), "organizationUnits", "organizationUnit")
		registrations = append(registrations, converted)
	}
	status["registrations"] = registrations
}

// rename moves the value at a key, if there is one, to another key.
func rename(m map[string]any, from, to string) {
	if v, ok := m[from]; ok {
		m[to] = v
		delete(m, from)
	}
}
