package match

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// Template is what a selector reads of an object. The namespace of a cluster-scoped object is empty.
type Template struct {
	APIVersion, Kind, Namespace, Name string
	Labels                            map[string]string
}

// TemplateOf returns what a selector reads of obj. The labels are shared with obj.
func TemplateOf(obj *unstructured.Unstructured) Template {
	return Template{
		APIVersion: obj.GetAPIVersion(),
		Kind:       obj.GetKind(),
		Namespace:  obj.GetNamespace(),
		Name:       obj.GetName(),
		Labels:     obj.GetLabels(),
	}
}

// GroupKind returns what templates and selectors are compared by. Versions are not compared, so that a policy keeps
// matching when a kind gets a newer version.
func (t Template) GroupKind() schema.GroupKind { return GroupKind(t.APIVersion, t.Kind) }

// GroupKind returns the group and kind of an object by its apiVersion and kind.
func GroupKind(apiVersion, kind string) schema.GroupKind {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	return schema.GroupKind{Group: group, Kind: kind}
}

// ImplicitPriority is how specific a selector is for a template. A higher one is more specific.
type ImplicitPriority int

// The implicit priorities, from no match to the exact name.
const (
	None ImplicitPriority = iota
	All
	Label
	Name
)

// Selector returns how specific sel is for t; None if it does not select t. A name takes precedence over the
// labelSelector. An empty labelSelector is one all the same; an invalid one selects nothing. A selector without a
// namespace selects in all namespaces: Selectors limits a namespaced policy to its own.
func Selector(sel policyv1alpha1.ResourceSelector, t Template) ImplicitPriority {
	switch {
	case sel.Kind != t.Kind || GroupKind(sel.APIVersion, sel.Kind) != t.GroupKind():
		return None
	case sel.Namespace != "" && sel.Namespace != t.Namespace:
		return None
	case sel.Name != "":
		if sel.Name == t.Name {
			return Name
		}
		return None
	case sel.LabelSelector == nil:
		return All
	}
	s, err := metav1.LabelSelectorAsSelector(sel.LabelSelector)
	if err != nil || !s.Matches(labels.Set(t.Labels)) {
		return None
	}
	return Label
}

// Selectors returns the priority of the most specific selector of a policy for t. policyNamespace is the namespace of
// the policy, or empty for a cluster policy, which may select anything. A namespaced policy never selects from another
// namespace. It selects a cluster-scoped template only by a selector without a namespace: admission sets the namespace,
// unless the kind has none and the author of the policy may write cluster policies.
func Selectors(policyNamespace string, selectors []policyv1alpha1.ResourceSelector, t Template) ImplicitPriority {
	if policyNamespace != "" && t.Namespace != "" && policyNamespace != t.Namespace {
		return None
	}
	best := None
	for _, sel := range selectors {
		best = max(best, Selector(sel, t))
	}
	return best
}
