package dependency

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// SidecarSetKind is the kind whose containers run in other pods and need their dependencies there.
var SidecarSetKind = kind.SidecarSet.GroupKind

// Injection selects the pods into which a SidecarSet injects its containers.
type Injection struct {
	pods       labels.Selector
	namespaces labels.Selector // nil selects all namespaces
}

// InjectionOf reads the selectors of a SidecarSet. ok is false for other kinds, and for one that names its namespace,
// because its dependencies do not depend on workloads.
func InjectionOf(obj *unstructured.Unstructured) (i Injection, ok bool, err error) {
	if fields.Text(obj.Object, "spec", "namespace") != "" {
		return i, false, nil
	}
	return injectionOf(obj)
}

// injectionOf is InjectionOf, but includes a SidecarSet that names its namespace, as v1alpha1 allows.
func injectionOf(obj *unstructured.Unstructured) (i Injection, ok bool, err error) {
	if obj.GroupVersionKind().GroupKind() != SidecarSetKind {
		return i, false, nil
	}
	pods := fields.Object(obj.Object, "spec", "selector")
	if len(pods) == 0 {
		return i, false, nil // no selector: it injects nowhere
	}
	if i.pods, err = match.ParseSelector(pods); err != nil {
		return i, false, fmt.Errorf("read spec.selector of SidecarSet %s: %w", obj.GetName(), err)
	}
	if ns := fields.Text(obj.Object, "spec", "namespace"); ns != "" {
		i.namespaces = labels.SelectorFromSet(labels.Set{corev1.LabelMetadataName: ns})
		return i, true, nil
	}
	namespaces := fields.Object(obj.Object, "spec", "namespaceSelector")
	if namespaces == nil {
		return i, true, nil
	}
	if i.namespaces, err = match.ParseSelector(namespaces); err != nil {
		return i, false, fmt.Errorf("read spec.namespaceSelector of SidecarSet %s: %w", obj.GetName(), err)
	}
	return i, true, nil
}

// Selects reports whether it injects into pods of the workload, if it selects the namespace.
func (i Injection) Selects(workload *unstructured.Unstructured) bool {
	return workload.GetNamespace() != "" &&
		slices.ContainsFunc(interpret.PodTemplates(workload), func(path []string) bool {
			return i.selects(workload, path)
		})
}

// selects reports whether it injects into pods of the template at a path of the workload.
func (i Injection) selects(workload *unstructured.Unstructured, path []string) bool {
	of, _, _ := unstructured.NestedStringMap(workload.Object, slices.Concat(path, []string{"metadata", "labels"})...)
	return of != nil && i.pods.Matches(labels.Set(of))
}

// SelectsNamespace reports whether it injects into pods of a namespace with these labels.
func (i Injection) SelectsNamespace(name string, of map[string]string) bool {
	if i.namespaces == nil {
		return true
	}
	set := labels.Set{corev1.LabelMetadataName: name} // set by every API server
	for k, v := range of {
		set[k] = v
	}
	return i.namespaces.Matches(set)
}

// ByLabel reports whether the labels of a namespace, not only its name, decide.
func (i Injection) ByLabel() bool {
	if i.namespaces == nil {
		return false
	}
	required, _ := i.namespaces.Requirements()
	return slices.ContainsFunc(required, func(r labels.Requirement) bool { return r.Key() != corev1.LabelMetadataName })
}

// Narrowed returns the SidecarSet as if it named these namespaces, to look up its dependencies there.
func Narrowed(sidecars *unstructured.Unstructured, namespaces []string) (*unstructured.Unstructured, error) {
	values := make([]any, len(namespaces))
	for i, ns := range namespaces {
		values[i] = ns
	}
	out := sidecars.DeepCopy()
	err := unstructured.SetNestedMap(out.Object, map[string]any{"matchExpressions": []any{
		map[string]any{"key": corev1.LabelMetadataName, "operator": "In", "values": values}}}, "spec", "namespaceSelector")
	return out, err
}

// RestrictTo returns independent with only the given clusters; unchanged if these are all.
func RestrictTo(independent workv1alpha2.Binding, clusters map[string]bool) workv1alpha2.Binding {
	leaves := func(c workv1alpha2.TargetCluster) bool { return !clusters[c.Name] }
	left := func(t workv1alpha2.GracefulEvictionTask) bool { return !clusters[t.FromCluster] }
	if spec := independent.BindingSpec(); !slices.ContainsFunc(spec.Clusters, leaves) &&
		!slices.ContainsFunc(spec.GracefulEvictionTasks, left) {
		return independent
	}
	out := independent.DeepCopyObject().(workv1alpha2.Binding)
	spec := out.BindingSpec()
	spec.Clusters = slices.DeleteFunc(spec.Clusters, leaves)
	spec.GracefulEvictionTasks = slices.DeleteFunc(spec.GracefulEvictionTasks, left)
	return out
}
