package kruise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Labels of a UnitedDeployment.
const (
	subsetLabel         = "apps.kruise.io/subset-name"
	subsetRevisionLabel = "apps.kruise.io/controller-revision-hash"
)

// UnitedDeploymentSpec is a template of one kind of workload, and the subsets that it is made for.
type UnitedDeploymentSpec struct {
	Replicas *int32                `json:"replicas,omitempty"`
	Selector *metav1.LabelSelector `json:"selector"`
	// Template holds one workload under its template field, such as cloneSetTemplate.
	Template map[string]any `json:"template,omitempty"`
	Topology struct {
		Subsets []Subset `json:"subsets,omitempty"`
	} `json:"topology"`
}

// Subset is where a part of the pods runs, and how many of them.
type Subset struct {
	Name             string                   `json:"name"`
	NodeSelectorTerm *corev1.NodeSelectorTerm `json:"nodeSelectorTerm,omitempty"`
	Tolerations      []corev1.Toleration      `json:"tolerations,omitempty"`
	Replicas         *intstr.IntOrString      `json:"replicas,omitempty"`
}

// UnitedDeploymentStatus is all of the status in either version; updateStatus and subsetReplicas are v1alpha1's,
// updatedRevision is v1beta1's.
type UnitedDeploymentStatus struct {
	ObservedGeneration   int64            `json:"observedGeneration,omitempty"`
	Replicas             int32            `json:"replicas"`
	ReadyReplicas        int32            `json:"readyReplicas"`
	UpdatedReplicas      int32            `json:"updatedReplicas"`
	UpdatedReadyReplicas int32            `json:"updatedReadyReplicas"`
	ReservedPods         int32            `json:"reservedPods"`
	CurrentRevision      string           `json:"currentRevision"`
	UpdatedRevision      string           `json:"updatedRevision,omitempty"`
	SubsetReplicas       map[string]int32 `json:"subsetReplicas,omitempty"`
	SubsetStatuses       []SubsetStatus   `json:"subsetStatuses,omitempty"`
	UpdateStatus         *UpdateStatus    `json:"updateStatus,omitempty"`
	LabelSelector        string           `json:"labelSelector,omitempty"`
}

// UpdateStatus is the revision in v1alpha1.
type UpdateStatus struct {
	UpdatedRevision string `json:"updatedRevision,omitempty"`
}

// SubsetStatus is what the workload of one subset has come to. Partition and ReservedPods stay zero.
type SubsetStatus struct {
	Name          string `json:"name,omitempty"`
	Replicas      int32  `json:"replicas"`
	ReadyReplicas int32  `json:"readyReplicas"`
	Partition     int32  `json:"partition"`
	ReservedPods  int32  `json:"reservedPods"`
}

// childTemplates are the fields of a UnitedDeployment's template, and the kinds that they make.
var childTemplates = map[string]schema.GroupKind{
	"statefulSetTemplate":         {Group: "apps", Kind: "StatefulSet"},
	"deploymentTemplate":          {Group: "apps", Kind: "Deployment"},
	"advancedStatefulSetTemplate": StatefulSetKind.GroupKind(),
	"cloneSetTemplate":            CloneSetKind.GroupKind(),
}

// embedded returns the workload of a template and the field that it stands in.
func (spec *UnitedDeploymentSpec) embedded() (name string, workload map[string]any, err error) {
	for field := range childTemplates {
		if w, ok := spec.Template[field].(map[string]any); ok {
			return field, w, nil
		}
	}
	return "", nil, errors.New("should provide one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate")
}

// allocate is how many replicas each subset gets, in their order. Subsets with replicas get those, and the others
// share the rest as evenly as it goes, the first ones one more.
func (spec *UnitedDeploymentSpec) allocate() ([]int32, error) {
	out := make([]int32, len(spec.Topology.Subsets))
	total := ptr.Deref(spec.Replicas, 0)
	rest := total
	var open []int
	for i, s := range spec.Topology.Subsets {
		if s.Replicas == nil {
			open = append(open, i)
			continue
		}
		n, err := share(s.Replicas, total, fleet.HalfUp)
		if err != nil {
			return nil, fmt.Errorf("subset %s: replicas: %w", s.Name, err)
		}
		out[i] = n
		rest -= n
	}
	rest = max(0, rest)
	for nth, i := range open {
		out[i] = rest / int32(len(open))
		if nth < int(rest)%len(open) {
			out[i]++
		}
	}
	return out, nil
}

