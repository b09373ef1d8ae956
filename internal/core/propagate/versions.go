package propagate

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// convertible are the versions that the hub converts kinds between.
var convertible = []string{"v1alpha1", "v1beta1"}

// setVersions copies to b the versions of its kind that can express the template, if some cannot: the scheduler does
// not see the template, and prefers clusters that serve one of these.
func setVersions(b workv1alpha2.Binding, template *unstructured.Unstructured) {
	group := template.GroupVersionKind().Group
	if !strings.HasSuffix(group, ".kruise.io") {
		return // what is known of conversions is made when it is first asked for
	}
	var can []string
	lossy := false
	for _, version := range convertible {
		there, err := kruise.ForMember(template, []string{schema.GroupVersion{Group: group, Version: version}.String()})
		switch {
		case errors.As(err, new(*kruise.Lossy)):
			lossy = true
		case err == nil && there != nil:
			can = append(can, version)
		}
	}
	if !lossy {
		can = nil
	}
	fields.PutAnnotation(b, wellknown.TemplateVersionsAnnotation, strings.Join(can, ","))
}
