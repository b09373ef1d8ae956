package builtin

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/fields"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// workflow is Argo's Workflow. It has no status subresource, so that its generation moves with its status and says
// nothing, and whoever writes the whole object writes the status: neither side is ever sent the other's. It runs once,
// in one cluster (core/propagate narrows its placement), so its parallelism, a bound on the pods at a time, is not
// divided.
func workflow() *interpret.Hooks {
	return &interpret.Hooks{
		Components: workflowComponents("spec"),
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			retained := retainSuspension(desired, observed)
			// What was told to stop stays so: by the template's word if it has one.
			if stop := text(observed.Object, "spec", "shutdown"); stop != "" && text(retained.Object, "spec", "shutdown") == "" {
				retained = retained.DeepCopy()
				return retained, unstructured.SetNestedField(retained.Object, stop, "spec", "shutdown")
			}
			return retained, nil
		},
		Reflect:      reflectWorkflow,
		Health:       workflowHealth,
		Aggregate:    folded(foldWorkflow),
		Dependencies: workflowDependencies("spec"),
	}
}

// retainSuspension leaves spec.suspend as the member has it, until the template says otherwise than when it was applied
// last.
func retainSuspension(desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	const noted = interpret.SuspendAnnotation
	suspends, have := yes(desired.Object, "spec", "suspend"), yes(observed.Object, "spec", "suspend")
	moved := desired.GetAnnotations()[noted] != observed.GetAnnotations()[noted]
	want := have
	if moved {
		want = suspends
	}
	if want == suspends && (want || !moved || !have) {
		return desired
	}
	retained := desired.DeepCopy()
	spec, ok := retained.Object["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
		retained.Object["spec"] = spec
	}
	switch {
	case want:
		spec["suspend"] = true
	case moved:
		spec["suspend"] = false // said outright: the member may hold the field by itself, and then leaving it out leaves it
	default:
		delete(spec, "suspend")
	}
	return retained
}

// longest bounds the values of output parameters that are reported.
const longest = 1024

// workflowFields are the fields of a status that are reported, where Argo's clients can read what they have: they fail
// at a list with one Workflow that they cannot read.
var workflowFields = map[string]func(any) bool{
	"phase": fields.Reads[string], "progress": fields.Reads[string], "message": fields.Reads[string],
	"startedAt": fields.Reads[metav1.Time], "finishedAt": fields.Reads[metav1.Time],
	"conditions":        fields.Reads[[]struct{ Type, Status, Message string }],
	"resourcesDuration": fields.Reads[map[string]int64],
}

// reflectWorkflow leaves out what grows with the Workflow: its nodes, the templates it stored, long outputs.
func reflectWorkflow(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	status := object(observed.Object, "status")
	if status == nil {
		return nil, nil
	}
	out := map[string]any{}
	for f, readable := range workflowFields {
		if v := status[f]; v != nil && readable(v) {
			out[f] = runtime.DeepCopyJSONValue(v)
		}
	}
	var parameters []any
	for _, p := range objects(status, "outputs", "parameters") {
		if v := text(p, "value"); v != "" && len(v) <= longest && len(parameters) < listed {
			parameters = append(parameters, map[string]any{"name": text(p, "name"), "value": v})
		}
	}
	if parameters != nil {
		out["outputs"] = map[string]any{"parameters": parameters}
	}
	return out, nil
}

// workflowHealth: a Workflow on its way is never unhealthy, however long it waits, or failover would run it twice.
func workflowHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	status := object(observed.Object, "status")
	switch text(status, "phase") {
	case "Failed", "Error":
		return interpret.Degraded, nil
	case "Succeeded":
		return interpret.Healthy, nil
	}
	if isTrue(status, "SpecError") {
		return interpret.Degraded, nil
	}
	if yes(observed.Object, "spec", "suspend") {
		return interpret.Suspended, nil
	}
	for _, node := range object(status, "nodes") {
		if n, ok := node.(map[string]any); ok && text(n, "type") == "Suspend" && text(n, "phase") == "Running" {
			return interpret.Suspended, nil
		}
	}
	return interpret.Progressing, nil
}

// folded is folding for kinds without a status subresource: a template that nobody has answered for is not given an
// empty status, as every write of it is one of the whole object; nor is one that has finished, for what has run
// elsewhere has run.
func folded(fold func(rs []report) map[string]any) aggregator {
	return func(_ context.Context, template *unstructured.Unstructured,
		items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
		rs, err := reports(items)
		if err != nil {
			return nil, err
		}
		status := fold(rs)
		was := object(template.Object, "status")
		if len(status) == 0 && (len(was) == 0 || interpret.Finished(template.GroupVersionKind().GroupKind(), was)) {
			return template, nil
		}
		return settled(template, status), nil
	}
}

