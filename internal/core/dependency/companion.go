package dependency

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/fields"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// Companions are the reverse of dependencies: objects that point at a workload of their namespace, and are of use only
// where that is. A HorizontalPodAutoscaler is none: it would set in members the replicas that the hub divides.

// points is how objects of a kind say which workloads they are about.
type points struct {
	// references are paths to an apiVersion, kind and name, in any version of the kind. Where there is one, no selector
	// counts.
	references [][]string
	// selects says that spec.selector selects pods by their labels; everything is one of those whose empty selector
	// selects all.
	selects, everything bool
}

var companions = map[schema.GroupKind]points{
	{Group: "apps.kruise.io", Kind: "WorkloadSpread"}: {references: [][]string{{"spec", "targetRef"}}},
	{Group: "apps.kruise.io", Kind: "PodProbeMarker"}: {selects: true},
	{Group: "policy.kruise.io", Kind: "PodUnavailableBudget"}: {references: [][]string{{"spec", "targetRef"}},
		selects: true},
	{Group: "policy", Kind: "PodDisruptionBudget"}: {selects: true, everything: true},
	{Group: "rollouts.kruise.io", Kind: "Rollout"}: {references: [][]string{{"spec", "workloadRef"},
		{"spec", "objectRef", "workloadRef"}}},
	persistentPodState: {references: [][]string{{"spec", "targetRef"}}},
}

var persistentPodState = schema.GroupKind{Group: "apps.kruise.io", Kind: "PersistentPodState"}

// AutoGenerateAnnotation = "true" on a workload has a member's OpenKruise make a PersistentPodState for it.
const AutoGenerateAnnotation = "kruise.io/auto-generate-persistent-pod-state"

// CompanionKinds are the kinds whose objects may be companions, sorted.
func CompanionKinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(companions), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	})
}

// IsCompanion says whether objects of the kind may be companions.
func IsCompanion(gk schema.GroupKind) bool {
	_, ok := companions[gk]
	return ok
}

// References are where objects of a kind name the workload that they are about, in any version; none for kinds that are
// no companions.
func References(gk schema.GroupKind) [][]string { return companions[gk].references }

// Pointer is what a companion points at, in its namespace.
type Pointer struct {
	namespace string
	named     []target
	pods      labels.Selector // nil for none
}

type target struct {
	schema.GroupKind
	name string
}

func (t target) String() string { return t.Kind + " " + t.name }

// PointerOf reads what obj points at; ok is false for what is no companion, or points at nothing.
func PointerOf(obj *unstructured.Unstructured) (p Pointer, ok bool, err error) {
	how, ok := companions[obj.GroupVersionKind().GroupKind()]
	if !ok || obj.GetNamespace() == "" {
		return p, false, nil
	}
	p.namespace = obj.GetNamespace()
	for _, path := range how.references {
		ref := fields.Object(obj.Object, path...)
		t := target{propagate.GroupKind(fields.Text(ref, "apiVersion"), fields.Text(ref, "kind")), fields.Text(ref, "name")}
		if t.Kind != "" && t.name != "" {
			p.named = append(p.named, t)
		}
	}
	if len(p.named) > 0 {
		return p, true, nil
	}
	raw := fields.Object(obj.Object, "spec", "selector")
	if !how.selects || raw == nil {
		return p, false, nil
	}
	if p.pods, err = selector(raw); err != nil {
		return p, false, fmt.Errorf("read spec.selector of %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	if p.pods.Empty() && !how.everything {
		return p, false, nil
	}
	return p, true, nil
}

// At says whether it points at the workload.
func (p Pointer) At(workload *unstructured.Unstructured) bool {
	if workload.GetNamespace() != p.namespace {
		return false
	}
	if p.pods == nil {
		return slices.Contains(p.named, target{workload.GroupVersionKind().GroupKind(), workload.GetName()})
	}
	return slices.ContainsFunc(podLabels(workload), func(of labels.Set) bool { return p.pods.Matches(of) })
}

// String is "CloneSet web", or "pods with app=web".
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

// Reaches are the keys of an index by which companions are found: who points at a workload has one of the keys that it
// is ReachedBy. None for what points at nothing.
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
	// One label that each of the pods has is enough to find it by. The requirements are sorted by their labels.
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

// ReachedBy are the keys under which the companions of a workload are to be found, and some that point elsewhere; none
// for what nothing can point at.
func ReachedBy(workload *unstructured.Unstructured) []string {
	ns := workload.GetNamespace()
	if ns == "" || IsCompanion(workload.GroupVersionKind().GroupKind()) {
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

// No namespace has a slash or a question mark in its name.
func nameKey(namespace string, t target) string {
	return namespace + "/" + t.GroupKind.String() + "/" + t.name
}
func podsKey(namespace string) string              { return namespace + "?" }
func labelKey(namespace, key, value string) string { return namespace + "?" + key + "=" + value }

// podLabels are the labels of the pods that a workload makes, by template.
func podLabels(workload *unstructured.Unstructured) []labels.Set {
	var all []labels.Set
	for _, path := range interpret.PodTemplates(workload) {
		of, _, _ := unstructured.NestedStringMap(workload.Object, slices.Concat(path, []string{"metadata", "labels"})...)
		all = append(all, of)
	}
	return all
}

// Companions are those of the objects that point at the workload and are to follow it, each once, sorted. made are
// those that are not, since members make such ones by themselves.
func Companions(workload *unstructured.Unstructured,
	objs []*unstructured.Unstructured) (follow []configv1alpha1.DependentObjectReference,
	made []*unstructured.Unstructured) {
	for _, obj := range objs {
		p, ok, err := PointerOf(obj)
		if err != nil || !ok || !p.At(workload) {
			continue
		}
		if obj.GroupVersionKind().GroupKind() == persistentPodState &&
			workload.GetAnnotations()[AutoGenerateAnnotation] == "true" {
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
	return slices.CompactFunc(follow, same), made
}

// With are refs, and those of the named references of more that are not among them.
func With(refs, more []configv1alpha1.DependentObjectReference) []configv1alpha1.DependentObjectReference {
	all := slices.Clip(refs)
	for _, ref := range more {
		if !slices.ContainsFunc(all, func(have configv1alpha1.DependentObjectReference) bool {
			return have.LabelSelector == nil && same(have, ref)
		}) {
			all = append(all, ref)
		}
	}
	return all
}

// same says whether two references name the same object, in whatever version.
func same(a, b configv1alpha1.DependentObjectReference) bool {
	return propagate.GroupKind(a.APIVersion, a.Kind) == propagate.GroupKind(b.APIVersion, b.Kind) &&
		a.Namespace == b.Namespace && a.Name == b.Name
}
