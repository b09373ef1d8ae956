package override

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// spoken converts m to the version whose paths p uses, which is the version in its selectors. It returns m itself if
// they name m's version, several versions or none, or if the kind cannot be converted.
func spoken(m *unstructured.Unstructured, p policyv1alpha1.Override) (*unstructured.Unstructured, error) {
	kind := match.GroupKind(m.GetAPIVersion(), m.GetKind())
	if !kruise.Converts(kind) {
		return m, nil
	}
	version := ""
	for _, s := range p.OverrideSpec().ResourceSelectors {
		switch {
		case match.GroupKind(s.APIVersion, s.Kind) != kind || s.APIVersion == version:
		case s.APIVersion == m.GetAPIVersion() || version != "":
			return m, nil
		default:
			version = s.APIVersion
		}
	}
	if version == "" {
		return m, nil
	}
	in, err := kruise.Convert(m, version)
	if err != nil {
		return nil, fmt.Errorf("%s speaks of %s: %w", describe(p), version, err)
	}
	return in, nil
}
