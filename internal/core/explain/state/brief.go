package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// briefFields are the status fields with the most information, in this order.
var briefFields = []string{"phase", "replicas", "readyReplicas", "availableReplicas", "updatedReplicas",
	"unavailableReplicas",
	"desiredNumberScheduled", "numberReady", "desired", "active", "succeeded", "failed"}

// Brief returns a summary of a status; empty if there is none.
func Brief(status json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(status, &fields) != nil {
		return ""
	}
	var parts []string
	for _, name := range briefFields {
		switch v := fields[name].(type) {
		case string, float64:
			parts = append(parts, text.Plain(fmt.Sprintf("%s %v", name, v), wordMost))
		}
	}
	lines := Notes(status)
	if len(parts) > 0 {
		lines = append([]string{strings.Join(parts, ", ")}, lines...)
	}
	return text.Cut(strings.Join(lines, "; "), briefMost)
}

// Limits in bytes for texts that a member reported: a summary, a message and a word, such as a phase.
const (
	briefMost   = 512
	messageMost = 256
	wordMost    = 64
	notesMost   = 4 // notes
)

// failure quotes the condition by which a workload that runs once, such as a Job, reports that it failed; empty if it
// has not failed.
func failure(status map[string]any) string {
	for _, kind := range []string{"Failed", "FailureTarget"} {
		for _, c := range fields.Objects(status, "conditions") {
			if fields.Text(c, "type") != kind || fields.Text(c, "status") != "True" {
				continue
			}
			parts := []string{fields.Text(c, "reason"), fields.Text(c, "message")}
			parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
			return text.Plain(strings.Join(parts, ": "), messageMost)
		}
	}
	return ""
}

// Notes returns why a workload failed, and the notes that the hub adds to a status.
func Notes(status json.RawMessage) []string {
	var reported map[string]any
	if json.Unmarshal(status, &reported) != nil {
		return nil
	}
	notes := slices.DeleteFunc(append([]string{failure(reported)}, interpret.Notes(reported)...),
		func(s string) bool { return s == "" })
	notes = notes[:min(len(notes), notesMost)]
	for i := range notes {
		notes[i] = text.Plain(notes[i], messageMost)
	}
	return notes
}
