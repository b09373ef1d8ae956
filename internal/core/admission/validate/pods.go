package validate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/argosy-io/argosy/internal/core/kind"
	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
)

// podAdviceLimit is the maximal number of mistakes in one warning, because the API server cuts warnings.
const podAdviceLimit = 10

// PodAdvice warns about unknown fields and values of the wrong type in those parts of obj that its definition does not
// describe: pod templates, claims, steps of Workflows, and expressions of SidecarSets. Members drop such fields or
// reject the object. They are not rejected here, because a newer Kubernetes may know more fields than Argosy.
func PodAdvice(obj *unstructured.Unstructured) []string {
	known := podFields()
	w := fieldWalk{}
	template := *known.template
	template.Properties = maps.Clone(template.Properties)
	for _, name := range kind.Facts(obj).Pods.TemplateFields {
		template.Properties[name] = nil
	}
	for _, path := range interpret.PodTemplates(obj) {
		w.walk(obj.Object, nil, path, &template)
	}
	for _, part := range known.parts[obj.GroupVersionKind().GroupKind()] {
		w.walk(obj.Object, nil, part.path, part.fields)
	}
	w.advice = append(w.advice, dependency.SidecarAdvice(obj)...)
	slices.Sort(w.advice)
	if more := len(w.advice) - podAdviceLimit; more > 0 {
		w.advice = append(w.advice[:podAdviceLimit], fmt.Sprintf("and %d more like these", more))
	}
	return w.advice
}

// part is a place in an object, with each for the elements of lists, and the fields that it allows.
type part struct {
	path   []string
	fields *script.Schema
}

// each in a path matches every element of a list.
const each = "*"

type fieldsOfPods struct {
	template *script.Schema
	parts    map[schema.GroupKind][]part
}

