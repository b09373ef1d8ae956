package interpret

import (
	"slices"

	"github.com/argosy-io/argosy/internal/core/fields"
)

// Conditions that the hub adds to a reported status.
const (
	// ImmutableFieldConflict: the member keeps an immutable field that differs from the template.
	ImmutableFieldConflict = "ImmutableFieldConflict"
	// NoMatchedPods: a SidecarSet has no pods. Either no pod was created since, or its webhook does not work.
	NoMatchedPods = "NoMatchedPods"
	// PodsReserved: pods of a UnitedDeployment are unschedulable in their subset.
	PodsReserved = "PodsReserved"
)

// Notes returns the messages of these conditions in a reported status.
func Notes(status map[string]any) (messages []string) {
	for _, c := range fields.Objects(status, "conditions") {
		if fields.Text(c, "status") == "True" &&
			slices.Contains([]string{ImmutableFieldConflict, NoMatchedPods, PodsReserved}, fields.Text(c, "type")) {
			messages = append(messages, fields.Text(c, "message"))
		}
	}
	return messages
}
