package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// workload is how a kind spells a rollout.
type workload struct {
	// partition and unavailable are how percentages of these fields round; unavailable applies without a surge.
	partition, unavailable Rounding
	// numeric is true if partition is a number of pods, never a percentage.
	numeric bool
	// surges is true if the kind knows maxSurge.
	surges bool
	// unset is the budget when none is given.
	unset any
	// desired is the status field with the desired number of pods, for kinds whose spec has none.
	desired string
	// revision are the fields that make pods new, default spec.template.
	revision [][]string
	// Status counters: pods, updated, updatedAvailable (empty if the kind has none), available.
	pods, updated, updatedAvailable, available string
}

const kruise = "apps.kruise.io"

var (
	cloneSetKind    = schema.GroupKind{Group: kruise, Kind: "CloneSet"}
	statefulSetKind = schema.GroupKind{Group: kruise, Kind: "StatefulSet"}
	// nativeStatefulSetKind is Kubernetes' own, of which only the ordinals are divided.
	nativeStatefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

// workloads are the kinds whose rollouts are divided.
var workloads = map[schema.GroupKind]workload{
	cloneSetKind: {
		partition: Up, unavailable: Up, surges: true, unset: "20%",
		pods: "replicas", updated: "updatedReplicas", updatedAvailable: "updatedAvailableReplicas",
		available: "availableReplicas",
	},
	statefulSetKind: {
		numeric: true, unavailable: Down, unset: int64(1),
		pods: "replicas", updated: "updatedReplicas", updatedAvailable: "updatedAvailableReplicas",
		available: "availableReplicas",
	},
	{Group: kruise, Kind: "DaemonSet"}: {
		partition: Down, unavailable: Up, surges: true, unset: int64(1), desired: "desiredNumberScheduled",
		pods: "currentNumberScheduled", updated: "updatedNumberScheduled", available: "numberAvailable",
	},
	sidecarSetKind: {
		partition: Up, unavailable: Up, unset: int64(1), desired: "matchedPods",
		revision: [][]string{{"spec", "containers"}, {"spec", "initContainers"}, {"spec", "volumes"}},
		pods:     "matchedPods", updated: "updatedPods", updatedAvailable: "updatedReadyPods", available: "readyPods",
	},
}

// percentages reports whether a partition of the kind may be a percentage of the replicas that an autoscaler sets.
func (w workload) percentages() bool { return !w.numeric && w.desired == "" }

// strategyPath is where the strategy of obj has its fields: a SidecarSet, and a CloneSet of v1alpha1, has them one
// level higher.
func strategyPath(obj map[string]any) []string {
	kind := text(obj, "kind")
	if kind == "SidecarSet" || kind == "CloneSet" && strings.HasSuffix(text(obj, "apiVersion"), "/v1alpha1") {
		return []string{"spec", "updateStrategy"}
	}
	return []string{"spec", "updateStrategy", "rollingUpdate"}
}

// strategy returns a field of the update strategy of obj, nil when it is not set.
func strategy(obj map[string]any, name string) any {
	return field(obj, append(strategyPath(obj), name)...)
}

// rolls reports whether the kind's controller updates pods by itself.
func rolls(obj map[string]any) bool {
	kind := text(obj, "spec", "updateStrategy", "type")
	return kind != "OnDelete" && kind != "NotUpdate"
}

// ordered reports whether the controller of a StatefulSet does one pod after the other.
func ordered(obj map[string]any) bool {
	return text(obj, "kind") == "StatefulSet" && text(obj, "spec", "podManagementPolicy") != "Parallel"
}

// budgets are maxUnavailable and maxSurge of obj for so many replicas; at least one of them is more than none.
func (w workload) budgets(obj map[string]any, replicas int64) (unavailable, surge int64, err error) {
	if v := strategy(obj, "maxSurge"); v != nil && w.surges {
		if surge, err = Resolve(v, replicas, Up); err != nil {
			return 0, 0, fmt.Errorf("maxSurge: %w", err)
		}
		if strategy(obj, "paused") == true {
			surge = 0
		}
	}
	v := strategy(obj, "maxUnavailable")
	if v == nil {
		if v = w.unset; w.desired != "" && surge > 0 {
			v = int64(0) // a DaemonSet has the one or the other
		}
	}
	rounding := w.unavailable
	if w.desired == "" && surge > 0 {
		rounding = Down
	}
	if unavailable, err = Resolve(v, replicas, rounding); err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	if unavailable+surge < 1 || !w.surges {
		unavailable = max(unavailable, 1)
	}
	return unavailable, surge, nil
}

func (w workload) kept(partition any, of int64) (int64, error) {
	if _, isNumber := whole(partition); w.numeric && partition != nil && !isNumber {
		return 0, fmt.Errorf("partition: %v is not a whole number", partition)
	}
	n, err := KeptOld(partition, of, w.partition)
	if err != nil {
		return 0, fmt.Errorf("partition: %w", err)
	}
	return n, nil
}

// shareOf returns the share in a manifest, whoever wrote it.
func (w workload) shareOf(manifest map[string]any, replicas int64) (share, error) {
	kept, err := w.kept(strategy(manifest, "partition"), replicas)
	if err != nil {
		return share{}, err
	}
	s := share{replicas: replicas, released: replicas - kept}
	s.unavailable, s.surging, err = w.budgets(manifest, replicas)
	return s, err
}

// write puts a share into a manifest, a copy of it.
func (w workload) write(m *unstructured.Unstructured, o outcome) (*unstructured.Unstructured, error) {
	m = m.DeepCopy()
	at := strategyPath(m.Object)
	put := func(name string, value any) error {
		return unstructured.SetNestedField(m.Object, value, append(slices.Clone(at), name)...)
	}
	var partition any = o.replicas - o.released
	if w.desired != "" && o.released == 0 && o.replicas > 0 {
		partition = "100%" // of however many there will be
	}
	if w.numeric && o.scaled && o.released == 0 && o.replicas > 0 {
		partition = int64(math.MaxInt32) // no pod that an autoscaler adds has this ordinal
	}
	if o.percent && o.released < o.replicas {
		partition, _ = PercentKeeping(o.replicas-o.released, o.replicas)
	}
	if err := put("partition", partition); err != nil {
		return nil, err
	}
	// One pod after the other is all that an ordered StatefulSet takes, and what it does anyway.
	if !ordered(m.Object) {
		if err := put("maxUnavailable", o.unavailable); err != nil {
			return nil, err
		}
	}
	if w.surges && (strategy(m.Object, "maxSurge") != nil || o.surging > 0) {
		return m, put("maxSurge", o.surging)
	}
	return m, nil
}
