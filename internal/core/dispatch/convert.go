package dispatch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// Convert converts a manifest to one of the group versions in which a cluster serves its kind. Nil, or a nil result,
// leaves the manifest unchanged, for kinds that it does not know; the member then reports what it does not serve.
type Convert func(manifest *unstructured.Unstructured, served []string) (*unstructured.Unstructured, error)

// For returns m in a version that c serves, if its kind can be converted; unchanged if c is unknown.
func (convert Convert) For(m *unstructured.Unstructured,
	c *clusterv1alpha1.Cluster) (*unstructured.Unstructured, error) {
	group := m.GroupVersionKind().Group
	if convert == nil || c == nil || group == "" {
		return m, nil
	}
	var served []string
	for _, e := range c.Status.APIEnablements {
		if strings.HasPrefix(e.GroupVersion, group+"/") && c.Status.Serves(e.GroupVersion, m.GetKind()) {
			served = append(served, e.GroupVersion)
		}
	}
	if len(served) == 0 {
		return m, nil
	}
	converted, err := convert(m, served)
	if err != nil {
		return nil, fmt.Errorf("the cluster serves %s: %w", strings.Join(served, ", "), err)
	}
	if converted == nil {
		return m, nil
	}
	return converted, nil
}
