package rollout

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// The names of actions.
const (
	ActionScale   = "scale"
	ActionRestart = "restart"
	ActionPause   = "pause"
	ActionResume  = "resume"
	ActionApprove = "approve"
)

// Action is a change of a template that one command makes.
type Action struct {
	Name string `json:"name"`
	// Subresource is the part of the template that Patch, a merge patch, changes; empty for the template itself.
	Subresource string         `json:"subresource,omitempty"`
	Patch       map[string]any `json:"patch,omitempty"`
	// Replicas are the present ones of an action that scales: its patch and its command depend on the new number.
	Replicas *int64 `json:"replicas,omitempty"`
	// Command does the same in a terminal. {n} stands for the new number of replicas.
	Command string `json:"command"`
}

// Actions returns what one command can change of a template.
func Actions(obj *unstructured.Unstructured, now time.Time) (all []Action) {
	of := kind.Facts(obj)
	if of.Scale {
		n := int64(1) // the default of all these kinds
		if given, found, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); found {
			n = given
		}
		all = append(all, Action{Name: ActionScale, Subresource: "scale", Replicas: &n,
			Command: CommandFor(obj, "kubectl scale") + " --replicas={n}"})
	}
	if of.Restart { // pods of others may be updated in place, and would not restart
		all = append(all, Action{Name: ActionRestart, Command: CommandFor(obj, "kubectl rollout restart"),
			Patch: nested(now.UTC().Format(time.RFC3339), "spec", "template", "metadata", "annotations",
				"kubectl.kubernetes.io/restartedAt")})
	}
	if path := PausePath(obj); path != nil {
		name, paused := ActionPause, fields.Yes(obj.Object, path...)
		if paused {
			name = ActionResume
		}
		all = append(all, Action{Name: name, Command: RolloutCommand(obj, name),
			Patch: nested(!paused, path...)})
	}
	return all
}

// RolloutCommand returns the command of `argosy rollout` that does an action.
func RolloutCommand(obj *unstructured.Unstructured, action string) string {
	return CommandFor(obj, "argosy rollout "+action)
}

// CommandFor returns a command with the kind, the name and the namespace of an object.
func CommandFor(obj *unstructured.Unstructured, start string) string {
	gk := obj.GroupVersionKind().GroupKind()
	kind := strings.ToLower(gk.Kind)
	if gk.Group != "" && gk.Group != "apps" {
		kind += "." + gk.Group
	}
	text := fmt.Sprintf("%s %s %s", start, kind, obj.GetName())
	if obj.GetNamespace() != "" {
		text += " -n " + obj.GetNamespace()
	}
	return text
}

// nested returns an object with one field.
func nested(value any, path ...string) map[string]any {
	for i := len(path) - 1; i > 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return map[string]any{path[0]: value}
}
