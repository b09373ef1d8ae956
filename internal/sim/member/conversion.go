package member

import (
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/kruise"
	"github.com/argosy-io/argosy/internal/core/admission/convert"
	convertkruise "github.com/argosy-io/argosy/internal/core/workload/kruise"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
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
			crd.Spec.Conversion = apiserver.ConvertedAt(convertPath)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// converting serves conversion reviews beside what next serves.
func converting(next http.Handler) http.Handler {
	reviews := apiserver.Converting(convert.Review)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == convertPath {
			reviews.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
