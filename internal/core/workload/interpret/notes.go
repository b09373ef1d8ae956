package interpret

import (
	"slices"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Condition types that the hub adds to the status that it reports.
//
//reference:condition status of a template
const (
	// ImmutableFieldConflict: the member keeps a field that cannot change, unlike the template. The message has field
	// and values.
	ImmutableFieldConflict = "ImmutableFieldConflict"
	// NoMatchedPods: no pod has the sidecars of a SidecarSet: no pod was created since, or the webhook in the member
	// does not work.
	NoMatchedPods = "NoMatchedPods"
	// PodsReserved: pods of a UnitedDeployment wait in a subset without a suitable node.
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
