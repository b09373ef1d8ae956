package builtin

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// daemonSet has no replicas to divide: nodes decide the number.
func daemonSet() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect:   reflectFields(append([]string{"observedGeneration"}, daemonSetCounters...)...),
		Health:    rollingHealth,
		Aggregate: counting(settledNative, daemonSetCounters, daemonSetDone),
	}
}

// daemonSetCounters are the counters in the status of DaemonSets of Kubernetes and OpenKruise.
var daemonSetCounters = []string{
	"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled",
	"numberReady", "numberUnavailable", "updatedNumberScheduled",
}

// daemonSetDone reports whether all nodes have an updated and available pod.
func daemonSetDone(_ *unstructured.Unstructured, status map[string]any) bool {
	desired := number(status, "desiredNumberScheduled")
	return number(status, "updatedNumberScheduled") >= desired && number(status, "numberAvailable") >= desired
}
