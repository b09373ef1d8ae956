package override

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/convert/kruise"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// spoken is m in the version of its kind that p speaks of, whose paths are meant in that version: the one that its
// selectors name. It is m itself where they name m's own, several or none, or where nothing is known of converting the
// kind.
func spoken(m *unstructured.Unstructured, p policyv1alpha1.Override) (*unstructured.Unstructured, error) {
	kind := propagate.GroupKind(m.GetAPIVersion(), m.GetKind())
	if !kruise.Converts(kind) {
		return m, nil
	}
	version := ""
	for _, s := range p.OverrideSpec().ResourceSelectors {
		switch {
		case propagate.GroupKind(s.APIVersion, s.Kind) != kind || s.APIVersion == version:
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
