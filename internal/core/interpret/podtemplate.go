package interpret

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// each in a path stands for every element of a list.
const each = "*"

// pods says where a kind keeps pods and containers.
type pods struct {
	// templates are the paths of pod templates (metadata and spec); an empty path is the object itself.
	templates [][]string
	// containers and initContainers are the paths of containers outside of any pod template; initContainers start first.
	containers, initContainers [][]string
}

// podsOf is the one table of where kinds keep their pods; image, command and args overriders, requirements and
// dependencies all go by it. A new workload kind is one line here.
var podsOf = func() map[schema.GroupKind]pods {
	template := []string{"spec", "template"}
	one := func(path ...string) pods { return pods{templates: [][]string{path}} }

	workflow := func(spec ...string) pods {
		at := func(path ...string) []string { return append(append([]string{}, spec...), path...) }
		var p pods
		for _, t := range [][]string{{"templates", each}, {"templateDefaults"}} {
			in := func(path ...string) []string { return at(append(append([]string{}, t...), path...)...) }
			p.containers = append(p.containers,
				in("container"), in("script"), in("containerSet", "containers", each), in("sidecars", each))
			p.initContainers = append(p.initContainers, in("initContainers", each))
		}
		return p
	}

	return map[schema.GroupKind]pods{
		{Kind: "Pod"}:                   one(),
		{Kind: "PodTemplate"}:           one("template"),
		{Kind: "ReplicationController"}: one(template...),

		{Group: "apps", Kind: "Deployment"}:  one(template...),
		{Group: "apps", Kind: "ReplicaSet"}:  one(template...),
		{Group: "apps", Kind: "StatefulSet"}: one(template...),
		{Group: "apps", Kind: "DaemonSet"}:   one(template...),
		{Group: "batch", Kind: "Job"}:        one(template...),
		{Group: "batch", Kind: "CronJob"}:    one("spec", "jobTemplate", "spec", "template"),

		{Group: "apps.kruise.io", Kind: "CloneSet"}:     one(template...),
		{Group: "apps.kruise.io", Kind: "StatefulSet"}:  one(template...),
		{Group: "apps.kruise.io", Kind: "DaemonSet"}:    one(template...),
		{Group: "apps.kruise.io", Kind: "BroadcastJob"}: one(template...),
		{Group: "apps.kruise.io", Kind: "AdvancedCronJob"}: {templates: [][]string{
			{"spec", "template", "jobTemplate", "spec", "template"},
			{"spec", "template", "broadcastJobTemplate", "spec", "template"},
		}},
		{Group: "apps.kruise.io", Kind: "UnitedDeployment"}: {templates: [][]string{
			{"spec", "template", "statefulSetTemplate", "spec", "template"},
			{"spec", "template", "advancedStatefulSetTemplate", "spec", "template"},
			{"spec", "template", "cloneSetTemplate", "spec", "template"},
			{"spec", "template", "deploymentTemplate", "spec", "template"},
		}},
		{Group: "apps.kruise.io", Kind: "SidecarSet"}: {
			containers:     [][]string{{"spec", "containers", each}},
			initContainers: [][]string{{"spec", "initContainers", each}},
		},

		{Group: "argoproj.io", Kind: "Rollout"}:                 one(template...),
		{Group: "argoproj.io", Kind: "Workflow"}:                workflow("spec"),
		{Group: "argoproj.io", Kind: "WorkflowTemplate"}:        workflow("spec"),
		{Group: "argoproj.io", Kind: "ClusterWorkflowTemplate"}: workflow("spec"),
		{Group: "argoproj.io", Kind: "CronWorkflow"}:            workflow("spec", "workflowSpec"),
	}
}()

// PodTemplateKinds are the kinds that keep pod templates, in no order.
func PodTemplateKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for kind, p := range podsOf {
		if len(p.templates) > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// PodTemplates are the paths of the pod templates (objects with metadata and spec) that obj has. A Pod is its own
// template, at the empty path. Kinds that keep containers without a pod template have none; see Containers.
func PodTemplates(obj *unstructured.Unstructured) [][]string {
	var found [][]string
	for _, path := range podsOf[obj.GroupVersionKind().GroupKind()].templates {
		if _, ok := at(obj.Object, path).(map[string]any); ok {
			found = append(found, path)
		}
	}
	return found
}

// Container is where one container stands in an object.
type Container struct {
	// Path to the container; list indexes are decimal, as in a JSON pointer.
	Path []string
	// Name of the container; empty if it has none.
	Name string
	// Init containers run before the others.
	Init bool
}

// Containers are all containers of obj, of its pod templates and of kinds that keep them elsewhere (SidecarSet,
// Workflow): those that run first, then the others, in the order of the lists.
func Containers(obj *unstructured.Unstructured) []Container {
	p := podsOf[obj.GroupVersionKind().GroupKind()]
	var found []Container
	add := func(init bool, path []string) {
		walk(obj.Object, nil, path, func(at []string, c map[string]any) {
			name, _ := c["name"].(string)
			found = append(found, Container{Path: at, Name: name, Init: init})
		})
	}
	under := func(template []string, list string) []string {
		return append(append([]string{}, template...), "spec", list, each)
	}
	for _, t := range p.templates {
		add(true, under(t, "initContainers"))
	}
	for _, path := range p.initContainers {
		add(true, path)
	}
	for _, t := range p.templates {
		add(false, under(t, "containers"))
	}
	for _, path := range p.containers {
		add(false, path)
	}
	return found
}

// at is the value at a path without wildcards; nil when there is none.
func at(v any, path []string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// walk visits every object at rest, seen from v, which stands at prefix.
func walk(v any, prefix, rest []string, visit func(at []string, obj map[string]any)) {
	step := func(key string) []string { return append(prefix[:len(prefix):len(prefix)], key) }
	if len(rest) == 0 {
		if m, ok := v.(map[string]any); ok {
			visit(prefix, m)
		}
		return
	}
	if rest[0] == each {
		list, _ := v.([]any)
		for i, element := range list {
			walk(element, step(strconv.Itoa(i)), rest[1:], visit)
		}
		return
	}
	if m, ok := v.(map[string]any); ok {
		walk(m[rest[0]], step(rest[0]), rest[1:], visit)
	}
}
