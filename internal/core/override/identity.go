package override

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Reaches returns which part of an object's identity a JSON pointer changes, directly or through a parent or child
// path; empty if none. An override changes the content of an object, never its identity. An invalid pointer reaches
// nothing.
func Reaches(path string) string {
	p, err := parsePointer(path)
	if err != nil {
		return ""
	}
	if len(p) == 0 {
		return "the whole document, and with it apiVersion, kind, metadata.namespace and metadata.name"
	}
	switch p[0] {
	case "apiVersion", "kind":
		return p[0]
	case "metadata":
		if len(p) == 1 || len(p) == 2 && p[1] == "" {
			return "metadata, and with it metadata.namespace and metadata.name"
		}
		if p[1] == "name" || p[1] == "namespace" {
			return "metadata." + p[1]
		}
	}
	return ""
}

// KeepsGroup reports whether an operation only changes apiVersion to another version of the group of all selected
// templates.
func KeepsGroup(o policyv1alpha1.PlaintextOverrider, selectors []policyv1alpha1.ResourceSelector) bool {
	if o.Path != "/apiVersion" || len(selectors) == 0 || o.Operator != policyv1alpha1.OverriderOpAdd &&
		o.Operator != policyv1alpha1.OverriderOpReplace {
		return false
	}
	value, err := decode(o.Value.Raw)
	apiVersion, text := value.(string)
	if err != nil || !text {
		return false
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && gv.Version != "" && !slices.ContainsFunc(selectors, func(s policyv1alpha1.ResourceSelector) bool {
		selected, err := schema.ParseGroupVersion(s.APIVersion)
		return err != nil || selected.Group != gv.Group
	})
}

// NeverSent returns the field that a JSON pointer names if it is never sent to members; otherwise empty.
func NeverSent(path string) string {
	p, err := parsePointer(path)
	switch {
	case err != nil || len(p) == 0:
		return ""
	case p[0] == "status":
		return "status"
	case len(p) > 1 && p[0] == "metadata" && interpret.SetByServer(p[1]):
		return fmt.Sprintf("metadata.%s", p[1])
	}
	return ""
}

// Key returns the label or annotation that a JSON pointer names, directly or through a child path; empty if none.
func Key(path string) string {
	if p, err := parsePointer(path); err == nil && len(p) > 2 && p[0] == "metadata" &&
		(p[1] == "labels" || p[1] == "annotations") {
		return p[2]
	}
	return ""
}

// Overwrites reports whether a policy sets the annotation that takes over existing objects in members.
func Overwrites(p policyv1alpha1.Override) bool {
	asks := func(o *policyv1alpha1.Overriders) bool {
		const key, value = workv1alpha2.ConflictResolutionAnnotation, workv1alpha2.ConflictResolutionOverwrite
		return slices.ContainsFunc(o.AnnotationsOverrider, func(a policyv1alpha1.LabelAnnotationOverrider) bool {
			return a.Operator != policyv1alpha1.OverriderOpRemove && a.Value[key] == value
		}) || slices.ContainsFunc(o.Plaintext, func(p policyv1alpha1.PlaintextOverrider) bool {
			set, err := decode(p.Value.Raw)
			all, _ := set.(map[string]any)
			return err == nil && p.Operator != policyv1alpha1.OverriderOpRemove &&
				(Key(p.Path) == key && set == value || p.Path == "/metadata/annotations" && all[key] == value)
		})
	}
	return slices.ContainsFunc(overriders(p), asks)
}

// overriders returns the overriders of all rules of a policy.
func overriders(p policyv1alpha1.Override) []*policyv1alpha1.Overriders {
	spec := p.OverrideSpec()
	all := []*policyv1alpha1.Overriders{&spec.Overriders}
	for i := range spec.OverrideRules {
		all = append(all, &spec.OverrideRules[i].Overriders)
	}
	return all
}

// rights are the fields of roles and bindings that define permissions.
var rights = []string{"rules", "aggregationRule", "roleRef", "subjects"}

// Rights returns the first path at which a policy changes permissions in roles or role bindings; empty if none. The
// hub's API server prevents that authors grant more than their own permissions, but not for changes by an override.
func Rights(p policyv1alpha1.Override) string {
	spec := p.OverrideSpec()
	if len(spec.ResourceSelectors) > 0 &&
		!slices.ContainsFunc(spec.ResourceSelectors, func(s policyv1alpha1.ResourceSelector) bool {
			gv, err := schema.ParseGroupVersion(s.APIVersion)
			return err != nil || gv.Group == "rbac.authorization.k8s.io"
		}) {
		return ""
	}
	changes := func(path string) bool {
		p, err := parsePointer(path)
		return err == nil && len(p) > 0 && slices.Contains(rights, p[0]) || aggregates(Key(path))
	}
	of := func(o *policyv1alpha1.Overriders) string {
		for _, i := range o.ImageOverrider {
			if i.Predicate != nil && changes(i.Predicate.Path) {
				return i.Predicate.Path
			}
		}
		for _, l := range o.LabelsOverrider {
			for key := range l.Value {
				if aggregates(key) {
					return pointer{"metadata", "labels", key}.String()
				}
			}
		}
		for _, f := range o.FieldOverrider {
			if changes(f.FieldPath) {
				return f.FieldPath
			}
		}
		for _, p := range o.Plaintext {
			if changes(p.Path) {
				return p.Path
			}
			set, _ := decode(p.Value.Raw)
			if all, ok := set.(map[string]any); ok && p.Path == "/metadata/labels" {
				for key := range all {
					if aggregates(key) {
						return p.Path
					}
				}
			}
		}
		return ""
	}
	for _, o := range overriders(p) {
		if path := of(o); path != "" {
			return path
		}
	}
	return ""
}

// aggregates reports whether a label aggregates a role into others.
func aggregates(label string) bool {
	return strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
}
