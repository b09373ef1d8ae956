package dependency

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Sidecars are the containers that a SidecarSet injects, reduced to what affects resource requests.
type Sidecars struct {
	Name string
	Injection
	// init and containers have only names, restart policies and resources, so that a new image is no change.
	init, containers []sidecar
}

type sidecar struct {
	corev1.Container
	// Policy is nil for a container with fixed resources.
	Policy *resourcesPolicy
}

// SidecarsOf reads a SidecarSet. ok is false if it adds no requests: for other kinds, for one that no policy propagates
// or that is being deleted, and for one that does not inject into new pods. It uses the current spec, even if the
// SidecarSet names a revision.
func SidecarsOf(obj *unstructured.Unstructured) (s Sidecars, ok bool, err error) {
	if _, claimed := propagate.Claimed(obj); !claimed || obj.GetDeletionTimestamp() != nil {
		return s, false, nil
	}
	if fields.Yes(obj.Object, "spec", "injectionStrategy", "paused") {
		return s, false, nil
	}
	s.Name = obj.GetName()
	if s.Injection, ok, err = injectionOf(obj); err != nil || !ok {
		return s, false, err
	}
	if s.init, err = containers(obj, "initContainers"); err != nil {
		return s, false, err
	}
	s.containers, err = containers(obj, "containers")
	return s, err == nil, err
}

// containers reads one container list of a SidecarSet.
func containers(obj *unstructured.Unstructured, list string) ([]sidecar, error) {
	var out []sidecar
	for _, from := range fields.Objects(obj.Object, "spec", list) {
		kept := map[string]any{}
		for _, field := range []string{"name", "restartPolicy", "resources"} {
			if v, ok := from[field]; ok {
				kept[field] = v
			}
		}
		var c corev1.Container
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(kept, &c); err != nil {
			return nil, fmt.Errorf("read the resources of container %v of SidecarSet %s: %w", from["name"], obj.GetName(), err)
		}
		out = append(out, sidecar{c, policyOf(from)})
	}
	return out, nil
}

// Alike reports whether both add the same to every workload.
func (s Sidecars) Alike(o Sidecars) bool {
	text := func(l labels.Selector) string {
		if l == nil {
			return "any"
		}
		return "those with " + l.String()
	}
	return s.Name == o.Name && text(s.pods) == text(o.pods) && text(s.namespaces) == text(o.namespaces) &&
		equality.Semantic.DeepEqual(s.init, o.init) && equality.Semantic.DeepEqual(s.containers, o.containers)
}

// Injecting returns the SidecarSets that inject into pods of the workload, sorted by name. namespace has the labels of
// its namespace.
func Injecting(sets []Sidecars, workload *unstructured.Unstructured, namespace map[string]string) []Sidecars {
	out := slices.DeleteFunc(slices.Clone(sets), func(s Sidecars) bool {
		return !s.Selects(workload) || !s.SelectsNamespace(workload.GetNamespace(), namespace)
	})
	slices.SortFunc(out, func(a, b Sidecars) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Count adds the requests of injected containers to the requirements of a replica in m, and records the names of the
// SidecarSets. Containers that exist already count once. It does not modify values that m shares.
//
// The result applies to all clusters, also to those without the SidecarSet, because requirements are the same
// everywhere.
func Count(m *propagate.Meaning, workload *unstructured.Unstructured, sets []Sidecars) error {
	if len(sets) == 0 {
		return nil
	}
	more := corev1.ResourceList{} // the maximum over all pod templates
	for _, path := range interpret.PodTemplates(workload) {
		t, err := interpret.PodTemplate(workload, path)
		if err != nil {
			return err
		}
		without := requests(t)
		own := slices.DeleteFunc(slices.Clone(t.Spec.InitContainers), func(c corev1.Container) bool {
			return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
		})
		own = append(own, t.Spec.Containers...)
		for _, s := range sets {
			if s.selects(workload, path) {
				t.Spec.InitContainers = joined(t.Spec.InitContainers, s.init, own)
				t.Spec.Containers = joined(t.Spec.Containers, s.containers, own)
			}
		}
		for name, q := range requests(t) {
			q.Sub(without[name])
			if most := more[name]; q.Cmp(most) > 0 {
				more[name] = q
			}
		}
	}
	if len(more) == 0 {
		return nil
	}
	for _, s := range sets {
		m.Sidecars = append(m.Sidecars, s.Name)
	}
	needs := m.Requirements.DeepCopy()
	if needs == nil {
		needs = &workv1alpha2.ReplicaRequirements{Namespace: workload.GetNamespace()}
	}
	if needs.ResourceRequest == nil {
		needs.ResourceRequest = corev1.ResourceList{}
	}
	for name, q := range more {
		sum := needs.ResourceRequest[name]
		sum.Add(q)
		needs.ResourceRequest[name] = sum
	}
	m.Requirements = needs
	return nil
}

func requests(t *corev1.PodTemplateSpec) corev1.ResourceList {
	return interpret.PodRequirements(t, "").ResourceRequest
}

// joined appends the injected containers, each name once. own are the pod's own containers, which take precedence.
func joined(have []corev1.Container, injected []sidecar, own []corev1.Container) []corev1.Container {
	for _, s := range injected {
		if slices.ContainsFunc(have, func(h corev1.Container) bool { return h.Name == s.Name }) {
			continue
		}
		c := s.Container
		if s.Policy != nil {
			c = s.Policy.apply(c, own)
		}
		have = append(have, c)
	}
	return have
}
