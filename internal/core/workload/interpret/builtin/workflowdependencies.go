package builtin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// workflowDependencies returns what the Workflow at path names in its steps: other templates, service accounts,
// secrets, configuration, claims. Names with parameters are unknown before it runs. controller/dependency adds the
// dependencies of referenced templates and the roles of service accounts. The default artifact repository of the
// namespace is optional.
func workflowDependencies(path ...string) func(context.Context,
	*unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return needing(func(obj *unstructured.Unstructured) []configv1alpha1.DependentObjectReference {
		spec := object(obj.Object, path...)
		f := references{namespace: obj.GetNamespace(), made: map[string]bool{}}
		for _, claim := range objects(spec, "volumeClaimTemplates") {
			f.made[text(claim, "metadata", "name")] = true
			f.made[obj.GetName()+"-"+text(claim, "metadata", "name")] = true
		}
		f.collect(spec)
		if repository := object(spec, "artifactRepositoryRef"); repository != nil || f.stores {
			f.need("v1", "ConfigMap", cmp.Or(text(repository, "configMap"), "artifact-repositories"))
		}
		return f.found
	})
}

// references collects the names in an object.
type references struct {
	// namespace of the object. Without one it cannot name namespaced objects.
	namespace string
	// made are claims that the controller creates from claim templates.
	made map[string]bool
	// stores is true if artifacts or logs go to the namespace's default repository.
	stores bool
	found  []configv1alpha1.DependentObjectReference
}

func (f *references) need(apiVersion, kind, name string) {
	if f.namespace != "" && literal(name) {
		f.found = append(f.found, configv1alpha1.DependentObjectReference{APIVersion: apiVersion, Kind: kind,
			Namespace: f.namespace, Name: name})
	}
}

// locations are the fields of an artifact with its location or source.
var locations = []string{"s3", "gcs", "azure", "oss", "hdfs", "artifactory", "git", "http", "raw", "plugin", "from",
	"fromExpression"}

// placeless reports whether an artifact has no location.
func placeless(artifact map[string]any) bool {
	return !slices.ContainsFunc(locations, func(name string) bool { return artifact[name] != nil })
}

// literal reports whether it is a name without parameters.
func literal(name string) bool { return name != "" && !strings.Contains(name, "{{") }

// collect finds what the fields of m name, with the field names of Argo and pods.
func (f *references) collect(m map[string]any) {
	for key, value := range m {
		switch v := value.(type) {
		case bool:
			f.stores = f.stores || key == "archiveLogs" && v
		case string:
			if key == "serviceAccountName" && v != "default" {
				f.need("v1", "ServiceAccount", v)
			}
		case map[string]any:
			if opaque(key) {
				continue
			}
			f.object(key, v)
			f.collect(v)
		case []any:
			if opaque(key) {
				continue
			}
			for _, item := range v {
				o, ok := item.(map[string]any)
				if !ok {
					// Steps are lists of lists.
					f.collect(map[string]any{key: item})
					continue
				}
				f.stores = f.stores || key == "artifacts" && placeless(o)
				if key == "imagePullSecrets" {
					f.need("v1", "Secret", text(o, "name"))
				}
				f.collect(o)
			}
		}
	}
}

// opaque reports whether a field has content of other software.
func opaque(key string) bool { return key == "plugin" || key == "labels" || key == "annotations" }

// object finds what the object under key names.
func (f *references) object(key string, o map[string]any) {
	name := text(o, "name")
	switch key {
	case "workflowTemplateRef", "templateRef":
		if !yes(o, "clusterScope") {
			f.need("argoproj.io/v1alpha1", "WorkflowTemplate", name)
		} else if literal(name) {
			f.found = append(f.found, configv1alpha1.DependentObjectReference{APIVersion: "argoproj.io/v1alpha1",
				Kind: "ClusterWorkflowTemplate", Name: name})
		}
	case "configMapKeyRef", "configMapRef", "configMap", "krbConfigConfigMap":
		f.need("v1", "ConfigMap", name)
	case "secret":
		f.need("v1", "Secret", name)
		f.need("v1", "Secret", text(o, "secretName"))
	case "azureFile":
		f.need("v1", "Secret", text(o, "secretName"))
	case "persistentVolumeClaim":
		if claim := text(o, "claimName"); !f.made[claim] {
			f.need("v1", "PersistentVolumeClaim", claim)
		}
	default:
		if strings.HasSuffix(key, "Secret") || strings.HasSuffix(key, "SecretRef") || key == "secretRef" ||
			key == "secretKeyRef" {
			f.need("v1", "Secret", name)
		}
	}
}