// foldWorkflow is what its cluster says. Told to run in several, it ends well when it did in each.
func foldWorkflow(rs []report) map[string]any {
	answered := slices.DeleteFunc(slices.Clone(rs), func(r report) bool { return r.status == nil })
	switch {
	case len(answered) == 0:
		return map[string]any{}
	case len(rs) == 1:
		return copied(answered[0])
	}
	status := map[string]any{}
	setText(status, "phase", firstOf([]string{"Error", "Failed", "Running", "Pending", "", "Succeeded"}, "", rs))
	span(status, rs, "startedAt", "finishedAt")
	setMessages(status, rs, "message")

	var done, all int64
	durations := map[string]any{}
	for _, r := range rs {
		n, m, _ := strings.Cut(text(r.status, "progress"), "/")
		x, err := strconv.ParseInt(n, 10, 32)
		y, failed := strconv.ParseInt(m, 10, 32)
		if err == nil && failed == nil {
			done, all = done+x, all+y
		}
		for name, v := range object(r.status, "resourcesDuration") {
			n, _ := whole(v)
			durations[name] = number(durations, name) + n
		}
	}
	if all > 0 {
		status["progress"] = fmt.Sprintf("%d/%d", done, all)
	}
	if len(durations) > 0 {
		status["resourcesDuration"] = durations
	}
	// A pod that runs anywhere runs; only what is completed has to be so everywhere.
	if c := conditions(rs, func(kind string) bool { return kind != "Completed" }); c != nil {
		status["conditions"] = c
	}
	return status
}

// workflowComponents are the templates that run a pod, one pod each: an estimate, as nobody knows how many run at a
// time. What cannot be read, such as a quantity that is a parameter, counts as nothing.
func workflowComponents(path ...string) func(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component,
	error) {
	return func(_ context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
		spec := object(obj.Object, path...)
		byName := map[string]workv1alpha2.Component{}
		for _, t := range objects(spec, "templates") {
			pod, runs := workflowPod(spec, t)
			if !runs {
				continue
			}
			name := componentName(text(t, "name"))
			needs := interpret.PodRequirements(&corev1.PodTemplateSpec{Spec: pod}, obj.GetNamespace())
			byName[name] = workv1alpha2.Component{Name: name, Replicas: 1,
				ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
					NodeClaim: needs.NodeClaim, ResourceRequest: needs.ResourceRequest, PriorityClassName: needs.PriorityClassName,
				}}
		}
		var components []workv1alpha2.Component
		for _, c := range byName {
			components = append(components, c)
		}
		slices.SortFunc(components, func(a, b workv1alpha2.Component) int { return cmp.Compare(a.Name, b.Name) })
		return components, nil
	}
}

// componentName is the template's, made to fit: bindings allow 32 letters.
func componentName(template string) string {
	if len(template) <= 32 {
		return template
	}
	hash := fnv.New32a()
	hash.Write([]byte(template))
	return fmt.Sprintf("%s-%08x", template[:23], hash.Sum32())
}

// workflowPod is what is known of the pod that a template runs; false if it runs none.
func workflowPod(spec, template map[string]any) (corev1.PodSpec, bool) {
	var pod corev1.PodSpec
	for _, one := range []string{"container", "script"} {
		if c := object(template, one); c != nil {
			pod.Containers = append(pod.Containers, needsOf(c))
		}
	}
	for _, c := range objects(template, "containerSet", "containers") {
		pod.Containers = append(pod.Containers, needsOf(c))
	}
	_, resource := template["resource"]
	_, data := template["data"]
	if len(pod.Containers) == 0 && !resource && !data {
		return pod, false
	}
	for _, c := range objects(template, "sidecars") {
		pod.Containers = append(pod.Containers, needsOf(c))
	}
	for _, c := range objects(template, "initContainers") {
		pod.InitContainers = append(pod.InitContainers, needsOf(c))
	}
	pod.PriorityClassName = cmp.Or(text(template, "priorityClassName"), text(spec, "podPriorityClassName"))
	for _, level := range []map[string]any{template, spec} { // the template's own come before those of all
		// Each by itself: one that cannot be read does not take the others along.
		for _, f := range []string{"nodeSelector", "tolerations", "affinity"} {
			var read corev1.PodSpec
			if level[f] == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{f: level[f]},
				&read) != nil {
				continue
			}
			if pod.NodeSelector == nil {
				pod.NodeSelector = read.NodeSelector
			}
			if pod.Tolerations == nil {
				pod.Tolerations = read.Tolerations
			}
			if pod.Affinity == nil {
				pod.Affinity = read.Affinity
			}
		}
	}
	return pod, true
}

// needsOf is what counts of a container.
func needsOf(container map[string]any) corev1.Container {
	c := corev1.Container{Name: text(container, "name")}
	amounts := func(in string) corev1.ResourceList {
		read := corev1.ResourceList{}
		for name, v := range object(container, "resources", in) {
			if q, err := resource.ParseQuantity(fmt.Sprint(v)); err == nil {
				read[corev1.ResourceName(name)] = q
			}
		}
		return read
	}
	c.Resources.Requests, c.Resources.Limits = amounts("requests"), amounts("limits")
	return c
}
