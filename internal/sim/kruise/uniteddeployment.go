package kruise

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Labels and conditions of a UnitedDeployment.
const (
	subsetLabel         = "apps.kruise.io/subset-name"
	subsetRevisionLabel = "apps.kruise.io/controller-revision-hash"
	// subsetHashAnnotation tells whether a child is as its subset was last resolved, whatever defaults the child got
	// since.
	subsetHashAnnotation = "sim.argosy.io/subset-hash"

	subsetProvisioned = "SubsetProvisioned"
	subsetUpdated     = "SubsetUpdated"
)

// UnitedDeployment is the part of a UnitedDeployment that the simulation acts on, in either version.
type UnitedDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              UnitedDeploymentSpec   `json:"spec"`
	Status            UnitedDeploymentStatus `json:"status"`
}

// UnitedDeploymentSpec is a template of one kind of workload, and the subsets that it is made for.
type UnitedDeploymentSpec struct {
	Replicas *int32                `json:"replicas,omitempty"`
	Selector *metav1.LabelSelector `json:"selector"`
	// Template holds one workload under its template field, such as cloneSetTemplate.
	Template map[string]any `json:"template,omitempty"`
	Topology struct {
		Subsets          []Subset `json:"subsets,omitempty"`
		ScheduleStrategy struct {
			Type string `json:"type,omitempty"`
		} `json:"scheduleStrategy"`
	} `json:"topology"`
	UpdateStrategy struct {
		Type         string `json:"type,omitempty"`
		ManualUpdate *struct {
			Partitions map[string]int32 `json:"partitions,omitempty"`
		} `json:"manualUpdate,omitempty"`
	} `json:"updateStrategy"`
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// Subset is where a part of the pods runs, and how many of them.
type Subset struct {
	Name             string                   `json:"name"`
	NodeSelectorTerm *corev1.NodeSelectorTerm `json:"nodeSelectorTerm,omitempty"`
	Tolerations      []corev1.Toleration      `json:"tolerations,omitempty"`
	Replicas         *intstr.IntOrString      `json:"replicas,omitempty"`
	MinReplicas      *intstr.IntOrString      `json:"minReplicas,omitempty"`
	MaxReplicas      *intstr.IntOrString      `json:"maxReplicas,omitempty"`
	// Patch changes the pod template, as a strategic merge.
	Patch map[string]any `json:"patch,omitempty"`
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
	CollisionCount       *int32           `json:"collisionCount,omitempty"`
	CurrentRevision      string           `json:"currentRevision"`
	UpdatedRevision      string           `json:"updatedRevision,omitempty"`
	SubsetReplicas       map[string]int32 `json:"subsetReplicas,omitempty"`
	SubsetStatuses       []SubsetStatus   `json:"subsetStatuses,omitempty"`
	UpdateStatus         *UpdateStatus    `json:"updateStatus,omitempty"`
	Conditions           []Condition      `json:"conditions,omitempty"`
	LabelSelector        string           `json:"labelSelector,omitempty"`
}

// UpdateStatus is how far an update is allowed to be, in v1alpha1.
type UpdateStatus struct {
	UpdatedRevision   string           `json:"updatedRevision,omitempty"`
	CurrentPartitions map[string]int32 `json:"currentPartitions,omitempty"`
}

// SubsetStatus is what the workload of one subset has come to.
type SubsetStatus struct {
	Name          string      `json:"name,omitempty"`
	Replicas      int32       `json:"replicas"`
	ReadyReplicas int32       `json:"readyReplicas"`
	Partition     int32       `json:"partition"`
	ReservedPods  int32       `json:"reservedPods"`
	Conditions    []Condition `json:"conditions,omitempty"`
}

// childTemplates are the fields of a UnitedDeployment's template, and the kinds that they make.
var childTemplates = map[string]schema.GroupKind{
	"statefulSetTemplate":         {Group: "apps", Kind: "StatefulSet"},
	"deploymentTemplate":          {Group: "apps", Kind: "Deployment"},
	"advancedStatefulSetTemplate": StatefulSetKind.GroupKind(),
	"cloneSetTemplate":            CloneSetKind.GroupKind(),
}

// embedded returns the one workload of a template and the field that it stands in.
func (spec *UnitedDeploymentSpec) embedded() (name string, workload map[string]any, err error) {
	for field := range childTemplates {
		w, ok := spec.Template[field].(map[string]any)
		if !ok {
			continue
		}
		if name != "" {
			return "", nil, fmt.Errorf("should provide only one of %s", templateNames)
		}
		name, workload = field, w
	}
	if name == "" {
		return "", nil, fmt.Errorf("should provide one of %s", templateNames)
	}
	return name, workload, nil
}

const templateNames = "statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate"

// halfUp rounds to the nearest, halves up.
func halfUp(x float64) float64 { return math.Floor(x + 0.5) }

// allocate is how many replicas each subset gets, in their order. Subsets with replicas get those, and the others
// share the rest as evenly as it goes, the first ones one more. With bounds instead, all get their least, and then
// one after the other as much as it may have.
func (spec *UnitedDeploymentSpec) allocate() ([]int32, error) {
	subsets := spec.Topology.Subsets
	out := make([]int32, len(subsets))
	if spec.Replicas == nil {
		for i, s := range subsets {
			if s.Replicas == nil || s.Replicas.Type == intstr.String {
				return nil, fmt.Errorf("subset %s: replicas must be a number where the UnitedDeployment has no replicas", s.Name)
			}
			out[i] = s.Replicas.IntVal
		}
		return out, nil
	}
	rest := *spec.Replicas
	var open []int
	bounded := false
	for i, s := range subsets {
		if s.MinReplicas != nil || s.MaxReplicas != nil {
			bounded = true
		}
		if s.Replicas == nil {
			open = append(open, i)
			continue
		}
		n, err := share(s.Replicas, *spec.Replicas, halfUp)
		if err != nil {
			return nil, fmt.Errorf("subset %s: replicas: %w", s.Name, err)
		}
		out[i] = n
		rest -= n
	}
	rest = max(0, rest)
	if !bounded {
		for nth, i := range open {
			out[i] = rest / int32(len(open))
			if nth < int(rest)%len(open) {
				out[i]++
			}
		}
		return out, nil
	}
	for _, i := range open {
		least, err := spec.bound(subsets[i].MinReplicas, 0)
		if err != nil {
			return nil, fmt.Errorf("subset %s: minReplicas: %w", subsets[i].Name, err)
		}
		out[i] = min(least, rest)
		rest -= out[i]
	}
	for _, i := range open {
		most, err := spec.bound(subsets[i].MaxReplicas, math.MaxInt32)
		if err != nil {
			return nil, fmt.Errorf("subset %s: maxReplicas: %w", subsets[i].Name, err)
		}
		n := min(rest, max(0, most-out[i]))
		out[i] += n
		rest -= n
	}
	return out, nil
}

func (spec *UnitedDeploymentSpec) bound(v *intstr.IntOrString, unset int32) (int32, error) {
	if v == nil {
		return unset, nil
	}
	return share(v, orDefault(spec.Replicas, 0), halfUp)
}

// partition is how many pods of a subset stay old, of the replicas that it has.
func (spec *UnitedDeploymentSpec) partition(subset string, replicas int32) int32 {
	if spec.UpdateStrategy.ManualUpdate == nil {
		return 0
	}
	return min(max(0, spec.UpdateStrategy.ManualUpdate.Partitions[subset]), replicas)
}

// child returns the workload of a subset as it should be, without a name. versions are those that the member stores.
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
	out := &unstructured.Unstructured{Object: map[string]any{}}
	if spec, ok := workload["spec"].(map[string]any); ok {
		out.Object["spec"] = spec
	} else {
		out.Object["spec"] = map[string]any{}
	}
	out.SetGroupVersionKind(gk.WithVersion(version))
	out.SetNamespace(ud.Namespace)
	out.SetGenerateName(ud.Name + "-" + subset.Name + "-")
	ours := map[string]string{subsetLabel: subset.Name, subsetRevisionLabel: revision}
	of := func(name string) map[string]string {
		m, _, _ := unstructured.NestedStringMap(workload, "metadata", name)
		if m == nil {
			m = map[string]string{}
		}
		return m
	}
	objectLabels, annotations := of("labels"), of("annotations")
	if ud.Spec.Selector != nil {
		maps.Copy(objectLabels, ud.Spec.Selector.MatchLabels)
	}
	maps.Copy(objectLabels, ours)
	out.SetLabels(objectLabels)
	out.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(ud, ud.GroupVersionKind())})

	// The selector of the whole, narrowed to the subset.
	selector := map[string]any{}
	if ud.Spec.Selector != nil {
		if selector, err = runtime.DefaultUnstructuredConverter.ToUnstructured(ud.Spec.Selector); err != nil {
			return nil, err
		}
	}
	spec := out.Object["spec"].(map[string]any)
	spec["selector"], spec["replicas"] = selector, int64(replicas)
	if err := unstructured.SetNestedField(spec, subset.Name, "selector", "matchLabels", subsetLabel); err != nil {
		return nil, err
	}
	template, err := subset.template(spec["template"], ours)
	if err != nil {
		return nil, fmt.Errorf("subset %s: %w", subset.Name, err)
	}
	spec["template"] = template

	partition := int64(ud.Spec.partition(subset.Name, replicas))
	switch {
	case gk == CloneSetKind.GroupKind() && version == "v1alpha1":
		err = unstructured.SetNestedField(spec, partition, "updateStrategy", "partition")
	case gk.Kind != "Deployment": // a Deployment has no partition
		err = unstructured.SetNestedField(spec, partition, "updateStrategy", "rollingUpdate", "partition")
	}
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(out.Object)
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	h.Write(data)
	annotations[subsetHashAnnotation] = rand.SafeEncodeString(fmt.Sprint(h.Sum64()))
	out.SetAnnotations(annotations)
	return out, nil
}

