package admission

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/validate"
)

func (o *objects) mutateCustomization(ctx context.Context, r request) error { return r.normalise(ctx) }

// validateCustomization reads the others from the server: customizations are few and seldom written, so no index is kept of them.
func (o *objects) validateCustomization(ctx context.Context, r request) error {
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	if err := into(r.obj, c); err != nil {
		return r.invalid(err)
	}
	list, err := o.client.Resource(configv1alpha1.GroupVersion.WithResource("resourceinterpretercustomizations")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list resourceinterpretercustomizations: %w", err)
	}
	others := make([]*configv1alpha1.ResourceInterpreterCustomization, 0, len(list.Items))
	for i := range list.Items {
		other := &configv1alpha1.ResourceInterpreterCustomization{}
		if err := into(&list.Items[i], other); err != nil {
			return fmt.Errorf("read resourceinterpretercustomization %q: %w", list.Items[i].GetName(), err)
		}
		others = append(others, other)
	}
	return r.refuse(validate.Customization(c, others))
}

func (o *objects) validateWebhookConfiguration(_ context.Context, r request) error {
	c := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	if err := into(r.obj, c); err != nil {
		return r.invalid(err)
	}
	return r.refuse(validate.WebhookConfiguration(c))
}
