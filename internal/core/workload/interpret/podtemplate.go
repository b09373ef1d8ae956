package interpret

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// each in a path stands for every element of a list.
const each = "*"

// pods describes where a kind has pods and containers.
type pods struct {
	// templates are the paths of pod templates (metadata and spec). An empty path is the object itself.
	templates [][]string
	// specs are the paths of pod specs without a template, which are added to pods of others.
	specs [][]string
	// containers and initContainers are the paths of other containers. initContainers start first.
	containers, initContainers [][]string
	// images are the paths of image names outside of containers.
	images [][]string
}

// podsOf is the only table of where kinds have pods. Overriders, requirements and dependencies use it. A new workload
// kind is one line here.
var podsOf = func() map[schema.GroupKind]pods {
	template := []string{"spec", "template"}
	one := func(path ...string) pods { return pods{templates: [][]string{path}} }

	workflow := func(spec ...string) pods {
		at := func(path ...string) []string { return append(append([]string{}, spec...), path...) }
		var p pods
		templates := [][]string{
			{"templates", each}, {"templateDefaults"},
			{"templates", each, "steps", each, each, "inline"}, {"templates", each, "dag", "tasks", each, "inline"},
		}
		for _, t := range templates {
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
		{Group: "apps.kruise.io", Kind: "AdvancedCronJob"}: {
			templates: [][]string{
				{"spec", "template", "jobTemplate", "spec", "template"},
				{"spec", "template", "broadcastJobTemplate", "spec", "template"},
			},
			images: [][]string{{"spec", "template", "imageListPullJobTemplate", "spec", "images", each}},
		},
		{Group: "apps.kruise.io", Kind: "UnitedDeployment"}: {templates: [][]string{
			{"spec", "template", "statefulSetTemplate", "spec", "template"},
			{"spec", "template", "advancedStatefulSetTemplate", "spec", "template"},
			{"spec", "template", "cloneSetTemplate", "spec", "template"},
			{"spec", "template", "deploymentTemplate", "spec", "template"},
		}},
		{Group: "apps.kruise.io", Kind: "SidecarSet"}:       {specs: [][]string{{"spec"}}},
		{Group: "apps.kruise.io", Kind: "EphemeralJob"}:     {specs: [][]string{template}},
		{Group: "apps.kruise.io", Kind: "ImagePullJob"}:     {images: [][]string{{"spec", "image"}}},
		{Group: "apps.kruise.io", Kind: "ImageListPullJob"}: {images: [][]string{{"spec", "images", each}}},

		{Group: "argoproj.io", Kind: "Rollout"}:                 one(template...),
		{Group: "argoproj.io", Kind: "Workflow"}:                workflow("spec"),
		{Group: "argoproj.io", Kind: "WorkflowTemplate"}:        workflow("spec"),
		{Group: "argoproj.io", Kind: "ClusterWorkflowTemplate"}: workflow("spec"),
		{Group: "argoproj.io", Kind: "CronWorkflow"}:            workflow("spec", "workflowSpec"),
	}
}()

// PodKinds returns the kinds with pod templates or pod specs, in no order.
func PodKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for kind, p := range podsOf {
		if len(p.templates)+len(p.specs) > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// PodTemplates returns the paths of the existing pod templates of obj. A Pod is its own template at the empty path. For
// other containers see PodSpecs and Containers.
func PodTemplates(obj *unstructured.Unstructured) [][]string {
	return present(obj, podsOf[obj.GroupVersionKind().GroupKind()].templates)
}

// PodTemplatePaths returns the paths at which objects of a kind may have pod templates. They are read-only.
func PodTemplatePaths(kind schema.GroupKind) [][]string { return podsOf[kind].templates }

// PodSpecs returns the paths of pod specs in obj that are added to pods of others, as in SidecarSet and EphemeralJob.
func PodSpecs(obj *unstructured.Unstructured) [][]string {
	return present(obj, podsOf[obj.GroupVersionKind().GroupKind()].specs)
}

// present returns the paths at which obj has an object.
func present(obj *unstructured.Unstructured, paths [][]string) [][]string {
	var found [][]string
	for _, path := range paths {
		if fields.Object(obj.Object, path...) != nil {
			found = append(found, path)
		}
	}
	return found
}

// Container is the position of a container in an object.
type Container struct {
	// Path of the container. List indexes are decimal, as in a JSON pointer.
	Path []string
	// Name and Image of the container; may be empty.
	Name, Image string
	// Init containers run before the others.
	Init bool
}

// Containers returns all containers of obj, of its pod templates and elsewhere (SidecarSet, Workflow): init containers
// first, each in order of the lists.
func Containers(obj *unstructured.Unstructured) []Container {
	p := podsOf[obj.GroupVersionKind().GroupKind()]
	var found []Container
	add := func(init bool, path []string) {
		walk(obj.Object, nil, path, func(at []string, v any) {
			c, ok := v.(map[string]any)
			if !ok {
				return
			}
			name, _ := c["name"].(string)
			image, _ := c["image"].(string)
			found = append(found, Container{Path: at, Name: name, Image: image, Init: init})
		})
	}
	under := func(path []string, keys ...string) []string { return append(path[:len(path):len(path)], keys...) }
	specs := slices.Clone(p.specs)
	for _, t := range p.templates {
		specs = append(specs, under(t, "spec"))
	}
	for _, s := range specs {
		add(true, under(s, "initContainers", each))
	}
	for _, path := range p.initContainers {
		add(true, path)
	}
	for _, s := range specs {
		add(false, under(s, "containers", each))
	}
	for _, s := range p.specs {
		add(false, under(s, "ephemeralContainers", each))
	}
	for _, path := range p.containers {
		add(false, path)
	}
	return found
}

// ImageVolumes returns the paths of the image names that pods of obj mount as volumes.
func ImageVolumes(obj *unstructured.Unstructured) [][]string {
	p := podsOf[obj.GroupVersionKind().GroupKind()]
	specs := slices.Clone(p.specs)
	for _, t := range p.templates {
		specs = append(specs, append(slices.Clone(t), "spec"))
	}
	var found [][]string
	for _, s := range specs {
		walk(obj.Object, nil, append(slices.Clone(s), "volumes", each, "image", "reference"), func(at []string, v any) {
			if v != nil {
				found = append(found, at)
			}
		})
	}
	return found
}

// configMapReferences are the paths of references to ConfigMaps in a pod spec.
var configMapReferences = func() [][]string {
	paths := [][]string{{"volumes", each, "configMap"}, {"volumes", each, "projected", "sources", each, "configMap"}}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		paths = append(paths, []string{list, each, "envFrom", each, "configMapRef"},
			[]string{list, each, "env", each, "valueFrom", "configMapKeyRef"})
	}
	return paths
}()

// EachConfigMap calls visit with each reference to a ConfigMap, which has its name, in the pod templates of obj.
func EachConfigMap(obj *unstructured.Unstructured, visit func(ref map[string]any)) {
	for _, t := range podsOf[obj.GroupVersionKind().GroupKind()].templates {
		for _, path := range configMapReferences {
			walk(obj.Object, nil, slices.Concat(t, []string{"spec"}, path), func(_ []string, v any) {
				if ref, ok := v.(map[string]any); ok {
					visit(ref)
				}
			})
		}
	}
}

// Images returns the paths of image names outside of containers, such as those of an ImagePullJob.
func Images(obj *unstructured.Unstructured) [][]string {
	var found [][]string
	for _, path := range podsOf[obj.GroupVersionKind().GroupKind()].images {
		walk(obj.Object, nil, path, func(at []string, v any) {
			if v != nil {
				found = append(found, at)
			}
		})
	}
	return found
}

// walk visits all values that match rest below v, whose path is prefix.
func walk(v any, prefix, rest []string, visit func(at []string, v any)) {
	step := func(key string) []string { return append(prefix[:len(prefix):len(prefix)], key) }
	if len(rest) == 0 {
		visit(prefix, v)
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
