package simulate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

var secret = schema.GroupKind{Kind: "Secret"}

// ServerAnnotations are annotations that clients and the hub write about a template's author and its fields. They are
// not part of what a user changes.
func ServerAnnotations() []string {
	return []string{corev1.LastAppliedConfigAnnotation, wellknown.ChangedByAnnotation,
		wellknown.AllocatedNodePortsAnnotation}
}

// Recorded returns an object of a hub for a file, without secrets and without what a simulation does not need. A Secret
// keeps only its metadata and type. Overrides of Secrets, the status of templates but for how runs ended, the
// connections to members, the last applied configuration, and the names of users are removed. obj is not changed.
func Recorded(obj *unstructured.Unstructured) *unstructured.Unstructured {
	u := obj.DeepCopy()
	interpret.DropAllocated(u)
	u.SetManagedFields(nil)
	gk := u.GroupVersionKind().GroupKind()
	annotations := u.GetAnnotations()
	for key := range annotations {
		ours := strings.Contains(key, "karmada.io/") || strings.Contains(key, wellknown.Prefix)
		if key == corev1.LastAppliedConfigAnnotation || key == wellknown.ChangedByAnnotation ||
			gk == secret && (!ours || key == wellknown.SubmittedFieldsAnnotation) {
			delete(annotations, key)
		}
	}
	u.SetAnnotations(annotations)
	switch {
	case gk == secret:
		kept := map[string]any{}
		for _, field := range []string{"apiVersion", "kind", "metadata", "type", "immutable"} {
			if value, ok := u.Object[field]; ok {
				kept[field] = value
			}
		}
		u.Object = kept
	case gk.Group == "cluster.karmada.io":
		for _, field := range []string{"secretRef", "impersonatorSecretRef", "proxyURL", "proxyHeader"} {
			unstructured.RemoveNestedField(u.Object, "spec", field)
		}
	case gk.Group == "work.karmada.io":
		recordRuns(u)
	case gk.Group == "policy.karmada.io" && strings.HasSuffix(gk.Kind, "OverridePolicy"):
		if mayOverrideSecrets(u) {
			u.Object["spec"] = withoutSecrets(u.Object["spec"])
			annotations := u.GetAnnotations()
			delete(annotations, wellknown.SubmittedFieldsAnnotation)
			u.SetAnnotations(annotations)
		}
	case gk.Group != "policy.karmada.io" && gk.Group != "config.karmada.io":
		status, _ := u.Object["status"].(map[string]any)
		delete(u.Object, "status")
		if end := interpret.EndOfRun(gk, status); end != nil {
			u.Object["status"] = end
		}
	}
	return u
}

// recordRuns removes what the members of a binding reported, but for how runs ended: those do not move.
func recordRuns(binding *unstructured.Unstructured) {
	status, _ := binding.Object["status"].(map[string]any)
	of, _, _ := unstructured.NestedMap(binding.Object, "spec", "resource")
	gk := match.GroupKind(fields.Text(of, "apiVersion"), fields.Text(of, "kind"))
	var ended []any
	for _, item := range fields.Objects(status, "aggregatedStatus") {
		reported, _ := item["status"].(map[string]any)
		if end := interpret.EndOfRun(gk, reported); end != nil {
			ended = append(ended, map[string]any{"clusterName": item["clusterName"], "applied": item["applied"],
				"health": item["health"], "status": end})
		}
	}
	delete(status, "aggregatedStatus")
	if ended != nil {
		status["aggregatedStatus"] = ended
	}
}

// mayOverrideSecrets reports whether an override policy selects Secrets, or everything.
func mayOverrideSecrets(u *unstructured.Unstructured) bool {
	selectors, _, _ := unstructured.NestedSlice(u.Object, "spec", "resourceSelectors")
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(s any) bool {
		m, ok := s.(map[string]any)
		return !ok || m["kind"] == secret.Kind
	})
}

// withoutSecrets drops the overriders that write below data and stringData, wherever they stand in a spec.
func withoutSecrets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = withoutSecrets(value)
		}
	case []any:
		kept := []any{}
		for _, item := range v {
			if m, ok := item.(map[string]any); ok && (intoData(m, "path") || intoData(m, "fieldPath")) {
				continue
			}
			kept = append(kept, withoutSecrets(item))
		}
		return kept
	}
	return v
}

// intoData reports whether an overrider's pointer is to the whole of a Secret, or into its data.
func intoData(overrider map[string]any, key string) bool {
	path, is := overrider[key].(string)
	if !is {
		return false
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return top == "" || top == "data" || top == "stringData"
}
