package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// ConvertedAt has the server send conversion requests to itself, at path. It knows this service's name and answers it
// in memory, with its own identity, so that neither address, port nor CA is written anywhere.
func ConvertedAt(path string) *apiextensionsv1.CustomResourceConversion {
	port := int32(443)
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: metav1.NamespaceDefault, Name: "kubernetes", Path: &path, Port: &port,
			}},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// Converting answers conversion reviews.
func Converting(review func(*apiextensionsv1.ConversionReview) *apiextensionsv1.ConversionReview) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Request == nil {
			http.Error(w, "not a ConversionReview with a request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review(&asked)); err != nil {
			klog.FromContext(r.Context()).Error(err, "respond to a conversion review")
		}
	})
}

// Established reports whether the server serves the definition, or is about to.
func Established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// AwaitEstablished returns the definition of this name once it is established; it may be created later. It watches,
// because definitions are large: polling about twenty of them took a tenth of a server's start.
func AwaitEstablished(ctx context.Context, definitions apiextensionsclient.CustomResourceDefinitionInterface,
	name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	for {
		crd, err := watchEstablished(ctx, definitions, name)
		if err == nil && crd == nil && ctx.Err() == nil {
			continue // the server ends each watch after some time
		}
		if err == nil {
			err = ctx.Err()
		}
		if crd == nil {
			return nil, fmt.Errorf("wait until %s is established: %w", name, err)
		}
		return crd, nil
	}
}

// watchEstablished returns nil without an error if the watch ended first.
func watchEstablished(ctx context.Context, definitions apiextensionsclient.CustomResourceDefinitionInterface,
	name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	events, err := definitions.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Deleted {
			continue
		}
		switch o := event.Object.(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			if Established(o) {
				return o, nil
			}
		case *metav1.Status:
			return nil, apierrors.FromObject(o)
		}
	}
	return nil, nil
}
