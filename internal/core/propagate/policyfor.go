package propagate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// PolicyFor returns a policy for the template only. It propagates the template to the named clusters, or to all if
// clusters is empty.
func PolicyFor(template *unstructured.Unstructured, name string, clusters []string) policyv1alpha1.Propagation {
	spec := policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{
			APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(),
			Name: template.GetName(),
		}},
		Placement: policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}},
	}
	of := metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "PropagationPolicy"}
	if template.GetNamespace() == "" {
		of.Kind = "ClusterPropagationPolicy"
		return &policyv1alpha1.ClusterPropagationPolicy{TypeMeta: of, ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	return &policyv1alpha1.PropagationPolicy{TypeMeta: of,
		ObjectMeta: metav1.ObjectMeta{Namespace: template.GetNamespace(), Name: name}, Spec: spec}
}
