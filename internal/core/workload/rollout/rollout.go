// Package rollout returns the progress of a Kruise Rollout in each cluster, and decides what an approval on the hub
// continues: exactly the step that the user saw. Callers read and write in the hub and in members.
package rollout

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Kind is the kind of Kruise Rollouts, in all its versions.
var Kind = kind.KruiseRollout.GroupKind

// Approval is for one cluster.
type Approval struct {
	// Step is the number of the step, from 1.
	Step int64 `json:"step"`
	// Revision is what the cluster calls the pods that are rolled out.
	Revision string `json:"revision"`
}

// The states of a step in the status of a Rollout that matter here.
const (
	paused = "StepPaused"
	ready  = "StepReady"
)

// Progress is how far a Rollout is in one cluster.
type Progress struct {
	Phase string
	// Step and State are of the step that it is at; 0 and empty for none.
	Step  int64
	State string
	// Revision is what the cluster calls the pods that are rolled out.
	Revision string
	Message  string
	// part of the status has the step.
	part string
}

// Paused reports whether it waits for somebody's approval, or for its time.
func (p Progress) Paused() bool { return p.State == paused && p.Step > 0 }

// ProgressOf reads the status of a Rollout.
func ProgressOf(status map[string]any) Progress {
	p := Progress{Phase: fields.Text(status, "phase"), Message: fields.Text(status, "message")}
	for _, part := range []string{"canaryStatus", "blueGreenStatus"} {
		s := fields.Object(status, part)
		if s == nil {
			continue
		}
		p.part, p.Step, p.State = part, fields.Number(s, "currentStepIndex"), fields.Text(s, "currentStepState")
		for _, name := range []string{"canaryRevision", "updatedRevision"} {
			if v := fields.Text(s, name); v != "" {
				p.Revision = v
			}
		}
		if p.Message == "" {
			p.Message = fields.Text(s, "message")
		}
		return p
	}
	return p
}

// Approve returns the value of wellknown.ApprovedStepsAnnotation that approves the steps at which clusters wait, and
// these clusters: those in wanted, or all if wanted is empty. was is the value before. It returns an error if a wanted
// cluster does not wait, or none does.
func Approve(was string, clusters map[string]Progress, wanted []string) (value string, approved []string, err error) {
	all := map[string]Approval{}
	// An annotation that cannot be read approves nothing, and is replaced.
	_ = json.Unmarshal([]byte(was), &all)
	for _, name := range wanted {
		if p, ok := clusters[name]; !ok || !p.Paused() {
			return "", nil, fmt.Errorf("the Rollout is not waiting in cluster %q", name)
		}
	}
	for name, p := range clusters {
		if !p.Paused() || len(wanted) > 0 && !slices.Contains(wanted, name) {
			continue
		}
		if p.Revision == "" {
			return "", nil, fmt.Errorf("the Rollout in cluster %q does not report its revision, so an approval could apply to the next rollout", name)
		}
		all[name] = Approval{p.Step, p.Revision}
		approved = append(approved, name)
	}
	if len(approved) == 0 {
		return "", nil, fmt.Errorf("the Rollout is not waiting in any cluster")
	}
	for name := range all {
		if _, ok := clusters[name]; !ok {
			delete(all, name) // it has left
		}
	}
	slices.Sort(approved)
	raw, err := json.Marshal(all)
	return string(raw), approved, err
}

// Grant returns the merge patch of the status of a member's Rollout that continues the step at which it waits; nil if
// the annotation does not approve this step for the cluster. The patch is valid for observed only.
func Grant(cluster string, observed *unstructured.Unstructured) map[string]any {
	value := fields.Text(observed.Object, "metadata", "annotations", wellknown.ApprovedStepsAnnotation)
	if value == "" || observed.GroupVersionKind().GroupKind() != Kind || observed.GetDeletionTimestamp() != nil {
		return nil
	}
	var all map[string]Approval
	if err := json.Unmarshal([]byte(value), &all); err != nil {
		return nil
	}
	p := ProgressOf(fields.Object(observed.Object, "status"))
	if a, ok := all[cluster]; !ok || !p.Paused() || a.Step != p.Step || a.Revision == "" || a.Revision != p.Revision {
		return nil
	}
	status := map[string]any{p.part: map[string]any{"currentStepState": ready}}
	if fields.Text(observed.Object, "status", "currentStepState") != "" {
		status["currentStepState"] = ready // newer releases repeat it at the top level
	}
	return map[string]any{"metadata": map[string]any{"resourceVersion": observed.GetResourceVersion()}, "status": status}
}

// PausePath returns the field by which a rollout of the object stops where it is; nil if its kind has none.
func PausePath(obj *unstructured.Unstructured) []string {
	if pause := kind.Facts(obj).Pause; pause != nil {
		return pause(obj.GroupVersionKind().Version)
	}
	return nil
}
