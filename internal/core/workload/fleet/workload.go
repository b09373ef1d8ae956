package fleet

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// workload is a kind whose rollouts are divided.
type workload struct{ *kind.Kind }

// workloadOf returns the workload of a kind; ok is false for kinds without a partition that the hub divides.
func workloadOf(gk schema.GroupKind) (w workload, ok bool) {
	k := kind.Lookup(gk)
	return workload{k}, k.Rolling != nil
}

// perNode reports whether the spec has no number of pods, as that of a DaemonSet.
func (w workload) perNode() bool { return w.Counters.Desired != "" }

// percentages reports whether a partition of the kind may be a percentage of the replicas that an autoscaler sets.
func (w workload) percentages() bool { return !w.Rolling.Numeric && !w.perNode() }

// rounding returns Down or Up.
func rounding(down bool) Rounding {
	if down {
		return Down
	}
	return Up
}

// factsOf returns the facts about the kind of obj, and its version.
func factsOf(obj map[string]any) (k *kind.Kind, version string) {
	gvk := schema.FromAPIVersionAndKind(text(obj, "apiVersion"), text(obj, "kind"))
	return kind.Lookup(gvk.GroupKind()), gvk.Version
}

// strategyPath is where the strategy of obj has its fields.
func strategyPath(obj map[string]any) []string {
	k, version := factsOf(obj)
	return k.Strategy(version)
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
	k, _ := factsOf(obj)
	return k.Pods.InTurn && text(obj, "spec", "podManagementPolicy") != "Parallel"
}

// budgets are maxUnavailable and maxSurge of obj for so many replicas; at least one of them is more than none.
func (w workload) budgets(obj map[string]any, replicas int64) (unavailable, surge int64, err error) {
	unavailable, surge, err = w.limits(obj, replicas)
	if err == nil && (unavailable+surge < 1 || !w.Rolling.Surges) {
		unavailable = max(unavailable, 1)
	}
	return unavailable, surge, err
}

// limits are maxUnavailable and maxSurge of obj for so many replicas.
func (w workload) limits(obj map[string]any, replicas int64) (unavailable, surge int64, err error) {
	if v := strategy(obj, "maxSurge"); v != nil && w.Rolling.Surges {
		if surge, err = Resolve(v, replicas, Up); err != nil {
			return 0, 0, fmt.Errorf("maxSurge: %w", err)
		}
		if strategy(obj, "paused") == true {
			surge = 0
		}
	}
	v := strategy(obj, "maxUnavailable")
	if v == nil {
		if v = w.Rolling.Unset; w.perNode() && surge > 0 {
			v = int64(0) // a DaemonSet has the one or the other
		}
	}
	round := rounding(w.Rolling.UnavailableRoundsDown)
	if !w.perNode() && surge > 0 {
		round = Down
	}
	if unavailable, err = Resolve(v, replicas, round); err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	return unavailable, surge, nil
}

// Limits returns how many of so many pods the partition of obj keeps on their old revision, and how many an update may
// make unavailable; 0 for a kind without a partition. A selector in the strategy limits the update to some pods, whose
// number is not known: then all may be kept.
func Limits(obj *unstructured.Unstructured, pods int64) (kept, unavailable int64, err error) {
	w, ok := workloadOf(obj.GroupVersionKind().GroupKind())
	if !ok {
		return 0, 0, nil
	}
	if kept, err = w.kept(strategy(obj.Object, "partition"), pods); err != nil {
		return 0, 0, err
	}
	if strategy(obj.Object, "selector") != nil {
		kept = pods
	}
	unavailable, _, err = w.limits(obj.Object, pods)
	return kept, unavailable, err
}

func (w workload) kept(partition any, of int64) (int64, error) {
	if _, isNumber := whole(partition); w.Rolling.Numeric && partition != nil && !isNumber {
		return 0, fmt.Errorf("partition: %v is not a whole number", partition)
	}
	n, err := KeptOld(partition, of, rounding(w.Rolling.PartitionRoundsDown))
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
	if w.perNode() && o.released == 0 && o.replicas > 0 {
		partition = "100%" // of however many there will be
	}
	if w.Rolling.Numeric && o.scaled && o.released == 0 && o.replicas > 0 {
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
	if w.Rolling.Surges && (strategy(m.Object, "maxSurge") != nil || o.surging > 0) {
		return m, put("maxSurge", o.surging)
	}
	return m, nil
}
