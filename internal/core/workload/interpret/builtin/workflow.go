package builtin

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// workflow is Argo's Workflow. It has no status subresource: its generation changes with the status, and a write of the
// object writes the status, so neither side sends the other's status. It runs once in one cluster (core/propagate
// limits the placement), so its parallelism is not divided.
func workflow() *interpret.Hooks {
	return &interpret.Hooks{
		Components: workflowComponents("spec"),
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			retained := retainSuspension(desired, observed)
			// A stopped Workflow stays stopped. The template's value takes precedence.
			if stop := text(observed.Object, "spec", "shutdown"); stop != "" && text(retained.Object, "spec", "shutdown") == "" {
				retained = retained.DeepCopy()
				return retained, unstructured.SetNestedField(retained.Object, stop, "spec", "shutdown")
			}
			return retained, nil
		},
		Reflect:      reflectWorkflow,
		Health:       judged(workflowHealth),
		Aggregate:    folded(foldWorkflow),
		Dependencies: workflowDependencies("spec"),
	}
}

// retainSuspension keeps the member's spec.suspend until the template changes it.
func retainSuspension(desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	const noted = wellknown.TemplateSuspendsAnnotation
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
		spec["suspend"] = false // set explicitly: the member may own the field, and then omitting it would keep it
	default:
		delete(spec, "suspend")
	}
	return retained
}

// longest limits the size of reported output parameters. A step chooses its output, and may write a file of any size.
const longest = 1024

// workflowFields are the reported status fields with checks that Argo's clients can read them. One unreadable Workflow
// makes their lists fail.
var workflowFields = map[string]func(any) bool{
	"phase": fields.Reads[string], "progress": fields.Reads[string], "message": fields.Reads[string],
	"startedAt": fields.Reads[metav1.Time], "finishedAt": fields.Reads[metav1.Time],
	"conditions":        fields.Reads[[]struct{ Type, Status, Message string }],
	"resourcesDuration": fields.Reads[map[string]int64],
}

// reflectWorkflow omits what grows with the Workflow: nodes, stored templates, long outputs.
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

// workflowHealth returns the health. A running Workflow is never unhealthy, however long it waits, because a failover
// would run it twice.
func workflowHealth(obj, status map[string]any) interpret.Health {
	switch text(status, "phase") {
	case "Failed", "Error":
		return interpret.Degraded
	case "Succeeded":
		return interpret.Healthy
	}
	if isTrue(status, "SpecError") {
		return interpret.Degraded
	}
	if yes(obj, "spec", "suspend") {
		return interpret.Suspended
	}
	for _, node := range object(status, "nodes") {
		if n, ok := node.(map[string]any); ok && text(n, "type") == "Suspend" && text(n, "phase") == "Running" {
			return interpret.Suspended
		}
	}
	return interpret.Progressing
}

// folded is folding for kinds without a status subresource. Because each status write contains the whole object, it
// does not write an empty status before the first report, and does not change a finished template.
func folded(fold func(rs []report) map[string]any) aggregator {
	return ofReports(func(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured, error) {
		status := fold(rs)
		was := object(template.Object, "status")
		if len(status) == 0 && (len(was) == 0 || interpret.Finished(template.GroupVersionKind().GroupKind(), was)) {
			return template, nil
		}
		return settled(template, status), nil
	})
}

// foldWorkflow returns the status of its cluster. With several clusters it succeeds if it did in each.
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
	setMessages(status, rs)

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
	// The pod counts as running if it runs in any cluster. Only Completed must be true in all.
	setConditions(status, rs, func(kind string) bool { return kind != "Completed" })
	return status
}

// workflowComponents returns one component with one pod per template that runs a pod. This is an estimate, because the
// parallelism is unknown. Unreadable values, such as parameters, count as nothing.
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
			byName[name] = component(name, 1, needs)
		}
		return slices.SortedFunc(maps.Values(byName), func(a, b workv1alpha2.Component) int {
			return cmp.Compare(a.Name, b.Name)
		}), nil
	}
}

// componentName shortens the template's name: bindings allow 32 characters.
func componentName(template string) string {
	if len(template) <= 32 {
		return template
	}
	hash := fnv.New32a()
	hash.Write([]byte(template))
	return fmt.Sprintf("%s-%08x", template[:23], hash.Sum32())
}

// workflowPod returns what is known about the pod of a template; false if it runs none.
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
	for _, level := range []map[string]any{template, spec} { // fields of the template take precedence
		// Read each field separately, so that an invalid one does not affect the others.
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

// needsOf returns the relevant fields of a container.
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

// cronWorkflow is Argo's CronWorkflow. Like a Workflow it has no status subresource, and it goes to one cluster,
// because otherwise each cluster would run it.
func cronWorkflow() *interpret.Hooks {
	return &interpret.Hooks{
		Components: workflowComponents("spec", "workflowSpec"),
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return retainSuspension(desired, observed), nil
		},
		Health: judged(func(obj, status map[string]any) interpret.Health {
			switch {
			case isTrue(status, "SpecError"), isTrue(status, "SubmissionError"):
				return interpret.Degraded
			case yes(obj, "spec", "suspend"), text(status, "phase") == "Stopped":
				return interpret.Suspended
			}
			return interpret.Healthy
		}),
		Aggregate: folded(func(rs []report) map[string]any {
			if !slices.ContainsFunc(rs, func(r report) bool { return r.status != nil }) {
				return map[string]any{}
			}
			status := sums(rs, "succeeded", "failed")
			setText(status, "phase", firstOf([]string{"Active", "", "Stopped"}, "", rs))
			gather(status, rs, "active", asIs)
			setText(status, "lastScheduledTime", latest(textsOf(rs, "lastScheduledTime")...))
			setConditions(status, rs, func(string) bool { return true })
			return status
		}),
		Dependencies: workflowDependencies("spec", "workflowSpec"),
	}
}

// workflowTemplate is Argo's WorkflowTemplate or ClusterWorkflowTemplate. It has no status.
func workflowTemplate() *interpret.Hooks {
	return &interpret.Hooks{
		Health:       judged(alwaysHealthy),
		Dependencies: workflowDependencies("spec"),
	}
}

func alwaysHealthy(_, _ map[string]any) interpret.Health { return interpret.Healthy }
