package dialect

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kruiseDefaults are the defaults in the spec of a kind, and in its rolling update as v1beta1 has it. policy is the
// field for the way to update a pod.
var kruiseDefaults = map[string]struct {
	policy        string
	spec, rolling map[string]any
}{
	"CloneSet": {"podUpdatePolicy", map[string]any{"replicas": int64(1), "revisionHistoryLimit": int64(10)},
		map[string]any{"partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0)}},
	"StatefulSet": {"podUpdatePolicy", map[string]any{"replicas": int64(1), "revisionHistoryLimit": int64(10),
		"podManagementPolicy": "OrderedReady"},
		map[string]any{"partition": int64(0), "maxUnavailable": int64(1), "minReadySeconds": int64(0)}},
	"DaemonSet": {"rollingUpdateType", map[string]any{"burstReplicas": int64(250), "revisionHistoryLimit": int64(10)},
		nil},
}

// Default sets the defaults that OpenKruise's webhooks set in members, so that clients of the hub find these fields in
// the template too. It leaves other kinds alone, and values that are set. The defaults of pods and claims, and
// persistentVolumeClaimRetentionPolicy, depend on the version and the feature gates of a member, which sets them.
func Default(obj *unstructured.Unstructured) {
	gvk := obj.GroupVersionKind()
	defaults, ok := kruiseDefaults[gvk.Kind]
	spec := child(obj.Object, "spec")
	if !ok || gvk.Group != kruiseGroup || spec == nil {
		return
	}
	setMissing(spec, defaults.spec)
	setMissing(spec, map[string]any{"updateStrategy": map[string]any{}})
	rolling, policy := child(spec, "updateStrategy"), "type"
	if gvk.Kind != "CloneSet" || gvk.Version != "v1alpha1" { // which has these fields beside the type
		update := rolling
		if setMissing(update, map[string]any{"type": "RollingUpdate"}); update["type"] != "RollingUpdate" {
			return
		}
		setMissing(update, map[string]any{"rollingUpdate": map[string]any{}})
		rolling, policy = child(update, "rollingUpdate"), defaults.policy
	}
	setMissing(rolling, defaults.rolling)
	switch way, _ := rolling[policy].(string); {
	case gvk.Kind == "DaemonSet":
		setMissing(rolling, map[string]any{policy: "Standard"})
		if rolling["maxUnavailable"] == nil && rolling["maxSurge"] == nil {
			setMissing(rolling, map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)})
		}
	case way == "":
		setMissing(rolling, map[string]any{policy: "ReCreate"})
	case gvk.Kind == "CloneSet" && strings.HasPrefix(way, "InPlace"):
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
