package dialect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// customVersionLabel names the version of a SidecarSet in v1alpha1; v1beta1 has a field for that.
const customVersionLabel = "apps.kruise.io/sidecarset-custom-version"

// cloneSet: v1alpha1 has no rollingUpdate; the fields that v1beta1 has there are beside type, which is the policy of
// updating a pod.
func (r *rewrite) cloneSet() {
	r.selector()
	update := child(r.spec, "updateStrategy")
	if update == nil || r.obj.GroupVersionKind().Version != "v1alpha1" {
		return
	}
	const path = "spec.updateStrategy"
	if update["type"] == "OnDelete" {
		r.refuse(path+".type", "OnDelete exists only in v1beta1: use apiVersion apps.kruise.io/v1beta1")
		return
	}
	rolling := child(update, "rollingUpdate")
	policy, _ := rolling["podUpdatePolicy"].(string)
	delete(rolling, "podUpdatePolicy")
	policy = cmp.Or(policy, "ReCreate")
	if update["type"] == "RollingUpdate" {
		update["type"] = policy
		r.rewritten(path+".type", "RollingUpdate", policy)
	}
	for _, field := range []string{"partition", "maxUnavailable", "maxSurge", "paused", "priorityStrategy",
		"scatterStrategy", "inPlaceUpdateStrategy"} {
		if rolling != nil {
			r.move(rolling, field, path+".rollingUpdate."+field, update, field, path+"."+field)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(rolling)) {
		r.refuse(path+".rollingUpdate."+field,
			"does not exist in v1alpha1: use apiVersion apps.kruise.io/v1beta1 if it has this field")
	}
	for field := range child(update, "inPlaceUpdateStrategy") {
		if strings.HasPrefix(field, "imagePreDownload") {
			r.refuse(path+".inPlaceUpdateStrategy."+field, "exists only in v1beta1: use apiVersion apps.kruise.io/v1beta1")
		}
	}
	if _, ok := update["rollingUpdate"]; ok {
		delete(update, "rollingUpdate")
		r.changed = true
	}
}

// selector: if it is missing, the labels of the pods are meant.
func (r *rewrite) selector() {
	labels := child(child(child(r.spec, "template"), "metadata"), "labels")
	if r.spec["selector"] != nil || len(labels) == 0 {
		return
	}
	r.spec["selector"] = map[string]any{"matchLabels": runtime.DeepCopyJSON(labels)}
	r.changed = true
	r.warnings = append(r.warnings, "spec.selector: not set; stored as the labels of the template, and immutable from now on")
}

// sidecarSet: a revision with a name selects that version, and policy belongs to it.
func (r *rewrite) sidecarSet() {
	r.sidecarSetNamespace()
	injection := child(r.spec, "injectionStrategy")
	if injection == nil {
		return
	}
	const path = "spec.injectionStrategy"
	if name, ok := injection["revision"].(string); ok {
		injection["revision"] = map[string]any{"customVersion": name}
		r.rewritten(path+".revision", name, "revision.customVersion")
		r.nameVersion(name)
	}
	if policy, ok := injection["policy"]; ok {
		r.move(injection, "policy", path+".policy", fields.Ensure(injection, "revision"), "policy", path+".revision.policy")
		if policy == "IfNotPresent" {
			r.warnings = append(r.warnings, path+
				".policy: IfNotPresent is a value of containers[].imagePullPolicy, for pulling images; use Always or Partial here, which select the pods that get the revision")
		}
	}
}

// sidecarSetNamespace: a namespace does not limit a SidecarSet, although its author probably meant that.
func (r *rewrite) sidecarSetNamespace() {
	given := r.obj.GetNamespace()
	if given == "" {
		return
	}
	r.obj.SetNamespace("")
	r.changed = true
	const path = "metadata.namespace"
	if r.obj.GetAnnotations()[wellknown.NamespaceAsSelectorAnnotation] == "true" {
		selector := map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": given}}
		if present, ok := r.spec["namespaceSelector"]; ok && !equalJSON(present, selector) && !r.submittedBefore(path) {
			r.refuse(path, "duplicates spec.namespaceSelector; remove one of them, or the annotation %s",
				wellknown.NamespaceAsSelectorAnnotation)
			return
		}
		r.spec["namespaceSelector"] = selector
		r.rewritten(path, given, "spec.namespaceSelector")
		return
	}
	message := path + ": removed, because a SidecarSet is cluster-scoped"
	if r.spec["namespaceSelector"] == nil && r.spec["namespace"] == nil {
		message += fmt.Sprintf("; it injects into pods of all namespaces, not only of %s: set spec.namespaceSelector, or the annotation %s: \"true\", which creates the selector from metadata.namespace",
			given, wellknown.NamespaceAsSelectorAnnotation)
	}
	r.warnings = append(r.warnings, message)
}

// nameVersion calls this version of a SidecarSet by the name that its injection asks for, unless it has one: else no
// member had any of that name.
func (r *rewrite) nameVersion(name string) {
	if r.obj.GroupVersionKind().Version == "v1alpha1" {
		if r.obj.GetLabels()[customVersionLabel] == "" && len(name) < 64 {
			fields.SetLabel(r.obj, customVersionLabel, name)
			r.warnings = append(r.warnings, fmt.Sprintf(
				"metadata.labels[%s]: not set; stored as %s, because injectionStrategy.revision refers to this version",
				customVersionLabel, name))
		}
		return
	}
	if r.spec["customVersion"] == nil {
		r.spec["customVersion"] = name
		r.warnings = append(r.warnings, fmt.Sprintf(
			"spec.customVersion: not set; stored as %s, because injectionStrategy.revision refers to this version", name))
	}
}

// unitedDeployment: pools are the subsets of another project's kind of this name; and a bare pod is meant as the pod of
// a CloneSet.
func (r *rewrite) unitedDeployment() {
	if topology := child(r.spec, "topology"); topology != nil {
		r.rename(topology, "spec.topology", "pools", "subsets")
	}
	template := child(r.spec, "template")
	if child(template, "spec") == nil && child(template, "metadata") == nil {
		return
	}
	kind := r.obj.GetAnnotations()[wellknown.SubsetWorkloadAnnotation]
	field, ok := map[string]string{
		"": "cloneSetTemplate", "CloneSet": "cloneSetTemplate", "Deployment": "deploymentTemplate",
		"StatefulSet": "statefulSetTemplate", "AdvancedStatefulSet": "advancedStatefulSetTemplate",
	}[kind]
	if !ok {
		r.refuse("metadata.annotations["+wellknown.SubsetWorkloadAnnotation+"]",
			"must be CloneSet, Deployment, StatefulSet or AdvancedStatefulSet, not %q", kind)
		return
	}
	const path = "spec.template.spec"
	given := template["spec"]
	if template[field] != nil && !r.submittedBefore(path) {
		r.refuse(path, "duplicates spec.template.%s", field)
		return
	}
	workload := fields.Ensure(template, field)
	inner := fields.Ensure(workload, "spec")
	pod := fields.Ensure(inner, "template")
	for _, part := range []string{"metadata", "spec"} {
		if from := child(template, part); from != nil {
			merge(fields.Ensure(pod, part), from)
		}
		delete(template, part)
	}
	labels := child(pod, "metadata", "labels")
	if labels != nil {
		merge(fields.Ensure(workload, "metadata", "labels"), labels)
	}
	if inner["selector"] == nil {
		if selector := child(r.spec, "selector"); selector != nil {
			inner["selector"] = runtime.DeepCopyJSON(selector)
		} else if labels != nil {
			inner["selector"] = map[string]any{"matchLabels": runtime.DeepCopyJSON(labels)}
		}
	}
	r.rewritten(path, given, fmt.Sprintf(
		"spec.template.%s.spec.template.spec; use the annotation %s for another kind of workload", field,
		wellknown.SubsetWorkloadAnnotation))
}

// merge merges from into to, object by object, as a JSON merge patch does.
func merge(to, from map[string]any) {
	for key, value := range from {
		if v, ok := value.(map[string]any); ok {
			merge(fields.Ensure(to, key), v)
			continue
		}
		to[key] = runtime.DeepCopyJSONValue(value)
	}
}
