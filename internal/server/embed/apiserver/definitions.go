package apiserver

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

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
