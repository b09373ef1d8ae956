package builtin

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// customResourceDefinition keeps the member's webhook client configuration once the operator in the member has set it.
// The operator creates its own certificate, without which objects of the kind could not be read.
func customResourceDefinition() *interpret.Hooks {
	keep := retainFields([]string{"spec", "conversion", "webhook", "clientConfig"})
	return &interpret.Hooks{
		Retain: func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if text(desired.Object, "spec", "conversion", "strategy") != "Webhook" ||
				text(observed.Object, "spec", "conversion", "strategy") != "Webhook" {
				return desired, nil
			}
			return keep(ctx, desired, observed)
		},
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			switch status := object(observed.Object, "status"); {
			case isTrue(status, "Established"):
				return interpret.Healthy, nil
			case conditionText(status, "NamesAccepted", "status") == "False":
				return interpret.Degraded, nil
			}
			return interpret.Progressing, nil
		},
	}
}

// webhookConfiguration keeps the member's client configuration of each webhook, matched by name, once the operator has
// set a certificate. OpenKruise removes webhooks of disabled feature gates and stores the original list in an
// annotation. Webhooks that it removed stay removed.
func webhookConfiguration() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			given := text(observed.Object, "metadata", "annotations", "template")
			kept, changed := []any{}, false
			for _, w := range list(desired.Object, "webhooks") {
				want, _ := w.(map[string]any)
				have := withName(objects(observed.Object, "webhooks"), text(want, "name"), "name")
				if have == nil && given != "" && strings.Contains(given, fmt.Sprintf(`"name":%q`, text(want, "name"))) {
					changed = true
					continue
				}
				if text(have, "clientConfig", "caBundle") != "" {
					want = runtime.DeepCopyJSON(want)
					want["clientConfig"] = runtime.DeepCopyJSONValue(have["clientConfig"])
					kept, changed = append(kept, want), true
					continue
				}
				kept = append(kept, w)
			}
			if !changed {
				return desired, nil
			}
			retained := desired.DeepCopy()
			retained.Object["webhooks"] = kept
			return retained, nil
		},
	}
}
