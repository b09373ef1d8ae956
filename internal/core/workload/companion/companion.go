package companion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Kinds returns the kinds of companions, sorted.
func Kinds() []schema.GroupKind { return kind.Select(follows) }

// IsKind reports whether objects of the kind may be companions.
func IsKind(gk schema.GroupKind) bool { return follows(kind.Lookup(gk)) }

func follows(k *kind.Kind) bool { return k.Refers != nil && k.Refers.Follows }

// References returns the paths at which objects of a kind name their workload, in any version; none for other kinds.
func References(gk schema.GroupKind) [][]string {
	if k := kind.Lookup(gk); follows(k) {
		return k.Refers.Paths
	}
	return nil
}

// Pointer is what a companion refers to in its namespace.
type Pointer struct {
	namespace string
	named     []target
	pods      labels.Selector // nil without a selector
}

type target struct {
	schema.GroupKind
	name string
}

func (t target) String() string { return t.Kind + " " + t.name }

// PointerOf reads what obj refers to. ok is false for other kinds and for objects that refer to nothing.
func PointerOf(obj *unstructured.Unstructured) (p Pointer, ok bool, err error) {
	k := kind.Facts(obj)
	if !follows(k) || obj.GetNamespace() == "" {
		return p, false, nil
	}
	how := k.Refers
	p.namespace = obj.GetNamespace()
	for _, path := range how.Paths {
		ref := fields.Object(obj.Object, path...)
		t := target{match.GroupKind(fields.Text(ref, "apiVersion"), fields.Text(ref, "kind")), fields.Text(ref, "name")}
		if t.Kind != "" && t.name != "" {
			p.named = append(p.named, t)
		}
	}
	if len(p.named) > 0 {
		return p, true, nil
	}
	raw := fields.Object(obj.Object, "spec", "selector")
	if !how.Selects || raw == nil {
		return p, false, nil
	}
	if p.pods, err = match.ParseSelector(raw); err != nil {
		return p, false, fmt.Errorf("read spec.selector of %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	if p.pods.Empty() && !how.Everything {
		return p, false, nil
	}
	return p, true, nil
}

// Matches reports whether the companion refers to the workload.
func (p Pointer) Matches(workload *unstructured.Unstructured) bool {
	if workload.GetNamespace() != p.namespace {
		return false
	}
	if p.pods == nil {
		return slices.Contains(p.named, target{workload.GroupVersionKind().GroupKind(), workload.GetName()})
	}
	return slices.ContainsFunc(podLabels(workload), func(of labels.Set) bool { return p.pods.Matches(of) })
}

// String returns "CloneSet web" or "pods with app=web".
func (p Pointer) String() string {
	switch {
	case p.pods == nil:
		var all []string
		for _, t := range p.named {
			all = append(all, t.String())
		}
		return strings.Join(all, ", ")
	case p.pods.Empty():
		return "all pods"
	}
	return "pods with " + p.pods.String()
}

// Reaches returns the index keys of a companion. A workload that it refers to has at least one of them in ReachedBy.
func Reaches(obj *unstructured.Unstructured) []string {
	p, ok, err := PointerOf(obj)
	if err != nil || !ok {
		return nil
	}
	if p.pods == nil {
		var keys []string
		for _, t := range p.named {
			keys = append(keys, nameKey(p.namespace, t))
		}
		return keys
	}
	// One label that all its pods have is enough as a key. Requirements are sorted by label.
	required, _ := p.pods.Requirements()
	for _, r := range required {
		if op := r.Operator(); op != selection.In && op != selection.Equals && op != selection.DoubleEquals {
			continue
		}
		var keys []string
		for _, value := range r.ValuesUnsorted() {
			keys = append(keys, labelKey(p.namespace, r.Key(), value))
		}
		return keys
	}
	return []string{podsKey(p.namespace)}
}

// ReachedBy returns the index keys that find the companions of a workload, and possibly others.
func ReachedBy(workload *unstructured.Unstructured) []string {
	ns := workload.GetNamespace()
	if ns == "" || IsKind(workload.GroupVersionKind().GroupKind()) {
		return nil
	}
	keys := []string{nameKey(ns, target{workload.GroupVersionKind().GroupKind(), workload.GetName()})}
	for _, of := range podLabels(workload) {
		keys = append(keys, podsKey(ns))
		for key, value := range of {
			keys = append(keys, labelKey(ns, key, value))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// A namespace name contains neither a slash nor a question mark.
func nameKey(namespace string, t target) string {
	return namespace + "/" + t.GroupKind.String() + "/" + t.name
}

func podsKey(namespace string) string { return namespace + "?" }

func labelKey(namespace, key, value string) string { return namespace + "?" + key + "=" + value }

// podLabels returns the labels of each pod template of a workload.
func podLabels(workload *unstructured.Unstructured) []labels.Set {
	var all []labels.Set
	for _, path := range interpret.PodTemplates(workload) {
		of, _, _ := unstructured.NestedStringMap(workload.Object, slices.Concat(path, []string{"metadata", "labels"})...)
		all = append(all, of)
	}
	return all
}

// Find returns the companions of the workload to propagate, without duplicates and sorted. made are those that
// members create themselves.
func Find(workload *unstructured.Unstructured,
	objs []*unstructured.Unstructured) (follow []configv1alpha1.DependentObjectReference,
	made []*unstructured.Unstructured) {
	for _, obj := range objs {
		p, ok, err := PointerOf(obj)
		if err != nil || !ok || !p.Matches(workload) {
			continue
		}
		if workload.GetAnnotations()[kind.Facts(obj).Refers.Generates] == "true" {
			made = append(made, obj)
			continue
		}
		follow = append(follow, configv1alpha1.DependentObjectReference{
			APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()})
	}
	slices.SortFunc(follow, func(a, b configv1alpha1.DependentObjectReference) int {
		return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(follow, match.SameObject), made
}