// child returns the workload of a subset as it should be. versions are those that the member stores. The real manager
// generates the name.
func child(ud *UnitedDeployment, subset Subset, replicas int32, revision string,
	versions Versions) (*unstructured.Unstructured, error) {
	field, workload, err := ud.Spec.embedded()
	if err != nil {
		return nil, err
	}
	gk := childTemplates[field]
	version := "v1"
	if gk.Group != "apps" {
		if version = versions[gk]; version == "" {
			return nil, fmt.Errorf("%s is not served here", gk)
		}
	}
	workload = runtime.DeepCopyJSON(workload)
	spec := fields.Ensure(workload, "spec")
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	out.SetGroupVersionKind(gk.WithVersion(version))
	out.SetNamespace(ud.Namespace)
	out.SetName(ud.Name + "-" + subset.Name)
	ours := map[string]string{subsetLabel: subset.Name, subsetRevisionLabel: revision}
	objectLabels, _, _ := unstructured.NestedStringMap(workload, "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(workload, "metadata", "annotations")
	selected := ptr.Deref(ud.Spec.Selector, metav1.LabelSelector{})
	out.SetLabels(labels.Merge(labels.Merge(objectLabels, selected.MatchLabels), ours))
	out.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(ud, ud.GroupVersionKind())})

	// The selector of the whole, narrowed to the subset.
	selector, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&selected)
	if err != nil {
		return nil, err
	}
	spec["selector"], spec["replicas"] = selector, int64(replicas)
	fields.Ensure(selector, "matchLabels")[subsetLabel] = subset.Name
	template, err := subset.template(spec["template"], ours)
	if err != nil {
		return nil, fmt.Errorf("subset %s: %w", subset.Name, err)
	}
	spec["template"] = template

	out.SetAnnotations(annotations)
	return out, nil
}

// template returns the pod template of the subset: labelled, and bound to the subset's nodes.
func (s *Subset) template(object any, ours map[string]string) (map[string]any, error) {
	base, _ := object.(map[string]any)
	var t corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(base, &t); err != nil {
		return nil, fmt.Errorf("read the pod template: %w", err)
	}
	t.Labels = labels.Merge(t.Labels, ours)
	t.Spec.Tolerations = append(t.Spec.Tolerations, s.Tolerations...)
	if s.NodeSelectorTerm != nil && len(s.NodeSelectorTerm.MatchExpressions)+len(s.NodeSelectorTerm.MatchFields) > 0 {
		if t.Spec.Affinity == nil {
			t.Spec.Affinity = &corev1.Affinity{}
		}
		if t.Spec.Affinity.NodeAffinity == nil {
			t.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
		}
		required := &t.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if *required == nil || len((*required).NodeSelectorTerms) == 0 {
			*required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
		}
		for i := range (*required).NodeSelectorTerms { // any of them holds, so that each gets the subset's
			term := &(*required).NodeSelectorTerms[i]
			term.MatchExpressions = append(term.MatchExpressions, s.NodeSelectorTerm.MatchExpressions...)
			term.MatchFields = append(term.MatchFields, s.NodeSelectorTerm.MatchFields...)
		}
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&t)
}