// template returns the pod template of the subset: patched, labelled, and bound to the subset's nodes.
func (s *Subset) template(object any, labels map[string]string) (map[string]any, error) {
	base, _ := object.(map[string]any)
	var t corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(base, &t); err != nil {
		return nil, fmt.Errorf("read the pod template: %w", err)
	}
	if len(s.Patch) > 0 {
		original, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		patch, err := json.Marshal(s.Patch)
		if err != nil {
			return nil, err
		}
		patched, err := strategicpatch.StrategicMergePatch(original, patch, corev1.PodTemplateSpec{})
		if err != nil {
			return nil, fmt.Errorf("patch: %w", err)
		}
		t = corev1.PodTemplateSpec{}
		if err := json.Unmarshal(patched, &t); err != nil {
			return nil, fmt.Errorf("patch: %w", err)
		}
	}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	maps.Copy(t.Labels, labels)
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

// subsetSteps are the children to make, to change and to remove.
type subsetSteps struct {
	create, remove []*unstructured.Unstructured
	// update are existing children with what they should be instead.
	update [][2]*unstructured.Unstructured
}

// decideUnitedDeployment compares children with what the subsets ask for.
func decideUnitedDeployment(ud *UnitedDeployment, children []*unstructured.Unstructured, revision string,
	versions Versions) (subsetSteps, error) {
	var s subsetSteps
	replicas, err := ud.Spec.allocate()
	if err != nil {
		return s, err
	}
	kept := map[*unstructured.Unstructured]bool{}
	for i, subset := range ud.Spec.Topology.Subsets {
		want, err := child(ud, subset, replicas[i], revision, versions)
		if err != nil {
			return s, err
		}
		at := slices.IndexFunc(children, func(c *unstructured.Unstructured) bool {
			return c.GetLabels()[subsetLabel] == subset.Name && c.GetKind() == want.GetKind() &&
				c.GroupVersionKind().Group == want.GroupVersionKind().Group
		})
		if at < 0 {
			s.create = append(s.create, want)
			continue
		}
		have := children[at]
		kept[have] = true
		if have.GetAnnotations()[subsetHashAnnotation] != want.GetAnnotations()[subsetHashAnnotation] {
			s.update = append(s.update, [2]*unstructured.Unstructured{have, want})
		}
	}
	for _, c := range children {
		if !kept[c] && c.GetDeletionTimestamp() == nil {
			s.remove = append(s.remove, c)
		}
	}
	return s, nil
}

// unitedDeploymentStatus returns the status of a UnitedDeployment with these pods, which carry subset and revision as
// labels.
func unitedDeploymentStatus(ud *UnitedDeployment, pods []*corev1.Pod, o observed) UnitedDeploymentStatus {
	status := UnitedDeploymentStatus{
		ObservedGeneration: ud.Generation,
		CollisionCount:     o.collisions,
		CurrentRevision:    o.current,
		LabelSelector:      metav1.FormatLabelSelector(ud.Spec.Selector),
		Conditions:         slices.Clone(ud.Status.Conditions),
	}
	replicas, _ := ud.Spec.allocate()
	bySubset := map[string]*SubsetStatus{}
	partitions, counts, wanted := map[string]int32{}, map[string]int32{}, int32(0)
	for i, s := range ud.Spec.Topology.Subsets {
		n := int32(0)
		if i < len(replicas) {
			n = replicas[i]
		}
		wanted += n
		counts[s.Name], partitions[s.Name] = n, ud.Spec.partition(s.Name, n)
		status.SubsetStatuses = append(status.SubsetStatuses, SubsetStatus{Name: s.Name, Partition: partitions[s.Name]})
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
		status.UpdateStatus = &UpdateStatus{UpdatedRevision: o.update, CurrentPartitions: partitions}
	} else {
		status.UpdatedRevision = o.update
	}
	stamp := metav1.NewTime(o.now.Truncate(time.Second))
	for _, t := range []string{subsetProvisioned, subsetUpdated} {
		status.Conditions = setCondition(status.Conditions,
			Condition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: stamp})
	}
	return status
}
