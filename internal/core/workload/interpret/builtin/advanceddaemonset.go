package builtin

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// advancedDaemonSet is OpenKruise's DaemonSet, v1alpha1 and v1beta1, which differ in the status field of the new
// revision. It has no replicas to divide: nodes decide the number.
func advancedDaemonSet() *interpret.Hooks {
	return &interpret.Hooks{
		Retain:    retainAll(retainRollout, retainImmutable(immutableSelector)),
		Reflect:   reflectWhole,
		Health:    advancedDaemonSetHealth,
		Aggregate: counting(daemonSetCounters, daemonSetDone, addCollisions, addConditions, addDaemonSetRevision),
	}
}

// addDaemonSetRevision adds the common revision of the clusters, or an empty one, because the field is required.
func addDaemonSetRevision(status map[string]any, template *unstructured.Unstructured, rs []report) error {
	either := make([]report, len(rs))
	for i, r := range rs {
		either[i] = r
		if r.status != nil {
			either[i].status = map[string]any{"revision": cmp.Or(text(r.status, "updateRevision"),
				text(r.status, "daemonSetHash"))}
		}
	}
	name := "updateRevision"
	if oldVersion(template) {
		name = "daemonSetHash"
	}
	status[name] = common(either, "revision")
	return nil
}

func advancedDaemonSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	spec, status := object(observed.Object, "spec"), object(observed.Object, "status")
	desired := number(status, "desiredNumberScheduled")
	// Only here a percentage of nodes rounds down.
	keptOld, err := share(strategy(spec, "partition"), desired, false, int64(0))
	if err != nil {
		return interpret.Unknown, fmt.Errorf("partition: %w", err)
	}
	// A selector in the strategy limits the update to some nodes. The status does not contain their number.
	if strategy(spec, "selector") != nil {
		keptOld = desired
	}
	spare, err := daemonSetSpare(spec, desired)
	if err != nil {
		return interpret.Unknown, err
	}
	if !fresh(observed) {
		return interpret.Progressing, nil
	}
	available, updated := number(status, "numberAvailable"), number(status, "updatedNumberScheduled")
	health := rolling{
		wanted: desired, keptOld: min(max(keptOld, 0), desired), spare: spare,
		there: desired, available: available, updated: updated, updatedAvailable: updated,
		paused: paused(spec), onDelete: onDelete(spec),
	}.health()
	if health == interpret.Healthy && available < desired {
		return interpret.Progressing, nil
	}
	return health, nil
}

// daemonSetSpare returns on how many nodes the pod may be unavailable during an update: one by default, none with
// surge.
func daemonSetSpare(spec map[string]any, nodes int64) (int64, error) {
	surge, err := share(strategy(spec, "maxSurge"), nodes, true, int64(0))
	if err != nil {
		return 0, fmt.Errorf("maxSurge: %w", err)
	}
	spare := int64(1)
	if surge > 0 {
		spare = 0
	}
	n, err := share(strategy(spec, "maxUnavailable"), nodes, true, spare)
	if err != nil {
		return 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	return n, nil
}
