package interpret

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// podsOf returns where objects of the kind of obj have pods.
func podsOf(obj *unstructured.Unstructured) kind.Pods {
	return kind.Facts(obj).Pods
}

// PodTemplates returns the paths of the existing pod templates of obj. A Pod is its own template at the empty path. For
// other containers see PodSpecs and Containers.
func PodTemplates(obj *unstructured.Unstructured) [][]string {
	return present(obj, podsOf(obj).Templates)
}

// PodTemplatePaths returns the paths at which objects of a kind may have pod templates. They are read-only.
func PodTemplatePaths(gk schema.GroupKind) [][]string { return kind.Lookup(gk).Pods.Templates }

// PodSpecs returns the paths of pod specs in obj that are added to pods of others, as in SidecarSet and EphemeralJob.
func PodSpecs(obj *unstructured.Unstructured) [][]string {
	return present(obj, podsOf(obj).Specs)
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
	p := podsOf(obj)
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
	specs := slices.Clone(p.Specs)
	for _, t := range p.Templates {
		specs = append(specs, under(t, "spec"))
	}
	for _, s := range specs {
		add(true, under(s, "initContainers", kind.Each))
	}
	for _, path := range p.InitContainers {
		add(true, path)
	}
	for _, s := range specs {
		add(false, under(s, "containers", kind.Each))
	}
	for _, s := range p.Specs {
		add(false, under(s, "ephemeralContainers", kind.Each))
	}
	for _, path := range p.Containers {
		add(false, path)
	}
	return found
}

// ImageVolumes returns the paths of the image names that pods of obj mount as volumes.
func ImageVolumes(obj *unstructured.Unstructured) [][]string {
	p := podsOf(obj)
	specs := slices.Clone(p.Specs)
	for _, t := range p.Templates {
		specs = append(specs, append(slices.Clone(t), "spec"))
	}
	var found [][]string
	for _, s := range specs {
		walk(obj.Object, nil, append(slices.Clone(s), "volumes", kind.Each, "image", "reference"), func(at []string, v any) {
			if v != nil {
				found = append(found, at)
			}
		})
	}
	return found
}

// configMapReferences are the paths of references to ConfigMaps in a pod spec.
var configMapReferences = func() [][]string {
	paths := [][]string{{"volumes", kind.Each, "configMap"},
		{"volumes", kind.Each, "projected", "sources", kind.Each, "configMap"}}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		paths = append(paths, []string{list, kind.Each, "envFrom", kind.Each, "configMapRef"},
			[]string{list, kind.Each, "env", kind.Each, "valueFrom", "configMapKeyRef"})
	}
	return paths
}()

// EachConfigMap calls visit with each reference to a ConfigMap, which has its name, in the pod templates of obj.
func EachConfigMap(obj *unstructured.Unstructured, visit func(ref map[string]any)) {
	for _, t := range podsOf(obj).Templates {
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
	for _, path := range podsOf(obj).Images {
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
	if rest[0] == kind.Each {
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

// Requirements returns the requirements of a pod of obj's first pod template; nil if there is none. An unknown kind has
// one if there are containers at .spec.template; then nothing is an error.
func Requirements(obj *unstructured.Unstructured) (*workv1alpha2.ReplicaRequirements, error) {
	path, known := FirstPodTemplate(obj)
	if path == nil {
		return nil, nil
	}
	t, err := PodTemplate(obj, path)
	switch {
	case err == nil:
		return PodRequirements(t, obj.GetNamespace()), nil
	case known:
		return nil, err
	}
	return nil, nil
}

// FirstPodTemplate returns the path of obj's first pod template; nil if there is none. known is false for the guess
// .spec.template of an unknown kind, which has containers there.
func FirstPodTemplate(obj *unstructured.Unstructured) (path []string, known bool) {
	if paths := PodTemplates(obj); len(paths) > 0 {
		return append([]string{}, paths[0]...), true // that of a Pod is empty, and not nil
	}
	if fields.List(obj.Object, "spec", "template", "spec", "containers") == nil {
		return nil, false
	}
	return []string{"spec", "template"}, false
}