// children returns the workloads of all subsets as they should be.
func children(ud *UnitedDeployment, revision string, versions Versions) ([]*unstructured.Unstructured, error) {
	replicas, err := ud.Spec.allocate()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for i, subset := range ud.Spec.Topology.Subsets {
		c, err := child(ud, subset, replicas[i], revision, versions)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// unitedDeploymentStatus returns the status of a UnitedDeployment with these pods, which carry subset and revision as
// labels.
func unitedDeploymentStatus(ud *UnitedDeployment, pods []*corev1.Pod, o observed) UnitedDeploymentStatus {
	status := UnitedDeploymentStatus{
		ObservedGeneration: ud.Generation,
		CurrentRevision:    o.current,
		LabelSelector:      metav1.FormatLabelSelector(ud.Spec.Selector),
	}
	replicas, _ := ud.Spec.allocate()
	bySubset := map[string]*SubsetStatus{}
	counts, wanted := map[string]int32{}, int32(0)
	for i, n := range replicas {
		name := ud.Spec.Topology.Subsets[i].Name
		wanted += n
		counts[name] = n
		status.SubsetStatuses = append(status.SubsetStatuses, SubsetStatus{Name: name})
	}
	for i := range status.SubsetStatuses {
		bySubset[status.SubsetStatuses[i].Name] = &status.SubsetStatuses[i]
	}
	for _, p := range pods {
		s := bySubset[p.Labels[subsetLabel]]
		if s == nil || !active(p) {
			continue
		}
		updated := p.Labels[subsetRevisionLabel] == o.update
		s.Replicas++
		status.Replicas++
		if updated {
			status.UpdatedReplicas++
		}
		if !ready(p) {
			continue
		}
		s.ReadyReplicas++
		status.ReadyReplicas++
		if updated {
			status.UpdatedReadyReplicas++
		}
	}
	if status.UpdatedReplicas == status.Replicas && status.Replicas == wanted {
		status.CurrentRevision = o.update
	}
	if strings.HasSuffix(ud.APIVersion, "/v1alpha1") {
		status.SubsetReplicas = counts
		status.UpdateStatus = &UpdateStatus{UpdatedRevision: o.update}
	} else {
		status.UpdatedRevision = o.update
	}
	return status
}

// childKinds are those that a subset may be, as far as they are served.
func (v Versions) childKinds() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet")}
	for _, gk := range []schema.GroupKind{CloneSetKind.GroupKind(), StatefulSetKind.GroupKind()} {
		if gvk, ok := v.stored(gk); ok {
			kinds = append(kinds, gvk)
		}
	}
	return kinds
}

// syncUnitedDeployment makes the workloads of subsets; the pods are those workloads' to make.
func (r *reconciler) syncUnitedDeployment(ctx context.Context, u *unstructured.Unstructured) (time.Duration, error) {
	ud, err := read[UnitedDeployment](u)
	if err != nil {
		return 0, err
	}
	o := observed{now: time.Now()}
	if err := r.revise(ctx, u, &o); err != nil {
		return 0, err
	}
	want, err := children(ud, o.update, r.versions)
	if err == nil {
		err = r.applySubsets(ctx, u, want)
	}
	if err != nil {
		// The real manager records an event and writes no status while it cannot write a subset: observedGeneration stays
		// behind.
		return 0, err
	}
	pods, err := r.selectPods(ctx, ud.Namespace, ud.Spec.Selector)
	if err != nil {
		return 0, err
	}
	status := unitedDeploymentStatus(ud, pods, o)
	return 0, r.report(ctx, u, &status)
}

// applySubsets makes the workloads of subsets what they should be, and removes the others that u owns.
func (r *reconciler) applySubsets(ctx context.Context, u *unstructured.Unstructured,
	want []*unstructured.Unstructured) error {
	var errs []error
	keep := map[identity.Object]bool{}
	for _, c := range want {
		err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(c), client.FieldOwner("kruise-manager"),
			client.ForceOwnership)
		if keep[identity.FromManifest(c)] = true; err != nil {
			errs = append(errs, fmt.Errorf("apply %s %s: %w", c.GetKind(), c.GetName(), err))
		}
	}
	if len(errs) > 0 {
		return joined(errs...)
	}
	for _, gvk := range r.versions.childKinds() {
		list := listOf(gvk)
		if err := r.reader.List(ctx, list, client.InNamespace(u.GetNamespace()), client.HasLabels{subsetLabel}); err != nil {
			return fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			c := &list.Items[i]
			if !metav1.IsControlledBy(c, u) || keep[identity.FromManifest(c)] {
				continue
			}
			err := r.client.Delete(ctx, c, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("remove %s %s: %w", c.GetKind(), c.GetName(), err)
			}
		}
	}
	return nil
}
