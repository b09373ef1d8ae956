package dialect

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// Default sets the defaults that OpenKruise's webhooks set in members, so that clients of the hub find these fields in
// the template too. It leaves other kinds alone, and values that are set. The defaults of pods and claims, and
// persistentVolumeClaimRetentionPolicy, depend on the version and the feature gates of a member, which sets them.
func Default(obj *unstructured.Unstructured) {
	of, spec := kind.Facts(obj), child(obj.Object, "spec")
	defaults := of.Defaults
	if defaults == nil || spec == nil {
		return
	}
	setMissing(spec, defaults.Spec)
	setMissing(spec, map[string]any{"updateStrategy": map[string]any{}})
	rolling, policy := child(spec, "updateStrategy"), "type"
	if len(of.Strategy(obj.GroupVersionKind().Version)) > 2 { // otherwise these fields are beside the type
		update := rolling
		if setMissing(update, map[string]any{"type": "RollingUpdate"}); update["type"] != "RollingUpdate" {
			return
		}
		setMissing(update, map[string]any{"rollingUpdate": map[string]any{}})
		rolling, policy = child(update, "rollingUpdate"), defaults.Policy
	}
	way, _ := rolling[policy].(string)
	setMissing(rolling, defaults.Rolling)
	if way == "" {
		setMissing(rolling, map[string]any{policy: defaults.Way})
	}
	switch {
	case of.Replicas == nil && rolling["maxUnavailable"] == nil && rolling["maxSurge"] == nil:
		setMissing(rolling, map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)}) // it has the one or the other
	case of.Replicas != nil && of.Rolling.Surges && strings.HasPrefix(way, "InPlace"):
		setMissing(rolling, map[string]any{"inPlaceUpdateStrategy": map[string]any{}})
	}
}

// setMissing sets the values that parent lacks. A parent of another shape, which the schema refuses, is nil.
func setMissing(parent, values map[string]any) {
	for name, value := range values {
		if parent != nil && parent[name] == nil {
			parent[name] = value
		}
	}
}
