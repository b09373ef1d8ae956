package interpret

import (
	"slices"

	"github.com/argosy-io/argosy/internal/core/fields"
)

// The conditions that the hub adds to a status that it reports, for what its readers would ask next.
const (
	// ImmutableFieldConflict: the member keeps a field that cannot change, against the template.
	ImmutableFieldConflict = "ImmutableFieldConflict"
	// NoMatchedPods: a SidecarSet is in no pod. It is well if none was made since it came, and not if its webhook does not
	// work.
	NoMatchedPods = "NoMatchedPods"
	// PodsReserved: pods of a UnitedDeployment wait in a subset that has no node for them.
	PodsReserved = "PodsReserved"
)

// Notes are the messages of these conditions in a reported status.
func Notes(status map[string]any) (messages []string) {
	for _, c := range fields.Objects(status, "conditions") {
		if fields.Text(c, "status") == "True" &&
			slices.Contains([]string{ImmutableFieldConflict, NoMatchedPods, PodsReserved}, fields.Text(c, "type")) {
			messages = append(messages, fields.Text(c, "message"))
		}
	}
	return messages
}
