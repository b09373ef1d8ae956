package match

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// Template is what a selector looks at in an object: an empty namespace is a cluster-scoped one.
type Template struct {
	APIVersion, Kind, Namespace, Name string
	Labels                            map[string]string
}

// TemplateOf is what a selector looks at in obj. The labels are shared with obj.
func TemplateOf(obj *unstructured.Unstructured) Template {
	return Template{
		APIVersion: obj.GetAPIVersion(),
		Kind:       obj.GetKind(),
		Namespace:  obj.GetNamespace(),
		Name:       obj.GetName(),
		Labels:     obj.GetLabels(),
	}
}

// GroupKind is what templates and selectors are compared by: the version is never asked for,
// so a policy keeps matching when a kind moves to a newer one.
func (t Template) GroupKind() schema.GroupKind { return GroupKind(t.APIVersion, t.Kind) }

// GroupKind drops the version of apiVersion.
func GroupKind(apiVersion, kind string) schema.GroupKind {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	return schema.GroupKind{Group: group, Kind: kind}
}

// ImplicitPriority is how closely a selector describes a template: the higher, the closer.
type ImplicitPriority int

// The implicit priorities, from no match to the exact name.
const (
	None ImplicitPriority = iota
	All
	Label
	Name
)

// Selector is how closely sel describes t; NoMatch if it does not. A name in the selector outranks its labelSelector,
// an empty but present labelSelector counts as one, and an invalid one selects nothing.
// A selector without a namespace takes any: that a namespaced policy keeps to its own is seen to by SelectedBy.
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

// Selectors is how closely the closest of the selectors of a policy describes t. policyNamespace is the policy's: a
// namespaced policy never selects from another namespace. Empty is a cluster policy, which may select anything. A
// namespaced policy selects a cluster-scoped template only by a selector without a namespace: admission fills the
// namespace in unless the kind has none and the policy's author may write cluster policies.
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
