// Package dependency decides which bindings are attached to others, so that dependencies follow a template to its
// clusters. core/workload/interpret finds the dependencies; the controller writes the bindings.
//
// The binding of the template is independent; the bindings of its dependencies are attached to it. An attached binding
// is not scheduled. It goes to the clusters of all bindings that require it, and to its own if a policy claims it too.
package dependency

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Distributes reports whether b currently has its dependencies attached. If not, they are detached.
func Distributes(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	return spec.PropagateDeps && len(spec.Clusters) > 0 && b.GetDeletionTimestamp() == nil
}

// KeepsAttached reports whether the bindings attached to b stay unchanged although b does not distribute: b is being
// deleted and was released already or will be recreated, or it was recreated and is not scheduled yet.
func KeepsAttached(b workv1alpha2.Binding) bool {
	if b.GetDeletionTimestamp() != nil {
		return !slices.Contains(b.GetFinalizers(), workv1alpha2.DependenciesDistributorFinalizer)
	}
	return b.BindingSpec().PropagateDeps && schedule.NeverPlaced(b)
}

// Selects reports whether ref refers to obj, by group and kind, namespace, and name or labels.
func Selects(ref configv1alpha1.DependentObjectReference, obj *unstructured.Unstructured) (bool, error) {
	if match.GroupKind(ref.APIVersion, ref.Kind) != obj.GroupVersionKind().GroupKind() ||
		ref.Namespace != obj.GetNamespace() {
		return false, nil
	}
	if ref.LabelSelector == nil {
		return ref.Name == obj.GetName(), nil
	}
	s, err := metav1.LabelSelectorAsSelector(ref.LabelSelector)
	if err != nil {
		return false, fmt.Errorf("read the label selector for %s in namespace %q: %w", ref.Kind, ref.Namespace, err)
	}
	return s.Matches(labels.Set(obj.GetLabels())), nil
}

// Record returns independent with its dependencies in the annotation, where others look them up, and with the finalizer
// while it has any. The result equals independent if nothing changes.
func Record(independent workv1alpha2.Binding, deps []configv1alpha1.DependentObjectReference) workv1alpha2.Binding {
	b := independent.DeepCopyObject().(workv1alpha2.Binding)
	if len(deps) == 0 {
		fields.PutAnnotation(b, workv1alpha2.DependenciesAnnotation, "")
		return b
	}
	fields.SetAnnotation(b, workv1alpha2.DependenciesAnnotation, text.JSON(deps))
	if f := workv1alpha2.DependenciesDistributorFinalizer; !slices.Contains(b.GetFinalizers(), f) {
		b.SetFinalizers(append(slices.Clone(b.GetFinalizers()), f))
	}
	return b
}

