package convert

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// Review answers a ConversionReview: all objects in the desired version, in the same order, or a failure that names
// the object and the reason.
func Review(review *apiextensionsv1.ConversionReview) *apiextensionsv1.ConversionReview {
	answer := &apiextensionsv1.ConversionReview{TypeMeta: review.TypeMeta}
	if review.Request == nil {
		answer.Response = failure("the ConversionReview has no request")
		return answer
	}
	objects := make([]runtime.RawExtension, len(review.Request.Objects))
	for i, raw := range review.Request.Objects {
		converted, err := convertRaw(raw, review.Request.DesiredAPIVersion)
		if err != nil {
			answer.Response = failure(fmt.Sprintf("object %d: %v", i, err))
			answer.Response.UID = review.Request.UID
			return answer
		}
		objects[i] = converted
	}
	answer.Response = &apiextensionsv1.ConversionResponse{
		UID:              review.Request.UID,
		ConvertedObjects: objects,
		Result:           metav1.Status{Status: metav1.StatusSuccess},
	}
	return answer
}

func convertRaw(raw runtime.RawExtension, apiVersion string) (runtime.RawExtension, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw.Raw); err != nil {
		return runtime.RawExtension{}, fmt.Errorf("decode: %w", err)
	}
	convert := Binding
	switch gk := obj.GroupVersionKind().GroupKind(); {
	case kruise.Converts(gk):
		convert = kruise.Convert
	case gk.Group == addonv1alpha1.GroupVersion.Group:
		convert = Addon
	}
	converted, err := convert(obj, apiVersion)
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("%s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	data, err := converted.MarshalJSON()
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("encode: %w", err)
	}
	return runtime.RawExtension{Raw: data}, nil
}

func failure(message string) *apiextensionsv1.ConversionResponse {
	return &apiextensionsv1.ConversionResponse{Result: metav1.Status{Status: metav1.StatusFailure, Message: message}}
}
