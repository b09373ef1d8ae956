package builtin

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// advancedDaemonSet is OpenKruise's DaemonSet, v1alpha1 and v1beta1, which differ in the status field of the new
// revision. It has no replicas to divide: nodes decide the number.
func advancedDaemonSet() *interpret.Hooks {
	return &interpret.Hooks{
		Retain:  retainAll(retainRollout, retainImmutable(immutableSelector)),
		Reflect: reflectWhole,
		Health:  rollingHealth,
		Aggregate: counting(settled, daemonSetCounters, daemonSetDone, addCollisions, addConditions,
			addDaemonSetRevision),
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
