package builtin

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// ofFacts returns the hooks of a kind by the facts about it; nil if it counts no updated pods. more are further fields
// of its status.
func ofFacts(k *kind.Kind, more ...addition) *interpret.Hooks {
	c := k.Counters
	if c.Updated == "" {
		return nil
	}
	done := reaching(c.Updated, c.Available)
	if c.UpdatedAvailable != "" {
		done = reaching(c.UpdatedAvailable)
	}
	counters := slices.Concat([]string{c.All, c.Ready, c.Available, c.Updated, c.UpdatedAvailable, c.Desired}, c.Existing,
		c.Others)
	slices.Sort(counters)
	counters = slices.DeleteFunc(slices.Compact(counters), func(name string) bool { return name == "" })
	h := &interpret.Hooks{Retain: retainRollout, Reflect: reflectWhole, Health: rollingHealth,
		Aggregate: counting(settled, counters, done,
			append(more, addRevisions, addCollisions, addConditions, addSelector)...)}
	if k.Replicas != nil {
		h.Replicas, h.Components, h.Revise = replicas, mainComponent, revise
		h.Retain = retainAll(retainReplicas, retainRollout)
	}
	return h
}

// replicasPath returns the path of the number of pods, by default spec.replicas.
func replicasPath(obj *unstructured.Unstructured) []string {
	if path := kind.Facts(obj).Replicas; path != nil {
		return path
	}
	return []string{"spec", "replicas"}
}

// wantedReplicas returns the number of pods in the spec (default 1).
func wantedReplicas(obj *unstructured.Unstructured) (int64, error) {
	return specNumber(obj, 1, replicasPath(obj)[1:]...)
}

// replicas returns the number of pods and the requirements of a pod.
func replicas(_ context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	n, err := wantedReplicas(obj)
	if err != nil {
		return 0, nil, err
	}
	if err := countable(n); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", strings.Join(replicasPath(obj), "."), err)
	}
	req, err := interpret.Requirements(obj)
	return int32(n), req, err
}

// countable returns an error for an invalid number of replicas.
func countable(n int64) error {
	if n < 0 || n > math.MaxInt32 {
		return fmt.Errorf("%d is not a number of replicas", n)
	}
	return nil
}

// mainComponent returns the only component of a kind with one pod template.
func mainComponent(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	n, req, err := replicas(ctx, obj)
	if err != nil {
		return nil, err
	}
	return []workv1alpha2.Component{component("main", n, req)}, nil
}

// component returns a component with the requirements of one replica; nil means unknown.
func component(name string, replicas int32, req *workv1alpha2.ReplicaRequirements) workv1alpha2.Component {
	c := workv1alpha2.Component{Name: name, Replicas: replicas}
	if req != nil {
		c.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
			NodeClaim: req.NodeClaim, ResourceRequest: req.ResourceRequest, PriorityClassName: req.PriorityClassName,
		}
	}
	return c
}

// revise sets the number of pods.
func revise(_ context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error) {
	return withField(obj, int64(replicas), replicasPath(obj)...)
}

// withField returns a copy of obj with a new value at path.
func withField(obj *unstructured.Unstructured, value any, path ...string) (*unstructured.Unstructured, error) {
	out := obj.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, value, path...); err != nil {
		return nil, err
	}
	return out, nil
}

// podDependencies returns the dependencies of all pod templates of obj, and the governing Service. It omits claims from
// claim templates, which each member's controller creates.
func podDependencies(_ context.Context,
	obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	var deps []configv1alpha1.DependentObjectReference
	for _, path := range interpret.PodTemplates(obj) {
		t, err := interpret.PodTemplate(obj, path)
		if err != nil {
			return nil, err
		}
		if len(path) > 0 {
			beside := func(name string) []string { return append(path[:len(path)-1:len(path)-1], name) }
			for _, claims := range [][]string{beside("volumeClaimTemplates"),
				slices.Concat(path, []string{"volumeClaimTemplates"})} {
				t.Spec.Volumes = slices.DeleteFunc(t.Spec.Volumes, madeFrom(objects(obj.Object, claims...), obj.GetName()))
			}
			if name := text(obj.Object, beside("serviceName")...); name != "" {
				deps = append(deps, configv1alpha1.DependentObjectReference{
					APIVersion: "v1", Kind: "Service", Namespace: obj.GetNamespace(), Name: name,
				})
			}
		}
		deps = append(deps, interpret.PodDependencies(t, obj.GetNamespace())...)
	}
	for _, path := range interpret.PodSpecs(obj) {
		t, err := interpret.PodSpec(obj, path)
		if err != nil {
			return nil, err
		}
		deps = append(deps, interpret.PodDependencies(t, obj.GetNamespace())...)
	}
	return interpret.SortDependencies(deps), nil
}

// madeFrom reports whether a volume refers to a claim from one of the claim templates of the set: by the volume's name,
// the template's name, or a claim <template>-<set>-<pod>.
func madeFrom(templates []map[string]any, set string) func(corev1.Volume) bool {
	return func(v corev1.Volume) bool {
		for _, t := range templates {
			name := text(t, "metadata", "name")
			if name == "" {
				continue
			}
			if v.Name == name {
				return true
			}
			if c := v.PersistentVolumeClaim; c != nil &&
				(c.ClaimName == name || strings.HasPrefix(c.ClaimName, name+"-"+set+"-")) {
				return true
			}
		}
		return false
	}
}
