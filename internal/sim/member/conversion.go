package member

import (
	"encoding/json"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/kruise"
	"github.com/argosy-io/argosy/internal/core/admission/convert"
	convertkruise "github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// convertPath is where the member's API server, in memory and as itself, has OpenKruise's kinds converted.
const convertPath = "/sim/convert"

// kruiseDefinitions returns the definitions of OpenKruise as a member of a release has them: the version that it stores
// and, unless that is to be the only one, the others that the release knows, converted as by its webhook.
func kruiseDefinitions(release string, storedOnly bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	kinds, err := kruise.Kinds()
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, k := range kinds {
		stored := kruise.Stored(k, release)
		crd := k.Member(stored)
		convertible := convertkruise.Converts(schema.GroupKind{Group: k.Group, Kind: k.Kind})
		passed := false
		for _, v := range k.Versions {
			if passed = passed || v.Name == stored; !passed || v.Name == stored || storedOnly || !convertible {
				continue
			}
			older := k.Member(v.Name).Spec.Versions[0]
			older.Storage = false
			crd.Spec.Versions = append(crd.Spec.Versions, older)
		}
		if len(crd.Spec.Versions) > 1 {
			path, port := convertPath, int32(443)
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
						Namespace: metav1.NamespaceDefault, Name: "kubernetes", Path: &path, Port: &port,
					}},
					ConversionReviewVersions: []string{"v1"},
				},
			}
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// converting serves conversion reviews beside what next serves.
func converting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != convertPath {
			next.ServeHTTP(w, r)
			return
		}
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "not a ConversionReview with a request", http.StatusBadRequest)
			return
		}
		writeJSON(w, http.StatusOK, convert.Review(&review))
	})
}