// Attach returns the binding of dep, required by independent. existing is the current binding with its name or nil; it
// is not modified. id is used for a new binding.
//
// Overwrite and preserving on deletion are set if any requirer asks for them, and stay set, because taking them back
// could delete or lose objects. If a policy claims the dependency, its settings apply; see Conflicts. The error is one
// of propagate.For.
func Attach(independent workv1alpha2.Binding, dep *unstructured.Unstructured, existing workv1alpha2.Binding,
	id string) (workv1alpha2.Binding, error) {
	b, err := propagate.For(dep, existing)
	if err != nil {
		return nil, err
	}
	propagate.Refer(b, dep)
	if existing == nil {
		finalizer, label := workv1alpha2.BindingFinalizer, workv1alpha2.ResourceBindingPermanentIDLabel
		if b.GetNamespace() == "" {
			finalizer, label = workv1alpha2.ClusterBindingFinalizer, workv1alpha2.ClusterResourceBindingPermanentIDLabel
		}
		b.SetFinalizers([]string{finalizer})
		if id != "" {
			fields.SetLabel(b, label, id)
		}
	}
	key := keyOf(independent)
	fields.SetLabel(b, label(key), propagate.PermanentID(independent))

	spec, by := b.BindingSpec(), independent.BindingSpec()
	snapshot := workv1alpha2.BindingSnapshot{Namespace: key.Namespace, Name: key.Name, Clusters: Occupied(by)}
	spec.RequiredBy = append(without(spec.RequiredBy, key), snapshot)
	slices.SortFunc(spec.RequiredBy, func(a, b workv1alpha2.BindingSnapshot) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if claimed(b) {
		return b, nil
	}
	if by.ConflictResolution == policyv1alpha1.ConflictOverwrite || spec.ConflictResolution == "" {
		spec.ConflictResolution = cmp.Or(by.ConflictResolution, policyv1alpha1.ConflictAbort)
	}
	if preserves(by) || spec.PreserveResourcesOnDeletion == nil {
		spec.PreserveResourcesOnDeletion = by.DeepCopy().PreserveResourcesOnDeletion
	}
	return b, nil
}

// Occupied returns the clusters of the workload and those that it is leaving, sorted by name. Pods run in the latter
// until the object is deleted, with purgeMode Directly too.
func Occupied(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	clusters := slices.Clone(spec.Clusters)
	var left []string
	for _, t := range spec.GracefulEvictionTasks {
		if !workv1alpha2.HasTarget(clusters, t.FromCluster) {
			left = append(left, t.FromCluster)
		}
	}
	slices.Sort(left)
	for _, name := range slices.Compact(left) {
		clusters = append(clusters, workv1alpha2.TargetCluster{Name: name})
	}
	return clusters
}

// Conflicts lists the settings that differ between the policies of the requirers, in Karmada's words. requiring are
// their bindings. A policy that claims attached counts too.
func Conflicts(attached workv1alpha2.Binding, requiring []workv1alpha2.Binding) []string {
	if claimed(attached) {
		requiring = append(slices.Clip(requiring), attached)
	}
	var overwrites, aborts, preserve, deletes bool
	for _, b := range requiring {
		spec := b.BindingSpec()
		overwrite := spec.ConflictResolution == policyv1alpha1.ConflictOverwrite
		overwrites, aborts = overwrites || overwrite, aborts || !overwrite
		preserve, deletes = preserve || preserves(spec), deletes || !preserves(spec)
	}
	var out []string
	if overwrites && aborts {
		out = append(out, "ConflictResolution conflicted (Overwrite vs Abort)")
	}
	if preserve && deletes {
		out = append(out, "PreserveResourcesOnDeletion conflicted (true vs false)")
	}
	return out
}

// MayConflict reports whether the settings of b and attached differ.
func MayConflict(b, attached workv1alpha2.Binding) bool {
	plain := func(b workv1alpha2.Binding) bool {
		return b.BindingSpec().ConflictResolution != policyv1alpha1.ConflictOverwrite && !preserves(b.BindingSpec())
	}
	return claimed(attached) || !plain(b) || !plain(attached)
}

// SameClaim reports whether both have the same settings from a claiming policy, or no such policy.
func SameClaim(was, is workv1alpha2.Binding) bool {
	a, b := was.BindingSpec(), is.BindingSpec()
	return claimed(was) == claimed(is) && (!claimed(is) || a.ConflictResolution == b.ConflictResolution &&
		preserves(a) == preserves(b))
}

func preserves(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.PreserveResourcesOnDeletion != nil && *spec.PreserveResourcesOnDeletion
}

// Detach returns attached without the marks of the independent binding. remove is true if neither another binding nor a
// policy wants it, so that it must be deleted.
func Detach(independent types.NamespacedName, attached workv1alpha2.Binding) (b workv1alpha2.Binding, remove bool) {
	b = attached.DeepCopyObject().(workv1alpha2.Binding)
	marks := maps.Clone(b.GetLabels())
	delete(marks, label(independent))
	b.SetLabels(marks)
	spec := b.BindingSpec()
	if left := without(spec.RequiredBy, independent); len(left) > 0 {
		spec.RequiredBy = left
	} else {
		spec.RequiredBy = nil
	}
	return b, len(spec.RequiredBy) == 0 && !claimed(b)
}

// Leaving returns the bindings with a mark of the independent binding whose objects are not wanted.
func Leaving(independent types.NamespacedName, wanted []identity.Object,
	bindings []workv1alpha2.Binding) []workv1alpha2.Binding {
	return slices.DeleteFunc(slices.Clone(bindings), func(b workv1alpha2.Binding) bool {
		return !RequiredBy(b, independent) || slices.Contains(wanted, propagate.TemplateOfBinding(b))
	})
}

// RequiredBy reports whether b has a mark of the independent binding.
func RequiredBy(b workv1alpha2.Binding, independent types.NamespacedName) bool {
	_, marked := b.GetLabels()[label(independent)]
	return marked || len(without(b.BindingSpec().RequiredBy, independent)) != len(b.BindingSpec().RequiredBy)
}

// SameMarks reports whether both have the same marks of the independent binding.
func SameMarks(was, is workv1alpha2.Binding, independent types.NamespacedName) bool {
	own := func(b workv1alpha2.Binding) []workv1alpha2.BindingSnapshot {
		return slices.DeleteFunc(slices.Clone(b.BindingSpec().RequiredBy), func(s workv1alpha2.BindingSnapshot) bool {
			return s.Namespace != independent.Namespace || s.Name != independent.Name
		})
	}
	return was.GetLabels()[label(independent)] == is.GetLabels()[label(independent)] &&
		equality.Semantic.DeepEqual(own(was), own(is))
}

// claimed reports whether a policy or another component created the binding, so that it exists without being required.
func claimed(b workv1alpha2.Binding) bool {
	marks := b.GetLabels()
	return b.BindingSpec().Placement != nil ||
		marks[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		marks[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" ||
		marks[workv1alpha2.BindingManagedByLabel] != ""
}

// without returns the snapshots without the one with the key.
func without(required []workv1alpha2.BindingSnapshot, key types.NamespacedName) []workv1alpha2.BindingSnapshot {
	return slices.DeleteFunc(slices.Clone(required), func(s workv1alpha2.BindingSnapshot) bool {
		return s.Namespace == key.Namespace && s.Name == key.Name
	})
}

func label(independent types.NamespacedName) string {
	return names.DependedByLabel(workv1alpha2.DependedByLabelPrefix, independent.Namespace, independent.Name)
}

func keyOf(b workv1alpha2.Binding) types.NamespacedName {
	return types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}
}
