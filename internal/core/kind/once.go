package kind

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Once describes a kind that runs once: recreating an object runs it again.
type Once struct {
	// Over reports whether it has finished, by its current or reported status.
	Over func(status map[string]any) bool
	// TTL is the path of the seconds after which a member deletes a finished object; nil if the kind has none. For a
	// Workflow they depend on its result.
	TTL []string
	// Standard is the TTL in seconds if none is set; negative means never.
	Standard int64
	// Ended is the status field with the end time.
	Ended string
	// Pauses is true if spec.paused stops a run.
	Pauses bool
	// Completions is the path of the number of pods that have to succeed; nil if the kind has none.
	Completions []string
	// Final is true if a finished object never runs again, whatever changes in it.
	Final bool
	// Swept is true if the hub's API server deletes finished templates of the kind.
	Swept bool
}

// reached is true in one of the phases.
func reached(path []string, phases ...string) func(map[string]any) bool {
	return func(status map[string]any) bool { return slices.Contains(phases, fields.Text(status, path...)) }
}

// conditioned is true if a condition of one of the types is True.
func conditioned(types ...string) func(map[string]any) bool {
	return func(status map[string]any) bool {
		return slices.ContainsFunc(fields.Objects(status, "conditions"), func(c map[string]any) bool {
			return c["status"] == "True" && slices.Contains(types, fields.Text(c, "type"))
		})
	}
}

// completed is true once there is a completion time.
func completed(status map[string]any) bool { return fields.Text(status, "completionTime") != "" }

func either(a, b func(map[string]any) bool) func(map[string]any) bool {
	return func(status map[string]any) bool { return a(status) || b(status) }
}

// Failed reports whether a run has ended without success, by the words that these kinds use for that.
func (o *Once) Failed(status map[string]any) bool {
	return o.Over(status) && (conditioned("Failed")(status) || reached(phase, "Failed", "failed", "Error")(status) ||
		reached([]string{"state", "phase"}, "Failed", "Terminated")(status) ||
		reached([]string{"jobDeploymentStatus"}, "Failed")(status) ||
		reached([]string{"applicationState", "state"}, "FAILED")(status))
}

// End returns the part of a status that says how a run ended; nil if it has not ended.
func (o *Once) End(status map[string]any) map[string]any {
	if !o.Over(status) {
		return nil
	}
	end := map[string]any{}
	for _, path := range [][]string{phase, {"completionTime"}, {"state", "phase"}, {"jobDeploymentStatus"},
		{"applicationState", "state"}} {
		if value := fields.Text(status, path...); value != "" {
			_ = unstructured.SetNestedField(end, value, path...) // its parents are new
		}
	}
	var conditions []any
	for _, c := range fields.Objects(status, "conditions") {
		conditions = append(conditions, map[string]any{"type": c["type"], "status": c["status"]})
	}
	if conditions != nil {
		end["conditions"] = conditions
	}
	return end
}

var (
	phase        = []string{"phase"}
	jobOver      = conditioned("Complete", "Failed")
	ttlOfJob     = []string{"spec", "ttlSecondsAfterFinished"}
	ttlByPolicy  = []string{"spec", "completionPolicy", "ttlSecondsAfterFinished"}
	completedJob = Once{Over: completed, TTL: ttlByPolicy, Standard: -1, Ended: "completionTime"}
)