// podFields are the fields of Kubernetes' types as this version of Argosy has them, and those of the steps of a
// Workflow.
var podFields = sync.OnceValue(func() fieldsOfPods {
	of := func(group, version, kind string, path ...string) *script.Schema {
		s := tiers.Schema(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		for _, field := range path {
			if field == each {
				s = s.Items
			} else {
				s = s.Properties[field]
			}
		}
		return s
	}
	object := func(properties map[string]*script.Schema) *script.Schema {
		return &script.Schema{Type: "object", Properties: properties}
	}
	list := func(items *script.Schema) *script.Schema { return &script.Schema{Type: "array", Items: items} }
	with := func(s *script.Schema, more map[string]*script.Schema) *script.Schema {
		all := maps.Clone(s.Properties)
		maps.Copy(all, more)
		return object(all)
	}
	open := func(names ...string) map[string]*script.Schema {
		all := map[string]*script.Schema{}
		for _, name := range names {
			all[name] = nil
		}
		return all
	}

	template := of("", "v1", "PodTemplate", "template")
	claim := of("", "v1", "PersistentVolumeClaim")
	spec := func(path ...string) *script.Schema {
		return of("", "v1", "PodTemplate", append([]string{"template", "spec"}, path...)...)
	}
	container := spec("containers", each)
	pod := map[string]*script.Schema{ // the pod fields of a Workflow and of its steps
		"volumes": spec("volumes"), "affinity": spec("affinity"), "tolerations": spec("tolerations"),
		"securityContext": spec("securityContext"),
		"hostAliases":     spec("hostAliases"),
	}
	step := object(open("name", "template", "arguments", "templateRef", "withItems", "withParam", "withSequence", "when",
		"continueOn", "onExit", "hooks"))
	task := with(step, open("dependencies", "depends"))
	user := with(container, open("mirrorVolumeMounts"))
	work := with(object(pod), open("activeDeadlineSeconds", "annotations", "archiveLocation",
		"automountServiceAccountToken", "daemon", "data", "executor",
		"failFast", "http", "inputs", "memoize", "metadata", "metrics", "name", "nodeSelector", "outputs", "parallelism",
		"plugin", "podSpecPatch",
		"priority", "priorityClassName", "resource", "retryStrategy", "schedulerName", "serviceAccountName", "suspend",
		"synchronization", "timeout"))
	maps.Copy(work.Properties, map[string]*script.Schema{
		"container": container, "script": with(container, open("source")), "sidecars": list(user),
		"initContainers": list(user),
		"containerSet": object(map[string]*script.Schema{"containers": list(with(container, open("dependencies"))),
			"retryStrategy": nil, "volumeMounts": nil}),
		"steps": list(list(step)),
		"dag":   object(map[string]*script.Schema{"target": nil, "failFast": nil, "tasks": list(task)}),
	})
	step.Properties["inline"], task.Properties["inline"] = work, work

	workflow := func(at ...string) []part {
		in := func(path ...string) []string { return append(slices.Clone(at), path...) }
		parts := []part{{in("templates", each), work}, {in("templateDefaults"), work},
			{in("volumeClaimTemplates", each), claim}, {in("dnsConfig"), spec("dnsConfig")}}
		for _, name := range slices.Sorted(maps.Keys(pod)) {
			parts = append(parts, part{in(name), pod[name]})
		}
		return parts
	}
	parts := map[schema.GroupKind][]part{}
	for k := range kind.List() {
		switch {
		case k.Workflow != nil:
			parts[k.GroupKind] = workflow(k.Workflow...)
		case k.Pods.Specs != nil && k.Once != nil:
			parts[k.GroupKind] = []part{{k.Pods.Specs[0], object(map[string]*script.Schema{
				"metadata": nil, "ephemeralContainers": spec("ephemeralContainers")})}}
		case strings.Contains(k.Group, "."): // the API server checks Kubernetes' own
			for _, path := range k.Pods.Claims {
				parts[k.GroupKind] = append(parts[k.GroupKind], part{append(slices.Clone(path), each), claim})
			}
		}
	}
	return fieldsOfPods{template, parts}
})

// fieldWalk compares values with the allowed fields.
type fieldWalk struct {
	advice []string
}

// walk follows the path rest from v, which is at a place, and compares the values that it finds.
func (w *fieldWalk) walk(v any, at *field.Path, rest []string, s *script.Schema) {
	if len(rest) == 0 {
		w.compare(v, at, s)
		return
	}
	if rest[0] == each {
		list, _ := v.([]any)
		for i, element := range list {
			w.walk(element, at.Index(i), rest[1:], s)
		}
		return
	}
	if m, ok := v.(map[string]any); ok && m[rest[0]] != nil {
		w.walk(m[rest[0]], at.Child(rest[0]), rest[1:], s)
	}
}

// compare reports what s does not allow in v; a nil s allows anything, and a nil v is always allowed.
func (w *fieldWalk) compare(v any, at *field.Path, s *script.Schema) {
	if s == nil || s.Type == "" || v == nil {
		return
	}
	if !fits(v, s.Type) {
		w.advice = append(w.advice, fmt.Sprintf("%s: is %s and must be %s: members reject it", at, describe(v),
			nouns[s.Type]))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			inner, known := s.Properties[name]
			if !known && s.Values == nil && len(s.Properties) > 0 {
				text := fmt.Sprintf("unknown field %q: members drop it or reject the object",
					at.Child(name))
				if meant := words.Meant(name, slices.Sorted(maps.Keys(s.Properties))); meant != "" {
					text += "; did you mean " + meant + "?"
				}
				w.advice = append(w.advice, text)
				continue
			}
			if !known {
				inner = s.Values
			}
			w.compare(value, at.Child(name), inner)
		}
	case []any:
		for i, element := range v {
			w.compare(element, at.Index(i), s.Items)
		}
	}
}

var nouns = map[string]string{"object": "an object", "array": "a list", "string": "a string",
	"integer": "a whole number", "number": "a number", "boolean": "true or false"}

// fits reports whether a value is of a type of OpenAPI.
func fits(v any, kind string) bool {
	switch v := v.(type) {
	case map[string]any:
		return kind == "object"
	case []any:
		return kind == "array"
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	}
	return kind == "number" || kind == "integer"
}

func describe(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return nouns["object"]
	case []any:
		return nouns["array"]
	case string:
		if len(v) > 40 {
			return "a string"
		}
		return fmt.Sprintf("the string %q", v)
	}
	return fmt.Sprint(v)
}
